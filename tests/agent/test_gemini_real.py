"""The adapter and the real CLI on loopback."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psutil
import pytest

from gemtui.agent import process_tree
from gemtui.agent.adapter import UnguardedAdapter
from gemtui.agent.command import rerun_line
from gemtui.agent.events import (
    DoneStatus,
    ErrorSaid,
    ResultStatus,
    TextDelta,
    TextSaid,
    ToolResult,
    ToolUse,
)
from gemtui.agent.options import AgentOptions
from gemtui.agent.run_folder import KILLED, RUN_TAG, RunFolder
from gemtui.agent.settings import CliSettings, settings_unread
from gemtui.policy.file.levels import Level, PermissionPolicy
from gemtui.policy.model.rules import ApprovalMode
from gemtui.runs.outcome import RunProgress
from tests.agent.event_lists import collect, done, results
from tests.model_server import Answer, Chunk, Failure, Gate, ModelServer, answer, call, text
from tests.patience import PATIENCE, turns_until
from tests.real_cli import MODEL, NO_RELAUNCH, VERSION, GeminiCli

pytestmark = [pytest.mark.usefixtures("remembered_help"), pytest.mark.covers("gemtui/runs")]
YOLO = ApprovalMode.YOLO


def adapter(gemini: GeminiCli, model: ModelServer, *, relaunch: bool = False) -> UnguardedAdapter:
    """Starts runs; `relaunch`: in two processes, as a user's CLI is."""
    environ = gemini.environment(model.url)
    if relaunch:
        environ.pop(NO_RELAUNCH)
    return UnguardedAdapter(cli=gemini.program, runs=gemini.folder / "runs", environ=environ)


def options(gemini: GeminiCli, **more: Any) -> AgentOptions:
    base: dict[str, Any] = {"cwd": gemini.project, "model": MODEL, "approval_mode": YOLO}
    return AgentOptions(**(base | more))


def folder(gemini: GeminiCli) -> RunFolder:
    (path,) = (gemini.folder / "runs").iterdir()
    return RunFolder(path)


@pytest.mark.every_run
async def test_a_run_that_writes_edits_and_fails(gemini: GeminiCli) -> None:
    (gemini.project / "hello.py").write_text("print('hello')\n")
    edit = {"file_path": "hello.py", "instruction": "x", "new_string": "bye"}
    turns = [
        answer(text("I'll look."), call("read_file", file_path="hello.py")),
        answer(
            call("write_file", file_path="new.txt", content="hi\n"),
            call("replace", old_string="hello", **edit),
            call("replace", old_string="not there", **edit),
        ),
        answer(text("All "), text("done.")),
    ]
    with ModelServer(turns) as model:
        events = await collect(
            adapter(gemini, model, relaunch=True).run("- go on", options(gemini))
        )
        asked = model.asked[0].body
    assert "- go on" in str(asked["contents"])
    assert (gemini.project / "new.txt").read_text() == "hi\n"
    assert (gemini.project / "hello.py").read_text() == "print('bye')\n"
    assert results(events) == [
        ("read_file", ResultStatus.SUCCESS),
        ("write_file", ResultStatus.SUCCESS),
        ("replace", ResultStatus.SUCCESS),
        ("replace", ResultStatus.ERROR),
    ]
    assert (done(events).status, done(events).result) == (DoneStatus.SUCCESS, "All done.")
    assert done(events).models == (MODEL,)
    assert events[-1].metadata == {"complete": True, "exitCode": 0}
    request = folder(gemini).request()
    assert request is not None
    assert request.about is not None
    assert request.about["session_id"] == events[-1].session_id == done(events).resume_token


async def test_a_megabyte_of_output_and_a_megabyte_of_prompt(gemini: GeminiCli) -> None:
    command = "head -c 1000000 /dev/zero | tr '\\0' x"
    turns = [answer(call("run_shell_command", command=command)), answer(text("Big."))]
    prompt = "é" * 500_000
    with ModelServer(turns) as model:
        events = await collect(adapter(gemini, model).run(prompt, options(gemini)))
        assert prompt in str(model.asked[0].body["contents"])
    (output,) = [e.payload.output for e in events if isinstance(e.payload, ToolResult)]
    assert len(output) >= 1_000_000
    assert done(events).status is DoneStatus.SUCCESS


