"""Watching the store: real files, real events, no clock but the watcher's own."""

from __future__ import annotations

import asyncio
import os
import resource
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from gemtui.sessions.catalog.index import Index
from gemtui.sessions.store import watch as watching
from gemtui.sessions.store.watch import StoreChange, network_file_system, watch
from tests.patience import PATIENCE
from tests.sessions import logs
from tests.sessions.stores import append, load, marker, only, session, uuid

ROOT = Path(__file__).parents[2]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / ".gemini"


class Watcher:
    """The changes of a store, awaited one by one."""

    def __init__(self, home: Path) -> None:
        self.tmp = home / "tmp"
        self.changes = watch(home)

    async def next(self) -> StoreChange:
        async with asyncio.timeout(PATIENCE):
            return await anext(self.changes)

    async def until(self, path: Path) -> StoreChange:
        """The first change that names a path, or all of the store."""
        while not (changed := await self.next()).paths & {path, self.tmp}:
            pass
        return changed


@asynccontextmanager
async def watched(home: Path) -> AsyncIterator[Watcher]:
    """A watcher that sees what comes from now on."""
    watcher = Watcher(home)
    async with aclosing(watcher.changes):
        first = await watcher.next()
        assert first.paths == {watcher.tmp}
        yield watcher


async def test_new_grown_and_deleted_files(home: Path) -> None:
    session(home, uuid(1))
    async with watched(home) as watcher:
        path = session(home, uuid(2))
        assert await watcher.next() == StoreChange(paths=frozenset({path}), mode="events")
        append(path, logs.user("n", "New"))
        assert (await watcher.next()).paths == {path}
        path.unlink()
        assert (await watcher.next()).paths == {path}


async def test_a_burst_is_told_in_few_words(home: Path) -> None:
    path = session(home, uuid(1))
    async with watched(home) as watcher:
        for number in range(200):
            append(path, logs.user(f"n{number}", "New"))
        other = session(home, uuid(2))
        told = [await watcher.next()]
        while other not in told[-1].paths:
            told.append(await watcher.next())
        assert told[0].paths >= {path}
        assert len(told) < 20


async def test_only_what_may_hold_a_session_is_told(home: Path) -> None:
    path = session(home, uuid(1))
    project = home / "tmp" / "proj"
    async with watched(home) as watcher:
        for noise in ("logs.json", "shell_history", "tool-outputs/session-x/a.txt", "chats/x.tmp"):
            (project / noise).parent.mkdir(parents=True, exist_ok=True)
            (project / noise).write_text("text")
        append(path, logs.user("n", "New"))
        assert (await watcher.next()).paths == {path}


async def test_subagents_checkpoints_and_markers_are_told(home: Path) -> None:
    chats = session(home, uuid(1)).parent
    (chats / uuid(1)).mkdir()
    async with watched(home) as watcher:
        agent = logs.write(chats / uuid(1) / "agent-1.jsonl", [logs.header("agent-1")])
        assert agent in (await watcher.until(agent)).paths
        checkpoint = logs.write(chats.parent / "checkpoint-mine.json", [])
        assert checkpoint in (await watcher.until(checkpoint)).paths
        marker(home, "proj", "/srv/proj")
        root = chats.parent / ".project_root"
        assert root in (await watcher.until(root)).paths
        registry = home / "projects.json"
        registry.write_text("{}")
        assert registry in (await watcher.until(registry)).paths


async def test_a_new_project_with_its_first_session(home: Path) -> None:
    session(home, uuid(1))
    async with watched(home) as watcher:
        path = session(home, uuid(2), key="fresh")
        index = Index(home, cache=None)
        load(index)
        append(path, logs.user("n", "New"))
        folder = home / "tmp" / "fresh"
        seen: set[Path] = set()
        while not seen & {folder, path.parent, path}:
            seen |= (await watcher.next()).paths
        assert len(index.update(seen).sessions) == 2


@pytest.mark.parametrize("there", [".", ".gemini"])
async def test_a_store_that_comes_later(there: str, tmp_path: Path) -> None:
    (tmp_path / there).mkdir(exist_ok=True)
    home = tmp_path / ".gemini"
    async with watched(home) as watcher:
        (tmp_path / "unrelated.txt").write_text("text")
        path = session(home, uuid(1))
        await watcher.until(path)
        index = Index(home, cache=None)
        load(index)
        await watcher.until(path)
        append(path, logs.user("n", "New"))
        changed = await watcher.until(path)
        assert only(index.update(changed.paths)).prompts == 2


async def test_a_store_that_goes_and_comes_again(home: Path) -> None:
    path = session(home, uuid(1))
    async with watched(home) as watcher:
        shutil.rmtree(home)
        await watcher.until(watcher.tmp)
        assert session(home, uuid(1)) == path
        await watcher.until(watcher.tmp)
        append(path, logs.user("n", "New"))
        assert (await watcher.until(path)).mode == "events"


async def test_a_store_that_is_replaced(home: Path, tmp_path: Path) -> None:
    path = session(home, uuid(1))
    session(tmp_path / "new", uuid(1))
    async with watched(home) as watcher:
        (home / "tmp").rename(tmp_path / "old")
        (tmp_path / "new" / "tmp").rename(home / "tmp")
        await watcher.until(watcher.tmp)
        await watcher.until(watcher.tmp)
        append(path, logs.user("n", "New"))
        assert (await watcher.next()).paths == {path}


async def test_paths_are_as_they_were_asked_for(tmp_path: Path) -> None:
    session(tmp_path / "real", uuid(1))
    (tmp_path / "link").symlink_to(tmp_path / "real")
    async with watched(tmp_path / "link") as watcher:
        session(tmp_path / "real", uuid(2))
        (path,) = (await watcher.next()).paths
        assert path.is_relative_to(tmp_path / "link")


