"""Forks: a new session with the past of another one."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import orjson
import pytest

from gemtui.errors import ForkFailed
from gemtui.kept.vault import keep_all, turn_on
from gemtui.runs.undo.fork import Fork, fork_session
from gemtui.sessions.catalog.counted import counted_sessions
from gemtui.sessions.catalog.index import Index
from gemtui.sessions.catalog.summary import Flag, Summary
from gemtui.sessions.read.conversation import records_of, transcript_of
from gemtui.sessions.read.session_log import SessionLog
from gemtui.sessions.store.store import Problem
from gemtui.sessions.written_files import recorded_writes
from gemtui.stats.reading import activities
from gemtui.transcript.model import Text, ToolCall
from tests.sessions import logs
from tests.sessions.stores import append, legacy, marker, only, read, session, talk, uuid
from tests.sessions.writes import wrote

READING = logs.gemini("g1", "", 2, toolCalls=[logs.call("c1", 2.5)])
IN_PARTS = {"functionCall": {"id": "c1", "name": "read_file", "args": {"file_path": "a.py"}}}
RESTORED = {"id": "g1", "timestamp": logs.at(2), "type": "gemini", "content": [IN_PARTS]}
FIRST = [logs.header(uuid(1)), logs.context(), logs.user("u1", "Read it.", 1)]
SECOND = [logs.gemini("a1", "A body.", 4), logs.user("u2", "Once more.", 5)]
LATER = logs.gemini("a2", "", 6, toolCalls=[logs.call("c2", 6.5)])

PASTS: dict[str, list[Any]] = {
    "as a run writes it": [*FIRST, READING, logs.reply("r1", "c1", 3), *SECOND, LATER],
    "restored by a resume": [
        *(*FIRST, READING, logs.reply("r1", "c1", 3)),
        logs.restore(FIRST[2], RESTORED, logs.reply("g1_response", "c1", 3), SECOND[0]),
        *SECOND[1:],
    ],
    "in parts alone": [*FIRST, RESTORED, logs.reply("r1", "c1", 3), *SECOND],
    "a later call on an earlier answer": [
        *FIRST,
        READING | {"toolCalls": [logs.call("c1", 2.5), logs.call("c2", 6.5)]},
        *(*SECOND, LATER),
    ],
}


def fork_of(home: Path, summary: Summary, before: int | None = None) -> tuple[Fork, Summary]:
    """The fork, and what lists say of it."""
    fork = fork_session(summary, home, before=before)
    assert fork.session_id is not None
    return fork, Index(home, cache=None).find(fork.session_id)


def records(path: Path) -> list[Any]:
    with SessionLog(path) as log:
        log.refresh()
        return list(records_of(log))


def said(path: Path) -> list[str]:
    """Texts, and calls with their results."""
    with SessionLog(path) as log:
        log.refresh()
        blocks = [block for message in transcript_of(log) for block in message.blocks]
    found = []
    for block in blocks:
        if isinstance(block, Text):
            found.append(block.text)
        elif isinstance(block, ToolCall):
            found.append(f"{block.name}: {block.output}")
    return found


@pytest.mark.parametrize("past", PASTS.values(), ids=PASTS)
def test_a_fork_has_each_result_once_and_where_the_cli_takes_it_from(
    tmp_path: Path, past: Iterable[Any]
) -> None:
    original = session(tmp_path, uuid(1), past)
    before = original.read_bytes()
    fork, listed = fork_of(tmp_path, only(read(tmp_path)), 2)
    assert (fork.prompt, fork.before) == ("Once more.", 2)
    assert said(listed.path) == ["Read it.", "read_file: body", "A body."]
    stored = records(listed.path)
    results = [call["result"] for each in stored for call in each.get("toolCalls", ())]
    assert results == [[{"functionResponse": logs.call("c1")["result"][0]["functionResponse"]}]]
    assert not any("functionResponse" in str(each["content"]) for each in stored)
    assert (listed.resumable, listed.has_header) == (True, True)
    assert listed.flags == {Flag.LIVE}
    assert listed.tokens.total is None
    assert original.read_bytes() == before


def test_one_prompt_more_than_there_are_keeps_all_and_a_fork_can_be_forked(tmp_path: Path) -> None:
    session(tmp_path, uuid(1), talk(uuid(1), turns=2))
    _, whole = fork_of(tmp_path, only(read(tmp_path)), 3)
    _, again = fork_of(tmp_path, whole)
    assert said(again.path) == ["Hello", "Answer 0", "More 1", "Answer 1"]
    assert len({uuid(1), whole.id, again.id}) == 3


@pytest.mark.parametrize(("before", "prompt"), [(1, "/help"), (2, "Go")])
def test_a_past_that_the_cli_would_remove_makes_no_session(
    tmp_path: Path, before: int, prompt: str
) -> None:
    session(tmp_path, uuid(1), [*FIRST[:2], logs.user("u", "/help"), logs.user("v", "Go", 2)])
    fork = fork_session(only(read(tmp_path)), tmp_path, before=before)
    assert (fork.session_id, fork.path, fork.prompt) == (None, None, prompt)
    assert len(read(tmp_path).sessions) == 1


@pytest.mark.parametrize("before", [0, 3])
def test_a_prompt_that_is_not_there_is_refused(tmp_path: Path, before: int) -> None:
    session(tmp_path, uuid(1))
    with pytest.raises(ForkFailed, match="has 1 prompt"):
        fork_session(only(read(tmp_path)), tmp_path, before=before)


def test_an_old_session_keeps_its_form_and_goes_where_the_cli_looks_now(tmp_path: Path) -> None:
    project = str(tmp_path / "app")
    legacy(tmp_path, uuid(1), [*FIRST[1:], READING, *SECOND], key="old")
    marker(tmp_path, "old", project)
    (tmp_path / "projects.json").write_text(json.dumps({"projects": {project: "app"}}))
    fork, listed = fork_of(tmp_path, only(read(tmp_path)), 2)
    assert fork.path is not None
    assert fork.path.parent == tmp_path / "tmp/app/chats"
    assert (listed.format, said(listed.path)) == (
        "json",
        ["Read it.", "read_file: body", "A body."],
    )
    assert orjson.loads(fork.path.read_bytes())["sessionId"] == fork.session_id


def test_what_a_fork_has_of_another_session_is_counted_there_alone(tmp_path: Path) -> None:
    write = wrote(tmp_path / "a.py", None, "x\n")
    session(tmp_path, uuid(1), [*FIRST, write, *SECOND])
    original = only(read(tmp_path))
    fork, _ = fork_of(tmp_path, original)
    assert fork.path is not None
    soon = (datetime.now(UTC) + timedelta(seconds=5) - logs.START).total_seconds()
    append(
        fork.path, logs.user("new", "On", soon), wrote(tmp_path / "b.py", None, "y", seconds=soon)
    )
    _, forked = sorted(read(tmp_path).sessions, key=lambda each: each.id != original.id)
    counted = counted_sessions([original, forked], None)
    counts = []
    for _, activity in activities(counted, home=tmp_path, cache=None):
        assert not isinstance(activity, Problem)
        written = [path for part in activity for path in part.writes]
        counts.append((sum(part.prompts for part in activity), written))
    assert counts == [(2, [str(tmp_path / "a.py")]), (1, [str(tmp_path / "b.py")])]
    writes = recorded_writes([original, forked], home=tmp_path, cache=None)
    assert [(each.path.name, each.session) for each in writes if not isinstance(each, Problem)] == [
        ("a.py", original.id),
        ("b.py", forked.id),
    ]


def test_what_only_the_vault_has_is_forked_into_the_store_and_kept(tmp_path: Path) -> None:
    turn_on()
    path = session(tmp_path, uuid(1))
    keep_all(tmp_path)
    path.unlink()
    fork, listed = fork_of(tmp_path, only(read(tmp_path)))
    assert listed.path.parent == path.parent
    assert not path.exists()
    listed.path.unlink()
    (mine,) = (each for each in read(tmp_path).sessions if each.id == fork.session_id)
    assert Flag.KEPT in mine.flags


def test_a_subagent_and_a_saved_chat_become_sessions_of_their_own(tmp_path: Path) -> None:
    chats = session(tmp_path, uuid(1)).parent
    logs.write(chats / uuid(1) / "helper.jsonl", talk("helper"))
    history = [
        {"role": "user", "parts": [{"text": "Hi"}]},
        {"role": "model", "parts": [IN_PARTS]},
        {"role": "user", "parts": logs.reply("r", "c1")["content"]},
    ]
    saved = chats.parent / "checkpoint-here.json"
    saved.write_bytes(orjson.dumps({"history": history}))
    marker(tmp_path, "proj", "/home/ada/proj")
    for each in [each for each in read(tmp_path).sessions if each.id != uuid(1)]:
        _, listed = fork_of(tmp_path, each)
        assert (listed.kind, listed.path.parent) == ("main", chats)
        assert not listed.hidden


def test_a_session_of_an_unknown_project_is_refused_with_a_way_out(tmp_path: Path) -> None:
    path = logs.write(tmp_path / "elsewhere.jsonl", talk(uuid(1)))
    summary = Index(tmp_path / "home", cache=None).find(str(path))
    with pytest.raises(ForkFailed, match="copy the file to the chats folder"):
        fork_session(summary, tmp_path / "home")
