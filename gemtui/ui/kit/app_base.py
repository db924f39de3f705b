"""The app as its screens know it: settings, clock, symbols, messages to the user.

Screens and dialogs depend on `AppBase` only. Its subclass `GemtuiApp` is the only class that knows
about the individual panes.
"""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Callable, Coroutine, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import cached_property, partial
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, ClassVar, cast

from msgspec import Struct
from textual import events, on
from textual.app import App
from textual.await_complete import AwaitComplete
from textual.content import Content
from textual.dom import DOMNode
from textual.filter import LineFilter
from textual.message import Message
from textual.message_pump import MessagePump
from textual.screen import ModalScreen, Screen, ScreenResultType
from textual.signal import Signal
from textual.widget import Widget
from textual.worker import NoActiveWorker, Worker, WorkerFailed, get_current_worker

from gemtui.config import Config, Ring
from gemtui.errors import GemtuiError, message_of
from gemtui.interrupts import StopRequest
from gemtui.notify import (
    BELL,
    Notification,
    Ringer,
    ask_tmux,
    notification_sequence,
    ringing_terminal,
)
from gemtui.paths import current_folder, state_dir
from gemtui.sessions.catalog.preload import StorePreload
from gemtui.sessions.catalog.summary import Summary
from gemtui.text import clean, clean_line, ellipsis
from gemtui.ui.draw.theme import ASCII, UNICODE, Glyphs
from gemtui.ui.kit.bars import BarLine, tabs
from gemtui.ui.kit.clean_widgets import NoControls
from gemtui.ui.kit.keys import BY_ID
from gemtui.ui.kit.messages import CopyRequested

if TYPE_CHECKING:
    from gemtui.runs.adapter import GeminiAdapter

FieldValues = tuple[str | bool, ...]
"""The values of a dialog's fields, in field order."""

_NO_CONTROLS = NoControls()
_HELD, _HELD_FOR_DIALOG = 2.0, 10.0
"""The longest time to hold back a key, in seconds: normally, and before the first dialog of an
action.

The second limit is longer because a dialog may have to read files before it opens.
"""
_EXPECTED = 0.5
"""Seconds for which a dialog is expected after the key that opens it."""
_FINISHING = 2.0
"""Seconds that changes to files may take to finish after a signal.

The app forces its exit a little later.
"""
_TOO_EARLY = "Ignored, because this dialog had only just appeared. Press the key again."
_MOST_TYPED = 50
"""The most held keys that a text field gets at a time, or that the key that quits waits for."""
_PUSH_TITLE, _POP_TITLE = "\x1b[22;2t", "\x1b[23;2t"
_TITLE = 120
"""Maximum length of the window title in cells while it shows a notification."""


class Start(Struct, frozen=True, kw_only=True):
    """The options that the app starts with.

    `home`: Gemini CLI's folder. `project`: the folder whose sessions are listed first; None lists
    all projects' sessions. `cache`: gemtui's folder for cached session summaries; None disables the
    cache. `session`: a session to open right away. `opening`: the loading of the session store, if
    it has already been started; otherwise None. `adapter`: starts the runs; None uses the installed
    Gemini CLI.
    """

    home: Path
    project: Path | None = None
    cache: Path | None = None
    session: Summary | None = None
    demo: bool = False
    opening: StorePreload | None = None
    adapter: GeminiAdapter | None = None

    @property
    def folder(self) -> Path:
        """The folder that gemtui was opened on, where runs start unless another one is chosen."""
        return self.project or current_folder()


