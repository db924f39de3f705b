"""Replaying recorded calls: a hundred thousand of them against a hundred rules."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import orjson

from gemtui.policy.engine.decide import Engine
from gemtui.policy.file.policy import Policy
from gemtui.policy.model.rules import Call, CallStatus, RecordedCall
from gemtui.policy.suggest.replay import ReplayCounter
from tests.tools.bench.make_store import CODE, WORDS
from tests.tools.bench.measure import Row, alone, medians

CALLS, RULES = 100_000, 100
BATCH = 200
"""Calls at a time, as the pane feeds them."""
PROGRAMS = ("git status", "git diff", "npm test", "pytest", "cargo build", "ls", "make check")
COMMANDS = (
    "pytest -q tests/{0}",
    "git diff -- {0}",
    "cd {0} && npm test -- {1}",
    "ls {0} | head -5",
    "make check",
    "cat {0}",
    "rm -rf build/{1}",
    "python -m {1} --{0}",
)
PATTERN = re.compile(rb'"file_path":"src/[^"]*/record\.py"')


def make_calls() -> Iterator[dict[str, Any]]:
    """Calls as agents make them: half reads and searches, the rest edits and commands."""
    chance = random.Random(CALLS)
    for number in range(CALLS):
        tool, args = _call(chance)
        session, id = f"session-{number // 50}", f"{tool}-{number}"
        yield {"tool": tool, "session": session, "id": id, "args": args}


def _call(chance: random.Random) -> tuple[str, dict[str, str]]:
    path = f"src/{chance.choice(WORDS)}/{chance.choice(WORDS)}-{chance.randrange(500)}.py"
    match chance.randrange(8):
        case 0 | 1 | 2:
            return "read_file", {"file_path": path}
        case 3:
            return "grep_search", {"pattern": chance.choice(WORDS), "dir_path": "src"}
        case 4:
            return "write_file", {"file_path": path, "content": _code(chance)}
        case 5:
            old, new = _code(chance), _code(chance)
            args = {"file_path": path, "instruction": "do", "old_string": old, "new_string": new}
            return "replace", args
        case _:
            command = chance.choice(COMMANDS).format(path, chance.choice(WORDS))
            return "run_shell_command", {"command": command, "description": "do it"}


def _code(chance: random.Random) -> str:
    return "\n".join(chance.choices(CODE, k=chance.randint(2, 20)))


def make_policy(rules: int = RULES) -> str:
    """Rules of all kinds; few of them match."""
    chance = random.Random(rules)
    return "\n".join(_rule(number, chance) for number in range(rules))


def _rule(number: int, chance: random.Random) -> str:
    word, decision = chance.choice(WORDS), chance.choice(("allow", "deny", "ask_user"))
    match number % 4:
        case 0:
            program = chance.choice(PROGRAMS)
            what = f'toolName = "run_shell_command"\ncommandPrefix = "{program} {word}"'
        case 1:
            pattern = rf'\x00"file_path":"src/{word}/[^"]*-{number}\.py"\x00'
            what = f'toolName = ["write_file", "replace"]\nargsPattern = \'{pattern}\''
        case 2:
            what = f'toolName = "mcp_{word}_{number}"'
        case _:
            program = PROGRAMS[number % len(PROGRAMS)]
            what = f'toolName = "run_shell_command"\ncommandPrefix = ["{program}", "{word}"]'
    return f'[[rule]]\n{what}\ndecision = "{decision}"\npriority = {number}\n'


# --- what is timed -------------------------------------------------------------------------------


def one_pattern(path: Path) -> None:
    """Floor: the calls as JSON lines, read, and one compiled pattern over each of them."""
    found = 0
    with path.open("rb") as file:
        for line in file:
            orjson.loads(line)
            found += PATTERN.search(line) is not None
    assert found < CALLS


def replayed(path: Path) -> None:
    """The same calls, replayed in batches."""
    run = ReplayCounter(Engine(Policy.parse(make_policy(), source="bench.toml")))
    with path.open("rb") as file:
        recorded = map(_recorded, file)
        while batch := tuple(islice(recorded, BATCH)):
            run.feed(batch)
    assert run.counts().calls == CALLS


def _recorded(line: bytes) -> RecordedCall:
    stored = orjson.loads(line)
    return RecordedCall(
        call=Call(tool=stored["tool"], args=stored["args"]),
        session=stored["session"],
        id=stored["id"],
        ended=CallStatus.SUCCEEDED,
    )


def rows(folder: Path, repeat: int) -> Iterator[Row]:
    """The replay, beside its floor."""
    path = folder / "calls.jsonl"
    with path.open("wb") as file:
        for call in make_calls():
            file.write(orjson.dumps(call, option=orjson.OPT_APPEND_NEWLINE))
    runs = [[alone(work, path) for work in (one_pattern, replayed)] for _ in range(repeat)]
    floor, cost = medians(runs)
    yield Row(
        what=f"{CALLS:,} recorded calls against {RULES} rules",
        cost=cost,
        floor="orjson and one pattern over them",
        least=floor.seconds,
    )
    path.unlink()
