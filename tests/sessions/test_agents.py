"""The sessions of several agents in one list."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import time
from collections.abc import Callable
from contextlib import aclosing, closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from gemtui.agent.claude import ClaudeDriver
from gemtui.agents import CAN, WORDS, Agent, Can, other_roots, why_not
from gemtui.errors import DeletionFailed, ForkFailed, RestoreFailed
from gemtui.kept.cleanup import Retention
from gemtui.kept.deletion import plan_deletion
from gemtui.kept.restoring import restore_from_vault
from gemtui.kept.vault import keep_all
from gemtui.policy.model.rules import Call, CallStatus, Reference
from gemtui.runs.call_history import recorded_calls
from gemtui.runs.undo.fork import fork_session
from gemtui.runs.undo.undo import undo_session
from gemtui.search.search import Search
from gemtui.sessions.catalog.counted import counted_sessions
from gemtui.sessions.catalog.index import Index
from gemtui.sessions.catalog.listing import Heading, Listing, View
from gemtui.sessions.catalog.query import parse_query, query_completions
from gemtui.sessions.catalog.selection import sessions_with_calls
from gemtui.sessions.catalog.summary import Flag, Summary
from gemtui.sessions.read.session_log import CHUNK
from gemtui.sessions.store.store import Problem, SessionKind, Store, StoreState
from gemtui.sessions.store.watch import watch
from gemtui.stats.prices import load_prices
from gemtui.stats.reading import activities
from gemtui.stats.report import Tally, sums_since
from gemtui.ui.sessions.comparing import compared
from tests.patience import PATIENCE
from tests.sessions import logs
from tests.sessions.agents import (
    claude_cost,
    claude_lines,
    claude_session,
    claude_subagent,
    claude_write,
    qwen_session,
    qwen_subagent,
)
from tests.sessions.stores import marker, session, uuid

NOW = datetime(2026, 11, 29, tzinfo=UTC)


@pytest.fixture
def home(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The parent of `.gemini`, `.claude` and `.qwen`, with a session in each, of one project."""
    monkeypatch.setenv("HOME", str(home))
    session(home / ".gemini", uuid(1))
    marker(home / ".gemini", "proj", "/work/app")
    claude_session(home, uuid(2))
    qwen_session(home, uuid(3))
    return home


def sessions_of(home: Path) -> tuple[Summary, ...]:
    return Index(home / ".gemini", cache=None).load().sessions


def by_agent(home: Path) -> dict[Agent, Summary]:
    return {summary.agent: summary for summary in sessions_of(home)}


def test_sessions_of_all_agents_are_listed_by_project(home: Path) -> None:
    found = by_agent(home)

    assert {agent: (summary.id, summary.project) for agent, summary in found.items()} == {
        Agent.GEMINI: (uuid(1), "/work/app"),
        Agent.CLAUDE: (uuid(2), "/work/app"),
        Agent.QWEN: (uuid(3), "/work/app"),
    }
    assert [summary.continuable for summary in found.values()].count(True) == 1


def test_the_sessions_of_another_home_are_not_those_of_the_user(home: Path, tmp_path: Path) -> None:
    assert sessions_of(tmp_path / "other") == ()


@pytest.mark.parametrize("agent", [Agent.CLAUDE, Agent.QWEN])
def test_a_variable_moves_the_folder_of_an_agent(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, agent: Agent
) -> None:
    moved = tmp_path / "elsewhere"
    shutil.move(home / f".{agent}", moved)
    name = {Agent.CLAUDE: "CLAUDE_CONFIG_DIR", Agent.QWEN: "QWEN_RUNTIME_DIR"}[agent]
    assert agent not in by_agent(home)

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(name, moved.name)

    assert by_agent(home)[agent].path.is_relative_to(moved)


