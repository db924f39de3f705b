"""A policy file as a person edits it: comments, order and layout stay, only what changed changes.

The text is cut into rules and what stands between them; an edit touches the lines of one rule.
A rule that is switched off stays in the file, each of its lines behind `#off `, which is a comment
to the CLI.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import pairwise
from typing import Any, Self

from gemtui.errors import PolicyError
from gemtui.policy.check import check_text
from gemtui.policy.dialect import TomlError, parse_toml
from gemtui.policy.fields import (
    KEYS,
    OLD_KEYS,
    list_text,
    readable,
    rule_text,
    said,
    text_of,
    value_text,
)
from gemtui.policy.lines import value_of, with_value
from gemtui.policy.pieces import Kind, Piece, commented, pieces_of, uncommented
from gemtui.policy.rules import Decision, Finding, Rule

__all__ = ["Document", "Entry", "text_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One rule of a document.

    `rule`: as far as it can be read, None where it has no decision or priority that can be; its
    `index` is the number by which the CLI and findings call it, from 1, 0 for one that is switched
    off. `enabled`: False = switched off. `problems`: what the checks say of it. `text`: its lines,
    comments included; `line`: the first of them, from 1.
    """

    rule: Rule | None
    enabled: bool
    problems: tuple[Finding, ...]
    text: str
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One state of a policy file; every change returns a new one.

    `rules`: in file order, those that are switched off included. `findings`: all that the checks
    say, those of the file as a whole first. `locked`: why nothing can be edited here, with a way
    out; "" = all can. Every method that edits raises PolicyError for a locked document, and
    IndexError for a rule that is not there.
    """

    text: str
    source: str
    rules: tuple[Entry, ...]
    findings: tuple[Finding, ...]
    locked: str
    _pieces: tuple[Piece, ...] = field(repr=False)

    @classmethod
    def parse(cls, text: str, *, source: str = "policy.toml") -> Self:
        """The document of a file's text; never raises: what is broken is locked and says why."""
        pieces = pieces_of(text)
        findings = check_text(text, source)
        return cls(
            text=text,
            source=source,
            rules=tuple(_entries(text, pieces, findings, source)),
            findings=findings,
            locked=_lock(text, pieces),
            _pieces=pieces,
        )

    def add(self, rule: Rule, at: int | None = None) -> Self:
        """With `rule` before the one at `at` (from 0), or as the last."""
        place = len(self.rules) if at is None else at
        if not 0 <= place <= len(self.rules):
            raise IndexError(place)
        return self._with_rule(place, Piece(kind=Kind.RULE, text=self._own(rule_text(rule))))

    def replace(self, index: int, rule: Rule) -> Self:
        """With the fields that differ changed in the rule at `index`; its comments stay."""
        at = self._at(index)
        piece = self._pieces[at]
        changed = _changed(piece.toml, rule)
        text = commented(changed) if piece.kind is Kind.OFF else changed
        return self._with_pieces(at, replace(piece, text=text))

    def remove(self, index: int) -> Self:
        """Without the rule at `index` and the comments that belong to it."""
        at = self._at(index)
        before, after = list(self._pieces[:at]), list(self._pieces[at + 1 :])
        apart = not before or before[-1].kind is Kind.GAP
        if after and apart and after[0].kind is Kind.GAP:
            after[0] = replace(after[0], text=_without_first_blank(after[0].text))
        elif not after and before and apart:
            before[-1] = replace(before[-1], text=_without_last_blank(before[-1].text))
        return self._of((*before, *after))

    def duplicate(self, index: int) -> Self:
        """With a copy of the rule at `index` right after it."""
        return self._with_rule(index + 1, self._pieces[self._at(index)])

    def move(self, index: int, to: int) -> Self:
        """With the rule at `index` at the place `to`; those between move up or down."""
        if self._at(index) == self._at(to):
            return self
        places = self._places()
        moved = [self._pieces[at] for at in places]
        moved.insert(to, moved.pop(index))
        pieces = list(self._pieces)
        for at, piece in zip(places, moved, strict=True):
            pieces[at] = replace(piece, text=self._ended(piece.text))
        return self._of(list(self._kept_apart(pieces)))

    def enable(self, index: int, on: bool) -> Self:
        """With the rule at `index` switched on, or off and kept in the file as a comment."""
        at = self._at(index)
        piece = self._pieces[at]
        if on is (piece.kind is Kind.RULE):
            return self
        if on:
            return self._with_pieces(at, Piece(kind=Kind.RULE, text=uncommented(piece.text)))
        return self._with_pieces(at, Piece(kind=Kind.OFF, text=commented(piece.text)))

    # --- the pieces --------------------------------------------------------------------------

    def _places(self) -> list[int]:
        if self.locked:
            raise PolicyError(f"{self.source}: {self.locked}")
        return [at for at, piece in enumerate(self._pieces) if piece.kind is not Kind.GAP]

    def _at(self, index: int) -> int:
        places = self._places()
        if not 0 <= index < len(places):
            raise IndexError(index)
        return places[index]

    def _with_rule(self, place: int, piece: Piece) -> Self:
        """With a piece before the rule at `place`, a blank line between it and its neighbours."""
        places = self._places()
        blank = Piece(kind=Kind.GAP, text=self._own("\n"))
        rule = replace(piece, text=self._ended(piece.text))
        if place < len(places):
            at = places[place]
            return self._of((*self._pieces[:at], rule, blank, *self._pieces[at:]))
        at = places[-1] + 1 if places else len(self._pieces)
        before = "".join(each.text for each in self._pieces[:at])
        ended = Piece(kind=Kind.GAP, text=self._ended(before)[len(before) :])
        apart = (blank,) if before.strip() and not before.endswith(("\n\n", "\n\r\n")) else ()
        return self._of((*self._pieces[:at], ended, *apart, rule, *self._pieces[at:]))

    def _with_pieces(self, at: int, piece: Piece) -> Self:
        return self._of((*self._pieces[:at], piece, *self._pieces[at + 1 :]))

    def _of(self, pieces: Sequence[Piece]) -> Self:
        """The document of these pieces, cut anew, as a person's editor would find them."""
        return type(self).parse("".join(piece.text for piece in pieces), source=self.source)

    def _kept_apart(self, pieces: Sequence[Piece]) -> Iterator[Piece]:
        """A blank line after a rule that ends in comments, which the next rule would take over."""
        for piece, below in zip(pieces, (*pieces[1:], None), strict=True):
            yield piece
            last = piece.text.rstrip().rpartition("\n")[2].lstrip()
            if below and Kind.GAP not in (piece.kind, below.kind) and last.startswith("#"):
                yield Piece(kind=Kind.GAP, text=self._own("\n"))

    def _own(self, text: str) -> str:
        return text.replace("\n", "\r\n") if "\r\n" in self.text else text

    def _ended(self, text: str) -> str:
        return text if not text or text.endswith("\n") else text + self._own("\n")