async def test_a_cancelled_task_ends_at_once_and_leaves_nothing_open(home: Path) -> None:
    session(home, uuid(1))
    before = open_files()

    async def follow(started: asyncio.Event) -> None:
        async for _ in watch(home):
            started.set()

    for _ in range(10):
        started = asyncio.Event()
        task = asyncio.create_task(follow(started))
        await asyncio.wait_for(started.wait(), PATIENCE)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(task, PATIENCE)
    assert open_files() < before + 10


def open_files() -> int:
    return len(list(Path("/dev/fd").iterdir()))


# --- polling -------------------------------------------------------------------------------------


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "POLL", 0.02)


@pytest.fixture
def on_a_network(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "network_file_system", lambda path: "nfs4")


async def test_a_network_file_system_is_looked_at(
    often: None, on_a_network: None, home: Path
) -> None:
    path = session(home, uuid(1))
    async with watched(home) as watcher:
        append(path, logs.user("n", "New"))
        changed = await watcher.next()
        assert changed.paths == {path}
        assert changed.mode == "polling"
        assert changed.reason is not None
        assert changed.reason == (
            "checking for changes every 1 s, because the store is on a network file system (nfs4)"
        )
        path.unlink()
        assert (await watcher.next()).paths == {path, watcher.tmp}
        registry = home / "projects.json"
        registry.write_text("{}")
        assert (await watcher.next()).paths == {registry}
        shutil.rmtree(home)
        await watcher.next()
        path = session(home, uuid(3))
        assert path in (await watcher.until(path)).paths


@pytest.fixture
def no_more_files() -> Iterator[None]:
    """As when every file the system allows is open."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def lowest_free() -> int:
    number = os.dup(0)
    os.close(number)
    return number


async def test_when_the_system_can_not_watch(often: None, no_more_files: None, home: Path) -> None:
    path = session(home, uuid(1))
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    watcher = Watcher(home)
    async with aclosing(watcher.changes):
        resource.setrlimit(resource.RLIMIT_NOFILE, (lowest_free(), limit[1]))
        first = await watcher.next()
        resource.setrlimit(resource.RLIMIT_NOFILE, limit)
        assert first.mode == "polling"
        assert first.reason is not None
        assert "fs.inotify.max_user_instances" in first.reason
        await watcher.until(path)
        append(path, logs.user("n", "New"))
        assert path in (await watcher.until(path)).paths


LIMITED = """
import asyncio, sys
from contextlib import aclosing
from pathlib import Path
from gemtui.sessions.store import watch as watching
from tests.sessions import logs
from tests.sessions.stores import append, session, uuid

home, limit = Path(sys.argv[1]), sys.argv[2]
Path("/proc/sys/user/max_inotify_watches").write_text(limit)
watching.POLL = 0.02


async def main():
    first = session(home, uuid(1))
    async with aclosing(watching.watch(home)) as changes:
        print((await anext(changes)).mode, flush=True)
        others = [session(home, uuid(n), key=f"p{n}") for n in range(2, 9)]
        async for changed in changes:
            if changed.mode == "polling":
                break
        print(changed.reason, flush=True)
        while others[-1] not in changed.paths:  # what is new may first be told as all of the store
            append(others[-1], logs.user("n", "New"))
            changed = await anext(changes)


asyncio.run(asyncio.wait_for(main(), 60))
"""
"""In a user namespace the limit is its own, whoever starts it."""


@pytest.mark.skipif(sys.platform != "linux", reason="no other system has this limit")
@pytest.mark.parametrize(("limit", "first"), [(3, "polling"), (6, "events")])
def test_a_reached_limit_of_watched_folders_is_said(limit: int, first: str, tmp_path: Path) -> None:
    """From the start, or as soon as folders come for which there is no room."""
    inside = ["unshare", "--user", "--map-root-user"]
    if shutil.which("unshare") is None or subprocess.run([*inside, "true"]).returncode:
        pytest.skip("this system gives nobody a user namespace")
    command = [*inside, sys.executable, "-c", LIMITED, str(tmp_path / ".gemini"), str(limit)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    reason = (
        "checking for changes every 1 s, because the system's limit of watched "
        "folders has been reached (fs.inotify.max_user_watches)"
    )
    assert (done.stdout.splitlines(), done.stderr) == ([first, reason], "")


async def test_a_folder_that_may_be_read_again_is_followed_again(other_user: Path) -> None:
    home = other_user / ".gemini"
    path = session(home, uuid(1))
    session(home, uuid(2), key="open")
    project = path.parent.parent
    project.chmod(0)
    async with watched(home) as watcher:
        project.chmod(0o700)
        await watcher.until(watcher.tmp)
        append(path, logs.user("n", "New"))
        while path not in (changed := await watcher.next()).paths:
            pass
        assert changed.mode == "events"


def test_the_file_system_is_that_of_the_nearest_mount(monkeypatch: pytest.MonkeyPatch) -> None:
    mounts_of = [("/", "ext4"), ("/home", "nfs4"), ("/home/dev/local", "xfs"), ("/homely", "9p")]
    partitions = [SimpleNamespace(mountpoint=point, fstype=kind) for point, kind in mounts_of]
    monkeypatch.setattr(psutil, "disk_partitions", lambda all: partitions)
    monkeypatch.setattr("os.path.realpath", str)
    assert network_file_system(Path("/home/dev/.gemini/tmp")) == "nfs4"
    assert network_file_system(Path("/home/dev/local/.gemini")) is None
    assert network_file_system(Path("/homely/x")) == "9p"
    assert network_file_system(Path("/srv")) is None
