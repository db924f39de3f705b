"""List the project files that belong in checkpoints.

If git is installed, it lists the files, but never through the project's own repository: it is given
a private repository and no configuration. So no program named in the project's git configuration or
attributes is run, and nothing in its `.git` folder is written. The private repository's index has
git's index format, version 2. It contains the `lstat` facts of files, but not their contents, so
that git lists the files that have changed.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import subprocess
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from struct import Struct
from tempfile import TemporaryFile
from threading import Timer

from gemtui.checkpoints.store import LINK, Facts, FileState, GitIndex
from gemtui.files import (
    files_below,
    is_file,
    make_folder,
    open_regular,
    read_small,
    stat_if_possible,
    write_new,
)
from gemtui.processes import FOLDER, find_program

MOST_FILES = 200_000
"""The most files that a project's checkpoints include.

In a larger project, they include only the files that tools wrote.
"""
MOST_WALKED = 20_000
"""The limit that replaces `MOST_FILES` if git can't tell which files are ignored."""
_LIMIT, _SUSPICIOUS = 60.0, 1.0
"""The time limit for git, in seconds, and the time after which it may be waiting for a FIFO."""
_GIT_FILE = 4096
"""The most bytes to read from a `.git` file, which names the real git folder."""

TOO_MANY = "the folder contains too many files, so only files written by file tools are saved"
NO_GIT = "git can't list the files here, so those listed in .gitignore are included"
NESTED = "nested repositories are not covered"
TRACKED = "git's index can't be read, so tracked files that match .gitignore are not covered"


@dataclass(frozen=True, slots=True)
class TreeListing:
    """The files that may have changed, by name relative to the root.

    * `names`: all files to include that are missing from the index or differ from it.
    * `ignored`: files to include although git ignores them, because the project's own index
      contains them.
    * `index`: the index to use next time; None if git can't be used.
    * `whole`: True if no index was used, so that any file in earlier checkpoints may have changed.
    * `notes`: notes for the user about files that checkpoints will not include.
    """

    names: frozenset[bytes]
    notes: tuple[str, ...] = ()
    index: GitIndex | None = None
    whole: bool = True
    ignored: frozenset[bytes] = frozenset()


def list_files(
    root: Path, private: Path, index: GitIndex | None = None, *, without: tuple[Path, ...] = ()
) -> TreeListing:
    """Return the files that belong in checkpoints and may differ from `index`.

    `private`: the folder of gemtui's own repository, which contains the index and is created if
    necessary. `index`: the index written after an earlier checkpoint, if any. `without`: folders
    that are never included. Raises OSError if the root can't be read.
    """
    if _holds_home(root):
        return TreeListing(frozenset(), (TOO_MANY,))
    os.scandir(root).close()
    git = find_program("git")
    listing = None if git is None else _by_git(git, root, private, index)
    if listing is None:
        listing = _by_walk(root)
    cut = tuple(folder + b"/" for folder in folders_inside(root, without))
    if not cut:
        return listing
    names, ignored = (
        frozenset(name for name in files if not (name + b"/").startswith(cut))
        for files in (listing.names, listing.ignored)
    )
    return replace(listing, names=names, ignored=ignored)


def index_file(private: Path, number: int) -> Path:
    """Return the path of gemtui's git index with this number; it may not exist yet."""
    return private / f"index-{number}"


def is_tracked_name(name: bytes) -> bool:
    """Return whether checkpoints may contain a file with this name.

    The name must not lead out of the project or into a `.git` folder.
    """
    parts = name.split(b"/")
    return not any(part in (b"", b".", b"..") or part.lower() == b".git" for part in parts)


def _holds_home(root: Path) -> bool:
    home, real = os.path.realpath(Path.home()), os.path.realpath(root)
    return home == real or home.startswith(real.rstrip("/") + "/")


def folders_inside(root: Path, folders: Iterable[Path]) -> tuple[bytes, ...]:
    """Return the names, relative to the root, of those folders that are in it."""
    real = Path(os.path.realpath(root))
    names = []
    for folder in folders:
        path = Path(os.path.realpath(folder))
        if path != real and path.is_relative_to(real):
            names.append(bytes(path.relative_to(real)))
    return tuple(names)


# --- with git -------------------------------------------------------------------------------------


