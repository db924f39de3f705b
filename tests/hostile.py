"""A store in which everything that a model, a tool or a file name can say attacks the terminal."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

ESCAPES = (
    "\x1b]52;c;cHduZWQ=\x07",
    "\x1b]52;c;cHduZWQ=\x1b\\",
    "\x9d52;c;cHduZWQ=\x9c",
    "\x1b]0;owned\x07",
    "\x9d2;owned\x07",
    "\x1b]8;;http://evil.example/\x1b\\link\x1b]8;;\x1b\\",
    "\x1b[2J\x1b[H\x1b[31;7m",
    "\x9b2J\x9b31m",
    "\x1bP+q544e\x1b\\",
    "\x90+q\x9c",
    "\x1b_payload\x1b\\\x1b^x\x1b\\\x1bXx\x1b\\",
    "\x1bc\x1b7\x1b8\x1b=\x1b(0",
    "\x00\x05\x07\x08\x0b\x0c\x0e\x0f\x1a\x7f",
    "\x84\x85\x8d\x9a",
)
MARKUP = (
    "[/x]",
    "[@click=app.quit]boom[/]",
    "[red",
    "[/]",
    "[link=file:///etc/passwd]l[/link]",
    "\\[",
)
ORDER = ("\u202egnp.exe", "\u2066\u2067x\u2069", "\u200e\u200f\u061c", "\u2028\u2029", "\r over")
HTML = (
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "](javascript:alert(1))",
    "```\n~~~",
)
ODD = ("\ud800", "e" + "\u0301" * 50, "\ufeff", "👩‍👩‍👧‍👦", "\u0e33\u1100\u1161", "\U000e0041")
ATTACK = "evil" + "".join((*ESCAPES, *MARKUP, *ORDER, *HTML, *ODD)) + "end"
LONG = "x" * 100_000 + ESCAPES[0]
UNTERMINATED = "cut \x1b]52;c;cHduZWQ="

CONTROLS = re.compile(
    rb"\x1b\](?!2;|22;)"  # operating system commands, but the window's title and the pointer
    rb"|\x1b[P_^X]"  # device control, application, privacy, start of string
    rb"|\x1bc|\x1b[()]"  # reset, other character sets
    rb"|\xc2[\x80-\x9f]"  # C1 controls in UTF-8
    rb"|[\x00\x05\x0b\x0c\x0e\x0f\x1a\x7f]"
    rb"|\xe2\x80[\x8e\x8f\xaa-\xae]|\xe2\x81[\xa6-\xa9]|\xd8\x9c"  # bidi
)
"""What no terminal may get from us, whatever a session holds."""

ACTS = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Characters that act on a terminal or reorder its text: drawn text holds none."""

FILE_NAME = "evil\x1b]52;c;cHduZWQ=\x07[red\u202e\x9b31m[@click=app.quit]b"
"""What a file system takes of the attack."""


_TOML = {ord(char): f"\\u{ord(char):04x}" for char in FILE_NAME if not char.isprintable()}

POLICY = f"""# {FILE_NAME.translate(_TOML)}
[[rule]]
toolName = "run_shell_command"
commandPrefix = "{FILE_NAME.translate(_TOML)}"
decision = "deny"
priority = 10
denyMessage = "{FILE_NAME.translate(_TOML)}"
"""
"""A policy file with the attack in every text."""

WRONG_POLICY = f"""{POLICY}
[[rule]]
toolName = "{FILE_NAME.translate(_TOML)}"
decision = "{FILE_NAME.translate(_TOML)}"
priority = 2000
"""
"""One of which the CLI drops a rule, and says so."""

_CALL = {"tool_name": FILE_NAME, "tool_id": FILE_NAME}
EVENTS: list[dict[str, Any]] = [
    {"type": "init", "session_id": FILE_NAME, "model": FILE_NAME},
    {"type": "message", "role": "assistant", "content": ATTACK, "delta": True},
    {"type": "tool_use", **_CALL, "parameters": {"command": ATTACK, FILE_NAME: ATTACK}},
    {"type": "tool_result", "tool_id": FILE_NAME, "status": "error", "output": ATTACK},
    {"type": FILE_NAME, "message": ATTACK},
    {"type": "error", "severity": "error", "message": ATTACK},
    {"type": "result", "status": "error", "error": {"type": FILE_NAME, "message": ATTACK}},
]
"""What a hostile CLI says in a run."""


