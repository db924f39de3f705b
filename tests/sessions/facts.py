"""What tables promise of session logs."""

from __future__ import annotations

from typing import Any

from gemtui.sessions.read.conversation import (
    dropped_counts,
    dropped_of,
    records_of,
    transcript_of,
    unified_of,
)
from gemtui.sessions.read.session_log import SessionLog
from gemtui.transcript.model import Block, Notice, Text, ToolCall
from tests.sessions.logs import texts


def shown(block: Block) -> str:
    """A block in one line."""
    match block:
        case Text():
            return block.text
        case Notice():
            return f"{block.level}: {block.text}"
        case ToolCall():
            return f"{block.id}: {block.name} {block.status} {block.output or ''}"
    return type(block).__name__


def facts(log: SessionLog) -> dict[str, Any]:
    """All that a table may promise of a log."""
    transcript, both = transcript_of(log), transcript_of(log, dropped=True)
    blocks = [message.blocks for message in transcript]
    calls = [
        [block for block in of_message if isinstance(block, ToolCall)] for of_message in blocks
    ]
    parts = [
        part for message in unified_of(log) for part in message.content if isinstance(part, dict)
    ]
    return {
        "texts": texts(log),
        "all texts": texts(log, dropped=True),
        "blocks": [[shown(block) for block in of_message] for of_message in blocks],
        "all blocks": [[shown(block) for block in message.blocks] for message in both],
        "last blocks": [shown(block) for block in blocks[-1]] if blocks else [],
        "notices": [
            block.text for of_message in blocks for block in of_message if isinstance(block, Notice)
        ],
        "call ids": [block.id for of_message in calls for block in of_message],
        "outputs": [block.output for of_message in calls for block in of_message],
        "results": [part["content"] for part in parts if part["type"] == "tool_result"],
        "format": log.format,
        "shown calls": [len(of_message) for of_message in calls],
        "calls": [outline.calls for outline in transcript.outlines],
        "all calls": [[outline.id, outline.calls] for outline in both.outlines],
        "failures": [outline.failures for outline in transcript.outlines],
        "ids": [outline.id for outline in log.outlines],
        "different ids": len({message.id for message in transcript}),
        "prompts": [outline.prompt for outline in log.outlines],
        "models": [outline.model for outline in log.outlines],
        "totals": [outline.usage.total for outline in log.outlines if outline.usage],
        "usage": transcript.usage and transcript.usage.total,
        "dropped": [[outline.id, outline.dropped] for outline in log.dropped],
        "dropped counts": dropped_counts(log),
        "dropped records": [[why, record["id"]] for why, record in dropped_of(log)],
        "records read": list(records_of(log)),
        "roles": [message.role for message in unified_of(log)],
        "title and start": [log.metadata.get("summary"), log.metadata.get("startTime")],
        "started": log.replay.started and log.replay.started.isoformat(),
        "problems": [[problem.line, problem.what] for problem in log.problems],
        "problem lines": [problem.line for problem in log.problems],
    }
