"""Check policy files (assets/gemini-cli.md#policy-files).

An error is anything that the CLI drops, ignores, or treats as no restriction at all. A warning is
anything that the CLI accepts but that its author probably did not intend. A run whose policy has
errors should not start.
"""

from __future__ import annotations

import errno
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from gemtui.files import read_small
from gemtui.policy.check.check_rule import rule_drafts, schema_draft
from gemtui.policy.check.finding_builder import FindingDraft, findings, warned
from gemtui.policy.check.pitfalls import HIDDEN_MESSAGE, missed_forms, pitfalls
from gemtui.policy.check.shadows import kept_visible, related
from gemtui.policy.file.policy import LARGEST, TOO_LARGE
from gemtui.policy.file.policy_files import SkipReason, policy_entries
from gemtui.policy.file.rule_blocks import BlockKind, blocks_of
from gemtui.policy.file.rule_codec import read_checker, read_rule
from gemtui.policy.file.schema import SchemaProblem, schema_problems
from gemtui.policy.file.toml_dialect import TomlError, parse_toml
from gemtui.policy.model.rules import Finding, Rule, Severity

_TABLES = ("rule", "safety_checker")
_WHOLE = "Gemini CLI ignores the whole file"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Read:
    """One policy file that has been checked by itself.

    `drafts`: the findings about this file alone, each with its rule's number (0: about the file as
    a whole). `rules`: the readable rules, to be compared with those of other files. `dropped`:
    whether the CLI drops the whole file, so that its rules are not compared.
    """

    file: Path | str
    drafts: tuple[tuple[int, FindingDraft], ...]
    rules: tuple[Rule, ...]
    dropped: bool = False


@dataclass(frozen=True, slots=True)
class Checked:
    """The result of checking one `[[rule]]` table by itself.

    `rule`: the rule, with `source` and `index` not set yet; None if its decision or priority can't
    be read. `drafts`: the findings. `dropped`: whether Gemini CLI drops the whole file because of
    this table.
    """

    rule: Rule | None
    drafts: tuple[FindingDraft, ...]
    dropped: bool


def check_table(table: Any) -> Checked:
    """Check one `[[rule]]` table, as parsed from TOML, independently of other rules."""
    problems = schema_problems({"rule": [table]})
    fields = table if isinstance(table, Mapping) else {}
    rule = read_rule(fields)
    found = [schema_draft(problem, fields) for problem in problems]
    if rule is not None:
        found += rule_drafts(fields, rule)
        if not any(each.severity is Severity.ERROR for each in found):
            found += pitfalls(rule)
    return Checked(rule, tuple(found), bool(problems))


def check_text(text: str, file: Path | str) -> tuple[Finding, ...]:
    """Check the contents of one policy file and return the findings.

    Findings about the file as a whole come first, then those about its rules, in file order.
    `file`: the name to show in the findings; the file isn't read.
    """
    return tuple(_all([_read(text, file)]))


def check_tables(
    tables: Sequence[Checked], rules: Sequence[Rule], rest: Mapping[str, Any], file: Path | str
) -> tuple[Finding, ...]:
    """Return what `check_text` would return, for a file that has already been parsed.

    `tables`: the results of `check_table` for the file's rules, in order. `rules`: the rules that
    could be read, each with its source and index. `rest`: everything else in the file. `file`: the
    name to show in the findings.
    """
    return tuple(_all([_put_together(tables, rules, rest, file)]))


def _all(files: Sequence[_Read]) -> Iterator[Finding]:
    """Yield the findings about all files, including conflicts between files."""
    rules = [rule for each in files if not each.dropped for rule in each.rules]
    loaded, seen, missed = related(rules), kept_visible(rules), missed_forms(rules)
    place = 0
    for each in files:
        between = related(each.rules) if each.dropped else loaded
        visible = kept_visible(each.rules) if each.dropped else seen
        at = 0 if each.dropped else place
        shown = {rule.index for where, rule in enumerate(each.rules, at) if where in visible}
        found = [(number, one) for number, one in each.drafts if number not in shown or one.message != HIDDEN_MESSAGE]
        for where, rule in enumerate(each.rules, at):
            found += [(rule.index, one) for one in between.get(where, ())]
            if not each.dropped:
                found += [(rule.index, one) for one in missed.get(where, ())]
        place += 0 if each.dropped else len(each.rules)
        for number, one in sorted(found, key=lambda pair: pair[0]):
            yield from findings([one], each.file, number)


