"""A file rebuilt from what the real CLI stored."""

from __future__ import annotations

import asyncio

import pytest

from gemtui.agent.adapter import UnguardedAdapter
from gemtui.agent.options import AgentOptions
from gemtui.policy.model.rules import ApprovalMode
from gemtui.recover.history import recover_file
from tests.model_server import ModelServer, answer, call, text
from tests.patience import PATIENCE
from tests.real_cli import MODEL, GeminiCli
from tests.recover.histories import marked
from tests.sessions.stores import read

pytestmark = [pytest.mark.usefixtures("remembered_help"), pytest.mark.covers("gemtui/calls")]


async def test_each_record_of_the_cli_tells_of_the_file(gemini: GeminiCli) -> None:
    first = "".join(f"line\t{number}  \n" for number in range(1, 9))
    calls = [
        call("write_file", file_path="a.txt", content=first),
        call("replace", file_path="a.txt", old_string="line\t2", new_string="two", instruction="x"),
        call("run_shell_command", command="sed -i s/3/three/ a.txt"),
        call("run_shell_command", command="cat a.txt"),
        call("read_file", file_path="./a.txt", start_line=4, end_line=5),
    ]
    with ModelServer([*(answer(each) for each in calls), answer(text("Done."))]) as model:
        adapter = UnguardedAdapter(
            cli=gemini.program, runs=gemini.folder / "runs", environ=gemini.environment(model.url)
        )
        options = AgentOptions(cwd=gemini.project, model=MODEL, approval_mode=ApprovalMode.YOLO)
        async with asyncio.timeout(PATIENCE):
            async for _ in adapter.run("Go", options):
                pass
    file = gemini.project / "a.txt"
    sessions = read(gemini.store).sessions
    now = file.read_text()
    file.unlink()
    found = recover_file(file, sessions)
    assert found.rebuilt is not None
    assert found.rebuilt.text == now
    guessed = [line for line in marked(found) if line.startswith("?")]
    assert [*guessed[:3], len(guessed)] == ["?line\t1  ", "?two  ", "?line\tthree  ", 6]
    assert [each.source and each.source.tool for each in found.rebuilt.spans] == [
        "replace",
        "run_shell_command",
        "read_file",
        "replace",
    ]
