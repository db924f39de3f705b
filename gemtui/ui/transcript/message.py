"""A message as lines: its blocks in order, within a turn that has one head line.

A turn is a prompt and everything until the next prompt.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import assert_never

from msgspec import Struct
from rich.style import Style
from textual.strip import Strip

from gemtui.agents import WORDS
from gemtui.text import BLANKS, counted
from gemtui.transcript.call_text import only_reason
from gemtui.transcript.media import stored_images
from gemtui.transcript.model import (
    Attachment,
    Author,
    Block,
    Image,
    Message,
    Notice,
    NoticeLevel,
    Outline,
    Text,
    Thought,
    TodosDisplay,
    ToolCall,
    outline,
)
from gemtui.transcript.usage import Usage, usage_sum
from gemtui.ui.draw.formats import format_time, short_count
from gemtui.ui.draw.lines import (
    BLANK,
    Code,
    Line,
    Piece,
    Pieces,
    Strips,
    cut,
    flat,
    prefixed,
    spread,
    width_of,
    wrap,
)
from gemtui.ui.draw.markdown import draw_markdown, draw_prompt
from gemtui.ui.draw.text_rows import draw_prose, line_count, text_rows
from gemtui.ui.draw.theme import BOLD, Look, Role
from gemtui.ui.transcript.card import draw_card, draw_image, is_denied_by_user

_SHORT_TEXT = 12
_KEPT_TEXT = 3
"""Number of lines that a folded text block shows.

Only text blocks with more than `_SHORT_TEXT` lines can be folded.
"""
_SHORT_FAILURE = 40
_RECORD = 500
"""Estimated size in bytes of a record without its text: ids, times, token counts."""
_LEVELS = {
    NoticeLevel.INFO: Role.MUTED,
    NoticeLevel.WARNING: Role.WARNING,
    NoticeLevel.ERROR: Role.ERROR,
}


class DrawnBlock(Struct, frozen=True, kw_only=True):
    """The lines of a rendered message that show one block.

    They are the lines from `start` to `end` (exclusive). `block`: the block's index in the message,
    or None for the head line. `foldable`: whether folding changes what is shown. `opens`: whether
    it is a subagent's call, whose session can be opened. `media`: whether an image or other binary
    content is stored in it.
    """

    block: int | None
    start: int
    end: int
    foldable: bool = False
    folded: bool = False
    opens: bool = False
    media: bool = False


class Fence(Struct, frozen=True, kw_only=True):
    """A piece of code in a rendered message, which can be copied.

    `start`, `end`: its lines, `end` excluded. `code`: the complete code, even if some of its lines
    aren't shown.
    """

    block: int
    start: int
    end: int
    code: str
    language: str


class Drawn(Struct, frozen=True, kw_only=True):
    """A rendered message: lines that fit the width, without trailing spaces.

    `strips`: the lines; empty ones at the end separate the message from the next one. `parts`:
    which of the lines show which block. `fences`: the code in the message. The other fields have
    one item per line and are used for selecting text. `margins`: the number of cells at the left
    that belong to the frame (bar, border or line number) and not to the text. `joints`: for a line
    that continues the wrapped line above it, the text to put between the two, which is "" or a
    space; None for all other lines. `grounds`: the background of the rest of the line, up to the
    frame at its right; None for the usual one.
    """

    strips: Sequence[Strip]
    parts: tuple[DrawnBlock, ...]
    margins: tuple[int, ...]
    joints: tuple[str | None, ...]
    fences: tuple[Fence, ...] = ()
    grounds: tuple[Style | None, ...]

    @property
    def height(self) -> int:
        """The number of lines, including an empty one at the end."""
        return len(self.strips)


class Turn(Struct, frozen=True, kw_only=True):
    """A message's position in its turn (a prompt and all answers to it), which its lines depend on.

    `opens`: whether the turn begins with it. `below_call`: whether it follows a message with tool
    calls. `ends`: whether the turn ends with it. `usage`, `models`: the tokens and models of the
    turn, if it ends here.
    """

    opens: bool
    below_call: bool
    ends: bool
    usage: Usage | None
    models: Sequence[str]


def turn_of(outlines: Sequence[Outline], index: int) -> Turn:
    """Return the position of message `index` in its turn; at the turn's end also its tokens."""
    first = index
    while not _begins_turn(outlines, first):
        first -= 1
    ends = index + 1 == len(outlines) or _begins_turn(outlines, index + 1)
    turn = outlines[first : index + 1] if ends else ()
    usages = [outline.usage for outline in turn if outline.usage is not None]
    return Turn(
        opens=first == index,
        below_call=first < index and outlines[index - 1].calls > 0,
        ends=ends,
        usage=usage_sum(usages) if usages else None,
        models=tuple(dict.fromkeys(outline.model for outline in turn if outline.model)),
    )