class AnsweringScreen(Screen[ScreenResultType]):
    """A screen that returns only its first answer.

    A second answer may arrive if the user presses several keys quickly, or if a worker answers
    while another screen is on top. An answered screen closes once no other screen covers it. Keys
    are held back until the screen has its widgets, focus and cursor.
    """

    RARELY_ASKS: ClassVar[frozenset[str]] = frozenset()
    """Names of workers that seldom open a dialog, so keys aren't held back for them."""
    TAKES_TEXT: ClassVar[bool] = False
    """Whether the screen has fields, for text that may be typed before it opens."""
    _answer: tuple[ScreenResultType | None] | None = None
    asked = 0.0
    """When the screen's question was created, on the clock that Textual's events use."""
    takes_keys = False
    """Whether the screen's widgets can receive keys; until then, keys are held back."""
    follows_dialog = False
    """Whether the screen was opened after an earlier dialog of the same action.

    Of the keys that were pressed before it opened, it gets only text for a field.
    """
    quiet_since: float | None = None
    """When the user last pressed a key, or the screen appeared, if it appeared unexpectedly.

    None if the screen's keys act at once.
    """

    @property
    def gemtui(self) -> AppBase:
        """The app, typed as `AppBase`."""
        return cast("AppBase", self.app)

    @property
    def asking_since(self) -> float:
        """When this screen started to open a dialog, or 0 if it isn't opening one.

        The time is on the clock that Textual's events use.
        """
        return 0.0

    @property
    def is_answered(self) -> bool:
        """Whether the screen has its answer, so that it is about to close."""
        return self._answer is not None

    def dismiss(self, result: ScreenResultType | None = None) -> AwaitComplete:
        """Close with `result`, or with the earlier answer if there already is one.

        If a different screen covers this one, this one closes once it is no longer covered.
        """
        if self._answer is None:
            self._answer = (result,)
        return self._go()

    def action_close(self) -> None:
        """Close without an answer."""
        self.dismiss(None)

    async def _dispatch_message(self, message: Message) -> None:
        """Handle a message, unless the screen has its answer; report errors to the user.

        Once it has its answer, messages from the screen's own widgets are dropped.
        """
        if self._answer is None or message.control is None:
            try:
                await super()._dispatch_message(message)
            except (GemtuiError, OSError) as error:
                self.gemtui.reporting().report(error)

    @on(events.ScreenResume)
    def _uncovered(self) -> None:
        self.app.call_later(self._take_keys)  # after any pending focus changes
        if self._answer is not None:
            self._go()

    def _take_keys(self) -> None:
        self.takes_keys = True
        if self.quiet_since is not None:
            self.quiet_since = Message().time

    def _go(self) -> AwaitComplete:
        if self._answer is not None and not self.is_mounted:
            self.call_later(self._go)
        elif self._answer is not None and self.is_active:
            self.workers.cancel_node(self)
            return super().dismiss(self._answer[0])
        return AwaitComplete()


class DialogScreen(ModalScreen[ScreenResultType], AnsweringScreen[ScreenResultType]):
    """A modal dialog that returns only its first answer."""


