"""What keeps a session safe that a run resumes.

`--resume` opens a new chat under the same id before it goes on in the old file. In a later minute
than the session's own that leaves a ghost: a second file with this id and nothing in it. At its
next start in that project the CLI removes files with nothing in them, and with a ghost every file
of that id, the conversation too (contract 1.6). So before the run every file of the session is
copied into the run's folder, and after it the ghost is removed, and nothing else.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import orjson

from gemtui.agent.folder import Request, RunFolder
from gemtui.agent.gemini import owner_lives
from gemtui.errors import GemtuiError
from gemtui.files import write_whole
from gemtui.jsonfile import read_object
from gemtui.paths import gemini_home
from gemtui.sessions.records import SessionLog
from gemtui.sessions.store import ChatFile, SessionKind, Store
from gemtui.transcript.parts import objects, string

_BEFORE, _AFTER = "before.json", "after.json"
_TAIL = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A session as it was before a run resumed it.

    `files`: place in the store -> its copy in the run's folder. `seen`: files that bore the
    session's short id then, whatever was in them.
    """

    session_id: str
    home: Path
    files: Mapping[Path, Path]
    seen: frozenset[Path]


@dataclass(frozen=True, slots=True, kw_only=True)
class Aftermath:
    """What was found and done once the run had ended.

    `ghosts`: empty second files, removed. `lost`: files of the session that are gone; `restore`
    brings them back. `changed`: logs that no longer begin with what was in them. `problems`: what
    could not be looked at or removed.
    """

    ghosts: tuple[Path, ...] = ()
    lost: tuple[Path, ...] = ()
    changed: tuple[Path, ...] = ()
    problems: tuple[str, ...] = ()


class ResumeGuard:
    """Keeps the sessions that an adapter's runs resume: `GeminiAdapter(guard=ResumeGuard())`."""

    def before(self, folder: RunFolder, request: Request, environ: Mapping[str, str]) -> None:
        """Copy the session that the run will resume. Raises OSError: then it must not start.

        Any start of the CLI cleans up, so what earlier runs left behind is put right first.
        """
        settle_left(folder.path.parent)
        resumed = string((request.about or {}).get("resume"))
        if resumed:
            keep(folder, gemini_home({**environ, **request.environ}), resumed)

    def after(self, folder: RunFolder) -> None:
        """Put the session right, once; for a run that resumed none there is nothing to do.

        On a full disk it is done and not written down.
        """
        kept = kept_of(folder)
        if kept is not None and aftermath_of(folder) is None:
            with suppress(OSError):
                settle(folder, kept)


def keep(folder: RunFolder, home: Path, session_id: str) -> Kept:
    """Copy every file of a session, subagents' included, into the run's folder. Raises OSError."""
    named = list(_named(home, session_id))
    mine = [place.path for place in named if _may_hold(place, session_id)]
    files = {path: folder.path / f"before-{at}-{path.name}" for at, path in enumerate(mine)}
    for path, copy in files.items():
        _copy(path, copy)
    kept = Kept(
        session_id=session_id,
        home=home,
        files=files,
        seen=frozenset(place.path for place in named),
    )
    _write(folder, _BEFORE, _kept_json(kept))
    return kept


def settle(folder: RunFolder, kept: Kept) -> Aftermath:
    """Remove what the resume left behind, say what is missing, and write that down.

    A file that can't be removed becomes a problem in words. Raises OSError where the record can't
    be written, after all else has been done.
    """
    removed, problems = [], []
    for path in _ghosts(kept):
        try:
            path.unlink(missing_ok=True)
            removed.append(path)
        except OSError as error:
            problems.append(f"{path} could not be removed: {error.strerror}")
    aftermath = Aftermath(
        ghosts=tuple(removed),
        lost=tuple(path for path in kept.files if not os.path.lexists(path)),
        changed=tuple(path for path, copy in kept.files.items() if _is_another(path, copy)),
        problems=tuple(problems),
    )
    _write(folder, _AFTER, _aftermath_json(aftermath))
    return aftermath


def settle_left(runs: Path) -> tuple[RunFolder, ...]:
    """Put right what ended runs have left while nobody looked on: gemtui was killed, say. Which
    runs. Cheap where there is nothing to do.
    """
    left = (RunFolder(path.parent) for path in runs.glob(f"*/{_BEFORE}"))
    open_ones = [folder for folder in left if aftermath_of(folder) is None and _is_over(folder)]
    for folder in open_ones:
        ResumeGuard().after(folder)
    return tuple(open_ones)


def _is_over(folder: RunFolder) -> bool:
    owner = folder.owner()
    return folder.exit() is not None or (owner is not None and not owner_lives(owner))


def restore(kept: Kept) -> tuple[Path, ...]:
    """Put back every file of the session that is gone; which ones. A file that is there, whatever
    is in it, is never touched. Raises OSError.
    """
    return tuple(path for path, copy in kept.files.items() if _put_back(copy, path))


