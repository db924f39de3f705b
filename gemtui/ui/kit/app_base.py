"""The app as its screens see it: settings, clock, glyphs and user messages.

Screens and dialogs use only `AppBase`; the subclass `GemtuiApp` is the only one that knows the
panes.
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
from gemtui.notify import BELL, Notification, notification_sequence, ringing_terminal
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
"""The values of a dialog's fields, in order."""

_NO_CONTROLS = NoControls()
_HELD, _HELD_FOR_DIALOG = 2.0, 10.0
"""Longest time in seconds that a key is held, normally and while a dialog is being prepared.

Preparing a dialog may require reading files.
"""
_PUSH_TITLE, _POP_TITLE = "\x1b[22;2t", "\x1b[23;2t"
_NOTHING = Clean("")
_TITLE = 120
"""Most cells of the window title while it shows an event."""


class Start(Struct, frozen=True, kw_only=True):
    """The app's initial state.

    `home`: Gemini CLI's folder. `project`: the folder whose sessions are listed first, None for all
    projects. `cache`: gemtui's folder for session summaries, None to keep no cache. `session`: a
    session to open immediately. `opening`: a preload of the same store, if one has already begun.
    `adapter`: starts runs; None uses the installed Gemini CLI.
    """

    home: Path
    project: Path | None = None
    cache: Path | None = None
    session: Summary | None = None
    demo: bool = False
    opening: StorePreload | None = None
    adapter: GeminiAdapter | None = None


