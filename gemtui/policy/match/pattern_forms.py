"""Rewrite patterns that don't fit the string in which the engine searches.

That string is JSON with a NUL before and after each key-value pair of the outermost object
(assets/gemini-cli.md#args-text).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from gemtui.policy.match.matching import json_string
from gemtui.policy.match.path_patterns import folder_pattern
from gemtui.policy.match.patterns import alternatives, tokens

_SPECIAL_IN_COMMANDS = re.compile(r"[\\^$.*+?()\[\]{}|/]")
WITHIN = r"[^\x00]*"
"""Matches any characters up to the NUL that ends the current argument."""


def anchored(pattern: str) -> bool:
    """Return whether the pattern has a `^` or `$` outside of character classes."""
    return any(token in ("^", "$") for token in tokens(pattern))


def without_anchors(pattern: str) -> str:
    """Remove each `^`, and replace each `$` with `"`, because `"` ends a command."""
    return "".join({"^": "", "$": '"'}.get(token, token) for token in tokens(pattern))


_WRONG_START = re.compile(r"\A\^(?=(?:[\"\w /~-]|\\[./~-])(?![*?{]))")
_WRONG_END = re.compile(r'(?:(?<!\\["\w /])(?<=["\w /])|(?<=\\[./]))\$\Z')


def never_anchored(pattern: str) -> bool:
    """Return whether a pattern never matches, such as `^"a`, `^rm` or `push$`.

    The engine searches a JSON object, which begins with `{` and ends with `}`.
    """
    return bool(_WRONG_START.search(pattern) or _WRONG_END.search(pattern))


def without_outer_anchors(pattern: str) -> str:
    """Remove a wrong `^`, and replace a wrong `$` with the quote that ends an argument."""
    pattern = _WRONG_END.sub("" if pattern.endswith('"$') else '"', pattern)
    return _WRONG_START.sub("", pattern)


def with_marks(pattern: str) -> str:
    """Insert the NULs of the engine's string into a pattern written for plain JSON.

    Blanks after a colon, which this string doesn't have, are removed.
    """
    pattern = re.sub(r'": +"', '":"', pattern)
    if pattern.startswith('"') and "[" not in pattern:
        pattern = re.sub(r'",$', r'"\\x00,', pattern)
    pattern = re.sub(r'^(\^?)(\\?\{)"', r'\1\2\\x00"', pattern)
    pattern = re.sub(r'(["\d\]}e]),"(?=[A-Za-z_]+":)', r'\1\\x00,\\x00"', pattern)
    return re.sub(r'"(\\?\}\$?)$', r'"\\x00\1', pattern)


_PLAIN = re.compile(r"[\w /=-]|\\[./-]")
_REPEATS = re.compile(r"[*?{].*", re.DOTALL)
_ESCAPED, _MAYBE_ESCAPED = r'\\"', r'\\?"'


def with_escaped_quotes(pattern: str, before: str = "") -> str:
    """Escape the quotes of a command or text as JSON has them, if the pattern never matches else.

    A quote between two plain characters is not one of JSON's own; those after it may be. `before`:
    the character that the pattern is joined to.
    """
    made: list[str] = []
    parts = [before, *tokens(pattern), "", ""]
    for last, part, after, then in zip(parts, parts[1:], parts[2:], parts[3:], strict=False):
        if part not in ('"', '\\"'):
            made.append(part)
        elif _PLAIN.fullmatch(last) and _PLAIN.fullmatch(after) and not _REPEATS.match(then):
            made.append(_ESCAPED)
        else:
            made.append(_MAYBE_ESCAPED if _ESCAPED in made else part)
    return "".join(made)


def anywhere_pattern(prefixes: Sequence[str]) -> str:
    """Return an argsPattern that finds any of several commands within a command line.

    A command is found if all its words occur in this order, possibly with other words in between.
    """
    sequences = [WITHIN.join(map(_word, prefix.split())) for prefix in prefixes]
    inside = sequences[0] if len(sequences) == 1 else f"(?:{'|'.join(sequences)})"
    return f'"command":"{WITHIN}{inside}'


def anywhere_in_command(pattern: str) -> str:
    """Return a commandRegex that finds `pattern` anywhere in a command."""
    return f"{WITHIN}(?:{pattern})" if alternatives(pattern) else f"{WITHIN}{pattern}"


def _word(word: str) -> str:
    front = r"\b" if re.match(r"\w", word) else ""
    end = r"\b" if re.search(r"\w$", word) else ""
    escaped = _SPECIAL_IN_COMMANDS.sub(lambda match: f"\\{match[0]}", json_string(word)[1:-1])
    return f"{front}{escaped}{end}"


_PATH = re.compile(r'"(file_path|dir_path|path)":"(.*)', re.DOTALL)
_FOLDER = re.compile(r'((?:[\w /-]|\\[./-])+)/(?:\.\*|\[\^"\]\*)?"?')


def path_in(pattern: str) -> tuple[str, str] | None:
    """Return the argument and the value in a pattern such as `"file_path":"docs/`.

    The value is returned as the pattern spells it. Returns None if the pattern doesn't concern a
    path.
    """
    match = _PATH.search(pattern)
    return (match[1], match[2]) if match and match[2] else None


def exact_path(pattern: str) -> bool:
    """Return whether a pattern matches complete paths only, without wildcards."""
    path = path_in(pattern)
    if path is None:
        return False
    parts = path[1].partition('"')
    return bool(parts[1]) and not re.search(r"(?<!\\)[.*+\[{]", parts[0])


def inside_folder(pattern: str) -> str | None:
    """Restrict a pattern such as `"file_path":"docs/` to files inside the folder.

    The new pattern rejects paths that leave the folder by `..`. Returns None if the pattern isn't
    of this form.
    """
    match = re.fullmatch(rf'(?:\\x00|\\0)?"file_path":"{_FOLDER.pattern}', pattern)
    return folder_pattern(re.sub(r"\\(.)", r"\1", match[1]), ()) if match else None


def all_spellings_pattern(pattern: str) -> str:
    """Rewrite a pattern such as `"file_path":"docs/` to match all spellings.

    The other spellings are `./docs/` and absolute paths.
    """
    return _PATH.sub(r'"\1":"[^"]*(?<![^/"])\2', pattern, count=1)
