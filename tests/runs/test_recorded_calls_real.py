"""What the real CLI stores of calls while a run works, and what becomes of calls after a stop."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import pytest

from gemtui.agent.adapter import GeminiRun
from gemtui.agent.approval import STOPPED_BY_USER, Approval
from gemtui.transcript.model import Consent, DiffDisplay, ToolCall, ToolStatus
from gemtui.ui.run.live_run import LiveRun, ToolEnd
from gemtui.ui.transcript.diff import first_line
from tests.gated import asked, asking
from tests.model_server import Gate, ModelServer, answer, call, text
from tests.patience import PATIENCE, turns_until
from tests.real_cli import GeminiCli

pytestmark = pytest.mark.covers("gemtui/agent", "gemtui/runs")


def live_run(run: GeminiRun, gemini: GeminiCli) -> LiveRun:
    return LiveRun(run, "go", began=datetime.now(UTC), home=gemini.store)


def is_recorded(call: ToolCall) -> bool:
    return isinstance(call.display, DiffDisplay) and call.display.original is not None


async def test_exit_codes_and_line_numbers_are_known_while_the_run_works(gated: GeminiCli) -> None:
    (gated.project / "lines").write_text("".join(f"{number}\n" for number in range(1, 21)))
    edit = call(
        "replace", file_path="lines", old_string="15\n", new_string="fifteen\n", instruction="x"
    )
    gate = Gate()
    turns = [
        answer(call("run_shell_command", command="exit 3")),
        answer(edit),
        answer(text("End."), after=gate),
    ]
    with ModelServer(turns) as model:
        options = asked(gated, approval_mode="yolo", ask=False)
        live = live_run(await asking(gated, model).begin("go", options), gated)
        following = asyncio.create_task(live.follow())
        await turns_until(lambda: any(map(is_recorded, live.own_transcript.calls())))
        shell, edited = live.own_transcript.calls()
        assert live.alive
        assert (shell.status, shell.exit_code, live.ends()[ToolEnd.FAILED]) == (
            ToolStatus.SUCCESS,
            3,
            1,
        )
        assert isinstance(edited.display, DiffDisplay)
        assert first_line(edited.display.diff) == 15
        gate.open()
        await following
    assert live.outcome is not None
    assert live.outcome.headline == "Done, but 1 tool call failed: run_shell_command"


async def test_after_a_stop_the_other_calls_were_not_run(gated: GeminiCli) -> None:
    names = ("a", "b", "c")
    turns = [
        answer(
            call("list_directory", dir_path="."),
            *(call("write_file", file_path=n, content="x") for n in names),
        )
    ]
    with ModelServer(turns) as model:
        live = live_run(await asking(gated, model).begin("go", asked(gated)), gated)
        following = asyncio.create_task(live.follow())
        await turns_until(lambda: live.waiting)
        live.run.gate.answer(1, Approval.allow())
        await turns_until(lambda: live.waiting and live.waiting[0].number == 2)
        live.run.gate.answer(2, Approval.stop())
        await asyncio.wait_for(following, PATIENCE)
    assert [each.name for each in gated.project.iterdir()] == ["a"]
    calls = live.own_transcript.calls()
    assert [(each.answer and each.answer.consent) for each in calls] == [
        None,
        Consent.ALLOWED,
        Consent.STOPPED,
        Consent.ABANDONED,
    ]
    assert [each.status for each in calls[2:]] == [ToolStatus.DENIED, ToolStatus.CANCELLED]
    assert calls[-1].answer is not None
    assert calls[-1].answer.reason == STOPPED_BY_USER
