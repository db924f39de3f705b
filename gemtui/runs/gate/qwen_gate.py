"""The gate of a Qwen Code run (assets/agents.md#the-gate-of-qwen-code).

Qwen Code asks about the calls that its own rules don't allow, so the gate sees only these. Any
failure in this module denies the call.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gemtui.agent.approval import UNCHANGED
from gemtui.agent.verdict import Allow, Deny, Stop, Verdict
from gemtui.agents import Agent
from gemtui.runs.gate.claude_gate import ClaudeGate
from gemtui.runs.gate.gate import call_key
from gemtui.runs.gate.verification import MadeCall
from gemtui.transcript.parts import mapping, parts_of, string

LONGEST_WAIT = 600_000
"""How many milliseconds Qwen Code waits for an answer before it denies the call: its maximum."""


class QwenGate(ClaudeGate):
    """Answers the questions of a run of Qwen Code, which then ends after one prompt."""

    agent = Agent.QWEN

    def _variables(self, cwd: Path, environ: Mapping[str, str]) -> Mapping[str, str]:  # noqa: ARG002
        return {}

    def _terms(self) -> Mapping[str, Any]:
        return {"hooks": None, "timeout": {"canUseTool": LONGEST_WAIT}}

    def _answer(self, id: str, request: Mapping[str, Any]) -> Mapping[str, Any] | None:
        if request.get("subtype") != "can_use_tool":
            return None
        call = string(request.get("tool_use_id"))
        asked = request.get("input")
        self._tools[call] = string(request.get("tool_name"))
        called = {"tool_name": self._tools[call], "tool_use_id": call, "tool_input": asked}
        verdict = self._before(called, lambda: self._is_off(id) or self._is_off(call))
        if isinstance(verdict, Allow):
            makes = call_key("", mapping(asked))
            if call_key("", verdict.arguments) != makes:
                verdict = Deny(UNCHANGED)
        return self._spelled(verdict)

    def _check_results(self, event: Mapping[str, Any]) -> None:
        """Compare files with what was allowed, and give up questions about calls with a result."""
        for block in parts_of(mapping(event.get("message")).get("content")):
            id = string(block.get("tool_use_id"))
            if block.get("type") != "tool_result" or not id:
                continue
            self._off.add(id)
            allowed = self._allowed.get(id)
            if allowed is None:
                continue
            self.gate.after_call(
                MadeCall(
                    tool_name=self._tools[id],
                    arguments=allowed,
                    tool_use_id=id,
                    failed=block.get("is_error") is True,
                )
            )

    def _spelled(self, verdict: Verdict) -> Mapping[str, Any]:
        if isinstance(verdict, Allow):
            return {"behavior": "allow", "updatedInput": verdict.arguments}
        reason = verdict.reason if isinstance(verdict, (Deny, Stop)) else UNCHANGED
        return {"behavior": "deny", "message": reason}

    def _go_on(self) -> None:
        """Let Qwen Code end: it does not repeat prompts, so each one gets a run of its own."""
        self._end_input()
