"""Preview a call that awaits the user's approval, with cautions, and let the user change it."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple

from gemtui.agent.approval import ApprovalRequest
from gemtui.agents import WORDS, Agent
from gemtui.calls.effect import CallContext, Effect, EffectKind, unwritable
from gemtui.calls.effects import effect_of
from gemtui.calls.later_files import describe_settings_change
from gemtui.calls.paths import asked_path
from gemtui.calls.shell.dangers import Danger, dangers
from gemtui.files import resolved
from gemtui.text import HOLDS_CONTROLS, file_name, holds_controls, look_alikes
from gemtui.transcript.call_text import switches_off
from gemtui.transcript.displays import content_diff, rebuilt_diff
from gemtui.transcript.model import DiffDisplay
from gemtui.transcript.tools import ToolKind, args_hold_controls, kind_of

_MOST_EDITED = 1_000_000
"""The largest file, in characters, that the user can edit as a whole."""
_NEW_TEXT = {ToolKind.WRITE: "content", ToolKind.EDIT: "new_string"}
"""The name of the argument that contains the new text, by kind of tool."""
_WORDS = ("description", "instruction")


class Form(StrEnum):
    """The forms in which a call is shown to the user, who can change it in the same form."""

    COMMAND = "command"
    FILE = "file"
    ARGUMENTS = "arguments"


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A call as it is shown to the user, who may change it before answering.

    * `effect`: the call's effect.
    * `form`: whether the call is shown as a command, a file or arguments.
    * `text`: what the user may change: the command, the file's new text, or the arguments as JSON.
    * `name`: a file name that an editor can use for `text`.
    * `diff`: for a file, the difference from the current file on disk.
    * `remarks`: notes about the call, one clause each.
    * `dangers`: the dangerous parts of a command.
    * `agent`: whose call it is.
    """

    effect: Effect
    tool: str
    arguments: Mapping[str, Any]
    form: Form
    text: str
    name: str
    diff: DiffDisplay | None = None
    line_ends: tuple[str, ...] = ()
    """Clauses about line endings and the final newline, which the diff does not show."""
    remarks: tuple[str, ...] = ()
    dangers: tuple[Danger, ...] = ()
    before: str | None = None
    """The whole file before an edit; None unless `text` is the whole file after it."""
    agent: Agent = Agent.GEMINI

    def others(self) -> Iterator[tuple[str, str]]:
        """Yield a title and value for each argument that is in neither `text` nor `diff`.

        The title is the argument's name, or, for the model's own description of the call, that the
        agent says it. Switches that are off, as they are by default, are left out.
        """
        hidden = {*self._shown, *switches_off(self.tool, self.arguments)}
        for name, value in self.arguments.items():
            if name not in hidden:
                yield f"{WORDS[self.agent].speaker} says" if name in _WORDS else name, str(value)

    def place(self, project: Path) -> str:
        """Return the path of the file that the call writes; "" if it writes none.

        The path is relative to the project, or absolute if it is outside.
        """
        if self.effect.path is None:
            return ""
        path, root = Path(self.effect.path), resolved(project)
        return str(path.relative_to(root)) if path.is_relative_to(root) else str(path)

    def folder(self, project: Path) -> str:
        """Return the folder that a command runs in; "" for the project's folder.

        Returns "" as well for a call that runs no command.
        """
        if self.effect.folder is None:
            return ""
        folder = resolved(Path(self.effect.folder))
        return "" if folder == resolved(project) else str(folder)

    def refusal(self, text: str | None = None) -> str | None:
        """Return why this call can't be approved, as a clause; None if it can.

        `text`: the text that the user wrote for the file, if any.
        """
        if self.effect.fails is not None:
            return f"the tool would fail: {self.effect.fails}"
        if not self.effect.certain:
            return "what the call would write can't be predicted"
        if text is None or self.form is not Form.FILE:
            return None
        return unwritable(self.effect, text)

    @property
    def _shown(self) -> Collection[str]:
        if self.form is Form.COMMAND:
            return ("command",)
        if self.form is Form.ARGUMENTS:
            return self.arguments.keys()
        if kind_of(self.tool) is ToolKind.WRITE:
            return ("file_path", "content")
        return ("file_path", "old_string", "new_string")

    def changed(self, text: str) -> Mapping[str, Any]:
        """Return the call's arguments, changed so that the call uses the user's text.

        `text`: replaces the proposal's `text`. Raises ValueError with a message for the user.
        """
        if self.form is Form.COMMAND:
            if not text.strip():
                raise ValueError("the command is empty; to deny the call, press n")
            return {**self.arguments, "command": text}
        if self.form is Form.FILE:
            if self.before is not None:
                return {**self.arguments, "old_string": self.before, "new_string": text}
            return {**self.arguments, _NEW_TEXT[kind_of(self.tool)]: text}
        try:
            value = json.loads(text)
            json.dumps(value, allow_nan=False)  # reject NaN and 1e999
        except (ValueError, RecursionError) as error:
            raise ValueError(f"not valid JSON: {error}") from None
        if not isinstance(value, dict):
            raise ValueError("the arguments must be a JSON object: { … }")
        return value