class AppBase(App[None]):
    """The part of the app that screens and dialogs use.

    Drawing functions read `glyphs` and `clock`. `signs_changed` is published when the symbols in
    the mode tabs may have changed.
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
        """The values typed into dialogs that were closed without an answer."""
        self.handed_over = False
        """Whether another program has the terminal."""
        self.at_extension = False
        """Whether the extension is being changed, or a question about it is open."""
        self.last_key = 0.0
        """Time of the last key press, on the same clock as Textual's events."""

    @cached_property
    def adapter(self) -> GeminiAdapter:
        """The adapter that starts runs: the given one, or else one for the installed CLI."""
        from gemtui.runs.adapter import GeminiAdapter

        return self.start.adapter or GeminiAdapter()

    @property
    def runs_dir(self) -> Path:
        """The folder that contains the folders of all runs."""
        adapter = self.start.adapter
        return state_dir() / "runs" if adapter is None else adapter.runs

    def signs(self) -> Mapping[str, str]:
        """Return the symbol for each mode's tab, by the id of the mode's key."""
        return {}

    def name_of(self, session: str) -> str | None:
        """Return the name that the user gave to a session, by its id; None without one."""
        del session
        return None

    def summaries(self) -> Sequence[Summary]:
        """Return all stored sessions that have been found so far."""
        return ()

    async def is_running_in(self, session: str) -> bool:
        """Return whether a run is working in this session, whoever started the run."""
        del session
        return False

    def tabs(self, current: str, *, first: str = "") -> Sequence[Content]:
        """Return the mode tabs for a header, each with its activity symbol.

        `first`: the key to press before a mode's own key; "" if none is needed.
        """
        return tabs(current, self.signs(), first=first)

    # --- opening and closing screens -----------------------------------------------------------

    async def push_screen_wait(
        self, screen: Screen[ScreenResultType] | str, *, mode: str | None = None
    ) -> ScreenResultType | Any:
        """Show a screen and wait for its result; close it if the wait is cancelled."""
        try:
            return await super().push_screen_wait(screen, mode=mode)
        except asyncio.CancelledError:
            if isinstance(screen, AnsweringScreen) and self.is_running and not self._exit:
                screen.dismiss()
            raise

    def pop_screen(self) -> AwaitComplete:
        """Remove the top screen, and note the time so that late keys are dropped."""
        self._popped = Message().time
        return super().pop_screen()

    # --- order of keys -------------------------------------------------------------------------

    async def on_event(self, event: events.Event) -> None:
        """Let each key act before the next one is handled; see `_at_rest`.

        Keys of the burst that closed a screen or the app are dropped. So are keys that were typed
        before a question appeared, because they can't be an answer to that question.
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
    def has_pending_keys(self) -> bool:
        """Whether key presses are waiting until the effects of earlier ones are complete."""
        return bool(self._held)

    def _at_rest(self) -> bool:
        """Return whether all events are handled and the top screen can receive keys.

        A binding acts only after its key has bubbled up from the focused widget, and its effects
        continue in messages. Without this wait, the keys that follow would take effect too early,
        for example in an input.
        """
        screen = self.screen
        ready = not isinstance(screen, AnsweringScreen) or screen.takes_keys
        pumps = (self, screen, *screen.walk_children())
        busy = screen._callbacks or any(map(_has_more_to_do, pumps))
        return ready and not busy and not self._opens_dialog()

    def _opens_dialog(self) -> bool:
        """Return whether the top screen is preparing a dialog that is not shown yet."""
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
        """Process the first held key, and printable keys after it if a text field has focus.

        A key is held for at most `_HELD` seconds, even if the app isn't at rest by then.
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
        """Return whether the focused field would insert this key as text."""
        if isinstance(event, events.Paste) or self.focused is None:
            return False
        return self.focused.check_consume_key(event.key, event.character)

    async def _let_act(self, event: events.Key | events.Paste) -> None:
        if not self._is_late(event):
            await super().on_event(event)

    def on_mount(self) -> None:
        """Restore the terminal's title while another program uses the terminal."""
        self.app_suspend_signal.subscribe(self, lambda _: self._restore_title(), immediate=True)
        self.app_resume_signal.subscribe(self, lambda _: self._take_title_again(), immediate=True)

    @contextmanager
    def suspend(self) -> Iterator[None]:
        """Hand over the terminal for a `with` block, and take it back even after an error."""
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
        """Restore the terminal's original title."""
        self._restore_title()

    def _restore_title(self) -> None:
        if self._named:
            self._named = False
            self._write(_POP_TITLE)

    def _take_title_again(self) -> None:
        if self._title:
            self._write_title(self._title)

    def name_window(self, title: Clean) -> None:
        """Set the terminal's title; save the original one the first time."""
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
        """Ring or notify the user, who may be looking elsewhere; the settings say how."""
        if self.config.ring is not Ring.OFF:
            self._ringer.ring(notice)

    def _sound(self, notice: Notification) -> None:
        """Ring or notify, and show the event in the window title until the user is back."""
        self._news = notice
        self._write_title(ellipsis(Clean(f"{notice.title}: {notice.text}"), _TITLE))
        if self.config.ring is Ring.BELL:
            self._write(BELL)
        else:
            self.run_worker(self._notify(notice), group="ring")

    async def _notify(self, notice: Notification) -> None:
        self._write(
            notification_sequence(notice, await asyncio.to_thread(ringing_terminal, os.environ))
        )

    def _is_seen(self) -> None:
        """Reset the window title, because the user is back."""
        if self._news is not None:
            self._news = None
            self._write_title(self._title)

    def watch_app_focus(self, focus: bool) -> None:
        """Reset the window title once the window has the focus."""
        if focus:
            self._is_seen()

    def _write(self, sequence: str) -> None:
        if self._driver is not None and not self.is_headless:
            self._driver.write(sequence)

    @on(CopyRequested)
    def _copy(self, message: CopyRequested) -> None:
        self.copy(message.text, message.what)

    def get_line_filters(self) -> Sequence[LineFilter]:
        """Return the line filters, including one against terminal control characters."""
        return [*super().get_line_filters(), _NO_CONTROLS]

    def copy(self, text: str, what: str) -> None:
        """Copy `text` to the clipboard and report it as `what`."""
        super().copy_to_clipboard(clean(text))
        self.show_message(f"Copied {what}")

    def copy_to_clipboard(self, text: str) -> None:
        """Copy the selected text to the clipboard and report its size."""
        lines = text.count("\n") + 1
        self.copy(text, f"{lines:,} lines" if lines > 1 else f"{len(text):,} characters")

    def show_message(
        self, text: str, *, problem: bool = False, seconds: float = NOTIFICATION_TIMEOUT
    ) -> None:
        """Show a message for some seconds, in the status line if it fits.

        Errors and longer messages appear at the top right instead, over the screen's first lines.
        """
        if not self.screen_stack:
            return
        line = next(iter(self.screen.query("#status").results(BarLine)), None)
        told = clean_line(text)
        if problem or line is None or not line.show_message(told, seconds):
            self.notify(
                clean(text), severity="error" if problem else "information", timeout=seconds,
                markup=False,
            )  # fmt: skip

    def _end_message(self) -> None:
        for line in self.screen.query("#status").results(BarLine) if self.screen_stack else ():
            line.end_message()

    def show_text(self, title: str, text: str, *, what: str) -> None:
        """Show a long text on its own screen, from which it can be copied.

        `what`: the name of the text in the message that reports the copy.
        """
        self.push_screen(
            RawScreen(clean_line(title), clean(text), what=what, ascii=self.config.ascii)
        )


def _has_more_to_do(pump: MessagePump) -> bool:
    waits = pump._pending_message is not None or bool(pump._next_callbacks)
    return waits or pump.message_queue_size > 0
