"""The user's project folders: for folders under `~/.gemini/tmp`, and for git worktrees.

Sessions in a worktree belong to its repository.
"""

from __future__ import annotations

import os
from collections.abc import Container, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from pathlib import Path, PurePath

from gemtui.calls.paths import is_windows, recorded_path
from gemtui.errors import reason_of
from gemtui.files import is_file, read_small, resolved
from gemtui.jsonfile import object_of, read_object, without_comments

MARKER = ".project_root"
"""The name of the file that names a folder's project."""
ROOT_LIMIT = 64 * 1024
REGISTRY_LIMIT = 16 * 1024 * 1024
_LONGEST = 4096
"""Maximum length of a path in characters; systems allow no more bytes than that."""
_HASH = 64
"""Length of a hash in hexadecimal digits."""
_DEEPEST = 64
"""Maximum number of folders from the root to a project."""


class Projects:
    """Finds the project folder that a folder under `~/.gemini/tmp` belongs to.

    A folder there contains a marker (the file `.project_root`), has a name that the registry
    (`projects.json`) assigns to the project, or is named by the hash of the project's path, which
    may be among those in `trustedFolders.json`. `keys`: the names of the folders under `tmp`.
    `learn` adds paths from elsewhere, to identify folders that are named by a hash.
    """

    def __init__(self, home: Path, keys: Iterable[str] = ()) -> None:
        self._registry = registered(home / "projects.json") or {}
        self._markers = {key: _marker(home, key) for key in keys}
        self._by_slug = {slug: path for path, slug in self._registry.items()}
        self._paths: dict[str, None] = {}
        self._hashes: dict[str, str] = {}
        self.learn(self._registry)
        self.learn(_trusted(home))
        self.learn(root for root in self._markers.values() if root)

    def learn(self, paths: Iterable[str]) -> bool:
        """Add absolute paths as possible projects; return True if any of them is new."""
        count = len(self._paths)
        for path in paths:
            if _is_absolute(path):
                self._paths.setdefault(path)
        return len(self._paths) > count

    def says_the_same(self, other: Projects) -> bool:
        """Return whether `other` has equal `projects.json` contents and project markers."""
        return self._registry == other._registry and self._markers == other._markers

    def root_of(self, key: str, project_hash: str | None = None) -> str | None:
        """Return the project that a folder under `tmp` belongs to; None if unknown.

        The project is looked up in this order (assets/gemini-cli.md#places): by the marker (in
        `tmp`, then in `history`), by the registry, and by the hash of a known path. `key`: the
        folder's name. `project_hash`: the hash in the header of a session in the folder.
        """
        return (
            self._markers.get(key)
            or self._by_slug.get(key)
            or self._by_hash(key)
            or self._by_hash(project_hash)
        )

    def _by_hash(self, name: str | None) -> str | None:
        """Return the known path with this hash, or None.

        Paths are hashed only when this is called, because few stores need it.
        """
        if not name or len(name) != _HASH:
            return None
        if len(self._hashes) < len(self._paths):
            for path in [*self._paths][len(self._hashes) :]:
                self._hashes[path_hash(path)] = path
        return self._hashes.get(name)

    def keys_in(self, folders: Container[str | None]) -> frozenset[str]:
        """Return the names of the folders under `tmp` that belong to the given projects.

        `folders`: the projects' folders.
        """
        return frozenset(key for key in self._markers if self.root_of(key) in folders)

    def unplaced(self) -> frozenset[str]:
        """Return the names of `tmp` folders whose project is named only in their sessions."""
        return frozenset(
            key for key in self._markers if not is_hash(key) and self.root_of(key) is None
        )

    def unknown_hashes(self) -> frozenset[str]:
        """Return the names of `tmp` folders that are hashes of unknown paths."""
        return frozenset(key for key in self._markers if is_hash(key) and self.root_of(key) is None)


def _trusted(home: Path) -> Iterator[str]:
    """Yield the folders that the user has decided on in the CLI's dialog, and the ones above
    them.
    """
    path = home / "trustedFolders.json"
    with suppress(OSError):
        for folder in object_of(without_comments(read_small(path, REGISTRY_LIMIT)), path):
            yield from (folder, str(recorded_path(folder).parent))


def _marker(home: Path, key: str) -> str | None:
    for folder in ("tmp", "history"):
        with suppress(OSError):
            data = read_small(home / folder / key / MARKER, ROOT_LIMIT)
            root = os.fsdecode(data).strip("\r\n")
            if root:
                return root
    return None


