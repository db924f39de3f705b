"""What a run and a day may cost: real supervisors, and a CLI that writes its session."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from gemtui.agent.events import Done, ErrorSaid, ResultStatus, ToolResult
from gemtui.agent.options import AgentOptions
from gemtui.agent.run_folder import Request, RunFolder
from gemtui.paths import config_file, runs_dir
from gemtui.runs import budget
from gemtui.runs.budget import RunBudget
from gemtui.runs.listing import list_runs
from tests.cli.conftest import Gemtui, gemtui
from tests.fake_cli import HELP, FakeCli, ends, says, uses
from tests.gated import asking
from tests.model_server import Gate, ModelServer, answer, call, text, usage
from tests.patience import PATIENCE
from tests.real_cli import GeminiCli
from tests.rows import table
from tests.sessions import logs, stores

pytestmark = pytest.mark.covers("gemtui/agent")

__all__ = ["gemtui"]

ID = "abcdef12-0000-4000-8000-000000000000"
INIT = f'print:{{"type":"init","session_id":"{ID}","model":"auto"}}'
OLD = HELP.replace("      --session-id       Start a new session  [string]\n", "")
"""The help of a CLI that chooses the ids of its sessions itself."""


def now() -> str:
    """The time, which is another day after midnight."""
    return datetime.now(UTC).isoformat()


MODEL = "gemini-2.5-pro"
TURN = (uses("t1", "read_file", "a.py"), ends("t1"))


def tokens(dollars: float) -> dict[str, Any]:
    """Tokens of an answer that cost about so much: a million output tokens cost 10 dollars."""
    used = round(dollars / 10 * 1_000_000)
    return {"input": 0, "output": used, "cached": 0, "thoughts": 0, "tool": 0, "total": used}


def answered(cost: float | None, id: str = "a1", **more: Any) -> logs.Record:
    """An answer that called a tool."""
    spent = None if cost is None else tokens(cost)
    own = {"timestamp": now(), "toolCalls": [logs.call("t1")]}
    return logs.gemini(id, "", **{"model": MODEL, "tokens": spent, **own, **more})


async def test_a_run_of_the_real_cli_is_stopped_before_its_next_call(gemini: GeminiCli) -> None:
    write = call("write_file", file_path="a.txt", content="x")
    turns = [answer(write, tokens=usage(answer=1_000_000)), answer(text("never"), after=Gate())]
    limits = AgentOptions(
        cwd=gemini.project, model="gemini-2.5-flash", approval_mode="yolo", budget=0.5
    )
    with ModelServer(turns) as model:
        async with asyncio.timeout(PATIENCE):
            said = [each.payload async for each in asking(gemini, model).run("go", limits)]
    results = [each.status for each in said if isinstance(each, ToolResult)]
    assert results == [ResultStatus.SUCCESS]
    errors = [each.message for each in said if isinstance(each, ErrorSaid)]
    assert errors == ["This run has cost $2.50 of $0.50"]
    assert isinstance(said[-1], Done)
    assert said[-1].result == errors[-1]


def test_a_run_is_stopped_before_the_call_that_its_budget_does_not_cover(
    fake_cli: FakeCli, gemtui: Gemtui, home: Path
) -> None:
    path = home / f".gemini/tmp/project/chats/session-2026-11-20T23-04-{ID[:8]}.jsonl"
    records = (logs.header(ID, lastUpdated=now()), logs.user("u1", "Go"), answered(0.6))
    session = f"make:{path}=" + "\n".join(map(json.dumps, records))
    set_day_budget(9)
    fake_cli(INIT, TURN[0], session, TURN[1], "wait", help=OLD)
    found = gemtui("run", "Go", "--budget", "$0.50", "--json")
    events = [json.loads(line) for line in found.out.splitlines()]
    (error,) = (event["payload"] for event in events if event["type"] == "error")
    (run,) = list_runs(runs_dir())
    assert (found.code, run.exit and run.exit.limit) == (79, "budget")
    request = run.folder.request()
    assert request is not None
    assert request.about["day_budget"] == 9
    assert (error["code"], error["message"]) == (
        "GEMINI_BUDGET",
        "This run has cost $0.60 of $0.50",
    )
    assert [event["type"] for event in events].count("tool_result") == 1
    assert "budget used up" in gemtui("runs").out


def set_day_budget(dollars: float) -> None:
    config_file().parent.mkdir(parents=True)
    config_file().write_text(f"day_budget = {dollars}\n")


class BudgetedRun:
    """A run that has a budget, and whose session and output the test writes."""

    def __init__(self, home: Path, **about: Any) -> None:
        self.session = home / f".gemini/tmp/project/chats/session-2026-11-20T23-04-{ID[:8]}.jsonl"
        self._folder = RunFolder.create(home / "runs", "run")
        full: Any = {"session_id": ID, **about}
        self._request = Request(id="run", argv=("gemini",), cwd=str(home), environ={}, about=full)

    def stores(self, *records: logs.Record) -> None:
        """Write the session."""
        logs.write(
            self.session, [logs.header(ID, lastUpdated=now()), logs.user("u1", "Go"), *records]
        )

    def prints(self, *steps: str) -> None:
        """Let the CLI print the lines of these steps."""
        with self._folder.stdout.open("a") as output:
            output.writelines(step.removeprefix("print:") + "\n" for step in steps)

    @contextmanager
    def watched(self) -> Iterator[RunBudget]:
        """Watch what the run costs from now on."""
        with closing(RunBudget(self._folder, self._request)) as watched:
            yield watched


@pytest.fixture
def run(home: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., BudgetedRun]:
    """Make a run whose budget looks as often as it is asked."""
    for pause in ("_STEP", "_FILES", "_UNRECORDED"):
        monkeypatch.setattr(budget, pause, 0)
    return partial(BudgetedRun, home)


@pytest.mark.parametrize(
    ("last", "why"),
    [
        (answered(0.6, model="gemini-new"), "there is no price for gemini-new; "),
        (answered(None), "its session contains no token counts"),
    ],
)
def test_a_run_whose_cost_is_unknown_must_stop(
    run: Callable[..., BudgetedRun], last: logs.Record, why: str
) -> None:
    working = run(budget=5)
    working.stores(last)
    working.prints(*TURN)
    with working.watched() as watched:
        assert f"The cost of this run is unknown, because {why}" in str(watched.exceeded())


def test_an_answer_beyond_the_budget_ends_and_no_call_follows(
    run: Callable[..., BudgetedRun],
) -> None:
    working = run(budget=0.5)
    with working.watched() as watched:
        working.stores(answered(0.1))
        working.prints(*TURN)
        assert watched.exceeded() is None
        working.stores(answered(0.1), answered(0.6, id="a2", toolCalls=[]))
        working.prints(says("more"))
        assert watched.exceeded() is None
        working.prints(*TURN)
        assert watched.exceeded() == "This run has cost $0.70 of $0.50"


def test_a_small_cost_is_not_told_as_zero(run: Callable[..., BudgetedRun]) -> None:
    working = run(budget=0.001)
    with working.watched() as watched:
        working.stores(answered(0.0012, toolCalls=[]))
        assert not watched.may_prompt()
        assert watched.exceeded() == "This run has cost $0.0012 of $0.001"


def test_no_prompt_is_sent_once_the_budget_is_used_up(run: Callable[..., BudgetedRun]) -> None:
    working = run(budget=0.5)
    with working.watched() as watched:
        assert (watched.may_prompt(), watched.exceeded()) == (True, None)
        working.stores(answered(0.5, toolCalls=[]))
        assert not watched.may_prompt()
        assert watched.exceeded() == "This run has cost $0.50 of $0.50"


def test_what_a_resumed_session_cost_before_does_not_count(run: Callable[..., BudgetedRun]) -> None:
    working = run(budget=0.5, resume=ID)
    working.stores(answered(9))
    with working.watched() as watched:
        working.stores(answered(9), answered(0.1, id="a2"))
        working.prints(*TURN)
        assert watched.exceeded() is None


@pytest.mark.parametrize(("words", "why"), table("runs/budget.json"))
def test_a_budget_that_can_not_be_kept_starts_nothing(
    fake_cli: FakeCli, gemtui: Gemtui, words: list[str], why: str
) -> None:
    fake_cli()
    found = gemtui("run", "Go", *words)
    assert (found.code, list_runs(runs_dir())) == (2, ())
    assert why in found.err


def test_the_budget_of_a_day_counts_all_its_sessions(
    run: Callable[..., BudgetedRun], gemtui: Gemtui, home: Path
) -> None:
    other = "bbbbbbbb-0000-4000-8000-000000000000"
    stores.session(
        home / ".gemini",
        other,
        [logs.header(other, lastUpdated=now()), logs.user("u1", "Go"), answered(0.6)],
    )
    working = run(day_budget=1)
    with working.watched() as watched:
        working.stores(answered(0.3))
        working.prints(*TURN)
        assert watched.exceeded() is None
        working.stores(answered(0.3), answered(0.3, id="a2"))
        assert "Today's sessions have cost $1.20 of $1.00" in str(watched.exceeded())
    set_day_budget(1)
    refused = gemtui("run", "Go")
    assert refused.code == 2
    assert "budget: today's sessions cost $1.20, and the setting day_budget is $1.00" in refused.err
