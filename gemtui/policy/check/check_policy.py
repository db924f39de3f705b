"""Check policy files (assets/gemini-cli.md#policy-files).

An error is anything that the CLI drops, ignores, or treats as no restriction at all. A warning is
anything that the CLI accepts but that its author probably did not intend. A run whose policy has
errors should not start.

To find rules that never apply, each rule is split into cases: pairs of one tool and one condition.
A case never applies if the engine tries a different rule earlier (assets/gemini-cli.md#priorities)
that is for the same tool, has the same condition or none, and applies in at least the same
situations.
"""

from __future__ import annotations

import errno
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from itertools import product
from pathlib import Path
from typing import Any

from gemtui.errors import reason_of
from gemtui.files import read_small
from gemtui.policy.check.check_rule import rule_drafts, schema_draft
from gemtui.policy.check.name_check import same_names
from gemtui.policy.check.pitfalls import HIDDEN_MESSAGE, missed_forms, pitfalls
from gemtui.policy.file.policy import LARGEST, TOO_LARGE
from gemtui.policy.file.policy_files import SkipReason, policy_entries
from gemtui.policy.file.rule_blocks import BlockKind, blocks_of
from gemtui.policy.file.rule_codec import (
    MODES,
    SchemaProblem,
    read_checker,
    read_rule,
    schema_problems,
)
from gemtui.policy.file.toml_dialect import TomlError, parse_toml
from gemtui.policy.match.matching import pattern_sources, tool_names
from gemtui.policy.model.mcp_names import MCP_PREFIX
from gemtui.policy.model.rules import (
    Decision,
    Finding,
    FindingDraft,
    Rule,
    Severity,
    findings,
    warned,
)
from gemtui.policy.model.tool_catalog import AGENTS, ALIASES
from gemtui.text import or_list

_Condition = tuple[str | None, str | None]
"""A command prefix and a pattern; at most one of them is given."""
_NONE: _Condition = (None, None)
"""The condition of a rule that applies to any arguments."""
_NO_SETTINGS: Mapping[str, Any] = {}
_Situations = frozenset[tuple[str, bool]]
"""The situations in which a rule applies: pairs of a mode and "is interactive"."""


def related(rules: Sequence[Rule]) -> Mapping[int, tuple[FindingDraft, ...]]:
    """Find rules that never apply, and rules that conflict at equal priority.

    `rules`: in load order. Returns a mapping from each rule's index in `rules` to its findings.
    """
    drafts: dict[int, tuple[FindingDraft, ...]] = {}
    earlier = _Earlier()
    for index in _tried_order(rules):
        rule = rules[index]
        covering = earlier.covering(rule)
        if covering:
            drafts[index] = (_never_applies(rule, covering),)
            continue
        tied = earlier.tied(rule)
        if tied is not None:
            drafts[index] = (_tie(rule, tied),)
        earlier.add(rule)
    return drafts


def _tried_order(rules: Sequence[Rule]) -> list[int]:
    """Return the indexes of rules in the order in which the engine tries them."""
    return sorted(range(len(rules)), key=lambda index: (-rules[index].effective, index))


def kept_visible(rules: Sequence[Rule]) -> frozenset[int]:
    """Return the indexes of deny rules whose tools a stronger rule keeps visible.

    The model still sees a denied tool if a stronger rule for it has a condition and doesn't deny.
    Only deny rules with a message are returned, because the model gets the message only if it sees
    the tool and calls it. `rules`: in load order.
    """
    visible: set[int] = set()
    shown: defaultdict[str, set[tuple[str, bool]]] = defaultdict(set)
    anything: set[tuple[str, bool]] = set()
    for index in _tried_order(rules):
        rule = rules[index]
        tools = tool_names(rule)
        situations = _situations(rule)
        if rule.decision is not Decision.DENY and rule.conditional and rule.subagent is None:
            anything |= situations
            for tool in tools:
                shown[tool] |= situations
        elif rule.deny_message:
            seen = anything if "*" in tools else shown["*"].union(*map(shown.__getitem__, tools))
            if not situations.isdisjoint(seen):
                visible.add(index)
    return frozenset(visible)


