"""A pilot that waits for the app, where Textual's waits for the clock.

Textual's pilot sleeps 60 ms or more for each key. An app without a terminal also draws each frame
and throws it away. Here the pilot waits until the app has nothing to do, and draws what a person
would then see when somebody looks, not after each step on the way.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic, process_time
from typing import Any

import pytest
import textual.app
from textual._compositor import Compositor
from textual._context import visible_screen_stack
from textual.app import App, ScreenStackError
from textual.message_pump import MessagePump
from textual.pilot import Pilot, WaitForScreenTimeout
from textual.screen import Screen
from textual.strip import Strip

from gemtui.ui.kit.app_base import OrdersKeys
from tests.patience import PATIENCE

_GRAIN, _REST = 0.004, 0.0006
"""Seconds of one look at the process, and of computing in them that count as none."""
_MOST = 1.0
"""Seconds of computing after which a pause ends though the process still computes; on a busy
machine they take longer than on a quiet one.
"""

_EAGER = 50
"""Looks at the app's messages until the next ones leave it a moment: a handler waits for a
thread.
"""

_render_update = Compositor.render_update


def _draw_pictures_only(
    self: Compositor,
    full: bool = False,
    screen_stack: list[Screen[Any]] | None = None,
    simplify: bool = False,
) -> Any:
    """Draw pictures at once, and other frames not at all: a test draws when it looks."""
    if full or simplify:
        return _render_update(self, full, screen_stack, simplify)
    return None


def _has_to_update(screen: Screen[Any]) -> bool:
    return bool(
        screen._layout_required
        or screen._scroll_required
        or screen._repaint_required
        or screen._dirty_widgets
        or screen._callbacks
    )


def _is_busy(pump: MessagePump) -> bool:
    """Return whether a widget, a screen or the app has a message to handle, or handles one."""
    if pump._closing or pump._closed:
        return False
    queue: Any = pump._message_queue
    return bool(queue.values) or not queue.ready_event._waiters


async def _wait_for_screen(self: Pilot[Any], timeout: float = PATIENCE) -> bool:
    """Look whether all messages are handled; Textual's pilot sends each widget one more to know
    it.
    """
    app, looks, end = self.app, 0, monotonic() + timeout
    try:
        pumps = [app, *app.screen.walk_children(with_self=True)]
    except ScreenStackError:
        return False
    while app._resize_event is not None or any(map(_is_busy, pumps)):
        if app._exception_event.is_set():
            return False
        if monotonic() > end:
            raise WaitForScreenTimeout("the app has not handled all messages")
        looks += 1
        await asyncio.sleep(0 if looks < _EAGER else 0.001)
    return True


async def _rest() -> None:
    """Wait until the process, with its threads, has computed nothing for a moment."""
    end = process_time() + _MOST
    while (before := process_time()) < end:
        await asyncio.sleep(_GRAIN)
        if process_time() - before < _REST:
            return


async def settle(pilot: Pilot[Any]) -> None:
    """Wait until all messages are handled and all widgets have their places."""
    await pilot._wait_for_screen()
    await _rest()
    await pilot.app.animator.wait_until_complete()
    if _has_to_update(pilot.app.screen):
        pilot.app.screen._on_timer_update()
        await _rest()
        pilot.app.screen._on_timer_update()


def drawn(app: App[Any]) -> list[Strip]:
    """Draw the top screen, before what can be seen of those below it, as a terminal would be sent
    it.
    """
    visible_screen_stack.set(app._background_screens)
    return app.screen._compositor.render_strips()


async def _pause(self: Pilot[Any], delay: float | None = None) -> None:
    if delay is not None:
        await asyncio.sleep(delay)
    await settle(self)


async def _until_keys_act(app: App[Any]) -> None:
    """Wait as a person does who first reads a dialog that has appeared unexpectedly."""
    while isinstance(app, OrdersKeys) and app.is_too_early(monotonic()):
        await asyncio.sleep(0.01)


async def _press(self: Pilot[Any], *keys: str) -> None:
    for key in keys:
        await _until_keys_act(self.app)
        await self.app._press_keys((key,))
        await _pause(self)


async def _no_wait(min_sleep: float = 0, max_sleep: float = 0) -> None:
    """Return at once: `_press` waits after each key."""
    await asyncio.sleep(0)


@contextmanager
def quick_pilots() -> Iterator[None]:
    """Let every pilot be quick."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Compositor, "render_update", _draw_pictures_only)
        patch.setattr(Pilot, "_wait_for_screen", _wait_for_screen)
        patch.setattr(Pilot, "pause", _pause)
        patch.setattr(Pilot, "press", _press)
        patch.setattr(textual.app, "wait_for_idle", _no_wait)
        yield
