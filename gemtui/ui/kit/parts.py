"""Parts: classes that each implement some of the actions of a screen with many keys."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

_ACTION = "action_"
"""Prefix of the methods that Textual calls for key bindings."""


class KeyPart:
    """A part of a screen or widget: some state, and the key actions that use it.

    The actions are methods named `action_*`.
    """

    def can(self, action: str) -> bool:
        """Return whether one of this part's actions is available now."""
        del action
        return True

    def only_says_why(self, action: str) -> bool:
        """Return whether the action's key would now only explain why it doesn't work."""
        del action
        return False


class HasParts:
    """Mixin for a screen or widget whose parts implement its actions."""

    _part_of: Mapping[str, KeyPart] = MappingProxyType({})
    """The part that implements each action, by the action's name."""

    def add_parts(self, *parts: KeyPart) -> None:
        """Add parts, so that the screen's or widget's keys can call their actions.

        To be called once, with all parts.
        """
        found = {name: part for part in parts for name in dir(part) if name.startswith(_ACTION)}
        self._part_of = {name.removeprefix(_ACTION): part for name, part in found.items()}
        for name, part in found.items():
            setattr(self, name, getattr(part, name))

    def can(self, action: str) -> bool:
        """Return whether an action is available now, according to its part.

        An action that no part implements is always available.
        """
        part = self._part_of.get(action)
        return part is None or part.can(action)

    def only_says_why(self, action: str) -> bool:
        """Return whether the action's key would now only explain why it doesn't work.

        Such keys are left out of the footer.
        """
        part = self._part_of.get(action)
        return part is not None and part.only_says_why(action)
