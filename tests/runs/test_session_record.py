"""What a session's record tells of its calls' changes, without checkpoints."""

from __future__ import annotations

from pathlib import Path

from gemtui.runs.undo.session_record import SessionRecord
from gemtui.transcript.model import ToolCall, ToolStatus


def test_calls_that_only_read_leave_nothing_behind(tmp_path: Path) -> None:
    record = SessionRecord(tmp_path)
    for name, args in (("read_file", {"file_path": "a"}), ("run_shell_command", {"command": "x"})):
        record.add(ToolCall(id=name, name=name, status=ToolStatus.SUCCESS, args=args))
    assert record.left == ["run_shell_command: x"]
