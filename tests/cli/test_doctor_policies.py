"""What `gemtui doctor` says of policies: the engine's version, and files that do not hold."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.cli.conftest import Gemtui, has, put
from tests.cli.shapes import fits
from tests.fake_cli import FakeCli

GOOD = '[[rule]]\ntoolName = "glob"\ndecision = "deny"\npriority = 100\n'
TYPO = GOOD + "frob = 1\n"

pytestmark = pytest.mark.usefixtures("home")


@pytest.mark.parametrize(
    ("version", "words", "same"),
    [
        ("0.61.0", "was checked against Gemini CLI 0.61.0, the installed version", True),
        ("0.62.1", "0.61.0, but 0.62.1 is installed, which may decide", False),
    ],
)
def test_the_engine_s_version_beside_the_installed_one(
    fake_cli: FakeCli, gemtui: Gemtui, version: str, words: str, same: bool
) -> None:
    cli = fake_cli()
    cli.write_text(cli.read_text().replace("0.61.0", version))
    gemtui.ok("doctor").shows(words)
    found = gemtui.json("doctor")
    fits(found, "Doctor")
    assert found["policies"]["engine"] == "0.61.0"
    assert found["policies"]["engine_is_installed"] is same


@pytest.mark.usefixtures("no_cli")
def test_without_a_cli_nothing_is_compared(gemtui: Gemtui) -> None:
    found = gemtui.json("doctor")["policies"]
    has(found, engine_is_installed=None, places=[])


def test_broken_files_are_counted_with_the_way_to_see_them(
    home: Path, fake_cli: FakeCli, gemtui: Gemtui
) -> None:
    fake_cli()
    users, ours = home / ".gemini/policies", Path(os.environ["XDG_CONFIG_HOME"], "gemtui/policies")
    for folder in (users, ours):
        folder.mkdir(parents=True)
        (folder / "good.toml").write_text(GOOD)
        (folder / "typo.toml").write_text(TYPO)
    (users / "bad.toml").write_text("[[rules]]\n")
    answer = gemtui("doctor")
    assert answer.code == 1
    answer.shows(
        f"broken    {users}: 1 error, Gemini CLI ignores the affected rules",
        f"{ours} (ours): 2 files, 0 errors, ",
        f"to see the findings: gemtui policy check {users}",
    )
    found = gemtui.json("doctor")
    fits(found, "Doctor")
    (of_ours, of_users) = found["policies"]["places"]
    has(of_ours, ours=True, files=2, errors=0)
    has(of_users, ours=False, files=3, errors=1)
    assert of_users["warnings"] >= 1
    assert of_users["check"] == f"gemtui policy check {users}"
    (users / "bad.toml").unlink()
    gemtui.ok("doctor")


def test_policies_of_the_folder_s_own_settings_count_if_it_is_trusted(
    fake_cli: FakeCli, gemtui: Gemtui, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    fake_cli()
    project = tmp_path / "project"
    (project / ".gemini").mkdir(parents=True)
    (project / "its.toml").write_text(GOOD)
    settings = {"policyPaths": [str(project / "its.toml")]}
    (project / ".gemini/settings.json").write_text(json.dumps(settings))
    monkeypatch.chdir(project)
    assert gemtui.json("doctor")["policies"]["places"] == []
    monkeypatch.setenv("GEMINI_CLI_TRUST_WORKSPACE", "true")
    (place,) = gemtui.json("doctor")["policies"]["places"]
    assert place["path"] == str(project / "its.toml")


def test_settings_that_name_what_no_file_can_be_called_stop_nothing(
    home: Path, fake_cli: FakeCli, gemtui: Gemtui
) -> None:
    fake_cli()
    settings = home / ".gemini/settings.json"
    put(settings, json.dumps({"policyPaths": [f"/{'x' * 300}", "a\0b"]}))
    assert gemtui.json("doctor")["policies"]["places"] == []
    gemtui.ok("policy list")
    gemtui.ok("policy explain --tool glob --args {}")
