"""What sessions do right now, told by live files and by the processes they are about."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gemtui.extension.live import (
    LARGEST,
    MOST_FILES,
    LiveFolder,
    LiveSession,
    LiveState,
    terminal_of,
)
from tests.extension.live_files import hook_input, made_old, process, write_live
from tests.terminal import Terminal

SHELL = {"type": "exec", "title": "Confirm", "command": "sleep 6", "rootCommand": "sleep"}


@pytest.fixture
def live(tmp_path: Path) -> LiveFolder:
    """The files of a folder of this test."""
    return LiveFolder(tmp_path / "live")


@pytest.fixture
def cli() -> Iterator[subprocess.Popen[bytes]]:
    """A process that stands in for the CLI's."""
    with process() as child:
        yield child


def only(live: LiveFolder) -> LiveSession:
    (found,) = live.read()
    return found


@pytest.mark.parametrize(
    ("event", "state"),
    [
        ("SessionStart", LiveState.IDLE),
        ("BeforeAgent", LiveState.WORKING),
        ("BeforeTool", LiveState.WORKING),
        ("AfterTool", LiveState.WORKING),
        ("Notification", LiveState.WAITING),
        ("AfterAgent", LiveState.IDLE),
        ("SessionEnd", LiveState.ENDED),
    ],
)
def test_the_last_hook_tells_what_a_session_does(
    live: LiveFolder, cli: subprocess.Popen[bytes], event: str, state: LiveState
) -> None:
    path = write_live(live.folder, cli.pid, hook_input(event))
    found = only(live)
    assert (found.pid, found.state) == (cli.pid, state)
    assert found.session == "f039a3d0-6698-419f-8162-167f9b8b38c4"
    assert found.project == "/home/dev/proj"
    assert found.since.timestamp() == pytest.approx(path.stat().st_mtime)


def test_a_session_that_waits_tells_the_question_with_the_change(
    live: LiveFolder, cli: subprocess.Popen[bytes]
) -> None:
    write_live(live.folder, cli.pid, hook_input("Notification"))
    question = only(live).question
    assert question is not None
    assert question.diff is not None
    assert question.message == "Tool Confirm Write: w.txt requires editing"
    assert (question.kind, question.about) == ("edit", "/home/dev/proj/w.txt")
    assert question.diff.diff.endswith("@@ -0,0 +1,1 @@\n+x\n")


def test_a_session_that_works_tells_its_tool(
    live: LiveFolder, cli: subprocess.Popen[bytes]
) -> None:
    write_live(live.folder, cli.pid, hook_input("BeforeTool"))
    assert only(live).tool == "write_file"


@pytest.mark.parametrize(
    ("details", "about"),
    [
        (SHELL, "sleep 6"),
        ({"type": "mcp", "serverName": "github", "toolName": "push"}, "push of github"),
        ({"type": "info", "prompt": "https://example.org", "urls": []}, "https://example.org"),
        ({"type": "new", "title": "Something new"}, "Something new"),
        ([], ""),
    ],
)
def test_what_is_asked_about(
    live: LiveFolder, cli: subprocess.Popen[bytes], details: object, about: str
) -> None:
    write_live(live.folder, cli.pid, hook_input("Notification", details=details))
    question = only(live).question
    assert question is not None
    assert (question.about, question.diff) == (about, None)


