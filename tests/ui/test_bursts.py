"""Keys that come in one read: a dialog answers once, and what is behind that goes to nobody."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path
from typing import Any

import pytest
from textual import events
from textual.app import App
from textual.widgets import Input, TextArea

from gemtui.agent.options import AgentOptions
from gemtui.agent.run_folder import RunFolder
from gemtui.paths import runs_dir
from gemtui.policy.edit import store as policies
from gemtui.policy.model.rules import ApprovalMode
from gemtui.runs.ending import RunState
from gemtui.runs.listing import Run, list_runs
from gemtui.text import Clean
from gemtui.ui.kit import app_base
from gemtui.ui.kit.app_base import AnsweringScreen
from gemtui.ui.kit.dialogs import AskScreen, Choice, ChooseScreen, ConfirmScreen
from gemtui.ui.run.list_dialog import ChosenRun, RunAction, RunListScreen
from gemtui.ui.run.mode import RUN_MODE
from gemtui.ui.run.options_dialog import OptionsScreen
from gemtui.ui.run.screen import RunScreen
from gemtui.ui.sessions.screen import SessionsScreen
from gemtui.ui.transcript.block_keys import Copy, CopyScreen
from tests.fake_cli import INIT, OK, FakeCli, says
from tests.patience import PATIENCE
from tests.ui.people import NARROW, NOW, WIDE, Person, person, type_at

F1, F2, DOWN, ESCAPE, END = "\x1bOP", "\x1bOQ", "\x1b[B", "\x1b", "\x1b[F"


async def test_a_dialog_answers_once_and_a_key_pressed_twice_opens_one(store: Path) -> None:
    async with person(store, NARROW) as me:
        await me.press("down")
        for opens, shows in ((F2, "enter apply"), ("D", "Go to a day"), ("e", "Export")):
            for keys in ("\r\r", "\r\r\r\r", f"\r{ESCAPE}", f"{ESCAPE}\r\r"):
                await me.burst(opens)
                await me.sees(shows)
                await me.burst(keys)
                await me.on(SessionsScreen)
                assert not me.home.reading, "the key behind the answer opened the session"

        await me.burst("eee")
        await me.sees("Markdown, to read")
        assert len(me.app.screen_stack) == 2
        await me.press("escape")
        assert isinstance(me.app.screen, SessionsScreen)


async def test_a_command_chosen_twice_is_run_once(store: Path) -> None:
    async with person(store, WIDE) as me:
        await me.does("ctrl+p 'export", "Export this session to a file")
        await me.burst("\r\r\r")
        await me.sees("Markdown, to read")
        assert len(me.app.screen_stack) == 2


async def test_the_themes_are_shown_in_six_columns(store: Path) -> None:
    async with person(store, (6, 10)) as me:
        await me.burst(F2)
        await me.burst(DOWN)
        await me.burst("\x1b[6~\x1b[5~")
        await me.burst(f"{END}\r\r")
        await me.on(SessionsScreen)


async def test_a_folder_is_trusted_once_and_enter_pressed_twice_starts_one_run(
    home: Path, tmp_path: Path, fake_cli: FakeCli
) -> None:
    fake_cli(f"print:{INIT}", says("Hello."), f"print:{OK}")
    project = tmp_path / "project"
    project.mkdir()
    async with person(home / ".gemini", WIDE, project=project) as me:
        await me.does("2", "enter starts a run")
        await me.type("hi")
        await me.burst("\r\r")
        await me.sees("Trust this folder?")
        await me.press("down")
        await me.burst("\r\r\r")
        await me.sees("Hello.")
        await me.until(lambda: not me.app.runs.alive)
        assert len(list_runs(runs_dir())) == 1

        await me.type("again")
        await me.burst("\r")
        await me.burst("\r")
        await me.sees("again", "Hello.")
        await me.until(lambda: len(list_runs(runs_dir())) == 2 and not me.app.runs.alive)


async def test_who_comes_to_the_run_pane_while_it_is_made_waits_for_it(store: Path) -> None:
    async with person(store, WIDE) as me:
        made = me.app.switch_mode(RUN_MODE)
        await me.app.runs.show_with_policies((), ApprovalMode.PLAN)
        await made
        assert isinstance(me.app.screen, RunScreen)
        await me.sees("mode plan")


async def test_a_run_that_ends_while_the_run_pane_is_made_is_told_of(
    home: Path, tmp_path: Path, fake_cli: FakeCli
) -> None:
    gate = tmp_path / "gate"
    fake_cli(f"print:{INIT}", f"until:{gate}", says("Done."), f"print:{OK}")
    project = tmp_path / "project"
    project.mkdir()
    (home / ".gemini/trustedFolders.json").write_text(json.dumps({str(project): "TRUST_FOLDER"}))
    async with person(home / ".gemini", WIDE, project=project) as me:
        registry = me.app.runs.registry
        run = await registry.start("go", AgentOptions(cwd=project))
        made = me.app.switch_mode(RUN_MODE)
        me.app.runs.run_changed(run)
        await made
        gate.touch()
        await me.until(lambda: not run.alive and run.told is not None)
        await me.sees("Done.")


def _run(prompt: str) -> Run:
    return Run(
        folder=RunFolder(Path("/nowhere") / prompt),
        state=RunState.LOST,
        started=NOW,
        ended=None,
        status=None,
        complete=None,
        exit=None,
        outcome=None,
        prompt=prompt,
        model=None,
        cwd="/work",
        session=None,
        size=0,
    )


RUNS = (_run("first"), _run("second"))
FIRST, SECOND = Choice("first", Clean("First")), Choice("second", Clean("Second"))


DIALOGS: list[tuple[AnsweringScreen[Any], list[str], object]] = [
    (ChooseScreen(Clean("Which?"), (), (FIRST, SECOND)), ["enter"], "first"),
    (ChooseScreen(Clean("Which?"), (), (FIRST, SECOND)), ["down", "enter"], "second"),
    (ChooseScreen("Which?", (), (FIRST, SECOND), filters=True), [*"sec", "enter"], "second"),
    (ChooseScreen("Which?", (), (FIRST, SECOND), filters=True), ["down", "enter"], "second"),
    (RunListScreen(RUNS), ["down", "enter"], ChosenRun(RUNS[1], RunAction.OPEN)),
    (RunListScreen(RUNS), ["slash", *"second", "enter"], ChosenRun(RUNS[1], RunAction.OPEN)),
    (CopyScreen((Copy("all", "text"),)), ["down", "enter"], Copy("all", "text")),
    (AskScreen(Clean("?"), value="", problem=lambda _: ""), [*"abc", "enter"], "abc"),
    (ConfirmScreen(Clean("?"), Clean("?"), (), yes="Yes", no="No"), ["enter"], False),
]


async def test_a_dialog_that_is_just_being_made_takes_its_first_keys(store: Path) -> None:
    answers: list[object] = []
    async with person(store, NARROW) as me:
        for screen, keys, answer in DIALOGS:
            me.app.push_screen(screen, answers.append)
            for key in keys:
                await me.app.on_event(events.Key(key, key if len(key) == 1 else None))
            await me.until(lambda: answers)
            assert [answers.pop()] == [answer]
            await me.on(SessionsScreen)


@pytest.mark.parametrize(
    "opens",
    [
        pytest.param("/", id="filter"),
        pytest.param("j\r/", id="find"),
        pytest.param("je\t", id="export"),
        pytest.param("2", id="prompt"),
        pytest.param("2\x0f", id="options"),
        pytest.param("2\x07", id="prompt-file"),
        pytest.param("3/", id="rules"),
        pytest.param("3a", id="rule"),
        pytest.param("3t", id="call"),
    ],
)
async def test_a_long_paste_is_cut_with_a_word(store: Path, opens: str) -> None:
    text = "e\u0301漢👩‍👩‍👧 " * 20_000
    async with person(store, WIDE) as me:
        for key in opens:
            await me.burst(key)
        await me.until(lambda: isinstance(me.app.focused, Input | TextArea))
        await me.burst(f"\x1b[200~{text}\x1b[201~")
        await me.burst("a")
        field = me.app.focused  # a dialog may have opened only now
        assert isinstance(field, Input | TextArea)
        shown = field.value if isinstance(field, Input) else field.text
        assert 0 < len(shown) <= 50_000
        await me.is_told("fit here")


@pytest.mark.parametrize("opens", ["ctrl+p", "question_mark"])
async def test_a_long_paste_names_no_command(store: Path, opens: str) -> None:
    async with person(store, WIDE) as me:
        await me.press(opens)
        await me.burst(f"\x1b[200~{'x' * 20_000}\x1b[201~")
        assert isinstance(me.app.focused, Input)
        assert len(me.app.focused.value) <= 2_000


async def test_the_folder_may_go_while_the_app_is_open(store: Path) -> None:
    async with person(store, WIDE) as me:
        Path.cwd().rmdir()
        for keys in ("je\tname", "2\x07name\r", "2\x0f\x13", "3at", "2hello\r"):
            for key in keys:
                await me.burst(key)
            assert me.app._exception is None, keys
            await me.comes_home()


BURSTS = (
    ("2", "wrong\x15right", "right"),
    ("2", "one\x01two \x05!", "two one!"),
    ("2", "one\x1b\rtwo", "one\ntwo"),
    ("", "/wrong\x15right", "right"),
    ("j\r", "/wrong\x15right", "right"),
    ("", "je\t\x05\x15name", "name"),
)


async def test_keys_of_one_burst_act_in_their_order(store: Path) -> None:
    async with person(store, WIDE) as me:
        for opens, keys, written in BURSTS:
            for key in opens:
                await me.burst(key)
            await me.burst(keys)
            field = me.app.focused
            assert isinstance(field, Input | TextArea), keys
            assert (field.value if isinstance(field, Input) else field.text) == written
            field.clear()
            await me.comes_home()


async def test_a_screen_gets_no_key_before_it_has_its_widgets(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app_base, "_HELD", 0.0)
    async with person(store) as me:
        await me.does("e", "Export")
        screen = me.app.screen
        assert isinstance(screen, AnsweringScreen)
        screen.takes_keys = False  # as it is until the screen has all of them
        type_at(me.app, "\x1b[27u")
        await asyncio.sleep(0.1)
        assert me.app.has_pending_keys
        assert me.app.screen is screen
        screen.takes_keys = True
        await me.on(SessionsScreen)


@asynccontextmanager
async def preparing_a_dialog(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[tuple[Person, threading.Event]]:
    """Somebody who has typed ctrl+o and a word: the dialog waits for the event."""
    begun, prepared, find = threading.Event(), threading.Event(), policies.list_policies

    def slowly() -> tuple[policies.PolicyFile, ...]:
        begun.set()
        prepared.wait(PATIENCE)
        return find()

    monkeypatch.setattr(policies, "list_policies", slowly)
    async with person(store) as me:
        await me.does("2", "enter starts a run")
        type_at(me.app, "\x0fheron")
        assert await asyncio.to_thread(begun.wait, PATIENCE)
        yield me, prepared


async def test_keys_typed_while_a_dialog_is_prepared_are_for_the_dialog(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with preparing_a_dialog(store, monkeypatch) as (me, prepared):
        for _ in range(20):
            await asyncio.sleep(0)
        assert me.app.has_pending_keys
        prepared.set()
        await me.on(OptionsScreen)
        await me.until(lambda: me.app.screen.query(Input).first().value == "heron")
        assert isinstance(me.app.screen_stack[0], RunScreen)


async def test_ctrl_q_ends_the_app_before_keys_that_wait(store: Path) -> None:
    async with person(store) as me:
        await me.press("/")
        field = me.app.focused
        assert isinstance(field, Input)
        type_at(me.app, f"{'x' * 5_000}\x11")
        await me.until(lambda: me.app._exit)
        assert len(field.value) < 100


async def test_ctrl_q_ends_the_app_while_a_dialog_is_prepared(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with preparing_a_dialog(store, monkeypatch) as (me, prepared):
        type_at(me.app, "\x11")
        await me.until(lambda: me.app._exit)
        prepared.set()


async def test_what_was_typed_before_another_program_ran_is_dropped(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(App, "suspend", lambda _app: nullcontext())
    async with person(store) as me:
        await me.does("e", "Export")
        type_at(me.app, "\x1b[27u")
        with me.app.suspend():
            pass
        await me.burst("\t")
        assert not isinstance(me.app.screen, SessionsScreen)
