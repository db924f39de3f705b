"""“Allow similar”: the narrow rule that allows calls like a given one, and the rules in effect.

The rule is described to the user before approval, and never allows more than the description says.
Rules hold for the rest of the run, or for all runs. They are consulted only for calls about which a
run's policy would ask. Therefore everything that the policy denies stays denied.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gemtui.agent.approval import ApprovalRequest
from gemtui.agent.trust import folder_settings
from gemtui.agents import WORDS, Agent
from gemtui.calls.effect import SHELL
from gemtui.calls.paths import is_verbatim, tool_path
from gemtui.calls.shell.dangers import dangers
from gemtui.calls.shell.parser import parse_command, unwrapped
from gemtui.calls.shell.similar_options import is_covered, similar_commands, why_not_covered
from gemtui.calls.shell.unasked import command_folders
from gemtui.calls.shell.words import Unclear, plain_commands
from gemtui.files import resolved
from gemtui.jsonfile import read_object
from gemtui.paths import gemini_home
from gemtui.policy.edit import store
from gemtui.policy.engine.decide import Engine, Setup
from gemtui.policy.file.policy import Policy
from gemtui.policy.file.policy_files import path_of
from gemtui.policy.file.rule_codec import rules_to_toml
from gemtui.policy.match.path_patterns import LENGTH, files_pattern, locate_in_project
from gemtui.policy.model.foreign import UNSANDBOXED, spelled, tool_of_server
from gemtui.policy.model.mcp_names import is_name_of_server
from gemtui.policy.model.rules import ApprovalMode, Call, Decision, Rule
from gemtui.policy.model.tool_catalog import tool as known_tool
from gemtui.policy.suggest.prefixes import NoPrefix, prefix_of
from gemtui.policy.suggest.replay import tool_may_exist
from gemtui.policy.suggest.suggest import EDITS
from gemtui.transcript.parts import string

PRIORITY = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class SimilarCalls:
    """The calls that “allow similar” would allow.

    `rule`: allows these calls; None if there is no narrow rule. `words`: a description of the
    calls, or the reason why there is no rule, without a full stop.
    """

    words: str
    rule: Rule | None = None

    @property
    def toml(self) -> str:
        """The rule in the format of a policy file; "" if there is none."""
        return "" if self.rule is None else rules_to_toml([self.rule])


def similar_calls(request: ApprovalRequest, cwd: Path) -> SimilarCalls:
    """Return which calls are similar to the requested one.

    If more than one MCP server may provide the tool, no calls count as similar. `cwd`: the run's
    folder.
    """
    call = spelled(request.agent, request.tool_name, request.requested)
    name = call.tool
    if call.args.get(UNSANDBOXED):
        return SimilarCalls(words="it runs outside of the agent's sandbox")
    if call.server is not None:
        rule = _allow((tool_of_server(call),), mcp_name=call.server)
        return SimilarCalls(words=f"all calls of {call.own}: with any arguments", rule=rule)
    if name.startswith("mcp_"):
        # Names of servers and tools are joined by `_`. So if there are servers `a` and `a_b`, the
        # tool `mcp_a_b_c` can belong to either of them (assets/gemini-cli.md#tool-names).
        servers = [server for server in sorted(_servers(cwd)) if is_name_of_server(name, server)]
        if len(servers) > 1:
            those = " and ".join(servers)
            return SimilarCalls(
                words=f"the name is ambiguous: it could belong to any of the servers {those}"
            )
    if name == SHELL:
        folder = None if request.effect is None else request.effect.folder
        return _command(str(call.args.get("command", "")), cwd, folder)
    if name in EDITS:
        if request.effect is not None and request.effect.names > 1:
            return SimilarCalls(words="it has other names (hard links), which change as well")
        path = str(call.args.get("file_path", ""))
        return _file(path, cwd, WORDS[request.agent].program)
    return _tool(call)


def _command(command: str, cwd: Path, folder: str | None) -> SimilarCalls:
    """Return which commands are similar: those that start with the same prefixes.

    `folder`: the folder the command runs in; None means the run's folder.
    """
    risks = dangers(command, cwd, folder)
    if risks:
        return SimilarCalls(words=risks[0].why)
    reading = parse_command(command)
    if not reading.parsed or not reading.parts:
        return SimilarCalls(words="it can't be parsed")
    if reading.redirected:
        return SimilarCalls(words="it redirects input or output")
    for part in reading.parts:
        refused = prefix_of(part.text)
        if isinstance(refused, NoPrefix):
            return SimilarCalls(words=f"{refused.what}: {refused.why}")
    folders = command_folders(cwd, folder or "")
    if isinstance(folders, str):
        return SimilarCalls(words=folders)
    try:
        commands = plain_commands(unwrapped(command))
    except Unclear as unclear:
        return SimilarCalls(words=str(unclear))
    if len(commands) != len(reading.parts):
        return SimilarCalls(words="its parts can't be told apart")
    opens: dict[str, str] = {}
    exact: list[str] = []
    for part, words in zip(reading.parts, commands, strict=True):
        reason = why_not_covered(words, commands, folders)
        if reason is not None:
            return SimilarCalls(words=reason)
        similar = similar_commands(words)
        if similar.usage is None:
            exact.append(part.text)
        else:
            opens[" ".join(similar.start)] = similar.opens
    texts = tuple(dict.fromkeys((*opens, *exact)))
    rule = _allow((SHELL,), command_prefixes=texts, prefix_list=len(texts) > 1)
    return SimilarCalls(words=_covered(opens, exact), rule=rule)


def _covered(opens: Mapping[str, str], exact: Iterable[str]) -> str:
    """Describe the commands that are similar.

    `opens`: what is allowed after each beginning. `exact`: those that are allowed only as they are.
    """
    clauses = []
    if exact:
        same = " or ".join(dict.fromkeys(exact))
        clauses.append(f"exactly {same}, in this folder, also if what it runs has changed")
    if opens:
        clauses.append(" and ".join(f"{start} … ({after})" for start, after in opens.items()))
        clauses.append("other options are asked about")
    return "; ".join(clauses)


def _file(path: str, cwd: Path, program: str) -> SimilarCalls:
    """Return which writes are similar: all those to the same file, also through links."""
    if not is_verbatim(path):
        return SimilarCalls(words=f"{program} would read its path as a different file")
    place = locate_in_project(path, cwd)
    if isinstance(place, str):
        return SimilarCalls(words=place)
    real = resolved(cwd / path)
    if not real.is_relative_to(resolved(cwd)):
        return SimilarCalls(words="a symbolic link in its path leads outside of the project")
    pattern = files_pattern([str(real)], [])
    if len(pattern) > LENGTH:
        return SimilarCalls(words="its path is too long for a pattern")
    words = f"writes and edits of the file {place.path}, whatever they change"
    return SimilarCalls(words=words, rule=_allow(EDITS, args_pattern=pattern))


_OPENS = {
    "web_fetch": "any URL, with any data that the model sends",
    "google_web_search": "any search",
}


def _tool(call: Call) -> SimilarCalls:
    """Return which calls are similar: all calls to the same tool."""
    tool = known_tool(call.tool)
    name = tool.name if tool else call.tool
    if not tool_may_exist(name):
        if call.is_foreign:
            return SimilarCalls(words="rules have no name for this tool")
        return SimilarCalls(words=f"the current {WORDS[Agent.GEMINI].program} has no such tool")
    if name in ("enter_plan_mode", "exit_plan_mode"):
        return SimilarCalls(words="it changes the approval mode")
    opens = _OPENS.get(name, "with any arguments")
    return SimilarCalls(words=f"all calls of {call.own or name}: {opens}", rule=_allow((name,)))


def _allow(tools: tuple[str, ...], **fields: object) -> Rule:
    return Rule(
        decision=Decision.ALLOW,
        priority=PRIORITY,
        tools=tools,
        tool_list=len(tools) > 1,
        source="answer",
        **fields,  # type: ignore[arg-type]
    )


def _servers(cwd: Path) -> set[str]:
    """Return the names of the MCP servers in all settings and extensions."""
    settings = folder_settings(cwd, os.environ, for_run=True)
    tables = [value for _, value in settings.each("mcpServers")]
    for manifest in (gemini_home() / "extensions").glob("*/gemini-extension.json"):
        with suppress(OSError):
            tables.append(read_object(manifest).get("mcpServers"))
    return {str(name) for table in tables if isinstance(table, dict) for name in table}


# --- the approvals of a run -----------------------------------------------------------------------

ALWAYS = "always"
"""The name of the policy with the rules for all runs; the policy pane shows it."""


class Granted:
    """The approvals in effect for one run.

    `workspace`: the run's folder.
    """

    def __init__(self, workspace: Path) -> None:
        self._workspace = workspace
        self._always = Policy()
        self._answers: dict[int, Policy] = {}
        self._engine: Engine | None = None

    def load_always(self) -> None:
        """Load the rules that apply to all runs; an unreadable file contains none."""
        path = path_of(ALWAYS)
        if path.is_file():
            self._always, self._engine = _allows(Policy.load(path)), None

    def add(self, toml: str, *, answer: int = 0) -> None:
        """Add the rules that the user granted with an answer; invalid rules allow nothing.

        `toml`: the rules. `answer`: the number of the question that was answered.
        """
        self._answers[answer], self._engine = _allows(Policy.parse(toml, source="answer")), None

    @property
    def answers(self) -> tuple[int, ...]:
        """The numbers of the answers that granted rules and have not been revoked."""
        return tuple(self._answers)

    def answer_of(self, rule: Rule) -> int:
        """Return the number of the answer that granted a rule; 0 for a rule for all runs."""
        for number, policy in self._answers.items():
            if rule in policy.rules:
                return number
        return 0

    def revoke(self, answer: int) -> None:
        """Revoke the rules that were granted by the user's answer with this number."""
        del self._answers[answer]
        self._engine = None

    def allows(self, call: Call) -> Rule | None:
        """Return the rule that allows a call; None means that the user must be asked."""
        args = self._real_arguments(call)
        policy = sum(self._answers.values(), self._always)
        if not policy.rules or args is None:
            return None
        if self._engine is None:
            setup = Setup(workspace=self._workspace)
            self._engine = Engine(policy, mode=ApprovalMode.DEFAULT, interactive=True, setup=setup)
        outcome = self._engine.outcome(replace(call, args=args))
        if outcome.rule not in policy.rules or outcome.decision is not Decision.ALLOW:
            return None
        if outcome.rule.command_prefixes and not self._covers(policy, call):
            return None
        return outcome.rule

    def _covers(self, policy: Policy, call: Call) -> bool:
        """Return whether every command in a call starts with an approved prefix.

        Commands are parsed as bash would parse them. The CLI's own check isn't reliable enough: it
        only compares strings, and treats characters as whitespace that bash does not. A prefix
        never approves a dangerous command.
        """
        folders = command_folders(self._workspace, string(call.args.get("dir_path")))
        command = unwrapped(string(call.args.get("command")))
        try:
            commands = plain_commands(command)
        except Unclear:
            return False
        if isinstance(folders, str) or dangers(command, folders.project, str(folders.folder)):
            return False
        prefixes = [prefix for rule in policy.rules for prefix in rule.command_prefixes]
        return all(
            any(is_covered(prefix, words, commands, folders) for prefix in prefixes)
            for words in commands
        )

    def _real_arguments(self, call: Call) -> Mapping[str, Any] | None:
        """Return a call's arguments, with the path of a written file made real.

        Returns None if the real path can't be determined, or if a command would run outside the
        run's folder or the agent's sandbox.
        """
        path, folder = call.args.get("file_path"), call.args.get("dir_path")
        if call.args.get(UNSANDBOXED):
            return None
        if call.tool in EDITS and isinstance(path, str):
            try:
                return {**call.args, "file_path": tool_path(path, str(self._workspace))}
            except (OSError, ValueError):
                return None
        if call.tool == SHELL and isinstance(folder, str) and folder:
            place = resolved(self._workspace / folder) if "\0" not in folder else Path("/")
            return call.args if place.is_relative_to(resolved(self._workspace)) else None
        return call.args


