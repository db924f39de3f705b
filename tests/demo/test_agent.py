"""The demo's stand-in for Gemini CLI: driven by the adapter, seen by the store, ended for good."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest

from gemtui.agent import process_tree
from gemtui.agent.events import AgentEvent, DoneStatus, ErrorSaid, ToolResult
from gemtui.agent.fold import Fold
from gemtui.agent.options import AgentOptions
from gemtui.agent.run_folder import RunFolder
from gemtui.demo import PROJECT, install_agent, write_store
from gemtui.paths import runs_dir
from gemtui.policy.model.rules import ApprovalMode
from gemtui.runs.adapter import GeminiAdapter
from gemtui.runs.enrich import enrich
from gemtui.sessions.catalog.index import Index
from gemtui.sessions.catalog.summary import Summary
from gemtui.transcript.model import DiffDisplay, Thought, ToolCall
from tests.agent.event_lists import done, results
from tests.patience import PATIENCE
from tests.sessions.agents import claude_session
from tests.sessions.stores import uuid

SHELL = "run_shell_command"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The home of a demo, and its environment; nothing waits that need not."""
    yield set_up(tmp_path / "demo", monkeypatch)
    for folder in runs_dir().glob("*"):
        process_tree.end_tagged(folder.name)


def set_up(place: Path, patch: pytest.MonkeyPatch) -> Path:
    write_store(place, now=datetime.now(UTC))
    for name, value in install_agent(place).items():
        patch.setenv(name, value)
    patch.setenv("GEMTUI_DEMO_PACE", "0")
    return place


@pytest.fixture
def project(place: Path) -> Path:
    return place / PROJECT


async def run(options: AgentOptions, prompt: str = "Be polite") -> AsyncIterator[AgentEvent]:
    """The events of a run by the program that GEMINI_CLI_PATH names."""
    async with asyncio.timeout(PATIENCE):
        async for event in GeminiAdapter().run(prompt, options):
            yield event


async def played(options: AgentOptions, prompt: str = "Be polite") -> list[AgentEvent]:
    return [event async for event in run(options, prompt)]


def stored(place: Path, session: str | None) -> Summary:
    assert session is not None
    with closing(Index(place / ".gemini", cache=None)) as index:
        return index.find(session)


async def test_it_is_taken_for_the_cli(place: Path) -> None:
    adapter = GeminiAdapter()
    assert await adapter.is_available()
    known = adapter.detect().capabilities
    assert known.streams
    assert known.approval_modes == tuple(map(str, ("default", "auto_edit", "yolo", "plan")))
    assert known.flags >= {"policy", "session-id", "resume", "skip-trust"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """A whole run. `asked_on`: the events of a second run that resumed its session."""

    place: Path
    events: list[AgentEvent]
    stderr: str
    asked_on: list[AgentEvent]

    @property
    def session(self) -> str | None:
        return done(self.events).resume_token

    @property
    def project(self) -> Path:
        return self.place / PROJECT


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Played]:
    with pytest.MonkeyPatch.context() as patch:
        place = set_up(tmp_path_factory.mktemp("whole") / "demo", patch)
        yield asyncio.run(play(place))


async def play(place: Path) -> Played:
    events = await played(AgentOptions(cwd=place / PROJECT))
    (folder,) = runs_dir().iterdir()
    stderr = RunFolder(folder).stderr.read_text()
    options = AgentOptions(cwd=place / PROJECT, resume=done(events).resume_token)
    asked_on = await played(options, "And once more")
    return Played(place=place, events=events, stderr=stderr, asked_on=asked_on)


def test_a_run_writes_tests_fails_repairs_and_passes(whole: Played) -> None:
    events = whole.events
    assert done(events).status is DoneStatus.SUCCESS
    assert [event.type for event in events if event.type == "error"] == []
    assert whole.stderr == ""
    assert [name for name, _ in results(events)] == [
        "read_file",
        "write_file",
        "write_file",
        SHELL,
        "replace",
        SHELL,
    ]
    outputs = [
        event.payload.output
        for event in events
        if isinstance(event.payload, ToolResult) and event.payload.tool_name == SHELL
    ]
    assert ["FAILED (errors=1)" in outputs[0], "OK" in outputs[1]] == [True, True]
    assert "tries - 1" in (whole.project / "tidewatch/fetch.py").read_text()


