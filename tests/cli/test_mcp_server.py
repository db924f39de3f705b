"""The protocol of the MCP server: what is answered to what."""

from __future__ import annotations

import io
import json
import threading
from typing import Any

import msgspec

from gemtui.commands.mcp_server import LARGEST, VERSIONS, McpServer, ServedTool, ToolError
from tests.cli.conftest import has, values
from tests.rows import each_row, table

TABLES = table("cli/mcp_server.json")


class Said(msgspec.Struct, forbid_unknown_fields=True):
    """Arguments."""

    text: str
    times: int = 1


LET_GO = threading.Event()


def echo(given: Said) -> str:
    if given.text == "wrong":
        raise ToolError("not \x1b this")
    if given.text == "bug":
        raise KeyError("x")
    if given.text == "slow":
        LET_GO.wait()
    return given.text * given.times


def server(limit: float = 20) -> McpServer:
    tool = ServedTool("echo", "Say it again.", Said, echo)
    return McpServer([tool], name="test", version="1", instructions="Use it.", limit=limit)


def ask(method: str, id: Any = 1, **params: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).encode()


def call(**arguments: Any) -> bytes:
    return ask("tools/call", name="echo", arguments=arguments)


@each_row("version", [*VERSIONS, "2099-01-01", 5, None])
def test_the_version_is_the_client_s_if_it_is_known(version: Any) -> None:
    answer: Any = server().answer(ask("initialize", protocolVersion=version))
    assert answer["result"]["protocolVersion"] == (version if version in VERSIONS else VERSIONS[0])
    assert answer["result"]["serverInfo"] == {"name": "test", "version": "1"}


def test_tools_have_a_strict_schema() -> None:
    answer: Any = server().answer(ask("tools/list"))
    (tool,) = answer["result"]["tools"]
    schema = tool["inputSchema"]
    has(schema, type="object", additionalProperties=False)
    assert schema["required"] == ["text"]
    assert "$ref" not in json.dumps(schema)
    assert tool["annotations"]["readOnlyHint"]


@each_row("arguments, text, bad", TABLES["a_call_has_a_result_or_words_for_the_model"])
def test_a_call_has_a_result_or_words_for_the_model(
    arguments: dict[str, Any], text: str, bad: bool
) -> None:
    answer: Any = server().answer(call(**arguments))
    assert answer["result"]["isError"] is bad
    assert text in answer["result"]["content"][0]["text"]


@each_row(
    ("line", "code"),
    [
        (b"{", -32700),
        (b"\xff\xfe", -32700),
        (b"[" * 2000 + b"]" * 2000, -32700),
        (b"[" * 100 + b"]" * 100, -32600),
        (b"5", -32600),
        (b"[]", -32600),
        (b'{"id": 1, "method": "ping"}', -32600),
        (b'{"jsonrpc": "2.0", "id": 1, "method": 5}', -32600),
        (b'{"jsonrpc": "2.0", "id": null, "method": "ping"}', -32600),
        (b'{"jsonrpc": "2.0", "id": true, "method": "ping"}', -32600),
        (b'{"jsonrpc": "2.0", "id": [1], "method": "ping"}', -32600),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": []}', -32602),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "resources/list"}', -32601),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call"}', -32602),
        (ask("tools/call", name=["echo"], arguments={}), -32602),
        (ask("tools/call", name="nothing"), -32602),
        (b"[" + ask("ping") + b"]", -32600),
    ],
)
def test_what_is_no_message_is_an_error(line: bytes, code: int) -> None:
    answer: Any = server().answer(line)
    assert answer["error"]["code"] == code


@each_row(
    "line",
    [
        b"",
        b"  \n",
        b'{"jsonrpc": "2.0", "method": "notifications/initialized"}',
        b'{"jsonrpc": "2.0", "method": "tools/call", "params": 5}',
        b'{"jsonrpc": "2.0", "id": 1, "result": {}}',
        b'{"jsonrpc": "2.0", "id": 1, "error": {}}',
    ],
)
def test_what_wants_no_answer_gets_none(line: bytes) -> None:
    assert server().answer(line) is None


def test_lists_of_messages_are_answered_in_the_version_that_has_them() -> None:
    asked = server()
    asked.answer(ask("initialize", protocolVersion="2025-03-26"))
    noted = b'{"jsonrpc": "2.0", "method": "notifications/x"}'
    answer: Any = asked.answer(b"[" + ask("ping") + b"," + noted + b",5]")
    assert [each.get("id") for each in answer] == [1, None]
    assert asked.answer(b"[" + noted + b"]") is None
    many: Any = asked.answer(b"[" + b",".join([noted] * 51) + b"]")
    assert many["error"]["code"] == -32600


def test_a_line_that_is_too_long_is_passed_over() -> None:
    out = io.BytesIO()
    given = b'{"' + b"x" * (3 * LARGEST) + b"\n" + ask("ping", id="after") + b"\n" + ask("ping", 2)
    server().serve(io.BytesIO(given), out)
    answers = [json.loads(line) for line in out.getvalue().splitlines()]
    assert values(answers, "id") == [None, "after", 2]


def test_a_slow_tool_is_given_up_and_few_are_at_work() -> None:
    LET_GO.clear()
    asked = server(limit=0.01)
    words = [asked.answer(call(text="slow")) for _ in range(5)]
    texts = [each["result"]["content"][0]["text"] for each in words if isinstance(each, dict)]
    assert texts[0].startswith("This took longer than 0.01 s")
    assert texts[4].startswith("Earlier calls are still running")
    LET_GO.set()
