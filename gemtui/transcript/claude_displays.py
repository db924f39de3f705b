"""What Claude Code tells of a call's result, in the form of Gemini CLI's `resultDisplay`.

The details are described in assets/agents.md#claude-code.
"""

from __future__ import annotations

from gemtui.transcript.diffs import hunks_of
from gemtui.transcript.parts import Part, objects, string


def count(value: object) -> int:
    """Return a number of a line; 0 if it isn't one."""
    return value if type(value) is int else 0


def claude_display(result: Part) -> Part | None:
    """Return a call's details as a `resultDisplay` of Gemini CLI; None if there is nothing to show.

    `result`: `toolUseResult` in a stored session, `tool_use_result` in a stream.
    """
    if isinstance(result.get("structuredPatch"), list) and isinstance(result.get("filePath"), str):
        return _changed_file(result)
    if isinstance(result.get("newTodos"), list):
        return {"todos": result["newTodos"]}
    if "agentType" in result:
        texts = [string(part.get("text")) for part in objects(result.get("content"))]
        return {
            "isSubagentProgress": True,
            "agentName": string(result.get("agentType")),
            "state": string(result.get("status")),
            "recentActivity": [],
            "result": "\n".join(texts),
        }
    return None


def _changed_file(result: Part) -> Part:
    """Return the change of a file; its lines end in LF, whatever the file on disk has."""
    path, before = result["filePath"], result.get("originalFile")
    after = _after(result)
    name = path.replace("\\", "/").rsplit("/", 1)[-1]
    is_new = result.get("type") == "create"
    if is_new and after is not None:
        hunks = "".join(hunks_of("", after))
    else:
        hunks = "".join(map(_hunk, objects(result["structuredPatch"])))
    return {
        "fileDiff": f"Index: {name}\n--- {name}\n+++ {name}\n{hunks}",
        "fileName": name,
        "filePath": path,
        "originalContent": "" if is_new else before,
        "newContent": after,
        "isNewFile": is_new,
    }


def _after(result: Part) -> str | None:
    """Return the file's text after the change; None if the line does not tell."""
    if isinstance(content := result.get("content"), str):
        return content
    before, old, new = map(result.get, ("originalFile", "oldString", "newString"))
    if not isinstance(before, str) or not isinstance(old, str) or not isinstance(new, str):
        return None
    if old == "":
        return new + before
    if old not in before or result.get("userModified") is True:
        return None
    return before.replace(old, new, -1 if result.get("replaceAll") is True else 1)


def _hunk(hunk: Part) -> str:
    names = ("oldStart", "oldLines", "newStart", "newLines")
    old, olds, new, news = (count(hunk.get(name)) for name in names)
    lines = hunk.get("lines")
    texts = map(string, lines) if isinstance(lines, list) else ()
    return "".join([f"@@ -{old},{olds} +{new},{news} @@\n", *(f"{text}\n" for text in texts)])
