"""`gemtui run --ask`: what a run asks, printed in the terminal and answered there by a line."""

from __future__ import annotations

import asyncio
import os
import sys
import termios
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

import click

from gemtui.agent.approval import Approval, ApprovalRequest
from gemtui.agent.gate_folder import GateFolder
from gemtui.config import Config, Ring, load_config
from gemtui.editor import edited_text
from gemtui.errors import GemtuiError
from gemtui.notify import Notice, RingingTerminal, ringing_terminal, rung
from gemtui.paths import config_file
from gemtui.policy.edit.named_policies import path_of
from gemtui.runs.cautions import cautions
from gemtui.runs.conversation import Asked, Conversation, Counted, Given, similar_to
from gemtui.runs.granted import ALWAYS
from gemtui.runs.like_this import LikeThis, like_this
from gemtui.runs.proposal import Form, Proposal, proposal_of
from gemtui.runs.questions import Question, Questions
from gemtui.text import Clean, cells, clean_line, counted, visible, visible_line

_AROUND = 8
"""Rows of the terminal below a call: why it asks, what is similar, the keys."""
_FEW = 3
"""Cautions that are not counted."""
_YES = ("y", "yes", "a", "A")
_LOOK = 0.3
"""Seconds between two looks whether somebody else has answered."""
NO_TERMINAL = (
    "--ask needs a terminal to ask in: nobody can answer here; without it the calls are refused"
)


@dataclass(frozen=True, slots=True)
class AskingTerminal:
    """Where a person is asked: file descriptors to read from and to write to."""

    reading: int
    writing: int

    @classmethod
    def open(cls, *, as_json: bool) -> AskingTerminal:
        """Return the terminal of a command; with JSON on stdout, the one that controls us.

        Raises click.UsageError where there is none.
        """
        if not as_json:
            if not (_is_terminal(sys.stdin) and _is_terminal(sys.stdout)):
                raise click.UsageError(f"{NO_TERMINAL}; a prompt can stand in --prompt-file")
            return cls(sys.stdin.fileno(), sys.stdout.fileno())
        try:
            place = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
        except OSError:
            raise click.UsageError(NO_TERMINAL) from None
        return cls(place, place)

    def write(self, lines: Iterator[Clean] | tuple[Clean, ...], *, end: str = "\n") -> None:
        """Print lines; a terminal that has gone shows nothing."""
        with suppress(OSError):
            os.write(self.writing, ("\n".join(lines) + end).encode("utf-8", "replace"))

    def size(self) -> os.terminal_size:
        """Return the columns and rows of the terminal; 80x24 where it does not say."""
        with suppress(OSError):
            found = os.get_terminal_size(self.writing)
            if all(found):
                return found
        return os.terminal_size((80, 24))

    def ring(self, notice: Notice) -> None:
        """Tell somebody who looks elsewhere, in the way of the settings."""
        ring = Config().ring
        with suppress(GemtuiError):
            ring = load_config(config_file()).ring
        if ring is not Ring.OFF:
            known = ringing_terminal(os.environ) if ring is Ring.NOTIFY else RingingTerminal()
            with suppress(OSError):
                os.write(self.writing, rung(notice, known).encode("utf-8", "replace"))

    def forget_typed(self) -> None:
        """What was typed before is no answer."""
        with suppress(termios.error):
            termios.tcflush(self.reading, termios.TCIFLUSH)

    async def line(self) -> str | None:
        """Read one line; None at its end."""
        loop, ready = asyncio.get_running_loop(), asyncio.Event()
        loop.add_reader(self.reading, ready.set)
        try:
            await ready.wait()
            with suppress(OSError):
                said = os.read(self.reading, 65536)
                return said.decode("utf-8", "replace").rstrip("\r\n") if said else None
            return None
        finally:
            loop.remove_reader(self.reading)


def _is_terminal(stream: Any) -> bool:
    return stream is not None and stream.isatty()


