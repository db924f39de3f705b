"""Files: read bounded, written whole or not at all, asked about without an error."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from gemtui.calls.effect import on_disk
from gemtui.files import (
    files_below,
    is_file,
    is_folder,
    locked,
    path_exists,
    read_if_present,
    read_small,
    resolved,
    size_of,
    stat_if_possible,
    stat_if_present,
    unfinished_file,
    write_new,
    write_whole,
)
from tests.patience import PATIENCE


def test_a_small_file_is_read_whole_also_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "settings.json").write_bytes(b"{}")
    (tmp_path / "link").symlink_to("settings.json")
    assert read_small(tmp_path / "link") == b"{}"


def test_a_file_of_just_the_bound_is_read_and_one_beyond_it_is_not(tmp_path: Path) -> None:
    (tmp_path / "fits").write_bytes(bytes(10))
    (tmp_path / "large").write_bytes(bytes(11))
    assert read_small(tmp_path / "fits", 10) == bytes(10)
    with pytest.raises(OSError, match="larger than 10 bytes") as caught:
        read_small(tmp_path / "large", 10)
    assert caught.value.filename == str(tmp_path / "large")


def test_what_is_no_regular_file_is_refused_and_never_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "endless").symlink_to("/dev/zero")
    (tmp_path / "loop").symlink_to("loop")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(os.path.relpath(tmp_path / "socket"))
        for name in ("fifo", "endless", "socket"):
            with pytest.raises(OSError, match="not a regular file"):
                read_small(tmp_path / name)
    with pytest.raises(IsADirectoryError):
        read_small(tmp_path)
    with pytest.raises(OSError, match="loop"):
        read_small(tmp_path / "loop")


def test_a_name_that_no_file_can_have_is_an_error_of_the_file_system(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="not a path"):
        read_small(tmp_path / "a\0b")


def test_nothing_is_saved_into_what_is_no_file_and_nobody_is_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "null").symlink_to("/dev/null")
    for name in ("fifo", "null"):
        with pytest.raises(OSError, match="not a regular file") as caught:
            write_whole(tmp_path / name, [b"x"])
        assert caught.value.filename == str(tmp_path / name)
    with pytest.raises(OSError, match="No such device"):
        write_whole(tmp_path / "fifo", [b"x"], special=True)
    assert stat.S_ISFIFO((tmp_path / "fifo").stat().st_mode)


def test_a_pipe_that_somebody_reads_gets_all_of_an_export(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    with ThreadPoolExecutor(1) as pool:
        reader = pool.submit((tmp_path / "fifo").read_bytes)
        while True:  # until it reads
            try:
                write_whole(tmp_path / "fifo", [b"x" * 1000] * 1000, special=True)
                break
            except OSError:
                time.sleep(0.01)
        assert len(reader.result(PATIENCE)) == 1_000_000
    write_whole(Path("/dev/null"), [b"x"], special=True)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux's /proc")
def test_a_file_that_says_nothing_of_its_size_is_read(tmp_path: Path) -> None:
    assert Path("/proc/self/status").stat().st_size == 0
    assert read_small(Path("/proc/self/status")).startswith(b"Name:")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.root
def test_what_is_new_is_private_and_what_is_there_keeps_its_mode_and_owner(tmp_path: Path) -> None:
    write_whole(tmp_path / "new", [b"a"])
    assert mode(tmp_path / "new") == 0o600
    there = tmp_path / "there"
    there.write_text("before")
    there.chmod(0o644)
    if os.geteuid() == 0:
        os.chown(there, 12, 34)
    before = there.stat()
    write_whole(there, [b"b"], durable=True)
    now = there.stat()
    assert there.read_bytes() == b"b"
    assert (now.st_mode, now.st_uid, now.st_gid) == (before.st_mode, before.st_uid, before.st_gid)


CHILD = """
import os, sys, tempfile
from pathlib import Path
from gemtui.files import write_whole
if os.geteuid() == 0:
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
def broken():
    yield b"half"
    raise KeyError("broken")
for path in map(Path, sys.argv[1:]):
    try:
        write_whole(path, broken())
    except KeyError:
        assert path.read_bytes() == b"before", path
    write_whole(path, [b"af", b"ter"], durable=True)
"""


@pytest.mark.root
def test_a_file_is_written_over_where_no_new_one_can_stand_in_its_place(tmp_path: Path) -> None:
    """In a folder that takes no new file; and, for an ordinary user, one of somebody else's."""
    closed, shared = Path(tempfile.mkdtemp(dir="/tmp")), Path(tempfile.mkdtemp(dir="/tmp"))
    try:
        theirs = [shared / "theirs"] if os.geteuid() == 0 else []  # only root can make one
        paths = [closed / "mine", *theirs]
        for path in paths:
            path.write_bytes(b"before")
            path.chmod(0o666)
        shared.chmod(0o777)
        closed.chmod(0o555)
        before = [path.stat() for path in paths]
        words = [sys.executable, "-c", CHILD, *map(str, paths)]
        subprocess.run(words, check=True, cwd=Path(__file__).parents[1])
        assert [path.read_bytes() for path in paths] == [b"after"] * len(paths)
        assert [(each.st_ino, each.st_mode, each.st_uid) for each in before] == [
            (each.st_ino, each.st_mode, each.st_uid) for each in (path.stat() for path in paths)
        ]
        assert [*shared.iterdir()] == theirs
    finally:
        closed.chmod(0o755)
        shutil.rmtree(closed)
        shutil.rmtree(shared)