def _without_first_blank(text: str) -> str:
    first, end, rest = text.partition("\n")
    return rest if end and not first.strip() else text


def _without_last_blank(text: str) -> str:
    body = text.removesuffix("\n").removesuffix("\r")
    return body if not body or body.endswith("\n") else text


# --- reading -------------------------------------------------------------------------------------


def _lock(text: str, pieces: Sequence[Piece]) -> str:
    """Why the rules can't be edited one by one, with a way out; "" = they can."""
    try:
        whole = parse_toml(text)
    except TomlError as error:
        place = f"line {error.line}, column {error.column}: " if error.line else ""
        return f"{place}{error}; correct it in an editor"
    tables = whole.get("rule", [])
    cut = [_table(piece.text) for piece in pieces if piece.kind is Kind.RULE]
    if repr(tables) != repr(cut) or ("rule" in whole and not cut):  # nan does not equal itself
        return (
            "its rules are not written as [[rule]] tables, one below the other; "
            "write them so in an editor, then they can be edited here"
        )
    if any(_goes_on(above, below) for above, below in pairwise(pieces)):
        return "below a rule that is switched off stand fields of none; sort them in an editor"
    return ""


def _goes_on(rule: Piece, gap: Piece) -> bool:
    """Whether fields follow a rule that is off, which another rule in its place would take over."""
    lines = (line.strip() for line in gap.text.splitlines())
    first = next((line for line in lines if line and not line.startswith("#")), "[")
    return rule.kind is Kind.OFF and gap.kind is Kind.GAP and not first.startswith("[")


