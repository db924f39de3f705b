"""The files that tool calls of stored sessions wrote: times, changes, and these as one patch per
file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from itertools import pairwise
from pathlib import Path, PurePath
from typing import NamedTuple

import msgspec.msgpack
from msgspec import Struct
from msgspec.structs import astuple

from gemtui.calls.paths import in_project, recorded_path, recorded_paths
from gemtui.sessions.catalog.cache import CachedRows
from gemtui.sessions.catalog.read_cached import read_cached
from gemtui.sessions.catalog.read_files import read_log
from gemtui.sessions.catalog.summary import Summary
from gemtui.sessions.read.conversation import transcript_of
from gemtui.sessions.read.session_log import SessionLog
from gemtui.sessions.store.projects import folder_names
from gemtui.sessions.store.readers import answer_reads
from gemtui.sessions.store.store import Problem, never
from gemtui.text import counted
from gemtui.transcript.diffs import NoPatch, apply_diff, file_patch
from gemtui.transcript.model import DiffDisplay, Message, ToolCall, ToolStatus
from gemtui.transcript.tools import WRITING, kind_of, named_file
from gemtui.worker import Parent


class Write(Struct, frozen=True, array_like=True, gc=False):
    """A recorded call to a tool that writes a file.

    `name`: the path, which may be relative. `message`, `block`: the id of the message with the
    call, and the call's index in it. `time`: when the result arrived, or else when the answer with
    the call was written. `added`, `removed`: how many lines the call changed or would have changed;
    None if unknown.
    """

    name: str
    message: str
    block: int
    call: str
    tool: str
    status: ToolStatus
    time: datetime | None
    added: int | None
    removed: int | None
    is_new: bool


class RecordedWrite(Write, frozen=True, kw_only=True, gc=False):
    """A call to a tool that writes a file, in a session of the store.

    `path`: absolute if the session's folder is known. `session`: the id of the user's session.
    `source`: that session, or one of its subagents, which have their own files. `change`: the
    change the call made or would have made; None if unknown or not read.
    """

    path: PurePath
    session: str
    source: Summary
    change: DiffDisplay | None = None

    @property
    def written(self) -> bool:
        """Whether the call actually wrote the file."""
        return self.status is ToolStatus.SUCCESS

    @property
    def when(self) -> datetime:
        """The time to sort by: that of the call, or else of its session."""
        return self.time or self.source.when


WRITES: CachedRows[tuple[Write, ...]] = CachedRows(
    file="writes.sqlite3",
    version=4,
    application=0x67656F00,
    decode=msgspec.msgpack.Decoder(tuple[Write, ...]).decode,
)


def recorded_writes(
    sessions: Sequence[Summary],
    *,
    home: Path,
    cache: Path | None,
    since: datetime | None = None,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
    cancelled: Callable[[], bool] = never,
) -> Iterator[RecordedWrite | Problem]:
    """Yield the file writes of all sessions, without their changes.

    Yields a Problem for each session that can't be read. A session is read only if it has written
    files and isn't in the cache in its current state. `since`: leave out earlier writes. `home`,
    `cache`, and `cancelled`: as in `read_cached`. `progress`: called with the number of sessions
    read and the total.
    """
    wrote = [session for session in sessions if _may_have_written(session, since)]
    results = read_cached(
        wrote,
        WRITES,
        lambda log, _: _without_changes(log),
        home=home,
        cache=cache,
        helper=f"{__name__}:serve",
        progress=lambda done: progress(done, len(wrote)),
        cancelled=cancelled,
    )
    for session, writes in results:
        if isinstance(writes, Problem):
            yield writes
        else:
            yield from _since(since, (_recorded(write, session) for write in writes))


def serve(parent: Parent) -> None:
    """Read the writes in files for the process that has started this one."""
    answer_reads(parent, lambda place: read_log(place.path, _without_changes))


def _without_changes(log: SessionLog) -> tuple[Write, ...]:
    return tuple(write for write, _ in _writes(log))


def recorded_changes(
    sessions: Iterable[Summary],
    *,
    since: datetime | None = None,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
    cancelled: Callable[[], bool] = never,
) -> Iterator[RecordedWrite | Problem]:
    """Yield the sessions' file writes with their changes.

    Yields a Problem for each session that can't be read. Every session with writes is read, without
    using the cache. The arguments are the same as for `recorded_writes`.
    """
    wrote = [session for session in sessions if _may_have_written(session, since)]
    for number, session in enumerate(wrote, 1):
        if cancelled():
            return
        changes = read_log(session.path, lambda log: list(_writes(log)), cancelled)
        if isinstance(changes, Problem):
            yield changes
        else:
            yield from _since(
                since, (_recorded(write, session, change) for write, change in changes)
            )
        progress(number, len(wrote))


class WriteReason(NamedTuple):
    """The change that a write made or would have made, and the prompt that led to it.

    `change`: None if unknown. `prompt`: the first line of the prompt; "" if there is none.
    """

    change: DiffDisplay | None
    prompt: str


def reason_of(
    write: RecordedWrite, *, cancelled: Callable[[], bool] = never
) -> WriteReason | Problem:
    """Return the change and the prompt of a write, as read from its session."""

    def reason(log: SessionLog) -> WriteReason:
        prompt = ""
        for outline in transcript_of(log).outlines:
            if outline.id == write.message:
                break
            prompt = outline.excerpt if outline.is_current_prompt else prompt
        for candidate, change in _writes(log, of_message=write.message):
            if candidate.block == write.block:
                return WriteReason(change, prompt)
        return WriteReason(None, prompt)

    return read_log(write.source.path, reason, cancelled)


def written_texts(session: Summary) -> dict[str, str | None] | Problem:
    """Return the text that a session last wrote to each file; None where it isn't recorded.

    The keys are the files' paths, which are relative inside the project.
    """

    def texts(log: SessionLog) -> dict[str, str | None]:
        return {
            in_project(str(normalized_path(session.project, write.name)), session.project): (
                None if change is None else change.new
            )
            for write, change in _writes(log)
            if write.status is ToolStatus.SUCCESS
        }

    return read_log(session.path, texts)


def writes_by_file(writes: Iterable[RecordedWrite]) -> dict[PurePath, list[RecordedWrite]]:
    """Return the writes to each file, oldest first; the file written last comes first.

    Files without a successful write are left out.
    """
    by_path: dict[PurePath, list[RecordedWrite]] = {}
    for recorded in writes:
        by_path.setdefault(recorded.path, []).append(recorded)
    for tries in by_path.values():
        tries.sort(key=lambda write: write.when)
    written = (tries for tries in by_path.values() if any(attempt.written for attempt in tries))
    latest = sorted(written, key=lambda tries: tries[-1].when, reverse=True)
    return {tries[0].path: tries for tries in latest}


def wrote_first(sessions: Iterable[Summary], path: PurePath) -> list[Summary]:
    """Return all sessions, those that wrote the file at `path` before the rest.

    Whether a session wrote the file is taken from its summary.
    """

    def wrote(session: Summary) -> bool:
        ending = path.name.lower()
        names = (name for name in session.files_written if name.lower().endswith(ending))
        return any(normalized_path(session.project, name) == path for name in names)

    return sorted(sessions, key=lambda each: not wrote(each))


def _may_have_written(session: Summary, since: datetime | None) -> bool:
    recent = since is None or session.when >= since or session.modified >= since
    return recent and (bool(session.files_written) or session.partial)


def _since(since: datetime | None, writes: Iterable[RecordedWrite]) -> Iterator[RecordedWrite]:
    return (write for write in writes if since is None or write.when >= since)


def _recorded(write: Write, session: Summary, change: DiffDisplay | None = None) -> RecordedWrite:
    return RecordedWrite(
        *astuple(write),
        path=normalized_path(session.project, write.name),
        session=session.owner,
        source=session,
        change=change,
    )


def normalized_path(project: str | None, name: str) -> PurePath:
    """Return the normalized path of the file that a call names.

    `project`: the folder of the call's session; if it is None, a relative name stays relative.
    """
    return recorded_path(name, project or "")


def _writes(
    log: SessionLog, *, of_message: str | None = None
) -> Iterator[tuple[Write, DiffDisplay | None]]:
    """Yield the calls in a session that write a file, with their changes.

    `of_message`: the id of the only message to read; None means all messages. Calls that a fork
    inherited are left out, because they belong to the original session.
    """
    transcript = transcript_of(log)
    for position, outline in enumerate(transcript.outlines):
        if outline.calls and of_message in (None, outline.id):
            message = transcript.read(position)
            for number, block in enumerate(message.blocks):
                if isinstance(block, ToolCall) and kind_of(block.name) in WRITING:
                    change = block.display if isinstance(block.display, DiffDisplay) else None
                    write = _write(message, number, block, change)
                    if write.name and not log.is_inherited(write.time):
                        yield write, change


def _write(message: Message, number: int, call: ToolCall, change: DiffDisplay | None) -> Write:
    return Write(
        name=named_file(call, lambda asked: recorded_paths(asked)[0]),
        message=message.id,
        block=number,
        call=call.id,
        tool=call.name,
        status=call.status,
        time=call.time or message.time,
        added=change.added if change else None,
        removed=change.removed if change else None,
        is_new=change is not None and change.is_new,
    )


# --- patches -------------------------------------------------------------------------------------


_CHANGED_BETWEEN = "includes changes that no session wrote"


class FilePatch(Struct, frozen=True, kw_only=True):
    """The changes to one file as one patch.

    `text`: the patch for `git apply`; "" if the file hasn't changed, or if the patch can't be
    determined, in which case `unknown` gives the reason. `gaps`: how often the file was changed
    between two tool calls by something other than a tool call; those changes are included in the
    patch.
    """

    path: PurePath
    text: str = ""
    unknown: str = ""
    gaps: int = 0


class Remark(NamedTuple):
    """A note about a patch, with the paths of the files it concerns."""

    what: str
    about: Sequence[str]


def remarks(files: Iterable[FilePatch], problems: Iterable[Problem] = ()) -> list[Remark]:
    """Return the notes about a patch; files with the same note are counted together.

    `files`: all files of the patch. `problems`: parts of the sessions that could not be read.
    """
    by_file: dict[str, list[str]] = {}
    for problem in problems:
        by_file.setdefault(problem.what, []).append(str(problem.path))
    for file in files:
        if file.unknown:
            by_file.setdefault(f"left out: {file.unknown}", []).append(str(file.path))
    for file in files:
        if file.gaps:
            by_file.setdefault(_CHANGED_BETWEEN, []).append(str(file.path))
    return [
        Remark(f"{what}: {counted(len(about), 'file')}", about) for what, about in by_file.items()
    ]


class ProjectPatch:
    """Combines file writes into one patch for each file under the folder `root`.

    For each file, only the contents of the first and the last write are held in memory.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._folders = sorted(folder_names(root))
        self._files: dict[PurePath, _Changes] = {}

    def add(self, write: RecordedWrite) -> None:
        """Add a write, whose `change` must have been read, in any order.

        Writes that failed are ignored.
        """
        if write.written:
            self._files.setdefault(write.path, _Changes()).add(write)

    def files(self) -> Iterator[FilePatch]:
        """Yield each file's patch, sorted by path."""
        names, folders = set[PurePath](), set[PurePath]()
        for path, changes in sorted(self._files.items(), key=lambda item: str(item[0])):
            folder = next((parent for parent in self._folders if path.is_relative_to(parent)), None)
            if folder is None:
                yield FilePatch(path=path, unknown=f"not in {self._root}")
                continue
            name = path.relative_to(folder)
            patch = changes.patch(path, name.as_posix())
            if patch.text and (name in names | folders or not names.isdisjoint(name.parents)):
                patch = FilePatch(
                    path=path,
                    unknown=(
                        "another file in the patch has the same name, or its name is also the "
                        "name of a folder"
                    ),
                )
            elif patch.text:
                names.add(name)
                folders.update(name.parents)
            yield patch


