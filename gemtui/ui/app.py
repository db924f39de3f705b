"""The app: what all its screens share, and a clean way out."""

from __future__ import annotations

import asyncio
import gc
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from textual import events, on
from textual.app import App
from textual.await_complete import AwaitComplete
from textual.binding import BindingType
from textual.content import Content
from textual.css.query import NoMatches
from textual.filter import LineFilter
from textual.message import Message
from textual.screen import Screen, ScreenResultType

from gemtui.config import Config, keep_setting
from gemtui.errors import ConfigError
from gemtui.paths import config_file
from gemtui.sessions.listing import short_path
from gemtui.sessions.summary import Summary
from gemtui.text import Clean, clean, clean_line
from gemtui.ui.asking import AnsweringScreen
from gemtui.ui.clean import NoControls
from gemtui.ui.commands import acting, reachable
from gemtui.ui.feed import Opening
from gemtui.ui.keys import BY_ID, Key, Where, bindings
from gemtui.ui.leaving import Leaving, left
from gemtui.ui.mended import mend
from gemtui.ui.messages import CopyRequested
from gemtui.ui.palette import KeyCommands, Palette
from gemtui.ui.plain import draw_plainly
from gemtui.ui.policy_mode import Policies
from gemtui.ui.runs import Runs
from gemtui.ui.screens.help import HelpScreen
from gemtui.ui.screens.raw import RawScreen
from gemtui.ui.screens.sessions import SessionsScreen
from gemtui.ui.screens.themes import ThemeScreen
from gemtui.ui.theme import ASCII, THEMES, UNICODE, Glyphs, readable_selection
from gemtui.ui.widgets.lines import Line
from gemtui.ui.widgets.tabs import tabs

if TYPE_CHECKING:
    from gemtui.agent.gemini import GeminiAdapter

