"""Edit a policy file while keeping its comments, order and layout.

The file's contents are divided into blocks: rules and the gaps between them. An edit changes only
the lines of one rule. A disabled rule stays in the file with `#off ` before each line, so that the
CLI treats these lines as comments.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Any, Self

from gemtui.errors import PolicyError
from gemtui.policy.check.check_policy import Checked, check_table, check_tables, check_text
from gemtui.policy.file.policy import Policy
from gemtui.policy.file.rule_blocks import (
    BlockKind,
    LineBlock,
    blocks_of,
    comment_out,
    uncommented,
    value_of,
    with_field,
)
from gemtui.policy.file.rule_codec import (
    KEYS,
    OLD_KEYS,
    explicit_fields,
    list_text,
    read_rule,
    readable,
    rule_text,
    schema_problems,
    value_to_toml,
)
from gemtui.policy.file.toml_dialect import TomlError, parse_toml
from gemtui.policy.model.rules import Decision, Finding, Rule


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleEntry:
    """One rule in a document.

    `number`: the rule's 1-based number among the enabled rules, as the CLI and the findings count;
    0 if it is disabled. `rule`: None if its decision or priority can't be read; otherwise its
    `index` equals `number`. `text`: the rule's lines, including comments. `line`: the 1-based
    number of the first of these lines.
    """

    number: int
    rule: Rule | None
    text: str
    line: int

    @property
    def enabled(self) -> bool:
        """Whether the rule is enabled."""
        return self.number > 0


@dataclass(frozen=True, kw_only=True)
class Document:
    """An immutable policy file in memory; editing returns a new document.

    `source`: the file's name in findings. `locked`: why the document can't be edited here, and what
    to do about it; "" if it can be edited. Every method that edits raises PolicyError for a locked
    document, and IndexError for a rule that does not exist. Rules and findings are computed on
    first use.
    """

    text: str
    source: str
    locked: str
    _pieces: tuple[LineBlock, ...] = field(repr=False)

    @classmethod
    def parse(cls, text: str, *, source: str = "policy.toml") -> Self:
        """Parse a file's contents; if they can't be edited, the document is locked.

        Never raises. `source`: the file's name to use in findings.
        """
        pieces = blocks_of(text)
        return cls(text=text, source=source, locked=_lock(text, pieces), _pieces=pieces)

    def check(self) -> None:
        """Compute the findings now instead of on first use; slow for a large file."""
        self.problems  # noqa: B018

    # --- contents ----------------------------------------------------------------------------

    @cached_property
    def rules(self) -> tuple[RuleEntry, ...]:
        """The rules in file order, including disabled ones."""
        return tuple(_entries(self.text, self._pieces, self.source))

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        """The findings of all checks; those about the whole file come first."""
        if self.locked:
            return check_text(self.text, self.source)
        return check_tables(self._checked, self._enabled, self._rest, self.source)

    @cached_property
    def problems(self) -> tuple[tuple[Finding, ...], ...]:
        """The findings for each of `rules`, in the same order.

        A disabled rule is checked by itself.
        """
        by_rule: defaultdict[int, list[Finding]] = defaultdict(list)
        for finding in self.findings:
            by_rule[finding.rule].append(finding)
        return tuple(
            tuple(by_rule[entry.number]) if entry.enabled else _alone(entry.text, self.source)
            for entry in self.rules
        )

    @cached_property
    def policy(self) -> Policy:
        """The rules as the CLI would load them."""
        dropped = self.locked or any(checked.dropped for checked in self._checked)
        if dropped or schema_problems(self._rest):
            return Policy.parse(self.text, source=self.source)
        return Policy.of_file(self._enabled, self._rest, source=self.source)

    @property
    def _checked(self) -> list[Checked]:
        return [_checked(piece.text) for piece in self._pieces if piece.kind is BlockKind.RULE]

    @property
    def _enabled(self) -> list[Rule]:
        return [entry.rule for entry in self.rules if entry.enabled and entry.rule is not None]

    @cached_property
    def _rest(self) -> dict[str, Any]:
        return parse_toml(_between_rules(self._pieces))

    # --- changes -----------------------------------------------------------------------------

    def add(self, rule: Rule, at: int | None = None) -> Self:
        """Return the document with `rule` inserted before the rule at index `at`.

        `at`: None means at the end. Raises IndexError if it is out of range.
        """
        last = len(self._places)
        index = last if at is None else at
        if not 0 <= index <= last:
            raise IndexError(index)
        return self._with_rule(
            index, LineBlock(kind=BlockKind.RULE, text=self._own(rule_text(rule)))
        )

    def missing_rules(self, rules: Iterable[Rule]) -> tuple[Rule, ...]:
        """Return the given rules that are missing from the document or disabled in it."""
        had = [replace(rule, source="", index=0) for rule in self._enabled]
        return tuple(rule for rule in rules if replace(rule, source="", index=0) not in had)

    def replace(self, index: int, rule: Rule) -> Self:
        """Return the document with the rule at `index` changed to `rule`.

        Only the fields that differ are changed, and the rule's comments are kept.
        """
        at = self._at(index)
        piece = self._pieces[at]
        changed = _changed(piece.toml, rule)
        text = comment_out(changed) if piece.kind is BlockKind.OFF else changed
        return self._with(at, at + 1, [replace(piece, text=text)])

    def remove(self, index: int) -> Self:
        """Return the document without the rule at `index` and its comments."""
        at = self._at(index)
        above, below = self._pieces[:at][-1:], self._pieces[at + 1 :][:1]
        if not above or above[0].kind is BlockKind.GAP:
            if below and below[0].kind is BlockKind.GAP:
                left = replace(below[0], text=_without_first_blank(below[0].text))
                return self._with(at, at + 2, [left])
            if above and not below:
                left = replace(above[0], text=_without_last_blank(above[0].text))
                return self._with(at - 1, at + 1, [left])
        return self._with(at, at + 1, [])

    def duplicate(self, index: int) -> Self:
        """Return the document with a copy of the rule at `index` right after it."""
        return self._with_rule(index + 1, self._pieces[self._at(index)])

    def move(self, index: int, to: int) -> Self:
        """Return the document with the rule at `index` moved to index `to`."""
        if self._at(index) == self._at(to):
            return self
        places = self._places
        moved = [self._pieces[at] for at in places]
        moved.insert(to, moved.pop(index))
        pieces = list(self._pieces)
        first, last = sorted((index, to))
        for at, piece in zip(places[first : last + 1], moved[first : last + 1], strict=True):
            pieces[at] = replace(piece, text=self._ended(piece.text))
        start = places[first]
        end = places[last] + 2
        return self._with(start, end, list(self._kept_apart(pieces[start:end])))

    def enable(self, index: int, on: bool) -> Self:
        """Return the document with the rule at `index` enabled or disabled.

        A disabled rule stays in the file as a comment.
        """
        at = self._at(index)
        piece = self._pieces[at]
        if on is (piece.kind is BlockKind.RULE):
            return self
        if on:
            return self._with(at, at + 1, [LineBlock(kind=BlockKind.RULE, text=piece.toml)])
        return self._with(at, at + 1, [LineBlock(kind=BlockKind.OFF, text=comment_out(piece.text))])

    # --- the pieces --------------------------------------------------------------------------

    @cached_property
    def _places(self) -> list[int]:
        """The index of each rule's block among all blocks of the file."""
        if self.locked:
            raise PolicyError(f"{self.source}: {self.locked}")
        return [at for at, piece in enumerate(self._pieces) if piece.kind is not BlockKind.GAP]

    def _at(self, index: int) -> int:
        places = self._places
        if not 0 <= index < len(places):
            raise IndexError(index)
        return places[index]

    def _with_rule(self, index: int, piece: LineBlock) -> Self:
        """Return the document with a block inserted before the rule with index `index`.

        Blank lines separate the block from its neighbours.
        """
        places = self._places
        blank = LineBlock(kind=BlockKind.GAP, text=self._own("\n"))
        rule = replace(piece, text=self._ended(piece.text))
        if index < len(places):
            return self._with(places[index], places[index], [rule, blank])
        at = places[-1] + 1 if places else len(self._pieces)
        above = self._pieces[at - 1].text if at else ""
        ended = LineBlock(kind=BlockKind.GAP, text=self._ended(above)[len(above) :])
        apart = [blank] if above.strip() and not above.endswith(("\n\n", "\n\r\n")) else []
        return self._with(at, at, [ended, *apart, rule])

    def _with(self, start: int, end: int, fresh: Sequence[LineBlock]) -> Self:
        """Return the document with the blocks from `start` to `end` replaced by `fresh`.

        For speed, only the text up to the nearest rules on both sides is split into blocks again.
        If that changes these rules, the whole document is parsed again.
        """
        old, rules = self._pieces, self._places
        first = max((at for at in rules if at < start), default=0)
        last = min((at for at in rules if at >= end), default=len(old))
        cut = blocks_of(_joined((*old[first:start], *fresh, *old[end : last + 1])))
        pieces = (*old[:first], *cut, *old[last + 1 :])
        text = _joined(pieces)
        same_above = first == 0 or cut[:1] == old[first : first + 1]
        same_below = last + 1 >= len(old) or cut[-1:] == old[last : last + 1]
        if same_above and same_below and _read_alone(cut) and not _fields_of_none(cut):
            return type(self)(text=text, source=self.source, locked="", _pieces=pieces)
        return type(self).parse(text, source=self.source)

    def _kept_apart(self, pieces: Sequence[LineBlock]) -> Iterator[LineBlock]:
        """Yield the blocks, with a blank line added after each rule that ends in comments.

        Without the blank line, these comments would become part of the next rule.
        """
        for piece, below in zip(pieces, (*pieces[1:], None), strict=True):
            yield piece
            last = piece.text.rstrip().rpartition("\n")[2].lstrip()
            if below and BlockKind.GAP not in (piece.kind, below.kind) and last.startswith("#"):
                yield LineBlock(kind=BlockKind.GAP, text=self._own("\n"))

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


