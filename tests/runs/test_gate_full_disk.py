"""A gate on a full disk refuses or waits, and nothing runs that nobody could answer."""

from __future__ import annotations

import asyncio
import errno
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from gemtui.agent.approval import Approval, ApprovalRequest, GateFolder, answer_questions
from gemtui.agent.events import Done
from gemtui.paths import live_dir
from gemtui.runs.adapter import GeminiAdapter
from gemtui.runs.gate.gate import TROUBLE
from tests.agent.event_lists import collect
from tests.conftest import fill
from tests.gated import asked
from tests.model_server import ModelServer, Request, Turn, answer, call, text
from tests.patience import until
from tests.real_cli import GeminiCli
from tests.runs.test_gate import Asker

pytestmark = pytest.mark.covers("gemtui/agent", "gemtui/extension")

NO_ROOM = f"{TROUBLE}: No space left on device"


def free(disk: Path) -> None:
    (disk / "full").unlink()


@pytest.fixture
def asker(other_file_system: Path) -> Asker:
    return Asker(other_file_system)


def test_what_can_t_be_asked_or_written_down_is_refused(
    asker: Asker, other_file_system: Path
) -> None:
    refused = {"decision": "deny", "reason": NO_ROOM}
    with ThreadPoolExecutor() as pool:
        first = pool.submit(asker.call, "write_file", file_path="a", content="1")
        asker.question(1)
        asker.files.answer(2, Approval.allow())
        fill(other_file_system)
        (asker.files.path / "answer-2.json").rename(asker.files.path / "answer-1.json")
        assert first.result() == refused
        assert asker.call("write_file", file_path="b", content="1") == refused
        free(other_file_system)
        later = pool.submit(asker.call, "write_file", file_path="b", content="1")
        assert asker.question(2).requested["file_path"] == "b"
        asker.files.answer(2, Approval.deny())
        assert later.result() == {"decision": "deny", "reason": "The user said no."}
    asker.close()


async def test_an_answer_that_has_no_room_is_given_later(other_file_system: Path) -> None:
    gate, came = GateFolder(other_file_system / "gate"), asyncio.Event()
    gate.create()
    gate.ask(ApprovalRequest(tool_name="write_file", arguments={}, number=1))

    async def approve(_: ApprovalRequest) -> Approval:
        fill(other_file_system)
        came.set()
        return Approval.allow()

    answering = asyncio.create_task(answer_questions(gate, approve, lambda _: None))
    await came.wait()
    with pytest.raises(OSError, match=r".*") as no_room:
        gate.answer(2, Approval.deny())
    assert no_room.value.errno == errno.ENOSPC
    assert not gate.is_answered(1)
    free(other_file_system)
    await asyncio.to_thread(until, lambda: gate.answer_to(1))
    answering.cancel()


@pytest.fixture
def on_disk(other_file_system: Path, gated: GeminiCli) -> Callable[[ModelServer], GeminiAdapter]:
    """Runs, the socket and the live folder are on the small disk."""
    assert live_dir().is_relative_to(other_file_system)

    def adapter(model: ModelServer) -> GeminiAdapter:
        environ = gated.environment(model.url) | {"TMPDIR": str(other_file_system)}
        runs = other_file_system / "runs"
        return GeminiAdapter(cli=gated.program, runs=runs, environ=environ)

    return adapter


async def test_nothing_runs_that_could_not_be_asked(
    on_disk: Callable[[ModelServer], GeminiAdapter], gated: GeminiCli, other_file_system: Path
) -> None:
    def write(name: str) -> Turn:
        return answer(call("write_file", file_path=name, content="1\n"))

    turns = iter([write("a"), write("b"), answer(text("Done."))])

    def turn(_: Request) -> Turn:
        following = next(turns)
        if (gated.project / "a").exists():
            fill(other_file_system)
        if "Done." in str(following):
            free(other_file_system)
        return following

    async def approve(_: ApprovalRequest) -> Approval:
        return Approval.allow()

    with ModelServer(turn) as model:
        events = await collect(on_disk(model).run("go", asked(gated, approve=approve)))
        assert isinstance(events[-1].payload, Done)
        assert model.asked, events
        told = json.dumps(model.asked[-1].body["contents"][-1])
    assert NO_ROOM in told
    assert [each.name for each in gated.project.iterdir()] == ["a"]
