"""The calls of stored sessions: as many as the sessions count, each as it was recorded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gemtui.policy.model.rules import Call, CallStatus, RecordedCall, Reference, short
from gemtui.runs import call_history
from gemtui.runs.call_history import recorded_calls
from gemtui.sessions.catalog.catalog import Snapshot
from gemtui.sessions.catalog.selection import sessions_with_calls
from gemtui.sessions.store.store import SessionKind
from tests.rows import each_row, table
from tests.sessions import logs, stores

TABLES = table("runs/call_history.json")

HOMES = sorted(stores.DATA.glob("**/.gemini"))


def calls_in(snapshot: Snapshot, **which: Any) -> list[RecordedCall]:
    steps = recorded_calls(sessions_with_calls(snapshot, **which))
    return [recorded for step in steps for recorded in step.calls]


def asked(*calls: dict[str, Any], id: str = "s1") -> list[Any]:
    return [logs.header(id), logs.user("u", "Go"), logs.gemini("g", "", toolCalls=list(calls))]


@each_row("home", HOMES)
def test_all_calls_that_the_sessions_count(home: Path) -> None:
    snapshot = stores.read(home)
    sessions = sessions_with_calls(snapshot)
    found = calls_in(snapshot)
    for session in sessions:
        mine = [each for each in found if each.session == session.id]
        assert len(mine) == session.tool_calls
    listed = [each for each in snapshot.sessions if not each.hidden]
    own = [each for each in found if each.call.subagent is None]
    assert len(own) == sum(each.tool_calls for each in listed)


def test_one_session_with_its_subagents() -> None:
    snapshot = stores.read(stores.MAIN)
    parent = next(each for each in snapshot.sessions if each.id.startswith("379b10d4"))
    found = calls_in(snapshot, session=parent)
    assert [(each.call.tool, each.call.subagent) for each in found] == [
        ("invoke_agent", None),
        ("read_file", "codebase_investigator"),
        ("complete_task", "codebase_investigator"),
    ]
    assert found[0].call.args["agent_name"] == "codebase_investigator"
    assert {each.project for each in found} == {Path(str(parent.project))}


def test_a_subagent_alone_has_no_name() -> None:
    snapshot = stores.read(stores.MAIN)
    (alone,) = [each for each in snapshot.sessions if each.kind is SessionKind.SUBAGENT]
    assert {each.call.subagent for each in calls_in(snapshot, session=alone)} == {"subagent"}


def test_a_projects_calls(tmp_path: Path) -> None:
    for key, id in (("one", "11111111-a"), ("two", "22222222-b")):
        stores.session(tmp_path, id, asked(logs.call("c"), id=id), key=key)
        stores.marker(tmp_path, key, f"/home/dev/{key}")
    found = calls_in(stores.read(tmp_path), project=Path("/home/dev/two"))
    assert [each.session for each in found] == ["22222222-b"]
    assert found[0].project == Path("/home/dev/two")


@pytest.mark.parametrize(("stored", "ended"), TABLES["how it ended"])
def test_how_it_ended(tmp_path: Path, stored: dict[str, Any], ended: CallStatus) -> None:
    stores.session(tmp_path, "s1", asked(logs.call("c", **stored)))
    (found,) = calls_in(stores.read(tmp_path))
    assert found.ended == ended


def test_names_and_arguments_are_as_recorded(tmp_path: Path) -> None:
    old = logs.call("c", name="search_file_content", args={"absolute_path": "/a", "n": [1]})
    text = logs.call("d", name="read_file", args='{"path": "b"}')
    none = logs.call("e", name=None, args=[1])
    stores.session(tmp_path, "s1", asked(old, text, none))
    first, second, third = calls_in(stores.read(tmp_path))
    assert first.call == Call(tool="search_file_content", args={"absolute_path": "/a", "n": [1]})
    assert second.call.args == {"path": "b"}
    assert third.call == Call(tool="unknown_tool")


def test_calls_that_stand_only_as_parts(tmp_path: Path) -> None:
    part = {"functionCall": {"id": "p", "name": "glob", "args": {"pattern": "*"}}}
    records = [
        logs.header(),
        logs.user("u", "Go"),
        logs.gemini("g", "") | {"content": [part]},
        logs.reply("r", "p"),
    ]
    stores.session(tmp_path, "s1", records)
    (found,) = calls_in(stores.read(tmp_path))
    assert (found.call.tool, found.id, found.ended) == ("glob", "p", CallStatus.SUCCEEDED)


def test_steps_are_small_and_say_how_far_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(call_history, "BATCH", 2)
    for number in range(3):
        calls = [logs.call(f"c{place}") for place in range(5)]
        id = stores.uuid(number)
        stores.session(tmp_path, id, asked(*calls, id=id))
    sessions = sessions_with_calls(stores.read(tmp_path))
    steps = list(recorded_calls(sessions))
    assert max(len(step.calls) for step in steps) == 2
    assert sum(len(step.calls) for step in steps) == 15
    assert [step.done for step in steps] == sorted(step.done for step in steps)
    assert (steps[-1].done, steps[-1].total) == (3, 3)


@pytest.mark.parametrize("args", TABLES["large arguments end a step"])
def test_large_arguments_end_a_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, args: dict[str, Any]
) -> None:
    monkeypatch.setattr(call_history, "BATCH_SIZE", 100)
    large = [logs.call(f"c{place}", args=args) for place in range(4)]
    stores.session(tmp_path, "s1", asked(*large))
    steps = recorded_calls(sessions_with_calls(stores.read(tmp_path)))
    assert [len(step.calls) for step in steps] == [2, 2, 0]


def test_reading_can_be_stopped(tmp_path: Path) -> None:
    for number in range(3):
        id = stores.uuid(number)
        stores.session(tmp_path, id, asked(logs.call("c"), id=id))
    sessions = sessions_with_calls(stores.read(tmp_path))
    asks = iter([False] * 3 + [True] * 9)
    steps = list(recorded_calls(sessions, cancelled=lambda: next(asks)))
    assert 0 < sum(len(step.calls) for step in steps) < 3


def test_what_can_not_be_read_is_said(tmp_path: Path) -> None:
    good = stores.session(tmp_path, "11111111-a", asked(logs.call("c"), id="11111111-a"))
    gone = stores.session(
        tmp_path, "22222222-b", asked(logs.call("c"), id="22222222-b"), minute="2026-11-20T23-05"
    )
    sessions = sessions_with_calls(stores.read(tmp_path))
    gone.unlink()
    steps = list(recorded_calls(sessions))
    assert sum(len(step.calls) for step in steps) == 1
    (problem,) = [step.problem for step in steps if step.problem]
    assert problem.path == gone
    assert good.exists()
    assert steps[-1].done == 2


def test_a_reference_is_short() -> None:
    args = {"description": "d", "command": f"echo {'x' * 500}\n\n y"}
    call = Call(tool="run_shell_command", args=args)
    made = RecordedCall(call=call, session="s", id="c", ended=CallStatus.SUCCEEDED)
    reference = Reference.to(made)
    assert len(reference.argument) == 120
    assert reference.argument.startswith("echo xxx")
    assert short(Call(tool="x", args={"n": 3, "city": "Oslo"})) == "Oslo"
    assert short(Call(tool="x")) == ""
