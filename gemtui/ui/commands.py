"""Which keys of the table act now, and on what."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from textual.binding import Binding
from textual.dom import DOMNode
from textual.screen import Screen
from textual.widget import Widget

from gemtui.ui.keys import BY_ID, KEYS, Key, Where

_ONLY_WHILE_TYPING = {Where.FILTER, Where.FIND, Where.DIALOG, Where.CONFIRM}
_NOT_ITSELF = {"app.command_palette"}


def acting(screen: Screen[Any]) -> list[tuple[Key, DOMNode]]:
    """Keys that act where the focus is, each with what it acts on; the nearest places first.

    An input takes enter and the arrows first and hands on what it has no use for, so what counts
    is that a key is not typed, not that nothing nearer binds it.
    """
    alive, taken = screen.active_bindings.keys(), set[str]()
    found: list[tuple[Key, DOMNode]] = []
    for node in _chain(screen):
        for key in _keys_of(node):
            names = set(key.keys.split(","))
            if names & alive - taken and node.check_action(key.action, ()):
                found.append((key, node))
            taken |= names
    return found


def reachable(screen: Screen[Any]) -> list[tuple[Key, DOMNode]]:
    """Keys of everything that is shown, whatever has the focus, in the table's order."""
    found: dict[Key, DOMNode] = {}
    for node in _shown(screen):
        for key in _keys_of(node):
            if node.check_action(key.action, ()):
                found.setdefault(key, node)
    return [
        (key, found[key])
        for key in KEYS
        if key in found and key.where not in _ONLY_WHILE_TYPING and key.id not in _NOT_ITSELF
    ]


def _keys_of(node: DOMNode) -> list[Key]:
    ids = [binding.id or "" for binding in node.BINDINGS if isinstance(binding, Binding)]
    return [BY_ID[id] for id in ids if id in BY_ID]


def _chain(screen: Screen[Any]) -> list[DOMNode]:
    """What has the focus, and all around it."""
    focused = screen.focused
    inside = [] if focused is None else [n for n in focused.ancestors_with_self if n is not screen]
    return [*(node for node in inside if node is not screen.app), screen, screen.app]


def _shown(screen: Screen[Any]) -> Iterator[DOMNode]:
    for node in screen.walk_children(Widget):
        if all(part.display for part in node.ancestors_with_self if isinstance(part, Widget)):
            yield node
    yield screen
    yield screen.app
