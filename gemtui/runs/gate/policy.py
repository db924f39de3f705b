"""Decide what a gated run does about a tool call: pass it on, allow, ask, or deny.

The CLI gets the rules of any headless run, which deny everything it would ask about. In addition,
it gets the rules in `rules_text`: calls with the run's seal are allowed, and writes and commands
without the seal are denied. The seal is a secret argument that the gate adds to a call. Therefore,
even if the gate fails, a call that has not passed it is denied.
"""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum, auto
from operator import attrgetter
from pathlib import Path
from typing import Any, TypeGuard

from gemtui.agent.command import DENY_OPTION, OPTION_REASON, is_option_search, is_search
from gemtui.agent.run_folder import Request
from gemtui.agent.settings import at
from gemtui.calls import later_files, paths
from gemtui.calls.effect import (
    EDIT,
    SHELL,
    WRITE,
    CallContext,
    Effect,
    EffectKind,
)
from gemtui.calls.effects import effect_of
from gemtui.calls.git_repository import why_not_searched
from gemtui.calls.later_files import agents_that_start, is_program, starts_it
from gemtui.calls.setting_effects import BROWSER_AGENT, lets_model_correct
from gemtui.calls.shell import unasked
from gemtui.files import resolved
from gemtui.policy.engine.decide import Engine, Setup
from gemtui.policy.engine.refusals import edited_file, is_build_file, is_edit_tool, roots_of
from gemtui.policy.file.policy import Policy
from gemtui.policy.file.rule_codec import rules_to_toml
from gemtui.policy.model.rules import ApprovalMode, Call, Decision, Rule, Tier
from gemtui.policy.model.tool_catalog import TOOLS
from gemtui.policy.words import rule_place
from gemtui.runs.effective_policy import for_everybody, policy_of_run
from gemtui.runs.gate.verification import AGENT
from gemtui.text import clean_line
from gemtui.transcript.seal import seal_pattern

_MCP = "mcp_*"
SEALED = {SHELL: "command", WRITE: "file_path", EDIT: "file_path"}
"""Maps each tool whose calls need the secret seal to one of its own arguments.

The seal is an argument that marks a call as allowed by gemtui.
"""
_OPTION_DENY = replace(DENY_OPTION, modes=("default", "autoEdit", "plan"))
_UNSEALED = ("activate_skill", "write_todos", _MCP)
"""Tools that accept no additional argument, so calls can't be marked as allowed.

Only the hook can stop calls to these tools.
"""
_OPEN_MODES = ("default", "autoEdit", "yolo")
_SEALING = (ApprovalMode.DEFAULT, ApprovalMode.AUTO_EDIT)
"""The approval modes in which writes and commands need the secret seal.

The seal is an argument that marks a call as allowed by gemtui.
"""
BUILD_FILE = (
    "In headless runs, Gemini CLI never lets this tool write a build file, even if the user "
    "approves it. A shell command that changes the file can be approved."
)
PLANNING = "In plan mode, nobody can be asked about this call."
LEAVES_PLAN = (
    "In headless runs, Gemini CLI leaves plan mode for a mode that asks about nothing. Describe "
    "the plan to the user, who can start a new run to carry it out."
)
ENTERS_PLAN = (
    "This run could not leave plan mode again. Write the plan in your answer, or write it in a "
    "run that starts in plan mode."
)
_PLANNING = {"exit_plan_mode": LEAVES_PLAN, "enter_plan_mode": ENTERS_PLAN}
_KNOWN = frozenset(tool.name for tool in TOOLS)


class Way(IntEnum):
    """The ways to handle a call, from least to most strict."""

    PASS = auto()
    """The call is left to the CLI, which allows or denies it without asking."""
    THROUGH = auto()
    """The user is not asked; the call gets a secret seal, so that the CLI allows it."""
    ASK = auto()
    REFUSE = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """A decision on how to handle a call, with its reason.

    `why`: one sentence; for a denial, the message to the model. `rule`: where to find the user's
    own rule that allows the call; "" if no such rule does.
    """

    way: Way
    why: str = ""
    rule: str = ""


