from __future__ import annotations

import os
import socket
import stat
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from gemtui.files import read_small, write_whole
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
