"""Roles in every theme, glyphs, and that colours stand in one file only."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from msgspec.structs import astuple
from rich.cells import cell_len
from rich.color import Color as RichColor
from rich.color import ColorType
from rich.style import Style
from textual.app import App
from textual.color import Color
from textual.theme import BUILTIN_THEMES

import gemtui.ui
from gemtui.transcript.model import AnsiSpan
from gemtui.ui.draw.theme import (
    ASCII,
    DARK,
    LIGHT,
    THEMES,
    UNICODE,
    Look,
    Role,
    look_of,
    plain_look,
    span_style,
)
from gemtui.ui.transcript.diff import draw_changes, read_diff
from tests.rows import each_row

NOW = datetime(2026, 11, 21, 12, 30, tzinfo=UTC)
TEXTS = (Role.MUTED, Role.ACCENT, Role.MODEL, Role.SUCCESS, Role.WARNING, Role.ERROR)
GROUNDS = (Role.ADDED_LINE, Role.REMOVED_LINE, Role.ADDED_WORD, Role.REMOVED_WORD)
SYNTAX = (Role.KEYWORD, Role.NAME, Role.STRING, Role.NUMBER)


@each_row("dark", [True, False])
@each_row("role", TEXTS)
def test_our_themes_are_readable(dark: bool, role: Role) -> None:
    theme = DARK if dark else LIGHT
    style = plain_look(80, now=NOW, dark=dark)[role]
    assert theme.background is not None
    assert style.color is not None
    ground = Color.parse(theme.background)
    assert contrast(Color.from_rich_color(style.color), ground) >= 4.5


@each_row("dark", [True, False])
@each_row("role", GROUNDS)
def test_code_is_readable_on_the_ground_of_a_change(dark: bool, role: Role) -> None:
    look = plain_look(80, now=NOW, dark=dark)
    ground = look[role].bgcolor
    assert ground is not None
    for ink in SYNTAX:
        color = look[ink].color
        assert color is not None
        assert contrast(Color.from_rich_color(color), Color.from_rich_color(ground)) >= 4.5


def contrast(one: Color, other: Color) -> float:
    """The ratio of WCAG 2."""
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def luminance(color: Color) -> float:
    parts = (part / 255 for part in color.rgb)
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


class Plain(App[None]):
    """An app with our themes and nothing else."""

    def on_mount(self) -> None:
        for theme in THEMES:
            self.register_theme(theme)


CODE = ("@@ -1,2 +1,2 @@", " import os", "-if 1: return", "+if 2: return")


def assert_coloured(look: Look) -> None:
    """Whether code, and what a diff leaves and changes, has the colours of its syntax."""
    changes = read_diff(list(CODE))
    kept, removed, added = draw_changes(changes, look, language="py")
    keyword = look[Role.KEYWORD]
    assert keyword.color is not None
    assert kept.pieces[2].style == keyword
    for line, role, ground in (
        (removed, Role.REMOVED, look[Role.REMOVED_LINE]),
        (added, Role.ADDED, look[Role.ADDED_LINE]),
    ):
        assert line.pieces[1].style == look[role] + ground
        style = line.pieces[2].style
        assert style.bgcolor == ground.bgcolor
        assert style.color == (keyword if ground else look[role]).color


async def test_every_theme_gives_every_role() -> None:
    app = Plain()
    async with app.run_test():
        seen = set()
        for name in (*BUILTIN_THEMES, DARK.name, LIGHT.name):
            app.theme = name
            look = look_of(app, 80)
            assert set(look.styles) == set(Role)
            assert_coloured(look)
            seen.add(look)
        assert len(seen) == len(BUILTIN_THEMES) + 2


async def test_themes_with_the_terminals_colours_get_no_others() -> None:
    app = Plain()
    async with app.run_test():
        app.theme = "ansi-dark"
        for style in look_of(app, 80).styles.values():
            assert style.color is None or style.color.triplet is None
            assert style.bgcolor is None


async def test_no_color_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    app = Plain()
    async with app.run_test():
        assert not look_of(app, 80).colors


def test_roles_that_matter_are_told_apart_without_colours() -> None:
    for look in (plain_look(80, now=NOW), plain_look(80, now=NOW, dark=False)):
        assert look[Role.MATCH].underline
        assert look[Role.MATCH_CURRENT].reverse
        assert look[Role.HEADING].bold


def test_a_look_is_a_key_for_what_was_drawn() -> None:
    look = plain_look(80, now=NOW, tz=UTC)
    assert look == plain_look(80, now=NOW + timedelta(hours=3), tz=UTC)
    assert hash(look) == hash(plain_look(80, now=NOW + timedelta(hours=3), tz=UTC))
    assert look != plain_look(80, now=NOW + timedelta(days=1), tz=UTC)
    assert look != plain_look(81, now=NOW, tz=UTC)
    assert look != plain_look(80, now=NOW, tz=UTC, glyphs=ASCII)
    assert look != plain_look(80, now=NOW, tz=UTC, dark=False)
    assert look != look.dimmed()


def test_glyphs_are_one_cell_and_their_other_form_is_ascii() -> None:
    assert all(cell_len(glyph) == 1 for glyph in astuple(UNICODE)[1:])
    assert all(glyph.isascii() for glyph in astuple(ASCII))


@each_row("dark", [True, False])
@each_row("number", range(16))
def test_the_basic_colours_of_stored_output_are_readable_in_our_themes(
    number: int, dark: bool
) -> None:
    look, theme = plain_look(80, now=NOW, dark=dark), DARK if dark else LIGHT
    basic = RichColor(str(number), ColorType.EIGHT_BIT, number=number).get_truecolor().hex
    ink = span_style(AnsiSpan(text="x", fg=basic), look).color
    shown = Color.parse(theme.foreground or "") if ink is None else Color.from_rich_color(ink)
    assert contrast(shown, Color.parse(theme.background or "")) >= 4.5


async def test_in_themes_of_the_terminal_they_are_the_terminals() -> None:
    app = Plain()
    async with app.run_test():
        app.theme = "ansi-dark"
        style = span_style(AnsiSpan(text="x", fg="#008000"), look_of(app, 80))
        assert style.color is not None
        assert style.color.number == 2


def test_a_stored_ground_keeps_its_own_ink_and_nonsense_is_no_colour() -> None:
    look = plain_look(80, now=NOW)
    style = span_style(AnsiSpan(text="x", fg="#000000", bg="#ffffff"), look)
    assert (style.color.number, style.bgcolor.number) == (0, 15)  # type: ignore[union-attr]
    assert not span_style(AnsiSpan(text="x", fg="\x1b[31m", bg="#zzzzzz"), look)


def test_other_stored_colours_stay() -> None:
    span = AnsiSpan(text="x", fg="#12ab9f", bold=True, inverse=True)
    assert span_style(span, plain_look(80, now=NOW)) == Style(
        color="#12ab9f", bold=True, reverse=True
    )


def test_colours_stand_in_the_theme_only() -> None:
    files = [*Path(gemtui.ui.__file__).parent.rglob("*.py")]
    files += Path(gemtui.ui.__file__).parent.rglob("*.tcss")
    colour = re.compile(r"#[0-9a-fA-F]{6}\b|#[0-9a-fA-F]{3}\b|\brgb\(")
    found = [file.name for file in files if colour.search(file.read_text(encoding="utf-8"))]
    assert found == ["theme.py"]
