"""The words of the run pane, without the app."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from gemtui.agent.agent_run import AgentRun
from gemtui.agent.approval import ApprovalRequest, GateFolder, Settled
from gemtui.agent.options import AgentOptions
from gemtui.agent.run_folder import Exit
from gemtui.agents import Agent
from gemtui.transcript.model import Consent
from gemtui.ui.draw.theme import ASCII
from gemtui.ui.run.labels import ending_text, option_words
from gemtui.ui.run.live_run import LiveRun
from tests.runs.test_listing import BEGAN, INIT, add_run


async def test_a_run_that_the_person_stopped_at_a_question_says_that(tmp_path: Path) -> None:
    ended = Exit(code=-15, started=BEGAN, ended=BEGAN + timedelta(seconds=9), aborted=True)
    for consent, words in ((Consent.DENIED, "by SIGTERM."), (Consent.STOPPED, "by you.")):
        folder = add_run(tmp_path, consent.value, INIT, ended=ended)
        gate, request = GateFolder.of(folder), folder.request()
        assert request is not None
        gate.create()
        gate.ask(ApprovalRequest(tool_name="write_file", arguments={}, number=1))
        gate.settle(1, Settled(consent=consent))
        run = LiveRun(AgentRun(folder, request), "go", began=BEGAN, past=True)
        await run.follow(see_files=False)
        assert f"Stopped {words} The answer so far" in str(ending_text(run, ASCII))


def test_only_gemini_cli_has_a_model_called_auto() -> None:
    assert "model auto" in option_words(AgentOptions()).plain
    assert "model" not in option_words(AgentOptions(agent=Agent.CLAUDE)).plain
    assert "model opus" in option_words(AgentOptions(agent=Agent.CLAUDE, model="opus")).plain
