"""Actions on runs, with the questions to ask the user before them."""

from __future__ import annotations

import asyncio
import os
import textwrap
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from gemtui.agent import folder_options, trust
from gemtui.agent.approval import Away
from gemtui.agent.options import AgentOptions, seconds_text
from gemtui.agent.prompt_queue import hand_on
from gemtui.errors import GateError, GemtuiError
from gemtui.files import is_file, read_end, read_small
from gemtui.kept.run_copies import last_copies
from gemtui.paths import current_folder, typed_path
from gemtui.policy.edit import store
from gemtui.runs.before_run import Report, before_run_report
from gemtui.runs.listing import Run, stop_run
from gemtui.text import Clean, clean, clean_line, ellipsis, visible
from gemtui.ui.kit.dialogs import AskScreen, Choice, ChooseScreen, confirm
from gemtui.ui.kit.put_back import put_back_of_run
from gemtui.ui.kit.text_view import RawScreen, show_text
from gemtui.ui.run.labels import write_row
from gemtui.ui.run.list_dialog import RunAction, RunListScreen
from gemtui.worktree_records import NEW_WORKTREE, origin_of, worktree_of

if TYPE_CHECKING:
    from gemtui.transcript.model import Transcript
    from gemtui.transcript.writes import FileWrite
    from gemtui.ui.kit.app_base import AppBase
    from gemtui.ui.run.live_run import LiveRun
    from gemtui.ui.run.options_dialog import ChosenOptions
    from gemtui.ui.run.registry import RunRegistry

LARGEST_PROMPT = 10_000_000
"""Maximum size in bytes of a file to load as a prompt."""
MOST_TOLD = 6
"""Maximum number of lines about a folder's settings in a dialog before a run."""
MOST_STDERR = 1_000_000
"""Maximum number of bytes of stderr to show; of longer output, the end is shown."""


async def trusted(app: AppBase, options: AgentOptions, environ: Mapping[str, str] = os.environ) -> bool | None:
    """Return whether a run needs Gemini CLI's option to trust the folder.

    Returns None if the run must not start, because the user refuses to trust the folder. The user
    is asked only if Gemini CLI would otherwise refuse to work in the folder and the user hasn't
    trusted it before. `environ`: the environment variables of the run.
    """
    folder = options.cwd or current_folder()
    known = await asyncio.to_thread(trust.trust_of, folder, environ)
    if known is not trust.FolderTrust.NOBODY:
        return known is trust.FolderTrust.GEMTUI
    report = await asyncio.to_thread(before_run_report, options, environ)
    about = (
        clean_line(str(folder)),
        Clean(""),
        Clean("Gemini CLI does not trust this folder, so it won't work here."),
        Clean("Trusting it also activates the settings, hooks and MCP servers"),
        Clean("that it contains."),
    )
    yes = Choice("yes", Clean("Trust and run"), Clean("gemtui remembers this"))
    if not await _agreed(app, Clean("Trust this folder?"), about, yes, report):
        return None
    with app.reporting("You will be asked again, because your answer could not be saved"):
        await asyncio.to_thread(trust.remember, folder)
    return True


async def _told(app: AppBase, options: AgentOptions) -> bool:
    """Show the settings that let a run act without asking the user.

    Settings that the user has seen before aren't shown again. The user must agree to those of the
    project; their own settings are only reported. Returns False if the user cancels the run.
    """
    report = await asyncio.to_thread(before_run_report, options)
    if report.is_news:
        title = Clean("Before this run")
        about = (clean_line(str(report.folder)), Clean(""), Clean("Settings that act without asking:"))
        yes = Choice("yes", Clean("Run"), Clean("ask again only if something changes"))
        return await _agreed(app, title, about, yes, report)
    if report.changed or (report.notices and not report.seen):
        app.show_message("; ".join(report.lines()))
        await _remember(app, report)
    return True


async def _agreed(app: AppBase, title: Clean, about: Sequence[Clean], yes: Choice, report: Report) -> bool:
    """Show the start of a report on what settings do in a run, and ask whether to run.

    The user can also open the full report. If they agree to run, it is recorded that they have seen
    the report. Returns whether they agree. `about`: lines to show above the report. `yes`: the
    option to agree.
    """
    lines = [clean_line(line) for words in report.lines() for line in textwrap.wrap(words, 70)]
    rest = len(lines) - MOST_TOLD
    choices = [Choice("no", Clean("Don't run"), Clean("the prompt is kept")), yes]
    if rest > 0:
        choices.append(Choice("show", Clean("Show everything"), Clean(f"{rest} more lines")))
    while True:
        asked = ChooseScreen(title, (*about, *lines[:MOST_TOLD]), choices)
        answer = await app.push_screen_wait(asked)
        if answer != "show":
            break
        whole = visible("\n".join(report.lines()))
        heading = Clean("What this folder's settings do without asking")
        await app.push_screen_wait(RawScreen(heading, whole, what="the list"))
    if answer == "yes":
        await _remember(app, report)
    return answer == "yes"


