"""Suggest rules that allow recorded calls that succeeded, each with its evidence.

Calls are grouped by what one rule would allow: a program's commands, the files in a folder, or the
calls to any other tool. Nothing is changed: the user reads the suggestions and picks some. A
suggested rule is for one approval mode only, because in a different mode it would allow more:
writes in plan mode, or redirections in autoEdit.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from gemtui.calls.paths import is_windows
from gemtui.calls.shell.parser import CommandPart, parse_command
from gemtui.policy.engine.decide import Engine, Outcome, Setup
from gemtui.policy.file.policy import Policy, of
from gemtui.policy.match.command_patterns import FORMS, allowed, command_words, core_command, covers
from gemtui.policy.match.matching import SHELL
from gemtui.policy.match.path_patterns import (
    LENGTH,
    WrittenFile,
    common_folder,
    files_pattern,
    folder_pattern,
    locate_in_project,
)
from gemtui.policy.model.rules import (
    ApprovalMode,
    Call,
    CallStatus,
    Decision,
    RecordedCall,
    Reference,
    Rule,
    Tier,
)
from gemtui.policy.model.tool_catalog import tool as known_tool
from gemtui.policy.suggest.prefixes import NoPrefix, Prefix, prefix_of
from gemtui.policy.suggest.replay import POWERSHELL, refusal_of_tool, tool_may_exist

EDITS = ("replace", "write_file")
EXAMPLES = 3
LONGEST = 20_000
"""The maximum length, in characters, of a command that is parsed.

