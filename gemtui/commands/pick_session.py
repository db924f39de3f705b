"""Find the session that the user names, or list the candidates."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path

from gemtui.commands.output import note
from gemtui.errors import SessionAmbiguous, SessionNotFound
from gemtui.paths import cache_dir, folder_here, gemini_home
from gemtui.sessions.catalog.index import Index, find_session
from gemtui.sessions.catalog.selection import LATEST, listed_sessions
from gemtui.sessions.catalog.summary import Summary
from gemtui.text import clean_line, relative

CANDIDATES = 20
_NEWEST = 5
_COMPLETED = 500
_PLAIN_ID = re.compile(r"[\w.-]+", re.ASCII)


@contextmanager
def index_of_user(home: Path | None = None) -> Iterator[Index]:
    """Open the index of the user's sessions, or of those in another Gemini home.

    When it is closed, the user is told if gemtui's cache was corrupt and has been recreated.
    `home`: None means the user's `~/.gemini`.
    """
    with closing(Index(home or gemini_home(), cache=cache_dir())) as index:
        try:
            yield index
        finally:
            if index.renewed is not None:
                note(f"{index.renewed.path}: {index.renewed.what}")


def choose(wanted: str, index: Index, *, project: Path | None = None, here: Path | None = None) -> Summary:
    """Return the session for a full id, a unique prefix, a file's path or `latest`.

    `project`, `here`: as in `find_session`, except that None for `here` means the current folder.
    Raises SessionNotFound and SessionAmbiguous; their notes list the candidates, one per note.
    """
    try:
        return find_session(index, wanted, project=project, here=here or folder_here())
    except SessionAmbiguous as error:
        _note(error, _all(index), among=error.candidates)
        raise
    except SessionNotFound as error:
        newest = [each for each in _all(index) if not each.hidden][:_NEWEST]
        _note(error, newest, among=[each.id for each in newest])
        raise


def _all(index: Index) -> tuple[Summary, ...]:
    return index.load(publish=lambda _: None, cancelled=lambda: False).sessions


def _note(error: Exception, sessions: Iterable[Summary], *, among: Iterable[str]) -> None:
    """Add a note to the error for each candidate, with its last use and its title.

    The candidates are the sessions whose id or file name is in `among`.
    """
    now, named = datetime.now(UTC), set(among)
    found = [(name, each) for each in sessions for name in (each.id, each.name) if name in named]
    for name, each in found[:CANDIDATES]:
        error.add_note(clean_line(f"{name}  {relative(each.when, now)}  {each.title}"))
    if len(found) > CANDIDATES:
        error.add_note(f"and {len(found) - CANDIDATES} more")


def session_completions(begun: str) -> list[tuple[str, str]]:
    """Return (id, title) for each session whose id begins with `begun`, newest first.

    This is for completion in a shell.
    """
    with closing(Index(gemini_home(), cache=cache_dir())) as index:
        snapshot = index.quick(project=None, limit=_COMPLETED)
    offered = [(LATEST, "the newest session")]
    for each in listed_sessions(snapshot, project=None, hidden=False):
        if _PLAIN_ID.fullmatch(each.id):
            offered.append((each.id, clean_line(each.title)))
    return [(id, title) for id, title in offered if id.startswith(begun)]
