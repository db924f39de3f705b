"""Files that the CLI stores for a session outside its log, such as tool outputs.

The CLI deletes them together with the session (assets/gemini-cli.md#clean-up).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from gemtui.sessions.store.store import ChatFile

_CHATS, _OUTPUTS, _OF_SESSION = "/chats/", "tool-outputs", "session-"
_OF_ALL = frozenset({"chats", "checkpoints", "logs", "memory", "plans", "tasks", "tool-outputs", "tracker", "bin"})
"""Folders beside `chats` that belong to the whole project.

They are never taken for a session's folder, even if a log's header gives such a name as its session
id. Names are compared case-insensitively, because some file systems ignore case.
"""


def belongings(project: Path, id: str) -> tuple[Path, Path]:
    """Return the two folders where the CLI stores a session's files besides its log.

    The first holds tool outputs; the second, named after the session's id, holds plans and other
    files. `project`: the project's folder under `~/.gemini/tmp`. The two folders need not exist.
    `id` must be safe to use as a folder name; check it with `is_plain_id`.
    """
    return project / _OUTPUTS / f"{_OF_SESSION}{id}", project / id


def is_plain_id(id: str) -> bool:
    """Return whether an id is safe to use as the name of a session's own folder.

    Ids are untrusted: an id could contain a path separator, or be the name of a folder that all
    sessions of a project share.
    """
    odd = id.startswith(".") or bool(set(id) & {"/", "\\", "\0"})
    return not odd and id.casefold() not in _OF_ALL


def folders_beside(files: Iterable[ChatFile]) -> Iterator[Path]:
    """Yield the existing folders of tool outputs and plans for these session files.

    They are the folders described in `belongings`. Only the first eight characters of a session's
    id are compared, because the names of session files contain only those.
    """
    ids: dict[str, set[str]] = {}
    for file in files:
        name, chats, _ = file.name.rpartition(_CHATS)
        if chats and file.name_id:
            ids.setdefault(name, set()).add(file.name_id[:8])
    for project, short in ((Path(name), short) for name, short in ids.items()):
        outputs = project / _OUTPUTS
        for folder in (*_folders(project), *_folders(outputs)):
            id = folder.name.removeprefix(_OF_SESSION) if folder.parent == outputs else folder.name
            if id[:8] in short and is_plain_id(id):
                yield folder


def project_folder(path: Path) -> Path | None:
    """Return the folder that contains a session file's `chats` folder.

    It is the project's folder under `~/.gemini/tmp`. Returns None if the file is not inside a
    folder named `chats`.
    """
    folder, chats, _ = str(path).rpartition(_CHATS)
    return Path(folder) if chats else None


def _folders(place: Path) -> list[Path]:
    with suppress(OSError):
        return [each for each in place.iterdir() if each.is_dir() and not each.is_symlink()]
    return []
