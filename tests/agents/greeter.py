"""A server of MCP, over stdin and stdout, with one tool."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any

TOOL = {
    "name": "greet",
    "description": "Greets",
    "inputSchema": {"type": "object", "properties": {"who": {"type": "string"}}},
}


def answer(request: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the result of a request."""
    match request["method"]:
        case "initialize":
            return {
                "protocolVersion": request["params"]["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "greeter", "version": "1"},
            }
        case "tools/list":
            return {"tools": [TOOL]}
        case "tools/call":
            text = f"Hello {request['params']['arguments']['who']}"
            return {"content": [{"type": "text", "text": text}]}
        case _:
            return {}


for line in sys.stdin:
    request = json.loads(line)
    if "id" in request:
        response = {"jsonrpc": "2.0", "id": request["id"], "result": answer(request)}
        print(json.dumps(response), flush=True)
