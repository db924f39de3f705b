"""Runs: from the file to the transcript, in memory, on the screen while they stream, ended."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime
from multiprocessing import get_context
from pathlib import Path
from statistics import median, quantiles

import orjson
import psutil

from gemtui.agent import process_tree
from gemtui.agent.adapter import GeminiRun, UnguardedAdapter
from gemtui.agent.approval import ApprovalRequest, GateFolder
from gemtui.agent.fold import Fold
from gemtui.agent.options import AgentOptions
from gemtui.agent.run_folder import Exit, Owner, Request, RunFolder
from tests.terminal import Terminal
from tests.tools.bench import deltas, minimal
from tests.tools.bench.measure import Cost, Row, alone, peak, resident
from tests.tools.bench.reading import parse_file
from tests.tools.bench.starting import environ

EVENTS = 200_000
IN_MEMORY = 50_000
ANSWER = 500
"""Deltas to an answer; each ends with a tool call."""
CHILDREN = 5
SECONDS = 10.0
SETTLING = 1.0
"""Seconds at the start of a stream that do not count."""
SILENT, SETTLED = 20.0, 4.0
_MARK = re.compile(rb"t(\d{12,})")


def rows(folder: Path, repeat: int) -> Iterator[Row]:
    """All that is measured of runs."""
    yield from folding(folder, repeat)
    yield from ending(folder, repeat)
    yield from streaming(folder, 500, repeat)
    yield from streaming(folder, 5, 1)
    yield from silent(folder)


# --- from the file to the transcript -------------------------------------------------------------


def folding(folder: Path, repeat: int) -> Iterator[Row]:
    """A run that has ended, read from its folder; the floor reads the same lines."""
    for count, work in ((EVENTS, fold), (IN_MEMORY, fold), (IN_MEMORY, keep)):
        path = make_run(folder / f"events-{count}", count)
        least = Cost.middle([alone(parse_file, path) for _ in range(repeat)]).seconds
        if work is fold:
            cost = Cost.middle([alone(fold, path) for _ in range(repeat)])
            what = f"{count:,} events of a run, read and folded"
        else:
            cost = Cost.middle([_growth(path) for _ in range(repeat)])
            what = f"{count:,} events of a run in memory: what the process grows by"
        yield Row(what=what, cost=cost, floor="orjson over the lines", least=least)


def make_run(place: Path, count: int) -> Path:
    """A run of about `count` events that has ended; its output."""
    shutil.rmtree(place, ignore_errors=True)
    folder = RunFolder.create(place.parent, place.name)
    now = datetime.now(UTC)
    folder.write_request(Request(id=place.name, argv=("gemini",), cwd=str(place), environ={}))
    folder.finish(Exit(code=0, started=now, ended=now))
    with folder.stdout.open("wb") as file:
        for line in _lines(count, now.isoformat()):
            file.write(orjson.dumps(line) + b"\n")
    return folder.stdout


def _lines(count: int, now: str) -> Iterator[dict[str, object]]:
    yield {"type": "init", "timestamp": now, "session_id": "bench", "model": "auto"}
    for number in range(count):
        text = f"word {number} of an answer. " + ("" if number % 20 else "\n\n")
        said = {"type": "message", "role": "assistant", "content": text, "delta": True}
        yield {"timestamp": now, **said}
        if number % ANSWER == ANSWER - 1:
            call = {"tool_id": f"call-{number}", "timestamp": now}
            name = {"tool_name": "read_file", "parameters": {"file_path": "a.py"}}
            yield {"type": "tool_use", **name, **call}
            yield {"type": "tool_result", "status": "success", "output": "", **call}
    yield {"type": "result", "timestamp": now, "status": "success"}


def fold(stdout: Path) -> None:
    """From the file to the transcript, by the adapter's own path."""
    assert len(asyncio.run(_folded(stdout)).transcript()) > 0


def keep(stdout: Path) -> Cost:
    """The same, and what the process holds more than before while the transcript lives."""
    me = psutil.Process()
    before, began = me.memory_info().rss, time.perf_counter()
    folded = asyncio.run(_folded(stdout))
    seconds = time.perf_counter() - began
    assert len(folded.transcript()) > 0
    return Cost(seconds=seconds, memory=me.memory_info().rss - before)


