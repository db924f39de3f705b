"""Roles, symbols and themes; no other module contains colours.

Rendering code asks for a role rather than a colour, so it works in every theme, including those
that use the terminal's own colours. No two roles differ by colour alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime, tzinfo
from enum import StrEnum
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypedDict

from msgspec import Struct
from rich.color import Color as RichColor
from rich.color import ColorParseError, ColorType
from rich.style import Style
from textual.app import App
from textual.color import Color
from textual.theme import Theme

if TYPE_CHECKING:
    from gemtui.transcript.model import AnsiSpan


class Role(StrEnum):
    """The purpose of a piece of text, which determines its style."""

    TEXT = "text"
    MUTED = "muted"
    """Secondary text, such as times, counts and hints."""
    ACCENT = "accent"
    """The user's name, and whatever has the focus."""
    MODEL = "model"
    SUCCESS = "success"
    WARNING = "warning"
    ERROR = "error"
    THOUGHT = "thought"
    HEADING = "heading"
    LINK = "link"
    CODE = "code"
    BORDER = "border"
    CURSOR = "cursor"
    CHOSEN = "chosen"
    """The background of a list's row under the cursor; none in themes as for `ADDED_LINE`."""
    MATCH = "match"
    MATCH_CURRENT = "match_current"
    ADDED = "added"
    REMOVED = "removed"
    ADDED_LINE = "added_line"
    """The background of an added line; none in themes with the terminal's own colours."""
    REMOVED_LINE = "removed_line"
    ADDED_WORD = "added_word"
    """The part of an added line that differs from the line it replaces."""
    REMOVED_WORD = "removed_word"
    KEYWORD = "keyword"
    NAME = "name"
    STRING = "string"
    NUMBER = "number"
    COMMENT = "comment"


class Glyphs(Struct, frozen=True, kw_only=True):
    """A set of symbols, each one cell wide except `ellipsis` and `line_end`.

    `name`: the set's name.
    """

    name: str = "unicode"
    ok: str = "✓"
    failed: str = "✗"
    running: str = "●"
    denied: str = "⊘"
    ask: str = "?"
    interrupted: str = "◌"
    idle: str = "○"
    warning: str = "!"
    bar: str = "▌"
    """Shown to the left of a message."""
    cursor: str = "▌"
    """Shown in a pane's first cell, to the left of the row or block the cursor is on."""
    bottom_left: str = "└"
    side: str = "│"
    rule: str = "─"
    quote: str = "▎"
    cross: str = "┼"
    folded: str = "▸"
    unfolded: str = "▾"
    bullet: str = "•"
    done: str = "✓"
    doing: str = "●"
    pending: str = "○"
    wrapped: str = "↪"
    """Shown to the left of a line that continues the line above it."""
    line_end: str = "␊"
    """Stands for a line break in text that is shown on one line."""
    ellipsis: str = "…"
    added: str = "+"
    removed: str = "−"
    dot: str = "·"
    selected: str = "◆"
    """Shown before a selected item's title."""
    pinned: str = "★"
    kept: str = "▣"
    """Marks a session that exists only in the vault."""
    newer: str = "▼"
    undo: str = "↶"
    """Marks a point to which files can be restored."""

    @property
    def ascii(self) -> bool:
        """Whether all symbols are ASCII characters."""
        return self.name == "ascii"


UNICODE = Glyphs()
ASCII = Glyphs(
    name="ascii",
    ok="+",
    failed="x",
    running="*",
    denied="-",
    ask="?",
    interrupted=".",
    idle="o",
    warning="!",
    bar="|",
    cursor=">",
    bottom_left="\\",
    side="|",
    rule="-",
    quote="|",
    cross="+",
    folded=">",
    unfolded="v",
    bullet="*",
    done="x",
    doing="*",
    pending=" ",
    wrapped="\\",
    line_end="\\n",
    ellipsis="...",
    added="+",
    removed="-",
    dot="-",
    selected="#",
    pinned="^",
    kept="%",
    newer="v",
    undo="~",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """The properties of the screen that rendering functions need.

    Looks are hashable, so that renderings can be cached by look. `now`: the current time; two looks
    are equal if its date is the same, because cached renderings don't depend on the time of day.
    `theme`: the name of the theme that `styles` come from. `tz`: None means the system's time zone.
    """

    width: int
    theme: str
    dark: bool
    styles: Mapping[Role, Style] = field(compare=False, repr=False)
    glyphs: Glyphs = UNICODE
    colors: bool = True
    """False if colours aren't shown; symbols must then replace them."""
    now: datetime = field(compare=False)
    tz: tzinfo | None = None
    today: date = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "today", self.now.astimezone(self.tz).date())

    def __getitem__(self, role: Role) -> Style:
        return self.styles[role]

    def narrowed(self, by: int) -> Look:
        """Return a copy that is `by` cells narrower, but at least one cell wide."""
        return replace(self, width=max(1, self.width - by))

    def dimmed(self) -> Look:
        """Return a copy in which every role has the muted style.

        Used for messages outside the conversation.
        """
        return replace(self, theme=f"{self.theme} dimmed", styles=_dimmed(self[Role.MUTED]))


