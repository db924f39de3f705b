from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from importlib import import_module
from pkgutil import walk_packages
from typing import TypeVar

import pytest
from textual.actions import parse
from textual.binding import Binding
from textual.dom import DOMNode

import gemtui.ui
from gemtui.ui.kit.key_table import FOOTER, MATTER_MOST
from gemtui.ui.kit.keys import BY_ID, KEYS, Where, bindings, keys_of, name
from gemtui.ui.kit.screens import HasParts, KeyPart
from tests.rows import each_row


def test_ids_are_unique() -> None:
    assert len(BY_ID) == len(KEYS)


@each_row("where", Where)
def test_a_key_means_one_thing_in_one_place(where: Where) -> None:
    entries = [entry for entry in keys_of(where) if entry.keys]
    used = Counter(key for entry in entries for key in entry.keys.split(","))
    assert [key for key, times in used.items() if times > 1] == []


def test_every_key_has_words() -> None:
    assert [key.id for key in KEYS if not (key.label and key.help and key.action)] == []


def test_function_keys_show_only_help_and_themes() -> None:
    functions = {f"f{number}" for number in range(1, 25)}
    used = {name: key.id for key in KEYS for name in key.keys.split(",") if name in functions}
    assert used == {"f1": "app.help", "f2": "app.change_theme"}


def test_thirty_keys_matter_most() -> None:
    assert set(MATTER_MOST) <= {key.id for key in KEYS if key.keys}
    assert len(set(MATTER_MOST)) == len(MATTER_MOST) == 30


def test_bindings_carry_the_ids_of_their_keys() -> None:
    ids = {binding.id for binding in bindings(Where.RAW)}  # type: ignore[union-attr]
    assert ids == {key.id for key in keys_of(Where.RAW)}


@pytest.mark.parametrize(
    ("key", "shown"),
    [("ctrl+p", "^p"), ("up", "↑"), ("full_stop", "."), ("shift+tab", "shift+tab"), ("G", "G")],
)
def test_keys_are_named_as_people_know_them(key: str, shown: str) -> None:
    assert name(key) == shown


def test_letters_stand_for_arrows_only_where_they_move() -> None:
    moves = [BY_ID[f"{place}.cursor_down"].footer(ascii=True) for place in ("list", "files")]
    assert moves == ["j/k", "up/down"]


def test_ascii_names_have_no_arrows() -> None:
    assert all(key.shown(ascii=True).isascii() for key in KEYS)


def bound() -> Iterator[tuple[type[DOMNode], str]]:
    """Every class of ours that takes a key of the table, with the key's id."""
    for kind in subclasses(DOMNode):
        if kind.__module__.startswith("gemtui."):
            for binding in vars(kind).get("BINDINGS", ()):
                if isinstance(binding, Binding) and binding.id in BY_ID:
                    yield kind, binding.id


for module in walk_packages(gemtui.ui.__path__, "gemtui.ui."):
    import_module(module.name)  # so that all screens and widgets are there


Kind = TypeVar("Kind")


def subclasses(kind: type[Kind]) -> Iterator[type[Kind]]:
    for each in kind.__subclasses__():
        yield each
        yield from subclasses(each)


def test_every_key_does_something() -> None:
    assert {id for _, id in bound()} == BY_ID.keys()


def package(kind: type) -> str:
    return kind.__module__.rpartition(".")[0]


def actions_of_parts(kind: type[DOMNode]) -> Counter[str]:
    """How many parts of a screen or widget, which are in its package, have an action."""
    mine = [each for each in subclasses(KeyPart) if package(each) == package(kind)]
    return Counter(name for each in mine for name in vars(each) if name.startswith("action_"))


def test_every_action_exists_once() -> None:
    wrong = [
        (kind.__name__, id)
        for kind, id in bound()
        if not hasattr(kind, name := f"action_{parse(BY_ID[id].call)[1]}")
        and not (issubclass(kind, HasParts) and actions_of_parts(kind)[name] == 1)
    ]
    assert wrong == []


def test_keys_in_the_footer_are_ranked_once() -> None:
    assert set(FOOTER) <= BY_ID.keys()
    assert len(FOOTER) == len(set(FOOTER))
