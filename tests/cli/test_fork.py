"""`gemtui fork`: a new chat, for a person and for programs."""

from __future__ import annotations

from pathlib import Path

from tests.cli.conftest import Gemtui, has
from tests.cli.shapes import fits
from tests.sessions.stores import session, talk, uuid


def test_a_fork_says_what_was_cut_and_can_be_shown(gemtui: Gemtui, home: Path) -> None:
    session(home / ".gemini", uuid(1), talk(uuid(1), turns=2))
    answer = gemtui.ok("fork --before 2", uuid(1))
    id = answer.out.strip()
    assert f"gemtui run --resume {id}" in answer.err
    assert "More 1" not in (shown := gemtui("show", id).out)
    assert "Answer 0" in shown
    cut = gemtui.json("fork", uuid(1), "--before", "2")
    fits(cut, "Fork")
    has(cut, of=uuid(1), before=2, prompt="More 1")
    empty = gemtui.json("fork", uuid(1), "--before", "1")
    fits(empty, "Fork")
    has(empty, session=None, file=None, prompt="Hello")
    none = gemtui("fork", uuid(1), "--before", "1")
    assert (none.code, none.out) == (0, "")
    gemtui("fork", uuid(1), "--before", "4").refuses("has 2 prompts, so there is no prompt 4")