def _read(text: str, file: Path | str) -> _Read:
    try:
        rest = parse_toml(text)
    except TomlError as error:
        return _Read(file=file, drafts=(_syntax_draft(error, text),), rules=())
    found = rest.pop("rule") if isinstance(rest.get("rule"), list) else []
    tables = [check_table(table) for table in found]
    rules = [
        replace(each.rule, source=str(file), index=number)
        for number, each in enumerate(tables, 1)
        if each.rule is not None
    ]
    return _put_together(tables, rules, rest, file)


def _put_together(tables: Sequence[Checked], rules: Sequence[Rule], rest: Mapping[str, Any], file: Path | str) -> _Read:
    problems = schema_problems(rest)
    found = [(0, each) for each in (*_table_drafts(rest), *map(_rest_draft, problems))]
    if not problems:
        found += [(0, each) for table in rest.get("safety_checker", ()) for each in _checker(table)]
    found += [(number, each) for number, one in enumerate(tables, 1) for each in one.drafts]
    dropped = bool(problems) or any(each.dropped for each in tables)
    return _Read(file=file, drafts=tuple(found), rules=tuple(rules), dropped=dropped)


def _rest_draft(problem: SchemaProblem) -> FindingDraft:
    if problem.field == "rule":
        text = f"the rules are not written as [[rule]] tables: {_WHOLE}"
        return FindingDraft("rule", text, "write [[rule]] above the fields of each rule")
    return schema_draft(problem, {})


# --- the file as a whole -------------------------------------------------------------------------


def _syntax_draft(error: TomlError, text: str) -> tuple[int, FindingDraft]:
    """Return a rule's number and the finding about a syntax error in that rule.

    The number is 0 if the error is outside all rules.
    """
    if text.startswith("\ufeff"):
        why = f"the file begins with a byte order mark: {_WHOLE}"
        return 0, FindingDraft("", why, "save it as UTF-8 without a byte order mark (BOM)")
    place = f"line {error.line}, column {error.column}: " if error.line else ""
    return _rule_at(error.line, text), FindingDraft(error.key, f"{place}{error}: {_WHOLE}", "correct that line")


def _rule_at(line: int, text: str) -> int:
    """Return the 1-based number of the rule that contains a line; 0 if none does."""
    number = at = 0
    for piece in blocks_of(text):
        at += piece.text.count("\n") + (not piece.text.endswith("\n"))
        number += piece.kind is BlockKind.RULE
        if line <= at:
            return number if piece.kind is BlockKind.RULE else 0
    return 0


def _table_drafts(document: Mapping[str, Any]) -> Iterator[FindingDraft]:
    for key, value in document.items():
        if key in _TABLES:
            continue
        tables = isinstance(value, Mapping) or (
            isinstance(value, list) and any(isinstance(each, Mapping) for each in value)
        )
        if not tables:
            yield warned(key, f'Gemini CLI does not recognise the key "{key}" here and ignores it', "remove it")
            continue
        near = get_close_matches(key.lower(), _TABLES, n=1) or (["rule"] if "rul" in key else [])
        shown = f"[[{key}]]" if isinstance(value, list) else f"[{key}]"
        way_out = f"write [[{near[0]}]]" if near else "remove it"
        yield FindingDraft(key, f"Gemini CLI does not recognise the table {shown} and ignores its contents", way_out)