class _Earlier:
    """The rules that the engine tries before the one in question.

    Rules that never apply are left out.
    """

    def __init__(self) -> None:
        self._by_case: defaultdict[tuple[str, _Condition], list[Rule]] = defaultdict(list)
        self._by_tool: defaultdict[tuple[str, float], list[Rule]] = defaultdict(list)

    def add(self, rule: Rule) -> None:
        """Add a rule that the engine tries after all rules added before."""
        for case in _cases(rule):
            self._by_case[case].append(rule)
        for tool in {"*", *tool_names(rule)}:
            self._by_tool[tool, rule.effective].append(rule)

    def covering(self, rule: Rule) -> tuple[Rule, ...]:
        """Return rules that together decide all cases of `rule`, so that it never applies.

        Returns () if any case is left for `rule` to decide.
        """
        covering: dict[int, Rule] = {}
        for case in _cases(rule):
            wider = [other for other in self._with(*case) if _wider(other, rule)]
            if not wider:
                return ()
            covering[id(wider[0])] = wider[0]
        return tuple(covering.values())

    def tied(self, rule: Rule) -> Rule | None:
        """Return a rule of equal priority that decides some of the same calls differently.

        Returns None if there is none. Two rules are only compared if one of them has no condition,
        or both have the same condition. With different conditions, it is unknown whether one call
        can meet both.
        """
        for tool, condition in _cases(rule):
            narrower: Sequence[Rule] = (
                self._by_tool[tool, rule.effective] if condition == _NONE else ()
            )
            for other in (*self._with(tool, condition), *narrower):
                if (
                    other.effective == rule.effective
                    and other.decision is not rule.decision
                    and (None in (rule.subagent, other.subagent) or rule.subagent == other.subagent)
                    and _situations(rule) & _situations(other)
                ):
                    return other
        return None

    def _with(self, tool: str, condition: _Condition) -> Iterator[Rule]:
        """Yield the rules for this tool that have this condition or none."""
        for key in product(_covering_names(tool), dict.fromkeys((_NONE, condition))):
            yield from self._by_case.get(key, ())


_MOST_PARTS = 50
"""How many of an MCP tool name's underscores are tried as the server name's end."""


def _covering_names(tool: str) -> tuple[str, ...]:
    """Return the tool names that a rule can use to match all calls to `tool`.

    These are the name itself, wildcards, and the current name if `tool` is a former one. If `tool`
    is a current name, its former names are left out, because only a rule for the current name can
    hide a tool.
    """
    names = [tool, "*"]
    if tool.startswith(MCP_PREFIX):
        parts = tool.removeprefix(MCP_PREFIX).split("_", _MOST_PARTS)
        names += [f"{MCP_PREFIX}{'_'.join(parts[:at])}_*" for at in range(1, len(parts))]
        names.append(f"{MCP_PREFIX}*")
    if tool in AGENTS:
        names.append("invoke_agent")
    return tuple(dict.fromkeys((*names, ALIASES.get(tool, tool))))


def _cases(rule: Rule) -> Iterator[tuple[str, _Condition]]:
    """Yield all pairs of one of a rule's tools and one of its conditions."""
    prefixes = rule.command_prefixes
    if not rule.prefix_list:
        prefixes = tuple(filter(None, prefixes))
    patterns = () if prefixes else pattern_sources(rule)
    conditions: list[_Condition] = [(prefix, None) for prefix in prefixes]
    conditions += [(None, pattern) for pattern in patterns]
    return product(dict.fromkeys(tool_names(rule)), conditions)


def _situations(rule: Rule) -> _Situations:
    asked = (True, False) if rule.interactive is None else (rule.interactive,)
    return frozenset(product(rule.modes or MODES, asked))


