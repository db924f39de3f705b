"""`gemtui run`: run a prompt headlessly, also with several models or policies at once.

With `--dry-run`, the exact command is printed instead, as by `gemtui policy flags`.
"""

from __future__ import annotations

import asyncio
import signal
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import click
from msgspec import Struct

from gemtui.agent.adapter import UnguardedAdapter, unstarted
from gemtui.agent.agent_run import AgentRun
from gemtui.agent.approval import AnswerSource
from gemtui.agent.command import Command, command_of
from gemtui.agent.options import AgentOptions
from gemtui.agent.output import tail
from gemtui.commands.output import json_to_stdout, lines_to_stdout, note, stdout_encoding
from gemtui.commands.run_ask import AskingTerminal, TerminalQuestions
from gemtui.commands.run_options import (
    RunArguments,
    RunCommand,
    SetupCommand,
    forked,
    options_of,
    prompt_of,
)
from gemtui.commands.run_show import Show, Writer
from gemtui.commands.shared_options import json_option, policy_names
from gemtui.errors import CliNotFound, GemtuiError, WorktreeError, message_of
from gemtui.jsonout import fields
from gemtui.kept.run_copies import aftermath_of
from gemtui.paths import current_folder, runs_dir
from gemtui.policy.file.policy_files import find_policy
from gemtui.runs.adapter import GeminiAdapter
from gemtui.runs.before_run import before_run_report
from gemtui.runs.causes import until_words, wait_until
from gemtui.runs.gate.questions import Conversation
from gemtui.runs.gate.user_commands import report_failures
from gemtui.runs.listing import asking_words, prune_runs, waiting_words
from gemtui.runs.undo.checkpointing import CheckpointPhase, checkpoint_state
from gemtui.runs.worktrees import require_new
from gemtui.system import ENDING
from gemtui.text import clean_line
from gemtui.worktree_records import NEW_WORKTREE, worktree_of

_SIGNALS = ENDING
_LOOK = 0.25
"""Seconds between checks for the first checkpoint."""
_LONGEST = 64 * 1024
"""How many bytes of a long line of stderr are kept; they are the line's end."""
Asking = Callable[[AgentRun, Conversation], TerminalQuestions]
"""Returns what asks the questions of a run in the terminal."""


@click.command(cls=RunCommand)
@click.argument("prompt", required=False)
@click.option("-p", "--prompt", "typed_prompt", metavar="TEXT", help="The same as PROMPT.")
@click.option("-y", "--yolo", is_flag=True, help="The same as --approval-mode yolo.")
@click.option(
    "--prompt-file",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Read the prompt from FILE.",
)
@click.option("--json", "as_json", is_flag=True, help="Print events as JSON, one per line.")
@click.option("--dry-run", is_flag=True, help="Print the exact command instead of running it.")
@click.option(
    "--each-model",
    metavar="M",
    multiple=True,
    help=("Run the prompt with each of these models in parallel, each run in its own worktree."),
)
@click.option(
    "--each-policy",
    metavar="NAME|FILE",
    multiple=True,
    help=("Run the prompt with each of these policies in parallel, each run in its own worktree."),
)
@click.option(
    "--fork",
    metavar="ID[:N]",
    help=("Continue in a copy of this session; with N, copy only what comes before prompt N."),
)
@click.option(
    "--fail-on-denied",
    is_flag=True,
    help="Exit with 1 if a tool call was denied, even if the run succeeded.",
)
@click.option("--quiet", is_flag=True, help="Print only errors to stderr.")
def run(typed_prompt: str | None, yolo: bool, **words: Any) -> int:
    """Run an agent on PROMPT without opening the app.

    Piped input is appended to PROMPT: `git diff | gemtui run "review this"`. With PROMPT -, only
    stdin is used. The answer is printed to stdout as it arrives, and progress to stderr. ctrl+c
    stops the run with all its processes; a second ctrl+c kills them immediately. Exit codes: 0
    done, even if calls were denied (see --fail-on-denied); 1 failed or incomplete; 53 turn limit;
    79 budget; 124 time limit; 130 interrupted.
    """
    if typed_prompt is not None:
        if words["prompt"] is not None:
            raise click.UsageError("PROMPT and --prompt can't be combined: use only one of them")
        words["prompt"] = typed_prompt
    if yolo:
        if words["approval_mode"] not in (None, "yolo"):
            raise click.UsageError(
                "--yolo and --approval-mode can't be combined: use only one of them"
            )
        words["approval_mode"] = "yolo"
    arguments = RunArguments.of(words)
    if arguments.each_model or arguments.each_policy:
        return _run_each(arguments)
    if arguments.fork and "resume" in arguments.options:
        raise click.UsageError("--resume and --fork can't be combined: use only one of them")
    if arguments.fork and arguments.dry_run:
        raise click.UsageError(
            "--fork creates a session, so it can't be used with --dry-run: use gemtui fork, then "
            "--resume"
        )
    options = options_of(arguments.options)
    prompt = prompt_of(arguments)
    adapter = GeminiAdapter()
    if arguments.dry_run:
        return _print_dry_run(adapter, prompt, options, as_json=arguments.as_json)
    options.check()
    if arguments.fork:
        require_new(replace(options, resume=arguments.fork))
    require_new(options)
    asking = _asking(as_json=arguments.as_json) if options.ask else None
    waiting = asking_words(runs_dir())
    if waiting is not None:
        note(waiting)
    prune_runs(adapter.runs)
    if arguments.fork:
        options = forked(options, arguments.fork)
    report_before_run(options)

    return asyncio.run(_follow_all(adapter, prompt, options, partial(_new_show, arguments), asking))


