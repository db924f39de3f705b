"""The provider: configuration, answers, files, failures."""

from __future__ import annotations

import asyncio
import json
import logging
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gemtui import GeminiCliProvider, ProviderError, ProviderResult, list_sessions
from gemtui.agent import process_tree
from gemtui.paths import runs_dir
from gemtui.runs.listing import list_runs
from tests.fake_cli import INIT, OK, FakeCli, ends, says, uses
from tests.model_server import ModelServer, answer, call, text
from tests.patience import PATIENCE, turns_until
from tests.real_cli import MODEL, GeminiCli
from tests.rows import each_row

pytestmark = pytest.mark.covers("gemtui/provider.py", "gemtui/agent", "gemtui/runs")


def words(tmp_path: Path) -> list[str]:
    return (tmp_path / "words").read_text().splitlines()


def prompt() -> str:
    (run,) = list_runs(runs_dir())
    return run.folder.prompt.read_text()


# --- configuration -------------------------------------------------------------------------------


def test_metadata() -> None:
    assert GeminiCliProvider.get_metadata() == {
        "name": "gemini-cli",
        "description": "Gemini CLI AI agent via subprocess",
        "requires_config": False,
        "config_keys": [
            "model",
            "sandbox",
            "approval_mode",
            "include_directories",
            "allowed_tools",
            "working_dir",
            "timeout",
            "trust",
        ],
        "default_response_timeout": 600,
        "fs_ability": "local-write",
    }


