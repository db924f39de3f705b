"""Turn the stream of Qwen Code into events (assets/agents.md#the-gate-of-qwen-code)."""

from __future__ import annotations

from gemtui.agent.claude_stream import ClaudeStream
from gemtui.agents import Agent
from gemtui.transcript.parts import Part, string

_CANCELLED = "[Operation Cancelled]"


class QwenStream(ClaudeStream):
    """Converts one run's output to events, line by line; call `finish` at the end."""

    agent = Agent.QWEN

    def _is_denied(self, block: Part, event: Part) -> bool:  # noqa: ARG002
        return string(block.get("content")).startswith(_CANCELLED)

    def _ended(self, event: Part, at: int) -> None:
        """Emit the end of the answer, without tokens: they contain hidden requests."""
        super()._ended({**event, "usage": {}}, at)
