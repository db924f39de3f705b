"""Whatever of the runs' folders the file system refuses, what the app does with them goes on."""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path

import pytest

from gemtui.agent.approval import GateFolder
from gemtui.files import size_of
from gemtui.kept.resume_guard import settle_abandoned
from gemtui.kept.run_copies import keep_before, last_copies
from gemtui.runs.disk_usage import runs_usage
from gemtui.runs.gate.questions import Conversation
from gemtui.runs.listing import broken_runs, clear_runs, list_runs, prune_runs
from gemtui.ui.run import mode
from gemtui.ui.run.prompt_sources import History, paths_below
from tests.deep import DEEP
from tests.runs.test_listing import add_run, unended
from tests.sessions.faults import injected
from tests.sessions.stores import session, uuid

REFUSALS = [errno.EIO, errno.ENOENT]
if DEEP:
    REFUSALS += [errno.EACCES, errno.ELOOP, errno.ENAMETOOLONG]


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """An ended run, a lost one, a broken one, and one that has the only copy of a session."""
    place = tmp_path / "state/runs"
    add_run(place, "ended")
    unended(place, "lost", None)
    (place / "broken").mkdir()
    kept = add_run(place, "kept")
    stored = session(tmp_path / ".gemini", uuid(1), key="plain")
    keep_before(kept, tmp_path / ".gemini", uuid(1))
    stored.unlink()
    return place


@pytest.mark.parametrize(
    "look",
    [
        list_runs,
        broken_runs,
        runs_usage,
        last_copies,
        settle_abandoned,
        mode._may_run,
        mode._tidy,
        prune_runs,
        paths_below,
        lambda place: size_of(place / "ended/stderr.txt"),
        lambda place: History(place / "prompts.jsonl").add("go"),
        lambda place: Conversation(GateFolder(place / "ended/gate"), place).refresh(),
        clear_runs,
    ],
)
def test_a_place_that_stays_closed(
    runs: Path, look: Callable[[Path], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    (stored,) = (runs.parents[1] / ".gemini").rglob("plain/chats")
    for place in (runs.parent, runs, *sorted(runs.rglob("*"))):
        for error in REFUSALS:
            with injected(monkeypatch) as faults:
                faults.fail_below(place, error)
                look(runs)
    assert any(stored.iterdir()) or last_copies(runs), "the only copy of a session is lost"
