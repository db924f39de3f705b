"""Starting a run, and the questions to ask the user before: trust, settings, approval."""

from __future__ import annotations

import asyncio
import os
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from gemtui.agent import trust
from gemtui.agent.options import AgentOptions
from gemtui.agents import WORDS, Agent
from gemtui.errors import GateError, GemtuiError, message_of
from gemtui.paths import current_folder
from gemtui.runs.before_run import Report, before_run_report
from gemtui.text import clean_line, visible
from gemtui.ui.kit.dialogs import Choice, ChooseScreen, confirm
from gemtui.ui.kit.text_view import RawScreen

if TYPE_CHECKING:
    from gemtui.transcript.model import Transcript
    from gemtui.ui.kit.app_base import AppBase
    from gemtui.ui.run.live_run import LiveRun
    from gemtui.ui.run.registry import RunRegistry

MOST_TOLD = 6
"""Maximum number of lines about a folder's settings in a dialog before a run."""


async def trusted(
    app: AppBase, options: AgentOptions, environ: Mapping[str, str] = os.environ
) -> bool | None:
    """Return whether a run needs Gemini CLI's option to trust the folder.

    Returns None if the run must not start, because the user refuses to trust the folder. The user
    is asked only if Gemini CLI would otherwise refuse to work in the folder and the user hasn't
    trusted it before. `environ`: the environment variables of the run.
    """
    folder = options.cwd or current_folder()
    trust_level = await asyncio.to_thread(trust.trust_of, folder, environ)
    if trust_level is not trust.FolderTrust.NOBODY:
        return trust_level is trust.FolderTrust.GEMTUI
    report = await asyncio.to_thread(before_run_report, options, environ)
    about = (
        clean_line(str(folder)),
        "",
        f"{WORDS[options.agent].program} does not trust this folder, so it won't work here.",
        "Trusting it also activates the settings, hooks and MCP servers",
        "that it contains. To revoke this later, choose Trusted folders in ^p.",
    )
    yes = Choice("yes", "Trust and run", "gemtui remembers this")
    if not await _agreed(app, "Trust this folder?", about, yes, report):
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
        title = "Before this run"
        about = (
            clean_line(str(report.folder)),
            "",
            "Settings that act without asking:",
        )
        yes = Choice("yes", "Run", "ask again only if something changes")
        return await _agreed(app, title, about, yes, report)
    if report.changed or (report.notices and not report.seen):
        app.show_message(report.message)
        await _remember(app, report)
    return True


async def _agreed(
    app: AppBase, title: str, about: Sequence[str], yes: Choice, report: Report
) -> bool:
    """Show the start of a report on what settings do in a run, and ask whether to run.

    The user can also open the full report. If they agree to run, it is recorded that they have seen
    the report. Returns whether they agree. `about`: lines to show above the report. `yes`: the
    option to agree.
    """
    lines = [
        clean_line(line) for paragraph in report.lines() for line in textwrap.wrap(paragraph, 70)
    ]
    rest = len(lines) - MOST_TOLD
    choices = [Choice("no", "Don't run", "the prompt is kept"), yes]
    if rest > 0:
        choices.append(Choice("show", "Show everything", f"{rest} more lines"))
    while True:
        asked = ChooseScreen(title, (*about, *lines[:MOST_TOLD]), choices)
        answer = await app.push_screen_wait(asked)
        if answer != "show":
            break
        whole = visible("\n".join(report.lines()))
        heading = "What this folder's settings do without asking"
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
        rows = [
            Choice(folder.path, clean_line(folder.path), _PLACES[folder.place])
            for folder in folders
        ]
        about = ("Runs started with gemtui trust these folders. Choose one to revoke its trust.",)
        chosen = await app.push_screen_wait(ChooseScreen("Trusted folders", about, rows))
        if chosen is None:
            return
        sure = await confirm(
            app,
            "Revoke trust?",
            clean_line(chosen),
            ("gemtui will ask again before the next run there.",),
            yes="Revoke trust",
            no="Keep it",
        )
        if sure:
            with app.reporting("Trust could not be revoked"):
                await asyncio.to_thread(trust.forget, Path(chosen))
    app.show_message("No trusted folders.")


_PLACES = {
    trust.TrustState.SAME: "",
    trust.TrustState.REPLACED: "no longer trusted: replaced by another folder",
    trust.TrustState.GONE: "folder not found",
}


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
    try:
        await asyncio.to_thread(registry.adapter.cli, options.agent)
        return await _agreed_start(app, registry, prompt, options, before, id)
    except (GemtuiError, OSError) as error:
        app.show_message(f"The run was not started: {message_of(error)}", problem=True)
        return None


async def _agreed_start(
    app: AppBase,
    registry: RunRegistry,
    prompt: str,
    options: AgentOptions,
    before: Transcript | None,
    id: str | None,
) -> LiveRun | None:
    """Start a run if the user agrees; return None if not. Raises what `registry.start` raises."""
    has_trust = options.agent is Agent.GEMINI
    trust = options.trust or (await trusted(app, options) if has_trust else False)
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
        about = run.run.request.about
        if "worktree" in about and about["notes"]:
            app.show_message(f"Run started: {'; '.join(about['notes'])}.")
        return run


async def _without_gate(
    app: AppBase, options: AgentOptions, error: GateError
) -> AgentOptions | None:
    """Offer to install the extension, so that the run can ask the user for approval.

    If that doesn't help, or if the user declines, explain why the run can't ask. Returns the
    options for another attempt to start the run, or None to give up. `error`: why the run can't
    ask.
    """
    if error.install:
        from gemtui.ui.kit.extension_dialog import ask_to_install

        if await ask_to_install(app):
            return options
    answer = await app.push_screen_wait(
        ChooseScreen(
            "This run can't ask for your approval",
            (*map(clean_line, textwrap.wrap(f"The reason: {error.what}.", 70)), ""),
            (
                Choice("no", "Don't run", "the prompt is kept"),
                Choice("unasked", "Run without asking", "calls that need approval are denied"),
            ),
        )
    )
    return replace(options, ask=False) if answer == "unasked" else None
