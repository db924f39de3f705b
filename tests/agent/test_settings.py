"""Settings for one run: who reads them, and what is done where nobody does."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from gemtui.agent.command import Command, Machine, command_of
from gemtui.agent.detect import Capabilities
from gemtui.agent.options import AgentOptions
from gemtui.agent.run_folder import LARGEST_PROMPT
from gemtui.agent.settings import SETTINGS_VARIABLE, CliSettings, settings_unread, system_settings
from gemtui.errors import OptionError
from gemtui.policy.model.rules import ApprovalMode
from tests.rows import table

ROOT = os.geteuid() == 0
FOLDER = Path("/runs/r1")
DEEP = '{"x": ' * 1000 + "0" + "}" * 1000


def write(place: Path, text: str) -> None:
    """Write the settings of a home or a project."""
    (place / ".gemini").mkdir(parents=True)
    (place / ".gemini/settings.json").write_text(text)


def user_policies(environ: dict[str, str], cwd: Path) -> tuple[Path, ...]:
    return CliSettings.read(environ, cwd).user_policies(cwd)


def machine(unread: str | None = None) -> Machine:
    return Machine(
        cli=Path("/bin/gemini"),
        capabilities=Capabilities(
            flags=frozenset({"approval-mode", "output-format", "policy", "resume", "session-id"}),
            output_formats=("stream-json",),
            approval_modes=("default", "yolo"),
        ),
        environ={},
        settings_unread=unread,
    )


def made(options: AgentOptions, unread: str | None = None) -> Command:
    return command_of("x", options, machine(unread), folder=FOLDER, session_id="s2")


def test_older_clis_read_settings_wherever_they_are(tmp_path: Path) -> None:
    assert settings_unread(tmp_path / "settings.json", version="0.59.0") is None


@pytest.mark.skipif(not ROOT, reason="only root can own a settings file that is read")
def test_a_place_that_others_may_write_in_is_named(tmp_path: Path) -> None:
    open_folder = tmp_path / "open"
    open_folder.mkdir()
    open_folder.chmod(0o777)
    words = settings_unread(open_folder / "run/settings.json", version="0.61.0")
    named = next(place for place in tmp_path.parents if place.stat().st_mode & 0o022)
    assert words in {
        f"users other than root can write to {open_folder}",
        f"users other than root can write to {named}",
    }


@pytest.mark.skipif(not ROOT, reason="only root can own a settings file that is read")
def test_a_place_of_root_s_own_is_read() -> None:
    usr = Path(sys.executable).anchor
    assert settings_unread(Path(usr, "no-such-folder", "settings.json"), version=None) is None


@pytest.mark.skipif(ROOT, reason="this user is root")
def test_settings_of_an_ordinary_user_are_not_read() -> None:
    assert settings_unread(Path("/settings.json"), version=None) is not None


def test_a_file_of_root_s_is_read_for_an_ordinary_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert settings_unread(Path("/etc/passwd"), version="0.61.0") is None
    assert settings_unread(Path("/no-such-settings.json"), version="0.61.0") is not None


def test_settings_of_the_machine_that_anybody_may_write_are_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "machine.json"
    path.write_text('{"policyPaths": ["/srv/p"]}')
    path.chmod(0o666)
    environ = {SETTINGS_VARIABLE: str(path), "GEMINI_CLI_HOME": str(tmp_path)}
    assert system_settings(environ, version="0.61.0") == {}
    assert user_policies(environ, tmp_path) == (tmp_path / ".gemini/policies",)
    assert system_settings(environ, version="0.59.0") == {"policyPaths": ["/srv/p"]}


def test_settings_that_are_not_read_are_left_out_and_named() -> None:
    options = AgentOptions(max_turns=3, resume="s1", approval_mode=ApprovalMode.DEFAULT)
    command = made(options, "why")
    assert (command.files, command.secrets, command.environ) == ({}, (), {})
    assert command.turn_limit == 3
    assert "--approval-mode=default" in command.argv
    turns, clean_up = command.notes
    assert turns == "gemtui itself counts turns and stops the run after 3, because why"
    assert "keeps a copy" in clean_up


def test_a_prompt_that_the_cli_would_cut_is_refused_before_the_run() -> None:
    whole = "é" * (LARGEST_PROMPT // 2)
    command_of(whole, AgentOptions(), machine(), folder=FOLDER, session_id=None)
    with pytest.raises(OptionError, match="larger than 8 MiB"):
        command_of(whole + "x", AgentOptions(), machine(), folder=FOLDER, session_id=None)


def test_settings_that_are_read_need_no_words() -> None:
    options = AgentOptions(max_turns=3, resume="s1", approval_mode=ApprovalMode.DEFAULT)
    command = made(options)
    assert command.environ == {"GEMINI_CLI_SYSTEM_SETTINGS_PATH": "/runs/r1/settings.json"}
    assert (command.turn_limit, command.notes) == (None, ())


def test_the_default_mode_is_named_by_the_settings_and_others_by_a_flag() -> None:
    """Settings of the user's own may have another one."""
    for mode, flags in ((ApprovalMode.DEFAULT, 0), (ApprovalMode.YOLO, 1)):
        options = AgentOptions(approval_mode=mode)
        command = made(options)
        settings = json.loads(command.files["settings.json"])
        assert command.argv.count(f"--approval-mode={mode}") == flags
        assert ("defaultApprovalMode" in settings["general"]) is not bool(flags)