def tool(
    name: str, args: dict[str, Any], display: Any, *, status: str = "success"
) -> dict[str, Any]:
    """A stored tool call with the attack in every text."""
    reply = {"id": name, "name": name, "response": {"output": f"{ATTACK}\nExit Code: 3\n{LONG}"}}
    return {
        "id": f"{name}{ATTACK}",
        "name": name,
        "args": args,
        "result": [{"functionResponse": reply}],
        "status": status,
        "timestamp": "2026-11-20T10:00:05.000Z",
        "description": ATTACK,
        "displayName": ATTACK,
        "resultDisplay": display,
        "renderOutputAsMarkdown": True,
    }


def tools() -> list[dict[str, Any]]:
    """One call of each kind, with each shape that its display can have."""
    path = f"/home/dev/{ATTACK}.py"
    names = f"Index: {ATTACK}\n--- {ATTACK}\n+++ {ATTACK}\n"
    diff = f"{names}@@ -1,1 +1,2 @@ {ATTACK}\n-{ATTACK}\n+{ATTACK}\n"
    change = {"fileDiff": diff, "fileName": ATTACK, "filePath": path, "newContent": ATTACK}
    found = {"filePath": ATTACK, "absolutePath": path, "lineNumber": 3, "line": ATTACK}
    step = {"id": "1", "type": "tool_call", "content": ATTACK, "status": ATTACK}
    agent = {"isSubagentProgress": True, "agentName": ATTACK, "recentActivity": [step]}
    screen = [[{"text": ATTACK, "bold": True, "fg": ATTACK, "bg": "#12"}], []]
    return [
        tool("read_file", {"file_path": path}, ATTACK),
        tool("write_file", {"file_path": path, "content": ATTACK}, {**change, "isNewFile": True}),
        tool("replace", {"file_path": path, "old_string": ATTACK, "new_string": ATTACK}, change),
        tool("replace", {"file_path": path, "old_string": ATTACK, "new_string": ATTACK}, None),
        tool("run_shell_command", {"command": ATTACK, "description": ATTACK}, f"{ATTACK}\n{LONG}"),
        tool("run_shell_command", {"command": f"{ATTACK}\n{ATTACK}"}, screen, status="cancelled"),
        tool("grep_search", {"pattern": ATTACK}, {"summary": ATTACK, "matches": [found]}),
        tool(
            "list_directory",
            {"dir_path": ATTACK},
            {"summary": ATTACK, "files": [ATTACK], "skipped": [{"path": ATTACK, "reason": ATTACK}]},
        ),
        tool("write_todos", {}, {"todos": [{"description": ATTACK, "status": ATTACK}]}),
        tool("invoke_agent", {"agent_name": ATTACK, "prompt": ATTACK}, {**agent, "result": ATTACK}),
        tool(ATTACK, {ATTACK: ATTACK, "list": [ATTACK, {ATTACK: LONG}]}, {ATTACK: [ATTACK]}),
        tool("mcp_evil_tool", {"rows": 1}, [{ATTACK: ATTACK, "b": 1}, {ATTACK: ATTACK, "b": 2}]),
        tool("web_fetch", {"prompt": ATTACK}, UNTERMINATED, status="error"),
        tool("update_topic", {"title": ATTACK, "summary": ATTACK}, ATTACK, status=ATTACK),
    ]


