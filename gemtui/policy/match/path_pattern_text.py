"""Describe a pattern for arguments in terms of files.

This covers the patterns built by `path_patterns`, and the simplest ones that users write.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from gemtui.policy.match.path_patterns import READ_KEYS, folder_pattern, named_anywhere

_FRONT = re.compile(r'(?:\\x00|\\0)?"(?:file_path|path|absolute_path)":"')
_STARTS = re.compile(r"\(\\\./(?:\\.|[^\\()])*\)")
"""A group before the file's name: nothing, `./` or a project's folder."""
_TAIL = folder_pattern("", ()).partition("/(?!")[2]
_PLAIN = re.compile(r"(?:\\[^0a-zA-Z]|[^\\.*+?^${}()|\[\]\"])+")
"""Literal text in a pattern."""
_END = re.compile(r'"(?:\\x00|\\0)?')


def projects_of(pattern: str) -> tuple[str, ...]:
    """Return the folders whose absolute paths a pattern for files also matches."""
    front = _FRONT.match(pattern)
    starts = front and _STARTS.match(pattern[front.end() :])
    if not front or not starts:
        return ()
    inside = starts[0][1:-1]
    roots = (_unescaped(each) for each in _alternatives(inside) if each not in ("", r"\./"))
    return tuple(root.rstrip("/") for root in roots)


def files_of(pattern: str) -> str | None:
    """Describe a pattern's files, as in "files below src/"; None if it has none.

    A pattern is described only if it means exactly what the description says.
    """
    if (named := _named_anywhere(pattern)) is not None:
        return named
    front = _FRONT.match(pattern)
    if front is None:
        return None
    rest = pattern[front.end() :]
    starts = _STARTS.match(rest)
    if starts is not None:
        return _made_here(rest[starts.end() :])
    begins = _beginnings(rest)
    return f"paths that begin with {' or '.join(begins)}" if begins else None


def _named_anywhere(pattern: str) -> str | None:
    for keys in ("file_path", READ_KEYS):
        front = named_anywhere("", folder=False, keys=keys).partition("(?=[")[0]
        inside, _, end = pattern.removeprefix(front).rpartition("(?=")
        name, folder = _unescaped(inside.replace('/(?:[^"]*/|)', "/")), end == "/)"
        if name and named_anywhere(name, folder=folder, keys=keys) == pattern:
            return f"paths that name {name}{'/' * folder}"
    return None


def _beginnings(rest: str) -> list[str]:
    """Return the paths in a pattern such as `src/` or `(src|tests)/`; otherwise []."""
    names, end = [rest], ""
    if rest.startswith("(") and ")" in rest:
        inside, _, end = rest[1:].rpartition(")")
        names = list(_alternatives(inside))
    fit = all(map(_PLAIN.fullmatch, names)) and (not end or _PLAIN.fullmatch(end))
    return [_unescaped(name + end) for name in names] if fit else []


def _made_here(rest: str) -> str | None:
    folder, found, tail = rest.partition("/(?!")
    if found:
        fits = tail == _TAIL and _PLAIN.fullmatch(folder)
        return f"files below {_unescaped(folder)}/" if fits else None
    if not rest.startswith("(") or _END.fullmatch(rest[rest.rfind(")") + 1 :]) is None:
        return None
    names = list(_alternatives(rest[1 : rest.rfind(")")]))
    if not all(_PLAIN.fullmatch(name) for name in names):
        return None
    return f"the file{'s' * (len(names) != 1)} {', '.join(map(_unescaped, names))}"


def _alternatives(text: str) -> Iterator[str]:
    name = ""
    for piece in re.findall(r"\\.|[^\\]", text):
        if piece == "|":
            yield name
            name = ""
        else:
            name += piece
    yield name


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text)
