"""Predict what a tool call will do in Claude Code 2.1 (assets/agents.md#calls-of-claude-code).

The arguments are those that Claude Code's hooks report: paths are absolute there, and texts are
what will be written.
"""

from __future__ import annotations

import codecs
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from gemtui.calls import javascript, paths
from gemtui.calls.effect import (
    CallContext,
    Effect,
    EffectKind,
    FailsError,
    FileBefore,
    digest,
    read_before,
)
from gemtui.errors import reason_of

COMMANDS = ("Bash", "Monitor")
WRITE, EDIT = "Write", "Edit"
_TEXTS = {WRITE: ("content",), EDIT: ("old_string", "new_string")}
_BOM = codecs.BOM_UTF8


def claude_effect(tool: str, arguments: Mapping[str, Any], context: CallContext) -> Effect:
    """Predict a tool call's effect from its arguments, its context and the disk.

    `context.project` is the folder in which Claude Code's shell is now. Other tools than commands,
    Write and Edit have an effect of the kind OTHER, with their arguments.
    """
    if tool in COMMANDS and isinstance(arguments.get("command"), str):
        return Effect(
            kind=EffectKind.COMMAND,
            tool=tool,
            arguments=dict(arguments),
            command=arguments["command"],
            folder=str(context.project),
            remarks=tuple(_of_command(arguments)),
        )
    if tool not in _TEXTS:
        return Effect(kind=EffectKind.OTHER, tool=tool, arguments=dict(arguments))
    effect = Effect(kind=EffectKind.FILE, tool=tool, arguments=dict(arguments))
    if not all(isinstance(arguments.get(name), str) for name in ("file_path", *_TEXTS[tool])):
        return replace(effect, fails="an argument is missing, or is not a string")
    try:
        effect = replace(effect, path=_path_of(arguments["file_path"], context))
        return _file_effect(effect)
    except FailsError as error:
        return replace(effect, fails=str(error))


def _of_command(arguments: Mapping[str, Any]) -> list[str]:
    remarks = []
    if arguments.get("run_in_background"):
        remarks.append("it goes on in the background")
    if arguments.get("dangerouslyDisableSandbox"):
        remarks.append("it runs outside of Claude Code's sandbox")
    return remarks


def _path_of(named: str, context: CallContext) -> str:
    """Return the real path of a file; links to folders are followed, links to files fail."""
    path = paths.absolute(str(context.project), os.path.expanduser(named))  # noqa: PTH111
    try:
        if Path(path).is_symlink():
            raise FailsError("it is a symbolic link, and Claude Code only writes to its target")
        real = os.path.realpath(path)
        real.encode()
    except UnicodeEncodeError:
        raise FailsError("its name is not UTF-8") from None
    except OSError as error:
        raise FailsError(reason_of(error)) from None
    except ValueError:
        raise FailsError("its path can't be resolved") from None
    return real


def _file_effect(effect: Effect) -> Effect:
    """Add to a call's effect its file and what becomes of it.

    Raises FailsError for a file that can't be read.
    """
    assert effect.path is not None
    file = read_before(effect.path)
    effect = replace(
        effect,
        was="" if file.data is None else digest(file.data),
        names=file.names,
        executable=file.executable,
        inode=file.inode,
        remarks=tuple(_of_file(file)),
    )
    try:
        return _changed(effect, file)
    except FailsError as error:
        return replace(effect, fails=str(error))


def _changed(effect: Effect, file: FileBefore) -> Effect:
    """Add to a call's effect what its file becomes. Raises FailsError."""
    if file.data is not None and file.data.startswith(codecs.BOM_UTF16_LE):
        return _uncertain(effect, "it is encoded as UTF-16")
    text = _text_of(file)
    effect = replace(effect, before=text)
    if effect.tool == WRITE:
        after = str(effect.arguments["content"])
        if _has_bom(file) and after.startswith("\ufeff"):
            return _uncertain(effect, "the file and the new text both begin with a byte order mark")
    elif _is_mixed(text or ""):
        return _uncertain(effect, "it has mixed line endings")
    elif any("\r" in str(effect.arguments[name]) for name in _TEXTS[EDIT]):
        return _uncertain(effect, "the texts of the edit have other line endings than Claude's")
    else:
        after = _edited(text, effect.arguments)
    data = javascript.encoded(after)
    whole = _BOM + data if data and _has_bom(file) else data
    return replace(effect, after=data.decode(), becomes=digest(whole))


def _uncertain(effect: Effect, why: str) -> Effect:
    return replace(effect, certain=False, remarks=(*effect.remarks, why))


def _of_file(file: FileBefore) -> list[str]:
    remarks = []
    if file.names > 1:
        remarks.append(f"it has {file.names} names (hard links): only this one changes")
    if file.executable:
        remarks.append("it is executable")
    return remarks


def _has_bom(file: FileBefore) -> bool:
    return file.data is not None and file.data.startswith(_BOM)


def _text_of(file: FileBefore) -> str | None:
    if file.data is None:
        return None
    try:
        return file.data.removeprefix(_BOM).decode()
    except UnicodeDecodeError:
        raise FailsError("it is not valid UTF-8") from None


def _is_mixed(text: str) -> bool:
    ends = text.count("\r\n")
    return text.count("\r") != ends or 0 < ends < text.count("\n")


def _edited(text: str | None, arguments: Mapping[str, Any]) -> str:
    """Return a file's text after an edit. Raises FailsError if the edit fails."""
    old, new = arguments["old_string"], arguments["new_string"]
    if old == new:
        raise FailsError("nothing would change")
    if text is None or not old:
        if old:
            raise FailsError("the file to edit does not exist")
        if text:
            raise FailsError("it would create a file that already exists")
        return str(new)
    before = text.replace("\r\n", "\n")
    count, several = before.count(old), arguments.get("replace_all") is True
    if not count:
        raise FailsError("the text to replace is not in the file exactly")
    if count > 1 and not several:
        raise FailsError(f"the text to replace occurs {count} times")
    if not new and not old.endswith("\n") and f"{old}\n" in before:
        old = f"{old}\n"  # a line that becomes empty is removed
    after = before.replace(old, new, -1 if several else 1)
    return javascript.with_crlf(after) if "\r\n" in text else after
