"""`gemtui sessions`."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from gemtui.text import clean
from tests.cli.conftest import Gemtui, has, start, values
from tests.cli.shapes import fits
from tests.conftest import RECORDED
from tests.patience import PATIENCE
from tests.rows import each_row, table
from tests.terminal import Terminal

TABLES = table("cli/sessions.json")

FULL = "7024884b-dece-41db-8a1b-a37b16abdfd7"
GREETER = "/home/dev/src/greeter"


def ids(answer: Any) -> list[str]:
    return values(answer["sessions"], "id")


def add_session(
    store: Path,
    key: str,
    id: str,
    prompt: str,
    project: str | None = None,
    minute: int = 0,
    time: str | None = None,
) -> Path:
    """One more session of a project, with one prompt and one answer, both written at `time`."""
    chats = store / "tmp" / key / "chats"
    chats.mkdir(parents=True, exist_ok=True)
    if project is not None:
        (store / "tmp" / key / ".project_root").write_text(project)
    time = time or f"2026-11-20T10:{minute:02}:00.000Z"
    lines = [
        {"sessionId": id, "projectHash": "0", "startTime": time, "lastUpdated": time},
        {"id": "p", "timestamp": time, "type": "user", "content": [{"text": prompt}]},
        {"id": "a", "timestamp": time, "type": "gemini", "content": prompt},
    ]
    path = chats / f"session-2026-11-20T10-{minute:02}-{id[:8]}.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_shape_and_facts(store: Path, gemtui: Gemtui) -> None:
    answer = gemtui("sessions --everywhere --json")
    assert (answer.code, answer.err) == (0, "")
    fits(answer.json, "Sessions")
    assert answer.json["home"] == str(store)
    by_id = {each["id"]: each for each in answer.json["sessions"]}
    session = by_id[FULL]
    assert session["title"].startswith("Change the greeting from hello to bye")
    has(session, title_source="prompt", kind="main")
    assert session["project"].endswith("/greeter")
    has(session, prompts=1, tool_calls=8, tool_failures=2)
    assert session["failed_calls"] == 3
    moments = values(answer.json["sessions"], "updated")
    assert moments == sorted(moments, reverse=True), "newest first"


def test_hidden_adds_what_is_hidden(store: Path, gemtui: Gemtui) -> None:
    usual = gemtui.json("sessions --everywhere")
    every = gemtui.json("sessions --everywhere --hidden")
    fits(every, "Sessions")
    assert set(ids(usual)) < set(ids(every))
    assert len(ids(usual)) == len(set(ids(usual))), "one session once"
    kinds = {each["kind"] for each in every["sessions"]}
    flags = {flag for each in every["sessions"] for flag in each["flags"]}
    assert kinds == {"main", "subagent", "checkpoint"}
    assert {"ghost", "duplicate"} <= flags
    shown = [str(path) for path in (store / "tmp").rglob("*.json*")]
    assert {each["files"][0] for each in every["sessions"]} <= set(shown)


def test_project_narrows_down(store: Path, tmp_path: Path, gemtui: Gemtui) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    add_session(store, "mine", "11111111-aaaa", "Say hi", project=str(mine))
    assert ids(gemtui.json("sessions --project", mine)) == ["11111111-aaaa"]
    (tmp_path / "link").symlink_to(mine)
    gone = gemtui.json("sessions --project", GREETER)
    assert FULL in ids(gone), "a project's folder need not be there any more"
    assert ids(gemtui.json("sessions --project", tmp_path / "link")) == ["11111111-aaaa"]


@pytest.mark.parametrize("limit", [(), ("--limit", "9")])
def test_worktrees_belong_to_their_repository(
    store: Path,
    tmp_path: Path,
    gemtui: Gemtui,
    monkeypatch: pytest.MonkeyPatch,
    limit: tuple[str, ...],
) -> None:
    mine = tmp_path / "mine"
    tree = mine / ".gemini/worktrees/fix"
    tree.mkdir(parents=True)
    add_session(store, "mine", "11111111-aaaa", "Say hi", project=str(mine))
    add_session(store, "fix", "22222222-aaaa", "Say him", str(tree), 1)
    for project in (mine, tree):
        found = gemtui.json("sessions --project", project, *limit)
        assert ids(found) == ["22222222-aaaa", "11111111-aaaa"]
        hits = gemtui.json("search say --project", project)["hits"]
        assert {each["session"] for each in hits} == {"22222222-aaaa", "11111111-aaaa"}
    monkeypatch.chdir(mine)
    latest = gemtui("show latest --format json").json["session"]
    assert latest["id"] == "11111111-aaaa", "what can be continued here"


@pytest.mark.parametrize("every", [("--everywhere",), ("--everywhere", "--hidden")])
def test_pages_have_each_session_once_while_others_come(
    store: Path, gemtui: Gemtui, every: tuple[str, ...]
) -> None:
    whole = [tuple(each["files"]) for each in gemtui.json("sessions", *every)["sessions"]]
    paged: list[tuple[str, ...]] = []
    cursor: tuple[str, ...] = ()
    for number in count():
        page = gemtui.json("sessions", *every, "--limit", "3", *cursor)
        fits(page, "Sessions")
        paged += [tuple(each["files"]) for each in page["sessions"]]
        if page["next_cursor"] is None:
            break
        cursor = ("--cursor", page["next_cursor"])
        time = f"2026-11-29T10:{number:02}:00.000Z"
        add_session(store, "new", f"{number:08}-new", "Say hi", project="/new", time=time)
    assert paged == whole


def test_since_and_until_narrow_down_to_a_time(store: Path, tmp_path: Path, gemtui: Gemtui) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    for day in (17, 18, 19):
        at = f"2026-10-{day}T12:00:00.000Z"
        add_session(store, "mine", f"{day:08}-aaaa", "Say hi", project=str(mine), time=at)
    for words, found in (
        (("--since", "2026-10-18"), [19, 18]),
        (("--until", "2026-10-18"), [18, 17]),
        (("--since", "2026-10-18", "--until", "2026-10-18"), [18]),
        (("--since", "2026-10-18", "--limit", "1"), [19]),
        (("--since", "2026-10-20"), []),
    ):
        answer = gemtui("sessions --project", mine, "--json", *words)
        assert ids(answer.json) == [f"{day:08}-aaaa" for day in found]


def test_the_current_folder_decides(
    store: Path, tmp_path: Path, gemtui: Gemtui, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    add_session(store, "mine", "11111111-aaaa", "Say hi", project=str(mine))
    monkeypatch.chdir(tmp_path)
    assert len(ids(gemtui.json("sessions"))) > 10, "no project here: everywhere"
    monkeypatch.chdir(mine)
    assert ids(gemtui.json("sessions")) == ["11111111-aaaa"]
    assert len(ids(gemtui.json("sessions --everywhere"))) > 10


def test_table_is_for_people(store: Path, gemtui: Gemtui) -> None:
    answer = gemtui("sessions --everywhere")
    head, *lines = answer.out.splitlines()
    assert " ".join(head.split()) == "ID AGE PROMPTS TOOLS FAILED TOKENS PROJECT TITLE"
    line = next(line for line in lines if line.startswith("7024884b "))
    assert "greeter" in line
    assert line.split()[2:5] == ["1", "8", "3"]
    assert "Change the greeting from hello to bye" in line
    assert any("[incomplete]" in line for line in lines)


def table_of(columns: int, folder: Path) -> list[str]:
    """The lines of the table in a terminal so wide."""
    words = [sys.executable, "-m", "gemtui", "sessions", "--everywhere"]
    environ = dict(os.environ)
    environ.pop("COLUMNS", None)
    with Terminal(words, environ=environ, folder=folder, columns=columns) as screen:
        assert screen.wait() == 0
        return [line.rstrip() for line in screen.lines if line.strip()]


@each_row("columns, heads", TABLES["columns_make_room_for_titles"])
def test_columns_make_room_for_titles(
    store: Path, tmp_path: Path, columns: int, heads: str
) -> None:
    title = "A title that needs quite some room to be told from the others " * 3
    add_session(store, "a-project-with-a-long-name", "44444444-x", title)
    head, *lines = table_of(columns, tmp_path)
    assert " ".join(head.split()) == heads
    assert all(len(line) <= columns for line in lines)
    line = next(line for line in lines if line.startswith("44444444"))
    assert "A title that needs" in line
    if columns > 40:
        assert "A title that needs quite some room" in line


def test_what_is_special_gives_way_to_the_title(store: Path, tmp_path: Path) -> None:
    title = "A prompt that has just been written, and is rather long"
    for columns, end in ((80, "… *"), (160, "and is rather long [live]")):
        now = datetime.now(UTC).isoformat()
        add_session(store, "greeter", "55555555-x", title, time=now)
        (line,) = (line for line in table_of(columns, tmp_path) if line.startswith("55555555"))
        assert "A prompt that has just been" in line
        assert line.endswith(end)


def test_short_ids_name_one_session_each(store: Path, gemtui: Gemtui) -> None:
    for minute, end in enumerate(("one", "two", "two-and-more")):
        add_session(store, "x", f"my-runs-{end}", f"Prompt {end}", minute=minute)
    shown = [line.split()[0] for line in gemtui("sessions --everywhere").out.splitlines()[1:]]
    assert {"my-runs-o", "my-runs-two-", "my-runs-two"} <= set(shown)
    assert len(set(shown)) == len(shown)
    for short in shown:
        assert gemtui("show", short).code == 0, short


def test_a_session_without_a_header_is_named_by_its_file(store: Path, gemtui: Gemtui) -> None:
    before = add_session(store, "x", "my-run", "A prompt", minute=1)
    for file in (before, before.with_name("session-2026-11-20T10-09-77777777.jsonl")):
        file.write_text(
            before.read_text().partition("\n")[2] if file == before else before.read_text()
        )
        lines = gemtui("sessions --everywhere").out.splitlines()
        shown = [line.split()[0] for line in lines if "A prompt" in line]
        assert file.stem in shown
        assert file.stem in values(gemtui.json("sessions --everywhere")["sessions"], "id")
        for id in shown:
            assert gemtui("show", id).code == 0, id


def test_hostile_text_is_cleaned_in_the_table_and_escaped_in_json(
    store: Path, gemtui: Gemtui
) -> None:
    evil = "\x1b]52;c;ZXZpbA==\x07 tit\u202ele \x9b31m\x7f\nsecond"
    add_session(store, "e\x1b[2Jvil", "22222222-\x1b[31mid", evil, project="/x/\x1b]0;owned\x07y")
    table = gemtui("sessions --everywhere").out
    assert clean(table) == table
    answer = gemtui("sessions --everywhere --json")
    assert clean(answer.out) == answer.out
    session = next(each for each in answer.json["sessions"] if each["id"].startswith("22222222"))
    assert session["id"] == "22222222-\x1b[31mid"
    assert session["project"] == "/x/\x1b]0;owned\x07y"


@each_row("there", [True, False])
def test_no_sessions_is_an_empty_answer(home: Path, gemtui: Gemtui, there: bool) -> None:
    if not there:
        (home / ".gemini").rmdir()
    answer = gemtui("sessions")
    assert (answer.code, answer.out) == (0, "")
    hint = "Gemini CLI stores them there once you use it"
    assert answer.complaint == f"gemtui: no sessions in {home}/.gemini yet: {hint}"
    assert gemtui.json("sessions")["sessions"] == []


def test_a_project_without_sessions_says_where_there_are_some(
    store: Path, tmp_path: Path, gemtui: Gemtui
) -> None:
    answer = gemtui("sessions --project", tmp_path)
    assert (answer.code, answer.out) == (0, "")
    assert "gemtui sessions --everywhere" in answer.complaint


def test_a_limit_keeps_the_newest(store: Path, gemtui: Gemtui) -> None:
    every = ids(gemtui.json("sessions --everywhere"))
    assert ids(gemtui.json("sessions --everywhere --limit 3")) == every[:3]
    assert len(gemtui("sessions --everywhere --limit 3").out.splitlines()) == 4


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_store_without_permission(store: Path, gemtui: Gemtui) -> None:
    (store / "tmp").chmod(0)
    try:
        answer = gemtui("sessions")
    finally:
        (store / "tmp").chmod(0o700)
    assert answer.code == 1
    assert "give yourself permission" in answer.complaint


def test_a_store_that_is_a_file(home: Path, gemtui: Gemtui) -> None:
    (home / ".gemini").rmdir()
    (home / ".gemini").write_text("not a folder")
    gemtui("sessions --json").fails(f"{home}/.gemini is not a folder: move it away")


def test_damaged_files_stop_nothing(store: Path, gemtui: Gemtui) -> None:
    chats = store / "tmp/greeter/chats"
    (chats / "session-2026-11-20T10-00-deadbeef.jsonl").write_bytes(b"\xff\x00\x80 not json")
    (chats / "session-2026-11-20T10-01-deadbeef.json").write_bytes(b"[" * 5000)
    (chats / "session-2026-11-20T10-02-deadbeef.jsonl").mkdir()
    answer = gemtui.ok("sessions --everywhere --json")
    assert len(answer.json["sessions"]) > 10
    assert (
        answer.complaint
        == "gemtui: 3 of the store's files or folders can't be read: gemtui doctor lists them"
    )


def test_home_comes_from_the_variable_or_the_home_folder(tmp_path: Path) -> None:
    shutil.copytree(RECORDED / "by-version/0.55.1/.gemini", tmp_path / ".gemini")
    for environ in (
        {"GEMINI_CLI_HOME": str(tmp_path), "HOME": "/nowhere"},
        {"GEMINI_CLI_HOME": None, "HOME": str(tmp_path)},
        {"GEMINI_CLI_HOME": "", "HOME": str(tmp_path)},
    ):
        done = start("sessions --everywhere --json", environ=environ)
        answer = json.loads(done.stdout)
        assert answer["home"] == str(tmp_path / ".gemini")
        assert len(answer["sessions"]) == 1


def test_without_any_home_variable_the_system_is_asked(tmp_path: Path) -> None:
    done = start("sessions", environ={"HOME": None, "GEMINI_CLI_HOME": None})
    assert done.returncode in (0, 2)
    assert b"Traceback" not in done.stderr


def test_a_current_folder_that_is_gone(store: Path, tmp_path: Path) -> None:

    gone = tmp_path / "gone"
    gone.mkdir()
    line = f'cd {gone} && rmdir {gone} && "{sys.executable}" -m gemtui sessions --json'
    done = subprocess.run(
        ["/bin/sh", "-c", line], capture_output=True, timeout=PATIENCE, check=False
    )
    assert done.returncode == 0, done.stderr
    assert len(json.loads(done.stdout)["sessions"]) > 10


def test_an_id_that_two_projects_have(
    store: Path, tmp_path: Path, gemtui: Gemtui, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = {}
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        path = add_session(store, name, "nightly", f"Work on {name}", str(tmp_path / name))
        path.write_text(path.read_text().replace('"projectHash": "0"', f'"projectHash": "{name}"'))
        paths[name] = path
    unclear = gemtui("show nightly")
    assert unclear.code == 2
    assert all(str(path) in unclear.err for path in paths.values())
    assert "Work on b" in gemtui("show", paths["b"]).out
    assert "Work on b" in gemtui("show nightly --project", tmp_path / "b").out
    assert gemtui("show", FULL, "--project", tmp_path / "b").code == 2
    monkeypatch.chdir(tmp_path / "a")
    assert "Work on a" in gemtui("show nightly").out


def test_a_folder_with_nothing_to_show_lists_all(
    store: Path, tmp_path: Path, gemtui: Gemtui, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `show latest` looks in all projects then."""
    here = tmp_path / "here"
    here.mkdir()
    path = add_session(store, "here", "44444444-empty", "?", str(here))
    path.write_text(path.read_text().partition("\n")[0] + "\n")
    monkeypatch.chdir(here)
    usual = gemtui.json("sessions")
    assert ids(usual) == ids(gemtui.json("sessions --everywhere"))
    assert ids(gemtui.json("sessions --hidden")) == ["44444444-empty"]
    assert ids(gemtui.json("sessions --project", here)) == []


@each_row("summary, title", TABLES["a_summary_that_is_json_is_no_title"])
def test_a_summary_that_is_json_is_no_title(
    store: Path, gemtui: Gemtui, summary: str, title: str
) -> None:
    path = add_session(store, "mine", "11111111-aaaa", "Say hi")
    with path.open("a") as file:
        file.write(json.dumps({"$set": {"summary": summary}}) + "\n")
    assert gemtui("show 11111111").out.splitlines()[0] == title


def test_written_files_are_counted_and_listed_only_where_they_are_asked_for(
    gemtui: Gemtui, store: Path
) -> None:
    counted = gemtui.json("sessions --everywhere")["sessions"]
    listed = gemtui.json("sessions --everywhere --files")["sessions"]
    assert max(each["files_written_count"] for each in counted) > 0
    for one, other in zip(counted, listed, strict=True):
        assert one | {"files_written": other["files_written"]} == other
        assert one["files_written_count"] == len(other["files_written"])