def _asking(*, as_json: bool) -> Asking:
    """Return what asks questions in the terminal. Raises click.UsageError if there is none."""
    terminal = AskingTerminal.open(as_json=as_json)
    return lambda _run, talk: TerminalQuestions(terminal, talk)


def _new_show(given: RunArguments) -> Show:
    return Show(as_json=given.as_json, quiet=given.quiet, fail_on_denied=given.fail_on_denied)


async def _follow_all(
    adapter: GeminiAdapter,
    prompt: str,
    options: AgentOptions,
    new_show: Callable[[], Show],
    asking: Asking | None,
) -> int:
    """Run the prompt; if a quota is exhausted, continue once it is renewed.

    It continues only with the option `wait_for_quota`, and otherwise ends. Returns the exit code of
    the last run. `new_show`: creates the output of each run. `asking`: as in `follow`.
    """
    while True:
        show = new_show()
        stderr, folder = await follow(adapter, prompt, options, show, asking)
        code, until = show.close(stderr), show.quota_until(stderr)
        if until is None or not options.wait_for_quota:
            return code
        stop = _Stop(show)
        with stop.on_signals():
            note(
                f"waiting until {until_words(until, datetime.now(UTC))}; press ctrl+c to stop "
                "waiting"
            )
            if not await wait_until(until, stop.stopped):
                return code
        prompt, options = show.continued(prompt, replace(options, cwd=folder))


def report_before_run(options: AgentOptions) -> None:
    """Report what a run will do without asking the user, because of settings.

    The settings include those of the run's folder, and its `.env` files. The report is stored, so
    that the next one can say what has changed since.
    """
    report = before_run_report(options)
    for line in report.lines():
        note(line)
    with suppress(OSError):  # if not stored, it is shown again next time
        report.remember()


async def follow(
    adapter: GeminiAdapter,
    prompt: str,
    options: AgentOptions,
    show: Show,
    asking: Asking | None,
) -> tuple[str, Path | None]:
    """Start a run, show its output, and end the run if showing it fails.

    `asking`: returns what asks the run's questions; None if it asks none. Returns the run's stderr,
    and the folder in which it worked. Raises OptionError, GateError.
    """
    stderr, folder = "", options.cwd
    stop = _Stop(show)
    writer = Writer(stop.now)
    with stop.on_signals():
        try:
            run = await asyncio.to_thread(adapter.start, prompt, options)
        except (CliNotFound, WorktreeError, OSError) as error:
            for event in unstarted(error, options):
                await writer.write(show.output(event))
        else:
            stop.add_run(run)
            async with _answer_in_terminal(run, asking):
                await _show_all(run, writer, show)
            stderr, folder = run.stderr(), Path(run.request.cwd)
        await writer.close()
    return stderr, folder


@asynccontextmanager
async def _answer_in_terminal(run: AgentRun, asking: Asking | None) -> AsyncIterator[None]:
    """Let the user answer a run's questions in the terminal while the block runs.

    `asking`: as in `follow`.
    """
    if asking is None:
        yield
        return
    talk = Conversation(run.gate, Path(run.request.cwd), AnswerSource.SHELL)
    answering = asyncio.ensure_future(asking(run, talk).ask_all())
    try:
        yield
    finally:
        answering.cancel()
        await asyncio.gather(answering, return_exceptions=True)  # it may still read the terminal


