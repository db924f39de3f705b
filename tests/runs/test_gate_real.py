"""Runs that ask, on the real CLI: what is answered is what happens."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from gemtui.agent.approval import ELSEWHERE, Approval, ApprovalRequest, GateFolder
from gemtui.agent.events import (
    DoneStatus,
    ErrorSaid,
    PermissionRequest,
    ResultStatus,
    ToolResult,
)
from gemtui.agent.fold import Fold
from gemtui.agent.prompt_queue import send_next
from gemtui.runs.enrich import enrich
from gemtui.runs.gate.gate import NOBODY
from gemtui.runs.outcome import RunProgress
from gemtui.transcript.model import Consent, Text, ToolCall
from tests.agent.event_lists import collect, done
from tests.gated import ask, asked, asking, contents, put_server, run_of
from tests.model_server import ModelServer, Request, Turn, answer, call, shell, text, writes
from tests.patience import PATIENCE
from tests.real_cli import GeminiCli

pytestmark = pytest.mark.covers("gemtui/agent", "gemtui/extension", "gemtui/calls")

AT_ONCE = int(os.environ.get("GEMTUI_TEST_CALLS", "5"))
"""How many calls are asked about at once."""


def by_name(**answers: Approval) -> Callable[[ApprovalRequest], Any]:
    """Answers by the first letters of a file's name."""

    async def approve(request: ApprovalRequest) -> Approval:
        return answers[Path(request.arguments["file_path"]).stem]

    return approve


async def test_an_answer_after_another_one_is_reported(gated: GeminiCli) -> None:
    async def approve(request: ApprovalRequest) -> Approval:
        GateFolder.of(run_of(gated)).answer(request.number, Approval.allow())
        return Approval.deny("too late")

    ran = await ask(gated, [[writes("a.txt")]], approve)
    assert ran.statuses == [ResultStatus.SUCCESS]
    said = [event.payload for event in ran.events if isinstance(event.payload, ErrorSaid)]
    assert [error.code for error in said if error.recoverable] == ["GEMTUI_ANSWERED_ELSEWHERE"]
    assert said[0].message == f"write_file: {ELSEWHERE}"


@pytest.mark.every_run
async def test_each_answer_is_what_happens(gated: GeminiCli) -> None:
    changed = {"file_path": "changed.txt", "content": "as the person wrote it\n"}
    approve = by_name(
        yes=Approval.allow(), no=Approval.deny("not there"), changed=Approval.allow(changed)
    )
    calls = [writes("yes.txt"), writes("no.txt"), writes("changed.txt")]
    ran = await ask(gated, [calls], approve)
    assert contents(gated) == {"yes.txt": "x\n", "changed.txt": "as the person wrote it\n"}
    assert "The user said no: not there" in ran.told
    assert "gemtui_gate" not in ran.told
    assert ran.statuses == [ResultStatus.SUCCESS, ResultStatus.DENIED, ResultStatus.SUCCESS]
    requests = [e.payload for e in ran.events if isinstance(e.payload, PermissionRequest)]
    uses = [e.payload.tool_use_id for e in ran.events if isinstance(e.payload, ToolResult)]
    assert [request.tool_use_id for request in requests] == uses
    gate = GateFolder.of(run_of(gated))
    settled = [gate.settled(number) for number in gate.question_numbers()]
    assert [each and each.consent for each in settled] == [
        Consent.ALLOWED,
        Consent.DENIED,
        Consent.CHANGED,
    ]
    assert settled[2] is not None
    assert settled[2].arguments == changed


async def test_shell_commands_run_as_they_were_approved(gated: GeminiCli) -> None:
    commands = [
        "echo a > a && cat a | tee b",
        "cd sub; pwd > here",
        "for i in 1 2; do touch $i; done",
    ]
    (gated.project / "sub").mkdir()
    there = call("run_shell_command", command="pwd > there", dir_path="sub")
    ran = await ask(gated, [[*map(shell, commands)], [there]])
    assert not any("gemtui-" in str(request.arguments) for request in ran.requests)
    assert ran.statuses == [ResultStatus.SUCCESS] * 4
    sub = gated.project / "sub"
    assert (sub / "here").read_text() == (sub / "there").read_text() == f"{sub}\n"
    assert (gated.project / "b").read_text() == "a\n"
    assert (gated.project / "2").exists()


