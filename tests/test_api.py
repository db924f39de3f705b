"""The library: `from gemtui import …`."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import orjson
import pytest

import gemtui
from gemtui import (
    GemtuiError,
    NotASession,
    SessionAmbiguous,
    SessionNotFound,
    list_sessions,
    load_session,
    parse_message,
)
from tests.sessions import logs
from tests.test_documents import programs

LIBRARY = Path(__file__).parents[1] / "assets/library.md"
RECORDED = Path(__file__).parent / "data/sessions"
FULL = "7024884b-dece-41db-8a1b-a37b16abdfd7"


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return Path(shutil.copytree(RECORDED / "main/.gemini", tmp_path / "dev/.gemini"))


def test_every_public_name_is_there() -> None:
    for name in gemtui.__all__:
        assert getattr(gemtui, name).__name__ in (name, "Event")
        assert name in dir(gemtui)


def test_what_is_not_public_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="nonsense"):
        getattr(gemtui, "nonsense")  # noqa: B009


def test_sessions_newest_first(store: Path) -> None:
    sessions = list_sessions(home=store)
    assert len(sessions) > 10
    assert [each.when for each in sessions] == sorted((s.when for s in sessions), reverse=True)
    assert not any(each.hidden for each in sessions)
    assert len(list_sessions(home=store, hidden=True)) > len(sessions)


def test_home_may_be_the_folder_around(store: Path) -> None:
    assert list_sessions(home=str(store.parent)) == list_sessions(home=store)


def test_home_is_found_as_the_cli_finds_it(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GEMINI_CLI_HOME", str(store.parent))
    assert list_sessions() == list_sessions(home=store)


def test_sessions_of_one_project(store: Path) -> None:
    project = next(each.project for each in list_sessions(home=store) if each.id == FULL)
    assert project is not None
    found = list_sessions(home=store, project=project)
    assert found
    assert {each.project for each in found} == {project}
    assert load_session(home=store, project=project).session == found[0]


def test_an_empty_store_lists_nothing_and_has_no_latest(tmp_path: Path) -> None:
    assert list_sessions(home=tmp_path) == []
    with pytest.raises(SessionNotFound) as caught:
        load_session(home=tmp_path)
    assert caught.value.searched


def test_a_session(store: Path) -> None:
    session = load_session("7024", home=store)
    assert session.session.id == FULL
    header = orjson.loads(session.session.path.read_bytes().split(b"\n")[0])
    assert session.to_dict()["session"]["project_hash"] == header["projectHash"]
    assert [each.role for each in session.messages[:2]] == ["user", "assistant"]
    assert session.messages[0].original in session.records
    assert parse_message(session.messages[1].original) == session.messages[1]
    assert len(session.records) > len(session.messages), "the session context is a record too"
    assert session.problems == ()


def test_calls_named_only_in_parts_have_the_results_of_later_records(tmp_path: Path) -> None:
    asked = {"functionCall": {"id": "c", "name": "read_file", "args": {"file_path": "a.py"}}}
    answer = logs.gemini("g", "")
    answer["content"] = [{"text": "I plan.", "thought": True}, {"text": "Let me look."}, asked]
    denied = logs.reply("r2", "nowhere", error="denied")
    session = logs.write(
        tmp_path / "s.jsonl",
        [
            logs.header(),
            logs.user("u", "Look"),
            logs.restore(logs.user("u", "Look"), answer, logs.reply("r", "c"), denied),
        ],
    )
    checkpoint = tmp_path / "checkpoint-tag.json"
    history = [
        {"role": "model", "parts": answer["content"]},
        {"role": "user", "parts": logs.reply("r", "c")["content"]},
    ]
    checkpoint.write_bytes(orjson.dumps({"history": history}))
    for file in (session, checkpoint):
        loaded = load_session(str(file), home=tmp_path)
        said = [
            block
            for message in loaded.messages
            for block in message.content
            if isinstance(block, dict)
        ]
        results = [block for block in said if block["type"] == "tool_result"]
        assert results[0] == {
            "type": "tool_result",
            "tool_use_id": "c",
            "content": "body",
            "is_error": False,
        }
        assert "I plan." in [block["thinking"] for block in said if block["type"] == "thinking"]
        if file == session:
            assert [block["content"] for block in results[1:]] == ["denied"], "its call is nowhere"
        else:
            assert len(results) == 1


def test_the_newest_where_nothing_is_named(store: Path) -> None:
    assert load_session(home=store).session == list_sessions(home=store)[0]


def test_the_newest_is_that_of_the_project_one_is_in(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(store, tmp_path / "home/.gemini")
    newest = list_sessions(home=tmp_path / "home")[0]
    folder = tmp_path / "older"
    folder.mkdir()
    for name in ("tmp", "history"):
        (store / name / "older").mkdir(parents=True)
        (store / name / "older/.project_root").write_text(str(folder))
    chats = store / "tmp/older/chats"
    chats.mkdir()
    began = "2020-01-01T00:00:00Z"
    header = (
        f'{{"sessionId":"0dd0-1","projectHash":"x","startTime":"{began}","lastUpdated":"{began}"}}'
    )
    prompt = '{"id":"a","type":"user","timestamp":"2020-01-01T00:00:01Z","content":"Old"}'
    (chats / "session-2020-01-01T00-00-0dd0-1.jsonl").write_text(f"{header}\n{prompt}\n")
    monkeypatch.chdir(folder)
    assert load_session(home=store).session.id == "0dd0-1"
    assert load_session("latest", home=store).session.id == "0dd0-1"
    assert load_session(home=tmp_path / "home").session == newest, "a project without sessions"
    monkeypatch.chdir(tmp_path)
    assert load_session(home=store, project=folder).session.id == "0dd0-1"
    assert load_session(home=store).session.id == newest.id


def test_dropped_records_say_why(store: Path) -> None:
    session = load_session("b3bf9d1b", home=store)
    assert {each.why for each in session.dropped} == {"rewound"}
    assert all(each.record["id"] for each in session.dropped)


def test_an_empty_id_names_no_session(store: Path) -> None:
    with pytest.raises(SessionNotFound):
        load_session("", home=store)


def test_a_home_that_nobody_has_is_an_empty_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert list_sessions(home="~nobody-has-this-name", project="~nor-this") == []
    with pytest.raises(SessionNotFound):
        load_session("~nobody-has-this-name/x.jsonl", home=tmp_path)


def test_a_relative_home_gives_whole_paths(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(store.parent)
    listed = list_sessions(home=".")
    assert listed == list_sessions(home=store)
    found = load_session(str(listed[0].path), home=".").session
    assert found.project_key == listed[0].project_key


def test_errors_have_one_root(store: Path, tmp_path: Path) -> None:
    with pytest.raises(SessionNotFound):
        load_session("nothing-like-it", home=store)
    with pytest.raises(SessionAmbiguous) as caught:
        load_session("2", home=store)
    assert len(caught.value.candidates) > 1
    stranger = tmp_path / "notes.json"
    stranger.write_text("[]")
    with pytest.raises(NotASession):
        load_session(str(stranger))
    assert issubclass(NotASession, GemtuiError)


PROGRAM = """
import gemtui
from gemtui import AgentEvent, AgentOptions, GeminiAdapter, Session, list_sessions, load_session

