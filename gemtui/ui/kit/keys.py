"""The keys of gemtui, as used by widgets, the footer, the help and the palette.

A widget or screen gets its bindings with `BINDINGS = bindings(Where.LIST)`. For each key, it
implements the method `action_<action>`, or the one named in the key table. Within a place, each key
has one meaning. Where possible, it has the same meaning everywhere: enter opens, esc goes back, /
searches, n and N jump to the next and previous match, space folds, y copies, and . shows hidden
items.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Any

from msgspec import Struct
from textual.actions import parse
from textual.binding import Binding, BindingType
from textual.dom import DOMNode
from textual.screen import Screen
from textual.widget import Widget

from gemtui.ui.kit.key_table import FACES, FOOTER, SYNONYMS, TABLE, Group, KeyRow, Where

__all__ = ["BY_ID", "KEYS", "Group", "Key", "Where", "bindings", "keys_of", "name"]


class Key(Struct, frozen=True, kw_only=True):
    """A key binding.

    `id`: the place and the action's name, such as "rows.half_up". `action`: the action's name.
    `call`: the method that Textual calls, without its "action_" prefix and with any arguments, such
    as "page(-0.5)". `keys`: Textual key names, separated by commas; "" means that only the palette
    offers the command. `label`: one or two words for
    the footer and the palette. `help`: a sentence for the help. `rank`: 1-based position in the
    footer from the left; 0 hides the key. `face`: the footer's name for the keys if it isn't the
    first key's, such as n/N for a pair of keys. `synonyms`: other words for the command, which the
    palette finds but doesn't show.
    """

    id: str
    keys: str
    action: str
    call: str
    label: str
    help: str
    group: Group
    where: Where
    rank: int = 0
    face: str = ""
    synonyms: str = ""
    priority: bool = False

    @property
    def answers(self) -> bool:
        """Whether the key answers a question; such keys stand beside it, not in the footer."""
        return self.where is Where.QUESTION and self.group is Group.CHANGE

    @property
    def binding(self) -> Binding:
        """The key as a Textual binding.

        A command without keys is bound to its id, which no terminal sends.
        """
        return Binding(
            self.keys or self.id,
            self.call,
            self.label,
            show=False,
            priority=self.priority,
            tooltip=self.help,
            id=self.id,
        )

    def works(self, node: DOMNode) -> bool:
        """Return whether the action is available now at `node`, which has this binding."""
        _, method, arguments = parse(self.call)
        return bool(node.check_action(method, arguments))

    def shown(self, *, ascii: bool = False) -> str:
        """Return all of the binding's keys under their usual names, such as "↑ k"."""
        return " ".join(dict.fromkeys(name(key, ascii=ascii) for key in self.keys.split(",")))

    def footer(self, *, ascii: bool = False, alive: Collection[str] = ()) -> str:
        """Return the keys' name in the footer: `face`, or else the first key's name.

        `alive`: the Textual keys that work now; the first of these is preferred.
        """
        keys = self.keys.split(",")
        first = next((key for key in keys if key in alive), keys[0])
        arrows = "j/k" if "j" in keys else "up/down"
        face = self.face.replace("↑↓", arrows) if ascii else self.face
        return face or name(first, ascii=ascii)


_NAMES = {
    "up": "↑",
    "down": "↓",
    "left": "←",
    "right": "→",
    "pageup": "pgup",
    "pagedown": "pgdn",
    "escape": "esc",
    "question_mark": "?",
    "slash": "/",
    "full_stop": ".",
    "comma": ",",
    "colon": ":",
    "left_square_bracket": "[",
    "right_square_bracket": "]",
    "left_curly_bracket": "{",
    "right_curly_bracket": "}",
    "exclamation_mark": "!",
    "underscore": "_",
    "minus": "-",
    "delete": "del",
}
_ARROWS = {"up", "down", "left", "right"}


def name(key: str, *, ascii: bool = False) -> str:
    """Return the usual name of a Textual key: "^p" for "ctrl+p", "." for "full_stop"."""
    *modifiers, last = key.split("+")
    plain = last if ascii and last in _ARROWS else _NAMES.get(last, last)
    front = "".join("^" if modifier == "ctrl" else f"{modifier}+" for modifier in modifiers)
    return front + plain


