"""What runs is what was shown, on the real CLI: calls by chance, answers by chance.

`GEMTUI_TEST_SHOWN=1000` tries that many calls, `GEMTUI_TEST_SEED` others.
"""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import pytest

from gemtui.agent.approval import Approval, ApprovalRequest
from gemtui.agent.events import AgentEvent, Done
from tests.calls.generated import Case, arguments, case_of, files, put
from tests.gated import asked, asking
from tests.model_server import ModelServer, answer, call, text
from tests.real_cli import GeminiCli

pytestmark = pytest.mark.covers("gemtui/agent", "gemtui/extension", "gemtui/calls")

CALLS = int(os.environ.get("GEMTUI_TEST_SHOWN", "40"))
SEED = int(os.environ.get("GEMTUI_TEST_SEED", "1"))
A_RUN = 60
IN_A_TURN = 6
MODELS = ("gemini-2.5-flash", "gemini-flash-latest")

PROGRAM = '#!/bin/sh\necho ran >> "$(dirname "$0")/ran"\n'
"""Notes beside itself that it was started."""
COMMANDS = (
    "ls\u00a0x/e.sh",
    "ls\u3000x/e.sh",
    "cat\u2003x/e.sh f.txt",
    "x/e.sh",
    "ls x",
    "cat f.txt",
    "git log -p",
    "git diff",
    "git\u00a0status x/e.sh",
    "bash -c 'x/e.sh'",
    'sh -c "ls; x/e.sh"',
    "uniq f.txt made.txt",
    "find . -name f.txt",
    "grep -r one .",
    "echo hi > made.txt",
    "head -1 f.txt # x/e.sh",
)


class Person:
    """Answers by chance, and notes what each yes was for."""

    def __init__(self, chance: random.Random, project: Path) -> None:
        self._chance, self._project = chance, project
        self.files: dict[str, bytes] = {}
        self.touched: set[str] = set()
        self.commands: list[str] = []
        self.asked = 0

    async def approve(self, request: ApprovalRequest) -> Approval:
        self.asked += 1
        effect, chance = request.effect, self._chance.random()
        assert effect is not None
        assert effect.certain
        if effect.command is not None:
            if chance < 0.4:
                return Approval.deny("not now")
            self.commands.append(f"{effect.folder}: {effect.command}")
            return Approval.allow()
        assert effect.path is not None
        assert effect.after is not None
        if chance < 0.3:
            return Approval.deny()
        if chance < 0.45 and effect.path not in self.touched:
            self._meddle(Path(effect.path))  # so the question comes back
            return Approval.allow()
        self.files[effect.path] = effect.after.encode()
        return Approval.allow()

    def _meddle(self, path: Path) -> None:
        """Change the file between question and answer, as another program may."""
        self.touched.add(str(path))
        assert path.is_relative_to(self._project)
        path.parent.mkdir(parents=True, exist_ok=True)
        now = path.read_bytes() if path.exists() else b""
        path.write_bytes(now + b"meddled\n")
        self.files[str(path)] = path.read_bytes()


def prepare(gemini: GeminiCli, chance: random.Random, number: int) -> tuple[str, dict[str, Any]]:
    """Make the folder of a call, and return the call."""
    folder = gemini.project / f"c{number}"
    if chance.random() < 0.3:
        put(folder, EMPTY)
        (folder / "f.txt").write_text("one\none\n")
        for place in (folder / "x", folder / "ls\u00a0x", folder / "cat\u2003x"):
            place.mkdir()
            (place / "e.sh").write_text(PROGRAM)
            (place / "e.sh").chmod(0o755)
        command = chance.choice(COMMANDS)
        return "run_shell_command", {"command": command, "dir_path": folder.name}
    case = case_of(chance)
    put(folder, case)
    return case.tool, arguments(case, folder.name)


EMPTY = Case(there=None, content=b"", spelled="", tool="", texts={}, at=False)


@pytest.mark.parametrize("model", MODELS)
async def test_only_what_was_shown_and_approved_happens(gated: GeminiCli, model: str) -> None:
    chance = random.Random(f"{SEED} {model}")
    left, number = CALLS // len(MODELS), 0
    while left > 0:
        many = min(A_RUN, left)
        left -= many
        calls = [prepare(gated, chance, number + each) for each in range(many)]
        number += many
        person = Person(chance, gated.project)
        expected = files(gated.project)
        events = await run(gated, model, calls, person)
        assert person.asked > many / 4
        for path, data in person.files.items():
            expected[str(Path(path).relative_to(gated.project))] = data
        found = files(gated.project)
        made = {name for name in found if Path(name).name in OF_COMMANDS}
        assert without(found, made) == without(expected, made)
        for name in made - expected.keys():
            assert approved(person, gated.project / name), (name, person.commands)
        (done,) = (event.payload for event in events if isinstance(event.payload, Done))
        assert done.status.value == "success", done


OF_COMMANDS = ("ran", "made.txt")


def without(found: dict[str, bytes], names: set[str]) -> dict[str, bytes]:
    return {name: data for name, data in found.items() if name not in names}


def approved(person: Person, made: Path) -> bool:
    """Whether a command that makes this file was approved in its folder."""
    folder = next(each for each in made.parents if each.parent.name == "greeter")
    mine = [line for line in person.commands if line.startswith(f"{folder}: ")]
    return any("e.sh" in line or "made.txt" in line for line in mine)


async def run(
    gemini: GeminiCli, model: str, calls: list[tuple[str, dict[str, Any]]], person: Person
) -> list[AgentEvent]:
    turns = [
        answer(*(call(tool, **args) for tool, args in calls[at : at + IN_A_TURN]))
        for at in range(0, len(calls), IN_A_TURN)
    ]
    with ModelServer([*turns, answer(text("Done."))]) as server:
        options = asked(gemini, approve=person.approve, model=model)
        return [event async for event in asking(gemini, server).run("go", options)]
