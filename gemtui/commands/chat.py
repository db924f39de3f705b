"""`gemtui chat`: a conversation by lines, for screen readers and slow connections.

Everything is a line that is printed once: no line is drawn again, the cursor is never moved, and
nothing is told by colour. What `gemtui run --ask` shows as a diff is said in words here.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import click

from gemtui.agent.agent_run import AgentRun
from gemtui.agent.events import (
    AgentEvent,
    ErrorSaid,
    PermissionRequest,
    ResultStatus,
    TextDelta,
    TextSaid,
    ToolResult,
    ToolUse,
)
from gemtui.agent.options import AgentOptions
from gemtui.agents import WORDS, Agent
from gemtui.calls.paths import asked_path
from gemtui.commands.run import follow, report_before_run
from gemtui.commands.run_ask import LOOK, AskingTerminal, TerminalQuestions, is_terminal
from gemtui.commands.run_options import RunArguments, SetupCommand, options_of
from gemtui.commands.run_show import NO_RESULT, Show, failure_words
from gemtui.commands.session_choice import session_named
from gemtui.commands.undo import undone_words
from gemtui.errors import GemtuiError, message_of
from gemtui.notify import Notification
from gemtui.paths import current_folder
from gemtui.runs.adapter import GeminiAdapter
from gemtui.runs.gate.checks import check_gate
from gemtui.runs.gate.proposal import Form
from gemtui.runs.gate.questions import QUIET, Asked, Conversation
from gemtui.runs.listing import prune_runs
from gemtui.runs.undo.undo import Undone, redo_project, undo_session
from gemtui.runs.worktrees import require_new
from gemtui.text import clean, clean_line, command_line, counted, or_list, visible, visible_line
from gemtui.transcript.diffs import diff_lines
from gemtui.transcript.displays import hunks
from gemtui.transcript.model import DiffDisplay, ToolCall, ToolStatus
from gemtui.transcript.tools import WRITING, ToolKind, kind_of, target

_MOST_CHANGES = 10
"""How many changed lines of a file are said if nobody was asked about them."""
_PASTED = 0.1
"""How many seconds after a line the next one arrives if both were pasted."""
_HELP = (
    "Write what {agent} should do, and press enter.",
    "For a prompt of several lines, end each but the last with a backslash, or paste them.",
    "undo: revert the files and the conversation to before your last prompt.",
    "redo: reverse the last undo.",
    "new: start a new conversation.",
    "quit: end. To continue later, use gemtui chat --resume latest.",
    "While {agent} works, press enter to be told what it is doing, or type stop to stop it.",
    "To send one of these words to {agent}, write a full stop after it.",
)
_DEEDS = {
    ToolKind.READ: ("is reading", "has read"),
    ToolKind.WRITE: ("is writing", "has written"),
    ToolKind.EDIT: ("is changing", "has changed"),
    ToolKind.SHELL: ("is running", "has run"),
    ToolKind.SEARCH: ("is searching for", "has searched for"),
    ToolKind.LIST: ("is listing", "has listed"),
    ToolKind.GLOB: ("is looking for files named", "has looked for files named"),
}
"""Verbs for what an agent is doing, and has done, with a tool of each kind."""


class ChatCommand(SetupCommand):
    """The click command `gemtui chat`, with the options for a run that always asks."""

    left_out = ("ask", "wait_for_quota")


@click.command(cls=ChatCommand)
def chat(**words: Any) -> int:
    """Talk with an agent line by line, for screen readers and slow connections.

    Nothing is drawn twice, and nothing is told by colour. Each call that needs approval is a
    question that you answer with a word; changes to files are said in words. Requires gemtui's
    extension. Type help for the words that the conversation knows: undo, redo, new, stop, quit.
    """
    if not (is_terminal(sys.stdin) and is_terminal(sys.stdout)):
        raise click.UsageError("gemtui chat needs a terminal: without one, use gemtui run PROMPT")
    return start_chat(RunArguments.of(words).options)


def start_chat(given: Mapping[str, Any]) -> int:
    """Start a conversation in this terminal, and return the exit code.

    `given`: the options of its runs, by name. Raises click.UsageError, OptionError, GateError,
    CliNotFound, SessionNotFound, SessionAmbiguous, PolicyNotFound.
    """
    options = replace(options_of(given), ask=True)
    options.check()
    require_new(options)
    adapter = GeminiAdapter()
    machine = adapter.detect(options.agent)
    machine.program()
    if options.agent is Agent.GEMINI:
        check_gate(options, os.environ, version=machine.version)
    prune_runs(adapter.runs)
    report_before_run(options)
    terminal = LineTerminal(sys.stdin.fileno(), sys.stdout.fileno())
    return asyncio.run(Chat(adapter, options, terminal).talk())


class LineTerminal(AskingTerminal, frozen=True):
    """A terminal in which each line is printed once, without any control characters."""

    def write(self, lines: Iterator[str] | tuple[str, ...], *, end: str = "\n") -> None:
        """Print lines as an `AskingTerminal` does, with spaces in place of tabs."""
        super().write(tuple(line.replace("\t", "    ") for line in lines), end=end)

    async def lines(self) -> list[str]:
        """Wait for a line, and return it and those pasted with it; [] at the end of input."""
        lines = list[str]()
        while not lines or await self.has_more(_PASTED):
            line = await self.line()
            if line is None:
                break
            lines.append(line)
        return lines

    def size(self) -> os.terminal_size:
        """Return a size in which every call has room, since a reader of lines needs no pages."""
        return os.terminal_size((80, sys.maxsize))

    def ring(self, notice: Notification) -> None:
        """Do nothing: a question is a line, and is read out like all lines."""


def change_lines(diff: str) -> Iterator[str]:
    """Yield a line in words for each line that a unified diff of one file adds or removes."""
    text = hunks(diff)
    if not text:
        yield from (visible_line(line) for line in diff.splitlines())
    for line in diff_lines(visible(text).rstrip("\n").split("\n")):
        match line.sign:
            case "+":
                yield visible_line(f"added line {line.new}: {line.text or 'empty'}")
            case "-":
                yield visible_line(f"removed line {line.old}: {line.text or 'empty'}")


def text_lines(text: str) -> Iterator[str]:
    """Yield the lines of a command or of arguments.

    Several lines are numbered, so that none of them can pass for the end of the question.
    """
    lines = visible(text).rstrip("\n").split("\n")
    for number, line in enumerate(lines, 1):
        yield visible_line(line if len(lines) == 1 else f"line {number}: {line}")


class SpokenShow(Show):
    """Prints a run's output as sentences: the answer by whole lines, and each call once.

    `noted`: the notes of the conversation so far, which are not repeated.
    """

    def __init__(self, terminal: LineTerminal, noted: set[str]) -> None:
        super().__init__(as_json=False, quiet=False)
        self._terminal, self._noted = terminal, noted
        self._calls: dict[str, ToolCall] = {}
        """The calls without a result."""
        self._asked: set[str] = set()
        """The files whose changes have been said in a question."""
        self._unsaid: dict[str, str] = {}
        """Maps the calls whose changes are still to be said to their file."""
        self._line, self._is_answering = "", False

    @property
    def session(self) -> str | None:
        """The session in which the conversation continues; None if there is none."""
        done = self._progress.done
        return None if done is None else done.resume_token

    @property
    def status(self) -> str:
        """What the agent is doing, in a sentence."""
        for call in self._calls.values():
            return _sentence(call, 0, self.speaker)
        return f"{self.speaker} is thinking."

    @property
    def speaker(self) -> str:
        """The name of the agent that speaks."""
        return self._progress.words.speaker

    def needs_session(self, event: AgentEvent) -> bool:
        """Return whether `read_session` should be called before this event is shown."""
        is_result = isinstance(event.payload, ToolResult)
        return super().needs_session(event) or bool(self._unsaid and not is_result)

    def read_session(self, event: AgentEvent) -> None:
        """Report failed commands as `Show` does, and say what unasked calls have changed."""
        super().read_session(event)
        if self._progress.session is None:
            return
        for call in self._recorded.read(self._progress.session, tuple(self._unsaid)):
            if isinstance(call.display, DiffDisplay):
                name = self._unsaid.pop(call.id)
                self._say_changes(name, tuple(change_lines(call.display.diff)))

    def _say_changes(self, name: str, changes: tuple[str, ...]) -> None:
        left = len(changes) - _MOST_CHANGES
        self._terminal.write(tuple(f"In {name}: {line}" for line in changes[:_MOST_CHANGES]))
        if left > 0:
            self._terminal.write((f"In {name}: {counted(left, 'more changed line')}.",))

    def output(self, event: AgentEvent) -> bytes:
        """Print one event; nothing is left for stdout."""
        self._progress.add(event)
        match event.payload:
            case TextDelta(delta=text):
                self._streamed = True
                self._answer(text)
            case TextSaid(content=text):
                self._answer("\n" if self._streamed else f"{text}\n")
                self._streamed = self._is_answering = False
            case ErrorSaid(recoverable=True, code=code, message=message) if code != NO_RESULT:
                self.progress(f"Warning: {message}")
            case PermissionRequest(input=arguments):
                self._asked.add(asked_path(arguments))
            case ToolUse() as use:
                self._calls[use.tool_use_id] = self._call(use)
            case ToolResult() as result:
                self._end_call(result)
            case _:
                pass
        return b""

    def _answer(self, text: str) -> None:
        """Print the whole lines of an answer, and keep the rest until its line is complete.

        All but the first begin with blanks, so that none of them can pass for a line of gemtui.
        """
        *lines, self._line = (self._line + clean(text)).split("\n")
        for line in lines:
            if line.strip():
                lead = "  " if self._is_answering else f"{self.speaker}: "
                self._is_answering = True
                self._terminal.write((lead + line,))

    def _call(self, use: ToolUse) -> ToolCall:
        request = self._progress.request
        return ToolCall(
            id=use.tool_use_id,
            name=use.tool_name,
            args=use.input,
            status=ToolStatus.RUNNING,
            project=None if request is None else request.cwd,
        )

    def _end_call(self, result: ToolResult) -> None:
        call = self._calls.pop(result.tool_use_id, None)
        if result.status is not ResultStatus.SUCCESS:
            self.progress(f"Not done: {failure_words(result)}")
        elif call is not None:
            self._terminal.write((_sentence(call, 1, self.speaker),))
            if kind_of(call.name) in WRITING and asked_path(call.args) not in self._asked:
                self._unsaid[call.id] = command_line(target(call))

    def progress(self, words: str) -> None:
        """Print one line."""
        self._terminal.write((clean_line(words),))

    def note(self, words: str) -> None:
        """Print a note about the run, once in a conversation."""
        if words not in self._noted:
            self._noted.add(words)
            self.progress(f"Note: {words}")

    def summary(self) -> str:
        """Return the line about a run that went well."""
        files = ", ".join(self._progress.written)
        return f"Done. Files written: {files}." if files else "Done."


def _sentence(call: ToolCall, tense: int, speaker: str) -> str:
    """Return what an agent does in a call. `tense`: 0 while it does so, 1 if it has."""
    using = ("is using", "has used")[tense]
    deeds = _DEEDS.get(kind_of(call.name))
    deed = f"{using} the tool {call.name}:" if deeds is None else deeds[tense]
    return visible_line(f"{speaker} {deed} {command_line(target(call))}".rstrip(" :") + ".")


class SpokenQuestions(TerminalQuestions):
    """Asks a run's questions in sentences, and lets the user stop the run with a word."""

    def __init__(
        self, terminal: LineTerminal, show: SpokenShow, run: AgentRun, talk: Conversation
    ) -> None:
        super().__init__(terminal, talk)
        self._show_of_run, self._run, self._project = show, run, Path(run.request.cwd)
        self._is_closed = False

    async def between(self) -> None:
        """Wait a moment before looking for new questions, or until a line is typed."""
        if self._is_closed:
            await super().between()
            return
        reading = asyncio.ensure_future(self._terminal.line())
        try:
            await asyncio.wait((reading,), timeout=LOOK)
            if reading.done():
                self._heard(reading.result())
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)

    def _heard(self, typed: str | None) -> None:
        """Act on a line that was typed while Gemini works; None if the terminal was closed."""
        self._is_closed = typed is None
        if typed is None or typed.strip().lower() == "stop":
            self._run.abort()
            self._terminal.write(("Stopping.",))
        elif typed.strip():
            works = f"{self._show_of_run.speaker} is still working"
            self._terminal.write((f"Not sent, because {works}: wait, or type stop to stop it.",))
        else:
            self._terminal.write((self._show_of_run.status,))

    def lines(self, asked: Asked) -> Iterator[str]:
        """Yield the sentences about a call: who asks, warnings, and then all that it would do."""
        request, proposal = asked.question.request, asked.runs
        who = request.asker
        match proposal.form:
            case Form.COMMAND:
                yield f"{who} asks to run this command:"
            case Form.FILE:
                yield visible_line(f"{who} asks to write {proposal.place(self._project)}:")
            case Form.ARGUMENTS:
                yield visible_line(f"{who} asks to use the tool {request.tool_name}:")
        if proposal.diff is not None:
            yield from change_lines(proposal.diff.diff)
        else:
            yield from text_lines(proposal.text)
        folder = proposal.folder(self._project)
        if folder:
            yield visible_line(f"It would run in the folder {folder}.")
        for remark in proposal.line_ends:
            yield f"Note: {remark}"
        for name, value in proposal.others():
            yield visible_line(f"{name}: {value}")
        for caution in asked.cautions:
            yield visible_line(f"{'Warning' if caution.danger else 'Note'}: {caution.text}")

    def reasons(self, asked: Asked) -> Iterator[str]:
        """Yield the sentences below a call: why it is asked about, which calls are similar."""
        request = asked.question.request
        if request.because:
            yield visible_line(f"Reason: {request.because[:500]}")
        if asked.has_similar:
            yield visible_line(f"similar and always allow {asked.similar.words}")

    def keys(self, asked: Asked, *, back: bool) -> str:
        """Return the line with the possible answers."""
        words = ["yes", "no", "no with a reason", "edit", "view"]
        if asked.has_similar:
            words += ["similar", "always"]
        if back:
            words.append("revoke")
        return f"Answer {or_list([*words, 'stop'])}:"


