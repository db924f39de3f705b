"""On the real CLI: what a question shows is the one thing that happens."""

from __future__ import annotations

import asyncio
import json
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from gemtui.agent import process_tree
from gemtui.agent.approval import DIFFERS, Approval, ApprovalRequest, GateFolder
from gemtui.agent.events import Done, PermissionRequest
from gemtui.agent.run_folder import RunFolder
from gemtui.calls.effect import WRITE, EffectKind
from gemtui.runs.gate.gate import LED
from tests.gated import ask, asked, asking, run_of
from tests.model_server import ModelServer, answer, call, shell, text, writes
from tests.patience import PATIENCE
from tests.real_cli import GeminiCli

pytestmark = pytest.mark.covers("gemtui/agent", "gemtui/extension", "gemtui/calls")


def edit(name: str, old: str, new: str) -> Any:
    args = {"file_path": name, "instruction": "x", "old_string": old, "new_string": new}
    return call("replace", **args)


def contents(gemini: GeminiCli) -> dict[str, str]:
    root = gemini.project
    files = (each for each in root.rglob("*") if each.is_file() and ".git" not in each.parts)
    return {str(each.relative_to(root)): each.read_text() for each in files}


class Person:
    """Allows what it is shown, and keeps which texts it saw."""

    def __init__(self) -> None:
        self.seen: dict[str, str] = {}
        self.requests: list[ApprovalRequest] = []

    async def __call__(self, request: ApprovalRequest) -> Approval:
        self.requests.append(request)
        does = request.effect
        assert does is not None
        if does.kind is not EffectKind.FILE:
            return Approval.deny()
        assert does.path is not None
        assert does.after is not None
        self.seen[does.path] = does.after
        return Approval.allow(shown=does.mark)


async def test_only_files_that_were_shown_change_and_as_shown(gated: GeminiCli) -> None:
    project = gated.project
    before = {"a.txt": "a\n", "b%2etxt": "b\n", "loose.py": "def f():\n    return 1\n", "c.txt": ""}
    for name, was in before.items():
        (project / name).write_text(was)
    (project / "one").mkdir()
    (project / "two").mkdir()
    (project / "link").symlink_to("one")
    calls = [
        writes("a%2etxt", "other\n"),
        writes("@at.txt"),
        writes("nul\0.txt"),
        writes("b%252etxt", "percent\n"),
        writes("escaped.py", "# one\\nline\n"),
        edit("loose.py", "return  1", "return 2"),
        writes("link/swapped.txt"),
        edit("none.py", "1", "2"),
    ]
    person = Person()

    async def approve(request: ApprovalRequest) -> Approval:
        if request.requested.get("file_path") == "link/swapped.txt" and not request.again:
            (project / "link").unlink()
            (project / "link").symlink_to("two")
            return Approval.allow()
        return await person(request)

    ran = await ask(gated, [calls], approve, model="gemini-flash-latest")
    assert isinstance(ran.events[-1].payload, Done)
    (again,) = [each for each in person.requests if each.again]
    assert again.because == LED
    assert (project / "two/swapped.txt").read_text() == "x\n"
    assert "the file to edit does not exist" in ran.told
    files = {str(project / name): now for name, now in contents(gated).items()}
    changed = {name: now for name, now in files.items() if before.get(Path(name).name) != now}
    assert changed == person.seen
    assert files[str(project / "escaped.py")] == "# one\nline\n"
    assert run_of(gated).exit() is not None


