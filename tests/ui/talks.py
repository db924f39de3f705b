"""Transcripts made by hand, for tests of the transcript view."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

from msgspec.structs import replace
from textual.strip import Strip

from gemtui.transcript.displays import display_of
from gemtui.transcript.model import (
    Author,
    Block,
    Message,
    Outline,
    Text,
    Thought,
    ToolCall,
    ToolStatus,
    Transcript,
)
from gemtui.ui.draw.theme import Look, plain_look
from gemtui.ui.transcript.message import Drawn, DrawnBlock

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)


def look(width: int = 60) -> Look:
    return plain_look(width, now=NOW, tz=UTC)


def prompt(id: str, text: str) -> Message:
    return Message(id=id, author=Author.USER, blocks=(Text(text=text),), prompt=True)


def answer(id: str, *blocks: Block | str) -> Message:
    made = tuple(Text(text=block) if isinstance(block, str) else block for block in blocks)
    return Message(id=id, author=Author.MODEL, blocks=made)


def paragraphs(count: int, word: str = "paragraph") -> str:
    """A text of 2 * count - 1 lines."""
    return "\n\n".join(f"{word} {number}" for number in range(count))


def tool(id: str, output: str = "done", *, failed: bool = False) -> ToolCall:
    return ToolCall(
        id=id,
        name="run_shell_command",
        args={"command": f"run {id}"},
        status=ToolStatus.ERROR if failed else ToolStatus.SUCCESS,
        output=None if failed else output,
        error=output if failed else None,
        display=None if failed else display_of(output),
    )


def thought(subject: str, description: str) -> Thought:
    return Thought(subject=subject, description=description)


BUILDERS: dict[str, Callable[..., Any]] = {
    "prompt": prompt,
    "answer": answer,
    "tool": lambda *words, **more: replace(tool(*words), **more),
    "thought": thought,
}


def built(row: dict[str, Any]) -> Any:
    """Read what a table tells as `{"answer": ["a", "world"]}`."""
    name = next(iter(row), "")
    if name == "paragraphs":
        return paragraphs(row[name])
    return BUILDERS[name](*row.pop(name), **row) if name in BUILDERS else row


class Talk:
    """Messages that change over time; counts which of them are read."""

    def __init__(self, *messages: Message) -> None:
        self.messages: tuple[Message, ...] = messages
        self._transcript = Transcript.of(messages)
        self.reads: list[str] = []

    def now(self) -> Transcript:
        messages = self.messages

        def read(index: int) -> Message:
            self.reads.append(messages[index].id)
            return messages[index]

        return Transcript(outlines=self._transcript.outlines, read=read)

    def become(self, messages: Sequence[Message]) -> Transcript:
        """A newer state: messages that are the same objects keep their outlines."""
        kept = dict(zip(map(id, self.messages), self._transcript.outlines, strict=True))
        fresh = Transcript.of(messages).outlines
        outlines = [kept.get(id(one), new) for one, new in zip(messages, fresh, strict=True)]
        self.messages = tuple(messages)
        self._transcript = Transcript(outlines=tuple(outlines), read=messages.__getitem__)
        return self.now()

    def add(self, *messages: Message) -> Transcript:
        return self.become((*self.messages, *messages))


def long_talk(turns: int = 20) -> Talk:
    """Turns of a prompt, and an answer with a thought, a text and a tool call (every 5th fails)."""
    messages: list[Message] = []
    for turn in range(turns):
        messages.append(prompt(f"p{turn}", f"question {turn}"))
        messages.append(
            answer(
                f"a{turn}",
                thought(f"subject {turn}", "a description\nof two lines"),
                f"reply {turn}\n\nand more of it",
                tool(f"t{turn}", "\n".join(f"row {row}" for row in range(9)), failed=turn % 5 == 4),
            )
        )
    return Talk(*messages)


def plain_drawing(height: int, label: str) -> Drawn:
    """A drawing of one block with a line for each of its rows, without head line."""
    strips = tuple(Strip.blank(0) for _ in range(height))
    part = DrawnBlock(block=0, start=0, end=height)
    none = (None,) * height
    return Drawn(strips=strips, parts=(part,), margins=(0,) * height, joints=none, grounds=none)


def outlines(ids: Sequence[str]) -> tuple[Outline, ...]:
    return tuple(Outline(id=id, author=Author.MODEL) for id in ids)


Draw = Callable[[int], Drawn]
