"""Screens and widgets with many keys are made of parts."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

_ACTION = "action_"
"""Prefix of the methods that Textual calls when a key is pressed."""


class KeyPart:
    """One subject of a screen or widget: its state, and the `action_*` methods of its keys."""

    def can(self, action: str) -> bool:
        """Return whether one of this part's actions is available now."""
        del action
        return True

    def only_says_why(self, action: str) -> bool:
        """Return whether the action's key currently only explains why it has no effect."""
        del action
        return False


class HasParts:
    """A screen or widget whose parts have some of the actions of its keys."""

    _part_of: Mapping[str, KeyPart] = MappingProxyType({})
    """Maps the name of each action to the part that has it."""

    def add_parts(self, *parts: KeyPart) -> None:
        """Register parts, so that the keys bound here can call their actions."""
        found = {name: part for part in parts for name in dir(part) if name.startswith(_ACTION)}
        self._part_of = {name.removeprefix(_ACTION): part for name, part in found.items()}
        for name, part in found.items():
            setattr(self, name, getattr(part, name))

    def can(self, action: str) -> bool:
        """Return whether an action is available now, as decided by its part."""
        part = self._part_of.get(action)
        return part is None or part.can(action)

    def only_says_why(self, action: str) -> bool:
        """Return whether a key currently only explains why it has no effect.

        The footer does not show such a key.
        """
        part = self._part_of.get(action)
        return part is not None and part.only_says_why(action)
