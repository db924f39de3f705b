"""`gemtui runs show`: what a run asked, and what became of it."""

from __future__ import annotations

from gemtui.agent.approval import ApprovalRequest, GateFolder, Settled
from gemtui.agent.prompt_queue import PromptQueue
from gemtui.paths import runs_dir
from gemtui.transcript.model import Consent
from tests.cli.conftest import Gemtui, values
from tests.runs.test_listing import add_run


def test_what_a_run_asked_is_told(gemtui: Gemtui) -> None:
    run = add_run(runs_dir(), "asking")
    gate = GateFolder.of(run)
    gate.create()
    hostile = {"command": "git push \x1b]0;x\x07"}
    gate.ask(ApprovalRequest(tool_name="run_shell_command", arguments=hostile, number=1))
    gate.ask(ApprovalRequest(tool_name="write_file", arguments={"file_path": "a.txt"}, number=2))
    gate.settle(1, Settled(consent=Consent.DENIED, reason="not yet"))
    gemtui("runs show asking").shows(
        "asked    denied: run_shell_command git push \u241b]0;x\u2407 (not yet)",
        "asked    waits: write_file a.txt",
    )
    questions = gemtui.json("runs show asking")["run"]["questions"]
    assert values(questions, "consent") == ["denied", "waits"]


def test_what_waits_is_named_listed_and_said_where_it_goes(gemtui: Gemtui) -> None:
    queue = PromptQueue.of(add_run(runs_dir(), "waiting"))
    queue.add_prompt("then \x1b[31mthis\nand that")
    queue.send_message("faster")
    gemtui("runs show waiting").shows(
        "waits    faster\nwaits    then \u241b[31mthis\u240aand that\n"
    )
    run = gemtui.json("runs show waiting")["run"]
    assert (run["undelivered"], run["waiting"][0]) == (2, "faster")
    gemtui("runs").tells("2 queued prompts for run waiting")
    gemtui("runs clear").tells("including 2 queued prompts")
