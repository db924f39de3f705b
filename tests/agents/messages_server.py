"""A model on loopback that speaks Anthropic's Messages API and says what a test scripted.

    with MessagesServer() as model:
        model.play(says("Looking.", ("Read", {"file_path": "/a"})), says("Done."))
        ...  # run a client with ANTHROPIC_BASE_URL=model.url

Requests of subagents are those whose first message contains AGENT_TASK: they take the turns of
`subagents`. Requests without tools, the client's side jobs, take none.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from tests.model_server import Gate

Block = Mapping[str, Any]
AGENT_TASK = "task of a subagent"


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """An answer: blocks without ids, which the server gives them; `after` holds it back."""

    blocks: tuple[Block, ...]
    after: Gate | None = None


def says(
    text: str,
    *calls: tuple[str, Mapping[str, Any]],
    thought: str | None = None,
    after: Gate | None = None,
) -> Turn:
    """Return an answer with a text, and with calls if it has any."""
    thoughts = [] if thought is None else [{"type": "thinking", "thinking": thought}]
    uses = [{"type": "tool_use", "name": name, "input": arguments} for name, arguments in calls]
    return Turn(blocks=(*thoughts, {"type": "text", "text": text}, *uses), after=after)


OVER = says("The script of the test has no more turns.")


def _events(answer: Mapping[str, Any]) -> Iterable[dict[str, Any]]:
    begun = {**answer["usage"], "output_tokens": 1}
    yield {
        "type": "message_start",
        "message": {**answer, "content": [], "stop_reason": None, "usage": begun},
    }
    for index, block in enumerate(answer["content"]):
        start = {"type": "content_block_start", "content_block": _emptied(block)}
        yield {**start, "index": index}
        for delta in _deltas(block):
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    end = {"stop_reason": answer["stop_reason"], "stop_sequence": None}
    yield {"type": "message_delta", "delta": end, "usage": answer["usage"]}
    yield {"type": "message_stop"}


def _emptied(block: Block) -> Block:
    empty = {"text": "", "thinking": "", "signature": "", "input": {}}
    return {**block, **{name: empty[name] for name in block if name in empty}}


def _deltas(block: Block) -> Iterable[dict[str, Any]]:
    match block["type"]:
        case "text":
            yield {"type": "text_delta", "text": block["text"]}
        case "thinking":
            yield {"type": "thinking_delta", "thinking": block["thinking"]}
            yield {"type": "signature_delta", "signature": "c2lnbmVk"}
        case _:
            yield {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def do_HEAD(self) -> None:
        self.send_response(200)
        self.end_headers()

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or b"{}")
        if not self.path.split("?")[0].endswith("/v1/messages"):
            return self._send("application/json", json.dumps({"input_tokens": 42}))
        answer, after = self.server.answer(body)
        if after is not None:
            after.wait()
        if not body.get("stream"):
            return self._send("application/json", json.dumps(answer))
        lines = (
            f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in _events(answer)
        )
        return self._send("text/event-stream", "".join(lines))

    def _send(self, kind: str, text: str) -> None:
        data = text.encode()
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: a test reads `requests`."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.turns: Iterator[Turn] = iter(())
        self.subagents: Iterator[Turn] = iter(())
        self.requests: list[Mapping[str, Any]] = []
        self.tokens: list[int] = []
        self.lock = threading.Lock()

    def answer(self, request: Mapping[str, Any]) -> tuple[Mapping[str, Any], Gate | None]:
        with self.lock:
            self.requests.append(request)
            turn, number = self._turn(request), len(self.requests)
            usage = {
                "input_tokens": 100 + number,
                "output_tokens": 20 + number,
                "cache_read_input_tokens": 10,
                "cache_creation_input_tokens": 5,
            }
            self.tokens.append(sum(usage.values()))
        content = [
            {**block, "id": f"toolu_{number}_{index}"} if block["type"] == "tool_use" else block
            for index, block in enumerate(turn.blocks)
        ]
        stop = "tool_use" if content[-1]["type"] == "tool_use" else "end_turn"
        answer = {
            "id": f"msg_{id(self)}_{number}",
            "type": "message",
            "role": "assistant",
            "model": request.get("model"),
            "content": content,
            "stop_reason": stop,
            "stop_sequence": None,
            "usage": usage,
        }
        return answer, turn.after

    def _turn(self, request: Mapping[str, Any]) -> Turn:
        if not request.get("tools"):
            return OVER
        first = json.dumps(request["messages"][0])
        return next(self.subagents if AGENT_TASK in first else self.turns, OVER)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Nothing: a client that was stopped hangs up in the middle of an answer."""


class MessagesServer:
    """The server, in a thread; leaving it closes the port."""

    def __init__(self) -> None:
        self._server = _Server()
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))

    @property
    def url(self) -> str:
        """The base URL for a client."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def play(self, *turns: Turn, subagents: Iterable[Turn] = ()) -> None:
        """Take the answers from these scripts."""
        self._server.turns, self._server.subagents = iter(turns), iter(subagents)

    @property
    def requests(self) -> list[Mapping[str, Any]]:
        """The bodies of all requests, oldest first."""
        return self._server.requests

    @property
    def tokens(self) -> list[int]:
        """How many tokens each of them cost: of the input, cached or not, and of the output."""
        return self._server.tokens

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
