"""Parts: the classes that split up a screen or widget with many keys."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

_ACTION = "action_"
"""Prefix of the methods that Textual calls for key bindings."""


class KeyPart:
    """A part of a screen or widget: some state and the key actions that use it.

    The actions are methods named `action_*`.
    """

    def can(self, action: str) -> bool:
        """Return whether one of this part's actions is available right now."""
        del action
        return True

    def only_says_why(self, action: str) -> bool:
        """Return whether the action's key would only explain why it doesn't work now."""
        del action
        return False


class HasParts:
    """Mixin for a screen or widget whose actions are implemented by its parts."""

    _part_of: Mapping[str, KeyPart] = MappingProxyType({})
    """Maps each action's name to the part that implements it."""

    def add_parts(self, *parts: KeyPart) -> None:
        """Add parts, so that the keys bound here can call their actions."""
        found = {name: part for part in parts for name in dir(part) if name.startswith(_ACTION)}
        self._part_of = {name.removeprefix(_ACTION): part for name, part in found.items()}
        for name, part in found.items():
            setattr(self, name, getattr(part, name))

    def can(self, action: str) -> bool:
        """Return whether an action is available right now, according to its part."""
        part = self._part_of.get(action)
        return part is None or part.can(action)

    def only_says_why(self, action: str) -> bool:
        """Return whether a key would only explain why it doesn't work now.

        Such keys are left out of the footer.
        """
        part = self._part_of.get(action)
        return part is not None and part.only_says_why(action)