async def test_a_yes_is_for_the_file_that_the_cli_finds(gated: GeminiCli) -> None:
    other = gated.project / "sub/a.py"
    other.parent.mkdir()
    other.write_text("1\n")
    edit = call("replace", file_path="a.py", old_string="1", new_string="2")
    ran = await ask(gated, [[edit, writes("@sub/a.py", "2\n")]])
    assert ran.statuses == [ResultStatus.ERROR, ResultStatus.SUCCESS]
    effects = [request.effect for request in ran.requests if request.effect]
    assert [(effect.path, effect.before) for effect in effects] == [(str(other), "1\n")]
    assert other.read_text() == "2\n"
    assert not (gated.project / "@sub").exists()


async def test_a_person_stops_the_run(gated: GeminiCli) -> None:
    approve = by_name(a=Approval.stop("enough"), b=Approval.allow())
    ran = await ask(gated, [[writes("a.txt"), writes("b.txt")]], approve)
    assert len(ran.model.asked) == 1
    assert done(ran.events).status is DoneStatus.INTERRUPTED
    assert list(gated.project.iterdir()) == []


async def test_words_and_prompts_reach_an_agent_at_work(gated: GeminiCli) -> None:
    turns = [answer(writes("a")), answer(text("First.")), answer(writes("b")), answer(text("End."))]
    with ModelServer(turns) as model:
        run = await asking(gated, model).begin("go", asked(gated))
        fold, progress = Fold("go", began=datetime.now(UTC)), RunProgress()
        async with asyncio.timeout(PATIENCE):
            async for event in run.owned_events():
                fold.add(event)
                progress.add(event)
                if isinstance(event.payload, PermissionRequest):
                    if not run.queue.messages():
                        word = run.queue.send_message("Prefer the other library.")
                        run.queue.add_prompt("Then\nwrite b.")
                    for number in run.gate.question_numbers():
                        run.gate.answer(number, Approval.allow())
        told = [json.dumps(each.body["contents"][-1]) for each in model.asked]
    assert "Prefer the other library." in told[1]
    assert "Then\\nwrite b." in told[2]
    assert "Agent execution blocked" not in "".join(told)
    delivered = run.queue.delivery(word)
    assert delivered is not None
    assert delivered.tool_name == "write_file"
    assert delivered.tool_use_id is not None
    outcome = progress.outcome(run.stderr())
    assert outcome is not None
    assert outcome.headline == "Done"
    assert progress.done is not None
    live = fold.transcript()
    full = enrich(live, gated.store, progress.done.resume_token)
    stored = f"{gated.project}/"
    for transcript, folder in ((live, ""), (full, stored)):
        messages = list(transcript)
        prompts = [message.blocks[0] for message in messages if message.prompt]
        assert prompts == [Text(text="go"), Text(text="Then\nwrite b.")]
        calls = [block for m in messages for block in m.blocks if isinstance(block, ToolCall)]
        assert [call.args for call in calls] == [
            {"file_path": f"{folder}a", "content": "x\n"},
            {"file_path": f"{folder}b", "content": "x\n"},
        ]
        texts = [
            block.text
            for message in messages
            if not message.prompt
            for block in message.blocks
            if isinstance(block, Text)
        ]
        assert texts == ["First.", "End."]
    assert all(call.display is not None for call in calls)


