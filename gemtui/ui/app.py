"""The Textual app: its modes, requests from one pane to another, and a clean exit."""

from __future__ import annotations

import asyncio
import gc
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any, ClassVar

from msgspec.structs import replace
from textual import on, work
from textual.app import App, ScreenStackError
from textual.binding import BindingType
from textual.css.query import NoMatches
from textual.dom import DOMNode
from textual.screen import Screen
from textual.scrollbar import ScrollBar, ScrollBarRender
from textual.worker import WorkerFailed

from gemtui.config import Config, keep_setting, load_config, settings
from gemtui.files import write_new
from gemtui.paths import config_file, make_own_folder
from gemtui.processes import FOLDER, python
from gemtui.sessions.catalog.summary import Summary, named
from gemtui.system import Unported, share_heap, why_not
from gemtui.text import clean_line, short_path
from gemtui.ui.draw.theme import THEMES, readable_selection, with_lines
from gemtui.ui.kit.app_base import AppBase, Start
from gemtui.ui.kit.bars import acts, label_of
from gemtui.ui.kit.keys import BY_ID, Group, Key, Where, acting, bindings, reachable
from gemtui.ui.kit.messages import (
    AllowCallRequested,
    ChatRequested,
    ContinueRequested,
    HistoryRequested,
    NewRunRequested,
    RunWithPolicyRequested,
    SessionRequested,
)
from gemtui.ui.kit.signals import (
    ExitSignals,
    JobControl,
    cancel_alarm,
    exit_immediately,
    terminal_attributes,
)
from gemtui.ui.kit.textual_fixes import apply_fixes
from gemtui.ui.policy.mode import PolicyMode
from gemtui.ui.run.mode import RunMode
from gemtui.ui.sessions.screen import SessionsScreen


class PlainBar(ScrollBarRender):
    """A scroll bar drawn as whole cells in two colours, without block characters."""

    VERTICAL_BARS: ClassVar[list[str]] = [" "] * 8
    HORIZONTAL_BARS: ClassVar[list[str]] = [" "] * 8


def draw_plainly() -> None:
    """Make all Textual scroll bars in this process use `PlainBar`."""
    ScrollBar.renderer = PlainBar


_LATER_STYLES = Path(__file__).with_name("later.tcss")
_FEW_KEYS = 15
"""How many keys the help shows at first; this many fit on an 80 x 24 screen."""
_MISSING = (NoMatches, ScreenStackError)
"""The errors Textual raises if a widget or screen does not exist."""
OPEN_TO_OTHERS = "Whoever opens this page can read your sessions and run commands as you."
_COLLECTOR = (5_000, 10, 1_000)
"""Thresholds for `gc.set_threshold`, higher than Python's defaults.

With the defaults, about one in ten loads of 10,000 sessions would freeze the screen for 0.1 s, for
a garbage collection that frees no memory. With 50,000 new objects, or a middle generation of
200,000, a single collection takes 60 to 140 ms; as it is, about 50 ms at most.
"""


class ThemedApp(AppBase):
    """An app that draws with the theme of the settings, and lets the user choose another."""

    def __init__(self, start: Start, config: Config, clock: Callable[[], datetime]) -> None:
        no_color = "NO_COLOR" in os.environ
        super().__init__(start, config, clock, ansi_color=True if no_color else None)
        for theme in THEMES:
            self.register_theme(theme)
        if no_color:
            self._begin_with("ansi-dark")
        elif config.theme in self.available_themes:
            self._begin_with(config.theme)
        else:
            self._begin_with(Config().theme)

    def use_colors_of_terminal(self) -> None:
        """Use a theme of the terminal's own colours, light or dark like the current one.

        A terminal with 16 colours can't draw any other theme.
        """
        self._begin_with("ansi-dark" if self.current_theme.dark else "ansi-light")

    def _begin_with(self, theme: str) -> None:
        if self.available_themes[theme].ansi:
            self.theme = theme
        else:
            self.set_reactive(App.theme, theme)
            self.stylesheet.set_variables(self.get_css_variables())

    def get_css_variables(self) -> dict[str, str]:
        """Return the theme's CSS variables, adjusted to keep selected text readable."""
        return with_lines(readable_selection(super().get_css_variables()), self.current_theme)

    def action_change_theme(self) -> None:
        from gemtui.ui.kit.dialogs import ThemeScreen

        self.push_screen(ThemeScreen(self.theme), self._keep_theme)

    def _keep_theme(self, theme: str | None) -> None:
        if theme is None:
            return
        path = config_file()
        with self.reporting("The theme could not be saved"):
            keep_setting(path, "theme", theme)
            self.show_message(f"Theme {theme} saved in {short_path(path)}")