def test_the_folder_of_older_versions_of_claude_code_is_read_too(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    older = home / ".config/claude"
    older.parent.mkdir()
    shutil.copytree(home / ".claude", older)
    path = claude_session(home, uuid(8))
    shutil.move(path, older / path.relative_to(home / ".claude"))

    def of_claude() -> list[str]:
        return sorted(each.id for each in sessions_of(home) if each.agent is Agent.CLAUDE)

    assert of_claude() == [uuid(2), uuid(8)]
    shutil.rmtree(home / ".claude")
    (home / ".claude").symlink_to(older)
    assert of_claude() == [uuid(2), uuid(8)]
    assert [folder.agent for folder in other_roots()] == [Agent.QWEN, Agent.CLAUDE]
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(home))
    assert of_claude() == []


def test_a_subagent_belongs_to_its_session(home: Path) -> None:
    claude_subagent(home, uuid(2), "a1b2")
    qwen_subagent(home, uuid(3), "general-purpose-call_1")

    older = home / ".claude/projects/-work-app/agent-c3d4.jsonl"
    around = {"isSidechain": True, "agentId": "c3d4"}
    logs.write(older, [line | around for line in claude_lines(uuid(2))])

    subagents = [summary for summary in sessions_of(home) if summary.kind is SessionKind.SUBAGENT]
    assert {(subagent.id, subagent.parent, subagent.owner) for subagent in subagents} == {
        ("a1b2", uuid(2), uuid(2)),
        ("general-purpose-call_1", uuid(3), uuid(3)),
    }


def test_a_first_prompt_may_be_of_any_size(home: Path) -> None:
    claude_session(home, uuid(8), prompt="x" * 2 * CHUNK)
    before = {"type": "summary", "summary": "Old", "leafUuid": "l"}
    claude_session(home, uuid(9), before=[before] * 100)
    index = Index(home / ".gemini", cache=None)

    assert [index.find(uuid(number)).agent for number in (8, 9)] == [Agent.CLAUDE] * 2


@pytest.mark.parametrize(
    "line",
    [
        {"type": "custom-title", "customTitle": "Mine", "sessionId": uuid(6)},
        {"type": "mode", "mode": "normal", "sessionId": uuid(6)},
        {"type": "summary", "summary": "Of another one", "leafUuid": uuid(7)},
    ],
)
def test_a_session_of_claude_code_without_a_message_is_hidden_as_empty(
    home: Path, line: dict[str, str]
) -> None:
    path = logs.write(home / ".claude/projects/-work-app" / f"{uuid(6)}.jsonl", [line])
    (empty,) = [summary for summary in sessions_of(home) if summary.path == path]
    assert (empty.hidden, empty.agent) == (True, Agent.CLAUDE)


def test_a_folder_of_another_agent_that_cannot_be_read_is_not_that_of_gemini_cli(
    home: Path,
) -> None:
    for folder in (".gemini/tmp", ".claude", ".qwen/projects"):
        shutil.rmtree(home / folder)
    loop = home / ".qwen/projects/app/chats"
    loop.parent.mkdir(parents=True)
    loop.symlink_to(loop)
    store = Store(home / ".gemini")
    assert store.state is StoreState.MISSING
    assert [problem.path for problem in store.problems] == [loop]


def test_an_agent_before_an_id_chooses(home: Path) -> None:
    claude_session(home, uuid(1))
    index = Index(home / ".gemini", cache=None)

    assert index.find(f"claude:{uuid(1)[:8]}").agent is Agent.CLAUDE
    assert index.find("qwen:latest").id == uuid(3)


def test_a_prompt_typed_while_claude_code_worked_is_shown_where_it_is_found(
    home: Path, tmp_path: Path
) -> None:
    *before, last = claude_lines(uuid(2))
    typed = {"type": "queued_command", "prompt": "And the lobster?"}
    queued = last | {"type": "attachment", "parentUuid": "a1", "uuid": "t1", "attachment": typed}
    folder = home / ".claude/projects/-work-app"
    logs.write(folder / f"{uuid(2)}.jsonl", [*before, last, queued])
    query = parse_query("lobster", now=NOW)
    with closing(Search(tmp_path / "index")) as search:
        *_, results = search.find(query, sessions_of(home))
        (hit,) = results.hits
        assert search.snippet(hit, query).text == "And the lobster?"


