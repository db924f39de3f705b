"""What is known of the store at one moment."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from gemtui.sessions.store import Problem, StoreState
from gemtui.sessions.summary import Summary


class Snapshot(Struct, frozen=True, kw_only=True):
    """What is known of the store at one moment.

    `sessions`: newest first, one per session id, hidden ones (`Summary.hidden`) included; a
    session's other files are its `copies`. `done` of `total` files are known; `complete`: all of
    them have been read to their ends. `unreadable`: files that hold no session that can be read,
    and folders that may not be read. `looked`: the places that were searched. `cache`: why there is
    no cache, if so; `renewed`: why it was replaced, if it was.
    """

    sessions: tuple[Summary, ...]
    done: int
    total: int
    complete: bool
    unreadable: tuple[Problem, ...]
    state: StoreState
    looked: tuple[Path, ...] = ()
    cache: Problem | None = None
    renewed: Problem | None = None
