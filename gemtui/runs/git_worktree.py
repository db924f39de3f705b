"""Create, fill and remove git worktrees, but never run programs that a repository names.

A repository's configuration can name programs for git to run: hooks, filters, a file system
monitor, and helpers that fetch objects. Commands that need this configuration, because they write
to the repository, are run with these programs disabled and without a checkout. Files are written
and compared through a private repository that has no configuration and only reads the original
repository's objects.

A project's settings are copied to the worktree even if they are not committed: a run there must
have the settings that the user was told about before the run, so that what they forbid is forbidden
there too.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from gemtui.checkpoints.project_files import ProjectFiles
from gemtui.checkpoints.review import PassingContents
from gemtui.checkpoints.store import ABSENT, FILE, LINK
from gemtui.checkpoints.tree import make_private, private_environ
from gemtui.errors import WorktreeError, message_of
from gemtui.files import files_below, path_exists, resolved
from gemtui.processes import FOLDER, find_program, git_command, git_environ
from gemtui.text import counted

_LIMIT = 600.0
"""The time limit of one git command, in seconds."""
_SUBMODULE = b"160000"
_SHA256 = 64
"""The length of SHA-256 object ids, in hexadecimal digits."""


@dataclass(frozen=True, slots=True)
class GitRepository:
    """A git repository with a working tree.

    `top`: the root of the working tree. `common`: the git folder that all worktrees share.
    """

    top: Path
    common: Path

    @classmethod
    def of(cls, folder: Path) -> GitRepository:
        """Return the repository that contains a folder.

        Raises WorktreeError if there is no usable repository.
        """
        try:
            top = _line(_git(folder, "rev-parse", "--show-toplevel"))
            words = ("rev-parse", "--path-format=absolute", "--git-common-dir")
            common = _line(_git(folder, *words))
        except WorktreeError as error:
            raise WorktreeError(f"{folder} is not in a usable git repository: {error}") from None
        place = Path(os.fsdecode(top))
        if place != _nearest(folder):  # a run's changes are later applied there
            raise WorktreeError(
                f"the git configuration of {folder} moves its working tree to another folder"
            )
        return cls(place, Path(os.fsdecode(common)))

    def head(self) -> str:
        """Return the id of the commit that is checked out. Raises WorktreeError."""
        try:
            return _line(_git(self.top, "rev-parse", "--verify", "HEAD^{commit}")).decode()
        except WorktreeError:
            raise WorktreeError(
                f"{self.top} has no commits yet, so no worktree can be created"
            ) from None

    def add(self, tree: Path, branch: str, commit: str) -> None:
        """Create a worktree without files at `tree`, on a new branch.

        Raises WorktreeError.
        """
        words = ("--no-checkout", "--no-track", "-b", branch, str(tree), commit)
        _git(self.top, "worktree", "add", *words)

    def check_out(self, tree: Path, commit: str, private: Path) -> tuple[str, ...]:
        """Write a commit's files into a worktree; return notes for the user.

        The notes are about submodules, which stay empty, and files with filters, which are not run.
        Line endings follow `.gitattributes`. `private`: where to create the private repository that
        is used for this. Raises WorktreeError, OSError.
        """
        index = _git_folder_of(tree) / "index"
        environ = self._private(private, tree, index, commit)
        _git(tree, "read-tree", "--reset", "-u", commit, environ=environ)
        return tuple(self._left_out(tree, environ))

    def _left_out(self, tree: Path, environ: Mapping[str, str]) -> Iterable[str]:
        names, has_submodules = list[bytes](), False
        for entry in _git(tree, "ls-files", "-s", "-z", environ=environ).split(b"\0"):
            fields, _, name = entry.partition(b"\t")
            has_submodules = has_submodules or fields.startswith(_SUBMODULE)
            names.append(name)
        if has_submodules:
            yield "its git submodules are empty"
        words = ("check-attr", "--cached", "-z", "--stdin", "filter")
        output = _git(tree, *words, environ=environ, given=b"\0".join(names)).split(b"\0")
        values = output[2::3]  # each file's name, the attribute, and its value
        filters = [value for value in values if value not in (b"unspecified", b"unset", b"set")]
        if filters:
            which = ", ".join(sorted({name.decode("utf-8", "replace") for name in filters}))
            files = counted(len(filters), "file")
            yield (
                f"git filters ({which}) were not run, so {files} may differ from your working copy"
            )

    def uncommitted(self, commit: str, private: Path) -> int | None:
        """Return how many files of the working tree differ from a commit; None if unknown.

        `private`: where to create the private repository that is used for this.
        """
        index = _git_folder_of(self.top) / "index"
        with suppress(WorktreeError, OSError):
            environ = self._private(private, self.top, index, commit)
            changed = _git(self.top, "diff-index", "--name-only", "-z", commit, environ=environ)
            new = _git(self.top, "ls-files", "-o", "-z", "--exclude-standard", environ=environ)
            return (changed + new).count(b"\0")
        return None

    def commits(self, branch: str, commit: str) -> tuple[int, int] | None:
        """Return how many commits a branch has after `commit`, and how many only it has.

        Returns None if the branch no longer exists.
        """
        ref = f"refs/heads/{branch}"
        try:
            _git(self.top, "rev-parse", "--verify", "--quiet", ref)
            mine = _git(self.top, "rev-list", "--count", ref, "--not", commit)
            others = (f"--exclude={branch}", "--branches", "--remotes", "--tags")
            words = ("rev-list", "--count", ref, "--not", commit, *others)
            return int(mine), int(_git(self.top, *words))
        except WorktreeError:
            return None

    def forget(self, tree: Path) -> None:
        """Remove what the repository has recorded about a worktree. Raises WorktreeError."""
        _git(self.top, "worktree", "remove", "--force", "--force", str(tree))

    def knows(self, tree: Path) -> bool:
        """Return whether the repository has a worktree at this path.

        Raises WorktreeError.
        """
        lines = _git(self.top, "worktree", "list", "--porcelain").split(b"\n")
        return b"worktree " + os.fsencode(tree) in lines

    def delete_branch(self, branch: str) -> None:
        """Delete a branch, even if this loses commits. Raises WorktreeError."""
        _git(self.top, "branch", "-D", "--quiet", "--", branch)

    def _private(self, place: Path, tree: Path, index: Path, commit: str) -> Mapping[str, str]:
        """Create a private repository that uses this repository's objects.

        Returns the environment variables with which git uses it. The repository has no
        configuration. `place`: its folder. `tree`, `index`: the working tree
        and the index to use. `commit`: any commit, whose id shows the type of hash.
        """
        make_private(place, sha256=len(commit) == _SHA256)
        objects = {"GIT_OBJECT_DIRECTORY": str(self.common / "objects")}
        return private_environ(place, tree, index) | objects


def _nearest(folder: Path) -> Path | None:
    """Return the nearest folder, from `folder` upwards, that contains `.git`, or None.

    Unlike git, this ignores the repository's configuration.
    """
    folder = resolved(folder)
    for place in (folder, *folder.parents):
        if path_exists(place / ".git"):
            return place
    return None


def _git_folder_of(tree: Path) -> Path:
    """Return the git folder of one working tree, which may be a linked worktree."""
    words = ("rev-parse", "--path-format=absolute", "--git-dir")
    return Path(os.fsdecode(_line(_git(tree, *words))))


def _line(output: bytes) -> bytes:
    return output.removesuffix(b"\n")


def _git(
    folder: Path, *words: str, environ: Mapping[str, str] | None = None, given: bytes = b""
) -> bytes:
    """Run a git command and return its output.

    Raises WorktreeError, with git's error message, if the command fails.
    """
    git = find_program("git")
    if git is None:
        raise WorktreeError("git is not installed")
    try:
        process = subprocess.run(
            [*git_command(git, folder), *words],
            cwd=FOLDER,
            env={**git_environ(), **(environ or {})},
            input=given,
            capture_output=True,
            timeout=_LIMIT,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise WorktreeError(f"git {words[0]} took longer than {_LIMIT:.0f} seconds") from None
    except (OSError, ValueError) as error:
        raise WorktreeError(f"git could not be started: {message_of(error)}") from None
    if process.returncode:
        lines = process.stderr.decode("utf-8", "replace").strip().splitlines()
        why = lines[-1] if lines else f"exit code {process.returncode}"
        raise WorktreeError(f"git {words[0]}: {why}")
    return process.stdout


# --- the project's settings -----------------------------------------------------------------------


_FOLDER, _VARIABLES = b".gemini", b".env"
_OTHER = (b"tmp", b"worktrees")
"""The subfolders of `.gemini` that contain no settings."""
_MOST = 2_000
"""The most files to copy from one `.gemini` folder."""
_SPARE = b".gemtui-settings"


def copy_settings(source: Path, tree: Path, inside: Path) -> None:
    """Copy `.gemini` folders and `.env` files from a working tree to a worktree.

    `source`, `tree`: the roots of the original working tree and of the worktree. `inside`: the
    folder where a run works, relative to both roots; its parents' settings are copied as well.
    Files that the original lacks are removed from the worktree. Raises OSError, and WorktreeError
    if not everything can be copied.
    """
    with ProjectFiles(source) as originals, ProjectFiles(tree) as copies:
        for folder in map(os.fsencode, (inside, *inside.parents)):
            above = b"" if folder == b"." else folder + b"/"
            names = {above + _VARIABLES, *_below(source, above), *_below(tree, above)}
            for name in sorted(names):
                _copy(originals, copies, name)


def _copy(originals: ProjectFiles, copies: ProjectFiles, name: bytes) -> None:
    contents = PassingContents(None)
    state, _ = originals.state(name, contents)
    now, _ = copies.state(name)
    if not state.kept:
        raise WorktreeError(f"{os.fsdecode(name)} can't be copied into a worktree: {state.why}")
    if (state.kind, state.content) == (now.kind, now.content):
        return
    if state.kind == ABSENT:
        copies.remove(name)
    elif state.kind in (FILE, LINK):
        copies.write(name, state, contents.content(state.content), _SPARE)


def _below(top: Path, above: bytes) -> Iterator[bytes]:
    """Yield the names of the files in a folder's `.gemini`. Raises WorktreeError.

    `top`: the root; names are relative to it. `above`: the folder, relative to `top`, with a
    trailing slash; empty for `top` itself.
    """
    root = os.fsencode(top)
    start = os.path.join(root, above + _FOLDER)  # noqa: PTH118
    if not os.path.isdir(start) or os.path.islink(start):  # noqa: PTH112, PTH114
        if os.path.lexists(start):
            yield above + _FOLDER
        return
    other = {os.path.join(start, name) for name in _OTHER}  # noqa: PTH118
    for number, entry in enumerate(
        files_below(start, enters=lambda folder: folder.path not in other)
    ):
        if number == _MOST:
            raise WorktreeError(f"{os.fsdecode(start)} contains too many files for a worktree")
        yield entry.path[len(root) + 1 :]
