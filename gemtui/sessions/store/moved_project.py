"""Give the sessions of a project's folder to the folder that the project has now.

Gemini CLI finds a project's sessions by the registry `projects.json` and by the markers
`.project_root` in `tmp/<slug>` and `history/<slug>` (assets/gemini-cli.md#places). A marker that
names another folder counts more than the registry, and without an entry there, Gemini CLI looks for
a marker in `tmp` and writes the one in `history` anew. So the change is made in an order in which
the sessions belong to one of the two folders at any moment, and `plan_move` finds out what is left
to do.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from gemtui.errors import MoveFailed, message_of
from gemtui.files import files_below, is_folder, path_exists, read_if_present, resolved, write_whole
from gemtui.jsonfile import object_of
from gemtui.sessions.store.projects import (
    MARKER,
    REGISTRY_LIMIT,
    ROOT_LIMIT,
    folder_names,
    path_hash,
)

_SLUG = re.compile(r"[a-z0-9-]+")
_STALE = 10.0
"""The age in seconds after which Gemini CLI ignores a lock, as left by a killed process."""
_TRIES, _PAUSE = 100, 0.1
"""The number of attempts to get a lock that another process holds, and seconds between them."""


class MoveStep(NamedTuple):
    """One change of one file. `words`: what it does. `do`: makes the change, completely or not
    at all.
    """

    words: str
    do: Callable[[], object]


class ProjectMove(NamedTuple):
    """A plan of the changes after which a project's sessions belong to another folder.

    `old`, `new`: the paths by which Gemini CLI knows the folders. `key`: the name of the project's
    folder in `tmp`. `chats`: the session files. `steps`: the changes, in order.
    """

    old: str
    new: str
    key: str
    chats: tuple[Path, ...]
    steps: tuple[MoveStep, ...]


def plan_move(home: Path, old: Path, new: Path) -> ProjectMove:
    """Return the changes that give the sessions of `old` to `new`; nothing is written.

    `home`: the CLI's folder. Raises MoveFailed if that is impossible or would lose something.
    """
    to = str(resolved(new))
    if not is_folder(new):
        raise MoveFailed(f"{new} is not a folder: give the folder that the project has now")
    names = folder_names(old) - {to}
    if is_folder(old) and not old.samefile(new):
        raise MoveFailed(
            f"{old} still exists: its sessions belong to it until it is renamed or removed"
        )
    registry = _Registry(home)
    store = _Markers(home)
    for name in sorted(names):
        for key in (registry.projects.get(name), store.key_of(name)):
            if (
                key is not None
                and is_folder(home / "tmp" / key)
                and store.owners(key) <= {name, to}
            ):
                return _planned(home, registry, store, name, to, key)
        hashed = path_hash(name)
        if is_folder(home / "tmp" / hashed):
            return _planned_of_hash(home, registry, store, name, to, hashed)
    raise MoveFailed(
        f"{old} has no sessions: gemtui sessions --everywhere --json names the folders that have"
    )


def _planned(
    home: Path, registry: _Registry, store: _Markers, old: str, new: str, key: str
) -> ProjectMove:
    _require_no_sessions(home, registry, store, new, besides=key)
    steps: list[MoveStep] = []
    if (
        registry.projects.get(old) != key
    ):  # so that the same move can be planned again after each step
        steps.append(MoveStep(f"write {old} to {registry.path}", registry.renamed(old, old, key)))
    other = registry.projects.get(new)
    others = {slug for slug in (other, store.key_of(new)) if slug is not None and slug != key}
    if other is not None and other != key:
        steps.append(
            MoveStep(
                f"remove {new} from {registry.path}, where it has no sessions",
                registry.without(new),
            )
        )
    for slug in sorted(others):
        for marker in store.paths(slug):
            if store.owner(marker) is not None:
                steps.append(MoveStep(f"remove {marker}", _removal(marker)))
    in_tmp, in_history = store.paths(key)
    if store.owner(in_history) == old:
        steps.append(MoveStep(f"remove {in_history}, which names {old}", _removal(in_history)))
    if store.owner(in_tmp) != new:
        steps.append(MoveStep(f"write {new} to {in_tmp}", _writing(in_tmp, new)))
    if is_folder(in_history.parent) and store.owner(in_history) != new:
        steps.append(MoveStep(f"write {new} to {in_history}", _writing(in_history, new)))
    steps.append(
        MoveStep(f"replace {old} with {new} in {registry.path}", registry.renamed(old, new, key))
    )
    return ProjectMove(old, new, key, _chats(home, key), tuple(steps))


def _planned_of_hash(
    home: Path, registry: _Registry, store: _Markers, old: str, new: str, key: str
) -> ProjectMove:
    """Plan to rename the folders that versions before 0.29 named by the hash of the project's
    path.
    """
    _require_no_sessions(home, registry, store, new, besides=key)
    steps = []
    for folder in ("history", "tmp"):
        source, target = home / folder / key, home / folder / path_hash(new)
        if is_folder(target):
            raise MoveFailed(f"{target} exists: {new} has files of its own")
        if is_folder(source):
            steps.append(MoveStep(f"rename {source} to {target.name}", _renaming(source, target)))
    return ProjectMove(old, new, key, _chats(home, key), tuple(steps))


def _require_no_sessions(
    home: Path, registry: _Registry, store: _Markers, new: str, *, besides: str
) -> None:
    keys = {registry.projects.get(new), store.key_of(new), path_hash(new)} - {None, besides}
    for key in keys:
        if key is not None and (chats := _chats(home, key)):
            raise MoveFailed(
                f"{new} has sessions of its own (such as {chats[0]}): delete them or keep copies "
                "of them elsewhere "
                "(gemtui push), because the sessions of two folders can't be merged"
            )


def _chats(home: Path, key: str) -> tuple[Path, ...]:
    chats = home / "tmp" / key / "chats"
    unread: list[str] = []
    files = list(files_below(str(chats), unread=unread)) if path_exists(chats) else []
    if unread:
        raise MoveFailed(f"{unread[0]} can't be read: give yourself permission to read it")
    return tuple(
        sorted(Path(entry.path) for entry in files if entry.name.endswith((".json", ".jsonl")))
    )


def carry_out(home: Path, move: Callable[[], ProjectMove]) -> ProjectMove:
    """Make the changes of a plan, and return it.

    While Gemini CLI's own lock is held, `move` is called to plan once more. Raises MoveFailed; what
    has been changed then is right, and the same move can be carried out again.
    """
    with _registry_locked(home):
        planned = move()
        for step in planned.steps:
            try:
                step.do()
            except OSError as error:
                raise MoveFailed(
                    f"{message_of(error)}; give the same command again to finish"
                ) from error
    return planned


@contextmanager
def _registry_locked(home: Path) -> Iterator[None]:
    """Hold the lock under which Gemini CLI changes the registry: a folder beside it."""
    lock = Path(f"{resolved(home / 'projects.json')}.lock")
    for _ in range(_TRIES):
        try:
            lock.mkdir()
            break
        except FileExistsError:
            _remove_stale(lock)
        except OSError as error:
            raise MoveFailed(message_of(error)) from error
    else:
        raise MoveFailed(
            f"Gemini CLI is changing {home / 'projects.json'}: try again when it has started"
        )
    try:
        yield
    finally:
        lock.rmdir()


def _remove_stale(lock: Path) -> None:
    """Remove a lock that a killed process left, or else wait a moment."""
    try:
        if lock.stat().st_mtime < time.time() - _STALE:
            lock.rmdir()
        else:
            time.sleep(_PAUSE)
    except FileNotFoundError:
        pass
    except OSError as error:
        raise MoveFailed(message_of(error)) from error


# --- files ----------------------------------------------------------------------------------------


class _Registry:
    """The registry of projects. Raises MoveFailed if it can't be read, or Gemini CLI would discard
    it.
    """

    def __init__(self, home: Path) -> None:
        self.path = home / "projects.json"
        self._whole: dict[str, Any] = {}
        try:
            data = read_if_present(self.path, REGISTRY_LIMIT)
            if data is not None:
                self._whole = object_of(data, self.path)
        except OSError as error:
            raise MoveFailed(message_of(error)) from error
        projects = self._whole.get("projects", {})
        slugs = projects.values() if isinstance(projects, dict) else [None]
        if not all(isinstance(slug, str) and _SLUG.fullmatch(slug) for slug in slugs):
            raise MoveFailed(
                f"{self.path} is damaged: move it away, and Gemini CLI will create a new one"
            )
        self.projects: Mapping[str, str] = projects

    def without(self, folder: str) -> Callable[[], None]:
        """Return a function that removes a folder."""

        def write() -> None:
            self.projects = {root: slug for root, slug in self.projects.items() if root != folder}
            self._write()

        return write

    def renamed(self, old: str, new: str, key: str) -> Callable[[], None]:
        """Return a function that puts one folder in the place of another."""

        def write() -> None:
            self.projects = {root: slug for root, slug in self.projects.items() if root != old} | {
                new: key
            }
            self._write()

        return write

    def _write(self) -> None:
        text = orjson.dumps(self._whole | {"projects": self.projects}, option=orjson.OPT_INDENT_2)
        write_whole(self.path, [text], durable=True)


class _Markers:
    """The files that name the project of a folder, in `tmp` and in `history`."""

    def __init__(self, home: Path) -> None:
        self._home = home
        tmp = home / "tmp"
        try:
            self._keys = sorted(path.name for path in tmp.iterdir()) if is_folder(tmp) else []
        except OSError as error:
            raise MoveFailed(message_of(error)) from error

    def paths(self, key: str) -> tuple[Path, Path]:
        """Return the markers of a folder in `tmp`, and of that in `history`."""
        return self._home / "tmp" / key / MARKER, self._home / "history" / key / MARKER

    def owner(self, marker: Path) -> str | None:
        """Return the project that a marker names; None if there is no marker. Raises MoveFailed."""
        try:
            data = read_if_present(marker, ROOT_LIMIT)
        except OSError as error:
            raise MoveFailed(message_of(error)) from error
        return None if data is None else os.fsdecode(data).strip()

    def owners(self, key: str) -> set[str]:
        """Return the projects that a folder's markers name."""
        owners = map(self.owner, self.paths(key))
        return {owner for owner in owners if owner is not None}

    def key_of(self, folder: str) -> str | None:
        """Return the folder whose marker in `tmp` names a project; None if there is none."""
        for key in self._keys:
            if self.owner(self.paths(key)[0]) == folder:
                return key
        return None


def _removal(path: Path) -> Callable[[], None]:
    return lambda: path.unlink(missing_ok=True)


def _writing(marker: Path, folder: str) -> Callable[[], None]:
    return lambda: write_whole(marker, [os.fsencode(folder)], durable=True)


def _renaming(source: Path, target: Path) -> Callable[[], object]:
    return lambda: source.rename(target)
