"""A project whose files a session changed, to be undone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gemtui.agent.trust import remember
from gemtui.paths import gemini_home
from tests.sessions import logs
from tests.sessions.stores import marker, session, uuid
from tests.sessions.writes import wrote
from tests.ui.people import Person

HOSTILE = "\x1b]0;owned\x07\n\u202e.txt"


@pytest.fixture
def project(home: Path, tmp_path: Path) -> Path:
    """A folder with a session of three prompts; the last two wrote files, one is edited since."""
    root = tmp_path / "tide"
    root.mkdir()
    shell = logs.call("c9", 62, name="run_shell_command", args={"command": "rm -rf build"})
    records: list[dict[str, Any]] = [
        logs.header(uuid(1)),
        logs.user("u1", "Look around.", 1),
        logs.gemini("g1", "A small project.", 2),
        logs.user("u2", "Draw the moon.", 10),
        wrote(root / "moon.py", None, "full\n", seconds=20),
        wrote(root / "sea.py", "calm\n", "storm\n", seconds=30),
        logs.user("u3", "Now clean up.", 50),
        wrote(root / "notes.md", "a\nb\nc\n", "a\nB\nc\n", seconds=55),
        wrote(root / HOSTILE, None, "bad\n", seconds=58),
        logs.gemini("g9", "Cleaned.", 60, toolCalls=[shell]),
    ]
    marker(gemini_home(), "proj", str(root))
    session(gemini_home(), uuid(1), records)
    (root / "moon.py").write_text("full\n")
    (root / "sea.py").write_text("storm\n")
    (root / "notes.md").write_text("a\nB, mine\nc\n")
    (root / HOSTILE).write_text("bad\n")
    remember(root)
    return root


async def to_second_prompt(me: Person) -> None:
    """Open the session with the cursor on the answer to its second prompt."""
    await me.sees("Look around.")
    await me.press("enter")
    await me.until(lambda: me.view.has_focus and me.view.total)
    await me.press("home", "right_curly_bracket", "down")
