"""The transcript: messages made of blocks, in the order in which they happened.

Stored sessions and live runs share this immutable model. The model keeps everything that Gemini
records; the Claude-compatible unified format is derived from it (`unified.py`). A display is the
typed form of what a tool shows the user. All strings in the model are raw and untrusted. They are
sanitized by `gemtui.text.clean` when they are rendered or exported, not here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from dataclasses import replace as message_with
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from gemtui.agents import Agent
from gemtui.transcript.usage import Usage, usage_sum


class TextDisplay(Struct, frozen=True, kw_only=True):
    """Plain text or Markdown."""

    text: str
    markdown: bool = False


class DiffDisplay(Struct, frozen=True, kw_only=True):
    """A change to one file, as a unified diff.

    The diff was either stored by the CLI or built from the call's arguments. `path`: absolute if
    the CLI stored an absolute path. `added`, `removed`: numbers of lines; None if unknown.
    `original`, `new`: the file's contents before and after; None if unknown.
    """

    diff: str
    path: str
    name: str
    added: int | None = None
    removed: int | None = None
    is_new: bool = False
    original: str | None = None
    new: str | None = None


class Match(Struct, frozen=True, kw_only=True):
    """A line found by a search. `line`: its 1-based number; None if unknown."""

    path: str
    line: int | None
    text: str


class MatchesDisplay(Struct, frozen=True, kw_only=True):
    """The result of grep_search."""

    summary: str
    matches: tuple[Match, ...]


class FilesDisplay(Struct, frozen=True, kw_only=True):
    """The result of list_directory or read_many_files.

    `skipped`: pairs of a path and the reason it was skipped.
    """

    summary: str
    files: tuple[str, ...]
    skipped: tuple[tuple[str, str], ...] = ()


class Activity(Struct, frozen=True, kw_only=True):
    """A step of a subagent."""

    kind: str
    text: str
    status: str


class AgentDisplay(Struct, frozen=True, kw_only=True):
    """A subagent's progress. `reason`: why it ended; None if unknown or still running."""

    agent: str
    state: str
    activities: tuple[Activity, ...]
    result: str | None = None
    reason: str | None = None


class Todo(Struct, frozen=True, kw_only=True):
    """A todo item.

    `status`: as stored by the CLI, such as pending, in_progress, or completed.
    """

    text: str
    status: str


class TodosDisplay(Struct, frozen=True, kw_only=True):
    """A todo list."""

    items: tuple[Todo, ...]


class AnsiSpan(Struct, frozen=True, kw_only=True):
    """A piece of terminal output in one style.

    `fg` and `bg`: the colours as "#rrggbb", or "" for the default.
    """

    text: str
    bold: bool = False
    italic: bool = False
    underline: bool = False
    dim: bool = False
    inverse: bool = False
    fg: str = ""
    bg: str = ""


class ScreenDisplay(Struct, frozen=True, kw_only=True):
    """An interactive shell's terminal screen, without trailing spaces."""

    lines: tuple[tuple[AnsiSpan, ...], ...]


class TableDisplay(Struct, frozen=True, kw_only=True):
    """A table, from a tool that returned a list of flat objects."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


class JsonDisplay(Struct, frozen=True, kw_only=True):
    """A result of any other form, to be shown as indented JSON."""

    value: Any


Display = (
    TextDisplay
    | DiffDisplay
    | MatchesDisplay
    | FilesDisplay
    | AgentDisplay
    | TodosDisplay
    | ScreenDisplay
    | TableDisplay
    | JsonDisplay
)


class Author(StrEnum):
    """A message's author."""

    USER = "user"
    MODEL = "model"
    SYSTEM = "system"
    """The CLI itself, in records of type info, warning, and error."""


class NoticeLevel(StrEnum):
    """The severity of a notice, with the names of the CLI's record types."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class ToolStatus(StrEnum):
    """The progress or result of a tool call."""

    QUEUED = "queued"
    """The call is waiting until the user has answered a question about another call."""
    RUNNING = "running"
    SUCCESS = "success"
    ERROR = "error"
    CANCELLED = "cancelled"
    """The user denied the call or stopped the request, so an edit was *not* written."""
    DENIED = "denied"
    """A policy denied the call, or the tool is not permitted in this mode."""
    REFUSED = "refused"
    """The tool itself refused the call, which the CLI stores as a success."""
    INTERRUPTED = "interrupted"
    UNCONFIRMED = "unconfirmed"
    """The call was started, but its end is not recorded."""

    @property
    def failed(self) -> bool:
        """Whether this status means that the call did not do what was asked.

        Exit codes are not considered; see `ToolCall.failed`.
        """
        return self in _FAILED


_FAILED = (ToolStatus.ERROR, ToolStatus.CANCELLED, ToolStatus.DENIED, ToolStatus.REFUSED)


class Dropped(StrEnum):
    """The reasons why a message in the log is no longer part of the conversation."""

    REWOUND = "rewound"
    BURIED = "buried"
    """A new list of messages, without this one, replaced the conversation."""
    FAILED_PROMPT = "failed_prompt"

    @property
    def word(self) -> str:
        """The reason in words, for display."""
        return _DROPPED_WORDS[self]


_DROPPED_WORDS = {
    Dropped.REWOUND: "rewound",
    Dropped.BURIED: "replaced",
    Dropped.FAILED_PROMPT: "failed prompt",
}


# --- blocks ----------------------------------------------------------------------------------


class Text(Struct, frozen=True, kw_only=True):
    """Text that the user typed or the model answered, in Markdown."""

    text: str


class Thought(Struct, frozen=True, kw_only=True):
    """A summary of the model's thoughts; `subject` may be empty."""

    subject: str
    description: str
    time: datetime | None = None

    @property
    def heading(self) -> str:
        """What stands above the description in exports."""
        return f"Thought: {self.subject}" if self.subject else "Thought"


