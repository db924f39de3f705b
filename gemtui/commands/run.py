"""`gemtui run`: run one prompt headlessly; with `--dry-run`, print the command."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import click

from gemtui.agent.gemini import GeminiRun, unstarted
from gemtui.agent.options import AgentOptions
from gemtui.agent.output import tail
from gemtui.commands.output import note
from gemtui.commands.run_ask import AskingTerminal, TerminalQuestions
from gemtui.commands.run_cli import RunArguments
from gemtui.commands.run_options import forked, options_of, prompt_of
from gemtui.commands.run_show import Show, Writer
from gemtui.errors import CliNotFound, WorktreeError
from gemtui.kept.run_copies import aftermath_of
from gemtui.runs.adapter import GeminiAdapter
from gemtui.runs.before_run import before_run_report
from gemtui.runs.causes import until_words, wait_until
from gemtui.runs.gate.questions import Conversation
from gemtui.runs.gate.user_commands import report_failures
from gemtui.runs.listing import prune_runs, waiting_words
from gemtui.runs.undo.checkpointing import CheckpointPhase, checkpoint_state
from gemtui.runs.worktrees import require_new

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_LOOK = 0.25
"""Seconds between checks for the first checkpoint."""
_LONGEST = 64 * 1024
"""How many bytes of a long line of stderr are kept; they are the line's end."""


def run(words: RunArguments) -> int:
    """Run the prompt; return the exit code, as defined in `run_show`.

    `words`: the arguments of the command. Raises click.UsageError, OptionError, CliNotFound,
    SessionNotFound, SessionAmbiguous, OSError.
    """
    if words.fork and "resume" in words.options:
        raise click.UsageError("--resume and --fork can't be combined: use only one of them")
    if words.fork and words.dry_run:
        raise click.UsageError(
            "--fork creates a session, so it can't be used with --dry-run: use gemtui fork, then --resume"
        )
    options = options_of(words.options)
    prompt = prompt_of(words)
    adapter = GeminiAdapter()
    if words.dry_run:
        from gemtui.commands import run_dry

        run_dry.print_dry_run(adapter, prompt, options, as_json=words.as_json)
        return 0
    options.check()
    if words.fork:
        require_new(replace(options, resume=words.fork))
    require_new(options)
    terminal = AskingTerminal.open(as_json=words.as_json) if options.ask else None
    prune_runs(adapter.runs)
    if words.fork:
        options = forked(options, words.fork)
    report_before_run(options)

    def show() -> Show:
        return Show(as_json=words.as_json, quiet=words.quiet, fail_on_denied=words.fail_on_denied)

    return asyncio.run(_follow_all(adapter, prompt, options, show, terminal))


async def _follow_all(
    adapter: GeminiAdapter,
    prompt: str,
    options: AgentOptions,
    new_show: Callable[[], Show],
    terminal: AskingTerminal | None,
) -> int:
    """Run the prompt; if a quota is exhausted, continue once it is renewed.

    It continues only with the option `wait_for_quota`, and otherwise ends. Returns the exit code of
    the last run. `new_show`: creates the output of each run. `terminal`: where the user answers
    questions; None if runs don't ask.
    """
    while True:
        show = new_show()
        stderr, folder = await _follow(adapter, prompt, options, show, terminal)
        code, until = show.close(stderr), show.quota_until(stderr)
        if until is None or not options.wait_for_quota:
            return code
        stop = Stop(show)
        with stop.on_signals():
            note(f"waiting until {until_words(until, datetime.now(UTC))}; press ctrl+c to stop waiting")
            if not await wait_until(until, stop.stopped):
                return code
        prompt, options = show.continued(prompt, replace(options, cwd=folder))


def report_before_run(options: AgentOptions) -> None:
    """Report what a run will do without asking the user, because of settings.

    The settings include those of the run's folder, and its `.env` files. The report is stored, so
    that the next one can say what has changed since.
    """
    told = before_run_report(options)
    for words in told.lines():
        note(words)
    with suppress(OSError):  # if not stored, it is shown again next time
        told.remember()


async def _follow(
    adapter: GeminiAdapter, prompt: str, options: AgentOptions, show: Show, terminal: AskingTerminal | None
) -> tuple[str, Path | None]:
    """Start a run, show its output, and end the run if showing it fails.

    `terminal`: where the user answers the run's questions; None if it asks none. Returns the run's
    stderr, and the folder in which it worked.
    """
    stderr, folder = "", options.cwd
    stop = Stop(show)
    writer = Writer(stop.now)
    with stop.on_signals():
        try:
            run = await asyncio.to_thread(adapter.start, prompt, options)
        except (CliNotFound, WorktreeError, OSError) as error:
            for event in unstarted(error, options):
                await writer.write(show.output(event))
        else:
            stop.add_run(run)
            with answer_in_terminal(run, terminal):
                await show_all(run, writer, show)
            stderr, folder = run.stderr(), Path(run.request.cwd)
        await writer.close()
    return stderr, folder


