"""`gemtui doctor`."""

from __future__ import annotations

import os
import shutil
from contextlib import closing
from pathlib import Path

import psutil
import pytest

from gemtui.agent.approval import ApprovalRequest, GateFolder
from gemtui.agent.run_folder import Owner
from gemtui.checkpoints.usage import CheckpointsUsage
from gemtui.paths import cache_dir, config_file, runs_dir
from gemtui.search.file_list import index_folder
from gemtui.search.index import WriteIndex, only_writer
from gemtui.search.indexer import update
from gemtui.sessions.catalog.cache import FILE
from gemtui.text import clean
from tests.agent.test_detect import script
from tests.cli.conftest import Gemtui, has, put, values
from tests.cli.shapes import fits
from tests.fake_cli import FakeCli
from tests.rows import each_row
from tests.runs.test_listing import add_run, unended
from tests.sessions.agents import claude_session
from tests.sessions.stores import append, uuid


@pytest.fixture(autouse=True)
def bare_machine(store: Path, no_cli: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """No CLI but the one that a test makes, and a terminal that says nothing of itself."""
    for name in ("COLORTERM", "TERM"):
        monkeypatch.delenv(name, raising=False)


def test_shape_and_counts(store: Path, gemtui: Gemtui) -> None:
    answer = gemtui("doctor --json")
    assert (answer.code, answer.err) == (0, "")
    fits(answer.json, "Doctor")
    found = answer.json["store"]
    has(found, home=str(store), home_from="GEMINI_CLI_HOME")
    assert found["state"] == "ok"
    listed = gemtui.json("sessions --everywhere")["sessions"]
    every = gemtui.json("sessions --everywhere --hidden")["sessions"]
    assert found["sessions"] == len(listed)
    assert found["files"] == len(every)
    assert sum(found["hidden"].values()) == len(every) - len(listed)
    assert found["hidden"]["subagent"] == found["hidden"]["checkpoint"] == 1
    assert found["bytes"] == sum(each["size"] for each in every)
    assert answer.json["problems"] == []
    cache = answer.json["files"]["cache"]
    has(cache, private=True, problem=None)
    assert cache["bytes"] > 0


def test_lines_are_for_people(store: Path, gemtui: Gemtui) -> None:
    answer = gemtui.ok("doctor")
    answer.shows(
        f"store     {store} (from GEMINI_CLI_HOME): readable",
        "not found, but stored sessions can still be read",
        "https://github.com/google-gemini/gemini-cli",
        f"rm -r {os.environ['XDG_CACHE_HOME']}/gemtui",
    )
    assert answer.out.splitlines()[-1] == "all well"


def test_the_store_of_the_sandbox_of_macos_is_named(store: Path, gemtui: Gemtui) -> None:
    sandboxed = store.parent / ".cache/.gemini"
    (sandboxed / "tmp").mkdir(parents=True)
    assert gemtui.json("doctor")["store"]["sandboxed"] == str(sandboxed)
    assert f"to read them: GEMINI_CLI_HOME={sandboxed.parent} gemtui" in gemtui("doctor").out


def test_a_missing_store_is_not_broken(home: Path, gemtui: Gemtui) -> None:
    shutil.rmtree(home / ".gemini")
    answer = gemtui.ok("doctor --json")
    assert answer.json["store"]["state"] == "missing"


def test_a_file_in_place_of_the_store_is_broken(home: Path, gemtui: Gemtui) -> None:
    place = home / ".gemini/tmp"
    shutil.rmtree(place)
    place.write_text("")
    answer = gemtui("doctor")
    assert answer.code == 1
    answer.shows(
        f"{home}/.gemini (from GEMINI_CLI_HOME): not a folder",
        f"broken    {place} is not a folder: move it away",
    )
    assert gemtui.json("doctor")["store"]["state"] == "no_folder"


def test_the_cli_is_named_with_what_it_can(fake_cli: FakeCli, gemtui: Gemtui) -> None:
    cli = fake_cli()
    found = gemtui.json("doctor")
    fits(found, "Doctor")
    assert found["problems"] == []
    assert found["cli"]["path"] == str(cli)
    has(found["cli"], found_by="GEMINI_CLI_PATH", version="0.61.0")
    able = found["cli"]["capabilities"]
    has(able, stream=True, resume=True, policies=True, skip_trust=False)
    assert able["approval_modes"] == ["default", "auto_edit", "yolo", "plan"]
    text = gemtui("doctor").out
    assert f"0.61.0, {cli}" in text
    assert "supports: stream, resume, session id, policies, web search, thinking" in text
    assert "models: auto, pro, flash" in text


def test_a_cli_that_does_not_start_is_broken(tmp_path: Path, gemtui: Gemtui) -> None:
    script(tmp_path / "bin/gemini", "exit 3")
    answer = gemtui("doctor")
    assert answer.code == 1
    assert "exit code 3" in answer.out
    assert gemtui.json("doctor")["cli"]["capabilities"] is None


def test_a_cli_that_is_too_old_says_so(fake_cli: FakeCli, gemtui: Gemtui) -> None:
    fake_cli(help="  -m, --model  Model\n")
    answer = gemtui("doctor")
    assert answer.code == 1
    assert "is too old for runs: update it to 0.30 or newer" in answer.out


def test_what_runs_take_and_how_to_clear_them(gemtui: Gemtui) -> None:
    assert gemtui.json("doctor")["runs"]["runs"] == 0
    add_run(runs_dir(), "one")
    found = gemtui.json("doctor")["runs"]
    has(found, path=str(runs_dir()), runs=1, private=True)
    assert found["bytes"] > 0
    assert found["clear"] == "gemtui runs clear"
    text = gemtui("doctor").out
    assert f"runs      {runs_dir()}: 1 run, " in text
    assert "beyond 200 runs or 500.0 MB" in text


def test_a_run_that_waits_for_an_answer_is_named(gemtui: Gemtui) -> None:
    owner = Owner(pid=os.getpid(), began=psutil.Process().create_time())
    gate = GateFolder.of(unended(runs_dir(), "0a1b2c3d-waits", owner))
    gate.create()
    gate.ask(ApprovalRequest(tool_name="write_file", arguments={}, number=1))
    assert gemtui.json("doctor")["runs"]["asking"] == ["0a1b2c3d-waits"]
    answer = gemtui("doctor")
    assert (
        "run 0a1b2c3d is waiting for your answer: see gemtui runs questions 0a1b2c3d" in answer.out
    )
    assert (answer.code, "all well" in answer.out) == (0, False)


def test_a_wrong_setting_is_broken(gemtui: Gemtui) -> None:
    config = config_file()
    put(config, "ascii = 3")
    answer = gemtui("doctor --json")
    assert answer.code == 1
    assert "ascii" in answer.json["files"]["config"]["problem"]
    assert answer.json["problems"]
    config.write_text("ascii = true")
    assert gemtui.json("doctor")["files"]["config"] == {
        "path": str(config),
        "found": True,
        "problem": None,
    }


def test_a_theme_is_left_to_the_app(gemtui: Gemtui) -> None:
    assert 'theme "' not in gemtui("doctor").out
    put(config_file(), 'theme = "nope"')
    gemtui.ok("doctor").shows('theme "nope" will be checked when the app starts')


def test_unreadable_files_are_named(store: Path, gemtui: Gemtui) -> None:
    bad = store / "tmp/greeter/chats/session-2026-11-20T10-00-deadbeef.jsonl"
    bad.write_bytes(b"no session at all\n")
    answer = gemtui("doctor --json")
    assert answer.code == 1
    assert values(answer.json["store"]["unreadable"], "file") == [str(bad)]
    assert str(bad) in gemtui("doctor").out


def test_a_cache_that_can_not_be_written_is_broken(
    gemtui: Gemtui, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    in_the_way = tmp_path / "file"
    in_the_way.touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(in_the_way))
    answer = gemtui("doctor --json")
    assert answer.code == 1
    assert "not used" in answer.json["files"]["cache"]["problem"]


@each_row("command, where", [("doctor", "out"), ("doctor --json", "err"), ("sessions", "err")])
def test_a_damaged_cache_is_said_once_and_is_not_broken(
    command: str, where: str, gemtui: Gemtui
) -> None:
    gemtui("sessions")
    kept = Path(os.environ["XDG_CACHE_HOME"]) / "gemtui" / FILE
    kept.write_bytes(b"\0" + kept.read_bytes()[1:])
    answer = gemtui.ok(*command.split())
    said = "the cache was corrupt (its contents are corrupt) and has been rebuilt"
    assert said in getattr(answer, where)
    again = gemtui(*command.split())
    assert said not in again.out + again.err


def test_terminal_facts(gemtui: Gemtui, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TERM", "xterm\x1b[31m")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("LC_ALL", "C")
    monkeypatch.setenv("TMUX", "/tmp/tmux")
    script(tmp_path / "bin/tmux", "[ $1 = display-message ] && echo foot || echo external")
    terminal = gemtui.json("doctor")["terminal"]
    assert terminal["set_clipboard"] == "external"
    has(terminal, notifications=777, allow_passthrough="external")
    has(terminal, no_color=True, utf8=False, tty=False)
    text = gemtui("doctor").out
    assert clean(text) == text
    assert "tmux set -s set-clipboard on" in text
    assert "tmux set -g allow-passthrough on" in text
    assert "--ascii" in text


def test_without_a_terminal_on_stdout_its_size_is_left_out(gemtui: Gemtui) -> None:
    assert "terminal  TERM not set" in gemtui("doctor").out


def test_hostile_names_stay_harmless(home: Path, gemtui: Gemtui) -> None:
    chats = home / ".gemini/tmp/x\x1b]0;t\x07y/chats"
    chats.mkdir(parents=True)
    (chats / "session-2026-11-20T10-00-dead\x1b[31m.jsonl").write_bytes(b"nothing\n")
    text = gemtui("doctor").out
    assert clean(text) == text


def test_the_search_index_is_named_with_its_size_and_what_lies_in_it(
    store: Path, gemtui: Gemtui
) -> None:
    assert "search    no index yet" in gemtui("doctor").out
    folder = index_folder(cache_dir(), store)
    with only_writer(folder), closing(WriteIndex(folder)) as index:
        update(index, store)
        files = len(index.rows)
    gemtui("doctor").shows(
        f"search    {folder}: index of {files} files, ",
        ", readable only by you\n          it contains words from your sessions",
    )
    found = gemtui.json("doctor")["files"]["search"]
    has(found, files=files, private=True, problem=None)
    assert found["bytes"] > 1000
    (folder / "files.sqlite3").write_bytes(b"garbage" * 999)
    gemtui.ok("doctor").shows("not used: it is corrupt (file is not a database)")


def test_a_long_name_of_a_row_is_followed_by_a_blank(
    gemtui: Gemtui, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    usage = CheckpointsUsage(folder=tmp_path, projects=1, bytes=1200)
    monkeypatch.setattr("gemtui.commands.doctor.checkpoints_usage", lambda _: usage)
    assert f"checkpoints {tmp_path}: 1 project, 1.2 kB" in gemtui("doctor").out


def test_other_agents_are_told_with_lines_that_nobody_knows(
    gemtui: Gemtui, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    path = claude_session(tmp_path, uuid(1))
    append(path, {"type": "brand-new", "uuid": "n", "sessionId": uuid(1)})

    gemtui.ok("doctor").shows("1 session; from gemtui, they can't be deleted")
    report = gemtui("doctor --json").json["agents"]["claude"]

    assert (report["home"], report["sessions"]) == (str(tmp_path / ".claude"), 1)
    assert [count for what, count in report["problems"].items() if "brand-new" in what] == [1]
