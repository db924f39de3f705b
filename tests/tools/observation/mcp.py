"""A small MCP server on stdio with the four tools of the observed cases; run as a script."""

from __future__ import annotations

import json
import sys
from typing import Any

READS, WRITES = {"readOnlyHint": True}, {"readOnlyHint": False, "destructiveHint": True}
ANNOTATIONS: dict[str, dict[str, Any]] = {
    "read_thing": READS,
    "write_thing": WRITES,
    "plain": {},
    "search": READS,
}


def answer(method: str, params: dict[str, Any]) -> dict[str, Any]:
    """The result of one request."""
    if method == "initialize":
        return {
            "protocolVersion": params["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "things", "version": "1"},
        }
    if method == "tools/list":
        return {"tools": [tool(name, hints) for name, hints in ANNOTATIONS.items()]}
    if method == "tools/call":
        return {"content": [{"type": "text", "text": "done"}]}
    return {}


def tool(name: str, hints: dict[str, Any]) -> dict[str, Any]:
    """A tool as `tools/list` describes it."""
    names = ("q", "file_path", "path", "target")
    schema = {"type": "object", "properties": {each: {"type": "string"} for each in names}}
    described = {"name": name, "description": f"{name} does nothing", "inputSchema": schema}
    return described | ({"annotations": hints} if hints else {})


if __name__ == "__main__":
    for line in sys.stdin:
        request = json.loads(line)
        if "id" in request:
            result = answer(request["method"], request.get("params", {}))
            print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True)
