"""Messages from widgets and workers to screens and to the app."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from textual.message import Message

from gemtui.sessions.summary import Summary
from gemtui.transcript.model import Block
from gemtui.transcript.model import Message as Spoken

if TYPE_CHECKING:
    from gemtui.policy.model.rules import ApprovalMode, Call


class CopyRequested(Message):
    """Put `text` on the clipboard.

    `what` names it for the person, such as "code, 12 lines".
    """

    def __init__(self, text: str, what: str) -> None:
        super().__init__()
        self.text, self.what = text, what


class RawRequested(Message):
    """Show the stored record of `spoken`; `block`: the one under the cursor, if any."""

    def __init__(self, spoken: Spoken, block: Block | None) -> None:
        super().__init__()
        self.spoken, self.block = spoken, block


class FileRequested(Message):
    """Open a file in the editor; `path` as the tool named it, `line` counts from 1."""

    def __init__(self, path: str, line: int | None = None) -> None:
        super().__init__()
        self.path, self.line = path, line


class HistoryRequested(Message):
    """Show the sessions that wrote a file.

    `path` as the tool named it, absolute for the app.
    """

    def __init__(self, path: str) -> None:
        super().__init__()
        self.path = path


class SubagentRequested(Message):
    """Open the session of the subagent with this id."""

    def __init__(self, agent_id: str) -> None:
        super().__init__()
        self.agent_id = agent_id


class BackRequested(Message):
    """The transcript has nothing left to close: go back to the list."""


class DroppedRequested(Message):
    """Show or hide the messages that were rewound, buried or failed."""


class TranscriptMoved(Message):
    """The status line must be updated: cursor, search or following changed.

    Replaceable, so that a storm of them is one.
    """

    def can_replace(self, message: Message) -> bool:
        """Return True for the same class, as a newer one includes the older one."""
        return isinstance(message, TranscriptMoved)


class NewRunRequested(Message):
    """Show the run pane, ready for a new run in `folder`."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder


class ContinueRequested(Message):
    """Show the run pane, ready to continue a stored session.

    `prompt`: its prompt text.
    """

    def __init__(self, session: Summary, prompt: str = "") -> None:
        super().__init__()
        self.session, self.prompt = session, prompt


class ChatRequested(Message):
    """Show the run pane, ready to continue a chat that may not be listed yet.

    `session`: its id, None for a new chat. `path`: its file, None if unknown. `prompt`: the initial
    text of the prompt.
    """

    def __init__(self, folder: Path, session: str | None, path: Path | None, prompt: str) -> None:
        super().__init__()
        self.folder, self.session, self.path, self.prompt = folder, session, path, prompt


class RunWithPolicyRequested(Message):
    """Show the run pane, ready for a run with these policy files in this mode."""

    def __init__(self, policies: tuple[Path, ...], mode: ApprovalMode) -> None:
        super().__init__()
        self.policies, self.mode = policies, mode


class AllowCallRequested(Message):
    """Show the policy pane with a form for the rule that would allow `call`.

    `policies`: the policy files of the call's run.
    """

    def __init__(self, call: Call, policies: tuple[Path, ...]) -> None:
        super().__init__()
        self.call, self.policies = call, policies


class SessionRequested(Message):
    """Show a session with the cursor on a tool call ("" for its start)."""

    def __init__(self, session: Summary, call: str = "") -> None:
        super().__init__()
        self.session, self.call = session, call
