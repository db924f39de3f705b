"""What keeps a run that asks from starting, each with the way out."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gemtui.agent.options import AgentOptions
from gemtui.errors import GateError
from gemtui.extension.content import NAME, write
from gemtui.paths import extension_dir
from gemtui.runs.gate.checks import check_gate
from tests.rows import table

TABLES = table("runs/gate_checks.json")


@pytest.fixture
def store(home: Path) -> Path:
    """A store with the extension, as the CLI's own command leaves it."""
    write()
    place = home / ".gemini/extensions" / NAME
    place.mkdir(parents=True)
    link = {"source": str(extension_dir()), "type": "link"}
    (place / ".gemini-extension-install.json").write_text(json.dumps(link))
    return home / ".gemini"


def check(store: Path, **more: Any) -> None:
    base: dict[str, Any] = {"cwd": store.parent, "ask": True}
    options = AgentOptions(**(base | more))
    environ = {"GEMINI_CLI_HOME": str(store.parent)}
    check_gate(options, environ, version="0.61.0")


def settings(store: Path, value: Any) -> None:
    (store / "settings.json").write_text(json.dumps(value))


def test_all_is_well(store: Path) -> None:
    check(store)
    check(store, extensions=[NAME, "other"])


@pytest.mark.parametrize(("value", "words"), TABLES["settings that keep hooks away"])
def test_settings_that_keep_hooks_away(store: Path, tmp_path: Path, value: Any, words: str) -> None:
    settings(store, value)
    with pytest.raises(GateError, match=words):
        check(store)
    settings(store, {})
    project = tmp_path / "project/.gemini"
    project.mkdir(parents=True)
    check(store, cwd=project.parent)
    settings(project, value)
    with pytest.raises(GateError, match=words):
        check(store, cwd=project.parent)


@pytest.mark.parametrize(("options", "words"), TABLES["options that keep hooks away"])
def test_options_that_keep_hooks_away(store: Path, options: dict[str, Any], words: str) -> None:
    with pytest.raises(GateError, match=words):
        check(store, **options)


def remove(_: Path) -> None:
    for path in sorted(extension_dir().rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    extension_dir().rmdir()


def change(_: Path) -> None:
    (extension_dir() / "ask.py").write_text("import sys; sys.exit(0)")


def unlink(store: Path) -> None:
    place = store / "extensions" / NAME
    (place / ".gemini-extension-install.json").unlink()
    place.rmdir()


@pytest.mark.parametrize("spoil", [remove, change, unlink])
def test_an_extension_that_installing_mends(store: Path, spoil: Callable[[Path], None]) -> None:
    spoil(store)
    with pytest.raises(GateError, match="gemtui extension install") as caught:
        check(store)
    assert caught.value.install
    assert caught.value.option == "ask"


def test_an_extension_that_is_disabled_here(store: Path) -> None:
    listed = {NAME: {"overrides": [f"!{store.parent}/*"]}}
    (store / "extensions/extension-enablement.json").write_text(json.dumps(listed))
    with pytest.raises(GateError, match="disabled") as caught:
        check(store)
    assert not caught.value.install


@pytest.mark.parametrize("version", [None, "", "0.60.9", "odd"])
def test_a_cli_that_may_know_no_such_hooks(store: Path, version: str | None) -> None:
    options = AgentOptions(cwd=store.parent, ask=True)
    environ = {"GEMINI_CLI_HOME": str(store.parent)}
    with pytest.raises(GateError, match=r"0\.61"):
        check_gate(options, environ, version=version)


@pytest.mark.parametrize("name", TABLES["a variable of an env file that reaches into hooks"])
def test_a_variable_of_an_env_file_that_reaches_into_hooks(
    store: Path, tmp_path: Path, name: str
) -> None:
    project = tmp_path / "above/project"
    project.mkdir(parents=True)
    (project.parent / ".env").write_text(f"ENV=prod\n{name}=./x.sh\n")
    with pytest.raises(GateError, match=f"{name}.*above/.env"):
        check(store, cwd=project)
    (project.parent / ".env").write_text("ENV=prod\n")
    check(store, cwd=project)


def test_a_log_that_the_home_folder_asks_for_is_no_obstacle(store: Path, tmp_path: Path) -> None:
    (store / ".env").write_text("GEMINI_TELEMETRY_OUTFILE=/tmp/log\n")
    check(store, cwd=tmp_path)


def test_telemetry_into_a_file_that_the_project_names_keeps_a_run_from_asking(
    store: Path, tmp_path: Path
) -> None:
    outfile = {"telemetry": {"enabled": True, "outfile": "/tmp/log"}}
    settings(store, outfile)
    (tmp_path / ".gemini").mkdir()
    check(store, cwd=tmp_path)
    settings(tmp_path / ".gemini", outfile)
    with pytest.raises(GateError, match=r"telemetry\.outfile from .*settings"):
        check(store, cwd=tmp_path)


def test_plans_in_the_project_keep_a_run_in_plan_mode_from_asking(
    store: Path, tmp_path: Path
) -> None:
    (tmp_path / ".gemini").mkdir()
    settings(tmp_path / ".gemini", {"general": {"plan": {"directory": ".gemini/agents"}}})
    check(store, cwd=tmp_path, approval_mode="default")
    with pytest.raises(GateError, match=r"general\.plan\.directory"):
        check(store, cwd=tmp_path, approval_mode="plan")
    both = {"defaultApprovalMode": "plan", "plan": {"directory": ".gemini/agents"}}
    settings(tmp_path / ".gemini", {"general": both})
    with pytest.raises(GateError, match=r"general\.plan\.directory"):
        check(store, cwd=tmp_path)