async def _remember(app: AppBase, report: Report) -> None:
    with app.reporting("This will be shown again, because it could not be marked as seen"):
        await asyncio.to_thread(report.remember)


async def show_trusted(app: AppBase) -> None:
    """List the folders that the user has told gemtui to trust.

    If the user chooses one and confirms, it is no longer trusted.
    """
    while folders := await asyncio.to_thread(trust.trusted_folders):
        rows = [Choice(each.path, clean_line(each.path), _PLACES[each.place]) for each in folders]
        about = (Clean("Runs started with gemtui trust these folders. Choose one to revoke its trust."),)
        chosen = await app.push_screen_wait(ChooseScreen(Clean("Trusted folders"), about, rows))
        if chosen is None:
            return
        sure = await confirm(
            app,
            Clean("Revoke trust?"),
            clean_line(chosen),
            (Clean("gemtui will ask again before the next run there."),),
            yes="Revoke trust",
            no="Keep it",
        )
        if sure:
            with app.reporting("Trust could not be revoked"):
                await asyncio.to_thread(trust.forget, Path(chosen))
    app.show_message("No trusted folders.")


_PLACES = {
    trust.TrustState.SAME: Clean(""),
    trust.TrustState.REPLACED: Clean("no longer trusted: replaced by another folder"),
    trust.TrustState.GONE: Clean("folder not found"),
}


async def show_command(app: AppBase, registry: RunRegistry, prompt: str, options: AgentOptions) -> None:
    """Show the command line and the files that a run would use, or why it can't start.

    `prompt`, `options`: those of the run.
    """
    adapter, id, folder = registry.adapter, str(uuid.uuid4()), options.cwd or current_folder()

    def script() -> tuple[Clean, ...]:
        known = trust.trust_of(folder) is trust.FolderTrust.GEMTUI
        wanted = replace(options, trust=options.trust or known)
        made = adapter.command(prompt, wanted, id=id)
        where = options.worktree and worktree_of(folder) is None
        first = [Clean(f"# {NEW_WORKTREE}")] if where else []
        return (*first, *_limits(options), *made.script(prompt, adapter.runs / id, folder))

    with app.reporting():
        lines = await asyncio.to_thread(script)
        show_text(app, "The command that enter will run", "\n".join(lines), what="the command")


def _limits(options: AgentOptions) -> Iterator[Clean]:
    """Yield shell comments on limits that gemtui enforces but a shell command can't."""
    if options.timeout is not None:
        yield Clean(f"# gemtui stops the run after {seconds_text(options.timeout)}")
    if options.idle_timeout is not None:
        silence = seconds_text(options.idle_timeout)
        yield Clean(f"# gemtui stops the run after {silence} without output")


async def prompt_from_file(app: AppBase, folder: Path) -> str | None:
    """Ask for a file and return its contents as a prompt, or None if cancelled.

    If the file can't be read, the reason is shown and None is returned. `folder`: the folder that a
    relative path refers to.
    """

    def place(text: str) -> Path:
        return folder / typed_path(text.strip())

    def problem(text: str) -> str:
        return "" if text.strip() and is_file(place(text)) else "File not found."

    chosen = await app.push_screen_wait(AskScreen(Clean("Prompt from a file"), value="", problem=problem))
    if chosen is None:
        return None
    with app.reporting():
        return await asyncio.to_thread(_read, place(chosen))
    return None


def _read(path: Path) -> str:
    return read_small(path, LARGEST_PROMPT).decode("utf-8", "replace")


async def choose_options(app: AppBase, options: AgentOptions) -> ChosenOptions | None:
    """Let the user edit the next run's options; return None if they cancel.

    In the dialog, the user can also choose whether the options are remembered for the folder.
    """
    from gemtui.ui.run.options_dialog import OptionsScreen

    folder = options.cwd or current_folder()
    policies = await asyncio.to_thread(store.list_policies)
    kept = await remembered_options(app, folder) is not None
    ours = [file for file in policies if file.origin is store.Origin.OURS]
    chosen = await app.push_screen_wait(OptionsScreen(options, ours, remembers=kept))
    if chosen is None:
        return None
    with app.reporting("The options remembered for this folder could not be changed"):
        if chosen.remember:
            await asyncio.to_thread(folder_options.remember_options, chosen.options)
            but = ", ".join(folder_options.not_rememberable(chosen.options))
            app.show_message(f"Remembered for this folder{f', except {but}' if but else ''}.")
        elif kept and chosen.options.cwd == folder:
            await asyncio.to_thread(folder_options.forget_options, folder)
            app.show_message("Options are no longer remembered for this folder.")
    return chosen


