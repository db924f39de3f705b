"""A run that asks, on the real CLI, with hooks that lead to its gate."""

from __future__ import annotations

import json
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gemtui.agent.approval import Approval, ApprovalRequest
from gemtui.agent.events import AgentEvent, ResultStatus
from gemtui.agent.options import AgentOptions
from gemtui.agent.run_folder import RunFolder
from gemtui.extension.content import NAME, write
from gemtui.paths import extension_dir
from gemtui.runs.adapter import GeminiAdapter
from tests.agent.event_lists import collect, results
from tests.model_server import ModelServer, Part, Request, Turn, answer, text
from tests.real_cli import MODEL, GeminiCli

Approve = Callable[[ApprovalRequest], Awaitable[Approval]]


async def allow(_: ApprovalRequest) -> Approval:
    """Allow each call."""
    return Approval.allow()


@dataclass(frozen=True)
class Ran:
    """A run that asked and has ended: its events, what it asked, what the model was told."""

    events: list[AgentEvent]
    requests: list[ApprovalRequest]
    model: ModelServer

    @property
    def statuses(self) -> list[ResultStatus]:
        """How the calls ended."""
        return [status for _, status in results(self.events)]

    @property
    def told(self) -> str:
        """All that the model was told, in the last request."""
        return json.dumps(self.model.asked[-1].body["contents"])

    @property
    def end(self) -> str:
        """What the last event says."""
        return str(getattr(self.events[-1].payload, "result", None))


def put_hooks(gemini: GeminiCli, *, mcp: bool = False) -> None:
    """Install the extension as the CLI's own command does, without waiting for that."""
    write(mcp=mcp)
    place = gemini.store / "extensions" / NAME
    place.mkdir(parents=True)
    link = {"source": str(extension_dir()), "type": "link"}
    (place / ".gemini-extension-install.json").write_text(json.dumps(link))


def run_of(gemini: GeminiCli) -> RunFolder:
    """Return the folder of the only run."""
    (path,) = (gemini.folder / "runs").iterdir()
    return RunFolder(path)


def contents(gemini: GeminiCli) -> dict[str, str]:
    """Return what is in the project's files, by their names."""
    return {path.name: path.read_text() for path in gemini.project.iterdir()}


def asking(gemini: GeminiCli, model: ModelServer, *, cli: Path | None = None) -> GeminiAdapter:
    """An adapter whose runs can ask."""
    environ = gemini.environment(model.url)
    return GeminiAdapter(cli=cli or gemini.program, runs=gemini.folder / "runs", environ=environ)


def asked(gemini: GeminiCli, **more: Any) -> AgentOptions:
    """Options of a run that asks, in the default mode."""
    base: dict[str, Any] = {"cwd": gemini.project, "model": MODEL, "approval_mode": "default"}
    return AgentOptions(**(base | {"ask": True} | more))


async def ask(
    gemini: GeminiCli,
    turns: Sequence[Sequence[Part]] | Callable[[Request], Turn],
    approve: Approve = allow,
    **more: Any,
) -> Ran:
    """Run a prompt to its end; `turns`: the parts of the model's answers, before it is done."""
    requests: list[ApprovalRequest] = []

    async def noted(request: ApprovalRequest) -> Approval:
        requests.append(request)
        return await approve(request)

    script = turns if callable(turns) else [answer(*parts) for parts in (*turns, [text("Done.")])]
    with ModelServer(script) as model:
        running = asking(gemini, model).run("go", asked(gemini, approve=noted, **more))
        return Ran(await collect(running), requests, model)


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