class CallPolicy:
    """Decides how a gated run handles its calls, by the run's rules and by what the calls would do.

    `policies`: the files and folders that hold rules of this run or later ones; they may not exist.
    `env_files`: the `.env` files that the agent reads; None means those of Gemini CLI.
    """

    env_files: Sequence[Path] | None = None

    def __init__(
        self,
        policy: Policy,
        setup: Setup,
        mode: ApprovalMode,
        environ: Mapping[str, str] = os.environ,
        *,
        policies: Iterable[Path] = (),
    ) -> None:
        self.mode = mode
        self._workspace = setup.workspace or Path("/")
        self._environ = environ
        self._folders = tuple(map(resolved, (self._workspace, *setup.include_directories)))
        self._settings = setup.settings
        self._rule_places = tuple(map(resolved, policies))
        self._asked = Engine(for_everybody(policy), mode=mode, interactive=True, setup=setup)
        self._load(policy, setup)

    def _load(self, policy: Policy, setup: Setup) -> None:
        """Keep what only a subclass needs of the rules and the setup."""

    @abstractmethod
    def _judge(self, call: Call, effect: Effect | None) -> Judgement:
        """Return how to handle a call by the path that it names."""

    def judge(self, call: Call, effect: Effect | None = None) -> Judgement:
        """Return how to handle a call.

        If the call's effect is to write a file other than the one its arguments name, the rules
        have to allow both.
        """
        judgement = self._judge(call, effect)
        path = None if effect is None else effect.path
        if path is not None and not self._names(call, path):
            judged = [self._judge(other, effect) for other in self._spelled(call, path)]
            # A rule may match any spelling: one that denies counts, and so does one that allows.
            strictest, easiest = max(judged, key=_WAY), min(judged, key=_WAY)
            other = strictest if strictest.way is Way.REFUSE else easiest
            judgement = max(judgement, other, key=_WAY)
        if self.mode is ApprovalMode.PLAN and call.tool in SEALED and judgement.way is Way.ASK:
            return denied(f"{PLANNING} {judgement.why}")
        return judgement

    def spelled(self, call: Call, effect: Effect | None) -> Call:  # noqa: ARG002
        """Return a call as rules see it, with the names of Gemini CLI's tools and arguments."""
        return call

    def effect(
        self, tool: str, arguments: Mapping[str, Any], context: CallContext
    ) -> Effect | None:
        """Return what a call would do; None if that is unknown.

        A plan is written without approval, so that has no effect.
        """
        plans = self.mode is ApprovalMode.PLAN and tool in (WRITE, EDIT)
        return None if plans else effect_of(tool, arguments, context)

    def _names(self, call: Call, path: str) -> bool:
        """Return whether a call's arguments name the file that it writes, and not a link to it."""
        named = str(call.args.get("file_path"))
        if "\0" in named:
            return False
        plain = Path(os.path.normpath(self._workspace / named))
        return path in (str(plain), str(resolved(plain)))

    def _spelled(self, call: Call, path: str) -> Iterator[Call]:
        """Yield a copy of the call for each spelling of the file's real path."""
        texts = [path]
        for folder in {self._workspace, resolved(self._workspace)}:
            if Path(path).is_relative_to(folder):
                texts.append(str(Path(path).relative_to(folder)))
        for text in texts:
            yield replace(call, args={**call.args, "file_path": paths.cli_spelling(text)})

    def _why_ask(self, call: Call, effect: Effect | None, rule: Rule | None) -> str | None:
        """Return why to ask the user about a call that the CLI would allow, as a sentence.

        None means that no question is necessary. For a command, it is enough if one of the user's
        own rules allows it. For a file that is outside the run's folders or affects what is run
        later, that rule must also have conditions. `rule`: the rule that allows the call.
        """
        if self.mode is ApprovalMode.YOLO:
            return None
        if call.tool == SHELL and not is_own(rule):
            folder = call.args.get("dir_path")
            why = unasked.why_ask(
                str(call.args.get("command", "")),
                project=self._workspace,
                dir_path=folder if isinstance(folder, str) else "",
                environ=self._environ,
                env_files=self.env_files,
            )
            return None if why is None else sentence(why)
        if effect is None or effect.kind is not EffectKind.FILE or effect.path is None:
            return None
        if is_own(rule) and rule.conditional:
            return None
        path = Path(effect.path)
        if not any(path.is_relative_to(folder) for folder in self._folders):
            return "The file is outside of the run's folders."
        if effect.names > 1:
            return "The file has other names (hard links), which change as well."
        if any(path.is_relative_to(place) for place in self._rule_places):
            return "Later runs read their rules from this file."
        if is_program(path, self._environ):
            name = clean_line(path.name)
            return f"Shells run this file as the command {name}, because it is on PATH."
        why = later_files.why_runs_later(path, self._workspace)
        why = why or starts_it(self._settings, resolved(self._workspace), path)
        why = why or later_files.why_not_plain(path)
        return None if why is None else sentence(why)