async def test_nothing_runs_unasked_but_what_only_reads(gated: GeminiCli) -> None:
    project = gated.project
    odd = project / "ls\u00a0x"
    odd.mkdir()
    program = odd / "e.sh"
    program.write_text("#!/bin/sh\ntouch ran\n")
    program.chmod(0o755)
    git = ["git", "-C", str(project), "-c", "user.name=a", "-c", "user.email=a@b.c"]
    (project / ".gitattributes").write_text("*.bin diff=evil\n")
    (project / "a.bin").write_text("1\n")
    for words in (["init", "-q"], ["add", "a.bin"], ["commit", "-qm", "a"]):
        subprocess.run([*git, *words], check=True)
    evil = f"sh -c 'touch {project}/ran; cat \"$1\"' -"
    subprocess.run([*git, "config", "diff.evil.textconv", evil], check=True)
    (project / "a.bin").write_text("2\n")
    led = project / "led"
    subprocess.run(["git", "init", "-q", led], check=True)
    for key, value in (("core.worktree", gated.folder), ("grep.fullName", "true")):
        subprocess.run(["git", "-C", led, "config", key, value], check=True)
    (gated.folder / "outside.txt").write_text("plum\n")
    calls = [
        shell("ls\u00a0x/e.sh"),
        shell("git diff"),
        call("grep_search", pattern="--open-files-in-pager=touch ran;", include_pattern="1"),
        call("grep_search", pattern="[2]"),
        call("grep_search", pattern="[p]lum", dir_path="led", include_pattern=":/"),
        writes(".gemini/settings.json", '{"tools": {"allowed": ["run_shell_command"]}}\n'),
        writes("plain.txt"),
        shell("ls"),
    ]

    async def approve(_: ApprovalRequest) -> Approval:
        return Approval.deny()

    ran = await ask(gated, [calls], approve, approval_mode="auto_edit")
    requested = [request.requested for request in ran.requests]
    assert sorted(asks.get("command") or asks["file_path"] for asks in requested) == [
        ".gemini/settings.json",
        "git diff",
        "ls\u00a0x/e.sh",
    ]
    assert "Write its first character as" in ran.told
    assert "Found 1 match" in ran.told
    assert "plum" not in ran.told.replace("[p]lum", "")
    assert "changes the paths that searches show" in ran.told
    assert (project / "plain.txt").exists()
    assert not (project / "ran").exists()
    assert not (project / ".gemini").exists()


async def test_a_file_that_is_written_otherwise_stops_the_run(gated: GeminiCli) -> None:
    """A hook of the project's owner changes the file after the tool has written it."""
    place = gated.project / "a.txt"
    settings = json.loads((gated.store / "settings.json").read_text())
    after = {"type": "command", "command": f"echo evil > {place}; echo '{{}}'"}
    settings["hooks"] = {"AfterTool": [{"matcher": WRITE, "sequential": True, "hooks": [after]}]}
    (gated.store / "settings.json").write_text(json.dumps(settings))
    ran = await ask(gated, [[writes("a.txt", "good\n")], [writes("b.txt")]], Person())
    assert len(ran.model.asked) == 1
    assert isinstance(ran.events[-1].payload, Done)
    ended = run_of(gated).exit()
    assert ended is not None
    assert ended.problem == DIFFERS


async def test_a_killed_hook_lets_nothing_pass(gated: GeminiCli) -> None:
    """Not even what auto_edit and rules of the user's own allow."""
    policy = gated.folder / "mine.toml"
    rule = '[[rule]]\ntoolName = "{}"\ndecision = "allow"\npriority = 999\n'
    policy.write_text(rule.format("write_file") + rule.format("run_shell_command"))
    turns = [
        answer(writes("a.txt"), call("web_fetch", prompt="https://example.org")),
        answer(shell("touch b.txt"), writes("c.txt")),
        answer(text("Done.")),
    ]
    with ModelServer(turns) as model:
        options = asked(gated, approval_mode="auto_edit", policies=[policy])
        run = await asking(gated, model).begin("go", options)
        hunting = asyncio.create_task(asyncio.to_thread(_hunt, run.folder))
        async with asyncio.timeout(PATIENCE):
            async for event in run.owned_events():
                if isinstance(event.payload, PermissionRequest):
                    run.abort()
        await hunting
    let_pass = [str(each.arguments) for each in GateFolder.of(run.folder).passed_calls().values()]
    for name in contents(gated):  # its hook ended before it could be killed
        assert any(name in arguments for arguments in let_pass)


def _hunt(run: RunFolder) -> None:
    """Kill each hook that is asked about a call as soon as it is seen."""
    while run.exit() is None:
        for process in process_tree.tagged(run.id):
            with suppress(psutil.Error):
                if any("BeforeTool" in word or "ask.py" in word for word in process.cmdline()):
                    process.kill()
