"""The sessions that a command is about: the one that the user names, a project's, or all.

If no session or several match a name, the error lists the candidates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path, PurePath

import click

from gemtui.calls.paths import is_windows, recorded_path
from gemtui.commands.output import note
from gemtui.commands.shared_options import existing_folder_here
from gemtui.errors import GemtuiError, MarksUnreadable, SessionAmbiguous, SessionNotFound
from gemtui.marks import Mark, Marks
from gemtui.paths import cache_dir, folder_here, gemini_home
from gemtui.sessions.catalog.index import Index, find_session
from gemtui.sessions.catalog.selection import LATEST, split_agent
from gemtui.sessions.catalog.summary import Summary, id_start, named
from gemtui.text import clean_line, relative, short_path

_CANDIDATES = 20
_NEWEST = 5
_SHORT = 8
"""How many characters of an id to show; more if they would not be unique."""


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


def session_named(wanted: str, *, project: Path | None = None, home: Path | None = None) -> Summary:
    """Return the session that `choose` finds, with the same errors.

    `home`: as in `index_of_user`.
    """
    with index_of_user(home) as index:
        return choose(wanted, index, project=project)


def session_to_change(wanted: str, *, project: Path | None = None) -> Summary:
    """Return the session for a command that writes, with the same errors as `choose`.

    `latest` means only the newest session of `project`, or else of the current folder: files of
    another project are changed only for a session that the user has named. Raises click.UsageError
    if the current folder has no session.
    """
    if project is not None or split_agent(wanted.strip())[1] != LATEST:
        return session_named(wanted, project=project)
    try:
        with index_of_user() as index:
            return index.find(wanted, project=existing_folder_here())
    except SessionNotFound as error:
        command = click.get_current_context().command_path
        raise click.UsageError(
            f"no session of this folder: name one, such as `{command} ID`"
        ) from error


def session_words(session: Summary) -> str:
    """Return how a question names a session: short id, title, and folder if it isn't this one."""
    title = named(session, marks_of_user()).title
    where = session.folder
    inside = "" if where is None or where == folder_here() else f" in {short_path(where)}"
    return clean_line(f"session {id_start(session.id)} ({title}){inside}")


def choose(
    wanted: str, index: Index, *, project: Path | None = None, here: Path | None = None
) -> Summary:
    """Return the session for a full id, a unique prefix, a file's path or `latest`.

    `project`, `here`: as in `find_session`, except that None for `here` means the current folder.
    Raises SessionNotFound and SessionAmbiguous; their notes list the candidates, one per note; and
    GemtuiError as `project_in_use` does.
    """
    if project is not None:
        project = _folder_named(project, lambda **_: iter(index.load().sessions))
    try:
        return find_session(index, wanted, project=project, here=here or folder_here())
    except SessionAmbiguous as error:
        _note(error, index.load().sessions, among=error.candidates)
        raise
    except SessionNotFound as error:
        newest = [session for session in index.load().sessions if not session.hidden][:_NEWEST]
        _note(error, newest, among=[session.id for session in newest])
        raise


def _note(error: Exception, sessions: Iterable[Summary], *, among: Iterable[str]) -> None:
    """Add a note to the error for each candidate, with its last use and its title.

    The candidates are the sessions whose id or file name is in `among`.
    """
    now, wanted, marks = datetime.now(UTC), set(among), marks_of_user()
    candidates = [
        (name, session)
        for session in sessions
        for name in (session.id, session.name)
        if name in wanted
    ]
    for name, session in candidates[:_CANDIDATES]:
        error.add_note(
            clean_line(f"{name}  {relative(session.when, now)}  {named(session, marks).title}")
        )
    if len(candidates) > _CANDIDATES:
        error.add_note(f"and {len(candidates) - _CANDIDATES} more")


def project_in_use(
    listed: Callable[..., Iterator[Summary]], project: Path | None, *, everywhere: bool = False
) -> Path | None:
    """Return the folder of the project whose sessions to use; None means all.

    `listed`: yields the sessions of a folder, given as `project`, that a list would show.
    `project`: the folder that the user named. If it is None, the current folder is used if it has
    such sessions, and otherwise all folders. `everywhere`: use all folders. Raises GemtuiError if
    the user named neither a folder nor, as the list shows it, one project.
    """
    if everywhere:
        return None
    if project is not None:
        return _folder_named(project, listed)
    folder = folder_here()
    return folder if folder and next(listed(project=folder), None) else None


def _folder_named(name: Path, listed: Callable[..., Iterator[Summary]]) -> Path:
    """Return the folder that the user named by its path, or by the end of a project's path."""
    if name.is_absolute() or is_windows(str(name)) or name.exists():
        return name
    folders = {
        session.project: recorded_path(session.project)
        for session in listed(project=None)
        if session.project is not None
    }
    named = [folder for folder, path in folders.items() if _ends_with(path, str(name))]
    if len(named) == 1:
        return Path(named[0])
    hint = _meant(named or _alike(name.name, folders))
    raise GemtuiError(clean_line(f"no folder or project “{name}”{hint}"))


def _ends_with(path: PurePath, name: str) -> bool:
    system = type(path)
    end = system(name)
    return system(*path.parts[-len(end.parts) :]) == end


def unknown_project(name: str, sessions: Iterable[Summary]) -> str:
    """Return the complaint that no project is called like this, with those of a similar name."""
    projects = {session.project for session in sessions if session.project is not None}
    folders = {project: recorded_path(project) for project in projects}
    return clean_line(f"no project “{name}”{_meant(_alike(name, folders))}")


def _alike(name: str, folders: Mapping[str, PurePath]) -> list[str]:
    """Return the folders whose last part is similar to a name."""
    from difflib import get_close_matches

    similar = get_close_matches(name, [path.name for path in folders.values()])
    return [folder for folder, path in folders.items() if path.name in similar]


def _meant(folders: Iterable[str]) -> str:
    words = " or ".join(short_path(Path(folder)) for folder in sorted(folders)[:_CANDIDATES])
    return f": did you mean {words}?" if words else ""


def no_sessions_yet(home: Path) -> str:
    """Return what to say if there are no sessions at all in a Gemini home."""
    return f"no sessions in {home} yet: Gemini CLI stores them there once you use it"


def short_ids(ids: Iterable[str], shown: Iterable[str] | None = None) -> dict[str, str]:
    """Map each id to its shortest unique prefix, which is at least its `id_start`.

    `shown`: the ids that the result must contain; None means all. Naming only a few saves time with
    thousands of sessions.
    """
    if shown is not None:
        starts = {id[:_SHORT] for id in shown}
        ids = [id for id in ids if id[:_SHORT] in starts]
    ordered = sorted(set(ids))
    lengths = {id: len(id_start(id)) for id in ordered}
    for one, other in pairwise(ordered):
        if one[:_SHORT] != other[:_SHORT]:
            continue
        same = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), None)
        needed = (len(one) if same is None else same) + 1
        lengths[one], lengths[other] = max(lengths[one], needed), max(lengths[other], needed)
    return {id: id[:length] for id, length in lengths.items()}


def marks_of_user() -> Mapping[str, Mark]:
    """Return the user's marks, by session id.

    If they can't be read, this is reported on stderr, and {} is returned.
    """
    try:
        return Marks().all()
    except MarksUnreadable as error:
        note(str(error))
        return {}