async def keep_mode(app: AppBase, options: AgentOptions) -> None:
    """Remember the approval mode for these options' folder, unless that is unsafe."""
    with app.reporting("The mode could not be remembered for this folder"):
        await asyncio.to_thread(folder_options.remember_mode, options)


async def remembered_options(app: AppBase, folder: Path) -> AgentOptions | None:
    """Return the options that are remembered for a folder, or None.

    If they can't be read, the reason is shown and None is returned.
    """
    try:
        return await asyncio.to_thread(_remembered, folder)
    except OSError as error:
        words = f"The options remembered for this folder can't be used: {error.strerror}"
        words = f"{words} ({error.filename}). Press ctrl+o to set them again."
        app.show_message(words, problem=True)
        return None


def _remembered(folder: Path) -> AgentOptions | None:
    """Return the options that are remembered for a folder, or None.

    For a worktree without any, those of the folder it was created from are returned.
    """
    kept, origin = folder_options.options_for(folder), origin_of(folder)
    if kept is None and origin != folder:
        kept = folder_options.options_for(origin)
    return None if kept is None else replace(kept, cwd=folder)


async def choose_run(app: AppBase, registry: RunRegistry) -> LiveRun | None:
    """Let the user choose one of the recorded runs; return it, or None.

    The list includes runs that other and earlier gemtui processes started. From the list, the user
    can also stop active runs and restore lost sessions.
    """
    search = ""
    while found := await registry.find():
        lost = {each.folder for each in await asyncio.to_thread(last_copies, registry.adapter.runs)}
        screen = RunListScreen(found, only_copies=lost, search=search)
        wanted, search = await app.push_screen_wait(screen), screen.search
        if wanted is None:
            return None
        if wanted.what is RunAction.STOP:
            await _stop(app, wanted.run)
            continue
        if wanted.what is RunAction.RESTORE:
            await put_back_of_run(app, wanted.run.folder)
            continue
        run = await registry.attach(wanted.run)
        if run is None:
            app.show_message("This run can't be shown, because its files are corrupt.", problem=True)
        return run
    app.show_message("No runs yet.")
    return None


async def _stop(app: AppBase, run: Run) -> None:
    """End all processes of a run.

    This works even if the run's supervisor (the process that watches it) is gone.
    """
    if not run.alive:
        app.show_message("This run has no running processes.")
        return
    app.show_message("Stopping (SIGTERM)")
    with app.reporting("The run's result could not be saved"):
        ended = await asyncio.to_thread(stop_run, run)
        app.show_message("Stopped" if ended else "Some of the run's processes could not be stopped. Try again.")


async def may_leave(app: AppBase, registry: RunRegistry) -> bool:
    """Ask what to do about active runs; return whether gemtui may quit.

    Runs started by other gemtui processes are ignored. The user can stay, leave the runs running,
    or stop them.
    """
    prompts = [run.prompt for run in _ours(registry)]
    prompts += [starting.prompt for starting in registry.starting]
    count = len(prompts)
    which = "A run is still active" if count == 1 else f"{count} runs are still active"
    asks = [run for run in _ours(registry) if run.waiting]
    waits = any(run.queue_state.prompts for run in _ours(registry))
    asking = ""
    if asks:
        asking = " and needs an answer" if count == 1 else f"; {len(asks)} need an answer"
    answer = await app.push_screen_wait(
        ChooseScreen(
            clean(f"{which}{asking}."),
            [ellipsis(clean(prompt.split("\n", 1)[0]), 66) for prompt in prompts[:5]],
            (
                Choice("stay", Clean("Stay"), Clean("don't quit")),
                Choice("leave", Clean("Leave it running"), _left(asks, waits=waits)),
                Choice("stop", Clean("Stop it and quit"), Clean("SIGTERM, then SIGKILL")),
            ),
        )
    )
    starts = [starting.task for starting in registry.starting]
    if answer == "stop":
        app.show_message("Stopping (SIGTERM)")
        runs = _ours(registry)
        for start in starts:
            start.cancel()
        for run in runs:
            run.stop()
        await asyncio.gather(*(run.run.wait() for run in runs), *starts, return_exceptions=True)
    elif answer == "leave":
        await asyncio.gather(*starts, return_exceptions=True)
    return answer in ("stop", "leave")


