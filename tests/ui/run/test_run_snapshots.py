"""How the run pane looks in its states, wide and narrow.

After a change that is meant: `pytest tests/ui/test_run_snapshots.py --snapshot-update`, and look at
what changed before it is committed.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from datetime import timedelta
from itertools import count
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from gemtui.agent.approval import ApprovalRequest, GateFolder, Settled
from gemtui.agent.stream import Stream
from gemtui.transcript.model import Consent
from gemtui.ui.run.screen import RunScreen
from gemtui.worktree_records import list_worktrees
from tests.checkpoints.projects import put
from tests.checkpoints.test_repositories import repository
from tests.fake_cli import FakeCli
from tests.patience import PATIENCE
from tests.ui.people import NOW, WIDE, Person, person

AT = "2026-11-21T00:59:{:02}.000Z"
MOMENT = int(NOW.timestamp() * 1000)
"""What the clock says for an event that brings no time of its own."""
Scene = Callable[[Person, FakeCli], Awaitable[None]]


def event(second: int, **fields: object) -> str:
    """A step of the child that prints an event of this second."""
    line = json.dumps({"timestamp": AT.format(second), **fields})
    return "print:" + line.replace("\\", "\\\\")


def call(second: int, id: str, name: str, **args: str) -> str:
    return event(second, type="tool_use", tool_name=name, tool_id=id, parameters=args)


def said(second: int, text: str) -> str:
    return event(second, type="message", role="assistant", content=text, delta=True)


def result(second: int, id: str, status: str = "success", **more: object) -> str:
    return event(second, type="tool_result", tool_id=id, status=status, **more)


STEPS = [
    event(1, type="init", session_id="s1", model="gemini-2.5-pro"),
    said(2, "I will add the test first, then change the reader."),
    call(
        3,
        "t1",
        "write_file",
        file_path="tests/test_tail.py",
        content="def test_tail():\n    pass\n",
    ),
    call(3, "t2", "replace", file_path="reader.py", old_string="lines", new_string="lines, tail"),
    call(3, "t3", "run_shell_command", command="pytest -q"),
    "make:tests/test_tail.py=def test_tail():\n    pass",
    result(4, "t1"),
    "make:reader.py=lines, tail",
    result(4, "t2"),
]
REFUSED = {"type": "tool_not_registered", "message": 'Tool "run_shell_command" not found.'}
END = [
    result(5, "t3", "error", error=REFUSED),
    said(6, "The file is written. I may not run the tests here."),
    event(7, type="result", status="success", stats={"input_tokens": 1200, "output_tokens": 80}),
]


async def settled(me: Person) -> None:
    screen = me.app.screen_stack[0]
    assert isinstance(screen, RunScreen)
    await me.until(lambda: screen.run_shown and screen.run_shown.told is not None)
    await me.painted(screen)


async def ask(me: Person, *keys: str) -> None:
    await me.type("Add a test for the tail record.")
    await me.press("enter", *keys)


async def empty(me: Person, cli: FakeCli) -> None:
    del me, cli


async def options(me: Person, cli: FakeCli) -> None:
    del cli
    await me.does("ctrl+o", "Use the network", "these options for this folder")


async def ended(me: Person, cli: FakeCli) -> None:
    cli(*STEPS, *END)
    await ask(me)
    await settled(me)
    await me.sees("denied")


async def files(me: Person, cli: FakeCli) -> None:
    await ended(me, cli)
    await me.does("escape down", "space revert")


async def failed(me: Person, cli: FakeCli) -> None:
    cli("err:Please set an Auth method in your settings", "exit:41")
    await ask(me)
    await settled(me)


async def stopped(me: Person, cli: FakeCli) -> None:
    cli(*STEPS, "wait")
    await ask(me)
    await me.sees("pytest -q")
    await me.press("ctrl+c", "ctrl+c")
    await settled(me)
    await me.sees("interrupted")


EDIT = {"file_path": "reader.py", "old_string": "lines\n", "new_string": "lines, tail\n"}
SHELL = {"command": "pytest -q && git commit -am wip && git push --force > /tmp/log"}
BECAUSE = "The mode default asks before this."


async def asked(me: Person, cli: FakeCli, *questions: tuple[str, dict[str, str]]) -> RunScreen:
    """A run that asks all of this; the first one is drawn and has the keys."""
    cli(*STEPS[:2], call(3, "t1", questions[0][0], **questions[0][1]), "wait")
    await ask(me)
    await me.sees("I will add the test first")
    pane = me.app.screen_stack[0]
    assert isinstance(pane, RunScreen)
    assert pane.run_shown is not None
    gate = GateFolder.of(pane.run_shown.run.folder)
    gate.create()
    for number, (tool, args) in enumerate(questions, 1):
        subagent = number == 3
        gate.ask(
            ApprovalRequest(
                tool_name=tool,
                arguments=args,
                number=number,
                asked=MOMENT,
                because=BECAUSE,
                subagent=subagent,
            )
        )
    await me.until(lambda: len(pane.question.waiting) == len(questions))
    await me.until(lambda: pane.question.shown is not None and pane.question.view.has_focus)
    await me.sees("waiting for your answer", "y allow")
    await me.until(lambda: pane.run_shown is not None and pane.run_shown.reports.pid)
    pane.run_shown.reports.pid = 4711
    pane.panes.stale()
    pane.paint()
    await me.pilot.pause()
    return pane


async def question_edit(me: Person, cli: FakeCli) -> None:
    await asked(me, cli, ("replace", EDIT))


async def question_shell(me: Person, cli: FakeCli) -> None:
    await asked(me, cli, ("run_shell_command", SHELL))


async def question_list(me: Person, cli: FakeCli) -> None:
    add = {"command": "git add reader.py"}
    await asked(
        me, cli, ("run_shell_command", add), ("replace", EDIT), ("run_shell_command", SHELL)
    )


async def question_changed(me: Person, cli: FakeCli) -> None:
    pane = await asked(me, cli, ("replace", EDIT))
    assert pane.question.shown is not None
    assert pane.run_shown is not None
    shown, change = pane.question.shown, pane.run_shown.conversation.change
    pane.question.redraw(shown, change(shown, "lines, rest\n"))
    await me.sees("changed by you")


async def question_answered(me: Person, cli: FakeCli) -> None:
    pane = await asked(me, cli, ("run_shell_command", SHELL))
    assert pane.run_shown is not None
    gate = GateFolder.of(pane.run_shown.run.folder)
    gate.settle(1, Settled(consent=Consent.CHANGED, arguments={"command": "pytest -q"}))
    await me.sees("changed by you", "ran", "enter queues")
    await me.until(lambda: not pane.question.asks)


async def worktrees(me: Person, cli: FakeCli) -> None:
    """Two runs of one prompt, each with a worktree."""
    repository(me.app.start.home.parent / "project", other="other\n")
    cli(*STEPS, *END)
    await me.command("worktree")
    await ask(me)
    await settled(me)
    await me.command("worktrees")
    await me.sees("tests/test_tail.py")
    await me.does("m", "Models, separated by commas")
    await me.type("gemini-3-pro-preview")
    await me.does("enter", "3-pro-preview", "denied")
    await settled(me)
    tree = list_worktrees()[0].tree
    put(tree, b"reader.py", b"lines, last\n")
    put(tree, b"a-folder-with-a-rather-long-name/for-notes/notes.md", b"Done.\n")
    await me.command("worktrees")
    await me.sees("notes.md")


SCENES: dict[str, Scene] = {
    "worktrees": worktrees,
    "question-edit": question_edit,
    "question-shell": question_shell,
    "question-list": question_list,
    "question-changed": question_changed,
    "question-answered": question_answered,
    "empty": empty,
    "options": options,
    "ended": ended,
    "files": files,
    "failed": failed,
    "stopped": stopped,
}


@pytest.mark.parametrize("scene", SCENES)
async def test_each_state_of_a_run(
    home: Path,
    fake_cli: FakeCli,
    monkeypatch: pytest.MonkeyPatch,
    snapshot: SnapshotAssertion,
    scene: str,
) -> None:
    project = home / "project"
    project.mkdir()
    (project / "reader.py").write_text("lines\n")
    (home / ".gemini/trustedFolders.json").write_text(json.dumps({str(project): "TRUST_FOLDER"}))
    monkeypatch.setenv("HOME", str(home))
    defaults = Stream.__init__.__kwdefaults__
    assert defaults is not None
    monkeypatch.setitem(defaults, "clock", lambda: MOMENT)
    made = NOW - timedelta(minutes=2)
    monkeypatch.setattr("gemtui.ui.run.worktrees_screen.made_at", lambda _worktree: made)
    numbers = count(1)
    monkeypatch.setattr("secrets.token_hex", lambda size: f"{next(numbers):0{2 * size}x}")
    monkeypatch.setattr("gemtui.ui.run.labels._SILENT", PATIENCE)
    fake_cli()
    async with person(home / ".gemini", WIDE, project=project) as me:
        await me.does("2", "enter starts a run", "gemini 0.61.0")
        await SCENES[scene](me, fake_cli)
        try:
            await me.looks_in_both_sizes(snapshot)
        finally:
            for run in me.app.runs.alive:
                run.stop()
                await run.run.wait()
