"""Parse one object of the CLI's JSON stream, whichever CLI version wrote it.

Each field is found under all names that versions have used. No function here raises an exception or
keeps state. `stream.py` turns a whole stream into events.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec.json
import orjson
from msgspec import Meta, Struct

from gemtui.agent.events import DoneStatus, ResultStatus
from gemtui.jsonin import loads
from gemtui.transcript.parts import Part, instant, mapping, parts_of, plausible, string
from gemtui.transcript.tools import UNKNOWN_TOOL
from gemtui.transcript.usage import Usage

_USE_NESTS = ("functionCall", "function_call", "value")
_RESULT_NESTS = ("functionResponse", "function_response", "value")
_NAMES = ("toolName", "tool_name", "name")
_IDS = ("toolUseId", "tool_id", "id", "callId")
_INPUTS = ("input", "parameters", "args", "arguments")
_OUTPUTS = ("output", "result", "content", "response")
_MISSING = object()


class WireDelta(
    Struct, frozen=True, gc=False, tag_field="type", tag="message", forbid_unknown_fields=True
):
    """A fragment of an answer, as a message object with exactly these fields; `delta` is true.

    Almost all lines of a run are such objects.
    """

    timestamp: Annotated[datetime, Meta(tz=True)]
    role: Literal["assistant"]
    content: str
    delta: bool


_delta = msgspec.json.Decoder(WireDelta).decode


@dataclass(frozen=True, slots=True, kw_only=True)
class WireUse:
    """A tool_use object; `id` is empty if the object has none."""

    name: str
    id: str
    input: Mapping[str, Any]
    description: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class WireToolResult:
    """A tool_result object; `name` and `id` are empty if the object has none."""

    name: str
    id: str
    status: ResultStatus
    error_type: str
    output: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class WireError:
    """An error object; `message` is empty if the object has none."""

    message: str
    code: str | None
    recoverable: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class WireResult:
    """A result object.

    `dump`: the object itself as JSON, to show if there is no message. `models`: the names of the
    models that were called; None if not reported.
    """

    status: DoneStatus
    message: str
    code: str | None
    text: str | None
    duration_ms: int | None
    tokens: Usage | None
    models: tuple[str, ...] | None
    dump: str


def parse_line(line: bytes) -> Any:
    """Parse a line: a WireDelta if it is one, else any JSON value, as `loads` returns it.

    Fragments of an answer are parsed in half the time this way. Raises orjson.JSONDecodeError.
    """
    try:
        event = _delta(line)
    except ValueError:
        return loads(line)
    return event if event.delta else loads(line)


def time_ms(event: Part) -> int | None:
    """Return the event's timestamp in milliseconds since 1970; None if it has none."""
    time = instant(event.get("timestamp"))
    return None if time is None else milliseconds(time)


def milliseconds(time: datetime) -> int:
    """Return a time in milliseconds since 1970."""
    return round(time.timestamp() * 1000)


def message_text(event: Part) -> str:
    """Return the text of a message event: a string, one part or a list of parts."""
    content = event.get("content")
    if isinstance(content, str):
        return content
    return "".join(string(part.get("text")) for part in parts_of(content))


def tool_use(event: Part) -> WireUse:
    """Parse a tool_use object, even if the call is nested inside the object."""
    layers = _layers(event, _USE_NESTS)
    return WireUse(
        name=_word(layers, _NAMES) or UNKNOWN_TOOL,
        id=_word(layers, _IDS),
        input=_input(_first(layers, _INPUTS)),
        description=_word(layers, ("description",)) or None,
    )


def tool_result(event: Part) -> WireToolResult:
    """Parse a tool_result object, even if the response is nested inside the object."""
    layers = _layers(event, _RESULT_NESTS)
    output = _first(layers, _OUTPUTS)
    error = mapping(_first(layers, ("error",)))
    return WireToolResult(
        name=_word(layers, _NAMES),
        id=_word(layers, _IDS),
        status=_result_status(layers, error),
        error_type=string(error.get("type")),
        output=string(error.get("message")) or None if output is _MISSING else output,
    )


def is_refusal(result: WireToolResult, *, hidden: bool) -> bool:
    """Return whether an error result means that the call was not allowed.

    See assets/gemini-cli.md#refusals. `hidden`: whether the CLI has the tool but rules or the mode
    hide it, in which case the CLI reports the tool as "not found".
    """
    if result.error_type == "policy_violation":
        return True
    if result.error_type == "tool_not_registered":
        return hidden
    phrase = "requires user confirmation, which is not supported"
    return result.error_type == "unhandled_exception" and phrase in string(result.output)


