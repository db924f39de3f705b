"""Kept sessions that go back into the store."""

from __future__ import annotations

import os
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import orjson
import pytest

from gemtui.errors import RestoreFailed
from gemtui.kept.cleanup import Retention, next_deletions
from gemtui.kept.restoring import Restored, restore_from_vault
from gemtui.kept.vault import keep_all, turn_on
from gemtui.paths import vault_dir
from gemtui.sessions.catalog.summary import Flag, Summary
from gemtui.sessions.catalog.vault_files import COPIES
from gemtui.sessions.store.projects import path_hash
from tests.sessions import logs
from tests.sessions.stores import legacy, marker, read, session, set_time, talk, uuid

RULE = Retention()
SOON = logs.START + timedelta(days=1)
LATE = logs.START + timedelta(days=40)


def kept(home: Path) -> Summary:
    """The one session that the vault keeps."""
    (found,) = (each for each in read(home).sessions if Flag.KEPT in each.flags and not each.parent)
    return found


def back(home: Path, now: datetime = SOON, rule: Retention = RULE) -> Restored:
    """Put back what is kept, and look at what the CLI would find."""
    restored = restore_from_vault(kept(home), home, rule, now)
    assert not any(Flag.KEPT in each.flags for each in read(home).sessions)
    assert next_deletions(read(home).sessions, lambda _: rule, now) == ()
    return restored


def lost(home: Path, path: Path | None = None) -> Path:
    """A session that only the vault has."""
    path = path or session(home, uuid(1))
    keep_all(home)
    path.unlink()
    return path


def ghost(home: Path, number: int = 1) -> Path:
    """What a resume leaves."""
    path = session(
        home, uuid(number), [logs.header(uuid(number)), logs.context()], minute="2026-11-21T10-00"
    )
    set_time(path, logs.START.timestamp())
    return path


def test_it_is_the_same_file_again_with_its_subagents(store: Path) -> None:
    path = session(store, uuid(1))
    agent = logs.write(path.parent / uuid(1) / "helper.jsonl", talk("helper"))
    before = path.read_bytes(), agent.read_bytes()
    keep_all(store)
    path.unlink()
    agent.unlink()
    agent.parent.rmdir()
    restored = back(store)
    assert restored == Restored(paths=(path, agent))
    assert (path.read_bytes(), agent.read_bytes()) == before
    path.write_bytes(b"")
    assert kept(store).path.read_bytes() == before[0]


def test_its_tool_outputs_and_plans_come_back_but_over_nothing(store: Path) -> None:
    path, project = session(store, uuid(1)), store / "tmp/proj"
    output = logs.write(project / f"tool-outputs/session-{uuid(1)}/shell.txt", ["Much"])
    plan = logs.write(project / uuid(1) / "plans/plan.md", ["First"])
    keep_all(store)
    before = output.read_bytes()
    for each in (path, output, plan):
        each.unlink()
    plan.write_text("Another")
    (vault_dir() / f"copy{output.parent}/.put-shell").write_text("what a killed program left")
    assert back(store).paths == (path, output)
    assert output.read_bytes() == before
    assert plan.read_text() == "Another"


def test_it_comes_last_so_that_what_went_wrong_can_be_done_again(store: Path) -> None:
    path, outputs = session(store, uuid(1)), store / "tmp/proj/tool-outputs"
    output = logs.write(outputs / f"session-{uuid(1)}/shell.txt", ["Much"])
    keep_all(store)
    path.unlink()
    shutil.rmtree(outputs)
    outputs.write_text("in the way")
    with pytest.raises(OSError, match="tool-outputs"):
        back(store)
    assert not path.exists()
    outputs.unlink()
    assert back(store).paths == (path, output)


def test_its_ghost_stays_away_and_one_in_the_store_goes(store: Path) -> None:
    path, empty = session(store, uuid(1)), ghost(store)
    keep_all(store)
    path.unlink()
    assert back(store).removed == (empty,)
    assert not empty.exists()
    assert (vault_dir() / COPIES / str(empty).lstrip("/")).exists()


