"""The policy engine's types: rules, tiers, decisions, calls and findings.

A `Rule` has every field of a `[[rule]]` table; `gemtui.policy.file.rule_codec` reads and writes
these fields. A `RecordedCall` is a call that a stored session contains.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import IntEnum, StrEnum
from pathlib import Path
from typing import Any, NamedTuple

from gemtui.agents import Agent
from gemtui.calls.paths import PATH_ARGUMENTS, is_windows
from gemtui.errors import OptionError

CHECKED_AGAINST = "0.61.0"
"""The version of Gemini CLI whose decisions were observed and are reproduced."""


GEMTUI = "gemtui"
"""The source of gemtui's own rules for calls of other agents."""


class Decision(StrEnum):
    """A rule's decision; in headless runs, `ask_user` means deny."""

    ALLOW = "allow"
    DENY = "deny"
    ASK_USER = "ask_user"


class ApprovalMode(StrEnum):
    """The CLI's approval modes, as its command line spells them."""

    DEFAULT = "default"
    AUTO_EDIT = "auto_edit"
    PLAN = "plan"
    YOLO = "yolo"

    @property
    def in_rules(self) -> str:
        """How a rule's `modes` spells the mode; `auto_edit` would be an error there."""
        return "autoEdit" if self is ApprovalMode.AUTO_EDIT else self.value


class Tier(IntEnum):
    """The places that rules come from; in a higher tier, even priority 0 beats all lower tiers."""

    BUILTIN = 1
    EXTENSION = 2
    WORKSPACE = 3
    USER = 4
    ADMIN = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A rule; the defaults are the CLI's defaults for missing fields.

    * `tools`: the names under toolName; () means none were given, so any tool. `tool_list`: whether
      toolName was written as an array.
    * `command_prefixes`, `prefix_list`: the same for commandPrefix.
    * `modes`: spelled as in rules (`autoEdit`); () means all modes.
    * `interactive`: True if the rule applies only to interactive runs, False if only to headless
      runs.
    * `priority`: 0 to 999 within the tier; a CLI setting that acts as a rule may have a fraction.
    * `source`: the file, or the name of another origin (`--allowed-tools`, `built-in`). `index`:
      the rule's 1-based number in that file.
    * `more`: keys the CLI doesn't know.
    """

    decision: Decision
    priority: float
    tools: tuple[str, ...] = ()
    tool_list: bool = False
    mcp_name: str | None = None
    subagent: str | None = None
    command_prefixes: tuple[str, ...] = ()
    prefix_list: bool = False
    command_regex: str | None = None
    args_pattern: str | None = None
    annotations: Mapping[str, Any] | None = None
    modes: tuple[str, ...] = ()
    interactive: bool | None = None
    allow_redirection: bool | None = None
    deny_message: str | None = None
    tier: Tier = Tier.USER
    source: str = ""
    index: int = 0
    more: Mapping[str, Any] = field(default_factory=dict)

    @property
    def effective(self) -> float:
        """The number by which the engine sorts: 4.1 for tier USER and priority 100."""
        return round(self.tier + self.priority / 1000, 6)

    @property
    def conditional(self) -> bool:
        """Whether the rule has a condition on a call's arguments, such as a commandPrefix."""
        return bool(self.command_prefixes or self.command_regex or self.args_pattern)


@dataclass(frozen=True, slots=True, kw_only=True)
class SafetyChecker:
    """A `[[safety_checker]]` table: a further check of calls that rules don't deny.

    `rule`: selects the calls to check; its decision has no meaning. `external`: whether the checker
    is a separate program, not part of the CLI. `context`: the names of the data passed to the
    checker (`required_context`); None means everything.
    """

    rule: Rule
    name: str
    external: bool = False
    config: Mapping[str, Any] = field(default_factory=dict)
    context: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call to be decided.

        Call("write_file", {"file_path": "a.txt", "content": ""})

    `args`: as the model sent them. `subagent`: the agent that makes the call; None means the main
    agent.

    Another program than Gemini CLI is named by `agent`; then `tool` and `args` are translated
    (`gemtui.policy.model.foreign`), `own` is the tool's name before, and `server` its MCP server.
    """

    tool: str
    args: Mapping[str, Any] = field(default_factory=dict)
    subagent: str | None = None
    agent: Agent = Agent.GEMINI
    own: str = ""
    server: str | None = None

    @property
    def is_foreign(self) -> bool:
        """Whether another program than Gemini CLI makes the call."""
        return self.agent is not Agent.GEMINI

    @classmethod
    def of(cls, value: Call | Mapping[str, Any]) -> Call:
        """Return a call unchanged, or create one from a mapping.

        The mapping has the form `{"tool": …, "args": {…}, "subagent": …}`. Only `tool` is required,
        and other keys are ignored, so that a line from a report or a log can be passed. Raises
        OptionError for an invalid value.
        """
        if isinstance(value, Call):
            return value
        tool, args = value.get("tool"), value.get("args")
        subagent = value.get("subagent")
        if not isinstance(tool, str) or not tool:
            raise OptionError('call: no tool is named: write {"tool": "glob", "args": {...}}')
        if not isinstance(args, Mapping | None):
            raise OptionError("call: args must be a JSON object")
        if not isinstance(subagent, str | None):
            raise OptionError("call: subagent must be a string")
        return cls(tool, args or {}, subagent)


class Severity(StrEnum):
    """The severity of a finding.

    ERROR: the CLI drops or ignores the part in question, or treats it as no restriction at all.
    WARNING: the part was probably not intended.
    """

    ERROR = "error"
    WARNING = "warning"


class FindingKind(StrEnum):
    """The kinds of findings that programs may look for by name."""

    NEVER_MATCHES = "never_matches"
    """The rule names something that no tool is called."""
    SAME_NAME = "same_name"
    """Two tools get the same name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A problem in a policy file that the user should know about before a run.

    `rule`: the rule's 1-based number; 0 means the file as a whole. `field`: the key as the file
    spells it; "" means the rule as a whole. `way_out`: what to write instead; "" if there is
    nothing to suggest. `mode`: the only approval mode in which the problem matters; None means all
    modes. `kind`: None for all findings that have no name of their own.
    """

    file: Path | str
    rule: int
    field: str
    severity: Severity
    message: str
    way_out: str = ""
    mode: ApprovalMode | None = None
    kind: FindingKind | None = None


ARGUMENT = 120
"""The maximum length, in characters, of a reference's `argument`."""