class Notice(Struct, frozen=True, kw_only=True):
    """A message from the CLI: "Request cancelled.", "Conversation checkpoint saved …"."""

    level: NoticeLevel
    text: str


class Image(Struct, frozen=True, kw_only=True):
    """Binary content that is named rather than shown: an image, a sound, or a PDF.

    `size`: in bytes after decoding; None if unknown. `name`: from the record or the prompt, or else
    the position, such as `image 1 of 2`. `uri`: for fileData. `data`: the stored base64, not
    decoded; "" if only the address is stored.
    """

    mime_type: str
    size: int | None = None
    name: str | None = None
    uri: str | None = None
    data: str = ""


LONGEST_LABEL = 400
"""Maximum number of characters shown of an attachment's name, or an image's name, type or address.
"""


class Attachment(Struct, frozen=True, kw_only=True):
    """Text the CLI appended to a prompt: a file named with @, or hook context."""

    name: str
    text: str

    @property
    def shown_name(self) -> str:
        """The name as far as it is shown, raw and untrusted."""
        return self.name[:LONGEST_LABEL]


class Consent(StrEnum):
    """The user's decision on whether a tool call may be made.

    In a run that asks for approval, the user allows or denies each call, or stops the run. gemtui's
    approval gate, which asks the user, records the outcome.
    """

    WAITS = "waits"
    ALLOWED = "allowed"
    CHANGED = "changed"
    """The call was allowed with arguments that the user changed."""
    DENIED = "denied"
    STOPPED = "stopped"
    """The call was denied, and the run was ended."""
    ABANDONED = "abandoned"
    """The question was not answered before the run ended, or could not be asked.

    The call was not made.
    """


class Beyond(StrEnum):
    """For how long the approval of one call also applies to similar calls."""

    RUN = "run"
    ALWAYS = "always"
    TAKEN_BACK = "taken_back"
    """The user has revoked the approval."""


class Answer(Struct, frozen=True, kw_only=True):
    """The user's answer when asked whether a tool call may be made.

    `asked`: the model's original arguments, if the user changed them. `reason`: the text sent to
    the model with a denial. `subagent`: whether a subagent made the call; the CLI's output doesn't
    report such calls. `beyond`: None if the approval was for this call only. `agent`: who asked.
    """

    consent: Consent
    asked: Mapping[str, Any] | None = None
    reason: str = ""
    subagent: bool = False
    beyond: Beyond | None = None
    agent: Agent = Agent.GEMINI


class ToolCall(Struct, frozen=True, kw_only=True):
    """A tool call and, if known, its result.

    * `name`: Gemini's own name for the tool.
    * `output`, `error`: what the model received, with all text parts joined.
    * `display`: what the CLI showed the user.
    * `time`: when the result was recorded.
    * `duration`: measured in a run. In a stored session, the time from the answer with the call to
      the recorded result, including the wait for the user's approval.
    * `agent_id`: the session id of the subagent that did the work.
    * `answer`: the user's answer, in a run that asks for approval.
    * `rule`: a description of the user's own rule that allowed the call in such a run without
      asking.
    * `hooked`: whether a hook other than gemtui's own changed the arguments; `args` has the changed
      ones.
    * `checkpoint`: whether the call's changes to the project's files are in a checkpoint.
    * `project`: the session's folder, to which paths are shown relative; None if unknown.
    """

    id: str
    name: str
    args: Mapping[str, Any]
    status: ToolStatus
    output: str | None = None
    error: str | None = None
    display: Display | None = None
    description: str | None = None
    display_name: str | None = None
    time: datetime | None = None
    duration: timedelta | None = None
    agent_id: str | None = None
    images: tuple[Image, ...] = ()
    exit_code: int | None = None
    answer: Answer | None = None
    rule: str = ""
    hooked: bool = False
    checkpoint: bool = False
    project: str | None = None

    @property
    def failed(self) -> bool:
        """Whether the call failed, as all counts and searches define it.

        A call failed if its status says so, or if it is a command with a nonzero exit code.
        """
        return self.status.failed or bool(self.exit_code)


