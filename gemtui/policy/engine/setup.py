"""The setup on which decisions depend besides the rules, and the types of their results.

The setup has the settings, flags and MCP servers; an evaluation or outcome is a bare result, and an
explanation is one with its reasons.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gemtui.policy.match.matching import CompiledRule
from gemtui.policy.model.rules import ApprovalMode, Call, Decision, Rule


@dataclass(frozen=True, slots=True, kw_only=True)
class McpTool:
    """A tool of an MCP server.

    `name`: the name that the server gives it in `tools/list`. In the CLI's name for the tool, this
    is preceded by `mcp_` and the server's name.
    """

    server: str
    name: str
    annotations: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """Everything a decision depends on, apart from the policy files and the mode.

    * `settings`: the merged settings.
    * `allowed_tools`: the values of `--allowed-tools`.
    * `mcp_tools`: the known MCP tools. For any other tool name of the form `mcp_<server>_<tool>`,
      the server names in the settings determine where the server part ends.
    * `workspace`: the run's folder; None leaves paths in commands unresolved.
    * `include_directories`: the values of `--include-directories`.
    * `home`: the CLI's folder, to which `~` in the settings' paths refers; None means the user's.
    * `stopped`: why the CLI doesn't start on this machine; None if it starts.
    * `gemini_only`: the files whose rules hold for calls of Gemini CLI alone, as in `Rule.source`.
    """

    settings: Mapping[str, Any] = field(default_factory=dict)
    allowed_tools: tuple[str, ...] = ()
    mcp_tools: tuple[McpTool, ...] = ()
    workspace: Path | None = None
    include_directories: tuple[Path, ...] = ()
    home: Path | None = None
    stopped: str | None = None
    gemini_only: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """A decision, with notes on how the engine made it.

    * `ready`: the rule that decided; None if no rule did, or if anything besides a rule was
      involved.
    * `matched`: the rule that matched first, if the engine then decided differently.
    * `note`: why the engine decided differently, as a clause.
    * `message`: the CLI's message to the model about a denial, unless it is the rule's own.
    * `stuck`: whether matching a pattern took too long, so the CLI would hang; `note` names the
      pattern.
    """

    decision: Decision
    ready: CompiledRule | None = None
    matched: CompiledRule | None = None
    note: str = ""
    message: str | None = None
    stuck: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """A decision without reasons.

    `offered`: whether the model sees the tool. `rule`: None if no rule matched, so that the mode's
    default decided. `found`: whether the CLI recognises the tool; if not, the call fails as not
    found, whatever the rules say, and the decision is deny. A tool called by a former name is found
    although that name is not offered. `setting`: the setting because of which the tool does not
    exist; "" if there is none.
    """

    decision: Decision
    offered: bool
    rule: Rule | None
    found: bool = True
    setting: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Considered:
    """A rule that was tried for a call.

    `matches`: whether the rule matched. `why`: why it did or didn't, as a clause.
    """

    rule: Rule
    matches: bool
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """The decision for a call, with its reasons.

    * `decision`: the decision in the given kind of run, headless or interactive. In headless runs,
      `ask_user` acts as a denial.
    * `offered`: whether the model sees the tool in that kind of run.
    * `found`: whether the CLI recognises the tool; if not, the call fails as not found. A tool that
      is called by a former name is found although that name is not offered.
    * `possible`: whether a tool of Gemini CLI can have the call's name. If not, the CLI never makes
      such a call, and rules for this name deny nothing.
    * `headless`: the decision if the run is headless: allow or deny.
    * `interactive`: the decision if the run is interactive: allow, deny or ask_user.
    * `because`: the reason, in one or more sentences.
    * `message`: the message to the model about a denial, usually a rule's denyMessage.
    * `considered`: the rules in the order in which they are tried.
    * `tool_refuses`: why the tool itself refuses the call, whatever the policy says; None if it
      doesn't.
    """

    call: Call
    mode: ApprovalMode
    decision: Decision
    offered: bool
    headless: Decision
    interactive: Decision
    rule: Rule | None
    because: str
    message: str | None
    considered: tuple[Considered, ...]
    found: bool = True
    possible: bool = True
    tool_refuses: str | None = None


def table_at(settings: Mapping[str, Any], *path: str) -> Mapping[str, Any]:
    """Return the table under successive keys of the settings; {} if there is none."""
    value: Any = settings
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value if isinstance(value, Mapping) else {}


def names_at(settings: Mapping[str, Any], *path: str) -> tuple[str, ...] | None:
    """Return the list of names under successive keys of the settings; None if not set."""
    *groups, last = path
    value = table_at(settings, *groups).get(last)
    if not isinstance(value, list | tuple):
        return None
    return tuple(item for item in value if isinstance(item, str))


def always_allow_off(settings: Mapping[str, Any]) -> bool:
    """Return whether the settings drop all rules with priority 950, even deny rules.

    The CLI itself writes rules with this priority when the user answers "always".
    """
    return bool(
        table_at(settings, "security").get("disableAlwaysAllow")
        or table_at(settings, "admin").get("secureModeEnabled")
    )


def fatal(setup: Setup, mode: ApprovalMode) -> str | None:
    """Return why the CLI would not start with this setup and mode; None if it starts."""
    off = table_at(setup.settings, "security").get("disableYoloMode")
    if mode is ApprovalMode.YOLO and (
        off or table_at(setup.settings, "admin").get("secureModeEnabled")
    ):
        return "the settings disable yolo mode, so Gemini CLI exits immediately"
    return setup.stopped
