"""A run that asks, on the real CLI, with hooks that lead to its gate."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gemtui.agent.options import AgentOptions
from gemtui.extension.content import NAME, write
from gemtui.paths import extension_dir
from gemtui.runs.adapter import GeminiAdapter
from tests.model_server import ModelServer
from tests.real_cli import MODEL, GeminiCli


def put_hooks(gemini: GeminiCli, *, mcp: bool = False) -> None:
    """Install the extension as the CLI's own command does, without waiting for that."""
    write(mcp=mcp)
    place = gemini.store / "extensions" / NAME
    place.mkdir(parents=True)
    link = {"source": str(extension_dir()), "type": "link"}
    (place / ".gemini-extension-install.json").write_text(json.dumps(link))


def asking(gemini: GeminiCli, model: ModelServer, *, cli: Path | None = None) -> GeminiAdapter:
    """An adapter whose runs can ask."""
    environ = gemini.environment(model.url)
    return GeminiAdapter(cli=cli or gemini.program, runs=gemini.folder / "runs", environ=environ)


def asked(gemini: GeminiCli, **more: Any) -> AgentOptions:
    """Options of a run that asks, in the default mode."""
    base: dict[str, Any] = {"cwd": gemini.project, "model": MODEL, "approval_mode": "default"}
    return AgentOptions(**(base | {"ask": True} | more))


_SERVER = """
import json, sys
SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
TOOLS = [
    {"name": name, "description": "Makes a file.", "inputSchema": SCHEMA} for name in sys.argv[1:]
]
SCHEMA["additionalProperties"] = False
for line in sys.stdin:
    asked = json.loads(line)
    method, given = asked["method"], asked.get("params", {})
    result = {}
    if method == "initialize":
        info = {"name": "things", "version": "1"}
        version = given["protocolVersion"]
        result = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}
    elif method == "tools/list":
        result = {"tools": TOOLS}
    elif method == "tools/call":
        open(given["arguments"]["path"], "w").write(json.dumps(given["arguments"]))
        result = {"content": [{"type": "text", "text": "made"}]}
    if "id" in asked:
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"""


def put_server(
    gemini: GeminiCli, servers: Mapping[str, Sequence[str]] = {"things": ("make",)}
) -> None:
    """Give the CLI MCP servers with these tools, each of which makes a file of its arguments."""
    place = gemini.folder / "server.py"
    place.write_text(_SERVER)
    settings = json.loads((gemini.store / "settings.json").read_text())
    server = {"command": sys.executable, "cwd": str(gemini.project)}
    settings["mcpServers"] = {
        name: server | {"args": [str(place), *tools]} for name, tools in servers.items()
    }
    (gemini.store / "settings.json").write_text(json.dumps(settings))