class _Step(NamedTuple):
    """One write, with hashes of the file's contents before and after; None if unknown."""

    when: datetime
    before: int | None
    after: int | None


class _Changes:
    """The writes to one file."""

    def __init__(self) -> None:
        self._steps: list[_Step] = []
        self._ends: list[RecordedWrite] = []

    def add(self, write: RecordedWrite) -> None:
        change = write.change
        before, after = (None, None) if change is None else (change.original, change.new)
        self._steps.append(_Step(write.when, _hash(before), _hash(after)))
        ends = sorted([*self._ends, write], key=lambda each: each.when)
        self._ends = [ends[0], ends[-1]]

    def patch(self, path: PurePath, name: str) -> FilePatch:
        """Return all writes as one patch.

        `name`: the path to use in the patch, relative to the project and with slashes.
        """
        first, last = (write.change for write in self._ends)
        if first is None or last is None:
            return FilePatch(path=path, unknown="its contents after the write are not recorded")
        try:
            text = file_patch(name, None if first.is_new else _before(first), _after(last))
        except NoPatch as problem:
            return FilePatch(path=path, unknown=str(problem))
        return FilePatch(path=path, text=text, gaps=self._gaps())

    def _gaps(self) -> int:
        """Return how often anything but a write changed the file between two writes."""
        steps = sorted(self._steps, key=lambda each: each.when)
        return sum(
            one.after is not None and other.before is not None and one.after != other.before
            for one, other in pairwise(steps)
        )


def _before(change: DiffDisplay) -> str:
    if not change.is_new and change.original is None:
        raise NoPatch("its contents before the write are not recorded")
    return "" if change.is_new else change.original or ""


def _after(change: DiffDisplay) -> str:
    return apply_diff(_before(change), change.diff) if change.new is None else change.new


def _hash(text: str | None) -> int | None:
    return None if text is None else hash(text)