def records(id: str) -> list[dict[str, Any]]:
    """A session with an attack in every field that a screen or an export may show."""
    stamp = "2026-11-20T10:00:0"
    head = {
        "sessionId": id,
        "projectHash": ATTACK,
        "startTime": f"{stamp}0.000Z",
        "lastUpdated": f"{stamp}9.000Z",
        "kind": "main",
        "directories": [f"/home/dev/{ATTACK}"],
        "summary": ATTACK,
    }
    image = {"inlineData": {"mimeType": f"image/{ATTACK}", "data": "AAAA"}}
    file = {"fileData": {"mimeType": ATTACK, "fileUri": f"gs://{ATTACK}"}}
    files = (
        f"\n--- Content from referenced files ---\nContent from @{ATTACK}:\n{ATTACK}\n--- End "
        "of content ---"
    )
    prompt = {
        "id": f"u1{ATTACK}",
        "timestamp": f"{stamp}1.000Z",
        "type": "user",
        "content": [{"text": f"{ATTACK}{files}"}, image, file],
        "displayContent": [{"text": f"{ATTACK}\n{LONG}\n{UNTERMINATED}"}],
    }
    answer = {
        "id": f"g1{ATTACK}",
        "timestamp": f"{stamp}2.000Z",
        "type": "gemini",
        "content": markdown(),
        "thoughts": [{"subject": ATTACK, "description": ATTACK, "timestamp": f"{stamp}2.000Z"}],
        "tokens": {"input": 1, "output": 2, "cached": 0, "thoughts": 0, "tool": 0, "total": 3},
        "model": f"gemini-{ATTACK}",
        "toolCalls": tools(),
    }
    long = {**answer, "id": "g2", "content": f"{LONG}\n{ATTACK}", "thoughts": [], "toolCalls": []}
    notices = [
        {"id": kind, "timestamp": f"{stamp}3.000Z", "type": kind, "content": f"{ATTACK} {LONG}"}
        for kind in ("info", "warning", "error")
    ]
    return [head, prompt, answer, long, *notices, {"$rewindTo": "error"}]


def markdown() -> str:
    """The attack in every place that Markdown knows; a long line is left to another message."""
    line = "evil" + "".join((*ESCAPES[:-1], *MARKUP, *ORDER[:3], *HTML[:3], *ODD)) + "end"
    return "\n\n".join(
        (
            f"# {line}",
            f"Text {line} `{line}` **{line}** ~~{line}~~ [{line}](http://x/{line} '{line}')",
            f"![{line}](file:///{line}) <http://evil.example/{line}> http://evil.example/{line}",
            f"* {line}\n  1. {line}\n  * [x] {line}",
            f"> {line}",
            f"| {line} | b |\n| --- | --- |\n| {line} | {line} |",
            f"```{line}\n{ATTACK}\n{LONG[:500]}\n```",
            f"```python\nprint('{line}')\n```",
            f"    {line}",
            f"<b>{line}</b>",
            f"$$ {line} $$",
            UNTERMINATED,
        )
    )


def make_store(home: Path) -> list[str]:
    """`home/.gemini` with hostile sessions in a hostile project, one with a subagent; their ids."""
    chats = home / ".gemini" / "tmp" / FILE_NAME / "chats"
    chats.mkdir(parents=True)
    (chats.parent / ".project_root").write_text(f"/home/dev/{FILE_NAME}")
    ids = [f"evil000{number}-1111-4222-8333-444444444444" for number in range(3)]
    _write(chats / "session-2026-11-20T10-00-evil0000.jsonl", ids[0])
    _write(chats / f"session-2026-11-20T09-00-evil0001{FILE_NAME}.jsonl", ids[1])
    (chats / ids[0]).mkdir()
    _write(chats / ids[0] / f"{FILE_NAME}.jsonl", ids[2])
    broken = ATTACK.encode("utf-8", "surrogatepass")
    (chats / f"session-2026-11-20T08-00-{FILE_NAME}.jsonl").write_bytes(broken)
    history = {"history": [{"role": "user", "parts": [{"text": ATTACK}]}]}
    (chats.parent / f"checkpoint-{FILE_NAME}.json").write_text(json.dumps(history, indent=2))
    return ids


def _write(path: Path, id: str) -> None:
    lines = [json.dumps(record) for record in records(id)]
    path.write_text("\n".join((*lines[:2], ATTACK.replace("\ud800", ""), *lines[2:], "")))
