"""How the CLI is started on Windows, from the files with which npm and pnpm install programs."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from gemtui import AgentOptions, CliNotFound, processes
from gemtui.agent import detect, npm_shim
from gemtui.agent.command import Machine, command_of
from gemtui.agent.detect import NEWEST, detect_cli, find_cli
from gemtui.processes import find_program
from tests.agent.test_detect import script

NPM_CMD = """@ECHO off\r
GOTO start\r
:find_dp0\r
SET dp0=%~dp0\r
EXIT /b\r
:start\r
SETLOCAL\r
CALL :find_dp0\r
\r
IF EXIST "%dp0%\\node.exe" (\r
  SET "_prog=%dp0%\\node.exe"\r
) ELSE (\r
  SET "_prog=node"\r
  SET PATHEXT=%PATHEXT:;.JS;=;%\r
)\r
\r
endLocal & goto #_undefined_# 2>NUL || title %COMSPEC% & "%_prog%"  "%dp0%\\lib\\gemini.js" %*\r
"""
NPM_6_CMD = """@IF EXIST "%~dp0\\node.exe" (\r
  "%~dp0\\node.exe"  "%~dp0\\lib\\gemini.js" %*\r
) ELSE (\r
  @SETLOCAL\r
  @SET PATHEXT=%PATHEXT:;.JS;=;%\r
  node  "%~dp0\\lib\\gemini.js" %*\r
)"""
PNPM_CMD = """@SETLOCAL\r
@IF NOT DEFINED NODE_PATH (\r
  @SET "NODE_PATH=C:\\pnpm\\global\\5\\node_modules"\r
)\r
@IF EXIST "%~dp0\\node.exe" (\r
  "%~dp0\\node.exe"  "%~dp0\\sub\\..\\lib\\gemini.js" %*\r
) ELSE (\r
  @SET PATHEXT=%PATHEXT:;.JS;=;%\r
  node  "%~dp0\\sub\\..\\lib\\gemini.js" %*\r
)\r
"""
NPM_SH = """#!/bin/sh
basedir=$(dirname "$(echo "$0" | sed -e 's,\\\\,/,g')")
if [ -x "$basedir/node" ]; then
  exec "$basedir/node"  "$basedir/lib/gemini.js" "$@"
else
  exec node  "$basedir/lib/gemini.js" "$@"
fi
"""
NPM_PS1 = """#!/usr/bin/env pwsh
$basedir=Split-Path $MyInvocation.MyCommand.Definition -Parent
if (Test-Path "$basedir/node$exe") {
  if ($MyInvocation.ExpectingInput) {
    $input | & "$basedir/node$exe"  "$basedir/lib/gemini.js" $args
  } else {
    & "$basedir/node$exe"  "$basedir/lib/gemini.js" $args
  }
} else {
  & "node$exe"  "$basedir/lib/gemini.js" $args
}
"""
SHIMS = {
    "npm.cmd": NPM_CMD,
    "npm6.cmd": NPM_6_CMD,
    "pnpm.CMD": PNPM_CMD,
    "npm": NPM_SH,
    "npm.ps1": NPM_PS1,
}


@pytest.fixture(autouse=True)
def _on_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (npm_shim, detect):
        monkeypatch.setattr(module, "sys", SimpleNamespace(platform="win32"))
    monkeypatch.setattr(detect, "_ENDINGS", (".exe", ".cmd"))


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with node, and with the script that the shims of this module name."""
    script(tmp_path / "bin/node.exe", "echo 0.61.0")
    script(tmp_path / "lib/gemini.js", "")
    return tmp_path


def words_of(path: Path, text: str, place: Path, folder: str = "bin") -> list[str]:
    path.write_bytes(text.encode())
    path.chmod(0o755)
    return npm_shim.start_words(path, {"PATH": str(place / folder)})