def _begins_turn(outlines: Sequence[Outline], index: int) -> bool:
    this = outlines[index]
    return (
        index == 0 or this.author is Author.USER or this.dropped is not outlines[index - 1].dropped
    )


def draw_message(
    message: Message,
    look: Look,
    *,
    turn: Turn | None = None,
    folded: Callable[[int], bool | None] = lambda _: None,
) -> Drawn:
    """Render a message as lines.

    `look`: the colours, the symbols, and the width. `turn`: None if the message is a turn of its
    own. `folded`: called with a block's index; returns whether the user has folded the block, or
    None for the default.
    """
    turn = turn_of([outline(message)], 0) if turn is None else turn
    look = look.dimmed() if message.dropped else look
    drawing = _Drawing(look)
    if turn.opens:
        drawing.add([draw_head(message, look)])
    last: Block | None = None
    beside = author_bar(message, look)
    for index, block in enumerate(message.blocks):
        choice = folded(index)
        closed = default_folded(block) if choice is None else choice
        lines, foldable = _block(block, message, beside, look, folded=closed)
        if not lines:
            continue
        if turn.below_call and not _is_step(block) if last is None else _apart(last, block):
            drawing.lines.append(BLANK)
        drawing.add(
            lines,
            block=index,
            foldable=foldable,
            folded=closed and foldable,
            opens=isinstance(block, ToolCall) and bool(block.agent_id),
            media=bool(stored_images(block)),
        )
        last = block
    if not drawing.parts:
        drawing.add([draw_head(message, look)])
    if _is_empty_answer(message):
        drawing.lines += prefixed([_muted("(empty answer)", look)], beside)
    if turn.ends:
        drawing.lines.append(_turn_end(turn, look))
    elif last is None or not _is_step(last):
        drawing.lines.append(BLANK)
    return drawing.done()


def _is_empty_answer(message: Message) -> bool:
    """Return whether a message is a stored answer without content or calls."""
    if message.author is not Author.MODEL or message.blocks or message.original is None:
        return False
    return not message.original.get("toolCalls")


def default_folded(block: Block) -> bool:
    """Return whether a block is folded by default.

    Thoughts and attachments are folded. So are tool calls, except todo lists and failures that are
    not very long, unless the user denied the call.
    """
    match block:
        case ToolCall():
            if block.status.failed and not is_denied_by_user(block):
                return line_count(only_reason(block)) > _SHORT_FAILURE
            return not isinstance(block.display, TodosDisplay)
        case Thought() | Attachment():
            return True
        case Text() | Notice() | Image():
            return False
        case _:
            assert_never(block)


def estimate(outline: Outline, width: int) -> int:
    """Estimate a message's number of lines without reading its body; at least 2.

    The estimate assumes that most cards are folded. The length of a prompt counts little, because
    most of its bytes come from files that Gemini CLI has appended.
    """
    if outline.calls:
        return 1 + outline.calls * 3 + outline.failures * 2
    text = max(0, outline.size - _RECORD) // max(20, width - 2)
    return 3 + min(text, 6) if outline.prompt else 2 + min(text, 400)