@contextmanager
def answer_in_terminal(run: GeminiRun, terminal: AskingTerminal | None) -> Iterator[None]:
    """Let the user answer a run's questions in the terminal while the block runs.

    `terminal`: None means that the run asks none.
    """
    if terminal is None:
        yield
        return
    questions = TerminalQuestions(terminal, Conversation(run.gate, Path(run.request.cwd)))
    answering = asyncio.ensure_future(questions.ask_all())
    try:
        yield
    finally:
        answering.cancel()


async def show_all(run: GeminiRun, writer: Writer, show: Show) -> None:
    """Show a run's output until it ends, then what is known only after its end.

    If this fails or is cancelled, the run is ended.
    """
    for words in (run.request.about or {}).get("notes", ()):
        show.note(words)
    show.set_request(run.request)
    stderr = asyncio.ensure_future(_show_stderr(run, show))
    first = asyncio.ensure_future(_show_checkpoint(run, show))
    try:
        async for event in run.events():
            first.cancel()
            await writer.write(show.output(event))
    finally:
        first.cancel()
        run.abort()
        await asyncio.shield(run.wait())
        await stderr
    await asyncio.to_thread(show.resolve_writes, Path(run.request.cwd))
    _say_aftermath(run, show)
    state = await asyncio.to_thread(checkpoint_state, run.folder)
    for words in () if state is None else state.notes():
        show.note(words)
    for words in await asyncio.to_thread(report_failures):
        note(words)
    if left := await asyncio.to_thread(run.queue.undelivered):
        note(waiting_words(left, run.folder.id))


def _say_aftermath(run: GeminiRun, show: Show) -> None:
    """Report what resuming a session did to the stored session, if anything.

    For example, the CLI may have created an empty duplicate file, which gemtui removed. If the
    session is lost, the run counts as failed.
    """
    found = aftermath_of(run.folder)
    if found is None:
        return
    for path in found.ghosts:
        show.note(f"removed {path}, an empty duplicate session file that resuming created")
    for words in found.notes(run.folder):
        note(words)
    if found.lost:
        show.fail()


async def _show_checkpoint(run: GeminiRun, show: Show) -> None:
    """Report that the run is waiting for a large folder's first checkpoint, if it is.

    That takes some seconds, during which the run shows nothing else.
    """
    while (state := await asyncio.to_thread(checkpoint_state, run.folder)) is None:
        await asyncio.sleep(_LOOK)
    if state.phase is CheckpointPhase.FIRST:
        show.progress(state.progress)


async def _show_stderr(run: GeminiRun, show: Show) -> None:
    """Show when the CLI retries a request, which it reports only on stderr."""
    rest = b""
    async for chunk in tail(run.folder.stderr, ended=lambda: run.exit() is not None):
        *lines, rest = (rest[-_LONGEST:] + chunk).split(b"\n")
        show.stderr(b"\n".join(lines).decode("utf-8", "replace"))


class Stop:
    """Ends runs on signals: the first one makes runs stop, the second kills them.

    If a signal arrives before a run has started, the run is ended as soon as it starts.
    """

    def __init__(self, show: Show) -> None:
        self._show = show
        self._runs: list[GeminiRun] = []
        self._asked = 0
        self.stopped = asyncio.Event()
        """Set once a signal has arrived, or `now` has been called."""

    def add_run(self, run: GeminiRun) -> None:
        """Add a run to end when a signal arrives; if one already has, end the run now."""
        self._runs.append(run)
        for _ in range(self._asked):
            run.abort()

    def now(self) -> None:
        """End the runs; when called again, kill them."""
        self._asked += 1
        self.stopped.set()
        for run in self._runs:
            run.abort()

    def _on_signal(self) -> None:
        self.now()
        again = "killing" if self._asked > 1 else "stopping the run; press ctrl+c again to kill it"
        self._show.progress(f"gemtui: {again}")

    @contextmanager
    def on_signals(self) -> Iterator[None]:
        """End the runs if a terminating signal arrives while the block runs.

        If nohup, or a script that runs this in the background, has made the process ignore SIGINT
        or SIGHUP, these stay ignored. SIGTERM is always handled.
        """
        loop = asyncio.get_running_loop()
        ignored = {each for each in _SIGNALS if signal.getsignal(each) is signal.SIG_IGN}
        taken = [each for each in _SIGNALS if each not in ignored or each is signal.SIGTERM]
        for number in taken:
            loop.add_signal_handler(number, self._on_signal)
        try:
            yield
        finally:
            for number in taken:
                loop.remove_signal_handler(number)
