"""Predict what a tool call will do in Gemini CLI 0.61.

The CLI changes paths, contents and commands even after its hooks have answered. `effect` returns
what the call will really do (which contents it will write to which file, or which command it will
run), and arguments with which the CLI does exactly that (assets/gemini-cli.md#effects).
"""

from __future__ import annotations

import hashlib
import json
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path, PurePosixPath
from typing import Any

from gemtui.agents import Agent
from gemtui.calls import javascript, paths
from gemtui.calls.edits import EditOutcome, block, edited
from gemtui.errors import reason_of
from gemtui.files import read_if_present, read_small

SHELL, WRITE, EDIT = "run_shell_command", "write_file", "replace"
LARGEST = 64_000_000
"""The largest file, in bytes, whose contents are predicted."""
_EXECUTE = stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH
_JSON_KINDS = (".json", ".ipynb", ".jsonc", ".json5")
_ESCAPED = re.compile(r"\\+(n|t|r|'|\"|`|\\|\n)")
_MEANS = {"n": "\n", "t": "\t", "r": "\r"}
_GEMINI_3 = re.compile(r"gemini-3(\.|-|\Z)")
_GEMINI_2 = re.compile(r"gemini-2(\.|\Z)")
_ALIASES = frozenset(("", "auto", "pro", "flash", "flash-lite", "none"))
_OWN = {
    WRITE: ("file_path", "content", "wait_for_previous"),
    EDIT: (
        "file_path",
        "instruction",
        "old_string",
        "new_string",
        "allow_multiple",
        "wait_for_previous",
    ),
}
"""The arguments that affect what each file tool does.

All other arguments only affect the CLI's own dialog.
"""


class EffectKind(StrEnum):
    """The kinds of effects: a call writes one file, runs a command, or does neither."""

    FILE = "file"
    COMMAND = "command"
    OTHER = "other"


