"""Turn the stream of Claude Code into events (assets/agents.md#the-stream-of-claude-code).

A process answers several prompts, each of which ends with a `result`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from gemtui.agent import wire
from gemtui.agent.events import (
    PARENT_CALL,
    AgentEvent,
    DoneStatus,
    ErrorSaid,
    Init,
    Prompted,
    ResultStatus,
    Thinking,
    ToolResult,
    ToolUse,
    TurnDone,
)
from gemtui.agent.stream import Ending, Stream
from gemtui.agents import Agent
from gemtui.transcript.claude_displays import claude_display, count
from gemtui.transcript.parts import Part, mapping, objects, parts_of, string
from gemtui.transcript.tools import UNKNOWN_TOOL
from gemtui.transcript.usage import Usage, usage_sum

_SILENT = frozenset(
    (
        "control_request",
        "control_response",
        "control_cancel_request",
        "keep_alive",
        "rate_limit_event",
        "tool_progress",
    )
)
"""Types of lines that are no part of the conversation."""
_BLOCKED = "reject"


CALL_LINES = ("system", "assistant", "user")
"""The types of lines that `calls_of` reads."""


def calls_of(line: Part) -> Iterator[Part]:
    """Yield what a line tells of calls and of the session, as Gemini CLI's stream would tell it.

    Calls of subagents are among them.
    """
    more = {"timestamp": line.get("timestamp"), "session_id": line.get("session_id")}
    if line.get("subtype") == "init":
        yield {**more, "type": "init"}
    if line.get("type") not in ("assistant", "user"):
        return
    for block in parts_of(mapping(line.get("message")).get("content")):
        if block.get("type") == "tool_use":
            yield {**block, **more, "type": "tool_use"}
        elif block.get("type") == "tool_result":
            yield {**more, "type": "tool_result", "tool_id": block.get("tool_use_id")}


class ClaudeStream(Stream):
    """Converts one run's output to events, line by line; call `finish` at the end."""

    agent = Agent.CLAUDE

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._is_new = not options.get("resumed")
        self._tokens: list[Usage | None] = []
        """The tokens of each answer; None if it had subagents, whose tokens are not among them."""
        self._last: wire.WireResult | None = None
        self._prompts = 0
        self._names: dict[str, str] = {}

    def finish(self, ending: Ending) -> list[AgentEvent]:
        """Return the last events; the run succeeded if its last prompt has a result."""
        self._result, said = self._last, self._last_error
        if self._last is not None and said is not None and said.message == self._last.message:
            self._result = replace(self._last, message="")
        return super().finish(ending)

    def _status(self, ending: Ending) -> DoneStatus:
        status = super()._status(ending)
        # the program also exits with 0 if its input ends in the middle of an answer
        is_open = status is DoneStatus.SUCCESS and self._result is None
        return DoneStatus.ERROR if is_open else status

    # --- one object --------------------------------------------------------------------------

    def _event(self, event: Part) -> None:
        kind = event.get("type")
        at = wire.time_ms(event) or self._clock()
        self._named(event)
        if kind in _SILENT:
            return
        parent = string(event.get("parent_tool_use_id"))
        if kind == "system":
            self._open(event, at)
        elif kind == "stream_event":
            if not parent:
                self._partial(mapping(event.get("event")), at)
        elif kind in ("assistant", "user"):
            self._open({}, at)
            blocks = parts_of(mapping(event.get("message")).get("content"))
            if parent:
                self._of_subagent(parent, kind, blocks, event, at)
            elif kind == "assistant":
                self._of_model(blocks, event, at)
            else:
                self._of_user(blocks, event, at)
        elif kind == "result":
            self._ended(event, at)
        else:
            self.unknown.append(event)

    def _open(self, event: Part, at: int) -> None:
        """Emit the init event, unless that has already been done."""
        if self._started or event.get("subtype") not in (None, "init"):
            return
        self._started = True
        tools = event.get("tools")
        init = Init(
            model=self._model or string(event.get("model")) or "unknown",
            cwd=self._cwd,
            tools=tuple(map(str, tools)) if isinstance(tools, list) else None,
            capabilities=self._capabilities,
        )
        self._say(init, at)

    def _partial(self, event: Part, at: int) -> None:
        text = string(mapping(event.get("delta")).get("text"))
        if text:
            self._delta(text, at)

    def _of_model(self, blocks: list[Part], event: Part, at: int) -> None:
        for block in blocks:
            text = string(block.get("text"))
            if event.get("error"):
                self._fails(text, string(event.get("error")), at)
            elif block.get("type") == "text" and text:
                self._deltas = []  # the whole text follows its pieces
                self._answers(text, at)
            elif block.get("type") == "thinking" and block.get("thinking"):
                self._say(Thinking(summary=string(block["thinking"])), at)
            elif block.get("type") == "tool_use":
                self._flush(at)
                use = wire.tool_use(block)
                self._names[use.id] = use.name
                self._use(use, at)

    def _fails(self, message: str, code: str, at: int) -> None:
        self._last_error = ErrorSaid(message=message, code=code, recoverable=False)
        self._say(self._last_error, at)

    def _of_user(self, blocks: list[Part], event: Part, at: int) -> None:
        for block in blocks:
            if block.get("type") == "tool_result":
                result = self._result_of(block, event, at)
                self._turns.has_result(result.tool_use_id)
                self._say(result, at)
        if event.get("isReplay") is True:
            self._last = None
            self._prompts += 1
            if self._prompts > 1:  # the first one is the run's own
                self._say(Prompted(content=wire.message_text(mapping(event.get("message")))), at)

    def _of_subagent(
        self, parent: str, kind: str, blocks: list[Part], event: Part, at: int
    ) -> None:
        """Emit the calls of a subagent, which are no part of the conversation itself."""
        more = {PARENT_CALL: parent}
        for block in blocks:
            if kind == "assistant" and block.get("type") == "tool_use":
                use = wire.tool_use(block)
                self._names[use.id] = use.name
                self._say(
                    ToolUse(tool_name=use.name, tool_use_id=use.id, input=use.input), at, more
                )
            elif block.get("type") == "tool_result":
                self._say(self._result_of(block, event, at), at, more)

    def _result_of(self, block: Part, event: Part, at: int) -> ToolResult:
        id = string(block.get("tool_use_id")) or self._made_id()
        use = self._uses.get(id)
        output = "\n".join(
            string(part.get("text")) for part in parts_of(block.get("content")) if "text" in part
        )
        status = ResultStatus.SUCCESS
        if block.get("is_error") is True:
            status = ResultStatus.DENIED if self._is_denied(block, event) else ResultStatus.ERROR
        display = None
        if status is ResultStatus.SUCCESS:
            display = claude_display(mapping(event.get("tool_use_result")))
        return ToolResult(
            tool_use_id=id,
            tool_name=self._names.get(id, UNKNOWN_TOOL),
            status=status,
            output=output,
            duration_ms=None if use is None or use.began is None else max(0, at - use.began),
            display=display,
        )

    def _is_denied(self, block: Part, event: Part) -> bool:
        """Return whether a call was not made because a person, a rule or gemtui said no."""
        for meta in objects(event.get("tool_result_meta")):
            if meta.get("id") == block.get("tool_use_id"):
                decision = mapping(meta.get("permission_decision")).get("decision")
                return decision == _BLOCKED or bool(meta.get("non_execution_kind"))
        return False

    def _ended(self, event: Part, at: int) -> None:
        """Emit the end of the answer to a prompt, which may be the last one."""
        self._flush(at)
        tokens = _usage(mapping(event.get("usage")), _OF_PROMPT)
        has_agents = count(mapping(event.get("subagent_stats")).get("spawned")) > 0
        self._tokens.append(None if has_agents else tokens)
        self._last = _result(event)
        if not self._is_new:  # its sums begin with the session
            self._last = replace(self._last, tokens=self._own_tokens(), models=None)
        self._result_at = at
        cost = event.get("total_cost_usd")
        self._say(
            TurnDone(
                status=self._last.status,
                result=self._last.text or self._last.message or None,
                tokens=tokens,
                cost=float(cost) if isinstance(cost, (int, float)) else None,
            ),
            at,
        )

    def _own_tokens(self) -> Usage | None:
        """Return the tokens of this process; None if they are not known."""
        return None if None in self._tokens else usage_sum(self._tokens)