class _Drawing(Struct):
    """Collects the lines of a message while it is being rendered, and their blocks."""

    look: Look
    lines: list[Line] = []
    parts: list[DrawnBlock] = []
    fences: list[Fence] = []

    def add(self, lines: list[Line], *, block: int | None = None, **facts: bool) -> None:
        start = len(self.lines)
        self.lines += lines
        self.parts.append(DrawnBlock(block=block, start=start, end=len(self.lines), **facts))
        if block is not None:
            self.fences += _fences(lines, start, block)

    def done(self) -> Drawn:
        return Drawn(
            strips=Strips(self.lines, self.look.width),
            parts=tuple(self.parts),
            margins=tuple([line.margin for line in self.lines]),
            joints=tuple([line.joint for line in self.lines]),
            grounds=tuple([line.ground for line in self.lines]),
            fences=tuple(self.fences),
        )


def _fences(lines: list[Line], offset: int, block: int) -> Iterator[Fence]:
    spans: list[tuple[Code, int, int]] = []
    for index, line in enumerate(lines, offset):
        if line.code is None:
            continue
        code, start, end = spans[-1] if spans else (None, 0, 0)
        if code is line.code and end == index:
            spans[-1] = (line.code, start, index + 1)
        else:
            spans.append((line.code, index, index + 1))
    for code, start, end in spans:
        yield Fence(block=block, start=start, end=end, code=code.text, language=code.language)


# --- blocks --------------------------------------------------------------------------------------


def _is_step(block: Block) -> bool:
    """Return whether a block is a line of the agent's work, which needs no space around it."""
    return isinstance(block, ToolCall | Thought)


def _apart(before: Block, block: Block) -> bool:
    """Return whether to put an empty line between two consecutive blocks."""
    if isinstance(before, ToolCall) or isinstance(block, ToolCall):
        return not (_is_step(before) and _is_step(block))
    return isinstance(before, Text) and isinstance(block, Text)


def _block(
    block: Block, message: Message, beside: Pieces, look: Look, *, folded: bool
) -> tuple[list[Line], bool]:
    inner = look.narrowed(2)
    match block:
        case ToolCall():
            return draw_card(block, look, folded=folded)
        case Text():
            lines, foldable = _text(block, message, inner, folded=folded)
        case Thought():
            lines, foldable = _thought(block, inner, folded=folded)
        case Attachment():
            lines, foldable = _attachment(block, inner, folded=folded)
        case Notice():
            lines = _notice(block, inner)
            foldable = False
        case Image():
            lines = wrap(draw_image(block, look), inner.width)
            foldable = False
        case _:
            assert_never(block)
    return list(prefixed(lines, beside)), foldable


def _text(block: Text, message: Message, look: Look, *, folded: bool) -> tuple[list[Line], bool]:
    draw = draw_markdown if message.author is Author.MODEL else draw_prompt
    lines = list(draw_prose(block.text, look, draw))
    if len(lines) <= _SHORT_TEXT:
        return lines, False
    if folded:
        mark = _muted(f"+{counted(len(lines) - _KEPT_TEXT, 'line')}", look)
        lines = [*lines[:_KEPT_TEXT], mark]
    return lines, True


def _muted(words: str, look: Look) -> Line:
    return Line(cut((Piece(words, look[Role.MUTED]),), look))


def _thought(block: Thought, look: Look, *, folded: bool) -> tuple[list[Line], bool]:
    foldable = bool(block.description.strip())
    subject = flat(block.subject[:400]) or flat(block.description[:400])
    sign = look.glyphs.folded if folded or not foldable else look.glyphs.unfolded
    style = look[Role.THOUGHT]
    head = (Piece(f"{sign} ", look[Role.MUTED]), Piece(f"thought: {subject}", style))
    lines = [Line(cut(head, look))]
    if not folded and foldable:
        body = text_rows(
            block.description, look.narrowed(2), folded=False, role=Role.THOUGHT, prose=True
        )
        lines += prefixed(body.lines, (Piece("  ", style),))
    return lines, foldable


def _attachment(block: Attachment, look: Look, *, folded: bool) -> tuple[list[Line], bool]:
    sign = look.glyphs.folded if folded else look.glyphs.unfolded
    lines = counted(line_count(block.text), "line")
    head = (
        Piece(f"{sign} attached: {flat(block.shown_name)}", look[Role.TEXT]),
        Piece(f"  {lines}", look[Role.MUTED]),
    )
    drawn = wrap(head, look.width)
    if not folded:
        body = text_rows(block.text, look.narrowed(2), folded=False)
        drawn += prefixed(body.lines, (Piece("  ", look[Role.TEXT]),))
    return drawn, bool(block.text.strip(BLANKS))


