"""Undo in every kind of repository, and of what an agent does with git itself."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from gemtui.checkpoints import tree
from gemtui.checkpoints.plan import Action
from gemtui.checkpoints.tree import NESTED, NO_GIT
from tests.checkpoints.projects import Session, put, tree_of

PERSON = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "protocol.file.allow=always")


def git(root: Path, *words: str) -> None:
    subprocess.run(["git", *PERSON, *words], cwd=root, check=True, capture_output=True)


def repository(root: Path, **files: str) -> Path:
    """A repository with a commit of these files."""
    root.mkdir(exist_ok=True)
    git(root, "init", "-q")
    for name, text in {"tracked": "one\n", "d/tracked": "one\n", **files}.items():
        put(root, name.encode(), text.encode())
    git(root, "add", "-f", ".")
    git(root, "commit", "-qm", "First")
    return root


def without_commits(root: Path) -> None:
    git(root, "init", "-q")
    put(root, b"tracked", b"one\n")


def worktree(root: Path) -> None:
    main = repository(root.parent / "main")
    (main / ".git/info/exclude").write_text("excluded\n")
    root.rmdir()
    git(main, "worktree", "add", "-q", str(root))
    put(root, b"excluded", b"mine")


def submodules(root: Path) -> None:
    other = repository(root.parent / "other")
    repository(root)
    git(root, "submodule", "--quiet", "add", str(other), "sub")


def in_a_submodule(root: Path) -> None:
    main = root.parent / "main"
    submodules(main)
    (main / "sub").rename(root.parent / "moved")
    root.rmdir()
    (root.parent / "moved").rename(root)
    put(root, b".git", f"gitdir: {main}/.git/modules/sub\n".encode())


def sparse(root: Path) -> None:
    repository(root)
    git(root, "sparse-checkout", "set", "--no-cone", "/tracked")


def below_the_top(root: Path) -> None:
    repository(root.parent)


def nothing(root: Path) -> None:
    put(root, b"tracked", b"one\n")


KINDS: list[tuple[Callable[[Path], None], tuple[str, ...]]] = [
    (without_commits, ()),
    (worktree, ()),
    (submodules, (NESTED,)),
    (in_a_submodule, ()),
    (sparse, ()),
    (below_the_top, ()),
    (nothing, ()),
    (nothing, (NO_GIT,)),
]


def everything_of_git(place: Path) -> dict[str, bytes]:
    """All bytes of all repositories below a place."""
    found = (path for path in place.rglob("*") if ".git" in path.parts and path.is_file())
    return {str(path): path.read_bytes() for path in found if not path.is_symlink()}


@pytest.mark.parametrize(
    ("make", "notes"), KINDS, ids=[f"{make.__name__} {len(notes)}" for make, notes in KINDS]
)
def test_undo_works_in_every_kind_of_repository_and_changes_none(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    make: Callable[[Path], None],
    notes: tuple[str, ...],
) -> None:
    session = Session(tmp_path)
    make(session.root)
    if NO_GIT in notes:
        monkeypatch.setenv("PATH", "/nowhere")
    before = everything_of_git(tmp_path)
    session.prompt()

    def work(root: Path) -> None:
        put(root, b"tracked", b"two\n")
        put(root, b"new/untracked", b"two\n")
        put(root, b"d", b"a file\n")

    session.call(work)
    with session.opened() as project:
        checkpoint = project.store.checkpoints()[0]
        assert b"excluded" not in project.store.tree()
        project.undo(session.target(1))
    assert checkpoint.notes == notes
    assert tree_of(session.root) == session.trees[0]
    assert everything_of_git(tmp_path) == before


@pytest.mark.parametrize(
    "words",
    [("stash", "-u"), ("checkout", "-q", "other"), ("reset", "-q", "--hard"), ("clean", "-qfd")],
    ids=" ".join,
)
def test_files_that_git_of_the_agent_changed_come_back_and_its_repository_stays(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    session = Session(tmp_path)
    repository(session.root)
    git(session.root, "checkout", "-qb", "other")
    put(session.root, b"other", b"one\n")
    git(session.root, "add", ".")
    git(session.root, "commit", "-qm", "Other")
    git(session.root, "checkout", "-q", "-")
    put(session.root, b"tracked", b"mine\n")
    put(session.root, b"untracked", b"mine\n")
    session.prompt()
    session.call(lambda root: git(root, *words))
    after = everything_of_git(tmp_path)
    with session.opened() as project:
        assert not project.undo(session.target(1)).paths(Action.KEEP)
    assert tree_of(session.root) == session.trees[0]
    assert everything_of_git(tmp_path) == after


def test_hard_links_pipes_sockets_and_huge_files_do_no_harm(tmp_path: Path) -> None:
    session, outside = Session(tmp_path), tmp_path / "outside"
    outside.write_text("one")
    os.link(outside, session.root / "linked")
    put(session.root, b"program", b"one")
    (session.root / "program").chmod(0o4755)
    session.prompt()

    def work(root: Path) -> None:
        (root / "linked").write_text("two")
        put(root, b"program", b"two")
        os.mkfifo(root / "pipe")
        with (root / "huge").open("wb") as file:
            file.truncate(40_000_000)
        here = Path.cwd()
        os.chdir(root)
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind("socket")
        os.chdir(here)

    session.call(work)
    with session.opened() as project:
        done = project.undo(session.target(1))
    assert (session.root / "linked").read_text() == "one"
    assert outside.read_text() == "two"
    assert done.paths(Action.REMOVE) == [b"huge"]
    assert {path.name for path in session.root.iterdir()} == {
        "linked",
        "program",
        "pipe",
        "socket",
    }
    assert (session.root / "program").stat().st_mode & 0o7777 == 0o755


@pytest.mark.parametrize("folder", [".", "sub/deep", ".."])
def test_git_is_ended_where_it_waits_for_a_fifo(
    folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tree, "_SUSPICIOUS", 0.1)
    session = Session(tmp_path)
    put(session.root, b"a", b"one\n")
    put(session.root, b"sub/deep/b", b"two\n")
    git(session.root.parent if folder == ".." else session.root, "init")
    os.mkfifo(session.root / folder / ".gitignore")
    session.prompt()
    with session.opened() as project:
        assert project.store.checkpoints()[0].notes == (NO_GIT,)
        assert {b"a", b"sub/deep/b"} <= {*project.store.tree()}
