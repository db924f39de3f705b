"""A store of what an agent did yesterday, and a person who tries a policy on it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from gemtui.config import Config
from gemtui.policy.edit.document import Document
from gemtui.policy.model.rules import Rule
from gemtui.ui.rules.draft import Draft
from gemtui.ui.simulator.call_scan import CallHistory
from gemtui.ui.simulator.simulation import Simulation, SimulatorScreen
from tests.hostile import ATTACK
from tests.sessions import logs, stores
from tests.ui.people import WIDE, Person, person

EVIL = ATTACK.replace("\ud800", "")
"""The attack without what no stored file can hold as it is."""
YESTERDAY, LAST_WEEK = 1, -7 * 86_400
POLICY = """\
[[rule]]
toolName = "run_shell_command"
commandPrefix = "rm"
decision = "deny"
priority = 300
denyMessage = "Nothing is removed here."

[[rule]]
toolName = "run_shell_command"
commandPrefix = ["pytest", "git status"]
decision = "allow"
priority = 200
"""


def call(number: int, name: str, *, status: str = "success", **args: Any) -> logs.Record:
    """One stored call."""
    return logs.call(f"call-{number}", name=name, args=args, status=status)


def session(
    home: Path, number: int, title: str, calls: list[logs.Record], *, key: str, seconds: float
) -> Path:
    """A session of one prompt and one answer with these calls."""
    records = [
        logs.header(stores.uuid(number), startTime=logs.at(seconds), lastUpdated=logs.at(seconds)),
        logs.user("u", title, seconds),
        logs.gemini("g", "I am at it.", seconds + 1, toolCalls=calls),
        {"$set": {"lastUpdated": logs.at(seconds + 2)}},
    ]
    stored = [each | {"timestamp": logs.at(seconds + 1)} for each in calls]
    records[2]["toolCalls"] = stored
    path = stores.session(home, stores.uuid(number), records, key=key)
    stores.set_time(path, stores.LONG_AGO)
    return path


def write_history(folder: Path) -> tuple[Path, Path]:
    """Yesterday's session of a project, last week's, and one of another; (`.gemini`, project)."""
    home, project, other = folder / ".gemini", folder / "tide", folder / "other"
    for place, key in ((project, "tide"), (other, "other")):
        place.mkdir(parents=True)
        stores.marker(home, key, str(place))
    yesterday = [
        call(1, "run_shell_command", command="pytest -q"),
        call(2, "run_shell_command", command="pytest tests/test_api.py"),
        call(3, "read_file", file_path="src/api.py"),
        call(4, "write_file", file_path="src/api.py", content="x = 1\n"),
        call(5, "replace", file_path="src/moon.py", old_string="a", new_string="b"),
        call(6, "run_shell_command", command="rm -rf build"),
        call(7, "run_shell_command", status="error", command="npm test"),
    ]
    session(home, 1, "Fix the moon", yesterday, key="tide", seconds=YESTERDAY)
    before = [call(8, "run_shell_command", command="git status")]
    session(home, 2, "Look around", before, key="tide", seconds=LAST_WEEK)
    elsewhere = [call(9, "web_fetch", prompt="read https://example.org")]
    session(home, 3, "Read a page", elsewhere, key="other", seconds=YESTERDAY)
    return home, project


def draft_of(text: str) -> Draft:
    """A draft that is not saved."""
    draft = Draft()
    draft.change(Document.parse(text), "write it")
    return draft


class Trier(Person):
    """A person on one of the screens around the policy pane; `taken`: what it closed with."""

    simulation: Simulation
    taken: tuple[Rule, ...] | None = None

    @property
    def lines(self) -> list[str]:
        return self.text.splitlines()

    def line(self, text: str) -> str:
        """The first line that holds a text."""
        return next(line for line in self.lines if text in line)


@asynccontextmanager
async def trier(
    kind: type[SimulatorScreen],
    folder: Path,
    size: tuple[int, int] = WIDE,
    *,
    policy: str = POLICY,
    project: bool | Path = True,
    calls: Sequence[logs.Record] = (),
    config: Config | None = None,
    **more: Any,
) -> AsyncIterator[Trier]:
    """Somebody on a screen of this kind, in the project of the history and some more `calls`."""
    home, place = write_history(folder)
    if calls:
        session(home, 4, EVIL, list(calls), key="tide", seconds=YESTERDAY)
    start = {"project": project if isinstance(project, Path) else place} if project else {}
    async with person(home, size, config, **start) as me:
        somebody = Trier(me.app, me.pilot)
        somebody.simulation = Simulation(draft_of(policy), place)

        def closed(taken: tuple[Rule, ...] | None) -> None:
            somebody.taken = taken

        screen = kind(somebody.simulation, CallHistory(home, cache=None), **more)  # type: ignore[call-arg]
        me.app.push_screen(screen, closed)
        await somebody.until(lambda: me.app.screen is screen and screen.is_mounted)
        yield somebody
