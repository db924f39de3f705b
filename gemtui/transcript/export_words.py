"""Phrases shared by all exports: authors, times, results, and token counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import datetime, tzinfo
from itertools import groupby
from typing import Protocol

from gemtui.agents import WORDS
from gemtui.text import HOLDS_CONTROLS, Clean, clean_line, counted, duration, visible, visible_line
from gemtui.transcript.call_text import omitted_arguments
from gemtui.transcript.model import (
    Author,
    DiffDisplay,
    Dropped,
    Message,
    Notice,
    NoticeLevel,
    ToolCall,
    ToolStatus,
    Transcript,
)
from gemtui.transcript.parts import pretty, string
from gemtui.transcript.tools import args_hold_controls, is_builtin, target, target_argument
from gemtui.transcript.usage import Usage


class ExportHeading(Protocol):
    """Facts about a session for exports, such as a `sessions.summary.Summary`."""

    @property
    def id(self) -> str:
        """The full session id."""

    @property
    def title(self) -> str:
        """The title, which is raw and untrusted."""

    @property
    def project(self) -> str | None:
        """The project's folder; None if unknown."""

    @property
    def parent(self) -> str | None:
        """The id of the session that called this subagent; None for other sessions."""

    @property
    def models(self) -> tuple[str, ...]:
        """The names of the models that answered."""

    @property
    def started(self) -> datetime | None:
        """The time when the session started; None if unknown."""

    @property
    def updated(self) -> datetime | None:
        """The time when the session was last updated; None if unknown."""

    @property
    def prompts(self) -> int:
        """The number of prompts typed by the user."""

    @property
    def messages(self) -> int:
        """The number of messages in the conversation."""

    @property
    def tool_calls(self) -> int:
        """The number of tool calls."""

    @property
    def failed_calls(self) -> int:
        """The number of tool calls that failed, by status or by exit code."""

    @property
    def tokens(self) -> Usage:
        """The tokens used by the whole conversation."""


def heading_facts(heading: ExportHeading) -> Iterator[tuple[str, Clean]]:
    """Yield the facts about a session for an export's heading, as (label, text).

    The title is not included. Unknown values are given as `unknown`.
    """
    yield "Session", clean_line(heading.id)
    if heading.parent:
        yield "Subagent of", clean_line(heading.parent)
    yield "Project", clean_line(heading.project or "unknown")
    yield "Models", clean_line(", ".join(heading.models) or "unknown")
    yield "Started", when(heading.started)
    yield "Updated", when(heading.updated)
    yield "Prompts", Clean(f"{heading.prompts:,}")
    yield "Messages", Clean(f"{heading.messages:,}")
    yield "Tool calls", Clean(f"{heading.tool_calls:,}, failed: {heading.failed_calls:,}")
    yield "Tokens", usage_words(heading.tokens)


def when(time: datetime | None, zone: tzinfo | None = None) -> Clean:
    """Format a time to the second, with its UTC offset; `unknown` for None.

    `zone`: the time zone; None means the local one.
    """
    if time is None:
        return Clean("unknown")
    with suppress(OverflowError, ValueError, OSError):  # a year the system can't convert
        time = time.astimezone(zone)
    return Clean(time.isoformat(sep=" ", timespec="seconds"))


def author_name(message: Message) -> Clean:
    """Name a message's author: `You`, the agent's model, or its program."""
    words = WORDS[message.agent]
    match message.author:
        case Author.USER:
            return Clean("You")
        case Author.MODEL:
            model = f" ({message.model})" if message.model else ""
            return clean_line(f"{words.speaker}{model}")
        case Author.SYSTEM:
            return Clean(f"{words.program}{_LEVELS[_level(message)]}")


_LEVELS = {NoticeLevel.INFO: "", NoticeLevel.WARNING: ", warning", NoticeLevel.ERROR: ", error"}


def _level(message: Message) -> NoticeLevel:
    levels = [block.level for block in message.blocks if isinstance(block, Notice)]
    return next((level for level in reversed(NoticeLevel) if level in levels), NoticeLevel.INFO)


def passages(transcript: Transcript, *, dropped: bool) -> Iterator[Message | Clean]:
    """Yield the messages of a transcript, each read only when it is needed.

    If `dropped` is false, consecutive dropped messages are replaced with one line that says how
    many there were.
    """
    places = enumerate(transcript.outlines)
    for left_out, row in groupby(places, lambda place: bool(place[1].dropped) and not dropped):
        if left_out:
            yield _left_out(Counter(line.dropped for _, line in row if line.dropped))
        else:
            yield from (transcript.read(index) for index, _ in row)


