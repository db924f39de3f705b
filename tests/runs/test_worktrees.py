"""Worktrees for runs, with real git: made, applied and removed."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from gemtui.agent import trust
from gemtui.agent.options import AgentOptions
from gemtui.calls.later_files import why_runs_later
from gemtui.checkpoints.store import folder_of
from gemtui.errors import OptionError, WorktreeError, WorktreeNotFound
from gemtui.paths import checkpoints_dir, config_file, worktrees_dir
from gemtui.runs.undo.checkpointing import prune_checkpoints
from gemtui.runs.undo.undo import redo_project
from gemtui.runs.worktrees import (
    apply_worktree,
    enter_worktree,
    losses_of,
    make_worktree,
    remove_worktree,
    worktree_changes,
)
from gemtui.sessions.store.projects import repository_of
from gemtui.worktree_records import Worktree, find_worktree, list_worktrees, origin_of, worktree_of
from tests.checkpoints.projects import files_of, put
from tests.checkpoints.test_repositories import git, repository, submodules

TEN = "".join(f"{number}\n" for number in range(10))


@pytest.fixture
def top(tmp_path: Path) -> Path:
    """A repository with a commit."""
    return repository(tmp_path / "project", ten=TEN, other="other\n", gone="gone\n")


def told(top: Path, *words: str) -> str:
    return subprocess.run(["git", *words], cwd=top, check=True, capture_output=True).stdout.decode()


def made(top: Path, prompt: str = "Do it") -> Worktree:
    return make_worktree(top, prompt)[0]


def test_a_worktree_has_the_commit_on_its_own_branch(top: Path) -> None:
    put(top, b"ten", b"not committed")
    put(top, b"new", b"untracked")
    before = files_of(top)
    worktree, notes = make_worktree(top / "d", "Fix the ../../parser\x1b[2J; now")
    assert worktree.name.startswith("fix-the-parser-2j-no-")
    assert worktree.folder == worktree.tree / "d"
    assert worktree.tree.is_relative_to(worktrees_dir())
    assert (worktree.tree / "ten").read_text() == TEN
    assert not (worktree.tree / "new").exists()
    assert notes == (f"2 uncommitted files of {top} are not in the worktree",)
    assert files_of(top) == before
    assert told(worktree.tree, "status", "--short", "-b") == f"## {worktree.branch}\n"
    assert (
        worktree_of(worktree.folder) == worktree == find_worktree("fix-the") == list_worktrees()[0]
    )
    assert worktree_changes(worktree) == ()


def test_no_program_of_the_repository_runs(top: Path, tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\necho $0 $@ >> {mark}\ncat\n")
    program.chmod(0o755)
    put(top, b".gitattributes", b"*.bin filter=evil diff=evil\nother text eol=crlf\n")
    put(top, b"a.bin", b"as git stores it\n")
    git(top, "add", ".")
    git(top, "commit", "-qm", "Attributes")
    for name in ("post-checkout", "reference-transaction", "post-index-change", "pre-commit"):
        put(top, f".git/hooks/{name}".encode(), program.read_bytes())
        (top / ".git/hooks" / name).chmod(0o755)
    for key in (
        "filter.evil.smudge",
        "filter.evil.clean",
        "filter.evil.process",
        "core.fsmonitor",
        "diff.external",
        "core.sshCommand",
        "core.pager",
    ):
        git(top, "config", key, str(program))
    mark.unlink(missing_ok=True)
    put(top, b"a.bin", b"changed\n")
    worktree, notes = make_worktree(top, "Hostile")
    assert (worktree.tree / "a.bin").read_text() == "as git stores it\n"
    assert (worktree.tree / "other").read_bytes() == b"other\r\n"
    assert any("git filters (evil) were not run" in each for each in notes)
    put(worktree.tree, b"a.bin", b"by the run\n")
    assert [each.name for each in worktree_changes(worktree)] == ["a.bin"]
    assert losses_of(worktree).files == ("a.bin",)
    assert apply_worktree(worktree, dry_run=True).kept
    remove_worktree(worktree)
    assert not mark.exists(), mark.read_text()


def moved_tree(top: Path) -> None:
    git(top, "config", "core.worktree", str(top.parent))


def no_commit(top: Path) -> None:
    git(top, "update-ref", "-d", "HEAD")


def no_repository(top: Path) -> None:
    (top / ".git").rename(top.parent / "away")


def missing_object(top: Path) -> None:
    id = told(top, "rev-parse", "HEAD:ten").strip()
    (top / ".git/objects" / id[:2] / id[2:]).unlink()


@pytest.mark.parametrize("break_it", [moved_tree, no_commit, no_repository, missing_object])
def test_nothing_is_left_where_none_can_be_made(
    top: Path, break_it: Callable[[Path], None]
) -> None:
    break_it(top)
    with pytest.raises(WorktreeError):
        make_worktree(top, "Do it")
    assert list_worktrees() == ()
    assert not list(worktrees_dir().glob("*"))
    if break_it is not no_repository:
        assert "gemtui/" not in told(top, "for-each-ref")
        assert not list((top / ".git").glob("worktrees/*"))


def test_edits_of_the_person_survive_what_is_applied(top: Path) -> None:
    worktree = made(top)
    tree = worktree.tree
    put(tree, b"ten", TEN.replace("9", "nine").encode())
    put(tree, b"tracked", b"theirs\n")
    put(tree, b"new/file", b"new\n")
    put(tree, b"script", b"#!/bin/sh\n")
    (tree / "script").chmod(0o755)
    (tree / "other").chmod(0o755)
    (tree / "gone").unlink()
    (tree / "d/tracked").unlink()
    (tree / "link").symlink_to("ten")
    put(top, b"ten", TEN.replace("0", "mine").encode())
    put(top, b"tracked", b"mine\n")
    put(top, b"d/tracked", b"mine\n")
    (top / "gone").chmod(0o664)
    before = files_of(top)
    planned = apply_worktree(worktree, dry_run=True)
    assert files_of(top) == before
    done = apply_worktree(worktree)
    assert planned.steps == done.steps
    found = done.to_dict()
    assert found["merged"] == ["ten"]
    assert found["removed"] == ["gone"]
    assert found["written"] == ["link", "new/file", "other", "script"]
    assert {each["path"]: each["why"] for each in found["kept"]} == {
        "tracked": "the same lines were edited in the repository",
        "d/tracked": "edited in the repository",
    }
    assert (top / "ten").read_text() == TEN.replace("0", "mine").replace("9", "nine")
    assert (top / "tracked").read_text() == (top / "d/tracked").read_text() == "mine\n"
    assert os.access(top / "script", os.X_OK)
    assert os.access(top / "other", os.X_OK)
    assert losses_of(find_worktree(worktree.name)).files == ("d/tracked", "tracked")
    redo_project(top)
    assert files_of(top) == before


def test_only_named_files_are_applied(top: Path) -> None:
    worktree = made(top)
    put(worktree.tree, b"ten", b"theirs\n")
    put(worktree.tree, b"other", b"theirs\n")
    apply_worktree(worktree, ["ten"])
    assert (top / "ten").read_text() == "theirs\n"
    assert (top / "other").read_text() == "other\n"
    assert losses_of(find_worktree("latest")).files == ("other",)
    with pytest.raises(WorktreeError, match="gone has no changes"):
        apply_worktree(worktree, ["gone"])


def test_commits_of_a_removed_worktree_stay_on_its_branch(top: Path) -> None:
    plain, committed = made(top, "Plain"), made(top, "Committed")
    put(committed.tree, b"ten", b"theirs\n")
    git(committed.tree, "commit", "-qam", "By the run")
    assert losses_of(committed) == (("ten",), 1)
    assert remove_worktree(plain) == (False, ())
    assert remove_worktree(committed).branch_left
    assert told(top, "branch", "--format", "%(refname:short)", "--list", "gemtui/*").split() == [
        committed.branch
    ]
    assert list(worktrees_dir().glob("*/*")) == list(worktrees_dir().glob("*/worktree.json"))
    assert repository_of(str(plain.folder)) == str(origin_of(plain.folder)) == str(top)
    assert told(top, "worktree", "list", "--porcelain").count("worktree ") == 1
    with pytest.raises(WorktreeNotFound):
        find_worktree("latest")


def test_a_worktree_whose_record_was_half_written_by_a_killed_program_is_removed(top: Path) -> None:
    worktree = made(top)
    place = worktrees_dir() / worktree.name
    (place / ".worktree.json.abcd1234").write_text("half")
    remove_worktree(worktree)
    assert [each.name for each in place.iterdir()] == ["worktree.json"]
    assert list_worktrees() == ()


def test_what_is_left_of_a_worktree_without_a_record_is_removed_by_the_next(top: Path) -> None:
    killed = worktrees_dir() / "killed-1234"
    killed.mkdir(parents=True)
    (killed / ".worktree.json.abcd1234.gemtui").write_text("half")
    (worktrees_dir() / "being-made-1234").mkdir()
    worktree = made(top)
    assert {each.name for each in worktrees_dir().iterdir()} == {worktree.name, "being-made-1234"}


def test_settings_that_are_not_committed_hold_in_a_worktree(top: Path) -> None:
    put(top, b".gemini/settings.json", b'{"committed": true}')
    put(top, b".gemini/agents/gone.md", b"gone")
    git(top, "add", ".")
    git(top, "commit", "-qm", "Settings")
    put(top, b".gemini/settings.json", b'{"committed": false}')
    put(top, b".gemini/tmp/large", b"no setting")
    put(top, b"d/.env", b"A=b\n")
    (top / ".gemini/agents/gone.md").unlink()
    worktree = make_worktree(top / "d", "Settings")[0]
    assert files_of(worktree.tree / ".gemini") == {
        b"settings.json": ("file", 0o644, b'{"committed": false}')
    }
    assert (worktree.tree / "d/.env").read_text() == "A=b\n"
    assert worktree_changes(worktree) == ()


@pytest.mark.parametrize("trusted", [True, False])
def test_a_worktree_is_trusted_only_if_its_repository_is(top: Path, trusted: bool) -> None:
    if trusted:
        trust.remember(top)
    entered = enter_worktree("Do it", AgentOptions(cwd=top, worktree=True))
    assert entered is not None
    assert entered.is_new
    assert entered.options.trust == trusted
    assert (trust.trust_of(entered.worktree.folder) is trust.FolderTrust.GEMTUI) == trusted
    assert any("trusted" in each for each in entered.notes) == trusted
    again = enter_worktree("More", replace(entered.options, worktree=True, resume="a"))
    assert again is not None
    assert (again.worktree, again.is_new) == (entered.worktree, False)
    remove_worktree(entered.worktree)
    assert trust.trust_of(entered.worktree.folder) is trust.FolderTrust.NOBODY
    with pytest.raises(OptionError, match="a session can be continued only in its own folder"):
        enter_worktree("More", AgentOptions(cwd=top, worktree=True, resume="a"))


def test_checkpoints_of_a_worktree_are_not_pruned(top: Path) -> None:
    config_file().parent.mkdir(parents=True, exist_ok=True)
    config_file().write_text("checkpoint_bytes = 1\n")
    worktree = made(top)
    apply_worktree(worktree, dry_run=True)
    prune_checkpoints()
    assert folder_of(checkpoints_dir(), worktree.tree).is_dir()
    assert not folder_of(checkpoints_dir(), top).is_dir()
    put(worktree.tree, b"ten", b"theirs\n")
    assert worktree_changes(worktree)[0].old == TEN


def test_files_of_a_worktree_are_ordinary_to_its_runs(top: Path) -> None:
    worktree = made(top)
    assert why_runs_later(worktree.tree / "ten", worktree.tree) is None
    assert why_runs_later(worktree.tree / "justfile", worktree.tree)
    assert why_runs_later(worktree.tree.parent / "worktree.json", worktree.tree)
    assert why_runs_later(worktree.tree / "ten", top)


def test_submodules_are_said_to_be_empty(tmp_path: Path) -> None:
    submodules(tmp_path / "project")
    git(tmp_path / "project", "commit", "-qm", "Submodule")
    assert "its git submodules are empty" in make_worktree(tmp_path / "project", "Do it")[1]
