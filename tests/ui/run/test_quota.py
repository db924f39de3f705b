"""A run that waits for its quota, in the run pane: it goes on by itself, after a quit as well."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from gemtui.runs.outcome import GO_ON
from tests.fake_cli import FakeCli, says
from tests.ui import people
from tests.ui.run.test_queue import sent
from tests.ui.run.test_screen import END, START, runner

QUOTA = (
    'print:{"type":"result","timestamp":"2026-11-21T00:30:00Z","status":"error","error":'
    '{"type":"unknown","message":"[API Error: Your quota will reset after 2h0m0s.]"}}'
)


async def test_a_used_up_quota_is_waited_for_across_a_quit(
    home: Path,
    project: Path,
    fake_cli: FakeCli,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fake_cli(START, says("Half"), QUOTA, "exit:173")
    async with runner(home, project) as me:
        me.pane.next_run.options = replace(me.pane.options, wait_for_quota=True)
        await me.ask("go")
        await me.sees("used up", "until 02:30", "1 waiting")
        await me.is_told("queued prompt")
        run = me.pane.run_shown
        assert run is not None
        assert [each.text for each in run.run.queue.prompts()] == [GO_ON]
        assert sent() == ["go"]
    seen = tmp_path / "seen"
    fake_cli(START, says("All done."), f"until:{seen}", END)
    monkeypatch.setattr(people, "NOW", people.NOW + timedelta(hours=2))
    async with people.person(home / ".gemini", people.WIDE, project=project) as me:
        await me.until(lambda: [run.prompt for run in me.app.runs.alive] == [GO_ON])
        await me.does("2", "All done.")
        assert sent() == ["go", GO_ON]
        seen.touch()
