"""`gemtui show --redact`, in every format."""

from __future__ import annotations

import json
import re
from html import unescape
from pathlib import Path

import pytest

from gemtui.export_formats import Format
from tests.cli.conftest import Gemtui
from tests.redact.secrets import ENV, KEY_LINES, PEM, SECRETS, TEXTS, TOKENS


def session(store: Path) -> str:
    """A session with every secret in prompt, title, thought, call, diff, screen and file name."""
    every = "\n".join([*SECRETS[: -len(TEXTS)], *(text for text, _ in TEXTS), PEM])
    env = "\n".join(f"{name}={value}" for name, value in ENV.items())
    (token, *_) = TOKENS["github-token"]
    time = "2026-11-20T10:00:00.000Z"
    diff = "--- a\n+++ b\n@@ -0,0 +1,9 @@\n" + "\n".join(f"+{line}" for line in every.split("\n"))
    calls = [
        {
            "id": "c1",
            "name": "write_file",
            "args": {"file_path": f"/home/adalove/{token}.txt", "content": every},
            "status": "success",
            "timestamp": time,
            "result": [{"functionResponse": {"id": "c1", "name": "write_file", "response": {"output": every}}}],
            "resultDisplay": {
                "fileDiff": diff,
                "fileName": f"{token}.txt",
                "filePath": f"/home/adalove/{token}.txt",
                "originalContent": "",
                "newContent": every,
            },
        },
        {
            "id": "c2",
            "name": "run_shell_command",
            "args": {"command": "cat .env"},
            "status": "success",
            "timestamp": time,
            "result": [
                {
                    "functionResponse": {
                        "id": "c2",
                        "name": "run_shell_command",
                        "response": {"output": f"Output: {env}\nExit Code: 0"},
                    }
                }
            ],
            "resultDisplay": [
                [{"text": line[: len(line) // 2]}, {"text": line[len(line) // 2 :]}]
                for line in [*env.split("\n"), *SECRETS]
            ],
        },
    ]
    id = "5ec2e700-0000-4000-8000-000000000000"
    records = [
        {"sessionId": id, "projectHash": "0" * 64, "startTime": time, "lastUpdated": time},
        {"id": "m1", "timestamp": time, "type": "user", "content": [{"text": f"{token} {every}"}]},
        {
            "id": "m2",
            "timestamp": time,
            "type": "gemini",
            "content": json.dumps({"nested": every}),
            "thoughts": [{"subject": token, "description": every, "timestamp": time}],
            "model": "gemini-3.8-flash",
            "toolCalls": calls,
        },
        {"id": "m3", "timestamp": time, "type": "user", "content": [{"text": f"gone {every}"}]},
        {"$rewindTo": "m3"},
    ]
    chats = store / "tmp/secrets/chats"
    chats.mkdir(parents=True)
    lines = "".join(json.dumps(record) + "\n" for record in records)
    (chats / "session-2026-11-20T10-00-5ec2e700.jsonl").write_text(lines)
    (store / "tmp/secrets/.project_root").write_text("/home/adalove/src")
    return id


@pytest.mark.parametrize("format", Format)
def test_no_part_of_a_secret_remains_in_an_export(store: Path, gemtui: Gemtui, format: Format) -> None:
    id = session(store)
    dropped = () if format is Format.UNIFIED else ("--dropped",)
    open = gemtui("show", id, "--format", format, *dropped).out
    answer = gemtui("show", id, "--format", format, *dropped, "--redact")
    assert answer.code == 0, answer.err
    assert "replaced " in answer.err
    assert "[redacted:" in answer.out.replace("\\", "")
    before, after = plain(open, format), plain(answer.out, format)
    for secret in (each.replace("\\", "") for each in [*SECRETS, *KEY_LINES, *ENV.values()]):
        assert secret in before
        for part in (secret[:12], secret[len(secret) // 2 :]):
            assert part not in after or len(part) < 4, part


def plain(export: str, format: Format) -> str:
    """The text of an export, whatever its form does to it."""
    if format in (Format.HTML, Format.REPLAY):
        export = unescape(re.sub(r"<[^>]*>", "", export))
    return export.replace("\\", "")
