"""Messages whose calls wrote a file, as the CLI stores them."""

from __future__ import annotations

from pathlib import PurePath
from typing import Any

from tests.sessions import logs


def wrote(
    path: PurePath,
    before: str | None,
    after: str,
    *,
    seconds: float = 3,
    status: str = "success",
    told: bool = True,
) -> dict[str, Any]:
    """`told`: the file before and after stand beside the diff, as since 0.9."""
    display: dict[str, Any] = {
        "fileDiff": f"Index: {path.name}\n@@ -1 +1 @@\n-{before}\n+{after}\n",
        "fileName": path.name,
        "filePath": str(path),
    }
    if told:
        contents = {"originalContent": before, "newContent": after, "isNewFile": before is None}
        display |= contents
    args = {"file_path": str(path), "content": after}
    call = logs.call(
        f"c{seconds}", seconds, name="write_file", args=args, resultDisplay=display, status=status
    )
    return logs.gemini(f"g{seconds}", "", seconds, toolCalls=[call])