_NO_CONTROLS = NoControls()
_PUSH_TITLE, _POP_TITLE = "\x1b[22;2t", "\x1b[23;2t"
_COLLECTOR = (50_000, 20, 50)
"""Thresholds of the garbage collector. With Python's own, each tenth of a first look at 10,000
sessions would stop the screen for about 0.1 s, to find nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """What the app opens on.

    `home`: the CLI's folder. `project`: the folder whose sessions come first, None = all.
    `cache`: our folder for summaries, None = none. `session`: opened at once. `opening`: the same
    store, where somebody has begun to read it already. `adapter`: starts runs, None = with the CLI
    that is installed.
    """

    home: Path
    project: Path | None = None
    cache: Path | None = None
    session: Summary | None = None
    demo: bool = False
    opening: Opening | None = None
    adapter: GeminiAdapter | None = None


class GemtuiApp(App[None]):
    """All of gemtui's screens; `glyphs` and `clock` are read by whatever draws."""

    TITLE = "gemtui"
    NOTIFICATION_TIMEOUT = 4
    CSS_PATH = "app.tcss"
    DEFAULT_MODE = "sessions"
    BINDINGS: ClassVar[list[BindingType]] = bindings(Where.APP)
    COMMANDS = {KeyCommands}  # noqa: RUF012 (the type is textual's)
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (100, "-wide"), (160, "-extra")]  # noqa: RUF012

    def __init__(
        self,
        start: Start,
        config: Config = Config(),  # noqa: B008 (frozen)
        *,
        clock: Callable[[], datetime] = lambda: datetime.now().astimezone(),
    ) -> None:
        mend()
        no_color = "NO_COLOR" in os.environ
        super().__init__(ansi_color=True if no_color else None)
        self.start, self.config, self.clock = start, config, clock
        self.glyphs: Glyphs = ASCII if config.ascii else UNICODE
        self.set_class(config.ascii, "-ascii")
        self._named = False
        self._popped = 0.0
        self._ending = False
        self.runs = Runs(self)
        self.policies = Policies(self)
        self.sessions = SessionsScreen(start, config)
        self.add_mode(self.DEFAULT_MODE, self.get_default_screen)
        for theme in THEMES:
            self.register_theme(theme)
        known = config.theme in self.available_themes
        self._begin_with("ansi-dark" if no_color else config.theme if known else Config().theme)

    def _begin_with(self, theme: str) -> None:
        if self.available_themes[theme].ansi:
            self.theme = theme  # other filters, and so all styles are parsed twice: 20 ms
        else:
            self.set_reactive(App.theme, theme)

    def get_css_variables(self) -> dict[str, str]:
        """The theme's colours; selected text can be read in all of them."""
        return readable_selection(super().get_css_variables())

    def get_default_screen(self) -> Screen[Any]:
        """The sessions pane, the first of the program's modes."""
        return self.sessions

    # --- start and end -----------------------------------------------------------------------

    def on_mount(self) -> None:
        """Leave in order when somebody ends us from outside."""
        if not self.is_headless:
            Leaving(lambda code: self.exit(return_code=code))
        if self.config.theme not in self.available_themes:
            self.say(
                f'There is no theme "{self.config.theme}": F2 shows those there are', problem=True
            )
        self.run_worker(self.runs.find())
        if not self.is_headless:
            self.call_after_refresh(gc.freeze)

    async def _shutdown(self) -> None:
        """What still works for a screen would look for its widgets in vain: it ends first."""
        self.workers.cancel_all()
        self._ending = True
        await super()._shutdown()

    def _handle_exception(self, error: Exception) -> None:
        """What misses its widgets while all of them go has not failed."""
        if not (self._ending and isinstance(error, NoMatches)):
            super()._handle_exception(error)

    def on_unmount(self) -> None:
        """Give the title back."""
        if self._named:
            self._write(_POP_TITLE)

    def name_window(self, title: Clean) -> None:
        """Set the terminal's title; its own one is put aside first."""
        if not self._named:
            self._named = True
            self._write(_PUSH_TITLE)
        self._write(f"\x1b]2;{title}\x07")

    def _write(self, sequence: str) -> None:
        if self._driver is not None and not self.is_headless:
            self._driver.write(sequence)

    def tabs(self, current: str) -> Sequence[Content]:
        """The first words of a screen: the modes, each with the sign of what goes on there."""
        return tabs(current, {"app.runs": self.runs.mark(), "app.policies": self.policies.mark()})

    # --- screens that come and go --------------------------------------------------------------

    async def push_screen_wait(
        self, screen: Screen[ScreenResultType] | str, *, mode: str | None = None
    ) -> ScreenResultType | Any:
        """Ask, and wait for the answer; a question whose answer nobody waits for goes."""
        try:
            return await super().push_screen_wait(screen, mode=mode)
        except asyncio.CancelledError:
            if isinstance(screen, AnsweringScreen) and self.is_running and not self._exit:
                screen.dismiss()
            raise

    def pop_screen(self) -> AwaitComplete:
        """Let the screen on top go."""
        self._popped = Message().time
        return super().pop_screen()

    async def on_event(self, event: events.Event) -> None:
        """Keys that came in one burst with the one that closed a screen, or us, are for nobody."""
        if isinstance(event, events.InputEvent | events.Paste) and self._is_late(event):
            return
        await super().on_event(event)

    def _is_late(self, event: events.Event) -> bool:
        ends = self._exit or not self.screen_stack
        return ends or (not isinstance(event, events.MouseEvent) and event.time <= self._popped)

    # --- what all screens do -----------------------------------------------------------------

    @on(CopyRequested)
    def _copy(self, message: CopyRequested) -> None:
        self.copy(message.text, message.what)

    def get_line_filters(self) -> Sequence[LineFilter]:
        """What each drawn line passes: nothing in it acts on the terminal."""
        return [*super().get_line_filters(), _NO_CONTROLS]

    def copy(self, text: str, what: str) -> None:
        """Put text on the clipboard and say so."""
        super().copy_to_clipboard(clean(text))
        self.say(f"Copied {what}")

    def copy_to_clipboard(self, text: str) -> None:
        """Copy a selection and say so."""
        lines = text.count("\n") + 1
        self.copy(text, f"{lines:,} lines" if lines > 1 else f"{len(text):,} characters")

    def say(self, text: str, *, problem: bool = False) -> None:
        """Tell the person something for some seconds: in the status line, where that has room.

        A problem, and whatever is longer, stands over the first lines at the right.
        """
        if not self.screen_stack:
            return
        line = next(iter(self.screen.query("#status").results(Line)), None)
        told = clean_line(text)
        if problem or line is None or not line.tell(told, self.NOTIFICATION_TIMEOUT):
            self.notify(clean(text), severity="error" if problem else "information", markup=False)

    def show_text(self, title: str, text: str, *, what: str) -> None:
        """A long text over the whole screen; it can be copied."""
        self.push_screen(
            RawScreen(clean_line(title), clean(text), what=what, ascii=self.config.ascii)
        )

    async def action_run_key(self, id: str) -> None:
        """Do what a key does, wherever the focus is."""
        for key, node in (*acting(self.screen), *reachable(self.screen)):
            if key.id == id:
                await self.run_action(key.action, node)
                return

    def action_help(self) -> None:
        """Show the keys that work here."""
        keys = dict(acting(self.screen))

        def run(key: Key | None) -> None:
            if key is not None:
                self.call_later(self.run_action, key.action, keys[key])

        self.push_screen(HelpScreen(list(keys), ascii=self.config.ascii), run)

    def action_command_palette(self) -> None:
        """Search every command by name."""
        if not isinstance(self.screen, Palette):
            self.push_screen(Palette(placeholder="Search for commands"))

    def action_change_theme(self) -> None:
        """Choose other colours."""
        self.push_screen(ThemeScreen(self.theme), self._keep_theme)

    def _keep_theme(self, theme: str | None) -> None:
        if theme is None:
            return
        path = config_file()
        try:
            keep_setting(path, "theme", theme)
        except (ConfigError, OSError) as error:
            self.say(f"The theme could not be kept: {error}", problem=True)
        else:
            self.say(f"Kept in {short_path(path)}: theme {theme}")

    def action_lost_sessions(self) -> None:
        """Show the sessions of which only a copy is left, to put one back."""
        from gemtui.ui.restoring import show_lost

        self.run_worker(show_lost(self), group="dialog", exclusive=True)

    def action_trusted(self) -> None:
        """The folders that the person told gemtui to trust."""
        from gemtui.ui.running import show_trusted

        self.run_worker(show_trusted(self), group="dialog", exclusive=True)

    def action_help_quit(self) -> None:
        """Say how to quit: ctrl+c copies, and there was nothing to copy."""
        self.say(f"{BY_ID['app.quit'].footer()} quits gemtui; nothing is selected to copy")

    async def action_sessions(self) -> None:
        """To the stored sessions."""
        await self.switch_mode(self.DEFAULT_MODE)

    async def action_runs(self) -> None:
        """To the runs."""
        await self.runs.show()

    async def action_policies(self) -> None:
        """To the policies."""
        await self.policies.show()

    async def action_back(self) -> None:
        """One step back; out of gemtui where there is none."""
        screen = self.screen
        if not isinstance(screen, SessionsScreen):
            await self.action_sessions()
        elif not screen.go_back():
            await self.action_quit()

    async def action_quit(self) -> None:
        """Leave, after a question where runs go on."""
        self.run_worker(self._leave(), group="leave", exclusive=True)

    async def _leave(self) -> None:
        if await self.policies.may_leave() and await self.runs.may_leave():
            self.exit()


def run(start: Start, config: Config) -> int:
    """Run the app on the terminal; gives its exit code: 128 + n where signal n ended it."""
    if config.ascii:
        draw_plainly()
    gc.set_threshold(*_COLLECTOR)
    app = GemtuiApp(start, config)
    try:
        app.run(mouse=config.mouse)
    finally:
        left()
    return app.return_code or 0
