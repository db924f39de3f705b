"""A policy: the rules in files as the CLI loads them, and the parts it drops.

A file with invalid TOML or an invalid schema is dropped as a whole. If only a rule's pattern is
unusable, only that rule is dropped. A rule with an empty name makes the CLI exit on startup; it is
kept so that the engine can report this. See assets/gemini-cli.md#policy-files.
"""

from __future__ import annotations

import errno
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any

from gemtui.errors import reason_of
from gemtui.files import read_small
from gemtui.policy.file.policy_files import find_policy_files
from gemtui.policy.file.rule_codec import read_checker, read_rule, rules_to_toml, schema_problems
from gemtui.policy.file.toml_dialect import TomlError, parse_toml
from gemtui.policy.match.matching import dropped, kills, pattern_sources
from gemtui.policy.model.rules import Decision, Finding, Rule, SafetyChecker, Severity, Tier

LARGEST = 4 * 1024 * 1024
"""The maximum size of a policy file, in bytes; a larger one is reported, not read."""
TOO_LARGE = "it is larger than 4 MiB, so it is not a policy file"


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """Rules as the CLI would load them.

    `rules`: in load order; among rules of equal priority, the first wins. `findings`: what was
    dropped or is doubtful. `checkers`: the safety checkers, in load order.
    """

    rules: tuple[Rule, ...] = ()
    findings: tuple[Finding, ...] = ()
    checkers: tuple[SafetyChecker, ...] = ()

    @staticmethod
    def load(
        paths: Path | str | Iterable[Path | str],
        *,
        tier: Tier = Tier.USER,
        folder: Path | None = None,
    ) -> Policy:
        """Return the policy in one or more files or folders.

        `paths`: as for Gemini CLI's option `--policy`; a string may contain several paths,
        separated by commas. `tier`: the tier to give the rules. `folder`: the folder that relative
        paths refer to; None means the current folder. Never raises: a path that does not exist, or
        a file the CLI would drop, yields a finding.
        """
        several = [paths] if isinstance(paths, str | Path) else paths
        every = (path if folder is None else folder / path for path in _split(several))
        return reduce(add, (_read(path, tier) for path in every), Policy())

    @staticmethod
    def parse(text: str, *, source: str = "policy.toml", tier: Tier = Tier.USER) -> Policy:
        """Return the policy in the contents of one file. Never raises.

        `source`: the file's name, for rules and findings. `tier`: the tier to give the rules.
        """
        try:
            document = parse_toml(text)
        except TomlError as error:
            return Policy(findings=(_whole(source, f"TOML that can't be parsed: {error}"),))
        problems = schema_problems(document)
        if problems:
            return Policy(
                findings=tuple(
                    _finding(
                        source,
                        problem.rule,
                        problem.field,
                        f"the whole file is ignored: {problem.why}",
                    )
                    for problem in problems
                )
            )
        read = enumerate(map(read_rule, document.get("rule", ())), start=1)
        return Policy.of_file(
            (replace(rule, tier=tier, source=source, index=index) for index, rule in read if rule),
            document,
            tier=tier,
            source=source,
        )

    @staticmethod
    def of_file(
        rules: Iterable[Rule], document: Mapping[str, Any], *, source: str, tier: Tier = Tier.USER
    ) -> Policy:
        """Return the policy in a file with a valid schema, without its unusable rules.

        `rules`: the file's rules. `document`: the file's tables, which contain the safety checkers.
        """
        every = tuple(rules)
        checkers = map(read_checker, document.get("safety_checker", ()))
        placed = (
            replace(checker, rule=replace(checker.rule, tier=tier, source=source))
            for checker in checkers
        )
        return Policy(
            checkers=tuple(checker for checker in placed if _asked(checker)),
            rules=tuple(rule for rule in every if _kept(rule)),
            findings=tuple(finding for rule in every for finding in _rule_findings(rule)),
        )

    def to_toml(self) -> str:
        """Return the rules as the contents of a policy file.

        The CLI reads them back unchanged. Raises PolicyError for values that a file can't hold.
        """
        return rules_to_toml(self.rules)

    def __add__(self, other: Policy) -> Policy:
        """Return both policies combined, with this one loaded first."""
        return Policy(
            rules=(*self.rules, *other.rules),
            findings=(*self.findings, *other.findings),
            checkers=(*self.checkers, *other.checkers),
        )


