"""A policy: all rules that a run is given by files, in the CLI's load order."""

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
    """Rules as the CLI would load them.

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
        """Return the rules of one path or several, files or folders, as `--policy` takes them.

        `tier`: whose rules they are. `folder`: the folder of relative paths, None = the current
        one. Never raises: a path that does not exist, or a file that the CLI would drop, gives a
        finding.
        """
        several = [paths] if isinstance(paths, str | Path) else paths
        loaded = read_paths(several, tier=tier, folder=folder)
        return cls(rules=loaded.rules, findings=loaded.findings)

    @classmethod
    def parse(cls, text: str, *, source: str = "policy.toml", tier: Tier = Tier.USER) -> Self:
        """Return the rules of one policy file's text."""
        loaded = read_text(text, source=source, tier=tier)
        return cls(rules=loaded.rules, findings=loaded.findings)

    @classmethod
    def of_file(cls, rules: Iterable[Rule]) -> Self:
        """Return the rules of a policy file that has been read, without those the CLI drops."""
        loaded = read_rules(rules)
        return cls(rules=loaded.rules, findings=loaded.findings)

    def to_toml(self) -> str:
        """Return one policy file with these rules, which the CLI reads back as they are."""
        return text_of(self.rules)

    def __add__(self, other: Policy) -> Policy:
        """Return both policies as one, this one loaded first."""
        return Policy(rules=(*self.rules, *other.rules), findings=(*self.findings, *other.findings))


def of(rules: Iterable[Rule]) -> Policy:
    """Return a policy of these rules, in this order."""
    return Policy(rules=tuple(rules))