def _growth(stdout: Path) -> Cost:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(keep, stdout).result()


async def _folded(stdout: Path) -> Fold:
    folder = RunFolder(stdout.parent)
    request = folder.request()
    assert request is not None
    folded = Fold("bench", began=datetime.now(UTC))
    async for event in GeminiRun(folder, request).events():
        folded.add(event)
    return folded


# --- ended -----------------------------------------------------------------------------------


def ending(folder: Path, repeat: int) -> Iterator[Row]:
    """From the key to a tree of which nothing is left, and to the record that says so."""
    least = Cost.middle([_floor_of_ending(folder) for _ in range(repeat)]).seconds
    for stubborn, what in ((False, "ctrl+c"), (True, "ctrl+c twice, SIGTERM ignored")):
        cost = Cost.middle([_ended(folder, stubborn=stubborn) for _ in range(repeat)])
        what = f"{what}: a CLI and {CHILDREN} commands in sessions of their own are gone"
        yield Row(what=what, cost=cost, floor="killpg of one process, waited for", least=least)


def _ended(folder: Path, *, stubborn: bool) -> Cost:
    program = folder / "gemini"
    program.write_text(_tree(stubborn=stubborn))
    program.chmod(0o755)
    adapter = UnguardedAdapter(cli=program, runs=folder / "runs", environ=environ(folder))
    run = adapter.start("go", AgentOptions(cwd=folder))
    while len(process_tree.tagged(run.folder.id)) < CHILDREN + 1:
        time.sleep(0.01)
    time.sleep(0.3)
    began = time.perf_counter()
    run.abort()
    if stubborn:
        run.abort()
    while run.exit() is None:
        time.sleep(0.001)
    seconds = time.perf_counter() - began
    assert process_tree.tagged(run.folder.id) == set()
    return Cost(seconds=seconds, memory=0)


def _tree(*, stubborn: bool) -> str:
    trap = "trap '' TERM\n" if stubborn else ""
    command = "setsid sleep 600 &\n" * CHILDREN
    return (
        "#!/bin/sh\n"
        'case "$1" in --version) echo 0.61.0; exit;;\n'
        f'--help) cat <<"END"\n{deltas.HELP}END\nexit;; esac\n{trap}{command}wait\n'
    )


def _floor_of_ending(folder: Path) -> Cost:
    child = subprocess.Popen(["sleep", "600"], cwd=folder, start_new_session=True)
    began = time.perf_counter()
    os.killpg(child.pid, signal.SIGTERM)
    child.wait()
    return Cost(seconds=time.perf_counter() - began, memory=0)


# --- on the screen ---------------------------------------------------------------------------


def streaming(folder: Path, rate: int, repeat: int) -> Iterator[Row]:
    """From a delta's write to the screen that shows it, and the work that this takes."""
    ours = [_streamed(folder / f"run-{rate}-{number}", rate) for number in range(repeat)]
    theirs = [_floor_of_streaming(folder / f"floor-{rate}-{n}", rate) for n in range(repeat)]
    names = (
        "a delta on the screen, median",
        "a delta on the screen, 95 % of them",
        f"CPU of gemtui in {SECONDS - SETTLING:g} s",
    )
    for number, what in enumerate(names):
        yield Row(
            what=f"{rate} deltas a second: {what}",
            cost=Cost.middle([each[number] for each in ours]),
            floor="the same in a `Log`",
            least=Cost.middle([each[number] for each in theirs]).seconds,
        )


def _project(home: Path, rate: int) -> Path:
    """A folder that Gemini CLI trusts, with a CLI that streams in `home`."""
    project = home / "project"
    project.mkdir(parents=True)
    (home / ".gemini").mkdir()
    trusted = {str(project): "TRUST_FOLDER"}
    (home / ".gemini" / "trustedFolders.json").write_bytes(orjson.dumps(trusted))
    deltas.install(home / "gemini", rate, SECONDS)
    return project


