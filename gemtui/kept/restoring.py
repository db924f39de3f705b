"""Put a kept session back into the CLI's store, so that the CLI lists and resumes it.

Only the file in use comes back, with its subagents, tool outputs and plans, and none of its ghosts
and older copies: the clean-up removes all files of an id as soon as one of them has nothing to
resume or is too old. What the store has of that kind is kept in the vault first, and then removed.
"""

from __future__ import annotations

import io
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from uuid import uuid4

import orjson

from gemtui.errors import OptionError, RestoreFailed
from gemtui.files import copy_content, make_folder, open_regular, sync, sync_folder
from gemtui.jsonin import loads
from gemtui.kept.cleanup import Retention, is_too_late, short_id
from gemtui.kept.run_copies import named
from gemtui.kept.vault import NEVER_LINKED, detach, is_on, keep
from gemtui.sessions.belongings import is_plain_id
from gemtui.sessions.merge import is_live
from gemtui.sessions.projects import Projects, path_hash
from gemtui.sessions.records import SessionLog
from gemtui.sessions.store import ChatFile, SessionKind, file_anywhere, place_of
from gemtui.sessions.summarise import read_file
from gemtui.sessions.summary import Flag, Summary, iso
from gemtui.sessions.vault_files import (
    in_tree,
    names_beside,
    place_in_store,
    store_with_kept,
    trees,
)

_FIRST = 4096
"""Bytes of a log that may hold its first line."""
_ID = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """What a restoring did.

    `paths`: the files that are in the store again. `removed`: files with this id that had nothing
    to resume, or were too old, and would have taken it along; the vault has them. `renewed`: its
    last update is now, as the CLI would have found it too old.
    """

    paths: tuple[Path, ...]
    removed: tuple[Path, ...] = ()
    renewed: bool = False


def restore(session: Summary, home: Path, rule: Retention, now: datetime) -> Restored:
    """Put a session that the vault keeps back to its place in the store, never over a conversation.

    `rule`: how long the CLI keeps sessions of its project. Interrupted at any moment it has lost
    nothing, and can be done again. Raises RestoreFailed if there is a reason not to, and OSError.
    """
    if Flag.KEPT not in session.flags:
        raise RestoreFailed(f"{session.path} is where it belongs: there is nothing to restore")
    kept, place = session.path, place_in_store(session.path)
    if session.kind is not SessionKind.MAIN:
        _put(kept, place)
        return Restored(paths=(place,))
    now_kept = _read(kept)
    if now_kept is None or not now_kept.resumable:
        raise RestoreFailed(
            "there is nothing in it for Gemini CLI to resume, which would remove it at its next "
            "start: read or export it here"
        )
    if not now_kept.has_header:
        _add_header(now_kept, place, home)
        now_kept = _read(kept) or now_kept
    _require_project(now_kept, place, home)
    removed = tuple(_make_way(place, now_kept, rule, now))
    renewed = is_too_late(now_kept, rule, now)
    others: tuple[Path, ...] = ()
    id = now_kept.id
    if is_plain_id(id):  # before the session, without which all can be done again
        others = (*_put_subagents(place.parent / id, home), *_put_beside(place, id))
    _put(kept, place, updated=now if renewed else None)
    if is_on():
        keep(place)
    for path in (place, *others):
        detach(path)
    return Restored(paths=(place, *others), removed=removed, renewed=renewed)


def require_stored(session: str, home: Path) -> None:
    """Raise OptionError if only the vault has the files of a session: the CLI can't resume it."""
    places = [*named(store_with_kept(home), session)]
    if places and all(place.kept for place in places):
        raise OptionError(put_back_first(session), option="resume")


def put_back_first(id: str) -> str:
    """Say why a session that only the vault has can't be resumed, and the way out."""
    way = f"gemtui vault restore {id}"
    return f"Gemini CLI has removed {id}, only the vault has it: put it back first, {way}"


def _require_project(session: Summary, place: Path, home: Path) -> None:
    """The CLI looks for the sessions of a project in its folder alone."""
    key = place.parent.parent.name
    root = Projects(home, [key]).root_of(key)
    if root and session.project_hash and session.project_hash != path_hash(root):
        raise RestoreFailed(f"{place.parent.parent} belongs to another project now, {root}")


def _add_header(session: Summary, place: Path, home: Path) -> None:
    """Put a first line before all that a kept log holds; without one the CLI would remove it.

    Raises RestoreFailed, OSError.
    """
    key = place.parent.parent.name
    root = Projects(home, [key]).root_of(key)
    id = _id_in_first_line(session)
    if root is None or not id:
        raise RestoreFailed(
            "its first line is damaged or missing, and its project or id is not known, so Gemini"
            " CLI would remove it at its next start: read or export it here"
        )
    header = {
        "sessionId": id,
        "projectHash": path_hash(root),
        "startTime": iso(session.started or session.when),
        "lastUpdated": iso(session.when),
        "kind": "main",
    }
    new = session.path.with_name(f".put-{place.stem}")
    new.unlink(missing_ok=True)
    try:
        _write(session.path, new, None, head=orjson.dumps(header, option=orjson.OPT_APPEND_NEWLINE))
        new.replace(session.path)
    finally:
        new.unlink(missing_ok=True)
    sync_folder(session.path.parent)


