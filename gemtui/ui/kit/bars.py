"""The horizontal bars of a screen: the header, the status line and the footer."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Literal, Protocol, runtime_checkable

from textual.content import Content
from textual.dom import DOMNode
from textual.events import Click
from textual.style import Style
from textual.timer import Timer
from textual.widget import Widget

from gemtui.text import cells, clean_line, short_path
from gemtui.ui.draw.lines import fit_end
from gemtui.ui.draw.theme import Glyphs, glyphs_of
from gemtui.ui.kit.clean_widgets import cleaned
from gemtui.ui.kit.keys import BY_ID, Key, acting

LineEnd = Literal["left", "right"]
GAP = "  "
LEAST = 24
"""The leftmost part of a bar may be cut, but not to fewer cells than this."""
_READ = 1.0
"""Seconds for which a message stays visible at least, even if keys are pressed."""
ALWAYS = (BY_ID["app.help"], BY_ID["app.command_palette"])
"""Keys that are always shown, at the right end of the footer."""


def joined(
    left: Sequence[Content],
    right: Sequence[Content],
    width: int,
    mark: str,
    *,
    gives_way: LineEnd = "right",
) -> Content:
    """Return one line of `width` cells with parts at its left and right ends.

    In both sequences, the most important part comes first; the first part of `right` is drawn at
    the far right. If the parts don't fit, the least important ones are dropped, starting with the
    side named by `gives_way`. The first part of `left` is never dropped, but it may be cut to
    `LEAST` cells, with `mark` at its end.
    """
    kept, end = [part for part in left if part], [part for part in right if part]
    first, second = (end, kept) if gives_way == "right" else (kept, end)
    while _least(kept) + len(GAP) + _width(end) > width and (len(kept) > 1 or end):
        next((side for side in (first, second) if len(side) > 1), end).pop()
    start, finish = Content(GAP).join(kept), Content(GAP).join(reversed(end))
    room = max(0, width - finish.cell_length - (len(GAP) if end else 0))
    if start.cell_length > room:
        start = start.truncate(max(0, room - len(mark))).rstrip() + mark
    return start.pad_right(width - finish.cell_length - start.cell_length) + finish


def _width(parts: Sequence[Content]) -> int:
    return sum(part.cell_length for part in parts) + len(GAP) * max(0, len(parts) - 1)


def _least(parts: Sequence[Content]) -> int:
    """Return the minimum number of cells that these parts need.

    A part on its own may be cut to `LEAST` cells.
    """
    return min(LEAST, _width(parts)) if len(parts) == 1 else _width(parts)


def titled_path(title: str, path: Path, room: int, glyphs: Glyphs) -> list[Content]:
    """Return a title and a path as parts of a header, cutting the start of the path.

    `room`: how many cells there are for both.
    """
    left = max(LEAST, room - len(title) - 2 * len(GAP))
    shown = fit_end(short_path(path), left, glyphs.ellipsis)
    return [Content.styled(title, "bold"), Content(shown)]


class BarLine(Widget):
    """A one-line bar with parts at its left and right ends.

    `show_parts` sets the parts; `show_message` temporarily shows a message in their place. `mark`:
    the text that ends a cut part; None for the app's ellipsis. `gives_way`: the end whose parts are
    dropped first if there is too little room.
    """

    def __init__(
        self,
        *,
        id: str,
        mark: str | None = None,
        gives_way: LineEnd = "right",
        classes: str | None = None,
    ) -> None:
        super().__init__(id=id, classes=classes)
        self._mark, self._gives_way = mark, gives_way
        self._left: list[Content] = []
        self._right: list[Content] = []
        self.told: str | None = None
        self._told_at = 0.0
        self._telling: Timer | None = None

    def show_parts(self, left: Sequence[Content], right: Sequence[Content] = ()) -> None:
        """Set the parts at each end, the most important one first (see `joined`)."""
        left, right = list(map(cleaned, left)), list(map(cleaned, right))
        if (left, right) != (self._left, self._right):
            self._left, self._right = left, right
            self.refresh()

    def show_message(self, text: str, seconds: float) -> bool:
        """Show a message in place of the parts for this many seconds.

        Returns False, and shows nothing, if the message is too wide.
        """
        text = clean_line(text)
        if cells(text) > self.content_size.width:
            return False
        if self._telling is not None:
            self._telling.stop()
        self._telling = self.set_timer(seconds, partial(self._tell, None))
        self._tell(text)
        return True

    def end_message(self, *, at_once: bool = False) -> None:
        """Hide the message, unless it has only been visible for less than `_READ` seconds.

        Called when the user has moved on, for example by pressing a key. `at_once`: hide it in any
        case, because it is no longer true.
        """
        if self.told is not None and (at_once or monotonic() - self._told_at > _READ):
            self._tell(None)

    def _tell(self, text: str | None) -> None:
        self._told_at = monotonic()
        self.told = text
        self.set_class(text is not None, "-telling")
        self.refresh()

    def on_resize(self) -> None:
        """Redraw, because the width determines which parts are visible."""
        self.refresh()

    async def on_click(self, event: Click) -> None:
        id = event.style.meta.get("key")
        if id is not None:
            await self.app.run_action(f"run_key({id!r})")

    def render(self) -> Content:
        """Return the current message or, if there is none, as many parts as fit."""
        if self.told is not None:
            return Content(self.told).pad_right(self.content_size.width - cells(self.told))
        width = self.content_size.width
        mark = glyphs_of(self.app).ellipsis if self._mark is None else self._mark
        return joined(self._left, self._right, width, mark, gives_way=self._gives_way)


class StatusLine(BarLine):
    """The status line, whose parts are dimmed unless they have colours of their own."""

    def __init__(self, *, gives_way: LineEnd = "right") -> None:
        super().__init__(id="status", gives_way=gives_way)

    def show_parts(self, left: Sequence[Content], right: Sequence[Content] = ()) -> None:
        """Set the parts at each end, most important first."""
        super().show_parts([_calm(part) for part in left], [_calm(part) for part in right])


def _calm(part: Content) -> Content:
    return part if part.spans else part.stylize("dim")


@runtime_checkable
class SaysWhy(Protocol):
    """A widget or screen that keeps keys active to explain why they don't work."""

    def only_says_why(self, action: str) -> bool:
        """Return whether the action's key would now only explain why it doesn't work."""