def _by_git(git: str, root: Path, private: Path, index: GitIndex | None) -> TreeListing | None:
    """List files with git; return None if git fails, or waits for a FIFO."""
    top = _top(root)
    make_private(private)
    options = ("-d", "-m", "-o")
    listed = None
    if index is not None and index.top == bytes(top):
        file = index_file(private, index.number)
        facts = stat_if_possible(file, follow=True)
        if index.number == 0 or (facts is not None and facts.st_size == index.size):
            listed = _ask(git, root, top, private, file, options)
    whole = index is None or listed is None
    if index is None or listed is None:
        index = GitIndex(0, bytes(top), "")
        listed = _ask(git, root, top, private, index_file(private, 0), options)
    if listed is None:
        return None
    names = set(filter(None, listed.split(b"\0")))
    folders = {name for name in names if name[-1:] == b"/"}
    notes = [NESTED] if folders else []
    tracked = _index(top)
    ignored = frozenset[bytes]()
    version = _version_of(tracked)
    if tracked is not None and version != index.tracked:
        more = _ask(git, root, top, private, tracked, ("-c", "-i"))
        if more is None:
            notes.append(TRACKED)
        else:
            ignored = _counted(set(more.split(b"\0")) - names)
            index = index._replace(tracked=version)
    if len(names) + len(ignored) > MOST_FILES:
        return TreeListing(frozenset(), (TOO_MANY,))
    return TreeListing(_counted(names - folders), tuple(notes), index, whole, ignored)


def _counted(names: Iterable[bytes]) -> frozenset[bytes]:
    return frozenset(
        name for name in names if name and (b".git" not in name.lower() or is_tracked_name(name))
    )


def _version_of(index: Path | None) -> str:
    """Return a string that changes when an index file is written; "" if it is missing."""
    facts = None if index is None else stat_if_possible(index, follow=True)
    if facts is None:
        return ""
    return f"{facts.st_size} {facts.st_mtime_ns} {facts.st_ctime_ns} {facts.st_ino} {index}"


def _ask(
    git: str, root: Path, top: Path, private: Path, index: Path, options: tuple[str, ...]
) -> bytes | None:
    """Return the output of `git ls-files`; None if it fails or takes too long.

    `top`: the root of the repository. `private`: gemtui's own repository, which git uses instead.
    `index`: the index file to use. `options`: options of `git ls-files`.
    """
    command = [git, "--no-pager", "-c", "core.fsmonitor=false", "-C", str(root)]
    command += ["ls-files", "-z", *options]
    repository = _repository(top)
    if repository is not None:  # elsewhere, nothing is ignored
        command.append("--exclude-standard")
        excludes = _common(repository) / "info" / "exclude"
        if is_file(excludes):
            command.append(f"--exclude-from={excludes}")
    with TemporaryFile() as output:
        try:
            process = subprocess.Popen(
                command,
                cwd=FOLDER,
                env={
                    **private_environ(private, top, index),
                    "PATH": os.defpath,
                    "LC_ALL": "C",
                    "GIT_OPTIONAL_LOCKS": "0",
                    "GIT_NO_LAZY_FETCH": "1",
                },
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.DEVNULL,
            )
        except OSError:
            return None
        limit = Timer(_LIMIT, process.kill)
        limit.start()
        try:
            with suppress(subprocess.TimeoutExpired):
                process.wait(_SUSPICIOUS)
            if process.returncode is None and _has_ignore_fifo(root, top):
                process.kill()
            if process.wait():
                return None
        finally:
            limit.cancel()
        output.seek(0)
        return output.read()


def _has_ignore_fifo(root: Path, top: Path) -> bool:
    """Return whether a `.gitignore` that git reads is a FIFO, for which git waits forever.

    `top`: the root of the repository, which contains `root`.
    """
    above = [folder for folder in root.parents if folder.is_relative_to(top)]
    below = (Path(folder) for folder, _, files in os.walk(root) if ".gitignore" in files)
    for folder in chain(above, below):
        facts = stat_if_possible(folder / ".gitignore")
        if facts is not None and stat.S_ISFIFO(facts.st_mode):
            return True
    return False


def private_environ(private: Path, top: Path, index: Path) -> dict[str, str]:
    """Return variables that make git use a private repository, and no other configuration.

    `private`: the repository, as `make_private` creates it. `top`: the working tree. `index`: the
    index file.
    """
    return {
        "HOME": str(private),
        "XDG_CONFIG_HOME": str(private),
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_DIR": str(private),
        "GIT_WORK_TREE": str(top),
        "GIT_INDEX_FILE": str(index),
    }


