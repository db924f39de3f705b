"""What Claude Code's calls do to files, against what gemtui tells before."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from gemtui.calls.effect import CallContext, Effect, digest, on_disk
from gemtui.calls.effect_claude import claude_effect
from tests.agents.messages_server import MessagesServer, says
from tests.agents.programs import Claude, Event, Reply, Talk

pytestmark = [
    pytest.mark.covers("gemtui/calls", "tests/agents"),
    pytest.mark.timeout(600),  # the first test installs the program
]

FILES = {
    "lf": b"one\ntwo\n",
    "crlf": b"one\r\ntwo\r\n",
    "bare": b"one\ntwo",
    "bom": b"\xef\xbb\xbfone\ntwo\n",
    "latin": b"caf\xe9\none\n",
    "empty": b"",
    "several": b"one\none\n",
    "quoted": "say \u201cone\u201d\n".encode(),
}
EDITS: list[Mapping[str, Any]] = [
    {"old_string": "one", "new_string": "1 $& \\n"},
    {"old_string": "one\n", "new_string": "1\n2\n"},
    {"old_string": "one", "new_string": ""},
    {"old_string": "one", "new_string": "1  \n", "replace_all": True},
    {"old_string": "", "new_string": "new"},
    {"old_string": "two", "new_string": ""},
]
CONTENTS = ["", "1\n2\r\n3", "trail  \n", '\ufeff{"a": "\\n"}\n']


def test_files_become_what_was_told_before(claude_program: Path, tmp_path: Path) -> None:
    claude = Claude(claude_program, tmp_path).set_up()
    context = CallContext(project=claude.project)
    told: dict[str, Effect] = {}

    def predict(question: Event) -> Reply:
        told[question["tool_use_id"]] = claude_effect(
            question["tool_name"], question["input"], context
        )
        return "allow"

    calls = list(_calls(claude.project))
    with MessagesServer() as model:
        model.play(
            says("Look.", *(("Read", {"file_path": call[1]["file_path"]}) for call in calls)),
            says("Change.", *calls),
            says("Changed."),
        )
        with Talk(claude, model.url, answer=predict) as talk:
            talk.ask("Change them")
    failed = 0
    for number, (tool, arguments) in enumerate(calls, 1):
        effect = told.get(f"toolu_2_{number}")
        is_now = on_disk(arguments["file_path"])
        case = Path(arguments["file_path"]).name
        if effect is None:  # it was refused before the question
            failed += 1
            before = claude_effect(tool, arguments, context)
            assert before.fails is not None or not before.certain or before.was == is_now, case
        elif effect.fails is not None:
            assert is_now == effect.was, case
        else:
            assert effect.certain, case
            assert is_now == effect.becomes, case
    assert 0 < failed < len(calls) / 2


def _calls(project: Path) -> list[tuple[str, Mapping[str, Any]]]:
    calls: list[tuple[str, Mapping[str, Any]]] = []

    def add(tool: str, name: str, data: bytes | None, **arguments: object) -> None:
        path = project / f"{len(calls)}-{name}.txt"
        if data is not None:
            path.write_bytes(data)
        calls.append((tool, {"file_path": str(path), **arguments}))

    for name, data in FILES.items():
        for edit in EDITS:
            add("Edit", name, data, **edit)
        for content in CONTENTS[:3]:
            add("Write", name, data, content=content)
    for content in CONTENTS:
        add("Write", "new", None, content=content)
    add("Edit", "new", None, old_string="", new_string="new\n")
    for name in ("link", "dangling"):
        (project / f"{len(calls)}-{name}.txt").symlink_to(f"target-{name}")
        add("Write", name, None, content="x")
    (project / "target-link").write_text("one\n")
    os.link(project / "0-lf.txt", project / "other name")
    (project / "folder").mkdir()
    (project / "way").symlink_to("folder")
    calls.append(("Write", {"file_path": str(project / "way/new/a.txt"), "content": "x"}))
    return calls


def test_a_hard_link_keeps_what_it_was(claude_program: Path, tmp_path: Path) -> None:
    claude = Claude(claude_program, tmp_path).set_up()
    path = claude.project / "a.txt"
    path.write_text("one\n")
    os.link(path, claude.project / "b.txt")
    write = ("Write", {"file_path": str(path), "content": "two\n"})
    with MessagesServer() as model:
        model.play(
            says("Look.", ("Read", {"file_path": str(path)})), says("", write), says("Done.")
        )
        with Talk(claude, model.url) as talk:
            talk.ask("Write")
    assert on_disk(str(path)) == digest(b"two\n")
    assert (claude.project / "b.txt").read_text() == "one\n"
