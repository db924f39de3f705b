"""`gemtui run --ask`: print a run's questions, and let the user answer them."""

from __future__ import annotations

import asyncio
import os
import select
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Any

import click
from msgspec import Struct

from gemtui import system
from gemtui.agent.approval import ELSEWHERE
from gemtui.config import Config, Ring, load_config
from gemtui.editor import edited_text
from gemtui.errors import GemtuiError, InsideRunError, message_of
from gemtui.notify import Notification, RingingTerminal, notification_sequence, ringing_terminal
from gemtui.paths import config_file
from gemtui.policy.file.policy_files import path_of
from gemtui.runs.gate.proposal import Form
from gemtui.runs.gate.questions import QUIET, AnswerOutcome, Asked, Conversation, Question
from gemtui.runs.gate.similar_calls import ALWAYS, similar_calls
from gemtui.text import cells, clean, clean_line, counted, visible, visible_line
from gemtui.transcript.displays import hunks

_AROUND = 8
"""How many rows of the terminal are needed for what is printed below a call.

This is the call's reason, similar calls and the keys.
"""
_FEW = 3
"""With more warnings about a call than this, their number is printed first."""
_YES: Mapping[str, Callable[[Conversation, Asked], AnswerOutcome]] = {
    "y": Conversation.allow,
    "a": Conversation.allow_similar,
    "A": Conversation.always,
}
"""Maps the letters that allow a call to the methods that do so."""
_LETTERS = {
    "yes": "y",
    "no": "n",
    "edit": "e",
    "view": "v",
    "similar": "a",
    "always": "A",
    "revoke": "u",
    "stop": "x",
}
"""Maps the words that may be typed in place of letters."""
_SAVED = {"A": f"Saved in the policy {ALWAYS}"}
LOOK = 0.3
"""Seconds between checks for new questions, and for answers given elsewhere."""
_LONGEST_LINE = {"linux": 4096, "darwin": 1024}.get(sys.platform, sys.maxsize)
"""Bytes of a line, with its end, after which the system's terminals drop what is typed."""
_CUT = (
    f"Not read, because the terminal cuts lines after {_LONGEST_LINE - 1:,} bytes. "
    "Type less, or put a long prompt into a file: gemtui run --prompt-file FILE"
)
NO_TERMINAL = "--ask needs a terminal; without --ask, calls that need approval are denied"


