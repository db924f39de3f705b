"""Replace secrets in JSON values; equal secrets get the same placeholder.

A secret that only its context reveals, such as a password in a URL, is also replaced in other
places. To find such secrets, `learn` reads everything first. Some secrets are not found: those
without a recognisable form, those in pictures, other binary data or encoded text, and those that
are split in two.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate
from operator import is_
from typing import Any, NamedTuple

from gemtui.redact.rules import (
    ENV_FILE,
    ENV_LINE,
    RULES,
    SECRET_NAME,
    SecretForm,
    is_distinct,
    is_variable,
)
from gemtui.text import COLOUR

_BASE64 = re.compile(r"[0-9A-Za-z+/_-]*={0,2}")
_KEY_LINE = re.compile(r"[0-9A-Za-z+/=]{40,}")
_TEXTS = frozenset({"content", "new_string", "old_string", "prompt", "instruction"})
"""Arguments in which naming a file doesn't mean that the call accesses the file."""
_SHORTEST_TAIL = 6
_SHORT = 40


class Replaced(NamedTuple):
    """A replaced secret, as the user may see it.

    `shortened`: its first characters and its length. `times`: how often it was replaced.
    """

    kind: str
    placeholder: str
    shortened: str
    times: int


class _Span(NamedTuple):
    """A secret's position in a string.

    `lead`: the length of the text before the secret, such as `NAME=`, if only this text shows that
    a common word is a secret here; otherwise 0.
    """

    start: int
    end: int
    kind: str
    lead: int = 0