class OrdersKeys(App[None]):
    """An app in which each key takes effect before the next one does.

    Keys that were pressed before a screen closed, or before a question appeared, are dropped. A
    screen that appears unexpectedly gets keys only after a pause in typing.
    """

    def __init__(self, *, ansi_color: bool | None = None) -> None:
        super().__init__(ansi_color=ansi_color)
        self.last_key = 0.0
        """The time of the last key press or paste, on the clock that Textual's events use."""
        self._popped = 0.0
        self._acted = 0.0
        """When a key last took effect."""
        self._held: deque[events.Key | events.Paste] = deque()
        self._held_since = 0.0

    def pop_screen(self) -> AwaitComplete:
        """Close the top screen, and record the time.

        Keys pressed before that time are dropped, because they were meant for the closed screen,
        except for text that another dialog of the same action takes.
        """
        self._popped = Message().time
        return super().pop_screen()

    def push_screen(self, screen: Any, *arguments: Any, **options: Any) -> Any:
        """Show a screen, and note whether the user can't have expected it."""
        if isinstance(screen, AnsweringScreen) and self._is_unexpected(screen):
            screen.quiet_since = Message().time
        return super().push_screen(screen, *arguments, **options)

    def _is_unexpected(self, screen: AnsweringScreen[Any]) -> bool:
        """Return whether a screen is opened by something other than the last key.

        A worker that opens a screen was started by a key, or goes on because a key has closed its
        last screen. If another key took effect since then, or if much time has passed, the user may
        be busy with something else.
        """
        try:
            worker = get_current_worker()
        except NoActiveWorker:
            return False
        node = worker.node
        if isinstance(node, AnsweringScreen) and worker.name in node.RARELY_ASKS:
            return True
        began = max(worker._created_time, self._popped)
        is_slow = Message().time - began > _EXPECTED
        return self._acted > began or (is_slow and not screen.TAKES_TEXT)

    async def on_event(self, event: events.Event) -> None:
        """Hold back each key until the previous one has taken effect (see `_at_rest`).

        Keys pressed before a screen closed are dropped. So are keys pressed before the current
        question appeared, because they can't be meant as its answer. The key that quits waits for a
        few keys, so that what was done last is kept; if there are many, it drops them.
        """
        if isinstance(event, events.Key | events.Paste):
            self.last_key = max(self.last_key, event.time)
        if isinstance(event, events.InputEvent | events.Paste) and self._is_late(event):
            return
        if not isinstance(event, events.Key | events.Paste) or event.is_forwarded:
            await super().on_event(event)
        elif self._is_quit(event) and len(self._held) > _MOST_TYPED:
            self._held.clear()
            await self._act(event)
        elif self._held or not self._at_rest():
            self._hold(event)
        else:
            await self._act(event)

    def _is_quit(self, event: events.Key | events.Paste) -> bool:
        return isinstance(event, events.Key) and event.key == BY_ID["app.quit"].keys

    def _is_late(self, event: events.Event) -> bool:
        if self._exit or not self.screen_stack:
            return True
        screen = self.screen
        if isinstance(event, events.MouseEvent):
            return False
        if not isinstance(screen, AnsweringScreen) or screen.quiet_since is not None:
            return event.time <= self._popped
        if screen.follows_dialog and isinstance(event, events.Key) and self._is_typed(event):
            return False
        return event.time <= max(self._popped, screen.asked)

    @property
    def has_pending_keys(self) -> bool:
        """Whether keys are being held back until earlier ones have taken effect."""
        return bool(self._held)

    def _at_rest(self) -> bool:
        """Return whether all events are handled and the top screen can receive keys.

        A key's binding runs only after the key has bubbled up from the focused widget, and it may
        post further messages. A key that didn't wait for these could go to the wrong widget, for
        example into an input that is about to close.
        """
        screen = self.screen
        pumps = (self, screen, *screen.walk_children())
        busy = screen._callbacks or any(map(_has_more_to_do, pumps))
        return self._takes_keys() and not busy and not self._opens_dialog()

    def _takes_keys(self) -> bool:
        screen = self.screen
        return not isinstance(screen, AnsweringScreen) or (
            screen.takes_keys and not screen.is_answered
        )

    def _opens_dialog(self) -> bool:
        """Return whether the top screen may be about to open a dialog.

        That may be the first dialog of an action or, once that is answered, another one. After some
        seconds, none is expected any more.
        """
        began = self._asking_since()
        longest = _HELD_FOR_DIALOG if began > self._popped else _HELD
        return began > 0 and Message().time - max(began, self._popped) < longest

    def _asking_since(self) -> float:
        screen = self.screen
        return screen.asking_since if isinstance(screen, AnsweringScreen) else 0.0

    def _hold(self, event: events.Key | events.Paste) -> None:
        if not self._held:
            self._held_since = monotonic()
            self._hand_out_soon()
        self._held.append(event)

    def _hand_out_soon(self) -> None:
        asyncio.get_running_loop().call_later(0.001, self.call_later, self._hand_out)

    async def _hand_out(self) -> None:
        """Handle the first held key; in a text field, handle following typed text too.

        If the app is still busy, this waits, but only until the first key has been held for `_HELD`
        seconds and no dialog is about to open. A screen that has just opened gets no key before its
        widgets are there, however long a slow machine needs for them.
        """
        if not self._held:
            return
        waited = monotonic() - self._held_since > _HELD and not self._opens_dialog()
        if self._at_rest() or (self._takes_keys() and waited):
            event, self._held_since = self._held.popleft(), monotonic()
            typed = self._is_typed(event)
            await self._let_act(event)
            for _ in range(_MOST_TYPED if typed else 0):
                if not self._held or not self._is_typed(self._held[0]):
                    break
                await self._let_act(self._held.popleft())
        if self._held:
            self._hand_out_soon()

    def _is_typed(self, event: events.Key | events.Paste) -> bool:
        """Return whether the focused field would insert this key (not a paste) as text."""
        if isinstance(event, events.Paste) or self.focused is None:
            return False
        return _is_text_for(self.focused, event)

    async def _let_act(self, event: events.Key | events.Paste) -> None:
        """Handle a held key, unless it was pressed for another screen than the one on top."""
        if not self._is_late(event) and not self._is_for_dialog(event):
            await self._act(event)

    def _is_for_dialog(self, event: events.Key | events.Paste) -> bool:
        """Return whether a key is text for a dialog that has not opened in time."""
        is_text = isinstance(event, events.Key) and event.is_printable and not self._is_typed(event)
        return is_text and self._asking_since() > 0

    async def _act(self, event: events.Key | events.Paste) -> None:
        screen = self.screen
        if isinstance(screen, AnsweringScreen) and screen.quiet_since is not None:
            if self.is_too_early(event.time) and not self._declines(event):
                screen.quiet_since = max(screen.quiet_since, event.time)
                self._act_too_early(event)
                return
            screen.quiet_since = None
        self._acted = Message().time
        await super().on_event(event)

    def _declines(self, event: events.Key | events.Paste) -> bool:
        return isinstance(event, events.Key) and event.key in ("escape", BY_ID["app.quit"].keys)

    def is_too_early(self, time: float) -> bool:
        """Return whether the top screen appeared unexpectedly and the user hasn't paused since.

        `time`: when a key was pressed. The pause is as long as before a run's question is answered.
        """
        from gemtui.runs.gate.questions import QUIET

        screen = self.screen
        if not isinstance(screen, AnsweringScreen) or screen.quiet_since is None:
            return False
        return time - screen.quiet_since < QUIET

    def _act_too_early(self, event: events.Key | events.Paste) -> None:
        """Let a key do nothing, but put text into the field where the user was typing."""
        field = self.screen_stack[-2].focused
        if field is not None and _is_text_for(field, event):
            field._forward_event(event)