@dataclass(frozen=True, slots=True, kw_only=True)
class CallContext:
    """The circumstances that a call's effect depends on besides its arguments.

    `project`: the run's absolute folder. `model`: the run's model; None if unknown. `plans`: the
    folder for plans if the run is in plan mode; otherwise None. `corrects`: whether another model
    may change what is written (`tools.disableLLMCorrection: false`). `agent`: whose call it is.
    """

    project: Path
    model: str | None = None
    plans: Path | None = None
    corrects: bool = False
    agent: Agent = Agent.GEMINI


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """A call's effect, predicted from the current state of the disk.

    * `arguments`: arguments that make the CLI do this; may differ from the requested ones.
    * `path`: the absolute path of the real file; None if the call writes no known file.
    * `before`: the file's whole contents as the CLI reads them; None if there is no such file, or
      if it was not read.
    * `after`: the whole contents after the call; None if they can't be predicted or the call fails.
    * `certain`: whether the call, made with `arguments`, does exactly this and nothing else.
    * `remarks`: facts the user should know, one clause each.
    * `fails`: why the tool would refuse the call, as a clause; None if it wouldn't.
    * `command`: the string that bash executes.
    * `folder`: the folder where bash executes it.
    * `was`, `becomes`: the SHA-256 hashes of the file's bytes before and after the call; "" if
      there is no file or the bytes are unknown.
    * `names`: how many names (hard links) the file has; 0 if there is no file.
    * `executable`: whether anybody may execute the file.
    * `inode`: the device and inode of a file with several names, which tell whether its other names
      are still the same; otherwise "".
    """

    kind: EffectKind
    tool: str
    arguments: Mapping[str, Any]
    path: str | None = None
    before: str | None = None
    after: str | None = None
    certain: bool = True
    remarks: tuple[str, ...] = ()
    fails: str | None = None
    command: str | None = None
    folder: str | None = None
    was: str = ""
    becomes: str = ""
    names: int = 0
    executable: bool = False
    inode: str = ""

    @property
    def is_new(self) -> bool:
        """Whether the call creates the file."""
        return self.kind is EffectKind.FILE and not self.was

    @property
    def mark(self) -> str:
        """A digest of the file's path and of everything the user is shown about the effect."""
        shown: list[object] = [
            self.kind,
            self.tool,
            self.path,
            self.was,
            self.becomes,
            self.after,
            self.fails,
        ]
        shown += [
            self.command,
            self.folder,
            self.certain,
            dict(self.arguments),
            self.names,
            self.executable,
        ]
        shown.append(self.inode)
        text = json.dumps(shown, sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()


def effect(tool: str, arguments: Mapping[str, Any], context: CallContext) -> Effect:
    """Predict a tool call's effect from its arguments, its context and the disk."""
    if tool in _OWN:
        return _file_effect(tool, arguments, context)
    if tool == SHELL and isinstance(arguments.get("command"), str):
        return _command_effect(arguments, context)
    return Effect(kind=EffectKind.OTHER, tool=tool, arguments=dict(arguments))


def unescapes(model: str | None) -> bool | None:
    r"""Return whether `write_file` replaces escapes such as `\n` for a run's model.

    It does so for models named `gemini-…` that are neither Gemini 2 nor Gemini 3. Returns None if
    the model is unknown.
    """
    if model is None:
        return None
    name = model.strip()
    if name in _ALIASES or name.startswith("auto-"):
        return False
    return name.startswith("gemini-") and not (_GEMINI_3.match(name) or _GEMINI_2.match(name))


def unescaped(text: str) -> str:
    r"""Return the text with escapes such as `\n` replaced, as `write_file` does.

    Any number of backslashes before the letter counts as one escape.
    """
    return _ESCAPED.sub(lambda match: _MEANS.get(match[1], match[1]), text)


def unwritable(effect: Effect, wanted: str) -> str | None:
    """Return why text that the user edited can't be written verbatim; None if it can.

    `effect`: the effect of a call with the user's text. `wanted`: this text.
    """
    if effect.after is None or _plain(effect.after) == _plain(wanted):
        return None
    if effect.tool == WRITE:
        return (
            "with this run's model, Gemini CLI replaces \\n, \\t, \\r and escaped quotes in new "
            "text, so this text can't be written exactly: choose another model, or edit the file "
            "yourself"
        )
    return "the tool would write different text"


def _plain(text: str) -> str:
    return text.replace("\r\n", "\n").removesuffix("\n")


def digest(data: bytes) -> str:
    """Return the SHA-256 of a file's bytes, in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


# --- commands ------------------------------------------------------------------------------------


def _command_effect(arguments: Mapping[str, Any], context: CallContext) -> Effect:
    from gemtui.calls.shell.parser import unwrapped  # slow to import

    command = str(arguments["command"])
    runs = unwrapped(command)
    wanted = arguments.get("dir_path")
    folder = str(context.project)
    if isinstance(wanted, str) and wanted:
        folder = paths.absolute(folder, wanted)
    remarks = []
    if runs != command.strip(javascript.BLANKS):
        remarks.append("Gemini CLI removes the outer shell and runs only this command")
    return Effect(
        kind=EffectKind.COMMAND,
        tool=SHELL,
        arguments=dict(arguments),
        command=runs,
        folder=folder,
        remarks=tuple(remarks),
    )


# --- files ---------------------------------------------------------------------------------------


@dataclass(slots=True)
class FileBefore:
    """A file before a call.

    `data`: its bytes; None if the file doesn't exist. `names`, `executable`, `inode`: as in
    `Effect`.
    """

    path: str
    data: bytes | None
    names: int = 0
    executable: bool = False
    inode: str = ""

    @property
    def text(self) -> str | None:
        """The text as Gemini CLI reads it; None if the file doesn't exist."""
        return None if self.data is None else javascript.decode_utf8(self.data)


class FailsError(Exception):
    """Raised if the tool would report an error and change nothing.

    The message is a clause.
    """


def _file_effect(tool: str, arguments: Mapping[str, Any], context: CallContext) -> Effect:
    kept = {name: arguments[name] for name in _OWN[tool] if name in arguments}
    nothing = Effect(kind=EffectKind.FILE, tool=tool, arguments=kept)
    texts = ("content",) if tool == WRITE else ("old_string", "new_string")
    if not all(isinstance(arguments.get(name), str) for name in ("file_path", *texts)):
        return replace(nothing, fails="an argument is missing, or is not a string")
    try:
        path = _path_of(str(arguments["file_path"]), context)
    except FailsError as error:
        return replace(nothing, fails=str(error))
    target = replace(nothing, path=path, arguments={**kept, "file_path": paths.cli_spelling(path)})
    try:
        file = read_before(path)
        target = replace(
            target,
            before=file.text,
            was="" if file.data is None else digest(file.data),
            names=file.names,
            executable=file.executable,
            inode=file.inode,
        )
        if _lossy(path):
            raise FailsError("its name is not UTF-8")
        if tool == WRITE:
            return _written(target, file, context)
        return _edited(target, file, context)
    except FailsError as error:
        return replace(target, fails=str(error))


def _path_of(path: str, context: CallContext) -> str:
    if not path.replace("\0", ""):
        raise FailsError("the call names no file")
    try:
        if context.plans is None:
            return paths.tool_path(path, str(context.project))
        return _plan_path(path.replace("\0", "").strip(javascript.BLANKS), context)
    except OSError as error:
        raise FailsError(reason_of(error)) from None
    except ValueError:
        raise FailsError("its path can't be resolved") from None


def _plan_path(path: str, context: CallContext) -> str:
    """Return the real path of a plan, which is relative to the project or to `plans`.

    Raises FailsError for a path outside `plans`, because plan mode allows no other writes.
    """
    plans = paths.follow(str(context.plans))
    for folder in (str(context.project), str(context.plans)):
        real = paths.follow(paths.absolute(folder, path))
        if paths.within(plans, real):
            return real
    raise FailsError("plan mode allows writing only plans")


def _lossy(path: str) -> bool:
    try:
        path.encode()
    except UnicodeEncodeError:
        return True
    return False


def read_before(path: str) -> FileBefore:
    """Read the file that a call will change.

    Raises FailsError for files that the CLI can't read either, or would never finish reading.
    """
    try:
        if not paths.is_regular(path):
            raise FailsError("it is not a regular file")
        data = read_small(Path(path), LARGEST)
        facts = Path(path).stat()
        inode = f"{facts.st_dev}:{facts.st_ino}" if facts.st_nlink > 1 else ""
        executable = bool(facts.st_mode & _EXECUTE)
        return FileBefore(path, data, names=facts.st_nlink, executable=executable, inode=inode)
    except FileNotFoundError:
        return FileBefore(path, None)
    except NotADirectoryError:
        raise FailsError("part of its path is a file, not a folder") from None
    except (OSError, ValueError) as error:
        raise FailsError(f"it can't be read: {reason_of(error)}") from None


def _written(requested: Effect, file: FileBefore, context: CallContext) -> Effect:
    text = str(requested.arguments["content"])
    remarks = _of_file(file)
    certain = True
    if PurePosixPath(file.path).suffix.lower() not in _JSON_KINDS:
        plain = unescaped(text)
        if plain != text:
            if context.corrects:
                certain = False
                remarks.append("another model may change this text before it is written")
            elif unescapes(context.model) is not False:
                text = plain
                remarks.append("escapes such as \\n are written as the characters they represent")
    written = javascript.with_crlf(text) if _writes_crlf(file) else text
    arguments = {**requested.arguments, "content": text}
    return _becomes(replace(requested, arguments=arguments, certain=certain), written, remarks)


def _writes_crlf(file: FileBefore) -> bool:
    r"""Return whether `write_file` will write `\r\n` line endings.

    It does so if the existing file contains any. For this check, the CLI decodes the path twice and
    may therefore look at a different file; this function looks at that file as well.
    """
    other = paths.real_path(file.path)
    looked_at = file if other == file.path else read_before(other)
    return looked_at.data is not None and b"\r\n" in looked_at.data


def _edited(requested: Effect, file: FileBefore, context: CallContext) -> Effect:
    args = requested.arguments
    remarks = _of_file(file)
    old, new = str(args["old_string"]), str(args["new_string"])
    text = file.text
    if text is None:
        if old:
            raise FailsError("the file to edit does not exist")
        return _becomes(requested, new, remarks)
    if not old:
        raise FailsError("it would create a file that already exists")
    before = text.replace("\r\n", "\n")
    several = bool(args.get("allow_multiple"))
    edit = edited(before, old, new, several=several)
    if edit is None or (edit.count > 1 and not several) or _same(old, new):
        if context.corrects and PurePosixPath(file.path).suffix.lower() not in _JSON_KINDS:
            remarks.append(
                "a second model will search for the place to edit, and may change the new text"
            )
            return replace(requested, certain=False, remarks=tuple(remarks))
        raise FailsError(_not_made(edit, same=_same(old, new)))
    if not edit.exact and edit.after != before:
        remarks.append("the old text is not in the file exactly: this is the closest match")
        requested = _made_exact(requested, before, edit)
    after = javascript.with_crlf(edit.after) if "\r\n" in text else edit.after
    return _becomes(requested, after, remarks)


def _same(old: str, new: str) -> bool:
    return old.replace("\r\n", "\n") == new.replace("\r\n", "\n")


def _not_made(edit: EditOutcome | None, *, same: bool) -> str:
    if edit is None:
        return "the text to replace is not in the file"
    return "nothing would change" if same else f"the text to replace occurs {edit.count} times"


def _made_exact(requested: Effect, before: str, edit: EditOutcome) -> Effect:
    """Return the effect with arguments whose old string occurs verbatim in the file.

    The CLI found a place that only resembles the old string. The new arguments quote this place
    exactly, so the CLI makes the same change without searching. If that is not possible, the
    returned effect is not `certain`. `requested`: the effect of the call as requested. `before`:
    the file's contents. `edit`: the result of the edit.
    """
    arguments = {
        name: value for name, value in requested.arguments.items() if name != "allow_multiple"
    }
    old, new = block(before, edit.after)
    check = edited(before, old, new, several=False)
    if check is None or not check.exact or check.count != 1 or check.after != edit.after:
        return replace(requested, certain=False)
    return replace(requested, arguments={**arguments, "old_string": old, "new_string": new})


def _of_file(file: FileBefore) -> list[str]:
    """Return notes for the user about what else a file is, one clause each."""
    remarks = []
    if file.names > 1:
        remarks.append(f"it has {file.names} names (hard links): the others change as well")
    if file.executable:
        remarks.append("it is executable")
    if file.data is not None and file.text is not None and file.text.encode() != file.data:
        remarks.append("it is not valid UTF-8: invalid bytes are replaced by U+FFFD")
    return remarks


def _becomes(requested: Effect, after: str, remarks: list[str]) -> Effect:
    data = javascript.encoded(after)
    return replace(requested, after=data.decode(), becomes=digest(data), remarks=tuple(remarks))


def on_disk(path: str) -> str:
    """Return the SHA-256 of the file now on disk; "" if there is none.

    Raises OSError, ValueError.
    """
    data = read_if_present(Path(path), LARGEST)
    return "" if data is None else digest(data)
