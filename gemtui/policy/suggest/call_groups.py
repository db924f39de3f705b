"""Group calls by what one rule would allow, and plan a rule for each group.

A group is a program's commands, the files in a folder, or the calls to any other tool.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from gemtui.calls.shell.parser import CommandPart, parse_command
from gemtui.policy.engine.decide import Engine
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
from gemtui.policy.model.recorded_call import RecordedCall, Reference
from gemtui.policy.model.rules import ApprovalMode, Call, Decision, Rule
from gemtui.policy.model.tool_catalog import tool as known_tool
from gemtui.policy.suggest.prefixes import NoPrefix, Prefix, prefix_of
from gemtui.policy.suggest.replay import tool_may_exist

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
    its session; None if unknown. `refused`: why the tool itself refuses the calls; None if it
    doesn't. `calls`: how many calls there are. `sessions`: the ids of the sessions in which they
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
class RefusedGroup:
    """Why no rule is suggested for a group of calls.

    `what`: the command prefix, file or tool in question. `why`: the reason, as a clause.
    """

    what: str
    why: str


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
        kept = [done for done in self.evidence if id(done) not in failed]
        if not kept:
            return None
        if len(kept) == len(self.evidence):
            return self
        again, rule = self.again(kept), self.rule
        return replace(again, rule=replace(again.rule, priority=rule.priority, modes=rule.modes))

    def raised(self, priority: int, mode: ApprovalMode) -> RulePlan:
        """Return the plan with this priority, and for this mode only."""
        return replace(self, rule=replace(self.rule, priority=priority, modes=(mode.in_rules,)))


Left = tuple[CallGroup, RefusedGroup]


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
    key = (call.tool, call.subagent, project, *args.values())
    return key, Call(tool=call.tool, args=args, subagent=call.subagent)


def planned(wanted: Iterable[CallGroup], engine: Engine, *, mode: ApprovalMode) -> tuple[list[RulePlan], list[Left]]:
    """Plan a rule for each kind of call among `wanted`.

    `engine`: decides what is already allowed. Returns the plans, and the groups for which there is
    no plan, each with the reason.
    """
    shell: list[CallGroup] = []
    files: list[CallGroup] = []
    others: list[CallGroup] = []
    for done in wanted:
        tool = done.call.tool
        (shell if tool == SHELL else files if tool in EDITS else others).append(done)
    left: list[Left] = []
    plans = [*_commands(shell, engine, mode, left), *_files(files, left), *_tools(others, left)]
    return plans, left


def _allow(tools: Sequence[str]) -> Rule:
    return Rule(decision=Decision.ALLOW, priority=0, tools=tuple(tools), tool_list=len(tools) > 1, source="suggestion")


# --- shell commands ------------------------------------------------------------------------------


def _commands(dones: Iterable[CallGroup], engine: Engine, mode: ApprovalMode, left: list[Left]) -> list[RulePlan]:
    """Plan a rule for each program, with a prefix for each of its subcommands.

    A command that agents ran in forms that no prefix covers, such as `cd src && npm test | tail`,
    gets a plan of its own. `dones`: the groups of shell calls. Groups for which there is no plan
    are added to `left`.
    """
    uses: dict[int, list[Prefix]] = {}
    programs: dict[str, list[CallGroup]] = {}
    every = [(done, _prefixes(done, engine, mode)) for done in dones]
    forms = [form for done, found in every if (form := _form(done, found)) is not None]
    formed: dict[str, list[CallGroup]] = {each.text: [] for each in forms}
    for done, found in every:
        command = done.call.args.get("command", "")
        words = next((each for each in formed if covers(tuple(each.split()), command)), None)
        if words is not None:
            formed[words].append(done)
            continue
        if isinstance(found, RefusedGroup):
            left.append((done, found))
            continue
        uses[id(done)] = found
        for program in dict.fromkeys(prefix.program for prefix in found):
            programs.setdefault(program, []).append(done)
    by_text = {each.text: each for each in forms}
    return [
        *(_form_plan(by_text[text], some) for text, some in formed.items()),
        *(_command_plan(program, some, uses) for program, some in programs.items()),
    ]


def _form(done: CallGroup, found: list[Prefix] | RefusedGroup) -> Prefix | None:
    """Return the command at the core of a group's calls, if no prefix can allow them.

    For example, this returns the prefix `npm test` for `cd src && npm test | tail`, which can be
    allowed by a pattern for that command. Returns None if prefixes suffice, or if no pattern fits.
    `found`: the result of `_prefixes` for the group.
    """
    command = done.call.args.get("command", "")
    if not isinstance(found, RefusedGroup) or len(command) > LONGEST:
        return None
    prefix = prefix_of(core_command(command))
    if isinstance(prefix, NoPrefix):
        return None
    try:
        words = command_words(prefix.text)
    except ValueError:
        return None
    return prefix if covers(words, command) else None


def _form_plan(prefix: Prefix, dones: Sequence[CallGroup]) -> RulePlan:
    """Plan a rule that allows a command in all forms in which agents run it."""
    words = tuple(prefix.text.split())
    rule = replace(_allow((SHELL,)), command_regex=allowed(words), allow_redirection=True)
    beware = prefix.opens.partition("; ")[2]
    return RulePlan(
        rule=rule,
        about=f"{SHELL} {prefix.text}, also with {FORMS}",
        evidence=tuple(dones),
        opens=f"{prefix.text} with plain options" + (f"; {beware}" if beware else ""),
        again=lambda kept: _form_plan(prefix, kept),
    )


def _prefixes(done: CallGroup, engine: Engine, mode: ApprovalMode) -> list[Prefix] | RefusedGroup:
    """Return the prefixes needed to allow a group's command, one per part.

    Parts that are already allowed need none. Returns a RefusedGroup if there is no suitable prefix.
    """
    command = done.call.args.get("command", "")
    reading = parse_command(command) if len(command) <= LONGEST else None
    if reading is None or not reading.parsed or not reading.parts:
        return RefusedGroup(what=_start(command), why="Gemini CLI can't parse it")
    if reading.redirected and mode not in REDIRECTING:
        why = "a rule that allows redirection lets the command write to any file"
        return RefusedGroup(what="commands with a redirection", why=why)
    found: list[Prefix] = []
    for part in reading.parts:
        prefix = None if _is_allowed(part, done.call, engine) else prefix_of(part.text)
        if isinstance(prefix, NoPrefix):
            return RefusedGroup(what=prefix.what, why=prefix.why)
        if prefix is not None:
            found.append(prefix)
    return found or RefusedGroup(what=_start(command), why="its parts are allowed, but not the whole command")


_BLANKS = re.compile(r"[ \t\n]+")


def _start(command: str) -> str:
    return _BLANKS.sub(" ", command[:200]).strip(" ")[:40]


def _is_allowed(part: CommandPart, call: Call, engine: Engine) -> bool:
    """Return whether a rule already allows this part of a command.

    The CLI also allows commands that it considers safe. That doesn't count here, because it applies
    only to whole commands, not to parts.
    """
    outcome = engine.outcome(Call(tool=SHELL, args={"command": part.text}, subagent=call.subagent))
    rule = outcome.rule
    return outcome.decision is Decision.ALLOW and rule is not None and rule.decision is Decision.ALLOW


def _command_plan(program: str, dones: Sequence[CallGroup], uses: dict[int, list[Prefix]]) -> RulePlan:
    prefixes = {prefix.text: prefix for done in dones for prefix in uses[id(done)] if prefix.program == program}
    texts = sorted(text for text in prefixes if not _is_covered(text, prefixes))
    by_words: dict[str, list[str]] = {}
    for text in texts:
        by_words.setdefault(prefixes[text].opens, []).append(text)
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
        evidence=tuple(dones),
        opens="; ".join(f"{', '.join(some)} {words}" for words, some in by_words.items()),
        again=lambda kept: _command_plan(program, kept, uses),
    )


def _is_covered(text: str, prefixes: Iterable[str]) -> bool:
    return any(text.startswith(f"{other} ") for other in prefixes)


# --- files ---------------------------------------------------------------------------------------


def _files(dones: Iterable[CallGroup], left: list[Left]) -> list[RulePlan]:
    """Plan a rule for each top-level folder of a project, and one for other files.

    `dones`: the groups of calls that write files. Groups for which there is no plan are added to
    `left`.
    """
    folders: dict[str, list[tuple[CallGroup, WrittenFile]]] = {}
    for done in dones:
        path = str(done.call.args.get("file_path", ""))
        place = locate_in_project(path, done.project)
        if isinstance(place, str):
            left.append((done, RefusedGroup(what=_short(path), why=place)))
        else:
            top = place.path.split("/")[0] if place.folder else ""
            folders.setdefault(top, []).append((done, place))
    return [plan for top, found in folders.items() for plan in _folder_plans(top, found, left)]


def _short(path: str) -> str:
    return path if len(path) <= 80 else f"…{path[-79:]}"


_Found = Sequence[tuple[CallGroup, WrittenFile]]


def _folder_plans(top: str, found: _Found, left: list[Left]) -> list[RulePlan]:
    """Plan one rule for these files, or several if one pattern would be too long.

    `top`: the top-level folder; "" means files outside folders. `found`: the groups of calls, each
    with its file. Groups for which there is no plan are added to `left`.
    """
    plan = _folder_plan(top, found)
    if len(plan.rule.args_pattern or "") <= LENGTH:
        return [plan]
    if len(found) > 1:
        middle = len(found) // 2
        return [each for half in (found[:middle], found[middle:]) for each in _folder_plans(top, half, left)]
    ((done, place),) = found
    left.append((done, RefusedGroup(what=_short(place.path), why="its path is too long for a pattern")))
    return []


def _folder_plan(top: str, found: _Found) -> RulePlan:
    places = [place for _, place in found]
    every = _distinct(_root(done, place) for done, place in found)
    named = _distinct(place.root for place in places)
    if top:
        folder = common_folder(places)
        where = f"in {folder}/"
        pattern, opens = folder_pattern(folder, every), f"every file {where}, including new ones"
        shorter = folder_pattern(folder, named)
    else:
        names = _distinct(place.path for place in places)
        where = ", ".join(names)
        pattern, opens = files_pattern(names, every), "only writes of these files"
        shorter = files_pattern(names, named)
    rule = replace(_allow(EDITS), args_pattern=pattern if len(pattern) <= LENGTH else shorter)
    return RulePlan(
        rule=rule,
        about=f"{', '.join(EDITS)} {where}",
        evidence=tuple(done for done, _ in found),
        opens=opens,
        again=lambda kept: _folder_plan(top, [pair for pair in found if pair[0] in kept]),
    )


def _distinct(values: Iterable[str]) -> list[str]:
    return [value for value in dict.fromkeys(values) if value]


def _root(done: CallGroup, place: WrittenFile) -> str:
    """Return the project's folder with a trailing slash; "" if it is unknown."""
    return place.root or (f"{str(done.project).rstrip('/')}/" if done.project else "")