class GatePolicy(CallPolicy):
    """Decides how a gated run handles its calls, by the run's rules.

    The rules are applied twice: as if the CLI could ask the user, and as the CLI applies them in a
    headless run, where it can't. `policies`: the files and folders that hold rules of this run or
    later ones; they may not exist.
    """

    def _load(self, policy: Policy, setup: Setup) -> None:
        self._policy = policy
        self._searched = tuple(map(resolved, roots_of(setup))) or self._folders
        self.corrects = lets_model_correct(at(setup.settings, "tools", "disableLLMCorrection"))
        """Whether the CLI may let another model correct text before it is written."""
        self._unasked = Engine(policy, mode=self.mode, setup=setup)

    @classmethod
    def of(cls, request: Request, environ: Mapping[str, str] = os.environ) -> GatePolicy:
        """Return the policy of a run as the CLI will load it.

        Raises OSError, OptionError.
        """
        effective, mode = policy_of_run(request, environ)
        folder, settings = Path(request.cwd), effective.settings
        named = (*settings.user_policies(folder), *settings.admin_policies(folder))
        policies = (*effective.files, *effective.admin, *named)
        environ = {**environ, **request.environ}
        return cls(effective.policy, effective.setup, mode, environ, policies=policies)

    def _judge(self, call: Call, effect: Effect | None) -> Judgement:
        if call.tool in _PLANNING and self.mode is not ApprovalMode.YOLO:
            return denied(_PLANNING[call.tool])
        why = self._why_not_searched(call)
        if why is not None:
            return denied(why)
        outcome = self._asked.outcome(call)
        if not outcome.found:
            if outcome.rule is not None:  # the rule hides the tool
                return denied(outcome.rule.deny_message)
            if call.tool in _KNOWN:
                return Judgement(way=Way.PASS)
            return Judgement(way=Way.ASK, why="gemtui knows no rules for this tool.")
        if outcome.decision is Decision.ALLOW:
            why = self._why_ask(call, effect, outcome.rule)
            if why is None:
                own = rule_place(outcome.rule) if is_own(outcome.rule) else ""
                needs_seal = call.tool in SEALED and self.mode in _SEALING
                if not needs_seal and self._unasked.outcome(call).decision is Decision.ALLOW:
                    return Judgement(way=Way.PASS, rule=own)
                return Judgement(way=Way.THROUGH, rule=own)
        reason = self._asked.explain(call)
        if reason.tool_refuses is not None:
            return Judgement(way=Way.REFUSE, why=f"{call.tool} rejects it: {reason.tool_refuses}")
        if outcome.decision is Decision.DENY:
            return denied(reason.message)
        if is_edit_tool(call.tool) and is_build_file(edited_file(call.args) or "", self._workspace):
            return denied(BUILD_FILE)
        admin = outcome.rule is not None and outcome.rule.tier is Tier.ADMIN
        if admin and outcome.decision is Decision.ASK_USER:
            return denied(
                "An administrator policy requires a confirmation, which headless runs can't get."
            )
        return Judgement(way=Way.ASK, why=reason.because if why is None else why)

    def _why_not_searched(self, call: Call) -> str | None:
        """Return why a search may do more than read the project, as a sentence, or None."""
        if self.mode is ApprovalMode.YOLO or not is_search(call):
            return None
        if is_option_search(call):
            return OPTION_REASON
        folders, named = self._searched, str(call.args.get("dir_path") or "").replace("\0", "")
        if named:
            folders = (Path(paths.real_path(paths.absolute(str(self._workspace), named))),)
        for folder in folders:
            why = why_not_searched(folder)
            if why:
                return sentence(why)
        return None

    def _why_ask(self, call: Call, effect: Effect | None, rule: Rule | None) -> str | None:
        why = None
        if call.tool == AGENT and not is_own(rule) and self.mode is not ApprovalMode.YOLO:
            why = self._why_ask_agent()
        return why or super()._why_ask(call, effect, rule)

    def _why_ask_agent(self) -> str | None:
        """Return why invoking a subagent may start a program, as a sentence, or None."""
        overrides = at(self._settings, "agents", "overrides")
        agents = overrides.values() if isinstance(overrides, Mapping) else ()
        if any(at(agent, "mcpServers") for agent in agents):
            return (
                "The settings (agents.overrides) give subagents MCP servers, which start when "
                "the subagents do."
            )
        if at(overrides, BROWSER_AGENT, "enabled"):
            return (
                f"The settings (agents.overrides) enable {BROWSER_AGENT}, which starts a browser."
            )
        file = next(agents_that_start(self._workspace, self._environ), None)
        return None if file is None else f"{clean_line(str(file))} may start programs."

    def can_carry_seal(self, tool: str) -> bool:
        """Return whether a tool's calls accept the seal as an additional argument.

        The seal marks a call as allowed by gemtui.
        """
        return tool not in _UNSEALED and not tool.startswith("mcp_")

    def rules_text(self, seal: str) -> str:
        """Return the contents of the policy file with which the CLI allows sealed calls.

        These are calls to which the gate has added `seal`, a secret argument. Hidden tools stay
        hidden, and calls that are denied to subagents stay denied. For tools whose calls can't
        carry a seal, rules that would ask become rules that allow, because the gate asks instead.
        """
        hidden = []
        for name in sorted(_KNOWN):
            outcome = self._asked.outcome(Call(name))
            if not outcome.offered and outcome.rule is not None:
                hidden.append(name)
        rules = []
        if hidden:
            hides = Rule(tools=tuple(hidden), tool_list=True, decision=Decision.DENY, priority=999)
            rules.append(hides)
        rules.append(_OPTION_DENY)
        rules += _for_agents(self._policy.rules, seal)
        rules += _for_unsealed(self._policy.rules)
        rules += _let_through(seal, self.mode)
        return rules_to_toml(rules)