async def _show_all(run: AgentRun, writer: Writer, show: Show) -> None:
    """Show a run's output until it ends, then what is known only after its end.

    If this fails or is cancelled, the run is ended.
    """
    for remark in run.request.about.get("notes", ()):
        show.note(remark)
    show.set_request(run.request)
    stderr = asyncio.ensure_future(_show_stderr(run, show))
    first = asyncio.ensure_future(_show_checkpoint(run, show))
    try:
        async for event in run.events():
            first.cancel()
            if show.needs_session(event):
                await asyncio.to_thread(show.read_session, event)
            await writer.write(show.output(event))
    finally:
        first.cancel()
        run.abort()
        await asyncio.shield(run.wait())
        await stderr
    await asyncio.to_thread(show.resolve_writes, Path(run.request.cwd))
    _say_aftermath(run, show)
    state = await asyncio.to_thread(checkpoint_state, run.folder)
    for remark in () if state is None else state.notes():
        show.note(remark)
    for remark in await asyncio.to_thread(report_failures):
        note(remark)
    left = await asyncio.to_thread(run.queue.undelivered)
    if left:
        note(waiting_words(left, run.folder.id))


def _say_aftermath(run: AgentRun, show: Show) -> None:
    """Report what resuming a session did to the stored session, if anything.

    For example, the CLI may have created an empty duplicate file, which gemtui removed. If the
    session is lost, the run counts as failed.
    """
    aftermath = aftermath_of(run.folder)
    if aftermath is None:
        return
    for path in aftermath.ghosts:
        show.note(f"removed {path}, an empty duplicate session file that resuming created")
    for remark in aftermath.notes(run.folder):
        note(remark)
    if aftermath.lost:
        show.fail()


async def _show_checkpoint(run: AgentRun, show: Show) -> None:
    """Report that the run is waiting for a large folder's first checkpoint, if it is.

    That takes some seconds, during which the run shows nothing else.
    """
    while (state := await asyncio.to_thread(checkpoint_state, run.folder)) is None:
        await asyncio.sleep(_LOOK)
    if state.phase is CheckpointPhase.FIRST:
        show.progress(state.progress)


async def _show_stderr(run: AgentRun, show: Show) -> None:
    """Show when the CLI retries a request, which it reports only on stderr."""
    rest = b""
    async for chunk in tail(run.folder.stderr, ended=lambda: run.exit() is not None):
        *lines, rest = (rest[-_LONGEST:] + chunk).split(b"\n")
        show.stderr(b"\n".join(lines).decode("utf-8", "replace"))