def _id_in_first_line(session: Summary) -> str:
    """The id that what is left of a log's first line names, else a new one for its file's name."""
    short = short_id(place_in_store(session.path))
    with open_regular(session.path) as file:
        first = file.read(_FIRST).partition(b"\n")[0].decode(errors="replace")
    found = _ID.search(first)
    if found is not None and found[0].startswith(short):
        return found[0]
    return f"{short}{str(uuid4())[8:]}" if short else ""


# --- what would take it along ------------------------------------------------------------------


def _make_way(place: Path, session: Summary, rule: Retention, now: datetime) -> Iterator[Path]:
    """Keep, and remove, what the clean-up would take and the session with it."""
    for path in _of_this_id(place):
        there = _read(path)
        goes = there is None or not (there.resumable and there.has_header)
        if not goes and path != place and there is not None and not is_too_late(there, rule, now):
            continue
        if there is None or (not goes and path == place):
            raise RestoreFailed(f"{path} is in its place: move it away, then restore again")
        if there.id != session.id and there.spoken and there.has_header:
            raise RestoreFailed(f"{path} has its short id and would take it along: move it away")
        if is_live(there, now):
            raise RestoreFailed(f"{path} is just being written: end that session first")
        keep(path)
        path.unlink()
        yield path


def _of_this_id(place: Path) -> list[Path]:
    short, found = short_id(place), [place]
    with suppress(OSError):
        found += [path for path in place.parent.iterdir() if short and short_id(path) == short]
    return [path for path in dict.fromkeys(found) if os.path.lexists(path)]


def _read(path: Path) -> Summary | None:
    place = file_anywhere(path)
    if place is None:
        return None
    with SessionLog(path) as log:
        known = read_file(log, place)
    return known if isinstance(known, Summary) else None


# --- putting back ------------------------------------------------------------------------------


def _put_subagents(folder: Path, home: Path) -> Iterator[Path]:
    best: dict[Path, ChatFile] = {}
    for tree in trees():
        with suppress(OSError):
            for path in in_tree(tree, folder).iterdir():
                kept = place_of(path, in_tree(tree, home))
                known = best.get(folder / path.name)
                if kept is not None and (known is None or kept.size > known.size):
                    best[folder / path.name] = kept
    for path, kept in best.items():
        if not os.path.lexists(path):
            _put(kept.path, path)
            yield path


def _put_beside(place: Path, id: str) -> Iterator[Path]:
    """The newest that the vault has of the session's tool outputs and plans."""
    best: dict[Path, Path] = {}
    for kept, path in names_beside(place, id, trees()):
        known = best.get(path)
        if known is None or kept.stat().st_mtime_ns > known.stat().st_mtime_ns:
            best[path] = kept
    for path, kept in best.items():
        if not os.path.lexists(path):
            _put(kept, path)
            yield path


def _put(kept: Path, place: Path, *, updated: datetime | None = None) -> None:
    """A whole file appears at a place, or none; never over another one.

    It is the kept file itself where nothing writes over it and nothing is to be changed.
    """
    make_folder(place.parent)
    try:
        if updated is not None or not _linked(kept, place):
            _copied(kept, place, updated)
    except FileExistsError as error:
        raise RestoreFailed(f"{place} is there: move it away, then restore again") from error
    sync_folder(place.parent)


def _linked(kept: Path, place: Path) -> bool:
    """Raises FileExistsError."""
    if kept.suffix != ".jsonl" or kept.is_relative_to(in_tree(trees()[-1], Path("/"))):
        return False
    try:
        os.link(kept, place, follow_symlinks=False)
    except FileExistsError:
        raise
    except OSError:
        return False
    return True


def _copied(kept: Path, place: Path, updated: datetime | None) -> None:
    """What is interrupted leaves a file in the vault, which `keep_all` removes; where that is on
    another file system, one beside the place, which the next try removes.
    """
    for new in (kept.with_name(f".put-{place.stem}"), place.with_name(f".gemtui-{place.stem}")):
        new.unlink(missing_ok=True)
        try:
            _write(kept, new, updated)
            os.link(new, place)
        except OSError as error:
            if error.errno not in NEVER_LINKED or new.parent == place.parent:
                raise
        else:
            return
        finally:
            new.unlink(missing_ok=True)


def _write(kept: Path, new: Path, updated: datetime | None, *, head: bytes = b"") -> None:
    with open_regular(kept) as source, new.open("xb") as target:
        new.chmod(0o600)
        facts = os.fstat(source.fileno())
        target.write(head)
        if updated is not None and kept.suffix == ".json":
            target.write(_with_update(source.read(), updated))
        else:
            copy_content(source, target)
            target.write(b"" if updated is None else _update_after(source, updated))
        sync(target)
    if updated is None:
        os.utime(new, ns=(facts.st_atime_ns, facts.st_mtime_ns))


def _update_after(log: io.FileIO, updated: datetime) -> bytes:
    """What a log ends with that was updated then; its last line may have been cut."""
    log.seek(-1, os.SEEK_END)
    line = orjson.dumps({"$set": {"lastUpdated": iso(updated)}}, option=orjson.OPT_APPEND_NEWLINE)
    return line if log.read() == b"\n" else b"\n" + line


def _with_update(data: bytes, updated: datetime) -> bytes:
    """An object of an older version with another last update."""
    found = loads(data)
    return orjson.dumps(found | {"lastUpdated": iso(updated)}, option=orjson.OPT_INDENT_2)