class Chat:
    """The conversation: one run for each prompt, in one session."""

    def __init__(
        self, adapter: GeminiAdapter, options: AgentOptions, terminal: LineTerminal
    ) -> None:
        self._adapter, self._options, self._terminal = adapter, options, terminal
        self._noted = set[str]()

    @property
    def _speaker(self) -> str:
        return WORDS[self._options.agent].speaker

    async def talk(self) -> int:
        """Send what the user types, or do what a word says, until the end of input or `quit`."""
        folder = self._options.cwd or current_folder()
        self._say(
            f"A conversation with {self._speaker} in {folder}. Type help for help, quit to end."
        )
        while (typed := await self._typed()) is not None:
            match typed.strip().lower():
                case "":
                    pass
                case "help":
                    self._say(*(line.format(agent=self._speaker) for line in _HELP))
                case "undo":
                    await self._undo()
                case "redo":
                    await self._change(partial(redo_project, folder))
                case "new":
                    self._options = replace(self._options, resume=None)
                    self._say("The next prompt starts a new conversation.")
                case "stop":  # typed just when a run had ended
                    self._say(f"{self._speaker} is not working.")
                case "quit" | "exit":
                    break
                case _:
                    await self._send(typed)
        return 0

    def _say(self, *lines: str) -> None:
        self._terminal.write(tuple(map(visible_line, lines)))

    async def _typed(self) -> str | None:
        """Return what the user types or pastes, with several lines as one text; None at the end."""
        lines = await self._lines("You:")
        is_pasted = len(lines) > 1
        while lines and (is_pasted or lines[-1].endswith("\\")):
            if is_pasted:
                question = f"{len(lines)} lines. Write more, or press enter to send:"
            else:
                question = "Next line:"
                lines[-1] = lines[-1][:-1]
            more = await self._lines(question)
            if not more:
                return None
            if is_pasted and more == [""]:
                break
            lines += more
            is_pasted = is_pasted or len(more) > 1
        return "\n".join(lines) if lines else None

    async def _lines(self, question: str) -> list[str]:
        self._terminal.write((question,), end=" ")
        return await self._terminal.lines()

    async def _send(self, prompt: str) -> None:
        """Run a prompt, and continue its session with the next one."""
        show = SpokenShow(self._terminal, self._noted)
        asking = partial(SpokenQuestions, self._terminal, show)
        try:
            stderr, folder = await follow(self._adapter, prompt, self._options, show, asking)
        except (GemtuiError, OSError) as error:
            self._say(f"Not sent: {message_of(error)}")
            return
        show.close(stderr)
        if show.session is not None:
            self._options = replace(self._options, resume=show.session, cwd=folder, worktree=False)

    async def _undo(self) -> None:
        session = self._options.resume
        if session is None:
            self._say("There is nothing to undo yet.")
            return
        try:
            summary = await asyncio.to_thread(session_named, session)
        except (GemtuiError, OSError) as error:
            self._say(f"Not undone: {message_of(error)}")
            return
        await self._change(partial(undo_session, summary))

    async def _change(self, act: Callable[..., Undone]) -> None:
        """Say what an undo or redo would do, and do it if the user agrees.

        The conversation continues in the session to which it leads.
        """
        try:
            planned = await asyncio.to_thread(act, dry_run=True)
            self._say(*undone_words(replace(planned, fork=None), "would be "))
            if not await self._agrees():
                self._say("Nothing was changed.")
                return
            done = await asyncio.to_thread(act)
        except (GemtuiError, OSError) as error:
            self._say(f"Nothing was changed: {message_of(error)}")
            return
        self._options = replace(self._options, resume=done.fork)
        self._say(*undone_words(replace(done, fork=None), ""), "Done.")

    async def _agrees(self) -> bool:
        """Ask until the answer is yes or no; what is typed too early is no answer."""
        while True:
            self._terminal.write(("Do this? Answer yes or no:",), end=" ")
            while await self._terminal.typed_within(QUIET):
                self._say("Ignored, because the question had only just appeared.")
            typed = await self._terminal.line()
            match "no" if typed is None else typed.strip().lower():
                case "y" | "yes":
                    return True
                case "n" | "no":
                    return False