def _streamed(home: Path, rate: int) -> list[Cost]:
    project = _project(home, rate)
    names = environ(home) | {"GEMINI_CLI_PATH": str(home / "gemini")}
    words = [sys.executable, "-m", "gemtui"]
    with Terminal(words, environ=names, folder=project) as terminal:
        terminal.shows("Sessions")
        terminal.press("2")
        terminal.shows("enter starts a run", "gemini 0.61.0")
        terminal.press("go", "\r")
        costs = _watched(terminal)
        terminal.shows("done")
        terminal.press("\x11")
        terminal.wait()
    return costs


def silent(folder: Path) -> Iterator[Row]:
    """The work of an app in which nothing happens, and of one with a run that has asked."""
    for name, asks in (("the app at rest", False), ("a run that waits for an answer", True)):
        cost = _silent(folder / f"silent-{asks}", asks=asks)
        what = f"{name}: CPU of gemtui in {SILENT:g} s"
        yield Row(what=what, cost=cost, floor=f"{SILENT:g} s", least=SILENT)


def _silent(home: Path, *, asks: bool) -> Cost:
    project = _project(home, 1)
    if asks:
        run = RunFolder.create(home / "state" / "gemtui" / "runs", "waiting")
        run.write_request(Request(id="waiting", argv=("gemini",), cwd=str(project), environ={}))
        run.stdout.write_text('{"type":"init","session_id":"waiting","model":"auto"}\n')
        run.write_owner(Owner(pid=os.getpid(), began=psutil.Process().create_time()))
        gate = GateFolder.of(run)
        gate.create()
        command = {"command": "git push"}
        gate.ask(ApprovalRequest(tool_name="run_shell_command", arguments=command, number=1))
    names = environ(home) | {"GEMINI_CLI_PATH": str(home / "gemini")}
    words = [sys.executable, "-m", "gemtui"]
    with Terminal(words, environ=names, folder=project) as terminal:
        terminal.shows("Sessions")
        terminal.press("2")
        terminal.shows("git push" if asks else "enter starts a run")
        app = psutil.Process(terminal.process.pid)
        _read_for(terminal, SETTLED)
        before = _cpu(app)
        _read_for(terminal, SILENT)
        cost = Cost(seconds=_cpu(app) - before, memory=resident(terminal.process.pid))
        terminal.press("\x11")
    return cost


def _read_for(terminal: Terminal, seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        terminal.read(SETTLING)


def _floor_of_streaming(home: Path, rate: int) -> list[Cost]:
    home.mkdir(parents=True)
    output = home / "stdout"
    output.touch()
    words = [sys.executable, "-m", minimal.__name__, "feed", str(output)]
    with Terminal(words, environ=environ(home), folder=Path.cwd()) as terminal:
        terminal.shows("fed")
        child = [sys.executable, deltas.__file__, str(rate), str(SECONDS)]
        with output.open("wb") as file, subprocess.Popen(child, stdout=file):
            costs = _watched(terminal)
        terminal.press("\x11")
        terminal.wait()
    return costs


def _watched(terminal: Terminal) -> list[Cost]:
    """Median and 95 % of the deltas' ages when they were painted; the app's CPU seconds."""
    app = psutil.Process(terminal.process.pid)
    ages: dict[int, float] = {}
    terminal.until(lambda: _MARK.search(terminal.raw) is not None, "the first delta")
    began, seen, cpu = time.monotonic(), len(terminal.raw), None
    while (now := time.monotonic()) < began + SECONDS - 0.1:
        if cpu is None and now > began + SETTLING:
            cpu = _cpu(app)
        terminal.read(0.05)
        now_ns = time.monotonic_ns()
        for found in _MARK.finditer(terminal.raw, max(0, seen - 20)):
            if found.end() < len(terminal.raw):
                ages.setdefault(int(found[1]), (now_ns - int(found[1])) / 1e9)
        seen = len(terminal.raw)
    assert cpu is not None
    used = _cpu(app) - cpu
    counted = [age for moment, age in ages.items() if moment > (began + SETTLING) * 1e9]
    memory = peak(terminal.process.pid)
    slow = quantiles(counted, n=20)[-1]
    return [Cost(seconds=each, memory=memory) for each in (median(counted), slow, used)]


def _cpu(process: psutil.Process) -> float:
    times = process.cpu_times()
    return times.user + times.system
