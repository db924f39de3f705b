"""The packaged store: whole, free of problems, and with every kind of thing to look at."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from gemtui.demo import write_store
from gemtui.sessions.catalog.catalog import Snapshot
from gemtui.sessions.catalog.index import Index
from gemtui.sessions.catalog.summary import Flag, Summary
from gemtui.sessions.read.conversation import transcript_of
from gemtui.sessions.read.session_log import SessionLog
from gemtui.sessions.store.store import SessionKind, StoreState
from gemtui.transcript.model import (
    AgentDisplay,
    Attachment,
    Block,
    DiffDisplay,
    Dropped,
    FilesDisplay,
    Image,
    MatchesDisplay,
    Message,
    Notice,
    ScreenDisplay,
    TableDisplay,
    Text,
    TextDisplay,
    Thought,
    TodosDisplay,
    ToolCall,
    ToolStatus,
)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("demo")
    write_store(home, now=datetime.now(UTC))
    return home


@pytest.fixture(scope="module")
def snapshot(place: Path) -> Snapshot:
    index = Index(place / ".gemini", cache=None)
    try:
        return index.load(publish=lambda _: None, cancelled=lambda: False)
    finally:
        index.close()


@pytest.fixture(scope="module")
def messages(snapshot: Snapshot) -> list[Message]:
    """All messages of the store, dropped ones included."""
    found: list[Message] = []
    for summary in snapshot.sessions:
        with SessionLog(summary.path) as log:
            log.refresh()
            found += transcript_of(log, dropped=True)
    return found


def blocks(messages: list[Message]) -> Iterator[Block]:
    return (block for message in messages for block in message.blocks)


def calls(messages: list[Message]) -> Iterator[ToolCall]:
    return (block for block in blocks(messages) if isinstance(block, ToolCall))


def called(snapshot: Snapshot, title: str) -> Summary:
    (found,) = (each for each in snapshot.sessions if each.title.startswith(title))
    return found


def test_everything_is_read_without_a_problem(snapshot: Snapshot) -> None:
    assert snapshot.state is StoreState.OK
    assert snapshot.complete
    assert snapshot.unreadable == ()
    assert [each.title for each in snapshot.sessions if each.problems] == []


def test_there_is_enough_to_look_at(snapshot: Snapshot, place: Path) -> None:
    visible = [each for each in snapshot.sessions if not each.hidden]
    assert 14 <= len(visible) <= 18
    assert {each.project for each in visible} == {
        str(place / name) for name in ("src/tidewatch", "src/shopfront", "notes")
    }
    assert {each.format for each in visible} == {"json", "jsonl"}
    assert len({model for each in visible for model in each.models}) >= 3
    ages = [(visible[0].when - each.when).days for each in visible]
    assert 18 <= max(ages) <= 21


def test_special_sessions_are_found_as_what_they_are(snapshot: Snapshot) -> None:
    assert Flag.LIVE in called(snapshot, "Add the moon phase").flags
    assert called(snapshot, "Deploy tidewatch").flags == {Flag.FAILED_PROMPT}
    assert called(snapshot, "(empty)").flags == {Flag.EMPTY}
    assert called(snapshot, "before-push").kind is SessionKind.CHECKPOINT
    ghosts = [copy.flags for copy in called(snapshot, "Release tidewatch").copies]
    assert ghosts == [{Flag.DUPLICATE, Flag.GHOST}]
    migrated = called(snapshot, "Start the service")
    assert len(migrated.copies) == 1
    assert migrated.project_key == "tidewatch"


def test_the_subagent_belongs_to_the_call_that_made_it(
    snapshot: Snapshot, messages: list[Message]
) -> None:
    (helper,) = (each for each in snapshot.sessions if each.kind is SessionKind.SUBAGENT)
    parent = called(snapshot, "Find where the service decides")
    assert helper.parent == parent.id
    assert [call.agent_id for call in calls(messages) if call.agent_id] == [helper.id]


def test_one_session_is_long(snapshot: Snapshot) -> None:
    assert called(snapshot, "Replace colours").messages > 300


def test_every_kind_of_block_and_display_occurs(messages: list[Message]) -> None:
    assert {type(block) for block in blocks(messages)} == {
        Attachment,
        Image,
        Notice,
        Text,
        Thought,
        ToolCall,
    }
    assert {type(call.display) for call in calls(messages)} >= {
        AgentDisplay,
        DiffDisplay,
        FilesDisplay,
        MatchesDisplay,
        ScreenDisplay,
        TableDisplay,
        TextDisplay,
        TodosDisplay,
    }
    assert {call.status for call in calls(messages)} == {
        ToolStatus.SUCCESS,
        ToolStatus.ERROR,
        ToolStatus.CANCELLED,
        ToolStatus.DENIED,
    }
    assert {call.exit_code for call in calls(messages)} >= {None, 1}
    assert {message.dropped for message in messages} == {
        None,
        Dropped.REWOUND,
        Dropped.FAILED_PROMPT,
    }


def test_tokens_add_up(messages: list[Message]) -> None:
    usages = [message.usage for message in messages if message.usage is not None]
    assert len(usages) > 300
    assert all(usage.adds_up for usage in usages)


def test_times_go_forward(messages: list[Message], snapshot: Snapshot) -> None:
    times = [message.time for message in messages if message.time is not None]
    assert len(times) > 300
    assert max(times) <= datetime.now(UTC)
    for summary in snapshot.sessions:
        if summary.kind is not SessionKind.CHECKPOINT:
            assert summary.started is not None
            assert summary.updated is not None
            assert summary.started <= summary.updated


def test_written_files_are_there_to_open(snapshot: Snapshot) -> None:
    written = [path for each in snapshot.sessions for path in each.files_written]
    assert len(written) > 100
    assert [path for path in written if not Path(path).is_file()] == []


def test_edits_lead_to_the_files_as_they_are(place: Path, messages: list[Message]) -> None:
    newest = {
        call.display.path: call.display.new
        for call in calls(messages[::-1])
        if call.status is ToolStatus.SUCCESS and isinstance(call.display, DiffDisplay)
    }
    path = str(place / "src" / "tidewatch" / "tidewatch" / "moon.py")
    assert newest[path] == Path(path).read_text()


def test_the_python_files_are_python(place: Path) -> None:
    files = list((place / "src" / "tidewatch").rglob("*.py"))
    assert len(files) >= 7
    for file in files:
        compile(file.read_text(), str(file), "exec")


def test_the_registry_and_the_markers_name_the_projects(place: Path) -> None:
    projects = json.loads((place / ".gemini" / "projects.json").read_text())["projects"]
    assert set(projects.values()) == {"tidewatch", "shopfront", "notes"}
    for root, slug in projects.items():
        marker = place / ".gemini" / "tmp" / slug / ".project_root"
        assert marker.read_text() == root


def test_the_same_moment_gives_the_same_bytes(tmp_path: Path) -> None:
    now = datetime(2026, 11, 20, 12, tzinfo=UTC)

    def written() -> dict[Path, bytes]:
        write_store(tmp_path, now=now)
        return {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}

    assert written() == written()


def test_another_moment_moves_all_times(tmp_path: Path) -> None:
    now = datetime(2031, 3, 1, 0, 30, 0, 500_000, tzinfo=UTC)
    write_store(tmp_path, now=now)
    (going_on,) = tmp_path.glob(".gemini/tmp/tidewatch/chats/session-2031-03-01T00-25-*.jsonl")
    text = going_on.read_text()
    assert "Today's date is Saturday, March 01, 2031" in text
    assert "2031-03-01T00:29:52.616Z" in text
    assert datetime.fromtimestamp(going_on.stat().st_mtime, UTC) < now
    store = (path.read_text() for path in (tmp_path / ".gemini").rglob("*") if path.is_file())
    assert "2026-11" not in "".join(store)


def test_a_home_with_any_name(tmp_path: Path) -> None:
    home = tmp_path / 'a "b" \\ 家'
    write_store(home, now=datetime.now(UTC))
    with closing(Index(home / ".gemini", cache=None)) as index:
        snapshot = index.load(publish=lambda _: None, cancelled=lambda: False)
    assert {each.project for each in snapshot.sessions} == {
        str(home / name) for name in ("src/tidewatch", "src/shopfront", "notes")
    }
    assert [each.title for each in snapshot.sessions if each.problems] == []
