"""The adapter with real children: events, abort, limits."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing
from pathlib import Path
from typing import Any

import orjson
import psutil
import pytest

from gemtui.agent import process_tree
from gemtui.agent.adapter import UnguardedAdapter
from gemtui.agent.events import AgentEvent, DoneStatus, ErrorSaid, Init, TextDelta, ToolResult
from gemtui.agent.options import AgentOptions
from gemtui.agent.run_folder import Request, RunFolder
from gemtui.agent.settings import settings_unread
from gemtui.errors import OptionError
from gemtui.paths import runs_dir
from tests.agent.event_lists import collect, done
from tests.fake_cli import INIT, OK, FakeCli, HastyAdapter
from tests.patience import PATIENCE, turns_until
from tests.rows import table

TABLES = table("agent/gemini.json")
HELLO = '{"type":"message","role":"assistant","content":"hello","delta":true}'
Fake = Callable[..., UnguardedAdapter]


@pytest.fixture
def fake(fake_cli: FakeCli) -> Fake:
    """An adapter whose CLI does these steps."""

    def adapter(*steps: str, **more: str) -> UnguardedAdapter:
        return HastyAdapter(cli=fake_cli(*steps, **more), runs=runs_dir(), environ=dict(os.environ))

    return adapter


Run = Callable[..., Awaitable[list[AgentEvent]]]


@pytest.fixture
def run(fake: Fake, tmp_path: Path) -> Run:
    """Run a CLI that does these steps; all its events."""

    async def once(*steps: str, **options: Any) -> list[AgentEvent]:
        return await collect(fake(*steps).run("x", AgentOptions(cwd=tmp_path, **options)))

    return once


def lines(*objects: str) -> list[str]:
    return [f"print:{line}" for line in objects]


def types(events: list[AgentEvent]) -> list[str]:
    return [event.type for event in events]


async def test_a_run_from_prompt_to_done(fake: Fake, tmp_path: Path) -> None:
    adapter = fake(*lines(INIT, HELLO), "stdin", *lines("", OK))
    events = await collect(adapter.run("not json", AgentOptions(cwd=tmp_path)))
    assert types(events) == ["init", "text_delta", "text", "error", "done"]
    (folder,) = runs_dir().iterdir()
    assert (folder / "prompt.txt").read_text() == "not json"
    assert not (folder / "settings.json").exists()
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}


async def test_what_is_known_of_the_cli_is_told_first(run: Run) -> None:
    events = await run(*lines(INIT, OK))
    init = events[0].payload
    assert isinstance(init, Init)
    assert init.capabilities is not None
    assert init.capabilities["approval_modes"] == ["default", "auto_edit", "yolo", "plan"]


async def starting(adapter: UnguardedAdapter, folder: Path) -> tuple[asyncio.Task[object], Path]:
    """A run that is just being started, and the fifo that lets it go on when it is written to."""
    asked, go = folder / "asked", folder / "go"
    os.mkfifo(go)
    program = adapter.cli()
    text = program.read_text().replace(
        "--version) echo", f"--version) touch {asked}; cat {go}; echo"
    )
    program.write_text(text)
    task = asyncio.create_task(collect(adapter.run("x", AgentOptions(cwd=folder))))
    await turns_until(asked.exists)
    return task, go


async def test_a_task_that_is_cancelled_during_the_start_leaves_no_run(
    fake: Fake, tmp_path: Path
) -> None:
    task, go = await starting(fake(*lines(INIT), "wait"), tmp_path)
    task.cancel()
    go.write_text("")
    with pytest.raises(asyncio.CancelledError):
        await task
    for folder in runs_dir().iterdir():
        assert RunFolder(folder).exit() is not None
        assert process_tree.tagged(folder.name) == set()


async def test_a_task_that_is_cancelled_twice_during_the_start_leaves_no_run(
    fake: Fake, tmp_path: Path
) -> None:
    adapter = fake(*lines(INIT), "wait")
    task, go = await starting(adapter, tmp_path)
    for _ in range(2):
        task.cancel()
        await asyncio.sleep(0)
    go.write_text("")
    with pytest.raises(asyncio.CancelledError):
        await task
    (request,) = await turns_until(lambda: list(adapter.runs.glob("*/request.json")))
    run = adapter.attach(RunFolder(request.parent))
    assert run is not None
    assert (await run.wait()).aborted


def test_a_loop_that_ends_during_the_start_leaves_no_run(fake: Fake, tmp_path: Path) -> None:
    adapter = fake(*lines(INIT), "wait")

    async def opens(go: Path) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            go.write_text("")

    async def main() -> list[object]:
        task, go = await starting(adapter, tmp_path)
        tasks: list[object] = [task, asyncio.create_task(opens(go))]
        await asyncio.sleep(0)
        return tasks

    asyncio.run(main())
    (folder,) = adapter.runs.iterdir()
    ended = RunFolder(folder).exit()
    assert ended is not None
    assert ended.aborted


async def test_settings_that_would_not_be_read_are_not_written(fake: Fake, tmp_path: Path) -> None:
    adapter = fake(*lines(INIT), "wait")
    assert settings_unread(adapter.runs / "settings.json", version=None) is not None
    run = await asyncio.to_thread(adapter.start, "x", AgentOptions(cwd=tmp_path, max_turns=7))
    assert not (run.folder.path / "settings.json").exists()
    assert "GEMINI_CLI_SYSTEM_SETTINGS_PATH" not in run.request.environ
    assert run.request.about is not None
    assert run.request.turn_limit == 7
    assert "stops the run after 7" in run.request.about["notes"][0]
    run.abort()
    await run.wait()


async def test_settings_that_are_read_are_there_until_the_end(fake: Fake, tmp_path: Path) -> None:
    adapter = fake(*lines(INIT), "wait", version="0.59.0")
    run = await asyncio.to_thread(adapter.start, "x", AgentOptions(cwd=tmp_path, max_turns=7))
    settings = orjson.loads((run.folder.path / "settings.json").read_bytes())
    assert settings["model"] == {"maxSessionTurns": 7}
    assert settings["general"]["sessionRetention"] == {"enabled": False}
    run.abort()
    await run.wait()
    assert not (run.folder.path / "settings.json").exists()


TURN = (
    '{"type":"tool_use","tool_name":"glob","tool_id":"a"}',
    '{"type":"tool_use","tool_name":"glob","tool_id":"b"}',
    '{"type":"tool_result","tool_id":"a","status":"success"}',
    '{"type":"tool_result","tool_id":"b","status":"success"}',
)


async def test_the_turns_are_counted_and_the_run_ended(run: Run) -> None:
    events = await run(*lines(INIT, *TURN), "stubborn", "wait", max_turns=1)
    assert types(events).count("tool_result") == 2
    assert "error" not in types(events)
    assert done(events).status is DoneStatus.MAX_TURNS
    assert events[-1].metadata == {"complete": True, "exitCode": 53}
    (folder,) = runs_dir().iterdir()
    ended = RunFolder(folder).exit()
    assert ended is not None
    assert (ended.limit, ended.aborted) == ("turns", False)
    assert process_tree.tagged(folder.name) == set()


@pytest.mark.parametrize(
    ("promise", "steps", "options", "end"), TABLES["a run ends as its limits and its output say"]
)
async def test_a_run_ends_as_its_limits_and_its_output_say(
    run: Run, promise: str, steps: str, options: dict[str, Any], end: dict[str, Any]
) -> None:
    printed = {"init": [INIT], "turn": [*TURN], "hello": [HELLO], "ok": [OK]}
    made: list[str] = []
    for step in steps.split():
        made += lines(*printed[step]) if step in printed else [step]
    events = await run(*made, **options)
    errors = [event.payload for event in events if isinstance(event.payload, ErrorSaid)]
    ended = {"types": types(events), "status": done(events).status, "result": done(events).result}
    ended |= {"message": errors[0].message, "code": errors[0].code} if errors else {}
    assert ended | end == ended, promise


async def test_the_turns_are_counted_while_nobody_reads(fake: Fake, tmp_path: Path) -> None:
    adapter = fake(*lines(INIT, *TURN), "wait")
    run = await asyncio.to_thread(adapter.start, "x", AgentOptions(cwd=tmp_path, max_turns=1))
    async with asyncio.timeout(PATIENCE):
        ended = await run.wait()
    assert (ended.limit, ended.aborted) == ("turns", False)
    other = UnguardedAdapter(runs=adapter.runs).attach(RunFolder(run.folder.path))
    assert other is not None
    events = await collect(other.events())
    assert types(events).count("tool_result") == 2
    assert done(events).status is DoneStatus.MAX_TURNS


async def test_a_run_that_is_let_go_goes_on_without_a_warning(fake: Fake, tmp_path: Path) -> None:
    adapter = fake(*lines(INIT), "wait")
    run = await asyncio.to_thread(adapter.start, "x", AgentOptions(cwd=tmp_path))
    folder = RunFolder(run.folder.path)
    del run
    gc.collect()  # what it warns of fails this test
    again = adapter.attach(folder)
    assert again is not None
    assert again.exit() is None
    again.abort()
    async with asyncio.timeout(PATIENCE):
        assert (await again.wait()).aborted


async def test_an_abort_after_the_last_turn_is_an_abort(fake: Fake, tmp_path: Path) -> None:
    adapter = fake("stubborn", *lines(INIT, *TURN), "wait")
    stop = asyncio.Event()
    seen = []
    async for event in adapter.run("x", AgentOptions(cwd=tmp_path, max_turns=1, abort=stop)):
        seen.append(event)
        if types(seen).count("tool_result") == 2:
            stop.set()
    assert done(seen).status is DoneStatus.INTERRUPTED


async def test_text_comes_while_the_process_still_runs(fake: Fake, tmp_path: Path) -> None:
    adapter = fake(*lines(INIT, HELLO), "wait")
    stop = asyncio.Event()
    seen = []
    async for event in adapter.run("x", AgentOptions(cwd=tmp_path, abort=stop)):
        seen.append(event)
        if isinstance(event.payload, TextDelta):
            stop.set()
    assert types(seen) == ["init", "text_delta", "text", "done"]
    assert (done(seen).status, done(seen).resume_token) == (DoneStatus.INTERRUPTED, "s1")
    assert done(seen).result is None


async def test_closing_the_iterator_ends_the_tree(fake: Fake, tmp_path: Path) -> None:
    adapter = fake("orphan", *lines(INIT), "wait")
    async with aclosing(adapter.run("x", AgentOptions(cwd=tmp_path))) as events:
        async for event in events:
            if event.type == "init":
                break
    (folder,) = runs_dir().iterdir()
    orphan = int(RunFolder(folder).stdout.read_text().split("\n")[0])
    assert not psutil.pid_exists(orphan) or not process_tree.is_alive(psutil.Process(orphan))
    assert process_tree.tagged(folder.name) == set()


async def test_cancelling_the_task_ends_the_tree(fake: Fake, tmp_path: Path) -> None:
    adapter = fake(*lines(INIT), "stubborn", "wait")
    begun = asyncio.Event()

    async def follow() -> None:
        async for _ in adapter.run("x", AgentOptions(cwd=tmp_path)):
            begun.set()

    task = asyncio.create_task(follow())
    await asyncio.wait_for(begun.wait(), PATIENCE)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    (folder,) = runs_dir().iterdir()
    assert process_tree.tagged(folder.name) == set()
    ended = RunFolder(folder).exit()
    assert ended is not None
    assert ended.aborted


async def test_an_abort_before_the_start_is_remembered(run: Run) -> None:
    stop = asyncio.Event()
    stop.set()
    events = await run(*lines(INIT, HELLO), "wait", abort=stop)
    assert done(events).status is DoneStatus.INTERRUPTED


async def test_a_program_that_cannot_be_started(tmp_path: Path, fake: Fake) -> None:
    broken = fake()
    broken.cli().write_text("#!/nowhere/sh\n")
    old = UnguardedAdapter(cli=tmp_path / "old", runs=broken.runs)
    (tmp_path / "old").write_text("#!/bin/sh\necho 0.10.0\n")
    (tmp_path / "old").chmod(0o755)
    for adapter, words in ((broken, "can't be started"), (old, "0.10.0 is too old")):
        events = await collect(adapter.run("x"))
        assert types(events) == ["init", "error", "done"]
        assert words in str(done(events).result)
    assert not runs_dir().exists()
    missing = UnguardedAdapter(environ={"PATH": str(tmp_path / "empty"), "HOME": str(tmp_path)})
    assert not await missing.is_available()
    events = await collect(missing.run("x", AgentOptions(cwd=tmp_path)))
    assert types(events) == ["init", "error", "done"]
    assert isinstance(events[1].payload, ErrorSaid)
    assert "Gemini CLI is not on PATH" in events[1].payload.message


async def test_a_long_line_and_a_flood_lose_nothing(run: Run, tmp_path: Path) -> None:
    output = tmp_path / "out.ndjson"
    long = {"type": "tool_result", "tool_id": "t", "status": "success", "output": "é" * 400_000}
    output.write_bytes(b"".join([INIT.encode(), b"\n", orjson.dumps(long), b"\n", OK.encode()]))
    events = await run("flood:500000", f"file:{output}", "exit:0")
    assert types(events) == ["init", "tool_result", "done"]
    assert isinstance(events[1].payload, ToolResult)
    assert events[1].payload.output == long["output"]


async def test_a_run_can_be_followed_from_another_process(fake: Fake, tmp_path: Path) -> None:
    adapter = fake(*lines(INIT, HELLO), "wait")
    run = await asyncio.to_thread(adapter.start, "x", AgentOptions(cwd=tmp_path))
    other = UnguardedAdapter(runs=adapter.runs).attach(RunFolder(run.folder.path))
    assert other is not None
    seen = []
    async for event in other.events():
        seen.append(event)
        if isinstance(event.payload, TextDelta):
            other.abort()
    await run.wait()
    assert types(seen) == ["init", "text_delta", "text", "done"]


async def test_a_killed_supervisor_does_not_leave_the_run_alone(fake: Fake, tmp_path: Path) -> None:
    adapter = fake(*lines(INIT), "wait")
    run = await asyncio.to_thread(adapter.start, "x", AgentOptions(cwd=tmp_path))
    events = []
    async for event in run.events():
        events.append(event)
        owner = run.folder.owner()
        assert owner is not None
        if event.type == "init":
            os.kill(owner.pid, signal.SIGKILL)
    assert types(events) == ["init", "error", "done"]
    assert process_tree.tagged(run.folder.id) == set()


@pytest.mark.parametrize(("prompt", "given", "words"), TABLES["what is not utf8 starts nothing"])
async def test_what_is_not_utf8_starts_nothing(
    fake: Fake, tmp_path: Path, prompt: str, given: dict[str, Any], words: str
) -> None:
    cwd = tmp_path / given.pop("cwd", ".")
    cwd.mkdir(exist_ok=True)
    adapter = fake(*lines(INIT, OK))
    with pytest.raises(OptionError, match=words):
        await collect(adapter.run(prompt, AgentOptions(cwd=cwd, **given)))
    assert not adapter.runs.exists()


async def test_options_that_do_not_fit_start_nothing(fake: Fake, tmp_path: Path) -> None:
    events = fake().run("x", AgentOptions(cwd=tmp_path, timeout=0))
    with pytest.raises(OptionError, match="timeout"):
        await anext(events)
    assert not runs_dir().exists()


class Unwilling:
    """A guard that can't do its part, as on a full disk."""

    supervisor = "gemtui.agent.supervise"

    def before(self, folder: RunFolder, request: Request, environ: Mapping[str, str]) -> None:
        raise OSError("no room for a copy")

    def after(self, folder: RunFolder) -> None:
        raise AssertionError("nothing was started")


async def test_a_guard_that_can_t_do_its_part_keeps_a_run_from_starting(
    fake: Fake, tmp_path: Path
) -> None:
    cli = fake("wait").cli()
    adapter = UnguardedAdapter(cli=cli, runs=runs_dir(), guard=Unwilling())
    events = await collect(adapter.run("x", AgentOptions(cwd=tmp_path)))
    assert types(events) == ["init", "error", "done"]
    assert isinstance(events[1].payload, ErrorSaid)
    assert events[1].payload.message == "no room for a copy"
    (folder,) = runs_dir().iterdir()
    ended = RunFolder(folder).exit()
    assert ended is not None
    assert (ended.code, ended.problem) == (None, "no room for a copy")
