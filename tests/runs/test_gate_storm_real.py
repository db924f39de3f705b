"""Something of a run that asks is killed, frozen or removed at a moment that chance picks.

Calls are answered yes, no or with other arguments meanwhile, by a process that may be hit as well.
Each seed is one run of the real CLI; GEMTUI_TEST_STORMS says how many, GEMTUI_TEST_SEED the first,
and `-rP` shows what happened in each.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pytest

from gemtui.agent import process_tree
from gemtui.agent.adapter import GeminiRun
from gemtui.agent.approval import ALTERED, PASSED
from gemtui.transcript.model import Consent
from tests.gated import asked, asking
from tests.model_server import ModelServer, Request, Turn, answer, call, text
from tests.patience import until
from tests.real_cli import GeminiCli

pytestmark = pytest.mark.covers("gemtui/agent", "gemtui/extension")

STORMS = int(os.environ.get("GEMTUI_TEST_STORMS", "1"))
FIRST = int(os.environ.get("GEMTUI_TEST_SEED", "1"))
CALLS = 12
"""Tool calls of a run."""
SERVERS = "mcp_things_make"
"""A tool that takes no argument more: nothing but its hook holds it."""
STEP = 0.002
"""Seconds between two looks for the moment."""
FREEZES = 0.35
"""How likely a process is frozen for a while, and not killed."""

SERVER = """
import json, sys
TEXT = {"type": "string"}
SCHEMA = {"type": "object", "properties": {"path": TEXT, "content": TEXT}}
SCHEMA["additionalProperties"] = False
for line in sys.stdin:
    asked = json.loads(line)
    method, given = asked["method"], asked.get("params", {})
    result = {}
    if method == "initialize":
        info = {"name": "things", "version": "1"}
        version = given["protocolVersion"]
        result = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}
    elif method == "tools/list":
        tool = {"name": "make", "description": "Makes a file.", "inputSchema": SCHEMA}
        result = {"tools": [tool]}
    elif method == "tools/call":
        open(given["arguments"]["path"], "w").write(given["arguments"]["content"])
        result = {"content": [{"type": "text", "text": "made"}]}
    if "id" in asked:
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"""


def add_server(gemini: GeminiCli) -> None:
    (gemini.folder / "server.py").write_text(SERVER)
    settings = json.loads((gemini.store / "settings.json").read_text())
    server = {"command": sys.executable, "args": [str(gemini.folder / "server.py")]}
    settings["mcpServers"] = {"things": {**server, "cwd": str(gemini.project)}}
    (gemini.store / "settings.json").write_text(json.dumps(settings))


def calls(chance: random.Random) -> Iterator[list[Any]]:
    """What the model wants, turn by turn."""
    names = [str(number) for number in range(CALLS)]
    while names:
        several = []
        for name in [names.pop() for _ in names[: chance.choice((1, 1, 2, 3))]]:
            kind = chance.choice(("write_file", "run_shell_command", SERVERS))
            name = f"{kind}-{name}"
            words = f"model:{name}"
            given = {
                "write_file": {"file_path": name, "content": f"{words}\n"},
                "run_shell_command": {"command": f"echo {words} > {name}"},
                SERVERS: {"path": name, "content": f"{words}\n"},
            }
            several.append(call(kind, **given[kind]))
        yield several


def script(chance: random.Random) -> Callable[[Request], Turn]:
    """The model's turns; half of the runs have a sub-agent do it."""
    turns = [answer(*several) for several in calls(chance)]
    done = answer(text("Done."))
    if chance.random() < 0.7:
        main = iter(turns)
        return lambda _: next(main, done)
    steps = iter([*turns, answer(call("complete_task", result={"response": "Written."}))])
    agent = call("invoke_agent", agent_name="generalist", prompt="Write them.")
    main = iter([answer(agent)])
    return lambda request: next(steps if "complete_task" in request.tools else main, done)


