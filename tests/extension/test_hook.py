"""The hook's command, run as the CLI runs it: by `bash -c`, with an event on stdin."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from gemtui.extension.content import EVENTS, command, content, write
from gemtui.paths import extension_dir, live_dir, vault_dir
from tests.patience import PATIENCE, until

REFUSED = {"decision": "deny", "reason": "gemtui does not answer, so this call is denied"}


def event(name: str = "BeforeTool", **more: Any) -> bytes:
    """What the CLI gives to a hook, written as it writes it."""
    head = {"session_id": "s1", "transcript_path": "/tmp/none.jsonl", "cwd": "/"}
    value = {**head, "hook_event_name": name, "timestamp": "2026-11-22T17:10:39.211Z", **more}
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def start(name: str, /, **environ: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        ["bash", "-c", command(name, extension_dir())],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={"PATH": os.environ["PATH"], **environ},
        start_new_session=True,
    )


def taken(stdout: bytes, stderr: bytes) -> Any:
    """What the CLI takes for the answer, whatever the exit code was."""
    return json.loads(stdout.strip() or stderr.strip())


def hook(name: str, stdin: bytes | None = None, /, **environ: str) -> tuple[int, Any]:
    """Run a hook; its exit code and its answer."""
    with start(name, **environ) as process:
        stdout, stderr = process.communicate(stdin or event(name), PATIENCE)
    return process.returncode, taken(stdout, stderr)


@contextmanager
def gate(tmp_path: Path, answer: bytes | None, asked: list[bytes]) -> Iterator[dict[str, str]]:
    """Somebody at the socket who gives one answer, or hangs up; the environment for it."""
    place = tmp_path / "gate"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(place))
        server.listen()
        server.settimeout(PATIENCE)

        def serve() -> None:
            connection, _ = server.accept()
            with connection, connection.makefile("rb") as stream:
                asked.append(stream.readline())
                if answer is not None:
                    connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        yield {"GEMTUI_GATE": str(place), "GEMTUI_PYTHON": sys.executable}
        thread.join()


@pytest.fixture(autouse=True)
def written(own_places: None) -> None:
    write()


def test_every_event_is_answered_with_nothing() -> None:
    assert [hook(name) for name in EVENTS] == [(0, {})] * len(EVENTS)


def test_the_live_file_is_what_the_last_event_said() -> None:
    hook("BeforeAgent")
    hook("AfterTool", event("AfterTool", tool_name="é"))
    live = live_dir() / str(os.getpid())
    assert live.read_bytes() == event("AfterTool", tool_name="é")
    assert [path.name for path in live_dir().iterdir()] == [live.name]
    assert live.stat().st_mode & 0o777 == 0o600


def test_of_large_events_the_beginning_is_kept() -> None:
    large = event("BeforeTool", tool_input={"content": "x" * 5_000_000})
    assert hook("BeforeTool", large) == (0, {})
    live = live_dir() / str(os.getpid())
    assert live.read_bytes() == large[: 16 * 1024]


def test_a_live_folder_that_is_gone_is_made_anew() -> None:
    live_dir().rmdir()
    assert hook("BeforeTool") == (0, {})
    assert [path.name for path in live_dir().iterdir()] == [str(os.getpid())]
    assert live_dir().stat().st_mode & 0o777 == 0o700


def test_a_live_folder_that_can_not_be_written_disturbs_nobody(tmp_path: Path) -> None:
    live_dir().rmdir()
    live_dir().write_text("")
    assert hook("BeforeTool") == (0, {})
    assert hook("SessionEnd") == (0, {})
    with gate(tmp_path, b'{"a": 1}\n', []) as environ:
        assert hook("BeforeTool", **environ) == (0, {"a": 1})


@pytest.mark.parametrize("name", ["hook.sh", "ask.py"])
def test_what_replaces_the_extension_s_files_answers_no_call(tmp_path: Path, name: str) -> None:
    """The CLI has read the hook's command before."""
    (extension_dir() / name).write_text("echo '{}'")
    assert hook("BeforeTool", GEMTUI_GATE="/no/socket", GEMTUI_PYTHON=sys.executable) == (
        2,
        REFUSED,
    )
    for event_name in ("BeforeTool", "AfterTool"):
        (folder := tmp_path / event_name).mkdir()
        with gate(folder, b'{"a": 1}\n', []) as environ:
            assert hook(event_name, **environ) == (0, {"a": 1})


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux says whose a socket is")
@pytest.mark.parametrize("ours", [True, False])
def test_only_the_run_s_own_socket_is_asked(tmp_path: Path, ours: bool) -> None:
    asked: list[bytes] = []
    pid = os.getpid() if ours else os.getppid()
    with gate(tmp_path, b'{"a": 1}\n' if ours else None, asked) as environ:
        said = hook("BeforeTool", **environ, GEMTUI_GATE_PID=str(pid))
    assert said == ((0, {"a": 1}) if ours else (2, REFUSED))
    assert any(asked) is ours, "another program gets nothing"


def test_a_session_that_outlives_the_extension_is_let_alone() -> None:
    (extension_dir() / "hook.sh").unlink()
    assert hook("BeforeTool") == (0, {})
    assert hook("BeforeTool", GEMTUI_GATE="/no/socket")[1] == REFUSED


