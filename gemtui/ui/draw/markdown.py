"""Rendering of Markdown: converts markdown-it's tokens to styled lines."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from msgspec.structs import replace
from rich.style import Style

from gemtui.text import clean, ellipsis, visible
from gemtui.ui.draw.code import highlight
from gemtui.ui.draw.lines import (
    BLANK,
    LEAST,
    Code,
    Line,
    Piece,
    Pieces,
    flat,
    prefixed,
    tabless,
    wrap,
    wrap_anywhere,
)
from gemtui.ui.draw.table import Side, draw_table
from gemtui.ui.draw.theme import BOLD, ITALIC, STRIKE, UNDERLINE, Look, Role

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.tree import SyntaxTreeNode


DEEPEST = 40
"""Maximum nesting depth to render; text nested more deeply is shown as source."""
_LONGEST_URL = 400
_FENCE = re.compile(
    r"^(?P<fence>`{3,}|~{3,})(?P<language>[^`\n]*)\n(?P<code>.*?)\n?^(?P=fence)[`~]* *$",
    re.DOTALL | re.MULTILINE,
)


def draw_markdown(text: str, look: Look) -> Iterator[Line]:
    """Yield the rendered lines of Markdown text.

    If a part of it (see `chunks`) is nested too deeply, that part's Markdown source is shown.
    """
    *settled, last = chunks(text)
    for part in settled:
        yield from _settled(part, look)
        yield BLANK
    yield from _drawn(last, look)


@lru_cache(maxsize=1024)
def _settled(text: str, look: Look) -> tuple[Line, ...]:
    return tuple(_drawn(text, look))


def _drawn(text: str, look: Look) -> Iterator[Line]:
    tree = _parsed(text)
    if tree is None:
        yield from draw_plain(text, look)
    else:
        yield from _blocks(tree.children, look)


def draw_prompt(text: str, look: Look) -> Iterator[Line]:
    """Yield the lines of a prompt as typed, rendering only fenced code blocks."""
    position = 0
    for fence in _FENCE.finditer(text):
        before = text[position : fence.start()].rstrip("\n")
        yield from draw_plain(before, look) if before else ()
        yield from draw_code(Code(visible(fence["code"]), flat(fence["language"])), look)
        position = fence.end()
    rest = text[position:].strip("\n")
    if rest:
        yield from draw_plain(rest, look)


def draw_plain(text: str, look: Look) -> Iterator[Line]:
    """Yield the lines of unformatted text, wrapped between words."""
    for line in text.split("\n"):
        yield from wrap((Piece(tabless(line), look[Role.TEXT]),), look.width)


def draw_code(code: Code, look: Look) -> Iterator[Line]:
    """Yield the lines of a code block, each with a vertical rule to its left.

    If a line of code is wrapped, its continuation lines have a wrap symbol instead of the rule.
    """
    before = (Piece(f"{look.glyphs.side} ", look[Role.BORDER]),)
    after = (Piece(f"{look.glyphs.wrapped} ", look[Role.BORDER]),)
    inner = look.narrowed(2)
    for pieces in highlight(code.text, code.language, look):
        for line in prefixed(wrap_anywhere(pieces, inner.width), before, after):
            yield replace(line, code=code)


@lru_cache(maxsize=1)
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt  # takes 20 ms, and the list's first paint doesn't need it

    parser = MarkdownIt("commonmark", {"maxNesting": DEEPEST + 10})
    return parser.enable(["table", "strikethrough"])


def load_parser() -> None:
    """Import the parser. Call this from a worker thread before the first text is drawn."""
    _parser()


def _parsed(text: str) -> SyntaxTreeNode | None:
    from markdown_it.tree import SyntaxTreeNode

    tokens = _parser().parse(text)
    if any(token.level > DEEPEST for token in tokens):
        return None
    return SyntaxTreeNode(tokens)


# --- blocks --------------------------------------------------------------------------------------


def _blocks(nodes: Sequence[SyntaxTreeNode], look: Look, *, tight: bool = False) -> Iterator[Line]:
    for index, node in enumerate(nodes):
        if index and not tight:
            yield BLANK
        yield from _block(node, look)


def _block(node: SyntaxTreeNode, look: Look) -> Iterator[Line]:
    match node.type:
        case "heading":
            style = look[Role.HEADING] + (UNDERLINE if node.tag == "h1" else BOLD)
            yield from _paragraph(node, style, look)
        case "paragraph":
            yield from _paragraph(node, look[Role.TEXT], look)
        case "bullet_list" | "ordered_list":
            yield from _list(node, look)
        case "blockquote":
            yield from _quote(node, look)
        case "fence" | "code_block":
            yield from draw_code(_code(node), look)
        case "table":
            yield from _table(node, look)
        case "hr":
            rule = Piece(look.glyphs.rule * look.width, look[Role.BORDER])
            yield Line((rule,), look.width)
        case _:
            yield from draw_plain(clean(node.content.rstrip("\n")), look)


def _code(node: SyntaxTreeNode) -> Code:
    language = flat(node.info).split(" ")[0] if node.type == "fence" else ""
    return Code(visible(clean(node.content).removesuffix("\n")), language)


def _paragraph(node: SyntaxTreeNode, style: Style, look: Look) -> Iterator[Line]:
    for pieces in _rows(node, style, look):
        yield from wrap(pieces, look.width)


def _quote(node: SyntaxTreeNode, look: Look) -> Iterator[Line]:
    if look.width < LEAST + 2:
        yield from _blocks(node.children, look)
        return
    bar = (Piece(f"{look.glyphs.quote} ", look[Role.MUTED]),)
    yield from prefixed(_blocks(node.children, look.narrowed(2)), bar)


def _list(node: SyntaxTreeNode, look: Look) -> Iterator[Line]:
    tight = _is_tight(node)
    number = int(node.attrs.get("start", 1)) if node.type == "ordered_list" else None
    last = len(str(number + len(node.children) - 1)) if number is not None else 0
    for index, item in enumerate(node.children):
        if index and not tight:
            yield BLANK
        mark = look.glyphs.bullet if number is None else f"{number + index:>{last}}."
        yield from _item(item, mark, look, tight=tight)


def _is_tight(node: SyntaxTreeNode) -> bool:
    return all(
        child.hidden
        for item in node.children
        for child in item.children
        if child.type == "paragraph"
    )


def _item(item: SyntaxTreeNode, mark: str, look: Look, *, tight: bool) -> Iterator[Line]:
    is_done = _task(item)
    if is_done is not None:
        mark = f"[{look.glyphs.done if is_done else ' '}]"
    indent = len(mark) + 1
    if look.width - indent < LEAST:
        yield from _blocks(item.children, look, tight=tight)
        return
    before = (Piece(f"{mark} ", look[Role.SUCCESS if is_done else Role.MUTED]),)
    rest = (Piece(" " * indent, look[Role.TEXT]),)
    lines = list(_blocks(item.children, look.narrowed(indent), tight=tight))
    yield from prefixed(lines or [BLANK], before, rest, frame=False)


def _task(item: SyntaxTreeNode) -> bool | None:
    """Remove the checkbox from a list item's text, and return whether it was ticked.

    Return None if the item has no checkbox.
    """
    if not item.children or item.children[0].type != "paragraph":
        return None
    first = next(iter(item.children[0].children[0].children), None)
    token = first.token if first is not None and first.type == "text" else None
    if token is None or token.content[:4].lower() not in ("[ ] ", "[x] "):
        return None
    is_done = token.content[1] != " "
    token.content = token.content[4:]
    return is_done


def _table(node: SyntaxTreeNode, look: Look) -> Iterator[Line]:
    rows = [
        [_joined(_rows(cell, look[Role.TEXT], look)) for cell in row.children]
        for part in node.children
        for row in part.children
    ]
    heads = node.children[0].children[0].children
    sides = [_SIDES.get(str(cell.attrs.get("style")), Side.LEFT) for cell in heads]
    yield from draw_table(rows[0], rows[1:], look, sides)


_SIDES = {f"text-align:{side}": side for side in Side}


def _joined(rows: list[Pieces]) -> Pieces:
    return tuple(piece for row in rows for piece in row)


# --- inline content ------------------------------------------------------------------------------


def _rows(node: SyntaxTreeNode, style: Style, look: Look) -> list[Pieces]:
    """Return a block's styled text as rows, split at the line breaks in its source."""
    rows: list[list[Piece]] = [[]]
    for inline in node.children:
        _inline(inline.children, style, look, rows)
    return [tuple(row) for row in rows]


