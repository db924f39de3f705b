"""`gemtui run` and `gemtui runs` with a real child in the place of the CLI."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from gemtui.agent import process_tree
from gemtui.agent.adapter import UnguardedAdapter
from gemtui.agent.approval import Difference, GateFolder
from gemtui.agent.options import AgentOptions
from gemtui.agent.trust import remember
from gemtui.errors import OptionError
from gemtui.paths import runs_dir
from gemtui.policy.file.policy_files import policies_dir
from gemtui.runs.adapter import GeminiAdapter
from gemtui.runs.ending import RunState
from gemtui.runs.listing import list_runs
from tests.cli.conftest import Gemtui, has, put, start, values
from tests.fake_cli import INIT, OK, FakeCli, ends, says, uses
from tests.patience import PATIENCE, until
from tests.rows import each_row, table
from tests.runs import test_enrich as stored
from tests.runs.test_listing import add_run
from tests.runs.test_recorded_calls import loop
from tests.sessions import logs, stores
from tests.sessions.agents import claude_write

pytestmark = pytest.mark.covers("gemtui/commands", "gemtui/runs", "gemtui/agent")

TABLES = table("cli/run.json")

FAIL = '{"type":"result","status":"error","error":{"type":"x","message":"No quota left."}}'
TURNS = '{"type":"result","status":"error","error":{"type":"FatalTurnLimitedError","message":"x"}}'


def words(tmp_path: Path) -> list[str]:
    return (tmp_path / "words").read_text().splitlines()


def prompt() -> str:
    (run,) = list_runs(runs_dir())
    return run.folder.prompt.read_bytes().decode()


# --- what is shown -------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def small_folder(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """A current folder of which the first checkpoint needs no progress, on a busy machine too."""
    monkeypatch.chdir(tmp_path_factory.mktemp("current"))


def test_text_to_stdout_and_progress_to_stderr(fake_cli: FakeCli, gemtui: Gemtui) -> None:
    fake_cli(
        f"print:{INIT}",
        says("I will "),
        says("look."),
        uses("t1", "read_file", "a.py"),
        ends("t1"),
        uses("t2", "write_file", "b.txt"),
        ends("t2"),
        uses("t3", "write_file", "c.txt"),
        ends("t3", "denied"),
        says("Done."),
        "err:Attempt 1 failed with status 503. Retrying with backoff...",
        "err:Error executing tool x: noise",
        f"print:{OK}",
    )
    answer = gemtui("run Go")
    assert (answer.code, answer.out) == (0, "I will look.\nDone.\n")
    lines = answer.err.splitlines()
    assert [line for line in lines if line.startswith("  ")] == [
        "  read_file a.py",
        "  write_file b.txt",
        "  write_file c.txt",
        "  denied: write_file",
    ]
    assert "attempt 1 failed (503), retrying" in lines
    assert "noise" not in answer.err
    assert lines[-2].startswith("gemtui: done, but 1 tool call was denied (write_file: not perm")
    assert re.fullmatch(r"(\d+ ms|\d+\.\d s); 3 tool calls; wrote b\.txt; session s1", lines[-1])


def test_a_command_with_an_exit_code_counts_as_failed(
    home: Path, fake_cli: FakeCli, gemtui: Gemtui
) -> None:
    stored.store(home / ".gemini", stored.asked("Go"), stored.said("a", "", "t1"))
    start = INIT.replace("s1", stored.ID)
    fake_cli(
        f"print:{start}",
        uses("t1", "run_shell_command", "x"),
        ends("t1"),
        says("Done."),
        f"print:{OK}",
    )
    answer = gemtui("run Go")
    assert (answer.code, answer.out) == (0, "Done.\n")
    assert "  failed: run_shell_command: exit code 3" in answer.err.splitlines()
    answer.tells(
        "done, but 1 tool call failed: run_shell_command", "1 tool call, 1 failed; session"
    )
    *_, last = gemtui("run Go --json").events
    assert last["metadata"]["failedCalls"] == [
        {"toolUseId": "t1", "toolName": "run_shell_command", "exitCode": 3}
    ]
    listed, _ = gemtui.json("runs")["runs"]
    has(listed, outcome="warning", failed=1)


def test_a_call_that_was_dropped_as_a_repetition_is_told(
    home: Path, fake_cli: FakeCli, gemtui: Gemtui
) -> None:
    stored.store(
        home / ".gemini", stored.asked("Go"), loop("s") | {"timestamp": "2099-01-01T00:00:00.000Z"}
    )
    calls = [step for n in range(4) for step in (uses(f"t{n}", "glob", "x"), ends(f"t{n}"))]
    fake_cli(f"print:{INIT.replace('s1', stored.ID)}", *calls, says("Done."), f"print:{OK}")
    answer = gemtui("run Go")
    call = 'run_shell_command with arguments {"command":"true"}'
    assert (answer.code, answer.out) == (0, "Done.\n")
    answer.tells(
        "done, but Gemini CLI took a call after “Go” for a repetition, and neither it nor",
        f"was done: {call}: send that prompt again",
    )
    *_, last = gemtui("run Go --json").events
    assert last["metadata"]["droppedCalls"] == [{"prompt": "Go", "call": call}]
    assert (
        "warning  Gemini CLI took a call after “Go” for a repetition, and neither"
        in gemtui("runs show latest").out
    )


def test_json_is_one_event_a_line(fake_cli: FakeCli, gemtui: Gemtui) -> None:
    fake_cli(f"print:{INIT}", says(r"A\\u202eB\\u009b"), f"print:{OK}")
    answer = gemtui("run Go --json -m pro")
    assert (answer.code, answer.err) == (0, "")
    events = answer.events
    assert values(events, "type") == ["init", "text_delta", "text", "done"]
    assert events[0]["payload"]["model"] == "pro"
    assert events[1]["payload"] == {"delta": "A\u202eB\u009b"}
    assert {event["sessionId"] for event in events} == {"s1"}
    assert events[-1]["metadata"] == {"complete": True, "exitCode": 0}
    assert r"A\u202eB\u009b" in answer.out


def test_quiet_says_nothing_but_the_answer(fake_cli: FakeCli, gemtui: Gemtui) -> None:
    fake_cli(f"print:{INIT}", uses("t", "glob", "x"), "err:retry", says("Hi."), f"print:{OK}")
    answer = gemtui("run Go --quiet")
    assert (answer.code, answer.out, answer.err) == (0, "Hi.\n", "")


def test_foreign_text_can_not_act_on_the_terminal(fake_cli: FakeCli, gemtui: Gemtui) -> None:
    bad = r"\\u001b]52;c;eA==\\u0007\\u009b2J\\u202e"
    fake_cli(
        f"print:{INIT}",
        says(f"a{bad}b"),
        uses("t", f"glob{bad}", bad),
        r"err:retry \x1b[2J\u202e",
        f'print:{{"type":"result","status":"error","error":{{"message":"{bad}Bad"}}}}',
    )
    answer = gemtui("run Go")
    assert answer.code == 1
    assert answer.out == "a␛]52;c;eA==␇⟨U+009B⟩2J⟨U+202E⟩b\n"
    assert answer.err.replace("\n", "").isprintable()


# --- how it ends ---------------------------------------------------------------------------------


@each_row(
    "steps, code, words",
    [
        ((f"print:{INIT}", says("x"), f"print:{FAIL}"), 1, "No quota left."),
        ((f"print:{INIT}", says("x")), 1, "without a result"),
        (("err:Please set an Auth method.", "exit:41"), 1, "Please set an Auth method."),
        (
            (f"print:{INIT}", f"print:{TURNS}", "exit:53"),
            53,
            "continue the session (gemtui run --resume s1)",
        ),
        (
            (f"print:{INIT}", "err:Policy file error in a.toml:", f"print:{OK}"),
            1,
            "a policy file is broken",
        ),
    ],
)
def test_exit_codes(
    fake_cli: FakeCli, gemtui: Gemtui, steps: tuple[str, ...], code: int, words: str
) -> None:
    fake_cli(*steps)
    answer = gemtui("run Go --quiet")
    assert answer.code == code
    assert words in answer.complaint


def test_a_run_that_goes_on_is_ended_at_its_limits(fake_cli: FakeCli, gemtui: Gemtui) -> None:
    fake_cli(f"print:{INIT}", "wait")
    for limit, what in (
        ("--timeout 1", "timed out after 1s"),
        ("--idle-timeout 0.6", "no output for 0.6s"),
    ):
        answer = gemtui(f"run Go --quiet {limit}")
        assert answer.code == 124
        assert what in answer.complaint


@pytest.mark.usefixtures("no_cli")
def test_no_cli(gemtui: Gemtui) -> None:
    gemtui("run Go").fails("Gemini CLI is not installed: npm install -g @google/gemini-cli")
    events = gemtui("run Go --json").events
    assert values(events, "type") == ["init", "error", "done"]
    assert gemtui("run Go --dry-run").code == 1


def test_a_broken_and_an_old_cli_have_their_words(fake_cli: FakeCli, gemtui: Gemtui) -> None:
    fake_cli(help="  -m, --model  Model\n")
    gemtui("run Go").fails("update it to 0.30 or newer")
    program = fake_cli()
    program.write_text("#!/bin/sh\nexit 3\n")
    for words in ((), ("--dry-run",)):
        gemtui("run Go", *words).fails("ended with exit code 3: reinstall Gemini CLI")
    assert not list(runs_dir().glob("*"))


# --- signals -------------------------------------------------------------------------------------


@pytest.fixture
def running(fake_cli: FakeCli) -> Iterator[Any]:
    """Start `gemtui run` as a process, and give it back once the CLI has said something."""
    processes = []

    def begin(*steps: str, speaks: bool = True) -> subprocess.Popen[bytes]:
        fake_cli(f"print:{INIT}", *steps)
        command = [sys.executable, "-m", "gemtui", "run", "Go", "--json"]
        pipe = subprocess.PIPE
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe)
        processes.append(process)
        assert process.stdout is not None
        while speaks and json.loads(process.stdout.readline())["type"] != "text_delta":
            pass
        return process

    yield begin
    for process in processes:
        process.kill()
        process.communicate()


def hears(process: subprocess.Popen[bytes], words: bytes) -> None:
    """Read the errors of a process up to a line with these words."""
    assert process.stderr is not None
    while words not in (line := process.stderr.readline()):
        assert line, "it ended without a word"


def left() -> set[Any]:
    return {each for run in list_runs(runs_dir()) for each in process_tree.tagged(run.id)}


@pytest.mark.deep
@each_row("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_whole_tree(running: Any, number: signal.Signals) -> None:
    process = running("orphan", says("Half"), "wait")
    process.send_signal(number)
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert json.loads(out.splitlines()[-1])["payload"]["status"] == "interrupted"
    assert err.decode().splitlines() == [
        "gemtui: stopping the run; press ctrl+c again to kill it",
        (
            "gemtui: the run was stopped: continue the session (gemtui run --resume s1), or run it "
            "again"
        ),
    ]
    assert left() == set()


@pytest.mark.deep
def test_a_hangup_that_is_ignored_stays_so(running: Any) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        process = running(says("Half"), "wait")
    finally:
        signal.signal(signal.SIGHUP, before)
    process.send_signal(signal.SIGHUP)
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert err.count(b"stopping") == 1
    assert b"killing" not in err


def test_a_second_signal_kills_at_once(running: Any) -> None:
    process = running("stubborn", says("Stubborn"), "wait")
    process.send_signal(signal.SIGINT)
    hears(process, b"stopping")
    process.send_signal(signal.SIGINT)
    hears(process, b"killing")
    process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    (run,) = list_runs(runs_dir())
    assert run.exit is not None
    assert run.exit.ended is not None
    assert run.exit.started is not None
    assert run.exit.killed
    assert left() == set()


async def test_a_killed_gemtui_leaves_a_run_to_attach_to(running: Any) -> None:
    process = running(says("Half"), "wait")
    process.kill()
    process.communicate()
    (run,) = list_runs(runs_dir())
    assert run.state is RunState.RUNNING
    attached = UnguardedAdapter().attach(run.folder)
    assert attached is not None
    seen = []
    async for event in attached.events():
        seen.append(event.type)
        if event.type == "text_delta":
            attached.abort()
    assert seen == ["init", "text_delta", "text", "done"]
    (run,) = list_runs(runs_dir())
    assert (run.state, run.status) == (RunState.ENDED, "interrupted")
    assert left() == set()


@pytest.mark.deep
def test_a_reader_that_goes_ends_the_run_quietly(running: Any) -> None:
    process = running("line:10", "wait", speaks=False)
    process.stdout.close()
    assert process.wait(PATIENCE) == 0
    assert process.stderr.read() == b""
    assert left() == set()


@pytest.mark.deep
def test_a_reader_that_pauses_does_not_hold_up_ctrl_c(running: Any) -> None:
    process = running(f"line:{2_000_000}", says("x"), "wait", speaks=False)
    assert process.stdout.read(1)
    until(left)
    process.send_signal(signal.SIGINT)
    hears(process, b"stopping")
    (run,) = list_runs(runs_dir())
    until(run.folder.exit)
    process.communicate(timeout=PATIENCE)
    assert process.returncode == 130


# --- prompts and options -------------------------------------------------------------------------


def test_prompts_from_a_file_and_from_stdin(
    fake_cli: FakeCli, gemtui: Gemtui, tmp_path: Path
) -> None:
    fake_cli(f"print:{INIT}", f"print:{OK}")
    file = tmp_path / "prompt.md"
    file.write_bytes("\ufeff- Élan\r\nmore".encode())
    gemtui.ok("run --prompt-file", file)
    assert prompt() == "- Élan\r\nmore"
    done = start("run - --quiet", given=b"from stdin")
    assert (done.returncode, done.stderr) == (0, b"")
    assert list_runs(runs_dir())[0].prompt == "from stdin"


@contextmanager
def stdin_from(number: int) -> Iterator[None]:
    """Let stdin be another open file."""
    before = os.dup(0)
    os.dup2(number, 0)
    try:
        yield
    finally:
        os.dup2(before, 0)
        os.close(before)


def pipe_with(content: bytes) -> int:
    """Return the end to read of a pipe that holds this, and no more to come."""
    reading, writing = os.pipe()
    os.write(writing, content)
    os.close(writing)
    return reading


def test_what_is_piped_in_follows_the_prompt(
    fake_cli: FakeCli, gemtui: Gemtui, tmp_path: Path
) -> None:
    fake_cli(f"print:{INIT}", f"print:{OK}")
    difference = b"-old\n+new\n"
    file = tmp_path / "diff"
    file.write_bytes(difference)
    for number, more in (
        (pipe_with(difference), "\n\n-old\n+new\n"),
        (os.open(file, os.O_RDONLY), "\n\n-old\n+new\n"),
        (pipe_with(b""), ""),
    ):
        with stdin_from(number):
            gemtui.ok("run --quiet", "Review this")
        os.close(number)
        assert list_runs(runs_dir())[0].folder.prompt_text() == f"Review this{more}"


def test_a_socket_on_stdin_that_stays_silent_holds_nothing_up(
    fake_cli: FakeCli, gemtui: Gemtui, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gemtui.commands.run_options.SILENCE", 0.1)
    fake_cli(f"print:{INIT}", f"print:{OK}")
    ours, theirs = socket.socketpair()
    with ours, theirs, stdin_from(theirs.fileno()):
        answer = gemtui("run Go")
    assert answer.code == 0
    assert "nothing arrived on stdin" in answer.err
    assert prompt() == "Go"


def test_the_options_reach_the_cli(fake_cli: FakeCli, gemtui: Gemtui, tmp_path: Path) -> None:
    fake_cli(f"print:{INIT}", f"print:{OK}")
    project = tmp_path / "project"
    project.mkdir()
    policies = policies_dir()
    put(policies / "careful.toml", "")
    own = tmp_path / "own.toml"
    own.write_text("")
    gemtui.ok(
        *("run", "Go", "-C", project, "-m", "pro", "--approval-mode", "auto_edit"),
        *("--file-write", "deny", "--shell", "allow", "--network", "ask"),
        *("--only-tool", "glob", "--only-tool", "read_file", "--allow-tool", "mcp_s_x"),
        *("--deny-tool", "write_todos", "--policy", "careful", "--policy", own),
        *("--include-directory", tmp_path, "--max-turns", "3", "--timeout", "50", "--sandbox"),
    ).tells("note: headless runs can't ask")
    given = words(tmp_path)
    assert {
        "--model=pro",
        "--approval-mode=auto_edit",
        "--sandbox",
        f"--include-directories={tmp_path}",
        f"--policy={policies}/careful.toml",
        f"--policy={own}",
    } <= set(given)
    (run,) = list_runs(runs_dir())
    assert run.cwd == str(project)
    rules = (run.folder.path / "policy-first.toml").read_text()
    assert re.findall(r'toolName = "(.*)"', rules) == [
        "replace",
        "write_file",
        "write_todos",
        "*",
        "google_web_search",
        "web_fetch",
        "grep_search",
    ]
    request = run.folder.request()
    assert request is not None
    assert request.timeout == 50


def test_trust_is_for_this_run(fake_cli: FakeCli, gemtui: Gemtui) -> None:
    fake_cli(f"print:{INIT}", f"print:{OK}")
    gemtui("run Go")
    gemtui("run Go --trust")
    trusted, plain = (run.folder.request() for run in list_runs(runs_dir()))
    assert trusted is not None
    assert plain is not None
    assert trusted.environ["GEMINI_CLI_TRUST_WORKSPACE"] == "true"
    assert "GEMINI_CLI_TRUST_WORKSPACE" not in plain.environ
    remember(Path.cwd())
    gemtui("run Go")
    remembered = list_runs(runs_dir())[0].folder.request()
    assert remembered is not None
    assert remembered.environ["GEMINI_CLI_TRUST_WORKSPACE"] == "true"


@each_row("value, passed", TABLES["a_trust_variable_that_has_an_effect_is_kept"])
def test_a_trust_variable_that_has_an_effect_is_kept(
    fake_cli: FakeCli,
    gemtui: Gemtui,
    monkeypatch: pytest.MonkeyPatch,
    value: str,
    passed: str | None,
) -> None:
    fake_cli(f"print:{INIT}", f"print:{OK}")
    monkeypatch.setenv("GEMINI_CLI_TRUST_WORKSPACE", value)
    gemtui("run Go --trust")
    request = list_runs(runs_dir())[0].folder.request()
    assert request is not None
    assert request.environ.get("GEMINI_CLI_TRUST_WORKSPACE") == passed


@each_row(
    "typed, same",
    [
        ("-p Go", "Go"),
        ("--prompt=Go", "Go"),
        ("-y Go", "Go --approval-mode yolo"),
        ("Go --yolo --approval-mode yolo", "Go --approval-mode yolo"),
        ("Go -s", "Go --sandbox"),
        ("Go --skip-trust", "Go --trust"),
    ],
)
def test_options_that_people_know_from_gemini_cli_mean_the_same(
    fake_cli: FakeCli, gemtui: Gemtui, typed: str, same: str
) -> None:
    fake_cli()
    shown, expected = (
        re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}", "ID", gemtui(f"run {options} --dry-run --json").out)
        for options in (typed, same)
    )
    assert "ID" in shown
    assert shown == expected


@each_row("given, what", TABLES["what_does_not_fit_starts_nothing"])
def test_what_does_not_fit_starts_nothing(
    fake_cli: FakeCli, gemtui: Gemtui, given: list[str], what: str
) -> None:
    fake_cli(f"print:{INIT}", f"print:{OK}")
    answer = gemtui("run", *given)
    assert answer.code == (1 if "No such file" in what else 2)
    assert what in answer.err.splitlines()[0]
    assert not runs_dir().exists()


def test_a_prompt_that_is_not_utf8(fake_cli: FakeCli, gemtui: Gemtui, tmp_path: Path) -> None:
    (tmp_path / "latin").write_bytes(b"caf\xe9")
    gemtui("run --prompt-file", tmp_path / "latin").refuses("is not valid UTF-8 (byte 3)")


# --- sessions ------------------------------------------------------------------------------------


def session(home: Path, id: str, project: Path, minute: int, prompt: str = "hello") -> None:
    records = [logs.header(id, lastUpdated=logs.at(minute)), logs.user("1", prompt)]
    stores.session(
        home / ".gemini", id, records, key=project.name, minute=f"2026-01-02T03-{minute:02}"
    )
    stores.marker(home / ".gemini", project.name, str(project))


def test_a_session_is_resumed_by_its_full_id(
    fake_cli: FakeCli, gemtui: Gemtui, home: Path, tmp_path: Path
) -> None:
    fake_cli(f"print:{INIT}", f"print:{OK}")
    one, other = tmp_path / "one", tmp_path / "other"
    one.mkdir()
    other.mkdir()
    old, new, elsewhere = (f"{digit * 8}-0000-4000-8000-000000000000" for digit in "123")
    session(home, old, one, 1)
    session(home, new, one, 2)
    session(home, elsewhere, other, 3)
    for wanted, id in (
        ("11111111", old),
        ("latest", new),
        (old, old),
        (f" {old} ", old),
        (" latest", new),
    ):
        gemtui.ok("run Go -C", one, "--resume", wanted)
        assert f"--resume={id}" in words(tmp_path)
    gemtui("run Go -C", one, "--resume", "3333").refuses(
        f"belongs to {other} and can only be continued there: add --cwd {other}"
    )
    assert gemtui("run Go -C", tmp_path, "--resume", "latest").code == 2
    other.rmdir()
    gemtui("run Go -C", one, "--resume", "3333").refuses(
        f"belongs to {other}, which is not there any more", f"gemtui sessions move {other} NEW"
    )


def test_the_latest_session_to_resume_is_one_that_the_cli_does_not_skip(
    fake_cli: FakeCli, gemtui: Gemtui, home: Path, tmp_path: Path
) -> None:
    fake_cli(f"print:{INIT}", f"print:{OK}")
    folder = tmp_path / "one"
    folder.mkdir()
    commands = "22222222-0000-4000-8000-000000000000"
    session(home, commands, folder, 2, "/resume")
    for wanted in ("latest", commands):
        gemtui("run Go -C", folder, "--resume", wanted).refuses(f"{commands} has nothing to resume")
    talk = "11111111-0000-4000-8000-000000000000"
    session(home, talk, folder, 1)
    gemtui.ok("run Go -C", folder, "--resume", "latest")
    assert f"--resume={talk}" in words(tmp_path)
    gemtui.ok("show latest --project", folder)


def test_the_library_resumes_the_session_that_was_updated_last(
    fake_cli: FakeCli, home: Path, tmp_path: Path
) -> None:
    fake_cli(f"print:{INIT}", f"print:{OK}")
    first, second = (f"{digit * 8}-0000-4000-8000-000000000000" for digit in "12")
    session(home, first, tmp_path, 1)
    session(home, second, tmp_path, 2)
    (file,) = home.rglob("session-*-11111111.jsonl")
    with file.open("a") as log:
        log.write('{"$set": {"lastUpdated": "2026-12-24T10:00:00.000Z"}}\n')

    async def resumed() -> None:
        options = AgentOptions(resume=" latest ", cwd=tmp_path)
        assert [event.type async for event in GeminiAdapter().run("Go", options)][-1] == "done"

    asyncio.run(resumed())
    assert f"--resume={first}" in words(tmp_path)
    with pytest.raises(OptionError, match="5 is a number"):
        AgentOptions(resume="5")


def test_a_session_goes_on_with_the_agent_that_wrote_it(
    fake_cli: FakeCli, gemtui: Gemtui, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gemini, claude = fake_cli(), tmp_path / "bin/claude"
    claude.parent.mkdir()
    claude.write_text("#!/bin/sh\necho 2.1.332\n")
    claude.chmod(0o755)
    monkeypatch.setenv("PATH", f"{claude.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("HOME", str(home))
    ours, theirs = stores.uuid(1), stores.uuid(2)
    session(home, ours, tmp_path, 1)
    claude_write(home, theirs, tmp_path / "a.txt", "x")
    for words_given, program, id in (
        (("--resume", theirs), claude, theirs),
        (("--agent", "claude", "--resume", "latest"), claude, theirs),
        (("--agent", "gemini", "--resume", "latest"), gemini, ours),
        (("--resume", ours), gemini, ours),
    ):
        argv = gemtui.ok("run Go --dry-run --json -C", tmp_path, *words_given).json["argv"]
        assert (argv[0], argv[-1]) == (str(program), f"--resume={id}")
    wrong = gemtui("run Go --agent claude --sandbox")
    assert "sandbox: Claude Code has no such option in gemtui" in wrong.complaint


def test_a_run_goes_on_in_a_fork(
    fake_cli: FakeCli, gemtui: Gemtui, home: Path, tmp_path: Path
) -> None:
    fake_cli(f"print:{INIT}", f"print:{OK}")
    old = "11111111-0000-4000-8000-000000000000"
    session(home, old, tmp_path, 1)
    for wanted, forked in ((old, True), ("1111:2", True), ("latest:1", False)):
        answer = gemtui.ok("run Go -C", tmp_path, "--fork", wanted)
        resumed = [each for each in words(tmp_path) if "--resume=" in each]
        assert len(resumed) == forked
        if resumed:
            id = resumed[0].removeprefix("--resume=")
            assert id != old
            answer.tells("before prompt 2 of", f" to {id}")
    for words_given in (["--fork", old, "--resume", old], ["--fork", old, "--dry-run"]):
        assert gemtui("run Go -C", tmp_path, *words_given).code == 2
    assert (
        "so there is no prompt 9" in gemtui("run Go -C", tmp_path, "--fork", f"{old}:9").complaint
    )


# --- dry run -------------------------------------------------------------------------------------


def test_a_dry_run_is_the_script_of_the_run(
    fake_cli: FakeCli, gemtui: Gemtui, tmp_path: Path
) -> None:
    program = fake_cli()
    nasty = 'It\'s\n\x1b[2J\u202e \\ "x" é'
    given = ("run", nasty, "--deny-tool", "glob", "--max-turns", "2", "-m", "a b")
    answer = gemtui(*given, "--dry-run")
    assert (answer.code, answer.err) == (0, "")
    assert answer.out.replace("\n", "").isprintable()
    assert "'--model=a b'" in answer.out
    assert not runs_dir().exists()
    subprocess.run(
        ["bash", "-c", answer.out], stdin=subprocess.DEVNULL, check=True, timeout=PATIENCE
    )
    (written,) = runs_dir().glob("*/prompt.txt")
    assert written.read_text() == nasty
    shown = words(tmp_path)
    report = gemtui.json(*given, "--dry-run")
    assert report["argv"][0] == str(program)
    assert report["stdin"] == nasty
    gemtui(*given)
    places = re.compile(r"[0-9a-f-]{36}")
    real = [places.sub("ID", word) for word in words(tmp_path)]
    assert [places.sub("ID", word) for word in shown] == real
    assert [places.sub("ID", word) for word in report["argv"][1:]] == real


# --- runs ----------------------------------------------------------------------------------------


def test_runs_are_listed(fake_cli: FakeCli, gemtui: Gemtui) -> None:
    assert gemtui("runs").complaint.endswith("start one with gemtui run")
    assert gemtui.json("runs") == {"version": 1, "place": str(runs_dir()), "runs": []}
    add_run(runs_dir(), "11111111-old", age=5)
    fake_cli(f"print:{INIT}", says("x"))
    gemtui("run", "First line\nsecond")
    answer = gemtui("runs")
    head, new, old = answer.out.splitlines()
    assert head.split() == ["ID", "AGE", "STATE", "TIME", "SIZE", "FOLDER", "PROMPT"]
    assert "incomplete" in new
    assert new.endswith("First line")
    assert old.startswith("11111111  ")
    assert "done" in old
    newest = gemtui.json("runs")["runs"][0]
    has(newest, state="ended", status="success", complete=False)
    has(newest, session="s1", cwd=str(Path.cwd()))
    assert newest["started"].endswith("Z")


def test_a_run_with_refusals_is_told_from_a_success(fake_cli: FakeCli, gemtui: Gemtui) -> None:
    refused = '{"type":"tool_result","tool_id":"t1","status":"error","output":"","error":'
    refused += '{"type":"policy_violation","message":"Tool execution denied by policy."}}'
    used = uses("t1", "write_file", "a.txt")
    fake_cli(f"print:{INIT}", used, f"print:{refused}", says("No."), f"print:{OK}")
    gemtui("run Write")
    assert "done, 1 denied" in gemtui("runs").out
    assert "state    done, 1 denied" in gemtui("runs show latest").out
    (run,) = gemtui.json("runs")["runs"]
    has(run, status="success", outcome="refused", refused=1, failed=0)


@each_row("mode", ["auto_edit", "yolo"])
def test_a_call_that_a_rule_denied_is_told_as_the_rules_work(
    fake_cli: FakeCli, gemtui: Gemtui, tmp_path: Path, mode: str
) -> None:
    rule = (
        '[[rule]]\ntoolName = "write_file"\nargsPattern = "a.txt"\ndecision = "deny"\npriority '
        "= 9\n"
    )
    (policy := tmp_path / "work.toml").write_text(rule)
    refused = {"type": "policy_violation", "message": "Tool execution denied by policy."}
    result = json.dumps(
        {"type": "tool_result", "tool_id": "t1", "status": "error", "error": refused}
    )
    fake_cli(
        f"print:{INIT}",
        uses("t1", "write_file", "a.txt"),
        f"print:{result}",
        says("No."),
        f"print:{OK}",
    )
    told = "write_file: denied as your policy says, by rule 1 of work.toml ("
    answer = gemtui("run Write --policy", policy, "--approval-mode", mode)
    assert f"gemtui: done; 1 tool call was denied by your own rules ({told}" in answer.err
    shown = gemtui("runs show latest")
    assert told in shown.out
    (denial,) = gemtui.json("runs show latest")["run"]["denials"]
    assert denial.startswith(told)
    assert "yolo" not in answer.err + shown.out
    events = gemtui("run Write --json --policy", policy, "--approval-mode", mode).out
    (denied,) = json.loads(events.splitlines()[-1])["metadata"]["deniedCalls"]
    assert denied["reason"].startswith(told.removeprefix("write_file: "))
    assert denied["cliReason"] == "denied by a policy"


def test_a_denied_call_fails_a_run_if_that_is_wanted(fake_cli: FakeCli, gemtui: Gemtui) -> None:
    used, end = uses("t1", "write_file", "a.txt"), f"print:{OK}"
    fake_cli(f"print:{INIT}", used, ends("t1", "denied"), says("No."), end)
    gemtui.ok("run Write")
    answer = gemtui("run Write --fail-on-denied --json")
    assert answer.code == 1
    assert "gemtui: nothing was changed: 1 tool call was denied (write_file" in answer.err
    done = json.loads(answer.out.splitlines()[-1])
    (denied,) = done["metadata"]["deniedCalls"]
    has(denied, toolUseId="t1", toolName="write_file")
    fake_cli(f"print:{INIT}", used, ends("t1", "success"), says("Yes."), end)
    answer = gemtui("run Write --fail-on-denied --json")
    assert (answer.code, "deniedCalls" in answer.out) == (0, False)


def test_runs_are_listed_by_two_names_and_cleared(gemtui: Gemtui) -> None:
    add_run(runs_dir(), "one")
    add_run(runs_dir(), "two")
    assert gemtui("runs list").out == gemtui("runs").out
    expected = gemtui.json("runs")
    assert gemtui.json("runs list") == gemtui("runs --json list").json == expected
    assert gemtui("runs clear").complaint.startswith("gemtui: removed 2 runs from")
    assert gemtui.json("runs")["runs"] == []
    assert gemtui.json("runs clear")["removed"] == 0


def test_one_run_is_shown(gemtui: Gemtui) -> None:
    folder = add_run(runs_dir(), "11111111-2222")
    add_run(runs_dir(), "22222222-2222", age=5)
    folder.write("prompt.txt", "First\n\x1b]0;x\x07second\n")
    answer = gemtui("runs show 111")
    assert answer.out.startswith("run      11111111-2222\nagent    Gemini CLI\nstate    done\n")
    *_, blank, first, second = answer.out.splitlines()
    assert (blank, first) == ("", "First")
    assert second.endswith("second")
    assert second.isprintable()
    shown = gemtui.json("runs show latest")
    assert shown["version"] == 1
    has(shown["run"], id="11111111-2222", session="s1")
    assert shown["run"]["prompt"] == "First\n\x1b]0;x\x07second\n"


def test_a_file_that_differs_from_what_was_approved_is_shown_with_both_texts(
    gemtui: Gemtui,
) -> None:
    gate = GateFolder.of(add_run(runs_dir(), "11111111-2222"))
    gate.create()
    gate.differs(Difference(number=3, path="/p/a.txt", approved="new\n", found="other\x1b\n"))
    gate.differs(Difference(number=4, path="/p/b.txt", approved="new\n"))
    out = gemtui("runs show latest").out
    assert "differs  /p/a.txt differs from what you approved in question 3\n" in out
    assert "-new\n         +other␛\n" in out
    assert "in question 4\n         the file has no readable text\n" in out
    told = gemtui.json("runs show latest")["run"]["differences"]
    assert values(told, "number", "found") == [(3, "other\x1b\n"), (4, None)]


def test_the_files_of_a_run_are_shown(gemtui: Gemtui, fake_cli: FakeCli, tmp_path: Path) -> None:
    steps = [uses("t1", "write_file", "a.txt"), ends("t1"), uses("t2", "replace", r"\\u001b[31mb")]
    fake_cli(f"print:{INIT}", *steps, ends("t2", "error"), says("Done."), f"print:{OK}")
    gemtui.ok("run go --trust")
    answer = gemtui("runs show latest")
    assert "files    1 file, line counts unknown\n         ? a.txt\n" in answer.out
    assert "\x1b" not in answer.out
    assert "b not written" in answer.out
    files = gemtui.json("runs show latest")["run"]["files"]
    assert values(files, "letter", "status", "by") == [
        ("?", "written", "tool"),
        ("?", "not written", "tool"),
    ]
    assert files[0]["path"].endswith("/a.txt")


def test_a_run_must_be_named_clearly(gemtui: Gemtui) -> None:
    add_run(runs_dir(), "11111111-a")
    add_run(runs_dir(), "11111111-b", age=5)
    gemtui("runs show nothing").refuses("no run has the id 'nothing'")
    for id in ("1111", "s1"):
        several = gemtui("runs restore", id)
        assert several.code == 2
        assert [line.split()[0] for line in several.err.splitlines()[1:]] == [
            "11111111-a",
            "11111111-b",
        ]


def test_a_run_needs_no_screen(fake_cli: FakeCli, gemtui: Gemtui) -> None:
    fake_cli(f"print:{INIT}", says("Hi"), f"print:{OK}")
    code = "from gemtui.cli import main; import sys; main(['run','x','--quiet']); main(['runs'])"
    done = subprocess.run(
        [sys.executable, "-c", f"{code}; assert not {{'textual', 'rich'}} & set(sys.modules)"],
        capture_output=True,
        timeout=PATIENCE,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert gemtui("run --help").out.startswith("Usage: gemtui run")


@each_row("option", ["--only-tool", "--allow-tool", "--deny-tool"])
@each_row("command", ["run x --dry-run", "policy flags careful"])
def test_a_mistaken_tool_name_is_an_error_and_an_unknown_one_a_note(
    gemtui: Gemtui, home: Path, fake_cli: FakeCli, option: str, command: str
) -> None:
    fake_cli()
    put(policies_dir() / "careful.toml", "")
    gemtui(command, option, "read_fil").refuses(
        f"{option}: 'read_fil' is not a tool; did you mean read_file?"
    )
    gemtui.ok(command, option, "nosuch").shows("gemtui knows no tool called 'nosuch'")


# --- a quota that is used up ---------------------------------------------------------------------

QUOTA = (
    '{"type":"result","status":"error","error":{"type":"unknown",'
    '"message":"[API Error: Your quota will reset after 2h0m0s.]"}}'
)


@each_row("spoke, sent", [(True, "Continue where you stopped."), (False, "go")])
def test_a_run_that_waits_for_its_quota_continues_by_itself(
    fake_cli: FakeCli,
    gemtui: Gemtui,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    spoke: bool,
    sent: str,
) -> None:
    untils = []

    async def wait_until(when: datetime, _stopped: asyncio.Event) -> bool:
        untils.append(when)
        fake_cli(f"print:{INIT}", says("All done."), f"print:{OK}")
        return True

    monkeypatch.setattr("gemtui.commands.run.wait_until", wait_until)
    fake_cli(f"print:{INIT}", *([says("Half")] if spoke else []), f"print:{QUOTA}", "exit:173")
    answer = gemtui("run --wait-for-quota go")
    assert (answer.code, answer.out) == (0, "Half\nAll done.\n" if spoke else "All done.\n")
    assert "waiting until" in answer.err
    assert timedelta(hours=1) < untils[0] - datetime.now(UTC) <= timedelta(hours=2)
    last = list_runs(runs_dir())[0]
    assert last.folder.prompt.read_text() == sent
    assert ("--resume=s1" in words(tmp_path)) is spoke


def test_a_used_up_quota_says_until_when(fake_cli: FakeCli, gemtui: Gemtui) -> None:
    fake_cli(f"print:{INIT}", f"print:{QUOTA}", "exit:173")
    answer = gemtui("run go")
    assert answer.code == 1
    assert re.search(r"used up.*, until .*\d\d:\d\d.*--wait-for-quota", answer.complaint)
