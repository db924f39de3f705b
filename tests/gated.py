"""A run that asks, on the real CLI, with hooks that lead to its gate."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import Any

from gemtui.agent.options import AgentOptions
from gemtui.runs.adapter import GeminiAdapter
from tests.model_server import ModelServer
from tests.real_cli import MODEL, GeminiCli

ASK = """
import os, socket, sys
with socket.socket(socket.AF_UNIX) as gate:
    gate.connect(os.environ["GEMTUI_GATE"])
    gate.sendall(b'{"event": %b}\\n' % sys.stdin.buffer.read())
    answer = gate.makefile("rb").readline()
os.write(1, answer)
sys.exit(0 if answer else 2)
"""
REFUSAL = '{"decision":"deny","reason":"gemtui does not answer, so this is not allowed"}'
EVENTS = ("SessionStart", "BeforeAgent", "BeforeTool", "AfterTool", "AfterAgent", "SessionEnd")


def put_hooks(gemini: GeminiCli) -> Path:
    """Put hooks where the CLI looks for extensions."""
    place = gemini.store / "extensions" / "gemtui"
    (place / "hooks").mkdir(parents=True)
    (place / "gemini-extension.json").write_text('{"name": "gemtui", "version": "1.0.0"}')
    asks = f"exec {sys.executable} -I -S -c {shlex.quote(ASK)}"
    command = f"printf %s '{REFUSAL}' >&2; {asks}"
    hook = {"type": "command", "name": "gemtui", "command": command, "timeout": 2147483000}
    hooks = {"hooks": {event: [{"hooks": [hook]}] for event in EVENTS}}
    (place / "hooks" / "hooks.json").write_text(json.dumps(hooks))
    return place


def asking(gemini: GeminiCli, model: ModelServer) -> GeminiAdapter:
    """An adapter whose runs can ask."""
    environ = gemini.environment(model.url)
    environ.pop("GEMINI_CLI_NO_RELAUNCH")
    return GeminiAdapter(cli=gemini.program, runs=gemini.folder / "runs", environ=environ)


def asked(gemini: GeminiCli, **more: Any) -> AgentOptions:
    """Options of a run that asks, in the default mode."""
    base: dict[str, Any] = {"cwd": gemini.project, "model": MODEL, "approval_mode": "default"}
    return AgentOptions(**(base | {"ask": True} | more))
