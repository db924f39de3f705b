"""Messages for the renderer's tests: one of each kind, and looks that don't depend on a clock."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from msgspec import Struct, convert

from gemtui.transcript import model
from gemtui.transcript.model import (
    Author,
    Block,
    Display,
    Dropped,
    Message,
    ToolCall,
    ToolStatus,
)
from gemtui.transcript.usage import Usage
from gemtui.ui.draw.theme import UNICODE, Glyphs, Look, plain_look
from gemtui.ui.transcript.message import Drawn, draw_message
from tests.rows import table

NOW = datetime(2026, 11, 21, 12, 30, tzinfo=UTC)
AT = datetime(2026, 11, 21, 12, 4, tzinfo=UTC)


def look(width: int, glyphs: Glyphs = UNICODE) -> Look:
    """Our dark theme at a fixed time."""
    return plain_look(width, now=NOW, glyphs=glyphs, tz=UTC)


def drawn(
    *blocks: Block, width: int = 74, author: Author = Author.MODEL, folded: bool | None = None
) -> Drawn:
    """A message of these blocks; `folded` holds for all of them."""
    return draw_message(said(*blocks, author=author), look(width), folded=lambda _: folded)


def lines(drawing: Drawn) -> list[str]:
    """What one sees of a drawing."""
    return [strip.text for strip in drawing.strips]


def body(drawing: Drawn) -> list[str]:
    """The lines between the head line and the empty one."""
    return lines(drawing)[1:-1]


def said(*blocks: Block, author: Author = Author.MODEL, **more: Any) -> Message:
    """A message of these blocks."""
    return Message(id="m", author=author, blocks=blocks, **more)


def called(
    name: str = "read_file",
    display: Display | None = None,
    status: ToolStatus = ToolStatus.SUCCESS,
    **more: Any,
) -> ToolCall:
    """A tool call; arguments come as `args`."""
    return ToolCall(
        id="t", name=name, args=more.pop("args", {}), status=status, display=display, **more
    )


KINDS = {
    name: kind
    for name, kind in vars(model).items()
    if isinstance(kind, type) and issubclass(kind, Struct)
}
READERS: dict[str, Callable[[Any], Any]] = {
    "author": Author,
    "dropped": Dropped,
    "duration": lambda seconds: timedelta(seconds=seconds),
    "images": tuple,
    "status": ToolStatus,
    "time": datetime.fromisoformat,
}


def built(row: dict[str, Any]) -> Any:
    """What a table tells: `{"called": {…}}` and `{"said": {…}}` as above, or `{"Text": {…}}`."""
    name = next(iter(row), "")
    if name in KINDS:
        return convert(row[name], KINDS[name])
    if name not in ("called", "said"):
        return row
    options = {
        key: READERS[key](value) if key in READERS else value for key, value in row[name].items()
    }
    return called(**options) if name == "called" else said(*options.pop("blocks"), **options)


_SAMPLES = table("transcript/samples.json", built)
DIFF: str = _SAMPLES["diff"]
MARKDOWN: str = _SAMPLES["markdown"]
CARDS: tuple[ToolCall, ...] = tuple(_SAMPLES["cards"])


def messages() -> Sequence[Message]:
    """A conversation with everything in it."""
    usage = Usage(input=10, output=5, cached=0, thoughts=0, tool=0, total=99)
    text = model.Text(text="One test still fails.")
    cards = said(*CARDS, text, time=AT - timedelta(days=1), usage=usage)
    first, second, *others = _SAMPLES["messages"]
    return (first, second, cards, *others)
