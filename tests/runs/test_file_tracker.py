"""What became of the files of a run, with real files and a real git."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from gemtui.checkpoints.store import Reason, WritingCall
from gemtui.checkpoints.undo import open_project
from gemtui.runs.changed_files import FileTracker
from gemtui.runs.undo.checkpointing import project_of
from gemtui.transcript.model import ToolCall, ToolStatus
from gemtui.transcript.tools import kind_of, requested_change
from gemtui.transcript.writes import FileWrite, WriteStatus, totals
from tests.rows import each_row, table
from tests.sessions.faults import injected

NEEDS_GIT = pytest.mark.skipif(shutil.which("git") is None, reason="needs git")


def call(
    name: str, path: str, status: ToolStatus = ToolStatus.SUCCESS, id: str = "t1", **args: Any
) -> ToolCall:
    """A call as a stream tells it: what it changed is not in there."""
    given = {"file_path": path, **args}
    ok = status == ToolStatus.SUCCESS
    change = requested_change(kind_of(name), given, None) if ok else None
    now = datetime.now(UTC)
    return ToolCall(
        id=id, name=name, args=given, status=ToolStatus(status), display=change, time=now
    )


def write(path: str, content: str, **more: Any) -> ToolCall:
    return call("write_file", path, content=content, **more)


def edit(path: str, old: str, new: str, **more: Any) -> ToolCall:
    return call("replace", path, old_string=old, new_string=new, **more)


class Project:
    """A folder in which a run begins, once all that stands before it is written."""

    def __init__(self, folder: Path) -> None:
        self.path = folder
        self.tracker = FileTracker(folder, "r")

    def put(self, texts: dict[str, str]) -> None:
        for name, text in texts.items():
            (self.path / name).write_text(text)

    def git(self, *words: str) -> None:
        name = ["-c", "user.name=a", "-c", "user.email=a@b"]
        subprocess.run(["git", "-C", str(self.path), *name, *words], check=True)

    def begin(self) -> None:
        """The run begins, with its first checkpoint."""
        self._take(Reason.PROMPT)

    def shell(self, command: str) -> None:
        began = time.time()
        subprocess.run(["/bin/sh", "-c", command], cwd=self.path, check=True)
        self._has_called("run_shell_command", began)

    def write(self, texts: dict[str, str]) -> None:
        """A file tool writes these files, each with a call of its own."""
        for name, text in texts.items():
            began = time.time()
            self.put({name: text})
            self._has_called("write_file", began, name.encode())

    def end(self) -> None:
        self._take(Reason.CALL)
        self.tracker.is_over = True

    def _has_called(self, tool: str, began: float, path: bytes | None = None) -> None:
        ended = time.time()
        call = WritingCall(
            run="r", session="s", use=str(ended), tool=tool, path=path, began=began, ended=ended
        )
        self._take(Reason.CALL, call)

    def _take(self, reason: Reason, *calls: WritingCall) -> None:
        with open_project(*project_of(self.path)) as project:
            project.taker.take(reason, run="r", session="s", calls=lambda: calls, always=True)

    def rows(self, *calls: ToolCall) -> list[FileWrite]:
        return list(self.tracker.rows(calls))

    def said(self, *calls: ToolCall) -> list[str]:
        """The rows, sorted: letter, name, numbers, words."""
        return sorted(map(self._said, self.rows(*calls)))

    def _said(self, row: FileWrite) -> str:
        parts = [row.letter, os.path.relpath(row.path, self.path), _numbers(row), row.words]
        return " ".join(filter(None, parts))


def _numbers(row: FileWrite) -> str:
    if row.added is None and row.removed is None:
        return ""
    added, removed = ("?" if each is None else each for each in (row.added, row.removed))
    return f"+{added} -{removed}"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    folder = tmp_path / "project"
    folder.mkdir()
    return Project(folder)


@each_row("promise, case", table("runs/file_tracker.json").items())
def test_what_became_of_the_files_is_told(
    tmp_path: Path, promise: str, case: dict[str, Any]
) -> None:
    folder = tmp_path / promise
    folder.mkdir()
    project = Project(folder)
    project.put(case.get("before", {}))
    project.begin()
    project.write(case.get("written", {}))
    if "shell" in case:
        project.shell(case["shell"])
    project.end()
    assert project.said(*(call(**made) for made in case.get("calls", ()))) == case["rows"]


# --- by shell ------------------------------------------------------------------------------------


def test_a_folder_that_is_deleted_is_told_by_its_files(project: Project) -> None:
    (project.path / "src").mkdir()
    project.put({"src/a.txt": "one\n"})
    project.begin()
    project.shell("rm -r src")
    assert project.said() == ["D src/a.txt +0 -1 by shell"]


def test_what_others_change_is_no_row(project: Project) -> None:
    project.put({"mine.txt": "one\n", "other.txt": "one\n"})
    project.begin()
    project.put({"mine.txt": "two\n"})
    project.end()
    project.shell("echo two > made.txt")
    with open_project(*project_of(project.path)) as opened:
        call = WritingCall(run="q", session="s", use="u", tool="x", began=time.time())
        project.put({"other.txt": "two\n"})
        opened.taker.take(Reason.CALL, run="q", session="s", calls=lambda: [call])
    assert project.said() == ["A made.txt +1 -0 by shell"]


# --- what is known -------------------------------------------------------------------------------


def test_without_checkpoints_only_the_files_of_calls_are_known(project: Project) -> None:
    project.put({"a.txt": "one\n", "b.txt": "one\n"})
    assert project.said(write("a.txt", "one\n")) == ["? a.txt +1 -?"]
    assert not project.tracker.has_checkpoints
    project.begin()
    assert project.said() == []
    assert project.tracker.has_checkpoints


def test_a_past_run_is_described_by_its_checkpoints(project: Project) -> None:
    project.put({"a.txt": "one\n", "gone.txt": "one\n"})
    project.begin()
    project.write({"a.txt": "one\ntwo\n"})
    project.shell("rm gone.txt; echo x > new.txt")
    project.put({"a.txt": "later\n", "gone.txt": "later\n"})
    (project.path / "new.txt").unlink()
    project.tracker = FileTracker(project.path, "r", ended=datetime.now(UTC))
    calls = [write("a.txt", "one\ntwo\n")]
    rows = ["A new.txt +1 -0 by shell", "D gone.txt +0 -1 by shell", "M a.txt +1 -0"]
    assert project.said(*calls) == rows
    found = project.tracker.difference(project.path / "a.txt", calls)
    assert found.diff is not None
    assert found.diff.diff.endswith(" one\n+two\n")


@NEEDS_GIT
def test_what_git_ignores_is_no_row(project: Project) -> None:
    project.git("init", "-q")
    project.put({".gitignore": "*.log\n"})
    project.begin()
    project.shell("echo x > out.log; echo x > out.txt")
    assert project.said() == ["A out.txt +1 -0 by shell"]


@NEEDS_GIT
def test_however_much_git_ignores_the_rest_is_found(project: Project) -> None:
    project.git("init", "-q")
    project.put({".gitignore": "*.log\n"})
    project.begin()
    project.shell("for n in $(seq 300); do echo x > $n.log; done; mkdir z; echo x > z/out.txt")
    assert project.said() == ["A z/out.txt +1 -0 by shell"]


def test_a_fifo_is_not_waited_for(project: Project) -> None:
    project.put({"pipe": "one\n"})
    project.begin()
    project.shell("rm pipe; mkfifo pipe")
    assert project.said() == ["M pipe by shell, not a regular file"]


# --- by tools ------------------------------------------------------------------------------------


def test_without_a_look_before_the_sum_stays_and_says_so(project: Project) -> None:
    project.put({"a.txt": "3\n2\n"})
    calls = edit("a.txt", "1", "2\n2"), edit("a.txt", "2", "3", id="t2")
    assert project.said(*calls) == ["M a.txt +3 -2 summed"]


def test_a_folder_by_another_name_is_the_same_file(project: Project, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(project.path)
    project.put({"a.txt": "one\n"})
    calls = write("a.txt", "one\n"), write(str(project.path / "a.txt"), "one\n", id="t2")
    rows = FileTracker(link).rows(calls)
    assert [(row.path, row.calls) for row in rows] == [(link / "a.txt", ("t1", "t2"))]


# --- writes of which no result came --------------------------------------------------------------

OPEN = ToolStatus.UNCONFIRMED


def test_an_unconfirmed_write_without_a_look_before_stays_one(project: Project) -> None:
    path = project.path / "a.txt"
    path.write_text("on")
    assert [
        row.words for row in FileTracker(path.parent).rows([write("a.txt", "x", status=OPEN)])
    ] == ["unconfirmed"]


def test_of_a_past_run_the_disk_settles_only_what_it_did_not_change_since(project: Project) -> None:
    project.put({"a.txt": "one\n", "b.txt": "later\n"})
    ended = datetime.fromtimestamp(time.time() - 3600, UTC)
    past = FileTracker(project.path, ended=ended)
    calls = [write(name, "one\n", status=OPEN) for name in ("a.txt", "b.txt", "c.txt")]
    words = [row.words for row in past.rows(calls)]
    assert words == ["no result, but the change is on disk", "unconfirmed", "unconfirmed"]


# --- what it was and is --------------------------------------------------------------------------


def test_the_difference_of_a_seen_file(project: Project) -> None:
    project.put({"a.txt": "one\ntwo\n", "gone.txt": "one\n"})
    project.begin()
    project.shell("echo three >> a.txt; rm gone.txt; echo new > new.txt")
    project.rows()
    found = {name: project.tracker.difference(project.path / name, ()) for name in NAMES}
    diffs = {name: each.diff.diff.split("@@\n")[-1] for name, each in found.items() if each.diff}
    assert diffs == {"a.txt": " one\n two\n+three\n", "gone.txt": "-one\n", "new.txt": "+new\n"}
    assert [each.why for each in found.values()] == [
        "",
        "The file no longer exists; these are its contents from before the run.",
        "",
    ]


NAMES = ("a.txt", "gone.txt", "new.txt")


def test_where_what_was_is_not_known_the_text_is_shown_and_why(project: Project) -> None:
    project.put({"a.txt": "one\n"})
    found = project.tracker.difference(project.path / "a.txt", [write("a.txt", "one\n")])
    assert (found.diff, found.text) == (None, "one\n")
    assert "unknown" in found.why
    gone = project.tracker.difference(project.path / "gone.txt", ())
    assert gone.why == "The file no longer exists, and its contents before the run are unknown."
    (project.path / "a.bin").write_bytes(b"\0")
    assert project.tracker.difference(project.path / "a.bin", ()).why.endswith("not text.")


def test_a_file_that_was_written_counts_while_it_is_written_again(project: Project) -> None:
    path = project.path / "a.txt"
    path.write_text("one\n")
    project.begin()
    project.write({"a.txt": "two\n"})
    calls = [
        edit("a.txt", "one", "two"),
        edit("a.txt", "two", "three", id="t2", status=ToolStatus.RUNNING),
        write("b.txt", "b\n", id="t3", status=ToolStatus.RUNNING),
    ]
    assert totals(project.rows(*calls)).words() == "1 file +1 -1"


def test_files_that_were_reverted_are_not_counted_as_changed(project: Project) -> None:
    project.put({"a.txt": "one\n"})
    project.begin()
    project.write({"a.txt": "two\n", "b.txt": "b\n"})
    calls = [write("a.txt", "two\n"), write("b.txt", "b\n", id="t2")]
    assert totals(project.rows(*calls)).files == 2
    project.put({"a.txt": "one\n"})
    (project.path / "b.txt").unlink()
    assert totals(project.rows(*calls)).words() == ""


@pytest.mark.parametrize("status", [ToolStatus.QUEUED, ToolStatus.RUNNING, ToolStatus.SUCCESS])
def test_a_path_is_the_file_that_the_cli_reads_it_as(project: Project, status: ToolStatus) -> None:
    (project.path / "link.txt").symlink_to("real.txt")
    project.begin()
    rows = project.rows(
        write("50%25.txt", "a\n", status=status),
        write("@b.txt", "b\n", id="t2", status=status),
        write("link.txt", "c\n", id="t3", status=status),
    )
    names = [row.path.relative_to(project.path).as_posix() for row in rows]
    assert names == ["50%.txt", "b.txt", "real.txt"]
    written = WriteStatus.YES if status is ToolStatus.SUCCESS else WriteStatus.PENDING
    assert {row.written for row in rows} == {written}


def test_the_files_of_calls_are_listed_if_checkpoints_are_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tracker = FileTracker(tmp_path, "r")
    with injected(monkeypatch) as faults:
        faults.fail_below(tracker.checkpoints, errno.EACCES)
        rows = tracker.rows([write("a.txt", "new")])
    assert [Path(row.path) for row in rows] == [tmp_path / "a.txt"]
    assert not tracker.has_checkpoints