class AskingTerminal(Struct, frozen=True):
    """The terminal in which the user is asked, as two file descriptors."""

    reading: int
    writing: int

    @classmethod
    def open(cls, *, as_json: bool) -> AskingTerminal:
        """Return the terminal in which to ask the user.

        This is the terminal that the command uses for input and output; with `as_json`, where
        stdout is taken by JSON, it is the process's controlling terminal. Raises click.UsageError
        if there is none.
        """
        if not as_json:
            if not (is_terminal(sys.stdin) and is_terminal(sys.stdout)):
                raise click.UsageError(
                    f"{NO_TERMINAL}; to read the prompt from a file, use --prompt-file"
                )
            return cls(sys.stdin.fileno(), sys.stdout.fileno())
        if sys.platform == "win32":
            raise click.UsageError(system.why_not(system.Unported.ASK))
        try:
            terminal = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | system.OWN)
        except OSError:
            raise click.UsageError(NO_TERMINAL) from None
        return cls(terminal, terminal)

    def write(self, lines: Iterator[str] | tuple[str, ...], *, end: str = "\n") -> None:
        """Clean and print lines, then `end`; do nothing if the terminal has been closed."""
        text = "\n".join(map(clean, lines)) + end
        with suppress(OSError):
            os.write(self.writing, text.encode("utf-8", "replace"))

    def size(self) -> os.terminal_size:
        """Return the columns and rows of the terminal; 80x24 if unknown."""
        with suppress(OSError):
            size = os.get_terminal_size(self.writing)
            if all(size):
                return size
        return os.terminal_size((80, 24))

    def ring(self, notice: Notification) -> None:
        """Notify a user who may be looking elsewhere, in the way chosen in the settings."""
        ring = Config().ring
        with suppress(GemtuiError):
            ring = load_config(config_file()).ring
        if ring is not Ring.OFF:
            terminal = ringing_terminal(os.environ) if ring is Ring.NOTIFY else RingingTerminal()
            with suppress(OSError):
                os.write(
                    self.writing, notification_sequence(notice, terminal).encode("utf-8", "replace")
                )

    async def typed_within(self, seconds: float) -> bool:
        """Wait, and discard what has been typed until then; return whether a line was typed.

        The terminal itself discards it, so a line doesn't count even if this process was too slow
        to read it in time. A line without its end is discarded as well.
        """
        typed = await self.has_more(seconds)
        if sys.platform != "win32":
            import termios

            try:
                termios.tcflush(self.reading, termios.TCIFLUSH)
            except termios.error:  # the terminal was closed
                return False
        return typed

    async def has_more(self, seconds: float) -> bool:
        """Wait, and return whether a line of input, or its end, is there to be read."""
        await asyncio.sleep(seconds)
        return bool(select.select([self.reading], [], [], 0)[0])

    async def line(self) -> str | None:
        """Wait for one line of input and return it; None at the end of input.

        A line that the terminal may have cut is not returned: the user is told, and the next one is
        awaited.
        """
        while len(typed := await self._read()) >= _LONGEST_LINE:
            self.write((_CUT,))
        return typed.decode("utf-8", "replace").rstrip("\r\n") if typed else None

    async def _read(self) -> bytes:
        loop, ready = asyncio.get_running_loop(), asyncio.Event()
        loop.add_reader(self.reading, ready.set)
        try:
            await ready.wait()
            with suppress(OSError):
                return os.read(self.reading, 65536)
            return b""
        finally:
            loop.remove_reader(self.reading)


def is_terminal(stream: Any) -> bool:
    """Return whether an input or output stream is there and is a terminal."""
    return stream is not None and stream.isatty()