class GemtuiApp(ThemedApp):
    """The app with all of gemtui's screens.

    Rendering functions read its attributes `glyphs` (the symbols to draw) and `clock` (the time
    now).
    """

    TITLE = "gemtui"
    CSS_PATH = "app.tcss"
    DEFAULT_MODE = "sessions"
    BINDINGS: ClassVar[list[BindingType]] = bindings(Where.APP)
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (100, "-wide"), (160, "-extra")]  # noqa: RUF012
    VERTICAL_BREAKPOINTS = [(0, "-low"), (18, "-high"), (30, "-tall")]  # noqa: RUF012

    def __init__(
        self,
        start: Start,
        config: Config = Config(),  # noqa: B008 (frozen)
        *,
        clock: Callable[[], datetime] = lambda: datetime.now().astimezone(),
        terminal: list[Any] | None = None,
    ) -> None:
        apply_fixes()
        super().__init__(start, config, clock)
        self.set_class(config.ascii, "-ascii")
        self._shutting_down = False
        self._terminal = terminal
        self._signals: ExitSignals | None = None
        self._job: JobControl | None = None
        self.policies = PolicyMode(self)
        self.runs = RunMode(self, may_start=self.policies.ready_to_start)
        self.sessions = SessionsScreen(start, config)

    def get_default_screen(self) -> Screen[Any]:
        """Return the sessions pane, the app's first mode."""
        return self.sessions

    # --- start and end -----------------------------------------------------------------------

    def on_mount(self) -> None:
        """Add the first mode, and install signal handlers that exit the app cleanly."""
        # The first mode must be added here rather than earlier. Before the app is mounted, Textual
        # would create the screen's widgets before the screen is on the stack, and the widgets look
        # for their screen there (right away from Python 3.12 on, because tasks start eagerly). All
        # styles would also be parsed twice.
        self.add_mode(self.DEFAULT_MODE, self.get_default_screen)
        if not self.is_headless:
            self._signals = ExitSignals(
                lambda code: self.exit(return_code=code), self._terminal, self.stop
            )
            self._job = JobControl(self, lambda: self._signalled)
        if self.config.theme not in self.available_themes:
            self.show_message(
                f'There is no theme "{self.config.theme}". Press F2 to choose one.', problem=True
            )
        if self.is_web:
            self.show_message(OPEN_TO_OTHERS, problem=True)
        self._find_runs()
        self.call_after_refresh(self._read_later_styles)
        if not self.is_headless:
            self.call_after_refresh(_collect_rarely)

    def _load_screen_css(self, screen: Screen[Any]) -> None:
        """Have the styles of all other screens before the first of them is shown."""
        if screen is not self.sessions:
            self._read_later_styles()
        super()._load_screen_css(screen)

    def _read_later_styles(self) -> None:
        """Read the styles that the first picture does without, which takes a tenth of the start.

        Textual would parse all other styles again for a screen with styles of its own.
        """
        if not self.stylesheet.has_source(str(_LATER_STYLES)):
            self.stylesheet.read(_LATER_STYLES)
            self.stylesheet.parse()

    @work
    async def _find_runs(self) -> None:
        await self.runs.find()

    async def _shutdown(self) -> None:
        """Cancel the workers, then shut down.

        Textual would otherwise remove the widgets first, and workers would then look for widgets
        that no longer exist.
        """
        self.workers.cancel_all()
        self._shutting_down = True
        await super()._shutdown()

    def _handle_exception(self, error: Exception) -> None:
        """Ignore errors that only occur because the app is ending; handle others as usual.

        Workers and widgets that are still being made may look for widgets and screens that Textual
        has removed already, or never mounted. After a signal every error is ignored, because the
        terminal may have disappeared too, and the exit code must name the signal.
        """
        cause = error.error if isinstance(error, WorkerFailed) else error
        ending = self._exit or self._shutting_down
        if not (self._signalled or (ending and isinstance(cause, _MISSING))):
            super()._handle_exception(error)

    @property
    def _signalled(self) -> bool:
        """Whether a signal that ends the app has arrived."""
        return self._signals is not None and self._signals.is_exiting

    def signs(self) -> Mapping[str, str]:
        """Return the symbols to show in the run and policy tabs.

        They are mapped by the id of each tab's key binding. The run tab's symbol says that runs are
        active, or that some have finished and the user hasn't looked at them yet. The policy tab's
        symbol says that there are unsaved changes.
        """
        return {"app.runs": self.runs.sign(), "app.policies": self.policies.sign()}

    def name_of(self, session: str) -> str | None:
        """Return the name the user gave to the session with this id, or None."""
        mark = self.sessions.marks.marks.get(session)
        return None if mark is None else mark.name

    def summaries(self) -> Sequence[Summary]:
        """Return the summaries of all stored sessions found so far."""
        return self.sessions.store.sessions

    async def is_running_in(self, session: str) -> bool:
        """Return whether a run is working in this session.

        This includes runs of other gemtui processes.
        """
        return await self.runs.is_working_in(session)

    async def next_run_asks(self, folder: Path) -> bool:
        """Return whether the next run in a folder asks before calls, instead of denying them."""
        return await self.runs.next_asks(folder)

    # --- app-wide actions --------------------------------------------------------------------

    async def action_run_key(self, id: str) -> None:
        for key, node in (*acting(self.screen), *reachable(self.screen)):
            if key.id == id:
                await self.run_action(key.call, node)
                return

    def action_help(self) -> None:
        self._offer("Keys", acting(self.screen), few=_FEW_KEYS)

    def action_command_palette(self) -> None:
        self._offer("Commands", sorted(reachable(self.screen), key=_place))

    def _offer(self, title: str, commands: Sequence[tuple[Key, DOMNode]], few: int = 0) -> None:
        """Show a list of commands, and run the one the user chooses.

        `commands`: each command's key and the node that its action belongs to. `few`: how many to
        show initially, those that answer a question and those of the footer; the user can ask for
        the rest. 0 means all.
        """
        from gemtui.ui.kit.command_screen import CommandScreen

        nodes = {replace(key, label=label_of(key, node)): node for key, node in commands}
        ranked = sorted(
            (key for key, node in nodes.items() if (key.rank or key.answers) and acts(key, node)),
            key=lambda key: key.rank,
        )
        first = ranked[:few] if len(nodes) > few else ()

        def run(key: Key | None) -> None:
            if key is not None:
                self.call_later(self.run_action, key.call, nodes[key])

        if not isinstance(self.screen, CommandScreen):
            self.push_screen(CommandScreen(clean_line(title), list(nodes), first), run)

    @work(group="dialog", exclusive=True)
    async def action_lost_sessions(self) -> None:
        from gemtui.kept.contents import kept_sessions
        from gemtui.ui.kit.put_back import show_lost

        marks = self.sessions.marks.marks
        await show_lost(self, [named(each, marks) for each in kept_sessions(self.summaries())])
        self.sessions.store.reload()

    @work(group="dialog", exclusive=True)
    async def action_trusted(self) -> None:
        from gemtui.ui.run.starting import show_trusted

        await show_trusted(self)

    @work(group="dialog", exclusive=True)
    async def action_worktrees(self) -> None:
        await self.runs.show_worktrees()

    @work(group="extension")
    async def action_extension(self) -> None:
        from gemtui.ui.kit.extension_dialog import show_extension

        await show_extension(self)

    def action_settings(self) -> None:
        """Let the user edit the settings file, which lists all settings if it is new."""
        from gemtui.ui.kit.editor import edit_file

        path = config_file()
        with self.reporting():
            if not path.exists():
                make_own_folder(path.parent)
                lines = (f"# {setting.doc}\n# {setting.toml}\n" for setting in settings())
                write_new(path, "\n".join(lines).encode())
            edit_file(self, str(path), None, None)
            load_config(path)

    @work(group="doctor", exclusive=True)
    async def action_doctor(self) -> None:
        from gemtui.ui.kit.text_view import show_text

        self.show_message("Examining this machine…")
        command = python("-m", "gemtui", "doctor")
        examined = await asyncio.to_thread(
            subprocess.run, command, cwd=FOLDER, capture_output=True, text=True, check=False
        )
        report = examined.stdout + examined.stderr
        show_text(self, "gemtui doctor", report, what="the report")

    def action_help_quit(self) -> None:
        """Explain how to quit, because ctrl+c was pressed with nothing selected to copy."""
        self.show_message(
            f"Nothing is selected to copy. Press {BY_ID['app.quit'].footer()} to quit gemtui."
        )

    def action_suspend_process(self) -> None:
        """Suspend the app and return to the shell until `fg`."""
        if reason := why_not(Unported.SUSPEND):
            self.show_message(reason)
        elif self._job is not None:
            self._job.suspend()

    async def action_sessions(self) -> None:
        await self.switch_mode(self.DEFAULT_MODE)

    async def action_stats(self) -> None:
        await self.action_sessions()
        await self.run_action("stats", self.sessions)

    async def action_runs(self) -> None:
        await self.runs.show()

    async def action_policies(self) -> None:
        await self.policies.show()

    # --- requests from panes -------------------------------------------------------------------

    @on(NewRunRequested)
    async def _new_run(self, message: NewRunRequested) -> None:
        await self.runs.show(message.folder)

    @on(ContinueRequested)
    async def _continue(self, message: ContinueRequested) -> None:
        await self.runs.go_on(message.session, message.prompt)

    @on(ChatRequested)
    async def _show_chat(self, message: ChatRequested) -> None:
        await self.runs.show_chat(message)

    @on(RunWithPolicyRequested)
    async def _run_with_policy(self, message: RunWithPolicyRequested) -> None:
        await self.runs.show_with_policies(message.policies, message.mode)

    @on(AllowCallRequested)
    async def _allow_call(self, message: AllowCallRequested) -> None:
        await self.policies.allow(message.call, message.policies)

    @on(HistoryRequested)
    def _show_history(self, message: HistoryRequested) -> None:
        from gemtui.sessions.written_files import normalized_path

        self.sessions.files.show_history(normalized_path(None, message.path))

    @on(SessionRequested)
    async def _show_session(self, message: SessionRequested) -> None:
        await self.action_sessions()
        self.sessions.navigation.show(message.session)
        if message.call:
            self.sessions.pane.go_to_call(message.call)

    async def action_back(self) -> None:
        """Go back one step, or quit if there is nowhere to go back to.

        From any other pane, this returns to the sessions pane.
        """
        screen = self.screen
        if not isinstance(screen, SessionsScreen):
            await self.action_sessions()
        elif not screen.go_back():
            await self.action_quit()

    async def action_quit(self) -> None:
        """Quit gemtui, asking first if the policy has unsaved changes or runs are active."""
        self._leave()

    @work(group="leave", exclusive=True)
    async def _leave(self) -> None:
        if await self.policies.may_leave() and await self.runs.may_leave():
            self.exit()


def _collect_rarely() -> None:
    """Set the garbage collector for as long as the app runs.

    What was loaded until now is never looked at again.
    """
    gc.freeze()
    gc.set_threshold(*_COLLECTOR)


def _place(command: tuple[Key, DOMNode]) -> tuple[bool, int, bool]:
    """Return a sort key that puts app-wide commands last.

    Within each place, commands that move the cursor come last.
    """
    key, _ = command
    return key.where is Where.APP, list(Where).index(key.where), key.group is Group.MOVE


def run_app(start: Start, config: Config) -> int:
    """Run the app in the terminal and return its exit code (128 + n after signal n)."""
    share_heap()
    if config.ascii:
        draw_plainly()
    terminal = terminal_attributes()
    exit_immediately(terminal)
    app = GemtuiApp(start, config, terminal=terminal)
    if app.console.color_system == "standard":
        app.use_colors_of_terminal()
    try:
        app.run(mouse=config.mouse)
    finally:
        cancel_alarm()
    if app.stop.report and sys.stderr is not None:
        with suppress(OSError):
            sys.stderr.write(clean_line(f"gemtui: {app.stop.report}") + "\n")
            sys.stderr.flush()
    return app.return_code or 0
