"""Every recorded session can be drawn, at any width."""

from __future__ import annotations

from pathlib import Path

import pytest

from gemtui.sessions.read.conversation import transcript_of
from gemtui.sessions.read.session_log import SessionLog
from gemtui.ui.transcript.message import draw_message
from tests.hostile import CONTROLS
from tests.ui.transcript.samples import look
from tests.ui.transcript.test_any_message import assert_sound

STORES = Path(__file__).parents[2] / "data" / "sessions"
FILES = sorted(file for file in STORES.rglob("*.json*") if file.parent.parent.name != ".gemini")
CHATS = [file for file in FILES if "chats" in file.parts]


def test_there_are_recorded_sessions() -> None:
    assert len(CHATS) > 40


@pytest.mark.parametrize("width", [20, 80, 200])
def test_recorded_sessions_are_drawn(width: int) -> None:
    seen = 0
    for file in CHATS:
        with SessionLog(file) as log:
            log.refresh()
            for message in transcript_of(log, dropped=True):
                drawing = draw_message(message, look(width), folded=lambda _: False)
                seen += 1
                assert_sound(drawing, len(message.blocks))
                text = "\n".join(strip.text for strip in drawing.strips)
                assert max(strip.cell_length for strip in drawing.strips) <= width
                assert not CONTROLS.search(text.encode())
    assert seen > 200