def test_what_is_too_old_counts_as_used_today_or_it_would_go_again(store: Path) -> None:
    path = session(store, uuid(1))
    data = path.read_bytes()
    keep_all(store)
    path.unlink()
    assert back(store, LATE).renewed
    assert path.read_bytes().startswith(data)
    (found,) = read(store).sessions
    assert found.updated == LATE
    assert found.messages == 2
    assert keep_all(store) == 0


def test_so_does_what_is_not_old_where_only_so_many_stay(store: Path) -> None:
    session(store, uuid(2), talk(uuid(2), seconds=60))
    lost(store)
    assert back(store, SOON, Retention(age=None, count=2)).renewed


def test_so_does_an_object_of_an_older_version(store: Path) -> None:
    path = legacy(store, uuid(1), [logs.user("u", "Hello"), logs.gemini("g", "Hi")], key="proj")
    before = orjson.loads(path.read_bytes())
    keep_all(store)
    path.unlink()
    assert back(store, LATE).renewed
    now = orjson.loads(path.read_bytes())
    assert now.pop("lastUpdated") != before.pop("lastUpdated")
    assert now == before
    assert path.stat().st_nlink == 1


def test_a_log_whose_last_line_was_cut_can_be_brought_up_to_date(store: Path) -> None:
    path = session(store, uuid(1))
    path.write_bytes(path.read_bytes() + b'{"id": "half')
    keep_all(store)
    path.unlink()
    back(store, LATE)
    (found,) = read(store).sessions
    assert found.updated == LATE


def test_an_older_object_beside_it_that_would_take_it_along_goes_into_the_vault(
    store: Path,
) -> None:
    old = legacy(store, uuid(1), [logs.user("u", "Hello")], key="proj")
    path = session(store, uuid(1), talk(uuid(1), seconds=35 * 86400))
    set_time(old, logs.START.timestamp())
    keep_all(store)
    path.unlink()
    assert back(store, LATE).removed == (old,)


def test_without_a_clean_up_nothing_is_changed_in_it(store: Path) -> None:
    path = session(store, uuid(1))
    before = path.read_bytes()
    keep_all(store)
    path.unlink()
    assert not back(store, LATE, Retention(enabled=False)).renewed
    assert path.read_bytes() == before


def test_a_session_without_anything_to_resume_stays_where_it_is(store: Path) -> None:
    path = lost(
        store, session(store, uuid(1), [*talk(uuid(1)), {"$set": {"messages": [logs.context()]}}])
    )
    with pytest.raises(RestoreFailed, match="nothing to resume"):
        restore_from_vault(kept(store), store, RULE, SOON)
    assert not path.exists()


def test_nothing_is_written_over(store: Path) -> None:
    lost(store)
    found = kept(store)
    other = session(store, uuid(1), talk(uuid(1), "Another"))
    with pytest.raises(RestoreFailed, match="move it away"):
        restore_from_vault(found, store, RULE, SOON)
    assert b"Another" in other.read_bytes()


def test_another_session_with_its_short_id_is_not_touched(store: Path) -> None:
    path = lost(store)
    id = uuid(1)[:8] + "-another"
    other = session(store, id, talk(id), minute="2026-11-20T23-05")
    set_time(other, logs.START.timestamp())
    with pytest.raises(RestoreFailed, match="short id"):
        restore_from_vault(kept(store), store, RULE, LATE)
    assert other.exists()
    assert restore_from_vault(kept(store), store, RULE, SOON).paths == (path,)


def test_what_is_just_written_is_not_removed(store: Path) -> None:
    path, empty = session(store, uuid(1)), ghost(store)
    keep_all(store)
    path.unlink()
    now = datetime.now(UTC)
    os.utime(empty, (now.timestamp(), now.timestamp()))
    with empty.open("ab") as file:
        file.write(logs.lines([{"$set": {"lastUpdated": now.isoformat()}}]))
    with pytest.raises(RestoreFailed, match="being written right now"):
        restore_from_vault(kept(store), store, RULE, now + timedelta(seconds=1))


