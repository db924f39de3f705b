"""Forks of chats with the real CLI: they go on with the results of tools, and stay."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from gemtui.agent.adapter import UnguardedAdapter
from gemtui.agent.events import Done, DoneStatus
from gemtui.agent.options import AgentOptions
from gemtui.kept.resume_guard import ResumeGuard
from gemtui.policy.model.rules import ApprovalMode
from gemtui.runs.undo.fork import fork_session
from gemtui.sessions.catalog.index import Index
from gemtui.sessions.catalog.summary import Summary
from gemtui.sessions.read.session_log import SessionLog
from tests.model_server import Answer, ModelServer, answer, call, text
from tests.patience import PATIENCE
from tests.real_cli import MODEL, GeminiCli
from tests.sessions import logs
from tests.sessions.stores import legacy, marker, uuid

pytestmark = [pytest.mark.usefixtures("remembered_help"), pytest.mark.covers("gemtui/sessions")]


async def ask(
    gemini: GeminiCli, prompt: str, turns: Sequence[Answer], *, resume: str | None = None
) -> tuple[str, list[dict[str, Any]]]:
    """The id of the session that a prompt went to, and what the model was sent first."""
    with ModelServer(turns) as model:
        adapter = UnguardedAdapter(
            cli=gemini.program,
            runs=gemini.folder / "runs",
            environ=gemini.environment(model.url),
            guard=ResumeGuard(),
        )
        options = AgentOptions(
            cwd=gemini.project, model=MODEL, approval_mode=ApprovalMode.YOLO, resume=resume
        )
        async with asyncio.timeout(PATIENCE):
            events = [event async for event in adapter.run(prompt, options)]
        done = events[-1].payload
        assert isinstance(done, Done)
        assert done.status is DoneStatus.SUCCESS
        assert done.resume_token is not None
        return done.resume_token, model.requests[0].body["contents"]


def found(gemini: GeminiCli, id: str) -> Summary:
    return Index(gemini.store, cache=None).find(id)


def parts(contents: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """What the model reads, as (kind, words), without what the CLI says of the project."""
    seen = []
    for part in (part for content in contents for part in content["parts"]):
        if "functionCall" in part:
            seen.append(("call", part["functionCall"]["name"]))
        elif "functionResponse" in part:
            seen.append(("result", part["functionResponse"]["response"]["output"].strip()))
        elif not part["text"].startswith("<session_context>"):
            seen.append(("text", part["text"].strip()))
    return seen


PAST = [
    ("text", "Read it."),
    ("call", "read_file"),
    ("result", "one plum"),
    ("text", "A plum."),
    ("text", "Write it."),
    ("call", "write_file"),
]


async def three_prompts(gemini: GeminiCli) -> str:
    (gemini.project / "a.txt").write_text("one plum\n")
    read = [answer(call("read_file", file_path="a.txt")), answer(text("A plum."))]
    id, _ = await ask(gemini, "Read it.", read)
    write = call("write_file", file_path="b.txt", content="two plums")
    await ask(gemini, "Write it.", [answer(write), answer(text("Written."))], resume=id)
    shell = call("run_shell_command", command="echo three")
    await ask(gemini, "Run it.", [answer(shell), answer(text("Three."))], resume=id)
    return id


async def test_a_fork_goes_on_with_results_of_tools_and_both_stay(gemini: GeminiCli) -> None:
    id = await three_prompts(gemini)
    gemini.plain_list()  # which writes a summary
    original = found(gemini, id).path
    before = original.read_bytes()
    fork = fork_session(found(gemini, id), gemini.store, before=3)
    assert (fork.prompt, fork.project) == ("Run it.", gemini.project)
    assert fork.session_id is not None
    assert fork.path is not None
    older = f"session-2020-01-01T00-00-{fork.session_id[:8]}.jsonl"
    fork.path.rename(fork.path.with_name(older))  # so that going on leaves a second file
    _, sent = await ask(gemini, "Else.", [answer(text("Yes."))], resume=fork.session_id)
    said = parts(sent)
    assert said[: len(PAST)] == PAST
    assert said[len(PAST)][0] == "result"
    assert "created" in said[len(PAST)][1]
    assert said[len(PAST) + 1 :] == [("text", "Written."), ("text", "Else.")]
    there = gemini.plain_list()
    assert id in there
    assert fork.session_id in there
    assert original.read_bytes() == before
    forked = found(gemini, fork.session_id)
    assert forked.prompts == 3
    with SessionLog(forked.path) as log:
        log.refresh()
        assert log.metadata["forkedFrom"] == id
        assert [log.is_inherited(line.time) for line in log.outlines if line.prompt] == [
            *(True, True),
            False,
        ]


async def test_a_fork_of_an_old_session_goes_on_in_the_form_of_newer_ones(
    gemini: GeminiCli,
) -> None:
    reading = logs.gemini("g", "", toolCalls=[logs.call("c1")])
    talk = [
        logs.user("u", "Read it."),
        reading,
        logs.gemini("a", "A body.", 4),
        logs.user("v", "No", 5),
    ]
    legacy(gemini.store, uuid(1), talk, key="greeter")
    gemini.plain_list()  # which registers the project
    marker(gemini.store, "greeter", str(gemini.project))
    fork = fork_session(found(gemini, uuid(1)), gemini.store, before=2)
    assert fork.session_id is not None
    assert fork.path is not None
    assert fork.path.suffix == ".json"
    _, sent = await ask(gemini, "Else.", [answer(text("Yes."))], resume=fork.session_id)
    assert parts(sent) == [
        ("text", "Read it."),
        ("call", "read_file"),
        ("result", "body"),
        ("text", "A body."),
        ("text", "Else."),
    ]
    assert fork.session_id in gemini.plain_list()
    assert found(gemini, fork.session_id).prompts == 2