def _left_out(counts: Counter[Dropped]) -> Clean:
    messages = counted(counts.total(), "message")
    return Clean(f"{messages} not included: {dropped_words(counts)} (see gemtui show --dropped)")


def dropped_words(counts: Mapping[Dropped, int]) -> Clean:
    """Describe the numbers of dropped messages, as in `2 rewound, 1 failed prompt`."""
    return Clean(", ".join(f"{counts[why]:,} {why.word}" for why in Dropped if counts.get(why)))


def dropped_note(why: Dropped) -> Clean:
    """Explain why a message in the log is no longer part of the conversation."""
    return Clean(f"{why.word}: no longer part of the conversation")


STATUS = {
    ToolStatus.QUEUED: "queued",
    ToolStatus.RUNNING: "running",
    ToolStatus.SUCCESS: "ok",
    ToolStatus.ERROR: "failed",
    ToolStatus.CANCELLED: "cancelled",
    ToolStatus.DENIED: "denied",
    ToolStatus.REFUSED: "rejected by the tool itself",
    ToolStatus.INTERRUPTED: "interrupted",
    ToolStatus.UNCONFIRMED: "not confirmed; how it ended is unknown",
}


def head(message: Message) -> Clean:
    """Return the first line of a message: author, time, and why it was dropped."""
    facts = [author_name(message), when(message.time) if message.time else "time unknown"]
    if message.dropped:
        facts.append(dropped_note(message.dropped))
    return Clean(", ".join(facts))


def usage_words(usage: Usage) -> Clean:
    """Return the six token counts in words: total, input, cached, output, and others.

    Unknown counts are shown as `unknown`. If the counts don't add up to the total, a note says so.
    """

    def count(number: int | None) -> str:
        return "unknown" if number is None else f"{number:,}"

    counts = (
        f"{count(usage.total)} in total; input {count(usage.input)} "
        f"(cached {count(usage.cached)}), output {count(usage.output)}, "
        f"thoughts {count(usage.thoughts)}, tool {count(usage.tool)}"
    )
    return Clean(counts if usage.adds_up else f"{counts}; the numbers do not add up")


def call_words(call: ToolCall) -> Clean:
    """Describe how a tool call ended: status or exit code, duration, lines changed."""
    facts = [f"exit code {call.exit_code}" if ended_badly(call) else STATUS[call.status]]
    if call.duration is not None:
        facts.append(f"after {duration(call.duration)}")
    if isinstance(call.display, DiffDisplay):
        facts += _change_words(call.display, written=call.status is ToolStatus.SUCCESS)
    return Clean(", ".join(facts))


def ended_badly(call: ToolCall) -> bool:
    """Return whether a call is a failed command that is stored as a success.

    Such a command exited with a nonzero exit code, although its recorded status is success.
    """
    return call.status is ToolStatus.SUCCESS and bool(call.exit_code)


def _change_words(diff: DiffDisplay, *, written: bool) -> Iterator[str]:
    if not written:
        yield "not written"
    if diff.added is not None:
        yield f"{counted(diff.added, 'line')} added"
    if diff.removed is not None:
        yield f"{counted(diff.removed, 'line')} removed"


def subject(call: ToolCall) -> Clean:
    """Return what a call is about, such as its path or command, on one line.

    Control characters are made visible. If the subject has several lines, only the first is
    returned, followed by dots; `arguments` yields all of them.
    """
    first, *more = target(call).strip().split("\n", 1)
    return Clean(visible_line(first).strip() + (" ..." if more else ""))


def caution(call: ToolCall) -> Clean:
    """Return a warning if a call's arguments contain control characters; else ""."""
    return Clean(HOLDS_CONTROLS if args_hold_controls(call.args) else "")


def arguments(call: ToolCall) -> Iterator[tuple[Clean, Clean]]:
    """Yield a call's arguments as (name, value).

    Arguments that `subject` or the call's displayed result shows in full are left out.
    """
    repeated = omitted_arguments(call)
    for name, value in call.args.items():
        if not (_is_subject(call, value) or name in repeated):
            text = value if isinstance(value, str) else pretty(value)
            yield visible_line(str(name)), Clean(visible(text).strip("\n"))


def _is_subject(call: ToolCall, value: object) -> bool:
    about = target_argument(call).strip() if is_builtin(call.name) else ""
    return bool(about) and "\n" not in about and string(value).strip() == about
