"""The last statistics, kept until anything changes that they depend on."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path

import msgspec.msgpack

from gemtui.sessions.catalog.cache import Cache
from gemtui.sessions.catalog.counted import Counted
from gemtui.sessions.store.store import ChatFile
from gemtui.stats.activity import ACTIVITIES, SLOT
from gemtui.stats.prices import Prices
from gemtui.stats.report import Stats

_MONTH, _LAST = 30 * 86400, 2**32
"""Between two looks at the time zone; the last of them. In seconds."""


class KeptStats:
    """The statistics that were asked for last, in the cache of activity.

    `home`: the CLI's folder. `cache`: gemtui's cache folder. `sessions`, `prices`, `since`,
    `until`: what the statistics are about. `places`: the sessions' files, by path. The time zone is
    the local one.
    """

    def __init__(
        self,
        home: Path,
        cache: Path,
        sessions: Sequence[Counted],
        places: Mapping[str, ChatFile],
        prices: Prices | None,
        *,
        since: datetime | None,
        until: datetime | None,
    ) -> None:
        self._cache = Cache(cache, home, ACTIVITIES)
        self._question = _encoded(
            sessions,
            [places[session.name].stamp for session in sessions if session.name in places],
            prices,
            _slot(since),
            _slot(until),
            [time.localtime(second).tm_gmtoff for second in range(0, _LAST, _MONTH)],
        )

    def close(self) -> None:
        """Close the cache."""
        self._cache.close()

    def get(self) -> Stats | None:
        """Return the statistics; None if other ones were asked for last."""
        return None if self._question is None else self._cache.answer(self._question, _decode)

    def keep(self, stats: Stats) -> None:
        """Keep the statistics in place of the last ones."""
        if self._question is not None:
            self._cache.keep_answer(self._question, msgspec.msgpack.encode(stats))


def _slot(moment: datetime | None) -> int | None:
    """Return the first time slot that begins at a moment or later."""
    return None if moment is None else math.ceil(moment.timestamp() / SLOT)


def _encoded(*question: object) -> bytes | None:
    """Encode a question; return None if it has a path that is not text."""
    try:
        return msgspec.msgpack.encode(question)
    except UnicodeEncodeError:
        return None


def _counter(_type: type, counts: Mapping[object, int]) -> Counter[object]:
    return Counter(counts)


_decode = msgspec.msgpack.Decoder(Stats, dec_hook=_counter).decode
