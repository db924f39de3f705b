"""The policy being edited: opening and saving it, what affects it, and the command it leads to."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from gemtui.agent.command import Machine, command_of, policy_warnings
from gemtui.agent.options import AgentOptions
from gemtui.agents import Agent
from gemtui.errors import GemtuiError
from gemtui.policy.check.pitfalls import mode_findings
from gemtui.policy.edit.store import Origin, PolicyFile
from gemtui.policy.examples import Tried, examples_of, try_examples
from gemtui.policy.model.rules import Finding, Rule
from gemtui.policy.suggest.saved_rules import AUTO_SAVED, SavedRule, SavedRules, saved_findings
from gemtui.runs.call_history import recorded_calls
from gemtui.runs.listing import last_policies
from gemtui.ui.policy import files
from gemtui.ui.policy.edits import EditedDocument, Make
from gemtui.ui.policy.files import FileAction, FileChoice, PolicyFilesScreen, watch_file
from gemtui.ui.rules.draft import Draft
from gemtui.ui.simulator.call_scan import CallHistory

if TYPE_CHECKING:
    from gemtui.ui.kit.app_base import AppBase


NAMED = (Origin.OURS, Origin.FILE)
"""The origins of policy files that gemtui passes to a run with `--policy`.

Gemini CLI loads policy files of other origins by itself.
"""
RUN = "RUN"
"""Stands for the folder and the id of the run in the preview; there is no run yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandPreview:
    """The command of a run that would use the policy, or why there is none.

    `script`: the command as lines to paste into bash or zsh; it reads the prompt from the file
    `prompt.txt`. `recipient`: the program that receives the arguments. `environ`: the environment
    variables to set, as NAME=VALUE. `argv`: the program and its arguments. `problem`: why there is
    no command. `notes`: what the user should know about the command.
    """

    script: str = ""
    recipient: str = ""
    environ: tuple[str, ...] = ()
    argv: tuple[str, ...] = ()
    problem: str = ""
    notes: tuple[str, ...] = ()


def command_preview(
    draft: Draft, machine: Machine, recipient: str, *, runs: Path, cwd: Path
) -> CommandPreview:
    """Return the command of a run in `cwd` with the draft's policy and mode.

    `draft`: the policy being edited. `machine`: facts about the installed Gemini CLI. `recipient`:
    the program that would receive the arguments. `runs`: the folder that contains one subfolder for
    each run's own files. Blocking: checks which files exist.
    """
    if draft.opened is None:
        return CommandPreview(problem="Save the policy to see its command here.")
    given = _named_files(draft)
    folder = runs / str(uuid.uuid4())
    try:
        options = AgentOptions(cwd=cwd, approval_mode=draft.mode, policies=given)
        command = command_of("", options, machine, folder=runs / RUN, session_id=RUN)
        pasted = command_of("", options, machine, folder=folder, session_id=None)
        shown = set(policy_warnings(given, draft.mode))
    except GemtuiError as error:
        return CommandPreview(problem=str(error))
    notes = []
    if draft.changed:
        notes.append("uses the saved file, without your unsaved changes")
    if not given:
        notes.append("Gemini CLI loads this file itself, in every session")
    notes += [note for note in command.notes if note not in shown]
    return CommandPreview(
        script="\n".join(pasted.script(None, folder, cwd)),
        recipient=recipient,
        environ=tuple(f"{name}={value}" for name, value in command.environ.items()),
        argv=command.argv,
        notes=tuple(notes),
    )


class UnmatchedRules(NamedTuple):
    """Rules that matched no recorded call, and the number of sessions that were searched."""

    rules: tuple[SavedRule, ...] = ()
    sessions: int = 0

    def findings(self) -> tuple[Finding, ...]:
        """Return a warning for each rule."""
        return tuple(saved_findings(self.rules, self.sessions))

    def better(self, rule: Rule) -> Rule | None:
        """Return the rule that would match in the place of `rule`; None if there is none."""
        for saved in self.rules:
            if saved.rule == rule:
                return saved.better
        return None


