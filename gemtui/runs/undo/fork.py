"""Fork a chat: create a new session with another one's history, up to a prompt.

The fork is a file in the agent's store like any other session, so the agent lists and resumes it.
Claude Code writes its forks itself. When a fork of Gemini CLI is resumed, it is protected like
every session (`gemtui/kept/resume_guard.py`). The original session is only read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

from gemtui.agents import Agent, Can, why_not
from gemtui.checkpoints.store import open_store
from gemtui.errors import CheckpointsUnreadable, ForkFailed
from gemtui.files import make_folder, write_whole
from gemtui.jsonout import encode, encode_array, iso
from gemtui.kept.vault import is_on, keep
from gemtui.runs.undo.checkpointing import project_of
from gemtui.runs.undo.claude_fork import fork_by_claude
from gemtui.sessions.catalog.summary import Flag, Summary
from gemtui.sessions.catalog.vault_files import place_in_store
from gemtui.sessions.read.conversation import whole_records
from gemtui.sessions.read.dialect import stored_lines
from gemtui.sessions.read.replay import RecordKind, ReplayedMessage
from gemtui.sessions.read.session_log import FORKED_FROM, Record, SessionLog
from gemtui.sessions.store.projects import path_hash, registered
from gemtui.sessions.store.store import SessionKind
from gemtui.text import counted
from gemtui.transcript.content import typed
from gemtui.transcript.parts import instant, objects, string


@dataclass(frozen=True, slots=True, kw_only=True)
class Fork:
    """A new chat, forked from another one.

    * `session_id`: the value for `AgentOptions(resume=…)`; None if the history is empty. In that
      case, start a chat without `resume`.
    * `path`: the new session's file; None if `session_id` is None.
    * `before`: the number, counted from 1, of the prompt before which the history was cut.
    * `prompt`: the text of that prompt, to be edited and sent; None if nothing was cut.
    * `project`: the folder where the session can be resumed; None if unknown.
    * `agent`: the agent that can resume it.
    """

    session_id: str | None
    path: Path | None
    before: int
    prompt: str | None
    project: Path | None
    agent: Agent = Agent.GEMINI


def fork_session(
    session: Summary, home: Path, *, before: int | None = None, undo: int | None = None
) -> Fork:
    """Create a session with the history of another one up to a prompt.

    `session`: a session in the store under `home`, or archived in the vault. `before`: the number,
    counted from 1, of a prompt in the current conversation; that prompt and everything after it are
    cut off. None, or one more than the number of prompts, keeps everything. `undo`: the id of the
    undo that restored the files to this point, if any. If the CLI could not resume the remaining
    history, no session is created and `session_id` is None.

    A new session of Gemini CLI has no token counts, and statistics exclude its older part, because
    the original session contains both. The original session's checkpoints also count as the new
    session's.

    Raises ForkFailed if there is no such prompt, no project in which the CLI would look for the new
    session, or if Claude Code refuses; NotASession, SessionTooLarge, OSError.
    """
    reason = why_not(session.agent, Can.FORK)
    if reason:
        raise ForkFailed(reason)
    with SessionLog.read(session.path) as log:
        entries = log.replay.entries
        prompts = [
            at
            for at, entry in enumerate(entries)
            if entry.facts.kind is RecordKind.MESSAGE and entry.facts.outline.prompt
        ]
        before = len(prompts) + 1 if before is None else before
        if not 1 <= before <= len(prompts) + 1:
            existing = counted(len(prompts), "prompt")
            raise ForkFailed(f"{session.id} has {existing}, so there is no prompt {before}")
        cut = [*prompts, len(entries)][before - 1]
        past, text, until, last = entries[:cut], None, None, None
        if cut < len(entries):
            (_, record) = next(whole_records(log, [entries[cut]]))
            if record is None:
                raise ForkFailed(f"{log.path} changed while gemtui was reading it: try again")
            text = typed(record).text
            last = string(stored_lines(record)[0].get("parentUuid"))
            times = [entry.facts.outline.time for entry in entries[: cut + 1]]
            until = max(filter(None, times), default=None)
        fork = Fork(
            session_id=None,
            path=None,
            before=before,
            prompt=text,
            project=session.folder,
            agent=session.agent,
        )
        messages = [entry.facts for entry in past if entry.facts.kind is RecordKind.MESSAGE]
        if not any(message.resumable for message in messages):
            return fork
        if session.agent is Agent.GEMINI:
            id, path = _write(log, past, session, home, until=until)
        else:
            id, path = fork_by_claude(session, last)
    if is_on():
        keep(path)
    if session.folder is not None:
        place, _, _ = project_of(session.folder)
        if place.is_dir():  # every undo reports checkpoints that are unreadable
            with suppress(CheckpointsUnreadable), open_store(place) as store, store.transaction():
                store.add_fork(id, session.id, undo)
    return replace(fork, session_id=id, path=path)


def _write(
    log: SessionLog,
    past: Sequence[ReplayedMessage],
    session: Summary,
    home: Path,
    *,
    until: datetime | None,
) -> tuple[str, Path]:
    """Write the new session's file; return the session's id and the file."""
    chats, now = _chats(session, home), datetime.now(UTC)
    make_folder(chats)
    # Other sessions' names must not have the start of this id: the CLI removes all files with the
    # same start at once (assets/gemini-cli.md#clean-up).
    taken = {path.stem[-8:] for path in chats.iterdir()}
    while (id := str(uuid4()))[:8] in taken:
        pass
    path = chats / f"session-{now:%Y-%m-%dT%H-%M}-{id[:8]}.{log.format}"
    header = {
        "sessionId": id,
        "projectHash": _project_hash(session),
        "startTime": iso(now),
        "lastUpdated": iso(now),
        "kind": SessionKind.MAIN.value,
        FORKED_FROM: session.id,
    }
    if directories := log.metadata.get("directories"):
        header["directories"] = directories
    records = _records(log, past, until)
    write_whole(path, _pieces(header, records, log.format), durable=True)
    return id, path


def _records(
    log: SessionLog, past: Sequence[ReplayedMessage], until: datetime | None
) -> Iterator[Record]:
    """Yield the records for the new session, with each tool result only once.

    `until`: calls made later are left out, even if they are stored with an answer from before that
    time. Records that only repeat a result are left out as well, because the CLI would send that
    result to the model twice (assets/gemini-cli.md#ghosts).
    """
    with_result: set[str] = set()
    for entry, record in whole_records(log, past):
        if record is None:
            raise ForkFailed(f"{log.path} changed while gemtui was reading it: try again")
        if entry.facts.kind is RecordKind.REPLY:
            if not with_result.issuperset(reply.id for reply in entry.facts.replies):
                yield record
            continue
        record = {name: value for name, value in record.items() if name != "tokens"}
        if "toolCalls" in record:
            calls = []
            for call in objects(record["toolCalls"]):
                time = instant(call.get("timestamp"))
                if until is not None and time is not None and time > until:
                    continue
                calls.append(call)
                if call.get("result"):
                    with_result.add(string(call.get("id")))
            record["toolCalls"] = calls
        yield record


def _pieces(header: Record, records: Iterator[Record], format: str) -> Iterator[bytes]:
    """Yield the new session's file in chunks of bytes, in the original's file format.

    `header`: the record that names the session. `format`: "json" for the legacy format, or else one
    record per line. The CLI version that wrote the original can read its format, and so can later
    versions.
    """
    if format == "json":
        head = encode(header).removesuffix(b"}") + b',"messages":'
        yield from encode_array(records, head=head, tail=b"}\n")
        return
    yield encode(header) + b"\n"
    for record in records:
        yield encode(record) + b"\n"


# --- location ------------------------------------------------------------------------------------


def _chats(session: Summary, home: Path) -> Path:
    """Return the folder where the CLI looks for a project's sessions.

    `session`: a session of the project. Since version 0.29, the CLI's project registry names this
    folder; old sessions may be in another one (assets/gemini-cli.md#places).
    """
    slug = (registered(home / "projects.json") or {}).get(session.project or "", "")
    if slug and slug == Path(slug).name:
        return home / "tmp" / slug / "chats"
    path = place_in_store(session.path) if Flag.KEPT in session.flags else session.path
    parts = path.relative_to(home / "tmp").parts if path.is_relative_to(home / "tmp") else ()
    if not parts:
        raise ForkFailed(
            f"the project of {session.path} is unknown: copy the file to the chats folder of its "
            f"project, in {home / 'tmp'}"
        )
    return home / "tmp" / parts[0] / "chats"


def _project_hash(session: Summary) -> str:
    stored = session.project_hash or (session.project and path_hash(session.project))
    if not stored:
        raise ForkFailed(f"the project of {session.path} is unknown, because its header is missing")
    return stored