def test_no_turns_at_all_is_a_limit_of_ours() -> None:
    command = made(AgentOptions(max_turns=0))
    assert command.turn_limit == 0


def test_the_machines_defaults_come_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gemtui.agent.settings.settings_unread", lambda *_, **__: None)
    environ = {"GEMINI_CLI_HOME": str(tmp_path), SETTINGS_VARIABLE: str(tmp_path / "system.json")}
    (tmp_path / ".gemini").mkdir()
    for name in ("system.json", "system-defaults.json", ".gemini/settings.json"):
        (tmp_path / name).write_text(json.dumps({"policyPaths": [f"/of/{name}", "/of/all"]}))
    found = user_policies(environ, tmp_path / "project")
    names = ("/of/system-defaults.json", "/of/all", "/of/.gemini/settings.json", "/of/system.json")
    assert [*map(str, found)] == [*names]


@pytest.mark.parametrize(("of_user", "of_project", "mode"), table("agent/settings.json"))
def test_the_usual_mode_is_that_of_the_settings(
    tmp_path: Path, of_user: object, of_project: object, mode: str
) -> None:
    write(tmp_path / "home", json.dumps({"general": of_user}))
    write(tmp_path / "project", json.dumps({"general": of_project}))
    environ = {"GEMINI_CLI_HOME": str(tmp_path / "home")}
    assert CliSettings.read(environ, tmp_path / "project").default_run_mode == mode


def test_variables_in_settings_stand_for_their_values(tmp_path: Path) -> None:
    paths = ["$PLACE/a", "${PLACE}/b", "${NONE:-/srv}/c", "${PLACE:-x}/d", "/$NONE/e", "/$é/${}/f"]
    write(tmp_path, json.dumps({"policyPaths": paths}))
    found = user_policies({"GEMINI_CLI_HOME": str(tmp_path), "PLACE": "/p"}, tmp_path)
    assert [*map(str, found)] == ["/p/a", "/p/b", "/srv/c", "/p/d", "/$NONE/e", "/$é/${}/f"]


def test_policy_paths_of_all_settings_are_taken_together(tmp_path: Path) -> None:
    project = tmp_path / "project"
    mine = '{"policyPaths": ["~/mine", "here", "~nobody-has-this-name/p", 7, "/srv/p"]}'
    theirs = '{"policyPaths": "theirs,too.toml"}'
    write(tmp_path, mine)
    write(project, theirs)
    assert user_policies({"GEMINI_CLI_HOME": str(tmp_path)}, project) == (
        tmp_path / "mine",
        project / "here",
        project / "~nobody-has-this-name/p",
        Path("/srv/p"),
        project / "theirs,too.toml",
    )


@pytest.mark.parametrize(
    "settings",
    ["{}", '{"policyPaths": []}', '{"policyPaths": [""]}', '{"policyPaths": {}}', "[", DEEP],
)
def test_the_user_s_folder_where_settings_name_none(tmp_path: Path, settings: str) -> None:
    write(tmp_path, settings)
    found = user_policies({"GEMINI_CLI_HOME": str(tmp_path)}, tmp_path / "project")
    assert found == (tmp_path / ".gemini/policies",)