def kept_of(folder: RunFolder) -> Kept | None:
    """What was copied before a run; None if it resumed nothing."""
    found = _read(folder, _BEFORE)
    session_id, home = string(found.get("session_id")), string(found.get("home"))
    if not session_id or not home:
        return None
    files = {
        Path(string(each.get("path"))): folder.path / Path(string(each.get("copy"))).name
        for each in objects(found.get("files"))
    }
    return Kept(
        session_id=session_id, home=Path(home), files=files, seen=frozenset(_paths(found, "seen"))
    )


def aftermath_of(folder: RunFolder) -> Aftermath | None:
    """What was found after a run; None if nobody has looked yet, or it resumed nothing."""
    found = _read(folder, _AFTER)
    if not found:
        return None
    problems = found.get("problems")
    return Aftermath(
        ghosts=_paths(found, "ghosts"),
        lost=_paths(found, "lost"),
        changed=_paths(found, "changed"),
        problems=tuple(map(str, problems)) if isinstance(problems, list) else (),
    )


# --- looking -----------------------------------------------------------------------------------


def _named(home: Path, session_id: str) -> Iterator[ChatFile]:
    """Files whose names say that they are of this session: of its own, and of its subagents."""
    for place in Store(home).files():
        main = place.kind is SessionKind.MAIN and place.name_id == session_id[:8]
        if main or (place.kind is SessionKind.SUBAGENT and place.parent == session_id):
            yield place


def _may_hold(place: ChatFile, session_id: str) -> bool:
    """Whether a file is of this very session, or can't tell."""
    if place.kind is SessionKind.SUBAGENT:
        return True
    try:
        with SessionLog(place.path) as log:
            log.refresh(upto=_TAIL)
            return bool(log.metadata.get("sessionId", session_id) == session_id)
    except (GemtuiError, OSError):
        return True


def _ghosts(kept: Kept) -> list[Path]:
    """Files that came during the run, of this session, with nothing in them, while another one
    has something.
    """
    mains = [p.path for p in _named(kept.home, kept.session_id) if p.kind is SessionKind.MAIN]
    held = {path: _held(path, kept.session_id) for path in mains}
    if True not in held.values():
        return []
    return [path for path, holds in held.items() if holds is False and path not in kept.seen]


def _held(path: Path, session_id: str) -> bool | None:
    """Whether a file of this session replays to something; None where that can't be said."""
    try:
        with SessionLog(path) as log:
            log.refresh()
            sure = not (log.torn or log.problem_count)
            if log.metadata.get("sessionId") != session_id:
                return None
            if log.outlines:
                return True
            return False if sure and not log.dropped else None
    except (GemtuiError, OSError):
        return None


def _is_another(path: Path, copy: Path) -> bool:
    """Whether a log no longer goes on from what was copied; the other format is rewritten."""
    if path.suffix != ".jsonl":
        return False
    try:
        size = copy.stat().st_size
        with path.open("rb") as now, copy.open("rb") as then:
            at = max(0, size - _TAIL)
            now.seek(at)
            then.seek(at)
            return now.read(size - at) != then.read(size - at)
    except OSError:
        return False


def _put_back(copy: Path, path: Path) -> bool:
    """A whole file appears at `path`, or none; never over another one."""
    if os.path.lexists(path):
        return False
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=".gemtui-", dir=path.parent)
    os.close(handle)
    try:
        _copy(copy, Path(name))
        os.link(name, path)
    except FileExistsError:
        return False
    finally:
        Path(name).unlink()
    return True


def _copy(path: Path, to: Path) -> None:
    """Content and times, for the user's eyes only."""
    to.touch(mode=0o600)
    shutil.copyfile(path, to)
    facts = path.stat()
    os.utime(to, ns=(facts.st_atime_ns, facts.st_mtime_ns))


# --- the record in the run's folder ------------------------------------------------------------


def _write(folder: RunFolder, name: str, value: object) -> None:
    write_whole(folder.path / name, (orjson.dumps(value, option=orjson.OPT_INDENT_2),))


def _read(folder: RunFolder, name: str) -> Mapping[str, object]:
    with suppress(OSError):
        return read_object(folder.path / name)
    return {}


def _paths(found: Mapping[str, object], name: str) -> tuple[Path, ...]:
    listed = found.get(name)
    items: Iterable[object] = listed if isinstance(listed, list) else ()
    return tuple(Path(each) for each in items if isinstance(each, str))


def _kept_json(kept: Kept) -> object:
    return {
        "session_id": kept.session_id,
        "home": os.fspath(kept.home),
        "files": [
            {"path": os.fspath(path), "copy": copy.name} for path, copy in kept.files.items()
        ],
        "seen": sorted(map(os.fspath, kept.seen)),
    }


def _aftermath_json(aftermath: Aftermath) -> object:
    return {
        "ghosts": [os.fspath(path) for path in aftermath.ghosts],
        "lost": [os.fspath(path) for path in aftermath.lost],
        "changed": [os.fspath(path) for path in aftermath.changed],
        "problems": list(aftermath.problems),
    }
