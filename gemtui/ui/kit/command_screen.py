"""The command palette and the help: a searchable list of commands with their keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal

from gemtui.ui.draw.lines import Piece, Pieces, two_ended
from gemtui.ui.draw.theme import BOLD, Look, Role
from gemtui.ui.kit.app_base import DialogScreen
from gemtui.ui.kit.clean_widgets import Dialog, Input, Static
from gemtui.ui.kit.keys import Key, Where, bindings
from gemtui.ui.kit.row_list import RowList, SteeredRows, SteersRows

_LABEL = 16
"""Width of the command column in cells, including two trailing spaces."""


class More(NamedTuple):
    """The row "More", which opens the full list of keys.

    `keys`: the number of keys in the full list.
    """

    keys: int


CommandRow = Key | Where | More


class CommandScreen(SteersRows, DialogScreen[Key]):
    """A dialog that lists commands and returns the key of the chosen one, or None.

    `keys`: all keys, in display order, with a heading for each place. `few`: the keys to show
    initially, without headings and followed by a row that opens the full list. A search covers all
    keys (see `matching`).
    """

    BINDINGS = bindings(Where.DIALOG, Where.HELP)

    def __init__(self, title: str, keys: Sequence[Key], few: Sequence[Key] = ()) -> None:
        super().__init__()
        self._title, self._keys, self._few = title, keys, few

    def compose(self) -> ComposeResult:
        with Dialog(self._title, "enter run   esc close", id="commands"):
            with Horizontal(classes="search"):
                yield Static("/")
                yield Input()
            yield CommandList()

    def on_mount(self) -> None:
        self._fill("")

    @property
    def rows(self) -> CommandList:
        """The widget that lists the commands."""
        return self.query_one(CommandList)

    @on(Input.Changed)
    def _searched(self, event: Input.Changed) -> None:
        self._fill(event.value.lower())

    def _fill(self, wanted: str) -> None:
        rows: Sequence[CommandRow]
        if wanted.strip():
            rows = matching(wanted, self._keys)
        elif self._few:
            rows = (*self._few, More(len(self._keys)))
        else:
            rows = _headed(self._keys)
        self.rows.empty = "No matches."
        self.rows.show(rows, fresh=True)

    def key_down(self) -> None:
        """Move down one row."""
        self.action_step(1)

    def key_up(self) -> None:
        """Move up one row."""
        self.action_step(-1)

    @on(Input.Submitted)
    def _entered(self) -> None:
        self.rows.action_open()

    @on(RowList.Opened)
    def _chosen(self) -> None:
        row = self.rows.chosen
        if isinstance(row, Key):
            self.dismiss(row)
        elif isinstance(row, More):
            self._few = ()
            self._fill("")


class CommandList(SteeredRows[CommandRow], can_focus=False):
    """Commands under headings, with a cursor that moves while the user types a search."""

    def __init__(self) -> None:
        super().__init__(_draw, stops=lambda row: not isinstance(row, Where))

    def opens(self, clicks: int) -> bool:
        """Return True for a single click, which runs the clicked command."""
        return clicks == 1


_SIMILAR = 75
"""How similar a typed word must be to a part of a command's text, of 100, to count as a typo."""
_SHORT = 4
"""The least length of a typed word in which a typo is looked for."""


def matching(wanted: str, keys: Sequence[Key]) -> list[Key]:
    """Return the commands that match what the user has typed, best first.

    Each typed word must be the start of a word in the command's text; commands named so come first.
    If there are none, words that look like it count, so that typos do no harm.

    * `wanted`: the typed words in lower case.
    * `keys`: all commands, in display order.
    """
    words = wanted.split()
    found = [key for key in keys if all(f" {word}" in _text(key) for word in words)]
    if found or min(map(len, words)) < _SHORT:
        return sorted(found, key=lambda key: _distance(words, key))
    from rapidfuzz.fuzz import partial_ratio  # slow to import

    ranked: list[tuple[float, int, Key]] = []
    for number, key in enumerate(keys):
        score = min(partial_ratio(word, _text(key)) for word in words)
        if score >= _SIMILAR:
            in_label = min(partial_ratio(word, key.label.lower()) for word in words)
            ranked.append((-in_label, number, key))
    return [key for *_, key in sorted(ranked)]


def _distance(words: Sequence[str], key: Key) -> int:
    """Return how far the typed words are from a command's name; 0 if they are its name."""
    label = key.label.lower()
    if label.split() == words:
        return 0
    return 1 if all(word in label for word in words) else 2


def _text(key: Key) -> str:
    """Return the text of a command that a search looks through."""
    return f" {key.where} {key.label} {key.help} {key.group} {key.shown()}".lower()


def _headed(keys: Sequence[Key]) -> list[Key | Where]:
    rows: list[Key | Where] = []
    for key, before in zip(keys, (None, *keys), strict=False):
        if before is None or before.where is not key.where:
            rows.append(key.where)
        rows.append(key)
    return rows


def _draw(row: CommandRow, look: Look) -> Pieces:
    """Render a heading, the "More" row, or a command's name, description and keys."""
    if isinstance(row, Where):
        return (Piece(row, look[Role.HEADING]),)
    if isinstance(row, More):
        return (
            Piece(f"  {'More':<{_LABEL}}", look[Role.TEXT] + BOLD),
            Piece(f"Show all {row.keys} keys that work here", look[Role.MUTED]),
        )
    keys = (Piece(f"  {row.shown(ascii=look.glyphs.name == 'ascii')} ", look[Role.ACCENT]),)
    words = (
        Piece(f"  {row.label:<{_LABEL}}", look[Role.TEXT] + BOLD),
        Piece(row.help, look[Role.MUTED]),
    )
    return two_ended(words, keys, look, Role.TEXT)
