"""Verify that a run's tool calls are made as they were approved.

The CLI's output shows calls that never reached the gate (`CallWatch`). A question shows a preview
of the file as it would be after the call. If, once the call has been made, the file differs from
this preview (`ApprovedWrites`), both versions are recorded in the gate folder, and the run is
ended; the former contents can be restored.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gemtui.agent import wire
from gemtui.agent.approval import Difference, GateFolder
from gemtui.agent.events import ResultStatus
from gemtui.agent.output import NewEvents
from gemtui.calls.effect import LARGEST, Effect, digest, on_disk
from gemtui.errors import GemtuiError
from gemtui.files import read_if_present, read_small, resolved, write_whole
from gemtui.transcript.parts import string
from gemtui.transcript.seal import carries, unsealed

AGENT = "invoke_agent"
"""The tool that starts subagents, whose calls don't appear in the CLI's output."""
LONGEST_CYCLE = 5
"""The most calls that, repeated in the same order, the CLI considers a loop."""


@dataclass(slots=True)
class _Announced:
    """A call that the CLI's output has announced and that has no result yet.

    `passed`: whether the gate has allowed it.
    """

    name: str
    arguments: Mapping[str, Any]
    passed: bool = False


class CallWatch:
    """Compares the calls in the CLI's growing output with those that its hooks report.

    `seal`: the run's token, which no call of the model has unless a program has read the token.
    """

    def __init__(self, output: Path, seal: str) -> None:
        self._seal = seal
        self.stolen = False
        """Whether the model itself has sent the run's token."""
        self.began = False
        """Whether the CLI's output contains the start of the session."""
        self.ungated = False
        """Whether a call succeeded that no hook had reported."""
        self.model: str | None = None
        """The run's model, as named in the CLI's output."""
        self.turns = 0
        """How many answers of the model contained calls."""
        self._last: deque[tuple[str, Mapping[str, Any]]] = deque(maxlen=2 * LONGEST_CYCLE)
        self._ended: list[str] = []
        # parsed like the hooks' JSON, so that their arguments compare equal
        self._events = NewEvents(output, "init", "tool_use", "tool_result", parse=json.loads)
        self._announced: dict[str, _Announced] = {}
        self._others: Counter[str] = Counter()
        """How many calls of each tool a hook reported that match no call in the output."""

    def update(self) -> None:
        """Process the output that the CLI has written since the last update."""
        for event in self._events.read():
            if event["type"] == "init":
                self.began = True
                self.model = string(event.get("model")) or self.model
            elif event["type"] == "tool_use":
                use = wire.tool_use(event)
                self.stolen = self.stolen or carries(use.input, self._seal)
                self.turns += not self._announced
                self._last.append((use.name, unsealed(use.input)))
                self._announced[use.id] = _Announced(use.name, use.input)
            else:
                self._has_result(wire.tool_result(event))

    @property
    def repeats(self) -> bool:
        """Whether the last call, or the last few of them, were the same as those before.

        The CLI drops a call that completes the fifth such round (assets/gemini-cli.md#loops).
        """
        calls, longest = list(self._last), len(self._last) // 2
        return any(
            calls[-length:] == calls[-2 * length : -length] for length in range(1, longest + 1)
        )

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
        announced = self._announced.values()
        return not self.agents and any(c.name == name and not c.passed for c in announced)

    @property
    def agents(self) -> frozenset[str]:
        """The names of the running subagents."""
        return frozenset(
            string(call.arguments.get("agent_name"))
            for call in self._announced.values()
            if call.name == AGENT and call.passed
        )

    def last_passed(self, name: str) -> str | None:
        """Return the id of a tool's earliest allowed call that has no result yet."""
        for id, call in self._announced.items():
            if call.name == name and call.passed:
                return id
        return None

    def _has_result(self, result: wire.WireToolResult) -> None:
        call = self._announced.pop(result.id, None)
        if call is None:
            return
        if call.passed:
            self._ended.append(result.id)
        elif result.status is ResultStatus.SUCCESS:
            if self._others[call.name] > 0:
                self._others[call.name] -= 1
            else:
                self.ungated = True


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeCall:
    """A call that has been made, as the agent reports it.

    `arguments`: with which it was made. `tool_use_id`: None if unknown. `needs_gate`: whether the
    agent can't have made it unless the gate had allowed it. `failed`: whether the tool reports an
    error. `path`, `content`: the file that the tool reports to have written, and its contents.
    """

    tool_name: str
    arguments: Mapping[str, Any]
    tool_use_id: str | None = None
    needs_gate: bool = True
    failed: bool = False
    path: object = None
    content: object = None


CallKey = tuple[str, str]
"""A call's tool and arguments, which identify the call when its result arrives."""


