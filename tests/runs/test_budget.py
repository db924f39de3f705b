"""What a run and a day may cost: real supervisors, and a CLI that writes its session."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from gemtui.agent.events import Done, ErrorSaid, ResultStatus, ToolResult
from gemtui.agent.options import AgentOptions
from gemtui.agent.run_folder import Request, RunFolder
from gemtui.paths import config_file
from gemtui.runs.budget import RunBudget
from gemtui.runs.listing import list_runs, runs_dir
from tests.cli.conftest import Gemtui, gemtui
from tests.fake_cli import HELP, OK, FakeCli, ends, says, uses
from tests.gated import asking
from tests.model_server import Gate, ModelServer, answer, call, text, usage
from tests.patience import PATIENCE
from tests.real_cli import GeminiCli
from tests.sessions import logs

pytestmark = pytest.mark.covers("gemtui/agent")

__all__ = ["gemtui"]

ID = "abcdef12-0000-4000-8000-000000000000"
INIT = f'print:{{"type":"init","session_id":"{ID}","model":"auto"}}'
OLD = HELP.replace("      --session-id       Start a new session  [string]\n", "")
"""The help of a CLI that chooses the ids of its sessions itself."""
NOW = datetime.now(UTC).isoformat()
MODEL = "gemini-2.5-pro"
TURN = (uses("t1", "read_file", "a.py"), ends("t1"))
GO_ON = (says("more"), f"print:{OK}")


def tokens(dollars: float) -> dict[str, Any]:
    """Tokens of an answer that cost about so much: a million output tokens cost 10 dollars."""
    used = round(dollars / 10 * 1_000_000)
    return {"input": 0, "output": used, "cached": 0, "thoughts": 0, "tool": 0, "total": used}


def answered(cost: float | None, id: str = "a1", **more: Any) -> logs.Record:
    """An answer that called a tool."""
    spent = None if cost is None else tokens(cost)
    own = {"timestamp": NOW, "toolCalls": [logs.call("t1")]}
    return logs.gemini(id, "", **{"model": MODEL, "tokens": spent, **own, **more})


def stored(home: Path, *records: logs.Record, id: str = ID) -> str:
    """The step that writes a session."""
    path = home / f".gemini/tmp/project/chats/session-2026-11-20T23-04-{id[:8]}.jsonl"
    header = logs.header(id, lastUpdated=NOW)
    lines = [json.dumps(each) for each in (header, logs.user("u1", "Go"), *records)]
    return f"make:{path}=" + "\n".join(lines)


def ended() -> str | None:
    """The limit that ended the run."""
    (run,) = list_runs(runs_dir())
    assert run.exit is not None
    return run.exit.limit


async def test_a_run_of_the_real_cli_is_stopped_before_its_next_call(gemini: GeminiCli) -> None:
    write = call("write_file", file_path="a.txt", content="x")
    turns = [answer(write, tokens=usage(answer=1_000_000)), answer(text("never"), after=Gate())]
    limits = AgentOptions(cwd=gemini.project, model="gemini-2.5-flash", approval_mode="yolo", budget=0.5)
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
    fake_cli(INIT, TURN[0], stored(home, answered(0.6)), TURN[1], "wait", help=OLD)
    found = gemtui("run", "Go", "--budget", "$0.50", "--json")
    events = [json.loads(line) for line in found.out.splitlines()]
    (error,) = (event["payload"] for event in events if event["type"] == "error")
    assert (found.code, ended()) == (79, "budget")
    assert (error["code"], error["message"]) == ("GEMINI_BUDGET", "This run has cost $0.60 of $0.50")
    assert [event["type"] for event in events].count("tool_result") == 1
    assert "budget used up" in gemtui("runs").out


@pytest.mark.parametrize(
    ("last", "why"),
    [
        (answered(0.6, model="gemini-new"), "no price for gemini-new"),
        (answered(None), "its session contains no token counts"),
    ],
)
def test_a_run_whose_cost_is_unknown_is_stopped(
    fake_cli: FakeCli, gemtui: Gemtui, home: Path, last: logs.Record, why: str
) -> None:
    fake_cli(INIT, stored(home, last), *TURN, "wait", help=OLD)
    found = gemtui("run", "Go", "--budget", "5")
    assert (found.code, ended()) == (79, "budget")
    assert "The cost of this run is unknown, because" in found.err
    assert why in found.err


def test_a_last_answer_beyond_the_budget_is_not_cut_off(fake_cli: FakeCli, gemtui: Gemtui, home: Path) -> None:
    first, last = answered(0.1), answered(0.6, id="a2", toolCalls=[])
    fake_cli(INIT, stored(home, first), *TURN, GO_ON[0], stored(home, first, last), GO_ON[1])
    assert gemtui("run", "Go", "--budget", "0.5").code == 0


def test_no_prompt_is_sent_that_the_budget_does_not_cover(home: Path, tmp_path: Path) -> None:
    path, _, lines = stored(home, answered(0.6, toolCalls=[])).removeprefix("make:").partition("=")
    folder = RunFolder.create(tmp_path / "runs", "run")
    request = Request(
        id="run", argv=("gemini",), cwd=str(tmp_path), environ={}, about={"session_id": ID, "budget": 0.5}
    )
    budget = RunBudget(folder, request)
    assert (budget.may_prompt(), budget.exceeded()) == (True, None)
    Path(path).parent.mkdir(parents=True)
    Path(path).write_text(f"{lines}\n")
    while budget.may_prompt():
        pass
    assert budget.exceeded() == "This run has cost $0.60 of $0.50"
    budget.close()


def test_what_a_resumed_session_cost_before_does_not_count(fake_cli: FakeCli, gemtui: Gemtui, home: Path) -> None:
    path, _, lines = stored(home, answered(9)).removeprefix("make:").partition("=")
    Path(path).parent.mkdir(parents=True)
    Path(path).write_text(f"{lines}\n")
    (Path(path).parents[1] / ".project_root").write_text(str(Path.cwd()))
    more = answered(0.1, id="a2")
    fake_cli(INIT, *TURN, stored(home, answered(9), more), *GO_ON)
    assert gemtui("run", "Go", "--resume", ID, "--budget", "0.5").code == 0


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--budget", "0"), "budget must be more than 0 dollars"),
        (("--budget", "much"), "'much' is not an amount"),
        (("--budget", "1", "-m", "gemini-new"), "no price for gemini-new"),
    ],
)
def test_a_budget_that_can_not_be_kept_starts_nothing(
    fake_cli: FakeCli, gemtui: Gemtui, words: tuple[str, ...], why: str
) -> None:
    fake_cli()
    found = gemtui("run", "Go", *words)
    assert (found.code, list_runs(runs_dir())) == (2, ())
    assert why in found.err


def test_the_day_s_budget_counts_all_sessions_of_the_day(fake_cli: FakeCli, gemtui: Gemtui, home: Path) -> None:
    config_file().parent.mkdir(parents=True)
    config_file().write_text("day_budget = 1\n")
    fake_cli(INIT, stored(home, answered(0.6)), *TURN, *GO_ON, help=OLD)
    assert gemtui("run", "Go").code == 0
    other = "bbbbbbbb-0000-4000-8000-000000000000"
    init = INIT.replace(ID, other)
    fake_cli(init, stored(home, answered(0.6), id=other), *TURN, "wait", help=OLD)
    second = gemtui("run", "Go")
    assert second.code == 79
    assert "Today's sessions have cost $1.20 of $1.00" in second.err
    third = gemtui("run", "Go")
    assert third.code == 2
    assert "budget: today's sessions cost $1.20, and the setting day_budget is $1.00" in third.err
