"""Make untrusted Markdown safe to embed, and render it as HTML that loads and runs nothing."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache
from html import escape
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token

from gemtui.text import Clean

LONGEST = 50_000
"""Maximum number of characters of Markdown to parse.

Longer Markdown becomes a code block, because parsing hostile input takes more than linear time.
"""

BRACKETS = 1_000
"""Maximum number of opening brackets; Markdown with more becomes a code block.

Each bracket may begin a link, and takes as long to parse as hundreds of other characters.
"""

NESTING = 60
"""Maximum levels of nested blocks to parse; deeper content can't be checked."""

LEVEL = 3
"""The level of the highest heading that embedded Markdown may have."""

_BACKTICKS = re.compile("`+")


def fenced(text: Clean, language: str = "") -> str:
    """Return text as a code block, with a fence longer than any inside the text."""
    fence = "`" * max(3, longest_run(text) + 1)
    return f"{fence}{language}\n{text.strip(chr(10))}\n{fence}"


def longest_run(text: str) -> int:
    """Return the length of the longest run of backticks."""
    return max(map(len, _BACKTICKS.findall(text)), default=0)


def is_costly(text: Clean) -> bool:
    """Return whether parsing this Markdown may take seconds."""
    return len(text) > LONGEST or text.count("[") > BRACKETS


def defused(text: Clean) -> str:
    """Make Markdown safe to embed.

    Raw HTML becomes text, images become links, headings are lowered to `LEVEL` or below, and an
    open fence is closed. The result is checked with a parser. If the result isn't safe, for example
    because of a link that runs code, the source is returned as a code block.
    """
    text = Clean(text.lstrip("\n").rstrip())
    if is_costly(text):
        return fenced(text, "markdown")
    lines = text.split("\n")
    tokens = parser().parse(text)
    for first, end in {_lines_of(token) for token in tokens if token.type in _INLINE}:
        lines[first:end] = _INERT.sub(_inert, "\n".join(lines[first:end])).split("\n")
    for token in tokens:
        if token.type == "heading_open":
            _lower(lines, *_lines_of(token), level=int(token.tag[1]))
    result = "\n".join([*lines, *_closing(tokens, lines)])
    return result if _is_safe(result) else fenced(text, "markdown")


@cache
def parser() -> MarkdownIt:
    """Return a parser for CommonMark with tables and strikethrough.

    The parser recognises raw HTML and keeps links of all schemes, so that both can be checked.
    """
    options = {"html": True, "maxNesting": NESTING}
    markdown = MarkdownIt("commonmark", options).enable(["table", "strikethrough"])
    markdown.validateLink = lambda url: True  # type: ignore[method-assign]  # noqa: ARG005
    return markdown


def _lines_of(token: Token) -> tuple[int, int]:
    return (token.map[0], token.map[1]) if token.map else (0, 0)


_INLINE = ("inline", "html_block")
_INERT = re.compile(
    r"\\."  # an escape
    r"|(?<!`)(`+)(?!`)(?:.*?(?<!`)\1(?!`))?"  # a code span, or backticks without a counterpart
    r"|<(?=[A-Za-z/!?])"  # a tag
    r"|!(?=\[)",  # an image
    re.DOTALL,
)


def _inert(match: re.Match[str]) -> str:
    return f"\\{match[0]}" if match[0] in "<!" else match[0]


_CONTAINERS = r"(?:[ \t]*(?:>|[-*+][ \t]|\d{1,9}[.)][ \t]))*[ \t]*"
_HEADING = re.compile(rf"({_CONTAINERS})(#{{1,6}}(?=[ \t]|$))?")


def _lower(lines: list[str], first: int, end: int, *, level: int) -> None:
    """Lower one Markdown heading in place, so that it is at `LEVEL` or below.

    An underlined heading becomes one with number signs. `first`, `end`: the lines of the heading.
    `level`: its current level.
    """
    sign = "#" * min(6, level + LEVEL - 1)
    match = _HEADING.match(lines[first])
    if match is None:
        return
    rest = lines[first][match.end() :]
    if match[2]:
        lines[first] = f"{match[1]}{sign}{rest}"
        return
    more = (line.lstrip(" \t>") for line in lines[first + 1 : end - 1])
    lines[first] = " ".join([f"{match[1]}{sign} {rest}", *more])
    quote = match[1].rstrip() if match[1].lstrip().startswith(">") else ""
    lines[first + 1 : end] = [quote] * (end - first - 1)


