"""Decide a call: apply the first matching rule, then the engine's own checks.

Shell commands are decided as a whole, then each of their parts (assets/gemini-cli.md#shell-rules).
If the deciding rule has no pattern, the engine also judges whether the command is safe or dangerous
(`gemtui.calls.shell.command_safety`). Build files and `.vscode` are protected whatever the rules
say (assets/gemini-cli.md#protected-files).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gemtui.calls.shell.command_safety import CommandSafety, judge
from gemtui.calls.shell.parser import CommandPart, ParsedCommand, has_redirection, parse_command
from gemtui.policy.engine.refusals import is_edit_tool, own_path, protected, roots_of
from gemtui.policy.engine.registry import RegisteredTool, Registry
from gemtui.policy.engine.safety_checkers import CompiledChecker, checked, compile_checkers
from gemtui.policy.engine.setup import Evaluation, Outcome, Setup, always_allow_off
from gemtui.policy.match.matching import (
    SHELL,
    CompiledRule,
    RuleSequence,
    Subject,
    compile_rules,
    mismatch,
)
from gemtui.policy.match.patterns import PatternTimeout
from gemtui.policy.model.rules import ApprovalMode, Call, Decision, Rule, SafetyChecker
from gemtui.policy.model.tool_catalog import AGENT_TOOL, ALIASES

ALLOW, DENY, ASK = Decision.ALLOW, Decision.DENY, Decision.ASK_USER
TOO_DEEP = 60
"""The maximum depth of nested commands; deeper ones count as unparsable."""


class ShellRules:
    """Decides shell commands in one mode.

    `default`: the decision if no rule matches. `workspace`: the run's folder; None if unknown.
    """

    def __init__(self, *, mode: ApprovalMode, default: Decision, workspace: Path | None) -> None:
        self.mode, self.default, self.workspace = mode, default, workspace
        self.yolo = mode is ApprovalMode.YOLO

    def check(self, rules: RuleSequence, args: Mapping[str, Any]) -> Evaluation:
        """Return the decision for a call to the shell tool with these arguments.

        `rules`: the rules that apply to the shell tool, sorted.
        """
        command = args.get("command")
        dir_path = args.get("dir_path")
        if not isinstance(command, str):
            command = ""
        if not isinstance(dir_path, str):
            dir_path = None
        return _Command(self, rules, dir_path).decided(command, args)

    def judgement(self, command: str, decision: Decision, dir_path: str | None) -> Evaluation:
        """Adjust the decision of a rule without a pattern to the command.

        If the rule asks, the engine nevertheless lets safe commands run. If the rule allows the
        call, the engine nevertheless asks about dangerous commands, and if `dir_path` is outside
        the workspace, except in yolo mode.
        """
        if decision is DENY:
            return Evaluation(decision=DENY)
        safety = judge(command, workspace=self.workspace, dir_path=dir_path)
        if safety is CommandSafety.SAFE and decision is ASK:
            return Evaluation(
                decision=ALLOW, note="it is known to be safe, so it runs without asking"
            )
        if safety is CommandSafety.DANGEROUS and not self.yolo:
            note = (
                "the command is dangerous, and a rule without a condition does not allow "
                "dangerous commands"
            )
            return Evaluation(decision=ASK, note=note)
        if safety is CommandSafety.OUTSIDE and not self.yolo:
            return Evaluation(decision=ASK, note="dir_path is outside the workspace")
        return Evaluation(decision=decision)

    def redirects(self, redirected: bool, allowed: bool) -> bool:
        """Return whether a redirection turns an allow into an ask.

        `redirected`: whether the command contains a redirection. `allowed`: whether the rule
        permits redirections.
        """
        free = self.mode in (ApprovalMode.AUTO_EDIT, ApprovalMode.YOLO)
        return redirected and not allowed and not free


@dataclass(slots=True)
class _Verdict:
    """The decision after the parts checked so far, and the rule responsible for it.

    `ready`: the rule; None if no single rule is responsible.
    """

    decision: Decision
    ready: CompiledRule | None
    note: str

    def ask(self, ready: CompiledRule | None, note: str) -> None:
        """Record that the user must be asked about a part of the command.

        `ready`: the rule for this part. It is stored as the responsible rule, unless there already
        is one for an earlier part.
        """
        if self.decision is ALLOW:
            self.ready, self.note = ready, note
        elif self.ready is None:
            self.ready = ready
        self.decision = ASK


class _Command:
    """One call's command.

    Decisions for parts are cached, because the same part may occur at several levels of nesting.
    """

    def __init__(self, shell: ShellRules, rules: RuleSequence, dir_path: str | None) -> None:
        self._shell, self._rules, self._dir_path = shell, rules, dir_path
        self._seen: dict[str, Evaluation] = {}

    def decided(self, command: str, args: Mapping[str, Any]) -> Evaluation:
        """Decide the whole command by rules and by how safe the engine considers it."""
        ready = self._rules.first_match(args)
        if ready is None and self._shell.yolo:
            return Evaluation(decision=ALLOW)
        decision = ready.decision if ready else self._shell.default
        note = ""
        if command and not (ready and ready.pattern):
            judged = self._shell.judgement(command, decision, self._dir_path)
            decision, note = judged.decision, judged.note
        return self._parts(command, ready, decision, note, depth=0)

    def _inner(self, command: str, depth: int) -> Evaluation:
        """Decide a part of the command by rules only, not by how safe it is.

        Of the call's other arguments, only `dir_path` is considered.
        """
        evaluation = self._seen.get(command)
        if evaluation is None:
            evaluation = self._seen[command] = self._part_decided(command, depth)
        return evaluation

    def _part_decided(self, command: str, depth: int) -> Evaluation:
        args = {"command": command}
        if self._dir_path is not None:
            args["dir_path"] = self._dir_path
        ready = self._rules.first_match(args)
        if ready is None and self._shell.yolo:
            return Evaluation(decision=ALLOW)
        decision = ready.decision if ready else self._shell.default
        return self._parts(command, ready, decision, "", depth=depth)

    def _parts(
        self, command: str, ready: CompiledRule | None, decision: Decision, note: str, *, depth: int
    ) -> Evaluation:
        if not command or decision is DENY:
            return Evaluation(decision=decision, ready=ready, note=note)
        reading = parse_command(command)
        if not reading.parsed or depth > TOO_DEEP:
            return self._unparsed(ready)
        evaluation = self._gone_through(reading, ready, decision, note, depth)
        return evaluation if evaluation.ready is ready else replace(evaluation, matched=ready)

    def _unparsed(self, ready: CompiledRule | None) -> Evaluation:
        note = "the command can't be parsed"
        if not self._shell.yolo:
            return Evaluation(decision=self._shell.default, ready=ready, note=note)
        if ready and ready.pattern:
            return Evaluation(decision=DENY, ready=ready, note=note)
        return Evaluation(decision=ALLOW, ready=ready, note=note)

    def _gone_through(
        self,
        reading: ParsedCommand,
        ready: CompiledRule | None,
        decision: Decision,
        note: str,
        depth: int,
    ) -> Evaluation:
        answers = ready if ready and ready.decision is decision else None
        state = _Verdict(decision, answers, note)
        allowed = bool(ready and ready.rule.allow_redirection)
        if decision is ALLOW and self._shell.redirects(reading.redirected, allowed):
            state.ask(None, "the command uses redirection, but the rule has no allowRedirection")
        for part in reading.parts:
            refused = self._part(part, state, allowed, depth)
            if refused is not None:
                return refused
        same = state.decision is decision
        return Evaluation(
            decision=state.decision, ready=ready if same else state.ready, note=state.note
        )

    def _part(
        self, part: CommandPart, state: _Verdict, allowed: bool, depth: int
    ) -> Evaluation | None:
        """Return the denial if a part of the command is denied, otherwise None.

        If the user has to be asked about the part, this is recorded in `state`. `allowed`: whether
        the whole command's rule permits redirections.
        """
        for text in (part.inner, None if part.whole else part.text):
            if text is None:
                continue
            evaluation = self._inner(text, depth + 1)
            subject = f"its part `{text}`"
            if evaluation.decision is DENY:
                return replace(evaluation, note=f"{subject} is denied{_why(evaluation)}")
            if evaluation.decision is ASK:
                state.ask(evaluation.ready, f"{subject} needs approval{_why(evaluation)}")
        if part.whole or state.decision is not ALLOW:
            return None
        if self._shell.redirects(has_redirection(part.text), allowed):
            note = f"its part `{part.text}` uses redirection, but the rule has no allowRedirection"
            state.ask(None, note)
        return None


def _why(evaluation: Evaluation) -> str:
    if evaluation.note:
        return f": {evaluation.note}"
    return "" if evaluation.ready else ": no rule matches it"


ALWAYS_ALLOW = 950
"""The priority of the rules the CLI itself writes when the user answers "always"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolAvailability:
    """Whether the tool named in a call is visible to the model, and whether it exists.

    `offered`: whether the model sees the tool. `found`: whether the CLI recognises the tool when it
    is called; if not, the call fails as not found. A tool that is called by a former name is found,
    although that name isn't offered. `by`: the rule that hides the tool. It is None if the tool
    isn't hidden, or is hidden for another reason: by the mode's default decision, or because
    another tool with the same short name is hidden.
    """

    known: RegisteredTool
    offered: bool
    found: bool
    by: CompiledRule | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolContext:
    """The facts that all calls to one tool by one agent share, whatever their arguments.

    `rules`: the rules that apply, up to the first one without a pattern, which decides all
    remaining calls. `edits`: whether the tool edits files. `settled`: the outcome if it is the same
    for all arguments; otherwise None.
    """

    availability: ToolAvailability
    subject: Subject
    rules: RuleSequence
    edits: bool
    checkers: tuple[CompiledChecker, ...]
    settled: Outcome | None


