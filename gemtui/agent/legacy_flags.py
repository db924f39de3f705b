"""Express policy rules as flags and settings, for a CLI without policy files.

Such a CLI (before 0.30) knows three things (seen with 0.25.0 and 0.28.2). A tool in
`--allowed-tools` needs no confirmation; `run_shell_command(git)` allows a command prefix, and then
no other command is run. `tools.exclude` removes a tool. `tools.core` removes all other tools. The
CLI accepts a denial by prefix but ignores it. Headless runs can't ask, so asking means denying here
as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from gemtui.errors import OptionError
from gemtui.policy.model.rules import ApprovalMode, Decision, Rule

NEWER = "update it to 0.30 or newer"
NO_SERVER = "no-server"
"""A name that no MCP server has.

Allowing only this server removes the tools of all servers, whereas `tools.core` does not.
"""

_SEARCHES = frozenset({"grep_search", "search_file_content"})
"""The two names of one tool: the name since 0.28, and the one before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LegacyFlags:
    """The flags and settings that replace policy rules.

    `core`: the only tools that exist; None = all tools. `notes`: describes the rules that could not
    be expressed. Because `core` is meant to exclude all MCP servers, too, `NO_SERVER` must then be
    the only server named.
    """

    allowed: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    core: tuple[str, ...] | None = None
    notes: tuple[str, ...] = ()

    @property
    def flags(self) -> tuple[str, ...]:
        """The arguments for the command line."""
        return tuple(f"--allowed-tools={name}" for name in self.allowed)

    @property
    def settings(self) -> dict[str, Any]:
        """The `tools` table of the settings."""
        tools: dict[str, Any] = {"exclude": list(self.exclude)} if self.exclude else {}
        if self.core is not None:
            tools["core"] = list(self.core)
        return tools


@dataclass(frozen=True, slots=True, kw_only=True)
class _ToolRules:
    """The rules that apply to one tool.

    `prefixes`: prefixes of commands that are allowed before `last` is applied.
    """

    prefixes: tuple[str, ...]
    last: Rule | None

    @property
    def open(self) -> bool:
        """Whether some calls of the tool may run."""
        return bool(self.prefixes) or self._decides(Decision.ALLOW)

    @property
    def shut(self) -> bool:
        """Whether no call of the tool may run."""
        return self.last is not None and not self.open

    def words(self, tool: str) -> Iterator[str]:
        """Yield the values of `--allowed-tools` for the tool."""
        if self._decides(Decision.ALLOW):
            yield tool
        elif self.prefixes:
            yield from (f"{tool}({prefix})" for prefix in self.prefixes)

    def _decides(self, decision: Decision) -> bool:
        return self.last is not None and self.last.decision is decision


def legacy_flags_for(rules: Iterable[Rule], mode: ApprovalMode | None) -> LegacyFlags:
    """Return the flags that replace these rules in a headless run.

    `rules`: in load order. `mode`: the run's approval mode; yolo allows everything anyway. Raises
    OptionError for a rule whose denials would be lost. An allow rule that can't be expressed is
    left out and noted, because that only denies more.
    """
    mode = mode or ApprovalMode.DEFAULT
    here = [rule for rule in rules if _counts(rule, mode)]
    here.sort(key=lambda rule: -rule.effective)
    expressible = [rule for rule in here if _why_not(rule) is None]
    others = [rule for rule in here if _why_not(rule) is not None]
    by_tool = {tool: _rules_of_tool(tool, expressible, others, mode) for tool in _names(here)}
    rest = _rules_of_tool("*", expressible, others, mode)
    words = (word for tool, found in by_tool.items() for word in found.words(tool))
    return LegacyFlags(
        allowed=() if mode is ApprovalMode.YOLO else tuple(words),
        exclude=tuple(tool for tool, found in by_tool.items() if found.shut),
        core=tuple(tool for tool, found in by_tool.items() if found.open) if rest.shut else None,
        notes=tuple(_notes(others, rest)),
    )


def _counts(rule: Rule, mode: ApprovalMode) -> bool:
    return rule.interactive is not True and (not rule.modes or mode.in_rules in rule.modes)


def _names(rules: Iterable[Rule]) -> list[str]:
    """Return the tools that the rules name, sorted."""
    return sorted({tool for rule in rules for tool in _tools(rule) if "*" not in tool})


def _tools(rule: Rule) -> frozenset[str]:
    named = frozenset(rule.tools)
    return named | _SEARCHES if named & _SEARCHES else named


def _why_not(rule: Rule) -> str | None:
    """Return why a rule can't be expressed by flags or settings; None = it can."""
    if rule.subagent is not None:
        return "rules for one subagent"
    if rule.mcp_name is not None or any(tool.startswith("mcp_") for tool in rule.tools):
        return "rules for tools of MCP servers"
    if rule.annotations is not None:
        return "rules on tool annotations"
    if rule.command_prefixes:
        if any("," in prefix or ")" in prefix for prefix in rule.command_prefixes):
            return "command prefixes with a comma or a bracket"
        return None if rule.decision is Decision.ALLOW else "rules that deny a command"
    if rule.conditional:
        return "patterns for arguments"
    return None


def _rules_of_tool(
    tool: str, expressible: Sequence[Rule], others: Sequence[Rule], mode: ApprovalMode
) -> _ToolRules:
    """Return the rules that apply to a tool, or "*" for tools that no rule names.

    Raises OptionError for a rule whose denials would be lost.
    """
    prefixes: list[str] = []
    last = None
    for rule in expressible:
        if not _meets(rule, tool):
            continue
        if not rule.command_prefixes:
            last = rule
            break
        prefixes += rule.command_prefixes
    found = _ToolRules(prefixes=tuple(dict.fromkeys(prefixes)), last=last)
    if lost := next((rule for rule in others if _lost(rule, tool, found)), None):
        raise _refusal(lost, str(_why_not(lost)))
    if prefixes and mode is ApprovalMode.YOLO and last and last.decision is not Decision.ALLOW:
        raise _refusal(last, "command prefixes that are exceptions in yolo mode")
    return found


def _meets(rule: Rule, tool: str) -> bool:
    return not {tool, "*"}.isdisjoint(_tools(rule))


def _lost(rule: Rule, tool: str, found: _ToolRules) -> bool:
    """Return whether a denial would be lost because its rule can't be expressed."""
    if rule.decision is Decision.ALLOW or found.shut:
        return False
    beaten = found.last is not None and found.last.effective > rule.effective
    return not beaten and (_meets(rule, tool) or (tool == "*" and _beyond(rule)))


def _beyond(rule: Rule) -> bool:
    """Return whether the rule applies to any tool, or to tools of MCP servers."""
    return not rule.tools or any(tool.startswith("mcp_") for tool in rule.tools)


def _refusal(rule: Rule, what: str) -> OptionError:
    return OptionError(
        f"{_place(rule)} denies calls, but this version of Gemini CLI doesn't support {what}: "
        f"{NEWER}, or leave the rule out"
    )


def _place(rule: Rule) -> str:
    return f"{rule.source}: rule {rule.index}" if rule.source else "a rule of this run"


def _notes(others: Iterable[Rule], rest: _ToolRules) -> Iterator[str]:
    for rule in others:
        if rule.decision is Decision.ALLOW:
            yield (
                f"{_place(rule)} has no effect: this version of Gemini CLI doesn't support "
                f"{_why_not(rule)} ({NEWER})"
            )
    if rest.open:
        yield "this version of Gemini CLI can allow all tools only in yolo mode"
