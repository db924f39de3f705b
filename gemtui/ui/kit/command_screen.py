"""The command palette and the help: a searchable list of commands with their keys."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal

from gemtui.ui.draw.lines import Piece, Pieces, two_ended
from gemtui.ui.draw.theme import BOLD, Look, Role
from gemtui.ui.kit.app_base import DialogScreen
from gemtui.ui.kit.clean_widgets import Dialog, Input, Static
from gemtui.ui.kit.keys import KEYS, Key, Where, bindings
from gemtui.ui.kit.row_list import RowList, SteeredRows, SteersRows

_LABEL = 16
"""Width of the command column in cells; a longer name shifts what follows it."""
_NAMED = (Where.TRANSCRIPT, Where.RUN, Where.POLICY, Where.SESSIONS, Where.LIST)
"""Places whose commands are named on other screens, too."""
_MOST_ELSEWHERE = 5


class More(NamedTuple):
    """The row "More", which opens the full list of keys.

    `keys`: the number of keys in the full list.
    """

    keys: int


class NotHere(NamedTuple):
    """The row of a command that doesn't work here; it says where the command works."""

    key: Key


CommandRow = Key | Where | More | NotHere


class CommandScreen(SteersRows, DialogScreen[Key]):
    """A dialog that lists commands and returns the key of the chosen one, or None.

    `keys`: all keys, in display order, with a heading for each place. `few`: the keys to show
    initially, without headings and followed by a row that opens the full list. A search covers all
    keys (see `matching`), and then those of other screens, which can't be chosen.
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
            rows = offers(wanted, self._keys)
        elif self._few:
            rows = (*self._few, More(len(self._keys)))
        else:
            rows = _headed(self._keys)
        self.rows.empty = f"No command matches “{wanted.strip()}”."
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
        super().__init__(_draw, stops=lambda row: not isinstance(row, Where | NotHere))

    def opens(self, clicks: int) -> bool:
        """Return True for a single click, which runs the clicked command."""
        return clicks == 1


_SIMILAR = 0.78
"""How similar a typed word must be to a word of a command, of 1, to count as a typo."""
_SHORT = 4
"""The least length of a typed word that may be mistyped, or that is enough for a match."""


def offers(wanted: str, keys: Sequence[Key]) -> list[CommandRow]:
    """Return the commands that match a search, and some of other screens below them.

    `wanted`: see `matching`. `keys`: the commands that work here.
    """
    ids = {key.id for key in keys}
    others = [key for key in KEYS if key.where in _NAMED and key.id not in ids]
    ranked = matching(wanted, [*keys, *others])
    elsewhere = [NotHere(key) for key in ranked if key.id not in ids]
    return [*(key for key in ranked if key.id in ids), *elsewhere[:_MOST_ELSEWHERE]]


def matching(wanted: str, keys: Sequence[Key]) -> list[Key]:
    """Return the commands that match what the user has typed, best first.

    Each typed word must be the start of a word of the command. Those in its name count more than
    its synonyms, and these more than its description. If no command has all words, words that look
    like them count, so that typos do no harm; then commands that have only some of the words.

    * `wanted`: the typed words in lower case.
    * `keys`: all commands, in display order.
    """
    words = wanted.split()
    ranked = _ranked(words, keys, str.startswith)
    if not ranked and min(map(len, words)) >= _SHORT:
        from rapidfuzz.distance.OSA import normalized_similarity as similarity  # slow to import

        ranked = _ranked(words, keys, lambda term, word: similarity(term, word) >= _SIMILAR)
    long_words = [word for word in words if len(word) >= _SHORT]
    if ranked or not long_words:
        return ranked
    return _ranked(long_words, keys, str.startswith, every=False)


def _ranked(
    words: Sequence[str],
    keys: Sequence[Key],
    alike: Callable[[str, str], bool],
    *,
    every: bool = True,
) -> list[Key]:
    """Return the commands that have all words, or are named by one of them, best first.

    `alike`: whether a word of a command, the first argument, matches a typed word.
    """
    typed = " ".join(words)
    ranked: list[tuple[bool, bool, int, int, Key]] = []
    for number, key in enumerate(keys):
        distances = [_distance(word, key, alike) for word in words]
        if max(distances) < _MISSING if every else min(distances) < _DESCRIBED:
            name = key.label.lower()
            apart = name != typed, not name.startswith(typed)
            ranked.append((*apart, sum(distances), number, key))
    return [key for *_, key in sorted(ranked)]


_DESCRIBED = 4
"""The distance of a word that only a command's description has."""
_MISSING = 6
"""The distance of a word that a command doesn't have."""


def _distance(word: str, key: Key, alike: Callable[[str, str], bool]) -> int:
    """Return how far a typed word is from a command's name."""
    singular = word.removesuffix("s") if len(word) > _SHORT else word
    texts = (key.label, key.synonyms, f"{key.where} {key.help} {key.group} {key.shown()}")
    for rank, text in enumerate(texts):
        terms = [term.strip(".,;:()") or term for term in text.lower().split()]
        if word in terms or singular in terms:
            return 2 * rank
        if any(alike(term, word) or alike(term, singular) for term in terms):
            return 2 * rank + 1
    return _MISSING


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
            Piece(f"  {'More':<{_LABEL}} ", look[Role.TEXT] + BOLD),
            Piece(f"Show all {row.keys} keys that work here", look[Role.MUTED]),
        )
    if isinstance(row, NotHere):
        text = f"  {row.key.label:<{_LABEL}} {row.key.where}: {row.key.help}"
        return (Piece(text, look[Role.MUTED]),)
    keys = (Piece(f"  {row.shown(ascii=look.glyphs.name == 'ascii')} ", look[Role.ACCENT]),)
    words = (
        Piece(f"  {row.label:<{_LABEL}} ", look[Role.TEXT] + BOLD),
        Piece(row.help, look[Role.MUTED]),
    )
    return two_ended(words, keys, look, Role.TEXT)