def proposal_of(
    request: ApprovalRequest, cwd: Path, arguments: Mapping[str, Any] | None = None
) -> Proposal:
    """Return what a requested call would do now, for display.

    `cwd`: the run's folder. `arguments`: arguments to use instead of the requested ones. Reads the
    disk.
    """
    tool, args = request.tool_name, request.requested if arguments is None else arguments
    does = effect_of(tool, args, request.context or CallContext(project=cwd))
    agent = request.agent
    fails = () if does.fails is None else (f"the tool would fail: {does.fails}",)
    if does.kind is EffectKind.FILE and does.path is not None:
        return _file(does, args, cwd, fails, agent)
    if does.kind is EffectKind.COMMAND and does.command is not None:
        return Proposal(
            effect=does,
            tool=tool,
            arguments=args,
            form=Form.COMMAND,
            text=does.command,
            name="command.sh",
            remarks=does.remarks,
            dangers=dangers(does.command, cwd, does.folder),
            agent=agent,
        )
    return Proposal(
        effect=does,
        tool=tool,
        arguments=args,
        form=Form.ARGUMENTS,
        text=_as_json(args),
        name="arguments.json",
        remarks=fails,
        agent=agent,
    )


def _as_json(args: Mapping[str, Any]) -> str:
    """Return arguments as JSON, with escapes if they contain invisible characters."""
    try:
        text = json.dumps(args, indent=2, ensure_ascii=False)
    except RecursionError:
        return json.dumps(args)
    return json.dumps(args, indent=2) if holds_controls(text) else text


def _file(
    does: Effect, args: Mapping[str, Any], cwd: Path, fails: tuple[str, ...], agent: Agent
) -> Proposal:
    """Return how a call that writes a file is shown. `fails`: remarks about its failure."""
    assert does.path is not None
    before, after = does.before, does.after
    kind = kind_of(does.tool)
    text, edited_from = str(args[_NEW_TEXT[kind]]), None
    ends: tuple[str, ...] = ()
    remarks = [*_about_place(does, args, cwd, agent), *does.remarks, *fails]
    if after is None:  # unknown, so the call's own texts are shown
        old = args.get("old_string") if kind is ToolKind.EDIT else None
        diff = rebuilt_diff(does.path, old=old, new=text, is_new=False)
    else:
        ends = tuple(line_end_changes(before, after))
        old_lines, new_lines = comparable(before, after)
        if old_lines is None:
            diff = rebuilt_diff(does.path, old=None, new=new_lines, is_new=True)
        else:
            diff = content_diff(does.path, old_lines, new_lines)
        if after == before:
            remarks.append("nothing would change")
        if kind is ToolKind.EDIT and before is not None:
            whole = before.replace("\r\n", "\n")
            edited_from = whole if len(whole) <= _MOST_EDITED else None
        if edited_from is not None or kind is ToolKind.WRITE:
            text = after.replace("\r\n", "\n")
    return Proposal(
        effect=does,
        tool=does.tool,
        arguments=args,
        form=Form.FILE,
        text=text,
        name=file_name(Path(does.path).name),
        diff=diff,
        line_ends=ends,
        remarks=tuple(remarks),
        before=edited_from,
        agent=agent,
    )


