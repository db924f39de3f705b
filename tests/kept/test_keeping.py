"""What the vault keeps, whatever becomes of the files in the store."""

from __future__ import annotations

import errno
import os
import random
import shutil
import stat
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from gemtui.kept.contents import contents
from gemtui.kept.vault import QUIET, is_on, keep, keep_all, keep_changed, switch_off, turn_on
from gemtui.paths import vault_dir
from gemtui.sessions.catalog.vault_files import COPIES, in_tree, store_with_kept, trees
from tests.conftest import SMALL, nobody
from tests.sessions import logs
from tests.sessions.stores import append, legacy, session, talk, uuid


def kept(path: Path) -> list[bytes]:
    """What the vault has of a file, tree by tree."""
    names = (Path(f"{tree}{path}") for tree in trees())
    return [name.read_bytes() for name in names if name.exists()]


def linked(path: Path) -> Path:
    """A link to a file in the vault, as an earlier version of gemtui and its hook made it."""
    link = in_tree(vault_dir() / "0", path)
    link.parent.mkdir(parents=True, exist_ok=True)
    link.hardlink_to(path)
    return link


def test_it_is_off_until_it_is_switched_on_and_keeps_what_it_has_when_switched_off(
    tmp_path: Path,
) -> None:
    path = session(tmp_path / ".gemini", uuid(1))
    assert not is_on()
    turn_on()
    assert is_on()
    assert keep(path)
    switch_off()
    assert not is_on()
    assert kept(path) == [path.read_bytes()]


def test_a_file_is_copied_once_and_nobody_else_may_look(store: Path) -> None:
    path = session(store, uuid(1))
    assert keep(path)
    assert not keep(path)
    assert path.stat().st_nlink == 1
    (copy,) = vault_dir().rglob("*.jsonl")
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    for folder in (vault_dir(), *(each for each in vault_dir().rglob("*") if each.is_dir())):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((vault_dir() / "on").stat().st_mode) == 0o600


def test_a_copy_goes_on_as_its_log_does(store: Path) -> None:
    path = session(store, uuid(1))
    keep(path)
    (copy,) = vault_dir().rglob("*.jsonl")
    before = copy.stat().st_ino
    append(path, logs.user("late", "One more"))
    assert keep(path)
    assert kept(path) == [path.read_bytes()]
    assert copy.stat().st_ino == before
    assert not keep(path)


@pytest.mark.parametrize("at", [0, 1, None])
def test_an_update_that_was_interrupted_is_not_taken_for_the_whole(
    store: Path, at: int | None
) -> None:
    """As if killed while the copy was being appended to, or before it got its time."""
    path = session(store, uuid(1))
    keep(path)
    (copy,) = vault_dir().rglob("*.jsonl")
    size = path.stat().st_size
    append(path, logs.user("late", "One more"))
    added = path.read_bytes()[size:]
    with copy.open("ab") as file:
        file.write(added[:at])
    os.utime(copy, (1, 1))
    assert keep(path)
    assert kept(path) == [path.read_bytes()]
    assert not keep(path)


def test_everything_in_a_store_is_kept_once_subagents_and_checkpoints_too(store: Path) -> None:
    main = session(store, uuid(1))
    agent = logs.write(main.parent / uuid(1) / "helper.jsonl", talk("helper"))
    old = legacy(store, uuid(2), [logs.user("u", "Hello")], key="proj")
    checkpoint = logs.write(store / "tmp/proj/checkpoint-a.json", [{"history": []}])
    told: list[tuple[int, int]] = []
    assert keep_all(store, told=lambda *step: told.append(step)) == 4
    assert told[-1] == (4, 4)
    assert keep_all(store) == 0
    for path in (main, agent, old, checkpoint):
        assert kept(path) == [path.read_bytes()]


