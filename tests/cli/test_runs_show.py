"""`gemtui runs show`: what a run asked, and what became of it."""

from __future__ import annotations

import psutil

from gemtui.agent.approval import Approval, ApprovalRequest, GateFolder, Settled
from gemtui.agent.prompt_queue import PromptQueue
from gemtui.agent.run_folder import Owner
from gemtui.agents import Agent
from gemtui.paths import runs_dir
from gemtui.transcript.model import Consent
from tests.cli.conftest import Gemtui, values
from tests.runs.test_listing import INIT, add_run, unended

GONE = Owner(pid=2**22, began=1.0)


def test_what_a_run_asked_is_told(gemtui: Gemtui) -> None:
    own = psutil.Process()
    run = unended(runs_dir(), "asking", Owner(pid=own.pid, began=own.create_time()))
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


def test_a_lost_run_says_what_happened_when_and_what_to_do(gemtui: Gemtui) -> None:
    run = unended(runs_dir(), "lost", GONE)
    gate = GateFolder.of(run)
    gate.create()
    gate.ask(ApprovalRequest(tool_name="write_file", arguments={"file_path": "a.txt"}, number=1))
    gate.answer(1, Approval.allow())
    gemtui("runs show lost").shows(
        "state    lost",
        "why      the supervisor of this run was killed",
        ", when its output ends",
        "to do    nothing of the run works any more: to go on, use gemtui run",
        "asked    abandoned: write_file a.txt (the run ended)",
    )
    gemtui("runs").tells("run lost is lost", "see gemtui runs show lost")
    doctor = gemtui("doctor")
    doctor.shows("run lost is lost")
    assert doctor.out.splitlines()[-1] == "no problems"


def test_a_failed_run_says_why_and_what_to_do(gemtui: Gemtui) -> None:
    error = '{"type":"result","status":"error","error":{"type":"Error","message":"no such model"}}'
    add_run(runs_dir(), "failed", INIT + error)
    gemtui("runs show failed").shows("state    failed", "why      ", "no such model")


def test_the_list_names_the_agents_of_runs_if_there_are_several(gemtui: Gemtui) -> None:
    add_run(runs_dir(), "first")
    assert "AGENT" not in gemtui("runs").out
    add_run(runs_dir(), "second", agent=Agent.CLAUDE)
    gemtui("runs").shows("AGENT", "gemini  done", "claude  ")
    gemtui("runs show second").shows("agent    Claude Code")


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
