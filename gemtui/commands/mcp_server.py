"""An MCP server over stdin and stdout: JSON-RPC 2.0, one message per line.

The server handles one message at a time and knows nothing about what its tools do. Every message is
either answered or ignored, and nothing but responses is written to stdout
(assets/gemini-cli.md#mcp-servers).
"""

from __future__ import annotations

import threading
import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import Any, BinaryIO

import msgspec
import orjson
from msgspec import Struct

from gemtui.errors import GemtuiError, reason_of
from gemtui.jsonin import is_deep, loads
from gemtui.jsonout import encode
from gemtui.text import clean_line

VERSIONS = ("2025-06-18", "2025-03-26", "2024-11-05")
"""The supported versions of the protocol, newest first."""
_BATCHES = "2025-03-26"
"""The only protocol version that allows a batch (a list of several messages)."""
LARGEST = 1_000_000
"""The size limit of a message in bytes; larger messages are skipped."""
_DEEPEST = 50
_MOST = 50
"""The most messages in one batch."""
LIMIT = 20.0
"""The time limit of a tool call, in seconds."""
_BUSY = 4
"""How many tool calls may keep running after timing out."""
_PARSE, _INVALID, _UNKNOWN_METHOD, _PARAMS = -32700, -32600, -32601, -32602

Json = dict[str, Any]


class ToolError(Exception):
    """Raised by a tool to send the model an error message instead of a result."""


class ServedTool(Struct, frozen=True):
    """A tool that the server offers.

    `arguments`: the type of its arguments, a Struct. `call`: returns the text for the model. The
    function may raise ToolError, GemtuiError and OSError, whose messages are sent to the model.
    """

    name: str
    description: str
    arguments: type[msgspec.Struct]
    call: Callable[[Any], str]

    def to_dict(self) -> Json:
        """Return the tool's entry in the response to `tools/list`."""
        _, schemas = msgspec.json.schema_components((self.arguments,))
        schema = schemas[self.arguments.__name__]
        schema.pop("title", None)
        schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
        return {
            "name": self.name,
            "description": self.description,
            "inputSchema": schema,
            "annotations": {"readOnlyHint": True, "openWorldHint": False},
        }


class McpServer:
    """A server that lets a client call the given tools.

    `instructions`: text that clients may show to the model. `limit`: the time limit of a tool call,
    in seconds.
    """

    def __init__(
        self,
        tools: Sequence[ServedTool],
        *,
        name: str,
        version: str,
        instructions: str,
        limit: float = LIMIT,
    ) -> None:
        self._tools: Mapping[str, ServedTool] = {tool.name: tool for tool in tools}
        self._info = {"name": name, "version": version}
        self._instructions, self._limit = instructions, limit
        self._version = VERSIONS[0]
        self._working = 0
        self._lock = threading.Lock()

    def serve(self, given: BinaryIO, out: BinaryIO) -> None:
        """Respond to messages from `given` until it ends or `out` is closed."""
        while line := given.readline(LARGEST + 1):
            if len(line) > LARGEST and not line.endswith(b"\n"):
                _skip_line(given)
                answer: Any = _error(None, _PARSE, f"a message can have at most {LARGEST} bytes")
            else:
                answer = self.answer(line)
            if answer is None:
                continue
            try:
                out.write(encode(answer) + b"\n")
                out.flush()
            except (BrokenPipeError, ValueError):
                return

    def answer(self, line: bytes) -> Json | list[Json] | None:
        """Return the response to one line, or None for messages that need no response."""
        if not line.strip():
            return None
        try:
            message = loads(line)
        except (orjson.JSONDecodeError, RecursionError):
            return _error(None, _PARSE, "not valid JSON")
        if is_deep(message, _DEEPEST):
            return _error(None, _INVALID, "the message is nested too deeply")
        if isinstance(message, list) and self._version == _BATCHES:
            if not 0 < len(message) <= _MOST:
                return _error(None, _INVALID, f"a batch must contain 1 to {_MOST} messages")
            answers = [reply for reply in map(self._one, message) if reply is not None]
            return answers or None
        return self._one(message)

    def _one(self, message: object) -> Json | None:
        if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
            return _error(None, _INVALID, "not a JSON-RPC 2.0 message")
        method, id = message.get("method"), message.get("id")
        if "method" not in message and ("result" in message or "error" in message):
            return None  # a response, although this server never sends requests
        if not isinstance(method, str):
            return _error(None, _INVALID, "method is missing or is not a string")
        if "id" not in message:
            return None
        if isinstance(id, bool) or not isinstance(id, int | str):
            return _error(None, _INVALID, "id must be an integer or a string")
        params = message.get("params", {})
        if not isinstance(params, dict):
            return _error(id, _PARAMS, "params must be an object")
        match method:
            case "initialize":
                return _result(id, self._initialize(params))
            case "ping":
                return _result(id, {})
            case "tools/list":
                return _result(id, {"tools": [tool.to_dict() for tool in self._tools.values()]})
            case "tools/call":
                return self._call(id, params)
        return _error(id, _UNKNOWN_METHOD, f"unknown method {method[:100]!r}")

    def _initialize(self, params: Json) -> Json:
        wanted = params.get("protocolVersion")
        self._version = wanted if wanted in VERSIONS else VERSIONS[0]
        return {
            "protocolVersion": self._version,
            "capabilities": {"tools": {}},
            "serverInfo": self._info,
            "instructions": self._instructions,
        }

    # --- one call --------------------------------------------------------------------------------

    def _call(self, id: int | str, params: Json) -> Json:
        name = params.get("name")
        tool = self._tools.get(name) if isinstance(name, str) else None
        if tool is None:
            return _error(id, _PARAMS, f"unknown tool; the tools are {', '.join(self._tools)}")
        try:
            values = params.get("arguments")
            arguments = msgspec.convert({} if values is None else values, tool.arguments)
        except msgspec.ValidationError as error:
            return _result(id, _failed(f"Invalid arguments: {error}"))
        return _result(id, self._limited(tool, arguments))

    def _limited(self, tool: ServedTool, arguments: Any) -> Json:
        """Run a tool and return its result, or an error after the time limit.

        A tool that exceeds the limit keeps running until it ends by itself. If `_BUSY` tools are
        running, this returns an error at once.
        """
        with self._lock:
            if self._working >= _BUSY:
                return _failed("Earlier calls are still running; try again later.")
            self._working += 1
        results: list[Json] = []

        def work() -> None:
            try:
                results.append(_outcome(tool, arguments))
            finally:
                with self._lock:
                    self._working -= 1

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        thread.join(self._limit)
        error = f"This took longer than {self._limit:g} s: ask for less data."
        return results[0] if results else _failed(error)


def _outcome(tool: ServedTool, arguments: Any) -> Json:
    try:
        return {"content": [{"type": "text", "text": tool.call(arguments)}], "isError": False}
    except (ToolError, GemtuiError) as error:
        return _failed(str(error))
    except OSError as error:
        return _failed(reason_of(error))
    except Exception as error:  # the server must respond, whatever a tool raises
        traceback.print_exception(error)
        return _failed("internal error in gemtui")


def _failed(words: str) -> Json:
    return {"content": [{"type": "text", "text": str(clean_line(words))}], "isError": True}


def _result(id: int | str, result: Json) -> Json:
    return {"jsonrpc": "2.0", "id": id, "result": result}


def _error(id: int | str | None, code: int, words: str) -> Json:
    return {"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": words}}


def _skip_line(given: BinaryIO) -> None:
    while (rest := given.readline(LARGEST)) and not rest.endswith(b"\n"):
        pass