def _entries(
    text: str, pieces: Sequence[Piece], findings: Sequence[Finding], source: str
) -> Iterator[Entry]:
    line, number = 1, 0
    for piece in pieces:
        if piece.kind is not Kind.GAP:
            enabled = piece.kind is Kind.RULE
            number += enabled
            yield Entry(
                rule=_rule(_table(piece.toml), source, number if enabled else 0),
                enabled=enabled,
                problems=_problems(piece, number, findings, source),
                text=piece.text,
                line=line,
            )
        line += piece.text.count("\n")
    if number == 0:
        yield from _inline(text, findings, source)


def _problems(
    piece: Piece, number: int, findings: Sequence[Finding], source: str
) -> tuple[Finding, ...]:
    """Those of the file's findings that are this rule's; one that is off is looked at alone."""
    if piece.kind is Kind.OFF:
        return tuple(replace(each, rule=0) for each in check_text(piece.toml, source))
    return tuple(each for each in findings if each.rule == number)


def _inline(text: str, findings: Sequence[Finding], source: str) -> Iterator[Entry]:
    """The rules of `rule = [{...}]`, which have no lines of their own."""
    try:
        tables = parse_toml(text).get("rule")
    except TomlError:
        return
    for number, table in enumerate(tables if isinstance(tables, list) else (), 1):
        if isinstance(table, dict):
            problems = tuple(each for each in findings if each.rule == number)
            rule = _rule(table, source, number)
            yield Entry(rule=rule, enabled=True, problems=problems, text="", line=0)


@lru_cache(maxsize=4096)
def _table(text: str) -> dict[str, Any] | None:
    """The table of one rule's lines; None where they can't be read."""
    try:
        table: dict[str, Any] = parse_toml(text)["rule"][0]
    except TomlError:
        return None
    return table


def _rule(table: dict[str, Any] | None, source: str, number: int) -> Rule | None:
    arguments, _unread = readable(table or {})
    if not {"decision", "priority"} <= arguments.keys():
        return None
    return Rule(**arguments, source=source, index=number)


# --- changing one rule ---------------------------------------------------------------------------


def _changed(text: str, rule: Rule) -> str:
    """A rule's lines, with the fields changed in which they differ from `rule`."""
    table = _table(text) or {}
    had, wanted = _said(table), said(rule)
    for key in (*KEYS, *(key for key in {**had, **wanted} if key not in KEYS)):
        if _same(had.get(key), wanted.get(key)):
            continue
        for old, new in OLD_KEYS.items():
            text = with_value(text, old, None) if new == key and old in table else text
        value = None if key not in wanted else _value(text, key, wanted[key])
        text = with_value(text, key, value, KEYS[: KEYS.index(key)] if key in KEYS else KEYS)
    has = _said(_table(text) or {})
    if not all(_same(has.get(key), wanted.get(key)) for key in {**has, **wanted}):
        raise PolicyError("this rule is written in a way that can't be changed here: use an editor")
    return text


def _said(table: dict[str, Any]) -> dict[str, Any]:
    """As `said`, of a rule that may lack its decision or priority."""
    arguments, _unread = readable(table)
    rule = Rule(**{"decision": Decision.DENY, "priority": 0, **arguments})
    missing = {"decision", "priority"} - arguments.keys()
    return {key: value for key, value in said(rule).items() if key not in missing}


def _same(one: Any, other: Any) -> bool:
    if one is None or other is None:
        return one is other
    return value_text(one) == value_text(other)


def _value(text: str, key: str, value: Any) -> str:
    """The value as TOML; a list over several lines keeps the items, and comments, that stay."""
    old = value_of(text, key)
    if isinstance(value, list) and old is not None and old.startswith("[") and "\n" in old:
        return list_text(old, value)
    return value_text(value)
