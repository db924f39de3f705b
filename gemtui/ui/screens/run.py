"""The run pane: a prompt goes in, the transcript grows, files are written, a key stops it."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, cast

from textual import on, work
from textual.actions import SkipAction
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.screen import Screen
from textual.widgets import Static

from gemtui.agent.detected import Detected, detect_cli
from gemtui.agent.events import DoneStatus
from gemtui.agent.options import AgentOptions
from gemtui.errors import GemtuiError
from gemtui.paths import state_dir
from gemtui.policy import store
from gemtui.policy.rules import ApprovalMode, Call
from gemtui.text import clean_line
from gemtui.transcript.model import Transcript
from gemtui.ui import doing, running
from gemtui.ui.desk import Desk
from gemtui.ui.keys import BY_ID, Where, bindings
from gemtui.ui.live import LiveRun, Stage
from gemtui.ui.messages import BackRequested, FileRequested, TranscriptMoved
from gemtui.ui.prompts import History
from gemtui.ui.screens.options import OptionsScreen
from gemtui.ui.widgets.lines import FooterLine, Line
from gemtui.ui.widgets.prompt import PromptArea, PromptBox
from gemtui.ui.widgets.run_side import RunSide, WriteList
from gemtui.ui.widgets.run_words import (
    WAITS,
    ended,
    facts,
    last_refused,
    mark,
    no_run,
    option_words,
    position,
    prompt_words,
    refused,
    write_totals,
)
from gemtui.ui.widgets.targets import Cursor
from gemtui.ui.widgets.transcript import TranscriptView

if TYPE_CHECKING:
    from gemtui.ui.app import GemtuiApp

FRAMES = 15
"""Times a second that what came in is painted."""
_CLOCK = 7
"""Frames between two looks at the clock when nothing comes."""
_ENDED_KEYS = (
    "run.allow",
    "run.again",
    "run.edit",
    "run.follow_up",
    "run.stderr",
    "run.copy_command",
)


class RunScreen(Screen[None]):
    """One run at a time is shown; others go on meanwhile, and the list of runs leads to them."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(Where.RUN)
    AUTO_FOCUS = "PromptArea"

    def __init__(self, desk: Desk, folder: Path | None) -> None:
        super().__init__()
        self.desk = desk
        self.run_shown: LiveRun | None = None
        self.options = AgentOptions(cwd=folder or Path.cwd())
        self._cli: Detected | None = None
        self._before: Transcript | None = None
        self._painted: object = None
        self._stage: Stage | None = None
        self._frame = 0
        self._queued = self._ending_closed = False

    def compose(self) -> ComposeResult:
        """Header, transcript and side, status, prompt, footer."""
        glyphs = self.gemtui.glyphs
        yield Line(id="header", mark=glyphs.ellipsis)
        with Horizontal(id="run-panes"):
            with Vertical(id="run-main"):
                yield Static(id="nothing-yet")
                yield TranscriptView()
                yield Static(id="ending")
            yield RunSide(glyphs, id="run-side")
        yield Line(id="status", mark=glyphs.ellipsis)
        yield PromptBox(History(state_dir() / "prompts.jsonl"), id="prompt")
        yield FooterLine(ascii=glyphs.name == "ascii")

    @property
    def gemtui(self) -> GemtuiApp:
        """The app, as ours."""
        return cast("GemtuiApp", self.app)

    @property
    def view(self) -> TranscriptView:
        """The transcript."""
        return self.query_one(TranscriptView)

    @property
    def prompt(self) -> PromptArea:
        """The prompt editor."""
        return self.query_one(PromptArea)

    def on_mount(self) -> None:
        """Begin with what goes on, if something does; look for the CLI."""
        self.set_interval(1 / FRAMES, self._tick)
        self.gemtui.runs.changed.subscribe(self, self._run_changed)
        alive = self.desk.alive
        if alive:
            self.show_run(alive[-1])
        self._say_options()
        self._look_for_cli()
        self._say_where()

    def on_screen_resume(self) -> None:
        """Be up to date again; what has ended has been seen now."""
        if self.run_shown is not None:
            self.run_shown.looked_at = True
        self._painted = None
        self._tick()
        self._say_where()

    @work(exclusive=True, group="cli")
    async def _look_for_cli(self) -> None:
        self._cli = await asyncio.to_thread(detect_cli)
        self._say_where()
        self._say_nothing_yet()

    # --- what is shown -------------------------------------------------------------------------

    def show_run(self, run: LiveRun, *, fresh: bool = True) -> None:
        """Show this run from now on; not `fresh`: it continues what is shown."""
        self.run_shown, self._painted = run, None
        self._queued = self._ending_closed = False
        self.options = replace(self.options, cwd=run.cwd, **({} if run.ours else run.asked))
        self.view.show(run.transcript(), fresh=fresh, end=True)
        self.view.action_follow()
        self._tick()
        self._say_options()

    def prepare(
        self, folder: Path, *, resume: str | None = None, before: Transcript | None = None
    ) -> None:
        """An empty pane for a new run in this folder, or for going on with a session."""
        self.run_shown, self._before, self._queued = None, before, False
        self.options = replace(self.options, cwd=folder, resume=resume)
        self.set_class(False, "-ended")
        self.query_one("#status", Line).say([])
        self.view.show(before or Transcript.of(()), fresh=True, end=True)
        self._say_nothing_yet()
        self._say_options()
        self._say_where()
        self.prompt.focus()

    def take_policies(self, policies: tuple[Path, ...], mode: ApprovalMode) -> None:
        """The next run gets these policy files, in this mode."""
        self.options = replace(self.options, policies=policies, approval_mode=mode)
        self._say_options()
        self.prompt.focus()

    def _tick(self) -> None:
        """Paint what has come since the last frame."""
        run = self.run_shown
        if run is None or not self.is_current:
            return
        self._frame += 1
        if run.revision != self._painted:
            stage, self._painted = self._stage, run.revision
            self._stage = run.stage
            if stage is not run.stage:
                self.refresh_bindings()
            self.view.show(run.transcript(), fresh=False)
            self._say_state(run)
        elif run.alive and self._frame % _CLOCK == 0:
            self._say_state(run)

    def shows(self, run: LiveRun) -> bool:
        """Whether this is the run that is shown."""
        return run is self.run_shown

    def _run_changed(self, run: LiveRun | None) -> None:
        """A run began (None) or has ended: say so, send what waits for it."""
        self._say_where()
        if run is None or run is not self.run_shown:
            return
        self._painted = None
        self._tick()
        self._say_options()
        for note in run.notes:
            self.gemtui.say(note)
        if self._queued:
            self._queued = False
            if run.status is DoneStatus.SUCCESS:
                self._go_on(self.prompt.text)
            else:
                self.gemtui.say("The prompt waits: the run did not end well.")
                self._say_options()
        elif ended(run, (), self.gemtui.glyphs) is not None and not self.prompt.text:
            self.view.focus()

    # --- sending -------------------------------------------------------------------------------

    @on(PromptArea.Submitted)
    def _submitted(self, event: PromptArea.Submitted) -> None:
        if self.run_shown is not None and self.run_shown.alive:
            self._queued = not self._queued
            self._say_options()
        else:
            self._go_on(event.text)

    def _go_on(self, prompt: str) -> None:
        """Send a prompt: in the session that is shown where there is one, else in a new one."""
        run = self.run_shown
        if self.options.resume is None and run is not None and run.can_go_on:
            self._send(prompt, resume=run.session, before=run.settled())
        else:
            self._send(prompt, resume=self.options.resume, before=self._before)

    @work(exclusive=True, group="start")
    async def _send(self, prompt: str, *, resume: str | None, before: Transcript | None) -> None:
        if not await self.gemtui.policies.settled(self.options.policies):
            return
        self.query_one("#status", Line).say([Content("starting")])
        options = replace(self.options, resume=resume)
        run = await running.start(self.gemtui, self.desk, prompt, options, before)
        self.query_one("#status", Line).say([])
        if run is None:
            return
        if self.prompt.text == prompt:
            self.prompt.sent()
        self._before, self.options = None, replace(self.options, resume=None)
        self.show_run(run, fresh=before is None)

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

    def action_edit(self) -> None:
        """The same prompt, to be changed first."""
        if (run := self._ended()) is not None:
            self.prompt.put(run.prompt)
            self.prompt.focus()

    def _ended(self) -> LiveRun | None:
        run = self.run_shown
        if run is None or run.alive:
            self.gemtui.say("There is no run that has ended.")
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
        self.set_focus(None if self.has_class("-nothing") else self.view)

    def action_files(self) -> None:
        """To the written files; where they are out of sight, show them or hide them."""
        writes = self.query_one(WriteList)
        if self.has_class("-narrow"):
            self.toggle_class("-side")
        if writes.is_on_screen or self.has_class("-side"):
            self.call_after_refresh(writes.focus)
        else:
            self.view.focus()

    @on(BackRequested)
    def go_back(self) -> bool:
        """From the files to the transcript, close the words about the end, then to the prompt.

        False at the prompt: there is nothing left to go back from.
        """
        if self.has_class("-side"):
            self.remove_class("-side")
            self.view.focus()
        elif isinstance(self.focused, WriteList):
            self.view.focus()
        elif self.has_class("-ended"):
            self._ending_closed = True
            self.remove_class("-ended")
        elif self.focused is self.prompt:
            return False
        else:
            self.prompt.focus()
        return True

    @on(WriteList.DiffRequested)
    def _diff(self, event: WriteList.DiffRequested) -> None:
        run = self.run_shown
        place = None if run is None else run.place_of(event.call)
        if place is None:
            return
        self.remove_class("-side")
        page = self.view.page
        page.go(Cursor(*place))
        page.fold(False)
        self.view.refresh_page()
        self.view.focus()

    @on(FileRequested)
    def _file(self, event: FileRequested) -> None:
        doing.edit(self.gemtui, event.path, event.line, self.options.cwd)

    # --- looking closer ------------------------------------------------------------------------

    @work(exclusive=True, group="dialog")
    async def action_options(self) -> None:
        """Change what the next run may do."""
        policies = await asyncio.to_thread(store.list_policies)
        ours = [file for file in policies if file.origin is store.Origin.OURS]
        chosen = await self.app.push_screen_wait(OptionsScreen(self.options, ours))
        if chosen is not None:
            self.options = chosen
            self._say_options()

    @work(exclusive=True, group="dialog")
    async def action_allow(self) -> None:
        """The rule that would allow a refused call, in the policy pane."""
        if (call := self._refused()) is not None:
            await self.gemtui.policies.allow(call)

    def _refused(self) -> Call | None:
        """The refused call under the cursor, else the last one of the run."""
        own = None if self.run_shown is None else self.run_shown.own
        return refused(self.view.page.block) or (None if own is None else last_refused(own))

    @work(exclusive=True, group="dialog")
    async def action_command(self) -> None:
        """The exact command that enter would run."""
        try:
            text = await running.command(self.desk, self.prompt.text, self.options)
        except (GemtuiError, OSError) as error:
            self.gemtui.say(str(error), problem=True)
        else:
            self.gemtui.show_text("What enter will run", text, what="the command")

    @work(exclusive=True, group="dialog")
    async def action_from_file(self) -> None:
        """A prompt that stands in a file."""
        text = await running.prompt_from_file(self.gemtui, self.options.cwd or Path.cwd())
        if text is not None:
            self.prompt.put(text)
            self.prompt.focus()

    def action_new(self) -> None:
        """An empty pane; what goes on goes on."""
        self.prepare(self.options.cwd or Path.cwd())

    @work(exclusive=True, group="dialog")
    async def action_runs(self) -> None:
        """Another run."""
        record = await running.choose_run(self.gemtui, self.desk)
        if record is None:
            return
        run = await self.desk.attach(record)
        if run is None:
            self.gemtui.say("The folder of this run is broken.", problem=True)
        else:
            self.show_run(run)

    def action_stderr(self) -> None:
        """All that the CLI said on stderr."""
        if self.run_shown is not None:
            running.show_stderr(self.gemtui, self.run_shown)

    def action_copy_command(self) -> None:
        """The command line of this run."""
        run = self.run_shown
        if run is not None:
            self.gemtui.copy(running.shell_line(run), "the command line")

    # --- words ---------------------------------------------------------------------------------

    def _say_where(self) -> None:
        left = self.gemtui.tabs("app.runs")
        cli = self._cli
        right = []
        if cli is not None:
            version = f"gemini {cli.version}" if cli.version else "no gemini"
            right.append(Content.styled(clean_line(version), "dim"))
        self.query_one("#header", Line).say(left, right)

    def _say_nothing_yet(self) -> None:
        """What the pane says while there is no run."""
        empty = self.run_shown is None and self._before is None
        self.set_class(empty, "-nothing")
        if not empty:
            return
        problem = None if self._cli is None else self._cli.problem
        self.query_one("#nothing-yet", Static).update(no_run(problem, self.gemtui.glyphs))

    def _say_state(self, run: LiveRun) -> None:
        glyphs = self.gemtui.glyphs
        self.set_class(False, "-nothing")
        left = [*facts(run, glyphs, self.gemtui.clock())]
        if totals := write_totals(run.writes(), glyphs):
            left.insert(1, Content(totals))
        right = [Content(word) for word in position(self.view, glyphs)]
        self.query_one("#status", Line).say(left, right)
        self.query_one(RunSide).show(run)
        self._say_ending(run)
        title = clean_line(run.prompt[:60])
        self.gemtui.name_window(clean_line(f"{mark(run, glyphs)} gemtui: {title}"))

    def _say_ending(self, run: LiveRun) -> None:
        keys = [id for id in _ENDED_KEYS if self.check_action(BY_ID[id].action, ())]
        said = None if run.alive or self._ending_closed else ended(run, keys, self.gemtui.glyphs)
        self.set_class(said is not None, "-ended")
        if said is not None:
            self.query_one("#ending", Static).update(said)

    def _say_options(self) -> None:
        box, run = self.query_one(PromptBox), self.run_shown
        box.folder = self.options.cwd or Path.cwd()
        words = WAITS if self._queued else prompt_words(run, self.options.resume)
        box.border_title = Content(words)
        box.border_subtitle = Content(option_words(self.options))

    @on(TranscriptMoved)
    def _moved(self) -> None:
        if self.run_shown is not None:
            self._say_state(self.run_shown)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Whether a key does something now."""
        del parameters
        run = self.run_shown
        if action == "stop":
            return (run is not None and run.alive) or bool(self.selections)
        if action in ("again", "edit", "follow_up"):
            return run is not None and (run.can_go_on if action == "follow_up" else not run.alive)
        if action in ("stderr", "copy_command", "files"):
            return run is not None
        if action == "allow":
            return run is not None and run.tools.denied > 0
        return True
