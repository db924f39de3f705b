"""The summary of a session for lists."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from gemtui.agents import Agent
from gemtui.calls.paths import recorded_path
from gemtui.jsonout import fields
from gemtui.sessions.store.projects import is_hash, repository_of
from gemtui.sessions.store.store import SessionKind
from gemtui.transcript.usage import Usage

if TYPE_CHECKING:
    from gemtui.marks import Mark


class Flag(StrEnum):
    """A property of a session, with the names that `gemtui sessions --json` uses."""

    LIVE = "live"
    """The session was written to within the last minute. Copies are never live."""
    GHOST = "ghost"
    """The file is a copy and empty, but another file with its id is not.

    See assets/gemini-cli.md#ghosts.
    """
    EMPTY = "empty"
    """The session has no conversation, only notices from the CLI if anything."""
    FAILED_PROMPT = "failed_prompt"
    """All prompts failed and were removed again, but the log still has their text."""
    NOT_RESUMABLE = "nothing_to_resume"
    """Gemini CLI can't resume the session, because it has only commands or blank messages."""
    BURIED = "buried"
    """The log holds messages that were later replaced by different ones and never restored."""
    TORN = "torn"
    """The last line is truncated, or a legacy file was read half-written."""
    DUPLICATE = "duplicate"
    """The file is a copy; another file with the same id is the one in use."""
    KEPT = "kept"
    """Gemini CLI no longer has the file, or has it damaged, but the vault has it."""
    LOST = "lost"
    """The file is gone; only what was typed is left, in `logs.json`. Only searches find this."""

    __hash__ = str.__hash__  # faster than an enum's; lists hash thousands

    @property
    def word(self) -> str:
        """The property in words, for display."""
        return _WORDS.get(self, self.value)


_WORDS = {
    Flag.FAILED_PROMPT: "failed prompt",
    Flag.NOT_RESUMABLE: "nothing to resume",
    Flag.BURIED: "replaced messages",
    Flag.TORN: "incomplete",
    Flag.DUPLICATE: "copy",
    Flag.LOST: "file is gone",
}


class TitleSource(StrEnum):
    """The sources of a session's title."""

    NAME = "name"
    SUMMARY = "summary"
    PROMPT = "prompt"
    FAILED_PROMPT = "failed_prompt"
    NONE = "none"


NO_TITLE = "(empty)"
UNKNOWN_USAGE = Usage()


class CallFields(NamedTuple):
    """The facts about a tool call that the fields of a query can ask for.

    `tool`: its name, or "" for a file that is attached to a prompt. `failed`: as in a transcript.
    `paths`: the files that it names, as in the full-text search.
    """

    tool: str
    failed: bool
    paths: tuple[str, ...] = ()


