"""What is asked of the policy engine beside the rules, and its answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gemtui.policy.model.rules import ApprovalMode, Call, Decision, Rule


@dataclass(frozen=True, slots=True, kw_only=True)
class McpTool:
    """A tool of an MCP server, as `tools/list` names it; `name` is the server's own, short one."""

    server: str
    name: str
    annotations: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """What takes part in a decision beside the policy files.

    `settings`: the merged settings.json. `allowed_tools`: `--allowed-tools`. `mcp_tools`: what is
    known of the servers' tools; a name `mcp_<server>_<tool>` is split by the settings' servers
    when it is not there. `workspace`: the run's folder; None = the paths in commands are not
    resolved against one.
    """

    settings: Mapping[str, Any] = field(default_factory=dict)
    allowed_tools: tuple[str, ...] = ()
    mcp_tools: tuple[McpTool, ...] = ()
    workspace: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The decision alone, for many calls. `rule`: None = no rule, the mode's default decided.

    `found`: False = the call fails as not found, whatever the rules say; the decision is deny then.
    A tool that is called by its old name is found though it is not offered.
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
    """The answer to "what would happen to this call".

    `decision`: as asked (headless or interactive; headless an ask is `ask_user` here and acts as a
    refusal). `headless`: allow or deny; `interactive`: all three. `offered`: whether the model is
    told of the tool at all in the situation asked for; a call of one that is not offered fails as
    not found, unless it uses an old name: then `found` is true all the same. `because`: a sentence.
    `message`: what the model is told beside a refusal, a rule's denyMessage mostly.
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
