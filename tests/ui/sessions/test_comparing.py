"""Two sessions compared."""

from __future__ import annotations

from pathlib import Path

from gemtui.stats.prices import load_prices
from gemtui.ui.sessions.comparing import compared
from tests.sessions.test_written_files import ROOT, sessions, stored
from tests.sessions.writes import wrote


def test_files_that_two_sessions_left_are_compared(tmp_path: Path) -> None:
    one, two = wrote(ROOT / "a", None, "1\n"), wrote(ROOT / "a", "1\n", "2\n", seconds=4)
    same = wrote(ROOT / "same", None, "x\n", seconds=5)
    stored(tmp_path, 1, one, two, same)
    other, mine = wrote(ROOT / "a", None, "3\n"), wrote(ROOT / "mine", None, "m\n", seconds=4)
    stored(tmp_path, 2, other, mine, same)
    both = sorted(sessions(tmp_path), key=lambda session: session.id)
    lines = list(compared(both, load_prices(), home=tmp_path, cache=None))
    files = lines[lines.index("Files") + 1 :]
    assert files[0] == "  different, from A to B: a"
    assert files[-4:] == ["-2", "+3", "  only in B: mine", "  the same in both: same"]
    assert lines[lines.index("Prompts of B") + 1] == "  Prompt 2"
