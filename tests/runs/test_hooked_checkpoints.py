"""Checkpoints that hooks of the plain CLI ask for."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from gemtui.checkpoints.plan import Action
from gemtui.checkpoints.store import only_one, open_store
from gemtui.checkpoints.undo import open_project
from gemtui.extension.content import command, write
from gemtui.paths import config_file, data_dir, extension_dir, gemini_home, hooked_dir
from gemtui.runs.undo import hooked_checkpoints
from gemtui.runs.undo.checkpointing import project_of
from gemtui.runs.undo.review import revert, review_of, subject_of
from gemtui.runs.undo.undo import redo_project, undo_session
from gemtui.sessions.catalog.index import Index
from gemtui.sessions.catalog.summary import Summary
from tests.patience import PATIENCE, until
from tests.rows import table
from tests.sessions import logs
from tests.sessions.stores import marker, session, uuid

QUICKLY = """
import sys
from gemtui.runs.undo import hooked_checkpoints
hooked_checkpoints.LONGEST = 0.1
hooked_checkpoints.main(*sys.argv[1:])
"""
ALWAYS = 'checkpoints = "always"\n'


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project whose hooks leave events, and start no program."""
    monkeypatch.setenv("GEMTUI_CONFIG", str(tmp_path / "config.toml"))
    write()
    config_file().write_text(ALWAYS)
    starter = extension_dir() / "checkpoint.sh"
    starter.write_text(starter.read_text() + "take() { :; }\n")
    root = tmp_path / "project"
    root.mkdir()
    return root


def hook(project: Path, event: str, **more: Any) -> str:
    """Run a hook as the CLI does; what it answers."""
    now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    environ = more.pop("environ", {})
    told = {"session_id": "s", "transcript_path": "/none", "cwd": str(project)}
    told |= {"hook_event_name": event, "timestamp": now, **more}
    done = subprocess.run(
        ["bash", "-c", command(event, extension_dir())],
        input=json.dumps(told, separators=(",", ":")),
        env={"PATH": os.environ["PATH"], **environ},
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE,
    )
    wait_a_tick()
    return done.stdout.strip()


def wait_a_tick() -> None:
    """Until files get later times."""
    time.sleep(0.05)


def owners(project: Path) -> dict[bytes, str | None]:
    """Do what the events ask for; whose each change was, by the tool."""
    place, root, own = project_of(project)
    with open_project(place, root, own) as opened:
        hooked_checkpoints.take_hooked_checkpoints(opened, hooked_dir())
        calls = opened.store.calls()
        return {
            change.path: None if change.call is None else calls[change.call].tool
            for _, change in opened.store.changes()
        }


def test_edits_of_the_person_after_a_refused_command_are_not_the_commands(project: Path) -> None:
    shell = {"tool_name": "run_shell_command", "tool_input": {"command": "make"}}
    tool = {"tool_name": "write_file", "tool_input": {"file_path": "f", "content": "x"}}
    hook(project, "BeforeAgent", prompt="go")
    assert owners(project) == {}
    hook(project, "BeforeTool", **shell)
    hook(project, "BeforeTool", **tool)
    (project / "f").write_text("x")
    (project / "mine").write_text("x")
    hook(project, "AfterTool", **tool, tool_response={})
    assert owners(project) == {}
    hook(project, "AfterAgent", prompt="go")
    assert owners(project) == {b"f": "write_file", b"mine": None}
    hook(project, "BeforeTool", **shell)
    (project / "made").write_text("x")
    hook(project, "AfterTool", **shell, tool_response={})
    assert owners(project)[b"made"] == "run_shell_command"
    assert list(hooked_dir().iterdir()) == []


def turn(project: Path, id: str, made: str) -> Summary:
    """A session of the plain CLI, in which a shell command made a file, stored and hooked."""
    command = {"command": "make"}
    shell = {"tool_name": "run_shell_command", "tool_input": command, "session_id": id}
    hook(project, "BeforeAgent", prompt="go", session_id=id)
    owners(project)
    hook(project, "BeforeTool", **shell)
    (project / made).write_text("made\n")
    hook(project, "AfterTool", **shell, tool_response={})
    hook(project, "AfterAgent", prompt="go", session_id=id)
    call = logs.call(f"call-{id}", name="run_shell_command", args=command)
    records = [logs.header(id), logs.user("u", "Go.", 1), logs.gemini("g", "", 2, toolCalls=[call])]
    marker(gemini_home(), "proj", str(project))
    session(gemini_home(), id, records)
    return Index(gemini_home(), cache=None).find(id)


def shown(summary: Summary) -> dict[str, list[tuple[str, str | None]]]:
    """Each file of a review with the owners of its hunks and their commands."""
    return {
        os.fsdecode(file.path): [(hunk.owner.kind, hunk.owner.command) for hunk in file.hunks]
        for file in review_of(subject_of(summary)).files
    }