def of(rules: Iterable[Rule]) -> Policy:
    """Return a policy with these rules, in this order."""
    return Policy(rules=tuple(rules))


def _kept(rule: Rule) -> bool:
    """Return whether the CLI keeps a rule when it loads a file.

    It drops rules with unusable patterns, and extensions' rules that allow calls or are for yolo
    mode.
    """
    if rule.tier is Tier.EXTENSION and (rule.decision is Decision.ALLOW or "yolo" in rule.modes):
        return False
    sources = pattern_sources(rule)
    return not sources or any(not source or not dropped(source) for source in sources)


def _asked(checker: SafetyChecker) -> bool:
    """Return whether the CLI keeps a safety checker when it loads a file.

    It drops extensions' checkers for yolo mode.
    """
    return checker.rule.tier is not Tier.EXTENSION or "yolo" not in checker.rule.modes


def _rule_findings(rule: Rule) -> Iterator[Finding]:
    field = kills(rule)
    if field:
        message = f"{field} is empty: Gemini CLI exits immediately because of such a rule"
        yield _finding(rule.source, rule.index, field, message)
    if rule.tier is Tier.EXTENSION and not _kept(replace(rule, args_pattern=None)):
        message = "an extension's rule must not allow calls or use the yolo mode, so it is ignored"
        yield _finding(rule.source, rule.index, "", message)
    for pattern in pattern_sources(rule):
        why = dropped(pattern) if pattern else None
        if why:
            yield _finding(rule.source, rule.index, _field(rule), f"the rule is ignored: {why}")


def _field(rule: Rule) -> str:
    """Return the field that a rule's patterns come from, such as commandPrefix.

    This is the field that `pattern_sources` uses, because it overrides the others.
    """
    if rule.prefix_list or any(rule.command_prefixes):
        return "commandPrefix"
    return "commandRegex" if rule.command_regex else "argsPattern"


def _whole(source: str, message: str) -> Finding:
    return _finding(source, 0, "", f"{message}: the whole file is ignored")


def _finding(source: str, rule: int, field: str, message: str) -> Finding:
    return Finding(file=source, rule=rule, field=field, severity=Severity.ERROR, message=message)


def _read(path: Path, tier: Tier) -> Policy:
    files, why = find_policy_files(path)
    missing = (_finding(str(path), 0, "", f"{why}, so no rules are read from it"),) if why else ()
    return reduce(add, (_read_file(file, tier) for file in files), Policy(findings=missing))


def _read_file(file: Path, tier: Tier) -> Policy:
    try:
        text = read_small(file, LARGEST).decode("utf-8", "replace")
    except OSError as error:
        large = error.errno == errno.EFBIG
        whole = _whole(str(file), f"it can't be read ({reason_of(error)})")
        return Policy(findings=(_finding(str(file), 0, "", TOO_LARGE) if large else whole,))
    return Policy.parse(text, source=str(file), tier=tier)


def _split(paths: Iterable[Path | str]) -> Iterator[Path]:
    for path in paths:
        parts = str(path).split(",")
        yield from map(_path, filter(None, map(str.strip, parts)))


def _path(text: str) -> Path:
    return Path(text).expanduser() if text.split("/")[0] == "~" else Path(text)


def text_at(file: Path) -> Iterator[str]:
    """Yield a policy file's contents, or nothing if the file can't be read."""
    try:
        yield read_small(file, LARGEST).decode("utf-8", "replace")
    except OSError:
        return