def test_the_session_is_stored_under_its_prompt(whole: Played) -> None:
    summary = stored(whole.place, whole.session)
    assert (summary.title, summary.project) == ("Be polite", str(whole.project))


def test_asking_on_goes_on_in_the_session(whole: Played) -> None:
    assert done(whole.asked_on).resume_token == whole.session
    assert [name for name, _ in results(whole.asked_on)] == ["read_file", SHELL]
    summary = stored(whole.place, whole.session)
    assert (summary.prompts, len(summary.files), summary.problems) == (2, 1, 0)
    counted = [done(events).tokens for events in (whole.events, whole.asked_on)]
    assert summary.tokens.total == sum(usage.total or 0 for usage in counted if usage)


def test_the_stored_session_tells_what_the_stream_lacks(whole: Played) -> None:
    fold = Fold("Be polite", began=datetime.now(UTC))
    for event in whole.events:
        fold.add(event)
    live = fold.transcript()
    told = enrich(live, whole.place / ".gemini", whole.session)
    assert len(told) == len(live)
    blocks = [block for message in told for block in message.blocks]
    calls = [block for block in blocks if isinstance(block, ToolCall)]
    assert [call.exit_code for call in calls if call.name == SHELL] == [1, None]
    assert {type(call.display) for call in calls if call.name == "replace"} == {DiffDisplay}
    assert len([block for block in blocks if isinstance(block, Thought)]) == 3
    assert sum(message.usage is not None for message in told) == 6


async def test_an_abort_ends_the_recording_with_what_is_stored_until_then(
    place: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GEMTUI_DEMO_PACE", "1")
    stop = asyncio.Event()
    seen = []
    async for event in run(AgentOptions(cwd=project, abort=stop)):
        seen.append(event)
        if event.type == "text_delta":
            stop.set()
    assert done(seen).status is DoneStatus.INTERRUPTED
    assert seen[-1].metadata == {"complete": False, "exitCode": 0}
    summary = stored(place, done(seen).resume_token)
    assert (summary.prompts, summary.tool_calls) == (1, 0)
    assert not (project / "tidewatch/fetch.py").exists()


async def test_a_session_of_an_old_version_goes_on_in_a_log(place: Path, project: Path) -> None:
    old = oldest(place)
    mode = ApprovalMode.DEFAULT
    options = AgentOptions(cwd=project, resume=old.id, approval_mode=mode)
    events = await played(options, "And now?")
    assert done(events).status is DoneStatus.SUCCESS
    after = stored(place, old.id)
    assert after.format == "jsonl"
    assert after.prompts == old.prompts + 1


def oldest(place: Path) -> Summary:
    with closing(Index(place / ".gemini", cache=None)) as index:
        everything = index.load(publish=lambda _: None, cancelled=lambda: False).sessions
    return min((each for each in everything if each.format == "json"), key=lambda each: each.when)


async def test_every_project_can_be_run_in(place: Path) -> None:
    events = await played(AgentOptions(cwd=place / "notes"))
    assert done(events).status is DoneStatus.SUCCESS
    assert (place / "notes/tests/test_fetch.py").exists()
    assert stored(place, done(events).resume_token).project == str(place / "notes")


def test_sessions_of_the_users_other_agents_are_not_shown(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    claude_session(tmp_path, uuid(1), prompt="Asked of Claude")
    with closing(Index(place / ".gemini", cache=None)) as index:
        snapshot = index.load(publish=lambda _: None, cancelled=lambda: False)
    titles = [session.title for session in snapshot.sessions]
    assert titles
    assert "Asked of Claude" not in titles


async def test_nothing_is_played_outside_of_the_demo(place: Path, tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    events = await played(AgentOptions(cwd=mine, approval_mode=ApprovalMode.YOLO))
    assert [event.type for event in events] == ["init", "error", "done"]
    assert isinstance(events[1].payload, ErrorSaid)
    assert "works only in" in events[1].payload.message
    assert list(mine.iterdir()) == []
