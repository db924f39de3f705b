"""`gemtui sessions --live`."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path

from gemtui.paths import live_dir
from gemtui.text import clean
from tests.cli.conftest import Gemtui, has, values
from tests.cli.shapes import fits
from tests.extension.live_files import hook_input, process, write_live
from tests.hostile import ATTACK

HAIKU = "63a18d40-df0d-4a78-8965-77892f4a9218"


def test_what_hooks_tell(store: Path, gemtui: Gemtui) -> None:
    with process() as other:
        write_live(live_dir(), other.pid, hook_input("BeforeTool", session_id="b" * 36))
        write_live(live_dir(), os.getpid(), hook_input("Notification", session_id=HAIKU))
        answer = gemtui.json("sessions --live")
        fits(answer, "LiveSessions")
        waiting, working = answer["live"]
        assert values(answer["sessions"], "id") == [HAIKU]
        has(waiting, session=HAIKU, state="waiting", by="hook")
        has(waiting, pid=os.getpid(), project="/home/dev/proj")
        assert waiting["question"]["kind"] == "edit"
        assert waiting["question"]["diff"].endswith("+x\n")
        has(working, state="working", tool="write_file")
        head, first, second = gemtui("sessions --live").out.splitlines()
        assert head.split() == ["STATE", "SINCE", "PROJECT", "SESSION", "ASKS"]
        assert first.split()[:3] == ["waiting", "now", "proj"]
        assert "Write a haiku file" in first
        assert first.endswith("Tool Confirm Write: w.txt requires editing")
        assert second.startswith("working")
        gemtui("mark", HAIKU, "--name", "My haiku")
        assert "My haiku" in gemtui("sessions --live").out


def test_only_those_of_a_project(store: Path, gemtui: Gemtui) -> None:
    write_live(live_dir(), os.getpid(), hook_input("Notification", session_id=HAIKU))
    for project, number in (("/home/dev/notes", 1), ("/home/dev/proj", 1), ("/home/dev/src", 0)):
        told = gemtui.json("sessions --live --project", project)["live"]
        assert len(told) == number


def test_without_hooks_it_says_what_it_can_see_and_that_it_is_less(
    store: Path, gemtui: Gemtui
) -> None:
    (path,) = store.rglob("session-*63a18d40.jsonl")
    with path.open("a") as log:
        log.write(json.dumps({"$set": {"lastUpdated": datetime.now(UTC).isoformat()}}) + "\n")
    answer = gemtui("sessions --live --json")
    told = {each["session"]: each for each in answer.json["live"]}
    has(told[HAIKU], state="active", by="file")
    assert "gemtui extension install" in answer.err


def test_hostile_words_stay_harmless(store: Path, gemtui: Gemtui) -> None:
    odd = hook_input("Notification", session_id=ATTACK, cwd=f"/{ATTACK}", message=ATTACK)
    write_live(live_dir(), os.getpid(), odd)
    text = gemtui("sessions --live").out
    assert "waiting" in text
    assert clean(text) == text
