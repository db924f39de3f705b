"""Write sessions to a folder.

The first push writes all of them, later ones only those that have changed. A session's messages are
written as rows, with the columns described in assets/push.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from hashlib import sha256
from typing import Any

from msgspec import Struct, field

from gemtui.errors import NotASession, PushError, SessionTooLarge
from gemtui.jsonin import loads
from gemtui.jsonout import encode, fields, iso
from gemtui.push.folder import DATA, SCHEMA, PushedFile, PushFolder
from gemtui.redact.redactor import Redactor
from gemtui.sessions.catalog.redacted import redact, redacted_summary
from gemtui.sessions.catalog.summary import Flag, Summary
from gemtui.sessions.read.conversation import transcript_of
from gemtui.sessions.read.session_log import SessionLog
from gemtui.sessions.store.store import UNREADABLE, Problem, SessionKind, problem_of
from gemtui.transcript.model import (
    Attachment,
    DiffDisplay,
    Message,
    Notice,
    Text,
    Thought,
    ToolCall,
    ToolStatus,
)
from gemtui.transcript.tools import WRITING, kind_of, named_file
from gemtui.transcript.usage import Usage

UNKNOWN_DAY = "unknown"
_MILLISECOND = timedelta(milliseconds=1)


class Pushed(Struct):
    """The result of a push.

    `sessions`: how many were considered. `changed`: how many of them were written. `days`: the data
    files written. `raw`: how many session files were stored. `problems`: the sessions that could
    not be read.
    """

    sessions: int = 0
    changed: int = 0
    days: list[str] = field(default_factory=list)
    raw: int = 0
    problems: list[Problem] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """Return the result as JSON values."""
        return fields(self, "sessions", "changed", files_written="days", raw_written="raw")


def pushed_sessions(sessions: Iterable[Summary], since: datetime | None) -> list[Summary]:
    """Return the sessions to push: main sessions and subagents.

    Empty sessions, ghosts (empty files left by a resume) and copies of sessions are left out.
    `since`: return only sessions used since then; None returns all.
    """
    return [
        session
        for session in sessions
        if session.kind is not SessionKind.CHECKPOINT
        and not session.is_copy
        and Flag.EMPTY not in session.flags
        and (since is None or session.when >= since)
    ]


def push_sessions(
    folder: PushFolder, sessions: Iterable[Summary], *, progress: Callable[[int], None]
) -> Pushed:
    """Write the sessions that have changed since they were pushed, one day at a time.

    `progress`: called with the number of sessions processed. An unreadable session is reported as a
    problem, and its old rows are kept. Raises OSError and PushError if the folder can't be written.
    """
    pushed = Pushed()
    for (project, day), group in sorted(_by_day(sessions).items()):
        _push_day(folder, project, day, group, pushed)
        pushed.sessions += len(group)
        progress(pushed.sessions)
    return pushed


def _by_day(sessions: Iterable[Summary]) -> dict[tuple[str, str], dict[str, Summary]]:
    """Map (project, UTC day) to the sessions that started on that day, by session id."""
    days: dict[tuple[str, str], dict[str, Summary]] = {}
    for session in sessions:
        began = session.started or session.updated
        day = UNKNOWN_DAY if began is None else f"{began.astimezone(UTC):%Y-%m-%d}"
        days.setdefault((session.project_key, day), {}).setdefault(session.id, session)
    return days


def _push_day(
    folder: PushFolder, project: str, day: str, group: dict[str, Summary], done: Pushed
) -> None:
    path = folder.day(_project_name(folder, project), day)
    stored = dict(folder.sources(path).sessions)
    changed: dict[str, Callable[[], Iterable[bytes]]] = {}
    rows: dict[str, int] = {}
    for id, summary in group.items():
        try:
            now = _state(summary)
            before = stored.get(id)
            if before is not None and (before.size, before.modified) == (now.size, now.modified):
                continue
            SessionLog.read(summary.path).close()
            _require_plain_id(folder, summary)
            raw = None
            if not folder.manifest.redact:
                raw, new = folder.keep_raw(summary.path)
                done.raw += new
        except UNREADABLE as error:
            done.problems.append(problem_of(summary.path, error))
            continue
        stored[id] = PushedFile(size=now.size, modified=now.modified, rows=0, raw=raw)
        changed[id] = partial(_rows, folder, summary, raw, rows)
    if changed:
        folder.write_day(path, changed, stored, rows)
        done.changed += len(changed)
        done.days.append(str((path / DATA).relative_to(folder.path)))


def _state(summary: Summary) -> PushedFile:
    info = summary.path.stat()
    return PushedFile(size=info.st_size, modified=info.st_mtime_ns, rows=0)


def _require_plain_id(folder: PushFolder, summary: Summary) -> None:
    """Raise NotASession for an id that redacting would change.

    Such a session can't be pushed, because rows are joined by id.
    """
    if folder.manifest.redact and Redactor().apply(summary.id) != summary.id:
        raise NotASession("left out because its id looks like a secret", path=summary.path)


def _project_name(folder: PushFolder, project: str) -> str:
    if not folder.manifest.redact or Redactor().apply(project) == project:
        return project
    return f"redacted-{sha256(project.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"


def _rows(
    folder: PushFolder, summary: Summary, raw: str | None, rows: dict[str, int]
) -> Iterator[bytes]:
    with SessionLog(summary.path) as log:
        try:
            log.refresh()
        except (NotASession, SessionTooLarge) as error:
            raise PushError(
                f"{summary.path} changed while gemtui was reading it: push again"
            ) from error
        about = summary
        if folder.manifest.redact:
            redactor = redact(log, summary)
            about = redacted_summary(summary, redactor)
        for number, row in enumerate(_message_rows(log, about, raw=raw), 1):
            rows[summary.id] = number
            yield row


# --- rows ----------------------------------------------------------------------------------------


def _message_rows(log: SessionLog, summary: Summary, *, raw: str | None) -> Iterator[bytes]:
    """Yield a session's messages as JSON lines, including dropped messages.

    `raw`: the SHA-256 of the session file; None if the file itself is not pushed.
    """
    transcript = transcript_of(log, dropped=True, in_flight=False)
    about = {
        "session": summary.id,
        "schema": SCHEMA,
        "title": summary.title,
        "project": summary.project,
        "kind": summary.kind.value,
        "agent": summary.agent.value,
        "parent": summary.parent,
        "started": iso(summary.started),
        "updated": iso(summary.updated),
        "raw": raw,
    }
    for number, message in enumerate(transcript):
        row = encode({**about, "number": number, **_columns(message)}) + b"\n"
        yield encode(_sound(loads(row))) + b"\n" if rb"\ud" in row else row


def _columns(message: Message) -> dict[str, Any]:
    blocks = message.blocks
    usage = message.usage or Usage()
    return {
        "message": message.id,
        "timestamp": iso(message.time),
        "author": message.author.value,
        "prompt": message.prompt,
        "dropped": None if message.dropped is None else message.dropped.value,
        "model": message.model,
        "text": "\n\n".join(block.text for block in blocks if isinstance(block, Text | Notice)),
        "thoughts": "\n\n".join(
            ": ".join(filter(None, (block.subject, block.description)))
            for block in blocks
            if isinstance(block, Thought)
        ),
        "attachments": [block.name for block in blocks if isinstance(block, Attachment)],
        "tokens": usage.to_dict(),
        "calls": [_call(block) for block in blocks if isinstance(block, ToolCall)],
    }


def _call(call: ToolCall) -> dict[str, Any]:
    diff = call.display if isinstance(call.display, DiffDisplay) else None
    path = named_file(call, str)
    wrote = kind_of(call.name) in WRITING and call.status is ToolStatus.SUCCESS
    return {
        "id": call.id,
        "name": call.name,
        "status": call.status.value,
        "time": iso(call.time),
        "duration_ms": None if call.duration is None else call.duration // _MILLISECOND,
        "exit_code": call.exit_code,
        "path": path or None,
        "wrote": wrote,
        "added": diff.added if diff else None,
        "removed": diff.removed if diff else None,
        "arguments": encode(dict(call.args)).decode(),
        "output": call.output,
        "error": call.error,
    }


def _sound(value: Any) -> Any:
    """Replace lone surrogates in a value, because most JSON parsers reject them."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode() if not value.isascii() else value
    if isinstance(value, dict):
        return {_sound(key): _sound(item) for key, item in value.items()}
    return [_sound(item) for item in value] if isinstance(value, list) else value
