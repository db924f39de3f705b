"""The cache: a second start reads next to nothing, and nothing about it is ever an error."""

from __future__ import annotations

import os
import shutil
import sqlite3
import sys
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from random import Random

import msgspec.msgpack
import pytest

from gemtui.sessions.catalog.cache import APPLICATION, FILE, VERSION
from gemtui.sessions.catalog.catalog import Snapshot
from gemtui.sessions.catalog.index import Index
from tests.deep import a_quarter_of
from tests.sessions import logs
from tests.sessions.stores import MAIN, append, load, only, session, set_time, several, talk, uuid


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / ".gemini"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "caches" / "gemtui"


def start(home: Path, folder: Path) -> Snapshot:
    """A start of the program: all sessions, then the end."""
    index = Index(home, cache=folder)
    found = load(index)
    index.close()
    return found


def spoil(path: Path) -> None:
    """Other bytes in the same file of the same size and time: only a reader would notice."""
    info = path.stat()
    with path.open("r+b") as file:
        file.write(b"#" * info.st_size)
    os.utime(path, ns=(info.st_atime_ns, info.st_mtime_ns))


def rows(folder: Path) -> list[tuple[bytes]]:
    with closing(sqlite3.connect(folder / FILE)) as database:
        return database.execute("select path from summary").fetchall()


def test_what_was_read_is_not_read_again(home: Path, folder: Path) -> None:
    shutil.copytree(MAIN, home)
    first = start(home, folder)
    for path in home.rglob("*.json*"):
        if "chats" in path.parts or path.name.startswith("checkpoint-"):
            spoil(path)
    second = start(home, folder)
    assert second.sessions == first.sessions
    assert second.complete
    assert second.cache is None


def test_what_many_sessions_have_is_in_memory_once(home: Path, folder: Path) -> None:
    several(home, 3)
    start(home, folder)
    sessions = start(home, folder).sessions
    for name in ("project_key", "project_hash", "models"):
        assert len({id(getattr(each, name)) for each in sessions}) == 1, name


def test_the_first_rows_come_from_the_cache(home: Path, folder: Path) -> None:
    path = session(home, uuid(1))
    start(home, folder)
    spoil(path)
    index = Index(home, cache=folder)
    assert only(index.quick(project=None, limit=5)).title == "Hello"
    index.close()


def test_rows_of_changed_files_do_not_count(home: Path, folder: Path) -> None:
    path = session(home, uuid(1))
    start(home, folder)
    append(path, logs.user("n", "New"))
    assert only(start(home, folder)).prompts == 2
    replacement = logs.write(path.with_suffix(".new"), talk(uuid(1), "Other"))
    os.utime(replacement, ns=(path.stat().st_mtime_ns, path.stat().st_mtime_ns))
    replacement.replace(path)
    assert only(start(home, folder)).title == "Other"


def test_heads_are_not_kept(home: Path, folder: Path) -> None:
    long = [logs.gemini(f"long{number}", "x" * 50_000) for number in range(5)]
    session(home, uuid(1), [*talk(uuid(1)), *long])
    index = Index(home, cache=folder)
    assert only(index.quick(project=None, limit=5)).partial
    index.close()
    assert rows(folder) == []


def test_what_is_no_session_is_not_tried_again(home: Path, folder: Path) -> None:
    path = session(home, uuid(1), ["no session"])
    first = start(home, folder)
    assert [problem.path for problem in first.unreadable] == [path]
    assert start(home, folder).unreadable == first.unreadable
    assert rows(folder) == [(os.fsencode(path),)]


def test_rows_of_vanished_files_go_and_other_stores_keep_theirs(
    tmp_path: Path, home: Path, folder: Path
) -> None:
    other = session(tmp_path / "other", uuid(9))
    start(tmp_path / "other", folder)
    kept, gone = session(home, uuid(1)), session(home, uuid(2))
    start(home, folder)
    gone.unlink()
    start(home, folder)
    assert sorted(rows(folder)) == sorted([(os.fsencode(kept),), (os.fsencode(other),)])


def test_nobody_else_may_read_it(home: Path, folder: Path) -> None:
    session(home, uuid(1))
    folder.mkdir(parents=True, mode=0o755)
    (folder / FILE).touch(mode=0o644)
    index = Index(home, cache=folder)
    load(index)
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}
    index.close()