def _wider(one: Rule, other: Rule) -> bool:
    """Return whether `one` applies wherever `other` does, tools and arguments aside.

    That is, `one` must cover all modes, kinds of runs, callers, MCP servers and annotations of
    `other`. Priorities are not compared.
    """
    return (
        _situations(one) >= _situations(other)
        and one.subagent in (None, other.subagent)
        and one.mcp_name in (None, "*", other.mcp_name)
        and not (one.annotations and dict(one.annotations) != dict(other.annotations or {}))
    )


def _never_applies(rule: Rule, by: Sequence[Rule]) -> FindingDraft:
    names = or_list(_named(other, rule) for other in by[:3])
    more = f" and {len(by) - 3} more" if len(by) > 3 else ""
    verb = "is" if len(by) == 1 else "are"
    equal = all(other.effective == rule.effective for other in by)
    why = "loaded first and has the same priority" if equal else "checked first"
    text = f"this rule never applies, because {names.replace(' or ', ' and ')}{more} {verb} {why}"
    return warned("", text, "delete it, or give it a higher priority")


def _named(rule: Rule, beside: Rule) -> str:
    file = "" if rule.source == beside.source else f" of {rule.source}"
    return f"rule {rule.index}{file} (priority {rule.priority:g}, {rule.decision})"


def _tie(rule: Rule, first: Rule) -> FindingDraft:
    text = f"{_named(first, rule)} has the same priority and comes first, so it wins"
    return warned("priority", text, "give the rule that should win a higher priority")


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
    drafts = [schema_draft(problem, fields) for problem in problems]
    if rule is not None:
        drafts += rule_drafts(fields, rule)
        if not any(draft.severity is Severity.ERROR for draft in drafts):
            drafts += pitfalls(rule)
    return Checked(rule, tuple(drafts), bool(problems))


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


def _all(files: Sequence[_Read], settings: Mapping[str, Any] = _NO_SETTINGS) -> Iterator[Finding]:
    """Yield the findings about all files, including conflicts between files."""
    rules = [rule for file in files if not file.dropped for rule in file.rules]
    loaded = _compared(rules)
    for findings_by_rule in (missed_forms(rules), same_names(rules, settings)):
        for index, drafts in findings_by_rule.items():
            loaded.drafts[index] += drafts
    start = 0
    for file in files:
        compared, first = (_compared(file.rules), 0) if file.dropped else (loaded, start)
        visible = {
            rule.index for index, rule in enumerate(file.rules, first) if index in compared.visible
        }
        drafts_by_rule = [
            (number, draft)
            for number, draft in file.drafts
            if number not in visible or draft.message != HIDDEN_MESSAGE
        ]
        for index, rule in enumerate(file.rules, first):
            drafts_by_rule += [(rule.index, draft) for draft in compared.drafts[index]]
        start += 0 if file.dropped else len(file.rules)
        for number, draft in sorted(drafts_by_rule, key=lambda pair: pair[0]):
            yield from findings([draft], file.file, number)


@dataclass(frozen=True, slots=True)
class _Compared:
    """The results of comparing rules with each other, by the rule's index.

    `drafts`: the findings. `visible`: the result of `kept_visible`.
    """

    drafts: defaultdict[int, list[FindingDraft]]
    visible: frozenset[int]


def _compared(rules: Sequence[Rule]) -> _Compared:
    compared = _Compared(defaultdict(list), kept_visible(rules))
    for index, drafts in related(rules).items():
        compared.drafts[index] += drafts
    return compared


def _read(text: str, file: Path | str) -> _Read:
    try:
        rest = parse_toml(text)
    except TomlError as error:
        return _Read(file=file, drafts=(_syntax_draft(error, text),), rules=())
    rule_tables = rest.pop("rule") if isinstance(rest.get("rule"), list) else []
    tables = list(map(check_table, rule_tables))
    rules = [
        replace(checked.rule, source=str(file), index=number)
        for number, checked in enumerate(tables, 1)
        if checked.rule is not None
    ]
    return _put_together(tables, rules, rest, file)