def test_tool_outputs_and_plans_are_kept_with_their_session_and_nothing_of_others(
    store: Path,
) -> None:
    main, project = session(store, uuid(1)), store / "tmp/proj"
    mine = [
        project / f"tool-outputs/session-{uuid(1)}/shell_1.txt",
        project / uuid(1) / "plans/plan.md",
        project / uuid(1) / "tasks/task.json",
    ]
    others = [
        project / f"tool-outputs/session-{uuid(2)}/shell_1.txt",
        project / "logs/session.log",
        project / "shell_history",
    ]
    for path in (*mine, *others):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{}")
    keep_changed([main], store)
    assert [kept(path) for path in mine] == [[b"{}"]] * 3
    mine[0].write_text("more of it")
    late = project / uuid(1) / "plans/late.md"
    late.write_text("late")
    assert keep_all(store) == 2
    assert keep_all(store) == 0
    assert kept(mine[0]) == [b"more of it"]
    assert kept(late) == [b"late"]
    assert [kept(path) for path in others] == [[]] * 3


def test_links_folders_and_pipes_are_not_kept(store: Path, tmp_path: Path) -> None:
    chats = session(store, uuid(1)).parent
    secret = tmp_path / "secret.jsonl"
    secret.write_text("{}")
    link = chats / "session-2026-11-20T23-04-aaaaaaaa.jsonl"
    link.symlink_to(secret)
    os.mkfifo(chats / "session-2026-11-20T23-04-bbbbbbbb.jsonl")
    (chats / "session-2026-11-20T23-04-cccccccc.jsonl").mkdir()
    keep_all(store)
    assert not any(keep(path) for path in chats.iterdir())
    assert kept(link) == []
    assert not any(path.is_symlink() for path in vault_dir().rglob("*"))


def test_a_file_that_was_made_anew_takes_no_place_of_what_it_does_not_hold(store: Path) -> None:
    path = session(store, uuid(1))
    keep(path)
    before = path.read_bytes()
    path.unlink()
    logs.write(path, [logs.header(uuid(1)), logs.user("other", "Begun anew")])
    assert keep(path)
    assert sorted(kept(path)) == sorted([before, path.read_bytes()])
    assert not keep(path)


def test_a_file_that_goes_on_from_what_is_kept_takes_its_place(store: Path) -> None:
    path = session(store, uuid(1))
    keep(path)
    data = path.read_bytes()
    path.unlink()
    path.write_bytes(data)
    append(path, logs.user("late", "One more"))
    assert keep(path)
    assert kept(path) == [path.read_bytes()]


def test_an_object_of_an_older_version_is_copied_as_it_is_written_over(store: Path) -> None:
    path = legacy(store, uuid(1), [logs.user("u", "Hello")], key="proj")
    keep(path)
    first = path.read_bytes()
    legacy(
        store, uuid(1), [logs.user("u", "Hello"), logs.gemini("g", "Answer")], key="proj", seconds=9
    )
    assert keep(path)
    whole = path.read_bytes()
    assert first != whole
    assert kept(path) == [whole]
    path.write_bytes(whole[:50])
    assert not keep(path)
    path.write_bytes(b"")
    assert not keep(path)
    assert kept(path) == [whole]
    assert [each.kept for each in store_with_kept(store).files()] == [False, True]


def test_an_object_that_lost_messages_leaves_the_one_that_had_them(store: Path) -> None:
    path = legacy(store, uuid(1), [logs.user("u", "Hello"), logs.gemini("g", "Answer")], key="proj")
    keep(path)
    first = path.read_bytes()
    legacy(store, uuid(1), [logs.user("another", "Hello")], key="proj", seconds=9)
    assert keep(path)
    assert sorted(kept(path)) == sorted([first, path.read_bytes()])


def test_on_another_file_system_files_are_copied_and_brought_up_to_date(
    other_file_system: Path, tmp_path: Path
) -> None:
    turn_on()
    path = session(tmp_path / ".gemini", uuid(1))
    assert keep_all(tmp_path / ".gemini") == 1
    assert keep_all(tmp_path / ".gemini") == 0
    append(path, logs.user("late", "One more"))
    assert keep(path)
    assert kept(path) == [path.read_bytes()]
    assert not keep(path)
    (copy,) = (each for each in other_file_system.rglob("*.jsonl"))
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    assert not any(each.kept for each in store_with_kept(tmp_path / ".gemini").files())
    before = path.read_bytes()
    logs.write(path, [logs.header(uuid(1)), logs.user("other", "Begun anew")])
    assert keep(path)
    assert sorted(kept(path)) == sorted([before, path.read_bytes()])