def test_a_filter_finds_the_sessions_of_an_agent(home: Path) -> None:
    listing = Listing()
    listing.replace_all(sessions_of(home))

    def listed(query: str) -> set[str]:
        rows = listing.arrange(View(everywhere=True, query=query)).rows
        return set(listing.known(row.key for row in rows))

    assert listing.has_several_agents
    assert listed("agent:claude") == {uuid(2)}
    assert listed("-agent:claude") == {uuid(1), uuid(3)}


def test_sessions_are_grouped_by_agent(home: Path) -> None:
    listing = Listing()
    listing.replace_all(sessions_of(home))

    rows = listing.arrange(View(everywhere=True, grouped=True, by_agent=True)).rows

    names = [row.name for row in rows if isinstance(row, Heading)]
    assert set(names) == {words.program for words in WORDS.values()}
    assert len(rows) == 2 * len(names)


def test_the_filter_is_offered_only_where_there_is_a_choice() -> None:
    field = type(parse_query("agent:qwen", now=NOW).fields[0].field)
    assert query_completions("ag", {}) == []
    assert query_completions("ag", {field.AGENT: ["claude"]}) == ["agent:"]


async def test_a_session_that_another_agent_begins_or_goes_on_with_is_told(home: Path) -> None:
    claude_subagent(home, uuid(2), "a")
    qwen_subagent(home, uuid(3), "b")
    async with aclosing(watch(home / ".gemini")) as changes, asyncio.timeout(PATIENCE):
        await anext(changes)
        left = {claude_session(home, uuid(5)), qwen_session(home, uuid(3), "Again")}
        left |= {claude_subagent(home, uuid(2), "a"), qwen_subagent(home, uuid(3), "b")}
        while left:
            left -= (change := await anext(changes)).paths
            assert change.mode == "events"


def test_the_vault_keeps_what_an_agent_deletes(home: Path) -> None:
    keep_all(home / ".gemini")
    for summary in (found := by_agent(home)).values():
        summary.path.unlink()

    kept = by_agent(home)

    assert kept.keys() == found.keys()
    assert all(Flag.KEPT in summary.flags for summary in kept.values())


def test_a_deleted_session_of_claude_code_is_restored_as_if_it_were_new(home: Path) -> None:
    path, subagent = by_agent(home)[Agent.CLAUDE].path, claude_subagent(home, uuid(2), "a1")
    for file in (path, subagent):
        os.utime(file, (0, 0))
    keep_all(home / ".gemini")
    texts = path.read_bytes(), subagent.read_bytes()
    shutil.rmtree(path.parent)

    restored = restore_from_vault(by_agent(home)[Agent.CLAUDE], home / ".gemini", Retention(), NOW)

    assert (restored.paths, restored.renewed) == ((path, subagent), True)
    assert (path.read_bytes(), subagent.read_bytes()) == texts
    assert all(time.time() - file.stat().st_mtime < 3600 for file in restored.paths)
    summary = by_agent(home)[Agent.CLAUDE]
    assert Flag.KEPT not in summary.flags
    with pytest.raises(RestoreFailed, match="there is nothing to restore"):
        restore_from_vault(summary, home / ".gemini", Retention(), NOW)


def _delete(session: Summary, home: Path) -> None:
    plan_deletion(session, home)


def _fork(session: Summary, home: Path) -> None:
    fork_session(session, home)


def _restore(session: Summary, home: Path) -> None:
    restore_from_vault(session, home, Retention(), NOW)


_ACTS = [
    (_delete, DeletionFailed, Can.DELETE),
    (_fork, ForkFailed, Can.FORK),
    (_restore, RestoreFailed, Can.RESTORE),
]


