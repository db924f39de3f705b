"""The events of a run, which are the same for every agent.

Python names are snake_case. `AgentEvent.to_dict` returns the JSON form with camelCase names, which
`gemtui run --json` prints, one object per line.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, cast

from msgspec import Struct
from msgspec.structs import asdict

from gemtui.transcript.usage import Usage


class ResultStatus(StrEnum):
    """The status of a finished tool call in the stream."""

    SUCCESS = "success"
    ERROR = "error"
    DENIED = "denied"


class DoneStatus(StrEnum):
    """The status of a finished run in its `done` event."""

    SUCCESS = "success"
    ERROR = "error"
    INTERRUPTED = "interrupted"
    MAX_TURNS = "max_turns"


class Init(Struct, frozen=True, kw_only=True):
    """The first event of every run.

    `model`: the requested model, possibly an alias such as `auto`. `tools`: the names of the tools
    offered to the model; None if unknown. `capabilities`: the features of the CLI's command line,
    as returned by `Capabilities.to_dict`; None if unknown.
    """

    model: str
    cwd: str
    tools: tuple[str, ...] | None = None
    capabilities: Mapping[str, Any] | None = None


class Prompted(Struct, frozen=True, kw_only=True):
    """A queued prompt has been sent, and the agent continues with it."""

    content: str


class TextSaid(Struct, frozen=True, kw_only=True):
    """A complete piece of the answer: the text of all deltas since the last piece."""

    content: str


class TextDelta(Struct, frozen=True, kw_only=True, gc=False):
    """A fragment of the answer."""

    delta: str


class Thinking(Struct, frozen=True, kw_only=True):
    """A summary of a thought.

    Gemini's stream contains no thoughts, but other agents' streams may.
    """

    summary: str


class ToolUse(Struct, frozen=True, kw_only=True):
    """The start of a tool call."""

    tool_name: str
    tool_use_id: str
    input: Mapping[str, Any]
    description: str | None = None


class ToolResult(Struct, frozen=True, kw_only=True):
    """The end of a tool call.

    `output`: any JSON value; None if the stream contains no output. `display`: what the call has
    changed, as in a stored session (`resultDisplay`); None if the stream doesn't tell.
    """

    tool_use_id: str
    tool_name: str
    status: ResultStatus
    output: Any = None
    duration_ms: int | None = None
    display: Mapping[str, Any] | None = None


class ErrorSaid(Struct, frozen=True, kw_only=True):
    """An error; the run continues if `recoverable` is true."""

    message: str
    recoverable: bool
    code: str | None = None


class PermissionRequest(Struct, frozen=True, kw_only=True):
    """A question the user must answer before a tool call is made.

    `tool_use_id`: None if unknown, for example for a subagent's call. `reason`: why the policy
    asks.
    """

    tool_name: str
    tool_use_id: str | None
    input: Mapping[str, Any]
    reason: str | None = None


class TurnDone(Struct, frozen=True, kw_only=True):
    """The end of the answer to a prompt, from an agent whose process takes more prompts.

    `result`: the answer, or the error. `tokens`: those of this prompt. `cost`: US dollars for all
    prompts so far, as the agent counts them; None if unknown.
    """

    status: DoneStatus
    result: str | None = None
    tokens: Usage | None = None
    cost: float | None = None


class Done(Struct, frozen=True, kw_only=True):
    """The last event of every run.

    * `result`: the answer, or the error message of a failed run.
    * `resume_token`: the id of the session to resume: the new session or the one that was resumed.
    * `tool_uses`: the number of distinct tool calls.
    * `tokens`: the token counts, never an estimate; None if unknown.
    * `models`: the models that were called, including the one that only chooses a model for `auto`;
      None if unknown.
    """

    status: DoneStatus
    duration_ms: int
    result: str | None = None
    resume_token: str | None = None
    tool_uses: int = 0
    tokens: Usage | None = None
    models: tuple[str, ...] | None = None


Payload = (
    Init
    | Prompted
    | TextSaid
    | TextDelta
    | Thinking
    | ToolUse
    | ToolResult
    | ErrorSaid
    | PermissionRequest
    | TurnDone
    | Done
)

_TYPES: dict[type[Any], str] = {
    Init: "init",
    Prompted: "prompt",
    TextSaid: "text",
    TextDelta: "text_delta",
    Thinking: "thinking",
    ToolUse: "tool_use",
    ToolResult: "tool_result",
    ErrorSaid: "error",
    PermissionRequest: "permission_request",
    TurnDone: "turn_done",
    Done: "done",
}
_NULLED = {"output", "tools", "capabilities", "tool_use_id"}
"""Fields that are null in JSON when they are None; other fields are omitted then."""
PARENT_CALL = "parentToolUseId"
"""The name, in an event's metadata, of the call that started the subagent that the event is of."""
Name = TypeVar("Name", bound=str, covariant=True)
Said = TypeVar("Said", covariant=True)


class Event(Struct, Generic[Name, Said], frozen=True, kw_only=True, gc=False):
    """One event of a run.

    `timestamp`: milliseconds since 1970. `session_id`: None if not yet known.
    """

    payload: Said
    timestamp: int
    session_id: str | None = None
    agent: str = "gemini"
    metadata: Mapping[str, Any] | None = None

    @property
    def type(self) -> Name:
        """The name of the payload's type in JSON, such as `tool_use`."""
        return cast(Name, _TYPES[type(self.payload)])

    def to_dict(self) -> dict[str, Any]:
        """Return the event's JSON: `{type, agent, timestamp, sessionId, payload, …}`."""
        event = {
            "type": self.type,
            "agent": self.agent,
            "timestamp": self.timestamp,
            "sessionId": self.session_id,
            "payload": _payload(cast(Payload, self.payload)),
        }
        return event if self.metadata is None else event | {"metadata": dict(self.metadata)}


if TYPE_CHECKING:
    AgentEvent = (
        Event[Literal["init"], Init]
        | Event[Literal["prompt"], Prompted]
        | Event[Literal["text"], TextSaid]
        | Event[Literal["text_delta"], TextDelta]
        | Event[Literal["thinking"], Thinking]
        | Event[Literal["tool_use"], ToolUse]
        | Event[Literal["tool_result"], ToolResult]
        | Event[Literal["error"], ErrorSaid]
        | Event[Literal["permission_request"], PermissionRequest]
        | Event[Literal["turn_done"], TurnDone]
        | Event[Literal["done"], Done]
    )
else:
    AgentEvent = Event
"""Any event. From `event.type`, type checkers infer the class of `event.payload`."""


def _payload(payload: Payload) -> dict[str, Any]:
    values = asdict(payload)
    if isinstance(payload, TurnDone) and payload.tokens is not None:
        values["tokens"] = payload.tokens.to_dict()
    if isinstance(payload, Done):
        usage: dict[str, Any] = {"toolUses": values.pop("tool_uses")}
        tokens = values.pop("tokens")
        if tokens is not None:
            usage["tokens"] = tokens.to_dict()
        values["usage"] = usage
    return {
        _camel(name): list(value) if isinstance(value, tuple) else value
        for name, value in values.items()
        if value is not None or name in _NULLED
    }


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)