def test_a_durable_file_and_its_name_are_on_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced, real = list[str](), os.fsync

    def fsync(handle: int) -> None:
        is_dir = stat.S_ISDIR(os.fstat(handle).st_mode)
        synced.append("folder" if is_dir else (tmp_path / "a").read_text())
        real(handle)

    monkeypatch.setattr(os, "fsync", fsync)
    (tmp_path / "a").write_text("before")
    write_whole(tmp_path / "a", [b"after"])
    assert synced == []
    (tmp_path / "a").write_text("before")
    write_whole(tmp_path / "a", [b"after"], durable=True)
    assert synced == ["before", "folder"], "the content first, and only then the name"


def test_a_path_that_no_file_can_have_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "file").touch()
    odd = ["n" * 300, "a\0b", "loop", "loop/below", "file/below", "/".join(["d"] * 3000)]
    for path in (tmp_path / name for name in odd):
        assert [ask(path) for ask in (path_exists, is_file, is_folder)] == [False] * 3, path
        assert resolved(path).is_absolute()
        with pytest.raises(OSError):
            write_whole(path / "x" if path.name == "loop" else path, [b"x"])
    assert resolved(tmp_path / "loop" / ".." / "file") == tmp_path / "file"


def test_missing_and_unreadable_files_are_told_apart(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"text")
    (tmp_path / "link").symlink_to("file")
    (tmp_path / "broken").symlink_to("nowhere")
    (tmp_path / "loop").symlink_to("loop")
    for ask in (stat_if_present, stat_if_possible):
        for gone in ("none", "file/below", "a\0b"):
            assert ask(tmp_path / gone) is None
        facts, target = ask(tmp_path / "link"), ask(tmp_path / "link", follow=True)
        assert facts is not None
        assert stat.S_ISLNK(facts.st_mode)
        assert target is not None
        assert target.st_size == 4
        assert ask(tmp_path / "broken", follow=True) is None
    with pytest.raises(OSError, match="symbolic links"):
        stat_if_present(tmp_path / "loop", follow=True)
    assert stat_if_possible(tmp_path / "loop", follow=True) is None
    assert (size_of(tmp_path / "link"), size_of(tmp_path / "loop")) == (4, 0)


def test_a_file_that_is_not_there_has_no_contents(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"text")
    assert read_if_present(tmp_path / "file") == b"text"
    for gone in ("none", "file/below"):
        assert read_if_present(tmp_path / gone) is None
        assert on_disk(str(tmp_path / gone)) == ""
    with pytest.raises(OSError, match="larger than 1 bytes"):
        read_if_present(tmp_path / "file", 1)


def test_a_folder_is_walked_without_following_links(tmp_path: Path) -> None:
    top, outside = tmp_path / "top", tmp_path / "outside"
    for name in ("top/a/b/deep", "top/a/.git/config", "outside/secret"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (top / "link").symlink_to(outside)
    os.mkfifo(top / "pipe")

    def names(**how: Any) -> set[str]:
        return {entry.path.removeprefix(f"{top}/") for entry in files_below(str(top), **how)}

    assert names() == {"a/b/deep", "a/.git/config", "link", "pipe"}
    assert names(enters=lambda folder: folder.name != ".git") == {"a/b/deep", "link", "pipe"}
    assert {entry.name for entry in files_below(os.fsencode(top))} == {
        b"deep",
        b"config",
        b"link",
        b"pipe",
    }
    unread: list[str] = []
    assert list(files_below(f"{top}/none", unread=unread)) == []
    assert unread == [f"{top}/none"]
    assert list(files_below("a\0b")) == []


def test_a_lock_is_one_s_until_it_is_let_go(tmp_path: Path) -> None:
    place = tmp_path / "lock"
    with locked(place) as mine, locked(place, wait=False) as also:
        assert (mine, also) == (True, False)
    with locked(place, wait=False) as mine:
        assert mine
    assert place.stat().st_mode & 0o777 == 0o600


def test_the_lock_of_a_killed_program_is_free(tmp_path: Path) -> None:
    place = tmp_path / "lock"
    holds = (
        "import sys; from pathlib import Path; from gemtui.files import locked\n"
        "with locked(Path(sys.argv[1])): print('mine', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", holds, str(place)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"mine\n"
        with locked(place, wait=False) as mine:
            assert not mine
        other.kill()
    with locked(place, wait=False) as mine:
        assert mine


def write_until_killed(target: Path) -> None:
    """Start to write a file in a process that is then killed."""
    pid = os.fork()
    if pid == 0:
        with unfinished_file(target) as (stream, _):
            stream.write(b"half")
            stream.flush()
            os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(pid, 0)


@pytest.mark.parametrize("write", [write_whole, write_new])
def test_what_a_killed_writer_left_is_removed_by_the_next_one_in_the_folder(
    tmp_path: Path, write: Callable[..., None]
) -> None:
    (tmp_path / ".file.personal").write_text("mine")
    write_until_killed(tmp_path / "file")
    assert len(list(tmp_path.iterdir())) == 2
    with unfinished_file(tmp_path / "file") as (_, being_written):
        write(tmp_path / "other", b"new" if write is write_new else [b"new"])
        assert {each.name for each in tmp_path.iterdir()} == {
            "other",
            ".file.personal",
            being_written.name,
        }
    assert {each.name for each in tmp_path.iterdir()} == {"other", ".file.personal"}