# --- the end of an answer --------------------------------------------------------------------

_OF_PROMPT = (
    "input_tokens",
    "output_tokens",
    "cache_read_input_tokens",
    "cache_creation_input_tokens",
)
_OF_MODEL = ("inputTokens", "outputTokens", "cacheReadInputTokens", "cacheCreationInputTokens")


def _result(event: Part) -> wire.WireResult:
    errors = event.get("errors")
    messages = [string(error) for error in errors] if isinstance(errors, list) else []
    text = string(event.get("result"))
    status = _status(event)
    models = mapping(event.get("modelUsage"))
    failed = status is DoneStatus.ERROR
    return wire.WireResult(
        status=status,
        message="\n".join(filter(None, messages)) or text if failed else "",
        code=string(event.get("terminal_reason")) or None,
        text=None if failed else text or None,
        duration_ms=None,
        tokens=_all_tokens(models),
        models=tuple(models) or None,
        dump=string(event.get("subtype")) or "unknown error",
    )


def _status(event: Part) -> DoneStatus:
    if string(event.get("terminal_reason")).startswith("aborted"):
        return DoneStatus.INTERRUPTED
    if event.get("subtype") == "error_max_turns":
        return DoneStatus.MAX_TURNS
    succeeded = event.get("subtype") == "success" and event.get("is_error") is not True
    return DoneStatus.SUCCESS if succeeded else DoneStatus.ERROR


def _all_tokens(models: Mapping[str, Any]) -> Usage | None:
    """Return the tokens of all models, also those of subagents and side requests."""
    if not models:
        return None
    sums = {name: sum(count(mapping(m).get(name)) for m in models.values()) for name in _OF_MODEL}
    return _usage(sums, _OF_MODEL)


def _usage(tokens: Part, names: tuple[str, str, str, str]) -> Usage | None:
    if names[0] not in tokens:
        return None
    fresh, output, cached, written = (count(tokens.get(name)) for name in names)
    given = fresh + cached + written
    return Usage(input=given, output=output, cached=cached, written=written, total=given + output)
