"""Where the user left off: the place in each session, each folder's list, the last export."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from gemtui.files import make_private
from gemtui.jsonfile import read_as, write_again
from gemtui.sessions.catalog.columns import Sort
from gemtui.sessions.catalog.listing import View

if TYPE_CHECKING:
    from gemtui.transcript.model import Transcript
    from gemtui.ui.transcript.cursor import Cursor

MOST_PLACES = 200
"""How many sessions, and how many folders, are remembered."""
_SIZE = 256 * 1024

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ListPlace:
    """A list's view and cursor, as the user left them.

    `everywhere`, `sort`, `reverse`: as in `View`. `row`: the key of the row under the cursor.
    """

    everywhere: bool
    sort: Sort
    reverse: bool
    row: str


@dataclass(slots=True)
class LeftOff:
    """The places that the user has left, which are kept between starts.

    `blocks`: the message's id and the index of the block, by the session's id. `lists`: by the
    folder that the app was started in. `redact`: whether the last export was redacted.
    """

    blocks: dict[str, tuple[str, int]] = field(default_factory=dict)
    lists: dict[str, ListPlace] = field(default_factory=dict)
    redact: bool = False

    @classmethod
    def read(cls, path: Path) -> LeftOff:
        """Return what is stored in a file; nothing if it can't be read."""
        return read_as(path, cls, _SIZE) or cls()

    def save(self, path: Path) -> None:
        """Store the newest places in a file that only the user can read. Raises OSError."""
        make_private(path)
        write_again(path, LeftOff(_newest(self.blocks), _newest(self.lists), self.redact), _SIZE)

    def leave(self, session: str, transcript: Transcript, cursor: Cursor) -> None:
        """Record the cursor's place in a session; a session is left at its start by default."""
        self.blocks.pop(session, None)
        if cursor.message:
            self.blocks[session] = transcript.outlines[cursor.message].id, cursor.block or 0

    def leave_list(self, folder: str, view: View, row: str) -> None:
        """Record how the list of sessions looks for a folder."""
        self.lists.pop(folder, None)
        self.lists[folder] = ListPlace(view.everywhere, view.sort, view.reverse, row)


def _newest(places: dict[str, T]) -> dict[str, T]:
    return dict(list(places.items())[-MOST_PLACES:])