No rule is suggested for longer ones.
"""

REDIRECTING = (ApprovalMode.AUTO_EDIT, ApprovalMode.YOLO)
"""The modes in which a rule that allows a command also allows redirections."""


class CallGroup:
    """Calls that are so similar that any rule decides them alike.

    `call`: one of the calls, reduced to the arguments that rules check. `project`: the folder of
    its session; None if unknown. `refused`: why no rule can allow the calls; None if one may.
    `calls`: how many calls there are. `sessions`: the ids of the sessions in which they
    were made. `examples`: the first few calls.
    """

    def __init__(self, call: Call, project: Path | None, *, refused: str | None = None) -> None:
        self.call, self.project, self.refused = call, project, refused
        self.calls = 0
        self.sessions: set[str] = set()
        self.examples: list[Reference] = []

    def add(self, recorded: RecordedCall) -> None:
        """Count another call, and keep it as an example if there are only a few so far."""
        self.calls += 1
        self.sessions.add(recorded.session)
        if len(self.examples) < EXAMPLES:
            self.examples.append(Reference.to(recorded))


@dataclass(frozen=True, slots=True, kw_only=True)
class RulePlan:
    """A rule to suggest, whose priority and modes are not final.

    `about`: a description of what the rule is for. `opens`: a description of what else the rule
    would allow. `evidence`: the groups of calls that the rule would allow. `again`: a function that
    builds the same kind of plan for only a part of the evidence.
    """

    rule: Rule
    about: str
    evidence: tuple[CallGroup, ...]
    opens: str
    again: Callable[[Sequence[CallGroup]], RulePlan]

    def without(self, failed: set[int]) -> RulePlan | None:
        """Return the plan without some of its groups of calls; None if no group is left.

        `failed`: the `id()` values of the groups to leave out.
        """
        kept = [group for group in self.evidence if id(group) not in failed]
        if not kept:
            return None
        if len(kept) == len(self.evidence):
            return self
        again = self.again(kept)
        rule = self.rule
        return replace(again, rule=replace(again.rule, priority=rule.priority, modes=rule.modes))

    def raised(self, priority: int, mode: ApprovalMode) -> RulePlan:
        """Return the plan with this priority, and for this mode only."""
        return replace(self, rule=replace(self.rule, priority=priority, modes=(mode.in_rules,)))


def reduced(recorded: RecordedCall) -> tuple[tuple[object, ...], Call]:
    """Return the key of a call's group, and the call reduced to what rules check.

    Any suggested rule makes the same decision for all calls with the same key.
    """
    call = recorded.call
    keys: tuple[str, ...] = ()
    if call.tool == SHELL:
        keys = ("command", "dir_path")
    elif call.tool in EDITS:
        keys = ("file_path",)
    elif call.tool == "invoke_agent":
        keys = ("agent_name",)
    args = {key: call.args[key] for key in keys if isinstance(call.args.get(key), str)}
    project = recorded.project if call.tool in EDITS else None
    key = (call.tool, call.agent, call.own, call.subagent, project, *args.values())
    return key, replace(call, args=args)


def planned(
    wanted: Iterable[CallGroup], engine: Engine, mode: ApprovalMode, refused: _Refusals
) -> list[RulePlan]:
    """Plan a rule for each kind of call among `wanted`.

    `engine`: decides what is already allowed. Groups for which there is no plan are added to
    `refused`.
    """
    shell: list[CallGroup] = []
    files: list[CallGroup] = []
    others: list[CallGroup] = []
    for group in wanted:
        tool = group.call.tool
        if tool == SHELL:
            shell.append(group)
        elif tool in EDITS:
            files.append(group)
        else:
            others.append(group)
    commands = _commands(shell, engine, mode, refused)
    return [*commands, *_files(files, refused), *_tools(others, refused)]


def _allow(tools: Sequence[str]) -> Rule:
    return Rule(
        decision=Decision.ALLOW,
        priority=0,
        tools=tuple(tools),
        tool_list=len(tools) > 1,
        source="suggestion",
    )


# --- shell commands ------------------------------------------------------------------------------


def _commands(
    groups: Iterable[CallGroup], engine: Engine, mode: ApprovalMode, refused: _Refusals
) -> list[RulePlan]:
    """Plan a rule for each program, with a prefix for each of its subcommands.

    A command that agents ran in forms that no prefix covers, such as `cd src && npm test | tail`,
    gets a plan of its own. `groups`: the groups of shell calls. Groups for which there is no plan
    are added to `refused`.
    """
    uses: dict[int, list[Prefix]] = {}
    programs: dict[str, list[CallGroup]] = {}
    forms: dict[str, tuple[Prefix, list[CallGroup]]] = {}
    planned_prefixes = [(group, _prefixes(group, engine, mode)) for group in groups]
    for group, prefixes in planned_prefixes:
        form = _form(group) if isinstance(prefixes, NoPrefix) else None
        if form is not None:
            forms[form.text] = form, []
    for group, prefixes in planned_prefixes:
        form_groups = _groups_of_form(group, forms)
        if form_groups is not None:
            form_groups.append(group)
        elif isinstance(prefixes, NoPrefix):
            refused.add(group, prefixes.why, prefixes.what)
        else:
            uses[id(group)] = prefixes
            for program in dict.fromkeys(prefix.program for prefix in prefixes):
                programs.setdefault(program, []).append(group)
    plans = [_form_plan(prefix, form_groups) for prefix, form_groups in forms.values()]
    for program, program_groups in programs.items():
        plans.append(_command_plan(program, program_groups, uses))
    return plans


def _groups_of_form(
    group: CallGroup, forms: Mapping[str, tuple[Prefix, list[CallGroup]]]
) -> list[CallGroup] | None:
    """Return the groups of the form that covers a group's command; None if none does."""
    command = group.call.args.get("command", "")
    for text, (_, form_groups) in forms.items():
        if covers(tuple(text.split()), command):
            return form_groups
    return None


def _form(group: CallGroup) -> Prefix | None:
    """Return the command at the core of a group's calls, which no prefix can allow.

    For example, this returns the prefix `npm test` for `cd src && npm test | tail`, which can be
    allowed by a pattern for that command. Returns None if no pattern fits.
    """
    command = group.call.args.get("command", "")
    if len(command) > LONGEST:
        return None
    prefix = prefix_of(core_command(command))
    if isinstance(prefix, NoPrefix):
        return None
    try:
        prefix_words = command_words(prefix.text)
    except ValueError:
        return None
    return prefix if covers(prefix_words, command) else None


def _form_plan(prefix: Prefix, groups: Sequence[CallGroup]) -> RulePlan:
    """Plan a rule that allows a command in all forms in which agents run it."""
    pattern = allowed(tuple(prefix.text.split()))
    rule = replace(_allow((SHELL,)), command_regex=pattern, allow_redirection=True)
    beware = prefix.opens.partition("; ")[2]
    return RulePlan(
        rule=rule,
        about=f"{SHELL} {prefix.text}, also with {FORMS}",
        evidence=tuple(groups),
        opens=f"{prefix.text} with plain options" + (f"; {beware}" if beware else ""),
        again=lambda kept: _form_plan(prefix, kept),
    )


