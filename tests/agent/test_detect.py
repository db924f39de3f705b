from __future__ import annotations

import os
from pathlib import Path

import pytest

from gemtui.agent.detect import Cli, CliAnswer, FoundBy, find_cli, usual_paths, version_of
from gemtui.agent.drivers import agent_to_start_with
from gemtui.agents import Agent
from tests.rows import each_row


def script(path: Path, body: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "bin").mkdir()
    return {"HOME": str(tmp_path / "home"), "PATH": str(tmp_path / "bin")}


def test_variable_wins(tmp_path: Path, environ: dict[str, str]) -> None:
    named = script(tmp_path / "mine/gemini-dev", "true")
    script(tmp_path / "bin/gemini", "true")
    environ["GEMINI_CLI_PATH"] = str(named)
    assert find_cli(environ) == Cli(path=named, found_by=FoundBy.VARIABLE)


def test_a_variable_that_names_nothing_is_no_other_cli(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    on_path = script(tmp_path / "bin/gemini", "true")
    missing = environ | {"GEMINI_CLI_PATH": str(tmp_path / "missing")}
    assert find_cli(missing) == Cli(path=tmp_path / "missing", found_by=FoundBy.VARIABLE)
    assert find_cli(environ | {"GEMINI_CLI_PATH": ""}) == Cli(path=on_path, found_by=FoundBy.PATH)


def test_nvm_and_mise_give_their_newest(tmp_path: Path, environ: dict[str, str]) -> None:
    home = tmp_path / "home"
    nvm = home / ".nvm/versions/node"
    for version in ("v9.11.2", "v20.3.0", "v20.11.0"):
        script(nvm / version / "bin/gemini", "true")
    places = list(usual_paths(environ))
    found = [place.parents[1].name for place in places if place.is_relative_to(nvm)]
    assert found == ["v20.11.0", "v20.3.0", "v9.11.2"]
    mise = script(home / ".local/share/mise/installs/node/22.1.0/bin/gemini", "true")
    assert find_cli(environ) == Cli(path=mise, found_by=FoundBy.USUAL_PLACE)


def test_a_place_counts_only_if_it_can_be_executed(tmp_path: Path, environ: dict[str, str]) -> None:
    plain = script(tmp_path / "a/gemini", "true")
    plain.chmod(0o644)
    good = script(tmp_path / "b/gemini", "true")
    assert find_cli(environ, places=[plain, good]) == Cli(path=good, found_by=FoundBy.USUAL_PLACE)
    assert find_cli(environ, places=[tmp_path / "none", tmp_path]) is None


def test_without_a_home_folder_nothing_breaks(tmp_path: Path) -> None:
    assert find_cli({"PATH": str(tmp_path)}, places=[]) is None
    assert list(usual_paths({"PATH": ""}))


@each_row(
    "installed, used, chosen",
    [
        ("", "", "gemini"),
        ("claude", "", "claude"),
        ("qwen", "claude gemini", "qwen"),
        ("gemini claude", "", "gemini"),
        ("gemini claude qwen", "qwen claude", "qwen"),
    ],
)
def test_the_first_agent_is_the_one_used_last_or_else_one_that_is_installed(
    environ: dict[str, str], tmp_path: Path, installed: str, used: str, chosen: str
) -> None:
    bin = tmp_path / (installed or "none")
    for name in installed.split():
        script(bin / name, "true")
    first = agent_to_start_with(map(Agent, used.split()), environ | {"PATH": str(bin)})
    assert first == chosen


def test_version_is_the_last_line_that_looks_like_one(tmp_path: Path) -> None:
    cli = script(tmp_path / "gemini", "echo a warning 1.2.3; echo 0.61.0")
    assert version_of(cli, cache=None) == CliAnswer(text="0.61.0")


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("exit 3", "exit code 3"),
        ("echo hello", "printed no version"),
        ("sleep 60 & wait", "longer than 0.2 s"),
    ],
)
def test_what_goes_wrong_is_said(tmp_path: Path, body: str, words: str) -> None:
    cli = script(tmp_path / "gemini", body)
    version = version_of(cli, cache=tmp_path, limit=0.2 if "sleep" in body else 5)
    assert version.text is None
    assert words in (version.problem or "")


