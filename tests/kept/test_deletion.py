"""Deleting: that session's files, and nothing else, into the trash."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import send2trash  # type: ignore[import-untyped]

from gemtui.errors import DeletionFailed
from gemtui.kept.deletion import Deletion, Trash, delete_planned, plan_deletion, restore_trashed
from gemtui.sessions.catalog.index import Index
from gemtui.sessions.catalog.summary import Summary
from tests.rows import table
from tests.sessions import logs
from tests.sessions.stores import MAIN, append, legacy, session, talk, uuid

ID = uuid(1)

_REPLACED = "its original folder was deleted or replaced"
_UNKNOWN = "the system did not say where in the trash it is"


pytestmark = pytest.mark.usefixtures("trash")


@pytest.fixture
def no_trash(trash: Path) -> Iterator[None]:
    """A place where the trash would be, and can't be."""
    trash.parent.mkdir(parents=True)
    trash.write_text("in the way")
    yield
    assert trash.read_text() == "in the way"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / ".gemini"


def find(home: Path, wanted: str = ID) -> Summary:
    return Index(home, cache=None).find(wanted)


def tree(home: Path) -> set[str]:
    """Every file and link in a store."""
    found = (path for path in home.rglob("*") if path.is_symlink() or not path.is_dir())
    return {str(path.relative_to(home)) for path in found}


def paths(deletion: Deletion) -> list[Path]:
    return [item.path for item in deletion.items]


def planned(deletion: Deletion, home: Path) -> list[str]:
    return [str(path.relative_to(home / "tmp")) for path in paths(deletion)]


def with_everything(home: Path) -> None:
    """A session with all that the CLI keeps for one, beside another session."""
    project = home / "tmp/proj"
    session(home, uuid(2))
    session(home, ID)
    logs.write(project / "chats" / ID / "agent-1.jsonl", talk("agent-1"))
    for name in (
        f"tool-outputs/session-{ID}/run_1.txt",
        f"tool-outputs/session-{uuid(2)}/run_2.txt",
        f"{ID}/plans/big.md",
        f"{ID}/tracker/a/b.json",
        f"{uuid(2)}/plans/other.md",
        "logs.json",
        "memory/notes.md",
        ".project_root",
    ):
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text("text")


def test_all_that_belongs_to_a_session_goes_and_the_rest_stays(home: Path, trash: Path) -> None:
    with_everything(home)
    before = tree(home)
    deletion = plan_deletion(find(home), home)
    assert planned(deletion, home) == [
        f"proj/chats/{ID}",
        f"proj/tool-outputs/session-{ID}",
        f"proj/{ID}",
        f"proj/chats/session-2026-11-20T23-04-{ID[:8]}.jsonl",
    ]
    sizes = {item.path: item.size for item in deletion.items}
    assert sizes[home / "tmp/proj" / ID] == 8
    assert [item.files for item in deletion.items] == [1, 1, 2, 1]
    assert deletion.size == sum(sizes.values())
    assert tree(home) == before
    outcome = delete_planned(deletion)
    assert outcome.trashed
    assert str(outcome) == "4 paths moved to the trash"
    assert before - tree(home) == {path for path in before if ID[:8] in path}
    assert len(list((trash / "files").iterdir())) == 4


def test_the_recorded_subagent_plan_and_output_go_with_their_sessions(home: Path) -> None:
    shutil.copytree(MAIN, home)
    expected = {"379b10d4": 2, "2096d467": 2, "0a9a25b3": 2, "27523a93": 2, "c0ffee00": 1}
    for id, count in expected.items():
        before = tree(home)
        delete_planned(plan_deletion(find(home, id), home))
        gone = before - tree(home)
        assert len(gone) == count
        assert all(id in path for path in gone)


def test_copies_go_as_well_unless_they_shall_stay(home: Path) -> None:
    new = session(home, ID, talk(ID, seconds=9))
    old = legacy(home, ID, talk(ID)[1:-1], key="0" * 64)
    (home / "tmp/proj" / ID).mkdir()
    chosen = plan_deletion(find(home), home, copies=False)
    assert paths(chosen) == [home / "tmp/proj" / ID, new]
    assert paths(plan_deletion(find(home), home))[-2:] == [old, new]
    delete_planned(chosen)
    assert find(home).path == old


