"""The command palette's entries: every action of the table of keys that can act on this screen."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from functools import partial

from textual.command import CommandInput, CommandPalette, DiscoveryHit, Hit, Hits, Provider
from textual.dom import DOMNode

from gemtui.ui.kit.clean_widgets import LONGEST_LINE
from gemtui.ui.kit.dialog_guard import AnsweringScreen
from gemtui.ui.kit.keys import Group, Key, Where, reachable


class Palette(CommandPalette, AnsweringScreen[None]):
    """Runs one command, also when enter comes twice."""

    def on_mount(self) -> None:
        """No name is as long as what somebody may paste."""
        self.query_one(CommandInput).max_length = LONGEST_LINE


class KeyCommands(Provider):
    """Actions by name, with the key that does the same."""

    async def discover(self) -> Hits:
        """All of them, in the order of the table."""
        for title, help, run in self._commands():
            yield DiscoveryHit(title, run, help=help)

    async def search(self, query: str) -> Hits:
        """Those whose name or description fits."""
        matcher = self.matcher(query)
        for title, help, run in self._commands():
            score = max(matcher.match(title), matcher.match(help) * 0.5)
            if score > 0:
                yield Hit(score, matcher.highlight(title), run, help=help)

    def _commands(self) -> Iterator[tuple[str, str, Callable[[], Awaitable[bool]]]]:
        ascii = self.app.has_class("-ascii")
        for key, node in sorted(reachable(self.screen), key=_usefulness):
            title = f"{key.where}: {key.label}" if key.where is not Where.APP else key.label
            help = f"{key.help}  ({key.shown(ascii=ascii)})"
            yield title, help, partial(self.app.run_action, key.action, node)


def _usefulness(command: tuple[Key, DOMNode]) -> tuple[bool, bool]:
    """What is done by name comes first: not moving about, not what is the same everywhere."""
    key, _ = command
    return key.group is Group.MOVE, key.where is Where.APP
