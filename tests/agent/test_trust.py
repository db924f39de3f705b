"""Which folders Gemini CLI works in, and what the person said (contract 4.5)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gemtui.agent.trust import must_ask, remember, remembered


@pytest.fixture
def environ(home: Path) -> dict[str, str]:
    return {"GEMINI_CLI_HOME": str(home)}


def rules(home: Path, **levels: str) -> None:
    named = {str(home.parent / name): level for name, level in levels.items()}
    (home / ".gemini/trustedFolders.json").write_text(json.dumps(named))


def test_an_unknown_folder_is_asked_about(home: Path, environ: dict[str, str]) -> None:
    assert must_ask(home, environ)


@pytest.mark.parametrize(
    ("levels", "asks"),
    [
        ({"a": "TRUST_FOLDER"}, False),
        ({"a": "DO_NOT_TRUST"}, True),
        ({"b": "TRUST_FOLDER"}, True),
        ({"b": "TRUST_PARENT"}, False),
        ({"a/b": "TRUST_FOLDER"}, True),
        ({"a": "SOMETHING_NEW"}, True),
    ],
)
def test_the_clis_own_list_counts(
    home: Path, environ: dict[str, str], levels: dict[str, str], asks: bool
) -> None:
    rules(home, **levels)
    place = home.parent / "a" / "project"
    place.mkdir(parents=True)
    assert must_ask(place, environ) is asks


def test_the_nearest_rule_decides(home: Path, environ: dict[str, str]) -> None:
    place = home.parent / "a" / "inner"
    place.mkdir(parents=True)
    rules(home, **{"a": "TRUST_FOLDER", "a/inner": "DO_NOT_TRUST"})
    assert must_ask(place, environ)


def test_switched_off_by_settings_or_environment(home: Path, environ: dict[str, str]) -> None:
    assert not must_ask(home, {**environ, "GEMINI_CLI_TRUST_WORKSPACE": "true"})
    (home / ".gemini/settings.json").write_text(
        '{"security": {"folderTrust": {"enabled": false}}} // mine'
    )
    assert not must_ask(home, environ)


def test_what_the_person_said_is_remembered(tmp_path: Path) -> None:
    assert not remembered(tmp_path)
    remember(tmp_path)
    assert remembered(tmp_path)
    assert remembered(tmp_path / "x" / "..")
    assert not remembered(tmp_path / "x")
