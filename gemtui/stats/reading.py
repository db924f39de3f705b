"""Read the activity in sessions, as far as it isn't cached."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from gemtui.sessions.catalog.counted import Counted
from gemtui.sessions.catalog.read_cached import read_cached
from gemtui.sessions.store.store import ChatFile, Problem, never
from gemtui.stats.activity import ACTIVITIES, FileActivity

if TYPE_CHECKING:
    from gemtui.sessions.read.session_log import SessionLog


def activities(
    sessions: Sequence[Counted],
    *,
    home: Path,
    cache: Path | None,
    places: Mapping[str, ChatFile] | None = None,
    cancelled: Callable[[], bool] = never,
) -> Iterator[tuple[Counted, FileActivity | Problem]]:
    """Yield each session with its activity, or with a problem if it can't be read.

    Results are cached, so only files that have changed are read. `home`, `cache`, `places`,
    `cancelled`: as in `read_cached`.
    """
    return read_cached(
        sessions,
        ACTIVITIES,
        _activity,
        home=home,
        cache=cache,
        places=places,
        cancelled=cancelled,
    )


def _activity(log: SessionLog, session: Counted) -> FileActivity:
    from gemtui.stats.counting import activity_of

    return activity_of(log, session.when)