class Evaluator:
    """All of a run's rules, sorted, for one mode, either headless or interactive.

    `stopped`: why the CLI doesn't start with these rules and this setup; None if it does.
    `program`: who decides. `foreign`: whether the calls are those of another agent. Its headless
    runs, too, ask about what no rule decides, and its tools and files have no protection but rules.
    """

    program = "Gemini CLI"
    foreign = False

    def __init__(
        self,
        rules: Iterable[Rule],
        checkers: Iterable[SafetyChecker] = (),
        *,
        mode: ApprovalMode,
        interactive: bool,
        setup: Setup,
        stopped: str | None,
    ) -> None:
        compiled = compile_rules(rules)
        if always_allow_off(setup.settings):
            compiled = tuple(
                rule for rule in compiled if round(rule.key % 1 * 1000) != ALWAYS_ALLOW
            )
        self.rules, self.stopped = compiled, stopped
        self._checkers = compile_checkers(checkers)
        self.mode, self.interactive = mode, interactive
        self.registry = Registry(setup, mode)
        self.workspace = setup.workspace
        self.roots = roots_of(setup)
        self.default = Decision.ASK_USER if interactive or self.foreign else Decision.DENY
        self._shell = ShellRules(mode=mode, default=self.default, workspace=setup.workspace)
        self._availabilities: dict[tuple[str, bool], ToolAvailability] = {}
        self._contexts: dict[tuple[str, str | None, str | None, str | None], ToolContext] = {}

    def outcome(self, call: Call) -> Outcome:
        """Return the decision for one call; faster than `evaluate`."""
        context = self.context(call)
        if context.settled and "additional_permissions" not in call.args:
            return context.settled
        evaluation = self._evaluated(context, call.args)
        rule = evaluation.ready.rule if evaluation.ready else None
        return Outcome(
            decision=evaluation.decision, offered=context.availability.offered, rule=rule
        )

    def evaluate(self, call: Call) -> Evaluation:
        """Return the decision for one call, with notes on how it came about."""
        return self._evaluated(self.context(call), call.args)

    def _evaluated(self, context: ToolContext, args: Mapping[str, Any]) -> Evaluation:
        if self.stopped or not context.availability.found:
            return Evaluation(decision=Decision.DENY, ready=context.availability.by)
        try:
            return self._judged(context, args)
        except PatternTimeout as error:
            return Evaluation(decision=Decision.DENY, note=str(error), stuck=True)

    def _judged(self, context: ToolContext, args: Mapping[str, Any]) -> Evaluation:
        if call_of_shell(context.subject):
            evaluation = self._shell.check(context.rules, args)
        else:
            ready = context.rules.first_match(args)
            evaluation = Evaluation(decision=self._decision(ready), ready=ready)
        tool = context.subject.names[0]
        own = ""
        if not self.foreign:
            own = own_path(tool)
            evaluation = protected(
                evaluation,
                args,
                edits=context.edits,
                interactive=self.interactive,
                workspace=self.workspace,
            )
        return checked(evaluation, tool, args, context.checkers, self.roots, own=own)

    def _decision(self, ready: CompiledRule | None) -> Decision:
        if ready:
            return ready.decision
        return Decision.ALLOW if self.mode is ApprovalMode.YOLO else self.default

    def context(self, call: Call) -> ToolContext:
        """Return the facts that all calls to this tool by this agent have in common."""
        agent = call.args.get("agent_name") if call.tool == AGENT_TOOL else None
        agent = agent if isinstance(agent, str) else None
        key = call.tool, call.subagent, agent, call.server
        context = self._contexts.get(key)
        if context is None:
            context = self._contexts[key] = self._context(call, agent)
        return context

    def _context(self, call: Call, agent: str | None) -> ToolContext:
        tool, subagent = call.tool, call.subagent
        availability = self.availability(call)
        registered = availability.known
        subject = Subject(
            names=(*_called(tool), *((agent,) if agent is not None else ())),
            server=registered.server,
            annotations=registered.annotations or None,
            subagent=subagent,
        )
        rules = self._applying(subject)
        first = rules[0] if rules else None
        plain = not (first and first.pattern) and not call_of_shell(subject)
        edits = any(map(is_edit_tool, subject.names))
        plainly = replace(subject, names=(tool,))  # checkers ignore aliases
        checkers = tuple(
            checker
            for checker in self._checkers
            if self.mismatch(checker.condition, plainly) is None
        )
        settled = None
        if self.stopped or not availability.found:
            by = availability.by.rule if availability.by else None
            settled = Outcome(
                decision=Decision.DENY,
                offered=False,
                rule=by,
                found=False,
                setting=registered.setting,
            )
        elif plain and not edits and not checkers:
            settled = Outcome(
                decision=self._decision(first),
                offered=availability.offered,
                rule=first.rule if first else None,
            )
        return ToolContext(
            availability=availability,
            subject=subject,
            rules=RuleSequence(rules),
            edits=edits,
            checkers=checkers,
            settled=settled,
        )

    def _applying(self, subject: Subject) -> tuple[CompiledRule, ...]:
        applying: list[CompiledRule] = []
        for ready in self.rules:
            if self.mismatch(ready, subject) is None:
                applying.append(ready)
                if ready.pattern is None:
                    break
        return tuple(applying)

    def mismatch(self, ready: CompiledRule, subject: Subject) -> str | None:
        """Return why a compiled rule doesn't apply to a tool's calls; None if it does.

        The tool, the caller, the mode and so on are compared, but no conditions on the arguments.
        `ready`: the compiled rule. `subject`: the tool and the caller.
        """
        return mismatch(ready, subject, self.mode.in_rules, self.interactive)

    def availability(self, call: Call) -> ToolAvailability:
        """Return whether a call's tool exists and is visible to the model, and what hides it."""
        tool, subagent = call.tool, call.subagent is not None
        availability = self._availabilities.get((tool, subagent))
        if availability is None:
            registered = self.registry.known(tool, subagent=subagent)
            availability = self._availabilities[tool, subagent] = self._availability(
                tool, registered
            )
        return availability

    def _availability(self, tool: str, registered: RegisteredTool) -> ToolAvailability:
        if self.stopped or registered.absent:
            return ToolAvailability(known=registered, offered=False, found=False)
        hidden, by = self._hidden(registered)
        if not hidden and registered.short:
            hidden = self._namesake_hidden(registered.short)
        offered = not hidden and registered.name == tool
        return ToolAvailability(known=registered, offered=offered, found=not hidden, by=by)

    def _namesake_hidden(self, short: str) -> bool:
        """Return whether the CLI has its own tool named `short`, and that tool is hidden.

        If so, an MCP server's tool with the short name `short` is hidden as well.
        """
        own = self.registry.known(short)
        return not own.absent and not own.server and self._hidden(own)[0]

    def _hidden(self, registered: RegisteredTool) -> tuple[bool, CompiledRule | None]:
        """Return whether rules hide a tool, and which rule does.

        Arguments, aliases and subagents are ignored. A deny rule with a pattern is skipped; any
        other rule with a pattern makes the tool visible. If no rule decides, the tool is hidden if
        the mode's default decision is to deny.
        """
        annotations = (
            {**registered.annotations, "_serverName": registered.server}
            if registered.server
            else None
        )
        subject = Subject(
            names=(registered.name,), server=registered.server, annotations=annotations
        )
        for ready in self.rules:
            if self.mismatch(ready, subject) is None:
                denies = ready.decision is Decision.DENY
                if not ready.pattern:
                    return denies, ready if denies else None
                if not denies:
                    return False, None
        return self.default is Decision.DENY, None


class ForeignEvaluator(Evaluator):
    """The rules for calls of another agent, which asks gemtui before it makes one."""

    program = "gemtui"
    foreign = True

    def availability(self, call: Call) -> ToolAvailability:
        """Return that the tool exists: only the agent knows which tools it has."""
        known = RegisteredTool(name=call.tool, server=call.server)
        return ToolAvailability(known=known, offered=True, found=True)


def _called(tool: str) -> tuple[str, ...]:
    """Return the name of a tool and all its aliases; rules may use any of them."""
    current = ALIASES.get(tool, tool)
    old = (alias for alias, name in ALIASES.items() if name == current)
    return tuple(dict.fromkeys((tool, current, *old)))


def call_of_shell(subject: Subject) -> bool:
    """Return whether a subject (a tool and its caller) is about the shell tool."""
    return subject.names[0] == SHELL
