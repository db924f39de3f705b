"""What can be told of the installed CLI: not there, broken, too old, fit to run."""

from __future__ import annotations

from pathlib import Path

import pytest

from gemtui import CliNotFound, detect_cli
from tests.fake_cli import HELP, FakeCli
from tests.rows import table


def test_fit_to_run(fake_cli: FakeCli) -> None:
    program = fake_cli()
    found = detect_cli()
    assert found.cli is not None
    assert (found.cli.path, found.version, found.problem) == (program, "0.61.0", None)
    assert found.capabilities.streams


def test_not_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("gemtui.agent.detect.usual_paths", lambda _: iter(()))
    found = detect_cli({"PATH": str(tmp_path)})
    assert (found.cli, found.version) == (None, None)
    install = "npm install -g @google/gemini-cli"
    assert found.problem == f"Gemini CLI is not on PATH; install it with: {install}"
    assert found.to_dict()["capabilities"] is None


@pytest.mark.parametrize(("version", "help", "problem"), table("agent/detected.json"))
def test_broken_or_too_old(fake_cli: FakeCli, version: str, help: str, problem: str) -> None:
    script = f'#!/bin/sh\nif [ "$1" = --version ]; then {version}; else {help}; fi\n'
    fake_cli().write_text(script)
    found = detect_cli()
    assert found.problem is not None
    assert problem in found.problem


def test_one_that_tells_no_version_may_run_all_the_same(fake_cli: FakeCli, tmp_path: Path) -> None:
    (tmp_path / "help.txt").write_text(HELP)
    fake_cli().write_text(
        f'#!/bin/sh\nif [ "$1" = --version ]; then exit 1; fi\n/bin/cat {tmp_path}/help.txt\n'
    )
    found = detect_cli()
    assert (found.version, found.problem) == (None, None)
    assert found.to_dict()["capabilities"]["stream"] is True


@pytest.mark.parametrize("named", ["missing", ""])
def test_a_variable_that_is_wrong(fake_cli: FakeCli, tmp_path: Path, named: str) -> None:
    path = tmp_path / named
    environ = {"PATH": str(fake_cli().parent), "GEMINI_CLI_PATH": str(path)}
    found = detect_cli(environ)
    assert found.problem is not None
    assert found.problem.startswith(f"GEMINI_CLI_PATH: {path} can't be ")
    assert found.problem.endswith("correct the variable, or unset it")
    with pytest.raises(CliNotFound, match="correct the variable"):
        found.program()


def test_one_that_hangs_is_not_asked_twice(
    fake_cli: FakeCli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("gemtui.agent.detect.ANSWER_LIMIT", 0.2)
    fake_cli().write_text(f'#!/bin/sh\necho "$1" >> {tmp_path}/asked\nsleep 60 & wait\n')
    found = detect_cli()
    assert found.problem is not None
    assert "--version took longer than 0.2 s: try again, or reinstall" in found.problem
    assert (tmp_path / "asked").read_text() == "--version\n"
