"""A session of which a run has the only copy: it stays, is named, and is put back."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gemtui.agent.run_folder import RunFolder
from gemtui.kept.resume_guard import SessionKeeper
from gemtui.kept.run_copies import drop_kept, keep_before
from gemtui.paths import runs_dir
from gemtui.runs.listing import prune_runs
from tests.cli.conftest import Gemtui, has, put, values
from tests.fake_cli import INIT, OK, FakeCli
from tests.kept.test_resume import ANSWERED, GHOST, ID, MORE, REAL, lines
from tests.rows import table
from tests.runs.test_listing import add_run

FIRST, SECOND = "11111111-a", "22222222-b"
NOTHING_RESTORED = table("cli/nothing_restored.json") | {"session": ID, "run": SECOND}


@pytest.fixture
def real(home: Path) -> Path:
    """The one session of the store."""
    path = home / ".gemini/tmp/greeter/chats/session-2026-01-02T03-04-0a1b2c3d.jsonl"
    put(path, REAL)
    return path


def resumed(home: Path, id: str, *, age: int = 0) -> RunFolder:
    """A run that has gone on with the session, and ended well."""
    folder = add_run(runs_dir(), id, age=age)
    SessionKeeper(folder, keep_before(folder, home / ".gemini", ID)).close()
    return folder


@pytest.fixture
def twice(home: Path, real: Path) -> RunFolder:
    """Two runs have gone on with the session, each has added a message; the newer run."""
    resumed(home, FIRST, age=5)
    with real.open("ab") as file:
        file.write(MORE)
    newer = resumed(home, SECOND)
    with real.open("ab") as file:
        file.write(ANSWERED)
    return newer


def ids(gemtui: Gemtui) -> list[str]:
    return values(gemtui.json("runs")["runs"], "id")


def test_a_copy_goes_where_the_store_has_it_all(twice: RunFolder, gemtui: Gemtui) -> None:
    assert values(gemtui.json("runs")["runs"], "only_copy_of") == [None, None]
    cleared = gemtui.json("runs clear")
    assert cleared == {"version": 1, "removed": 2, "left": 0, "only_copies": []}


def test_the_only_copy_is_not_removed(twice: RunFolder, real: Path, gemtui: Gemtui) -> None:
    real.unlink()
    assert prune_runs(runs_dir(), runs=1, size=1) == 1, (
        "the older run keeps nothing that the newer lacks"
    )
    add_run(runs_dir(), "33333333-c", age=-5)
    assert prune_runs(runs_dir(), runs=1, size=1) == 0
    answer = gemtui("runs clear")
    removed, named = answer.err.splitlines()
    assert removed.startswith("gemtui: removed 1 run from")
    assert "could not be removed" not in removed
    assert named.endswith("restore it with gemtui runs restore 22222222")
    assert ID in named
    assert ids(gemtui) == [SECOND]
    assert gemtui.json("runs")["runs"][0]["only_copy_of"] == ID
    assert named in gemtui("runs").err


@pytest.mark.parametrize("id", ["22222222", ID, ID[:4]])
def test_the_state_at_the_end_of_the_run_is_put_back(
    twice: RunFolder, real: Path, gemtui: Gemtui, id: str
) -> None:
    real.unlink()
    answer = gemtui("runs restore", id)
    assert (answer.code, answer.complaint) == (0, f"gemtui: restored {real}")
    assert real.read_bytes() == REAL + MORE
    again = gemtui("runs restore", SECOND, "--json")
    assert again.code == 1
    assert again.json == NOTHING_RESTORED
    assert gemtui.json("sessions --everywhere")["sessions"][0]["messages"] == 3


@pytest.mark.parametrize("damage", [b"", b"{", b'{"session_id": 7, "home": "/"}'])
def test_copies_whose_list_is_damaged_are_not_removed(
    twice: RunFolder, real: Path, gemtui: Gemtui, damage: bytes
) -> None:
    real.unlink()
    (twice.path / "before.json").write_bytes(damage)
    gemtui("runs clear")
    assert SECOND in ids(gemtui)
    assert (twice.path / "before-0.jsonl").exists()


@pytest.mark.parametrize("now", [b"", b"{}\n" * 1000])
def test_a_file_that_was_changed_in_its_place_is_put_back_as_the_run_left_it(
    twice: RunFolder, real: Path, gemtui: Gemtui, now: bytes
) -> None:
    real.write_bytes(now)
    real.unlink()
    gemtui.ok("runs restore", SECOND)
    assert real.read_bytes() == REAL + MORE
    drop_kept(twice)
    assert not [each.name for each in twice.path.iterdir() if each.suffix == ".jsonl"]


@pytest.mark.parametrize("word", ["runs", "vault"])
def test_it_lasts_as_what_would_take_it_along_again_makes_way(
    home: Path, real: Path, gemtui: Gemtui, word: str
) -> None:
    old = {"$set": {"lastUpdated": "2026-01-03T00:00:00.000Z"}}
    real.write_bytes(REAL + lines(old))
    resumed(home, SECOND)
    real.unlink()
    ghost = real.with_name("session-2026-01-02T03-09-0a1b2c3d.jsonl")
    ghost.write_bytes(GHOST)
    os.utime(ghost, (0, 0))
    answer = gemtui(word, "restore", ID, "--json")
    assert (answer.code, answer.json) == (
        0,
        NOTHING_RESTORED | {"restored": [str(real)], "removed": [str(ghost)], "renewed": True},
    )
    assert real.read_bytes().startswith(REAL + lines(old) + b'{"$set":{"lastUpdated":"')
    assert not ghost.exists()
    assert gemtui.json("vault")["next"] == []
    assert gemtui.json("runs clear")["only_copies"] == []


def test_a_run_gives_what_neither_store_nor_vault_has(
    twice: RunFolder, real: Path, gemtui: Gemtui
) -> None:
    gemtui("vault restore", ID).fails("already in its place")
    real.unlink()
    assert gemtui("vault restore ffff").code == 2
    gemtui.ok("vault restore", ID[:8])
    assert real.exists()


def test_what_holds_less_is_not_overwritten(twice: RunFolder, real: Path, gemtui: Gemtui) -> None:
    real.unlink()
    real.write_bytes(GHOST)
    assert gemtui.json("runs clear")["only_copies"] == [SECOND]
    gemtui("runs restore", ID).fails(
        f"{real} contains less than {twice.path}", f"move {real.name} away"
    )
    assert real.read_bytes() == GHOST


def test_the_doctor_names_it(twice: RunFolder, real: Path, gemtui: Gemtui) -> None:
    assert "only copy" not in gemtui("doctor").out
    real.unlink()
    report = gemtui("doctor").out
    assert f"run 22222222 has the only copy of session {ID}" in " ".join(report.split())
    assert report.splitlines()[-1] == "no problems"
    (named,) = gemtui.json("doctor")["runs"]["only_copies"]
    has(named, run=SECOND, session=ID)


def test_a_run_whose_session_is_gone_at_its_end_fails(
    home: Path, real: Path, fake_cli: FakeCli, gemtui: Gemtui
) -> None:
    chats = real.parent
    fake_cli(f"print:{INIT}", f"block:{chats}", f"print:{OK}")
    answer = gemtui("run Which? --resume", ID)
    assert answer.code == 1
    assert f"{real} is missing: a copy is in" in answer.err
    chats.unlink()
    gemtui.ok("runs restore latest")
    assert real.read_bytes() == REAL
