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
    """Put `text` on the clipboard; `what` names it for the person, such as "code, 12 lines"."""

    def __init__(self, text: str, what: str) -> None:
        super().__init__()
        self.text, self.what = text, what


class RawRequested(Message):
    """Show the stored record of `spoken`; `block` is the one under the cursor, if any."""

    def __init__(self, spoken: Spoken, block: Block | None) -> None:
        super().__init__()
        self.spoken, self.block = spoken, block


class FileRequested(Message):
    """Open a file in the editor; `path` as the tool named it, `line` counts from 1."""

    def __init__(self, path: str, line: int | None = None) -> None:
        super().__init__()
        self.path, self.line = path, line


class HistoryRequested(Message):
    """Show which sessions wrote a file; `path` as the tool named it, absolute for the app."""

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
    """Show the messages that were rewound, buried or failed, or hide them again."""


class TranscriptMoved(Message):
    """The cursor, the search or the following changed: the status line reads the view again.

    Replaceable, so that a storm of them is one.
    """

    def can_replace(self, message: Message) -> bool:
        """A newer one says all that an older one said."""
        return isinstance(message, TranscriptMoved)


class NewRunRequested(Message):
    """Show the run pane, ready for a new run in `folder`."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder


class ContinueRequested(Message):
    """Show the run pane, ready to continue a stored session; `prompt`: with this in its prompt."""

    def __init__(self, session: Summary, prompt: str = "") -> None:
        super().__init__()
        self.session, self.prompt = session, prompt


class ChatRequested(Message):
    """Show the run pane, ready to go on with a chat that may not be listed yet.

    `session`: its id, None = a new chat. `path`: its file, None = unknown. `prompt`: the text to
    begin with in the prompt.
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
    """Show the policy pane with the rule that would allow `call` in its form.

    `policies`: the policy files of the run that made it.
    """

    def __init__(self, call: Call, policies: tuple[Path, ...]) -> None:
        super().__init__()
        self.call, self.policies = call, policies


class SessionRequested(Message):
    """Show a session with the cursor on the tool call with this id ("" = at its start)."""

    def __init__(self, session: Summary, call: str = "") -> None:
        super().__init__()
        self.session, self.call = session, call
