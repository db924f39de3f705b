"""Render untrusted Markdown as HTML that loads and runs nothing."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from html import escape
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token

from gemtui.text import Clean
from gemtui.transcript.markdown import LEVEL, NESTING, is_costly

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
