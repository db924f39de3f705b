"""Which files the tool calls of stored sessions wrote, when, and how they changed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from itertools import pairwise
from pathlib import PurePath

from msgspec import Struct
from msgspec.structs import replace

from gemtui.errors import NotASession, SessionTooLarge
from gemtui.sessions.index import never
from gemtui.sessions.load import transcript_of
from gemtui.sessions.problem import Problem
from gemtui.sessions.records import SessionLog
from gemtui.sessions.store import SessionKind
from gemtui.sessions.summary import Summary
from gemtui.transcript.display_model import DiffDisplay
from gemtui.transcript.model import Message, ToolCall, ToolStatus
from gemtui.transcript.patch import file_patch, patch_of_diff
from gemtui.transcript.tools import WRITING, asked_path, kind_of


class RecordedWrite(Struct, frozen=True, kw_only=True):
    """A call of a tool that writes a file.

    `path`: absolute where the session's folder is known. `session`: the id of the session that a
    person had, of which `source`, a file of its own for a subagent, is a part. `time`: of the
    result, else of the answer that asked for it. `change`: what it changed, or would have, as far
    as that is known.
    """

    path: PurePath
    session: str
    source: Summary
    message: str
    call: str
    tool: str
    status: ToolStatus
    time: datetime | None
    change: DiffDisplay | None

    @property
    def written(self) -> bool:
        """Whether the file was written."""
        return self.status is ToolStatus.SUCCESS

    @property
    def when(self) -> datetime:
        """The time to sort by: the session's if nothing says when the call was made."""
        return self.time or self.source.when

    def without_texts(self) -> RecordedWrite:
        """Return it without what the file held, which may be large."""
        if self.change is None:
            return self
        return replace(self, change=replace(self.change, diff="", original=None, new=None))


def recorded_writes(
    sessions: Iterable[Summary],
    *,
    since: datetime | None = None,
    cancelled: Callable[[], bool] = never,
) -> Iterator[RecordedWrite | Problem]:
    """Yield the writes of sessions, and why a session can't be read, session by session.

    Sessions that wrote nothing are not opened. `since`: no writes before. `cancelled` is asked
    between steps and within large files.
    """
    for session in sessions:
        if not (session.files_written or session.partial) or cancelled():
            continue
        if since is not None and session.when < since and session.modified < since:
            continue
        try:
            with SessionLog(session.path) as log:
                log.refresh(cancelled=cancelled)
                transcript = transcript_of(log)
                for place, outline in enumerate(transcript.outlines):
                    if outline.calls:
                        yield from _writes(transcript.read(place), session, since)
        except (NotASession, SessionTooLarge) as error:
            yield Problem(path=session.path, line=None, what=str(error))
        except OSError as error:
            what = f"can't be read: {error.strerror}"
            yield Problem(path=session.path, line=None, what=what)


def _writes(message: Message, session: Summary, since: datetime | None) -> Iterator[RecordedWrite]:
    owner = session.parent if session.kind is SessionKind.SUBAGENT else None
    for block in message.blocks:
        if not isinstance(block, ToolCall) or kind_of(block.name) not in WRITING:
            continue
        change = block.display if isinstance(block.display, DiffDisplay) else None
        name = (change.path if change else "") or asked_path(block.args)
        write = RecordedWrite(
            path=PurePath(session.project or "", name),
            session=owner or session.id,
            source=session,
            message=message.id,
            call=block.id,
            tool=block.name,
            status=block.status,
            time=block.time or message.time,
            change=change,
        )
        if name and (since is None or write.when >= since):
            yield write


class FilePatch(Struct, frozen=True, kw_only=True):
    """All that happened to one file, as one change.

    `text`: for `git apply`; "" if nothing changed, or if `unknown` says why it can't be told.
    `gaps`: number of times that something else than these calls changed the file between them,
    which is part of the change.
    """

    path: PurePath
    text: str
    unknown: str = ""
    gaps: int = 0


def patch_of(path: PurePath, name: str, writes: Sequence[RecordedWrite]) -> FilePatch:
    """Return what these calls changed in a file, from before the first to after the last.

    `name`: the path that the patch names, with slashes. Calls that wrote nothing don't count.
    """
    done = sorted((each for each in writes if each.written), key=lambda each: each.when)
    changes = [each.change for each in done]
    first, last = (changes[0], changes[-1]) if changes else (None, None)
    if first is None or last is None:
        return FilePatch(path=path, text="", unknown="what was written is not recorded")
    if (first.is_new or first.original is not None) and last.new is not None:
        before = None if first.is_new else first.original
        return FilePatch(path=path, text=file_patch(name, before, last.new), gaps=_gaps(changes))
    if len(done) == 1 and first.original is not None:
        return FilePatch(path=path, text=patch_of_diff(name, first.diff, is_new=first.is_new))
    return FilePatch(path=path, text="", unknown="what it held before is not recorded")


def _gaps(changes: Sequence[DiffDisplay | None]) -> int:
    """How often a file was not as the call before had left it."""
    return sum(
        one is not None
        and other is not None
        and one.new is not None
        and other.original is not None
        and one.new != other.original
        for one, other in pairwise(changes)
    )