def make_private(private: Path, *, sha256: bool = False) -> None:
    """Create the smallest repository that git accepts, in the folder `private`.

    Damaged files are replaced: git would fail because of them, or wait for a FIFO. `sha256`:
    whether its objects have SHA-256 ids. Raises OSError.
    """
    for folder in (private / "objects", private / "refs"):
        make_folder(folder)
    config = b"[core]\n\tbare = false\n"
    if sha256:
        config += b"\trepositoryformatversion = 1\n[extensions]\n\tobjectformat = sha256\n"
    for name, text in (("HEAD", b"ref: refs/heads/none\n"), ("config", config)):
        file = private / name
        with suppress(OSError):
            if read_small(file) == text:
                continue
        if file.is_dir() and not file.is_symlink():
            shutil.rmtree(file)
        file.unlink(missing_ok=True)
        with suppress(FileExistsError):  # another program has just created it
            write_new(file, text)


def _top(root: Path) -> Path:
    """Return the root of the repository that contains the project.

    If the project is not in a repository, return the project's own folder.
    """
    for folder in (root, *root.parents):
        if os.path.lexists(folder / ".git"):
            return folder
    return root


def _repository(top: Path) -> Path | None:
    """Return a project's git folder; None if there is no repository.

    `top`: the project's topmost folder. If `.git` is a file, it contains the path of the git
    folder.
    """
    git_folder = top / ".git"
    try:
        mode = git_folder.lstat().st_mode
        if stat.S_ISDIR(mode):
            return git_folder
        with open_regular(git_folder) as file:
            text = file.read(_GIT_FILE)
    except OSError:
        return None
    if not text.startswith(b"gitdir: "):
        return None
    return top / os.fsdecode(text[8:].rstrip(b"\r\n"))


def _common(repository: Path) -> Path:
    """Return the git folder that a linked worktree shares with its main repository.

    If `repository` doesn't belong to a linked worktree, it is returned unchanged.
    """
    with suppress(OSError):
        return repository / os.fsdecode(read_small(repository / "commondir", _GIT_FILE).strip())
    return repository


def _index(top: Path) -> Path | None:
    repository = _repository(top)
    return None if repository is None or not is_file(repository / "index") else repository / "index"


# --- without git ----------------------------------------------------------------------------------


def _by_walk(root: Path) -> TreeListing:
    top = os.fsencode(root)
    names = list[bytes]()
    for entry in files_below(top, enters=lambda folder: folder.name.lower() != b".git"):
        names.append(entry.path[len(top) :].lstrip(b"/"))
        if len(names) > MOST_WALKED:
            return TreeListing(frozenset(), (TOO_MANY,))
    return TreeListing(_counted(names), (NO_GIT,))


# --- git index -----------------------------------------------------------------------------------

_ENTRY = Struct(">10L20sH")
_WORD = 0xFFFFFFFF
_LONGEST = 0xFFF
_SECOND = 1_000_000_000
_NO_CONTENT = b"\x01" * 20
"""The fake content hash written into every entry of the index.

No real file has this hash. So git lists a file as modified as soon as its size or times differ from
the index, without comparing contents.
"""
_LINK_MODE, _FILE_MODE, _PROGRAM_MODE = 0o120000, 0o100644, 0o100755


def encode_index(files: Iterable[tuple[bytes, FileState, Facts]]) -> bytes:
    """Return the bytes of an index file that contains these files and links.

    `files`: sorted by name.
    """
    entries = [_entry(*file) for file in files]
    data = b"".join([b"DIRC", (2).to_bytes(4), len(entries).to_bytes(4), *entries])
    return data + hashlib.sha1(data, usedforsecurity=False).digest()


def _entry(name: bytes, state: FileState, facts: Facts) -> bytes:
    mode = _PROGRAM_MODE if state.mode & 0o100 else _FILE_MODE
    head = _ENTRY.pack(
        facts.ctime // _SECOND & _WORD,
        facts.ctime % _SECOND,
        facts.mtime // _SECOND & _WORD,
        facts.mtime % _SECOND,
        0,
        facts.inode & _WORD,
        _LINK_MODE if state.kind == LINK else mode,
        facts.user,
        facts.group,
        facts.size & _WORD,
        _NO_CONTENT,
        min(len(name), _LONGEST),
    )
    return head + name + bytes(8 - (len(head) + len(name)) % 8)
