"""What is removed from the vault, and what never is."""

from __future__ import annotations

from pathlib import Path

import pytest

from gemtui.kept.cleanup import Retention
from gemtui.kept.contents import delete_from_vault, forget_kept, only_kept, removal
from gemtui.kept.restoring import restore_from_vault
from gemtui.kept.vault import keep_all
from gemtui.paths import vault_dir
from tests.kept.test_restoring import kept
from tests.sessions import logs
from tests.sessions.stores import read, session, talk, uuid


def test_a_session_goes_with_its_subagents_and_nothing_else(store: Path) -> None:
    path, other = session(store, uuid(1)), session(store, uuid(2))
    agent = logs.write(path.parent / uuid(1) / "helper.jsonl", talk("helper"))
    keep_all(store)
    size = path.stat().st_size + agent.stat().st_size
    path.unlink()
    agent.unlink()
    assert forget_kept(kept(store)) == size
    assert {each.name for each in vault_dir().rglob("*.jsonl")} == {other.name}


def test_what_is_removed_takes_its_tool_outputs_and_leaves_what_the_cli_has(store: Path) -> None:
    path, other = session(store, uuid(1)), session(store, uuid(2))
    outputs = [
        logs.write(path.parents[1] / f"tool-outputs/session-{id}/a.txt", ["Much"])
        for id in (uuid(1), uuid(2))
    ]
    keep_all(store)
    size = path.stat().st_size + outputs[0].stat().st_size
    path.unlink()
    outputs[0].unlink()
    found = removal(only_kept(read(store).sessions))
    assert (len(found.names), found.size) == (2, size)
    assert [each.id for each in found.sessions] == [uuid(1)]
    assert delete_from_vault(found) == size
    left = {each.name for each in vault_dir().rglob("*.*") if each.is_file()}
    assert left == {other.name, "a.txt"}


@pytest.mark.parametrize("up", range(1, 12))
def test_an_id_that_leads_elsewhere_removes_and_writes_nothing_there(store: Path, up: int) -> None:
    mine = vault_dir().parent / "precious.jsonl"
    mine.write_text("mine")
    chats = store / "tmp/proj/chats"
    path = logs.write(
        chats / "session-2026-11-20T10-00-hostile1.jsonl", talk("/".join([".."] * up))
    )
    others = {each: each.read_bytes() for each in store.parent.rglob("*") if each.is_file()}
    keep_all(store)
    path.unlink()
    found = kept(store)
    assert found.id.startswith("..")
    restore_from_vault(found, store, Retention(enabled=False), logs.START)
    assert {each: each.read_bytes() for each in store.parent.rglob("*") if each.is_file()} == others
    path.unlink()
    forget_kept(kept(store))
    assert mine.read_text() == "mine"
    assert (vault_dir() / "on").exists()