def test_a_ghost_that_is_only_half_written_is_archived_before_it_is_removed(store: Path) -> None:
    old = legacy(store, uuid(1), [], key="proj")
    path = session(store, uuid(1))
    keep_all(store)
    old.write_bytes(half := old.read_bytes()[:-3])
    set_time(old, logs.START.timestamp())
    path.unlink()
    assert restore_from_vault(kept(store), store, RULE, SOON).removed == (old,)
    assert half in [each.read_bytes() for each in vault_dir().rglob("*.json")]


def test_a_folder_that_belongs_to_another_project_by_now_is_left_alone(store: Path) -> None:
    lost(store)
    marker(store, "proj", "/somewhere/else")
    with pytest.raises(RestoreFailed, match="/somewhere/else"):
        restore_from_vault(kept(store), store, RULE, SOON)


def test_from_another_file_system_it_is_copied(other_file_system: Path, tmp_path: Path) -> None:
    turn_on()
    home = tmp_path / ".gemini"
    path = session(home, uuid(1))
    set_time(path, logs.START.timestamp())
    before = path.read_bytes()
    keep_all(home)
    path.unlink()
    assert back(home).paths == (path,)
    assert path.read_bytes() == before
    assert path.stat().st_mtime == logs.START.timestamp()
    assert sorted(path.parent.iterdir()) == [path]


def test_what_is_in_the_store_needs_no_restoring(store: Path) -> None:
    session(store, uuid(1))
    turn_on()
    (found,) = read(store).sessions
    with pytest.raises(RestoreFailed, match="already in its place"):
        restore_from_vault(found, store, RULE, SOON)


@pytest.mark.parametrize("torn", [b"", b'{"sessionId":"%s","projectHa\n' % uuid(1).encode()])
def test_a_log_without_its_first_line_gets_one_so_that_it_stays(store: Path, torn: bytes) -> None:
    marker(store, "proj", "/work/proj")
    path = session(store, uuid(1))
    data = torn + path.read_bytes().partition(b"\n")[2]
    path.write_bytes(data)
    keep_all(store)
    path.unlink()
    restored = back(store)
    assert restored.paths == (path,)
    head, _, rest = path.read_bytes().partition(b"\n")
    assert rest == data
    assert orjson.loads(head)["projectHash"] == path_hash("/work/proj")
    (found,) = read(store).sessions
    assert found.id == (uuid(1) if torn else orjson.loads(head)["sessionId"])
    assert found.id.startswith(uuid(1)[:8])


def test_a_log_without_its_first_line_of_an_unknown_project_stays_outside(store: Path) -> None:
    path = session(store, uuid(1))
    path.write_bytes(path.read_bytes().partition(b"\n")[2])
    keep_all(store)
    path.unlink()
    with pytest.raises(RestoreFailed, match="first line is corrupt"):
        restore_from_vault(kept(store), store, RULE, SOON)
    assert not path.exists()


def test_what_comes_back_is_on_the_disk_before_it_has_its_name(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = lost(store)
    steps: list[tuple[str, int]] = []
    fsync, link = os.fsync, os.link

    def synced(handle: int) -> None:
        steps.append(("sync", os.fstat(handle).st_ino))
        fsync(handle)

    def linked(source: Path, target: Path, **more: bool) -> None:
        link(source, target, **more)
        if target == path:
            steps.append(("link", path.stat().st_ino))

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "link", linked)
    assert restore_from_vault(kept(store), store, RULE, LATE).renewed
    at = steps.index(("link", path.stat().st_ino))
    assert ("sync", path.stat().st_ino) in steps[:at]
    assert ("sync", path.parent.stat().st_ino) in steps[at:]
