"""Which folders Gemini CLI is working in, and what the person said."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from gemtui.agent.trust import (
    FolderTrust,
    TrustState,
    folder_settings,
    forget,
    remember,
    trust_of,
    trusted_folders,
)
from gemtui.errors import OptionError
from tests.rows import table

TABLES = table("agent/trust.json")


@pytest.fixture
def environ(home: Path) -> dict[str, str]:
    return {"GEMINI_CLI_HOME": str(home)}


def must_ask(folder: Path, environ: dict[str, str]) -> bool:
    return trust_of(folder, environ) is FolderTrust.NOBODY


def remembered(folder: Path) -> bool:
    return trust_of(folder) is FolderTrust.GEMTUI


def trusted(place: Path) -> Path:
    place.mkdir()
    remember(place)
    return place


def rules(home: Path, **levels: str) -> None:
    named = {str(home.parent / name): level for name, level in levels.items()}
    (home / ".gemini/trustedFolders.json").write_text(json.dumps(named))


@pytest.mark.parametrize(("levels", "asks"), TABLES["the clis own list counts"])
def test_the_clis_own_list_counts(
    home: Path, environ: dict[str, str], levels: dict[str, str], asks: bool
) -> None:
    rules(home, **levels)
    place = home.parent / "a/project"
    place.mkdir(parents=True)
    (home.parent / "link").symlink_to("a")
    assert must_ask(place, environ) is asks


def test_switched_off_by_settings_or_environment(home: Path, environ: dict[str, str]) -> None:
    assert must_ask(home, environ)
    assert not must_ask(home, {**environ, "GEMINI_CLI_TRUST_WORKSPACE": "true"})
    (home / ".gemini/settings.json").write_text(
        '{"security": {"folderTrust": {"enabled": false}}} // mine'
    )
    assert not must_ask(home, environ)


@pytest.mark.parametrize(
    ("variables", "by_nobody", "by_gemtui", "by_cli"), TABLES["the environment has the last word"]
)
def test_the_environment_has_the_last_word(
    home: Path, environ: dict[str, str], variables: str, by_nobody: str, by_gemtui: str, by_cli: str
) -> None:
    said = {**environ, **dict(each.split("=") for each in variables.split())}
    place = home.parent / "a"
    place.mkdir()
    found = [trust_of(place, said)]
    remember(place)
    found.append(trust_of(place, said))
    rules(home, a="TRUST_FOLDER")
    found.append(trust_of(place, said))
    assert found == [by_nobody, by_gemtui, by_cli]


def test_a_projects_settings_count_if_it_is_trusted_or_a_run_needs_it(
    home: Path, environ: dict[str, str]
) -> None:
    project = home.parent / "p"
    (project / ".gemini").mkdir(parents=True)
    (project / ".gemini/settings.json").write_text('{"model": {"name": "its"}}')
    (home / ".gemini/settings.json").write_text('{"model": {"name": "mine"}, "a": ["one"]}')

    def model(**more: bool) -> str:
        return str(folder_settings(project, environ, **more).get("model", "name"))

    assert (model(), model(for_run=True)) == ("mine", "its")
    environ["GEMINI_RESTRICTED_MODE"] = "true"
    assert (model(), model(for_run=True)) == ("mine", "mine")
    del environ["GEMINI_RESTRICTED_MODE"]
    remember(project)
    assert model() == "its"
    rules(home, p="DO_NOT_TRUST")
    assert model() == "mine"
    rules(home, p="TRUST_FOLDER")
    assert model() == "its"
    assert folder_settings(None, environ).get("model", "name") == "mine"


def test_the_home_folder_is_no_project_by_whatever_path(
    home: Path, environ: dict[str, str]
) -> None:
    (home / ".gemini/settings.json").write_text('{"hooks": {"BeforeTool": [{}]}}')
    (home.parent / "link").symlink_to(home)
    for path in (home, home.parent / "link"):
        found = folder_settings(path, environ, for_run=True)
        assert len(found.files) == 1


def test_a_machine_may_switch_the_question_off_and_a_project_may_not(
    home: Path, environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gemtui.agent.settings.settings_unread", lambda *_, **__: None)
    off = '{"security": {"folderTrust": {"enabled": false}}}'
    project = home.parent / "p"
    (project / ".gemini").mkdir(parents=True)
    (project / ".gemini/settings.json").write_text(off)
    assert must_ask(project, environ)
    system = home.parent / "system.json"
    system.write_text(off)
    assert not must_ask(project, {**environ, "GEMINI_CLI_SYSTEM_SETTINGS_PATH": str(system)})


def test_what_the_person_said_is_remembered(tmp_path: Path) -> None:
    assert not remembered(tmp_path)
    remember(tmp_path)
    assert remembered(tmp_path)
    assert remembered(tmp_path / "x/..")
    assert not remembered(tmp_path / "x")


def test_what_was_said_can_be_taken_back(tmp_path: Path) -> None:
    places = [tmp_path / name for name in ("a", "b")]
    for place in places:
        place.mkdir()
        remember(place)
        remember(place)
    assert [each.path for each in trusted_folders()] == list(map(str, places))
    assert forget(places[0] / "../a")
    assert (remembered(places[0]), remembered(places[1])) == (False, True)
    assert not forget(places[0])


def test_a_folder_that_is_gone_can_be_forgotten(tmp_path: Path) -> None:
    place = trusted(tmp_path / "a")
    place.rmdir()
    assert [each.place for each in trusted_folders()] == [TrustState.GONE]
    assert not remembered(place)
    assert forget(place)
    assert trusted_folders() == ()


def test_a_folder_in_the_place_of_a_trusted_one_is_not_trusted(tmp_path: Path) -> None:
    place = trusted(tmp_path / "a")
    place.rename(tmp_path / "moved")
    place.mkdir()
    assert not remembered(place)
    assert not remembered(tmp_path / "moved")
    assert [each.place for each in trusted_folders()] == [TrustState.REPLACED]
    remember(place)
    assert remembered(place)
    assert [each.place for each in trusted_folders()] == [TrustState.SAME]


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives a folder to somebody else")
def test_a_folder_of_somebody_else_is_not_the_one_that_was_trusted(tmp_path: Path) -> None:
    place = trusted(tmp_path / "a")
    os.chown(place, 12345, -1)
    assert not remembered(place)


def test_a_link_is_trusted_for_where_it_leads(tmp_path: Path) -> None:
    for name in ("good", "evil"):
        (tmp_path / name).mkdir()
    link = tmp_path / "link"
    link.symlink_to("good")
    remember(link)
    assert remembered(tmp_path / "good")
    link.unlink()
    link.symlink_to("evil")
    assert not remembered(link)
    (tmp_path / "good").rename(tmp_path / "away")
    (tmp_path / "good").symlink_to("evil")
    assert not remembered(tmp_path / "good")


def test_what_the_person_told_the_cli_since_counts_more(home: Path, tmp_path: Path) -> None:
    place = trusted(home.parent / "a")
    assert remembered(place)
    rules(home, a="DO_NOT_TRUST")
    assert not remembered(place)


@pytest.mark.parametrize(
    "content", ["{", "{}", "null", '[{"path": 1}, {"path": "/x", "inode": "1"}, 7, null, ["/x"]]']
)
def test_a_broken_list_trusts_nothing(tmp_path: Path, content: str) -> None:
    remember(tmp_path)
    (stored,) = Path(os.environ["XDG_STATE_HOME"]).glob("*/trusted.json")
    stored.write_text(content)
    assert not remembered(tmp_path)
    assert trusted_folders() == ()


def test_an_odd_list_of_the_cli_is_passed_over(home: Path, environ: dict[str, str]) -> None:
    (home / ".gemini/trustedFolders.json").write_text('{"/": [], "/x": 3}')
    assert must_ask(home, environ)


def test_a_link_to_itself_in_the_place_of_a_trusted_folder_is_another_one(tmp_path: Path) -> None:
    place = trusted(tmp_path / "a")
    place.rmdir()
    place.symlink_to(place)
    assert [each.place for each in trusted_folders()] == [TrustState.REPLACED]


def test_a_folder_that_is_not_utf8_is_not_remembered(own_places: None, tmp_path: Path) -> None:
    folder = tmp_path / "b\udcff"
    folder.mkdir()
    with pytest.raises(OptionError, match=r"b\\udcff' is not valid UTF-8: rename it"):
        remember(folder)
    assert trusted_folders() == ()
