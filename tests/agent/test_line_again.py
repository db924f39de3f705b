"""The line that does a run again, pasted into a shell."""

from __future__ import annotations

import subprocess
from pathlib import Path

from gemtui.agent.adapter import GeminiRun, UnguardedAdapter
from gemtui.agent.command import rerun_line
from gemtui.agent.options import AgentOptions
from gemtui.policy.model.rules import ApprovalMode
from tests.fake_cli import INIT, OK, FakeCli


async def ended(options: AgentOptions) -> GeminiRun:
    run = await UnguardedAdapter().begin("say it", options)
    await run.wait()
    return run


def pasted(run: GeminiRun, words: Path) -> list[str]:
    """The words that the CLI gets from the line."""
    words.unlink()
    line = rerun_line(run.request, run.folder)
    subprocess.run(["bash", "-c", line], stdin=subprocess.DEVNULL, capture_output=True, check=True)
    return words.read_text().splitlines()


async def test_it_has_the_mode_and_a_session_of_its_own(fake_cli: FakeCli, tmp_path: Path) -> None:
    fake_cli(f"print:{INIT}", f"print:{OK}")
    options = AgentOptions(
        cwd=tmp_path, approval_mode=ApprovalMode.DEFAULT, resume="s0", trust=True
    )
    words = pasted(await ended(options), tmp_path / "words")
    assert words == ["--output-format=stream-json", "--approval-mode=default"]
