"""`gemtui runs show`: what a run asked, and what became of it."""

from __future__ import annotations

import json

import pytest

from gemtui.agent.approval import ApprovalRequest, GateFolder, Settled
from gemtui.agent.prompt_queue import PromptQueue
from gemtui.cli import main
from gemtui.runs.listing import runs_dir
from gemtui.transcript.model import Consent
from tests.cli.conftest import values
from tests.runs.test_listing import add_run


def test_what_a_run_asked_is_told(own_places: None, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    run = add_run(runs_dir(), "asking")
    gate = GateFolder.of(run)
    gate.create()
    hostile = {"command": "git push \x1b]0;x\x07"}
    gate.ask(ApprovalRequest(tool_name="run_shell_command", arguments=hostile, number=1))
    gate.ask(ApprovalRequest(tool_name="write_file", arguments={"file_path": "a.txt"}, number=2))
    gate.settle(1, Settled(consent=Consent.DENIED, reason="not yet"))
    main(["runs", "show", run.id])
    told = capsysbinary.readouterr().out.decode()
    assert "asked    denied: run_shell_command git push \u241b]0;x\u2407 (not yet)" in told
    assert "asked    waits: write_file a.txt" in told
    main(["runs", "show", run.id, "--json"])
    questions = json.loads(capsysbinary.readouterr().out)["run"]["questions"]
    assert values(questions, "consent") == ["denied", "waits"]


def test_what_waits_is_named_listed_and_said_where_it_goes(
    own_places: None, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    run = add_run(runs_dir(), "waiting")
    queue = PromptQueue.of(run)
    queue.add_prompt("then \x1b[31mthis\nand that")
    queue.send_message("faster")
    main(["runs", "show", run.id])
    told = capsysbinary.readouterr().out.decode()
    assert "waits    faster\nwaits    then \u241b[31mthis\u240aand that\n" in told
    main(["runs", "show", run.id, "--json"])
    found = json.loads(capsysbinary.readouterr().out)["run"]
    assert (found["undelivered"], found["waiting"][0]) == (2, "faster")
    main(["runs"])
    assert b"2 queued prompts for run waiting" in capsysbinary.readouterr().err
    main(["runs", "clear"])
    assert b"including 2 queued prompts" in capsysbinary.readouterr().err