def _about_place(does: Effect, args: Mapping[str, Any], cwd: Path, agent: Agent) -> Iterator[str]:
    """Yield notes about where the file is that a call writes."""
    assert does.path is not None
    named, real = str(args.get("file_path")), Path(does.path)
    plain = None if "\0" in named else Path(os.path.normpath(cwd / named))
    if not real.is_relative_to(resolved(cwd)):
        yield f"outside of the run's folder: {real}"
    elif plain is not None and plain.is_symlink():
        yield f"a symbolic link to {real}"
    elif plain is None or real not in (plain, resolved(plain)):
        yield f"{WORDS[agent].program} reads this path as {real}"
    if does.is_new and does.fails is None:
        yield "a new file"


_NEWLINE, _CRLF, _MIXED = r"\n", r"\r\n", "mixed"


def comparable(before: str | None, after: str) -> tuple[str | None, str]:
    r"""Return both versions of a file with `\n` line endings, ready to be compared.

    `before`: None if the file is new. If either version has mixed line endings, each `\r\n` in both
    is marked with `␍`.
    """
    mixed = _MIXED in (_ends(before or ""), _ends(after))
    end = "\u240d\n" if mixed else "\n"
    plain = None if before is None else before.replace("\r\n", end)
    return plain, after.replace("\r\n", end)


def line_end_changes(before: str | None, after: str) -> Iterator[str]:
    """Describe changes to line endings and to the final newline, each as a clause."""
    was, becomes = _ends(before or ""), _ends(after)
    if becomes == _MIXED:
        yield r"mixed line endings: ␍ marks \r\n"
    elif was and becomes and was != becomes:
        yield f"line endings change from {was} to {becomes}"
    elif becomes == _CRLF:
        yield r"all lines end with \r\n"
    if after and not after.endswith("\n"):
        removed = before is not None and before.endswith("\n")
        yield "the newline at the end is removed" if removed else "no newline at the end"
    elif before and after and not before.endswith("\n"):
        yield "a newline is added at the end"


def _ends(text: str) -> str:
    crlf, all = text.count("\r\n"), text.count("\n")
    if crlf and crlf < all:
        return _MIXED
    return _CRLF if crlf else _NEWLINE if all else ""


# --- cautions -------------------------------------------------------------------------------------


_NO_LOCK = "If gemtui's hook is killed, one call to an MCP tool can run before the run is stopped"
_LONGEST_PIECE = 60
"""The most characters of a command's part to quote."""


class Caution(NamedTuple):
    """One fact about a call, as a clause.

    `piece`: the part of the command that the fact is about; "" means the whole call. `danger`:
    whether the call can do harm; if not, the clause is only information.
    """

    why: str
    piece: str = ""
    danger: bool = True

    @property
    def text(self) -> str:
        """The clause, preceded by the part of the command that it is about, if any."""
        return f"{self.piece}: {self.why}" if self.piece else self.why


def cautions(request: ApprovalRequest, proposal: Proposal) -> tuple[Caution, ...]:
    """Return the cautions to show above a call, without duplicates, dangers first."""
    unique = dict.fromkeys(_cautions(request, proposal))
    return tuple(sorted(unique, key=lambda caution: not caution.danger))


def _cautions(request: ApprovalRequest, proposal: Proposal) -> Iterator[Caution]:
    if args_hold_controls(proposal.arguments):
        yield Caution(f"it {HOLDS_CONTROLS}")
    command = proposal.text if proposal.form is Form.COMMAND else ""
    path = asked_path(proposal.arguments)
    for text in (request.tool_name, path, proposal.effect.path or "", command):
        yield from map(Caution, look_alikes(text))
    for danger in proposal.dangers:
        piece = command[danger.start : danger.end]
        if len(piece) > _LONGEST_PIECE:
            piece = f"{piece[:_LONGEST_PIECE]}…"
        yield Caution(danger.why, piece)
    effect = proposal.effect
    if effect.path is not None:
        for words in describe_settings_change(Path(effect.path), effect.before, effect.after):
            yield Caution(words.removesuffix("."))
    for remark in proposal.remarks:
        yield Caution(remark, danger=False)
    if request.hooked:
        yield Caution("another hook of your settings or an extension changed this call")
    if request.server:
        origin = f" ({request.origin})" if request.origin else ""
        yield Caution(f"tool of the MCP server {request.server}{origin}", danger=False)
        yield Caution(_NO_LOCK, danger=False)