@pytest.mark.parametrize(
    ("agent", "act", "error", "can"),
    [
        (agent, *act)
        for agent in (Agent.CLAUDE, Agent.QWEN)
        for act in _ACTS
        if act[2] not in CAN[agent]
    ],
)
def test_what_gemtui_cannot_do_with_an_agent_s_session_is_said(
    home: Path,
    agent: Agent,
    act: Callable[[Summary, Path], None],
    error: type[Exception],
    can: Can,
) -> None:
    with pytest.raises(error) as raised:
        act(by_agent(home)[agent], home / ".gemini")

    assert str(raised.value) == why_not(agent, can)
    assert WORDS[agent].program in str(raised.value)


def test_an_undo_restores_the_files_of_a_session_even_if_its_chat_cannot_be_forked(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    project = tmp_path / "project"
    project.mkdir()
    (project / "a.txt").write_text("new\n")
    path = claude_write(home, uuid(7), project / "a.txt", "new\n")
    prompt = claude_lines(uuid(7), "Again")[1] | {"uuid": "u9"}
    with path.open("a") as file:
        file.write(json.dumps(prompt) + "\n")
    written = Index(home / ".gemini", cache=None).find(uuid(7))

    undone = undo_session(written, 2, home=home / ".gemini")

    assert ClaudeDriver.not_found in undone.notes[-1]
    with pytest.raises(ForkFailed, match="not on PATH"):
        undo_session(written, 2, files=False, home=home / ".gemini")
    undo_session(written, 1, home=home / ".gemini")
    assert not (project / "a.txt").exists()


def test_policies_see_the_calls_of_other_agents_translated(home: Path, tmp_path: Path) -> None:
    claude_write(home, uuid(7), tmp_path / "a.txt", "new\n")
    sessions = sessions_with_calls(Index(home / ".gemini", cache=None).load())

    (recorded,) = [call for step in recorded_calls(sessions) for call in step.calls]

    args = {"file_path": str(tmp_path / "a.txt"), "content": "new\n"}
    assert recorded.call == Call("write_file", args, agent=Agent.CLAUDE, own="Write")
    assert (recorded.project, recorded.ended) == (tmp_path, CallStatus.SUCCEEDED)
    assert Reference.to(recorded).tool == "Write"


def test_the_daily_budget_counts_what_gemini_cli_costs(home: Path) -> None:
    year = datetime(2026, 1, 1, tzinfo=UTC)
    sessions = sessions_of(home)

    counted = sums_since(sessions, load_prices(), year, home=home / ".gemini", cache=None)

    assert (len(sessions), counted.sessions) == (3, 1)


def test_every_agent_has_its_words() -> None:
    assert set(WORDS) == set(CAN) == set(Agent)
    assert len({words.letter for words in WORDS.values()}) == len(Agent)
    assert not any(why_not(Agent.GEMINI, can) for can in Can)
    assert why_not(Agent.QWEN, Can.DELETE)


def test_the_cost_is_what_claude_code_has_counted_until_an_answer_follows(home: Path) -> None:
    lines = claude_lines(uuid(2))
    path = by_agent(home)[Agent.CLAUDE].path

    def counted() -> tuple[float | None, float | None, str]:
        session = by_agent(home)[Agent.CLAUDE]
        tally = Tally(None, since=None, zone=None)
        for each, activity in activities(
            counted_sessions([session], None), home=home / ".gemini", cache=None
        ):
            assert not isinstance(activity, Problem)
            tally.add(each, activity)
        total = tally.stats().total
        table = compared([session] * 2, None, home=home / ".gemini", cache=None)
        shown = next(line.split()[1] for line in table if line.startswith("cost "))
        assert total.dollars == shown
        return session.cost, total.to_dict()["own_cost"], shown

    assert counted() == (None, None, "?")
    logs.write(path, [*lines, claude_cost(0.5), claude_cost(0.75)])
    assert counted() == (0.75, 0.75, "$0.75")
    logs.write(path, [*lines, claude_cost(0.75), lines[-1] | {"uuid": "a2"}])
    assert counted() == (None, None, "?")
