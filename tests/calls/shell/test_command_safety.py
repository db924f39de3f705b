"""Commands are judged as by the CLI: the expected values are those of its own functions."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gemtui.calls.shell.command_safety import CommandSafety, judge
from tests.rows import each_row, table

TABLES = table("calls/command_safety.json")
SAFE, PLAIN = CommandSafety.SAFE, CommandSafety.PLAIN
DANGEROUS, OUTSIDE = CommandSafety.DANGEROUS, CommandSafety.OUTSIDE


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A run's folder with a file, links out of it and into it, and files named like options."""
    outside = tmp_path / "outside"
    outside.mkdir()
    workspace = tmp_path / "work"
    (workspace / "sub").mkdir(parents=True)
    for name in ("a.txt", "-x", "sub/b.txt"):
        (workspace / name).touch()
    (workspace / "out").symlink_to(outside)
    (workspace / "-y").symlink_to(outside)
    (workspace / "in").symlink_to("sub")
    (workspace / "loop").symlink_to("loop")
    return workspace


JUDGED = {judgement: TABLES[judgement.value] for judgement in (SAFE, PLAIN, DANGEROUS)}


@each_row("command", TABLES["safe_as_a_whole"])
def test_a_command_of_several_parts_is_judged_as_a_whole(command: str, workspace: Path) -> None:
    """The engine asks for these all the same: it looks at their parts afterwards."""
    assert judge(command, workspace=workspace) is SAFE


@each_row("judgement, commands", JUDGED.items())
def test_a_command_is_judged_as_by_the_cli(
    judgement: CommandSafety, commands: list[str], workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(workspace.parent))
    assert {command: judge(command, workspace=workspace) for command in commands} == dict.fromkeys(
        commands, judgement
    )


def test_a_home_within_the_workspace_is_no_way_out(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(workspace / "sub"))
    assert judge("cat ~/b.txt", workspace=workspace) is SAFE
    assert judge("cd", workspace=workspace) is SAFE


def test_full_paths_within_the_workspace_are_safe(workspace: Path) -> None:
    assert judge(f"cat {workspace}/a.txt", workspace=workspace) is SAFE
    assert judge(f"cat {workspace}x/a.txt", workspace=workspace) is PLAIN


@each_row("dir_path, judgement", TABLES["the_folder_of_a_command_counts"])
def test_the_folder_of_a_command_counts(
    dir_path: str | None, judgement: CommandSafety, workspace: Path
) -> None:
    assert judge("ls", workspace=workspace, dir_path=dir_path) == judgement


def test_paths_are_seen_from_the_folder_of_the_command(workspace: Path) -> None:
    assert judge("cat ../a.txt", workspace=workspace, dir_path="sub") is SAFE
    assert judge("cat ../../a.txt", workspace=workspace, dir_path="sub") is PLAIN


def test_outside_counts_before_danger(workspace: Path) -> None:
    assert judge("rm -rf q", workspace=workspace, dir_path="/tmp") is OUTSIDE


def test_a_workspace_may_be_a_link(workspace: Path) -> None:
    link = workspace.parent / "link"
    link.symlink_to(workspace)
    assert judge("ls sub", workspace=link) is SAFE
    assert judge(f"ls {link}/sub", workspace=link) is PLAIN
    assert judge(f"ls {workspace}/sub", workspace=link) is SAFE


@each_row("command, judgement", TABLES["without_a_workspace_the_words_alone_count"])
def test_without_a_workspace_the_words_alone_count(command: str, judgement: CommandSafety) -> None:
    assert judge(command) == judgement
    assert judge("ls", dir_path="sub") is SAFE
    assert judge("ls", dir_path="..") is OUTSIDE


@given(
    st.lists(
        st.sampled_from(
            [command.split(" ")[0] for commands in JUDGED.values() for command in commands]
        )
        | st.sampled_from(
            ("-f", "/etc", "..", "'", '"', "$x", "a\0b", "\ud800", "x" * 5000, "/" * 5000)
        )
        | st.text(max_size=5),
        max_size=6,
    ).map(" ".join),
    st.none() | st.text(max_size=8),
)
def test_no_command_is_too_odd(command: str, dir_path: str | None) -> None:
    assert judge(command, dir_path=dir_path) in CommandSafety
    assert judge(command, workspace=Path("/"), dir_path=dir_path) in CommandSafety


def test_a_long_command_is_judged_at_once(workspace: Path) -> None:
    assert judge("ls " + "a/" * 500_000, workspace=workspace) is SAFE
    assert judge("ls " + "../" * 300_000, workspace=workspace) is PLAIN
    assert judge("ls" + " a" * 100_000, workspace=workspace) is SAFE
