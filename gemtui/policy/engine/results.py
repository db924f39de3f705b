"""The policy engine's input apart from the rules, and its answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gemtui.policy.match.matching import CompiledRule
from gemtui.policy.model.rules import ApprovalMode, Call, Decision, Rule


@dataclass(frozen=True, slots=True, kw_only=True)
class McpTool:
    """A tool of an MCP server, as returned by `tools/list`; `name` is the short one."""

    server: str
    name: str
    annotations: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """Everything except the policy files that a decision depends on.

    * `settings`: the merged settings.
    * `allowed_tools`: the values of `--allowed-tools`.
    * `mcp_tools`: the servers' known tools. A name `mcp_<server>_<tool>` that is not among them is
      split by the servers that the settings name.
    * `workspace`: the run's folder; None = paths in commands are not resolved.
    * `include_directories`: the values of `--include-directories`.
    * `stopped`: why the CLI does not start on this machine; None = it does.
    """

    settings: Mapping[str, Any] = field(default_factory=dict)
    allowed_tools: tuple[str, ...] = ()
    mcp_tools: tuple[McpTool, ...] = ()
    workspace: Path | None = None
    include_directories: tuple[Path, ...] = ()
    stopped: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """A decision.

    * `ready`: the rule that decided; None = no rule, or not the rule alone.
    * `matched`: the rule that matched first, if the engine then decided otherwise.
    * `note`: why the engine did, as a clause in plain words.
    * `message`: the CLI's message to the model about a denial, unless it is the rule's.
    * `stuck`: a pattern did not finish, so the CLI would hang; the note names it.
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

    `rule`: None = no rule; the mode's default decided. `found`: False = the call fails as not
    found, whatever the rules say, and the decision is deny. A tool that is called by an old name is
    found although it is not offered.
    """

    decision: Decision
    offered: bool
    rule: Rule | None
    found: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Considered:
    """A rule that was tried: whether it matched, and the reason."""

    rule: Rule
    matches: bool
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """A decision on a call, with its reasons.

    * `decision`: for the situation asked about, headless or interactive; in headless runs,
      `ask_user` acts as a denial.
    * `offered`: whether the model sees the tool in that situation. A call of a tool that is not
      offered fails as not found, unless `found` is true, as for an old name.
    * `headless`: allow or deny.
    * `interactive`: allow, deny or ask_user.
    * `because`: the reason as a sentence.
    * `message`: the message to the model about a denial, mostly a rule's denyMessage.
    * `tool_refuses`: why the tool itself refuses the call whatever the policy says; None = it does
      not.
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
    tool_refuses: str | None = None