session: Session = load_session("x", home=".")
reveal_type(session.messages[0].role)
reveal_type(list_sessions()[0].title)
gemtui.nonsense


async def main() -> None:
    options = AgentOptions(
        cwd="~/src", approval_mode="yolo", disallowed_tools=["glob"], policies=["work.toml"]
    )
    reveal_type(options.cwd)
    async for event in GeminiAdapter(cli="/usr/bin/gemini").run("Go", options):
        tell(event)
    async for event in GeminiAdapter().run("Go"):
        tell(event)


def tell(event: AgentEvent) -> str:
    if event.type == "text":
        return event.payload.content
    match event.type:
        case "done":
            return event.payload.result or event.payload.status
        case "tool_use":
            print(event.payload.delta)
            return event.payload.tool_name
        case _:
            return event.type
"""
SEEN = (
    r"error: Module has no attribute \"nonsense\"",
    r"error: \"ToolUse\" has no attribute \"delta\"",
    r"note: Revealed type is \"(Union\[)?Literal\['user'\]",
    r"note: Revealed type is \"(builtins\.)?str\"",
    r"note: Revealed type is \"(Union\[)?pathlib\.Path",
)


@pytest.mark.deep
def test_type_checkers_see_names_and_events(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    shown = [program]
    for number, text in enumerate(programs(LIBRARY)):
        shown.append(tmp_path / f"shown_{number}.py")
        shown[-1].write_text(text)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", tmp_path / "cache", *shown],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    for words in SEEN:
        assert re.search(words, done.stdout), done.stdout
    assert done.stdout.splitlines()[-1].startswith("Found 2 errors in 1 file"), done.stdout