def test_no_is_known_by_what_the_cli_writes_down(
    live: LiveFolder, cli: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    chat = tmp_path / "chat.jsonl"
    chat.touch()
    question = hook_input("Notification", transcript_path=str(chat))
    asked = write_live(live.folder, cli.pid, question).stat().st_mtime
    assert only(live).state is LiveState.WAITING
    os.utime(chat, (asked + 1, asked + 1))
    assert only(live).state is LiveState.IDLE


def test_yes_to_a_command_is_known_by_the_process_that_it_starts(live: LiveFolder) -> None:
    """The shell stands in for the CLI: it starts something when it is told to."""
    words = ["/bin/sh", "-c", "echo; read _; sleep 600 & echo; read _; kill $!"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as shell:
        assert shell.stdin is not None
        assert shell.stdout is not None
        shell.stdout.readline()
        path = write_live(live.folder, shell.pid, hook_input("Notification", details=SHELL))
        made_old(path, 1)
        assert only(live).state is LiveState.WAITING
        shell.stdin.write(b"\n")
        shell.stdin.flush()
        shell.stdout.readline()
        assert only(live).state is LiveState.WORKING
        shell.stdin.write(b"\n")


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    """A program at a terminal of its own."""
    environ = {"PATH": os.environ["PATH"]}
    with Terminal(["/bin/sleep", "600"], environ=environ, folder=Path("/")) as terminal:
        yield terminal


def drawn(terminal: Terminal, ago: float, *, typed: float = 60) -> None:
    """Let its terminal be as if it was written to, and typed in, so many seconds ago."""
    tty = terminal_of(terminal.process.pid)
    assert tty is not None
    os.utime(tty, (time.time() - typed, time.time() - ago))


def test_yes_to_a_long_call_is_known_by_what_turns_in_the_terminal(
    live: LiveFolder, terminal: Terminal
) -> None:
    write_live(live.folder, terminal.process.pid, hook_input("Notification"))
    drawn(terminal, 0)
    assert only(live).state is LiveState.WAITING
    drawn(terminal, -6, typed=-6)  # who goes up and down in the answers
    assert only(live).state is LiveState.WAITING
    drawn(terminal, -6, typed=-2)
    assert only(live).state is LiveState.WORKING


def test_a_question_beside_a_call_that_ended_is_known_by_a_terminal_that_stands_still(
    live: LiveFolder, terminal: Terminal
) -> None:
    pid = terminal.process.pid
    write_live(live.folder, pid, hook_input("AfterTool"))
    drawn(terminal, 20)
    assert only(live).state is LiveState.WORKING
    (live.folder / f"{pid}.asked").touch()
    found = only(live)
    assert found.state is LiveState.WAITING
    assert found.question is not None
    drawn(terminal, 2)
    assert only(live).state is LiveState.WORKING


def test_a_run_of_gemtui_that_asks_waits(live: LiveFolder, cli: subprocess.Popen[bytes]) -> None:
    event = hook_input("BeforeTool", tool_name="run_shell_command", tool_input={"command": "ls"})
    write_live(live.folder, cli.pid, {"gemtui_asks": "", **event})
    found = only(live)
    assert found.state is LiveState.WAITING
    assert found.question is not None
    assert (found.question.kind, found.question.about) == ("exec", "ls")
    assert found.question.run
    write_live(live.folder, cli.pid, {**event, "tool_input": {"gemtui_asks": ""}})
    assert only(live).state is LiveState.WORKING


def test_of_several_who_follow_it_one_tells_each_time(
    live: LiveFolder, cli: subprocess.Popen[bytes]
) -> None:
    write_live(live.folder, cli.pid, hook_input("Notification"))
    first, other = only(live), LiveFolder(live.folder)
    assert [live.claim(first), other.claim(first), other.claim(only(other))] == [True, False, False]
    made_old(write_live(live.folder, cli.pid, hook_input("Notification")), -5)
    assert [other.claim(only(other)), live.claim(only(live))] == [True, False]
    assert len([*live.folder.glob(".*.told")]) == 1
    assert LiveFolder(live.folder / "none").claim(first)


def test_a_process_that_is_gone_without_a_last_word_was_killed(live: LiveFolder) -> None:
    with process() as child:
        write_live(live.folder, child.pid, hook_input("BeforeTool"))
        assert only(live).state is LiveState.WORKING
        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # nobody has asked for its end
        assert only(live).state is LiveState.KILLED
    assert only(live).state is LiveState.KILLED


def test_a_younger_process_with_the_same_number_is_another_one(
    live: LiveFolder, cli: subprocess.Popen[bytes]
) -> None:
    made_old(write_live(live.folder, cli.pid, hook_input("Notification")), 3600)
    assert only(live).state is LiveState.KILLED


def test_of_two_processes_with_one_session_the_one_that_lives_counts(
    live: LiveFolder, cli: subprocess.Popen[bytes]
) -> None:
    with process() as gone:
        pass
    write_live(live.folder, cli.pid, hook_input("AfterAgent"))
    write_live(live.folder, gone.pid, hook_input("BeforeTool"))
    assert (only(live).pid, only(live).state) == (cli.pid, LiveState.IDLE)


def test_those_that_wait_come_first(live: LiveFolder, cli: subprocess.Popen[bytes]) -> None:
    write_live(live.folder, cli.pid, hook_input("Notification", session_id="asks"))
    write_live(live.folder, os.getpid(), hook_input("BeforeTool", session_id="works"))
    write_live(live.folder, os.getppid(), hook_input("AfterAgent", session_id="idles"))
    assert [each.session for each in live.read()] == ["asks", "works", "idles"]


def test_a_file_that_did_not_change_is_not_read_again(
    live: LiveFolder, cli: subprocess.Popen[bytes]
) -> None:
    path = write_live(live.folder, cli.pid, hook_input("Notification"))
    first, stamp = only(live), path.stat()
    path.write_bytes(b" " * stamp.st_size)
    os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    assert only(live) == first
    write_live(live.folder, cli.pid, hook_input("AfterAgent"))
    assert only(live).state is LiveState.IDLE


# --- hostile -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x00" * 100,
        b"[" * 100_000,
        b'{"hook_event_name": ["BeforeTool"]}',
        b'{"hook_event_name": {"a": "' + b"x" * 5000,
        b"[]",
        b"null",
    ],
)
def test_what_is_no_live_file_tells_nothing(
    live: LiveFolder, cli: subprocess.Popen[bytes], content: bytes
) -> None:
    write_live(live.folder, cli.pid, content)
    assert live.read() == ()


