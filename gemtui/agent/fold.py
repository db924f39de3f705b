"""Build a run's transcript from its events, one event at a time.

Adding an event takes constant time, however long the run is; `transcript` returns an immutable
snapshot. Unchanged messages keep their `Outline` objects, so a view renders only what is new. The
result has the same shape as a stored session: one model message per answer, with its text before
its tool calls.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace as message_with
from datetime import UTC, datetime, timedelta

from msgspec.structs import replace

from gemtui.agent.events import (
    PARENT_CALL,
    AgentEvent,
    Done,
    ErrorSaid,
    Prompted,
    ResultStatus,
    TextDelta,
    TextSaid,
    Thinking,
    ToolResult,
    ToolUse,
)
from gemtui.transcript import tool_output
from gemtui.transcript.displays import display_of, written_display
from gemtui.transcript.model import (
    Activity,
    AgentDisplay,
    Author,
    Block,
    Display,
    Message,
    Notice,
    NoticeLevel,
    Outline,
    Text,
    Thought,
    ToolCall,
    ToolStatus,
    Transcript,
    outline,
)
from gemtui.transcript.parts import pretty, string
from gemtui.transcript.tools import ToolKind, kind_of, requested_change, target

_STATUS = {
    ResultStatus.SUCCESS: ToolStatus.SUCCESS,
    ResultStatus.ERROR: ToolStatus.ERROR,
    ResultStatus.DENIED: ToolStatus.DENIED,
}


class _Open:
    """The model message to which events may still add contents."""

    def __init__(self, id: str, time: datetime, model: str | None) -> None:
        self.id, self.time, self.model = id, time, model
        self.blocks: list[Block] = []
        self.deltas: list[str] = []
        self.answered = False
        """Whether a tool call in this message has ended.

        If so, the next text starts a new message.
        """

    def message(self) -> Message:
        text = "".join(self.deltas)
        if len(self.deltas) > 1:
            self.deltas = [text]
        blocks: list[Block] = [block for block in self.blocks if isinstance(block, Thought)]
        if text.strip():
            blocks.append(Text(text=text))
        blocks += [block for block in self.blocks if not isinstance(block, Thought)]
        return Message(
            id=self.id,
            author=Author.MODEL,
            blocks=tuple(blocks),
            time=self.time,
            model=self.model,
        )


class Fold:
    """Builds the growing transcript of a run.

    `prompt` becomes the first message. `model` is the name of the model that answers.
    """

    def __init__(self, prompt: str, *, began: datetime, model: str | None = None) -> None:
        self._model = model
        self._messages: list[Message] = []
        self._outlines: list[Outline] = []
        self._places: dict[str, tuple[int, int]] = {}
        self._steps: dict[str, Activity] = {}
        """The calls of subagents, by their ids."""
        self._parents: dict[str, str] = {}
        """The call that started the subagent, by the id of the subagent's call."""
        self._open: _Open | None = None
        self._made = 0
        self.revision = 0
        self._prompts = 0
        self._prompt(prompt, began)

    def add(self, event: AgentEvent) -> None:
        """Add one of the run's events to the transcript."""
        payload = event.payload
        self.revision += 1
        parent = string((event.metadata or {}).get(PARENT_CALL))
        if parent:
            self._step(parent, payload)
        elif isinstance(payload, TextDelta):
            self._answer(event).deltas.append(payload.delta)
        elif isinstance(payload, TextSaid):
            self._whole(payload.content, event)
        elif isinstance(payload, ToolUse):
            self._use(payload, event)
        elif isinstance(payload, ToolResult):
            self._result(payload, event)
        elif isinstance(payload, Thinking):
            time = _time(event)
            thought = Thought(subject="", description=payload.summary, time=time)
            self._answer(event).blocks.append(thought)
        elif isinstance(payload, Prompted):
            self._close()
            self._prompt(payload.content, _time(event))
        elif isinstance(payload, ErrorSaid):
            self._notice(payload, event)
        elif isinstance(payload, Done):
            self._end()

    def transcript(self) -> Transcript:
        """Return the conversation so far, including the message that is still growing."""
        messages, outlines = tuple(self._messages), tuple(self._outlines)
        if self._open is not None:
            last = self._open.message()
            messages, outlines = (*messages, last), (*outlines, outline(last))
        return Transcript(outlines=outlines, read=messages.__getitem__, revision=self.revision)

    def _prompt(self, text: str, time: datetime) -> None:
        if text.strip():
            self._prompts += 1
            number = f"-{self._prompts}" if self._prompts > 1 else ""
            blocks = (Text(text=text.rstrip("\n")),)
            prompt = Message(
                id=f"prompt{number}", author=Author.USER, blocks=blocks, time=time, prompt=True
            )
            self._put(prompt)

    # --- one event -----------------------------------------------------------------------------

    def _answer(self, event: AgentEvent) -> _Open:
        """Return the message being built; start a new one if a tool call in it has ended."""
        if self._open is None or self._open.answered:
            self._close()
            self._made += 1
            self._open = _Open(f"answer-{self._made}", _time(event), self._model)
        return self._open

    def _whole(self, content: str, event: AgentEvent) -> None:
        """Add text that arrived in one piece, unless its deltas have already been added."""
        if self._open is not None and "".join(self._open.deltas).endswith(content):
            return
        self._answer(event).deltas.append(content)

    def _use(self, use: ToolUse, event: AgentEvent) -> None:
        call = replace(_started(use), time=_time(event))
        answer = self._answer(event)
        self._places[call.id] = (len(self._messages), len(answer.blocks))
        answer.blocks.append(call)

    def _result(self, result: ToolResult, event: AgentEvent) -> None:
        position = self._places.get(result.tool_use_id)
        if position is None:
            self._use(
                ToolUse(tool_name=result.tool_name, tool_use_id=result.tool_use_id, input={}), event
            )
            position = self._places[result.tool_use_id]
        if self._open is not None and position[0] == len(self._messages):
            self._open.answered = True
        self._change(result.tool_use_id, lambda call: _ended(call, result, event))

    def _step(self, parent: str, payload: object) -> None:
        """Add what a subagent does to the call that started it. `parent`: this call's id."""
        if parent not in self._places:
            return
        if isinstance(payload, ToolUse):
            text = f"{payload.tool_name} {target(_started(payload))}".rstrip()
            started = Activity(kind="tool_call", text=text, status=ToolStatus.RUNNING)
            self._steps[payload.tool_use_id] = started
        elif isinstance(payload, ToolResult) and payload.tool_use_id in self._steps:
            step_id = payload.tool_use_id
            ended = replace(self._steps[step_id], status=_STATUS[payload.status])
            self._steps[step_id] = ended
        else:
            return
        self._parents[payload.tool_use_id] = parent
        steps = tuple(step for id, step in self._steps.items() if self._parents[id] == parent)
        self._change(parent, lambda call: replace(call, display=_progress(call, steps)))

    def _change(self, id: str, changed: Callable[[ToolCall], ToolCall]) -> None:
        """Replace a call by a changed one, also in a message that is complete."""
        index, at = self._places[id]
        if self._open is not None and index == len(self._messages):
            call = self._open.blocks[at]
            assert isinstance(call, ToolCall)
            self._open.blocks[at] = changed(call)
            return
        message = self._messages[index]
        blocks = tuple(
            changed(block) if isinstance(block, ToolCall) and block.id == id else block
            for block in message.blocks
        )
        self._messages[index] = message_with(message, blocks=blocks)
        self._outlines[index] = outline(self._messages[index])

    def _notice(self, error: ErrorSaid, event: AgentEvent) -> None:
        self._close()
        self._made += 1
        level = NoticeLevel.WARNING if error.recoverable else NoticeLevel.ERROR
        self._put(
            Message(
                id=f"notice-{self._made}",
                author=Author.SYSTEM,
                blocks=(Notice(level=level, text=error.message),),
                time=_time(event),
            )
        )

    def _end(self) -> None:
        """End the transcript, and mark tool calls without a result as unconfirmed."""
        self._close()
        for index, message in enumerate(self._messages):
            if any(_is_running(block) for block in message.blocks):
                blocks = tuple(
                    replace(block, status=ToolStatus.UNCONFIRMED)
                    if isinstance(block, ToolCall) and _is_running(block)
                    else block
                    for block in message.blocks
                )
                self._messages[index] = message_with(message, blocks=blocks)
                self._outlines[index] = outline(self._messages[index])

    def _close(self) -> None:
        if self._open is not None:
            self._put(self._open.message())
            self._open = None

    def _put(self, message: Message) -> None:
        self._messages.append(message)
        self._outlines.append(outline(message))