# --- runs that ask -------------------------------------------------------------------------------


def test_the_answer_is_gemtuis(tmp_path: Path) -> None:
    asked: list[bytes] = []
    large = event("BeforeTool", tool_input={"content": "é\\u0000\u2028" * 700_000})
    answer = {"hookSpecificOutput": {"tool_input": {"content": "x" * 300_000}}}
    with gate(tmp_path, json.dumps(answer).encode() + b"\n", asked) as environ:
        assert hook("BeforeTool", large, **environ) == (0, answer)
    assert json.loads(asked[0]) == {"event": json.loads(large)}
    assert (live_dir() / str(os.getpid())).read_bytes()[:1000] == large[:1000]


def test_a_question_that_waits_is_noted_until_it_is_answered(tmp_path: Path) -> None:
    place, live = tmp_path / "gate", live_dir() / str(os.getpid())
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(place))
        server.listen()
        server.settimeout(PATIENCE)
        with start("BeforeTool", GEMTUI_GATE=str(place), GEMTUI_PYTHON=sys.executable) as process:
            assert process.stdin is not None
            process.stdin.write(event("BeforeTool"))
            process.stdin.close()
            process.stdin = None
            connection, _ = server.accept()
            with connection:
                until(lambda: b"gemtui_asks" in live.read_bytes())
                assert json.loads(live.read_bytes()) == {"gemtui_asks": "", **json.loads(event())}
                connection.sendall(b"{}\n")
            process.wait(PATIENCE)
    assert live.read_bytes() == event("BeforeTool")


def test_whether_it_asked_since_the_last_prompt_is_noted() -> None:
    asked = live_dir() / f"{os.getpid()}.asked"
    for name in ("Notification", "AfterTool"):
        hook(name)
        assert asked.exists()
    hook("BeforeAgent")
    assert not asked.exists()


@pytest.mark.parametrize("answer", [None, b"", b'{"decision":"allow"}', b"[]\n", b"\n", b"{\n"])
def test_no_whole_answer_refuses_the_call(tmp_path: Path, answer: bytes | None) -> None:
    with gate(tmp_path, answer, []) as environ:
        assert hook("BeforeTool", **environ) == (2, REFUSED)


@pytest.mark.parametrize("python", ["", "/no/python", "/bin/false"])
def test_without_python_a_call_is_refused(python: str) -> None:
    environ = {"GEMTUI_GATE": "/no/socket", "GEMTUI_PYTHON": python}
    assert hook("BeforeTool", **environ)[1] == REFUSED
    assert hook("AfterTool", **environ) == (0, {})


@pytest.mark.parametrize("victims", ["shell", "python", "all"])
def test_a_call_is_refused_if_its_hook_is_killed(tmp_path: Path, victims: str) -> None:
    place = tmp_path / "gate"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(place))
        server.listen()
        server.settimeout(PATIENCE)
        with start("BeforeTool", GEMTUI_GATE=str(place), GEMTUI_PYTHON=sys.executable) as process:
            assert process.stdin is not None
            process.stdin.write(event())
            process.stdin.close()
            process.stdin = None
            connection, _ = server.accept()
            with connection:
                shell = psutil.Process(process.pid)
                children = shell.children(recursive=True)
                for victim in {"shell": [shell], "python": children}.get(
                    victims, [shell, *children]
                ):
                    victim.send_signal(signal.SIGKILL)
                if victims != "shell":
                    process.wait(PATIENCE)
            stdout, stderr = process.communicate(timeout=PATIENCE)
    assert taken(stdout, stderr) == REFUSED


def test_python_that_says_nothing_is_no_answer() -> None:
    assert hook("BeforeTool", GEMTUI_GATE="/no", GEMTUI_PYTHON="/bin/true") == (0, REFUSED)


# --- the vault -----------------------------------------------------------------------------------


def test_a_session_is_copied_when_a_turn_or_the_session_ends(tmp_path: Path) -> None:
    chat = tmp_path / "it's é/chats/chat.jsonl"
    chat.parent.mkdir(parents=True)
    chat.write_text("one")
    about = {"transcript_path": str(chat)}
    vault_dir().mkdir()
    hook("AfterAgent", event("AfterAgent", **about))
    assert list(vault_dir().iterdir()) == []
    (vault_dir() / "on").touch()
    hook("BeforeTool", event("BeforeTool", **about))
    assert [path.name for path in vault_dir().iterdir()] == ["on"]
    for name, text in (("AfterAgent", "one"), ("SessionEnd", "one, two")):
        chat.write_text(text)
        hook(name, event(name, **about))
        assert Path(f"{vault_dir()}/copy{chat}").read_text() == text


def test_what_is_there_for_the_cli_is_all_of_the_extension() -> None:
    folder = extension_dir()
    files = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    assert files == {*content(folder), "checkpoint.sh"}
    manifest = json.loads((folder / "gemini-extension.json").read_bytes())
    assert manifest["name"] == "gemtui"
    hooks = json.loads((folder / "hooks/hooks.json").read_bytes())["hooks"]
    assert set(hooks) == set(EVENTS)