@lru_cache(maxsize=16)
def _dimmed(muted: Style) -> Mapping[Role, Style]:
    return MappingProxyType(dict.fromkeys(Role, muted))


def glyphs_of(app: App[Any]) -> Glyphs:
    """Return the app's `glyphs`, or the Unicode symbols if it has no such attribute."""
    glyphs: Glyphs = getattr(app, "glyphs", UNICODE)
    return glyphs


def look_of(app: App[Any], width: int) -> Look:
    """Return the app's current look, for rendering at a width of `width` cells.

    Uses the app's attributes `glyphs` (a `Glyphs`) and `clock` (a function that returns a
    timezone-aware datetime) if they exist.
    """
    clock: Callable[[], datetime] = getattr(app, "clock", _now)
    return Look(
        width=width,
        glyphs=glyphs_of(app),
        colors=not app.no_color,
        now=clock(),
        **_palette(app.current_theme),
    )


def plain_look(
    width: int,
    *,
    now: datetime,
    glyphs: Glyphs = UNICODE,
    tz: tzinfo | None = None,
    dark: bool = True,
) -> Look:
    """Return a look in gemtui's own dark or light theme, for rendering without an app."""
    return Look(width=width, glyphs=glyphs, now=now, tz=tz, **_palette(DARK if dark else LIGHT))


def readable_selection(variables: Mapping[str, str]) -> dict[str, str]:
    """Return a theme's CSS variables with a colour for selected text.

    If the theme sets none, Textual would show the text in the selection's own background colour.
    """
    name = "screen-selection-foreground"
    if Color.parse(variables[name]).a > 0:
        return dict(variables)
    background = Color.parse(variables["background"])
    ground = background + Color.parse(variables["screen-selection-background"])
    return {**variables, name: ground.get_contrast_text(1.0).hex}


def with_lines(variables: Mapping[str, str], theme: Theme) -> dict[str, str]:
    """Return a theme's variables plus `$line` and `$line-strong` for rules and frames."""
    if theme.ansi:
        return {**variables, "line": "ansi_bright_black", "line-strong": "ansi_bright_black"}
    background, foreground = (Color.parse(variables[name]) for name in ("background", "foreground"))
    weak, strong = (background.blend(foreground, share).hex for share in (0.25, 0.4))
    return {**variables, "line": weak, "line-strong": strong}


class _Palette(TypedDict):
    theme: str
    dark: bool
    styles: Mapping[Role, Style]


_palettes: dict[str, tuple[Theme, _Palette]] = {}


def _palette(theme: Theme) -> _Palette:
    """Return a theme's name, its styles and whether it is dark, computed only once.

    They are computed from the theme itself because, for a moment after a change of theme, the app's
    CSS variables are still those of the previous one.
    """
    known, palette = _palettes.get(theme.name, (None, None))
    if palette is None or known is not theme:
        variables = theme.to_color_system().generate() | theme.variables
        styles = MappingProxyType(_ansi(variables) if theme.ansi else _truecolor(variables))
        name = f"{theme.name} {hash(frozenset(styles.items())):x}"
        palette = _Palette(theme=name, dark=theme.dark, styles=styles)
        _palettes[theme.name] = theme, palette
    return palette


def _now() -> datetime:
    return datetime.now().astimezone()


BOLD = Style(bold=True)
ITALIC = Style(italic=True)
UNDERLINE = Style(underline=True)
STRIKE = Style(strike=True)
DIM = Style(dim=True)
REVERSE = Style(reverse=True)


def _truecolor(variables: Mapping[str, str]) -> dict[Role, Style]:
    background, foreground = (Color.parse(variables[name]) for name in ("background", "foreground"))

    def ink(name: str) -> Style:
        return Style(color=Color.parse(variables[name]).rich_color)

    def faded(share: float) -> Style:
        return Style(color=background.blend(foreground, share).rich_color)

    def ground(name: str, share: float) -> Style:
        return Style(bgcolor=background.blend(Color.parse(variables[name]), share).rich_color)

    user, model = ink("text-accent"), ink("text-secondary")
    success, warning, error = ink("text-success"), ink("text-warning"), ink("text-error")
    return _roles(user, model, success, warning, error) | {
        Role.MUTED: faded(0.65),
        Role.THOUGHT: faded(0.65) + ITALIC,
        Role.COMMENT: faded(0.65) + ITALIC,
        Role.BORDER: faded(0.3),
        Role.MATCH: ground("warning", 0.3) + UNDERLINE,
        Role.MATCH_CURRENT: ink("warning") + ground("warning", 0.0) + REVERSE + BOLD,
        Role.CHOSEN: ground("accent", 0.12),
        Role.ADDED_LINE: ground("success", 0.07),
        Role.REMOVED_LINE: ground("error", 0.07),
        Role.ADDED_WORD: ground("success", 0.16) + BOLD + UNDERLINE,
        Role.REMOVED_WORD: ground("error", 0.16) + BOLD + UNDERLINE,
    }