def _notice(block: Notice, look: Look) -> list[Line]:
    role = _LEVELS[block.level]
    sign = {NoticeLevel.WARNING: look.glyphs.warning, NoticeLevel.ERROR: look.glyphs.failed}.get(
        block.level
    )
    before = (Piece(f"{sign} {block.level}: ", look[role]),) if sign else ()
    role = Role.TEXT if sign else role
    lines = text_rows(block.text, look, folded=False, role=role, prose=True).lines
    if not lines or not before:
        return list(lines)
    first = wrap((*before, *lines[0].pieces), look.width)
    return [*first, *lines[1:]]


def draw_head(message: Message, look: Look) -> Line:
    """Return the head line of a turn: who began it, and when."""
    words = WORDS[message.agent]
    who, role = {
        Author.USER: ("You", Role.ACCENT),
        Author.MODEL: (words.speaker, Role.MODEL),
        Author.SYSTEM: (words.program, Role.MUTED),
    }[message.author]
    pieces = [*author_bar(message, look), Piece(who, look[role] + BOLD)]
    if message.time is not None:
        pieces.append(Piece(f"  {format_time(message.time, look)}", look[Role.MUTED]))
    if message.checkpoint:
        pieces.append(Piece(f"  {look.glyphs.undo} checkpoint", look[Role.MUTED]))
    if message.dropped is not None:
        pieces.append(Piece(f"  {message.dropped.word}", look[Role.WARNING]))
    return Line(cut(tuple(pieces), look), 2)


def _turn_end(turn: Turn, look: Look) -> Line:
    """Return the line below a turn, with as much about its models and tokens as fits."""
    end = next((end for end in _ends(turn, look) if width_of(end) <= look.width), ())
    return (
        Line(spread((), end, look.width, Piece(" ", look[Role.MUTED])), look.width)
        if end
        else BLANK
    )


def _ends(turn: Turn, look: Look) -> Iterator[Pieces]:
    """Yield the models and token counts in several versions, the longest first."""
    models = ", ".join(flat(model[:100]).removeprefix("gemini-") for model in turn.models)
    total, details = _tokens(turn.usage, look)
    named = (Piece(models, look[Role.MUTED]),) if models else ()
    for groups in ((named, details, total), (named, total), (total,), (named,)):
        pieces = [piece for group in filter(None, groups) for piece in (*group, _gap(look))]
        yield tuple(pieces[:-1])


def _gap(look: Look) -> Piece:
    return Piece("  ", look[Role.MUTED])


def _tokens(usage: Usage | None, look: Look) -> tuple[Pieces, Pieces]:
    """Return the total number of tokens, and the numbers that add up to it.

    If they don't add up, the total is marked.
    """
    if usage is None or usage == Usage():
        return (), ()
    muted = look[Role.MUTED]
    total = "tokens unknown" if usage.total is None else f"{short_count(usage.total)} tokens"
    pieces = [Piece(total, muted)]
    if not usage.adds_up:
        mark = f"{look.glyphs.warning} tokens don't add up  "
        pieces.insert(0, Piece(mark, look[Role.WARNING]))
    counts = [("in", usage.input), ("out", usage.output), ("thoughts", usage.thoughts)]
    details = [
        f"{name} {'unknown' if number is None else short_count(number)}"
        for name, number in counts
        if number != 0 or name != "thoughts"
    ]
    return tuple(pieces), (Piece(f" {look.glyphs.dot} ".join(details), muted),)


def author_bar(message: Message, look: Look) -> Pieces:
    """Return the bar at the left of a message's lines, in its author's colour."""
    role = {Author.USER: Role.ACCENT, Author.MODEL: Role.MODEL, Author.SYSTEM: Role.MUTED}
    return (Piece(f"{look.glyphs.bar} ", look[role[message.author]]),)