@runtime_checkable
class LabelsKeys(Protocol):
    """A widget or screen whose keys can change their effect, and so their label."""

    def key_label(self, action: str) -> str | None:
        """Return the footer label for what the action does now, or None for its usual one."""


class FooterLine(BarLine):
    """The footer: clickable hints on the keys that work in the focused widget."""

    def __init__(self) -> None:
        super().__init__(id="footer", mark="")

    def on_mount(self) -> None:
        self.screen.bindings_updated_signal.subscribe(self, lambda _screen: self.refresh())

    def render(self) -> Content:
        """Return hints on as many active keys as fit, the most useful ones first."""
        hinted = [(key, node) for key, node in acting(self.screen) if key.rank and acts(key, node)]
        hinted.sort(key=lambda pair: pair[0].rank)
        alive = self.screen.active_bindings.keys()
        left = [self._hint(key, alive, label_of(key, node)) for key, node in hinted]
        right = [self._hint(key, alive, key.label) for key in reversed(ALWAYS)]
        width = self.content_size.width - _width(right) - len(GAP)
        while left and _width(left) > width:
            left.pop()
        return joined(left, right, self.content_size.width, "")

    def _hint(self, key: Key, alive: Collection[str], label: str) -> Content:
        return key_hint(key, glyphs_of(self.app), label=label, alive=alive)


def key_hint(key: Key, glyphs: Glyphs, *, label: str = "", alive: Collection[str] = ()) -> Content:
    """Return a clickable hint on a key: its name and its label in lower case.

    `label`: replaces the key's own label. `alive`: see `Key.footer`.
    """
    return Content.assemble(
        (key.footer(ascii=glyphs.ascii, alive=alive), "bold $text-accent"),
        " ",
        ((label or key.label).lower(), "dim"),
    ).stylize(Style.from_meta({"key": key.id}))


def acts(key: Key, node: DOMNode) -> bool:
    """Return whether a key does something now at `node`, instead of only saying why not."""
    return not (isinstance(node, SaysWhy) and node.only_says_why(key.action))


def label_of(key: Key, node: DOMNode) -> str:
    """Return the label for what a key does now at `node`, which binds it."""
    named = node.key_label(key.action) if isinstance(node, LabelsKeys) else None
    return named or key.label


def key_line(id: str, glyphs: Glyphs, *, room: int = 4) -> Content:
    """Return a line with a key and what it does.

    `id`: the key's id in the key table. `room`: the width in cells of the key's column.
    """
    key = BY_ID[id]
    return Content.assemble(
        (f"{key.footer(ascii=glyphs.ascii):<{room}}", "bold $text-accent"), (key.help, "dim")
    )


_MODES = (("app.sessions", "1 Sessions"), ("app.runs", "2 Run"), ("app.policies", "3 Policy"))


def tabs(current: str, signs: Mapping[str, str], *, first: str = "") -> Sequence[Content]:
    """Return the app's name and the mode tabs, with the current one in brackets.

    `current`: the id of the current mode's key. `signs`: maps the id of each mode's key to the
    symbol after the mode's name. `first`: a key to press before a mode's own key, needed where a
    text field would otherwise insert that key. Clicking a tab switches to its mode.
    """
    return (Content.styled("gemtui", "bold $text-accent"), *_modes(current, signs, first))


def _modes(current: str, signs: Mapping[str, str], first: str) -> Sequence[Content]:
    labels = []
    for id, label in _MODES:
        text = f"{label} {signs.get(id, '')}".rstrip()
        is_current = id == current
        if first and not is_current:
            text = f"{first} {text}"
        word = Content.styled(
            f"[{text}]" if is_current else f" {text} ", "bold" if is_current else "dim"
        )
        labels.append(word.stylize(Style.from_meta({"key": id})))
    return (Content("").join(labels),)
