"""What is the same on every screen: help, commands, themes, plain terminals."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest
from textual.color import Color
from textual.widgets import OptionList

from gemtui.config import Config, load_config
from gemtui.kept.run_copies import aftermath_of, keep_before
from gemtui.paths import config_file, runs_dir
from gemtui.runs.limits import MOST_RUNS
from gemtui.ui.kit.command_screen import CommandList, CommandScreen
from gemtui.ui.kit.keys import BY_ID, KEYS, Where, reachable
from tests.runs.test_listing import add_run
from tests.terminal import Terminal
from tests.ui.draw.test_theme import contrast
from tests.ui.people import NARROW, WIDE, Person, copy_store, person

DOWN, ESCAPE, F2, QUIT = "\x1b[B", "\x1b[27u", "\x1bOQ", "\x11"


# --- help ----------------------------------------------------------------------------------------


async def test_help_lists_the_keys_of_where_one_is(store: Path) -> None:
    async with person(store, NARROW) as me:
        await me.does("question_mark", "Keys", "Open this session", "More")
        await me.does("escape enter question_mark", "Find in this transcript", "More")
        assert "Open this session" not in me.text


async def test_help_shows_fifteen_keys_that_fit_then_all(store: Path) -> None:
    async with person(store, NARROW) as me:
        await me.does("question_mark", "More")
        rows = me.app.screen.query_one(CommandList)
        assert len(rows.items) == 16
        assert rows.virtual_size.height <= rows.size.height
        await me.press("pagedown", "pagedown", "enter")
        await me.until(lambda: len(rows.items) > 40)
        assert Where.LIST in rows.items


async def test_help_is_searched_and_does_what_is_chosen(store: Path) -> None:
    async with person(store, NARROW) as me:
        await me.press("question_mark")
        await me.type("full session id")
        assert isinstance(me.app.screen, CommandScreen)
        assert me.app.screen.query_one(CommandList).items == [BY_ID["list.copy_id"]]
        await me.press("enter")
        await me.until(lambda: me.app.clipboard == me.chosen.id)


async def test_the_words_for_every_key_fit_a_narrow_terminal(store: Path) -> None:
    async with person(store, NARROW) as me:
        await me.app.push_screen(CommandScreen("Keys", KEYS))
        await me.sees("Keys", "Show the keys for this screen")
        rows = me.app.screen.query_one(CommandList)
        lines = [rows.render_line(place).text for place in range(len(rows.items))]
        assert [line for line in lines if "…" in line] == []


async def test_help_opens_from_an_input_with_f1_and_the_footer_says_so(store: Path) -> None:
    async with person(store, NARROW) as me:
        await me.does("slash", "f1 keys")
        await me.does("f1", "Keep the filter and go to the list")


# --- selected text -------------------------------------------------------------------------------


async def test_selected_text_can_be_read_in_every_theme(store: Path) -> None:
    async with person(store) as me:
        await me.press("enter")
        for name in me.app.available_themes:
            me.app.theme = name
            await me.pilot.pause()
            me.view.text_select_all()
            await me.pilot.pause()
            for ink, ground in selected(me):
                assert ink != ground
                assert contrast(ink, ground) >= 4 or me.app.current_theme.ansi, name


def selected(me: Person) -> list[tuple[Color, Color]]:
    """Ink and ground of what is selected in the first rows of the transcript."""
    colours = [
        (Color.from_rich_color(part.style.color), Color.from_rich_color(part.style.bgcolor))
        for row in range(6)
        for part in me.view.render_line(row)
        if part.style and part.style.bgcolor == me.view.selection_style.bgcolor
    ]
    assert colours
    return colours


async def test_selected_text_is_marked_without_colours(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    async with person(store) as me:
        assert me.view.selection_style.reverse


async def test_the_chosen_row_of_a_dialog_is_marked_without_colours(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    async with person(store) as me:
        await me.does("down e", "Markdown, to read", "Plain text")
        rows = me.app.screen.query_one(OptionList)
        first, second, *_ = [rows.render_line(y)._segments[0] for y in range(3)]
        assert first.text.startswith("Markdown")
        assert first.style is not None
        assert first.style.underline
        assert second.style is not None
        assert not second.style.underline


# --- commands ------------------------------------------------------------------------------------


async def test_commands_of_the_other_pane_can_be_run(store: Path) -> None:
    async with person(store, WIDE) as me:
        await me.does("down", "frog leaps in")
        await me.press("ctrl+p")
        await me.type("transcript fold all")
        await me.sees("Fold or unfold everything")
        await me.does("enter", "all folded")


async def test_commands_are_those_of_what_is_shown(store: Path) -> None:
    async with person(store, NARROW) as me:
        ids = {key.id for key, _ in reachable(me.home)}
        assert {"list.open", "sessions.delete", "sessions.export", "app.quit"} <= ids
        assert "transcript.fold" not in ids
        await me.press("enter")
        ids = {key.id for key, _ in reachable(me.home)}
        assert {"transcript.fold", "sessions.delete", "sessions.export"} <= ids
        assert "list.open" not in ids


# --- themes --------------------------------------------------------------------------------------


async def test_a_theme_is_previewed_and_escape_brings_the_old_one_back(store: Path) -> None:
    async with person(store, NARROW) as me:
        await me.press("f2", "down")
        assert me.app.theme == "gemtui-light"
        await me.press("escape")
        assert me.app.theme == "gemtui-dark"
        assert not config_file().exists()


async def test_a_theme_that_is_chosen_is_kept(store: Path) -> None:
    async with person(store, NARROW) as me:
        await me.press("f2", "down", "enter")
        await me.until(config_file().exists)
        assert load_config(config_file()).theme == "gemtui-light"
        await me.is_told("config.toml")


async def test_an_unknown_theme_is_said_and_the_default_one_taken(store: Path) -> None:
    async with person(store, NARROW, Config(theme="purple")) as me:
        await me.is_told('no theme "purple"')
        assert me.app.theme == Config().theme


# --- settings ------------------------------------------------------------------------------------


async def test_settings_for_the_start_of_the_list_act(store: Path) -> None:
    config = Config(group=True)
    async with person(store, NARROW, config, project=Path("/home/dev/notes")) as me:
        assert me.rows.view.grouped


async def test_thoughts_can_be_unfolded_from_the_start(store: Path) -> None:
    for fold, mark in ((True, "▸ thought"), (False, "▾ thought")):
        async with person(store, NARROW, Config(fold_thoughts=fold)) as me:
            await me.does("slash 'rename enter", mark)


# --- plain terminals -----------------------------------------------------------------------------


def terminal(store: Path, *words: str, **environ: str) -> Terminal:
    return Terminal(
        [sys.executable, "-m", "gemtui", *words],
        environ={**os.environ, "GEMINI_CLI_HOME": str(store.parent), **environ},
        folder=store.parent,
    )


def settle(terminal: Terminal) -> None:
    """Read until nothing more is drawn: a dialog may be drawn twice before it stands."""
    while not terminal.rests():
        pass


@pytest.mark.deep
def test_ascii_draws_nothing_else_on_any_screen(store: Path) -> None:
    with terminal(store, "--ascii") as me:
        me.shows("first question")
        me.press("/")
        me.shows("to the list")
        me.press(*"rename")
        me.shows("1 of")
        me.press(DOWN)
        me.hides("to the list")
        me.until(lambda: me.text.isascii(), "a list in ASCII")
        me.press("\r")
        me.shows("follow")
        for key, shown in (
            ("?", "Keys"),
            ("i", "esc close"),
            ("e", "Markdown"),
            ("v", '"content"'),
            (F2, "gemtui-light"),
            ("\x10", "Commands"),
        ):
            me.press(key)
            me.shows(shown)
            settle(me)
            assert me.text.isascii(), [char for char in me.text if not char.isascii()]
            me.press(ESCAPE)
            me.hides(shown)
        me.press(QUIT)
        assert me.wait() == 0


@pytest.mark.deep
def test_no_color_sends_no_colours_and_still_shows_where_one_is(store: Path) -> None:
    with terminal(store, NO_COLOR="1") as me:
        me.shows("first question", "? keys", "[1 Sessions]", "▌")
        me.press("?")
        me.shows("esc close")
        me.press(ESCAPE)
        me.hides("esc close")  # a key that comes while a dialog closes is dropped
        me.press(QUIT)
        assert me.wait() == 0
    styles = {
        int(n) for sgr in re.findall(rb"\x1b\[([0-9;]*)m", me.raw) for n in sgr.split(b";") if n
    }
    assert not styles & {*range(30, 39), *range(40, 49), *range(90, 98), *range(100, 108)}
    assert 1 in styles


# --- start ---------------------------------------------------------------------------------------


async def test_what_ended_runs_have_left_is_tidied_at_the_start(store: Path) -> None:
    place = runs_dir()
    left = add_run(place, "left")
    keep_before(left, store, "63a18d40")
    for number in range(MOST_RUNS + 1):
        add_run(place, f"run{number}", age=number + 1)
    async with person(store, NARROW) as me:
        await me.until(lambda: aftermath_of(left) is not None)
        await me.until(lambda: len(list(place.iterdir())) == MOST_RUNS)


def test_the_garbage_collector_looks_seldom_and_not_at_what_is_there_from_the_start(
    tmp_path: Path,
) -> None:
    copy_store(tmp_path)
    environ = dict(os.environ, GEMINI_CLI_HOME=str(tmp_path / "home"))
    script = (
        "import gc; from gemtui.cli import main; main([]); "
        "print('frozen', gc.get_freeze_count() > 10_000, gc.get_threshold()[0])"
    )
    words = [sys.executable, "-c", script]
    with Terminal(words, environ=environ, folder=tmp_path) as terminal:
        terminal.shows("Write a haiku file", "? keys")
        terminal.press("q")
        assert terminal.wait() == 0
        assert b"frozen True 5000" in terminal.raw


async def test_a_worker_that_misses_a_removed_widget_while_the_app_ends_is_no_error(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with person(store) as me:
        cancel_all = me.app.workers.cancel_all

        async def look() -> None:
            me.app.query_one("#removed")

        def start_one_late() -> None:
            cancel_all()
            me.app.run_worker(look())

        monkeypatch.setattr(me.app.workers, "cancel_all", start_one_late)