Block = Text | Thought | Notice | Image | Attachment | ToolCall


# --- messages --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message with its blocks, in the order in which they happened.

    `id`: unique in a transcript. `original`: the stored record; None in a live run.
    """

    id: str
    author: Author
    blocks: tuple[Block, ...]
    time: datetime | None = None
    model: str | None = None
    usage: Usage | None = None
    prompt: bool = False
    """Whether the user typed this message (not session context or tool replies)."""
    dropped: Dropped | None = None
    checkpoint: bool = False
    """Whether a checkpoint of the project's files was created before this prompt."""
    original: Mapping[str, Any] | None = field(default=None, repr=False, compare=False)
    agent: Agent = Agent.GEMINI


class Outline(Struct, frozen=True, kw_only=True, gc=False):
    """The facts about a message that stay in memory without its body.

    Outlines are compared by identity: if a view finds the very same object in a newer transcript,
    the message has not changed. `failures`: failed calls, as in `ToolCall.failed`. `errors`: calls
    with a failed recorded status. `size`: the bytes of the message's JSON, for estimating its
    height on the screen. `excerpt`: the first line of a prompt, truncated. `writes`: files written
    by its successful calls, as named in the calls. `tools`: the names of the called tools.
    """

    id: str
    author: Author
    time: datetime | None = None
    prompt: bool = False
    excerpt: str = ""
    calls: int = 0
    failures: int = 0
    errors: int = 0
    size: int = 0
    usage: Usage | None = None
    model: str | None = None
    writes: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    dropped: Dropped | None = None

    @property
    def is_current_prompt(self) -> bool:
        """Whether the message is a prompt that is still part of the conversation."""
        return self.prompt and self.dropped is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Transcript:
    """A conversation at one moment: outlines in memory, bodies read when needed.

    `read(i)` returns the message for `outlines[i]`. It may read from the disk (a few hundred
    microseconds) and never raises; a message that can't be read any more is replaced by a notice.
    `revision`: a number that differs between versions of the same transcript.
    """

    outlines: Sequence[Outline]
    read: Callable[[int], Message] = field(compare=False)
    revision: int = 0

    @classmethod
    def of(cls, messages: Sequence[Message], *, revision: int = 0) -> Transcript:
        """Return a transcript of messages that are in memory.

        `revision`: a number that differs between versions of the same transcript.
        """
        return cls(
            outlines=tuple(outline(message) for message in messages),
            read=messages.__getitem__,
            revision=revision,
        )

    def __len__(self) -> int:
        return len(self.outlines)

    def __iter__(self) -> Iterator[Message]:
        return (self.read(index) for index in range(len(self.outlines)))

    def calls(self) -> list[ToolCall]:
        """Return all tool calls in order. Only messages with calls are read."""
        return [
            block
            for index, line in enumerate(self.outlines)
            if line.calls
            for block in self.read(index).blocks
            if isinstance(block, ToolCall)
        ]

    @property
    def usage(self) -> Usage | None:
        """The sum of the token counts of all messages, or None if no counts are known.

        Dropped messages are not counted.
        """
        usages = [line.usage for line in self.outlines if line.usage and line.dropped is None]
        return usage_sum(usages) if usages else None


def with_project(transcript: Transcript, project: str | None) -> Transcript:
    """Return a transcript whose calls know the session's folder; None if it is unknown."""
    if project is None:
        return transcript

    def read(index: int) -> Message:
        message = transcript.read(index)
        blocks = tuple(
            replace(block, project=project) if isinstance(block, ToolCall) else block
            for block in message.blocks
        )
        return message_with(message, blocks=blocks)

    return Transcript(outlines=transcript.outlines, read=read, revision=transcript.revision)


EXCERPT = 200


def outline(message: Message) -> Outline:
    """Return the outline of a message that is in memory.

    Its `errors`, `writes`, and `tools` are left empty; they are known for stored messages only.
    """
    calls = [block for block in message.blocks if isinstance(block, ToolCall)]
    text = "".join(block.text for block in message.blocks if isinstance(block, Text))
    return Outline(
        id=message.id,
        author=message.author,
        time=message.time,
        prompt=message.prompt,
        excerpt=excerpt(text) if message.prompt else "",
        calls=len(calls),
        failures=sum(call.failed for call in calls),
        size=len(text) + sum(len(call.output or "") + len(call.error or "") for call in calls),
        usage=message.usage,
        model=message.model,
        dropped=message.dropped,
    )


def excerpt(text: str) -> str:
    """Return a string's first non-empty line, truncated to 200 characters.

    Whitespace is collapsed to single spaces.
    """
    for line in text[: EXCERPT * 20].splitlines():
        folded = " ".join(line.split())
        if folded:
            return folded[:EXCERPT]
    return ""
