"""Index logs that are still growing, without indexing all of a log each time.

A log's last messages may still change, because calls get their results later; earlier messages
rarely change. So the documents of a growing log are stored under several document numbers (see
`file_list.py`), and only those under the last number are replaced each time. If earlier messages do
change (by a rewind, or because the CLI replaced all messages), the whole log is indexed again.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Collection, Sequence

from gemtui.search.documents import UNREADABLE, FileDocuments
from gemtui.search.file_list import session_of
from gemtui.search.index import WriteIndex
from gemtui.search.read_documents import readable_documents
from gemtui.sessions.catalog.summarise import kind_and_id
from gemtui.sessions.read.conversation import message_fingerprints
from gemtui.sessions.read.replay import Replay
from gemtui.sessions.read.session_log import SessionLog
from gemtui.sessions.store.store import ChatFile

_LOGS = 4
"""Maximum number of logs kept open."""
_LIVE = 600.0
"""A log counts as growing for this many seconds after its last change."""
_OPEN = 16
"""Number of messages at the end of a log that may still change."""
_MANY = 64
"""If more new messages than this have settled, they get a document number of their own.

Otherwise, they stay with the messages that may still change.
"""


class Following:
    """Follows growing logs, and adds their new parts to `index`."""

    def __init__(self, index: WriteIndex) -> None:
        self._index = index
        self._logs: OrderedDict[str, _Growing] = OrderedDict()

    def close(self) -> None:
        """Close all open logs."""
        while self._logs:
            self._logs.popitem()[1].log.close()

    def growing(self, places: Sequence[ChatFile]) -> Collection[ChatFile]:
        """Return those of the files that are growing logs, to be indexed with `add`.

        `places` must be sorted newest first.
        """
        now = time.time()
        found = {
            place
            for place in places[:_LOGS]
            if place.name.endswith(".jsonl") and abs(now - place.mtime_ns / 1e9) < _LIVE
        }
        return found | {place for place in places if place.name in self._logs}

    def add(self, place: ChatFile) -> None:
        """Index the new part of a log.

        A log that can't be read is added without documents.
        """
        growing = self._logs.pop(place.name, None) or _Growing(place)
        try:
            growing.log.refresh()
        except UNREADABLE:
            growing.log.close()
            self._index.add(place, FileDocuments())
            return
        growing.add(self._index, place)
        self._logs[place.name] = growing
        if len(self._logs) > _LOGS:
            self._logs.popitem(last=False)[1].log.close()


class _Growing:
    """A growing log, with its messages that are already indexed and won't change."""

    def __init__(self, place: ChatFile) -> None:
        self.log = SessionLog(place.path)
        self._replay: Replay | None = None
        self._messages: list[tuple[object, ...]] = []
        self._settled: tuple[int, ...] = ()

    def add(self, index: WriteIndex, place: ChatFile) -> None:
        """Index the messages that have been added to the log since the last call."""
        messages = message_fingerprints(self.log)
        start = len(self._messages)
        if self._replay is not self.log.replay or messages[:start] != self._messages:
            start, self._settled = 0, ()
        stop = len(messages) - _OPEN
        if stop - start > (_MANY if start else 0):
            self._settled += (self._add(index, place, start, stop),)
            start = stop
        self._add(index, place, start, None)
        self._messages, self._replay = messages[:start], self.log.replay

    def _add(self, index: WriteIndex, place: ChatFile, start: int, stop: int | None) -> int:
        session = session_of(*kind_and_id(self.log, place))
        documents = readable_documents(self.log, start=start, stop=stop)
        return index.add(place, FileDocuments(session, documents), keep=self._settled)
