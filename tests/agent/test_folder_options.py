"""The options that a folder keeps: what comes back, what never does, what a broken file does."""

from __future__ import annotations

import os
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from gemtui.agent.folder_options import (
    forget_options,
    not_rememberable,
    options_for,
    remember_options,
)
from gemtui.agent.options import AgentOptions
from gemtui.paths import state_dir
from gemtui.policy.file.levels import PermissionPolicy
from gemtui.policy.file.policy_files import policies_dir
from gemtui.policy.model.rules import ApprovalMode
from tests.rows import table

pytestmark = pytest.mark.usefixtures("own_places")


def careful(folder: Path) -> AgentOptions:
    return AgentOptions(
        cwd=folder,
        model="pro",
        max_turns=0,
        approval_mode="auto_edit",
        permissions=PermissionPolicy(file_write="allow", shell_execute="deny"),
        only_tools=["read_file", "glob"],
        disallowed_tools=["web_fetch"],
        policies=[policies_dir() / "a.toml"],
        include_directories=[folder.parent],
        sandbox=True,
        timeout=600,
        idle_timeout=1.5,
    )


def files() -> list[Path]:
    return sorted((state_dir() / "run-options").glob("*"))


def test_what_is_remembered_comes_back_for_this_folder_alone(project: Path) -> None:
    assert options_for(project) is None
    remember_options(careful(project))
    assert options_for(project) == careful(project)
    assert options_for(project.parent) is None
    forget_options(project)
    assert options_for(project) is None
    forget_options(project)


def test_nothing_is_what_is_remembered_where_nothing_was_chosen(project: Path) -> None:
    remember_options(AgentOptions(cwd=project))
    assert options_for(project) == AgentOptions(cwd=project)


def test_what_lets_commands_run_unasked_is_never_remembered(project: Path) -> None:
    bold = replace(
        careful(project),
        approval_mode=ApprovalMode.YOLO,
        permissions=PermissionPolicy(shell_execute="allow", network_access="deny"),
        approved_tools=("run_shell_command",),
        trust=True,
        resume="an-id",
        environment={"KEY": "secret"},
    )
    assert [*not_rememberable(bold)] == [
        "yolo",
        "the allowed commands",
        "the allowed tools",
        "trust",
    ]
    assert [*not_rememberable(careful(project))] == []
    remember_options(bold)
    assert options_for(project) == replace(
        careful(project), approval_mode=None, permissions=PermissionPolicy(network_access="deny")
    )
    (path,) = files()
    assert "secret" not in path.read_text()


def test_of_policy_files_only_those_are_remembered_that_no_run_can_write(project: Path) -> None:
    ours, theirs = policies_dir() / "a.toml", project / "a.toml"
    policies_dir().mkdir(parents=True)
    (policies_dir() / "link.toml").symlink_to(theirs)
    options = AgentOptions(cwd=project, policies=[ours, theirs, policies_dir() / "link.toml"])
    assert [*not_rememberable(options)] == ["a policy file from outside gemtui's policy folder"]
    remember_options(options)
    assert options_for(project) == AgentOptions(cwd=project, policies=[ours])


def test_a_file_that_somebody_edited_brings_nothing_dangerous_in(project: Path) -> None:
    remember_options(AgentOptions(cwd=project, model="m"))
    (path,) = files()
    path.write_text(
        '{"folder":"x","model":"m","approval_mode":"yolo","trust":true,"approved_tools":["x"],'
        '"permissions":{"shell_execute":"allow"},"environment":{"A":"b"}}'
    )
    assert options_for(project) == AgentOptions(cwd=project, model="m")


@pytest.mark.parametrize("text", table("agent/folder_options.json"))
def test_a_broken_file_is_named_and_made_anew(project: Path, text: str) -> None:
    remember_options(careful(project))
    (path,) = files()
    path.write_text(text)
    with pytest.raises(OSError, match=r".") as error:
        options_for(project)
    assert error.value.filename == str(path)
    remember_options(careful(project))
    assert options_for(project) == careful(project)


def test_it_is_ours_alone_and_whole(project: Path) -> None:
    remember_options(careful(project))
    remember_options(AgentOptions(cwd=project.parent))
    assert len(files()) == 2
    assert {stat.S_IMODE(path.stat().st_mode) for path in files()} == {0o600}
    assert stat.S_IMODE((state_dir() / "run-options").stat().st_mode) == 0o700
    assert [*project.iterdir()] == []


def test_a_link_to_a_folder_is_that_folder_whatever_its_name(tmp_path: Path) -> None:
    odd = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff\x1b]0;x\x07"))
    odd.mkdir()
    (tmp_path / "link").symlink_to(odd)
    remember_options(AgentOptions(cwd=tmp_path / "link", model="m"))
    assert options_for(odd) == AgentOptions(cwd=odd, model="m")


def test_a_path_that_would_come_back_as_another_one_is_refused(project: Path) -> None:
    lost = Path(os.fsdecode(b"/\xff"))
    with pytest.raises(OSError, match="not valid UTF-8"):
        remember_options(AgentOptions(cwd=project, include_directories=[lost]))
    assert options_for(project) is None