class Redactor:
    """Replaces secrets: `learn` a whole session, then `apply` to all that is shared."""

    def __init__(self) -> None:
        self._placeholders: dict[str, str] = {}
        self._secrets: dict[str, tuple[str, str]] = {}
        self._numbers = Counter[str]()
        self._counts = Counter[str]()
        self._known: dict[str, tuple[int, str]] = {}

    def learn(self, value: Any) -> None:
        """Find the secrets in a JSON value, so that `apply` replaces them in any context."""
        self._walk(value, learn=True)

    def apply(self, value: Any) -> Any:
        """Return a JSON value with its secrets replaced; unchanged if it has none."""
        return self._walk(value, learn=False)

    def clipped(self, text: str) -> str:
        """Redact a truncated string, even if its last secret is cut off."""
        text = self.apply(text)
        for secret, (_, placeholder) in self._secrets.items():
            for length in range(min(len(secret) - 1, len(text)), _SHORTEST_TAIL - 1, -1):
                if text.endswith(secret[:length]):
                    return text[:-length] + placeholder
        return text

    def replaced(self) -> list[Replaced]:
        """Return the secrets that `apply` has replaced, in the order they were found."""
        return [
            Replaced(kind, placeholder, _shortened(secret), self._counts[placeholder])
            for secret, (kind, placeholder) in self._secrets.items()
            if self._counts[placeholder]
        ]

    # --- values ------------------------------------------------------------------------------

    def _walk(self, value: Any, *, learn: bool, name: str = "", env: bool = False) -> Any:
        """Learn or replace the secrets in a JSON value, including its keys.

        `learn`: only learn, and return the value unchanged. `name`: the name of the field with this
        value; some names show that the value is a secret. `env`: whether strings may contain lines
        of an environment file, whose values are secrets. Parts without secrets are reused, not
        copied.
        """
        if isinstance(value, str):
            if not learn:
                return self._replaced(value, name, env)
            self._learn_text(value, name, env)
            return value
        if isinstance(value, Mapping):
            return self._object(value, learn=learn, env=env or _is_about_env(value))
        if isinstance(value, (list, tuple)):
            items: Sequence[Any] = value
            if len(value) > 1 and all(map(_has_text, value)):
                items = self._pieces(value, name, env, learn=learn)
            made = [self._walk(item, learn=learn, name=name, env=env) for item in items]
            return value if all(map(is_, made, value)) else made
        return value

    def _object(self, value: Mapping[Any, Any], *, learn: bool, env: bool) -> Any:
        if _is_binary(value):
            return value
        made = {}
        for key, inner in value.items():
            name = key if isinstance(key, str) else ""
            new_key = self._walk(name, learn=learn) if name else key
            made[new_key] = self._walk(inner, learn=learn, name=name, env=env)
        same = len(made) == len(value) and all(
            key in made and made[key] is inner for key, inner in value.items()
        )
        return value if same else made

    def _pieces(
        self, values: Sequence[Mapping[str, Any]], name: str, env: bool, *, learn: bool
    ) -> Sequence[Mapping[str, Any]]:
        """Learn or replace the secrets in a string that is stored in several pieces.

        The pieces have different colours, for example, and a secret may be split across them. The
        arguments are as in `_walk`.
        """
        texts = [value["text"] for value in values]
        joined = "".join(texts)
        if "\x1b" in joined or "\x9b" in joined:
            return values
        if learn:
            self._learn_text(joined, name, env)
            return values
        starts = [0, *accumulate(map(len, texts))]
        spans = self._spans(joined, name, env)
        if not spans:
            return values
        made = []
        for value, text, start in zip(values, texts, starts, strict=False):
            pieces = list[str]()
            at = start
            end = start + len(text)
            for span in spans:
                if span.start < end and span.end > start:
                    pieces.append(joined[at : max(at, span.start)])
                    if span.start >= start:
                        pieces.append(self._counted(joined[span.start : span.end], span.kind))
                    at = min(span.end, end)
            made.append({**value, "text": "".join((*pieces, joined[at:end]))})
        return made

    # --- strings -------------------------------------------------------------------------------

    def _learn_text(self, text: str, name: str, env: bool) -> None:
        plain, _ = _uncoloured(text)
        spans = list(self._found(plain, name, env))
        for span in _merged(spans):
            self._placeholder(plain[span.start : span.end], span.kind)
        for span in spans:
            secret = plain[span.start : span.end]
            if span.kind == "private-key":
                for line in _KEY_LINE.findall(secret.replace("\\n", "\n")):
                    self._known.setdefault(line.lstrip("+"), (0, span.kind))
            elif span.kind == "home" or (span.kind in _ANYWHERE and is_distinct(secret)):
                self._known.setdefault(secret.rstrip("="), (0, span.kind))
            elif span.kind == "env-value":
                assignment = plain[span.start - span.lead : span.end]
                self._known.setdefault(assignment, (span.lead, span.kind))

    def _replaced(self, text: str, name: str, env: bool) -> str:
        plain, places = _uncoloured(text)
        spans = self._spans(plain, name, env)
        if not spans:
            return text
        pieces = list[str]()
        at = 0
        for span in spans:
            start = places[span.start] if places else span.start
            end = places[span.end - 1] + 1 if places else span.end
            pieces += (text[at:start], self._counted(plain[span.start : span.end], span.kind))
            at = end
        return "".join((*pieces, text[at:]))

    def _spans(self, text: str, name: str, env: bool) -> list[_Span]:
        return _merged([*self._found(text, name, env), *self._literals(text)])

    def _counted(self, secret: str, kind: str) -> str:
        placeholder = self._placeholder(secret, kind)
        self._counts[placeholder] += 1
        return placeholder

    def _found(self, text: str, name: str, env: bool) -> Iterator[_Span]:
        """Yield the secrets that the rules find in a string; they may overlap.

        `name`, `env`: as in `_walk`.
        """
        for rule, first, last in _places(text):
            for found in rule.pattern.finditer(text, first, last):
                start, end = found.span("secret" if "secret" in rule.pattern.groupindex else 0)
                if (
                    rule.name is not None
                    and rule.name.search(text, max(0, found.start() - 80), found.start()) is None
                ):
                    continue
                if rule.before is not None:
                    lead = rule.before.search(text, max(0, start - 80), start)
                    if lead is None:
                        continue
                    start = lead.start()
                if rule.check(text[start:end]):
                    yield _Span(start, end, rule.kind)
        if env:
            yield from _env_values(text)
        if SECRET_NAME.fullmatch(name) and len(text) > 3 and not is_variable(text):
            yield _Span(0, len(text), "secret")

    def _literals(self, text: str) -> Iterator[_Span]:
        """Yield the secrets in a string that `learn` found in other contexts."""
        for literal, (offset, kind) in self._known.items():
            at = text.find(literal)
            while at >= 0:
                end = at + len(literal)
                before = text[at - 1 : at] if offset else ""
                if not _is_inner(before) and (kind != "home" or not _is_inner(text[end : end + 1])):
                    yield _Span(at + offset, end, kind)
                at = text.find(literal, end)

    def _placeholder(self, secret: str, kind: str) -> str:
        key = re.sub(r"\\[nr]|\W", "", secret) if kind == "private-key" else secret
        if key not in self._placeholders:
            self._numbers[kind] += 1
            placeholder = f"[redacted:{kind}-{self._numbers[kind]}]"
            self._placeholders[key] = placeholder
            self._secrets[secret] = kind, placeholder
        return self._placeholders[key]


