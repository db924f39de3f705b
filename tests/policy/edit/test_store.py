from __future__ import annotations

import os
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from gemtui.errors import PolicyChanged, PolicyError, PolicyNotFound
from gemtui.paths import gemini_home
from gemtui.policy.edit import store
from gemtui.policy.edit.document import Document
from gemtui.policy.edit.store import OpenedPolicy, Origin
from gemtui.policy.file.policy_files import find_policy, policies_dir
from gemtui.policy.model.rules import Decision, Rule
from tests.rows import each_row, table

TABLES = table("policy/store.json")

RULE = Rule(tools=("glob",), decision=Decision.DENY, priority=1)
TEXT = '# mine\n[[rule]]\ntoolName = "glob"\ndecision = "deny"\npriority = 1\n'


@pytest.fixture
def users(own_places: None) -> Path:
    """The CLI's own folder of policies."""
    folder = gemini_home() / "policies"
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def opened(users: Path) -> OpenedPolicy:
    """A policy of the user, opened."""
    path = users / "u.toml"
    path.write_text(TEXT)
    return store.open_policy(path)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


# --- which there are -----------------------------------------------------------------------------


def test_all_policies_are_listed_with_whose_they_are(users: Path, tmp_path: Path) -> None:
    for name in ("b", "a", "10", "9"):
        store.create(name, TEXT)
    (users / "u.toml").write_text(TEXT)
    (users / "no.txt").write_text(TEXT)
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder/f.toml").write_text(TEXT)
    (tmp_path / "one.toml").write_text(TEXT)
    (tmp_path / "admin.toml").write_text(TEXT)
    found = store.list_policies(
        [tmp_path / "folder", tmp_path / "one.toml", tmp_path / "gone"], [tmp_path / "admin.toml"]
    )
    assert [(each.name, each.origin, each.read_only) for each in found] == [
        ("10", Origin.OURS, ""),
        ("9", Origin.OURS, ""),
        ("a", Origin.OURS, ""),
        ("b", Origin.OURS, ""),
        ("u", Origin.USER, ""),
        ("f", Origin.SETTINGS, ""),
        ("one", Origin.SETTINGS, ""),
        ("gone", Origin.SETTINGS, "it does not exist"),
        ("admin", Origin.ADMIN, "it belongs to the administrator"),
    ]
    assert [each.path for each in found][4] == users / "u.toml"


def test_no_folder_and_no_settings_is_an_empty_list(own_places: None) -> None:
    assert store.list_policies() == ()


def test_a_file_that_the_settings_name_again_is_listed_once(users: Path) -> None:
    (users / "u.toml").write_text(TEXT)
    (found,) = store.list_policies([users])
    assert found.origin is Origin.USER


def test_a_policy_is_found_by_name_or_path(own_places: None, tmp_path: Path) -> None:
    ours = store.create("work", TEXT).file.path
    other = tmp_path / "work"
    other.write_text("")
    assert find_policy("work") == ours
    assert find_policy("work.toml") == ours
    assert find_policy(str(other)) == other
    assert find_policy(str(tmp_path), folders=True) == tmp_path
    with pytest.raises(PolicyNotFound, match=r"no policy frob.*check the name"):
        find_policy("frob")
    with pytest.raises(PolicyNotFound):
        find_policy(str(tmp_path))


# --- reading and writing -------------------------------------------------------------------------


@each_row("text", [TEXT, TEXT.replace("\n", "\r\n"), "", "a = \n", "\ufeff" + TEXT])
def test_what_is_not_changed_is_saved_byte_by_byte(users: Path, text: str) -> None:
    path = users / "u.toml"
    path.write_bytes(text.encode())
    opened = store.open_policy(path)
    assert (opened.file.origin, opened.document.text) == (Origin.USER, text)
    store.save_policy(opened, opened.document)
    assert path.read_bytes() == text.encode()
    assert list(users.iterdir()) == [path]  # and nothing was backed up