def _allows(policy: Policy) -> Policy:
    rules = tuple(rule for rule in policy.rules if rule.decision is Decision.ALLOW)
    return replace(policy, rules=rules)


def keep_always(rule: Rule) -> Path:
    """Add a rule to the policy that applies to every run, unless it is already there.

    Returns the policy's file. Raises PolicyError and OSError.
    """
    path = path_of(ALWAYS)
    opened = store.open_policy(path) if path.exists() else store.create(ALWAYS, _HEAD)
    if not any(_same(rule, kept.rule) for kept in opened.document.rules if kept.enabled):
        store.save_policy(opened, opened.document.add(rule))
    return path


def forget_always(rule: Rule) -> None:
    """Remove a rule from the policy that applies to every run.

    Raises PolicyError and OSError.
    """
    path = path_of(ALWAYS)
    if not path.exists():
        return
    opened = store.open_policy(path)
    same = [at for at, kept in enumerate(opened.document.rules) if _same(rule, kept.rule)]
    if same:
        store.save_policy(opened, opened.document.remove(same[-1]))


def _same(one: Rule, other: Rule | None) -> bool:
    return other is not None and replace(other, source=one.source, index=one.index) == one


_HEAD = """\
# Calls that you always allow. Runs with "Ask me" on read this file: a call that a rule here
# allows runs without asking, unless a policy denies it. Remove a rule to be asked again.
"""
