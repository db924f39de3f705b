"""What became of the files of a run, with real files and a real git."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from gemtui.runs.changed_files import FileTracker
from gemtui.transcript.model import ToolCall, ToolStatus
from gemtui.transcript.tools import kind_of, requested_change
from gemtui.transcript.writes import FileWrite, WriteStatus, totals
from tests.foreign_folder import ForeignFolder

NEEDS_GIT = pytest.mark.skipif(shutil.which("git") is None, reason="needs git")


def call(name: str, path: str, status: ToolStatus = ToolStatus.SUCCESS, id: str = "t1", **args: Any) -> ToolCall:
    """A call as a stream tells it: what it changed is not in there."""
    given = {"file_path": path, **args}
    ok = status is ToolStatus.SUCCESS
    change = requested_change(kind_of(name), given, None) if ok else None
    now = datetime.now(UTC)
    return ToolCall(id=id, name=name, args=given, status=status, display=change, time=now)


def write(path: str, content: str, **more: Any) -> ToolCall:
    return call("write_file", path, content=content, **more)


def edit(path: str, old: str, new: str, **more: Any) -> ToolCall:
    return call("replace", path, old_string=old, new_string=new, **more)


class Project:
    """A folder in which a run begins, once all that stands before it is written."""

    def __init__(self, folder: Path) -> None:
        self.path = folder
        self.tracker = FileTracker(folder)
        self.shells: list[tuple[float, float]] = []

    def git(self, *words: str) -> None:
        name = ["-c", "user.name=a", "-c", "user.email=a@b"]
        subprocess.run(["git", "-C", str(self.path), *name, *words], check=True)

    def begin(self) -> None:
        """The run begins, by the clock of the file system, after all that is there was written."""
        newest = max(each.lstat().st_ctime_ns for each in (self.path, *self.path.rglob("*")))
        probe, began = self.path.parent / "probe", 0
        while began <= newest:
            probe.write_text(str(began))
            began = probe.stat().st_mtime_ns
        self.tracker.record_before(began)

    def shell(self, command: str) -> None:
        began = time.time()
        subprocess.run(["/bin/sh", "-c", command], cwd=self.path, check=True)
        self.shells.append((began, time.time()))

    def rows(self, *calls: ToolCall) -> list[FileWrite]:
        return list(self.tracker.rows(calls, self.tracker.changes_after({}), self.shells))

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


# --- by shell ------------------------------------------------------------------------------------


def test_what_a_shell_command_created_changed_and_deleted(project: Project) -> None:
    (project.path / "old.txt").write_text("one\ntwo\n")
    (project.path / "kept.txt").write_text("one\n")
    (project.path / "gone.txt").write_text("one\ntwo\nthree\n")
    project.begin()
    project.shell("echo three >> old.txt; mkdir new; seq 4 > new/made.txt; rm gone.txt")
    assert project.said() == ["A new/made.txt +4 -0 by shell", "D gone.txt +0 -3 by shell", "M old.txt +1 -0 by shell"]


def test_what_changes_outside_a_command_is_seen(project: Project) -> None:
    project.begin()
    (project.path / "mine.txt").write_text("x\n")
    assert project.said() == ["A mine.txt +1 -0 seen"]


def test_what_is_as_it_was_or_made_and_deleted_by_shell_is_no_row(project: Project) -> None:
    (project.path / "old.txt").write_text("one\n")
    project.begin()
    project.shell("cat old.txt > copy.txt; rm copy.txt")
    assert project.said() == []


def test_a_rewrite_with_the_same_bytes_says_so(project: Project) -> None:
    (project.path / "a.txt").write_text("one\n")
    (project.path / "b.txt").write_text("one\n")
    project.begin()
    project.shell("echo one > a.txt")
    (project.path / "b.txt").write_text("one\n")
    assert project.said(write("b.txt", "one\n")) == [
        "M a.txt +0 -0 by shell, same content",
        "M b.txt +0 -0 same content",
    ]


def test_a_file_that_is_moved_is_gone_here_and_new_there(project: Project) -> None:
    (project.path / "a.txt").write_text("one\n")
    project.begin()
    project.shell("mv a.txt b.txt")
    assert project.said() == ["A b.txt +1 -0 by shell", "D a.txt +0 -1 by shell"]


def test_a_folder_that_is_deleted_is_told_by_its_files(project: Project) -> None:
    (project.path / "src").mkdir()
    (project.path / "src/a.txt").write_text("one\n")
    project.begin()
    project.shell("rm -r src")
    seen = {project.path / "src": time.time()}
    rows = project.tracker.rows((), project.tracker.changes_after(seen), project.shells)
    assert [row.path.name for row in rows] == ["a.txt"]


def test_a_folder_in_the_place_of_a_file_leaves_it_deleted(project: Project) -> None:
    (project.path / "a").write_text("one\n")
    project.begin()
    project.shell("rm a; mkdir a; echo x > a/b.txt")
    assert project.said() == ["A a/b.txt +1 -0 by shell", "D a +0 -1 by shell"]


# --- what is known -------------------------------------------------------------------------------


def test_where_nothing_is_known_of_before_nothing_is_said(project: Project) -> None:
    path = project.path / "a.txt"
    path.write_text("one\n")
    gone = project.path / "gone.txt"
    rows = project.tracker.rows((), {path: time.time(), gone: time.time()})
    assert [(row.letter, row.added, row.note) for row in rows] == [("?", None, ""), ("?", None, "gone")]


def test_what_changed_before_the_look_is_not_taken_for_what_was(project: Project) -> None:
    (project.path / "old.txt").write_text("one\n")
    began = time.time_ns() - 3_600_000_000_000
    project.tracker.record_before(began)
    (project.path / "old.txt").write_text("one\ntwo\n")
    (project.path / "new.txt").write_text("new\n")
    assert project.said() == ["? new.txt seen", "? old.txt seen"]


@NEEDS_GIT
def test_git_knows_what_a_large_file_held(project: Project) -> None:
    project.git("init", "-q")
    lines = "".join(f"line {number}\n" for number in range(40_000))
    (project.path / "large.txt").write_text(lines)
    project.git("add", ".")
    project.git("commit", "-qm", "x")
    project.begin()
    project.shell("sed -i 's/^line 2000$/changed/; 30000d' large.txt; git add .")
    assert project.said() == ["M large.txt +1 -2 by shell"]


@NEEDS_GIT
def test_a_file_that_had_changes_of_its_own_is_compared_with_them(project: Project) -> None:
    project.git("init", "-q")
    (project.path / "a.txt").write_text("one\n")
    project.git("add", ".")
    project.git("commit", "-qm", "x")
    (project.path / "a.txt").write_text("one\nmine\n")
    project.begin()
    project.shell("echo theirs >> a.txt; git -c user.name=a -c user.email=b commit -qam y")
    assert project.said() == ["M a.txt +1 -0 by shell"]


@NEEDS_GIT
def test_what_git_ignores_is_no_row(project: Project) -> None:
    project.git("init", "-q")
    (project.path / ".gitignore").write_text("*.log\n")
    project.begin()
    project.shell("echo x > out.log; echo x > out.txt")
    assert project.said() == ["A out.txt +1 -0 by shell"]


@NEEDS_GIT
def test_however_much_git_ignores_the_rest_is_found(project: Project) -> None:
    project.git("init", "-q")
    (project.path / ".gitignore").write_text("*.log\n")
    project.begin()
    project.shell("for n in $(seq 300); do echo x > $n.log; done; mkdir z; echo x > z/out.txt")
    assert project.said() == ["A z/out.txt +1 -0 by shell"]


@NEEDS_GIT
def test_looking_runs_no_command_that_a_repository_names(
    foreign: ForeignFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project, monitor = Project(foreign.path), str(foreign.program(tmp_path / "monitor"))
    foreign.repository(fsmonitor=monitor, pager=monitor, sshCommand=monitor)
    (foreign.path / "a.txt").write_text("one\n" * 70_000)
    (foreign.path / ".gitattributes").write_text("*.txt filter=x diff=x\n")
    project.git("add", "a.txt")
    for name in ("filter.x.clean", "filter.x.smudge", "diff.x.textconv", "diff.x.command"):
        project.git("config", name, monitor)
    project.git("-c", "core.fsmonitor=false", "ls-files")
    (tmp_path / "marks/monitor").unlink(missing_ok=True)
    monkeypatch.chdir(foreign.path)
    monkeypatch.setenv("PATH", foreign.path_variable)
    project.begin()
    with (foreign.path / "a.txt").open("a") as file:
        file.write("two\n")
    assert project.said() == ["M a.txt +1 -0 seen"]
    assert foreign.ran == []


@NEEDS_GIT
def test_what_git_alters_on_the_way_into_a_folder_is_not_taken_from_it(project: Project) -> None:
    project.git("init", "-q")
    (project.path / ".gitattributes").write_text("*.txt text eol=crlf\n")
    content = b"".join(b"%d\n" % number for number in range(90_000))
    (project.path / "a.txt").write_bytes(content)
    project.git("add", ".")
    (project.path / "a.txt").unlink()
    project.git("checkout", "a.txt")
    project.begin()
    project.shell("echo >> a.txt")
    assert project.said() == ["M a.txt by shell"]


def test_what_is_no_text_or_too_large_has_no_numbers(project: Project) -> None:
    project.begin()
    project.shell("head -c 99 /dev/zero > a.bin; head -c 4000001 /dev/zero > b.bin; ln -s /etc c")
    assert project.said() == ["A a.bin by shell, not text", "A b.bin by shell, larger than 4,000,000 bytes"]


def test_a_fifo_is_not_waited_for(project: Project) -> None:
    project.begin()
    os.mkfifo(project.path / "pipe")
    rows = project.tracker.rows((), {project.path / "pipe": time.time()})
    assert [row.note for row in rows] == ["not a regular file"]


# --- by tools ------------------------------------------------------------------------------------


def test_two_edits_that_cancel_change_nothing(project: Project) -> None:
    (project.path / "a.txt").write_text("x\nkept\n")
    project.begin()
    calls = edit("a.txt", "x", "y"), edit("a.txt", "y", "x", id="t2")
    (project.path / "a.txt").write_text("x\nkept\n")
    assert project.said(*calls) == ["M a.txt +0 -0 same content"]


def test_a_file_of_a_tool_that_shell_changes_has_the_numbers_of_now(project: Project) -> None:
    project.begin()
    (project.path / "a.txt").write_text("one\n")
    project.shell("echo two >> a.txt")
    assert project.said(write("./a.txt", "one\n")) == ["A a.txt +2 -0"]


def test_a_written_file_that_shell_deletes(project: Project) -> None:
    (project.path / "old.txt").write_text("one\ntwo\n")
    project.begin()
    (project.path / "old.txt").write_text("one\n")
    (project.path / "new.txt").write_text("one\n")
    project.shell("rm old.txt new.txt")
    assert project.said(write("old.txt", "one\n"), write("new.txt", "one\n", id="t2")) == [
        "D new.txt +0 -0 by shell, created and then deleted",
        "D old.txt +0 -2 by shell",
    ]


def test_without_a_look_before_the_sum_stays_and_says_so(project: Project) -> None:
    (project.path / "a.txt").write_text("3\n2\n")
    calls = edit("a.txt", "1", "2\n2"), edit("a.txt", "2", "3", id="t2")
    assert project.said(*calls) == ["M a.txt +3 -2 summed"]


def test_a_folder_by_another_name_is_the_same_file(project: Project, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(project.path)
    (project.path / "a.txt").write_text("one\n")
    calls = write("a.txt", "one\n"), write(str(project.path / "a.txt"), "one\n", id="t2")
    rows = FileTracker(link).rows(calls)
    assert [(row.path, row.calls) for row in rows] == [(link / "a.txt", ("t1", "t2"))]


# --- writes of which no result came --------------------------------------------------------------

OPEN = ToolStatus.UNCONFIRMED


def test_an_unconfirmed_write_that_the_disk_has(project: Project) -> None:
    (project.path / "b.txt").write_text("old\n")
    project.begin()
    (project.path / "a.txt").write_text("one\n")
    (project.path / "b.txt").write_text("new\n")
    calls = write("a.txt", "one\n", status=OPEN), edit("b.txt", "old", "new", status=OPEN)
    assert project.said(*calls) == [
        "A a.txt +1 -0 no result, but the change is on disk",
        "M b.txt +1 -1 no result, but the change is on disk",
    ]


def test_an_unconfirmed_write_that_was_not_made(project: Project) -> None:
    (project.path / "b.txt").write_text("old\n")
    (project.path / "c.txt").write_text("other\n")
    project.begin()
    calls = [write("a.txt", "one\n", status=OPEN), edit("b.txt", "old", "new", status=OPEN)]
    calls += [write("c.txt", "one\n", status=OPEN)]
    assert project.said(*calls) == ["? a.txt not written", "? b.txt not written", "? c.txt not written"]


def test_an_unconfirmed_write_of_which_the_disk_tells_nothing(project: Project) -> None:
    (project.path / "a.txt").write_text("other\n")
    project.begin()
    (project.path / "a.txt").write_text("on")
    assert project.said(write("a.txt", "one\n", status=OPEN)) == ["M a.txt +1 -1 seen, the last write is unconfirmed"]
    path = project.path / "a.txt"
    assert [row.words for row in FileTracker(path.parent).rows([write("a.txt", "x", status=OPEN)])] == ["unconfirmed"]


def test_a_last_write_that_was_not_made_leaves_the_one_before(project: Project) -> None:
    project.begin()
    (project.path / "a.txt").write_text("one\n")
    calls = write("a.txt", "one\n"), edit("a.txt", "one", "two", status=OPEN, id="t2")
    assert project.said(*calls) == ["A a.txt +1 -0 the last write did not happen"]


def test_of_a_past_run_the_disk_settles_only_what_it_did_not_change_since(project: Project) -> None:
    (project.path / "a.txt").write_text("one\n")
    (project.path / "b.txt").write_text("later\n")
    ended = datetime.fromtimestamp(time.time() - 3600, UTC)
    past = FileTracker(project.path, ended=ended)
    calls = [write(name, "one\n", status=OPEN) for name in ("a.txt", "b.txt", "c.txt")]
    words = [row.words for row in past.rows(calls)]
    assert words == ["no result, but the change is on disk", "unconfirmed", "unconfirmed"]


# --- what it was and is --------------------------------------------------------------------------


def test_the_difference_of_a_seen_file(project: Project) -> None:
    (project.path / "a.txt").write_text("one\ntwo\n")
    (project.path / "gone.txt").write_text("one\n")
    project.begin()
    project.shell("echo three >> a.txt; rm gone.txt; echo new > new.txt")
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
    (project.path / "a.txt").write_text("one\n")
    found = project.tracker.difference(project.path / "a.txt", ())
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
    path.write_text("two\n")
    calls = [
        edit("a.txt", "one", "two"),
        edit("a.txt", "two", "three", id="t2", status=ToolStatus.RUNNING),
        write("b.txt", "b\n", id="t3", status=ToolStatus.RUNNING),
    ]
    assert totals(project.rows(*calls)).words() == "1 file +1 -1"


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
