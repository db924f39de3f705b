"""`gemtui run` as a process, with the real CLI on loopback."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from gemtui.agent import process_tree
from gemtui.jsonout import iso
from gemtui.paths import runs_dir
from gemtui.runs.listing import list_runs
from gemtui.sessions.catalog.summary import Summary
from tests.cli.conftest import Gemtui, values
from tests.model_server import ModelServer, answer, call, shell, text, writes
from tests.patience import PATIENCE
from tests.real_cli import MODEL, GeminiCli
from tests.sessions import logs, stores

pytestmark = pytest.mark.covers("gemtui/commands", "gemtui/runs", "gemtui/agent")

Words = tuple[str | Path, ...]


def begin(cli: GeminiCli, model: ModelServer, *words: str) -> subprocess.Popen[bytes]:
    options = ("-C", str(cli.project), "-m", MODEL, "--approval-mode", "yolo")
    return subprocess.Popen(
        [sys.executable, "-m", "gemtui", "run", *options, *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "GOOGLE_GEMINI_BASE_URL": model.url},
    )


def finish(process: subprocess.Popen[bytes]) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=PATIENCE)
    return process.returncode, out.decode(), err.decode()


@pytest.mark.usefixtures("relaunching")
@pytest.mark.every_run
def test_events_as_json(on_loopback: GeminiCli) -> None:
    turns = [answer(text("I will."), writes("a.txt", "hi\n")), answer(text("Done."))]
    with ModelServer(turns) as model:
        code, out, err = finish(begin(on_loopback, model, "Write", "--json"))
    assert (code, err) == (0, "")
    events: list[dict[str, Any]] = [json.loads(line) for line in out.splitlines()]
    assert values(events, "type") == [
        "init",
        "text_delta",
        "text",
        "tool_use",
        "tool_result",
        "text_delta",
        "text",
        "done",
    ]
    assert events[3]["payload"]["toolName"] == events[4]["payload"]["toolName"] == "write_file"
    assert events[-1]["payload"]["usage"]["toolUses"] == 1
    (run,) = list_runs(runs_dir())
    assert {event["sessionId"] for event in events[1:]} == {run.session}
    assert (on_loopback.project / "a.txt").read_text() == "hi\n"


@pytest.mark.usefixtures("relaunching")
def test_ctrl_c_while_a_shell_command_sleeps(on_loopback: GeminiCli, tmp_path: Path) -> None:
    mark = tmp_path / "asleep"
    turns = [answer(shell(f"touch {mark}; sleep 600"))]
    with ModelServer(turns) as model:
        process = begin(on_loopback, model, "Sleep")
        while not mark.exists():
            assert process.poll() is None, finish(process)
        (run,) = list_runs(runs_dir())
        assert len(process_tree.tagged(run.id)) >= 3
        process.send_signal(signal.SIGINT)
        code, out, err = finish(process)
    assert (code, out) == (130, "")
    assert f"run_shell_command touch {mark}; sleep 600" in err
    assert "the run was stopped (1 tool call had not finished" in err
    assert f"gemtui run --resume {run.session}" in err
    assert process_tree.tagged(run.id) == set()


def test_the_session_that_was_updated_last_goes_on(on_loopback: GeminiCli, gemtui: Gemtui) -> None:
    with ModelServer([answer(text("The word is plum.")), answer(text("Plum."))]) as model:
        assert finish(begin(on_loopback, model, "A word?"))[0] == 0
        (session,) = stores.read(on_loopback.store).sessions
        add_started_last(session)
        code, out, err = finish(begin(on_loopback, model, "Which?", "--resume", "latest"))
        assert "The word is plum." in str(model.asked[-1].body["contents"])
    assert (code, out) == (0, "Plum.\n")
    first, second = list_runs(runs_dir())
    assert first.session == second.session
    assert f"session {first.session}" in err


def add_started_last(session: Summary) -> None:
    """Store another session, which Gemini CLI's own `latest` means: it was started last."""
    assert session.started is not None
    started = iso(session.started + timedelta(milliseconds=1))
    header = logs.header(id=stores.uuid(2), startTime=started, lastUpdated=started)
    records = [header, logs.user("u", "A word?"), logs.gemini("g", "The word is pear.")]
    path = session.path.with_name(session.path.name.replace(session.id[:8], stores.uuid(2)[:8]))
    path.write_text("".join(json.dumps(each) + "\n" for each in records))


def test_the_list_tells_a_run_with_refusals_from_a_success(
    on_loopback: GeminiCli, gemtui: Gemtui
) -> None:
    failing = answer(shell("exit 3"))
    write = answer(writes("a.txt", "hi"))
    deny = on_loopback.folder / "deny.toml"
    deny.write_text(
        '[[rule]]\ntoolName = "write_file"\nargsPattern = "a"\ndecision = "deny"\npriority = 9\n'
    )
    with ModelServer([failing, answer(text("So.")), failing, write, answer(text("So."))]) as model:
        assert finish(begin(on_loopback, model, "Go"))[0] == 0
        assert finish(begin(on_loopback, model, "Go", "--policy", str(deny)))[0] == 0
    refused, plain = gemtui.json("runs")["runs"]
    told = values((refused, plain), "outcome", "refused", "failed")
    assert told == [("refused", 1, 1), ("warning", 0, 1)], (
        "an exit code is a failure and no refusal"
    )
    _, first, second = gemtui("runs").out.splitlines()
    assert "done, 1 denied" in first
    assert "done" in second