async def test_seven_prompts_that_run_the_same_command_run_it_seven_times(gated: GeminiCli) -> None:
    prompts = [f"again, number {number}" for number in range(7)]

    def turn(request: Request) -> Turn:
        ran = "functionResponse" in json.dumps(request.body["contents"][-1])
        return answer(text("Done.") if ran else shell("echo ran >> ../ran.txt"))

    with ModelServer(turn) as model:
        adapter, options = asking(gated, model), asked(gated, approval_mode="yolo")
        first = await adapter.begin(prompts[0], options)
        for prompt in prompts[1:]:
            first.queue.add_prompt(prompt)
        resume = replace(options, resume=done(await collect(first.events())).resume_token)
        last, runs = first, 1
        while (
            run := await send_next(last.folder, lambda text, id: adapter.begin(text, resume, id=id))
        ) is not None:
            last, runs = run, runs + 1
            await collect(run.events())
        asked_for = [json.dumps(request.body["contents"][-1]) for request in model.asked]
    assert (gated.folder / "ran.txt").read_text() == "ran\n" * 7
    assert [prompt for request in asked_for for prompt in prompts if prompt in request] == prompts
    assert 1 < runs < 7, "some prompts are handed on, others start a process"


async def test_tools_of_servers_are_asked_about_as_well(gated: GeminiCli) -> None:
    put_server(gated)
    make = [call("mcp_things_make", path=name) for name in ("no", "yes", "other")]
    answers = {
        "no": Approval.deny(),
        "yes": Approval.allow(),
        "other": Approval.allow({"path": "another"}),
    }

    async def approve(request: ApprovalRequest) -> Approval:
        return answers[request.arguments["path"]]

    ran = await ask(gated, [make], approve)
    made = {name: json.loads(content) for name, content in contents(gated).items()}
    assert made == {"yes": {"path": "yes"}, "another": {"path": "another"}}
    assert ran.statuses == [ResultStatus.DENIED, ResultStatus.SUCCESS, ResultStatus.SUCCESS]


NO_SHELL = """
[[rule]]
toolName = "run_shell_command"
subagent = "generalist"
decision = "deny"
priority = 1
"""


async def test_the_calls_of_a_sub_agent_are_asked_about(gated: GeminiCli) -> None:
    (gated.store / "policies").mkdir()
    (gated.store / "policies/mine.toml").write_text(NO_SHELL)
    steps = iter(
        [
            answer(writes("no.txt"), shell("touch x"), writes("yes.txt")),
            answer(call("complete_task", result={"response": "Written."})),
        ]
    )
    main = iter(
        [
            answer(call("invoke_agent", agent_name="generalist", prompt="Write two files.")),
            answer(text("Done.")),
        ]
    )

    def turn(request: Request) -> Turn:
        return next(steps if "complete_task" in request.tools else main)

    ran = await ask(gated, turn, by_name(yes=Approval.allow(), no=Approval.deny()))
    assert done(ran.events).status is DoneStatus.SUCCESS
    assert [(asks.subagent, asks.tool_use_id) for asks in ran.requests] == [(True, None)] * 2
    assert [*contents(gated)] == ["yes.txt"]


async def test_denies_hold_whatever_is_answered(gated: GeminiCli) -> None:
    policies = gated.store / "policies"
    policies.mkdir()
    rule = '[[rule]]\ntoolName = "{}"\n{}\ndecision = "deny"\npriority = 1\n'
    words = rule.format("web_fetch", "") + rule.format("run_shell_command", 'commandPrefix = "rm"')
    (policies / "mine.toml").write_text(words)
    (gated.project / "kept").touch()
    commands = ("true && rm kept", "bash -c 'rm kept'", "touch made")
    ran = await ask(gated, [[*map(shell, commands)]])
    assert "web_fetch" not in ran.model.asked[0].tools
    assert [request.arguments["command"] for request in ran.requests] == ["touch made"]
    assert set(contents(gated)) == {"kept", "made"}