async def test_a_run_that_names_no_mode_has_that_of_the_settings(gemini: GeminiCli) -> None:
    path = gemini.store / "settings.json"
    given = json.loads(path.read_text())
    given["general"]["defaultApprovalMode"] = "auto_edit"
    path.write_text(json.dumps(given))
    for mode, writes in ((None, True), (ApprovalMode.DEFAULT, False)):
        with ModelServer([answer(text("Hi."))]) as model:
            cli = adapter(gemini, model)
            await collect(cli.run("go", options(gemini, approval_mode=mode)))
            environ = gemini.environment(model.url)
            usual = CliSettings.read(environ, gemini.project).default_run_mode
            assert usual is ApprovalMode.AUTO_EDIT
            assert ('"write_file"' in json.dumps(model.asked[0].body["tools"])) is writes


@pytest.mark.every_run
async def test_an_abort_while_the_answer_streams(gemini: GeminiCli) -> None:
    gate, stop = Gate(), asyncio.Event()
    turn = Answer(steps=(Chunk(parts=(text("Half of "),)), gate, Chunk(parts=(text("it"),))))
    with ModelServer([turn]) as model:
        events = []
        async for event in adapter(gemini, model, relaunch=True).run(
            "go", options(gemini, abort=stop)
        ):
            events.append(event)
            if isinstance(event.payload, TextDelta):
                stop.set()
        gate.open()
    assert done(events).status is DoneStatus.INTERRUPTED
    assert [e.payload for e in events if isinstance(e.payload, TextSaid)] == [
        TextSaid(content="Half of ")
    ]
    assert process_tree.tagged(folder(gemini).id) == set()


async def test_its_commands_run_where_they_are_pasted(gemini: GeminiCli) -> None:
    prompt = "Say it's `id` $HOME\n- é"
    given = options(gemini, disallowed_tools=["web_fetch"])
    with ModelServer([answer(text("It is.")) for _ in range(3)]) as model:
        cli = adapter(gemini, model)
        run = await cli.begin(prompt, given)
        assert done(await collect(run.events())).status is DoneStatus.SUCCESS
        command = cli.command(prompt, given, id="pasted")
        script = command.script(prompt, cli.runs / "pasted", gemini.project)
        for line in ("\n".join(script), rerun_line(run.request, run.folder)):
            subprocess.run(
                ["bash", "-c", line],
                env=gemini.environment(model.url),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                check=True,
                timeout=PATIENCE,
            )
        said = [json.dumps(asked.body["contents"], ensure_ascii=False) for asked in model.asked]
    assert [json.dumps(prompt, ensure_ascii=False)[1:-1] in each for each in said] == [True] * 3


async def test_a_cli_that_is_killed_from_outside(gemini: GeminiCli) -> None:
    gate, progress = Gate(), RunProgress()
    turn = Answer(steps=(Chunk(parts=(text("Half of "),)), gate, Chunk(parts=(text("it"),))))
    with ModelServer([turn]) as model:
        run = await adapter(gemini, model, relaunch=True).begin("go", options(gemini))
        async for event in run.events():
            progress.add(event)
            if isinstance(event.payload, TextDelta):
                for process in process_tree.tagged(run.folder.id):
                    process.kill()
        gate.open()
    outcome = progress.outcome(run.stderr())
    assert outcome is not None
    assert outcome.headline == "Gemini CLI was killed by something else (SIGKILL)"
    assert outcome.detail.startswith("Gemini CLI exited with code ")
    assert outcome.ways_out == ("run it again, or continue the session",)


async def test_an_abort_while_a_shell_command_sleeps(gemini: GeminiCli, tmp_path: Path) -> None:
    mark = tmp_path / "asleep"
    command = f"touch {mark}; sleep 600"
    stop = asyncio.Event()
    with ModelServer([answer(call("run_shell_command", command=command))]) as model:
        running = asyncio.ensure_future(
            collect(adapter(gemini, model, relaunch=True).run("go", options(gemini, abort=stop)))
        )
        await turns_until(mark.exists)
        assert len(process_tree.tagged(folder(gemini).id)) >= 3
        stop.set()
        events = await running
    assert process_tree.tagged(folder(gemini).id) == set()
    assert [e.payload.tool_name for e in events if isinstance(e.payload, ToolUse)] == [
        "run_shell_command"
    ]
    assert results(events) == []
    assert done(events).status is DoneStatus.INTERRUPTED