def error(event: Part) -> WireError:
    """Parse an error object.

    The error is recoverable, which means that the run continues, if its severity is `warning` or if
    `recoverable` or `retryable` is true.
    """
    inner = mapping(event.get("error"))
    code = event.get("code") or inner.get("code") or inner.get("type")
    recoverable = (
        event.get("severity") == "warning"
        or event.get("recoverable") is True
        or event.get("retryable") is True
    )
    plain = event.get("error")
    message = string(event.get("message")) or string(inner.get("message"))
    return WireError(
        message=message or (plain if isinstance(plain, str) else ""),
        code=string(code) or None,
        recoverable=recoverable,
    )


def result(event: Part) -> WireResult:
    """Parse a result object, whichever CLI version's status words it uses."""
    problem = error(event)
    stats = mapping(event.get("stats")) or mapping(event.get("usage"))
    duration = event.get("duration_ms", stats.get("duration_ms"))
    text = event.get("result", event.get("response"))
    return WireResult(
        status=_done_status(event, problem),
        message=problem.message,
        code=problem.code,
        text=text if isinstance(text, str) else None,
        duration_ms=duration if type(duration) is int and duration > 0 else None,
        tokens=_tokens(stats),
        models=tuple(mapping(stats.get("models"))) or None,
        dump=orjson.dumps(event, default=str).decode(),
    )


_STATUSES = {
    "success": DoneStatus.SUCCESS,
    "completed": DoneStatus.SUCCESS,
    "ok": DoneStatus.SUCCESS,
    "interrupted": DoneStatus.INTERRUPTED,
    "cancelled": DoneStatus.INTERRUPTED,
    "canceled": DoneStatus.INTERRUPTED,
    "aborted": DoneStatus.INTERRUPTED,
    "max_turns": DoneStatus.MAX_TURNS,
    "error": DoneStatus.ERROR,
    "failed": DoneStatus.ERROR,
}
_FATAL = {
    "FatalTurnLimitedError": DoneStatus.MAX_TURNS,
    "FatalCancellationError": DoneStatus.INTERRUPTED,
}


def _done_status(event: Part, problem: WireError) -> DoneStatus:
    fatal = _FATAL.get(problem.code or "")
    if fatal is not None:
        return fatal
    status = _STATUSES.get(string(event.get("status")).lower())
    if status is not None:
        return status
    return DoneStatus.ERROR if problem.message else DoneStatus.SUCCESS


def _tokens(stats: Part) -> Usage | None:
    """Return the token counts in a result's statistics; None if there are none.

    The counts exclude thoughts, but include the calls that choose a model.
    """

    def count(*names: str) -> int | None:
        for name in names:
            number = stats.get(name)
            if type(number) is int:
                return number
        return None

    usage = Usage(
        input=count("input_tokens"),
        output=count("output_tokens"),
        cached=count("cached"),
        total=count("total_tokens"),
    )
    return None if usage == Usage() else plausible(usage)


def _result_status(layers: list[Part], error: Part) -> ResultStatus:
    statuses = {string(layer.get("status")).lower() for layer in layers}
    if "denied" in statuses:
        return ResultStatus.DENIED
    flagged = any(layer.get(name) is True for layer in layers for name in ("isError", "is_error"))
    if flagged or statuses & {"error", "failed", "failure"} or error:
        return ResultStatus.ERROR
    return ResultStatus.SUCCESS


def _layers(event: Part, nests: tuple[str, ...]) -> list[Part]:
    """Return the object and up to two nested objects, outermost first.

    `nests`: the names of the fields that may contain a nested object.
    """
    layers = [event]
    for _ in range(2):
        inner = next((layers[-1][n] for n in nests if isinstance(layers[-1].get(n), dict)), None)
        if inner is None:
            break
        layers.append(inner)
    return layers


def _first(layers: list[Part], names: tuple[str, ...]) -> Any:
    for name in names:
        for layer in layers:
            if name in layer:
                return layer[name]
    return _MISSING


def _word(layers: list[Part], names: tuple[str, ...]) -> str:
    for name in names:
        for layer in layers:
            word = string(layer.get(name))
            if word:
                return word
    return ""


def _input(value: object) -> Mapping[str, Any]:
    """Return a call's arguments as an object.

    A string that holds a JSON object is parsed, any other string becomes `{raw}`, and any other
    value becomes `{}`.
    """
    if isinstance(value, str):
        try:
            parsed = orjson.loads(value.encode("utf-8", "replace"))
        except orjson.JSONDecodeError:
            return {"raw": value}
        return parsed if isinstance(parsed, dict) else {"raw": value}
    return mapping(value) if value is not _MISSING else {}