async def test_calls_at_once_are_questions_at_once(gated: GeminiCli) -> None:
    calls = [shell(f"echo model > {n}") for n in range(AT_ONCE)]
    open_now, all_asked = [], asyncio.Event()

    async def approve(request: ApprovalRequest) -> Approval:
        open_now.append(request)
        if len(open_now) == AT_ONCE:
            all_asked.set()
        await all_asked.wait()
        n = int(request.arguments["command"].split()[-1])
        other = Approval.allow({"command": f"echo person > {n}"})
        return (Approval.deny(), other, Approval.allow())[n % 3]

    await ask(gated, [calls], approve)
    expected = {str(n): ("", "person\n", "model\n")[n % 3] for n in range(AT_ONCE) if n % 3}
    assert contents(gated) == expected


HOSTILE = {
    "escapes": "\x1b]0;title\x07\x1b[2J\u202e\x9b31m\n",
    "nul": "a\0b",
    "half": "x\ud800y\n",
    "long": "é" * 2_500_000 if AT_ONCE > 5 else "é" * 250_000,
    "\x1b[31mname": "x\n",
}


async def test_hostile_arguments_are_made_as_they_were_allowed(gated: GeminiCli) -> None:
    keys = {"__proto__": {"file_path": "other"}, "constructor": {"name": "other"}}
    marks = {"gemtui_gate": "gemtui-" + "0" * 32}
    calls = [
        *(writes(name, content) for name, content in HOSTILE.items()),
        call("write_file", file_path="keys", content="x\n", **keys),
        call("write_file", file_path="marks", content="x\n", **marks),
    ]
    ran = await ask(gated, [calls])
    requested = [request.requested for request in ran.requests]
    assert {arguments["file_path"]: arguments["content"] for arguments in requested} == (
        HOSTILE | {"keys": "x\n", "marks": "x\n"}
    )
    assert all(request.tool_use_id for request in ran.requests)
    assert contents(gated) == HOSTILE | {"half": "x\ufffdy\n", "keys": "x\n", "marks": "x\n"}


async def test_who_was_there_an_hour_ago_is_not_asked(gated: GeminiCli) -> None:
    turns = iter([answer(writes("a")), answer(writes("b")), answer(text("Done."))])

    def turn(_: Request) -> Turn:
        was_there(0)
        return next(turns)

    def was_there(before: float) -> None:
        gate = GateFolder.of(run_of(gated))
        gate.here()
        then = time.time() + PATIENCE - before
        os.utime(gate.path / "here", (then, then))

    with ModelServer(turn) as model:
        run = await asking(gated, model).begin("go", asked(gated, away="refuse"))
        async with asyncio.timeout(PATIENCE):
            async for event in run.owned_events():
                if not isinstance(event.payload, PermissionRequest):
                    continue
                if run.gate.has_question(2):
                    run.gate.answer(2, Approval.allow())
                else:
                    was_there(3600)
        told = json.dumps(model.asked[1].body["contents"][-1])
    assert NOBODY in told
    assert contents(gated) == {"b": "x\n"}


async def test_a_session_that_is_resumed_asks_as_well(gated: GeminiCli) -> None:
    approve = by_name(a=Approval.allow(), b=Approval.deny(), c=Approval.allow())
    turns = [
        answer(writes("a"), writes("b")),
        answer(text("One.")),
        answer(writes("c"), writes("b")),
    ]
    with ModelServer([*turns, answer(text("Two."))]) as model:
        adapter = asking(gated, model)
        first = await collect(adapter.run("go", asked(gated, approve=approve)))
        token = done(first).resume_token
        again = await collect(adapter.run("on", asked(gated, approve=approve, resume=token)))
    assert done(again).resume_token == token
    assert set(contents(gated)) == {"a", "c"}


async def test_a_plan_is_made_without_questions_and_nothing_else(gated: GeminiCli) -> None:
    calls = [writes("a.txt"), shell("touch b"), writes("plan.md")]
    ran = await ask(gated, [calls], approval_mode="plan")
    assert "run_shell_command" not in ran.model.asked[0].tools
    assert ran.requests == []
    assert contents(gated) == {}
    assert ran.statuses == [ResultStatus.DENIED, ResultStatus.DENIED, ResultStatus.SUCCESS]