def test_there_a_plan_is_kept_as_it_was_last(other_file_system: Path, tmp_path: Path) -> None:
    turn_on()
    home = tmp_path / ".gemini"
    session(home, uuid(1))
    plan = logs.write(home / "tmp/proj" / uuid(1) / "plans/plan.md", ["First"])
    keep_all(home)
    plan.write_text("Another")
    assert keep_all(home) == 1
    assert kept(plan) == [b"Another"]


def test_a_full_disk_leaves_what_is_kept_and_says_so(
    other_file_system: Path, tmp_path: Path
) -> None:
    turn_on()
    path = session(tmp_path / ".gemini", uuid(1))
    keep(path)
    before = path.read_bytes()
    append(path, logs.user("long", "x" * 2 * SMALL))
    large = session(tmp_path / ".gemini", uuid(2), [logs.header(uuid(2)), {"x": "x" * 2 * SMALL}])
    small = session(tmp_path / ".gemini", uuid(3))
    with pytest.raises(OSError, match="No space left"):
        keep_all(tmp_path / ".gemini")
    assert path.read_bytes().startswith(kept(path)[0])
    assert kept(path)[0].startswith(before)
    assert kept(large) == []
    shutil.rmtree(other_file_system / "gemtui/vault/copy")
    assert keep(small)
    assert not list(vault_dir().rglob(".new-*"))


