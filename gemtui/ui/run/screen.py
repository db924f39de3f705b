"""The run pane: a prompt goes in, the transcript grows, files are written, a key stops it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, cast

from textual import events, on, work
from textual.actions import SkipAction
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content
from textual.message import Message
from textual.signal import Signal
from textual.worker import WorkerCancelled

from gemtui.agent.cli_settings import CliSettings
from gemtui.agent.command import line_again
from gemtui.agent.detect import Detected, detect_cli
from gemtui.agent.options import AgentOptions
from gemtui.errors import ConfigError, OptionError
from gemtui.extension.status import HookState, extension_state
from gemtui.paths import current_folder, prompts_file
from gemtui.policy.model.rules import ApprovalMode
from gemtui.runs.follow_up import send_next
from gemtui.stats.prices import Prices, load_prices
from gemtui.stats.report import Sums
from gemtui.stats.spent import sums_since
from gemtui.text import clean_line
from gemtui.transcript.model import Transcript
from gemtui.transcript.writes import FileWrite
from gemtui.ui.kit.bars import BarLine, FooterLine, StatusLine
from gemtui.ui.kit.dialog_guard import DIALOG, DialogGuardScreen
from gemtui.ui.kit.editor import edit
from gemtui.ui.kit.keys import BY_ID, Where, bindings
from gemtui.ui.kit.messages import (
    AllowCallRequested,
    BackRequested,
    FileRequested,
    HistoryRequested,
    TranscriptMoved,
)
from gemtui.ui.run import actions, answers
from gemtui.ui.run.labels import (
    ENDED_KEYS,
    QUEUED,
    SAID_NOW,
    UNHEARD,
    cli_words,
    facts,
    held_words,
    kept_words,
    mark,
    option_words,
    position,
    prompt_words,
    spent_words,
    write_totals,
)
from gemtui.ui.run.live_run import LiveRun, Stage, ToolEnd
from gemtui.ui.run.panes import RunPanes
from gemtui.ui.run.prompt import PromptArea, PromptBox
from gemtui.ui.run.prompt_modes import CARRY_OUT, mode_named, next_mode, to_carry_out
from gemtui.ui.run.prompt_sources import History
from gemtui.ui.run.question_pane import QuestionPane
from gemtui.ui.run.queue_dialog import show_queue
from gemtui.ui.run.registry import RunRegistry
from gemtui.ui.run.side import WriteList
from gemtui.ui.run.slash_commands import OwnCommand, own_command
from gemtui.ui.transcript.view import TranscriptView

if TYPE_CHECKING:
    from gemtui.sessions.summary import Summary
    from gemtui.ui.kit.app_base import AppBase
    from gemtui.ui.undo.start import Number

FRAMES = 15
"""Times a second that what came in is painted."""
_KEPT = "kept"
"""The group of the worker that reads what a folder keeps."""
_USUAL = "usual"
"""The group of the worker that looks at what is usual in a folder."""
_PAUSE = 0.7
"""Seconds without a key after which a question takes the keys from an empty prompt."""
_COSTS = 30.0
"""Seconds between two looks at what the day has cost."""
_CLOCK = 7
"""Frames between two looks at the clock when nothing comes."""


class RunScreen(DialogGuardScreen[None]):
    """One run at a time is shown; others go on meanwhile, and the list of runs leads to them.

    `may_start`: asked with a run's policy files before it starts; False = the person stays.
    `changed`: published when a run began (None) or has ended.
    """

    BINDINGS: ClassVar[list[BindingType]] = bindings(Where.RUN)
    AUTO_FOCUS = "PromptArea"

    def __init__(
        self,
        registry: RunRegistry,
        folder: Path | None,
        *,
        may_start: Callable[[Sequence[Path]], Awaitable[bool]],
        changed: Signal[LiveRun | None],
    ) -> None:
        super().__init__()
        self.registry = registry
        self._may_start, self._changed = may_start, changed
        self.options = AgentOptions(cwd=folder or current_folder())
        self._kept = False
        """Whether the options are those that the folder keeps."""
        self._cli: Detected | None = None
        self._usual = ApprovalMode.DEFAULT
        self._can_ask = False
        """The extension that asks is ready in this folder."""
        self._chosen = False
        """The person has chosen how the next run asks."""
        self._mode_chosen = False
        """Its mode is to be kept for the folder once a run has begun with it."""
        self._drafts: dict[str | None, str] = {}
        """What is written for runs that are not shown, by their ids; None = a new run."""
        self._prices: Prices | None = None
        self._today: Sums | None = None
        """What all sessions used today; None = not known yet."""
        self._stood: tuple[Stage, bool, bool] | None = None
        """The stage of the run that is shown, whether prompts wait, whether its session is read."""
        self._frame = 0
        self._answered_by = ""
        """The key of the last answer."""
        self._telling = asyncio.Lock()
        self._warned: set[str] = set()
        """The runs of which it was said that they have no checkpoints."""
        self._pointed_at: int | None = None
        """The question to which the focus went by itself, or from which the person went away."""
        self.ready = asyncio.Event()

    def compose(self) -> ComposeResult:
        """Header, transcript and side, status, prompt, footer."""
        glyphs = self.gemtui.glyphs
        yield BarLine(id="header", mark=glyphs.ellipsis)
        yield RunPanes(glyphs)
        yield QuestionPane(glyphs)
        yield StatusLine(mark=glyphs.ellipsis)
        yield PromptBox(History(prompts_file()), id="prompt")
        yield FooterLine(ascii=glyphs.name == "ascii")

    @property
    def gemtui(self) -> AppBase:
        """The app, as ours."""
        return cast("AppBase", self.app)

    @property
    def panes(self) -> RunPanes:
        """What there is to read."""
        return self.query_one(RunPanes)

    @property
    def view(self) -> TranscriptView:
        """The transcript."""
        return self.panes.view

    @property
    def question(self) -> QuestionPane:
        """What the run that is shown asks."""
        return self.query_one(QuestionPane)

    @property
    def run_shown(self) -> LiveRun | None:
        """The run that is shown; None while there is none."""
        return self.panes.run_shown

    @property
    def prompt(self) -> PromptArea:
        """The prompt editor."""
        return self.query_one(PromptArea)

    def on_mount(self) -> None:
        """Begin with what goes on, if something does; look for the CLI."""
        self.set_interval(1 / FRAMES, self._tick)
        self._changed.subscribe(self, self._run_changed)
        alive = sorted(self.registry.alive, key=lambda run: bool(run.waiting))
        if alive:
            self.show_run(alive[-1])
        self._say_options()
        self._take_kept(self.options.cwd or current_folder())
        self._look_for_cli()
        self.set_interval(_COSTS, self._look_at_costs)
        self._update_header()
        self._say_nothing_yet()
        self.ready.set()

    def on_screen_resume(self) -> None:
        """Be up to date again; what has ended has been seen now."""
        if self.run_shown is not None:
            self.run_shown.looked_at = True
        self.panes.stale()
        self._tick()
        self._update_header()
        self._look_for_mode()
        self._look_at_costs()

    @work(exclusive=True, group="cli")
    async def _look_for_cli(self) -> None:
        self._cli = await asyncio.to_thread(detect_cli)
        self._update_header()
        self._say_nothing_yet()

    @work(exclusive=True, group=_USUAL)
    async def _look_for_mode(self) -> None:
        """Which mode a run here has that names none, and whether it can ask, which it then does."""
        folder = self.options.cwd or current_folder()
        settings = await asyncio.to_thread(CliSettings.read, os.environ, folder)
        extension = await asyncio.to_thread(extension_state, os.environ, folder)
        self._usual, self._can_ask = settings.usual_mode, extension.state is HookState.READY
        if self._can_ask and not (self._kept or self._chosen):
            self.options = replace(self.options, ask=True)
        self._say_options()

    @work(exclusive=True, group="costs")
    async def _look_at_costs(self) -> None:
        """What was used today; prices that can't be read are told of by stats and doctor."""
        if not self.is_current:
            return
        app, now = self.gemtui, self.gemtui.clock().astimezone()
        try:
            self._prices = prices = await asyncio.to_thread(load_prices)
        except ConfigError:
            return
        day = now.replace(hour=0, minute=0, second=0, microsecond=0)
        today = partial(sums_since, home=app.start.home, cache=app.start.cache)
        self._today = await asyncio.to_thread(today, app.summaries(), prices, day)
        self._say_options()

    # --- what is shown -------------------------------------------------------------------------

    def show_run(self, run: LiveRun, *, fresh: bool = True) -> None:
        """Show this run from now on; not `fresh`: it continues what is shown."""
        self._pointed_at = None
        self.question.show(())
        self._go_to(run.cwd)
        if run.alive and run.run.asks:
            self.options = replace(self.options, ask=True, away=run.away)
        self.panes.show_run(run, fresh=fresh)
        self._tick()
        self._say_options()

    def prepare(
        self, folder: Path, *, resume: str | None = None, before: Transcript | None = None
    ) -> None:
        """An empty pane for a new run in this folder, or for going on with a session."""
        self._change_draft(None)
        self.question.show(())
        self._go_to(folder)
        self.options = replace(self.options, resume=resume)
        self.query_one("#status", BarLine).say([])
        name = None if resume is None else self.gemtui.name_of(resume)
        self.panes.prepare(before, name, resume)
        self._say_nothing_yet()
        self._say_options()
        self._update_header()
        self.prompt.focus()

    def _change_draft(self, to: LiveRun | None) -> None:
        """Put away what is written for the run that is shown; take what was written for another."""
        here, there = (None if run is None else run.id for run in (self.run_shown, to))
        if here != there:
            self._drafts[here] = self.prompt.text
            self.prompt.put(self._drafts.pop(there, ""))

    def take_policies(self, policies: tuple[Path, ...], mode: ApprovalMode) -> None:
        """The next run gets these policy files, in this mode."""
        self.options = replace(self.options, policies=policies, approval_mode=mode)
        self._mode_chosen = False
        self._say_options()
        self.prompt.focus()

    def _go_to(self, folder: Path) -> None:
        """The next run is in this folder; trust was for one, and so is what one keeps."""
        if folder != self.options.cwd:
            before = AgentOptions(resume=self.options.resume) if self._kept else self.options
            self._chosen = self._chosen and not self._kept
            self.options, self._kept = replace(before, cwd=folder, trust=False), False
            self._mode_chosen = False
            self._take_kept(folder)
            self._look_for_mode()

    @work(exclusive=True, group=_KEPT)
    async def _take_kept(self, folder: Path) -> None:
        """The options that a folder keeps, if it does."""
        kept = await actions.remembered_options(self.gemtui, folder)
        if kept is not None and self.options.cwd == folder:
            self.options, self._kept = replace(kept, resume=self.options.resume), True
            self.gemtui.say(kept_words(kept))
            self._say_options()

    async def kept_taken(self) -> None:
        """Wait until the options are those that the folder keeps, or those of a new run there."""
        for worker in [each for each in self.workers if each.group in (_KEPT, _USUAL)]:
            with suppress(WorkerCancelled):
                await worker.wait()

    def _tick(self) -> None:
        """Paint what has come since the last frame."""
        run = self.run_shown
        if run is None or not self.is_current:
            return
        self._frame += 1
        self._ask(run)
        self._warn(run)
        if self.panes.paint():
            stood = run.stage, bool(run.steered.prompts), run.told is not None
            if self._stood != stood:
                self._stood = stood
                self.refresh_bindings()
                self._say_options()
                self._look_at_costs()
            self._say_state(run)
        elif run.alive and self._frame % _CLOCK == 0:
            self._say_state(run)

    def _warn(self, run: LiveRun) -> None:
        """Say once why a run has no checkpoints."""
        if run.unprotected and run.id not in self._warned:
            self._warned.add(run.id)
            self._say_state(run)
            self.gemtui.say(f"Undo won't cover all of this run: {run.unprotected}", problem=True)

    def _ask(self, run: LiveRun) -> None:
        """Show what waits; the keys go there once nothing else can be meant by them."""
        pane = self.question
        asked, had_focus = pane.asks, pane.view.has_focus
        pane.show(run.waiting, run.conversation)
        if pane.asks != asked:
            self._say_options()
            self.refresh_bindings()
        if not pane.asks:
            self._pointed_at = None
            if had_focus:
                self.prompt.focus()
        elif pane.shown is not None and self._pointed_at != pane.shown.question.number:
            if had_focus:
                self._pointed_at = pane.shown.question.number
            elif self._idle():
                self._to_question()

    def _idle(self) -> bool:
        """Whether nobody is typing or reading."""
        still = Message().time - self.gemtui.last_key > _PAUSE
        free = not self._written() if self.focused is self.prompt else self.view.following
        known = self.focused in (None, self.prompt, self.view)
        return still and free and known and not self.asking

    def _written(self) -> str:
        """What stands in the prompt, but for the key of the last answer pressed once too often."""
        text = self.prompt.text
        return text.strip(self._answered_by) if self._answered_by else text

    def _to_question(self) -> None:
        pane = self.question
        if not self._written():
            self.prompt.put("")
        if pane.shown is not None:
            self._pointed_at = pane.shown.question.number
        pane.view.focus()

    def shows(self, run: LiveRun) -> bool:
        """Whether this is the run that is shown."""
        return self.ready.is_set() and run is self.run_shown

    def _run_changed(self, run: LiveRun | None) -> None:
        """A run began (None) or has ended: say so, go on with the one that follows."""
        self._update_header()
        if run is None or run is not self.run_shown:
            return
        self.panes.stale()
        self._tick()
        self._say_options()
        for note in run.notes:
            self.gemtui.say(note)
        self._show_next(run)

    def _show_next(self, run: LiveRun) -> None:
        """Show the run that goes on after this one, or say what waits."""
        if run.next is not None:
            if run is self.run_shown:
                self.show_run(run.next, fresh=False)
        elif run.steered.prompts and not run.past:
            self.gemtui.say(held_words(run), problem=True)

    # --- sending -------------------------------------------------------------------------------

    @on(PromptArea.Submitted)
    def _submitted(self, event: PromptArea.Submitted) -> None:
        if self.asking:
            return
        if (own := own_command(event.text)) is not None:
            self.prompt.sent(event.text)
            self._obey(*own)
        elif (run := self.run_shown) is None or run.over:
            self._go_on(event.text)
        else:
            self.prompt.sent(event.text)
            self._tell_run(run, event.text, now=False)

    @work(group="obey")
    async def _obey(self, command: OwnCommand, words: str) -> None:
        """Do what a command of gemtui says."""
        match command.name:
            case "model" if words:
                self._take_options(replace(self.options, model=words))
            case "model":
                model = clean_line(self.options.model or "Gemini CLI's own choice")
                self.gemtui.say(f"Model: {model}. /model NAME changes it.")
            case "mode" if words:
                chosen = mode_named(self.options, words, can_ask=self._can_ask)
                if chosen is None:
                    self.gemtui.say("There are the modes ask, auto_edit, plan and yolo.")
                else:
                    self._mode_chosen = True
                    self._take_options(chosen)
            case "mode":
                self._next_mode()
            case _:
                if not await self.app.run_action(command.action, self):
                    self.gemtui.say(f"/{command.name} has nothing to act on now.")

    @on(PromptArea.SaidNow)
    def _said_now(self, event: PromptArea.SaidNow) -> None:
        if self.asking or (run := self.run_shown) is None:
            return
        if run.hears:
            self.prompt.sent(event.text)
            self._tell_run(run, event.text, now=True)
        else:
            self.gemtui.say(UNHEARD)

    @work(group="telling")
    async def _tell_run(self, run: LiveRun, text: str, *, now: bool) -> None:
        """A word into the turn that goes on, or the prompt for the one after; each in its turn."""
        async with self._telling:
            await self.kept_taken()
            try:
                await (run.say(text) if now else run.queue(text, self.options))
            except OSError as error:
                self.prompt.put("\n\n".join(filter(None, (text, self.prompt.text))))
                self.gemtui.say(
                    f"Not queued: {error}. Your text is back in the prompt.", problem=True
                )
            else:
                self._say_options()
                self.gemtui.say(SAID_NOW if now else QUEUED)
                if run.over:
                    await self.registry.send_what_waits(run)
                    self._show_next(run)

    def _go_on(self, prompt: str) -> None:
        """Send a prompt: in the session that is shown where there is one, else in a new one."""
        run = self.run_shown
        if self.options.resume is None and run is not None and run.can_go_on:
            self._send(prompt, resume=run.session, before=run.settled())
        else:
            self._send(prompt, resume=self.options.resume, before=self.panes.before)

    @work(exclusive=True, group=DIALOG)
    async def _send(self, prompt: str, *, resume: str | None, before: Transcript | None) -> None:
        shown = self.run_shown
        run = await self._started(prompt, resume=resume, before=before)
        if run is None:
            return
        self.prompt.sent(prompt)
        if shown is not None and shown.steered.prompts:
            await actions.hand_on(self.gemtui, shown, run)
        self.show_run(run, fresh=before is None)

    async def _started(
        self, prompt: str, *, resume: str | None, before: Transcript | None, id: str | None = None
    ) -> LiveRun | None:
        """Start a run with the options that stand here; None, after a word, where it did not."""
        await self.kept_taken()
        if not await self._may_start(self.options.policies):
            return None
        self.query_one("#status", BarLine).say([Content("starting")])
        options = replace(self.options, resume=resume)
        run = await actions.start(self.gemtui, self.registry, prompt, options, before, id=id)
        self.query_one("#status", BarLine).say([])
        if run is not None:
            self.panes.before = None
            if self._mode_chosen:
                self._mode_chosen = False
                await actions.keep_mode(self.gemtui, self.options)
            self.options = replace(self.options, resume=None, trust=False)
        return run

    async def _send_after_edit(self, run: LiveRun) -> None:
        """Send what was held back while a queued prompt was edited."""
        if run.over:
            await self.registry.send_what_waits(run)
            self._show_next(run)

    async def _send_waiting(self, run: LiveRun, prompt: str) -> None:
        """Send one of the prompts that wait behind a run that has ended, with their options."""

        before = run.settled() if run.can_go_on else run.before

        async def begin(text: str, id: str) -> LiveRun | None:
            return await self._started(text, resume=options.resume, before=before, id=id)

        try:
            options = await asyncio.to_thread(run.next_options) or self.options
            self.options = replace(options, resume=None)
            run.next = await send_next(run.run.folder, begin, prompt=prompt)
        except (OptionError, OSError) as error:
            self.gemtui.say(f"Still queued: {error}", problem=True)
        await run.look_at_steering()
        self._show_next(run)

    def action_stop(self) -> None:
        """Copy what is selected; else SIGTERM, the second time SIGKILL."""
        run = self.run_shown
        if self.get_selected_text() is not None:
            self.action_copy_text()
        elif run is None or not run.alive:
            raise SkipAction
        else:
            run.stop()
            self._say_state(run)

    def action_again(self) -> None:
        """The same prompt once more."""
        if (run := self._ended()) is not None:
            self._send(run.prompt, resume=run.resumes, before=run.before)

    def action_follow_up(self) -> None:
        """To the prompt: what is sent goes on in this session."""
        self.prompt.focus()

    def action_carry_out(self) -> None:
        """Go on with the session of a plan, in a mode that may carry it out."""
        if self.asking or not self.can("carry_out"):
            raise SkipAction
        self._take_options(to_carry_out(self.options, can_ask=self._can_ask))
        self._go_on(CARRY_OUT)

    def action_edit(self) -> None:
        """The same prompt, to be changed first."""
        if (run := self._ended()) is not None:
            self.prompt.put(run.prompt)
            self.prompt.focus()

    @work(exclusive=True, group=DIALOG)
    async def action_undo_to(self) -> None:
        """Files and chat back to before the prompt of the cursor."""
        from gemtui.ui.undo.start import show_undo

        if (found := self._stored_place()) is not None:
            await show_undo(self.gemtui, *found, self._folder, self.gemtui.start.home)

    @work(exclusive=True, group=DIALOG)
    async def action_fork(self) -> None:
        """A new chat from before the prompt of the cursor."""
        from gemtui.ui.undo.start import show_fork

        if (found := self._stored_place()) is not None:
            await show_fork(self.gemtui, *found, self._folder, self.gemtui.start.home)

    @work(exclusive=True, group=DIALOG)
    async def action_redo(self) -> None:
        """Take the last undo in this folder back."""
        from gemtui.ui.undo.start import show_redo

        await show_redo(self.gemtui, self._folder, self.gemtui.start.home)

    @property
    def _folder(self) -> Path:
        run = self.run_shown
        return (self.options.cwd or current_folder()) if run is None else run.cwd

    def _stored_place(self) -> tuple[Callable[[], Summary], Number] | None:
        """The session that is shown, and the prompt of the cursor; None, after a word why."""
        from gemtui.ui.undo.start import find_stored, prompt_at

        run = self.run_shown
        if run is not None and run.alive:
            key = BY_ID["run.stop"].footer()
            self.gemtui.say(f"The run is working: {key} stops it, or wait for its end.")
            return None
        session = self.options.resume if run is None else run.session or run.resumes
        if session is None:
            self.gemtui.say("No session here yet.")
            return None
        number = prompt_at(self.view.page.transcript, self.view.index)
        return partial(find_stored, self.gemtui, session), number

    def _ended(self) -> LiveRun | None:
        run = self.run_shown
        if run is None or run.alive:
            self.gemtui.say("No finished run.")
            return None
        return run

    # --- moving about --------------------------------------------------------------------------

    def action_next_part(self) -> None:
        """To the next part of the screen."""
        self.focus_next()

    def action_previous_part(self) -> None:
        """To the part before."""
        self.focus_previous()

    def action_write(self) -> None:
        """To the prompt."""
        self.prompt.focus()

    @on(PromptArea.Left)
    def _leave_prompt(self) -> None:
        if self.question.asks:
            self._to_question()
            return
        self.set_focus(None if self.panes.empty else self.view)

    def action_files(self) -> None:
        """To the written files; where they are out of sight, show them or hide them."""
        self.panes.to_files()

    @on(BackRequested)
    def go_back(self) -> bool:
        """From the files to the transcript, close the words about the end, then to the prompt.

        False at the prompt: there is nothing left to go back from.
        """
        if not self.panes.go_back():
            if self.question.asks and not self.question.view.has_focus:
                self._to_question()
                return True
            if self.focused is self.prompt:
                return False
            self.prompt.focus()
        return True

    @on(FileRequested)
    def _file(self, event: FileRequested) -> None:
        edit(self.gemtui, event.path, event.line, self.options.cwd)

    @on(HistoryRequested)
    def _history(self, event: HistoryRequested) -> None:
        event.stop()
        self.app.post_message(HistoryRequested(str(self._folder / event.path)))

    @on(WriteList.DiffRequested)
    def _diff(self, event: WriteList.DiffRequested) -> None:
        self._show_diff(event.write)

    @work(exclusive=True, group=DIALOG)
    async def _show_diff(self, write: FileWrite) -> None:
        if self.run_shown is not None:
            await actions.show_difference(self.gemtui, self.run_shown, write)

    # --- what the run asks ---------------------------------------------------------------------

    @on(QuestionPane.Answered)
    def _answered(self, event: QuestionPane.Answered) -> None:
        if not self.asking and event.shown is self.question.shown:
            self._answered_by = BY_ID[f"question.{event.action}"].keys
            self._settle(event)

    @work(exclusive=True, group=DIALOG)
    async def _settle(self, event: QuestionPane.Answered) -> None:
        if (run := self.run_shown) is not None:
            talk = run.conversation
            await answers.answer(self.gemtui, self.question, talk, event.action, event.shown)
            await run.look_at_questions()
            self._tick()

    @work(exclusive=True, group=DIALOG)
    async def action_take_back(self) -> None:
        """Ask again about what was allowed for all like it."""
        if self.run_shown is not None:
            await answers.take_back(self.gemtui, self.run_shown.conversation)
            await self.run_shown.look_at_questions()
            self._tick()

    @work(exclusive=True, group=DIALOG)
    async def action_differing(self) -> None:
        """Show the files that differ from what was approved."""
        from gemtui.ui.run.differing import show_differing

        if self.run_shown is not None:
            await show_differing(self.gemtui, self.run_shown)

    @on(QuestionPane.WholeRequested)
    def _whole(self, event: QuestionPane.WholeRequested) -> None:
        answers.show_whole(self.gemtui, self.question, event.shown)

    @on(QuestionPane.TooLong)
    def _say_of_question(self, event: QuestionPane.TooLong) -> None:
        self.gemtui.say(event.words)

    @on(QuestionPane.Left)
    def _leave_question(self) -> None:
        self.set_focus(None if self.panes.empty else self.view)

    # --- looking closer ------------------------------------------------------------------------

    @work(exclusive=True, group=DIALOG)
    async def action_options(self) -> None:
        """Change what the next run may do."""
        await self.kept_taken()
        chosen = await actions.choose_options(self.gemtui, self.options)
        if chosen is None:
            return
        self._kept, self._mode_chosen = chosen.remember, False
        self._take_options(chosen.options)

    @on(PromptArea.ModeRequested)
    def _next_mode(self) -> None:
        """The next mode, for the next run, and for this folder once a run has begun with it."""
        self._mode_chosen = True
        self._take_options(next_mode(self.options, self._usual, can_ask=self._can_ask))

    def _take_options(self, options: AgentOptions) -> None:
        """Use these options for the next run, and for prompts that wait."""
        self.options, self._chosen = options, True
        self._say_options()
        if (run := self.run_shown) is not None and run.steered.prompts:
            self._keep_options(run)

    @work(group="telling")
    async def _keep_options(self, run: LiveRun) -> None:
        async with self._telling:
            await actions.keep_options(self.gemtui, run, self.options)

    def action_allow(self) -> None:
        """The rule that would allow a refused call, in the policy pane."""
        if (call := self.panes.refused()) is not None:
            self.post_message(AllowCallRequested(call, self.options.policies))

    @work(exclusive=True, group=DIALOG)
    async def action_command(self) -> None:
        """The exact command that enter would run."""
        await self.kept_taken()
        await actions.show_command(self.gemtui, self.registry, self.prompt.text, self.options)

    @work(exclusive=True, group=DIALOG)
    async def action_from_file(self) -> None:
        """A prompt that stands in a file."""
        text = await actions.prompt_from_file(self.gemtui, self.options.cwd or current_folder())
        if text is not None:
            self.prompt.put(text)
            self.prompt.focus()

    def action_new(self) -> None:
        """An empty pane; what goes on goes on."""
        self.prepare(self.options.cwd or current_folder())

    @work(exclusive=True, group=DIALOG)
    async def action_queue(self) -> None:
        """What is sent next."""
        if (run := self.run_shown) is not None:
            wanted = await show_queue(self.gemtui, run, edited=self._send_after_edit)
            if wanted is not None:
                await self._send_waiting(run.latest, wanted)
            self._say_options()

    @work(exclusive=True, group=DIALOG)
    async def action_runs(self) -> None:
        """Another run."""
        run = await actions.choose_run(self.gemtui, self.registry)
        if run is not None:
            self._change_draft(run)
            self.show_run(run)

    @work(exclusive=True, group=DIALOG)
    async def action_review(self) -> None:
        """What the run changed, hunk by hunk; comments become the next prompt."""
        from gemtui.ui.review.screen import review_run

        if (run := self.run_shown) is not None:
            calls, prompt = run.own.calls(), run.prompt
            subject = review_run(run.cwd, run.session or "", run.id, calls, prompt)
            if text := await self.gemtui.push_screen_wait(subject):
                self.prompt.put(text)
                self.prompt.focus()

    def action_stderr(self) -> None:
        """All that the CLI said on stderr."""
        if self.run_shown is not None:
            actions.show_stderr(self.gemtui, self.run_shown)

    def action_copy_command(self) -> None:
        """The command line of this run."""
        run = self.run_shown
        if run is None:
            return
        new = ", for a new session" if run.resumes else ""
        try:
            line = line_again(run.run.request, run.run.folder)
        except OptionError as error:
            self.gemtui.say(str(error), problem=True)
        else:
            self.gemtui.copy(line, f"the command line{new}")

    # --- words ---------------------------------------------------------------------------------

    def _update_header(self) -> None:
        looking = Content.styled("looking for Gemini CLI", "dim")
        right = [looking if self._cli is None else cli_words(self._cli)]
        first = BY_ID["prompt.leave"].footer() if self.focused is self.prompt else ""
        self.query_one("#header", BarLine).say(self.gemtui.tabs("app.runs", first=first), right)

    @on(events.DescendantFocus, "PromptArea")
    @on(events.DescendantBlur, "PromptArea")
    def _prompt_took_the_keys(self) -> None:
        self.call_after_refresh(self._update_header)

    def _say_nothing_yet(self) -> None:
        self.panes.say_nothing_yet(None if self._cli is None else self._cli.problem)

    def _say_state(self, run: LiveRun) -> None:
        glyphs = self.gemtui.glyphs
        left = [*facts(run, glyphs, self.gemtui.clock())]
        if totals := write_totals(run, glyphs):
            left.insert(1, Content(totals))
        right = [Content(word) for word in position(self.view, glyphs)]
        self.query_one("#status", BarLine).say(left, right)
        keys = [id for id in ENDED_KEYS if self.can(BY_ID[id].action)]
        self.panes.say_state(run, keys)
        title = clean_line(run.prompt[:60])
        self.gemtui.name_window(clean_line(f"{mark(run, glyphs)} gemtui: {title}"))

    def _say_options(self) -> None:
        resume = self.options.resume
        self.prompt.beside = self.run_shown is not None and self.run_shown.alive
        self.prompt.hears = self.run_shown is not None and self.run_shown.hears
        words = prompt_words(self.run_shown, resume)
        folder = self.options.cwd or current_folder()
        shown = self.panes.before if self.run_shown is None else self.run_shown.transcript()
        spent = spent_words(shown, self._today, self._prices, self.gemtui.clock())
        beside = option_words(self.options, self._usual, spent)
        self.query_one(PromptBox).say(words, beside, folder)

    @on(TranscriptMoved)
    def _moved(self) -> None:
        if self.run_shown is not None:
            self._say_state(self.run_shown)

    def can(self, action: str) -> bool:
        """Whether a key does something now."""
        run = self.run_shown
        if action == "stop":
            return (run is not None and run.alive) or bool(self.selections)
        if action in ("again", "edit", "follow_up"):
            return run is not None and (run.can_go_on if action == "follow_up" else not run.alive)
        if action in ("stderr", "copy_command", "files", "review"):
            return run is not None
        if action in ("undo_to", "fork"):
            return run is not None or self.options.resume is not None
        if action == "take_back":
            return run is not None and any(each.holds for each in run.questions)
        if action == "differing":
            return run is not None and bool(run.differing)
        if action == "carry_out":
            return run is not None and run.planned
        if action == "queue":
            return run is not None and bool(run.steered.prompts)
        if action == "allow":
            return run is not None and run.ends()[ToolEnd.DENIED] > 0
        return True