class Summary(Struct, frozen=True, kw_only=True, gc=False, array_like=True, tag=True):
    """The facts about a session that lists show.

    * `title`: raw and untrusted, on one line, 200 characters at most.
    * `names`: the absolute paths of the session's files: the one in use, then those of `copies`.
    * `size` (bytes), `modified`: of the file in use.
    * `started`, `updated`: as recorded in the session; None if unknown.
    * `messages`: how many there are after replay, without session context and tool replies.
      `spoken`: how many of them a person or the model wrote.
    * `tool_failures`: how many calls have a recorded status that is a failure. `failed_calls`: the
      same, plus calls with a nonzero exit code or refused by the tool, as marked in a transcript.
    * `tokens`: the sums for all messages.
    * `partial`: whether only the first part was read, so that counts are lower bounds.
    * `problems`: how many lines or other parts of the file could not be read.
    * `copies`: the session's other files.
    * `directories`, `project_hash`: as in the header, for finding the project.
    * `waits`: whether a tool call was in flight at the last write, as far as the log shows.
    * `resumable`: whether the CLI can resume the session.
    * `has_header`: whether the file names the session and its project; the CLI removes files that
      don't (assets/gemini-cli.md#clean-up).
    * `ended_badly`: whether calls in its last message failed, with nothing after them.
    * `agent`: the agent that wrote the file.
    * `cost`: what it has cost by the agent's own count, in US dollars; None if it keeps none.
    * `calls`: what fields of a query can ask about the session's calls; of equal ones, only one.
    """

    id: str
    title: str
    title_source: TitleSource
    project: str | None
    project_key: str
    kind: SessionKind
    parent: str | None = None
    format: Literal["jsonl", "json"]
    names: tuple[str, ...]
    size: int
    modified: datetime
    started: datetime | None = None
    updated: datetime | None = None
    models: tuple[str, ...] = ()
    prompts: int = 0
    messages: int = 0
    spoken: int = 0
    tool_calls: int = 0
    tool_failures: int = 0
    failed_calls: int = 0
    tokens: Usage = UNKNOWN_USAGE
    files_written: tuple[str, ...] = ()
    flags: frozenset[Flag] = frozenset()
    partial: bool = False
    problems: int = 0
    copies: tuple[Summary, ...] = ()
    directories: tuple[str, ...] = ()
    project_hash: str | None = None
    waits: bool = False
    resumable: bool = False
    has_header: bool = True
    ended_badly: bool = False
    calls: tuple[CallFields, ...] = ()
    agent: Agent = Agent.GEMINI
    cost: float | None = None

    @property
    def name(self) -> str:
        """The absolute path of the file in use."""
        return self.names[0]

    @property
    def path(self) -> Path:
        """The path of the file in use."""
        return Path(self.names[0])

    @property
    def folder(self) -> Path | None:
        """The project's folder; None if it is unknown."""
        return None if self.project is None else Path(self.project)

    @property
    def files(self) -> tuple[Path, ...]:
        """The paths of all files: first the one in use, then those of `copies`."""
        return tuple(map(Path, self.names))

    @property
    def when(self) -> datetime:
        """The sort key of lists: the last update, or else the file's modification time."""
        return self.updated or self.modified

    @property
    def last_use(self) -> datetime | None:
        """When the clean-up takes the session to have been used last; None means just now.

        That is so for a log that doesn't say when. An old object counts as used when it was
        started.
        """
        if self.updated is not None or self.partial:
            return self.when
        return None if self.format == "jsonl" else self.started or self.modified

    @property
    def is_copy(self) -> bool:
        """Whether the file repeats another file of its session, which is the one in use.

        That includes ghosts, the empty files that a resume leaves behind.
        """
        return Flag.DUPLICATE in self.flags

    @property
    def owner(self) -> str:
        """The id of the session that a person opened: a subagent belongs to its caller."""
        return (self.kind is SessionKind.SUBAGENT and self.parent) or self.id

    @property
    def continuable(self) -> bool:
        """Whether the CLI finds this session when it looks for one to resume."""
        in_store = self.has_header and Flag.KEPT not in self.flags
        return in_store and self.resumable and self.kind is SessionKind.MAIN

    @property
    def hidden(self) -> bool:
        """Whether this is a ghost, an empty session, a subagent, a checkpoint, or a copy.

        A ghost is an empty file that a resume left behind. Lists hide such sessions by default.
        """
        return self.kind is not SessionKind.MAIN or self.is_copy or Flag.EMPTY in self.flags

    def to_dict(self, *, files: bool = True) -> dict[str, Any]:
        """Return the SESSION object of `gemtui show --format json`.

        Times are in ISO 8601 UTC, or null if unknown. `files`: include the list of written files,
        which can be long.
        """
        session = fields(self, *_JSON_FIELDS, files="names")
        session["files_written_count"] = len(self.files_written)
        if files:
            session["files_written"] = list(self.files_written)
        session["flags"] = [flag.value for flag in Flag if flag in self.flags]
        return session


_JSON_FIELDS = (
    "id",
    "title",
    "title_source",
    "agent",
    "project",
    "project_key",
    "project_hash",
    "kind",
    "parent",
    "format",
    "size",
    "started",
    "updated",
    "models",
    "prompts",
    "messages",
    "tool_calls",
    "tool_failures",
    "failed_calls",
    "tokens",
    "cost",
)
"""The fields of a summary that have the same name in its JSON."""


def id_start(id: str) -> str:
    """Return the first eight characters of an id, which tell most sessions apart.

    The id of a session without a header is derived from its file's name, and all of these begin
    alike. So such an id is returned whole.
    """
    return id if id.startswith("session-") else id[:8]


def title_of(session: Summary, name: str | None) -> str:
    """Return the title to show for a session: the user's name for it, or else its own title.

    `name`: None if the user has not named the session.
    """
    return session.title if name is None else name


def named(session: Summary, marks: Mapping[str, Mark]) -> Summary:
    """Return a session's summary with `title_of` as its title.

    `marks`: the user's marks on sessions, by session id.
    """
    mark = marks.get(session.id)
    name = None if mark is None else mark.name
    return session if name is None else replace(session, title=title_of(session, name))


def project_group(session: Summary) -> str:
    """Return the key of a session's project, as `group_of` does."""
    return group_of(session.project, session.project_key)


def group_of(project: str | None, project_key: str) -> str:
    """Return a key shared by all sessions of one project.

    It is the path of the repository, which a repository shares with its worktrees, or of the
    session's folder, or else the name of the store's folder. `project`, `project_key`: as in
    `Summary`.
    """
    return project_key if project is None else repository_of(project)


def project_name(folder: str | None, store_folder: str) -> str:
    """Return a short name for a project: that of its folder, or else of its folder in the store.

    `folder`: the project's folder; None if unknown. A name that is a hash is shortened.
    """
    if folder is None:
        return f"{store_folder[:8]}…" if is_hash(store_folder) else store_folder
    return recorded_path(folder).name or folder


class Unread(Struct, frozen=True, kw_only=True, array_like=True, tag=True):
    """A file without a summary, because it can't be read as a session.

    `what`: the reason, for example that the file is too large. It isn't read again until it
    changes.
    """

    what: str
    too_large: bool = False


Known = Summary | Unread
"""The result of reading a file, valid until the file changes."""
