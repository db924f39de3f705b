"""The dialect of Qwen Code: its stored lines as records of the inner form (see `dialect`).

The lines are described in assets/agents.md#qwen-code.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from gemtui.sessions.read.dialect import Record
from gemtui.transcript.content import text_of
from gemtui.transcript.parts import mapping, objects, string

_SKIPPED = (
    "at_command",
    "attribution_snapshot",
    "background_task_completed",
    "branch_checkpoint",
    "file_history_snapshot",
    "goal_runtime",
    "goal_state",
    "goal_turn_end",
    "omni_recall",
    "parent_session",
    "rewind",
    "session_artifact_event",
    "session_artifact_snapshot",
    "session_model",
    "session_source",
    "session_sources_snapshot",
    "turn_result",
    "ui_telemetry",
    "user_text_elements",
)
"""Subtypes of lines that hold nothing of the conversation."""

_STRING = rb'"(?:[^"\\]|\\.)*"'
_SKIPPED_LINE = re.compile(
    rb'\{"uuid":S,"parentUuid":(?:null|S),"sessionId":S,"timestamp":S,"type":"system",'
    rb'(?:"[a-zA-Z]+":S,)*?"subtype":"(?:'.replace(b"S", _STRING)
    + "|".join(_SKIPPED).encode()
    + rb')"'
)
"""The beginning of such a line, as Qwen Code writes it."""

_BY_USER = (None, "mid_turn_user_message", "realtime_message")
_COUNTS = {
    "input": "promptTokenCount",
    "output": "candidatesTokenCount",
    "cached": "cachedContentTokenCount",
    "thoughts": "thoughtsTokenCount",
    "tool": "toolUsePromptTokenCount",
    "total": "totalTokenCount",
}


def wants(line: bytes) -> bool:
    """Return whether a line has to be parsed; see `Dialect`."""
    return _SKIPPED_LINE.match(line) is None


def translate(line: Mapping[str, Any]) -> Record | None:
    """Return a parsed line as a record; see `Dialect`."""
    if line.get("subtype") in _SKIPPED:
        return None
    match line.get("type"):
        case "user":
            return _user(line)
        case "assistant":
            return _answer(line)
        case "tool_result":
            return _record(line, "user", [_reply(line, part) for part in _replies(line)])
        case "system":
            return _system(line)
        case kind:
            return {"type": string(kind)}


def _record(line: Record, kind: str, content: object) -> dict[str, Any]:
    return {
        "id": line.get("uuid"),
        "timestamp": line.get("timestamp"),
        "type": kind,
        "content": content,
    }


def _parts(line: Record) -> list[Record]:
    return objects(mapping(line.get("message")).get("parts"))


def _user(line: Record) -> Record:
    shown = string(mapping(line.get("systemPayload")).get("displayText"))
    parts = [part for part in _parts(line) if not _is_reminder(part)]
    by_user = line.get("subtype") in _BY_USER
    if by_user and line.get("provenance") in (None, "real_user"):
        prompt = [{"text": shown}] if shown else parts
        return {**_record(line, "user", prompt), "prompt": True}
    return _record(line, "info", shown or text_of(parts))


def _is_reminder(part: Record) -> bool:
    """Return whether a part of a prompt is what the program adds to it for the model."""
    return string(part.get("text")).startswith("<system-reminder>")


def _answer(line: Record) -> Record:
    usage = mapping(line.get("usageMetadata"))
    tokens = {name: usage.get(theirs) for name, theirs in _COUNTS.items()}
    return {
        **_record(line, "gemini", _parts(line)),
        "model": string(line.get("model")) or None,
        "tokens": tokens if usage else None,
        "answer": line.get("uuid"),
    }


def _replies(line: Record) -> list[Record]:
    return objects([part.get("functionResponse") for part in _parts(line)])


def _reply(line: Record, reply: Record) -> Record:
    result = mapping(line.get("toolCallResult"))
    shown = result.get("resultDisplay")
    reply = {**reply, "status": result.get("status"), "timestamp": line.get("timestamp")}
    if not isinstance(shown, dict) or shown.get("type") not in ("shell_result", "task_execution"):
        return {"functionResponse": {**reply, "resultDisplay": shown}}
    if shown["type"] == "task_execution":
        agent = f"{string(shown.get('subagentName'))}-{string(reply.get('id'))}"
        subagent = {"agentId": agent, "resultDisplay": _subagent(shown)}
        return {"functionResponse": {**reply, **subagent}}
    reply["resultDisplay"] = shown.get("output")
    code = shown.get("exitCode")
    if type(code) is int and reply["status"] == "error":
        output = mapping(reply.get("response")).get("error")
        ended = {"response": {"output": output}, "status": "success", "exitCode": code}
        return {"functionResponse": {**reply, **ended}}
    return {"functionResponse": reply}


def _subagent(shown: Record) -> Record:
    return {
        "isSubagentProgress": True,
        "agentName": shown.get("subagentName"),
        "state": shown.get("status"),
        "recentActivity": [],
        "result": shown.get("result"),
        "terminateReason": shown.get("terminateReason"),
    }


def _system(line: Record) -> Record | None:
    payload = mapping(line.get("systemPayload"))
    match line.get("subtype"):
        case "custom_title":
            title = string(payload.get("customTitle"))
            return {"$set": {"summary": title}} if title else None
        case "chat_compression":
            return _record(line, "info", _compression(mapping(payload.get("info"))))
        case "slash_command":
            return _command(line, payload)
        case subtype:
            return {"type": f"system/{string(subtype)}"}


def _compression(info: Record) -> str:
    before = info.get("originalTokenCount")
    tokens = f" ({before:,} tokens before)" if type(before) is int else ""
    return f"The conversation was compressed here{tokens}."


def _command(line: Record, payload: Record) -> Record | None:
    """Return a typed command, or what it printed, as a notice: the model sees neither."""
    text = string(payload.get("rawCommand"))
    if payload.get("phase") == "result":
        items = objects(payload.get("outputHistoryItems"))
        text = "\n".join(filter(None, (string(item.get("text")) for item in items)))
    return _record(line, "info", text) if text else None
