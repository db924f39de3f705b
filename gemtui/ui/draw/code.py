"""Syntax highlighting: maps Pygments tokens to the theme's roles.

On hostile input, Pygments can take seconds for a few kilobytes. Code is therefore split into
chunks, and a chunk that looks expensive isn't highlighted. Neither is code in a language that isn't
on this module's list.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import islice
from pathlib import PureWindowsPath
from typing import Any

from gemtui.ui.draw.lines import Piece, Pieces, plain, tabless
from gemtui.ui.draw.theme import Look, Role

LIMIT = 12_000
"""Maximum number of characters to highlight, which takes about 20 ms."""
_CHUNK = 1_200
_TROUBLE = re.compile(r"[^\n]{301}|(?:[ \t]*\n){8}|(?:\w+\s+){60}")
"""Matches expensive chunks: a very long line, many empty lines, or many words."""

_NAMES = """
python py pyi python3 | pycon | javascript js mjs cjs node | jsx | typescript ts mts | tsx
json jsonc json5 jsonl geojson | html htm xhtml | xml svg xsl plist | css | scss | less | vue
bash sh shell zsh ksh | console shell-session | powershell ps1 pwsh | batch bat cmd | docker
dockerfile | yaml yml | toml | ini cfg conf properties | sql | c h | cpp c++ cc cxx hpp hh
objective-c objc | java | kotlin kt kts | scala | groovy gradle | go golang | rust rs | ruby rb
php | swift | dart | csharp cs c# | fsharp fs | lua | perl pl | r | julia jl | haskell hs
elixir ex exs | erlang erl | clojure clj | ocaml ml | zig | nim | d | fortran f90 | matlab
markdown md | diff patch udiff | protobuf proto | graphql gql | cmake | make makefile mk | nginx
awk | vim | tex latex
"""
_LANGUAGES = {
    name: group.split()[0] for group in re.split(r"[|\n]", _NAMES) for name in group.split()
}

_ROLES = {
    ("Comment",): Role.COMMENT,
    ("Keyword",): Role.KEYWORD,
    ("Keyword", "Constant"): Role.NUMBER,
    ("Operator", "Word"): Role.KEYWORD,
    ("Name", "Function"): Role.NAME,
    ("Name", "Class"): Role.NAME,
    ("Name", "Decorator"): Role.NAME,
    ("Name", "Tag"): Role.NAME,
    ("Literal", "String"): Role.STRING,
    ("Literal", "Number"): Role.NUMBER,
    ("Generic", "Deleted"): Role.REMOVED,
    ("Generic", "Inserted"): Role.ADDED,
    ("Generic", "Heading"): Role.HEADING,
    ("Generic", "Subheading"): Role.MUTED,
}


def highlight(code: str, language: str, look: Look) -> Iterator[Pieces]:
    """Yield the lines of the code, highlighted if that is safe and fast.

    Otherwise the lines have the theme's normal text style.
    """
    code = tabless(code)
    lexer = _lexer(_LANGUAGES.get(language.strip().lower(), ""))
    if lexer is None or len(code) > LIMIT:
        yield from _plain(code, look)
        return
    for chunk in _chunks(code):
        yield from _coloured(chunk, lexer, look) or _plain(chunk.removesuffix("\n"), look)


def language_of(path: str) -> str:
    """Return a path's suffix, or else its file name, for `highlight`'s `language`.

    The path may have been recorded on Windows; its rules also split at slashes.
    """
    file = PureWindowsPath(path)
    return file.suffix[1:] or file.name


def _plain(code: str, look: Look) -> Iterator[Pieces]:
    return ((Piece(line, look[Role.TEXT]),) for line in code.split("\n"))


def _coloured(chunk: str, lexer: Any, look: Look) -> list[Pieces] | None:
    """Return the chunk's highlighted lines, or None if it must stay unhighlighted.

    It stays unhighlighted if highlighting would be slow, or if the lexer changed its text.
    """
    if _TROUBLE.search(chunk):
        return None
    rows = list(_lines(islice(lexer.get_tokens(chunk), len(chunk) + 1), look))
    return rows if "\n".join(map(plain, rows)) == chunk.removesuffix("\n") else None


def _lines(tokens: Iterable[tuple[Any, str]], look: Look) -> Iterator[Pieces]:
    row: list[Piece] = []
    for kind, text in tokens:
        style = look[_role(tuple(kind))]
        for number, line in enumerate(text.split("\n")):
            if number:
                yield tuple(row)
                row = []
            if line:
                before = row.pop().text if row and row[-1].style == style else ""
                row.append(Piece(before + line, style))
    if row:
        yield tuple(row)


_BETWEEN = re.compile(r"\n\n(?=\S)")


def _chunks(code: str) -> Iterator[str]:
    """Split code into chunks of whole lines, preferably before an unindented line."""
    start = 0
    while len(code) - start > _CHUNK:
        window = code[start : start + _CHUNK]
        apart = [match.end() for match in _BETWEEN.finditer(window)]
        size = apart[-1] if apart else window.rfind("\n") + 1
        size = size or code.find("\n", start) + 1 - start
        if size <= 0:
            break
        yield code[start : start + size]
        start += size
    if start < len(code) or not code:
        yield code[start:]


@lru_cache(maxsize=128)
def _lexer(language: str) -> Any:
    from rich.syntax import Syntax  # takes 10 ms, and the list's first paint doesn't need it

    return Syntax("", language).lexer if language else None


def load_highlighter() -> None:
    """Import the highlighter. Call this from a worker thread before code is drawn."""
    _lexer("diff")


@lru_cache(maxsize=512)
def _role(kind: tuple[str, ...]) -> Role:
    while kind:
        role = _ROLES.get(kind)
        if role is not None:
            return role
        kind = kind[:-1]
    return Role.TEXT
