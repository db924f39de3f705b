"""Calls about one file, as sessions hold them."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from gemtui.recover.history import Recovered, recover_file
from gemtui.transcript.diffs import file_patch
from tests.sessions import logs
from tests.sessions.stores import marker, read, session, uuid

Record = dict[str, Any]


def asked(tool: str, seconds: float, args: Record, *, output: str = "", **more: Any) -> Record:
    """An answer with one call, whose result came half a second after it."""
    result = [{"functionResponse": {"id": "x", "name": tool, "response": {"output": output}}}]
    base = {"id": f"{tool}-{seconds}", "name": tool, "args": args, "status": "success"}
    call = {**base, "timestamp": logs.at(seconds + 0.5), "result": result, **more}
    return logs.gemini(f"g{seconds}", "", seconds, toolCalls=[call])


def wrote(
    path: str, before: str | None, after: str, seconds: float, *, told: bool = True, **more: Any
) -> Record:
    """A write; without `told` with the CLI's diff alone."""
    diff = file_patch("a", before or "", after)
    display: Record = {"fileDiff": f"Index: a\n{diff}", "fileName": "a", "filePath": path}
    if told:
        display |= {"originalContent": before, "newContent": after, "isNewFile": before is None}
    args = {"file_path": path, "content": after}
    return asked("write_file", seconds, args, resultDisplay=display, **more)


def saw(path: str, text: str, seconds: float, first: int = 1, last: int | None = None) -> Record:
    """A read of all, or of some lines."""
    lines = text.replace("\r\n", "\n").split("\n")
    last = len(lines) if last is None else min(last, len(lines))
    output, shown = "\n".join(lines[first - 1 : last]), ""
    args: Record = {"file_path": path}
    if first > 1 or last < len(lines):
        args |= {"start_line": first, "end_line": last}
        numbers = f"{first}-{last} of {len(lines)}"
        output = (
            "\nIMPORTANT: The file content has been truncated.\n"
            f"Status: Showing lines {numbers} total lines.\nAction: To read more…\n\n"
            f"--- FILE CONTENT (truncated) ---\n{output}"
        )
        shown = f"Read lines {numbers} from a"
    return asked("read_file", seconds, args, output=output, resultDisplay=shown)


def ran(command: str, output: str, seconds: float, **more: Any) -> Record:
    args = {"command": command}
    text = f"Output: {output or '(empty)'}\nProcess Group PGID: 1"
    return asked("run_shell_command", seconds, args, output=text, resultDisplay=output, **more)


def recovered(
    folder: Path, *records: Record, path: str = "a", at: float | None = None
) -> Recovered:
    """What one session of a project tells of a file in it."""
    home, project = folder / "home", folder / "proj"
    session(home, uuid(1), [logs.header(uuid(1)), logs.user("u", "Go", 0), *records])
    marker(home, "proj", str(project))
    moment: datetime | None = None if at is None else logs.START + timedelta(seconds=at)
    return recover_file(project / path, read(home).sessions, at=moment)


def marked(found: Recovered) -> list[str]:
    """Its lines: known as they are, guessed behind a `?`, gaps as `-`."""
    assert found.rebuilt is not None
    signs = []
    for line in found.rebuilt.listed:
        signs.append("-" if line.text is None else line.text if line.known else f"?{line.text}")
    return signs
