"""No widget takes text that is not clean: what types and the linter can't see is found here."""

from __future__ import annotations

import ast
from collections.abc import Hashable, Iterator
from pathlib import Path

import pytest
from rich.segment import Segment
from textual.app import App, ComposeResult
from textual.color import Color
from textual.content import Content

import gemtui.ui
from gemtui.agent.options import AgentOptions
from gemtui.config import Config
from gemtui.ui.app import GemtuiApp
from gemtui.ui.kit.app_base import FieldValues, Start
from gemtui.ui.kit.clean_widgets import (
    Dialog,
    Input,
    Label,
    NoControls,
    Option,
    OptionList,
    Select,
    Static,
    Tick,
)
from gemtui.ui.run.options_dialog import ChosenOptions, OptionsScreen
from tests.hostile import ACTS
from tests.patience import turns_until
from tests.rows import each_row
from tests.ui.quick_pilot import drawn

PLACE = Path(gemtui.ui.__file__).parent
DOOR = PLACE / "kit" / "clean_widgets.py"
ATTRIBUTES = ("border_title", "border_subtitle", "title", "sub_title", "tooltip", "placeholder")
"""What Textual draws of a widget or an app by assignment; `name_frame` sets the borders."""
CALLS = ("from_markup", "notify", "visualize", "set_content", "set_title")
"""What takes text, or reads markup in it."""
RAW = "raw \x1b]0;owned\x07[/x][@click=app.quit]boom[/]\u202e"


def raw_uses(source: str) -> Iterator[tuple[int, str]]:
    """Where text could reach a widget without having been cleaned: line and what it is."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Assign(targets=targets, value=value) if not _is_own(value):
                names = [each for target in targets for each in ast.walk(target)]
                for each in names:
                    if isinstance(each, ast.Attribute) and each.attr in ATTRIBUTES:
                        yield node.lineno, each.attr
            case ast.Call(func=ast.Attribute(attr=name)) if name in CALLS:
                yield node.lineno, name
            case ast.Call(keywords=keywords):
                for keyword in keywords:
                    if keyword.arg == "tooltip" and not _is_key_help(keyword.value):
                        yield node.lineno, "tooltip"
                    if keyword.arg == "markup" and not _is_false(keyword.value):
                        yield node.lineno, "markup"


def _is_own(node: ast.expr) -> bool:
    """Words of ours, as they stand in the source."""
    return isinstance(node, ast.Constant)


def _is_false(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is False


def _is_key_help(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "help"


@each_row(
    "source",
    [
        "dialog.border_title = name",
        "dialog.border_title, dialog.border_subtitle = name, keys",
        "self.app.sub_title = name",
        "Content.from_markup(name)",
        "app.notify(name)",
        "Widget(tooltip=name)",
        "self.query_one(Input).placeholder = name",
        "Static(name, markup=True)",
    ],
)
def test_a_raw_use_is_found(source: str) -> None:
    assert list(raw_uses(source))


def test_the_screens_have_no_other_way_to_a_widget_than_the_door() -> None:
    found = [
        (path.relative_to(PLACE).as_posix(), what)
        for path in sorted(PLACE.rglob("*.py"))
        if path != DOOR
        for _, what in raw_uses(path.read_text())
    ]
    assert found == [("kit/app_base.py", "notify")]  # `AppBase.say`, which cleans


class Careless(App[None]):
    """An app that gives raw text to everything."""

    def compose(self) -> ComposeResult:
        with Dialog(RAW, RAW):
            yield Static(RAW)
            yield Label(RAW)
            yield Tick(RAW, id="tick")
            yield Input(RAW)
            yield Input(placeholder=RAW)
            yield Select({"a": RAW}, value="a", id="select")
            yield OptionList(Option(RAW), Option(Content(RAW, strip_control_codes=False)))


async def test_no_markup_is_read_in_what_a_widget_is_given() -> None:
    app = Careless()
    async with app.run_test(size=(100, 50)) as pilot:
        static = app.query_one(Static)
        static.update(RAW)
        await pilot.pause()
        lines = drawn(app)
        assert sum("boom" in line.text for line in lines) == 8
        assert not ACTS.search("".join(line.text for line in lines))
        assert "[@click=app.quit]boom[/]" in str(static.render())
        assert app.query_one(Input).value == "raw ␛]0;owned␇[/x][@click=app.quit]boom[/]⟨U+202E⟩"


def test_what_would_act_on_the_terminal_ends_at_the_last_door() -> None:
    assert any(isinstance(each, NoControls) for each in GemtuiApp.get_line_filters(_app()))
    plain = [Segment("plain \xa0 é 日本")]
    black = Color(0, 0, 0)
    assert NoControls().apply(plain, black) == plain
    *cleaned, _ = NoControls().apply([Segment(RAW + "\x9b2J\u2028\ud800"), Segment(" " * 9)], black)
    text = "".join(each.text for each in cleaned)
    assert text == "raw ␛]0;owned␇[/x][@click=app.quit]boom[/]\ufffd\ufffd2J\ufffd\ufffd"


@each_row(
    ("text", "seen"),
    [
        ("a 👩\u200d👩\u200d👧 b", "a 👩 b"),
        ("⚠\ufe0f b", "⚠  b"),
        ("👍🏽 b", "👍 b"),
        ("1\ufe0f\u20e3 b", "1  b"),
        ("🏳\ufe0f\u200d🌈 b", "🏳  b"),
        ("نی\u200cخواهم", "نی\u200cخواهم"),
        ("│ 日本 e\u0301 🙏", "│ 日本 e\u0301 🙏"),
    ],
)
def test_an_emoji_of_several_characters_takes_its_cells_in_every_terminal(
    text: str, seen: str
) -> None:
    segments = NoControls().apply([Segment(text)], Color(0, 0, 0))
    assert "".join(each.text for each in segments) == seen
    assert Segment.get_line_length(segments) == Segment(text).cell_length


def _app() -> GemtuiApp:
    return GemtuiApp(Start(home=Path.home()), Config())


class Plain(App[None]):
    """An app without anything but drafts."""

    def __init__(self) -> None:
        super().__init__()
        self.drafts: dict[Hashable, FieldValues] = {}


@pytest.mark.parametrize("there", [True, False])
async def test_a_hostile_folder_can_be_run_in_and_what_is_wrong_with_it_is_seen(
    tmp_path: Path, there: bool
) -> None:
    folder = tmp_path / "evil  \x1b]0;owned\x07[x"
    if there:
        folder.mkdir()
    app, taken = Plain(), list[ChosenOptions | None]()
    async with app.run_test(size=(120, 40)) as pilot:
        screen = OptionsScreen(AgentOptions(cwd=folder))
        await app.push_screen(screen, taken.append)
        await pilot.press("ctrl+s")
        if there:
            await turns_until(lambda: taken)
            assert [each.options.cwd for each in taken if each] == [folder]
        else:
            await turns_until(lambda: screen.query("#cwd-problem.-wrong"))
            assert not taken
            said = str(screen.query_one("#cwd-problem", Static).render())
            assert "evil ␛]0;owned␇[x" in said