@pytest.mark.parametrize(
    "body", ["i=0; {}", "( i=0; {} ); ( i=0; {} )"], ids=["itself", "children that end"]
)
def test_a_cli_that_computes_is_waited_for_longer(tmp_path: Path, body: str) -> None:
    count = "while [ $i -lt 300000 ]; do i=$((i+1)); done"
    cli = script(tmp_path / "gemini", f"{body.replace('{}', count)}; echo 0.61.0")
    assert version_of(cli, cache=None, limit=0.2) == CliAnswer(text="0.61.0")


def test_a_cli_that_gets_no_cpu_on_a_busy_machine_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gemtui.agent.process_tree.cpu_seconds", lambda _pid: 0.0)
    cli = script(
        tmp_path / "gemini", "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; echo 0.61.0"
    )
    assert version_of(cli, cache=None, limit=0.1) == CliAnswer(text="0.61.0")


def test_not_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gemtui.agent.detect.LONGEST", 0.3)
    cli = script(tmp_path / "gemini", "while :; do :; done")
    assert version_of(cli, cache=None, limit=0.2).late


def test_missing_and_unstartable(tmp_path: Path) -> None:
    assert "can't be read" in (version_of(tmp_path / "none", cache=None).problem or "")
    broken = tmp_path / "gemini"
    broken.write_bytes(b"\x00not a program")
    broken.chmod(0o755)
    assert "can't be started" in (version_of(broken, cache=None).problem or "")


def test_nothing_outlives_a_version_call_that_was_too_slow(tmp_path: Path) -> None:
    held = tmp_path / "held"
    os.mkfifo(held)
    reader = os.open(held, os.O_RDONLY | os.O_NONBLOCK)
    cli = script(tmp_path / "gemini", f"sleep 60 > {held} & wait")
    assert version_of(cli, cache=None, limit=0.5).problem
    os.set_blocking(reader, True)
    assert os.read(reader, 1) == b"", "the end comes once nobody holds the other side"
    os.close(reader)


def test_version_is_asked_once_per_change_of_the_file(tmp_path: Path) -> None:
    asked = tmp_path / "asked"
    cli = script(tmp_path / "gemini", f"echo x >> {asked}; echo 0.61.0")
    cache = tmp_path / "cache"
    for _ in range(2):
        assert version_of(cli, cache=cache) == CliAnswer(text="0.61.0")
    assert asked.read_text() == "x\n"
    assert (cache / "cli-version.json").stat().st_mode & 0o777 == 0o600
    script(cli, f"echo x >> {asked}; echo 0.62.0-preview.1 ")
    assert version_of(cli, cache=cache) == CliAnswer(text="0.62.0-preview.1")


def test_a_damaged_or_unwritable_cache_is_no_obstacle(tmp_path: Path) -> None:
    cli = script(tmp_path / "gemini", "echo 0.61.0")
    (tmp_path / "cli-version.json").write_text("[1, {")
    assert version_of(cli, cache=tmp_path) == CliAnswer(text="0.61.0")
    in_the_way = tmp_path / "file"
    in_the_way.touch()
    assert version_of(cli, cache=in_the_way) == CliAnswer(text="0.61.0")


def test_version_call_gets_a_home_of_its_own_and_the_node_beside_it(tmp_path: Path) -> None:
    script(tmp_path / "node", "echo 1.2.3")
    seen = tmp_path / "seen"
    cli = script(tmp_path / "gemini", f'echo "$GEMINI_CLI_HOME" > {seen}; node')
    environ = {"PATH": "/usr/bin:/bin", "GEMINI_CLI_HOME": str(tmp_path)}
    assert version_of(cli, cache=None, environ=environ) == CliAnswer(text="1.2.3")
    assert seen.read_text().strip() != str(tmp_path)
