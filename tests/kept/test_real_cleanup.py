"""The vault beside the real CLI, which cleans up, lists and resumes."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from gemtui.jsonout import iso
from gemtui.kept.cleanup import DoomedFile, Why, next_deletions, retention
from gemtui.kept.restoring import restore_from_vault
from gemtui.kept.vault import keep_all, turn_on
from gemtui.sessions.catalog.summary import Flag, Summary
from gemtui.sessions.catalog.vault_files import in_tree, trees
from tests.model_server import Gate, ModelServer, answer, text
from tests.patience import PATIENCE, until
from tests.real_cli import GeminiCli
from tests.sessions import logs
from tests.sessions.stores import read, set_time, uuid

pytestmark = pytest.mark.covers("gemtui/sessions")

NOW = datetime.now(UTC)
EXPIRED, GHOSTED, TWIN, BURIED, COMMAND, FRESH, BROKEN = map(uuid, range(1, 8))


def ask(gemini: GeminiCli, prompt: str, *options: str) -> None:
    """One run of the CLI, which cleans up when it starts."""
    answers = [answer(text("Done."))]
    with ModelServer(answers) as model, gemini.start(model, prompt, *options) as run:
        run.finish()


def clean_up(gemini: GeminiCli, going: Iterable[Path]) -> None:
    """One run of the CLI, whose answer comes when these files are gone: it removes them meanwhile,
    and ends whether it has done so or not.
    """
    gate = Gate()
    with (
        ModelServer([answer(text("Done."), after=gate)]) as model,
        gemini.start(model, "Go on") as run,
    ):
        until(lambda: not any(path.exists() for path in going))
        gate.open()
        run.finish()


def rule(gemini: GeminiCli) -> Any:
    """By the settings that the CLI reads."""
    return retention(gemini.environment(""), gemini.project)


class Store:
    """The store of one project, with whatever a clean-up takes, and more."""

    def __init__(self, gemini: GeminiCli) -> None:
        self.gemini = gemini
        ask(gemini, "Begin")
        (first,) = gemini.store.glob("tmp/*/chats/session-*.jsonl")
        self.chats = first.parent
        self.hash = json.loads(first.read_bytes().partition(b"\n")[0])["projectHash"]
        self.add(EXPIRED, days=40)
        logs.write(self.chats / EXPIRED / "helper.jsonl", [logs.header("helper"), *self.talk(40)])
        self.beside = [
            logs.write(self.chats.parent / f"tool-outputs/session-{EXPIRED}/a.txt", ["Much"]),
            logs.write(self.chats.parent / EXPIRED / "plans/plan.md", ["First this"]),
        ]
        self.add(GHOSTED)
        self.write(GHOSTED, [logs.context()], "2026-11-22T10-00", 0)
        self.add(TWIN)
        old = self.head(TWIN, 50) | {"messages": self.talk(50)}
        path = self.chats / f"session-2026-10-01T10-00-{TWIN[:8]}.json"
        path.write_text(json.dumps(old, indent=2))
        self.add(BURIED, after=[{"$set": {"messages": [logs.context()]}}])
        self.write(COMMAND, [logs.user("u", "/about"), logs.gemini("g", "")], "2026-11-20T10-00", 0)
        self.add(FRESH)
        self.add(BROKEN)
        broken = self.chats / f"session-2026-10-02T10-00-{BROKEN[:8]}.json"
        broken.write_text("no session")
        set_time(broken, (NOW - timedelta(days=1)).timestamp())

    def head(self, id: str, days: float) -> dict[str, Any]:
        when = iso(NOW - timedelta(days=days))
        return logs.header(id, projectHash=self.hash, startTime=when, lastUpdated=when)

    def talk(self, days: float) -> list[Any]:
        when = iso(NOW - timedelta(days=days))
        records = [logs.context(), logs.user("u", "Hello"), logs.gemini("g", "Answer")]
        return [each | {"timestamp": when} for each in records]

    def add(self, id: str, *, days: float = 1, after: list[Any] | None = None) -> None:
        self.write(id, [*self.talk(days), *(after or [])], "2026-11-20T10-00", days)

    def write(self, id: str, records: list[Any], minute: str, days: float) -> None:
        path = self.chats / f"session-{minute}-{id[:8]}.jsonl"
        logs.write(path, [self.head(id, days), *records])

    def hits(self) -> tuple[DoomedFile, ...]:
        """What gemtui says that goes next."""
        found = read(self.gemini.store)
        return next_deletions(found.sessions, lambda _: rule(self.gemini), NOW, found.unreadable)

    def files(self) -> dict[Path, bytes]:
        """Every file of a session and what belongs to one, with what is in it."""
        paths = (*self.chats.rglob("*.json*"), *self.beside)
        return {path: path.read_bytes() for path in paths if path.exists()}


def kept(home: Path, id: str) -> Summary:
    """A session that only the vault has."""
    (found,) = (each for each in read(home).sessions if each.id == id and Flag.KEPT in each.flags)
    return found


def test_what_the_cli_removes_was_told_and_is_kept_byte_for_byte(gemini: GeminiCli) -> None:
    store = Store(gemini)
    turn_on()
    keep_all(gemini.store)
    before = store.files()
    told = {hit.session.path: hit.why for hit in store.hits()}
    agent = store.chats / EXPIRED / "helper.jsonl"
    clean_up(gemini, [*told, agent, *store.beside])
    gone = before.keys() - store.files().keys()
    assert gone == told.keys() | {agent, *store.beside}
    assert set(told.values()) == {Why.EXPIRED, Why.NOTHING, Why.TWIN, Why.UNREADABLE}
    for path in gone:
        names = [in_tree(tree, path) for tree in trees()]
        assert {name.read_bytes() for name in names if name.exists()} == {before[path]}
    removed = {each.id for each in read(gemini.store).sessions if Flag.KEPT in each.flags}
    assert removed == {EXPIRED, GHOSTED, TWIN, BURIED, COMMAND, BROKEN, "helper"}


def test_what_is_put_back_is_listed_and_resumed_by_the_cli_and_stays(gemini: GeminiCli) -> None:
    store = Store(gemini)
    turn_on()
    keep_all(gemini.store)
    clean_up(gemini, [hit.session.path for hit in store.hits()])
    for id in (EXPIRED, GHOSTED, TWIN):
        restore_from_vault(kept(gemini.store, id), gemini.store, rule(gemini), datetime.now(UTC))
    assert all(path.exists() for path in store.beside)
    ask(gemini, "And on")
    assert {path.name[-14:-6] for path in store.files()} >= {GHOSTED[:8], TWIN[:8], EXPIRED[:8]}
    with ModelServer([answer(text("A title"))] * 3) as model:
        listed = subprocess.run(
            [gemini.program, "--list-sessions"],
            cwd=gemini.project,
            env=gemini.environment(model.url),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=True,
            timeout=PATIENCE,
        )
    assert all(id in listed.stdout + listed.stderr for id in (EXPIRED, GHOSTED, TWIN))
    for id in (EXPIRED, GHOSTED, TWIN):
        ask(gemini, f"Resumed {id}", "--resume", id)
        (found,) = (each for each in read(gemini.store).sessions if each.id == id)
        assert found.prompts == 2
        assert found.path.is_relative_to(store.chats)