async def test_denied_asked_and_missing_tools_are_refusals_and_yolo_decides_the_rest(
    gemini: GeminiCli,
) -> None:
    levels = PermissionPolicy(shell_execute=Level.ASK, network_access=Level.DENY)
    turns = [
        answer(
            call("write_file", file_path="a.txt", content="x"),
            call("web_fetch", prompt="https://example.org"),
            call("run_shell_command", command="touch b.txt"),
            call("frobnicate"),
        ),
        answer(text("Written.")),
    ]
    with ModelServer(turns) as model:
        events = await collect(
            adapter(gemini, model).run("go", options(gemini, permissions=levels))
        )
        assert "web_fetch" not in model.asked[0].tools
    assert results(events) == [
        ("write_file", ResultStatus.SUCCESS),
        ("web_fetch", ResultStatus.DENIED),
        ("run_shell_command", ResultStatus.DENIED),
        ("frobnicate", ResultStatus.ERROR),
    ]
    assert [path.name for path in gemini.project.iterdir()] == ["a.txt"]


async def test_only_the_named_tools_exist(gemini: GeminiCli) -> None:
    with ModelServer([answer(text("ok"))]) as model:
        await collect(adapter(gemini, model).run("go", options(gemini, only_tools=("glob",))))
        assert model.asked[0].tools == ("glob",)


async def test_the_user_s_own_denies_stay_and_ours_are_not_weakened(gemini: GeminiCli) -> None:
    policies = gemini.store / "policies"
    policies.mkdir()
    rule = '[[rule]]\ntoolName = "{}"\ndecision = "{}"\npriority = 999\n'
    words = rule.format("glob", "deny") + rule.format("write_file", "allow")
    (policies / "mine.toml").write_text(words)
    levels = PermissionPolicy(
        file_write=Level.DENY, shell_execute=Level.ALLOW, network_access=Level.ALLOW
    )
    with ModelServer([answer(text("ok"))]) as model:
        run = adapter(gemini, model).run(
            "go", options(gemini, permissions=levels, approved_tools=("glob",))
        )
        await collect(run)
        assert not {"glob", "write_file"} & set(model.asked[0].tools)
        assert "run_shell_command" in model.asked[0].tools


async def test_the_turn_limit_is_a_setting(gemini: GeminiCli) -> None:
    read = answer(call("list_directory", dir_path="."))
    with ModelServer([read, read, read]) as model:
        events = await collect(
            adapter(gemini, model, relaunch=True).run("go", options(gemini, max_turns=1))
        )
    assert done(events).status is DoneStatus.MAX_TURNS
    assert events[-1].metadata == {"complete": True, "exitCode": 53}
    assert results(events)[0] == ("list_directory", ResultStatus.SUCCESS)


async def test_a_limit_of_no_turns_asks_nothing(gemini: GeminiCli) -> None:
    with ModelServer([answer(text("said all the same"))]) as model:
        events = await collect(adapter(gemini, model).run("go", options(gemini, max_turns=0)))
    assert done(events).status is DoneStatus.MAX_TURNS
    assert done(events).result is None


@pytest.mark.skipif(
    settings_unread(Path("/tmp/x"), version=VERSION) is None, reason="reads them anywhere"
)
async def test_the_cli_reads_the_settings_that_we_think_it_reads(
    gemini: GeminiCli, pytestconfig: pytest.Config
) -> None:
    """The rule for settings files: a folder of root's own, and one below /tmp."""
    with TemporaryDirectory(dir=pytestconfig.cache.mkdir("gemtui-runs")) as name:
        for runs in (gemini.folder / "runs", Path(name)):
            settings = runs / "settings.json"
            settings.parent.mkdir(exist_ok=True)
            settings.write_text('{"model": {"maxSessionTurns": 1}}')
            ours = {"GEMINI_CLI_SYSTEM_SETTINGS_PATH": str(settings)}
            turns = [answer(call("list_directory", dir_path=".")), answer(text("said"))]
            with ModelServer(turns) as model:
                events = await collect(
                    adapter(gemini, model).run("go", options(gemini, environment=ours))
                )
            read = done(events).status is DoneStatus.MAX_TURNS
            assert read == (settings_unread(settings, version=VERSION) is None)


async def test_an_api_error_has_its_words(gemini: GeminiCli) -> None:
    failure = Failure(status=403, message="Permission denied.", reason="PERMISSION_DENIED")
    with ModelServer([failure]) as model:
        events = await collect(adapter(gemini, model, relaunch=True).run("go", options(gemini)))
    assert done(events).status is DoneStatus.ERROR
    assert events[-1].metadata == {"complete": True, "exitCode": 147}
    assert "Permission denied" in next(
        e.payload.message for e in events if isinstance(e.payload, ErrorSaid)
    )