def replaced_words(redactor: Redactor) -> str:
    """Return how many secrets of each kind were replaced: `2 email, 1 github-token`.

    Returns `nothing` if there are none.
    """
    kinds = Counter(replacement.kind for replacement in redactor.replaced())
    return ", ".join(f"{count:,} {kind}" for kind, count in kinds.items()) or "nothing"


_ANYWHERE = frozenset(rule.kind for rule in RULES if rule.anywhere) | {"env-value"}


_TOKENS = tuple(rule for rule in RULES if rule.token)
_OTHERS = tuple(rule for rule in RULES if not rule.token)
_RUN = re.compile(r"[0-9A-Za-z_~.:/+=-]{15,}+")
"""Matches what is long enough to be a token."""
_TOKEN_HINT = re.compile(
    "|".join(sorted({re.escape(hint) for rule in _TOKENS for hint in rule.hints}))
)


def _places(text: str) -> Iterator[tuple[SecretForm, int, int]]:
    """Yield the rules that may match, each with a part of the string in which to try it.

    To look for all hints costs more than most patterns do. So those of tokens are looked for only
    in long words, and those that several rules share only once.
    """
    lowered = text.lower()
    if len(lowered) != len(text):  # a letter whose small form is longer
        yield from ((rule, 0, len(text)) for rule in RULES)
        return
    if len(text) <= _SHORT:
        yield from ((rule, 0, len(text)) for rule in _rules_of_name(lowered))
        return
    for run in _RUN.finditer(text):
        start, end = run.span()
        if _TOKEN_HINT.search(lowered, start, end) is not None:
            word = lowered[start:end]
            for rule in _TOKENS:
                if any(hint in word for hint in rule.hints):
                    yield rule, start, end
    hints = _Hints(lowered)
    for rule in _OTHERS:
        if rule.lines:
            for start, end in hints.lines(rule.hints):
                yield rule, start, end
        elif any(map(hints.occurs, rule.hints)):
            yield rule, 0, len(text)


class _Hints:
    """The positions of hints in a string; each hint is looked for only once."""

    def __init__(self, lowered: str) -> None:
        self._text = lowered
        self._lines: dict[str, dict[int, int]] = {}
        self._occurs: dict[str, bool] = {}

    def occurs(self, hint: str) -> bool:
        if hint not in self._occurs:
            self._occurs[hint] = hint in self._text
        return self._occurs[hint]

    def lines(self, hints: Iterable[str]) -> Iterator[tuple[int, int]]:
        """Yield the start and end of each line with one of the hints, with the line after it.

        Lines that overlap are one.
        """
        lines: dict[int, int] = {}
        for hint in hints:
            lines |= self._lines_with(hint)
        start, end = -1, -1
        for line_start in sorted(lines):
            if line_start <= end:
                end = max(end, lines[line_start])
                continue
            if start >= 0:
                yield start, end
            start = line_start
            end = lines[line_start]
        if start >= 0:
            yield start, end

    def _lines_with(self, hint: str) -> dict[int, int]:
        if hint not in self._lines:
            line_ends: dict[int, int] = {}
            text = self._text
            at = text.find(hint)
            while at >= 0:
                start = text.rfind("\n", 0, at) + 1
                end = text.find("\n", at)
                after = text.find("\n", end + 1) if end >= 0 else -1
                line_ends[start] = after if after >= 0 else len(text)
                at = text.find(hint, end) if end >= 0 else -1
            self._lines[hint] = line_ends
        return self._lines[hint]