def test_what_a_copy_in_the_same_project_needs_stays_with_it(home: Path) -> None:
    new = session(home, ID, talk(ID, seconds=9))
    legacy(home, ID, talk(ID)[1:-1], key="proj")
    (home / "tmp/proj" / ID).mkdir()
    assert paths(plan_deletion(find(home), home, copies=False)) == [new]


def test_another_session_with_the_same_eight_characters_stays(home: Path) -> None:
    other = ID[:8] + "-ffff-4000-8000-000000000000"
    mine = session(home, ID)
    theirs = session(home, other, minute="2026-11-20T23-05")
    (home / f"tmp/proj/tool-outputs/session-{other}").mkdir(parents=True)
    before = tree(home)
    delete_planned(plan_deletion(find(home), home))
    assert before - tree(home) == {str(mine.relative_to(home))}
    assert theirs.exists()


def test_a_subagent_and_a_checkpoint_go_alone(home: Path) -> None:
    with_everything(home)
    checkpoint = home / "tmp/proj/checkpoint-x.json"
    checkpoint.write_text('{\n"history": [{"role": "user", "parts": [{"text": "Hello"}]}]\n}')
    assert planned(plan_deletion(find(home, "agent-1"), home), home) == [
        f"proj/chats/{ID}/agent-1.jsonl"
    ]
    assert planned(plan_deletion(find(home, "checkpoint-x"), home), home) == [
        "proj/checkpoint-x.json"
    ]


# --- what a hostile store asks for ---------------------------------------------------------------


@pytest.mark.parametrize("id", table("kept/deletion.json"))
def test_an_id_in_a_header_opens_no_other_folder(id: str, home: Path) -> None:
    with_everything(home)
    path = home / "tmp/proj/chats/session-2026-11-20T23-04-evil.jsonl"
    logs.write(path, [logs.header(id), logs.user("u", "Hello")])
    deletion = plan_deletion(find(home, str(path)), home)
    assert paths(deletion) == [path]


@pytest.mark.parametrize("id", ["chats", "Chats", "MEMORY", "tool-outputs", "Tasks"])
def test_a_name_that_agrees_opens_no_common_folder(id: str, home: Path) -> None:
    with_everything(home)
    path = session(home, id, [logs.header(id), logs.user("u", "Hello")])
    (home / "tmp/proj" / id).mkdir(exist_ok=True)
    assert paths(plan_deletion(find(home, str(path)), home)) == [path]


@pytest.mark.parametrize(
    "id",
    ["logs.json", "checkpoint-x.json", f"session-2026-11-20T23-04-{ID[:8]}.jsonl", "notes.jsonl"],
)
def test_an_id_that_is_the_name_of_a_file_takes_no_file(id: str, home: Path) -> None:
    with_everything(home)
    project = home / "tmp/proj"
    (project / "checkpoint-x.json").write_text("{}")
    (project / "chats/notes.jsonl").write_text("{}")
    path = session(home, id, [logs.header(id), logs.user("u", "Hello")], minute="2026-11-20T23-09")
    assert paths(plan_deletion(find(home, str(path)), home)) == [path]


def test_links_are_not_followed(home: Path, tmp_path: Path) -> None:
    with_everything(home)
    outside = tmp_path / "outside"
    (outside / f"session-{ID}").mkdir(parents=True)
    (outside / "precious.txt").write_text("keep")
    (outside / f"session-{ID}/precious.txt").write_text("keep")
    project = home / "tmp/proj"
    shutil.rmtree(project / "tool-outputs")
    (project / "tool-outputs").symlink_to(outside)
    shutil.rmtree(project / "chats" / ID)
    (project / "chats" / ID).symlink_to(outside)
    (project / ID / "plans/link.md").symlink_to(outside / "precious.txt")
    (project / ID / "plans/folder").symlink_to(outside)
    deletion = plan_deletion(find(home), home)
    assert planned(deletion, home)[:-1] == [f"proj/{ID}"]
    assert deletion.items[0].files == 4
    delete_planned(deletion)
    assert tree(outside) == {"precious.txt", f"session-{ID}/precious.txt"}


