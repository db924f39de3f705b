"""The run pane at the keys, with a real child in the place of the CLI."""

from __future__ import annotations

import asyncio
import json
import os
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from textual.widgets import Checkbox, Input, OptionList, Select

from gemtui.agent import process_tree
from gemtui.agent.adapter import UnguardedAdapter
from gemtui.agent.folder_options import remember_options as remember_options
from gemtui.agent.options import AgentOptions
from gemtui.agent.trust import FolderTrust, remember, trusted_folders
from gemtui.checkpoints.store import only_one
from gemtui.config import Config
from gemtui.paths import config_file, make_own_folder, runs_dir, state_dir
from gemtui.policy.model.rules import ApprovalMode
from gemtui.runs.before_run import Report, before_run_report
from gemtui.runs.ending import RunState
from gemtui.runs.listing import list_runs
from gemtui.runs.undo.checkpointing import project_of
from gemtui.ui.kit.dialogs import ChooseScreen
from gemtui.ui.review.screen import ReviewScreen
from gemtui.ui.run.end_card import EndRows
from gemtui.ui.run.labels import option_words
from gemtui.ui.run.live_run import Stage, ToolEnd, only_running_call
from gemtui.ui.run.options_dialog import OptionsScreen
from gemtui.ui.run.prompt import PromptArea
from gemtui.ui.run.screen import RunScreen
from gemtui.ui.sessions.history_screen import HistoryScreen
from gemtui.ui.transcript.view import TranscriptView
from tests.fake_cli import INIT, OK, FakeCli, ends, says, uses
from tests.patience import PATIENCE
from tests.runs import test_enrich as stored
from tests.runs.test_listing import add_run
from tests.runs.test_orphans import kill_watchers, start
from tests.runs.test_outcome import STREAMS
from tests.sessions.stores import marker, session, talk, uuid
from tests.sessions.writes import wrote
from tests.ui.people import BOTH, NARROW, WIDE, Person, person

START = f"print:{INIT}"
END = f"print:{OK}"
SHELL = uses("s1", "run_shell_command", "x").replace("print:", "timed:")
"""A call that says when it was made: what changes later is its own, however late that is read."""


class Runner(Person):
    """A person in the run pane."""

    @property
    def pane(self) -> RunScreen:
        screen = self.app.screen_stack[0]
        assert isinstance(screen, RunScreen)
        return screen

    async def ask(self, prompt: str) -> None:
        await self.type(prompt)
        await self.press("enter")

    async def all_ended(self, count: int) -> None:
        """Wait until so many runs have begun in this app and have ended."""
        runs = self.app.runs
        await self.until(lambda: runs._registry and len(runs._registry.runs) == count)
        await self.until(lambda: not runs.alive)
        await self.ended()

    async def ended(self) -> None:
        await self.until(lambda: self.pane.run_shown and not self.pane.run_shown.alive)
        await self.until(lambda: self.pane.run_shown and self.pane.run_shown.told is not None)
        await self.painted(self.pane)


@asynccontextmanager
async def runner(home: Path, project: Path, size: tuple[int, int] = WIDE) -> AsyncIterator[Runner]:
    """Somebody in the run pane, in this project."""
    async with person(home / ".gemini", size, project=project) as me:
        somebody = Runner(me.app, me.pilot)
        await somebody.does("2", "enter starts a run")
        yield somebody


