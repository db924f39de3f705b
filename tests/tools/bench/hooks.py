"""The hooks of gemtui's extension: one alone, and runs of Gemini CLI with and without them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from gemtui.agent.run_folder import Request, RunFolder
from gemtui.extension.content import command, write_to
from gemtui.runs.gate.gemini_gate import GeminiGate
from tests.model_server import ModelServer, answer, call, text
from tests.npm import install
from tests.real_cli import PACKAGE, VERSION, GeminiCli
from tests.tools.bench.measure import Cost, Row, medians

CALLS = 10
LARGE = 5_000_000
HOOKS = 20
"""Calls of a hook to one measurement."""
NOTHING = ("bash", "-c", ":")
PYTHON = (sys.executable, "-I", "-S", "-c", "pass")


def rows(folder: Path, repeat: int) -> Iterator[Row]:
    """One hook as the CLI starts it, then whole runs."""
    extension = folder / "data" / "extension"
    write_to(extension)
    (extension.parent / "live").mkdir()
    yield from _single(extension, repeat)
    yield from _runs(folder, extension, repeat)


def _single(extension: Path, repeat: int) -> Iterator[Row]:
    """The floor of a hook that asks nobody is a shell that does nothing."""
    idle = ("bash", "-c", command("BeforeTool", extension))
    with _gate(extension.parent) as environ:
        works = [
            (NOTHING, b"", {}),
            (idle, _event(b"hello"), {}),
            (idle, _event(b"x" * LARGE), {}),
            (PYTHON, b"", {}),
            (idle, _event(b"hello"), environ),
            (idle, _event(b"x" * LARGE), environ),
        ]
        runs = [[_hooks(*work) for work in works] for _ in range(repeat)]
    nothing, small, large, python, asked, much = medians(runs)
    for what, cost, floor, least in (
        ("a hook, nobody is asked", small, "bash that does nothing", nothing),
        ("a hook, nobody is asked, 5 MB", large, "bash that does nothing", nothing),
        ("a hook, gemtui answers at once", asked, "Python that does nothing", python),
        ("a hook, gemtui answers at once, 5 MB", much, "Python that does nothing", python),
    ):
        yield Row(what=what, cost=cost, floor=floor, least=least.seconds)


def _event(content: bytes) -> bytes:
    head = {"session_id": "s", "transcript_path": "/s.jsonl", "hook_event_name": "BeforeTool"}
    call = {"tool_name": "write_file", "tool_input": {"content": content.decode()}}
    return json.dumps({**head, **call}).encode()


def _hooks(words: tuple[str, ...], stdin: bytes, environ: Mapping[str, str]) -> Cost:
    began = time.perf_counter()
    for _ in range(HOOKS):
        subprocess.run(
            words,
            input=stdin,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={"PATH": os.environ["PATH"], **environ},
            check=False,
        )
    return Cost(seconds=(time.perf_counter() - began) / HOOKS, memory=0)


@contextmanager
def _gate(folder: Path) -> Iterator[Mapping[str, str]]:
    """The gate of a run in yolo mode; the variables that lead hooks there."""
    run = RunFolder.create(folder / "runs", "run")
    request = Request(
        id="run", argv=("gemini",), cwd=str(folder), environ={}, about={"approval_mode": "yolo"}
    )
    gate = GeminiGate(run, request)
    try:
        yield gate.open(folder)
    finally:
        gate.close()


# --- whole runs ----------------------------------------------------------------------------------


def _runs(folder: Path, extension: Path, repeat: int) -> Iterator[Row]:
    """Runs of ten tool calls in pairs, the first of which comes right after the installation."""
    cache = Path(".pytest_cache/d/gemini-cli").absolute()
    program = install(cache, PACKAGE, VERSION) / ".bin" / "gemini"
    plain = GeminiCli.set_up(program, folder / "plain")
    hooked = GeminiCli.set_up(program, folder / "hooked")
    for cli in (plain, hooked):
        _run(cli)
    subprocess.run(
        [program, "extensions", "link", str(extension), "--consent"],
        cwd=hooked.home,
        env=hooked.environment("http://127.0.0.1:1"),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=True,
    )
    pairs = [[_run(plain), _run(hooked)] for _ in range(repeat)]
    without, with_it = medians(pairs)
    for what, cost, least in (
        ("right after the installation", pairs[0][1], pairs[0][0]),
        ("later", with_it, without),
    ):
        yield Row(
            what=f"a run of {CALLS} tool calls with the extension, {what}",
            cost=cost,
            floor="the same without it",
            least=least.seconds,
        )


def _run(cli: GeminiCli) -> Cost:
    """A run that writes ten files, from its start to its end."""
    shutil.rmtree(cli.project)
    cli.project.mkdir()
    writes = [
        answer(call("write_file", file_path=str(cli.project / f"{n}.txt"), content="hello"))
        for n in range(CALLS)
    ]
    with ModelServer([*writes, answer(text("Done."))]) as model:
        began = time.perf_counter()
        with cli.start(model, "go") as running:
            running.finish()
        return Cost(seconds=time.perf_counter() - began, memory=0)
