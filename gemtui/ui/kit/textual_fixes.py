"""Patches for bugs and slow code in Textual that subclasses can't fix.

Without them, Textual 8.2.8 ignores or misreads keys with modifiers that some terminals send, ends
with an error if an `OptionList` gets narrower than the padding of its options, calls what a stopped
timer was to call if the call already waits behind other messages, and never calls what a timer was
to call if the machine is so busy that the timer is late from the start.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from textual import events
from textual._xterm_parser import XTermParser
from textual.css.model import RuleSet
from textual.geometry import Size
from textual.message_pump import MessagePump
from textual.timer import Timer, TimerCallback
from textual.widgets import OptionList  # noqa: TID251 (its own class is what is mended)

_move_page = OptionList._move_page
_update_lines = OptionList._update_lines
_get_content_height = OptionList.get_content_height
_set_timer = MessagePump.set_timer


_keys_of_sequence = XTermParser._sequence_to_key_events
_MODIFIED = re.compile(r"\x1b\[27;(\d+);(\d+)~")
"""Matches the escape sequences that tmux and xterm send for keys with modifiers.

xterm sends them if its modifyOtherKeys is on.
"""


def _keys_with_their_modifiers(
    self: XTermParser, sequence: str, alt: bool = False
) -> Iterable[events.Key]:
    """Yield the keys for an escape sequence, including two kinds Textual can't parse.

    ESC CR becomes alt+enter. The sequences that tmux and xterm send for keys with modifiers are
    converted to the format of kitty's keyboard protocol, which Textual can parse.
    """
    if sequence == "\x1b\r":
        sequence = "\x1b[13;3u"
    return _keys_of_sequence(self, _MODIFIED.sub("\x1b[\\2;\\1u", sequence), alt)


def _around(options: OptionList) -> int:
    """Return the width in cells of an option list's padding and gutter."""
    padding = options.get_component_styles("option-list--option").padding
    return padding.width + options._get_left_gutter_width()


def _has_room(options: OptionList) -> bool:
    """Return whether an option list has room for at least one cell of text."""
    region = options.scrollable_content_region
    return region.width > _around(options) and region.height > 0


def _move_page_if_there_is_one(self: OptionList, direction: int) -> None:
    if _has_room(self):
        _move_page(self, direction)  # type: ignore[arg-type]


def _update_lines_if_they_have_cells(self: OptionList) -> None:
    if _has_room(self):
        _update_lines(self)


def _get_height_of_a_cell_or_more(
    self: OptionList, container: Size, viewport: Size, width: int
) -> int:
    return _get_content_height(self, container, viewport, max(width, _around(self) + 1))


def _set_timer_that_can_be_stopped(
    self: MessagePump, delay: float, callback: TimerCallback | None = None, **options: Any
) -> Timer:
    """Return a timer that calls `callback` however late it is, unless it is stopped before."""

    def call() -> object:
        is_stopped = timer._task is None
        return None if callback is None or is_stopped else callback()

    timer = _set_timer(self, delay, call, **options)
    timer._skip = False
    return timer


def apply_fixes() -> None:
    """Patch Textual's classes; calling this more than once is harmless."""
    XTermParser._sequence_to_key_events = _keys_with_their_modifiers  # type: ignore[method-assign]
    OptionList._move_page = _move_page_if_there_is_one  # type: ignore[method-assign]
    OptionList._update_lines = _update_lines_if_they_have_cells  # type: ignore[method-assign]
    OptionList.get_content_height = _get_height_of_a_cell_or_more  # type: ignore[method-assign]
    MessagePump.set_timer = _set_timer_that_can_be_stopped  # type: ignore[method-assign]
    # Textual hashes all CSS rules whenever it styles a widget. This hash is equally good, and it
    # needs no Python call.
    RuleSet.__hash__ = object.__hash__  # type: ignore[method-assign]