class TerminalQuestions:
    """Asks a run's questions in a terminal, one after another."""

    def __init__(self, terminal: AskingTerminal, talk: Conversation) -> None:
        self._terminal, self._talk = terminal, talk
        self._unread: tuple[str, ...] = ()
        """The lines about the current call that have not been printed yet."""

    async def ask_all(self) -> None:
        """Ask each question of the run as it arrives, until cancelled."""
        gone = threading.Event()
        threading.Thread(target=self._talk.stay, args=(gone,), daemon=True).start()
        try:
            while True:
                for question in await asyncio.to_thread(self._talk.refresh):
                    if question.waits:
                        await self.ask(question)
                await self.between()
        finally:
            gone.set()

    async def between(self) -> None:
        """Wait a moment before looking for new questions."""
        await asyncio.sleep(LOOK)

    def lines(self, asked: Asked) -> Iterator[str]:
        """Yield the lines about a call: who asks, warnings, and then all that it would do."""
        return question_lines(asked, self._talk.cwd)

    def reasons(self, asked: Asked) -> Iterator[str]:
        """Yield the lines below a call: why it is asked about, and which calls are similar."""
        request = asked.question.request
        if request.because:
            why = "asked again because" if request.again else "why"
            yield visible_line(f"  {why}: {request.because[:500]}")
        if asked.has_similar:
            yield visible_line(f"  a and A allow {asked.similar.words}")

    def keys(self, asked: Asked, *, back: bool) -> str:
        """Return the line with the possible answers. `back`: whether one can be revoked."""
        more = "  a similar  A always" if asked.has_similar else ""
        more += "  u revoke" if back else ""
        return f"  y allow  n deny [WHY]  e edit  v view{more}  x stop run:"

    async def ask(self, question: Question) -> None:
        """Show a call and ask about it until it is answered, here or in another process."""
        if await self._is_answered(question):
            return
        asked = await asyncio.to_thread(self._talk.asked, question)
        self._show(asked)
        reasons = tuple(self.reasons(asked))
        if reasons:
            self._terminal.write(reasons)
        await asyncio.to_thread(self._terminal.ring, self._notice(asked))
        while True:
            back = await self._holds()
            keys = self.keys(asked, back=back)
            self._terminal.write((keys,), end=" ")
            while await self._terminal.typed_within(QUIET):
                self._tell(
                    "ignored, because the question had only just appeared: type the answer again"
                )
                self._terminal.write((keys,), end=" ")
            try:
                typed = await self._line(question)
            except _AnsweredElsewhere:
                self._tell("Answered in another gemtui.")
                return
            if typed is None:
                await self._give(partial(self._talk.stop, asked, "the terminal was closed"))
                return
            key, _, more = typed.strip().partition(" ")
            key = _LETTERS.get(key.lower(), key)
            if key in _YES and self._unread:
                self._show_rest()
                continue
            if key in _YES and (now := await asyncio.to_thread(self._talk.still_true, asked)):
                self._tell("A file has changed since this call was shown. Check the call again:")
                asked = now
                self._show(asked)
                continue
            match key:
                case "y" | "a" | "A" if more:
                    self._tell("type only the answer, with nothing after it")
                case "a" | "A" if not asked.has_similar:
                    self._tell(f"not available: {asked.similar.words}")
                case "y" | "a" | "A":
                    if await self._give(partial(_YES[key], self._talk, asked), _SAVED.get(key)):
                        return
                case "n":
                    if await self._give(partial(self._talk.deny, asked, more.strip())):
                        return
                case "x":
                    if await self._give(partial(self._talk.stop, asked)):
                        return
                case "e":
                    asked = await self._change(asked, more)
                case "u" if back:
                    await self._take_back()
                case "v":
                    self._unread = ()
                    self._terminal.write(tuple(self.lines(asked)))
                case _:
                    self._tell("unknown answer: type one of these")

    def _tell(self, words: str) -> None:
        self._terminal.write((visible_line(words),))

    async def _is_answered(self, question: Question) -> bool:
        questions = await asyncio.to_thread(self._talk.refresh)
        return any(current.number == question.number and not current.waits for current in questions)

    async def _line(self, question: Question) -> str | None:
        """Wait for one line of input and return it; None at the end of input.

        Raises _AnsweredElsewhere once the question has been answered in another gemtui process.
        """

        async def elsewhere() -> None:
            while not await self._is_answered(question):
                await asyncio.sleep(LOOK)

        reading = asyncio.ensure_future(self._terminal.line())
        looking = asyncio.ensure_future(elsewhere())
        try:
            await asyncio.wait({reading, looking}, return_when=asyncio.FIRST_COMPLETED)
            if reading.done():
                return reading.result()
            raise _AnsweredElsewhere
        finally:
            for task in (reading, looking):
                task.cancel()
            await asyncio.gather(reading, looking, return_exceptions=True)

    async def _give(self, give: Callable[[], AnswerOutcome], saved: str | None = None) -> bool:
        """Give an answer, and tell the user if it did not have the usual effect.

        Returns False if the answer was impossible and another one is needed. `give`: gives the
        answer. `saved`: the message to print if a rule is saved with the answer.
        """
        try:
            outcome = await asyncio.to_thread(give)
        except ValueError as error:
            self._tell(f"This call can't be allowed: {error}")
            return False
        except InsideRunError as error:
            self._tell(f"Not answered: {error}")
            return False
        except OSError as error:
            self._tell(f"The answer could not be saved: {message_of(error)}")
            return False
        if not outcome:
            self._tell(ELSEWHERE)
        elif outcome.problem:
            self._tell(f"Allowed for this run; the rule could not be saved: {outcome.problem}")
        elif saved:
            self._tell(f"{saved}: {path_of(ALWAYS)}")
        return True

    def _show(self, asked: Asked) -> None:
        """Print as much about a call as fits on the terminal.

        The rest is kept: it is printed when the user first answers yes, and that answer doesn't
        count yet.
        """
        lines, size = tuple(self.lines(asked)), self._terminal.size()
        room = max(5, size.lines - _AROUND)
        ends = accumulate(max(1, -(-cells(line) // size.columns)) for line in lines)
        shown = sum(1 for end in ends if end <= room)
        if shown < len(lines):
            shown = min(shown, len(lines) - 1)
        self._unread = lines[shown:]
        self._terminal.write(lines[:shown])
        if self._unread:
            hint = f"  … {counted(len(self._unread), 'more line')}: press y to show the rest"
            self._terminal.write((hint,))

    def _show_rest(self) -> None:
        """Print the lines that `_show` left out, and say that an answer is still needed."""
        self._terminal.write(self._unread)
        self._unread = ()
        self._terminal.write(("  End of the call. Your answer is still needed.",))

    async def _holds(self) -> bool:
        """Return whether any earlier answer still allows similar calls without asking.

        If so, the user can revoke it.
        """
        return any(question.holds for question in await asyncio.to_thread(self._talk.refresh))

    async def _take_back(self) -> None:
        try:
            question = await asyncio.to_thread(self._talk.revoke)
        except (GemtuiError, OSError) as error:
            text = "Revoked for this run, but the saved rule could not be removed"
            self._tell(f"{text}: {message_of(error)}")
            return
        if question is not None:
            like = await asyncio.to_thread(similar_calls, question.request, self._talk.cwd)
            self._tell(f"Revoked: {like.words}")

    def _notice(self, asked: Asked) -> Notification:
        where = clean_line(f"gemtui: {self._talk.cwd.name}")
        return Notification(
            title=where,
            text=clean_line(f"a run needs approval: {asked.question.request.tool_name}"),
        )

    async def _change(self, asked: Asked, typed: str) -> Asked:
        """Let the user edit a call; print the new call, and return it.

        `typed`: for a shell command, the new command; if it is empty, the user's editor is opened.
        If editing fails, the user is told, and the call is returned unchanged.
        """
        now = asked.runs
        try:
            if typed.strip() and now.form is Form.COMMAND:
                text = typed
            else:
                editor = load_config(config_file()).editor
                text = edited_text(now.text, now.name, setting=editor)
            changed = await asyncio.to_thread(self._talk.change, asked, text)
        except (GemtuiError, OSError, ValueError) as error:
            self._tell(f"Not changed: {message_of(error)}")
            return asked
        self._tell("the call with your changes:")
        self._show(changed)
        return changed


class _AnsweredElsewhere(Exception):
    """Raised when the question has been answered in another gemtui process."""


def question_lines(asked: Asked, project: Path) -> Iterator[str]:
    """Yield the lines about a call: who asks, warnings, and then all that it would do."""
    request, proposal, cautions = asked.question.request, asked.runs, asked.cautions
    yield ""
    yield visible_line(
        f"? {request.asker} asks: {request.tool_name} {proposal.place(project)}".rstrip()
    )
    if len(cautions) > _FEW:
        yield f"  ! {counted(len(cautions), 'warning')}:"
    for caution in cautions:
        yield visible_line(f"  ! {caution.text}")
    text = (
        proposal.text if proposal.diff is None else hunks(proposal.diff.diff) or proposal.diff.diff
    )
    folder = proposal.folder(project)
    if folder:
        yield visible_line(f"  in {folder}")
    mark = "$ " if proposal.form is Form.COMMAND else ""
    for line in visible(text).rstrip("\n").split("\n"):
        yield f"  {mark}{line}"
    for remark in proposal.line_ends:
        yield f"  {remark}"
    for name, value in proposal.others():
        yield visible_line(f"  {name}: {value}")