def test_nothing_outside_the_store_is_deleted(home: Path, tmp_path: Path) -> None:
    path = logs.write(tmp_path / "tmp/proj/chats/session-mine.jsonl", talk(ID))
    (home / "tmp").mkdir(parents=True)
    with pytest.raises(DeletionFailed, match="anywhere else"):
        plan_deletion(find(home, str(path)), home)
    (home / "tmp/linked").symlink_to(tmp_path / "tmp/proj")
    with pytest.raises(DeletionFailed, match="anywhere else"):
        plan_deletion(find(home), home)
    assert path.exists()


# --- when it does not go well --------------------------------------------------------------------


def test_a_session_that_grew_meanwhile_stays(home: Path) -> None:
    with_everything(home)
    deletion = plan_deletion(find(home), home)
    append(deletion.session.path, logs.user("n", "I am here"))
    before = tree(home)
    with pytest.raises(DeletionFailed, match="in use") as caught:
        delete_planned(deletion)
    assert [path for path, _ in caught.value.left] == [deletion.session.path]
    assert tree(home) == before


def test_a_folder_that_grew_meanwhile_stays(home: Path) -> None:
    with_everything(home)
    deletion = plan_deletion(find(home), home)
    (home / "tmp/proj" / ID / "tracker/a/new.json").write_text("{}")
    before = tree(home)
    with pytest.raises(DeletionFailed, match="in use"):
        delete_planned(deletion)
    assert tree(home) == before


def test_what_has_come_meanwhile_stays_with_the_rest(home: Path) -> None:
    session(home, ID)
    deletion = plan_deletion(find(home), home)
    (home / f"tmp/proj/tool-outputs/session-{ID}").mkdir(parents=True)
    before = tree(home)
    with pytest.raises(DeletionFailed, match="in use"):
        delete_planned(deletion)
    assert tree(home) == before


