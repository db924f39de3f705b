"""The app as its screens know it: settings, clock, glyphs, messages to the user.

Screens and dialogs know this class alone; only `GemtuiApp` knows the panes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from textual import events, on
from textual.app import App
from textual.await_complete import AwaitComplete
from textual.content import Content
from textual.filter import LineFilter
from textual.message import Message
from textual.screen import Screen, ScreenResultType
from textual.signal import Signal

from gemtui.config import Config
from gemtui.paths import state_dir
from gemtui.sessions.preload import StorePreload
from gemtui.sessions.summary import Summary
from gemtui.text import Clean, clean, clean_line
from gemtui.ui.draw.theme import ASCII, UNICODE, Glyphs
from gemtui.ui.kit.bars import BarLine, tabs
from gemtui.ui.kit.clean_widgets import NoControls
from gemtui.ui.kit.dialog_guard import AnsweringScreen
from gemtui.ui.kit.messages import CopyRequested
from gemtui.ui.kit.text_screen import RawScreen

if TYPE_CHECKING:
    from gemtui.runs.adapter import GeminiAdapter

_NO_CONTROLS = NoControls()
_PUSH_TITLE, _POP_TITLE = "\x1b[22;2t", "\x1b[23;2t"


class Start(Struct, frozen=True, kw_only=True):
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
    opening: StorePreload | None = None
    adapter: GeminiAdapter | None = None


class AppBase(App[None]):
    """The app as its screens know it.

    `glyphs` and `clock` are read by whatever draws; `marks_changed` is published when the signs at
    the modes may be others.
    """

    NOTIFICATION_TIMEOUT = 4

    def __init__(
        self,
        start: Start,
        config: Config,
        clock: Callable[[], datetime],
        *,
        ansi_color: bool | None = None,
    ) -> None:
        super().__init__(ansi_color=ansi_color)
        self.start, self.config, self.clock = start, config, clock
        self.glyphs: Glyphs = ASCII if config.ascii else UNICODE
        self.marks_changed: Signal[None] = Signal(self, "marks changed")
        self._named = False
        self._popped = 0.0

    @cached_property
    def adapter(self) -> GeminiAdapter:
        """What starts runs: the one we were started with, else the installed CLI's."""
        from gemtui.runs.adapter import GeminiAdapter

        return self.start.adapter or GeminiAdapter()

    @property
    def runs_dir(self) -> Path:
        """The folder that holds the runs' folders."""
        adapter = self.start.adapter
        return state_dir() / "runs" if adapter is None else adapter.runs

    def marks(self) -> Mapping[str, str]:
        """The sign at each mode, by the id of its key."""
        return {}

    async def is_running_in(self, session: str) -> bool:
        """Whether a run goes on in the session with this id, whoever started it."""
        del session
        return False

    def tabs(self, current: str) -> Sequence[Content]:
        """The first words of a screen: the modes, each with the sign of what goes on there."""
        return tabs(current, self.marks())

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
        """Keys that came in one burst with the one that closed a screen, or us, are for nobody;
        those for a screen that is just being made wait for it.
        """
        typed = isinstance(event, events.InputEvent | events.Paste)
        if not (typed and (self._is_late(event) or self._is_early(event))):
            await super().on_event(event)

    def _is_late(self, event: events.Event) -> bool:
        ends = self._exit or not self.screen_stack
        return ends or (not isinstance(event, events.MouseEvent) and event.time <= self._popped)

    def _is_early(self, event: events.Event) -> bool:
        new = isinstance(event, events.Key | events.Paste) and not event.is_forwarded
        return new and isinstance(self.screen, AnsweringScreen) and self.screen.holds_back(event)

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
        line = next(iter(self.screen.query("#status").results(BarLine)), None)
        told = clean_line(text)
        if problem or line is None or not line.tell(told, self.NOTIFICATION_TIMEOUT):
            self.notify(clean(text), severity="error" if problem else "information", markup=False)

    def show_text(self, title: str, text: str, *, what: str) -> None:
        """A long text over the whole screen; it can be copied."""
        self.push_screen(
            RawScreen(clean_line(title), clean(text), what=what, ascii=self.config.ascii)
        )
