"""Turn a stream of CLI output into events: `init` first, `done` last.

`Stream` does no I/O: its caller passes in the parsed lines and reports how the process ended.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from gemtui.agent import wire
from gemtui.agent.approval import ApprovalRequest
from gemtui.agent.events import (
    AgentEvent,
    Done,
    DoneStatus,
    ErrorSaid,
    Event,
    Init,
    Payload,
    PermissionRequest,
    Prompted,
    ResultStatus,
    TextDelta,
    TextSaid,
    ToolResult,
    ToolUse,
)
from gemtui.agent.output import Malformed, Parsed, TurnLimit
from gemtui.agent.run_folder import Limit
from gemtui.agents import WORDS, Agent
from gemtui.policy.model.tool_catalog import is_known
from gemtui.transcript import tool_output
from gemtui.transcript.parts import Part, mapping, string
from gemtui.transcript.tools import UNKNOWN_TOOL, ToolKind, kind_of

RAW_LIMIT = 2000
"""How many characters of a line that isn't JSON are quoted in its error event."""
TURN_LIMIT_EXIT = 53
CANCELLED_EXIT = 130
SIGTERM = 15
_SHELL = 128
"""The number that a shell adds to a signal's number to get an exit code."""
_HANDED_OVER = re.compile(r"Agent execution blocked: (.*)", re.DOTALL)
_FIRST_HTTP = 400 - 256