def _inline(
    nodes: Sequence[SyntaxTreeNode], style: Style, look: Look, rows: list[list[Piece]]
) -> None:
    for node in nodes:
        match node.type:
            case "softbreak" | "hardbreak":
                rows.append([])
            case "code_inline":
                tick = "" if look.colors else "`"
                text = f"{tick}{_text(node.content)}{tick}"
                rows[-1].append(Piece(text, style + look[Role.CODE]))
            case "strong":
                _inline(node.children, style + BOLD, look, rows)
            case "em":
                _inline(node.children, style + ITALIC, look, rows)
            case "s":
                _inline(node.children, style + STRIKE, look, rows)
            case "link":
                _link(node, style, look, rows)
            case "image":
                _image(node, look, rows)
            case _:
                rows[-1].append(Piece(_text(node.content), style))


def _text(content: str) -> str:
    return tabless(clean(content).replace("\n", " "))


def _link(node: SyntaxTreeNode, style: Style, look: Look, rows: list[list[Piece]]) -> None:
    url = _url(node.attrs.get("href", ""))
    start = len(rows), len(rows[-1])
    _inline(node.children, style + look[Role.LINK], look, rows)
    shown = "".join(piece.text for piece in rows[-1][start[1] if len(rows) == start[0] else 0 :])
    if url and shown not in (url, url.removeprefix("mailto:")):
        rows[-1].append(Piece(f" ({url})" if shown else url, look[Role.MUTED]))


