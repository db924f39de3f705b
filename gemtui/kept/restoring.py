"""Restore a session to the CLI's store, so that the CLI lists and resumes it.

The session is taken from the vault, or from a run that has the only copy. Only the file in use is
restored, with its subagents, tool outputs, and plans. The session's older copies and its ghosts
(empty files with the same id) are not restored, because the clean-up deletes all files with an id
as soon as one of them can't be resumed or is too old. If the store has such files, they are first
archived in the vault, and then removed from the store. A damaged file in the session's own place is
archived and replaced in one step, so that the store is never without the session.
"""

from __future__ import annotations

import io
import os
import re
from collections.abc import Callable, Container, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import orjson
from msgspec.structs import replace

from gemtui.agent.run_folder import RunFolder
from gemtui.agents import Agent, Can, why_not
from gemtui.errors import OptionError, RestoreFailed
from gemtui.files import files_below, open_regular, stat_if_present, write_new
from gemtui.jsonin import loads
from gemtui.jsonout import iso
from gemtui.kept.cleanup import Retention, is_expired, short_id
from gemtui.kept.files import copy_file, replace_with_copy, restore_file
from gemtui.kept.run_copies import backup_of, contains_copy, read_session, session_files
from gemtui.kept.vault import archive, is_on, keep, merge_versions, set_others_aside
from gemtui.sessions.catalog.file_in_use import is_live, merged, supersedes
from gemtui.sessions.catalog.summary import Flag, Summary
from gemtui.sessions.catalog.vault_files import (
    in_tree,
    kept_at,
    names_beside,
    place_in_store,
    store_with_kept,
    trees,
)
from gemtui.sessions.read.versions import adds_to
from gemtui.sessions.store.projects import Projects, path_hash
from gemtui.sessions.store.store import SessionKind, is_plain_id, place_of

_FIRST = 4096
"""Number of bytes at the beginning of a log that are searched for its first line."""
_ID = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")