def _joined(pieces: Iterable[LineBlock]) -> str:
    return "".join(piece.text for piece in pieces)


def _between_rules(pieces: Iterable[LineBlock]) -> str:
    return _joined(piece for piece in pieces if piece.kind is BlockKind.GAP)


# --- reading -------------------------------------------------------------------------------------


def _lock(text: str, pieces: Sequence[LineBlock]) -> str:
    """Return why the rules can't be edited one by one, with a remedy; "" if they can."""
    entangled = not _read_alone(pieces) or _has_rules(_between_rules(pieces))
    if entangled:
        try:
            parse_toml(text)
        except TomlError as error:
            return f"{error.position}{error}; correct it in an editor"
        return (
            "its rules are not consecutive [[rule]] tables; once you have changed that in an "
            "editor, the rules can be edited here"
        )
    if _fields_of_none(pieces):
        return (
            "after a disabled rule, some fields belong to no rule: move or delete them in an editor"
        )
    return ""


def _read_alone(pieces: Iterable[LineBlock]) -> bool:
    """Return whether each enabled rule's lines, parsed by themselves, yield one rule."""
    return all(_table(piece.text) is not None for piece in pieces if piece.kind is BlockKind.RULE)


def _has_rules(text: str) -> bool:
    """Return whether the text between the rules contains rules or can't be parsed.

    If so, the file hasn't been split correctly, and its rules can't be edited one by one.
    """
    try:
        return "rule" in parse_toml(text)
    except TomlError:
        return True