_WAY = attrgetter("way")


def is_own(rule: Rule | None) -> TypeGuard[Rule]:
    """Return whether a rule is the user's or the administrator's, and allows calls."""
    return rule is not None and rule.decision is Decision.ALLOW and rule.tier >= Tier.USER


def sentence(clause: str) -> str:
    """Return a clause as a sentence."""
    return f"{clause[:1].upper()}{clause[1:].rstrip('.')}."


def denied(message: str | None) -> Judgement:
    """Return the judgement that a policy denies a call, with its message to the model."""
    more = f" {message}" if message else ""
    return Judgement(way=Way.REFUSE, why=f"Tool execution denied by policy.{more}")


def _for_agents(rules: Iterable[Rule], seal: str) -> Iterator[Rule]:
    """Yield the rules that deny calls to subagents, with the highest priority.

    They must take precedence over the rules that allow calls with the seal, because the gate adds
    the seal without knowing which agent makes a call.
    """
    for rule in rules:
        if rule.subagent is None or rule.decision is not Decision.DENY or rule.interactive is False:
            continue
        above = replace(rule, priority=999, interactive=None)
        if rule.conditional:
            yield above
        else:
            for shell in (True, False):
                yield replace(above, args_pattern=seal_pattern(seal, shell=shell))


def _for_unsealed(rules: Iterable[Rule]) -> Iterator[Rule]:
    """Yield the user's rules for tools whose calls can't carry a seal.

    Rules that deny are yielded unchanged, and rules that would ask as rules that allow. Rules that
    allow are left out.
    """
    for rule in rules:
        tools = _unsealed_among(rule)
        if tools and rule.tier is Tier.USER and rule.decision is not Decision.ALLOW:
            asks = rule.decision is Decision.ASK_USER
            decision = Decision.ALLOW if asks else Decision.DENY
            yield replace(rule, tools=tools, tool_list=True, decision=decision)


def _unsealed_among(rule: Rule) -> tuple[str, ...]:
    if rule.mcp_name is not None:
        return rule.tools
    if not rule.tools or "*" in rule.tools:
        return _UNSEALED
    return tuple(tool for tool in rule.tools if tool in _UNSEALED or tool.startswith("mcp_"))


def _let_through(seal: str, mode: ApprovalMode) -> Iterator[Rule]:
    """Yield the rules that allow calls with the seal.

    In plan mode, the rules cover only tools that the user can be asked about in that mode.
    """
    with_seal = seal_pattern(seal, shell=False)
    allow = Rule(decision=Decision.ALLOW, priority=999)
    if mode is ApprovalMode.PLAN:
        asked = ("ask_user", "web_fetch")
        yield replace(allow, tools=asked, tool_list=True, args_pattern=with_seal)
        yield replace(allow, tools=(_MCP,), priority=0, annotations={"readOnlyHint": True})
        yield replace(allow, tools=("activate_skill",), priority=0)
        return
    allow = replace(allow, modes=_OPEN_MODES)
    command_with_seal = seal_pattern(seal, shell=True)
    yield replace(allow, tools=(SHELL,), args_pattern=command_with_seal, allow_redirection=True)
    yield replace(allow, tools=("*",), args_pattern=with_seal)
    # Deny writes and commands without the seal. These rules have a pattern for arguments, because
    # otherwise the CLI would hide the tools. They come after the rules that allow calls with the
    # seal, and before the user's rules, whose files are loaded later.
    for tool, argument in SEALED.items():
        yield Rule(
            tools=(tool,),
            decision=Decision.DENY,
            priority=999,
            args_pattern=f'"{argument}":',
            modes=tuple(mode.in_rules for mode in _SEALING),
            deny_message="gemtui did not let this call through.",
        )
    yield replace(allow, tools=_UNSEALED, tool_list=True, priority=0)