class CallStatus(StrEnum):
    """The ways in which a recorded call can have ended."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    DENIED = "denied"
    REFUSED = "refused"
    """The tool itself refused the call."""
    UNKNOWN = "unknown"
    """The session does not contain the call's outcome."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedCall:
    """A recorded call, as rules see it.

    `session`: the id of the session that contains the call. `id`: the call's own id, which may be
    "". `ended`: how the call ended. `project`: the folder the session worked in; None if unknown.
    The approval mode in force at that time is not recorded.
    """

    call: Call
    session: str
    id: str
    ended: CallStatus
    project: Path | None = None
    time: datetime | None = None

    @property
    def is_powershell(self) -> bool:
        """Whether this is a command that an agent ran on Windows, and so in PowerShell.

        Claude Code's tool of that name runs bash there, too.
        """
        is_command = self.call.tool == "run_shell_command" and self.call.own != "Bash"
        return is_command and is_windows(str(self.project))


class Reference(NamedTuple):
    """Enough about a recorded call to find it again and to show it in a list.

    `tool`: the name by which the agent calls it. `argument`: the call's most informative argument,
    as returned by `short`.
    """

    session: str
    id: str
    tool: str
    argument: str
    ended: CallStatus

    @classmethod
    def to(cls, recorded: RecordedCall) -> Reference:
        """Return a reference to a recorded call."""
        call = recorded.call
        tool = call.own or call.tool
        return cls(recorded.session, recorded.id, tool, short(call), recorded.ended)


_TELLING = ("command", *PATH_ARGUMENTS, "dir_path", "pattern", "query", "url")


def short(call: Call) -> str:
    """Return a call's most informative argument, such as its command or path.

    If there is none, the first string among the arguments is returned. The result has at most 120
    characters, and no blanks at the ends of its lines; control characters are not escaped.
    """
    args = call.args
    for name in _TELLING:
        text = args.get(name)
        if isinstance(text, str) and text:
            break
    else:
        text = next((value for value in args.values() if isinstance(value, str) and value), "")
    text = text[: ARGUMENT * 4]
    if "\n" not in text:
        return text.strip(" \t")[:ARGUMENT]
    lines = text.split("\n")
    return "\n".join(filter(None, (line.strip(" \t") for line in lines)))[:ARGUMENT]


class FindingDraft(NamedTuple):
    """A finding without its file and rule number; the fields are those of `Finding`."""

    field: str
    message: str
    way_out: str = ""
    severity: Severity = Severity.ERROR
    mode: ApprovalMode | None = None
    kind: FindingKind | None = None


def warned(
    field: str, message: str, way_out: str = "", *, mode: ApprovalMode | None = None
) -> FindingDraft:
    """Return a warning: the CLI accepts the input, but it was probably not intended.

    `field`: the key that the warning is about. `way_out`: what to write instead. `mode`: the only
    approval mode the warning concerns; None means all modes.
    """
    return FindingDraft(field, message, way_out, Severity.WARNING, mode)


def findings(drafts: Iterable[FindingDraft], file: Path | str, rule: int) -> Iterator[Finding]:
    """Turn drafts about one rule into findings.

    `rule`: the rule's 1-based number in the file; 0 means the file as a whole.
    """
    for draft in drafts:
        yield Finding(file=file, rule=rule, **draft._asdict())
