"""`gemtui runs show`: what a run asked, and what became of it."""

from __future__ import annotations

import json

import pytest

from gemtui.agent.approval import ApprovalRequest, Fate, Settled
from gemtui.agent.gate_folder import GateFolder
from gemtui.commands.runs import show
from gemtui.runs.listing import runs_dir
from tests.runs.test_listing import add_run


def test_what_a_run_asked_is_told(
    own_places: None, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    run = add_run(runs_dir(), "asking")
    gate = GateFolder.of(run)
    gate.create()
    hostile = {"command": "git push \x1b]0;x\x07"}
    gate.ask(ApprovalRequest(tool_name="run_shell_command", arguments=hostile, number=1))
    gate.ask(ApprovalRequest(tool_name="write_file", arguments={"file_path": "a.txt"}, number=2))
    gate.settle(1, Settled(fate=Fate.DENIED, reason="not yet"))
    show(run.id, as_json=False)
    told = capsysbinary.readouterr().out.decode()
    assert "asked    denied: run_shell_command git push \u241b]0;x\u2407 (not yet)" in told
    assert "asked    waits: write_file a.txt" in told
    show(run.id, as_json=True)
    questions = json.loads(capsysbinary.readouterr().out)["run"]["questions"]
    assert [each["fate"] for each in questions] == ["denied", "waits"]