@each_row(
    ("config", "words"),
    [
        ({"timeout": 0}, "timeout must be > 0"),
        ({"timeout": -1.5}, "timeout must be > 0"),
        ({"timeout": True}, "timeout must be > 0"),
        ({"approval_mode": "bold"}, "approval_mode must be one of default, auto_edit, plan, yolo"),
        ({"approval_mode": ["yolo"]}, "approval_mode must be one of"),
        ({"include_directories": "src"}, "include_directories must be a list, got: 'src'"),
        ({"allowed_tools": ("glob",)}, "allowed_tools must be a list"),
        ({"allowed_tools": ["glob", "shell"]}, r"allowed_tools\[1\]: 'shell' is not a tool"),
        ({"allowed_tools": ["glob", 3]}, r"allowed_tools must be a list of strings, but \[1\]"),
        ({"allowed_tools": [Path("glob")]}, r"allowed_tools must be a list of strings, but \[0\]"),
        ({"sandbox": "yes"}, "sandbox must be True or False"),
        ({"trust": "yes"}, "trust must be True or False"),
        ({"model": ""}, "model must be a non-empty string"),
        ({"working_dir": 3}, "working_dir must be a path"),
    ],
)
def test_a_wrong_value_names_its_key(config: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        GeminiCliProvider(config)


def test_an_unknown_key_warns_and_names_the_known_ones() -> None:
    with pytest.warns(UserWarning, match=r"'modle': the keys are model, sandbox") as warned:
        GeminiCliProvider({"modle": "x", "model": None})
    assert warned[0].filename == __file__


def test_validate(fake_cli: FakeCli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fake_cli()
    GeminiCliProvider().validate()
    old = fake_cli(help='  -o, --output-format  [choices: "text", "json"]\n')
    old.write_text(old.read_text() + "# another one\n")
    with pytest.raises(ProviderError, match=r"Gemini CLI 0\.61\.0 is too old for runs: update it"):
        GeminiCliProvider().validate()
    old.write_text("#!/bin/sh\nexit 3\n")
    with pytest.raises(ProviderError, match="ended with exit code 3: reinstall"):
        GeminiCliProvider().validate()


@pytest.mark.usefixtures("no_cli")
def test_validate_without_a_cli() -> None:
    with pytest.raises(ProviderError, match="npm install -g @google/gemini-cli"):
        GeminiCliProvider().validate()


# --- a run ---------------------------------------------------------------------------------------


def test_the_answer_and_the_files(fake_cli: FakeCli, tmp_path: Path) -> None:
    fake_cli(
        f"print:{INIT}",
        says("Part 1. "),
        uses("t1", "write_file", "b.txt"),
        uses("t2", "replace", "a.txt"),
        uses("t3", "write_file", "failed.txt"),
        uses("t4", "read_file", "read.txt"),
        ends("t1"),
        ends("t2"),
        ends("t3", "error"),
        ends("t4"),
        uses("t5", "write_file", "b.txt"),
        ends("t5"),
        uses("t6", "write_file", "unanswered.txt"),
        says("Part 2."),
        f"print:{OK}",
    )
    result = GeminiCliProvider({"working_dir": tmp_path}).generate("Go")
    assert result == ProviderResult("Part 1. Part 2.", {"b.txt": None, "a.txt": None})
    assert list(result.files) == ["b.txt", "a.txt"]
    assert prompt() == "Go"


def test_the_command(fake_cli: FakeCli, tmp_path: Path) -> None:
    fake_cli(f"print:{INIT}", f"print:{OK}")
    first, second = tmp_path / "a", tmp_path / "b"
    first.mkdir()
    second.mkdir()
    provider = GeminiCliProvider(
        {
            "model": "pro",
            "sandbox": True,
            "approval_mode": "auto_edit",
            "include_directories": [str(first), str(second)],
            "allowed_tools": ["glob"],
        }
    )
    provider.generate("Go", {"project_root": str(tmp_path)}, system_prompt="Be brief.")
    given = words(tmp_path)
    assert {"--model=pro", "--sandbox", "--approval-mode=auto_edit"} <= set(given)
    assert [word for word in given if "include" in word] == [
        f"--include-directories={first}",
        f"--include-directories={second}",
    ]
    assert any(word.endswith("policy-last.toml") for word in given)
    assert prompt() == "Be brief.\n\nGo"
    (run,) = list_runs(runs_dir())
    assert run.cwd == str(tmp_path)


def test_the_default_mode_is_yolo(fake_cli: FakeCli, tmp_path: Path) -> None:
    fake_cli(f"print:{INIT}", f"print:{OK}")
    GeminiCliProvider().generate("Go")
    assert "--approval-mode=yolo" in words(tmp_path)
    GeminiCliProvider({"approval_mode": "default"}).generate("Go")
    assert "--approval-mode=yolo" not in words(tmp_path)


def test_its_own_folder_beats_the_project_s(fake_cli: FakeCli, tmp_path: Path) -> None:
    fake_cli(f"print:{INIT}", f"print:{OK}")
    (tmp_path / "own").mkdir()
    provider = GeminiCliProvider({"working_dir": tmp_path / "own"})
    provider.generate("Go", {"project_root": tmp_path})
    (run,) = list_runs(runs_dir())
    assert run.cwd == str(tmp_path / "own")


def test_a_prompt_file_is_named_in_one_word(fake_cli: FakeCli, tmp_path: Path) -> None:
    fake_cli(f"print:{INIT}", f"print:{OK}")
    GeminiCliProvider().generate("ignored", {"prompt_file": "/p/prompt.md"})
    assert words(tmp_path)[-1] == "--prompt=Process the prompt in /p/prompt.md"
    GeminiCliProvider().generate("by stdin", {"prompt_file": None})
    assert not any(word.startswith("--prompt") for word in words(tmp_path))


def test_an_empty_answer_is_an_answer(fake_cli: FakeCli) -> None:
    fake_cli(f"print:{INIT}", f"print:{OK}")
    assert GeminiCliProvider().generate("Go") == ProviderResult("", {})


def test_malformed_lines_are_logged_and_skipped(
    fake_cli: FakeCli, caplog: pytest.LogCaptureFixture
) -> None:
    fake_cli(f"print:{INIT}", "print:{bad json}", says("Fine."), f"print:{OK}")
    with caplog.at_level(logging.WARNING, "gemtui.provider"):
        assert GeminiCliProvider().generate("Go").response == "Fine."
    assert "{bad json}" in caplog.text


@pytest.mark.parametrize(
    ("end", "message"),
    [
        (("err:Please set an Auth method", "exit:41"), "Auth"),
        (("exit:7",), "exited with code 7"),
        (("exit:0",), "without a result"),
        (('print:{"type":"result","status":"error","error":{"message":"No."}}',), "No."),
        (("exit:53",), "turn limit"),
    ],
)
def test_a_failing_run_keeps_what_there_was(
    fake_cli: FakeCli, end: tuple[str, ...], message: str
) -> None:
    fake_cli(f"print:{INIT}", uses("t1", "write_file", "a.txt"), ends("t1"), says("Half of"), *end)
    with pytest.raises(ProviderError, match=message) as raised:
        GeminiCliProvider().generate("Go")
    assert raised.value.response == "Half of"
    assert raised.value.files == {"a.txt": None}


def test_a_timeout_is_said_in_seconds(fake_cli: FakeCli) -> None:
    fake_cli(f"print:{INIT}", says("Half"), "wait")
    with pytest.raises(ProviderError, match=r"timed out.* 4\.5s") as raised:
        GeminiCliProvider({"timeout": 4.5}).generate("Go")
    assert raised.value.response == "Half"
    with pytest.raises(ProviderError, match=r"timed out.* 0\.6s"):
        GeminiCliProvider().generate("Go", response_timeout=0.6)


def test_a_missing_cli_and_a_missing_folder(
    fake_cli: FakeCli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    fake_cli(f"print:{INIT}", f"print:{OK}")
    with pytest.raises(ProviderError, match=r"cwd: .*/none is not a folder"):
        GeminiCliProvider({"working_dir": str(tmp_path / "none")}).generate("Go")
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("GEMINI_CLI_PATH")
    monkeypatch.setattr("gemtui.agent.detect.usual_paths", lambda _: iter(()))
    with pytest.raises(ProviderError, match="Gemini CLI is not on PATH"):
        GeminiCliProvider().generate("Go")


def test_a_failure_tells_stderr_and_the_run(
    fake_cli: FakeCli, caplog: pytest.LogCaptureFixture
) -> None:
    fake_cli(f"print:{INIT}", says("Half"), "err:out of luck", "exit:7")
    caplog.set_level(logging.INFO, "gemtui.provider")
    with pytest.raises(ProviderError, match=r"exit code 7.*gemtui doctor") as raised:
        GeminiCliProvider().generate("Go")
    (run,) = list_runs(runs_dir())
    assert (raised.value.stderr, raised.value.run) == ("out of luck\n", run.folder.path)
    assert str(run.folder.path) in str(raised.value)
    told = [(record.levelname, record.getMessage()) for record in caplog.records]
    assert ("INFO", f"run {run.folder.path}: session s1") in told
    assert ("WARNING", "session s1: stderr: out of luck") in told
    assert told[-1][0] == "WARNING"
    assert told[-1][1].startswith("session s1 ended: error: Gemini CLI failed (exit code 7)")


def test_a_run_that_can_t_be_started_names_the_way_out(
    fake_cli: FakeCli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    fake_cli(f"print:{INIT}", f"print:{OK}")
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    with pytest.raises(ProviderError, match="run gemtui doctor to see what is wrong") as raised:
        GeminiCliProvider().generate("Go")
    assert raised.value.run is None


def test_a_folder_is_trusted_where_that_is_configured(fake_cli: FakeCli) -> None:
    variable = "GEMINI_CLI_TRUST_WORKSPACE"
    for trust in (False, True):
        fake_cli(f"print:{INIT}", f"print:{OK}")
        GeminiCliProvider({"trust": trust}).generate("Go")
        run = list_runs(runs_dir())[0].folder.request()
        assert run is not None
        assert run.environ.get(variable) == ("true" if trust else None)


async def test_from_a_running_loop(fake_cli: FakeCli) -> None:
    fake_cli(f"print:{INIT}", says("Hello"), f"print:{OK}")
    provider = GeminiCliProvider()
    assert (await provider.agenerate("Go")).response == "Hello"
    assert provider.generate("Go").response == "Hello"
    with pytest.raises(ProviderError, match="without a result"):
        fake_cli("exit:0") and provider.generate("Go")


async def test_cancelling_ends_the_run(fake_cli: FakeCli) -> None:
    fake_cli(f"print:{INIT}", "wait")
    task = asyncio.create_task(GeminiCliProvider().agenerate("Go"))
    await turns_until(lambda: any(run.folder.stdout.exists() for run in list_runs(runs_dir())))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    (run,) = list_runs(runs_dir())
    assert run.status == "interrupted"


@pytest.mark.deep
@pytest.mark.parametrize(
    "program",
    [
        "GeminiCliProvider().generate('Go')",
        "async def main(): GeminiCliProvider().generate('Go')\nasyncio.run(main())",
    ],
)
def test_ctrl_c_ends_the_run(fake_cli: FakeCli, program: str) -> None:
    fake_cli("orphan", f"print:{INIT}", "err:ready", "wait")
    code = f"import asyncio\nfrom gemtui import GeminiCliProvider\n{program}"
    process = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE)
    while not any(b"ready" in _bytes(run.folder.stderr) for run in list_runs(runs_dir())):
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=PATIENCE)
    assert process.returncode != 0
    assert b"KeyboardInterrupt" in said
    (run,) = list_runs(runs_dir())
    assert (run.status, process_tree.tagged(run.id)) == ("interrupted", set())


def _bytes(path: Path) -> bytes:
    return path.read_bytes() if path.exists() else b""


# --- the stored session --------------------------------------------------------------------------


def store(home: Path, id: str, *records: dict[str, Any]) -> None:
    chats = home / ".gemini/tmp/project/chats"
    chats.mkdir(parents=True, exist_ok=True)
    header = {"sessionId": id, "projectHash": "x", "startTime": "2026-01-02T03:04:05.000Z"}
    path = chats / f"session-2026-01-02T03-04-{id[:8]}.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in (header, *records)))


def test_the_stored_answer_repeats_nothing(fake_cli: FakeCli, home: Path) -> None:
    store(
        home,
        "s1",
        {"id": "1", "type": "user", "content": "before"},
        {"id": "2", "type": "gemini", "content": "Old answer."},
        {"id": "3", "type": "user", "content": "Go"},
        {"id": "4", "type": "gemini", "content": "Once."},
        {"id": "5", "type": "gemini", "content": "Done."},
    )
    fake_cli(f"print:{INIT}", says("Onc"), says("Once. "), says("Done."), f"print:{OK}")
    assert GeminiCliProvider().generate("Go").response == "Once.\n\nDone."


def test_a_stored_session_without_an_answer_is_none(fake_cli: FakeCli, home: Path) -> None:
    store(home, "s1", {"id": "1", "type": "user", "content": "Go"})
    store(home, "s1-other", {"id": "1", "type": "gemini", "content": "Another session."})
    fake_cli(f"print:{INIT}", says("Said."), f"print:{OK}")
    assert GeminiCliProvider().generate("Go").response == "Said."


def test_what_the_session_lacks_comes_from_the_stream(fake_cli: FakeCli, home: Path) -> None:
    call = {"id": "t1", "name": "read_file", "args": {}, "status": "success"}
    store(
        home,
        "s1",
        {"id": "1", "type": "user", "content": "Go"},
        {"id": "2", "type": "gemini", "content": "I will.", "toolCalls": [call]},
    )
    read = (uses("t1", "read_file", "a"), ends("t1"))
    fake_cli(f"print:{INIT}", says("I will. "), *read, says("Half of"), "exit:1")
    with pytest.raises(ProviderError) as raised:
        GeminiCliProvider().generate("Go")
    assert raised.value.response == "I will.\n\nHalf of"


def test_with_the_real_cli(gemini: GeminiCli, monkeypatch: pytest.MonkeyPatch) -> None:
    retried = answer(text("Wrote "), finish="MALFORMED_FUNCTION_CALL")
    turns = [
        answer(text("I will. "), call("write_file", file_path="new.txt", content="hi\n")),
        retried,
        answer(text("Wrote it.")),
    ]
    with ModelServer(turns) as model:
        for name, value in gemini.environment(model.url).items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("GEMINI_CLI_PATH", str(gemini.program))
        provider = GeminiCliProvider({"working_dir": gemini.project, "model": MODEL})
        provider.validate()
        result = provider.generate("Write it.")
    assert result == ProviderResult("I will.\n\nWrote it.", {"new.txt": None})
    assert result.model == MODEL
    assert result.session_id == list_sessions(home=gemini.home)[0].id
    assert (gemini.project / "new.txt").read_text() == "hi\n"
