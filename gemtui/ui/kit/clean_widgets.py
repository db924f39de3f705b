"""Textual's widgets restricted to clean text, and a filter before the terminal.

Textual's own text widgets accept any `str` and interpret markup in it, so no other module of
`gemtui.ui` imports them. The widgets here read no markup, and clean all text that they are given.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import ClassVar

from rich.cells import cell_len
from rich.segment import Segment
from rich.text import Text
from textual import widgets
from textual.binding import Binding, BindingType
from textual.color import Color
from textual.containers import Vertical
from textual.content import Content
from textual.filter import LineFilter
from textual.message import Message
from textual.suggester import Suggester
from textual.widget import Widget
from textual.widgets import Checkbox, option_list
from textual.widgets.button import ButtonVariant

from gemtui.text import clean, clean_line, visible_line
from gemtui.ui.kit.keys import Where, bindings

Words = str | Content
"""The types of text that this module's widgets accept."""

LONGEST_LINE = 2_000
"""How many characters the user can enter into a one-line field.

Some fields search or validate on every key press, which takes longer the more text they contain.
The program itself may set longer values.
"""


Complete = Callable[[str], str | None]
"""A function that completes the text typed so far, or returns None if it can't."""


class _Completer(Suggester):
    def __init__(self, complete: Complete) -> None:
        super().__init__(use_cache=False, case_sensitive=True)
        self._complete = complete

    async def get_suggestion(self, value: str) -> str | None:
        return self._complete(value)


class Static(widgets.Static):
    """A widget that shows one or more lines of text."""

    def __init__(
        self, words: Words = "", *, id: str | None = None, classes: str | None = None
    ) -> None:
        super().__init__(cleaned(words), id=id, classes=classes)

    def update(self, content: Words = "", *, layout: bool = True) -> None:  # type: ignore[override]
        """Replace the displayed text."""
        super().update(cleaned(content), layout=layout)


class Label(widgets.Label):
    """A label for a field."""

    def __init__(self, words: Words = "", *, id: str | None = None) -> None:
        super().__init__(cleaned(words), id=id)

    def update(self, content: Words = "", *, layout: bool = True) -> None:  # type: ignore[override]
        """Replace the displayed text."""
        super().update(cleaned(content), layout=layout)


class Button(widgets.Button):
    """A button with one line of text."""

    def __init__(self, words: Words, *, id: str, variant: ButtonVariant = "default") -> None:
        super().__init__(cleaned(words), variant, id=id, compact=True)


class Input(widgets.Input):
    """A one-line input that replaces control characters with visible symbols.

    `complete`: takes the text typed so far, and returns a completion to suggest, or None.
    """

    def __init__(
        self,
        value: str = "",
        *,
        placeholder: str = "",
        id: str | None = None,
        complete: Complete | None = None,
        select_on_focus: bool = True,
    ) -> None:
        super().__init__(
            value,
            clean_line(placeholder),
            id=id,
            suggester=None if complete is None else _Completer(complete),
            select_on_focus=select_on_focus,
            compact=True,
        )
        self.cursor_blink = False
        self._cut = False

    def validate_value(self, value: str) -> str:
        """Return the value with its control characters replaced by visible symbols."""
        return visible_line(value)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Disable the deletion keys while the field is empty, so its parents get them."""
        del parameters
        return bool(self.value) or not action.startswith("delete_")

    def replace(self, text: str, start: int, end: int) -> None:
        """Replace part of the value, truncating `text` if the field would get too long."""
        room = max(0, LONGEST_LINE - len(self.value) + abs(end - start))
        line = visible_line(text[:room])
        was_cut, self._cut = self._cut, len(text) > room or len(line) > room
        super().replace(line[:room], start, end)
        if self._cut and not was_cut:
            notify_cut(self, LONGEST_LINE)


def notify_cut(field: Widget, longest: int) -> None:
    """Tell the user that what they entered was cut off after `longest` characters."""
    message = f"Only {longest:,} characters fit here, so the rest was cut off."
    field.app.notify(message, severity="error", markup=False)


class Entered(Message):
    """Posted when enter is pressed in a field other than an `Input`.

    An `Input` posts `Submitted` instead.
    """


class Select(widgets.Select[str]):
    """A drop-down list, opened with space.

    `choices`: maps each value to its label.
    """

    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "enter", show=False)]

    def __init__(self, choices: Mapping[str, str], *, value: str, id: str) -> None:
        rows = [(Text(clean_line(words)), str(choice)) for choice, words in choices.items()]
        super().__init__(rows, value=value, allow_blank=False, id=id, compact=True)

    def action_enter(self) -> None:
        self.post_message(Entered())


class Option(option_list.Option):
    """An option of an `OptionList`."""

    def __init__(self, words: Words, *, id: str | None = None, disabled: bool = False) -> None:
        super().__init__(cleaned(words), id, disabled)


class OptionList(widgets.OptionList):
    """A list of options from which the user can choose one."""

    BINDINGS = bindings(Where.CHOICES)

    def __init__(self, *options: Option, id: str | None = None) -> None:
        super().__init__(*options, id=id, markup=False, compact=True)

    def action_page(self, pages: float) -> None:
        """Move the cursor by a number of pages; negative numbers move up."""
        step = 1 if pages > 0 else -1
        lines = max(1, int(abs(pages) * self.size.height))
        options, here = self.options, self.highlighted or 0
        far = max(0, min(here + step * lines, len(options) - 1))
        places = (*range(far, here, -step), *range(far, len(options) if step > 0 else -1, step))
        self.highlighted = next((at for at in places if not options[at].disabled), here)


class Dialog(Vertical):
    """The frame of a dialog, with a title in its top border.

    `keys`: a hint on the dialog's keys, shown in the bottom border.
    """

    def __init__(self, title: str, keys: str = "", *, id: str | None = None) -> None:
        super().__init__(id=id, classes="dialog")
        name_frame(self, title, keys)


def name_frame(widget: Widget, title: Words, end: Words = "") -> None:
    """Show `title` in a widget's top border and `end` in its bottom border."""
    widget.border_title, widget.border_subtitle = cleaned(title), cleaned(end)