RetentionOf = Callable[[Path | None], Retention]
"""Returns the retention settings for a project's folder; None means no project."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """The result of restoring a session.

    * `paths`: the files that are in the store again.
    * `removed`: files with the same id that could not be resumed or were too old, so that the
      clean-up would have deleted the session with them; the vault has them.
    * `renewed`: whether the session's last update was set to now, because the CLI would have
      considered the session too old.
    * `replaced`: where the vault has the damaged file that was in the session's place; None if
      there was none.
    * `in_the_way`: places where an existing file contains less than the saved copy, each mapped to
      that copy; these files were not overwritten.
    """

    paths: tuple[Path, ...]
    removed: tuple[Path, ...] = ()
    renewed: bool = False
    replaced: Path | None = None
    in_the_way: Mapping[Path, Path] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Source:
    """The saved files of one session.

    `place`: the path of the session's file in the CLI's store. `kept`: the saved copy. `others`:
    takes the session's id and returns the saved copies of its other files (subagents, tool outputs,
    and plans), by path in the store. `known`: the session's files as the user saw them; of valid
    files, only these are replaced.
    """

    place: Path
    kept: Path
    others: Callable[[str], Mapping[Path, Path]]
    known: Container[Path] = ()


def restore_from_vault(session: Summary, home: Path, rule: Retention, now: datetime) -> Restored:
    """Restore a session from the vault, or repair its first line.

    A file in its place is archived and then replaced if the vault's version has all its messages.
    `rule`: the retention settings of the session's project. If this function is interrupted at any
    moment, nothing is lost, and it can be called again. Raises OSError, and RestoreFailed if there
    is a reason not to restore the session.
    """
    reason = why_not(session.agent, Can.RESTORE)
    if reason:
        raise RestoreFailed(reason)
    if session.agent is not Agent.GEMINI:
        return _restore_for_agent(session)
    kept, place = session.path, session.path
    if Flag.KEPT in session.flags:
        place = place_in_store(kept)
    else:
        kept = _saved_version(session, home) or place
        is_main = session.kind is SessionKind.MAIN and place_of(place, home) is not None
        if kept == place and (session.has_header or not is_main):
            raise RestoreFailed(f"{place} is already in its place, so there is nothing to restore")
    if session.kind is not SessionKind.MAIN:
        _require_replaceable(place, kept, session, session.files, now)
        aside = _put(kept, place)
        return Restored(paths=(place,), replaced=aside)
    source = _Source(
        place=place,
        kept=kept,
        others=partial(_beside_in_vault, place, home),
        known=session.files,
    )
    return _restore(source, home, lambda _: rule, now)


def _restore_for_agent(session: Summary) -> Restored:
    """Restore a session of another agent, with its subagents.

    The files count as written now, because the agent deletes files that were last written long ago
    (assets/agents.md#claude-code).
    """
    if Flag.KEPT not in session.flags:
        raise RestoreFailed(f"{session.path} is in its place, so there is nothing to restore")
    place = place_in_store(session.path)
    if os.path.lexists(place):
        raise RestoreFailed(_in_the_way(place))
    best: dict[Path, Path] = {}
    for tree in trees():
        for entry in files_below(str(in_tree(tree, place.with_suffix("")))):
            kept = Path(entry.path)
            path = place_in_store(kept)
            if path not in best or kept.stat().st_size > best[path].stat().st_size:
                best[path] = kept
    paths = (*_put_others(best), place)  # the session last, so that a retry is possible
    _put(session.path, place)
    for path in paths:
        os.utime(path)
    return Restored(paths=(place, *paths[:-1]), renewed=True)


def _saved_version(session: Summary, home: Path) -> Path | None:
    """Return the vault's best version of a damaged file of the store; None if it has none."""
    ranked = []
    for file in kept_at(session.path, home):
        version = read_session(file.path)
        if version is None or supersedes(session, version) or adds_to(session.path, file.path):
            continue
        rank = version.resumable, version.has_header, version.spoken, -version.problems
        ranked.append((rank, version.name))
    return Path(max(ranked)[1]) if ranked else None


def restore_from_run(folder: RunFolder, rule_of: RetentionOf, now: datetime) -> Restored:
    """Restore a session's missing files from a run's backup, in their newest state.

    If the conversation itself is missing, it is restored in the same way as from the vault.
    `rule_of`: returns a project's retention settings. Raises RestoreFailed or OSError.
    """
    kept = backup_of(folder)
    if kept is None:
        return Restored(paths=())
    mains = {copy: path for path, copy in kept.states.items() if path.parent.name == "chats"}
    others = {path: copy for path, copy in kept.states.items() if copy not in mains}
    if mains:
        copy_in_use = next(iter(mains))
        versions = [version for version in map(read_session, mains) if version is not None]
        if versions:
            copy_in_use = merged(versions, Projects(kept.home, []), now).path
        place = mains[copy_in_use]
        if not os.path.lexists(place):
            source = _Source(place=place, kept=copy_in_use, others=lambda _: others)
            return _restore(source, kept.home, rule_of, now)
    less = {}
    for copy, place in mains.items():
        if os.path.lexists(place) and not contains_copy(place, copy):
            less[place] = copy
    return Restored(paths=tuple(_put_others(others)), in_the_way=less)


def _restore(source: _Source, home: Path, rule_of: RetentionOf, now: datetime) -> Restored:
    kept, place = source.kept, source.place
    session = read_session(kept)
    if session is None or not session.resumable:
        raise RestoreFailed(
            "not restored, because the session contains nothing to resume and Gemini CLI would "
            f"delete it at its next start: it stays in {kept}"
        )
    root = Projects(home, [key := place.parent.parent.name]).root_of(key)
    head = {} if session.has_header else _header(session, place, root)
    if head and kept != place:
        replace_with_copy(kept, kept, head=_line(head))
        session, head = read_session(kept) or session, {}
    elif head:
        session = replace(session, id=head["sessionId"], project_hash=head["projectHash"])
    if root and session.project_hash and session.project_hash != path_hash(root):
        raise RestoreFailed(f"{place.parent.parent} now belongs to another project, {root}")
    rule = rule_of(Path(root) if root else None)
    _require_replaceable(place, kept, session, source.known, now)
    removed = tuple(_clear_obstacles(place, session, rule, now))
    renewed = is_expired(session, rule, now)
    others: tuple[Path, ...] = ()
    if is_plain_id(session.id):  # before the session, so that a retry is possible
        others = tuple(_put_others(source.others(session.id)))
    write = partial(_write_changed, head=head, updated=now if renewed else None)
    aside = _put(kept, place, write=write)
    if is_on():
        keep(place)
        merge_versions(place)
    return Restored(paths=(place, *others), removed=removed, renewed=renewed, replaced=aside)


def require_stored(session: str, home: Path) -> None:
    """Raise OptionError if only the vault has the session's files."""
    files = [*session_files(store_with_kept(home), session)]
    if files and all(file.kept for file in files):
        raise OptionError(put_back_first(session), option="resume")


def put_back_first(id: str) -> str:
    """Return the error message for a session that only the vault has.

    It says why the session can't be resumed, and how to restore it.
    """
    command = f"gemtui vault restore {id}"
    return f"Gemini CLI's file of {id} is missing or damaged. Restore it first: {command}"


def _header(session: Summary, place: Path, root: str | None) -> dict[str, Any]:
    """Return the header that a log lacks, and without which the CLI would delete the log.

    Raises OSError, and RestoreFailed if the file is no log or the header can't be known.
    """
    if session.format != "jsonl":
        raise RestoreFailed(
            "not restored, because it has no session id, which only files in today's format can be "
            f"given, and Gemini CLI would delete it at its next start: it stays in {session.path}"
        )
    id = _id_in_first_line(session.path, short_id(str(place)))
    if root is None or not id:
        raise RestoreFailed(
            "not restored, because its first line is corrupt or missing, its project or id is "
            "unknown, and Gemini CLI would delete it at its next start: it stays in "
            f"{session.path}"
        )
    return {
        "sessionId": id,
        "projectHash": path_hash(root),
        "startTime": iso(session.started or session.when),
        "lastUpdated": iso(session.when),
        "kind": "main",
    }


def _id_in_first_line(kept: Path, short: str) -> str:
    """Return the session id in a log's damaged first line, or create a new id.

    `short`: the short id in the file's name, with which the session id must start. If it is "", no
    new id is created, and "" is returned if the line contains no id.
    """
    with open_regular(kept) as file:
        first = file.read(_FIRST).partition(b"\n")[0].decode(errors="replace")
    match = _ID.search(first)
    if match is not None and match[0].startswith(short):
        return match[0]
    return f"{short}{str(uuid4())[8:]}" if short else ""


# --- files that would cause its removal --------------------------------------------------------


def _clear_obstacles(
    place: Path, session: Summary, rule: Retention, now: datetime
) -> Iterator[Path]:
    """Archive and remove other files that would make the clean-up delete the session.

    Yields the files' paths. Raises RestoreFailed for a file that must not be removed.
    """
    short = short_id(str(place))
    if not short or not place.parent.is_dir():
        return
    for path in list(place.parent.iterdir()):
        if path == place or short_id(str(path)) != short:
            continue
        other = read_session(path)
        if other is None:
            raise RestoreFailed(_in_the_way(path))
        if other.resumable and other.has_header and not is_expired(other, rule, now):
            continue
        if other.id != session.id and other.spoken and other.has_header:
            raise RestoreFailed(_other_session(path))
        if is_live(other, now):
            raise RestoreFailed(_live(path))
        archive(path)
        path.unlink()
        yield path


def _in_the_way(path: Path) -> str:
    return f"{path} has taken its place: move it away, then restore again"


def _require_replaceable(
    place: Path, kept: Path, session: Summary, known: Container[Path], now: datetime
) -> None:
    """Raise RestoreFailed if a version of a session must not replace the file in its place.

    `kept`, `session`: the version. `known`: the files that the user saw as the session's.
    """
    if not os.path.lexists(place):
        return
    existing = read_session(place)
    adds = kept != place and adds_to(place, kept)
    if not place.is_file() or place.is_symlink() or (existing is None and adds):
        raise RestoreFailed(_in_the_way(place))
    if existing is None:
        return
    if existing.resumable and existing.has_header:
        if existing.id != session.id:
            raise RestoreFailed(_other_session(place))
        if adds or supersedes(existing, session) or place not in known:
            raise RestoreFailed(_in_the_way(place))
    if (adds or kept == place) and is_live(existing, now):
        raise RestoreFailed(_live(place))


def _other_session(path: Path) -> str:
    return f"{path} has the same short id, so Gemini CLI would delete both together: move it away"


def _live(path: Path) -> str:
    return f"{path} is being written right now: end that session first"


# --- restoring ---------------------------------------------------------------------------------


def _beside_in_vault(place: Path, home: Path, id: str) -> Mapping[Path, Path]:
    """Map the places of a session's other files to the vault's best copies of them.

    For subagents' files, the best copy is the largest; for all other files, the newest.
    """
    best: dict[Path, tuple[int, Path]] = {}

    def offer(path: Path, kept: Path, rank: int) -> None:
        if path not in best or rank > best[path][0]:
            best[path] = rank, kept

    agents = place.parent / id
    for tree in trees():
        with suppress(OSError):
            for path in in_tree(tree, agents).iterdir():
                agent = place_of(path, in_tree(tree, home))
                if agent is not None:
                    offer(agents / path.name, path, agent.size)
    for kept, path in names_beside(place, id, trees()):
        offer(path, kept, kept.stat().st_mtime_ns)
    return {path: kept for path, (_, kept) in best.items()}


def _put_others(files: Mapping[Path, Path]) -> Iterator[Path]:
    for path, kept in files.items():
        if not os.path.lexists(path):
            if not restore_file(kept, path):
                raise RestoreFailed(f"{path} already exists: move it away, then restore again")
            yield path


def _put(
    kept: Path, place: Path, *, write: Callable[[Path, Path], None] = copy_file
) -> Path | None:
    """Put a saved file in its place; return the archived file that it replaced, or None."""
    over = stat_if_present(place)
    aside = set_others_aside(place, kept)
    if not restore_file(kept, place, write=write, over=over):
        raise RestoreFailed(f"{place} has just changed: restore again")
    return aside


def _write_changed(
    kept: Path, new: Path, *, head: Mapping[str, Any], updated: datetime | None
) -> None:
    """Write a copy of a session file, with this header and time of the last update.

    `head`: {} if the file has a header. `updated`: None to leave the time as it is.
    """
    if updated is None:
        copy_file(kept, new, head=_line(head))
        return
    if kept.suffix == ".json":
        with open_regular(kept) as file:
            session = loads(file.read()) | {"lastUpdated": iso(updated)}
        write_new(new, orjson.dumps(session, option=orjson.OPT_INDENT_2))
        return
    copy_file(kept, new, head=_line(head))
    with open_regular(new) as log, new.open("ab") as target:
        log.seek(-1, io.SEEK_END)
        target.write(b"" if log.read() == b"\n" else b"\n")  # the last line may be incomplete
        target.write(_line({"$set": {"lastUpdated": iso(updated)}}))


def _line(record: Mapping[str, Any]) -> bytes:
    return orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE) if record else b""
