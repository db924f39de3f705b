"""What the policy engine is given beside the rules, and what it answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gemtui.policy.match.matching import CompiledRule
from gemtui.policy.model.rules import ApprovalMode, Call, Decision, Rule


@dataclass(frozen=True, slots=True, kw_only=True)
class McpTool:
    """A tool of an MCP server, as `tools/list` returns it; `name` is the server's, short one."""

    server: str
    name: str
    annotations: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """What takes part in a decision beside the policy files.

    `settings`: the merged settings. `allowed_tools`: as `--allowed-tools`. `mcp_tools`: the
    servers' tools, as far as known; a name `mcp_<server>_<tool>` that is not among them is split by
    the servers that the settings name. `workspace`: the run's folder; None = paths in commands are
    not resolved. `include_directories`: as `--include-directories`. `stopped`: why the CLI does not
    start on this machine; None = it does.
    """

    settings: Mapping[str, Any] = field(default_factory=dict)
    allowed_tools: tuple[str, ...] = ()
    mcp_tools: tuple[McpTool, ...] = ()
    workspace: Path | None = None
    include_directories: tuple[Path, ...] = ()
    stopped: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """A decision. `ready`: the rule that decided; None = no rule, or not the rule alone.

    `matched`: the rule that matched first, if the engine then decided otherwise. `note`: why it
    did, a clause in plain words. `message`: what the CLI tells the model about a refusal, if that
    does not come from the rule. `stuck`: a pattern did not end, so that the CLI would not either;
    the note says which.
    """

    decision: Decision
    ready: CompiledRule | None = None
    matched: CompiledRule | None = None
    note: str = ""
    message: str | None = None
    stuck: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """A decision without reasons. `rule`: None = no rule, the mode's default decided.

    `found`: False = the call fails as not found, whatever the rules say, and the decision is deny.
    A tool that is called by an old name is found though it is not offered.
    """

    decision: Decision
    offered: bool
    rule: Rule | None
    found: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Considered:
    """A rule that was looked at: whether it matched, and why or why not."""

    rule: Rule
    matches: bool
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """A decision on a call, with its reasons.

    `decision`: as asked for, headless or interactive; headless, `ask_user` acts as a refusal.
    `headless`: allow or deny. `interactive`: allow, deny or ask_user. `offered`: whether the model
    is told of the tool in the situation that was asked for; a call of a tool that is not offered
    fails as not found, unless `found` is true, as for an old name. `because`: one sentence.
    `message`: what the model is told about a refusal, mostly a rule's denyMessage.
    `tool_refuses`: why the tool itself refuses the call whatever the policy says; None = it does
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
