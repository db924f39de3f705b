"""Patterns as people write them, and as the engine's text of arguments needs them.

The text is JSON with a NUL before and behind every outermost pair (assets/gemini-cli.md#args-text).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from gemtui.policy.match.arguments import string
from gemtui.policy.match.path_patterns import below

_TOKEN = re.compile(r"\\.|\[(?:\\.|[^\]\\])*\]|.", re.DOTALL)
_SPECIAL = re.compile(r"[\\^$.*+?()\[\]{}|/]")
_WITHIN = r"[^\x00]*"
"""Anything, but not beyond the end of the command."""


def _tokens(pattern: str) -> Iterator[str]:
    """Escapes, character classes, and every other character alone."""
    for found in _TOKEN.finditer(pattern):
        yield found[0]


def alternatives(pattern: str) -> bool:
    """Whether it has a `|` outside of every group."""
    depth = 0
    for token in _tokens(pattern):
        depth += {"(": 1, ")": -1}.get(token, 0)
        if token == "|" and depth == 0:
            return True
    return False


def anchored(pattern: str) -> bool:
    """Whether it has a `^` or `$` of its own."""
    return any(token in ("^", "$") for token in _tokens(pattern))


def without_anchors(pattern: str) -> str:
    """The same with `"`, the end of a command's text, for each `$`, and without each `^`."""
    return "".join({"^": "", "$": '"'}.get(token, token) for token in _tokens(pattern))


def never_anchored(pattern: str) -> bool:
    """Whether a `^` or `$` stands where the text of arguments neither begins nor ends: it begins
    with `{` and ends with `}`.
    """
    return bool(re.match(r'\^"', pattern)) or bool(re.search(r'"\$$', pattern))


def without_outer_anchors(pattern: str) -> str:
    """The same without a `^` before a quote at its start, and a `$` behind one at its end."""
    return re.sub(r'"\$$', '"', re.sub(r'^\^"', '"', pattern))


def with_marks(pattern: str) -> str:
    """The same with a NUL wherever plain JSON has none and the engine's text has one."""
    pattern = re.sub(r'^(\^?)(\\?\{)"', r'\1\2\\x00"', pattern)
    pattern = re.sub(r'(["\d\]}e]),"(?=[A-Za-z_]+":)', r'\1\\x00,\\x00"', pattern)
    return re.sub(r'"(\\?\}\$?)$', r'"\\x00\1', pattern)


def anywhere(prefixes: Sequence[str]) -> str:
    """A pattern for commands that hold the words of one of these prefixes, in order, anywhere."""
    found = [_WITHIN.join(map(_word, prefix.split())) for prefix in prefixes]
    inside = found[0] if len(found) == 1 else f"(?:{'|'.join(found)})"
    return f'"command":"{_WITHIN}{inside}'


def within(pattern: str) -> str:
    """A commandRegex for the same anywhere in the command."""
    return f"{_WITHIN}(?:{pattern})" if alternatives(pattern) else f"{_WITHIN}{pattern}"


def _word(word: str) -> str:
    front = r"\b" if re.match(r"\w", word) else ""
    end = r"\b" if re.search(r"\w$", word) else ""
    escaped = _SPECIAL.sub(lambda found: f"\\{found[0]}", string(word)[1:-1])
    return f"{front}{escaped}{end}"


_PATH = re.compile(r'"(file_path|dir_path|path)":"(.*)', re.DOTALL)
_FOLDER = re.compile(r'((?:[\w /-]|\\[./-])+)/(?:\.\*|\[\^"\]\*)?"?')


def path_in(pattern: str) -> tuple[str, str] | None:
    """The name of the argument that is a path, and what the pattern says of it."""
    found = _PATH.search(pattern)
    return (found[1], found[2]) if found and found[2] else None


def exact_path(pattern: str) -> bool:
    """Whether it names whole paths only, without room for others."""
    found = path_in(pattern)
    if found is None:
        return False
    said = found[1].partition('"')
    return bool(said[1]) and not re.search(r"(?<!\\)[.*+\[{]", said[0])


def inside_folder(pattern: str) -> str | None:
    """For `"file_path":"docs/`: a pattern that no path out of that folder matches."""
    found = re.fullmatch(rf'(?:\\x00|\\0)?"file_path":"{_FOLDER.pattern}', pattern)
    return below(re.sub(r"\\(.)", r"\1", found[1]), ()) if found else None


def however_named(pattern: str) -> str:
    """For `"file_path":"docs/`: a pattern that finds `./docs/` and absolute paths as well."""
    return _PATH.sub(r'"\1":"[^"]*(?<![^/"])\2', pattern, count=1)