def _put_together(
    tables: Sequence[Checked], rules: Sequence[Rule], rest: Mapping[str, Any], file: Path | str
) -> _Read:
    problems = schema_problems(rest)
    of_file = [*_table_drafts(rest), *map(_rest_draft, problems)]
    if not problems:
        for table in rest.get("safety_checker", ()):
            of_file += _checker(table)
    drafts = [(0, draft) for draft in of_file]
    for number, checked in enumerate(tables, 1):
        drafts += [(number, draft) for draft in checked.drafts]
    dropped = bool(problems) or any(checked.dropped for checked in tables)
    return _Read(file=file, drafts=tuple(drafts), rules=tuple(rules), dropped=dropped)


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
    effect = _WHOLE if error.is_ignored else "Gemini CLI may ignore the whole file"
    return error.rule or _rule_at(error.line, text), FindingDraft(
        error.key, f"{error.position}{error}: {effect}", "correct that line"
    )


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
            isinstance(value, list) and any(isinstance(item, Mapping) for item in value)
        )
        if not tables:
            yield warned(
                key,
                f'Gemini CLI does not recognise the key "{key}" here and ignores it',
                "remove it",
            )
            continue
        near = get_close_matches(key.lower(), _TABLES, n=1) or (["rule"] if "rul" in key else [])
        shown = f"[[{key}]]" if isinstance(value, list) else f"[{key}]"
        way_out = f"write [[{near[0]}]]" if near else "remove it"
        yield FindingDraft(
            key,
            f"Gemini CLI does not recognise the table {shown} and ignores its contents",
            way_out,
        )


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


def check_files(
    paths: Iterable[Path | str], settings: Mapping[str, Any] = _NO_SETTINGS
) -> tuple[Finding, ...]:
    """Check policy files and folders in the given order.

    `paths`: the files and folders, as for Gemini CLI's option `--policy`. Rules of different files
    are also compared with each other. A path that is missing, unreadable or wrongly named is
    reported as a finding; no exception is raised. `settings`: Gemini CLI's merged settings, from
    which the names of MCP servers and some of their tools are known.
    """
    files = [file for path in paths for file in _read_path(Path(path))]
    return tuple(_all(files, settings))


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
    text = (
        "it does not exist: Gemini CLI doesn't report this, and doesn't read the user's "
        "policies either"
    )
    if "," in path.name:
        return FindingDraft(
            "", f"{text}; Gemini CLI splits paths at commas", "list each path separately"
        )
    return FindingDraft("", text, "check the path")


def _unreadable(error: OSError) -> FindingDraft:
    text = f"it can't be read ({reason_of(error)}): Gemini CLI starts without its rules"
    return FindingDraft("", text, "check its permissions")


def _only(path: Path, draft: FindingDraft) -> _Read:
    return _Read(file=path, drafts=((0, draft),), rules=())


def _read_file(path: Path) -> _Read:
    try:
        data = read_small(path, LARGEST)
    except OSError as error:
        large = error.errno == errno.EFBIG
        return _only(
            path, FindingDraft("", TOO_LARGE, "name another file") if large else _unreadable(error)
        )
    try:
        return _read(data.decode("utf-8"), path)
    except UnicodeDecodeError as error:
        file = _read(data.decode("utf-8", "replace"), path)
        line = data.count(b"\n", 0, error.start) + 1
        text = f"line {line} is not valid UTF-8, so Gemini CLI reads different characters there"
        return replace(file, drafts=((0, warned("", text, "save it as UTF-8")), *file.drafts))


def _read_folder(folder: Path) -> Iterator[_Read]:
    """Read a folder's files in the order the CLI uses, which is by their names' bytes.

    A file that the CLI skips yields a finding instead.
    """
    entries = policy_entries(folder)
    for entry in entries:
        if entry.skipped is None:
            yield _read_file(entry.path)
        else:
            yield _only(entry.path, _skipped(entry.path, entry.skipped))
    if all(entry.skipped for entry in entries):
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
