"""Sessions of Claude Code and Qwen Code, written line by line as these agents do."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.sessions import logs

PROJECT = "/work/app"
Line = dict[str, Any]


def claude_lines(id: str, prompt: str = "Hello", reply: str = "Hi") -> list[Line]:
    """Return the lines of a session with one prompt and one answer."""
    around = {"sessionId": id, "cwd": PROJECT, "timestamp": logs.at(1)}
    message = {"id": "m", "model": "claude-opus-5", "content": [{"type": "text", "text": reply}]}
    return [
        {"type": "queue-operation", "operation": "enqueue", "sessionId": id},
        {
            "parentUuid": None,
            "type": "user",
            "message": {"role": "user", "content": prompt},
            "uuid": "u1",
            **around,
        },
        {
            "parentUuid": "u1",
            "message": message | {"usage": {"input_tokens": 10, "output_tokens": 2}},
            "type": "assistant",
            "uuid": "a1",
            **around,
        },
    ]


def claude_session(home: Path, id: str, *, before: Iterable[Line] = (), **texts: str) -> Path:
    """Write a session of Claude Code below `home`, the parent of `.claude`.

    `before`: lines at the beginning of the file.
    """
    folder = home / ".claude/projects/-work-app"
    return logs.write(folder / f"{id}.jsonl", [*before, *claude_lines(id, **texts)])


def claude_cost(dollars: float) -> Line:
    """Return the line in which Claude Code says what a session has cost."""
    return {"type": "cost-state", "totalCostUSD": dollars, "hasUnknownModelCost": False}


def claude_write(home: Path, id: str, file: Path, content: str) -> Path:
    """Write a session of Claude Code that created a file."""
    args = {"file_path": str(file), "content": content}
    result = {"type": "create", "filePath": str(file), "content": content, "structuredPatch": []}
    return claude_calls(home, id, file.parent, ("Write", args, result | {"originalFile": None}))


def claude_calls(home: Path, id: str, folder: Path, *calls: tuple[str, Line, Line]) -> Path:
    """Write a session of Claude Code with successful calls: the tool, its arguments, details."""
    around = {"sessionId": id, "cwd": str(folder), "timestamp": logs.at(2)}
    lines = [claude_lines(id)[1] | around]
    for at, (tool, args, result) in enumerate(calls):
        call = {"type": "tool_use", "id": f"c{at}", "name": tool, "input": args}
        reply = {"type": "tool_result", "tool_use_id": f"c{at}", "content": "done"}
        lines += [
            {
                "parentUuid": "u1",
                "type": "assistant",
                "uuid": f"a{at}",
                "message": {"id": f"m{at}", "model": "claude-opus-5", "content": [call]},
                **around,
            },
            {
                "parentUuid": f"a{at}",
                "type": "user",
                "uuid": f"r{at}",
                "message": {"role": "user", "content": [reply]},
                "toolUseResult": result,
                **around,
            },
        ]
    return logs.write(home / ".claude/projects/-work-app" / f"{id}.jsonl", lines)


def claude_subagent(home: Path, caller: str, agent: str) -> Path:
    """Write the session of a subagent of a session of Claude Code."""
    lines = [line | {"isSidechain": True, "agentId": agent} for line in claude_lines(caller)]
    folder = home / ".claude/projects/-work-app" / caller / "subagents"
    return logs.write(folder / f"agent-{agent}.jsonl", lines)


def qwen_lines(id: str, prompt: str = "Hello") -> list[Line]:
    """Return the lines of a session with one prompt and one answer."""
    around = {"sessionId": id, "cwd": PROJECT, "timestamp": logs.at(1)}
    user = {"role": "user", "parts": [{"text": prompt}]}
    model = {"role": "model", "parts": [{"text": "Hi"}]}
    return [
        {"uuid": "u1", "parentUuid": None, **around, "type": "user", "message": user},
        {"uuid": "a1", "parentUuid": "u1", **around, "type": "assistant", "message": model},
    ]


def qwen_session(home: Path, id: str, prompt: str = "Hello") -> Path:
    """Write a session of Qwen Code below `home`, the parent of `.qwen`."""
    folder = home / ".qwen/projects/-work-app/chats"
    return logs.write(folder / f"{id}.jsonl", qwen_lines(id, prompt))


def qwen_subagent(home: Path, caller: str, agent: str) -> Path:
    """Write the session of a subagent of a session of Qwen Code."""
    lines = [line | {"isSidechain": True, "agentId": agent} for line in qwen_lines(caller)]
    folder = home / ".qwen/projects/-work-app/subagents" / caller
    return logs.write(folder / f"agent-{agent}.jsonl", lines)
