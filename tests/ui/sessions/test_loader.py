"""The open session: what is known of it between two readings costs nothing."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from gemtui.sessions.read.session_log import SessionLog
from gemtui.transcript.model import Dropped
from gemtui.ui.sessions.session_loader import SessionLoader
from tests.sessions import logs
from tests.sessions.stores import append, session, talk, uuid


def test_lost_messages_are_counted_by_a_reading(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_outlines(log: SessionLog) -> None:
        pytest.fail(f"{log.path}: outlines were made to count them")

    path = session(tmp_path, uuid(1), talk(uuid(1), turns=3))
    with closing(SessionLoader(path)) as reader:
        reader.read_first()
        assert not reader.lost
        append(path, {"$rewindTo": "u1"})
        assert not reader.lost
        assert reader.rest() is not None
        monkeypatch.setattr(SessionLog, "dropped", property(no_outlines))
        assert reader.lost == {Dropped.REWOUND: 4}
        append(path, logs.user("u1", "More 1"))
    with closing(SessionLoader(path)) as reader:
        reader.read_first()
        assert reader.lost == {Dropped.REWOUND: 3}