def test_a_change_is_saved_with_a_backup_and_the_mode_of_the_file(
    users: Path, opened: OpenedPolicy
) -> None:
    path = opened.file.path
    path.chmod(0o640)
    saved = store.save_policy(opened, opened.document.add(RULE))
    backup = users / "u.toml.bak"
    assert path.read_text() == saved.document.text == TEXT + "\n" + TEXT[7:]
    assert backup.read_text() == TEXT
    assert (mode(path), mode(backup)) == (0o640, 0o640)
    again = store.save_policy(saved, saved.document.remove(0))
    assert path.read_text() == again.document.text
    assert backup.read_text() == saved.document.text
    assert sorted(each.name for each in users.iterdir()) == ["u.toml", "u.toml.bak"]


def test_ours_needs_no_backup(own_places: None) -> None:
    opened = store.create("work", TEXT)
    store.save_policy(opened, opened.document.add(RULE))
    assert [each.name for each in policies_dir().iterdir()] == ["work.toml"]


def test_a_file_that_was_changed_meanwhile_is_not_overwritten(
    users: Path, opened: OpenedPolicy
) -> None:
    path = opened.file.path
    path.write_text("# theirs\n")
    changed = opened.document.add(RULE)
    with pytest.raises(PolicyChanged, match="has changed on disk: reload it"):
        store.save_policy(opened, changed)
    assert path.read_text() == "# theirs\n"
    store.save_policy(opened, changed, force=True)
    assert path.read_text() == changed.text
    assert (users / "u.toml.bak").read_text() == "# theirs\n"


def test_a_file_that_is_gone_is_not_made_again_unasked(opened: OpenedPolicy) -> None:
    path = opened.file.path
    path.unlink()
    with pytest.raises(PolicyChanged, match="no longer exists"):
        store.save_policy(opened, opened.document)
    store.save_policy(opened, opened.document, force=True)
    assert path.read_text() == TEXT


def test_a_symbolic_link_stays_one_and_another_target_is_a_change(
    users: Path, tmp_path: Path
) -> None:
    target, other = tmp_path / "dotfiles.toml", tmp_path / "other.toml"
    for each in (target, other):
        each.write_text(TEXT)
    path = users / "u.toml"
    path.symlink_to(target)
    opened = store.open_policy(path)
    saved = store.save_policy(opened, opened.document.add(RULE))
    assert path.is_symlink()
    assert target.read_text() == saved.document.text
    target.write_text(TEXT)
    path.unlink()
    path.symlink_to(other)
    with pytest.raises(PolicyChanged):
        store.save_policy(opened, opened.document.add(RULE))
    assert other.read_text() == TEXT


def test_a_backup_goes_through_no_symbolic_link(
    users: Path, opened: OpenedPolicy, tmp_path: Path
) -> None:
    precious = tmp_path / "precious"
    precious.write_text("precious")
    (users / "u.toml.bak").symlink_to(precious)
    store.save_policy(opened, opened.document.add(RULE))
    assert precious.read_text() == "precious"
    assert (users / "u.toml.bak").read_text() == TEXT


def test_a_read_only_file_says_so(users: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = users / "u.toml"
    path.write_text(TEXT)
    monkeypatch.setattr(os, "access", lambda *_: False)  # whoever runs the tests may be root
    opened = store.open_policy(path)
    assert opened.file.read_only == "you don't have permission to write to it"
    with pytest.raises(PolicyError, match="can't be saved: you don't have permission"):
        store.save_policy(opened, opened.document.add(RULE))
    assert path.read_text() == TEXT


def test_the_administrators_policies_are_not_saved(tmp_path: Path) -> None:
    path = tmp_path / "admin.toml"
    path.write_text(TEXT)
    (listed,) = store.list_policies(admin=[path])
    opened = store.open_policy(listed)
    with pytest.raises(PolicyError, match="administrator"):
        store.save_policy(opened, opened.document.add(RULE), force=True)


def test_half_a_character_is_not_written(own_places: None) -> None:
    opened = store.create("work", TEXT)
    with pytest.raises(PolicyError, match="lone surrogate"):
        store.save_policy(opened, Document.parse("# \ud800\n"))
    assert opened.file.path.read_text() == TEXT


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda path: None, PolicyNotFound, "there is no policy file"),
        (lambda path: path.mkdir(), PolicyError, "is not a file"),
        (lambda path: os.mkfifo(path), PolicyError, "is not a file"),
        (lambda path: path.write_bytes(b"\n\xff"), PolicyError, r"not valid UTF-8 \(line 2\)"),
        (lambda path: os.truncate(_touched(path), 2**23), PolicyError, "larger than 4 MiB"),
    ],
)
def test_what_cant_be_opened_says_why(
    tmp_path: Path, make: object, error: type[PolicyError], message: str
) -> None:
    path = tmp_path / "x.toml"
    assert callable(make)
    make(path)
    with pytest.raises(error, match=message) as caught:
        store.open_policy(path)
    assert caught.value.path == path


