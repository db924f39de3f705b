"""Messages that widgets and workers send to screens and the app.

Nobody compares or prints them, and methods for that would take longer to make than the rest.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from textual.message import Message

from gemtui.agents import Agent
from gemtui.sessions.catalog.summary import Summary

if TYPE_CHECKING:
    from gemtui.policy.model.rules import ApprovalMode, Call


@dataclass(eq=False, repr=False)
class CopyRequested(Message):
    """Request to copy `text` to the clipboard.

    `what` describes the text to the user, for example "code, 12 lines".
    """

    text: str
    what: str


@dataclass(eq=False, repr=False)
class FileRequested(Message):
    """Request to open a file in the editor.

    `path`: the path as a tool call named it. `line`: 1-based line number, or None.
    """

    path: str
    line: int | None = None


@dataclass(eq=False, repr=False)
class HistoryRequested(Message):
    """Request to show every write to a file, in all sessions.

    `path`: the path, initially as a tool call named it. Before the message reaches the app, a
    screen makes the path absolute.
    """

    path: str


@dataclass(eq=False, repr=False)
class SubagentRequested(Message):
    """Request to open the session of the subagent with this id."""

    agent_id: str


class BackRequested(Message):
    """Request to return to the list; posted if a pane has nothing left to close."""


class DroppedRequested(Message):
    """Request to show or hide messages that are no longer part of the conversation.

    These are messages that failed, or that were rewound or replaced.
    """


class TranscriptMoved(Message):
    """Posted when a transcript's cursor, search or follow mode has changed.

    The status line is then updated. The message is replaceable, so a burst of them causes only one
    update.
    """

    def can_replace(self, message: Message) -> bool:
        """Return True for a message of the same class, so that the newer one replaces it."""
        return isinstance(message, TranscriptMoved)


@dataclass(eq=False, repr=False)
class NewRunRequested(Message):
    """Request to show the run pane, ready for a new run in `folder`."""

    folder: Path


@dataclass(eq=False, repr=False)
class ContinueRequested(Message):
    """Request to show the run pane, ready to continue a stored session.

    `prompt`: the text to put into the prompt field.
    """

    session: Summary
    prompt: str = ""


@dataclass(eq=False, repr=False)
class ChatRequested(Message):
    """Request to show the run pane for a chat in `folder`.

    The session list may not contain the chat yet. `session`: the chat's id, or None for a new chat.
    `path`: the chat's file, or None if unknown. `prompt`: the text to put into the prompt field.
    `agent`: the one that runs; None keeps the chosen one.
    """

    folder: Path
    session: str | None
    path: Path | None
    prompt: str
    agent: Agent | None = None


@dataclass(eq=False, repr=False)
class RunWithPolicyRequested(Message):
    """Request to show the run pane, ready for a run with these policies.

    `mode`: the approval mode; None means the one that is chosen there, and then the pane is left as
    it is otherwise.
    """

    policies: tuple[Path, ...]
    mode: ApprovalMode | None


@dataclass(eq=False, repr=False)
class AllowCallRequested(Message):
    """Request to show the form for a new rule that would allow `call`.

    `policies`: the policy files used by the run that made the call.
    """

    call: Call
    policies: tuple[Path, ...]


@dataclass(eq=False, repr=False)
class SessionRequested(Message):
    """Request to show a session, with the cursor on one of its tool calls.

    `call`: the tool call's id; "" puts the cursor at the start of the session.
    """

    session: Summary
    call: str = ""