def test_updates_are_kept(home: Path, folder: Path) -> None:
    path = session(home, uuid(1))
    index = Index(home, cache=folder)
    load(index)
    append(path, logs.user("n", "New"))
    index.update([path])
    index.close()
    spoil(path)
    assert only(start(home, folder)).prompts == 2


@pytest.mark.skipif(sys.platform == "darwin", reason="its file systems only take Unicode")
def test_file_names_that_are_no_text(home: Path, folder: Path) -> None:
    session(home, uuid(1), key=os.fsdecode(b"caf\xe9"))
    checkpoint = home / "tmp" / "proj" / os.fsdecode(b"checkpoint-\xff.json")
    checkpoint.parent.mkdir(parents=True)
    checkpoint.write_text('{\n"history": [{"role": "user", "parts": [{"text": "Hello"}]}]\n}')
    first = start(home, folder)
    assert len(first.sessions) == 2
    assert start(home, folder).sessions == first.sessions


# --- a cache that is no good ---------------------------------------------------------------------


def change(file: Path, script: str) -> None:
    """Change a cache behind its back."""
    with closing(sqlite3.connect(file)) as database:
        database.executescript(script)


def by(script: str) -> Callable[[Path], None]:
    return lambda file: change(file, script)


def of(harm: Callable[[bytes], bytes]) -> Callable[[Path], object]:
    """Write other bytes in the place of a cache."""
    return lambda file: file.write_bytes(harm(file.read_bytes()))


def nonsense_rows(file: Path) -> None:
    with closing(sqlite3.connect(file)) as database:
        for number, data in enumerate((b"\xff", b"[]", b"{}", b"null", b"[1, 2]", b'"text"')):
            path, stamp = b"/no/such/%d" % number, b"1 2 3"
            columns = (path, b"/no/such", 0, stamp, *(None,) * 9)
            checksum = zlib.crc32(msgspec.msgpack.encode(columns))
            sealed = zlib.crc32(data, zlib.crc32(path + stamp)).to_bytes(4, "big") + data
            row = (*columns, checksum, None, sealed)
            database.execute(f"insert into summary values ({','.join('?' * len(row))})", row)
        database.execute("update summary set data = cast('\xff' as text)")
        database.commit()


ANOTHER_PATH = """
create temp table ends as select min(path) as first, max(path) as last from summary;
delete from summary where path = (select last from ends);
update summary set path = (select last from ends) where path = (select first from ends);
"""
"""A row that claims to be of another session."""


def closed_journal(file: Path) -> None:
    """What a crash leaves beside it, with pages of something else."""
    data = file.read_bytes()
    file.write_bytes(data[:18] + b"\x02\x02" + data[20:])
    file.with_name(f"{file.name}-wal").write_bytes(b"\x37\x7f\x06\x82" + bytes(5000))
    file.with_name(f"{file.name}-journal").write_bytes(b"\xd9\xd5\x05\xf9 \xa1c\xd7" + bytes(5000))


HARMS = [
    of(lambda data: b"not a database" * 500),
    of(lambda data: data[:4096] + b"\xff" * (len(data) - 4096)),
    of(lambda data: data[:5000]),
    by("drop table summary; create table summary (x)"),
    by(f"pragma user_version = {VERSION + 64}"),  # as a flipped bit makes it: no gemtui wrote it
    by(ANOTHER_PATH),
    nonsense_rows,
]


@pytest.mark.parametrize("harm", HARMS)
def test_a_damaged_cache_is_made_anew_with_a_word(
    harm: Callable[[Path], object], home: Path, folder: Path
) -> None:
    several(home, 60)
    first = start(home, folder)
    harm(folder / FILE)
    again = start(home, folder)
    assert again.sessions == first.sessions
    assert again.cache is None
    assert again.renewed is not None
    assert (again.renewed.path, again.renewed.what[:21]) == (folder / FILE, "the cache was corrupt")
    assert len(rows(folder)) == 60
    assert start(home, folder).renewed is None


def test_a_cache_of_an_older_version_is_made_anew(home: Path, folder: Path) -> None:
    session(home, uuid(1))
    folder.mkdir(parents=True)
    change(
        folder / FILE,
        f"""create table summary (path, home, inode, size, mtime_ns, data);
        create table heads (home, files, heads, checksum);
        pragma user_version = {VERSION - 1}; pragma application_id = {APPLICATION + VERSION - 1}""",
    )
    found = start(home, folder)
    assert (only(found).title, found.cache, found.renewed) == ("Hello", None, None)
    assert len(rows(folder)) == 1


