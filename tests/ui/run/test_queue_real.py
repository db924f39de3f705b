"""Prompts that wait behind a run, by keys, on the real CLI."""

from __future__ import annotations

import json
import signal
from dataclasses import replace

import pytest

from gemtui.agent.process_tree import send, tagged
from gemtui.paths import runs_dir
from gemtui.policy.model.rules import ApprovalMode
from gemtui.runs.listing import list_runs
from gemtui.transcript.model import Transcript
from tests.gated import put_hooks
from tests.model_server import ModelServer, Request, Turn, answer, call, text
from tests.real_cli import GeminiCli
from tests.ui.people import NARROW
from tests.ui.run.test_questions import Asked
from tests.ui.run.test_questions_real import ask_me
from tests.ui.run.test_queue import Queuer, sent
from tests.ui.run.test_screen import runner

pytestmark = pytest.mark.covers("gemtui/runs", "gemtui/extension")


def prompts(model: ModelServer) -> list[str]:
    """What the model was asked last in each of its requests."""
    return [json.dumps(each.body["contents"][-1]) for each in model.asked]


def marked(transcript: Transcript) -> list[bool]:
    """Of each prompt, whether it is marked to have a checkpoint."""
    prompts = [at for at, each in enumerate(transcript.outlines) if each.prompt]
    return [transcript.read(at).checkpoint for at in prompts]


async def test_three_are_sent_by_going_on_with_the_session_in_the_new_order(
    on_loopback: GeminiCli, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["Begun.", "Third is done.", "First is done.", "Second is done."]
    gate = on_loopback.project / "gate"
    slow = call("run_shell_command", command=f"until [ -e {gate} ]; do sleep 0.05; done")
    turns = [answer(slow), *(answer(text(each)) for each in words)]
    with ModelServer(turns) as model:
        monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", model.url)
        async with runner(on_loopback.home, on_loopback.project, NARROW) as found:
            me = Queuer(found.app, found.pilot)
            me.pane.next_run.options = replace(me.pane.options, approval_mode=ApprovalMode.YOLO)
            await me.ask("begin")
            await me.sees("^c stop")
            await me.queue("first", "second", "third")
            await me.sees("3 queued", "↶ checkpoint")
            await me.listed()
            await me.press("end", "K", "K")
            await me.sees("1 third", "2 first", "3 second")
            await me.press("escape")
            gate.touch()
            await me.all_done("begin", "third", "first", "second")
            await me.sees("Second is done.", "✓ done")
            await me.until(lambda: marked(me.pane.view.page.transcript) == [True] * 4)
        said = prompts(model)
    runs = list_runs(runs_dir())
    assert len({run.session for run in runs}) == 1, "all of it is one session"
    assert [next(w for w in ("third", "first", "second") if w in each) for each in said[2:]] == [
        "third",
        "first",
        "second",
    ]
    assert "Begun." in json.dumps(model.asked[-1].body["contents"])


async def test_a_run_that_asks_is_killed_and_what_waits_is_sent_by_key(
    on_loopback: GeminiCli, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_hooks(on_loopback)
    answers = {
        "begin": "Begun.",
        "prefer tabs": "The word came.",
        "first": "First is done.",
        "second": "Second is done.",
    }

    def turn(request: Request) -> Turn:
        asked = json.dumps(request.body["contents"][-1])
        for prompt, words in answers.items():
            if prompt in asked:
                return answer(text(words))
        return answer(call("write_file", file_path="a.txt", content="a\n"))

    with ModelServer(turn) as model:
        monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", model.url)
        async with runner(on_loopback.home, on_loopback.project, NARROW) as found:
            me = Queuer(found.app, found.pilot)
            await ask_me(me)  # type: ignore[arg-type]
            await me.ask("begin")
            await me.sees("Begun.", "✓ done")
            await me.ended()
            await me.ask("go on")
            await Asked(found.app, found.pilot).ready(1)
            await me.press("i")
            await me.type("prefer tabs")
            await me.press("ctrl+s")
            await me.sees("1 message not read yet")
            await me.queue("first", "second")
            await me.sees("2 queued")
            run = me.pane.run_shown
            assert run is not None
            send(tagged(run.id), signal.SIGKILL)
            await me.sees("3 waiting", "3 queued prompts")
            assert me.waits() == ["prefer tabs", "first", "second"]
            assert sent() == ["begin", "go on"]
            await me.until(lambda: run.over)
            await me.press("escape", "escape")
            await me.listed()
            await me.sees("1 prefer tabs", "2 first", "3 second")
            await me.press("s")
            await me.sees("Second is done.", "✓ done")
        said = prompts(model)
    assert not (on_loopback.project / "a.txt").exists()
    assert [
        word for each in said for word in ("prefer tabs", "first", "second") if word in each
    ] == [
        "prefer tabs",
        "first",
        "second",
    ]
    assert sent() == ["begin", "go on", "prefer tabs"], "the others were sent in its process"