class AppBase(OrdersKeys):
    """The part of the app that screens and dialogs depend on.

    Rendering functions read its attributes `glyphs` (the symbols to draw) and `clock` (the time
    now). The signal `signs_changed` is published whenever the symbols in the mode tabs may have
    changed.
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
        self._named, self._title = False, ""
        self._told_to_wait = 0.0
        self._news: Notification | None = None
        self._ringer = Ringer(self._sound, self.set_timer)
        self.drafts: dict[Hashable, FieldValues] = {}
        """The texts that the user typed into dialogs that were closed without submitting."""
        self.stop = StopRequest(_FINISHING)
        """Tells threads that change a project's files to stop, because a signal ends the app."""
        self.handed_over = False
        """Whether another program is using the terminal."""
        self.at_extension = False
        """Whether the extension is being changed, or a dialog about it is open."""

    @cached_property
    def adapter(self) -> GeminiAdapter:
        """The adapter that starts runs: `Start.adapter`, or one for the installed CLI."""
        from gemtui.runs.adapter import GeminiAdapter

        return self.start.adapter or GeminiAdapter()

    @property
    def runs_dir(self) -> Path:
        """The folder that contains one subfolder for each run."""
        adapter = self.start.adapter
        return state_dir() / "runs" if adapter is None else adapter.runs

    def signs(self) -> Mapping[str, str]:
        """Return the symbols for the mode tabs, by the id of each mode's key."""
        return {}

    def name_of(self, session: str) -> str | None:
        """Return the name the user gave to the session with this id, or None."""
        del session
        return None

    def summaries(self) -> Sequence[Summary]:
        """Return the summaries of all stored sessions found so far."""
        return ()

    async def is_running_in(self, session: str) -> bool:
        """Return whether a run is working in this session.

        This includes runs of other gemtui processes.
        """
        del session
        return False

    async def next_run_asks(self, folder: Path) -> bool:
        """Return whether the next run in a folder asks before calls, instead of denying them."""
        del folder
        return False

    def tabs(self, current: str, *, first: str = "") -> Sequence[Content]:
        """Return the mode tabs for a header, each with its symbol from `signs`.

        `current`: the id of the current mode's key. `first`: the key to press before a mode's own
        key, or "" if none is needed.
        """
        return tabs(current, self.signs(), first=first)

    async def push_screen_wait(
        self, screen: Screen[ScreenResultType] | str, *, mode: str | None = None
    ) -> ScreenResultType | Any:
        """Show a screen and return its result.

        If the caller is cancelled while it waits, the screen is closed.
        """
        if isinstance(screen, AnsweringScreen):
            screen.follows_dialog = 0 < self._asking_since() <= self._popped
        try:
            return await super().push_screen_wait(screen, mode=mode)
        except asyncio.CancelledError:
            if isinstance(screen, AnsweringScreen) and self.is_running and not self._exit:
                screen.dismiss()
            raise

    async def _dispatch_message(self, message: Message) -> None:
        with self.reporting():
            await super()._dispatch_message(message)

    def _handle_exception(self, error: Exception) -> None:
        """Report a GemtuiError or OSError that ended a worker; end the app after other errors."""
        is_reported = isinstance(error, WorkerFailed) and self.reporting().report(error.error)
        if not is_reported:
            super()._handle_exception(error)

    async def _act(self, event: events.Key | events.Paste) -> None:
        if isinstance(event, events.Key):
            self._is_seen()
            self._end_message()
        await super()._act(event)

    def _act_too_early(self, event: events.Key | events.Paste) -> None:
        super()._act_too_early(event)
        if event.time - self._told_to_wait > self.NOTIFICATION_TIMEOUT:
            self._told_to_wait = event.time
            self.show_message(_TOO_EARLY)

    def on_mount(self) -> None:
        self.app_suspend_signal.subscribe(self, lambda _: self._restore_title(), immediate=True)
        self.app_resume_signal.subscribe(self, lambda _: self._take_title_again(), immediate=True)

    @contextmanager
    def suspend(self) -> Iterator[None]:
        """Release the terminal during the `with` block; take it back even after errors."""
        failed: Exception | None = None
        with super().suspend():
            self.handed_over = True
            try:
                yield
            except Exception as error:  # re-raised once the screen is back
                failed = error
            finally:
                self.handed_over = False
                # what was typed before was meant for the other program
                self._popped = Message().time
        if failed is not None:
            raise failed

    def on_unmount(self) -> None:
        self._restore_title()

    def _restore_title(self) -> None:
        if self._named:
            self._named = False
            self._write(_POP_TITLE)

    def _take_title_again(self) -> None:
        if self._title:
            self._write_title(self._title)

    def name_window(self, title: str) -> None:
        """Set the terminal's title; the original title is restored when the app ends."""
        is_new, self._title = title != self._title, title
        if is_new and self._news is None:
            self._write_title(title)

    def _write_title(self, title: str) -> None:
        if not self._named:
            self._named = True
            self._write(_PUSH_TITLE)
        self._write(f"\x1b]2;{clean_line(title)}\x07")

    # --- notifications ---------------------------------------------------------------------------

    def ring(self, notice: Notification) -> None:
        """Alert the user, who may be looking elsewhere, in the way chosen in the settings.

        Does nothing if the setting `ring` is off.
        """
        if self.config.ring is not Ring.OFF:
            self._ringer.ring(notice)

    def _sound(self, notice: Notification) -> None:
        """Ring the bell or notify the desktop, and show the notice in the window title.

        It stays in the title until the user presses a key or returns to the window.
        """
        self._news = notice
        self._write_title(ellipsis(f"{notice.title}: {notice.text}", _TITLE))
        if self.config.ring is Ring.BELL:
            self._write(BELL)
        else:
            start_worker(self, partial(self._notify, notice), group="ring")

    async def _notify(self, notice: Notification) -> None:
        self._write(
            notification_sequence(notice, await asyncio.to_thread(ringing_terminal, os.environ))
        )

    def _is_seen(self) -> None:
        """Reset the window title, because the user has seen its notification."""
        if self._news is not None:
            self._news = None
            self._write_title(self._title)

    def watch_app_focus(self, focus: bool) -> None:
        """Reset the window title when the window gets the focus."""
        if focus:
            self._is_seen()

    def _write(self, sequence: str) -> None:
        if self._driver is not None and not self.is_headless:
            self._driver.write(sequence)

    @on(CopyRequested)
    def _copy(self, message: CopyRequested) -> None:
        self.copy(message.text, message.what)

    def get_line_filters(self) -> Sequence[LineFilter]:
        """Return Textual's line filters plus one that makes control characters harmless."""
        return [*super().get_line_filters(), _NO_CONTROLS]

    def copy(self, text: str, what: str) -> None:
        """Copy `text` to the clipboard, and show the message "Copied" followed by `what`."""
        text = clean(text)
        super().copy_to_clipboard(text)
        if os.environ.get("TMUX"):
            start_worker(self, partial(self._copy_to_tmux, text), group="copy")
        self.show_message(f"Copied {what}")

    async def _copy_to_tmux(self, text: str) -> None:
        """Set tmux's newest buffer and its terminal's clipboard.

        By default, tmux ignores the escape code by which a program inside it sets the clipboard.
        """
        await asyncio.to_thread(ask_tmux, "load-buffer", "-w", "-", stdin=text)

    def copy_to_clipboard(self, text: str) -> None:
        """Copy the text that the user has selected, and show how much was copied."""
        lines = text.count("\n") + 1
        self.copy(text, f"{lines:,} lines" if lines > 1 else f"{len(text):,} characters")

    def show_message(
        self, text: str, *, problem: bool = False, seconds: float = NOTIFICATION_TIMEOUT
    ) -> None:
        """Show a message for a few seconds in the status line.

        If the message is about a problem, or if it doesn't fit there, it appears as a toast at the
        bottom instead.
        """
        if not self.screen_stack:
            return
        line = next(iter(self.screen.query("#status").results(BarLine)), None)
        if problem or line is None or not line.show_message(text, seconds):
            self.notify(
                clean(text),
                severity="error" if problem else "information",
                timeout=seconds,
                markup=False,
            )

    def reporting(self, failed: str = "") -> Reporting:
        """Return a context manager that reports a GemtuiError or OSError to the user.

        Such an error is shown and not raised; the rest of the `with` block is skipped. `failed`:
        text to put before the error, such as "Not applied".
        """
        return Reporting(self.show_message, failed)

    def _end_message(self) -> None:
        for line in self.screen.query("#status").results(BarLine) if self.screen_stack else ():
            line.end_message()