class _Stop:
    """Ends runs on signals: the first one makes runs stop, the second kills them.

    If a signal arrives before a run has started, the run is ended as soon as it starts.
    """

    def __init__(self, show: Show) -> None:
        self._show = show
        self._runs: list[AgentRun] = []
        self._asked = 0
        self.stopped = asyncio.Event()
        """Set once a signal has arrived, or `now` has been called."""

    def add_run(self, run: AgentRun) -> None:
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
        or SIGHUP, these stay ignored. SIGTERM is always number.
        """
        loop = asyncio.get_running_loop()
        ignored = {number for number in _SIGNALS if signal.getsignal(number) is signal.SIG_IGN}
        taken = [number for number in _SIGNALS if number not in ignored or number is signal.SIGTERM]

        def end_soon(_number: int, _frame: FrameType | None) -> None:
            loop.call_soon_threadsafe(self._on_signal)

        before = {number: signal.signal(number, end_soon) for number in taken}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


# --- several runs at once ------------------------------------------------------------------------


class _Variant(Struct, frozen=True):
    """One of the parallel runs; `label` is the model or policy that only it uses."""

    label: str
    options: AgentOptions


def _run_each(given: RunArguments) -> int:
    """Run the prompt once for each model or policy, all at the same time.

    The answers are printed one after another. Returns the first nonzero exit code, or 0. Raises
    click.UsageError, OptionError, PolicyNotFound, CliNotFound, OSError.
    """
    _check_variants(given)
    options = replace(options_of(given.options), worktree=True)
    options.check()
    require_new(options)
    prompt, variants = prompt_of(given), list(_variants(given, options))
    asking = _asking(as_json=given.as_json) if options.ask else None
    adapter = GeminiAdapter()
    prune_runs(adapter.runs)
    report_before_run(options)
    return asyncio.run(_run_all(adapter, prompt, variants, given, asking))


def _check_variants(given: RunArguments) -> None:
    if given.each_model and given.each_policy:
        raise click.UsageError(
            "--each-model and --each-policy can't be combined: use only one of them"
        )
    if given.fork or given.dry_run:
        other = "--fork" if given.fork else "--dry-run"
        raise click.UsageError(
            f"{other} works only for a single run: leave out --each-model and --each-policy"
        )
    for name, varied in (("model", given.each_model), ("policies", given.each_policy)):
        if varied and name in given.options:
            option = "--model" if name == "model" else "--policy"
            raise click.UsageError(f"{option} and --each-{option[2:]} can't be combined")
    if "wait_for_quota" in given.options:
        raise click.UsageError("--wait-for-quota works only for a single run")


def _variants(given: RunArguments, options: AgentOptions) -> Iterator[_Variant]:
    for model in given.each_model:
        yield _Variant(model, replace(options, model=model))
    for name in given.each_policy:
        yield _Variant(name, replace(options, policies=(find_policy(name),)))


async def _run_all(
    adapter: GeminiAdapter,
    prompt: str,
    variants: list[_Variant],
    given: RunArguments,
    asking: Asking | None,
) -> int:
    stop, codes = _Stop(_new_show(given)), list[int]()
    writer = Writer(stop.now)
    begun: list[tuple[_Variant, AgentRun]] = []
    with stop.on_signals():
        try:
            for arguments in variants:
                if stop.stopped.is_set():
                    break
                try:
                    run = await asyncio.to_thread(adapter.start, prompt, arguments.options)
                except (GemtuiError, OSError) as error:
                    note(f"{arguments.label}: not started: {message_of(error)}")
                    codes.append(1)
                    continue
                stop.add_run(run)
                begun.append((arguments, run))
            for variant, run in begun:
                show = _new_show(given)
                if not given.as_json:
                    head = clean_line(f"== {variant.label}: {_worktree_name(run)}")
                    await writer.write(f"{head}\n".encode(stdout_encoding(), "replace"))
                async with _answer_in_terminal(run, asking):
                    await _show_all(run, writer, show)
                codes.append(show.close(run.stderr()))
        finally:
            for _, run in begun:
                run.abort()
            await asyncio.gather(*(run.wait() for _, run in begun))
            await writer.close()
    for code in codes:
        if code:
            return code
    return 0


def _worktree_name(run: AgentRun) -> str:
    """Return the name of the worktree in which the run works."""
    about = run.request.about.get("worktree") or {}
    return about.get("name", Path(run.request.cwd).name)


# --- dry runs ------------------------------------------------------------------------------------


def _print_dry_run(
    adapter: GeminiAdapter, prompt: str, options: AgentOptions, *, as_json: bool
) -> int:
    """Print the command and files with which `adapter` would run the prompt.

    Raises CliNotFound, OptionError.
    """
    id = str(uuid.uuid4())
    command = adapter.command(prompt, options, id=id)
    folder, cwd = adapter.runs / id, options.cwd or current_folder()
    report = before_run_report(options)
    where = (NEW_WORKTREE,) if options.worktree and worktree_of(cwd) is None else ()
    if as_json:
        values = {**_command_json(command, prompt, folder, cwd), "before": report}
        values["notes"] = [*where, *command.notes]
        json_to_stdout(values)
    else:
        lines_to_stdout(clean_line(f"# {line}") for line in (*where, *report.lines()))
        lines_to_stdout(command.script(prompt, folder, cwd))
    return 0


def _command_json(
    command: Command, prompt: str | None, folder: Path, cwd: Path
) -> dict[str, object]:
    """Return the command as JSON values.

    `prompt`: None if it is not known yet. `folder`: the folder for the run's own files. `cwd`: the
    folder in which the run would work.
    """
    return {
        **fields(command, "argv", "notes", session="session_id"),
        "cwd": cwd,
        "environment": dict(command.environ),
        "folder": folder,
        "files": dict(command.files),
        "stdin": prompt if command.stdin else None,
    }


@click.command(cls=SetupCommand)
@click.argument("name", metavar="NAME|FILE", shell_complete=policy_names)
@json_option
def flags(name: str, **words: Any) -> int:
    """Print the exact command line for a run with a policy, and the files that it needs.

    The options are those of gemtui run. The command reads its prompt from prompt.txt.
    """
    arguments = RunArguments.of(words)
    policies = (name, *arguments.options.get("policies", ()))
    options = options_of({**arguments.options, "policies": policies})
    adapter = UnguardedAdapter()
    machine, missing = adapter.planned_machine(options.cwd)
    folder, cwd = adapter.runs / str(uuid.uuid4()), options.cwd or current_folder()
    command = command_of("", options, machine, folder=folder, session_id=None)
    command = replace(command, notes=(*([missing] if missing else []), *command.notes))
    if arguments.as_json:
        values = {**_command_json(command, None, folder, cwd), "policy": options.policies[0]}
        json_to_stdout(values)
    else:
        lines_to_stdout(command.script(None, folder, cwd))
    return 0