def _ansi(variables: Mapping[str, str]) -> dict[Role, Style]:
    names = ("accent", "secondary", "success", "warning", "error")
    return _roles(*(Style(color=Color.parse(variables[name]).rich_color) for name in names))


def _roles(
    user: Style, model: Style, success: Style, warning: Style, error: Style
) -> dict[Role, Style]:
    return {
        Role.TEXT: Style.null(),
        Role.MUTED: DIM,
        Role.ACCENT: user,
        Role.MODEL: model,
        Role.SUCCESS: success,
        Role.WARNING: warning,
        Role.ERROR: error,
        Role.THOUGHT: DIM + ITALIC,
        Role.HEADING: BOLD,
        Role.LINK: UNDERLINE,
        Role.CODE: model,
        Role.BORDER: DIM,
        Role.CURSOR: user,
        Role.CHOSEN: Style.null(),
        Role.MATCH: warning + UNDERLINE,
        Role.MATCH_CURRENT: warning + REVERSE + BOLD,
        Role.ADDED: success,
        Role.REMOVED: error,
        Role.ADDED_LINE: Style.null(),
        Role.REMOVED_LINE: Style.null(),
        Role.ADDED_WORD: BOLD + UNDERLINE,
        Role.REMOVED_WORD: BOLD + UNDERLINE,
        Role.KEYWORD: model,
        Role.NAME: user,
        Role.STRING: success,
        Role.NUMBER: warning,
        Role.COMMENT: DIM + ITALIC,
    }


def span_style(span: AnsiSpan, look: Look) -> Style:
    """Convert the style of stored terminal output to the current theme.

    Red, for example, becomes the theme's colour for errors. Black on a dark background and white on
    a light one are dropped, because the original terminal may have had a different background.
    """
    return Style(
        color=_mapped(span.fg, look) if not span.bg else _stored(span.fg),
        bgcolor=_stored(span.bg),
        bold=span.bold or None,
        italic=span.italic or None,
        underline=span.underline or None,
        dim=span.dim or None,
        reverse=span.inverse or None,
    )


_BASIC = {
    RichColor(str(number), ColorType.EIGHT_BIT, number=number).get_truecolor(): number
    for number in range(16)
}
_UNSEEN = {True: {0}, False: {7, 15}}
_GREY = 8
_INKS = {
    1: Role.ERROR,
    2: Role.SUCCESS,
    3: Role.WARNING,
    4: Role.ACCENT,
    5: Role.MODEL,
    6: Role.ACCENT,
}
"""The roles whose colours replace the terminal colours 1 (red) to 6 (cyan)."""


@lru_cache(maxsize=512)
def _stored(color: str) -> RichColor | None:
    if len(color) != 7 or not color.startswith("#"):
        return None
    try:
        parsed = RichColor.parse(color)
    except ColorParseError:
        return None
    basic = _BASIC.get(parsed.get_truecolor())
    return parsed if basic is None else RichColor.from_ansi(basic)


def _mapped(color: str, look: Look) -> RichColor | None:
    stored = _stored(color)
    if stored is None or stored.number is None:
        return stored
    if stored.number in _UNSEEN[look.dark]:
        return None
    role = _INKS.get(stored.number % 8) if stored.number != _GREY else Role.MUTED
    ink = None if role is None else look[role].color
    return ink if ink is None or not ink.is_system_defined else stored


DARK = Theme(
    name="gemtui-dark",
    dark=True,
    primary="#6fa8dc",
    accent="#6fa8dc",
    secondary="#a99be0",
    success="#7fb77e",
    warning="#d6b25e",
    error="#df7b7b",
    foreground="#d6d8dc",
    background="#14161a",
    surface="#1a1d22",
    panel="#22262c",
    variables={
        "text-primary": "#7ab0e2",
        "text-accent": "#7ab0e2",
        "text-secondary": "#b3a6e6",
        "text-success": "#8cc28b",
        "text-warning": "#dcb964",
        "text-error": "#e88484",
    },
)

LIGHT = Theme(
    name="gemtui-light",
    dark=False,
    primary="#1f5f9e",
    accent="#1f5f9e",
    secondary="#5b48a8",
    success="#2d6f2c",
    warning="#8a5d00",
    error="#b03030",
    foreground="#22252a",
    background="#fbfbf9",
    surface="#f3f3f0",
    panel="#e9e9e5",
    variables={
        "text-primary": "#1f5f9e",
        "text-accent": "#1f5f9e",
        "text-secondary": "#5b48a8",
        "text-success": "#2d6f2c",
        "text-warning": "#805600",
        "text-error": "#b03030",
    },
)

THEMES = (DARK, LIGHT)
"""The themes that the app registers on startup."""