def _fields_of_none(pieces: Iterable[LineBlock]) -> bool:
    """Return whether a disabled rule is followed by fields that belong to no rule.

    These fields would become part of any enabled rule that is inserted before them.
    """
    return any(_has_stray_fields(above, below) for above, below in pairwise(pieces))


def _has_stray_fields(rule: LineBlock, gap: LineBlock) -> bool:
    if rule.kind is not BlockKind.OFF or gap.kind is not BlockKind.GAP:
        return False
    lines = (line.strip() for line in gap.text.splitlines())
    first = next((line for line in lines if line and not line.startswith("#")), "[")
    return not first.startswith("[")


def _entries(text: str, pieces: Sequence[LineBlock], source: str) -> Iterator[RuleEntry]:
    line, number = 1, 0
    for piece in pieces:
        if piece.kind is not BlockKind.GAP:
            enabled = piece.kind is BlockKind.RULE
            number += enabled
            own = number if enabled else 0
            rule = _rule(piece.toml, source, own)
            yield RuleEntry(number=own, rule=rule, text=piece.text, line=line)
        line += piece.text.count("\n")
    if number == 0:
        yield from _inline(text, source)


def _inline(text: str, source: str) -> Iterator[RuleEntry]:
    """Yield the rules of `rule = [{...}]`, which have no lines of their own."""
    try:
        tables = parse_toml(text).get("rule")
    except TomlError:
        return
    for number, table in enumerate(tables if isinstance(tables, list) else (), 1):
        if isinstance(table, dict):
            rule = read_rule(table)
            placed = rule and replace(rule, source=source, index=number)
            yield RuleEntry(number=number, rule=placed, text="", line=0)


