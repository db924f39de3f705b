"""Other programs whose session files are read, or that people put among Gemini CLI's sessions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import orjson

from gemtui.agents import Agent
from gemtui.jsonin import loads
from gemtui.sessions.read.dialect import STORED, Dialect, Record

OTHER_PROGRAM = "another program"
_MOST_LINES = 50


def _is_claude(line: Mapping[str, Any]) -> bool:
    message = line.get("message")
    return "leafUuid" in line or (
        "uuid" in line and isinstance(message, dict) and "content" in message
    )


def _is_qwen(line: Mapping[str, Any]) -> bool:
    message = line.get("message")
    return "uuid" in line and isinstance(message, dict) and "parts" in message


def _is_codex(line: Mapping[str, Any]) -> bool:
    return (
        line.get("type") in ("session_meta", "turn_context", "event_msg", "response_item")
        and "payload" in line
    )


_GEMINI = b'"projectHash"'
"""What the header of Gemini CLI has."""
_STARTS = {Agent.QWEN: b'{"uuid":"', Agent.CLAUDE: b'{"parentUuid":'}
"""The beginning of a message as these agents write it."""
_BEFORE_MESSAGES = re.compile(
    rb'\{"type":"(?:agent-name|ai-title|custom-title|file-history-snapshot|mode|queue-operation|'
    rb'summary)",'
)
"""The beginning of Claude Code's lines that may be the only ones of a session."""
_WROTE = {Agent.QWEN: _is_qwen, Agent.CLAUDE: _is_claude}


def agent_of_file(head: bytes) -> Agent | None:
    """Return which agent besides Gemini CLI wrote a file whose sessions are read.

    `head`: the beginning of the file, which may end within its first message.
    """
    if _GEMINI in head[: head.find(b"\n")]:
        return None  # most files, without splitting them
    for line in head.split(b"\n"):
        if _GEMINI in line:
            return None
        if b'"uuid"' in line and b'"sessionId"' in line:
            agent = agent_of_line(_object(line) or {})
            if agent is not None:
                return agent
        elif _BEFORE_MESSAGES.match(line):
            return Agent.CLAUDE
    for agent, start in _STARTS.items():
        if line.startswith(start):
            return agent
    return None


def agent_of_line(line: Mapping[str, Any]) -> Agent | None:
    """Return the agent whose message is on a line, as `agent_of_file` does."""
    return next((agent for agent, wrote in _WROTE.items() if wrote(line)), None)


def dialect_of(agent: Agent) -> Dialect:
    """Return the dialect of an agent that `agent_of_file` has found."""
    if agent is Agent.CLAUDE:
        from gemtui.sessions.read import claude

        return claude
    from gemtui.sessions.read import qwen

    return qwen


def translated(line: Record, agent: Agent) -> Record | None:
    """Return a line of an agent's file as a record, with the line itself (`stored`)."""
    record = dialect_of(agent).translate(line)
    return None if record is None else {**record, "agent": agent, STORED: line}


def foreign_program(data: bytes) -> str | None:
    """Return the name of the program that wrote a file that is not read as a session.

    The result is OTHER_PROGRAM if the program is unknown, and None if the file may be damaged or
    incomplete instead: it has no complete JSON object, or only what a header has. `data`: the
    beginning of the file.
    """
    objects = list(
        filter(None, map(_object, [data, *data.split(b"\n", _MOST_LINES)[:_MOST_LINES]]))
    )
    if any(map(_is_codex, objects)):
        return "Codex"
    return (
        OTHER_PROGRAM
        if any("sessionId" not in line or "type" in line for line in objects)
        else None
    )


def _object(text: bytes) -> Mapping[str, Any] | None:
    try:
        value = loads(text)
    except orjson.JSONDecodeError:
        return None
    return value if isinstance(value, dict) else None