def test_what_lies_beside_a_cache_does_not_count(home: Path, folder: Path) -> None:
    several(home, 3)
    first = start(home, folder)
    closed_journal(folder / FILE)
    found = start(home, folder)
    assert (found.sessions, found.cache) == (first.sessions, None)


PLACES = 240


@pytest.mark.parametrize("part", a_quarter_of(range(4)))
def test_no_harm_lists_wrongly(part: int, home: Path, folder: Path) -> None:
    """Bytes flipped, overwritten, cut off and left out all over a real cache."""
    shutil.copytree(MAIN, home)
    first = start(home, folder)
    good = (folder / FILE).read_bytes()
    random = Random(part)
    healed = 0
    for at in range(part, len(good), len(good) * 4 // PLACES):
        (folder / FILE).write_bytes(harmed(good, at, random))
        found = [start(home, folder) for _ in range(2)]
        assert [(each.sessions, each.cache) for each in found] == [(first.sessions, None)] * 2
        healed += any(each.renewed is not None for each in found)
    assert healed > 0


def harmed(data: bytes, at: int, random: Random) -> bytes:
    length = random.choice((1, 1, 1, 40, 3000))
    match random.randrange(5):
        case 0:
            return data[:at] + bytes([data[at] ^ 1 << random.randrange(8)]) + data[at + 1 :]
        case 1:
            return data[:at] + bytes(length) + data[at + length :]
        case 2:
            return data[:at] + random.randbytes(length) + data[at + length :]
        case 3:
            return data[:at] + data[at + length :]
        case _:
            return data[:at]


def test_a_newer_cache_is_left_alone(home: Path, folder: Path) -> None:
    session(home, uuid(1))
    start(home, folder)
    change(
        folder / FILE,
        f"""pragma user_version = {VERSION + 1};
        pragma application_id = {APPLICATION + VERSION + 1};
        alter table summary add column more""",
    )
    before = (folder / FILE).read_bytes()
    found = start(home, folder)
    assert only(found).title == "Hello"
    assert found.cache is not None
    assert "newer gemtui" in found.cache.what
    assert (folder / FILE).read_bytes() == before


@pytest.fixture
def locked(folder: Path) -> Iterator[None]:
    folder.mkdir(parents=True)
    with closing(sqlite3.connect(folder / FILE)) as database:
        database.execute("pragma locking_mode = exclusive")
        database.execute("begin exclusive")
        yield


def test_a_locked_cache(locked: None, home: Path, folder: Path) -> None:
    session(home, uuid(1))
    found = start(home, folder)
    assert only(found).title == "Hello"
    assert found.cache is not None
    assert "locked" in found.cache.what


def test_a_cache_that_is_held_for_a_moment_is_used_again(home: Path, folder: Path) -> None:
    for number in range(2):
        set_time(session(home, uuid(number)), number)
    with closing(Index(home, cache=folder)) as index:
        with closing(sqlite3.connect(folder / FILE)) as other:
            other.execute("begin immediate")
            index.quick(project=None, limit=1)
        found = load(index)
    assert found.cache is None
    assert len(rows(folder)) == 1


@pytest.mark.parametrize("place", ["a file", "a link"])
def test_a_cache_that_can_not_be_written(place: str, home: Path, tmp_path: Path) -> None:
    session(home, uuid(1))
    folder = tmp_path / "folder"
    if place == "a file":
        folder.write_text("")
    else:
        folder.mkdir()
        (folder / FILE).symlink_to(tmp_path / "elsewhere")
    found = start(home, folder)
    assert only(found).title == "Hello"
    assert found.cache is not None
    assert found.cache.path == folder / FILE
    assert not (tmp_path / "elsewhere").exists()


def test_no_cache_at_all(home: Path) -> None:
    session(home, uuid(1))
    found = load(Index(home, cache=None))
    assert only(found).title == "Hello"
    assert found.cache is None


def test_two_at_once(home: Path, folder: Path) -> None:
    several(home, 300)
    found: list[Snapshot] = []
    threads = [threading.Thread(target=lambda: found.append(start(home, folder))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [(len(each.sessions), each.cache) for each in found] == [(300, None)] * 3
    assert len(rows(folder)) == 300