def _closing(tokens: Sequence[Token], lines: list[str]) -> Iterable[str]:
    """Yield a closing fence if the last code block of the Markdown has none."""
    last = tokens[-1] if tokens else None
    if last is not None and last.type == "fence" and _lines_of(last)[1] >= len(lines):
        ends = lines[-1].strip()
        if len(lines) == 1 or set(ends) != set(last.markup) or len(ends) < len(last.markup):
            yield last.markup


_RUNS = re.compile(r"\s*(javascript|vbscript|data):", re.IGNORECASE)


def _is_safe(markdown: str) -> bool:
    """Return whether Markdown is harmless to embed and closes all its blocks."""
    state: dict[str, Any] = {}
    tokens = parser().parse(f"{markdown}\n\n# end\n", state)
    own = tokens[-3] if len(tokens) >= 3 else tokens[-1]
    if own.type != "heading_open" or own.level or own.tag != "h1":
        return False
    links = [str(link.get("href")) for link in state.get("references", {}).values()]
    return not any(map(_RUNS.match, links)) and all(
        _is_harmless(token) for token in _all(tokens[:-3])
    )


def _all(tokens: Iterable[Token]) -> Iterable[Token]:
    for token in tokens:
        yield token
        yield from token.children or ()


def _is_harmless(token: Token) -> bool:
    if token.level > NESTING - 10:
        return False
    if token.type == "heading_open":
        return int(token.tag[1]) >= LEVEL
    if token.type == "link_open":
        return _RUNS.match(str(token.attrGet("href"))) is None
    return token.type not in ("html_block", "html_inline", "image")


HIGHLIGHTED = 10_000
"""Maximum number of characters of code to highlight.

Highlighting is slow, and very slow for hostile code.
"""


def rendered(text: Clean) -> str:
    """Return untrusted Markdown as HTML that loads and runs nothing.

    If parsing might take seconds, the escaped source is returned instead.
    """
    if is_costly(text):
        return f"<pre>{escape(text)}</pre>\n"
    markdown = _markdown()
    tokens = [_safe(token) for token in markdown.parse(text)]
    return str(markdown.renderer.render(tokens, markdown.options, {}))


@cache
def _markdown() -> MarkdownIt:
    options = {"html": False, "maxNesting": NESTING, "highlight": _highlight}
    return MarkdownIt("commonmark", options).enable(["table", "strikethrough"])


def _highlight(code: str, language: str, _attributes: str) -> str:
    return highlighted(code, language)


def _safe(token: Token) -> Token:
    if token.type in ("heading_open", "heading_close"):
        token.tag = f"h{min(6, int(token.tag[1]) + LEVEL - 1)}"
    if token.children:
        token.children = [safe for child in token.children for safe in _inline(child)]
    return token


def _inline(token: Token) -> Sequence[Token]:
    if token.type == "image":
        source = str(token.attrGet("src") or "")
        return [_text(f"[image {token.content} {source}]")]
    if token.type == "link_open":
        token.attrs = {"href": str(token.attrGet("href") or ""), "rel": "noopener noreferrer"}
    return [token]


def _text(content: str) -> Token:
    return Token("text", "", 0, content=content)


def highlighted(code: str, language: str) -> str:
    """Return code as HTML with syntax highlighting.

    Keywords, strings, comments, names, and numbers are in spans of the classes k, s, c, n, and m.
    If the language is unknown or the code is too long, the code is only escaped.
    """
    if not language or len(code) > HIGHLIGHTED:
        return escape(code)
    from pygments.lexers import get_lexer_by_name
    from pygments.util import ClassNotFound

    try:
        lexer = get_lexer_by_name(language, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return escape(code)
    return "".join(_span(_class(kind), value) for kind, value in lexer.get_tokens(code))


def _span(name: str, value: str) -> str:
    return f'<span class="{name}">{escape(value)}</span>' if name else escape(value)


@cache
def _class(kind: Any) -> str:
    from pygments.token import Comment, Keyword, Name, Number, String

    if kind in Name:
        return "n" if kind in Name.Function or kind in Name.Class or kind in Name.Tag else ""
    groups = ((Comment, "c"), (Keyword, "k"), (String, "s"), (Number, "m"))
    return next((name for group, name in groups if kind in group), "")