def cleaned(words: Words) -> Content:
    """Return text without markup, its control characters replaced by visible marks.

    In a `Content`, each mark has one character, so that all styles stay where they are.
    """
    if not isinstance(words, Content):
        return Content(clean(words))
    plain = _CONTROLS.sub(_mark_unless_blank, words.plain)
    return words if plain == words.plain else Content(plain, list(words.spans))


def _mark_unless_blank(found: re.Match[str]) -> str:
    return found[0] if found[0] in "\n\t" else _mark(found)


_CONTROLS = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)


_EMOJI = "\xa9\xae\u203c\u2049\u2122\u2139\u2190-\u27bf\u2900-\u2bff\u3030\u303d" + (
    "\U0001f000-\U0001faff"
)
_JOINING = re.compile("[\u200d\ufe0f\u20e3\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f]")
_CLUSTER = re.compile(
    f"(?:[{_EMOJI}]|[0-9#*](?=\ufe0f?\u20e3))"
    f"(?:[\ufe0f\u20e3\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f]|\u200d[{_EMOJI}])+"
)
"""Matches an emoji that consists of several characters.

Such an emoji is a joined sequence, has a skin tone or a variation selector, or is a keycap or flag.
"""


class NoControls(LineFilter):
    """A filter for rendered lines that replaces characters that control the terminal.

    Rendered text should already be clean, so this filter is a second line of defence. Each control
    character becomes a symbol of one cell, so the line keeps its width. Of an emoji made of several
    characters, only the first is drawn, because terminals disagree on the width of the whole; the
    remaining cells stay empty, so the text after the emoji doesn't shift. Copied text is not
    affected.
    """

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """Return the segments without control characters and multi-character emoji."""
        del background
        if all(text.isprintable() and not _JOINING.search(text) for text, _, _ in segments):
            return segments
        marked = [
            Segment(_CLUSTER.sub(_first, _CONTROLS.sub(_mark, text)), style, control)
            for text, style, control in segments
        ]
        return Segment.adjust_line_length(marked, Segment.get_line_length(segments), pad=False)


def _first(found: re.Match[str]) -> str:
    first = found[0][0]
    return first + " " * (cell_len(found[0]) - cell_len(first))


def _mark(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code < 0x20:
        return chr(0x2400 + code)
    return "\u2421" if code == 0x7F else "\ufffd"


class Tick(Checkbox):
    """A checkbox that shows its state with a character, not only with a colour.

    Space toggles it; enter submits the dialog.
    """

    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "enter", show=False)]
    BUTTON_LEFT = "["
    BUTTON_RIGHT = "]"

    def __init__(self, words: str, ticked: bool = False, *, id: str) -> None:
        super().__init__(cleaned(words), ticked, id=id, compact=True)

    def action_enter(self) -> None:
        self.post_message(Entered())

    @property
    def _button(self) -> Content:
        return Content(f"[{'x' if self.value else ' '}]")