_FIRST = {"app.quit", "app.suspend_process", "filter.search"}


def _keys(where: Where, rows: Iterable[KeyRow]) -> tuple[Key, ...]:
    """Convert the table rows of a place's keys to `Key` objects.

    Their ids have the form "<place>.<action>".
    """
    place = where.name.lower()
    return tuple(
        Key(
            id=(id := f"{place}.{(parted := action.partition(' = '))[0]}"),
            keys=keys,
            action=parted[0],
            call=parted[2] or action,
            label=label,
            help=help,
            group=group,
            where=where,
            rank=FOOTER.index(id) + 1 if id in FOOTER else 0,
            face=FACES.get(id, ""),
            synonyms=SYNONYMS.get(id, ""),
            priority=id in _FIRST,
        )
        for action, keys, group, label, help in rows
    )


KEYS: tuple[Key, ...] = tuple(key for where, rows in TABLE.items() for key in _keys(where, rows))

BY_ID = {key.id: key for key in KEYS}


def keys_of(where: Where) -> tuple[Key, ...]:
    """Return the keys of a place, in table order."""
    return tuple(key for key in KEYS if key.where is where)


def bindings(*places: Where) -> list[BindingType]:
    """Return the keys of these places as a widget's or screen's `BINDINGS`."""
    return [key.binding for place in places for key in keys_of(place)]


_ONLY_WHILE_TYPING = {Where.FILTER, Where.FIND, Where.DIALOG, Where.CONFIRM, Where.CONFIRM_FOR_GOOD}
_NOT_ITSELF = {"app.command_palette"}
_HANDED_ON = {"enter", "ctrl+c", "up", "down", "pageup", "pagedown"}
"""Keys that a one-line field binds, but also passes on to its parents."""


def acting(screen: Screen[Any]) -> list[tuple[Key, DOMNode]]:
    """Return the keys that work at the focus, each with the widget that binds it.

    The innermost widget's keys come first. A key doesn't work if the focused field inserts it as
    text, or if a widget further inside binds it too and doesn't pass it on.
    """
    bound, taken = screen.active_bindings, set[str]()
    acting_keys: list[tuple[Key, DOMNode]] = []
    for node in _chain(screen):
        for key in _keys_of(node):
            names = set(key.keys.split(","))
            alive = {
                name
                for name in names - taken
                if name in bound and (bound[name].node is node or name in _HANDED_ON)
            }
            if key.works(node):
                if alive:
                    acting_keys.append((key, node))
                taken |= names
    return acting_keys


def reachable(screen: Screen[Any]) -> list[tuple[Key, DOMNode]]:
    """Return all visible widgets' keys, each with the widget that binds it.

    They are in the key table's order. Keys that only work while the user types are left out.
    """
    nodes: dict[Key, DOMNode] = {}
    for node in _shown(screen):
        for key in _keys_of(node):
            if key.works(node):
                nodes.setdefault(key, node)
    return [
        (key, nodes[key])
        for key in KEYS
        if key in nodes and key.where not in _ONLY_WHILE_TYPING and key.id not in _NOT_ITSELF
    ]


def _keys_of(node: DOMNode) -> list[Key]:
    ids = [binding.id or "" for binding in node.BINDINGS if isinstance(binding, Binding)]
    return [BY_ID[id] for id in ids if id in BY_ID]


def _chain(screen: Screen[Any]) -> list[DOMNode]:
    """Return the focused widget and its ancestors, the last of which is the app."""
    focused = screen.focused
    inside = [] if focused is None else [n for n in focused.ancestors_with_self if n is not screen]
    return [*(node for node in inside if node is not screen.app), screen, screen.app]


def _shown(screen: Screen[Any]) -> Iterator[DOMNode]:
    for node in screen.walk_children(Widget):
        if all(part.display for part in node.ancestors_with_self if isinstance(part, Widget)):
            yield node
    yield screen
    yield screen.app