class TerminalQuestions:
    """Asks in a terminal, one question after the other."""

    def __init__(self, terminal: AskingTerminal, gate: GateFolder, cwd: Path) -> None:
        self._terminal, self._gate, self._cwd = terminal, gate, cwd
        self._questions = Questions(gate)
        self._one = asyncio.Lock()
        self._unread: tuple[Clean, ...] = ()
        """The lines of the call that are not printed yet."""

    async def approve(self, request: ApprovalRequest) -> Approval:
        """Ask; whatever another gemtui answers meanwhile counts."""
        async with self._one:
            if self._gate.is_answered(request.number):
                return Approval.deny()
            asking = asyncio.ensure_future(self._ask(request))
            elsewhere = asyncio.ensure_future(self._answered(request.number))
            try:
                await asyncio.wait({asking, elsewhere}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for each in (asking, elsewhere):
                    each.cancel()
            if asking.done() and not asking.cancelled():
                return asking.result()
            self._terminal.write((Clean("Answered in another gemtui."),))
            return Approval.deny()

    async def _answered(self, number: int) -> None:
        while not self._gate.is_answered(number):
            await asyncio.sleep(_LOOK)

    async def _ask(self, request: ApprovalRequest) -> Approval:
        proposal = await asyncio.to_thread(proposal_of, request, self._cwd)
        like = await asyncio.to_thread(similar_to, request, self._cwd)
        self._show(request, proposal)
        if words := tuple(_words(request, like)):
            self._terminal.write(words)
        await asyncio.to_thread(self._terminal.ring, self._notice(request))
        changed: Proposal | None = None
        while True:
            self._terminal.forget_typed()
            self._terminal.write((_keys(like, back=self._holds()),), end=" ")
            said = await self._terminal.line()
            if said is None:
                return Approval.stop("the terminal has gone")
            key, _, more = said.strip().partition(" ")
            if key in _YES and self._unread:
                self._show_rest()
                continue
            if key in _YES and (now := await self._now(request, changed or proposal)) is not None:
                proposal, changed = (now, None) if changed is None else (proposal, now)
                continue
            match key:
                case "y" | "yes" | "a" | "A" if why := _refused(request, proposal, like, changed):
                    self._terminal.write((visible_line(f"This can't be allowed: {why}"),))
                case "y" | "yes" if not more:
                    return self._allowed(changed or proposal, changed)
                case "a" | "A" if like.rule is not None and changed is None and not more:
                    return await self._allow_like(request, like, proposal, always=key == "A")
                case "a" | "A" if not more:
                    self._terminal.write((visible_line(f"not available: {like.words}"),))
                case "y" | "yes" | "a" | "A":
                    self._terminal.write((Clean("type just the letter; nothing may follow it"),))
                case "n" | "no":
                    return Approval.deny(more.strip())
                case "x":
                    return Approval.stop()
                case "e":
                    changed = await self._change(request, changed or proposal, more) or changed
                case "u" if self._holds():
                    await self._take_back()
                case "v":
                    self._unread = ()
                    self._terminal.write(
                        tuple(question_lines(request, changed or proposal, self._cwd))
                    )
                case _:
                    self._terminal.write((Clean("not an answer: type one of these letters"),))

    async def _now(self, request: ApprovalRequest, shown: Proposal) -> Proposal | None:
        """What the call would do now, which is written; None = what was shown before."""
        now = await asyncio.to_thread(proposal_of, request, self._cwd, shown.arguments)
        if now == shown:
            return None
        self._terminal.write((Clean("The file has changed since this was shown:"),))
        self._show(request, now)
        return now

    def _show(self, request: ApprovalRequest, proposal: Proposal) -> None:
        """Print as much of a call as there is room for; a yes prints the rest first."""
        lines, size = tuple(question_lines(request, proposal, self._cwd)), self._terminal.size()
        room = max(5, size.lines - _AROUND)
        ends = accumulate(max(1, -(-cells(line) // size.columns)) for line in lines)
        shown = sum(1 for end in ends if end <= room)
        if shown < len(lines):
            shown = min(shown, len(lines) - 1)
        self._unread = lines[shown:]
        self._terminal.write(lines[:shown])
        if self._unread:
            words = f"  … {counted(len(self._unread), 'more line')}: y prints the rest"
            self._terminal.write((Clean(words),))

    def _show_rest(self) -> None:
        """Print what of a call has not been shown."""
        self._terminal.write(self._unread)
        self._unread = ()
        self._terminal.write((Clean("  Not answered yet: this was the rest."),))

    def _holds(self) -> bool:
        """Whether all like an earlier call are allowed."""
        return any(each.holds for each in self._questions.look())

    async def _take_back(self) -> None:
        try:
            question = await asyncio.to_thread(self._questions.take_back)
        except (GemtuiError, OSError) as error:
            self._terminal.write(
                (
                    visible_line(
                        f"Revoked for this run, but the saved rule could not be removed: {error}"
                    ),
                )
            )
            return
        if question is not None:
            like = await asyncio.to_thread(like_this, question.request, self._cwd)
            self._terminal.write((visible_line(f"Revoked: {like.words}"),))

    def _notice(self, request: ApprovalRequest) -> Notice:
        where = clean_line(f"gemtui: {self._cwd.name}")
        return Notice(title=where, text=clean_line(f"a run asks: {request.tool_name}"))

    def _allowed(self, shown: Proposal, changed: Proposal | None) -> Approval:
        arguments = None if changed is None else changed.arguments
        return Approval.allow(arguments, shown=shown.effect.mark)

    async def _allow_like(
        self, request: ApprovalRequest, like: LikeThis, shown: Proposal, *, always: bool
    ) -> Approval:
        """Return the yes to all like it; one for always is written here, and kept if it counts."""
        if always:
            asked = Asked(Question(request=request), shown, like)
            talking = Conversation(self._gate, self._cwd)
            try:
                given = await asyncio.to_thread(talking.always, asked)
            except (OSError, ValueError) as error:
                self._terminal.write((visible_line(f"The rule was not saved: {error}"),))
            else:
                self._terminal.write((visible_line(_kept(given)),))
        return Approval.allow(rules=like.toml, always=always, shown=shown.effect.mark)

    async def _change(self, request: ApprovalRequest, now: Proposal, typed: str) -> Proposal | None:
        """What the person writes in its place; shown before it runs."""
        try:
            if typed.strip() and now.form is Form.COMMAND:
                text = typed
            else:
                editor = load_config(config_file()).editor
                text = edited_text(now.text, now.name, setting=editor)
            arguments = now.changed(text)
        except (GemtuiError, OSError, ValueError) as error:
            self._terminal.write((visible_line(f"Not changed: {error}"),))
            return None
        changed = await asyncio.to_thread(proposal_of, request, self._cwd, arguments)
        if (why := changed.refusal(text)) is not None:
            self._terminal.write((visible_line(f"Nothing was changed: {why}"),))
            return None
        self._terminal.write((Clean("changed by you:"),))
        self._show(request, changed)
        return changed


def question_lines(request: ApprovalRequest, proposal: Proposal, project: Path) -> Iterator[Clean]:
    """Yield what to know about a call, then all it would do, every character of it visible."""
    who = "A subagent asks" if request.subagent else "Gemini asks"
    yield Clean("")
    yield visible_line(f"? {who}: {request.tool_name} {proposal.place(project)}".rstrip())
    found = cautions(request, proposal)
    if len(found) > _FEW:
        yield Clean(f"  ! {counted(len(found), 'warning')}:")
    for caution in found:
        yield visible_line(f"  ! {caution.text}")
    text = proposal.text if proposal.diff is None else _hunks(proposal.diff.diff)
    if folder := proposal.folder(project):
        yield visible_line(f"  in {folder}")
    mark = "$ " if proposal.form is Form.COMMAND else ""
    for line in visible(text).rstrip("\n").split("\n"):
        yield Clean(f"  {mark}{line}")
    for words in proposal.line_ends:
        yield Clean(f"  {words}")
    for name, value in proposal.others():
        yield visible_line(f"  {name}: {value}")


def _refused(
    request: ApprovalRequest, proposal: Proposal, like: LikeThis, changed: Proposal | None
) -> str | None:
    return Asked(Question(request=request), proposal, like, changed).refusal


def _kept(given: Given) -> str:
    match given.counted:
        case Counted.FIRST:
            return f"Saved in the policy {ALWAYS}: {path_of(ALWAYS)}"
        case Counted.NOT_KEPT:
            return f"Allowed for this run; the rule could not be saved: {given.problem}"
        case Counted.SECOND:
            return "Already answered in another gemtui; your answer was ignored."


def _hunks(diff: str) -> str:
    at = diff.find("\n@@ ")
    return diff if at < 0 else diff[at + 1 :]


def _words(request: ApprovalRequest, like: LikeThis) -> Iterator[Clean]:
    if request.because:
        why = "Asked again" if request.again else "why"
        yield visible_line(f"  {why}: {request.because[:500]}")
    if like.rule is not None:
        yield visible_line(f"  a and A allow {like.words}")


def _keys(like: LikeThis, *, back: bool) -> Clean:
    more = "  a similar  A always" if like.rule is not None else ""
    more += "  u revoke" if back else ""
    return Clean(f"  y allow  n deny [WHY]  e edit  v view{more}  x stop run:")
