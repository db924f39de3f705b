"""`gemtui vault`: what is kept, put back and removed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from gemtui.jsonout import iso
from gemtui.paths import vault_dir
from tests.cli.conftest import Gemtui
from tests.cli.shapes import fits
from tests.sessions import logs
from tests.sessions.stores import LONG_AGO, hashed, marker, session, set_time, talk, uuid


@pytest.fixture
def chat(home: Path) -> Path:
    """The one session of a store."""
    marker(home / ".gemini", "proj", str(home))
    head, *records = talk(uuid(1), "Where is it?")
    head["projectHash"] = hashed(str(home))
    return session(home / ".gemini", uuid(1), [head, *records])


def test_it_says_that_it_is_off_and_what_the_cli_removes_next(gemtui: Gemtui, chat: Path) -> None:
    lines = gemtui("vault").out.splitlines()
    assert lines[0] == "vault     off: turn it on with gemtui vault on"
    assert not vault_dir().exists()
    gemtui("mark", uuid(1), "--name", "Lost and found")
    named = gemtui("vault").out
    assert "Lost and found" in named
    assert "Where is it?" not in named
    status = gemtui.json("vault status")
    fits(status, "Vault")
    assert not status["vault"]["on"]
    assert gemtui.json("vault") == status


def test_a_session_is_kept_listed_read_and_put_back(gemtui: Gemtui, chat: Path) -> None:
    size = chat.stat().st_size
    gemtui.ok("vault on")
    assert gemtui.json("vault")["vault"]["bytes"]["copied"] == size
    chat.unlink()
    status = gemtui.json("vault")
    assert status["kept"] == [uuid(1)]
    assert status["vault"]["bytes"] == {"shared": 0, "copied": 0, "only_here": size}
    assert f"{uuid(1)[:8]}" in gemtui("vault").out
    (listed,) = gemtui.json("sessions --everywhere")["sessions"]
    assert listed["flags"] == ["kept"]
    assert "[kept]" in gemtui("sessions --everywhere").out
    assert "Where is it?" in gemtui("show", uuid(1)[:6]).out
    assert gemtui.json("search where --everywhere")["hits"]
    done = gemtui.json("vault restore", uuid(1)[:6])
    assert done["restored"] == [str(chat)]
    assert chat.exists()
    assert gemtui.json("vault")["kept"] == []
    gemtui("vault restore", uuid(1)).fails("nothing to restore")


def test_a_session_that_is_only_kept_is_resumed_once_it_is_put_back(
    gemtui: Gemtui, chat: Path, home: Path
) -> None:
    gemtui("vault on")
    chat.unlink()
    for wanted in (uuid(1), "latest"):
        gemtui("run Go -C", home, "--resume", wanted).refuses(
            f"Restore it first: gemtui vault restore {uuid(1)}"
        )


def test_doctor_tells_of_it(gemtui: Gemtui, chat: Path) -> None:
    assert "vault" not in gemtui("doctor").out
    gemtui("vault on")
    chat.unlink()
    told = gemtui("doctor").out
    assert f"{vault_dir()}: on, 1 file" in told
    assert "1 that agents have deleted; to delete those, too: gemtui vault prune" in told
    fits(gemtui.json("doctor")["files"]["vault"], "VaultFacts")


def test_what_would_be_removed_next_is_told_with_its_reason_and_what_stops_it(
    gemtui: Gemtui, home: Path
) -> None:
    session(
        home / ".gemini",
        uuid(1),
        [logs.header(uuid(1)), logs.user("u", "/about"), logs.gemini("g", "")],
    )
    ghost = session(home / ".gemini", uuid(2), [logs.header(uuid(2)), logs.context()])
    status = gemtui("vault status")
    status.shows("/about: contains nothing to resume", f"{ghost.name}: contains nothing to resume")
    doctor = gemtui("doctor").out
    assert (
        "Gemini CLI deletes 2 session files at its next start; to list them: gemtui vault status"
        in doctor
    )
    assert "all well" not in doctor
    assert "general.sessionRetention.enabled = false" in status.out
    fits(gemtui.json("vault"), "Vault")


def test_the_first_to_become_too_old_is_told_with_the_day(gemtui: Gemtui, home: Path) -> None:
    used = datetime.now(UTC).replace(microsecond=0) - timedelta(days=3)
    head = logs.header(uuid(1), lastUpdated=iso(used))
    session(home / ".gemini", uuid(1), [head, logs.user("u", "Where is it?")])
    when = used + timedelta(days=30)
    first = gemtui.json("vault")["first"]
    assert first == {"session": uuid(1), "from": iso(when)}
    status = gemtui("vault status").out
    assert f"Where is it?: after {when.astimezone():%Y-%m-%d}, unless it is used again" in status
    assert "general.sessionRetention.enabled = false" in status


def test_off_keeps_nothing_more_and_removes_nothing(gemtui: Gemtui, chat: Path) -> None:
    gemtui("vault on")
    chat.unlink()
    gemtui.ok("vault off")
    assert gemtui.json("vault")["kept"] == [uuid(1)]
    assert gemtui.json("vault on") == {"version": 1, "on": True, "new": 0}


def test_what_only_the_vault_has_is_removed_when_somebody_wants_that(
    gemtui: Gemtui, home: Path, chat: Path
) -> None:
    other = session(home / ".gemini", uuid(2), key="other")
    gemtui("vault on")
    chat.unlink()
    gemtui("vault prune").refuses("--yes")
    assert gemtui("vault prune --before 2020-01-01 --yes").code == 1
    assert gemtui("vault prune --project", home / "elsewhere", "--yes").code == 1
    removed = gemtui.json("vault prune --project", home, "--yes")
    assert {Path(each).name for each in removed["removed"]} == {chat.name}
    assert gemtui.json("vault")["kept"] == []
    assert list(vault_dir().rglob(other.name))
    assert not list(vault_dir().rglob(chat.name))
    assert not list(vault_dir().rglob("proj"))


def test_a_damaged_session_is_named_restored_and_what_was_there_is_kept_until_pruned(
    gemtui: Gemtui, home: Path, chat: Path
) -> None:
    set_time(chat, LONG_AGO)
    gemtui("vault on")
    data = chat.read_bytes()
    chat.write_bytes(bad := data.replace(b"Where", b"There"))
    gemtui("vault status").shows(f"{uuid(1)[:8]}", "Where is it?: damaged in its place")
    assert gemtui.json("search where --everywhere")["hits"]
    done = gemtui.json("vault restore", uuid(1)[:8])
    assert done["restored"] == [str(chat)]
    assert chat.read_bytes() == data
    assert Path(done["replaced"]).read_bytes() == bad
    assert gemtui.json("vault")["kept"] == []
    assert gemtui("vault prune --project", home / "elsewhere", "--yes").code == 1
    removed = gemtui.json("vault prune --project", home, "--yes")
    assert removed["removed"] == [done["replaced"]]
    assert chat.read_bytes() == data


def test_a_session_without_its_first_line_has_an_id_that_restore_accepts(
    gemtui: Gemtui, home: Path, chat: Path
) -> None:
    other = session(home / ".gemini", uuid(2))
    data = {path: path.read_bytes().partition(b"\n")[2] for path in (chat, other)}
    for path, rest in data.items():
        path.write_bytes(rest)
        set_time(path, LONG_AGO)
    status = gemtui("vault status").out
    assert status.count("its first line is corrupt or missing") == 2
    assert "from 20" not in status
    for path in (chat, other):
        assert f"{path.stem} " in status
        gemtui.ok("vault restore", path.stem).tells(f"restored {path}")
        assert path.read_bytes().partition(b"\n")[2] == data[path]
    assert "would delete nothing" in gemtui("vault status").out