def test_a_home_that_may_not_be_written_to_is_said(
    open_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = open_folder / "data"
    data.mkdir(mode=0o555)
    monkeypatch.setenv("XDG_DATA_HOME", str(data))
    with nobody(), pytest.raises(PermissionError):
        turn_on()
    assert not is_on()


def test_what_a_killed_program_left_is_removed_and_is_no_session(store: Path) -> None:
    path = session(store, uuid(1))
    keep(path)
    (name,) = vault_dir().rglob("*.jsonl")
    left = name.with_name(".new-1-1")
    left.write_bytes(b"{")
    assert [each.name for each in store_with_kept(store).files()] == [str(path)]
    keep_all(store)
    assert not left.exists()


def quiet(path: Path) -> Path:
    """Let a file be one that has not changed for a minute."""
    then = path.stat().st_mtime - QUIET - 1
    os.utime(path, (then, then))
    return path


def test_a_quiet_file_survives_what_is_done_to_it_in_its_place(store: Path) -> None:
    path = quiet(session(store, uuid(1)))
    plan = quiet(logs.write(store / "tmp/proj" / uuid(1) / "plans/plan.md", ["First"]))
    keep_all(store)
    before, first = path.read_bytes(), plan.read_bytes()
    assert path.stat().st_nlink == plan.stat().st_nlink == 1
    assert (kept(path), kept(plan)) == ([before], [first])
    assert keep_all(store) == 0
    assert not any(each.kept for each in store_with_kept(store).files())
    for data in (b"", before[:40], b"{}\n" * 1000):
        path.write_bytes(data)
        plan.write_bytes(b"")
        keep_all(store)
        assert before in kept(path)
        assert first in kept(plan)
        for each in (path, plan):
            quiet(each)
        keep_all(store)
        assert before in kept(path)
        assert first in kept(plan)
    assert len(kept(path)) == 2


def test_a_damaged_object_is_kept_once_it_is_quiet_and_replaces_nothing(store: Path) -> None:
    path = legacy(store, uuid(1), [logs.user("u", "Hello")], key="proj")
    whole = path.read_bytes()
    path.write_bytes(whole[:50])
    assert not keep(path)
    assert keep(quiet(path))
    assert kept(path) == [whole[:50]]
    path.write_bytes(whole)
    assert keep(path)
    assert whole in kept(path)
    path.write_bytes(whole[:50])
    assert not keep(quiet(path))
    assert whole in kept(path)


def test_what_was_long_kept_does_not_depend_on_a_new_file_that_goes_on_from_it(store: Path) -> None:
    path = quiet(session(store, uuid(1)))
    keep(path)
    before = path.read_bytes()
    path.unlink()
    path.write_bytes(before)
    append(path, logs.user("late", "One more"))
    keep_all(store)
    went_on = path.read_bytes()
    path.write_bytes(b"")
    keep_all(store)
    assert went_on in kept(path)
    path.write_bytes(before)
    append(path, logs.user("late", "Another"))
    quiet(path)
    keep_all(store)
    assert sorted(kept(path)) == sorted([path.read_bytes(), went_on])


def test_what_has_just_changed_is_kept_whatever_happens_to_its_file(store: Path) -> None:
    emptied, gone = session(store, uuid(1)), session(store, uuid(2))
    data = {path: path.read_bytes() for path in (emptied, gone)}
    keep_all(store)
    emptied.write_bytes(b"")
    gone.unlink()
    files = [each for each in store_with_kept(store).files() if each.kept]
    assert sorted(each.path.read_bytes() for each in files) == sorted(data.values())
    assert contents().kept == 2
    keep_all(store)
    assert data[emptied] in kept(emptied)
    assert kept(gone) == [data[gone]]


def test_what_is_kept_stays_until_its_successor_has_a_name(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = session(store, uuid(1))
    keep(path)
    before = path.read_bytes()
    path.write_bytes(b"{}\n")

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(OSError, match="No space"):
        keep(path)
    assert before in kept(path)


def test_a_temporary_file_of_the_hook_is_removed_only_when_it_is_old(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = session(store, uuid(1))
    keep(path)
    (name,) = vault_dir().rglob("*.jsonl")
    left = name.with_name(".hook-1")
    left.write_bytes(b"{")
    keep_all(store)
    assert left.exists()
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 7200)
    keep_all(store)
    assert not left.exists()


def test_links_of_an_earlier_version_become_copies_and_nothing_counts_twice(store: Path) -> None:
    live, grown, gone, moved, spare, other = (session(store, uuid(n)) for n in range(1, 7))
    keep_all(store)
    for path in (live, grown, gone, moved, spare, other):
        linked(path)
    for path in (gone, moved):  # these had a link only
        in_tree(vault_dir() / COPIES, path).unlink()
    append(grown, logs.user("late", "One more"))
    append(spare, logs.user("late", "One more"))
    logs.write(other.with_suffix(".new"), talk(uuid(6), "Another")).replace(other)
    data = {path: path.read_bytes() for path in (live, grown, gone, moved, spare)}
    gone.unlink()
    spare.unlink()
    moved.rename(moved.with_name("elsewhere"))
    assert (contents().files, contents().kept) == (6, 4)
    keep_all(store)
    for path, before in data.items():
        assert kept(path) == [before]
    assert len(kept(other)) == 2
    assert not [path for path in vault_dir().rglob("*.jsonl") if path.stat().st_nlink > 1]
    assert (contents().files, contents().kept, contents().shared) == (7, 4, 0), "one has two states"
    assert keep_all(store) == 0


@pytest.mark.parametrize("seed", range(8))
def test_what_a_check_has_seen_survives_any_history(store: Path, seed: int) -> None:
    numbers = random.Random(seed)
    path = session(store, uuid(1))
    seen: set[bytes] = set()

    def overwrite() -> None:
        with path.open("r+b") as file:
            file.write(b"overwritten")

    def replace() -> None:
        path.unlink(missing_ok=True)
        session(store, uuid(1), talk(uuid(1), f"Begun {numbers.random()}"))

    def check() -> None:
        keep_all(store)
        if path.exists() and path.stat().st_size:
            seen.add(path.read_bytes())

    always: list[Callable[[], object]] = [
        check,
        check,
        replace,
        lambda: keep_changed([path], store),
    ]
    if_there: list[Callable[[], object]] = [
        lambda: append(path, logs.user("late", f"More {numbers.random()}")),
        lambda: path.write_bytes(b""),
        overwrite,
        path.unlink,
        lambda: quiet(path),
    ]
    for _ in range(60):
        numbers.choice(always + if_there if path.exists() else always)()
        there = [*kept(path), path.read_bytes() if path.exists() else b""]
        assert all(any(each.startswith(data) for each in there) for data in seen)