def _prefixes(group: CallGroup, engine: Engine, mode: ApprovalMode) -> list[Prefix] | NoPrefix:
    """Return the prefixes needed to allow a group's command, one per part.

    Parts that are already allowed need none. Returns a NoPrefix if there is no suitable prefix.
    """
    command = group.call.args.get("command", "")
    reading = parse_command(command) if len(command) <= LONGEST else None
    if reading is None or not reading.parsed or not reading.parts:
        return NoPrefix(what=_start(command), why="Gemini CLI can't parse it")
    if reading.redirected and mode not in REDIRECTING:
        why = "a rule that allows redirection lets the command write to any file"
        return NoPrefix(what="commands with a redirection", why=why)
    prefixes: list[Prefix] = []
    for part in reading.parts:
        if _part_is_allowed(part, group.call, engine):
            continue
        prefix = prefix_of(part.text)
        if isinstance(prefix, NoPrefix):
            return prefix
        prefixes.append(prefix)
    if not prefixes:
        why = "its parts are allowed, but not the whole command"
        return NoPrefix(what=_start(command), why=why)
    return prefixes


def _start(command: str) -> str:
    return _BLANKS.sub(" ", command[:200]).strip(" ")[:40]


def _part_is_allowed(part: CommandPart, call: Call, engine: Engine) -> bool:
    """Return whether a rule already allows this part of a command.

    The CLI also allows commands that it considers safe. That doesn't count here, because it applies
    only to whole commands, not to parts.
    """
    outcome = engine.outcome(replace(call, args={"command": part.text}))
    rule = outcome.rule
    return (
        outcome.decision is Decision.ALLOW and rule is not None and rule.decision is Decision.ALLOW
    )


def _command_plan(
    program: str, groups: Sequence[CallGroup], uses: dict[int, list[Prefix]]
) -> RulePlan:
    prefixes = {
        prefix.text: prefix
        for group in groups
        for prefix in uses[id(group)]
        if prefix.program == program
    }
    texts: list[str] = []
    by_opens: dict[str, list[str]] = {}
    for text in sorted(prefixes):
        if not any(text.startswith(f"{other} ") for other in prefixes):
            texts.append(text)
            by_opens.setdefault(prefixes[text].opens, []).append(text)
    rule = Rule(
        decision=Decision.ALLOW,
        priority=0,
        tools=(SHELL,),
        command_prefixes=tuple(texts),
        prefix_list=len(texts) > 1,
        source="suggestion",
    )
    return RulePlan(
        rule=rule,
        about=f"{SHELL} {', '.join(texts)}",
        evidence=tuple(groups),
        opens="; ".join(f"{', '.join(some)} {opens}" for opens, some in by_opens.items()),
        again=lambda kept: _command_plan(program, kept, uses),
    )


# --- files ---------------------------------------------------------------------------------------


def _files(groups: Iterable[CallGroup], refused: _Refusals) -> list[RulePlan]:
    """Plan a rule for each top-level folder of a project, and one for other files.

    `groups`: the groups of calls that write files. Groups for which there is no plan are added to
    `refused`.
    """
    folders: dict[str, list[tuple[CallGroup, WrittenFile]]] = {}
    for group in groups:
        path = str(group.call.args.get("file_path", ""))
        file = locate_in_project(path, group.project)
        if isinstance(file, str):
            refused.add(group, file, _short(path))
        else:
            top = file.path.split("/")[0] if file.folder else ""
            folders.setdefault(top, []).append((group, file))
    return [plan for top, pairs in folders.items() for plan in _folder_plans(top, pairs, refused)]


def _short(path: str) -> str:
    return path if len(path) <= 80 else f"…{path[-79:]}"


_GroupsOfFiles = Sequence[tuple[CallGroup, WrittenFile]]


def _folder_plans(top: str, pairs: _GroupsOfFiles, refused: _Refusals) -> list[RulePlan]:
    """Plan one rule for these files, or several if one pattern would be too long.

    `top`: the top-level folder; "" means files outside folders. `pairs`: the groups of calls, each
    with its file. Groups for which there is no plan are added to `refused`.
    """
    plan = _folder_plan(top, pairs)
    if len(plan.rule.args_pattern or "") <= LENGTH:
        return [plan]
    if len(pairs) > 1:
        middle = len(pairs) // 2
        first_half = _folder_plans(top, pairs[:middle], refused)
        return first_half + _folder_plans(top, pairs[middle:], refused)
    ((group, file),) = pairs
    refused.add(group, "its path is too long for a pattern", _short(file.path))
    return []