def test_calls_of_hooks_own_what_they_changed_in_their_session_alone(
    home: Path, project: Path
) -> None:
    del home
    first, second = (turn(project, uuid(number), f"{number}.txt") for number in (1, 2))
    assert shown(second) == {}
    owners(project)
    (project / "2.txt").write_text("made\nmine\n")
    (project / "mine.txt").write_text("mine\n")
    assert shown(first) == {"1.txt": [("shell", "make")]}
    assert shown(second) == {"2.txt": [("shell", "make"), ("person", None)]}
    assert review_of(subject_of(second)).complete
    (call,) = {h.owner.id for f in review_of(subject_of(first)).files for h in f.hunks}
    assert revert(subject_of(first), [call]).paths == ["1.txt"]
    (project / "2.txt").write_text("made\n")
    assert undo_session(second, chat=False).paths(Action.REMOVE) == ["2.txt"]
    assert redo_project(project).paths(Action.RESTORE) == ["2.txt"]
    assert undo_session(first, chat=False).paths(Action.REMOVE) == []


@pytest.mark.parametrize("hooked", [True, False])
def test_an_undo_finds_files_under_all_names_that_the_cli_takes(
    home: Path, project: Path, hooked: bool
) -> None:
    del home
    (project / "aim.txt").write_text("old\n")
    (project / "link").symlink_to("aim.txt")
    (project / "@kept.txt").write_text("old\n")
    names = {
        "a%2etxt": "a.txt",
        "b%252etxt": "b%2etxt",
        "@c.txt": "c.txt",
        "@kept.txt": "@kept.txt",
        "d\0.txt": "d.txt",
        "link": "aim.txt",
        "sub%2fe.txt": "sub/e.txt",
        "100%": "100%",
    }
    if hooked:
        hook(project, "BeforeAgent", prompt="go", session_id=uuid(1))
        owners(project)
    calls = []
    for number, (named, real) in enumerate(names.items()):
        was, path = (project / real).exists(), project / real
        args = {"file_path": named, "content": "new\n"}
        tool = {"tool_name": "write_file", "tool_input": args, "session_id": uuid(1)}
        if hooked:
            hook(project, "BeforeTool", **tool)
        path.parent.mkdir(exist_ok=True)
        path.write_text("new\n")
        if hooked:
            hook(project, "AfterTool", **tool, tool_response={})
        said = {"output": f"Successfully {'overwrote' if was else 'created'} {real}"}
        stored: dict[str, Any] = {"resultDisplay": _overwritten(path)} if was else {}
        stored |= {"result": [{"functionResponse": {"response": said}}]}
        calls.append(logs.call(f"c{number}", name="write_file", args=args, **stored))
    (project / "mine.txt").write_text("mine\n")
    if hooked:
        hook(project, "AfterAgent", prompt="go", session_id=uuid(1))
        found = owners(project)
        assert {found[os.fsencode(name)] for name in names.values()} == {"write_file"}
        assert found[b"mine.txt"] is None
    answer = logs.gemini("g", "", 2, toolCalls=calls)
    marker(gemini_home(), "proj", str(project))
    session(gemini_home(), uuid(1), [logs.header(uuid(1)), logs.user("u", "Go.", 1), answer])
    done = undo_session(Index(gemini_home(), cache=None).find(uuid(1)), chat=False)
    old = ["@kept.txt", "aim.txt"]
    assert sorted(done.paths(Action.RESTORE)) == old
    new = sorted(set(names.values()) - set(old))
    assert [each for each in sorted(done.paths(Action.REMOVE)) if each != "sub"] == new
    assert [path.name for path in project.rglob("*.txt") if path.read_text() == "new\n"] == []


def _overwritten(path: Path) -> dict[str, Any]:
    told = {"fileDiff": "", "fileName": path.name, "filePath": str(path), "isNewFile": False}
    return {**told, "originalContent": "old\n", "newContent": "new\n"}


def test_a_review_says_that_nobody_knows_whose_a_change_is_until_its_checkpoint(
    home: Path, project: Path
) -> None:
    del home
    summary = turn(project, uuid(1), "a.txt")
    owners(project)
    hook(project, "BeforeAgent", prompt="more", session_id=uuid(1))
    (project / "a.txt").write_text("made\nmore\n")
    assert shown(summary) == {"a.txt": [("shell", "make"), ("unknown", None)]}
    owners(project)
    assert shown(summary) == {"a.txt": [("shell", "make"), ("person", None)]}


@pytest.mark.parametrize(
    ("where", "settings", "environ", "starter"), table("runs/hooked_checkpoints.json")
)
def test_nothing_is_left_where_no_checkpoint_is_wanted(
    project: Path, where: str, settings: str | None, environ: dict[str, str], starter: bool
) -> None:
    del where
    config_file().unlink()
    if settings is not None:
        config_file().write_text(settings)
    if not starter:
        (extension_dir() / "checkpoint.sh").unlink()
    assert hook(project, "BeforeAgent", environ=environ) == "{}"
    assert not hooked_dir().exists()


def test_a_prompt_waits_for_its_checkpoint_but_not_for_long(project: Path) -> None:
    hook(project, "BeforeAgent")
    (project / "f").write_text("x")
    (file,) = hooked_dir().iterdir()
    place, root, _ = project_of(project)
    with only_one(place):
        words = [str(data_dir()), str(config_file()), str(file)]
        subprocess.run([sys.executable, "-c", QUICKLY, *words], check=True, timeout=PATIENCE)
        assert file.exists()
    until(lambda: not file.exists())
    with open_store(place, root) as store:
        assert [change.path for _, change in store.changes()] == [b"f"]


def test_an_event_that_is_no_json_is_passed_over(project: Path) -> None:
    hook(project, "BeforeAgent")
    (file,) = hooked_dir().iterdir()
    file.write_text("{")
    assert owners(project) == {}