def test_each_file_is_looked_at_again_when_its_turn_comes(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import send2trash

    with_everything(home)
    deletion = plan_deletion(find(home), home)
    last, real = deletion.items[-1].path, send2trash.send2trash

    def while_others_go(path: Path) -> None:
        real(path)
        with last.open("a") as log:
            log.write("{}\n")

    monkeypatch.setattr(send2trash, "send2trash", while_others_go)
    with pytest.raises(DeletionFailed, match="has just changed") as caught:
        delete_planned(deletion)
    assert [path for path, _ in caught.value.left] == [last]
    assert last.exists()


def test_a_plan_is_carried_out_once(home: Path) -> None:
    session(home, ID)
    deletion = plan_deletion(find(home), home)
    delete_planned(deletion)
    with pytest.raises(DeletionFailed):
        delete_planned(deletion)


def test_without_a_trash_it_asks_first(no_trash: None, home: Path) -> None:
    with_everything(home)
    deletion = plan_deletion(find(home), home)
    before = tree(home)
    with pytest.raises(DeletionFailed, match="moved to the trash") as caught:
        delete_planned(deletion)
    assert len(caught.value.left) == 4
    assert tree(home) == before
    outcome = delete_planned(deletion, permanent=True)
    assert str(outcome) == "4 paths deleted permanently"
    assert before - tree(home) == {path for path in before if ID[:8] in path}


def test_what_could_not_be_deleted_is_named_and_the_rest_is_gone(
    no_trash: None, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_everything(home)
    deletion = plan_deletion(find(home), home)
    stuck = home / "tmp/proj" / ID
    remove = shutil.rmtree

    def refuse(path: Path) -> None:
        if path == stuck:
            raise PermissionError(13, "Permission denied", str(path))
        remove(path)

    monkeypatch.setattr("gemtui.kept.deletion.shutil.rmtree", refuse)
    with pytest.raises(DeletionFailed, match="1 of 4 could not be deleted") as caught:
        delete_planned(deletion, permanent=True)
    assert caught.value.left == ((stuck, "Permission denied"),)
    assert (stuck / "plans/big.md").exists()
    assert not deletion.session.path.exists()


# --- bringing back -------------------------------------------------------------------------------


def facts(home: Path) -> dict[str, tuple[bytes, int, int]]:
    """Content, time and number of every file in a store."""
    paths = {name: home / name for name in tree(home)}
    return {
        name: (path.read_bytes(), path.stat().st_mtime_ns, path.stat().st_ino)
        for name, path in paths.items()
    }


def deleted(home: Path, wanted: str = ID) -> Trash:
    trash = Trash()
    delete_planned(plan_deletion(find(home, wanted), home), trash=trash)
    return trash


def test_what_was_deleted_comes_back_as_it_was_and_leaves_the_trash(
    home: Path, trash: Path
) -> None:
    with_everything(home)
    before = facts(home)
    gone = deleted(home)
    assert gone.is_known
    assert facts(home) != before
    assert restore_trashed(gone, home) == ()
    assert facts(home) == before
    assert list((trash / "files").iterdir()) == list((trash / "info").iterdir()) == []
    assert not gone.is_known


def test_of_two_with_one_name_in_the_trash_the_right_one_comes_back(home: Path) -> None:
    session(home, ID)
    path = find(home).path
    first = deleted(home)
    path.write_bytes(content := b'{"sessionId": "%s"}\n' % ID.encode())
    second = deleted(home)
    assert restore_trashed(second, home) == ()
    assert path.read_bytes() == content
    [(item, why)] = restore_trashed(first, home)
    assert "another file is now in its place" in why
    assert path.read_bytes() == content
    assert item.place is not None
    assert len(item.place.read_bytes()) > len(content)
    path.unlink()
    assert restore_trashed(first, home) == ()
    assert path.stat().st_size > len(content)


def test_a_folder_is_not_put_over_another_one(home: Path) -> None:
    with_everything(home)
    gone = deleted(home)
    newer = home / "tmp/proj" / ID / "plans/big.md"
    newer.parent.mkdir(parents=True)
    newer.write_text("newer")
    [(item, _)] = restore_trashed(gone, home)
    assert item.path == home / "tmp/proj" / ID
    assert newer.read_text() == "newer"
    assert find(home).path.exists()


def test_an_emptied_trash_gives_nothing_back_and_says_so(home: Path, trash: Path) -> None:
    session(home, ID)
    gone = deleted(home)
    shutil.rmtree(trash)
    assert [why for _, why in restore_trashed(gone, home)] == ["it is no longer in the trash"]
    assert tree(home) == set()


def test_a_folder_that_went_too_is_made_again_but_not_through_a_link(
    home: Path, tmp_path: Path
) -> None:
    session(home, ID)
    path = find(home).path
    gone = deleted(home)
    shutil.rmtree(home / "tmp")
    (home / "tmp").mkdir()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (home / "tmp/proj").symlink_to(elsewhere)
    assert [why for _, why in restore_trashed(gone, home)] == [_REPLACED]
    assert list(elsewhere.iterdir()) == []
    (home / "tmp/proj").unlink()
    assert restore_trashed(gone, home) == ()
    assert path.exists()


def test_what_went_before_something_failed_comes_back(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_everything(home)
    before, real = facts(home), send2trash.send2trash

    def full(path: Path) -> None:
        if path.suffix == ".jsonl":
            raise OSError("the trash is full")
        real(path)

    monkeypatch.setattr("send2trash.send2trash", full)
    gone = Trash()
    with pytest.raises(DeletionFailed):
        delete_planned(plan_deletion(find(home), home), trash=gone)
    assert len(gone.items) == 3
    assert restore_trashed(gone, home) == ()
    assert facts(home) == before


def test_a_trash_that_copies_tells_no_place(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def copy(path: Path) -> None:
        shutil.copy2(path, home / "copy")
        path.unlink()

    monkeypatch.setattr("send2trash.send2trash", copy)
    session(home, ID)
    gone = deleted(home)
    assert not gone.is_known
    assert [why for _, why in restore_trashed(gone, home)] == [_UNKNOWN]


def test_without_hard_links_it_comes_back_too(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*_: object, **__: object) -> None:
        raise PermissionError

    session(home, ID)
    before, gone = facts(home), deleted(home)
    monkeypatch.setattr("os.link", none)
    assert restore_trashed(gone, home) == ()
    assert facts(home) == before
