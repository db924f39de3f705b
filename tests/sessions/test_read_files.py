"""Files of sessions read by several processes."""

from __future__ import annotations

import os
import select
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from time import monotonic

import psutil
import pytest

from gemtui import processes
from gemtui.policy.match import pattern_process
from gemtui.processes import FOLDER, python
from gemtui.sessions.catalog import read_files as module
from gemtui.sessions.catalog.index import Index
from gemtui.sessions.catalog.read_files import read_files
from gemtui.sessions.read.session_log import SessionLog
from gemtui.sessions.store import readers
from gemtui.sessions.store.store import ChatFile, SessionKind, Store
from tests.foreign_folder import ForeignFolder
from tests.patience import PATIENCE
from tests.sessions.stores import DATA, MAIN, load, session, several, uuid


@pytest.fixture(autouse=True)
def _much(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with two cores, where little is much, and no children of other tests."""
    pattern_process.end()
    monkeypatch.setattr(readers, "MUCH", 1)
    monkeypatch.setattr(os, "cpu_count", lambda: 2)


@pytest.fixture
def places(tmp_path: Path) -> list[ChatFile]:
    """All recordings, files that hold no session, and one that is gone."""
    home = tmp_path / ".gemini"
    shutil.copytree(MAIN / "tmp", home / "tmp")
    chats = home / "tmp" / "proj" / "chats"
    for number, path in enumerate(sorted(DATA.rglob("by-version/**/*.json*"))):
        if path.is_file():
            (chats / f"{number}").mkdir(parents=True)
            shutil.copy(path, chats / f"{number}" / f"{number}{path.suffix}")
    for number, data in enumerate((b"", b"{", b"[]\n", b'{"sessionId":"x"}\n{"\xff', b"\0" * 99)):
        (chats / f"session-{number}.jsonl").write_bytes(data)
    for number in range(99):
        session(home, uuid(number), key=f"p{number % 3}")
    return [*Store(home).files(), ChatFile(str(chats / "x"), "", SessionKind.MAIN, "", 9, 9, 9)]


def children() -> list[psutil.Process]:
    """The processes that read for this one; an earlier test may have left others."""
    return [each for each in psutil.Process().children() if _reads(each)]


def _reads(process: psutil.Process) -> bool:
    with suppress(psutil.Error):
        return f"{module.__name__}:serve" in process.cmdline()
    return False


def test_processes_say_what_is_read_here(
    places: list[ChatFile], monkeypatch: pytest.MonkeyPatch
) -> None:
    by_processes = dict(read_files(places))
    assert children() == []
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    here = dict(read_files(places))
    assert by_processes == here
    assert list(here) == places


def test_a_result_with_text_that_is_no_unicode_is_sent_as_it_is() -> None:
    assert readers.packed(["a\udcff.py"]) == ["a\udcff.py"]


def test_what_processes_read_is_cached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home, cache = tmp_path / ".gemini", tmp_path / "cache"
    several(home, 40)
    index = Index(home, cache=cache)
    found = load(index)
    index.close()
    assert (len(found.sessions), found.complete) == (40, True)
    monkeypatch.setattr(SessionLog, "refresh", None)
    again = Index(home, cache=cache)
    assert load(again).sessions == found.sessions
    again.close()


def test_processes_take_nothing_from_the_current_folder(
    places: list[ChatFile], foreign: ForeignFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(foreign.path)
    monkeypatch.setenv("PYTHONPATH", ":.")
    seen: set[int] = set()
    for _ in read_files(places):
        seen |= {child.pid for child in children()}
    assert len(seen) == 2
    assert foreign.ran == []


def no_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nonexistent/python")


def one_that_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")


def one_that_babbles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/echo")


def one_of_another_version(monkeypatch: pytest.MonkeyPatch) -> None:
    other = ["sh", "-c", r"printf '\0\0\0\0\0\0\0\014cgone\nGone\n.' >&0"]
    monkeypatch.setattr(processes, "python", lambda *_: other)


def one_with_other_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    other = ["sh", "-c", "printf 'a length that is far too large' >&0"]
    monkeypatch.setattr(processes, "python", lambda *_: other)


@pytest.mark.parametrize(
    "harm",
    [no_program, one_that_ends, one_that_babbles, one_of_another_version, one_with_other_frames],
)
def test_without_processes_all_is_read_here(
    harm: Callable[[pytest.MonkeyPatch], None],
    places: list[ChatFile],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    harm(monkeypatch)
    assert {place for place, _ in read_files(places, cancelled=_patient())} == set(places)


def _patient() -> Callable[[], bool]:
    """Cancels what never ends."""
    end = monotonic() + PATIENCE
    return lambda: monotonic() > end


def test_what_other_code_prints_in_a_process_is_no_answer(
    places: list[ChatFile], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sitecustomize.py").write_text("print('This is for a person.', flush=True)")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    seen: set[int] = set()
    found = set()
    for place, _ in read_files(places, cancelled=_patient()):
        found.add(place)
        seen |= {child.pid for child in children()}
    assert found == set(places)
    assert len(seen) == 2


def test_what_processes_leave_when_they_are_ended_is_read_here(places: list[ChatFile]) -> None:
    found = []
    for place, _ in read_files(places):
        found.append(place)
        for child in children():
            child.kill()
    assert sorted(found) == sorted(places)


def test_processes_end_when_nobody_listens_any_more(places: list[ChatFile]) -> None:
    reading = read_files(places)
    next(reading)
    assert len(children()) == 2
    reading.close()
    assert children() == []


def test_processes_end_when_it_is_cancelled(places: list[ChatFile]) -> None:
    done: list[ChatFile] = []
    for place, _ in read_files(places, cancelled=lambda: len(done) >= 3):
        done.append(place)
    assert len(done) == 3
    assert children() == []


_PARENT = """
import os, psutil, sys
from pathlib import Path
from gemtui.sessions.catalog.read_files import read_files
from gemtui.sessions.store import readers
from gemtui.sessions.store.store import Store
readers.MUCH, os.cpu_count = 1, lambda: 2
reading = read_files(Store(Path(sys.argv[1])).files())
next(reading)
print(*(child.pid for child in psutil.Process().children()), flush=True)
os.kill(os.getpid(), 9)
"""


def test_processes_end_with_us(tmp_path: Path) -> None:
    several(tmp_path, 40)
    words = python("-c", _PARENT, str(tmp_path))
    said = subprocess.run(words, cwd=FOLDER, stdout=subprocess.PIPE, check=False).stdout.split()
    assert len(said) == 2
    for pid in map(int, said):
        with suppress(ProcessLookupError):
            handle = os.pidfd_open(pid)
            assert select.select([handle], [], [], PATIENCE)[0]
            os.close(handle)