def _rules_for(lowered: str) -> tuple[SecretForm, ...]:
    """Return the rules that may match a string: those with a hint that it contains.

    `lowered`: the string in lower case.
    """
    return tuple(rule for rule in RULES if any(hint in lowered for hint in rule.hints))


_rules_of_name = lru_cache(maxsize=4096)(_rules_for)
"""A cached `_rules_for` for short strings.

Most of these are the names of recurring fields.
"""


def _env_values(text: str) -> Iterator[_Span]:
    for assignment in ENV_LINE.finditer(text):
        for group in ("double", "single", "bare"):
            value = assignment[group]
            if value and not is_variable(value):
                start, end = assignment.span(group)
                yield _Span(start, end, "env-value", start - assignment.start("name"))


def _is_about_env(value: Mapping[Any, Any]) -> bool:
    """Return whether a JSON object is a tool call on an environment file.

    A prompt that attaches such a file counts as well.
    """
    args = value.get("args")
    if isinstance(args, Mapping):
        return any(
            isinstance(argument, str) and len(argument) < 4000 and ENV_FILE.search(argument)
            for name, argument in args.items()
            if name not in _TEXTS
        )
    parts = value.get("content")
    if value.get("type") == "user" and isinstance(parts, list):
        texts = (part.get("text") for part in parts if isinstance(part, Mapping))
        return any(
            isinstance(text, str) and f"@{found[0]}" in text
            for text in texts
            if isinstance(text, str) and (found := ENV_FILE.search(text))
        )
    return False


def _has_text(value: object) -> bool:
    return isinstance(value, Mapping) and isinstance(value.get("text"), str)


def _is_binary(value: Mapping[Any, Any]) -> bool:
    data = value.get("data")
    return (
        isinstance(value.get("mimeType"), str)
        and isinstance(data, str)
        and _BASE64.fullmatch(data) is not None
    )


def _uncoloured(text: str) -> tuple[str, list[int]]:
    """Return a string without colour codes, and the original index of each character.

    The indexes are [] if there are no colour codes.
    """
    if "\x1b[" not in text and "\x9b" not in text:
        return text, []
    pieces = []
    places = list[int]()
    at = 0
    for colour in COLOUR.finditer(text):
        pieces.append(text[at : colour.start()])
        places.extend(range(at, colour.start()))
        at = colour.end()
    pieces.append(text[at:])
    places.extend(range(at, len(text)))
    return "".join(pieces), places


def _merged(spans: Iterable[_Span]) -> list[_Span]:
    """Return spans in order, merging overlapping ones; the longest one's kind is used."""
    merged: list[_Span] = []
    for span in sorted(spans, key=_order):
        last = merged[-1] if merged else None
        if last is not None and span.start < last.end:
            if (last.kind, span.kind) == ("url-password", "email"):
                continue
            longer = span if span.end - span.start > last.end - last.start else last
            merged[-1] = _Span(last.start, max(last.end, span.end), longer.kind)
        else:
            merged.append(span)
    return merged


def _order(span: _Span) -> tuple[int, bool, int]:
    """Return a span's sort key, which is its position.

    A password in a URL is sorted before the e-mail address it seems to be part of.
    """
    return span.start, span.kind != "url-password", -span.end


def _is_inner(char: str) -> bool:
    return char.isalnum() or char in ("_", "-")


def _shortened(secret: str) -> str:
    """Return a secret's first characters and its length.

    That is enough for the user to recognise the secret, but not for anyone to use it.
    """
    shown = secret[: min(4, len(secret) // 3)]
    return f"{shown}… ({len(secret)} characters)"