def _named_files(draft: Draft) -> tuple[Path, ...]:
    file = None if draft.opened is None else draft.opened.file
    return () if file is None or file.origin not in NAMED else (file.path,)


class PolicyEditor:
    """Edits one policy at a time, `draft`, as it would apply to runs in `folder`.

    `changed`: called when there is something new to show. `begun`: an event that is set once the
    first policy has been opened or it is clear that there is none.
    """

    def __init__(self, app: AppBase, folder: Path, *, changed: Callable[[], None]) -> None:
        self._app, self.folder, self._changed = app, folder, changed
        self.draft = Draft()
        self.begun = asyncio.Event()
        self._machine: tuple[Machine, str] | None = None
        self._unmatched: tuple[str, UnmatchedRules] | None = None
        """The newest result of `unmatched_rules`, and the file's text that it is for."""

    @property
    def named_files(self) -> tuple[Path, ...]:
        """The files that a run must name to use the policy; () if Gemini CLI loads it by itself."""
        return _named_files(self.draft)

    # --- loading -------------------------------------------------------------------------------

    async def begin(self) -> None:
        """Open the policy of this folder's last run, or else the first of gemtui's own.

        Afterwards, load everything on which the run's command depends.
        """
        with self._app.reporting():
            files = await self._files()
            used = await asyncio.to_thread(last_policies, self._app.adapter.runs, self.folder)
            ours = next((file for file in files if file.path in used), None)
            if ours is None:
                ours = next((file for file in files if file.origin is Origin.OURS), None)
            if ours is not None and not self.draft.changed:
                await self.open(ours)
        self.begun.set()
        self._changed()
        await self.load_context()

    async def _files(self) -> tuple[PolicyFile, ...]:
        return await asyncio.to_thread(files.relevant_policies, self.folder)

    async def load_context(self) -> None:
        """Load whatever affects decisions and the command besides the draft's own rules.

        This means the other policy files, the settings, and the installed Gemini CLI.
        """
        draft = self.draft
        context = draft.around
        with self._app.reporting():
            context = await asyncio.to_thread(files.policy_context, draft.opened, self.folder)
        for problem in context.problems:
            if problem not in draft.around.problems:
                self._app.show_message(problem, problem=True)
        draft.asks = await self._app.next_run_asks(self.folder)
        if context != draft.around:
            draft.set_context(context)
        self._machine = await asyncio.to_thread(self._app.adapter.planned_machine, self.folder)
        self._changed()

    def preview(self) -> CommandPreview:
        """Return the command of a run with the policy as it was last saved."""
        if self._machine is None:
            return CommandPreview()
        machine, recipient = self._machine
        runs = self._app.adapter.runs
        return command_preview(self.draft, machine, recipient, runs=runs, cwd=self.folder)

    def mode_findings(self) -> tuple[Finding, ...]:
        """Return the findings about the draft's own rules that concern the selected mode."""
        draft = self.draft
        own = draft.document.source
        try:
            findings = mode_findings(draft.policy, draft.mode, draft.setup)
        except GemtuiError:  # the table of tools shows this error
            return ()
        return tuple(finding for finding in findings if str(finding.file) == str(own))

    def unmatched_rules(self) -> UnmatchedRules:
        """Return the rules that Gemini CLI saved, but that matched no recorded call.

        Slow for such a file: reads all sessions. For other files, there are none. Raises
        StoreUnreadable.
        """
        draft, text = self.draft, self.draft.document.text
        if draft.opened is None or draft.opened.file.path.name != AUTO_SAVED:
            return UnmatchedRules()
        if self._unmatched is None or self._unmatched[0] != text:
            start, saved = self._app.start, SavedRules(draft.document.policy.rules)
            history = CallHistory(start.home, cache=start.cache).with_calls()
            sessions = [session for session in history if session.agent is Agent.GEMINI]
            for step in recorded_calls(sessions, cancelled=lambda: draft.document.text != text):
                saved.feed(step.calls)
            self._unmatched = text, UnmatchedRules(saved.unmatched(), len(sessions))
        return self._unmatched[1]

    def examples(self) -> tuple[Tried, ...]:
        """Return the file's examples, each with what the file's own rules decide.

        An example is a tool call that the file's author wrote down with the decision it should get.
        """
        document = self.draft.document
        return try_examples(examples_of(document.text), document.policy)

    async def watch(self, file: PolicyFile) -> None:
        """Reload the file whenever another program has written it.

        If the draft has unsaved changes, it isn't reloaded, but marked as changed on disk. Runs
        until cancelled, or until the file's folder can't be watched.
        """
        async for fresh in watch_file(file):
            draft = self.draft
            if draft.opened is None or draft.opened.file.path != file.path:
                continue
            if draft.opened.seen == fresh.seen:
                continue
            if draft.changed:
                draft.moved_on = True
            else:
                draft.read(fresh)
                self._app.show_message("Reloaded, because another program changed the file.")
            self._changed()

    async def edit(self, make: Make) -> EditedDocument | None:
        """Apply an edit to the draft; return the result, or None if nothing was changed.

        The edited file is checked on a background thread first, because that takes a while for a
        large file. If the draft changes in the meantime, the edit is applied to the changed draft
        instead.
        """
        while True:
            draft, seen = self.draft, self.draft.document
            try:
                made = make(seen)
            except GemtuiError as error:
                self._app.show_message(str(error), problem=True)
                return None
            if made is None:
                return None
            await asyncio.to_thread(made.document.check)
            if draft is self.draft and draft.document is seen:
                return made if draft.change(made.document, made.what) else None

    # --- files ---------------------------------------------------------------------------------

    async def open(self, file: Path | PolicyFile) -> None:
        """Open a different policy file.

        If the user edits the current draft while the file is being read, the draft stays open.
        """
        seen = self.draft.document
        opened = await files.load(self._app, file)
        if opened is not None and self.draft.document is seen:
            self.draft = Draft(opened, mode=self.draft.mode)
            await self.load_context()

    async def open_own_policy(self, wanted: Sequence[Path]) -> None:
        """Open one of gemtui's own policies, so that a rule can be added to it.

        If possible, this is one of `wanted`; otherwise the open policy, if it is gemtui's own;
        otherwise the first of gemtui's own, or a new one if there are none. Gemini CLI's own files
        are never chosen, because they affect every session. A draft with unsaved changes stays
        open.
        """
        opened = self.draft.opened
        if self.draft.changed:
            return
        ours = [file for file in await self._files() if file.origin is Origin.OURS]
        named = next((file for file in ours if file.path in wanted), None)
        if named is None and (opened is None or opened.file.origin is Origin.OURS):
            return
        target = named or next(iter(ours), None)
        if target is None:
            self.draft = Draft(mode=self.draft.mode)
            await self.load_context()
        elif opened is None or target.path != opened.file.path:
            await self.open(target)

    async def save(self) -> bool:
        """Save the draft, and return whether it was saved."""
        saved = await files.save_draft(self._app, self.draft)
        await self.load_context()
        return saved

    async def choose(self) -> None:
        """Let the user open a different policy, or create, rename or delete one."""
        opened = self.draft.opened
        here = None if opened is None else opened.file.path
        screen = PolicyFilesScreen(await self._files(), here)
        wanted = await self._app.push_screen_wait(screen)
        if wanted is not None:
            await self._do(wanted, here)

    async def _do(self, wanted: FileChoice, here: Path | None) -> None:
        app, file = self._app, wanted.file
        if wanted.what is FileAction.NEW:
            if await self._let_go() and await files.create_policy(app, fresh := Draft(), ""):
                self.draft = fresh
        elif file is None or (file.path == here and not await self._let_go()):
            return
        elif wanted.what is FileAction.OPEN:
            if file.path == here or await self._let_go():
                await self.open(file)
        elif wanted.what is FileAction.RENAME:
            path = await files.ask_new_name(app, file)
            if path is not None and file.path == here:
                await self.open(path)
        elif await files.confirm_deletion(app, file) and file.path == here:
            self.draft = Draft(mode=self.draft.mode)
        await self.load_context()

    async def _let_go(self) -> bool:
        return await files.may_close(self._app, self.draft, leaving="continue")
