"""The run pane: the prompt, the live transcript and the changed files."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import ClassVar

from textual import events, on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content
from textual.signal import Signal

from gemtui.agent.detect import Detected
from gemtui.agent.drivers import driver_of
from gemtui.agent.options import AgentOptions
from gemtui.agents import Agent
from gemtui.paths import prompts_file
from gemtui.policy.model.rules import ApprovalMode
from gemtui.text import clean_line
from gemtui.transcript.model import Transcript
from gemtui.ui.kit.bars import BarLine, FooterLine, StatusLine
from gemtui.ui.kit.editor import edit_file
from gemtui.ui.kit.keys import BY_ID, Where, bindings
from gemtui.ui.kit.messages import BackRequested, FileRequested, HistoryRequested, TranscriptMoved
from gemtui.ui.kit.screens import DIALOG
from gemtui.ui.run.asking import Asking, show_whole
from gemtui.ui.run.end_card import EndRows, WriteList
from gemtui.ui.run.labels import (
    cli_words,
    clock,
    mode_word,
    option_parts,
    position,
    prompt_words,
    run_glyph,
    status_parts,
    write_totals,
)
from gemtui.ui.run.list_dialog import choose_run
from gemtui.ui.run.live_run import LiveRun, Stage, only_running_call
from gemtui.ui.run.next_run import NextRun
from gemtui.ui.run.panes import RunPane, RunPanes
from gemtui.ui.run.prompt import PromptArea, PromptBox
from gemtui.ui.run.prompt_sources import History, PromptDrafts
from gemtui.ui.run.question_pane import QuestionPane
from gemtui.ui.run.readying import Readying
from gemtui.ui.run.registry import RunRegistry
from gemtui.ui.run.run_keys import GOES_ON, STOP_AGAIN, RunKeys
from gemtui.ui.run.sending import Sending
from gemtui.ui.run.spending import Spending

FRAMES = 15
"""Frames per second when there is new output."""
_COSTS = 30.0
"""Seconds between two updates of the costs below the prompt."""


class RunScreen(RunPane):
    """Shows one run at a time; other runs continue and can be chosen from a list.

    `folder`: the folder that gemtui was opened on. `may_start`: called with a run's policy files
    before the run starts; returns False to cancel it. `changed`: published with None when a run has
    started, or with the run when one has ended.
    """

    BINDINGS: ClassVar[list[BindingType]] = bindings(Where.RUN)
    AUTO_FOCUS = "PromptArea"
    RARELY_ASKS = frozenset({"_send"})

    def __init__(
        self,
        registry: RunRegistry,
        folder: Path,
        *,
        may_start: Callable[[Sequence[Path]], Awaitable[bool]],
        changed: Signal[LiveRun | None],
    ) -> None:
        super().__init__()
        self._registry, self._changed = registry, changed
        self._cli: Detected | None = None
        self._agent = Agent.GEMINI
        """The agent that `_cli` is about."""
        self._drafts = PromptDrafts(registry)
        self._stood: tuple[Stage, bool, bool, bool] | None = None
        """The state of the run when it was last painted.

        It consists of the stage, whether prompts are queued, and whether the stored session has
        been loaded.
        """
        self._calls = 0
        """How many calls the run had made when its costs were last computed."""
        self._frame = self._busy = 0
        self._reported: set[tuple[str, str]] = set()
        """The messages about checkpoints that have been shown, each with its run's id."""
        self.ready = asyncio.Event()
        self.next_run = NextRun(self, folder)
        self._sending = Sending(self, registry, self.next_run, may_start)
        self.readying = Readying(self, registry, self.next_run, self._sending.session)
        self._asking = Asking(self)
        self._keys = RunKeys(self, registry, self.next_run)
        self._spending = Spending(self)
        self.add_parts(self.next_run, self._sending, self._asking, self._keys)

    def compose(self) -> ComposeResult:
        yield BarLine(id="header")
        yield RunPanes()
        yield QuestionPane()
        yield StatusLine()
        yield PromptBox(History(prompts_file()), id="prompt")
        yield FooterLine()

    def on_mount(self) -> None:
        """Show an active run of the folder that gemtui was opened on; look for Gemini CLI.

        Runs in other folders are only mentioned: prompts for them would run there.
        """
        self._frames = self.set_interval(1 / FRAMES, self.paint)
        self.set_interval(1.0, self._tick)
        self._changed.subscribe(self, self._run_changed)
        at_home = [run for run in self._registry.alive if self.next_run.is_home(run.cwd)]
        if at_home:
            self.show_run(max(at_home, key=lambda run: bool(run.waiting)))
        self.show_options()
        self.next_run.load_remembered()
        self.next_run.find_agent()
        self._look_for_cli()
        self.set_interval(_COSTS, self._spending.recompute)
        self._update_header()
        self._say_nothing_yet()
        self.ready.set()

    def on_screen_resume(self) -> None:
        if self.run_shown is not None:
            self.run_shown.looked_at = True
        self.panes.stale()
        self._frames.resume()
        self.paint()
        self._update_header()
        self.next_run.detect_mode()
        self._spending.recompute()

    @work(exclusive=True, group="cli")
    async def _look_for_cli(self) -> None:
        self._agent, self._cli = self.options.agent, None
        driver = driver_of(self._agent)
        self._cli = await asyncio.to_thread(driver.detect, os.environ, None)
        self._update_header()
        self._say_nothing_yet()

    # --- contents ------------------------------------------------------------------------------

    @property
    def options(self) -> AgentOptions:
        """The options of the next run."""
        return self.next_run.options

    def shows(self, run: LiveRun) -> bool:
        """Return whether this run is on screen."""
        return self.ready.is_set() and run is self.run_shown

    def show_run(self, run: LiveRun, *, fresh: bool = True) -> None:
        """Show a run.

        `fresh`: False if the run continues the one on screen, so that the view stays as it is.
        """
        run.stirred = self._frames.resume
        self._asking.clear()
        self.next_run.like(run)
        self.panes.show_run(run, fresh=fresh)
        self.paint()
        self.show_options()

    def new_run_in(self, folder: Path) -> None:
        """Show an empty pane for new runs in a folder that the user has chosen."""
        self.next_run.home = folder
        self.prepare(folder)

    def prepare(
        self,
        folder: Path,
        *,
        resume: str | None = None,
        agent: Agent | None = None,
        before: Transcript | None = None,
        prompt: str = "",
    ) -> None:
        """Show an empty pane for a new run in this folder, or for continuing a session.

        `resume`, `agent`: the session's id and agent. `before`: the session's conversation.
        `prompt`: replaces the text in the prompt; "" keeps it.
        """
        self._change_draft(None, resume)
        self._asking.clear()
        self.next_run.go_to(folder)
        self.next_run.resume(resume, agent)
        self.show_status()
        name = None if resume is None else self.gemtui.name_of(resume)
        self.panes.prepare(before, name, resume)
        self._say_nothing_yet()
        self.show_options()
        self._update_header()
        if prompt:
            self.prompt.set_text(prompt)
        self.prompt.focus()

    def _change_draft(self, to: LiveRun | None, resume: str | None = None) -> None:
        """Store the unsent prompt, and restore the one for the run or session shown next.

        `to`: the run that is shown next, or None. `resume`: if `to` is None, the id of the session
        that the next run continues, or None for a new one.
        """
        shown = self.next_run.options.resume if self.run_shown is None else self.run_shown.id
        text = self._drafts.exchange(shown, self.prompt.text, to, resume)
        if text != self.prompt.text:
            self.prompt.set_text(text)

    async def use_policies(self, policies: tuple[Path, ...], mode: ApprovalMode | None) -> None:
        """Use these policy files and this mode for the next run.

        `mode`: None keeps the mode, and the focus where it is.
        """
        await self.next_run.wait_loaded()
        self.next_run.use_policies(policies, mode)
        if mode is not None:
            self.prompt.focus()

    def paint(self) -> None:
        """Draw the changes in the run on screen since the last frame."""
        run = self.run_shown
        self._frame += 1
        if not self.is_current or self._frame > self._busy + FRAMES:
            self._frames.pause()  # until the run stirs
        if run is None or not self.is_current:
            return
        self._asking.show(run)
        self._report_checkpoints(run)
        if self.panes.paint():
            self._busy = self._frame
            stood = run.stage, run.works, bool(run.queue_state.prompts), run.told is not None
            if self._stood != stood:
                self._stood = stood
                self.refresh_bindings()
                self.show_options()
                self._spending.recompute()
            elif run.told is None and run.progress.calls != self._calls:
                self._calls = run.progress.calls  # earlier answers' tokens are recorded now
                self._spending.recompute()

    def _tick(self) -> None:
        """Show the time that has passed, unless the run waits for the user's answer."""
        run = self.run_shown
        if run is not None and run.alive and self.is_current:
            self.paint()
            if not run.waiting:
                self.show_state(run)
            lasting = None if run.waiting else only_running_call(run, self.gemtui.clock())
            self.view.show_time(None if lasting is None else (lasting[0], clock(lasting[1])))

    def _report_checkpoints(self, run: LiveRun) -> None:
        """Show messages about a run's checkpoints, each only once.

        They say why the run has no checkpoints, and which interrupted undo operations its
        supervisor (the process that watches it) has completed.
        """
        problem, settled = run.reports.unprotected, " ".join(run.reports.settled_undos)
        if problem and (run.id, problem) not in self._reported:
            self._reported.add((run.id, problem))
            self.show_state(run)
            self.gemtui.show_message(f"Undo won't cover all of this run: {problem}", problem=True)
        if settled and not run.past and (run.id, settled) not in self._reported:
            self._reported.add((run.id, settled))
            self.gemtui.show_message(settled)

    def _run_changed(self, run: LiveRun | None) -> None:
        """Update the pane after a run has started or ended.

        `run`: the run that has ended; None if a run has started. If the queue has been moved to a
        new run, that run is shown.
        """
        self._update_header()
        self._say_nothing_yet()
        if run is None or run is not self.run_shown:
            return
        if self.status.told in (GOES_ON, STOP_AGAIN):
            self.status.end_message(at_once=True)
        self.panes.stale()
        self.paint()
        self.show_options()
        for note in run.notes:
            self.gemtui.show_message(note)
        self._sending.show_next(run)

    def action_new(self) -> None:
        """Show an empty pane for a new run; the active runs continue."""
        self.prepare(self.next_run.home)

    @work(exclusive=True, group=DIALOG)
    async def action_runs(self) -> None:
        run = await choose_run(self.gemtui, self._registry)
        if run is not None:
            self._change_draft(run)
            self.show_run(run)

    # --- the prompt ----------------------------------------------------------------------------

    @on(PromptArea.Changed)
    def _typed(self) -> None:
        self.readying.update()

    @on(PromptArea.Submitted)
    def _submitted(self, event: PromptArea.Submitted) -> None:
        if self._may_send(event.text):
            self._sending.submit(event.text)

    @on(PromptArea.SaidNow)
    def _said_now(self, event: PromptArea.SaidNow) -> None:
        if self._may_send(event.text):
            self._sending.send_now(event.text)

    def _may_send(self, text: str) -> bool:
        """Return whether the prompt still contains a text, rather than having just been sent."""
        return not self.asking and self.prompt.text.startswith(text)

    @on(PromptArea.ModeRequested)
    def _next_mode(self) -> None:
        self.next_run.use_next_mode()

    # --- navigation ----------------------------------------------------------------------------

    def action_write(self) -> None:
        self.prompt.focus()

    @on(PromptArea.PromptLeft)
    def _leave_prompt(self) -> None:
        if self._asking.focus_question() or self.panes.to_card():
            return
        self._to_transcript()
        if self.run_shown is not None and self.run_shown.alive:
            self.gemtui.show_message(GOES_ON)

    @on(QuestionPane.QuestionLeft)
    def _to_transcript(self) -> None:
        self.set_focus(None if self.panes.empty else self.view)

    @on(BackRequested)
    def go_back(self) -> bool:
        """Go back one step; return False if the prompt already has the focus.

        The focus goes from the list of changed files to the transcript, then to an unanswered
        question, and finally to the prompt. The message on how the run ended is hidden on the way.
        """
        if self.panes.go_back():
            return True
        if not self.question.view.has_focus and self._asking.focus_question():
            return True
        if self.focused is self.prompt:
            return False
        self.prompt.focus()
        return True

    @on(FileRequested)
    def _file(self, event: FileRequested) -> None:
        edit_file(self.gemtui, event.path, event.line, self.options.cwd)

    @on(HistoryRequested)
    def _history(self, event: HistoryRequested) -> None:
        event.stop()
        self.app.post_message(HistoryRequested(str(self._keys.folder / event.path)))

    @on(EndRows.ReviewRequested)
    def _review(self, event: EndRows.ReviewRequested) -> None:
        self._keys.review(event.write)

    @on(WriteList.DiffRequested)
    @work(exclusive=True, group=DIALOG)
    async def _show_diff(self, event: WriteList.DiffRequested) -> None:
        if self.run_shown is not None:
            from gemtui.ui.run.difference_screen import show_difference

            await show_difference(self.gemtui, self.run_shown, event.write)

    # --- questions -----------------------------------------------------------------------------

    @on(QuestionPane.Answered)
    def _answered(self, event: QuestionPane.Answered) -> None:
        if not self.asking and event.shown is self.question.shown:
            self._asking.answered(event)

    @on(QuestionPane.WholeRequested)
    def _whole(self, event: QuestionPane.WholeRequested) -> None:
        show_whole(self.gemtui, self.question, event.shown)

    # --- texts ---------------------------------------------------------------------------------

    def _update_header(self) -> None:
        looking = Content.styled(f"looking for {self.next_run.program}", "dim")
        right = [looking if self._cli is None else cli_words(self._cli, self.options.agent)]
        first = BY_ID["prompt.leave"].footer() if self.focused is self.prompt else ""
        self.header.show_parts(self.gemtui.tabs("app.runs", first=first), right)

    @on(events.DescendantFocus, "PromptArea")
    @on(events.DescendantBlur, "PromptArea")
    def _prompt_took_the_keys(self) -> None:
        self.call_after_refresh(self._say_which_keys)

    @on(EndRows.OptionHighlighted, "#end-rows")
    def _say_which_keys(self) -> None:
        """Show the keys that work now in the header and on the card of a finished run."""
        self._update_header()
        if self.run_shown is not None and not self.run_shown.alive:
            self.show_state(self.run_shown)

    def _say_nothing_yet(self) -> None:
        mode = mode_word(self.options, self.next_run.usual)
        self.panes.show_empty(
            self.next_run.folder,
            [run.cwd for run in self._registry.alive],
            None if self._cli is None else self._cli.problem,
            offers_extension=self.next_run.offers_extension and mode == ApprovalMode.DEFAULT,
        )

    def show_state(self, run: LiveRun) -> None:
        """Show a run's state in the status line, the panes and the window title."""
        glyphs = self.gemtui.glyphs
        left = [*status_parts(run, glyphs, self.gemtui.clock())]
        totals = write_totals(run, glyphs)
        if totals:
            left.insert(1, Content(totals))
        right = [Content(word) for word in position(self.view, glyphs)]
        self.status.show_parts(left, right)
        typing = self.focused is self.prompt
        keys = [id for id in self._keys.after(run) if self.can(BY_ID[id].action)]
        self.panes.show_state(run, keys, BY_ID["prompt.leave"].footer() if typing else "")
        title = clean_line(run.prompt[:60])
        self.gemtui.name_window(clean_line(f"{run_glyph(run, glyphs)} gemtui: {title}"))

    def show_options(self) -> None:
        """Show the next run's options, and what pressing enter in the prompt will do."""
        if self.options.agent is not self._agent:
            self._look_for_cli()
        run = self.run_shown
        self.prompt.beside = run is not None and run.alive
        self.prompt.hears = run is not None and run.accepts_messages
        text = prompt_words(run, self.options)
        next_run, spent = self.next_run, self._spending.words()
        needed, unusual = option_parts(self.options, next_run.usual, next_run.taken_away)
        self.query_one(PromptBox).show_hint(
            text, next_run.folder, needed, unusual, [*map(Content, spent)]
        )
        self._say_nothing_yet()
        self.readying.update()

    @on(TranscriptMoved)
    def _moved(self) -> None:
        if self.run_shown is not None:
            self.show_state(self.run_shown)
