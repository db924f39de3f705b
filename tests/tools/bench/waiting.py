"""From enter to the answer, with a Gemini CLI that waits for its prompt and without."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import aclosing
from pathlib import Path

from gemtui.agent.adapter import GeminiRun
from gemtui.agent.options import AgentOptions
from gemtui.agent.ready import ReadyCli
from gemtui.runs.adapter import GeminiAdapter
from tests.model_server import ModelServer, answer, text
from tests.npm import install
from tests.real_cli import MODEL, PACKAGE, VERSION, GeminiCli
from tests.tools.bench.measure import Cost, Row, medians

PROMPT = "hello"
_LOOK = 0.01
_WAITS = 3600.0


def rows(folder: Path, repeat: int) -> Iterator[Row]:
    """Three ways in turn, so that what else the machine does slows down all of them."""
    cache = Path(".pytest_cache/d/gemini-cli").absolute()
    program = install(cache, PACKAGE, VERSION) / ".bin" / "gemini"
    cli = GeminiCli.set_up(program, folder / "waiting")
    turns = [answer(text("Hi."))] * 3 * repeat
    with ModelServer(turns) as model:
        adapter = GeminiAdapter(
            cli=program, runs=folder / "runs", environ=cli.environment(model.url)
        )
        adapter.detect()
        options = AgentOptions(cwd=cli.project, model=MODEL)
        runs = []
        for _ in range(repeat):
            plain = _plain(cli, model)
            started = _timed(lambda: adapter.start(PROMPT, options))
            ready = _loaded(cli, adapter.prepare(PROMPT[0], options, seconds=_WAITS))
            runs.append([plain, started, _timed(_sending(adapter, options, ready))])
    plain, started, waited = medians(runs)
    for cost, how in ((started, "started by enter"), (waited, "waiting since the first key")):
        yield Row(
            what=f"from enter to the answer, Gemini CLI {how}",
            cost=cost,
            floor="Gemini CLI alone, from its start",
            least=plain.seconds,
        )


def _plain(cli: GeminiCli, model: ModelServer) -> Cost:
    began = time.perf_counter()
    with cli.start(model, PROMPT) as running:
        while b'"assistant"' not in running.stdout.read_bytes():
            time.sleep(_LOOK)
        return Cost(seconds=time.perf_counter() - began, memory=0)


def _loaded(cli: GeminiCli, ready: ReadyCli | None) -> ReadyCli:
    """Wait until the CLI waits, which is soon after it has made its session's file."""
    assert ready is not None
    id = ready.waiting.request.about["session_id"] or ""
    while not any(cli.store.glob(f"tmp/*/chats/*{id[:8]}*")):
        time.sleep(_LOOK)
    time.sleep(1.0)
    return ready


def _sending(
    adapter: GeminiAdapter, options: AgentOptions, ready: ReadyCli
) -> Callable[[], GeminiRun]:
    return lambda: adapter.start(PROMPT, options, ready=ready)


def _timed(start: Callable[[], GeminiRun]) -> Cost:
    """The time from the start to the first piece of the answer."""

    async def follow(run: GeminiRun) -> float:
        async with aclosing(run.owned_events()) as events:
            async for event in events:
                if event.type == "text_delta":
                    return time.perf_counter()
        raise AssertionError("there was no answer")

    began = time.perf_counter()
    return Cost(seconds=asyncio.run(follow(start())) - began, memory=0)
