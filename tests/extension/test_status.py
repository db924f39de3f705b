"""Whether the hooks would run, told from files."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from gemtui.extension.content import write
from gemtui.extension.status import HookState, extension_state
from gemtui.paths import extension_dir

pytestmark = pytest.mark.covers("gemtui/agent")


@pytest.fixture
def gemini(home: Path) -> Path:
    """The CLI's folder, with the extension as its own command links it."""
    write()
    link(home / ".gemini", extension_dir())
    return home / ".gemini"


def link(gemini: Path, source: Path) -> None:
    entry = gemini / "extensions/gemtui"
    entry.mkdir(parents=True, exist_ok=True)
    put(entry / ".gemini-extension-install.json", {"source": str(source), "type": "link"})


def put(path: Path, value: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value))


def state() -> HookState:
    found = extension_state()
    assert (found.problem is None) == (found.state is HookState.READY)
    return found.state


def test_missing(home: Path) -> None:
    assert state() is HookState.MISSING
    assert not extension_state().installed


def test_ready(gemini: Path) -> None:
    assert state() is HookState.READY
    assert extension_state().source == extension_dir()


def test_files_of_another_version(gemini: Path) -> None:
    (extension_dir() / "ask.py").write_text("")
    assert state() is HookState.OLDER


def test_a_folder_that_is_gone(gemini: Path) -> None:
    shutil.rmtree(extension_dir())
    assert state() is HookState.GONE
    assert str(extension_dir()) in str(extension_state().problem)


def test_our_folder_elsewhere(gemini: Path, tmp_path: Path) -> None:
    """The data folder was moved, and what the CLI refers to is there no more."""
    link(gemini, tmp_path / "old/gemtui/extension")
    assert state() is HookState.GONE


@pytest.mark.parametrize("linked", [True, False])
def test_an_extension_of_somebody_else(gemini: Path, tmp_path: Path, linked: bool) -> None:
    theirs = {"name": "gemtui", "version": "1"}
    if linked:
        put(tmp_path / "theirs/gemini-extension.json", theirs)
        link(gemini, tmp_path / "theirs")
    else:
        (gemini / "extensions/gemtui/.gemini-extension-install.json").unlink()
        put(gemini / "extensions/gemtui/gemini-extension.json", theirs)
    assert state() is HookState.FOREIGN
    assert not extension_state().installed


@pytest.mark.parametrize(
    ("rules", "enabled"),
    [
        ([], True),
        (["!{here}/"], False),
        (["!{here}/*"], False),
        (["!{parent}/*"], False),
        (["!{parent}/"], True),
        (["!/*", "{parent}/*"], True),
        (["{parent}/*", "!/*"], False),
        (["!{here}x/*"], True),
        ([7, None], True),
        ("!/*", True),
    ],
)
def test_folders_in_which_it_is_disabled(
    gemini: Path, tmp_path: Path, rules: Any, enabled: bool
) -> None:
    here = tmp_path / "a (b) [c]"
    here.mkdir()
    if isinstance(rules, list):
        rules = [
            each.format(here=here, parent=tmp_path) if isinstance(each, str) else each
            for each in rules
        ]
    put(gemini / "extensions/extension-enablement.json", {"gemtui": {"overrides": rules}})
    expected = HookState.READY if enabled else HookState.DISABLED
    assert extension_state(cwd=here).state is expected


@pytest.mark.parametrize(
    "settings",
    [
        {"hooksConfig": {"enabled": False}},
        {"hooksConfig": {"disabled": ["x", "gemtui"]}},
        {"security": {"allowedExtensions": ["^/opt/", "("]}},
    ],
)
@pytest.mark.parametrize("of_project", [True, False])
def test_hooks_that_settings_switch_off(
    gemini: Path, tmp_path: Path, settings: Any, of_project: bool
) -> None:
    place = (tmp_path / ".gemini" if of_project else gemini) / "settings.json"
    put(place, settings)
    trusted = {**os.environ, "GEMINI_CLI_TRUST_WORKSPACE": "true"}
    in_run = extension_state(os.environ, tmp_path, for_run=True)
    for found in (extension_state(trusted, tmp_path), in_run):
        assert found.state is HookState.HOOKS_OFF
        assert str(place) in str(found.problem)
    unknown = extension_state(cwd=tmp_path).state
    assert unknown is (HookState.READY if of_project else HookState.HOOKS_OFF)


def test_a_pattern_that_would_never_end_allows_nothing(gemini: Path) -> None:
    put(gemini / "settings.json", {"security": {"allowedExtensions": ["^(.|.)*$(?!)"]}})
    assert state() is HookState.HOOKS_OFF


def test_the_project_has_the_last_word(gemini: Path, tmp_path: Path) -> None:
    put(gemini / "settings.json", {"hooksConfig": {"enabled": False}})
    put(tmp_path / ".gemini/settings.json", {"hooksConfig": {"enabled": True, "disabled": []}})
    put(gemini / "settings.json", {"security": {"allowedExtensions": [str(extension_dir())]}})
    assert extension_state(cwd=tmp_path, for_run=True).state is HookState.READY


@pytest.mark.parametrize("value", [None, [], 7, {"hooksConfig": 7, "security": [1]}])
def test_odd_files_raise_nothing(gemini: Path, value: Any) -> None:
    for name in ("settings.json", "extensions/extension-enablement.json"):
        put(gemini / name, value)
    assert state() is HookState.READY
    put(gemini / "extensions/gemtui/.gemini-extension-install.json", value)
    assert state() is HookState.FOREIGN
