"""The files of a run of the real CLI, with a real git: by tools, by shell, and after a stop."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime

import pytest

from gemtui.agent.options import AgentOptions
from gemtui.policy.model.rules import ApprovalMode
from gemtui.runs.adapter import GeminiAdapter
from gemtui.runs.enrich import enrich
from gemtui.ui.run.live_run import LiveRun
from tests.model_server import ModelServer, Turn, answer, call, text
from tests.patience import PATIENCE, turns_until
from tests.real_cli import MODEL, GeminiCli

pytestmark = [
    pytest.mark.covers("gemtui/agent"),
    pytest.mark.usefixtures("remembered_help"),
    pytest.mark.skipif(shutil.which("git") is None, reason="needs git"),
]


async def run(gemini: GeminiCli, turns: Sequence[Turn], *, stop_at: str | None = None) -> LiveRun:
    """A run to its end, with what its session adds; `stop_at`: the file whose write stops it."""
    options = AgentOptions(cwd=gemini.project, model=MODEL, approval_mode=ApprovalMode.YOLO)
    with ModelServer(turns) as model:
        environ = gemini.environment(model.url) | {"XDG_DATA_HOME": os.environ["XDG_DATA_HOME"]}
        adapter = GeminiAdapter(cli=gemini.program, runs=gemini.folder / "runs", environ=environ)
        started = await asyncio.to_thread(adapter.start, "Do it", options)
        live = LiveRun(started, "Do it", began=datetime.now(UTC))
        following = asyncio.create_task(live.follow(see_files=True))
        async with asyncio.timeout(PATIENCE):
            if stop_at is not None:
                await turns_until((gemini.project / stop_at).exists)
                live.stop()
            await following
    live.told = await asyncio.to_thread(enrich, live.own_transcript, gemini.store, live.session)
    await live.files.recompute()
    return live


def said(live: LiveRun) -> list[str]:
    rows = [
        f"{row.letter} {row.path.relative_to(live.cwd)} +{row.added} -{row.removed} {row.words}"
        for row in live.files.rows
    ]
    return sorted(row.strip() for row in rows)


@pytest.mark.every_run
async def test_what_tools_and_commands_did_to_files(gemini: GeminiCli) -> None:
    for name in ("tracked.txt", "edited.txt", "gone.txt", "cancelled.txt"):
        (gemini.project / name).write_text("one\ntwo\n")
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "x"]):
        author = ["-c", "user.name=a", "-c", "user.email=a@b"]
        subprocess.run(["git", "-C", str(gemini.project), *author, *words], check=True)
    edit = {"instruction": "x", "file_path": "cancelled.txt"}
    turns = [
        answer(
            call("write_file", file_path="new.txt", content="one\n"),
            call("write_file", file_path="short.txt", content="one\n"),
            call(
                "replace", file_path="edited.txt", instruction="x", old_string="two", new_string="2"
            ),
            call("replace", old_string="two", new_string="2", **edit),
        ),
        answer(call("replace", old_string="2", new_string="two", **edit)),
        answer(
            call(
                "run_shell_command",
                command="seq 3 > made.txt; echo 3 >> tracked.txt; rm gone.txt short.txt; sleep 1",
            )
        ),
        answer(text("Done.")),
    ]
    live = await run(gemini, turns)
    assert said(live) == [
        "A made.txt +3 -0 by shell",
        "A new.txt +1 -0",
        "D gone.txt +0 -2 by shell",
        "D short.txt +0 -0 by shell, created and then deleted",
        "M cancelled.txt +0 -0 same content",
        "M edited.txt +1 -1",
        "M tracked.txt +1 -0 by shell",
    ]
    found = await live.files.difference(gemini.project / "gone.txt")
    assert found.diff is not None
    assert found.diff.diff.endswith("-one\n-two\n")


async def test_a_write_whose_run_is_stopped_is_settled_by_the_disk(gemini: GeminiCli) -> None:
    (gemini.project / "kept.txt").write_text("one\n")
    turns = [
        answer(
            call("run_shell_command", command="touch begun; sleep 600"),
            call("write_file", file_path="later.txt", content="later\n"),
            call(
                "replace", file_path="kept.txt", instruction="x", old_string="one", new_string="1"
            ),
        )
    ]
    live = await run(gemini, turns, stop_at="begun")
    rows = {row.path.name: row.written for row in live.files.rows}
    assert rows == {"begun": "written", "later.txt": "not written", "kept.txt": "not written"}