async def test_the_report_of_an_error_stays_with_the_run(gemini: GeminiCli) -> None:
    refused = Failure(status=400, message="Bad.", reason="INVALID_ARGUMENT")
    with ModelServer([refused]) as model:
        await collect(adapter(gemini, model).run("my words", options(gemini)))
    temporary = Path(gemini.environment(model.url)["TMPDIR"])
    assert list(temporary.glob("gemini-client-error-*")) == []
    assert list(temporary.glob("gemtui-*")) == []
    reports = list(folder(gemini).path.glob("gemini-client-error-*.json"))
    assert reports
    assert {each.stat().st_mode & 0o777 for each in reports} == {0o600}
    assert "my words" in reports[0].read_text()


async def test_the_death_of_the_supervisor_ends_the_cli_and_its_shell(gemini: GeminiCli) -> None:
    command = call("run_shell_command", command="sleep 600 & echo started; sleep 600")
    with ModelServer([answer(command)]) as model:
        run = await asyncio.to_thread(
            adapter(gemini, model, relaunch=True).start, "go", options(gemini)
        )
        await turns_until(
            lambda: any(
                "sleep" in process.name()
                for process in process_tree.alive(process_tree.tagged(run.folder.id))
            )
        )
        processes = process_tree.tagged(run.folder.id)
        owner = run.folder.owner()
        assert owner is not None
        os.kill(owner.pid, signal.SIGKILL)
        ended = await run.wait()
    assert ended.problem == KILLED
    assert not process_tree.alive(processes)
    assert process_tree.tagged(run.folder.id) == set()


async def test_an_untrusted_folder_is_not_trusted_silently(gemini: GeminiCli) -> None:
    with ModelServer([answer(text("ok"))]) as model:
        strict = adapter(gemini, model)
        environ = {k: v for k, v in strict.machine().environ.items() if "TRUST" not in k}
        strict = UnguardedAdapter(cli=gemini.program, runs=gemini.folder / "runs", environ=environ)
        events = await collect(strict.run("go", options(gemini)))
        assert events[-1].metadata == {"complete": False, "exitCode": 55}
        trusting = await collect(strict.run("go", options(gemini, trust=True)))
    assert done(trusting).status is DoneStatus.SUCCESS


async def test_two_runs_at_once_do_not_mix(gemini: GeminiCli) -> None:
    turns = [answer(text("same")), answer(text("same"))]
    with ModelServer(turns) as model:
        both = adapter(gemini, model)
        first, second = await asyncio.gather(
            collect(both.run("one", options(gemini))), collect(both.run("two", options(gemini)))
        )
    assert done(first).status is done(second).status is DoneStatus.SUCCESS
    assert first[-1].session_id != second[-1].session_id


async def test_a_session_is_resumed_by_its_full_id(gemini: GeminiCli) -> None:
    with ModelServer([answer(text("The word is plum.")), answer(text("Plum."))]) as model:
        first = await collect(adapter(gemini, model).run("a word?", options(gemini)))
        token = done(first).resume_token
        again = await collect(adapter(gemini, model).run("which?", options(gemini, resume=token)))
        assert "The word is plum." in str(model.asked[-1].body["contents"])
    assert done(again).resume_token == token
    assert done(again).result == "Plum."


@pytest.mark.skipif(sys.platform != "linux", reason="no other system has child subreapers")
async def test_commands_that_lost_the_tag_end_with_their_run(gemini: GeminiCli) -> None:
    quiet = "sleep 1000 < /dev/null > /dev/null 2>&1 & echo $!"
    command = f"{quiet} > tagless; env -i setsid nohup {quiet} > bare; env > environment"
    shell = call("run_shell_command", command=command)
    with ModelServer([answer(shell), answer(text("Done."))]) as model:
        environ = gemini.environment(model.url) | {"SURFACE": "Github"}
        starter = UnguardedAdapter(cli=gemini.program, runs=gemini.folder / "runs", environ=environ)
        run = starter.start("go", options(gemini))
        events = await collect(run.events())
        ended = await run.wait()
    assert done(events).status is DoneStatus.SUCCESS
    assert RUN_TAG not in (gemini.project / "environment").read_text()
    pids = [int((gemini.project / name).read_text()) for name in ("tagless", "bare")]
    assert (ended.left, ended.ended_others >= 2) == ((), True)
    assert not any(map(psutil.pid_exists, pids))