@pytest.mark.parametrize("name", SHIMS)
def test_node_is_started_with_the_script_that_a_shim_names(name: str, place: Path) -> None:
    started = [str(place / "lib/gemini.js")]
    assert words_of(place / name, SHIMS[name], place) == [str(place / "bin/node.exe"), *started]
    (place / "node.exe").touch()
    assert words_of(place / name, SHIMS[name], place) == [str(place / "node.exe"), *started]


def test_options_for_node_are_kept(place: Path) -> None:
    text = NPM_CMD.replace('"%_prog%" ', '"%_prog%" --no-warnings=DEP0040 --x ')
    assert words_of(place / "npm.cmd", text, place)[1:3] == ["--no-warnings=DEP0040", "--x"]


@pytest.mark.parametrize(
    "text",
    [
        "@volta run %~n0 %*",
        NPM_CMD.replace("gemini.js", "missing.js"),
        NPM_CMD.replace("%*", "& calc"),
        NPM_CMD.replace("%dp0%\\lib", "C:\\lib"),
        NPM_6_CMD.replace("gemini.js", "other.js", 1),
        "\xff" * 100_000,
    ],
)
def test_any_other_batch_file_is_refused(text: str, place: Path) -> None:
    with pytest.raises(CliNotFound, match="GEMINI_CLI_PATH can be a script"):
        words_of(place / "other.cmd", text, place)


def test_without_node_the_shim_is_named(place: Path) -> None:
    with pytest.raises(CliNotFound, match=r"npm\.cmd needs Node\.js, which is not on PATH"):
        words_of(place / "npm.cmd", NPM_CMD, place, "lib")


def test_a_program_starts_itself_and_a_script_is_for_node(place: Path) -> None:
    assert words_of(place / "gemini.EXE", "", place) == [str(place / "gemini.EXE")]
    assert words_of(place / "g.mjs", "", place) == [
        str(place / "bin/node.exe"),
        str(place / "g.mjs"),
    ]


def test_the_batch_file_is_found_but_node_is_asked(place: Path) -> None:
    words_of(place / "gemini.cmd", NPM_CMD, place)
    environ = {"PATH": f"{place}:{place}/bin"}
    found = detect_cli(environ)
    assert found.cli == find_cli(environ)
    assert found.cli is not None
    assert (found.cli.path, found.version) == (place / "gemini.cmd", "0.61.0")


def test_no_other_batch_file_is_a_program(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "sys", SimpleNamespace(platform="win32"))
    endings = (".exe", ".com")
    for name in ("code.cmd", "vim.exe"):
        script(place / name, "")
    environ = {"PATH": f".:{place}"}
    monkeypatch.chdir(place / "lib")
    script(place / "lib/vim.exe", "")
    assert find_program("code", environ, endings=endings) is None
    assert find_program(f"{place}/code.CMD. ") is None
    vim = str(place / "vim.exe")
    assert {find_program(name, environ, endings=endings) for name in ("vim", "vim.exe")} == {vim}


def test_a_batch_file_that_is_refused_is_the_problem(place: Path) -> None:
    words = "starts no script as npm's files do"
    cli = script(place / "odd.cmd", "calc")
    assert words in str(detect_cli({"PATH": str(place)}, cli=cli).problem)


@pytest.mark.parametrize(
    "prompt", ["", "-x", '" & calc & "', "%PATH% ^& !x!", "a\nb\r\n", "é 日本 🙂", "\\\\", 'a\\"b ']
)
def test_odd_prompts_are_one_unchanged_argument_of_node(prompt: str, place: Path) -> None:
    words_of(place / "gemini.cmd", NPM_CMD, place)
    machine = Machine(
        cli=place / "gemini.cmd", capabilities=NEWEST, environ={"PATH": f".:{place}/bin"}
    )
    options = AgentOptions(prompt_in_argv=True)
    made = command_of(prompt, options, machine, folder=place, session_id=None)
    assert made.argv[:2] == (str(place / "bin/node.exe"), str(place / "lib/gemini.js"))
    assert made.argv[-1] == f"--prompt={prompt}"
    assert made.environ["PATH"] == str(place / "bin")
