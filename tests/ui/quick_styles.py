"""Style sheets whose work is done once in a process, not by each app of each test."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from weakref import WeakKeyDictionary

import pytest
from textual.app import App
from textual.css.model import RuleSet
from textual.css.styles import RulesMap
from textual.css.stylesheet import Stylesheet
from textual.dom import DOMNode
from textual.widget import Widget

_parse_rules, _apply = Stylesheet._parse_rules, Stylesheet.apply
_FLAGS = ("_has_hover_style", "_has_focus_within", "_has_order_style", "_has_odd_or_even")
"""What Textual notes of a node beside its rules."""

_parsed = dict[object, list[RuleSet]]()
_sheets = dict[tuple[RuleSet, ...], int]()
_sheet_of = WeakKeyDictionary[Stylesheet, tuple[list[RuleSet], int]]()
_matched = dict[object, tuple[RulesMap, tuple[bool, ...]]]()


def _parse_once(self: Stylesheet, *words: Any, **named: Any) -> list[RuleSet]:
    key = words, *named.items(), frozenset(self._variables.items())
    if key not in _parsed:
        _parsed[key] = _parse_rules(self, *words, **named)
    return _parsed[key]


def _number_of(sheet: Stylesheet) -> int:
    """Return a number for all rules of a style sheet."""
    rules, number = _sheet_of.get(sheet, (None, 0))
    if rules is not sheet.rules:
        number = _sheets.setdefault(tuple(sheet.rules), len(_sheets))
        _sheet_of[sheet] = sheet.rules, number
    return number


def _state_of(node: DOMNode) -> tuple[object, ...]:
    """Return all of a node that a selector can ask for, but its place among its siblings."""
    kind, id, classes = type(node), node.id, frozenset(node._classes)
    if isinstance(node, Widget):
        return (
            kind,
            id,
            classes,
            node.mouse_hover,
            node.has_focus,
            node.disabled,
            node.allow_focus(),
        )
    if isinstance(node, App):
        return (
            kind,
            id,
            classes,
            node.theme,
            node.app_focus,
            node.is_inline,
            node.native_ansi_color,
            node.no_color,
        )
    return kind, id, classes


def _apply_once(
    self: Stylesheet,
    node: DOMNode,
    *,
    animate: bool = False,
    cache: dict[tuple[Any, ...], RulesMap] | None = None,
) -> None:
    """Look for the rules of a node once; Textual itself keeps them for the siblings of one update.

    It keeps none that depend on the place of a node among its siblings, nor do we.
    """
    key = _number_of(self), *map(_state_of, node.css_path_nodes)
    if key not in _matched:
        fresh = dict[tuple[Any, ...], RulesMap]()
        _apply(self, node, animate=animate, cache=fresh)
        for rules in fresh.values():
            _matched[key] = rules, tuple(getattr(node, flag) for flag in _FLAGS)
        return
    rules, flags = _matched[key]
    for flag, value in zip(_FLAGS, flags, strict=True):
        setattr(node, flag, value)
    self.replace_rules(node, rules, animate=animate)
    self._process_component_classes(node)


@contextmanager
def quick_styles() -> Iterator[None]:
    """Let every style sheet be parsed once, and every node's rules be looked for once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Stylesheet, "_parse_rules", _parse_once)
        patch.setattr(Stylesheet, "apply", _apply_once)
        yield
