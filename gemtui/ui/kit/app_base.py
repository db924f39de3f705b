"""The app as its screens know it: settings, clock, glyphs, messages to the user.

Screens and dialogs use only this class; only `GemtuiApp` knows the panes.
"""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import cached_property
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from textual import events, on
from textual.app import App
from textual.await_complete import AwaitComplete
from textual.content import Content
from textual.filter import LineFilter
from textual.message import Message
from textual.message_pump import MessagePump
from textual.screen import Screen, ScreenResultType
from textual.signal import Signal

from gemtui.config import Config, Ring
from gemtui.notify import BELL, Notification, ringing_terminal, rung
from gemtui.paths import state_dir
from gemtui.sessions.preload import StorePreload
from gemtui.sessions.summary import Summary
from gemtui.text import Clean, clean, clean_line, ellipsis
from gemtui.ui.draw.theme import ASCII, UNICODE, Glyphs
from gemtui.ui.kit.bars import BarLine, tabs
from gemtui.ui.kit.clean_widgets import NoControls
from gemtui.ui.kit.dialog_guard import AnsweringScreen
from gemtui.ui.kit.messages import CopyRequested
from gemtui.ui.kit.ringer import Ringer
from gemtui.ui.kit.text_screen import RawScreen

if TYPE_CHECKING:
    from gemtui.runs.adapter import GeminiAdapter

FieldValues = tuple[str | bool, ...]
"""What all fields of a dialog hold, in their order."""

_NO_CONTROLS = NoControls()
_HELD, _HELD_FOR_DIALOG = 2.0, 10.0
"""Seconds for which a key waits at most; while a dialog is prepared, which may read files."""
_PUSH_TITLE, _POP_TITLE = "\x1b[22;2t", "\x1b[23;2t"
_NOTHING = Clean("")
_TITLE = 120
"""Cells of a window's title that shows an event."""