def _folder_plan(top: str, pairs: _GroupsOfFiles) -> RulePlan:
    files = [file for _, file in pairs]
    if top:
        folder = common_folder(files)
        where = f"in {folder}/"
        opens = f"every file {where}, including new ones"
        pattern_for = partial(folder_pattern, folder)
    else:
        names = _distinct(file.path for file in files)
        where = ", ".join(names)
        opens = "only writes of these files"
        pattern_for = partial(files_pattern, names)
    pattern = pattern_for(_distinct(_root(group, file) for group, file in pairs))
    if len(pattern) > LENGTH:
        pattern = pattern_for(_distinct(file.root for file in files))
    rule = replace(_allow(EDITS), args_pattern=pattern)
    return RulePlan(
        rule=rule,
        about=f"{', '.join(EDITS)} {where}",
        evidence=tuple(group for group, _ in pairs),
        opens=opens,
        again=lambda kept: _folder_plan(top, [pair for pair in pairs if pair[0] in kept]),
    )


def _distinct(values: Iterable[str]) -> list[str]:
    return [value for value in dict.fromkeys(values) if value]


def _root(group: CallGroup, file: WrittenFile) -> str:
    """Return the project's folder with a trailing slash; "" if it is unknown, or on Windows.

    Gemini CLI writes paths with backslashes there, and no pattern matches these.
    """
    if file.root or group.project is None or is_windows(str(group.project)):
        return file.root
    return f"{str(group.project).rstrip('/')}/"


# --- other tools ---------------------------------------------------------------------------------

_OPENS = {
    "web_fetch": "any URL, with any data that the model sends",
    "google_web_search": "any search",
}


def _tools(groups: Iterable[CallGroup], refused: _Refusals) -> list[RulePlan]:
    """Plan one rule for each tool, using the tool's current name.

    `groups`: the groups of calls. Groups for which there is no plan are added to `refused`.
    """
    tools: dict[str, list[CallGroup]] = {}
    for group in groups:
        name = group.call.tool
        if name in ("enter_plan_mode", "exit_plan_mode"):
            refused.add(group, "it changes the approval mode", name)
        elif not tool_may_exist(name):
            refused.add(group, "the current Gemini CLI has no such tool", name)
        else:
            tool = known_tool(name)
            tools.setdefault(tool.name if tool else name, []).append(group)
    return [_tool_plan(name, tool_groups) for name, tool_groups in tools.items()]


def _tool_plan(name: str, groups: Sequence[CallGroup]) -> RulePlan:
    return RulePlan(
        rule=_allow((name,)),
        about=name,
        evidence=tuple(groups),
        opens=_OPENS.get(name, "all of its calls, with any arguments"),
        again=lambda kept: _tool_plan(name, kept),
    )


PRIORITY = 100
"""The priority of a suggested rule, unless it has to override another rule."""
_HIGHEST = 999


