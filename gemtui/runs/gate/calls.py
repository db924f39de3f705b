"""Find out from the CLI's output which of a run's tool calls have passed its gate."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gemtui.agent import wire
from gemtui.agent.events import ResultStatus
from gemtui.agent.tail import NewLines
from gemtui.transcript.parts import string
from gemtui.transcript.seal import unsealed

AGENT = "invoke_agent"
"""The tool that starts subagents, whose calls don't appear in the CLI's output."""
_KINDS = (b'"init"', b'"tool_use"', b'"tool_result"')


@dataclass(slots=True)
class _Announced:
    """A call that the CLI's output has announced and that has no result yet.

    `passed`: whether the gate has allowed it.
    """

    name: str
    arguments: Mapping[str, Any]
    passed: bool = False


class CallWatch:
    """Compares the calls in the CLI's growing output with those that its hooks report."""

    def __init__(self, output: Path) -> None:
        self.began = False
        """Whether the CLI's output contains the start of the session."""
        self.ungated = False
        """Whether a call succeeded that no hook had reported."""
        self.model: str | None = None
        """The run's model, as named in the CLI's output."""
        self._ended: list[str] = []
        self._lines = NewLines(output)
        self._announced: dict[str, _Announced] = {}
        self._others: Counter[str] = Counter()
        """How many calls of each tool a hook reported that match no call in the output."""

    def update(self) -> None:
        """Process the output that the CLI has written since the last update."""
        for line in self._lines.read():
            if any(kind in line for kind in _KINDS):
                self._handle(line)

    def ended(self) -> list[str]:
        """Return the ids of calls that the gate has allowed and that have a result.

        Each id is returned only once.
        """
        ended, self._ended = self._ended, []
        return ended

    def passes(self, name: str, arguments: Mapping[str, Any]) -> str | None:
        """Record that the gate allows a call; return the call's id in the CLI's output.

        `name`, `arguments`: the call as its hook reports it. Returns None if the output has not
        announced such a call, for example because a subagent makes it.
        """
        self.update()
        for id, call in self._announced.items():
            if not call.passed and call.name == name and unsealed(call.arguments) == arguments:
                call.passed = True
                return id
        if not self.agents:
            self._others[name] += 1
        return None

    def may_be_changed(self, name: str) -> bool:
        """Return whether another hook may have changed a call before the gate saw it.

        `name`: the call's tool. Use this if `passes` returned None, which means that no announced
        call matches. True is returned if the output has announced a call to this tool, with
        different arguments, that has not passed the gate yet, and if no subagent is running that
        could have made the unmatched call.
        """
        announced = any(each.name == name and not each.passed for each in self._announced.values())
        return announced and not self.agents

    @property
    def agents(self) -> frozenset[str]:
        """The names of the running subagents."""
        at_work = (each for each in self._announced.values() if each.name == AGENT and each.passed)
        return frozenset(string(each.arguments.get("agent_name")) for each in at_work)

    def last_passed(self, name: str) -> str | None:
        """Return the id of a tool's earliest allowed call that has no result yet."""
        found = (id for id, each in self._announced.items() if each.name == name and each.passed)
        return next(found, None)

    def _handle(self, line: bytes) -> None:
        try:
            event = json.loads(line)
        except (ValueError, RecursionError):
            return
        kind = event.get("type") if isinstance(event, dict) else None
        if kind == "init":
            self.began = True
            self.model = string(event.get("model")) or self.model
        elif kind == "tool_use":
            use = wire.tool_use(event)
            self._announced[use.id] = _Announced(use.name, use.input)
        elif kind == "tool_result":
            self._has_result(wire.tool_result(event))

    def _has_result(self, result: wire.WireToolResult) -> None:
        call = self._announced.pop(result.id, None)
        if call is not None and call.passed:
            self._ended.append(result.id)
        if call is None or call.passed or result.status is not ResultStatus.SUCCESS:
            return
        if self._others[call.name] > 0:
            self._others[call.name] -= 1
        else:
            self.ungated = True