# --- other tools ---------------------------------------------------------------------------------

_OPENS = {"web_fetch": "any URL, with any data that the model sends", "google_web_search": "any search"}
_NOT = {"enter_plan_mode": "it changes the approval mode", "exit_plan_mode": "it changes the approval mode"}


def _tools(dones: Iterable[CallGroup], left: list[Left]) -> list[RulePlan]:
    """Plan one rule for each tool, using the tool's current name.

    `dones`: the groups of calls. Groups for which there is no plan are added to `left`.
    """
    tools: dict[str, list[CallGroup]] = {}
    for done in dones:
        name = done.call.tool
        if name in _NOT:
            left.append((done, RefusedGroup(what=name, why=_NOT[name])))
        elif not tool_may_exist(name):
            left.append((done, RefusedGroup(what=name, why="the current Gemini CLI has no such tool")))
        else:
            known = known_tool(name)
            tools.setdefault(known.name if known else name, []).append(done)
    return [_tool_plan(name, some) for name, some in tools.items()]


def _tool_plan(name: str, dones: Sequence[CallGroup]) -> RulePlan:
    return RulePlan(
        rule=_allow((name,)),
        about=name,
        evidence=tuple(dones),
        opens=_OPENS.get(name, "all of its calls, with any arguments"),
        again=lambda kept: _tool_plan(name, kept),
    )