def _touched(path: Path) -> Path:
    path.touch()
    return path


# --- ours ----------------------------------------------------------------------------------------


def test_a_new_policy_is_for_its_user_alone(own_places: None) -> None:
    opened = store.create("work", TEXT)
    path = opened.file.path
    assert path == policies_dir() / "work.toml"
    assert (opened.file.name, opened.file.origin) == ("work", Origin.OURS)
    assert (mode(path), mode(path.parent)) == (0o600, 0o700)
    assert path.read_text() == opened.document.text == TEXT
    assert store.create("other.toml").file.name == "other"


@each_row(
    "name, message",
    [*TABLES["a_name_that_is_none_is_refused_with_one_that_fits"], ("x" * 300, "use x")],
)
def test_a_name_that_is_none_is_refused_with_one_that_fits(name: str, message: str) -> None:
    with pytest.raises(PolicyError, match=message):
        store.create(name, TEXT)


def test_a_name_that_is_taken_is_refused_whatever_has_it(own_places: None, tmp_path: Path) -> None:
    path = store.create("work", TEXT).file.path
    with pytest.raises(PolicyError, match="a policy named work already"):
        store.create("work")
    (path.parent / "link.toml").symlink_to(tmp_path / "surprise")
    with pytest.raises(PolicyError, match="already"):
        store.create("link")
    with pytest.raises(PolicyError, match="already"):
        store.rename_policy(path, "link")
    assert path.read_text() == TEXT
    assert not (tmp_path / "surprise").exists()


def test_a_link_never_takes_the_place_of_the_file_behind_it(own_places: None) -> None:
    path = store.create("work", TEXT).file.path
    link = path.with_name("link.toml")
    link.symlink_to(path)
    for one, name in ((link, "work"), (path, "link")):
        with pytest.raises(PolicyError, match="already"):
            store.rename_policy(one, name)
    assert path.read_text() == TEXT
    assert link.is_symlink()


def test_one_of_ours_is_renamed_and_deleted(own_places: None) -> None:
    path = store.create("work", TEXT).file.path
    moved = store.rename_policy(path, "play")
    assert moved == path.with_name("play.toml")
    assert (moved.read_text(), path.exists()) == (TEXT, False)
    assert store.rename_policy(moved, "play") == moved
    store.delete_policy(moved)
    assert store.list_policies() == ()
    for change in (store.delete_policy, lambda gone: store.rename_policy(gone, "x")):
        with pytest.raises(PolicyNotFound):
            change(moved)


def test_what_is_not_ours_is_neither_renamed_nor_deleted(users: Path) -> None:
    path = users / "u.toml"
    path.write_text(TEXT)
    with pytest.raises(PolicyError, match="not one of gemtui's own policies"):
        store.delete_policy(path)
    with pytest.raises(PolicyError, match="not one of gemtui's own policies"):
        store.rename_policy(path, "x")
    assert path.read_text() == TEXT


def test_a_full_disk_leaves_the_old_file(
    opened: OpenedPolicy, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = opened.file.path

    def full(file: Path, pieces: object, *, durable: bool) -> None:
        assert durable
        raise OSError(28, "No space left on device", str(file))

    monkeypatch.setattr(store, "write_whole", full)
    with pytest.raises(OSError, match="No space left"):
        store.save_policy(opened, opened.document.replace(0, replace(RULE, priority=2)))
    assert path.read_text() == TEXT


def test_a_pipe_in_the_place_of_the_backup_keeps_the_file_and_nobody_waits(
    users: Path, opened: OpenedPolicy
) -> None:
    path = opened.file.path
    os.mkfifo(users / "u.toml.bak")
    with pytest.raises(OSError, match="not a regular file") as caught:
        store.save_policy(opened, opened.document.replace(0, replace(RULE, priority=2)))
    assert caught.value.filename == str(users / "u.toml.bak")
    assert path.read_text() == TEXT