def _started(use: ToolUse) -> ToolCall:
    return ToolCall(
        id=use.tool_use_id,
        name=use.tool_name,
        args=use.input,
        status=ToolStatus.RUNNING,
        description=use.description,
    )


def _ended(call: ToolCall, result: ToolResult, event: AgentEvent) -> ToolCall:
    """Return the call with its result added.

    An edit's diff is derived from the call's arguments if the stream contains none.
    """
    output = result.output
    if output is not None and not isinstance(output, str):
        output = pretty(output)
    status = _STATUS[result.status]
    if status is ToolStatus.DENIED and tool_output.is_blocked(output or ""):
        status = ToolStatus.REFUSED
    duration = None if result.duration_ms is None else timedelta(milliseconds=result.duration_ms)
    call = replace(call, status=status, time=_time(event), duration=duration)
    if status is not ToolStatus.SUCCESS:
        return replace(call, output=None, error=output, display=None)
    kind = kind_of(call.name)
    display: Display | None
    if isinstance(call.display, AgentDisplay):
        display = replace(call.display, state="completed", result=output)
    elif result.display is not None:
        display = display_of(result.display)
    elif kind is ToolKind.SHELL:
        display = written_display(output)
    else:
        display = requested_change(kind, call.args, output)
    return replace(call, output=output, error=None, display=display)


def _progress(call: ToolCall, steps: tuple[Activity, ...]) -> AgentDisplay:
    """Return the display of a subagent that has done this."""
    if isinstance(call.display, AgentDisplay):
        return replace(call.display, activities=steps)
    agent = string(call.args.get("subagent_type"))
    return AgentDisplay(agent=agent, state="running", activities=steps)


def _is_running(block: Block) -> bool:
    return isinstance(block, ToolCall) and block.status is ToolStatus.RUNNING


def _time(event: AgentEvent) -> datetime:
    return datetime.fromtimestamp(event.timestamp / 1000, UTC)