@dataclass(frozen=True, slots=True, kw_only=True)
class Suggestion:
    """A suggested rule and the evidence for it.

    `about`: a description of what the rule is for. `opens`: a description of what else it would
    allow. `calls`: how many recorded calls, in `sessions` sessions, the rule would newly allow;
    some may need other suggested rules as well. `examples`: up to three of these calls.
    """

    rule: Rule
    about: str
    calls: int
    sessions: int
    examples: tuple[Reference, ...]
    opens: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """Calls for which no rule is suggested.

    `what`: a command prefix, file or tool. `why`: the reason, as a clause. `calls`: how many calls
    there are.
    """

    what: str
    why: str
    calls: int
    examples: tuple[Reference, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Suggestions:
    """The result of `suggest`.

    `calls`: the number of calls that were read. `succeeded`: how many of these were successful.
    `allowed`: how many of the successful calls need no new rule. `suggestions` and `left_out` are
    sorted by the number of calls, largest first.
    """

    calls: int
    succeeded: int
    allowed: int
    suggestions: tuple[Suggestion, ...]
    left_out: tuple[LeftOut, ...]


class Evidence:
    """Collects recorded calls, and suggests rules to allow them.

    Memory use grows with the number of different commands, files and tools, not with the number of
    calls. Not thread-safe.
    """

    def __init__(
        self,
        policy: Policy,
        *,
        mode: ApprovalMode = ApprovalMode.DEFAULT,
        interactive: bool = False,
        setup: Setup | None = None,
    ) -> None:
        self._policy = policy
        self._mode, self._interactive, self._setup = mode, interactive, setup
        self._engine = self._engine_of(policy)
        self._calls = self._succeeded = self._allowed = 0
        self._groups: dict[tuple[object, ...], CallGroup] = {}

    def _engine_of(self, policy: Policy) -> Engine:
        return Engine(policy, mode=self._mode, interactive=self._interactive, setup=self._setup)

    def feed(self, calls: Iterable[RecordedCall]) -> None:
        """Add recorded calls."""
        for recorded in calls:
            self._calls += 1
            if recorded.ended is not CallStatus.SUCCEEDED:
                continue
            self._succeeded += 1
            why = _why_none(recorded, self._mode)
            if why is None and _is_allowed(self._engine.outcome(recorded.call)):
                self._allowed += 1
                continue
            key, call = reduced(recorded)
            group = self._groups.get((*key, why))
            if group is None:
                group = self._groups[*key, why] = CallGroup(call, recorded.project, refused=why)
            group.add(recorded)

    def suggest(self) -> Suggestions:
        """Return the rules suggested for the calls added so far."""
        refused = _Refusals()
        wanted = [group for group in self._groups.values() if group.refused is None]
        plans = planned(wanted, self._engine, self._mode, refused)
        for group in self._groups.values():
            if group.refused is not None:
                refused.add(group, group.refused)
        raised = self._tried(self._raised(plans, refused), refused)
        suggestions = [self._suggestion(plan) for plan in raised]
        suggestions.sort(key=lambda suggestion: -suggestion.calls)
        return Suggestions(
            calls=self._calls,
            succeeded=self._succeeded,
            allowed=self._allowed,
            suggestions=tuple(
                replace(suggestion, rule=replace(suggestion.rule, index=number))
                for number, suggestion in enumerate(suggestions, 1)
            ),
            left_out=refused.all(),
        )

    def _raised(self, plans: Sequence[RulePlan], refused: _Refusals) -> list[RulePlan]:
        """Set the mode of planned rules, and a priority that outranks rules in their way.

        The planned rules are first tried with priority 0, to see which existing rules override
        them. A rule that denies exactly this tool counts as intended and stays in force: the calls
        are added to `refused`. A rule that asks, or that denies all tools, is outranked.
        """
        plans = [plan.raised(0, self._mode) for plan in plans]
        engine = self._engine_of(self._policy + of([plan.rule for plan in plans]))
        raised: list[RulePlan] = []
        for plan in plans:
            denied: set[int] = set()
            outranked: list[Rule] = []
            for group in plan.evidence:
                rule = _blocking(engine.outcome(group.call))
                if rule is not None and _meant(rule):
                    denied.add(id(group))
                    refused.add(group, f"{_place(rule)} denies it")
                elif rule is not None:
                    outranked.append(rule)
            kept = plan.without(denied)
            if kept is not None:
                raised += self._between(kept, outranked, refused)
        return raised

    def _between(self, plan: RulePlan, over: Sequence[Rule], refused: _Refusals) -> list[RulePlan]:
        """Return the plan with a priority above the rules `over`, as a list of one.

        The priority must also be below that of any other rule that asks about, or denies, some of
        the calls that the plan would allow. If there is no such priority, the list is empty, and
        the plan's calls are added to `refused`.
        """
        least = max((int(rule.priority) + 1 for rule in over), default=0)
        guards = [
            rule
            for rule in self._policy.rules
            if _guards(rule, plan.rule) and not any(rule is other for other in over)
        ]
        lowest = min(guards, key=lambda rule: rule.priority, default=None)
        most = _HIGHEST if lowest is None else max(0, int(lowest.priority) - 1)
        if least <= most:
            return [plan.raised(max(least, min(PRIORITY, most)), self._mode)]
        what = "everything"
        if lowest is not None:
            what = f"{_place(lowest)}, which must still apply to other calls"
        for group in plan.evidence:
            refused.add(group, f"its rule would need a higher priority than {what}")
        return []

    def _tried(self, plans: Sequence[RulePlan], refused: _Refusals) -> list[RulePlan]:
        """Return the plans without those calls that would be blocked despite all plans.

        Such calls are added to `refused`. A plan that has no calls left is dropped.
        """
        rules = [
            replace(plan.rule, source="the suggested rules", index=number)
            for number, plan in enumerate(plans, 1)
        ]
        engine = self._engine_of(self._policy + of(rules))
        failed: set[int] = set()
        groups = {id(group): group for plan in plans for group in plan.evidence}
        for group in groups.values():
            if not _is_allowed(engine.outcome(group.call)):
                failed.add(id(group))
                refused.add(group, engine.explain(group.call).because.rstrip("."))
        kept = (plan.without(failed) for plan in plans)
        return [plan for plan in kept if plan is not None]

    def _suggestion(self, plan: RulePlan) -> Suggestion:
        """Return a plan as a suggestion.

        In modes that edit files, a rule that allows a command also allows redirections, so `opens`
        has to mention them.
        """
        redirects = plan.rule.command_prefixes and self._mode in REDIRECTING
        more = "; in this mode, output redirection may write to any file" if redirects else ""
        return Suggestion(
            rule=plan.rule,
            about=plan.about,
            calls=sum(group.calls for group in plan.evidence),
            sessions=len(set().union(*(group.sessions for group in plan.evidence))),
            examples=_different_examples(plan.evidence),
            opens=plan.opens + more,
        )


class _Refusals:
    """Collects the groups of calls for which no rule is suggested, by reason."""

    def __init__(self) -> None:
        self._groups: dict[tuple[str, str], list[CallGroup]] = {}

    def add(self, group: CallGroup, why: str, what: str | None = None) -> None:
        """Add a group.

        `why`: the reason, as a clause. `what`: the command prefix, file or tool in question; None
        means one of the calls.
        """
        reason = _subject(group.call) if what is None else what, why
        self._groups.setdefault(reason, []).append(group)

    def all(self) -> tuple[LeftOut, ...]:
        """Return the groups, those with the most calls first."""
        left = []
        for (what, why), groups in self._groups.items():
            calls = sum(group.calls for group in groups)
            examples = _different_examples(groups)
            left.append(LeftOut(what=what, why=why, calls=calls, examples=examples))
        return tuple(sorted(left, key=lambda left_out: -left_out.calls))


def _why_none(recorded: RecordedCall, mode: ApprovalMode) -> str | None:
    """Return why no rule can allow a call, as a clause; None if a rule may."""
    if recorded.is_powershell:
        return POWERSHELL
    why = refusal_of_tool(recorded, mode)
    return None if why is None else f"the tool rejects it: {why}"


def _different_examples(groups: Iterable[CallGroup]) -> tuple[Reference, ...]:
    """Return up to three examples whose arguments differ as much as possible."""
    examples = [example for group in groups for example in group.examples]
    by_argument = {(example.tool, example.argument): example for example in reversed(examples)}
    return tuple(reversed(by_argument.values()))[:3]


def _is_allowed(outcome: Outcome) -> bool:
    return outcome.found and outcome.decision is Decision.ALLOW


def _blocking(outcome: Outcome) -> Rule | None:
    """Return the rule that blocks a call and that suggested rules have to outrank.

    This is a rule of the user, the settings or the administrator; None if there is none.
    """
    rule = outcome.rule
    if _is_allowed(outcome) or rule is None or rule.tier < Tier.USER:
        return None
    return None if rule.decision is Decision.ALLOW else rule


def _meant(rule: Rule) -> bool:
    """Return whether a rule was evidently meant to deny its tool.

    Administrators' rules count as meant, and so do denials that name tools.
    """
    named = bool(rule.tools) and "*" not in rule.tools
    return rule.tier is Tier.ADMIN or (named and rule.decision is Decision.DENY)


def _guards(rule: Rule, proposed: Rule) -> bool:
    """Return whether a rule asks about or denies some calls that `proposed` allows."""
    named = not rule.tools or bool({"*", *proposed.tools}.intersection(rule.tools))
    return named and rule.conditional and rule.decision is not Decision.ALLOW


def _place(rule: Rule) -> str:
    return f"rule {rule.index} of {rule.source}" if rule.index else rule.source


_BLANKS = re.compile(r"[ \t\n]+")


def _subject(call: Call) -> str:
    texts = [value for value in call.args.values() if isinstance(value, str) and value]
    argument = texts[0] if texts else ""
    return f"{call.tool} {_BLANKS.sub(' ', argument)[:80]}".rstrip()


def suggest(
    calls: Iterable[RecordedCall],
    policy: Policy,
    *,
    mode: ApprovalMode = ApprovalMode.DEFAULT,
    interactive: bool = False,
    setup: Setup | None = None,
) -> Suggestions:
    """Suggest rules that, together with `policy`, allow the calls that succeeded.

    `mode` and `interactive` describe the run that the rules are for. `setup`: the other facts on
    which the run's decisions depend, such as settings.
    """
    evidence = Evidence(policy, mode=mode, interactive=interactive, setup=setup)
    evidence.feed(calls)
    return evidence.suggest()