def path_hash(path: str) -> str:
    """Return the hex SHA-256 of an absolute path, which names legacy project folders."""
    from hashlib import sha256

    return sha256(os.fsencode(path)).hexdigest()


def is_hash(key: str) -> bool:
    """Return whether a folder's name is the hash of a path.

    The CLI named folders this way up to version 0.28.
    """
    return len(key) == _HASH and set(key) <= set("0123456789abcdef")


def _is_absolute(path: str) -> bool:
    return (path.startswith("/") or is_windows(path)) and len(path) <= _LONGEST


def folder_names(folder: Path) -> frozenset[str]:
    """Return the absolute paths by which the CLI may know a folder.

    These are the folder's own path, and the path with symbolic links resolved. A Windows path has
    no others here.
    """
    if is_windows(str(folder)):
        return frozenset({str(folder)})
    return frozenset({str(folder.absolute()), str(resolved(folder))})


def ancestors(paths: Iterable[str]) -> list[str]:
    """Return all folders above these absolute file paths; each may be a project.

    Invalid paths are left out, as are folders nested too deeply for a project.
    """
    all_folders: dict[str, None] = {}
    for path in paths:
        if _is_absolute(path):
            for folder in reversed(recorded_path(path).parents[-_DEEPEST:]):
                all_folders[str(folder)] = None
    return list(all_folders)


def registered(path: Path) -> Mapping[str, str] | None:
    """Return the contents of `projects.json` as {absolute path: slug}.

    Returns None if the file is missing or corrupt.
    """
    with suppress(OSError):
        projects = read_object(path, REGISTRY_LIMIT).get("projects")
        if isinstance(projects, dict):
            return {root: slug for root, slug in projects.items() if isinstance(slug, str)}
    return None


def registry_problem(home: Path) -> str | None:
    """Return why the registry of projects can't be read, and what to do about it.

    Returns None if it can be read, or doesn't exist.
    """
    path = home / "projects.json"
    try:
        read_object(path, REGISTRY_LIMIT)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        why = f"{path} can't be read: {reason_of(error)}"
        return f"{why}; move it away, and Gemini CLI will create a new one"
    return None


# --- repositories --------------------------------------------------------------------------------


_MOST = 4096
"""Maximum size of a worktree's `.git` file, in bytes."""


class ProjectFolders:
    """The folders whose sessions belong to a project; use `in` to test one.

    They are the project's own folder, by any path that leads to it, and the worktrees of its
    repository. `worktrees`: if False, leave out the worktrees.
    """

    def __init__(self, project: Path, *, worktrees: bool = True) -> None:
        self._folder_of = repository_of if worktrees else str
        self._folders = {_same_folder(self._folder_of(name)) for name in folder_names(project)}

    def __contains__(self, folder: object) -> bool:
        """Return whether sessions in this folder belong to the project.

        Returns False for None, which means that the folder is unknown.
        """
        return isinstance(folder, str) and _same_folder(self._folder_of(folder)) in self._folders


@lru_cache(maxsize=4096)
def _same_folder(folder: str) -> PurePath:
    """Return a value that is equal for all recorded paths of one folder."""
    return recorded_path(folder if is_windows(folder) else str(resolved(Path(folder))))


@lru_cache(maxsize=4096)
def repository_of(folder: str) -> str:
    """Return the repository of the worktree at `folder`, or else `folder` itself.

    A deleted worktree is recognised if gemtui created it, or if Gemini CLI created it in the
    repository's `.gemini/worktrees` (assets/gemini-cli.md#places).
    """
    if is_windows(folder):
        return folder
    path = Path(folder)
    if is_file(path / ".git"):
        with suppress(OSError, UnicodeDecodeError):
            return _named(path, read_small(path / ".git", _MOST).decode()) or folder
    above = path.parent
    if above.name == "worktrees" and above.parent.name == ".gemini":
        return str(above.parent.parent)
    from gemtui.worktree_records import origin_of

    return str(origin_of(path))


def _named(worktree: Path, text: str) -> str | None:
    """Return the repository named in a worktree's `.git` file, or None.

    The file contains `gitdir: /repository/.git/worktrees/name`.
    """
    git = worktree / Path(text.removeprefix("gitdir:").strip())
    if git.parent.name != "worktrees" or git.parents[1].name != ".git":
        return None
    return str(git.parents[2].resolve())
