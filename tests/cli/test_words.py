"""Words, exit codes and diagnostics that hold for every command."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gemtui.paths import config_file
from tests.cli.conftest import Gemtui, put, start
from tests.cli.test_sessions import add_session
from tests.patience import PATIENCE
from tests.rows import each_row, table

TABLES = table("cli/words.json")


def test_the_help_of_the_app_on_a_folder_names_no_command(gemtui: Gemtui) -> None:
    assert gemtui(Path(__file__).parent, "--help").out.startswith("Usage: gemtui [OPTIONS] PATH")


def test_version(gemtui: Gemtui) -> None:
    assert re.fullmatch(r"gemtui \d+\.\d+\.\d+\n", gemtui("--version").out)


@each_row("case", table("cli/answers.json")["sessions"])
def test_answers(store: Path, gemtui: Gemtui, case: Any) -> None:
    gemtui.answers(case)


def test_a_file_is_no_folder_and_a_folder_has_no_such_option(gemtui: Gemtui) -> None:
    gemtui(__file__).refuses(f"is a file: to open a session file, use gemtui --session {__file__}")
    gemtui(Path(__file__).parent, "--x").refuses("No such option '--x': see gemtui --help")


@each_row("words", TABLES["without_a_terminal_the_app_names_what_to_use"])
def test_without_a_terminal_the_app_names_what_to_use(store: Path, words: list[str]) -> None:
    done = start(*words)
    assert done.returncode == 2
    assert done.stdout == b""
    assert (
        done.stderr.decode()
        == "gemtui: stdin is not a terminal: without one, use gemtui sessions and gemtui show ID\n"
    )


def test_module_and_command_are_the_same() -> None:
    script = Path(sys.executable).with_name("gemtui")
    done = subprocess.run([script, "--version"], capture_output=True, check=True, timeout=PATIENCE)
    assert done.stdout == start("--version").stdout


@each_row("words", [["--help"], ["sessions", "--everywhere"]])
def test_a_closed_stdout_ends_quietly(store: Path, words: list[str]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-m", "gemtui", *words],
        stdin=subprocess.DEVNULL,
        stdout=writing,
        stderr=subprocess.PIPE,
        timeout=PATIENCE,
        check=False,
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, b"")


@each_row("closed", [">&-", ">&- 2>&-", "2>&-"])
def test_streams_that_are_closed_from_the_start(store: Path, closed: str) -> None:
    for words in ("sessions --json", "--help"):
        line = f"{sys.executable} -m gemtui {words} {closed}"
        done = subprocess.run(
            ["/bin/sh", "-c", line], capture_output=True, timeout=PATIENCE, check=False
        )
        assert (done.returncode, done.stderr) == (0, b""), words


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no /dev/full")
@each_row("words", [["sessions", "--json"], ["--help"]])
def test_a_full_disk_is_said(store: Path, words: list[str]) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "gemtui", *words],
            stdout=full,
            stderr=subprocess.PIPE,
            timeout=PATIENCE,
            check=False,
        )
    assert done.returncode == 1
    assert done.stderr.decode() == "gemtui: No space left on device\n"


def test_a_path_that_the_locale_has_no_bytes_for_is_said(store: Path) -> None:
    plain = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    add_session(store, "t-project", "44444444-0000", "Hello")
    (store / "tmp/t-project/.project_root").write_text("/home/dev/\u00c9t\u00e9")
    done = start("sessions --everywhere", environ=plain)
    assert done.returncode == 1
    words = b"gemtui: a path can't be written in the locale's encoding, ascii: set PYTHONUTF8=1\n"
    assert done.stderr == words
    assert start("sessions --everywhere", environ=plain | {"PYTHONUTF8": "1"}).returncode == 0


def test_a_wrong_setting_does_not_stop_the_commands(store: Path, gemtui: Gemtui) -> None:
    put(config_file(), "nonsense = [")
    gemtui.ok("sessions --json")
    gemtui.ok("show latest")


def test_an_interrupt_ends_quietly_with_130(store: Path) -> None:
    big = add_session(store, "x", "33333333-big", "line\n" * 300_000)
    process = subprocess.Popen(
        [sys.executable, "-m", "gemtui", "show", big],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    with process.stdout, process.stderr:
        assert process.stdout.read(1), "it is writing, and soon has to wait for us"
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) == 130
        assert process.stderr.read().strip() == b""


def complete(shell: str, words: str, **environ: str) -> list[str]:
    position = str(len(words.split()) - (0 if words.endswith(" ") else 1))
    asked = {
        "_GEMTUI_COMPLETE": f"{shell}_complete",
        "COMP_WORDS": words,
        "COMP_CWORD": position,
        **environ,
    }
    done = start(environ=asked)
    assert done.stderr == b""
    return done.stdout.decode().splitlines()


def test_completion_offers_commands_and_ids(store: Path) -> None:
    assert complete("bash", "gemtui se") == ["plain,search", "plain,sessions"]
    full = "7024884b-dece-41db-8a1b-a37b16abdfd7"
    assert complete("bash", "gemtui show 70") == [f"plain,{full}"]
    assert complete("bash", "gemtui --session lat") == ["plain,latest"]
    assert complete("bash", "gemtui show nothing-like-it") == ["file,nothing-like-it"]
    assert complete("bash", "gemtui ./some") == ["dir,./some"]
    assert f"plain,{full}" in complete("bash", "gemtui show greeting")
    assert start("mark", full, "--name", "Hallo", "--tag", "work").returncode == 0
    assert complete("bash", "gemtui show hal") == complete("bash", "gemtui show wor")
    assert complete("bash", "gemtui show hal") == [f"plain,{full}"]
    offered = complete("zsh", "gemtui show 70")
    assert offered[:2] == ["plain", full]
    assert offered[2].startswith("Hallo")


def test_completion_says_nothing_where_there_is_no_store(home: Path) -> None:
    assert complete("bash", "gemtui show 70") == ["file,70"]
