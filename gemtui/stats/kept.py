"""The sums over many sessions, kept in parts, so that only parts that changed are counted again."""

from __future__ import annotations

import hashlib
import math
import os
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from datetime import datetime
from pathlib import Path

import msgspec.msgpack

from gemtui.sessions.catalog.cache import Cache
from gemtui.sessions.catalog.counted import Counted
from gemtui.sessions.catalog.vault_files import store_with_kept
from gemtui.sessions.store.store import ChatFile, Problem, never
from gemtui.stats.activity import ACTIVITIES, SLOT, FileActivity
from gemtui.stats.prices import Prices
from gemtui.stats.reading import activities
from gemtui.stats.report import Groups, Stats, Tally, added_up

_PARTS = 16
"""Into how many parts sessions are divided, by the paths of their files."""
_WHOLE = _PARTS
"""The number under which the sums over all sessions are kept, after those over the parts."""
_MONTH, _LAST = 30 * 86400, 2**32
"""Between two looks at the time zone; the last of them. In seconds."""


class KeptStats:
    """The statistics of sessions, whose sums are kept in the cache of activity.

    `home`: the CLI's folder. `cache`: gemtui's cache folder; None keeps nothing. `sessions`,
    `prices`, `since`, `until`: what the statistics are about. `places`: the sessions' files, by
    path, if they have just been looked at. The time zone is the local one. `problems`: why
    sessions could not be read.
    """

    def __init__(
        self,
        home: Path,
        cache: Path | None,
        sessions: Sequence[Counted],
        prices: Prices | None,
        *,
        since: datetime | None,
        until: datetime | None = None,
        places: Mapping[str, ChatFile] | None = None,
    ) -> None:
        self.problems: list[Problem] = []
        self._home, self._folder, self._sessions, self._prices = home, cache, sessions, prices
        self._since, self._until = since, until
        self._places = places or {file.name: file for file in store_with_kept(home).files()}
        zone = [time.localtime(second).tm_gmtoff for second in range(0, _LAST, _MONTH)]
        self._same = _packed((prices, _slot(since), _slot(until), zone))
        self._groups: dict[int, Groups] = {}
        self._tallies: dict[int, Tally] = {}
        self._whole: Stats | None = None

    @property
    def tokens(self) -> int:
        """The known tokens of the sessions that have been counted anew."""
        return sum(tally.tokens for tally in self._tallies.values())

    def stats(self) -> Stats:
        """Return the sums so far."""
        if self._whole is not None:
            return self._whole
        groups = self._groups | {part: tally.groups() for part, tally in self._tallies.items()}
        return added_up([groups[part] for part in sorted(groups)], self._prices)

    def count(self, cancelled: Callable[[], bool] = never) -> Iterator[int]:
        """Count the sessions of parts that have changed; yield the number of those counted so far.

        Sums are kept, except those over a part with a session that can't be read. `cancelled`: as
        in `activities`.
        """
        whole = self._question(self._sessions)
        with closing(Cache(self._folder, self._home, ACTIVITIES)) as cache:
            self._whole = cache.answer(_WHOLE, whole, _decode_stats)
            if self._whole is not None:
                return
            questions = self._compare(cache)
            for number, (session, activity) in self._activities(cancelled):
                part = _part_of(session)
                if isinstance(activity, Problem):
                    self.problems.append(activity)
                    questions[part] = whole = None
                else:
                    self._tallies[part].add(session, activity)
                yield number
            if not cancelled():
                self._groups |= {part: tally.groups() for part, tally in self._tallies.items()}
                for part in self._tallies:
                    cache.keep_answer(part, questions[part], _packed(self._groups[part]))
                self._tallies = {}
                self._whole = self.stats()
                cache.keep_answer(_WHOLE, whole, _packed(self._whole))

    def _compare(self, cache: Cache[FileActivity]) -> list[bytes | None]:
        """Find out which parts have changed; return what the sums over each part depend on."""
        parts: list[list[Counted]] = [[] for _ in range(_PARTS)]
        for session in self._sessions:
            parts[_part_of(session)].append(session)
        questions = [self._question(sessions) for sessions in parts]
        for part, question in enumerate(questions):
            groups = cache.answer(part, question, _decode_groups)
            if groups is None:
                tally = Tally(self._prices, since=self._since, until=self._until, zone=None)
                self._tallies[part] = tally
            else:
                self._groups[part] = groups
        return questions

    def _activities(
        self, cancelled: Callable[[], bool]
    ) -> Iterator[tuple[int, tuple[Counted, FileActivity | Problem]]]:
        """Yield the sessions to count, numbered after those whose sums are kept."""
        changed = [session for session in self._sessions if _part_of(session) in self._tallies]
        activity_of = activities(
            changed, home=self._home, cache=self._folder, places=self._places, cancelled=cancelled
        )
        return enumerate(activity_of, len(self._sessions) - len(changed) + 1)

    def _question(self, sessions: Sequence[Counted]) -> bytes | None:
        """Return what the sums over sessions depend on; None if a path is not text."""
        files = [self._places.get(session.name) for session in sessions]
        stamps = [None if file is None else file.stamp for file in files]
        packed = _packed((self._same, sessions, stamps))
        return None if packed is None else hashlib.sha256(packed).digest()


def _part_of(session: Counted) -> int:
    return zlib.crc32(os.fsencode(session.name)) % _PARTS


def _slot(moment: datetime | None) -> int | None:
    """Return the first time slot that begins at a moment or later."""
    return None if moment is None else math.ceil(moment.timestamp() / SLOT)


def _packed(value: object) -> bytes | None:
    """Encode a value; return None if it has a path that is not text."""
    try:
        return msgspec.msgpack.encode(value)
    except UnicodeEncodeError:
        return None


def _counter(_type: type, counts: Mapping[object, int]) -> Counter[object]:
    return Counter(counts)


_decode_stats = msgspec.msgpack.Decoder(Stats, dec_hook=_counter).decode
_decode_groups = msgspec.msgpack.Decoder(Groups, dec_hook=_counter).decode