async def test_a_prompt_is_taken_while_the_cli_is_looked_for(
    home: Path, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(tmp_path / "version")
    program = tmp_path / "gemini"
    program.write_text(f'#!/bin/sh\n[ "$1" = --help ] || exec /bin/cat {tmp_path}/version\n')
    program.chmod(0o755)
    monkeypatch.setenv("GEMINI_CLI_PATH", str(program))
    monkeypatch.setattr("gemtui.agent.detect.ANSWER_LIMIT", PATIENCE)
    async with runner(home, project, NARROW) as me:
        await me.sees("New run in", "looking for Gemini CLI")
        await me.type("go")
        assert me.pane.prompt.text == "go"
        (tmp_path / "version").write_text("0.61.0\n")
        await me.sees("gemini 0.61.0")


async def test_a_run_streams_and_its_card_goes_from_running_to_done(
    home: Path, project: Path, fake_cli: FakeCli, tmp_path: Path
) -> None:
    gate, last = tmp_path / "gate", tmp_path / "last"
    steps = [START, says("I write it."), uses("t1", "write_file", "a.txt"), f"until:{gate}"]
    fake_cli(*steps, ends("t1"), says("Written."), f"until:{last}", END)
    async with runner(home, project, BOTH) as me:
        await me.ask("write a file")
        await me.sees("● write_file", "I write it.", "● running")
        gate.touch()
        await me.sees("✓ write_file", "Written.", "1 file")
        last.touch()
        await me.sees("✓ done", "enter continue")


async def test_an_answer_that_goes_on_below_what_is_read_says_so(
    home: Path, project: Path, fake_cli: FakeCli, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    long = "".join(f"line {number}\\\\n\\\\n" for number in range(40))
    fake_cli(START, says(long), f"until:{gate}", says("The last word."), "wait")
    async with runner(home, project, BOTH) as me:
        await me.ask("tell me")
        await me.sees("line 39", "following")
        await me.press("escape", "pageup")
        assert "new below" not in me.text
        gate.touch()
        await me.sees("▼ new below")
        await me.does("end", "The last word.", "following")
        assert "new below" not in me.text


async def test_the_changed_files_and_the_way_to_their_cards(
    home: Path, project: Path, fake_cli: FakeCli
) -> None:
    steps = [uses("t1", "write_file", "a.txt"), uses("t2", "replace", "b.txt")]
    steps += [uses("t3", "write_file", "c.txt"), "make:a.txt=x", ends("t1"), ends("t2", "error")]
    fake_cli(START, says("Three."), *steps, "exit:1")
    async with runner(home, project) as me:
        await me.ask("go")
        await me.sees("✗ failed replace b.txt", "A a.txt +1", "c.txt not written", "1 file +1")
        await me.ended()
        assert "b.txt not written" not in me.text
        await me.press("escape", "enter")
        assert me.app.focused is me.pane.view
        block = me.pane.view.page.block
        assert getattr(block, "id", None) == "t2"


async def test_a_changed_file_leads_to_all_its_writes_and_back(
    home: Path, project: Path, fake_cli: FakeCli
) -> None:
    marker(home / ".gemini", "proj", str(project))
    before = [*talk(uuid(1), "Begin it"), wrote(project / "a.txt", None, "old")]
    session(home / ".gemini", uuid(1), before)
    fake_cli(START, uses("t1", "write_file", "a.txt"), "make:a.txt=x", ends("t1"), END)
    async with runner(home, project) as me:
        await me.ask("go")
        await me.sees("A a.txt +1")
        await me.ended()
        await me.press("escape", "w", "W")
        await me.on(HistoryScreen)
        await me.sees("Begin it", "1 write in 1 session")
        await me.press("enter")
        await me.until(lambda: me.app.screen is me.app.sessions and me.home.reading)
        await me.until(lambda: getattr(me.view.page.block, "name", "") == "write_file")
        await me.press("escape")
        await me.on(HistoryScreen)
        await me.press("escape")
        await me.until(lambda: me.app.screen is me.pane)
        assert isinstance(me.app.focused, EndRows)


async def test_the_card_of_an_ended_run_reverts_a_file_reviews_one_and_begins_a_comment(
    home: Path, project: Path, fake_cli: FakeCli
) -> None:
    failed = SHELL.replace('"file_path":"x"', '"command":"pytest -q"')
    steps = [failed, "make:new.txt=fresh", "make:old.txt=changed\n1\n2\n", ends("s1", "error")]
    (project / "old.txt").write_text("old\n1\n2\n")
    fake_cli(START, *steps, says("Done it."), END)
    async with runner(home, project, NARROW) as me:
        await me.ask("go")
        await me.sees("✗ failed $ pytest -q", "A new.txt +1 by shell", "M old.txt", "esc, then:")
        await me.ended()
        await me.press("escape", "c")
        assert me.pane.prompt.text == "pytest -q: "

        await me.press("escape", "G", "k", "k", "j", "i")
        assert "▌A new.txt" in me.text
        assert "↑↓ move" in me.text
        keys = me.text.splitlines()[me.pane.query_one("#ending-keys").region.y]
        await me.pilot.click("#ending-keys", offset=(keys.index("c comment"), 0))
        await me.until(lambda: me.pane.prompt.text == "pytest -q: \nnew.txt: ")
        await me.does("escape space", "Revert?", "new.txt")
        await me.press("y")
        await me.until(lambda: not (project / "new.txt").exists())
        await me.is_told("To reverse this, press R.")
        await me.until(lambda: not me.pane.asking and "▌M old.txt" in me.text)
        assert "A new.txt" not in me.text

        await me.press("enter")
        await me.on(ReviewScreen)
        await me.sees("old.txt", "− old", "+ changed", "c comment")
        assert "new.txt" not in me.text

        (project / "old.txt").write_text("changed\n1\n2\nmine\n")
        await me.press("escape", "escape")
        await me.until(lambda: me.app.screen is me.pane and not me.pane.asking)
        await me.does("space", "Revert?", "old.txt:1  run_shell_command")
        await me.press("y")
        await me.until(lambda: (project / "old.txt").read_text() != "changed\n1\n2\nmine\n")
        assert (project / "old.txt").read_text() == "old\n1\n2\nmine\n", "the user's line stays"


@pytest.mark.parametrize(("mode", "key"), [("", "shift+tab"), ("/mode auto_edit", "/mode ask")])
async def test_a_run_whose_calls_were_denied_ends_with_the_key_that_leads_to_ask(
    home: Path, project: Path, fake_cli: FakeCli, mode: str, key: str
) -> None:
    error = {"type": "tool_not_registered", "message": 'Tool "run_shell_command" not found.'}
    end = {"type": "tool_result", "tool_id": "t1", "status": "error", "error": error}
    denied = f"print:{json.dumps(end)}".replace('\\"', '\\\\"')
    fake_cli(START, uses("t1", "run_shell_command", "x"), denied, says("Denied."), END)
    async with runner(home, project, NARROW) as me:
        if mode:
            await me.ask(mode)
            await me.sees("mode auto_edit")
        await me.ask("go")
        await me.sees("⊘ denied $", "p allow it")
        await me.sees(f"{key} asks you before each change")
        assert "space revert" not in me.text


async def test_without_checkpoints_what_a_command_changed_is_told_as_unknown(
    home: Path, project: Path, fake_cli: FakeCli
) -> None:
    make_own_folder(config_file().parent)
    config_file().write_text('checkpoints = "off"\n')
    shell = [SHELL, "make:new.txt=fresh"]
    fake_cli(START, *shell, ends("s1"), says("Done it."), END)
    async with runner(home, project) as me:
        await me.ask("go")
        await me.sees("Done it.", "✓ done")
        await me.ended()
        await me.sees("changed files unknown")
        assert "new.txt" not in me.text


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
async def test_what_a_command_did_to_files_and_what_was_in_them(
    home: Path, project: Path, fake_cli: FakeCli, size: tuple[int, int]
) -> None:
    (project / "old.txt").write_text("what was in it\n")
    shell = [SHELL, "make:new.txt=fresh", "remove:old.txt"]
    fake_cli(START, *shell, ends("s1"), says("Done it."), END)
    async with runner(home, project, size) as me:
        await me.ask("go")
        await me.sees("Done it.", "✓ done", "2 files +1 −1")
        await me.ended()
        await me.does("escape w", "A new.txt +1 by shell", "D old.txt +0 −1 by shell")
        await me.does("d", "A new.txt +1 by shell", "1 + fresh")
        await me.does(
            "escape down d",
            "D old.txt",
            "The file no longer exists; these are",
            "1 − what was in it",
        )
        await me.press("escape", "o")
        await me.is_told("no longer exists")


async def test_after_a_stop_the_disk_says_what_was_written(
    home: Path, project: Path, fake_cli: FakeCli
) -> None:
    calls = [
        json.dumps({"type": "tool_use", "tool_name": "write_file", "tool_id": name} | given)
        for name in ("made.txt", "missing.txt")
        for given in [{"parameters": {"file_path": name, "content": "one\n"}}]
    ]
    steps = [f"print:{each}".replace("\\n", "\\\\n") for each in calls]
    fake_cli(START, says("Two files."), *steps, "make:made.txt=one", "wait")
    async with runner(home, project) as me:
        await me.ask("go")
        await me.sees("made.txt writing", "missing.txt writing")
        await me.until((project / "made.txt").exists)
        await me.does("ctrl+c ctrl+c", "◌ interrupted", "made.txt was written, although")
        await me.sees("A made.txt +1 no result, but the", "✗ missing.txt not written")


async def test_narrow_shows_the_files_instead_of_the_transcript_in_ascii_too(
    home: Path, project: Path, fake_cli: FakeCli
) -> None:
    made = [uses("t1", "write_file", "a.txt"), "make:a.txt=x", ends("t1")]
    fake_cli(START, *made, says("Done it."), END)
    async with person(home / ".gemini", NARROW, Config(ascii=True), project=project) as me:
        await me.does("2", "enter starts a run")
        await me.type("go")
        await me.does("enter", "Done it.", "+ done", "1 file +1")
        await me.sees("A a.txt +1", "esc, then:")
        await me.press("escape")
        assert isinstance(me.app.focused, EndRows)
        await me.press("escape")
        assert isinstance(me.app.focused, TranscriptView)
        assert "H review" not in me.text
        await me.does("w", "A a.txt +1", "H review")


async def test_ctrl_c_copies_what_is_selected_and_otherwise_stops_the_run_and_says_what_it_did(
    home: Path, project: Path, fake_cli: FakeCli
) -> None:
    fake_cli(START, says("On and on"), "wait")
    async with runner(home, project, BOTH) as me:
        await me.ask("go on")
        await me.sees("On and on")
        await me.type("half")
        await me.press("shift+left", "ctrl+c")
        assert me.app.clipboard == "f"
        assert me.pane.run_shown is not None
        assert me.pane.run_shown.stage is Stage.RUNNING

        await me.does(
            "end ctrl+c ctrl+c", "◌ interrupted", "Stopped by SIGTERM.", "finished writes are kept"
        )
        assert [run.state for run in list_runs(runs_dir())] == [RunState.ENDED]


async def test_undo_waits_for_the_end_and_missing_checkpoints_are_said(
    home: Path, project: Path, fake_cli: FakeCli
) -> None:
    place, _, _ = project_of(project)
    place.mkdir(parents=True)
    (place / "checkpoints.sqlite3").write_bytes(b"no database" * 1000)
    fake_cli(START, says("Working."), "wait")
    async with runner(home, project, WIDE) as me:
        await me.ask("go on")
        await me.sees("Working.", "! no checkpoints")
        await me.is_told("its contents are corrupt")
        await me.press("escape", "U")
        await me.is_told("The run is still working")
        await me.press("ctrl+c", "ctrl+c")
        await me.ended()


async def test_the_first_checkpoint_says_how_far_it_is(
    home: Path, project: Path, fake_cli: FakeCli
) -> None:
    fake_cli(START, says("Working."), END)
    async with runner(home, project, NARROW) as me:
        with only_one(project_of(project)[0]):
            await me.ask("go on")
            await me.sees("starting Gemini CLI", "taking the first checkpoint")
            assert "0 files" not in me.text
        await me.sees("Working.", "✓ done")
        assert "taking the first" not in me.text


async def test_esc_and_the_first_ctrl_c_stop_nothing_and_say_what_does(
    home: Path, project: Path, fake_cli: FakeCli
) -> None:
    fake_cli(START, says("On and on"), "wait")
    async with runner(home, project) as me:
        await me.ask("go on")
        await me.sees("On and on")
        await me.does("escape", "The run goes on. Press ctrl+c twice to stop it.")
        await me.does("ctrl+c", "Press ctrl+c again to stop the run.")
        assert me.app.runs.alive[0].stage is Stage.RUNNING

        await me.press("i")
        await me.ask("/stop")
        await me.sees("◌ interrupted")


async def test_the_words_on_how_to_stop_a_run_go_when_it_ends(
    home: Path, project: Path, fake_cli: FakeCli, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    fake_cli(START, says("On and on"), f"until:{gate}", END)
    async with runner(home, project) as me:
        await me.ask("go on")
        await me.sees("On and on")
        await me.does("escape", "The run goes on.")
        gate.touch()
        await me.ended()
        await me.until(lambda: me.pane.status.told is None)


async def test_ctrl_c_once_more_kills(home: Path, project: Path, fake_cli: FakeCli) -> None:
    fake_cli("stubborn", START, says("Never"), "wait")
    async with runner(home, project) as me:
        await me.ask("go on")
        await me.sees("Never")
        await me.does("ctrl+c ctrl+c", "Stopping (SIGTERM)… press ctrl+c again to kill")
        await me.does("ctrl+c", "was killed (SIGKILL)")


async def test_what_was_said_before_much_else_counts_for_the_end(
    home: Path, project: Path, fake_cli: FakeCli
) -> None:
    steps = ["err:[USER] Policy file error in x.toml:", "err:  TOML parsing failed", "err:"]
    fake_cli(*steps, "flood:40000", START, says("Hello."), END)
    async with runner(home, project) as me:
        await me.ask("hello")
        await me.sees("✗ A policy file is broken", "TOML parsing failed", "✗ failed")


async def test_a_failed_run_says_why_and_what_one_can_do(
    home: Path, project: Path, fake_cli: FakeCli
) -> None:
    fake_cli("err:Please set an Auth method", "exit:41")
    async with runner(home, project, BOTH) as me:
        await me.ask("hello")
        await me.sees("✗", "Please set an Auth method", "esc, then:", "r run again")
        await me.ended()
        await me.type("run")
        assert me.pane.prompt.text == "run"
        assert len(list_runs(runs_dir())) == 1, "r ran it again, in the middle of a word"
        await me.press("escape", "r")
        await me.all_ended(2)
        await me.press("e")
        assert me.pane.prompt.text == "hello"


async def test_a_follow_up_goes_on_in_the_same_session(
    home: Path, project: Path, fake_cli: FakeCli, tmp_path: Path
) -> None:
    fake_cli(START, says("First answer."), END)
    async with runner(home, project) as me:
        await me.ask("first question")
        await me.sees("First answer.", "continues session s1")
        fake_cli(START, says("Second answer."), END)
        await me.ask("second question")
        await me.sees("first question", "First answer.", "second question", "Second answer.")
        await me.ended()
        assert "--resume=s1" in (tmp_path / "words").read_text().splitlines()


def store_session(home: Path, project: Path) -> None:
    """A session of this project, half an hour old."""
    chats = home / ".gemini/tmp/project/chats"
    chats.mkdir(parents=True)
    (chats.parent / ".project_root").write_text(str(project))
    at = {"timestamp": "2026-11-21T00:30:00.000Z"}
    records = [
        {"sessionId": "abcdef12-0000", "projectHash": "x", "startTime": at["timestamp"]},
        {"id": "m1", "type": "user", "content": [{"text": "stored question"}], **at},
        {"id": "m2", "type": "gemini", "content": "Stored answer.", **at},
    ]
    path = chats / "session-2026-11-21T00-30-abcdef12.jsonl"
    path.write_text("".join(f"{json.dumps(record)}\n" for record in records))
    os.utime(path, (0, 0))


async def test_a_stored_session_goes_on_in_the_run_pane(
    home: Path, project: Path, fake_cli: FakeCli, tmp_path: Path
) -> None:
    store_session(home, project)
    fake_cli(START, says("Fresh answer."), END)
    async with person(home / ".gemini", WIDE, project=project) as me:
        await me.sees("stored question")
        await me.does("c", "continues session abcdef12", "Stored answer.")
        await me.type("and now")
        await me.does("enter", "Stored answer.", "and now", "Fresh answer.", "✓ done")
        assert "--resume=abcdef12-0000" in (tmp_path / "words").read_text().splitlines()
        (record,) = list_runs(runs_dir())
        assert list(record.folder.path.glob("before-*.jsonl"))


async def test_follow_ups_are_followed_to_their_end_after_a_stop_too(
    home: Path, project: Path, fake_cli: FakeCli
) -> None:
    long = "\\\\n\\\\n".join(f"Line {number}." for number in range(60))
    fake_cli(START, says(long), END)
    async with runner(home, project, NARROW) as me:
        await me.ask("much")
        await me.sees("Line 59.", "continues session s1")
        await me.ended()
        fake_cli(START, says(long), uses("t1", "read_file", "a.txt"), ends("t1"), says("Bye."), END)
        await me.ask("more")
        await me.sees("Bye.", "✓ done")
        await me.ended()
        assert me.pane.view.following
        fake_cli(START, says(f"Again.{long}"), "wait")
        await me.ask("again")
        await me.sees("Line 59.", "● running")
        await me.does("ctrl+c ctrl+c", "◌ interrupted")
        await me.ended()
        fake_cli(START, says("Over."), END)
        await me.ask("last")
        await me.sees("Over.", "✓ done")
        assert me.pane.view.following


async def test_a_prompt_written_meanwhile_is_sent_when_the_run_ends(
    home: Path, project: Path, fake_cli: FakeCli, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    fake_cli(START, says("First answer."), f"until:{gate}", END)
    async with runner(home, project) as me:
        await me.ask("first")
        await me.sees("First answer.")
        await me.sees("enter queues it until the run ends")
        await me.ask("and then")
        await me.sees("1 queued")
        assert me.pane.prompt.text == ""
        fake_cli(START, says("Second answer."), END)
        gate.touch()
        await me.sees("and then", "Second answer.", "✓ done")
        assert me.pane.run_shown is not None
        assert me.pane.run_shown.resumes == "s1"


async def test_a_command_with_an_exit_code_looks_failed_while_the_run_works(
    home: Path, project: Path, fake_cli: FakeCli
) -> None:
    stored.store(home / ".gemini", stored.asked("go"), stored.said("a", "", "t1"))
    fake_cli(
        f"print:{INIT.replace('s1', stored.ID)}",
        uses("t1", "run_shell_command", "x"),
        ends("t1"),
        "wait",
    )
    async with runner(home, project, BOTH) as me:
        await me.ask("go")
        await me.sees("✗ run_shell_command", "exit 3", "✗ 1 failed")
        assert me.pane.run_shown is not None
        assert me.pane.run_shown.alive


async def test_the_card_of_the_only_running_command_has_its_time(
    home: Path, project: Path, fake_cli: FakeCli, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    command = uses("t1", "run_shell_command", "x").replace("print:", "timed:")
    fake_cli(START, command, f"until:{gate}", uses("t2", "run_shell_command", "y"), "wait")
    async with runner(home, project) as me:
        await me.ask("go")
        await me.sees("● run_shell_command")
        run = me.app.runs.alive[0]
        later = datetime.now(UTC) + timedelta(seconds=90)
        id, seconds = only_running_call(run, later) or ("", 0.0)
        assert (id, 80 < seconds < 90 + PATIENCE) == ("t1", True)
        me.pane.view.show_time((id, "1:30"))
        await me.sees("1:30")
        assert "no output" not in me.text
        gate.touch()
        await me.until(lambda: run.ends()[ToolEnd.RUNNING] == 2)
        assert only_running_call(run, later) is None


async def test_two_runs_at_once_and_the_list_that_leads_to_them(
    home: Path, project: Path, fake_cli: FakeCli
) -> None:
    async with runner(home, project) as me:
        fake_cli(START, says("I am one"), "wait")
        await me.ask("run one")
        await me.sees("I am one")
        await me.press("ctrl+n")
        fake_cli(START, says("I am two"), "wait")
        await me.ask("run two")
        await me.sees("I am two")
        assert len(me.app.runs.alive) == 2
        await me.does("ctrl+l", "run one", "run two")
        await me.does("down enter", "I am one")
        await me.does("ctrl+c ctrl+c", "◌ interrupted")
        assert [run.prompt for run in me.app.runs.alive] == ["run two"]


async def test_the_list_of_runs_is_searched_and_keeps_its_search_and_tells_refusals_from_success(
    home: Path, project: Path
) -> None:
    add_run(runs_dir(), "one")
    add_run(runs_dir(), "two", (STREAMS / "policy-deny.jsonl").read_text(), age=1)
    async with runner(home, project, BOTH) as me:
        await me.does("ctrl+l", "✓ Do it.", "done", "⊘ Do it.", "done, 2 denied")
        await me.press("slash", *"denied")
        await me.lacks("✓ Do it.")
        await me.does("escape", "✓ Do it.", "⊘ Do it.")
        await me.press("slash", *"zz")
        await me.sees("No matches.")

        await me.press("escape", "slash", *"denied", "down", "x")
        await me.is_told("This run has no running")
        await me.sees("/ denied", "⊘ Do it.")
        await me.lacks("✓ Do it.")
        await me.press("x", "escape", "slash", *"do 2", "enter")
        await me.sees("tool calls were denied")
        assert me.pane.run_shown is not None
        assert me.pane.run_shown.id == "two"


async def test_a_run_with_refusals_is_known_in_the_list_when_it_has_ended(
    home: Path, project: Path, fake_cli: FakeCli
) -> None:
    fake_cli(f"file:{STREAMS / 'policy-deny.jsonl'}")
    async with runner(home, project) as me:
        await me.ask("push it")
        await me.ended()
        (run,) = list_runs(runs_dir())
        assert run.word == "done, 2 denied"


async def test_an_unknown_folder_is_trusted_only_when_the_person_says_so(
    home: Path, project: Path, fake_cli: FakeCli
) -> None:
    (home / ".gemini/trustedFolders.json").unlink()
    fake_cli(START, says("Hello."), END)
    async with runner(home, project) as me:
        await me.ask("hi")
        await me.sees("Trust this folder?")
        await me.press("enter")
        assert me.pane.prompt.text == "hi"
        assert list_runs(runs_dir()) == ()
        await me.does("enter", "Trust this folder?")
        await me.does("down enter", "Hello.")
        await me.ended()
        await me.ask("again")
        await me.until(lambda: len(list_runs(runs_dir())) == 2)
        (record, _) = list_runs(runs_dir())
        request = record.folder.request()
        assert request is not None
        assert request.environ["GEMINI_CLI_TRUST_WORKSPACE"] == "true"


async def test_the_header_shows_the_keys_that_lead_to_another_pane(
    home: Path, project: Path, fake_cli: FakeCli
) -> None:
    """A digit is text in the prompt; esc leaves it first."""
    fake_cli(START, END)
    async with runner(home, project, NARROW) as me:
        await me.press("1")
        assert me.pane.prompt.text == "1"
        await me.sees("esc 1 Sessions", "[2 Run]", "esc 3 Policy")
        await me.press("escape")
        await me.lacks("esc 1")
        pane = me.pane
        await me.press("1")
        await me.until(lambda: me.app.screen is not pane)


def allowed(project: Path, *tools: str) -> None:
    """The project's own settings turn off confirmations."""
    (project / ".gemini").mkdir(exist_ok=True)
    servers = {f"s{number}": {"command": "serve"} for number in range(9)}
    found = {"tools": {"allowed": list(tools)}, "mcpServers": servers}
    (project / ".gemini/settings.json").write_text(json.dumps(found))


@pytest.mark.parametrize("trusted", [True, False])
async def test_what_nobody_is_asked_about_is_said_before_a_run_and_again_when_it_changes(
    home: Path, project: Path, fake_cli: FakeCli, *, trusted: bool
) -> None:
    if not trusted:
        (home / ".gemini/trustedFolders.json").unlink()
    fake_cli(START, says("Hello."), END)
    allowed(project, "write_file")
    async with runner(home, project) as me:
        await me.ask("hi")
        await me.sees("Before this run" if trusted else "Trust this folder?", "tools.allowed")
        await me.sees("more lines")
        await me.does(
            "down down enter", "What this folder's settings do without asking", "mcpServers.s8"
        )
        await me.does("escape", "Show everything")
        await me.press("down", "enter")
        await me.ended()
        await me.ask("again")
        await me.all_ended(2)
        allowed(project, "run_shell_command")
        await me.ask("once more")
        await me.sees("Before this run", "changed since the last run: tools.allowed")
        await me.press("enter")
        assert len(list_runs(runs_dir())) == 2
        assert me.pane.prompt.text == "once more"
    async with runner(home, project, NARROW) as me:
        await me.sees("mode default  1 setting here turns off confirmations")
        await me.does("ctrl+o", "1 setting turns off confirmations, 9 other notices: see above")
        await me.does("shift+tab", "tools.allowed in")  # one line of it stays in sight


async def test_a_folder_that_is_not_utf8_is_refused_in_words(
    home: Path, tmp_path: Path, fake_cli: FakeCli
) -> None:
    fake_cli(START, END)
    odd = tmp_path / "b\udcff"
    odd.mkdir()
    async with runner(home, odd) as me:
        await me.ask("go")
        await me.sees("Trust this folder?")
        await me.press("down", "enter")
        await me.is_told("was not started")
        assert me.pane.prompt.text == "go"
        assert not list_runs(runs_dir())


def test_a_mode_that_allows_everything_stands_out() -> None:
    for mode, marked in ((ApprovalMode.YOLO, True), (ApprovalMode.AUTO_EDIT, False), (None, False)):
        words = option_words(AgentOptions(approval_mode=mode, model="m"))
        assert [str(span.style) for span in words.spans] == ["bold $text-warning"] * marked


def asked(me: Person) -> bool:
    """Whether the list of a dialog takes keys."""
    list_ = me.app.focused if isinstance(me.app.screen, ChooseScreen) else None
    return isinstance(list_, OptionList) and list_.highlighted is not None


async def test_the_mode_of_the_settings_stands_beside_the_prompt(
    home: Path, project: Path, fake_cli: FakeCli
) -> None:
    fake_cli(START, END)
    path = home / ".gemini/settings.json"
    path.write_text(json.dumps({"general": {"defaultApprovalMode": "auto_edit"}}))
    async with runner(home, project) as me:
        await me.sees("mode auto_edit (settings)")
        path.unlink()
        await me.does("escape 1 2", "mode default")


async def test_a_trusted_folder_can_be_taken_back(home: Path, project: Path) -> None:
    remember(project)
    async with person(home / ".gemini", NARROW, project=project) as me:
        await me.command("trusted folders")
        await me.until(lambda: asked(me))
        await me.sees("Trusted folders", "enter choose")
        await me.does("enter", "Revoke trust?")
        await me.press("n")
        await me.until(lambda: asked(me))
        assert trusted_folders()
        await me.does("enter", "Revoke trust?")
        await me.press("y")
        await me.until(lambda: not trusted_folders())
        await me.is_told("No trusted folders")


async def test_an_orphan_is_said_at_the_start_and_ended_in_the_list(
    home: Path, project: Path, fake_cli: FakeCli, tmp_path: Path
) -> None:
    fake_cli(START, "orphan", "wait")
    run = await asyncio.to_thread(start, tmp_path, runs_dir())
    await asyncio.to_thread(kill_watchers, run)
    async with person(home / ".gemini", NARROW, project=project) as me:
        await me.is_told("left processes behind")
        await me.does("2 ctrl+l", "orphaned", "x stop")
        await me.does("x", "interrupted", "x stop")
        assert process_tree.tagged(run.folder.id) == set()
        await me.press("x")
        await me.is_told("This run has no running")


async def test_leaving_asks_and_a_run_left_alone_is_found_again(
    home: Path, project: Path, fake_cli: FakeCli
) -> None:
    fake_cli(START, says("I go on."), "wait")
    async with runner(home, project) as me:
        options = replace(me.pane.options, approval_mode=ApprovalMode.YOLO, model="m")
        me.pane.next_run.options = options
        await me.ask("long one")
        await me.sees("I go on.")
        await me.does("ctrl+q", "A run is still active.", "Leave it running")
        await me.press("enter")
        assert me.app.is_running
        (left,) = me.app.runs.alive
        await me.does("ctrl+q", "Leave it running")
        await me.press("down", "enter")
        await me.until(lambda: me.app._exit)
    async with person(home / ".gemini", WIDE, project=project) as me:
        await me.is_told("still active")
        await me.does("2", "long one", "I go on.", "● running", "model auto  mode default")
        screen = me.app.screen
        assert isinstance(screen, RunScreen)
        assert (screen.options.approval_mode, screen.options.model) == (None, None)
        await me.does("ctrl+c ctrl+c", "◌ interrupted")
    assert (await left.run.wait()).aborted


async def test_a_run_that_is_stopped_while_its_options_are_read_never_starts(
    home: Path, project: Path, fake_cli: FakeCli, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_cli(START, "wait")
    may_end = threading.Event()

    def slowly(options: AgentOptions) -> Report:
        may_end.wait(PATIENCE)
        return before_run_report(options)

    monkeypatch.setattr("gemtui.ui.run.next_run.before_run_report", slowly)
    async with runner(home, project) as me:
        await me.ask("a long one")
        await me.sees("starting Gemini CLI…")
        await me.does("ctrl+q", "A run is still active.", "a long one")
        await me.press("down", "down", "enter")
        may_end.set()
        await me.until(lambda: me.app._exit)
    assert not list_runs(runs_dir())


@pytest.mark.parametrize("stop", [True, False], ids=["stop", "leave"])
async def test_leaving_asks_about_a_run_that_is_being_started(
    home: Path,
    project: Path,
    fake_cli: FakeCli,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    stop: bool,
) -> None:
    program, gate = fake_cli(START, "wait"), tmp_path / "gate"
    monkeypatch.setattr("gemtui.agent.detect.ANSWER_LIMIT", PATIENCE)
    async with runner(home, project) as me:
        await me.until(lambda: "gemini 0.61.0" in me.text)
        os.mkfifo(gate)
        text = program.read_text().replace("--version) echo", f"--version) /bin/cat {gate}; echo")
        program.write_text(text)
        await me.ask("a long one")
        await me.sees("starting Gemini CLI…")
        await me.does("ctrl+q", "A run is still active.", "a long one")
        await me.press("down", *["down"] * stop, "enter")
        await asyncio.to_thread(gate.write_text, "")
        await me.until(lambda: me.app._exit)
    (run,) = list_runs(runs_dir())
    assert run.alive is not stop
    assert run.status == ("interrupted" if stop else None)
    for left in me.app.runs.alive:
        left.stop()
        await left.run.wait()


async def test_a_run_is_being_started_from_enter_on_and_no_longer_when_it_was_not_started(
    home: Path, project: Path, fake_cli: FakeCli, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_cli(START, END)
    looked = threading.Event()

    def look(folder: Path, environ: object) -> FolderTrust:
        assert looked.wait(PATIENCE)
        return FolderTrust.NOBODY

    monkeypatch.setattr("gemtui.agent.trust.trust_of", look)
    async with runner(home, project) as me:
        await me.ask("a long one")
        await me.sees("starting Gemini CLI…")
        await me.does("ctrl+q", "A run is still active.", "a long one")
        await me.press("enter")
        looked.set()
        await me.sees("Trust this folder?")
        await me.press("enter")
        await me.lacks("starting Gemini CLI")
        assert me.pane.prompt.text == "a long one"
        await me.press("ctrl+q")
        await me.until(lambda: me.app._exit)
    assert not list_runs(runs_dir())


@pytest.mark.usefixtures("no_cli")
async def test_without_a_cli_the_pane_says_what_to_do(home: Path, tmp_path: Path) -> None:
    async with runner(home, tmp_path) as me:  # which is not trusted, but that is asked later
        await me.sees("Gemini CLI is not on PATH", "no Gemini CLI", "another agent is installed")
        await me.ask("hello")
        await me.is_told("was not started")
        assert me.pane.prompt.text == "hello"


@pytest.mark.usefixtures("no_cli")
async def test_with_claude_code_alone_a_run_is_of_claude_code_and_asks(
    home: Path, project: Path, tmp_path: Path
) -> None:
    program = tmp_path / "bin/claude"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho '2.1.332 (Claude Code)'\n")
    program.chmod(0o755)
    (tmp_path / "other").mkdir()
    async with runner(home, project) as me:
        await me.sees("claude 2.1.332", "mode ask", "press enter to start")
        me.pane.new_run_in(tmp_path / "other")
        await me.sees("/other", "claude 2.1.332", "mode ask")


async def test_before_a_run_its_command_is_shown_its_options_taken_and_files_offered(
    home: Path, project: Path, fake_cli: FakeCli
) -> None:
    fake_cli()
    (project / "notes two.md").touch()
    (project / "src").mkdir()
    (project / "src/reader.py").touch()
    async with runner(home, project, BOTH) as me:
        await me.type("hello @read")
        await me.sees("src/reader.py")
        await me.press("tab")
        assert me.pane.prompt.text == "hello @src/reader.py "
        await me.type("and @not")
        await me.sees("notes two.md")
        await me.press("enter")
        assert me.pane.prompt.text == r"hello @src/reader.py and @notes\ two.md "
        await me.press("ctrl+t")
        await me.sees(
            "The command that enter will run", "--output-format=stream-json --session-id="
        )
        await me.press("escape")

        await me.does("ctrl+o", "The next run", "pro, flash, opus")
        away = me.app.screen.query_one("#away", Select)
        assert away.disabled
        await me.type("gemini-2.5-pro")
        await me.does("ctrl+s", "model gemini-2.5-pro")
        await me.press("ctrl+o", "tab")
        await me.type("/nowhere")
        await me.does("ctrl+s", "✗ /nowhere is not a folder")
        await me.type("x")
        await me.lacks("is not a folder")
        away = me.app.screen.query_one("#away", Select)
        me.app.screen.query_one("#ask", Checkbox).focus()
        await me.press("space")
        await me.until(lambda: not away.disabled)


async def into(me: Runner, **fields: str | bool) -> None:
    """Fill fields of the dialog about the next run, and take it."""
    await me.press("ctrl+o")
    await me.on(OptionsScreen)
    for name, value in fields.items():
        me.app.screen.query_one(f"#{name}").focus()
        field = me.app.screen.query_one(f"#{name}")
        if isinstance(field, Input):
            await me.press("end", "ctrl+u")
            await me.type(str(value))
        elif isinstance(field, Select):
            field.value = value
        elif isinstance(field, Checkbox) and field.value is not value:
            await me.press("space")
    await me.press("ctrl+s")


WRONG = (
    ("timeout", "soon", "'soon' is not a duration"),
    ("timeout", "0", "must be more than 0 seconds"),
    ("idle_timeout", "-1", "'-1' is not a duration"),
    ("max_turns", "-1", "must be 0 or more"),
    ("only_tools", "read_fil", "is not a tool; did you"),
    ("disallowed_tools", "web*", "'web*' contains *, but names"),
    ("include_directories", "nothing", "nothing is not a folder"),
)


async def test_what_is_wrong_is_said_beside_its_field(
    home: Path, project: Path, fake_cli: FakeCli
) -> None:
    fake_cli()
    async with runner(home, project, NARROW) as me:
        await me.press("ctrl+o")
        await me.on(OptionsScreen)
        for field, typed, problem in WRONG:
            me.app.screen.query_one(f"#{field}").focus()
            await me.press("end", "ctrl+u")
            await me.type(typed)
            await me.does("ctrl+s", "✗", problem)
            assert me.app.focused is me.app.screen.query_one(f"#{field}")
            below = me.app.screen.query_one(f"#{field}-problem")
            assert below.region.y == me.app.focused.region.bottom
            await me.press("ctrl+u")


async def test_what_a_run_may_do_reaches_the_cli_and_is_seen_before(
    home: Path, project: Path, fake_cli: FakeCli, tmp_path: Path
) -> None:
    fake_cli(START, says("Yes."), END)
    (project / "lib").mkdir()
    async with runner(home, project) as me:
        tools = {"only_tools": "read_file, glob", "disallowed_tools": "glob"}
        limits = {"timeout": "10m", "idle_timeout": "90", "max_turns": "7"}
        await into(me, include_directories="lib", sandbox=True, trust=True, **tools, **limits)
        await me.sees("trust  1 more folder  only 2 tools  1 tool denied  sandbox  7 turns")
        await me.does("ctrl+t", "# gemtui stops the run after 10m", "90s without output")
        await me.does("end", "--sandbox")
        await me.sees("GEMINI_CLI_TRUST_WORKSPACE=true", f"--include-directories={project / 'lib'}")
        await me.press("escape")
        await me.ask("go")
        await me.ended()
        given = (tmp_path / "words").read_text().splitlines()
        assert {"--sandbox", f"--include-directories={project / 'lib'}"} <= {*given}
        (run,) = list_runs(runs_dir())
        request = run.folder.request()
        assert request is not None
        assert (request.timeout, request.idle_timeout) == (600, 90)
        assert request.environ["GEMINI_CLI_TRUST_WORKSPACE"] == "true"
        assert 'toolName = "glob"' in (run.folder.path / "policy-first.toml").read_text()
        await me.sees("1 more folder")  # trust was for one run


async def test_a_folder_keeps_its_options_and_forgets_them(
    home: Path, project: Path, fake_cli: FakeCli
) -> None:
    fake_cli()
    async with runner(home, project) as me:
        await into(me, timeout="10m", approval_mode="yolo", trust=True, remember=True)
        await me.until(lambda: "Remembered for this folder, except yolo, trust." in me.said)
        await me.sees("mode yolo  trust  timeout 10m")
    async with runner(home, project) as me:
        await me.sees("Remembered for this folder: timeout 10m")
        await me.sees("mode default  timeout 10m")
        assert not me.pane.options.trust
        await into(me, remember=False)
        await me.is_told("no longer remembered")
        await me.sees("mode default  timeout 10m")
    async with runner(home, project) as me:
        await me.does("ctrl+o", "[ ] these options for this folder")
        assert me.pane.options == AgentOptions(cwd=project)


async def test_what_one_folder_keeps_is_not_for_another(
    home: Path, project: Path, fake_cli: FakeCli, tmp_path: Path
) -> None:
    fake_cli()
    other = tmp_path / "other"
    other.mkdir()
    kept = AgentOptions(cwd=other, disallowed_tools=["web_fetch"])
    await asyncio.to_thread(remember_options, kept)
    async with runner(home, project) as me:
        me.pane.next_run.options = replace(me.pane.options, model="m", trust=True)
        me.pane.prepare(other)
        await me.sees("Remembered for this folder: 1 tool denied")
        assert me.pane.options == kept
        me.pane.prepare(project)
        await me.until(lambda: me.pane.options == AgentOptions(cwd=project))


async def test_a_run_waits_for_what_its_folder_keeps(
    home: Path, project: Path, fake_cli: FakeCli
) -> None:
    fake_cli(START, says("Yes."), END)
    await asyncio.to_thread(remember_options, AgentOptions(cwd=project, timeout=600))
    async with person(home / ".gemini", project=project) as me:
        await me.burst("2go\r")
        await me.sees("Yes.")
        (run,) = list_runs(runs_dir())
        request = run.folder.request()
        assert request is not None
        assert request.timeout == 600
        await me.painted(Runner(me.app, me.pilot).pane)


async def test_a_policy_to_run_with_goes_before_what_the_folder_keeps(
    home: Path, project: Path, fake_cli: FakeCli, tmp_path: Path
) -> None:
    fake_cli()
    kept = AgentOptions(cwd=project, timeout=600, approval_mode="plan")
    await asyncio.to_thread(remember_options, kept)
    async with person(home / ".gemini", project=project) as me:
        policies = (tmp_path / "work.toml",)
        await me.app.runs.show_with_policies(policies, ApprovalMode.AUTO_EDIT)
        await me.sees("mode auto_edit  policy work  timeout 10m")
        pane = Runner(me.app, me.pilot).pane
        assert pane.options == replace(
            kept, policies=policies, approval_mode=ApprovalMode.AUTO_EDIT
        )


async def test_broken_options_of_a_folder_are_said_and_not_used(
    home: Path, project: Path, fake_cli: FakeCli
) -> None:
    fake_cli()
    await asyncio.to_thread(remember_options, AgentOptions(cwd=project, timeout=600))
    (path,) = (state_dir() / "run-options").iterdir()
    path.write_text("{")
    async with runner(home, project) as me:
        await me.is_told("can't be used: not valid JSON")
        assert me.pane.options == AgentOptions(cwd=project)


async def test_a_late_second_enter_starts_nothing_and_earlier_prompts_come_back(
    home: Path, project: Path, fake_cli: FakeCli
) -> None:
    fake_cli(START, says("Yes."), END)
    async with runner(home, project) as me:
        await me.ask("first")
        await me.sees("Yes.", "✓ done")
        await me.ended()
        for late in (PromptArea.Submitted("first"), PromptArea.SaidNow("first")):
            me.pane.prompt.post_message(late)
        await me.pilot.pause()
        await me.until(lambda: not me.pane.asking)
        assert len(list_runs(runs_dir())) == 1

        await me.type("draft")
        await me.press("up")
        assert me.pane.prompt.text == "first"
        await me.press("down")
        assert me.pane.prompt.text == "draft"


async def test_a_run_of_another_gemtui_is_seen_and_not_asked_about(
    home: Path, project: Path, fake_cli: FakeCli
) -> None:
    fake_cli(START, says("Not yours."), "wait")
    run = await asyncio.to_thread(UnguardedAdapter().start, "theirs", AgentOptions(cwd=project))
    async with person(home / ".gemini", WIDE, project=project) as me:
        await me.sees("2 Run ●")
        await me.press("ctrl+q")
        await me.until(lambda: me.app._exit)
    assert run.exit() is None
    run.abort()
    await run.wait()
