"""What a call that waits for a person would do, and how that person may change it."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path, PurePath
from typing import Any

from gemtui.agent.approval import ApprovalRequest
from gemtui.files import is_there, read_small, resolved
from gemtui.calls.shell.dangers import Danger, dangers
from gemtui.text import file_name, holds_controls
from gemtui.transcript.display_model import DiffDisplay
from gemtui.transcript.displays import content_diff, rebuilt_diff
from gemtui.transcript.tools import ToolKind, asked_path, kind_of

_MOST_EDITED = 1_000_000
"""Characters of a file that a person is given whole to edit."""
_NEW_TEXT = {ToolKind.WRITE: "content", ToolKind.EDIT: "new_string"}
"""The argument that holds what a call writes."""
_WORDS = ("description", "instruction")
_NOT_FOUND = (
    "the text to replace is not in the file as it is now, or more than once: "
    "Gemini CLI may then change what is only like it, so this is not sure to be what happens"
)


class Form(StrEnum):
    """What a person looks at, and changes."""

    COMMAND = "command"
    FILE = "file"
    ARGUMENTS = "arguments"


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A call as a person judges it.

    `text`: what they may change: the command, the file's new text, or the arguments as JSON.
    `name`: for a file that holds `text`. `diff`: of a file, against the disk. `remarks`: what there
    is to say about it. `dangers`: of a command.
    """

    tool: str
    arguments: Mapping[str, Any]
    form: Form
    text: str
    name: str
    diff: DiffDisplay | None = None
    remarks: tuple[str, ...] = ()
    dangers: tuple[Danger, ...] = ()
    before: str | None = None
    """The whole file, where `text` is the whole file after the call."""

    def others(self) -> Iterator[tuple[str, str]]:
        """Yield the arguments that neither text nor diff shows, each by what it is called.

        What the model says of its call is told as its own words.
        """
        for name, value in self.arguments.items():
            if name not in self._shown:
                yield "Gemini says" if name in _WORDS else name, str(value)

    @property
    def _shown(self) -> Collection[str]:
        if self.form is Form.FILE:
            writes = kind_of(self.tool) is ToolKind.WRITE
            return ("file_path", *(("content",) if writes else ("old_string", "new_string")))
        return ("command",) if self.form is Form.COMMAND else self.arguments.keys()

    def changed(self, text: str) -> Mapping[str, Any]:
        """Return the arguments with which the call does what a person wrote.

        Raises ValueError, in words for the person.
        """
        given = dict(self.arguments)
        if self.form is Form.COMMAND:
            if not text.strip():
                raise ValueError("the command is empty: n refuses the call")
            return {**given, "command": text}
        if self.form is Form.FILE:
            return self._of_file(given, text)
        try:
            value = json.loads(text)
            json.dumps(value, allow_nan=False)  # NaN, or 1e999
        except (ValueError, RecursionError) as error:
            raise ValueError(f"this is no JSON: {error}") from None
        if not isinstance(value, dict):
            raise ValueError("the arguments are an object in JSON: { … }")
        return value

    def _of_file(self, given: dict[str, Any], text: str) -> Mapping[str, Any]:
        if kind_of(self.tool) is ToolKind.WRITE:
            return {**given, "content": text}
        if self.before is not None:
            return {**given, "old_string": self.before, "new_string": text}
        return {**given, "new_string": text}


def proposal_of(
    request: ApprovalRequest, cwd: Path, arguments: Mapping[str, Any] | None = None
) -> Proposal:
    """Return what a call would do now, in a run in the folder `cwd`; reads the disk.

    `arguments`: in place of those that were asked for.
    """
    tool, args = request.tool_name, request.arguments if arguments is None else arguments
    command = args.get("command")
    if kind_of(tool) is ToolKind.SHELL and isinstance(command, str):
        return Proposal(
            tool=tool,
            arguments=args,
            form=Form.COMMAND,
            text=command,
            name="command.sh",
            dangers=dangers(command),
        )
    found = _file(tool, args, cwd)
    if found is not None:
        return found
    text, name = _as_json(args), "arguments.json"
    return Proposal(tool=tool, arguments=args, form=Form.ARGUMENTS, text=text, name=name)


def _as_json(args: Mapping[str, Any]) -> str:
    """The arguments, with escapes where one would not see what stands there."""
    try:
        text = json.dumps(args, indent=2, ensure_ascii=False)
    except RecursionError:
        return json.dumps(args)
    return json.dumps(args, indent=2) if holds_controls(text) else text


def _file(tool: str, args: Mapping[str, Any], cwd: Path) -> Proposal | None:
    kind, path = kind_of(tool), asked_path(args)
    if not path or kind not in (ToolKind.WRITE, ToolKind.EDIT):
        return None
    edits = kind is ToolKind.EDIT
    old, new = args.get("old_string") if edits else None, args.get(_NEW_TEXT[kind])
    if not isinstance(new, str) or (edits and not isinstance(old, str)):
        return None
    place = cwd / path
    before, remarks = _read(place, cwd)
    after = new if old is None else _replaced(before, old, new, args)
    if before is None or after is None:
        diff = rebuilt_diff(path, old=old, new=new, is_new=not is_there(place) and not old)
    else:
        diff = content_diff(path, before, after)
    if before is not None and after is None:
        remarks = (*remarks, _NOT_FOUND)
    whole = after if edits and before is not None and len(before) <= _MOST_EDITED else None
    return Proposal(
        tool=tool,
        arguments=args,
        form=Form.FILE,
        text=new if whole is None else whole,
        name=file_name(PurePath(path).name),
        diff=diff,
        remarks=remarks if diff.added or diff.removed else (*remarks, "it changes nothing"),
        before=None if whole is None else before,
    )


def _read(place: Path, cwd: Path) -> tuple[str | None, tuple[str, ...]]:
    """What a file holds now, None = not known; with what there is to say about the place."""
    remarks = []
    real = resolved(place)
    if not real.is_relative_to(resolved(cwd)):
        remarks.append(f"outside of the run's folder: {real}")
    elif place.is_symlink():
        remarks.append(f"a link to {real}")
    try:
        data = read_small(place)
    except FileNotFoundError:
        return None, (*remarks, "a new file")
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        return None, (*remarks, f"what it holds now can't be shown: {why}")
    try:
        return data.decode("utf-8").replace("\r\n", "\n"), tuple(remarks)
    except UnicodeDecodeError:
        return None, (*remarks, "what it holds now is no text")


def _replaced(before: str | None, old: str, new: str, args: Mapping[str, Any]) -> str | None:
    """What the file would hold; None where that is not known."""
    if before is None:
        return None
    old, new = old.replace("\r\n", "\n"), new.replace("\r\n", "\n")
    found = before.count(old) if old else 0
    several = args.get("allow_multiple") is True or args.get("expected_replacements") == found
    if found == 1 or (found > 1 and several):
        return before.replace(old, new)
    return None