def _image(node: SyntaxTreeNode, look: Look, rows: list[list[Piece]]) -> None:
    alt = flat(node.content)
    rows[-1].append(Piece(f"[image: {alt}]" if alt else "[image]", look[Role.TEXT]))
    url = _url(node.attrs.get("src", ""))
    if url:
        rows[-1].append(Piece(f" ({url})", look[Role.MUTED]))


def _url(value: str | int | float) -> str:
    return ellipsis(flat(str(value)), _LONGEST_URL)


_DEFINITION = re.compile(r"^ {0,3}\[[^\]\n]+\]:", re.MULTILINE)
"""Matches a link definition, which affects links anywhere in the text."""
_UNCERTAIN = re.compile(
    r"^(?:[ \t]+(?:```|~~~)| {0,3}<|[ \t]*(?:[-+*>]|\d+[.)])[ \t]+.*(?:```|~~~|<))"
)
"""Matches a line with a nested code fence or HTML.

Both may contain empty lines, so `chunks` doesn't split text after such a line.
"""
_FENCE_LINE = re.compile(r"^(`{3,}|~{3,})")
_GOES_ON = re.compile(r"\s|[-+*](?:\s|$)|\d+[.)](?:\s|$)")
"""Matches the start of a line that may continue a list."""


def chunks(text: str) -> list[str]:
    """Split Markdown text at empty lines into parts that can be rendered one by one.

    Rendering the parts separately looks the same as rendering the whole text, and joining them with
    empty lines restores it. When text is appended, only the last part changes, so the rendered
    lines of the others can be reused. If the text can't be split safely, it is returned as a single
    part.
    """
    if "\n\n" not in text or _DEFINITION.search(text):
        return [text]
    lines = text.split("\n")
    parts: list[str] = []
    start, fence = 0, ""
    for number, line in enumerate(lines):
        if not fence and _UNCERTAIN.match(line):
            break
        if not line and not fence and number > start and _ends(lines, number):
            parts.append("\n".join(lines[start:number]))
            start = number + 1
        fence = _fence_after(line, fence)
    return [*parts, "\n".join(lines[start:])]


def _ends(lines: list[str], number: int) -> bool:
    """Return whether a block definitely ends at the empty line `lines[number]`.

    It does if the next line is neither empty nor a possible continuation of a list.
    """
    if number + 1 >= len(lines) or not lines[number - 1]:
        return False
    following = lines[number + 1]
    return bool(following) and not _GOES_ON.match(following)


def _fence_after(line: str, fence: str) -> str:
    """Return the marker of the code fence that is open after this line, or "".

    `fence`: the marker of the fence that is open before the line, or "".
    """
    match = _FENCE_LINE.match(line)
    if match is None:
        return fence
    if not fence:
        is_inline = match[1][0] == "`" and "`" in line[len(match[1]) :]
        return "" if is_inline else match[1]
    closes = line.rstrip(" \t") == match[1] and match[1].startswith(fence)
    return "" if closes else fence
