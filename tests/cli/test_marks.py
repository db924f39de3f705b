"""`gemtui mark`, `gemtui marks`, and what lists make of them."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from gemtui.paths import data_dir
from tests.cli.conftest import Gemtui, values
from tests.sessions.stores import session, talk, uuid

ONE, TWO = uuid(1), uuid(2)


@pytest.fixture(autouse=True)
def store(home: Path) -> Path:
    for id, prompt in ((ONE, "First"), (TWO, "Second")):
        session(home / ".gemini", id, talk(id, prompt))
    return home / ".gemini"


def bytes_of(store: Path) -> list[tuple[Path, str]]:
    files = sorted(path for path in store.rglob("*") if path.is_file())
    return [(path, hashlib.sha256(path.read_bytes()).hexdigest()) for path in files]


def test_a_session_is_named_and_tagged_and_the_list_says_so(gemtui: Gemtui, store: Path) -> None:
    before = bytes_of(store)
    assert gemtui("mark", ONE[:8], "--name", "The parser", "--tag", "#Bug", "--pin").out == ""
    (line,) = (line for line in gemtui("sessions").out.splitlines() if line.startswith(ONE[:8]))
    assert line.endswith("The parser [pinned, #bug]")
    assert gemtui("mark", ONE).out.split("\n")[:3] == [
        "name      The parser",
        "tags      bug",
        "pinned    yes",
    ]
    assert bytes_of(store) == before


def test_of_the_latest_session_it_is_said_which_it_is(gemtui: Gemtui) -> None:
    assert gemtui.ok("mark latest").out == "no marks: to add some, see gemtui mark --help\n"
    newest = gemtui("show latest --format json").json["session"]
    marked = gemtui.ok("mark latest --pin")
    assert marked.complaint == f"gemtui: marked session {newest['id'][:8]} ({newest['title']})"
    assert "pinned    yes" in gemtui("mark latest").out


def test_what_is_archived_is_hidden(gemtui: Gemtui) -> None:
    gemtui("mark", TWO, "--archive", "--json")
    assert values(gemtui.json("sessions")["sessions"], "id") == [ONE]
    hidden = gemtui.json("sessions --hidden")
    assert {each["id"] for each in hidden["sessions"]} == {ONE, TWO}
    assert values(hidden["marks"], "session", "archived") == [(TWO, True)]
    gemtui("mark", TWO, "--unarchive")
    assert len(gemtui.json("sessions")["sessions"]) == 2


def test_a_session_that_is_gone_keeps_its_mark(gemtui: Gemtui, store: Path) -> None:
    gemtui("mark", ONE, "--note", "Why it broke")
    for path in store.rglob("*.jsonl"):
        path.unlink()
    assert gemtui("mark", ONE).out == "Why it broke\n"
    assert gemtui("mark", TWO).code == 2


def test_to_another_machine_and_back(gemtui: Gemtui, tmp_path: Path) -> None:
    gemtui("mark", ONE, "--name", "Mine", "--tag", "a")
    file = tmp_path / "marks.json"
    gemtui.ok("marks export --output", file)
    gemtui("mark", ONE, "--name", "Another", "--untag", "a")
    assert gemtui.json("marks import", file) == {"version": 1, "changed": 1, "kept": [ONE]}
    assert gemtui.json("mark", ONE)["mark"]["name"] == "Another"
    assert gemtui.json("mark", ONE)["mark"]["tags"] == ["a"]
    file.write_text("[]")
    gemtui("marks import", file).refuses(str(file))


def test_words_that_cannot_be_kept_are_refused(gemtui: Gemtui) -> None:
    gemtui("mark", ONE, "--tag", "two words").refuses("is not a valid tag")


def test_with_a_file_that_cannot_be_read_the_list_goes_on(gemtui: Gemtui) -> None:
    data_dir().mkdir(parents=True)
    (data_dir() / "marks.sqlite3").write_bytes(b"something else")
    listed = gemtui("sessions")
    assert ONE[:8] in listed.out
    assert "can't be used" in listed.complaint
    refused = gemtui("mark", ONE, "--pin")
    aside = data_dir() / "marks-damaged-1.sqlite3"
    assert refused.code == 1
    assert f"it is now {aside}" in refused.complaint
    assert aside.read_bytes() == b"something else"
    gemtui.ok("mark", ONE, "--pin")


def test_foreign_words_reach_the_terminal_harmless(gemtui: Gemtui, tmp_path: Path) -> None:
    gemtui("mark", ONE, "--name", "a\x1b]0;b\x07", "--note", "x\x1b[2Jy")
    assert "\x1b" not in gemtui("mark", ONE).out + gemtui("sessions").out


def test_doctor_names_the_file_and_says_when_it_is_broken(gemtui: Gemtui) -> None:
    gemtui("mark", ONE, "--pin")
    file = data_dir() / "marks.sqlite3"
    assert gemtui.json("doctor")["files"]["marks"] == {
        "path": str(file),
        "sessions": 1,
        "problem": None,
    }
    file.write_bytes(b"something else")
    broken = gemtui("doctor")
    assert broken.code == 1
    assert f"{file}, which has your names, tags and notes for sessions, can't be used" in broken.out