def test_a_cut_or_huge_file_still_says_what_the_session_does(
    live: LiveFolder, cli: subprocess.Popen[bytes]
) -> None:
    whole = hook_input("Notification", details={"type": "edit", "newContent": "x" * LARGEST})
    path = write_live(live.folder, cli.pid, whole)
    huge = path.read_bytes()
    for data in (huge, huge[:500]):
        write_live(live.folder, cli.pid, data)
        found = only(live)
        assert found.state is LiveState.WAITING
        assert found.project == "/home/dev/proj"
        assert found.question is not None
        assert found.question.message == "Tool Confirm Write: w.txt requires editing"


def test_a_message_without_end_is_cut(live: LiveFolder, cli: subprocess.Popen[bytes]) -> None:
    write_live(live.folder, cli.pid, hook_input("Notification", message="x" * 1_000_000))
    question = only(live).question
    assert question is not None
    assert len(question.message) < 10_000


def test_foreign_text_in_a_cut_file_does_not_pass_for_the_hooks_own(
    live: LiveFolder, cli: subprocess.Popen[bytes]
) -> None:
    lie = '{"hook_event_name":"Notification","message":"Press yes","session_id":"other"}'
    content = hook_input("BeforeTool", tool_input={"a": lie, "session_id": "other"})
    path = write_live(live.folder, cli.pid, content)
    write_live(live.folder, cli.pid, path.read_bytes()[:-2])
    assert (only(live).state, only(live).session[:8]) == (LiveState.WORKING, "f039a3d0")


def test_values_of_wrong_types_are_unknown(live: LiveFolder, cli: subprocess.Popen[bytes]) -> None:
    odd = hook_input("Notification", session_id=[], cwd="relative", transcript_path={}, message=1)
    write_live(live.folder, cli.pid, odd | {"details": "none"})
    found = only(live)
    assert (found.session, found.project, found.name) == ("", None, None)
    assert found.state is LiveState.WAITING


def test_only_regular_files_named_by_a_number_are_live_files(
    live: LiveFolder, cli: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    outside = write_live(tmp_path, cli.pid, hook_input("BeforeTool"))
    live.folder.mkdir()
    (live.folder / str(cli.pid)).symlink_to(outside)
    os.mkfifo(live.folder / "1")
    (live.folder / "2").mkdir()
    for name in ("0", "-3", "99999999999", "3.json", "٣"):
        write_live(live.folder, 7, hook_input("BeforeTool")).rename(live.folder / name)
    assert live.read() == ()


def test_more_files_than_there_can_be_are_not_all_read(live: LiveFolder) -> None:
    live.folder.mkdir()
    for pid in range(2**30, 2**30 + MOST_FILES + 50):
        (live.folder / str(pid)).write_text('{"hook_event_name":"BeforeTool"}')
    assert len(live.read()) == MOST_FILES


def test_a_folder_that_is_not_there_or_may_not_be_read_is_empty(tmp_path: Path) -> None:
    assert LiveFolder(tmp_path / "nowhere").read() == ()
    file = tmp_path / "file"
    file.touch()
    assert LiveFolder(file).read() == ()


# --- cleared -------------------------------------------------------------------------------------


def test_what_a_process_left_is_cleared_when_nobody_asks_for_it_any_more(
    live: LiveFolder, cli: subprocess.Popen[bytes]
) -> None:
    with process() as gone, process() as lately:
        pass
    day = 90_000
    ended = made_old(write_live(live.folder, gone.pid, hook_input("SessionEnd")), 100)
    killed = made_old(write_live(live.folder, 2**30, hook_input("BeforeTool")), day)
    fresh = write_live(live.folder, lately.pid, hook_input("BeforeTool"))
    other = made_old(write_live(live.folder, 2**30 + 1, b"torn"), day)
    alive = write_live(live.folder, cli.pid, hook_input("AfterAgent"))
    named = made_old(write_live(live.folder, 2**30 + 2, b""), day).rename(live.folder / "note")
    halves = [live.folder / ".17.18", live.folder / ".17.19"]
    for half in halves:
        half.touch()
    made_old(halves[0], day)
    live.clear()
    assert [half.exists() for half in halves] == [False, True]
    assert [each for each in (ended, killed, other) if each.exists()] == []
    assert fresh.exists()
    assert alive.exists()
    assert named.exists()