def _checker(table: Mapping[str, Any]) -> Iterator[FindingDraft]:
    """Yield findings about a safety checker that can't work.

    Gemini CLI denies every call that matches such a checker.
    """
    checker = read_checker(table)
    refuses = "denies every call that it matches"
    if checker.external:
        text = f'Gemini CLI has no external checkers, so "{checker.name}" {refuses}'
        yield warned("safety_checker", text, "write a deny rule instead")
    elif checker.name == "allowed-path" and "environment" not in (
        ("environment",) if checker.context is None else checker.context
    ):
        text = f'without "environment" in its required_context, allowed-path {refuses}'
        yield warned("safety_checker", text, "remove required_context")


# --- files and folders ---------------------------------------------------------------------------


def check_files(paths: Iterable[Path | str]) -> tuple[Finding, ...]:
    """Check policy files and folders in the given order.

    `paths`: the files and folders, as for Gemini CLI's option `--policy`. Rules of different files
    are also compared with each other. A path that is missing, unreadable or wrongly named is
    reported as a finding; no exception is raised.
    """
    return tuple(_all([each for path in paths for each in _read_path(Path(path))]))


def _read_path(path: Path) -> Iterator[_Read]:
    try:
        if path.is_dir():
            yield from _read_folder(path)
        elif not path.exists():
            yield _only(path, _missing(path))
        elif not path.is_file():
            yield _only(path, FindingDraft("", "not a file: Gemini CLI reads no rules from it"))
        elif not path.name.endswith(".toml"):
            text = "its name does not end in .toml: Gemini CLI reads no rules from it"
            yield _only(path, FindingDraft("", text, f"rename it to {path.name}.toml"))
        else:
            yield _read_file(path)
    except OSError as error:
        yield _only(path, _unreadable(error))


def _missing(path: Path) -> FindingDraft:
    text = "it does not exist: Gemini CLI doesn't report this, and doesn't read the user's policies either"
    if "," in path.name:
        return FindingDraft("", f"{text}; Gemini CLI splits paths at commas", "list each path separately")
    return FindingDraft("", text, "check the path")


def _unreadable(error: OSError) -> FindingDraft:
    text = f"it can't be read ({error.strerror}): Gemini CLI starts without its rules"
    return FindingDraft("", text, "check its permissions")


def _only(path: Path, draft: FindingDraft) -> _Read:
    return _Read(file=path, drafts=((0, draft),), rules=())


def _read_file(path: Path) -> _Read:
    try:
        data = read_small(path, LARGEST)
    except OSError as error:
        large = error.errno == errno.EFBIG
        return _only(path, FindingDraft("", TOO_LARGE, "name another file") if large else _unreadable(error))
    try:
        return _read(data.decode("utf-8"), path)
    except UnicodeDecodeError as error:
        found = _read(data.decode("utf-8", "replace"), path)
        line = data.count(b"\n", 0, error.start) + 1
        text = f"line {line} is not valid UTF-8, so Gemini CLI reads different characters there"
        return replace(found, drafts=((0, warned("", text, "save it as UTF-8")), *found.drafts))


def _read_folder(folder: Path) -> Iterator[_Read]:
    """Read a folder's files in the order the CLI uses, which is by their names' bytes.

    A file that the CLI skips yields a finding instead.
    """
    entries = policy_entries(folder)
    for each in entries:
        if each.skipped is None:
            yield _read_file(each.path)
        else:
            yield _only(each.path, _skipped(each.path, each.skipped))
    if all(each.skipped for each in entries):
        text = "the folder contains no .toml file, and therefore no rules"
        yield _only(folder, FindingDraft("", text, "add one, or give another path"))


def _skipped(path: Path, why: SkipReason) -> FindingDraft:
    match why:
        case SkipReason.LINK:
            text = "it is a symbolic link: Gemini CLI skips links in a folder"
            mend = "replace it with a copy of the file, or list its path separately"
        case SkipReason.CASE:
            text = "its name does not end in .toml (in lowercase), so Gemini CLI skips it"
            mend = f"rename it to {path.stem}.toml"
        case SkipReason.FOLDER:
            text = "it is a subfolder: Gemini CLI does not search subfolders"
            mend = "move its files into the parent folder"
        case SkipReason.OTHER:
            text = "it is not a file: Gemini CLI reads no rules from it"
            mend = "remove it"
    return FindingDraft("", text, mend)