_FAILURES = (Limit.TIMEOUT, Limit.IDLE, Limit.BUDGET)
"""The limits that end a run with an error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """The end of a run's process, with everything that the run's last events contain.

    `code`: as in `Popen.returncode`, where a negative number is a signal; None if the process could
    not be started, and then `problem` says why. `aborted`: whether gemtui was asked to end the
    process. `limit`: the limit that ended it, if any. `limit_seconds` is set for a time limit,
    `limit_words` for a budget. `stderr`: the meaningful lines at the end of the CLI's stderr.
    """

    code: int | None
    aborted: bool = False
    limit: Limit | None = None
    limit_seconds: float = 0
    limit_words: str = ""
    stderr: str = ""
    problem: str | None = None


class _Use(NamedTuple):
    """The facts about a tool call that are needed when its result arrives.

    `began`: milliseconds since 1970; None if the stream never announced the call. `substitutes`:
    whether it is a shell command that contains a command substitution.
    """

    name: str
    began: int | None
    substitutes: bool


_UNKNOWN = _Use("", None, False)


def signal_of(code: int | None) -> int | None:
    """Return the signal that ended a process; None if it exited by itself.

    `code`: as in `Popen.returncode`. A shell reports a signal as 128 plus its number. Codes from
    144 up are HTTP statuses instead (assets/gemini-cli.md#exit-codes).
    """
    if code is not None and code < 0:
        return -code
    number = 0 if code in (None, CANCELLED_EXIT) else code - _SHELL
    return number if 0 < number < _FIRST_HTTP - _SHELL else None


def _clock() -> int:
    return time.time_ns() // 1_000_000


class Stream:
    """Converts one run's output to events, line by line; call `finish` at the end.

    * `model`, `cwd`: for the init event, as requested.
    * `session_id`: the requested id. `resumed`: the id of the session to resume.
    * `turn_limit`: the number of turns after which the supervisor ends the run; None if it doesn't
      count turns.
    * `asks`: whether the run asks the user before tool calls.
    * `hides`: called with the name of a tool that the CLI didn't find. Returns whether the tool
      exists but is hidden by rules or by the run's mode. If the hidden tools are unknown, returns
      whether the tool exists.
    * `clock`: returns milliseconds since 1970.
    """

    agent = Agent.GEMINI
    parse = staticmethod(wire.parse_line)

    def __init__(
        self,
        *,
        cwd: str,
        model: str | None = None,
        capabilities: Mapping[str, Any] | None = None,
        session_id: str | None = None,
        resumed: str | None = None,
        turn_limit: int | None = None,
        asks: bool = False,
        hides: Callable[[str], bool] = is_known,
        clock: Callable[[], int] = _clock,
    ) -> None:
        self.session_id = resumed or session_id
        self.unknown: list[Part] = []
        """Objects of unknown types; they yield no events."""
        self._turns = TurnLimit(turn_limit)
        self._asks, self._hides = asks, hides
        self._cwd, self._model = cwd, model
        self._capabilities = capabilities
        self._clock = clock
        self._began = clock()
        self._token = resumed
        self._said: list[AgentEvent] = []
        self._started = False
        self._deltas: list[str] = []
        self._answer = ""
        self._uses: dict[str, _Use] = {}
        self._made = 0
        self._last_error: ErrorSaid | None = None
        self._result: wire.WireResult | None = None
        self._result_at: int | None = None
        """When the CLI reported the result, which may be long before it is read."""

    def feed(self, line: Parsed | Malformed) -> list[AgentEvent]:
        """Return the events for one line; an empty list after the result event."""
        self._said = []
        if self._result is None:
            if isinstance(line, Malformed):
                self._malformed(line)
            elif isinstance(line.data, wire.WireDelta):
                self._delta(line.data.content, wire.milliseconds(line.data.timestamp))
            elif isinstance(line.data, dict):
                self._event(line.data)
            else:
                self._malformed(Malformed(error="not a JSON object", raw=repr(line.data)))
        return self._said

    def question_events(self, question: ApprovalRequest | None) -> list[AgentEvent]:
        """Return the event for a question to the user; none if `question` is None.

        None stands for a question that can't be read.
        """
        self._said = []
        if question is None:
            return []
        payload = PermissionRequest(
            tool_name=question.tool_name,
            tool_use_id=question.tool_use_id,
            input=question.requested,
            reason=question.because or None,
        )
        self._say(payload, question.asked)
        return self._said

    def finish(self, ending: Ending) -> list[AgentEvent]:
        """Return the last events of the run.

        Call this after the process has ended and all its output has been read.
        """
        self._said = []
        self._open({}, self._clock())
        self._flush(self._clock())
        for payload in self._last_errors(ending):
            self._last_error = payload
            self._say(payload, self._result_at)
        self._done(ending)
        return self._said

    # --- one object --------------------------------------------------------------------------

    def _event(self, event: Part) -> None:
        kind = event.get("type")
        at = wire.time_ms(event) or self._clock()
        if "session_id" in event or "sessionId" in event:
            self._named(event)
        if not self._started:
            self._open(event if kind == "init" else {}, at)
        if kind == "message":
            self._message(event, at)
        elif kind == "result":
            self._flush(at)
            self._result = wire.result(event)
            self._result_at = at
        elif kind == "tool_use":
            self._flush(at)
            self._use(wire.tool_use(event), at)
        elif kind == "tool_result":
            self._tool_result(wire.tool_result(event), at)
        elif kind == "error":
            self._flush(at)
            self._say(self._next_prompt(event) or self._error(event), at)
        elif kind != "init":
            self.unknown.append(event)

    def _named(self, event: Part) -> None:
        id = string(event.get("session_id")) or string(event.get("sessionId"))
        if id:
            self.session_id = self._token = id

    def _open(self, event: Part, at: int) -> None:
        """Emit the init event, unless that has already been done.

        `event`: the CLI's event, which names the model if the run's options don't. `at`: its time,
        in milliseconds since 1970.
        """
        if self._started:
            return
        self._started = True
        model = self._model or string(event.get("model")) or "unknown"
        self._say(Init(model=model, cwd=self._cwd, capabilities=self._capabilities), at)

    def _message(self, event: Part, at: int) -> None:
        if event.get("role") == "user":
            return
        text = wire.message_text(event)
        if event.get("delta") is True:
            self._delta(text, at)
        elif text:
            self._flush(at)
            self._answers(text, at)

    def _delta(self, text: str, at: int) -> None:
        if not self._started:
            self._open({}, at)
        self._deltas.append(text)
        self._turns.note_text()
        self._say(TextDelta(delta=text), at)

    def _flush(self, at: int) -> None:
        """Emit one text event that joins all deltas since the last one.

        `at`: the event's time, in milliseconds since 1970.
        """
        text = "".join(self._deltas)
        self._deltas = []
        if text:
            self._answers(text, at)

    def _answers(self, text: str, at: int) -> None:
        self._answer = text
        self._turns.note_text()
        self._say(TextSaid(content=text), at)

    def _use(self, use: wire.WireUse, at: int) -> None:
        id = use.id or self._made_id()
        shell = kind_of(use.name) is ToolKind.SHELL
        substitutes = shell and tool_output.substitutes(string(use.input.get("command")))
        self._uses[id] = _Use(use.name, at, substitutes)
        self._turns.calls(id)
        payload = ToolUse(
            tool_name=use.name, tool_use_id=id, input=use.input, description=use.description
        )
        self._say(payload, at)

    def _made_id(self) -> str:
        self._made += 1
        return f"tool-{self._made}"

    def _tool_result(self, result: wire.WireToolResult, at: int) -> None:
        use = self._uses.get(result.id, _UNKNOWN)
        name = use.name or result.name or UNKNOWN_TOOL
        status = result.status
        if status is ResultStatus.ERROR and wire.is_refusal(result, hidden=self._hides(name)):
            status = ResultStatus.DENIED
        if use.substitutes and tool_output.is_blocked(string(result.output)):
            status = ResultStatus.DENIED
        id = result.id or self._made_id()
        self._turns.has_result(id)
        duration = None if use.began is None else max(0, at - use.began)
        self._say(
            ToolResult(
                tool_use_id=id,
                tool_name=name,
                status=status,
                output=result.output,
                duration_ms=duration,
            ),
            at,
        )

    def _next_prompt(self, event: Part) -> Prompted | None:
        """Return the queued prompt that an error event reports; None for a real error.

        `event`: the error event. When a turn ends, gemtui's hook can pass the next queued prompt to
        the CLI, which reports this as an error and continues with the prompt.
        """
        handed_over = _HANDED_OVER.fullmatch(wire.error(event).message) if self._asks else None
        return None if handed_over is None else Prompted(content=handed_over[1])

    def _error(self, event: Part) -> ErrorSaid:
        error = wire.error(event)
        message = error.message or string(mapping(event).get("type"))
        self._last_error = ErrorSaid(
            message=message, code=error.code, recoverable=error.recoverable
        )
        return self._last_error

    def _malformed(self, line: Malformed) -> None:
        at = self._clock()
        self._open({}, at)
        self._flush(at)
        message = f"{line.error}: {line.raw[:RAW_LIMIT]}"
        self._say(ErrorSaid(message=message, code="NDJSON_PARSE_ERROR", recoverable=True), at)

    # --- the end -----------------------------------------------------------------------------

    def _last_errors(self, ending: Ending) -> Iterator[ErrorSaid]:
        """Yield the error that explains why the run failed, if it did."""
        code: str | None
        if ending.problem is not None:
            code = self._code("STREAM_ERROR")
            yield ErrorSaid(message=ending.problem, code=code, recoverable=False)
        elif ending.aborted or self._cut_at_turn(ending):
            return
        elif ending.limit is not None and ending.limit in _FAILURES:
            words = _limit_words(ending, self._program)
            yield ErrorSaid(message=words, code=ending.limit.code, recoverable=False)
        elif self._result is not None:
            yield from self._result_error(self._result, ending)
        elif ending.code == 0:
            message = f"{self._program} ended without a result: the answer may be incomplete"
            yield ErrorSaid(message=message, code=self._code("NO_RESULT"), recoverable=True)
        elif self._status(ending) is DoneStatus.ERROR:
            reason = f"{self._program} exited with code {ending.code} without a result event"
            stderr = "" if signal_of(ending.code) else ending.stderr.strip()
            message = stderr or reason
            code = self._code("EXIT_ERROR")
            yield ErrorSaid(message=message, code=code, recoverable=False)

    @property
    def _program(self) -> str:
        return WORDS[self.agent].program

    def _code(self, name: str) -> str:
        return f"{self.agent.upper()}_{name}"

    def _result_error(self, result: wire.WireResult, ending: Ending) -> Iterator[ErrorSaid]:
        if self._status(ending) is not DoneStatus.ERROR:
            return
        last = self._last_error
        if not result.message and last is not None and not last.recoverable:
            return
        yield ErrorSaid(message=result.message or result.dump, code=result.code, recoverable=False)

    def _status(self, ending: Ending) -> DoneStatus:
        if ending.problem is not None:
            return DoneStatus.ERROR
        if ending.aborted:
            return DoneStatus.INTERRUPTED
        if self._cut_at_turn(ending):
            return DoneStatus.MAX_TURNS
        if ending.limit in _FAILURES:
            return DoneStatus.ERROR
        if self._result is not None:
            limited = ending.code == TURN_LIMIT_EXIT
            return DoneStatus.MAX_TURNS if limited else self._result.status
        if ending.code in (-SIGTERM, 128 + SIGTERM):
            return DoneStatus.INTERRUPTED
        if ending.code == TURN_LIMIT_EXIT:
            return DoneStatus.MAX_TURNS
        return DoneStatus.SUCCESS if ending.code == 0 else DoneStatus.ERROR

    def _cut_at_turn(self, ending: Ending) -> bool:
        """Return whether the turn limit ended the run, or should have ended it.

        False if the run's result arrived before the limit could take effect.
        """
        ended = ending.limit is Limit.TURNS and self._result is None
        return not ending.aborted and (ended or self._turns.exceeded)

    def _done(self, ending: Ending) -> None:
        """Emit the last event of the run.

        If gemtui's turn limit ended the run, the event is the same as for the CLI's own turn limit.
        """
        result = None if ending.aborted else self._result
        elapsed = max(0, self._clock() - self._began)
        cut = self._cut_at_turn(ending)
        metadata: dict[str, Any] = {
            "complete": cut or result is not None,
            "exitCode": TURN_LIMIT_EXIT if cut else ending.code,
        }
        self._say(
            Done(
                status=self._status(ending),
                result=self._outcome(ending),
                resume_token=self._token,
                tool_uses=len(self._uses),
                tokens=result.tokens if result else None,
                models=result.models if result else None,
                duration_ms=(result and result.duration_ms) or elapsed,
            ),
            self._result_at,
            metadata,
        )

    def _outcome(self, ending: Ending) -> str | None:
        """Return the answer, or the error of a failed run; None for a stopped run."""
        if ending.problem is None and ending.aborted:
            return None
        if self._status(ending) is DoneStatus.ERROR and self._last_error is not None:
            return self._last_error.message
        return (self._result and self._result.text) or self._answer or None

    def _say(
        self, payload: Payload, at: int | None = None, metadata: Mapping[str, Any] | None = None
    ) -> None:
        made: Any = Event(
            payload=payload,
            timestamp=self._clock() if at is None else at,
            session_id=self.session_id,
            agent=self.agent,
            metadata=metadata,
        )
        self._said.append(made)


def _limit_words(ending: Ending, program: str) -> str:
    if ending.limit is Limit.BUDGET:
        return ending.limit_words
    seconds = f"{ending.limit_seconds:g}s"
    if ending.limit is Limit.IDLE:
        return f"{program} timed out: no output for {seconds}"
    return f"{program} timed out after {seconds}"
