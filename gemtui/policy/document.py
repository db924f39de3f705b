"""A policy file as a person edits it: comments, order and layout stay, only what changed changes.

The text is cut into rules and what stands between them; an edit touches the lines of one rule.
A rule that is switched off stays in the file, each of its lines behind `#off `, which is a comment
to the CLI.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

from gemtui.policy.rules import Finding, Rule


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
    out; "" = all can. Every method that edits raises PolicyError for a locked document.
    """

    text: str
    source: str
    rules: tuple[Entry, ...]
    findings: tuple[Finding, ...]
    locked: str

    @classmethod
    def parse(cls, text: str, *, source: str = "policy.toml") -> Self:
        """The document of a file's text; never raises: what is broken is locked and says why."""
        raise NotImplementedError

    def add(self, rule: Rule, at: int | None = None) -> Self:
        """With `rule` before the one at `at` (from 0), or as the last."""
        raise NotImplementedError

    def replace(self, index: int, rule: Rule) -> Self:
        """With the fields that differ changed in the rule at `index`; its comments stay."""
        raise NotImplementedError

    def remove(self, index: int) -> Self:
        """Without the rule at `index` and the comments that belong to it."""
        raise NotImplementedError

    def duplicate(self, index: int) -> Self:
        """With a copy of the rule at `index` right after it."""
        raise NotImplementedError

    def move(self, index: int, to: int) -> Self:
        """With the rule at `index` at the place `to`; those between move up or down."""
        raise NotImplementedError

    def enable(self, index: int, on: bool) -> Self:
        """With the rule at `index` switched on, or off and kept in the file as a comment."""
        raise NotImplementedError


def text_of(rules: Iterable[Rule]) -> str:
    """The rules as a policy file that the CLI reads back as they are (contract 4.3)."""
    raise NotImplementedError