@dataclass
class Storm:
    """One run, who answers it, and what hits it."""

    run: GeminiRun
    temporary: Path
    chance: random.Random
    keepers: list[psutil.Process] = field(default_factory=list)
    """Supervisor and guardian."""
    cli: psutil.Process | None = None
    persons: list[subprocess.Popen[bytes]] = field(default_factory=list)
    frozen: int = 0
    was_hit: int = 0

    @property
    def journal(self) -> Path:
        return self.run.folder.path.parent / "journal"

    def meet(self) -> None:
        """Learn who takes part, once the CLI is there."""
        until(lambda: (owner := self.run.folder.owner()) and owner.cli)
        owner = self.run.folder.owner()
        assert owner is not None
        supervisor = psutil.Process(owner.pid)
        self.cli = psutil.Process(owner.cli)
        self.keepers = [supervisor, *supervisor.parents()[:1]]

    def answered_by_somebody(self) -> None:
        """A gemtui begins to answer."""
        words = [str(self.run.folder.path), str(self.journal), self.run.folder.id]
        program = [sys.executable, "-m", "tests.runs.answering"]
        self.persons.append(subprocess.Popen([*program, *words]))

    def wait_for(self, moment: str) -> None:
        """Until the moment of the attack has come, or the run has ended."""
        number = len(self.run.gate.question_numbers()) + self.chance.randint(1, 3)
        moments: dict[str, Callable[[], bool]] = {
            "start": lambda: True,
            "init": lambda: self.said(b'"type":"init"') > 0,
            "asked": lambda: self.run.gate.has_question(number),
            "answered": lambda: self.run.gate.is_answered(number),
            "settled": lambda: self.run.gate.settled(number) is not None,
            "between": lambda: self.said(b'"type":"tool_result"') >= number,
        }
        came = moments[moment]
        while not came() and not self.is_over():
            self.follow()
            time.sleep(STEP)
        longest = 1.5 if moment == "start" else 0.06
        time.sleep(self.chance.random() ** 2 * longest)

    def follow(self) -> None:
        """A person who was killed is followed by another, some time."""
        if self.persons[-1].poll() is not None and self.chance.random() < 0.05:
            self.answered_by_somebody()

    def said(self, words: bytes) -> int:
        return self.run.folder.stdout.read_bytes().count(words)

    def is_over(self) -> bool:
        """Whether nobody is left who could do anything."""
        known = [*self.keepers, *([self.cli] if self.cli else [])]
        return not any(map(process_tree.is_alive, known)) and not process_tree.tagged(
            self.run.folder.id
        )

    def hit(self, victim: str, *, spare: bool = False) -> None:
        """Kill or freeze; with `spare` the run can go on."""
        if victim == "socket":
            (self.temporary / "gate").unlink(missing_ok=True)
            return
        found = self.victims(victim)
        for process in found if self.chance.random() < 0.5 else found[:1]:
            self.was_hit += 1
            with suppress(psutil.Error):
                if (spare and victim not in REPLACED) or self.chance.random() < FREEZES:
                    process.suspend()
                    thaws = threading.Timer(self.chance.random() ** 2 * 2, thaw, (process,))
                    thaws.start()
                    self.frozen += 1
                else:
                    process.kill()

    def victims(self, victim: str) -> list[psutil.Process]:
        all: dict[str, Callable[[], list[psutil.Process]]] = {
            "hook": self.hooks,
            "ask.py": lambda: [each for each in self.hooks() if "ask.py" in line_of(each)],
            "supervisor": lambda: self.keepers[:1],
            "guardian": lambda: self.keepers[1:],
            "both": lambda: self.keepers,
            "gemtui": lambda: [
                each for each in psutil.Process().children() if "answering" in line_of(each)
            ],
            "cli": lambda: [each for each in self.below() if "node" in line_of(each)],
        }
        found = all[victim]()
        self.chance.shuffle(found)
        return found

    def hooks(self) -> list[psutil.Process]:
        """The processes of the next hook that is seen."""
        end = time.monotonic() + 0.5
        while time.monotonic() < end:
            found = [each for each in self.below() if "hook" in line_of(each)]
            if found:
                return found
        return []

    def below(self) -> list[psutil.Process]:
        return list(process_tree.descendants(self.cli.pid)) if self.cli else []

    def last(self) -> None:
        """Until all is over; who was killed is followed by another."""

        def is_over() -> bool:
            self.follow()
            return self.is_over()

        until(is_over)
        self.run.reap()
        for each in self.persons:
            each.kill()
            each.wait()


def thaw(process: psutil.Process) -> None:
    with suppress(psutil.Error):
        process.resume()


def line_of(process: psutil.Process) -> str:
    with suppress(psutil.Error):
        return " ".join(process.cmdline())
    return ""


REPLACED = ("hook", "ask.py", "gemtui")
"""After whom others come."""
MOMENTS = ("asked", "asked", "answered", "answered", "settled", "between")
VICTIMS = ("hook", "hook", "ask.py", "supervisor", "guardian", "both", "gemtui", "cli", "socket")


@pytest.mark.parametrize("seed", range(FIRST, FIRST + STORMS))
def test_what_is_there_was_allowed_as_it_is(gated: GeminiCli, seed: int) -> None:
    chance = random.Random(seed)
    add_server(gated)
    with ModelServer(script(chance)) as model:
        run = asking(gated, model).start("go", asked(gated))
        (temporary,) = until(lambda: list(gated.folder.glob("gemtui-*")))
        storm = Storm(run, temporary, chance)
        storm.answered_by_somebody()
        storm.meet()
        if chance.random() < 0.2:
            storm.wait_for(chance.choice(("start", "init")))
            storm.hit(chance.choice(VICTIMS))
        for _ in range(chance.randint(0, 3)):
            storm.wait_for(chance.choice(MOMENTS))
            storm.hit(chance.choice(VICTIMS[:-1]), spare=True)
        moment, victim = chance.choice(MOMENTS), chance.choice(VICTIMS)
        storm.wait_for(moment)
        before = len(approved(run))
        storm.hit(victim)
        storm.last()
    there = {each.name: each.read_text() for each in gated.project.iterdir()}
    may = allowed(run, storm.journal)
    never = {
        name for name, text in there.items() if name not in may or not may[name].startswith(text)
    }
    told = {"seed": seed, "moment": moment, "victim": victim, "hit": storm.was_hit}
    told |= {"frozen": storm.frozen, "approved_before": before}
    print("storm", json.dumps(told | {"files": len(there), "never": len(never)} | counted(run)))
    if any(name.startswith(SERVERS) for name in never):
        ended = run.folder.exit()
        assert ended is not None
        assert ended.problem in (PASSED, ALTERED)
    assert {name for name in never if not name.startswith(SERVERS)} == set()


def approved(run: GeminiRun) -> set[int]:
    """The questions that were answered with yes, as asked or changed."""
    answers = {number: run.gate.answer_to(number) for number in run.gate.question_numbers()}
    return {number for number, each in answers.items() if each and each.consent is Consent.ALLOWED}


def allowed(run: GeminiRun, journal: Path) -> dict[str, str]:
    """The files that may be there, with their content."""
    lines = journal.read_text().splitlines() if journal.exists() else []
    entries = [json.loads(line) for line in lines]
    yes = approved(run)
    return {each["name"]: each["may"] for each in entries if each["may"] and each["number"] in yes}


def counted(run: GeminiRun) -> Counter[str]:
    """How often each thing became of a question."""
    found = (run.gate.settled(number) for number in run.gate.question_numbers())
    return Counter("open" if each is None else Consent(each.consent).value for each in found)