def test_a_search_runs_no_program_where_nobody_is_asked(
    on_loopback: GeminiCli, gemtui: Gemtui
) -> None:
    """Nor does the policy that prevents it replace the user's own."""
    project = on_loopback.project
    subprocess.run(["git", "init", "-q", project], check=True)
    (project / "a.txt").write_text("2\n")
    own = on_loopback.store / "policies"
    own.mkdir()
    rule = '[[rule]]\ntoolName = "{}"\ndecision = "{}"\npriority = 999\n'
    (own / "own.toml").write_text(rule.format("grep_search", "allow") + rule.format("glob", "deny"))
    search = {"pattern": "--open-files-in-pager=touch ran;", "include_pattern": "a.txt"}
    turns = [
        answer(call("grep_search", **search), call("grep_search", pattern="[2]")),
        answer(text("Done.")),
    ]
    for mode in ("auto_edit", "plan"):
        with ModelServer(turns) as model:
            process = begin(on_loopback, model, "Go", "--approval-mode", mode, "--network", "deny")
            assert finish(process)[0] == 0
            told = json.dumps(model.asked[-1].body)
        assert "Write its first character as" in told
        assert "Found 1 match" in told
        assert '"glob"' not in told
        assert not (project / "ran").exists()


def test_a_folder_that_is_not_there_is_named_before_the_cli_fails_on_it(
    on_loopback: GeminiCli, gemtui: Gemtui
) -> None:
    missing = on_loopback.folder / "nowhere"
    gemtui("run Go --include-directory", missing).refuses(
        f"include_directories: {missing} is not a folder"
    )
    with (
        ModelServer([]) as model,
        on_loopback.start(model, "Go", f"--include-directories={missing}") as running,
    ):
        with pytest.raises(AssertionError, match="Directory does not exist"):
            running.finish()
        assert not model.asked


def test_an_untrusted_folder_names_the_way_out(
    on_loopback: GeminiCli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GEMINI_CLI_TRUST_WORKSPACE")
    with ModelServer([answer(text("ok"))]) as model:
        code, out, err = finish(begin(on_loopback, model, "Go"))
        assert (code, out) == (1, "")
        assert "--trust" in err
        assert finish(begin(on_loopback, model, "Go", "--trust"))[:2] == (0, "ok\n")


POLICY = """\
[[rule]]
toolName = "run_shell_command"
commandPrefix = "echo"
decision = "allow"
priority = 100
modes = ["default"]

[[rule]]
toolName = "write_file"
argsPattern = '"file_path":"src/'
decision = "deny"
priority = 200
denyMessage = "src is not yours to write"

[[rule]]
toolName = "write_file"
decision = "allow"
priority = 100
modes = ["default"]
"""


@pytest.mark.every_run
def test_a_named_policy_decides_as_it_is_explained(on_loopback: GeminiCli, gemtui: Gemtui) -> None:
    policies = Path(os.environ["XDG_CONFIG_HOME"]) / "gemtui/policies"
    policies.mkdir(parents=True)
    (policies / "careful.toml").write_text(POLICY)
    calls: dict[str, dict[str, str]] = {
        "run_shell_command": {"command": "echo allowed"},
        "write_file": {"file_path": "src/a.txt", "content": "x"},
    }
    turns = [answer(call(tool, **args)) for tool, args in calls.items()]
    with ModelServer([*turns, answer(text("Done."))]) as model:
        words = ("Go", "--policy", "careful", "--approval-mode", "default", "--json")
        code, out, err = finish(begin(on_loopback, model, *words))
        offered = set(model.asked[0].tools)
    assert code == 0
    assert "denied as your policy says, by rule 2 of careful.toml (" in err
    assert "yolo" not in err
    events = [json.loads(line) for line in out.splitlines()]
    results = {
        event["payload"]["toolName"]: event["payload"]
        for event in events
        if event["type"] == "tool_result"
    }
    statuses = {tool: result["status"] for tool, result in results.items()}
    assert statuses == {"run_shell_command": "success", "write_file": "denied"}
    for tool, args in calls.items():
        explained = gemtui(
            *("policy", "explain", "--policy", "careful", "--tool", tool),
            *("--args", json.dumps(args), "--json"),
        ).json
        assert explained["offered"] is (tool in offered)
        assert explained["headless"] == ("allow" if statuses[tool] == "success" else "deny")
    assert explained["message"] == "src is not yours to write"
    assert explained["message"] in results["write_file"]["output"]
    assert explained["rule"]["index"] == 2
    assert not (on_loopback.project / "src").exists()