class PutBackError(GemtuiError):
    """Raised if a file's former contents can't be restored; the message says why."""


@dataclass(frozen=True, slots=True)
class _Write:
    """An approved call that has no result yet.

    `id`: the call's id in the run's output; None for a subagent's call.
    """

    number: int
    key: CallKey
    id: str | None
    effect: Effect


class ApprovedWrites:
    """One run's approved calls that write files. Thread-safe."""

    def __init__(self, gate: GateFolder, clock: Callable[[], float] = time.time) -> None:
        self._gate, self._clock = gate, clock
        self._open: list[_Write] = []
        self._lock = threading.Lock()

    def is_open(self, path: str) -> bool:
        """Return whether an approved call that writes this file has no result yet.

        `path`: the file's real path.
        """
        with self._lock:
            return any(write.effect.path == path for write in self._open)

    def begin(self, number: int, key: CallKey, id: str | None, effect: Effect) -> bool:
        """Save a file's contents before an approved call writes it.

        `number`: the number of the question about the call. Returns False if the call must not run
        now, because another call that writes the same file has no result yet. Raises OSError.
        """
        assert effect.path is not None
        with self._lock:
            if any(write.effect.path == effect.path for write in self._open):
                return False
            if effect.was:
                self._gate.keep_former(number, read_small(Path(effect.path), LARGEST))
            self._open.append(_Write(number, key, id, effect))
        return True

    def is_as_approved(self, key: CallKey, call: MadeCall, *, alone: bool) -> bool:
        """Return whether a file is as expected after an approved call.

        The file should match the preview or, if the tool reports an error, be unchanged. If it
        isn't as expected, the difference is recorded. `alone`: whether no shell command is running.
        If one is, it may have changed the file right after the tool wrote it; so in that case it is
        enough if the tool reports having written the approved text.
        """
        write = self._pop(lambda write: write.key == key)
        if write is None:
            return True
        effect = write.effect
        if call.failed:
            return self._compare(write, {effect.was})
        if self._compare(write, {effect.becomes}):
            return True
        return not alone and (call.path, call.content) == (effect.path, effect.after)

    def ended(self, id: str) -> bool:
        """Compare the file with its preview after a call whose end no hook reported.

        `id`: the call's id. Returns False if the file has neither its former nor its approved
        contents.
        """
        write = self._pop(lambda write: write.id == id)
        return write is None or self._compare(write, {write.effect.was, write.effect.becomes})

    def close(self) -> bool:
        """After the run's end, check the files of approved calls that have no result.

        Returns False if any of these files has neither its former nor its approved contents.
        """
        right = True
        while (write := self._pop(lambda _: True)) is not None:
            right &= self._compare(write, {write.effect.was, write.effect.becomes})
        return right

    def _pop(self, wanted: Callable[[_Write], bool]) -> _Write | None:
        with self._lock:
            for write in self._open:
                if wanted(write):
                    self._open.remove(write)
                    return write
        return None

    def _compare(self, write: _Write, wanted: set[str]) -> bool:
        """Return whether a written file is as expected; if not, record the difference.

        `wanted`: the digests that the file may have.
        """
        effect, data = write.effect, None
        assert effect.path is not None
        try:
            data = read_if_present(Path(effect.path), LARGEST)
            is_now = "" if data is None else digest(data)
        except (OSError, ValueError):
            is_now = "unreadable"
        if is_now in wanted and resolved(Path(effect.path)) == Path(effect.path):
            return True
        difference = Difference(
            number=write.number,
            path=effect.path,
            approved=effect.after,
            found=None if data is None else data.decode("utf-8", "replace"),
            former=effect.before,
            was=effect.was,
            is_now=is_now,
            at=round(self._clock() * 1000),
        )
        with suppress(OSError):  # the run ends with an error anyway
            self._gate.differs(difference)
        return False


def restore_former(gate: GateFolder, number: int) -> Path:
    """Restore the former contents of a file that differs from what was approved.

    `number`: the question's number. Returns the file's path. A file that did not exist before the
    call is removed. Raises OSError, and PutBackError if no difference was recorded for the question
    or the file has changed since.
    """
    differences = {difference.number: difference for difference in gate.differences()}
    if number not in differences:
        raise PutBackError(f"question {number} has no file that differs from its approved version")
    difference = differences[number]
    path = Path(difference.path)
    if resolved(path) != path:
        raise PutBackError(f"{path} now leads to a different file")
    if on_disk(str(path)) != difference.is_now:
        raise PutBackError(f"{path} has changed since; restore it by hand")
    if not difference.was:
        path.unlink(missing_ok=True)
        return path
    data = gate.former_bytes(number)
    if digest(data) != difference.was:
        raise PutBackError("the copy of the earlier contents is corrupt")
    if not os.path.lexists(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, [data], durable=True)
    return path
