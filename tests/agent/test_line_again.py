"""The line that does a run again, pasted into a shell."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from gemtui.agent.command import line_again
from gemtui.agent.gemini import GeminiRun, UnguardedAdapter
from gemtui.agent.options import AgentOptions
from gemtui.errors import OptionError
from gemtui.policy.model.rules import ApprovalMode
from tests.fake_cli import HELP, INIT, OK, FakeCli

OLDER = HELP.replace("--policy           Policies", "--allowed-tools    Tools   ")


async def ended(options: AgentOptions) -> GeminiRun:
    run = await UnguardedAdapter().begin("say it", options)
    await run.wait()
    return run


def pasted(run: GeminiRun, words: Path) -> list[str]:
    """The words that the CLI gets from the line."""
    words.unlink()
    line = line_again(run.request, run.folder)
    subprocess.run(["bash", "-c", line], stdin=subprocess.DEVNULL, capture_output=True, check=True)
    return words.read_text().splitlines()


async def test_it_has_the_mode_and_a_session_of_its_own(fake_cli: FakeCli, tmp_path: Path) -> None:
    fake_cli(f"print:{INIT}", f"print:{OK}")
    options = AgentOptions(
        cwd=tmp_path, approval_mode=ApprovalMode.DEFAULT, resume="s0", trust=True
    )
    words = pasted(await ended(options), tmp_path / "words")
    assert words == ["--output-format=stream-json", "--approval-mode=default"]


async def test_there_is_none_where_only_the_settings_denied_a_tool(
    fake_cli: FakeCli, tmp_path: Path
) -> None:
    program = fake_cli(f"print:{INIT}", f"print:{OK}", help=OLDER)
    program.write_text(program.read_text().replace("0.61.0", "0.29.0"))
    options = AgentOptions(cwd=tmp_path, approval_mode=ApprovalMode.YOLO, trust=True)
    assert "--approval-mode=yolo" in pasted(await ended(options), tmp_path / "words")
    denying = AgentOptions(
        cwd=tmp_path,
        approval_mode=ApprovalMode.YOLO,
        disallowed_tools=["run_shell_command"],
        trust=True,
    )
    run = await ended(denying)
    with pytest.raises(OptionError, match="its denied tools were in the run's settings"):
        line_again(run.request, run.folder)