class Reporting:
    """A context manager that shows GemtuiErrors and OSErrors instead of raising them."""

    def __init__(self, show_message: Callable[..., None], failed: str) -> None:
        self._show_message, self._failed = show_message, failed

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> bool:
        return self.report(error)

    def report(self, error: BaseException | None) -> bool:
        """Show `error` if it is a GemtuiError or OSError; return whether it is."""
        if not isinstance(error, GemtuiError | OSError):
            return False
        message = message_of(error)
        self._show_message(f"{self._failed}: {message}" if self._failed else message, problem=True)
        return True


def start_worker(
    node: DOMNode,
    work: Callable[[], Coroutine[Any, Any, None]],
    *,
    group: str = "default",
    exclusive: bool = False,
) -> Worker[None]:
    """Run a coroutine function as a worker of `node`; `group` and `exclusive` are Textual's.

    It takes no coroutine: Python complains about one that is never awaited, and the app may end
    before the worker begins.
    """
    return node.run_worker(work, group=group, exclusive=exclusive)


def _is_text_for(field: Widget, event: events.Key | events.Paste) -> bool:
    """Return whether a field would insert what was typed or pasted as text."""
    if isinstance(event, events.Paste):
        return field.check_consume_key("a", "a")
    return field.check_consume_key(event.key, event.character)


def _has_more_to_do(pump: MessagePump) -> bool:
    waits = pump._pending_message is not None or bool(pump._next_callbacks)
    return waits or pump.message_queue_size > 0