def _left(asks: Sequence[LiveRun], *, waits: bool) -> Clean:
    """Return words on what happens to runs that keep running after gemtui quits.

    `asks`: the runs that have an unanswered question. `waits`: whether any of the runs has a queue.
    """
    if not asks:
        return Clean(f"open gemtui again to see it{'; the queue is kept' * waits}")
    refused = any(run.away is Away.REFUSE for run in asks)
    return Clean("its question will be denied" if refused else "its question will keep waiting")


def _ours(registry: RunRegistry) -> list[LiveRun]:
    return [run for run in registry.alive if run.ours]


async def start_run(
    app: AppBase,
    registry: RunRegistry,
    prompt: str,
    options: AgentOptions,
    before: Transcript | None,
    *,
    id: str | None = None,
) -> LiveRun | None:
    """Ask any necessary questions about a run's folder and settings, then start it.

    `before`: the conversation that the run continues, or None. `id`: the run's id; None creates
    one. If the run can't ask the user for approval of its calls, the user chooses whether to run
    anyway. If the run isn't started, the reason is shown and None is returned.
    """
    trust = options.trust or await trusted(app, options)
    if trust is None:
        return None
    wanted = replace(options, trust=trust)
    if not await _told(app, wanted):
        return None
    while True:
        try:
            run = await registry.start(prompt, wanted, before=before, id=id)
        except GateError as error:
            changed = await _without_gate(app, wanted, error)
            if changed is None:
                return None
            wanted = changed
            continue
        except (GemtuiError, OSError) as error:
            app.show_message(f"The run was not started: {error}", problem=True)
            return None
        about = run.run.request.about or {}
        if "worktree" in about and about["notes"]:
            app.show_message(f"Run started: {'; '.join(about['notes'])}.")
        return run


async def hand_over_queue(app: AppBase, run: LiveRun, to: LiveRun) -> None:
    """Move a finished run's queued prompts to the run `to`.

    `to`: the run that continues the finished run's session.
    """
    with app.reporting("The queue could not be moved to the new run"):
        await asyncio.to_thread(hand_on, run.run.folder, to.run.folder)
    await run.refresh_queue()


async def keep_options(app: AppBase, run: LiveRun, options: AgentOptions) -> None:
    """Store the options with which the prompts in a run's queue will be sent."""
    with app.reporting("Queued prompts keep their old options"):
        await run.keep_options(options)


async def _without_gate(app: AppBase, options: AgentOptions, error: GateError) -> AgentOptions | None:
    """Explain why a run can't ask the user for approval, and offer alternatives.

    Returns the options for another attempt to start the run, or None to give up. `error`: why the
    run can't ask.
    """
    install = Choice("install", Clean("Install the extension"), Clean("then start the run with Ask me on"))
    answer = await app.push_screen_wait(
        ChooseScreen(
            Clean("This run can't ask for your approval"),
            (*map(clean_line, textwrap.wrap(str(error), 70)), Clean("")),
            (
                Choice("no", Clean("Don't run"), Clean("the prompt is kept")),
                *((install,) if error.install else ()),
                Choice("unasked", Clean("Run without asking"), Clean("calls that need approval are denied")),
            ),
        )
    )
    if answer == "unasked":
        return replace(options, ask=False)
    if answer == "install" and await _install_extension(app):
        return options
    return None


async def _install_extension(app: AppBase) -> bool:
    """Explain gemtui's extension, offer to install it, and return whether it works."""
    from gemtui.ui.kit.extension_dialog import ask_to_install

    return await ask_to_install(app)


async def show_difference(app: AppBase, run: LiveRun, write: FileWrite) -> None:
    """Show a screen that compares a file before the run with the file as it is now.

    `write`: the file, as listed among the changed files.
    """
    from gemtui.ui.run.difference_screen import DifferenceScreen

    found = await run.files.difference(Path(write.path))
    row = write_row(write, run.cwd, app.glyphs)
    await app.push_screen_wait(DifferenceScreen(row, write.path.name, found))


def show_stderr(app: AppBase, run: LiveRun) -> None:
    """Show a run's stderr output on a screen of its own; if it is long, only the end."""
    try:
        text = read_end(run.run.folder.stderr, MOST_STDERR).decode("utf-8", "replace")
    except OSError:
        text = ""
    if text.strip():
        show_text(app, "stderr", text, what="stderr")
    else:
        app.show_message("Gemini CLI has written nothing to stderr.")
