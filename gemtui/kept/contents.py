"""List what the vault contains, and delete archived files from it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import cache, partial
from pathlib import Path
from typing import Any

from gemtui.agents import WORDS
from gemtui.files import files_below, size_of, stat_if_possible
from gemtui.jsonout import fields
from gemtui.kept.cleanup import SETTING, DoomedFile, Retention, expires, next_deletions, retention
from gemtui.kept.vault import is_on
from gemtui.paths import vault_dir
from gemtui.sessions.catalog.catalog import Snapshot
from gemtui.sessions.catalog.summary import Flag, Summary
from gemtui.sessions.catalog.vault_files import (
    COPIES,
    in_tree,
    names_beside,
    place_in_store,
    replaced_trees,
    trees,
)
from gemtui.sessions.read.versions import is_superseded
from gemtui.sessions.store.projects import ProjectFolders, Projects
from gemtui.sessions.store.store import is_plain_id, place_of
from gemtui.text import counted, short_path, size

PRUNE_VAULT = "gemtui vault prune"


@dataclass(frozen=True, slots=True, kw_only=True)
class VaultUsage:
    """The size of the vault, for all stores whose files it has archived.

    Sizes are in bytes.

    Attributes:
        folder: the vault's folder.
        on: whether the vault is on.
        files: how many files it has, not counting copies of what another version in it also has.
        kept: how many files `only_here` covers.
        shared: hard links to the CLI's own files, made by an earlier version of gemtui, which the
            next check replaces with copies.
        copied: copies of what the CLI, or another version in the vault, also has.
        only_here: files the CLI no longer has, or has with different contents.
    """

    folder: Path
    on: bool
    files: int = 0
    kept: int = 0
    shared: int = 0
    copied: int = 0
    only_here: int = 0

    @property
    def own_bytes(self) -> int:
        """How many bytes the vault uses in addition to the store."""
        return self.copied + self.only_here

    def to_dict(self) -> dict[str, Any]:
        """Return the `vault` object of `gemtui vault status --json`."""
        sizes = fields(self, "shared", "copied", "only_here")
        return fields(self, "folder", "on", "files", "kept") | {"bytes": sizes}


def contents() -> VaultUsage:
    """Inspect every file in the vault, and return the vault's size. Never raises."""
    shared = copied = only_here = files = kept = 0
    replaced = replaced_trees()
    version_trees = [tree for tree in trees() if tree.name != COPIES]
    for tree in (*trees(), *replaced):
        for entry in files_below(str(tree)):
            with suppress(OSError):
                facts = entry.stat(follow_symlinks=False)
                archived, path = Path(entry.path), Path(entry.path.removeprefix(str(tree)))
                has_twice = tree.name == COPIES and any(
                    _contains(in_tree(version_tree, path), archived, facts)
                    for version_tree in version_trees
                )
                if not has_twice:
                    files += 1
                original = stat_if_possible(path)
                if original is not None and os.path.samestat(original, facts):
                    shared += facts.st_size
                elif has_twice or _contains(path, archived, facts):
                    copied += facts.st_size
                else:
                    only_here += facts.st_size
                    if tree not in replaced:  # no list shows replaced files
                        kept += 1
    sizes = {"shared": shared, "copied": copied, "only_here": only_here}
    return VaultUsage(folder=vault_dir(), on=is_on(), files=files, kept=kept, **sizes)


def _contains(path: Path, archived: Path, facts: os.stat_result) -> bool:
    """Return whether a file has everything that an archived file, with this state, has."""
    current = stat_if_possible(path)
    return current is not None and is_superseded(
        archived,
        (facts.st_size, facts.st_mtime_ns),
        path,
        (current.st_size, current.st_mtime_ns),
    )