@lru_cache(maxsize=16_384)
def _alone(text: str, source: str) -> tuple[Finding, ...]:
    """Return the findings about a disabled rule, given its lines in the file."""
    return tuple(replace(finding, rule=0) for finding in check_text(uncommented(text), source))


@lru_cache(maxsize=16_384)
def _table(text: str) -> dict[str, Any] | None:
    """Return the table that a rule's lines define.

    Returns None unless the lines are valid TOML and contain exactly one rule.
    """
    try:
        document = parse_toml(text)
    except TomlError:
        return None
    match document:
        case {"rule": [dict() as table]} if len(document) == 1:
            return table
    return None


@lru_cache(maxsize=16_384)
def _checked(text: str) -> Checked:
    return check_table(_table(text))


@lru_cache(maxsize=16_384)
def _rule(text: str, source: str, number: int) -> Rule | None:
    rule = _checked(text).rule
    return rule and replace(rule, source=source, index=number)


# --- changing one rule ---------------------------------------------------------------------------


def _changed(text: str, rule: Rule) -> str:
    """Return a rule's lines with their fields changed to those of `rule`.

    Fields that don't differ are left as they are written. Raises PolicyError if the lines are
    written in a way that can't be changed.
    """
    table = _table(text) or {}
    had = _fields_in(table)
    wanted = explicit_fields(rule)
    for key in dict.fromkeys((*KEYS, *had, *wanted)):
        if _same(had.get(key), wanted.get(key)):
            continue
        for old, new in OLD_KEYS.items():
            if new == key and old in table:
                text = with_field(text, old, None)
        value = None if key not in wanted else _value(text, key, wanted[key])
        text = with_field(text, key, value, KEYS[: KEYS.index(key)] if key in KEYS else KEYS)
    has = _fields_in(_table(text) or {})
    for key in {**has, **wanted}:
        if not _same(has.get(key), wanted.get(key)):
            raise PolicyError(
                "this rule is written in a format that can't be changed here: use an editor"
            )
    return text


def _fields_in(table: dict[str, Any]) -> dict[str, Any]:
    """Return a rule table's fields that differ from the defaults.

    The decision and the priority may be missing.
    """
    arguments, _unread = readable(table)
    rule = Rule(**{"decision": Decision.DENY, "priority": 0, **arguments})
    missing = {"decision", "priority"} - arguments.keys()
    return {key: value for key, value in explicit_fields(rule).items() if key not in missing}


def _same(one: Any, other: Any) -> bool:
    if one is None or other is None:
        return one is other
    return value_to_toml(one) == value_to_toml(other)


def _value(text: str, key: str, value: Any) -> str:
    """Return `value` as TOML, to be written into the rule `text` under `key`.

    If both the old and the new value are lists and the old one spans several lines, its items keep
    their lines and comments.
    """
    old = value_of(text, key)
    if isinstance(value, list) and old is not None and old.startswith("[") and "\n" in old:
        return list_text(old, value)
    return value_to_toml(value)
