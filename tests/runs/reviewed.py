"""A project with a session to review: its record tells of some changes, checkpoints of others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gemtui.checkpoints.store import Reason, WritingCall
from gemtui.checkpoints.undo import open_project
from gemtui.paths import gemini_home
from gemtui.runs.undo.checkpointing import project_of
from tests.sessions import logs
from tests.sessions.stores import marker, session, uuid

LINES = [f"line {number}\n" for number in range(9)]
RUN = "11111111-1111-4111-8111-111111111111"


def write_call(id: str, path: Path, before: str | None, after: str) -> dict[str, Any]:
    shown = {
        "fileDiff": "",
        "fileName": path.name,
        "filePath": str(path),
        "newContent": after,
        "originalContent": before or "",
        "isNewFile": before is None,
    }
    args = {"file_path": str(path), "content": after}
    return logs.call(id, name="write_file", args=args, resultDisplay=shown)


def recorded(root: Path) -> None:
    """A session whose record alone tells what it did: it changed `a.txt` and made `new.txt`."""
    root.mkdir()
    text, changed = "".join(LINES), "".join(LINES).replace("line 1\n", "agent\n")
    calls = [
        write_call("c1", root / "a.txt", text, changed),
        write_call("c2", root / "new.txt", None, "new\n"),
        logs.call("c3", name="run_shell_command", args={"command": "rm -rf build"}),
    ]
    records = [
        logs.header(uuid(1)),
        logs.user("u1", "Change the text.", 1),
        logs.gemini("g1", "", 2, toolCalls=calls),
    ]
    marker(gemini_home(), "proj", str(root))
    session(gemini_home(), uuid(1), records)
    (root / "a.txt").write_text(changed.replace("line 7\n", "mine\n"))
    (root / "new.txt").write_text("new\n")


def with_checkpoints(root: Path) -> None:
    """A shell command of the same session, of which there are checkpoints, changed `b.txt`."""
    place, real, own = project_of(root)
    (root / "b.txt").write_text("old\n")
    with open_project(place, real, own) as project:
        project.taker.take(Reason.PROMPT, run=RUN, session=uuid(1))
    shell(root, "k1", "sed -i s/old/new/ b.txt", "by\x1b[31m shell\n")


def shell(root: Path, use: str, command: str, text: str) -> None:
    """Let a shell command of the session's run write `b.txt`."""
    place, real, own = project_of(root)
    with open_project(place, real, own) as project:
        (root / "b.txt").write_text(text)
        call = WritingCall(
            run=RUN,
            session=uuid(1),
            use=use,
            tool="run_shell_command",
            began=1.0,
            ended=2.0,
            command=command,
        )
        with project.store.transaction():
            owned = {b"b.txt": project.store.save_call(call)}
        project.taker.take(Reason.CALL, run=RUN, session=uuid(1), owned=owned)