def only_kept(
    sessions: Iterable[Summary], *, project: Path | None = None, before: datetime | None = None
) -> tuple[Summary, ...]:
    """Return the files that only the vault has, each as a session, newest first.

    `sessions`: all of a store's sessions, as in a snapshot. `project`: a folder; return only the
    files of its sessions. `before`: return only files last updated before this time.
    """
    folders = None if project is None else ProjectFolders(project, worktrees=False)
    return tuple(
        file
        for session in sessions
        if folders is None or session.project in folders
        for file in (session, *session.copies)
        if Flag.KEPT in file.flags and (before is None or file.when < before)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Removal:
    """A planned deletion of archived files.

    `sessions`: those of the files that the session list shows as sessions. `names`: the paths to
    delete in the vault. `size`: the total size of the files in bytes.
    """

    sessions: tuple[Summary, ...]
    names: tuple[Path, ...]
    size: int

    def __str__(self) -> str:
        return f"{counted(len(self.names), 'file')}, {size(self.size)}"


def replaced_files(
    home: Path, *, project: Path | None = None, before: datetime | None = None
) -> Iterator[Path]:
    """Yield the vault's copies of damaged session files that a restore replaced.

    `project`: a folder; yield only files of its sessions. `before`: yield only files that were last
    changed before this time. Never raises.
    """
    folders = None if project is None else ProjectFolders(project, worktrees=False)
    for tree in replaced_trees():
        for entry in files_below(str(in_tree(tree, home))):
            with suppress(OSError):
                place = place_of(Path(entry.path), in_tree(tree, home))
                if place is None or (before is not None and place.modified >= before):
                    continue
                key = place.project_key
                if folders is None or Projects(home, [key]).root_of(key) in folders:
                    yield place.path


def removal(files: Iterable[Summary], replaced: Iterable[Path] = ()) -> Removal:
    """Plan the deletion of these archived files.

    The plan includes the tool outputs and plans of their sessions, if only the vault has them.
    `replaced`: more files to delete, from `replaced_files`.
    """
    files = tuple(files)
    existing_trees = trees()
    kept = (name for file in files for name in _kept_names(file, existing_trees))
    names = tuple(dict.fromkeys((*kept, *replaced)))
    return Removal(
        sessions=tuple(file for file in files if not file.hidden and file.parent is None),
        names=names,
        size=sum(map(size_of, names)),
    )


def _kept_names(file: Summary, trees: Sequence[Path]) -> Iterator[Path]:
    assert Flag.KEPT in file.flags
    yield file.path
    place = place_in_store(file.path)
    copy = in_tree(vault_dir() / COPIES, place)
    facts = stat_if_possible(copy)
    if copy != file.path and facts is not None and _contains(file.path, copy, facts):
        yield copy
    if not file.is_copy and is_plain_id(file.id):
        for name, beside in names_beside(place, file.id, trees):
            if not os.path.lexists(beside):
                yield name


def delete_from_vault(removal: Removal) -> int:
    """Delete archived files permanently; return the bytes freed. Raises OSError."""
    return sum(map(_remove, removal.names))


def forget_kept(session: Summary) -> int:
    """Delete all of a session's files, and its subagents' files, from the vault.

    Returns the total size of the deleted files in bytes. Raises OSError.
    """
    return sum(map(_remove, set(_names(session))))


def _names(session: Summary) -> Iterator[Path]:
    for path in session.files:
        place = place_in_store(path) if path.is_relative_to(vault_dir()) else path
        for tree in (*trees(), *replaced_trees()):
            yield in_tree(tree, place)
            if place.parent.name == "chats" and is_plain_id(session.id):
                agents = in_tree(tree, place.parent / session.id)
                yield from (Path(entry.path) for entry in files_below(str(agents)))
        if is_plain_id(session.id):
            yield from (name for name, _ in names_beside(place, session.id, trees()))


def _remove(path: Path) -> int:
    try:
        size = path.lstat().st_size
        path.unlink()
    except FileNotFoundError:
        return 0
    with suppress(OSError):  # stops at the first folder that is not empty
        for folder in path.parents:
            if folder.parent == vault_dir():
                break
            folder.rmdir()
    return size


# --- texts ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class VaultStatus:
    """The vault at one moment.

    `kept`: the sessions in the session list that only the vault has, newest first. `hits`: the
    files the CLI will delete when it starts next. `first`: the next listed session to become too
    old, and when; None if none will. `hook`: whether the extension also archives sessions.
    """

    contents: VaultUsage
    kept: tuple[Summary, ...]
    hits: tuple[DoomedFile, ...]
    first: tuple[Summary, datetime] | None
    hook: bool

    @property
    def listed(self) -> tuple[DoomedFile, ...]:
        """The files in `hits` that appear in the session list.

        The files left out are empty or unreadable, or are copies of a session.
        """
        return tuple(hit for hit in self.hits if not hit.session.hidden)

    def rows(self) -> Iterator[tuple[str, str]]:
        """Yield the rows of the status as (name, text).

        A row whose name is "" continues the previous one.
        """
        held = self.contents
        yield "vault", "on" if held.on else "off: no more sessions are saved"
        yield "", f"{short_path(held.folder)}: {counted(held.files, 'file')}"
        if held.shared:
            yield (
                "",
                f"{size(held.shared)} shared with Gemini CLI's own files, using no extra space",
            )
        if held.copied:
            yield "", f"{size(held.copied)} copies of files that Gemini CLI still has"
        yield "", f"{size(held.only_here)} stored only here, in {counted(held.kept, 'file')}"
        if held.on:
            yield "saving", _HOOK if self.hook else _NO_HOOK


_HOOK = "Sessions are saved after every turn by the extension, and by gemtui while it is open."
_NO_HOOK = (
    "Sessions are saved only while gemtui is open; with the extension, after every turn, too."
)


def kept_sessions(sessions: Iterable[Summary]) -> tuple[Summary, ...]:
    """Return the sessions that exist only in the vault, leaving out those that lists hide."""
    return tuple(
        session for session in sessions if Flag.KEPT in session.flags and not session.hidden
    )


def vault_status(
    snapshot: Snapshot, environ: Mapping[str, str], now: datetime, *, hook: bool
) -> VaultStatus:
    """Return what the vault contains and which files the CLI will delete next.

    `hook`: whether the extension archives sessions. Never raises.
    """
    sessions, rule = snapshot.sessions, cache(partial(retention, environ))
    hits = next_deletions(sessions, rule, now, snapshot.unreadable)
    return VaultStatus(
        contents=contents(),
        kept=kept_sessions(sessions),
        hits=hits,
        first=_first(sessions, hits, rule, now),
        hook=hook,
    )


def _first(
    sessions: Iterable[Summary],
    hits: Iterable[DoomedFile],
    rule: Callable[[Path | None], Retention],
    now: datetime,
) -> tuple[Summary, datetime] | None:
    deleted_before = {hit.session.name for hit in hits}
    later = []
    for session in sessions:
        if not session.hidden and session.name not in deleted_before:
            when = expires(session, rule(session.folder))
            if when is not None and when > now:
                later.append((session, when))
    return min(later, key=lambda expiry: expiry[1], default=None)


def is_damaged_in_store(session: Summary) -> bool:
    """Return whether a session that only the vault has is damaged in the store, not missing."""
    return os.path.lexists(place_in_store(session.path))


def deletion_reason(
    session: Summary, snapshot: Snapshot, environ: Mapping[str, str], now: datetime
) -> str:
    """Describe when and why the clean-up will delete a session.

    Returns "" if the clean-up does not consider the session.
    """
    rule = retention(environ, session.folder)
    if Flag.KEPT in session.flags:
        deleted = f"deleted by {WORDS[session.agent].program}"
        what = "damaged" if is_damaged_in_store(session) else deleted
        return f"{what}; only the vault has it"
    same_project = [
        other for other in snapshot.sessions if other.project_key == session.project_key
    ]
    for hit in next_deletions(same_project, lambda _: rule, now, snapshot.unreadable):
        if hit.session.name == session.name:
            return f"Gemini CLI will delete it at its next start: {hit.words()}; {STOP}"
    when = expires(session, rule)
    if when is None:
        return ""
    return f"by Gemini CLI {deletion_date_text(when)}; {STOP}"


def deletion_date_text(when: datetime) -> str:
    """Describe the date from which the clean-up may delete a session."""
    return f"after {when.astimezone():%Y-%m-%d}, unless it is used again"


STOP = f"{SETTING} = false prevents that"