class Start(Struct, frozen=True, kw_only=True):
    """The app's initial state.

    `home`: the CLI's folder. `project`: the folder whose sessions come first, None for all.
    `cache`: our folder for summaries, None for none. `session`: opened at once. `opening`: the same
    store, if a preload has already begun. `adapter`: starts runs, None for the installed CLI.
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

    Drawing functions read `glyphs` and `clock`; `signs_changed` is published when the signs of the
    modes may have changed.
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
        self.signs_changed: Signal[None] = Signal(self, "signs changed")
        self._named, self._title = False, _NOTHING
        self._news: Notification | None = None
        self._ringer = Ringer(self._sound, self.set_timer)
        self._popped = 0.0
        self._held: deque[events.Key | events.Paste] = deque()
        self._held_since = 0.0
        self.drafts: dict[Hashable, FieldValues] = {}
        """What was typed into dialogs that were left without an answer."""
        self.handed_over = False
        """Whether another program has the terminal."""
        self.at_extension = False
        """Whether the extension is being changed, or a question about it is open."""
        self.last_key = 0.0
        """Time of the last key, on the clock of events."""

    @cached_property
    def adapter(self) -> GeminiAdapter:
        """The adapter for runs: the given one, else the installed CLI's."""
        from gemtui.runs.adapter import GeminiAdapter

        return self.start.adapter or GeminiAdapter()

    @property
    def runs_dir(self) -> Path:
        """The folder that holds the runs' folders."""
        adapter = self.start.adapter
        return state_dir() / "runs" if adapter is None else adapter.runs

    def signs(self) -> Mapping[str, str]:
        """Return the sign for each mode, by the id of its key."""
        return {}

    def name_of(self, session: str) -> str | None:
        """Return the user's own name for a session, by id; None if it has none."""
        del session
        return None

    def summaries(self) -> Sequence[Summary]:
        """Return all stored sessions found so far."""
        return ()

    async def is_running_in(self, session: str) -> bool:
        """Return whether a run is active in this session, whoever started it."""
        del session
        return False

    def tabs(self, current: str, *, first: str = "") -> Sequence[Content]:
        """Return the mode tabs for a header, each with its activity sign.

        `first`: the key to press before a mode's own key; "" if none.
        """
        return tabs(current, self.signs(), first=first)

    # --- opening and closing screens -----------------------------------------------------------

    async def push_screen_wait(
        self, screen: Screen[ScreenResultType] | str, *, mode: str | None = None
    ) -> ScreenResultType | Any:
        """Show a screen and wait for its answer; remove it if the waiter is cancelled."""
        try:
            return await super().push_screen_wait(screen, mode=mode)
        except asyncio.CancelledError:
            if isinstance(screen, AnsweringScreen) and self.is_running and not self._exit:
                screen.dismiss()
            raise

    def pop_screen(self) -> AwaitComplete:
        """Remove the top screen."""
        self._popped = Message().time
        return super().pop_screen()

    # --- order of keys -------------------------------------------------------------------------

    async def on_event(self, event: events.Event) -> None:
        """Let each key act before the next one; see `_at_rest`.

        Keys typed in one burst with the key that closed a screen, or the app, are dropped. So are
        keys typed before a question appeared: they can't be its answer.
        """
        if isinstance(event, events.Key):
            self._is_seen()
            self._end_message()
        if isinstance(event, events.Key | events.Paste):
            self.last_key = max(self.last_key, event.time)
        if isinstance(event, events.InputEvent | events.Paste) and self._is_late(event):
            return
        if (
            isinstance(event, events.Key | events.Paste)
            and not event.is_forwarded
            and (self._held or not self._at_rest())
        ):
            self._hold(event)
        else:
            await super().on_event(event)

    def _is_late(self, event: events.Event) -> bool:
        if self._exit or not self.screen_stack:
            return True
        screen = self.screen
        asked = screen.asked if isinstance(screen, AnsweringScreen) else 0.0
        since = max(self._popped, asked)
        return not isinstance(event, events.MouseEvent) and event.time <= since

    @property
    def typing_ahead(self) -> bool:
        """Whether keys are waiting for the effects of earlier ones."""
        return bool(self._held)

    def _at_rest(self) -> bool:
        """Return whether all events are handled and the top screen can receive keys.

        A binding acts after its key has bubbled up from the focused widget, and its effects
        continue in messages: without this wait, an input would receive the keys that follow too
        early.
        """
        screen = self.screen
        ready = not isinstance(screen, AnsweringScreen) or screen.takes_keys
        pumps = (self, screen, *screen.walk_children())
        busy = screen._callbacks or any(map(_has_more_to_do, pumps))
        return ready and not busy and not self._opens_dialog()

    def _opens_dialog(self) -> bool:
        """Whether the screen on top has begun to ask, but its dialog is not there yet."""
        screen = self.screen
        return isinstance(screen, AnsweringScreen) and screen.asking_since > self._popped

    def _hold(self, event: events.Key | events.Paste) -> None:
        if not self._held:
            self._held_since = monotonic()
            self._hand_out_soon()
        self._held.append(event)

    def _hand_out_soon(self) -> None:
        asyncio.get_running_loop().call_later(0.001, self.call_later, self._hand_out)

    async def _hand_out(self) -> None:
        """Let the first waiting key act, along with letters after it that a field accepts.

        This does not wait for rest longer than a person would.
        """
        most = _HELD_FOR_DIALOG if self._opens_dialog() else _HELD
        if self._at_rest() or monotonic() - self._held_since > most:
            event, self._held_since = self._held.popleft(), monotonic()
            typed = self._is_typed(event)
            await self._let_act(event)
            while typed and self._held and self._is_typed(self._held[0]):
                await self._let_act(self._held.popleft())
        if self._held:
            self._hand_out_soon()

    def _is_typed(self, event: events.Key | events.Paste) -> bool:
        """Return whether a field accepts a key as text."""
        if isinstance(event, events.Paste) or self.focused is None:
            return False
        return self.focused.check_consume_key(event.key, event.character)

    async def _let_act(self, event: events.Key | events.Paste) -> None:
        if not self._is_late(event):
            await super().on_event(event)

    def on_mount(self) -> None:
        """Leave the title to who has the terminal meanwhile."""
        self.app_suspend_signal.subscribe(self, lambda _: self._restore_title(), immediate=True)
        self.app_resume_signal.subscribe(self, lambda _: self._take_title_again(), immediate=True)

    @contextmanager
    def suspend(self) -> Iterator[None]:
        """Hand the terminal over; it is taken back also where an error ends the block."""
        failed: Exception | None = None
        with super().suspend():
            self.handed_over = True
            try:
                yield
            except Exception as error:  # raised again once the screen is there
                failed = error
            finally:
                self.handed_over = False
        if failed is not None:
            raise failed

    def on_unmount(self) -> None:
        """Restore the terminal's title."""
        self._restore_title()

    def _restore_title(self) -> None:
        if self._named:
            self._named = False
            self._write(_POP_TITLE)

    def _take_title_again(self) -> None:
        if self._title:
            self._write_title(self._title)

    def name_window(self, title: Clean) -> None:
        """Set the terminal's title, saving the original one first."""
        self._title = title
        if self._news is None:
            self._write_title(title)

    def _write_title(self, title: Clean) -> None:
        if not self._named:
            self._named = True
            self._write(_PUSH_TITLE)
        self._write(f"\x1b]2;{title}\x07")

    # --- notifications ---------------------------------------------------------------------------

    def ring(self, notice: Notification) -> None:
        """Notify a person who is looking elsewhere, as set in the settings."""
        if self.config.ring is not Ring.OFF:
            self._ringer.ring(notice)

    def _sound(self, notice: Notification) -> None:
        """Ring or notify, and show the event in the window's title until the user is back."""
        self._news = notice
        self._write_title(ellipsis(Clean(f"{notice.title}: {notice.text}"), _TITLE))
        if self.config.ring is Ring.BELL:
            self._write(BELL)
        else:
            self.run_worker(self._notify(notice), group="ring")

    async def _notify(self, notice: Notification) -> None:
        self._write(rung(notice, await asyncio.to_thread(ringing_terminal, os.environ)))

    def _is_seen(self) -> None:
        """Reset the title, as the user is back."""
        if self._news is not None:
            self._news = None
            self._write_title(self._title)

    def watch_app_focus(self, focus: bool) -> None:
        """Reset the title once the window has the focus."""
        if focus:
            self._is_seen()

    def _write(self, sequence: str) -> None:
        if self._driver is not None and not self.is_headless:
            self._driver.write(sequence)

    @on(CopyRequested)
    def _copy(self, message: CopyRequested) -> None:
        self.copy(message.text, message.what)

    def get_line_filters(self) -> Sequence[LineFilter]:
        """Return filters for drawn lines, so that no text acts on the terminal."""
        return [*super().get_line_filters(), _NO_CONTROLS]

    def copy(self, text: str, what: str) -> None:
        """Copy text to the clipboard and report it."""
        super().copy_to_clipboard(clean(text))
        self.say(f"Copied {what}")

    def copy_to_clipboard(self, text: str) -> None:
        """Copy a selection and report it."""
        lines = text.count("\n") + 1
        self.copy(text, f"{lines:,} lines" if lines > 1 else f"{len(text):,} characters")

    def say(self, text: str, *, problem: bool = False) -> None:
        """Show a message for some seconds: in the status line, if it fits.

        Problems and longer messages appear over the first lines at the right.
        """
        if not self.screen_stack:
            return
        line = next(iter(self.screen.query("#status").results(BarLine)), None)
        told = clean_line(text)
        if problem or line is None or not line.tell(told, self.NOTIFICATION_TIMEOUT):
            self.notify(clean(text), severity="error" if problem else "information", markup=False)

    def _end_message(self) -> None:
        for line in self.screen.query("#status").results(BarLine) if self.screen_stack else ():
            line.tell_no_longer()

    def show_text(self, title: str, text: str, *, what: str) -> None:
        """Show a long text on a screen of its own, where it can be copied."""
        self.push_screen(
            RawScreen(clean_line(title), clean(text), what=what, ascii=self.config.ascii)
        )


def _has_more_to_do(pump: MessagePump) -> bool:
    waits = pump._pending_message is not None or bool(pump._next_callbacks)
    return waits or pump.message_queue_size > 0
