"""Changes are found by an index of our own: none is missed, and git need not be asked twice."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from gemtui.checkpoints import store as store_module
from gemtui.checkpoints.store import Reason, open_store
from gemtui.checkpoints.take import Taker
from tests.checkpoints.projects import Session, put, wait_for_next_second

STATES = dict[bytes, object]


@pytest.fixture
def indexed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Session:
    """A session in a repository whose files are in the index of its checkpoints."""
    monkeypatch.setattr(store_module, "_POOR", 0)
    session = Session(tmp_path)
    git(session.root, "init", "-q")
    put(session.root, b".gitignore", b"ignored\n")
    for name in (
        b"same",
        b"gone",
        b"d/x",
        b"d/y",
        b"moved/x",
        b"back/x",
        b"file",
        b"dir/x",
        b"mode",
        b"ignored/tracked",
        b"ignored/other",
        b"\xff\n\x1b",
    ):
        put(session.root, name, b"one")
    git(session.root, "add", "-f", ".gitignore", "same", "d", "ignored/tracked")
    wait_for_next_second()
    session.prompt()
    with session.opened() as project:
        index = project.store.index.current()
        assert index is not None
        assert index.number == 1
        assert project.store.index.unindexed() == [b"ignored/tracked"]
    return session


def git(root: Path, *words: str) -> None:
    subprocess.run(["git", *words], cwd=root, check=True, capture_output=True)


def known(session: Session) -> STATES:
    """What the next checkpoint finds."""
    with session.opened() as project:
        project.taker.take(Reason.MANUAL)
        return {name: state for name, (state, _) in project.store.tree().items()}


def anew(session: Session) -> STATES:
    """What a first checkpoint finds."""
    with open_store(session.data / f"new{time.time_ns()}", session.root) as store:
        Taker(session.root, store).take(Reason.MANUAL)
        return {name: state for name, (state, _) in store.tree().items()}


@pytest.mark.parametrize("name", ["HEAD", "config"])
@pytest.mark.parametrize("damage", [os.mkfifo, Path.mkdir, lambda file: file.write_bytes(b"[[[")])
def test_a_damaged_file_of_our_repository_is_replaced(
    indexed: Session, name: str, damage: Callable[[Path], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gemtui.checkpoints.tree._LIMIT", 1.0)
    [file] = indexed.data.rglob(f"git/{name}")
    before = file.read_bytes()
    file.unlink()
    damage(file)
    put(indexed.root, b"ignored/new", b"one")
    assert b"ignored/new" not in known(indexed)  # without git, nothing is known to be ignored
    assert file.read_bytes() == before


def test_every_kind_of_change_is_found_by_the_index(indexed: Session) -> None:
    root = indexed.root
    assert known(indexed) == anew(indexed)
    git(root, "add", "-f", "ignored/other")
    mark = root.parent / "mark"
    put(root, b".gitattributes", b"* filter=f diff=f text working-tree-encoding=UTF-16\n")
    for key in ("filter.f.clean", "filter.f.process", "core.fsmonitor", "diff.f.textconv"):
        git(root, "config", key, f"touch {mark}")
    seen = (root / "same").stat()
    put(root, b"same", b"two")
    os.utime(root / "same", ns=(seen.st_atime_ns, seen.st_mtime_ns))
    (root / "gone").unlink()
    (root / "moved").rename(root / "elsewhere")
    (root / "moved").symlink_to("elsewhere")
    (root / "back").rename(root / "away")
    put(root, b"file/now/a", b"folder")
    put(root, b"dir", b"file")
    (root / "mode").chmod(0o755)
    put(root, b"ignored/tracked", b"two")
    put(root, b"new", b"one")
    assert known(indexed) == anew(indexed)
    (root / "away").rename(root / "back")
    (root / "moved").unlink()
    (root / "elsewhere").rename(root / "moved")
    assert known(indexed) == anew(indexed)
    (root / ".git/index").unlink()
    put(root, b".gitignore", b"")
    assert known(indexed) == anew(indexed)
    assert not mark.exists()


@pytest.mark.parametrize("damage", ["missing", "broken", "moved"])
def test_without_a_usable_index_all_files_are_looked_at(indexed: Session, damage: str) -> None:
    with indexed.opened() as project:
        (index,) = project.store.git.glob("index-*")
    if damage == "missing":
        index.unlink()
    elif damage == "broken":
        index.write_bytes(index.read_bytes()[:100])
    else:
        git(indexed.root.parent, "init", "-q")
        (indexed.root / ".git").rename(indexed.root.parent / "was")
    put(indexed.root, b"same", b"two")
    (indexed.root / "gone").unlink()
    found = known(indexed)
    assert found == anew(indexed) | {b"ignored/tracked": found[b"ignored/tracked"]}
    assert b"gone" not in found
