"""Which entries of a folder are policies, to the CLI and so to everything that lists them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gemtui.agent.command import errors_in_user_policies
from gemtui.commands.doctor import look_at_policies
from gemtui.policy.check.check_policy import check_files
from gemtui.policy.edit import store
from gemtui.policy.file.policy import Policy
from gemtui.policy.file.policy_files import (
    is_empty_folder,
    policies_dir,
    policy_entries,
    policy_files,
)

RULE = '[[rule]]\ntoolName = "glob"\ndecision = "deny"\npriority = 100\n'


def odd_folder(folder: Path) -> Path:
    """A folder in which the CLI reads two policies, and passes over others."""
    folder.mkdir(parents=True)
    for name in ("b.toml", "B.toml", "UP.TOML", "notes.txt"):
        (folder / name).write_text(RULE)
    (folder / "link.toml").symlink_to("b.toml")
    (folder / "gone.toml").symlink_to("nothing")
    (folder / "sub.toml").mkdir()
    (folder / "sub.toml/inner.toml").write_text(RULE)
    os.mkfifo(folder / "pipe.toml")
    return folder


def test_the_entries_say_why_the_cli_skips_them(tmp_path: Path) -> None:
    found = policy_entries(odd_folder(tmp_path / "p"))
    assert [(each.path.name, each.skipped) for each in found] == [
        ("B.toml", None),
        ("UP.TOML", "case"),
        ("b.toml", None),
        ("gone.toml", "link"),
        ("link.toml", "link"),
        ("pipe.toml", "other"),
        ("sub.toml", "folder"),
    ]


def test_all_that_list_policies_name_the_files_that_the_cli_reads(
    home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    users = odd_folder(home / ".gemini/policies")
    read = [users / "B.toml", users / "b.toml"]
    assert policy_files(users) == read
    assert [each.path for each in store.list_policies()] == read
    assert [rule.source for rule in Policy.load(users).rules] == list(map(str, read))
    (place,) = look_at_policies(os.environ, None).values["places"]
    assert place["files"] == 2
    passed_over = {Path(each.file).name for each in check_files([users]) if "skips" in each.message}
    assert passed_over == {"UP.TOML", "gone.toml", "link.toml"}
    (settings,) = (
        each for each in store.list_policies([users / "link.toml"]) if each.name == "link"
    )
    assert settings.path == users / "link.toml"  # named by itself, the CLI reads it


def test_a_named_policy_may_be_a_link_and_not_a_folder(own_places: None) -> None:
    ours = odd_folder(policies_dir())
    listed = [each.path.name for each in store.list_policies()]
    assert listed == ["B.toml", "b.toml", "link.toml"]
    (place,) = look_at_policies(os.environ, None).values["places"]
    assert (place["path"], place["files"]) == (str(ours), 3)


def test_a_folder_of_nothing_but_what_is_skipped_is_not_empty(tmp_path: Path) -> None:
    folder = tmp_path / "p"
    folder.mkdir()
    (folder / "notes.txt").write_text(RULE)
    assert is_empty_folder(folder)
    assert list(errors_in_user_policies([folder])) == []
    (folder / "sub.toml").mkdir()
    assert not is_empty_folder(folder)
    assert len(list(errors_in_user_policies([folder]))) == 1
    assert not is_empty_folder(tmp_path / "nothing")
