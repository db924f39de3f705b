"""A policy: every rule that a run is given by files, in the order in which the CLI loads them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from gemtui.policy.file.loader import read_paths, read_rules, read_text
from gemtui.policy.file.rule_codec import text_of
from gemtui.policy.model.rules import Finding, Rule, Tier


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """Rules as the CLI would load them, and what it would drop.

    `rules`: in load order, which settles ties. `findings`: what was dropped or is doubtful.
    """

    rules: tuple[Rule, ...] = ()
    findings: tuple[Finding, ...] = ()

    @classmethod
    def load(
        cls,
        paths: Path | str | Iterable[Path | str],
        *,
        tier: Tier = Tier.USER,
        folder: Path | None = None,
    ) -> Self:
        """The rules of files and folders, as `--policy` takes them.

        One path or several, in their order; `folder`: where relative ones begin, None = here. Never
        raises: a path that is not there, and a file
        that the CLI would drop, give no rules and a finding that says so.
        """
        several = [paths] if isinstance(paths, str | Path) else paths
        loaded = read_paths(several, tier=tier, folder=folder)
        return cls(rules=loaded.rules, findings=loaded.findings)

    @classmethod
    def parse(cls, text: str, *, source: str = "policy.toml", tier: Tier = Tier.USER) -> Self:
        """The rules of one policy file's text."""
        loaded = read_text(text, source=source, tier=tier)
        return cls(rules=loaded.rules, findings=loaded.findings)

    @classmethod
    def of_file(cls, rules: Iterable[Rule]) -> Self:
        """The rules of one policy file that has been read, without those that the CLI drops."""
        loaded = read_rules(rules)
        return cls(rules=loaded.rules, findings=loaded.findings)

    def to_toml(self) -> str:
        """The rules as one policy file that the CLI reads back as they are."""
        return text_of(self.rules)

    def __add__(self, other: Policy) -> Policy:
        """Both, this one loaded first."""
        return Policy(rules=(*self.rules, *other.rules), findings=(*self.findings, *other.findings))


def of(rules: Iterable[Rule]) -> Policy:
    """A policy of these rules, in this order."""
    return Policy(rules=tuple(rules))
