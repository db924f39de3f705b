"""Translate the stored lines of other agents to the records of Gemini CLI, the inner form.

A dialect is a module of this package, `qwen` or `claude`, with two pure functions (`Dialect`). Both
agents put their lines into the same envelope, which this module reads: `uuid`, `parentUuid`,
`sessionId`, `cwd`, `timestamp`, and for subagents `isSidechain` and `agentId`.

The fields of a translated record:

* `id`: the line's `uuid`. `timestamp`: as stored.
* `type`: "user" (a person's prompt, or the results of calls), "gemini" (what the model said), or
  "info", "warning", "error" (a notice of the program; `content` is its text).
* `content`: parts of the Gemini API: `text`, `inlineData` and `fileData` (`mimeType`, `data` or
  `fileUri`, `displayName`), `functionCall` (`id`, `name`, `args`), `functionResponse`. A
  `functionResponse` has `id`, `name` ("" if the line does not name the tool), `response` (`output`,
  or `error` with a text), and further, as in a `toolCalls[]` entry of Gemini CLI: `status`
  ("success", "error",
  "cancelled" or "denied"; always there), `timestamp`, and `exitCode`, `agentId`, and
  `resultDisplay` (a text, or `{fileDiff, fileName, filePath, originalContent, newContent,
  isNewFile}`).
* `thoughts`: a list of `{subject, description, timestamp}`. `model`: its name.
* `tokens`: `{input, output, cached, thoughts, tool, total, written}`, as in `Usage`.
* `answer`: the id of the model's answer. The lines of an answer become one message; its tokens,
  which are repeated on each of them, count once.
* `prompt`: True for what a person typed, nothing else. Only such a record begins a branch.
* `parent`: what the record follows, if that is not the line's `parentUuid`.

A line that changes the header is translated to `{"$set": {...}}` with `summary` (the session's
title) or `cost` (in dollars, by the agent's own count).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from gemtui.agents import Agent

Record = Mapping[str, Any]
STORED = "_stored"
_PIECES = "_pieces"
_JOINED = ("content", "thoughts")


def agent_of_record(record: Record) -> Agent:
    """Return the agent that wrote a record, translated or not."""
    agent = record.get("agent")
    return agent if isinstance(agent, Agent) else Agent.GEMINI


def stored(record: Record) -> Record:
    """Return a record as the agent has stored it; of several lines, an object with all of them."""
    lines = stored_lines(record)
    return lines[0] if len(lines) == 1 else {"lines": lines}


def stored_lines(record: Record) -> Sequence[Record]:
    """Return the lines of a record as the agent has stored them."""
    lines = (piece.get(STORED) for piece in pieces(record))
    return [line for line in lines if isinstance(line, dict)] or [record]


def pieces(record: Record) -> Sequence[Record]:
    """Return the records of which a record is joined."""
    parts = record.get(_PIECES)
    return parts if isinstance(parts, list) else [record]


def joined(first: Record, more: Sequence[Record]) -> Record:
    """Return the record of a message of several records: the first, and at least one more."""
    records = [*pieces(first), *more]
    added = {
        name: [part for record in records for part in record.get(name, ())] for name in _JOINED
    }
    return {**first, **added, "tokens": more[-1].get("tokens"), _PIECES: records}


class Dialect(Protocol):
    """The two functions of a dialect's module."""

    def translate(self, line: Mapping[str, Any]) -> Record | None:
        """Return a parsed line as a record; None if it is one of the lines that are skipped.

        A line of a type that is unknown is returned as `{"type": TYPE}`, with what names it best.
        Never raises, whatever the line holds. The result depends on nothing but the line.
        """

    def wants(self, line: bytes) -> bool:
        """Return whether a line has to be parsed: False only for types that are skipped."""
