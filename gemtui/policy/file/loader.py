"""Load policy files as the CLI does: what becomes rules, and what is dropped.

A file whose TOML or schema is wrong is dropped whole, a rule whose pattern can't be used alone. A
rule with an empty name, which keeps the CLI from starting, is kept, so that the engine says so. See
assets/gemini-cli.md#policy-files.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from gemtui.files import is_file, read_small
from gemtui.policy.file.rule_codec import read_rule
from gemtui.policy.file.schema import schema_problems
from gemtui.policy.file.toml_dialect import TomlError, parse_toml
from gemtui.policy.match.matching import dropped, kills, pattern_sources
from gemtui.policy.model.rules import Decision, Finding, Rule, Severity, Tier

LARGEST = 4 * 1024 * 1024
"""Bytes of a policy file; a larger one is reported and not read."""
TOO_LARGE = "it is over 4 MiB, which is no policy file"


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """The result of loading: rules in load order, and what was dropped."""

    rules: tuple[Rule, ...] = ()
    findings: tuple[Finding, ...] = ()


def read_text(text: str, *, source: str, tier: Tier = Tier.USER) -> Loaded:
    """Return the rules of one file's text; never raises."""
    try:
        document = parse_toml(text)
    except TomlError as error:
        return Loaded(findings=(_whole(source, f"TOML that can't be read: {error}"),))
    problems = schema_problems(document)
    if problems:
        return Loaded(
            findings=tuple(
                _finding(source, place.rule, place.field, f"the whole file is dropped: {place.why}")
                for place in problems
            )
        )
    read = enumerate(map(read_rule, document.get("rule", ())), start=1)
    return read_rules(
        replace(rule, tier=tier, source=source, index=index) for index, rule in read if rule
    )


def read_rules(rules: Iterable[Rule]) -> Loaded:
    """Return the rules of a file that the schema accepts, without those dropped alone."""
    every = tuple(rules)
    return Loaded(
        rules=tuple(rule for rule in every if _kept(rule)),
        findings=tuple(each for rule in every for each in _rule_findings(rule)),
    )


def _kept(rule: Rule) -> bool:
    """Whether anything of a rule is left; extensions may neither allow nor speak for yolo."""
    if rule.tier is Tier.EXTENSION and (rule.decision is Decision.ALLOW or "yolo" in rule.modes):
        return False
    sources = pattern_sources(rule)
    return not sources or any(not source or not dropped(source) for source in sources)


def _rule_findings(rule: Rule) -> Iterator[Finding]:
    if field := kills(rule):
        said = f"{field} is empty: Gemini CLI ends at once with such a rule"
        yield _finding(rule.source, rule.index, field, said)
    if rule.tier is Tier.EXTENSION and not _kept(replace(rule, args_pattern=None)):
        said = "an extension's rule may neither allow nor name the mode yolo: it is dropped"
        yield _finding(rule.source, rule.index, "", said)
    for pattern in pattern_sources(rule):
        why = dropped(pattern) if pattern else None
        if why:
            yield _finding(rule.source, rule.index, _field(rule), f"the pattern is dropped: {why}")


def _field(rule: Rule) -> str:
    """Where the patterns of `pattern_sources` come from."""
    if rule.prefix_list or any(rule.command_prefixes):
        return "commandPrefix"
    return "commandRegex" if rule.command_regex else "argsPattern"


def _whole(source: str, message: str) -> Finding:
    return _finding(source, 0, "", f"{message}: the whole file is dropped")


def _finding(source: str, rule: int, field: str, message: str) -> Finding:
    return Finding(file=source, rule=rule, field=field, severity=Severity.ERROR, message=message)


def read_paths(
    paths: Iterable[Path | str], *, tier: Tier = Tier.USER, folder: Path | None = None
) -> Loaded:
    """Return the rules of files and folders as `--policy` takes them, with commas between paths.

    `folder`: the folder of relative paths; None = the current one. A path that does not exist, or
    that does not end in `.toml`, gives a finding instead of rules.
    """
    rules: list[Rule] = []
    findings: list[Finding] = []
    for path in (each if folder is None else folder / each for each in _split(paths)):
        files, why = _files(path)
        if why:
            findings.append(_finding(str(path), 0, "", f"{why}, so no rules are read there"))
        for file in files:
            try:
                text = read_small(file, LARGEST).decode("utf-8", "replace")
            except OSError as error:
                large = error.errno == errno.EFBIG
                whole = _whole(str(file), f"it can't be read ({error.strerror})")
                findings.append(_finding(str(file), 0, "", TOO_LARGE) if large else whole)
                continue
            loaded = read_text(text, source=str(file), tier=tier)
            rules.extend(loaded.rules)
            findings.extend(loaded.findings)
    return Loaded(rules=tuple(rules), findings=tuple(findings))


def _split(paths: Iterable[Path | str]) -> Iterator[Path]:
    for path in paths:
        parts = str(path).split(",")
        yield from map(_path, filter(None, map(str.strip, parts)))


def _path(text: str) -> Path:
    return Path(text).expanduser() if text.split("/")[0] == "~" else Path(text)


def _files(path: Path) -> tuple[Sequence[Path], str]:
    """The files that the CLI reads at a path, and why there can be none; "" = there can.

    In a folder they come by the bytes of their names. A symbolic link counts when it is named
    itself, not in a folder.
    """
    try:
        if path.is_dir():
            with os.scandir(path) as entries:
                found = [
                    entry.name
                    for entry in entries
                    if entry.name.endswith(".toml") and entry.is_file(follow_symlinks=False)
                ]
            return [path / name for name in sorted(found, key=os.fsencode)], ""
        if not path.exists():
            return (), "it is missing"
    except OSError as error:
        return (), f"it can't be read ({error.strerror})"
    if not path.name.endswith(".toml"):
        return (), "its name does not end in .toml"
    return ((path,), "") if is_file(path) else ((), "it is no file")
