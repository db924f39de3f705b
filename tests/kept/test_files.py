"""One file that is copied or put back on a disk that fails."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from gemtui.kept.files import replace_with_copy, restore_file
from gemtui.kept.vault import archive, keep, merge_versions, turn_on
from gemtui.paths import vault_dir
from gemtui.sessions.catalog.vault_files import COPIES, in_tree
from gemtui.sessions.read.versions import begins_with
from tests.kept.test_keeping import linked

BEFORE, AFTER = b"before\n", b"before\nafter\n"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file of which the vault has a copy and a link; `old` is beside it."""
    turn_on()
    path = tmp_path / "chats/log.jsonl"
    path.parent.mkdir()
    path.write_bytes(AFTER)
    keep(path)
    linked(path)
    path.with_name("old").write_bytes(BEFORE)
    return path


def copied(path: Path) -> None:
    replace_with_copy(path, path.with_name("old"))


def put_back(path: Path) -> None:
    assert restore_file(path, path.with_name("new"))


@pytest.mark.parametrize("step", [archive, merge_versions, copied, put_back])
def test_a_disk_that_takes_nothing_is_said_and_nothing_kept_gives_way(
    path: Path, step: Callable[[Path], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(_: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", refused)
        with pytest.raises(OSError, match="Input/output"):
            step(path)
    for tree in ("0", COPIES):
        assert in_tree(vault_dir() / tree, path).read_bytes() == AFTER
    assert path.with_name("old").read_bytes() == BEFORE
    assert not path.with_name("new").exists()
    assert not list(path.parent.glob(".*"))
    step(path)


def test_what_replaces_a_damaged_file_is_on_the_disk_before_and_its_name_afterwards(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, steps, fsync = path.with_name("old"), list[tuple[int, bytes]](), os.fsync

    def synced(handle: int) -> None:
        steps.append((os.fstat(handle).st_ino, place.read_bytes()))
        fsync(handle)

    monkeypatch.setattr(os, "fsync", synced)
    assert restore_file(path, place, over=place.lstat())
    assert steps == [(place.stat().st_ino, BEFORE), (place.parent.stat().st_ino, AFTER)]


def test_what_is_there_is_not_replaced(path: Path) -> None:
    old = path.with_name("old")
    assert not restore_file(path, old)
    assert old.read_bytes() == BEFORE


def test_where_there_are_no_links_it_is_put_back_all_the_same(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object, **__: object) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", refused)
    new = path.with_name("new")
    assert restore_file(path, new)
    assert new.read_bytes() == AFTER
    assert not restore_file(path, new)
    assert not list(path.parent.glob(".*"))


@pytest.mark.parametrize(
    ("now", "whole", "sampled"),
    [
        (b"", True, True),
        (b"more", True, True),
        (-1, False, False),
        (0, False, False),
        (10_000, False, True),
    ],
    ids=["same", "more", "cut", "begins otherwise", "otherwise in its midst"],
)
def test_a_file_goes_on_from_what_is_kept(
    tmp_path: Path, now: bytes | int, whole: bool, sampled: bool
) -> None:
    kept, file = tmp_path / "kept", tmp_path / "file"
    data = bytearray(os.urandom(20_000))
    kept.write_bytes(data)
    if isinstance(now, bytes):
        data += now
    elif now < 0:
        data = data[:now]
    else:
        data[now] ^= 1
    file.write_bytes(data)
    assert begins_with(file, kept) is whole
    assert begins_with(file, kept, sampled=True) is sampled
