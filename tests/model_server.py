"""A model on loopback that speaks the Gemini API and says what a test scripted.

    gate = Gate()
    turns = [answer(call("read_file", file_path="a.py")), answer(text("Done."), after=gate)]
    with ModelServer(turns) as model:
        ...  # run a client with GOOGLE_GEMINI_BASE_URL=model.url
        gate.reached.wait()  # the client waits for the second answer
        gate.open()

Each streamGenerateContent request takes the next turn of the script, or what a function in its
place answers to that request; generateContent (titles, the model router and other side jobs of a
client) is answered by `aside`, countTokens by a guess.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self, assert_never

from tests.patience import PATIENCE

Part = Mapping[str, Any]
"""Seconds that anything in here waits before the test is taken for broken."""


def text(words: str) -> Part:
    """A piece of the answer."""
    return {"text": words}


def thought(subject: str, description: str = "") -> Part:
    """A thought summary, in the form from which clients read subject and description."""
    return {"text": f"**{subject}**\n{description}", "thought": True}


def call(name: str, /, **args: Any) -> Part:
    """The model asks for a tool."""
    return {"functionCall": {"name": name, "args": args}}


def writes(path: str, content: str = "x\n") -> Part:
    """A call that writes a file."""
    return call("write_file", file_path=path, content=content)


def shell(command: str) -> Part:
    """A call that runs a shell command."""
    return call("run_shell_command", command=command)


def usage(prompt: int = 100, answer: int = 20, thoughts: int = 0, cached: int = 0) -> Part:
    """Token counters as the API sends them: the prompt includes what was cached."""
    return {
        "promptTokenCount": prompt,
        "candidatesTokenCount": answer,
        "thoughtsTokenCount": thoughts,
        "cachedContentTokenCount": cached,
        "totalTokenCount": prompt + answer + thoughts,
    }


class Gate:
    """Holds an answer back until the test opens it; `reached` tells that a client waits at it."""

    def __init__(self) -> None:
        self.reached = threading.Event()
        self._open = threading.Event()

    def open(self) -> None:
        """Let the answer go on."""
        self._open.set()

    def wait(self) -> None:
        """Wait at the gate, as the server does."""
        self.reached.set()
        if not self._open.wait(PATIENCE):
            raise TimeoutError("nobody opened the gate")


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """One event of the stream; without `finish` more is to come."""

    parts: tuple[Part, ...] = ()
    finish: str | None = None
    usage: Part | None = None

    def response(self, model: str) -> dict[str, Any]:
        """The GenerateContentResponse of this chunk."""
        candidate: dict[str, Any] = {"index": 0, "content": {"role": "model", "parts": self.parts}}
        if self.finish is not None:
            candidate["finishReason"] = self.finish
        body: dict[str, Any] = {"candidates": [candidate], "modelVersion": model}
        return body if self.usage is None else body | {"usageMetadata": self.usage}


Step = Chunk | Gate | bytes
"""`bytes` go out as they are: for streams that are broken on purpose."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """An answer, step by step; with `cut` the connection breaks after the last one."""

    steps: tuple[Step, ...]
    cut: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """The API refuses: an HTTP status and Google's error object."""

    status: int
    message: str
    reason: str = "UNKNOWN"
    details: tuple[Mapping[str, Any], ...] = ()

    def response(self) -> dict[str, Any]:
        """The error object on the wire."""
        error = {"code": self.status, "message": self.message, "status": self.reason}
        return {"error": error | {"details": self.details}}


Turn = Answer | Failure


def answer(
    *parts: Part, finish: str = "STOP", tokens: Part | None = None, after: Gate | None = None
) -> Answer:
    """A whole answer: one chunk per part, the last one with finish reason and token counters."""
    *first, last = parts or (text(""),)
    chunks: list[Step] = [Chunk(parts=(part,)) for part in first]
    end = Chunk(parts=(last,), finish=finish, usage=usage() if tokens is None else tokens)
    return Answer(steps=(*(() if after is None else (after,)), *chunks, end))


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What a client asked: `method` is the verb behind the model's name."""

    method: str
    model: str
    body: Mapping[str, Any]
    headers: Mapping[str, str]

    @property
    def tools(self) -> tuple[str, ...]:
        """Names of the tools that the client offers to the model."""
        return tuple(
            declaration["name"]
            for tool in self.body.get("tools", ())
            for declaration in tool.get("functionDeclarations", ())
        )


OVER = Failure(status=400, message="the script of the test has no more turns")


def _aside(request: Request) -> Turn:
    return answer(text("{}"))


def _in_order(script: Iterable[Turn]) -> Callable[[Request], Turn]:
    turns = iter(script)
    return lambda _request: next(turns, OVER)


def _whole(turn: Answer) -> Chunk:
    chunks = [step for step in turn.steps if isinstance(step, Chunk)]
    parts = tuple(part for chunk in chunks for part in chunk.parts)
    return Chunk(parts=parts, finish=chunks[-1].finish, usage=chunks[-1].usage)


@dataclass(slots=True, kw_only=True)
class _Script:
    """The turns that are left, and the requests that came; used by the threads of the server."""

    turns: Callable[[Request], Turn]
    aside: Callable[[Request], Turn]
    gates: tuple[Gate, ...]
    requests: list[Request] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def turn(self, request: Request) -> Turn | int:
        with self.lock:
            self.requests.append(request)
        match request.method:
            case "streamGenerateContent":
                with self.lock:
                    return self.turns(request)
            case "generateContent":
                return self.aside(request)
            case "countTokens":
                return len(json.dumps(request.body)) // 4
            case _:
                return Failure(status=404, message=f"{request.method} is not in here")


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or b"{}")
        where = re.search(r"/models/([^:/?]+):(\w+)", self.path)
        model, method = where.groups() if where else ("", self.path)
        request = Request(method=method, model=model, body=body, headers=dict(self.headers))
        match self.server.script.turn(request):
            case Failure() as failure:
                self._json(failure.status, failure.response())
            case Answer() as turn if method == "streamGenerateContent":
                self._stream(turn, model)
            case Answer() as turn:
                self._json(200, _whole(turn).response(model))
            case tokens:
                self._json(200, {"totalTokens": tokens})

    def _stream(self, turn: Answer, model: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for step in turn.steps:
            self._step(step, model)
        if turn.cut:
            self.close_connection = True
        else:
            self.wfile.write(b"0\r\n\r\n")

    def _step(self, step: Step, model: str) -> None:
        match step:
            case Gate():
                step.wait()
            case Chunk():
                self._piece(b"data: %b\r\n\r\n" % json.dumps(step.response(model)).encode())
            case bytes():
                self._piece(step)
            case _:
                assert_never(step)

    def _piece(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))
        self.wfile.flush()

    def _json(self, status: int, body: Mapping[str, Any]) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: a test reads `requests`."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, script: _Script) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.script = script

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Nothing: a client that was stopped hangs up in the middle of an answer."""


class ModelServer:
    """The server, in a thread; leaving it opens all gates and closes the port."""

    def __init__(
        self,
        turns: Iterable[Turn] | Callable[[Request], Turn] = (),
        *,
        aside: Callable[[Request], Turn] = _aside,
    ) -> None:
        script = () if callable(turns) else tuple(turns)
        gates = tuple(
            step
            for turn in script
            if isinstance(turn, Answer)
            for step in turn.steps
            if isinstance(step, Gate)
        )
        take = turns if callable(turns) else _in_order(script)
        self._script = _Script(turns=take, aside=aside, gates=gates)
        self._server = _Server(self._script)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))

    @property
    def url(self) -> str:
        """The base URL for a client."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def requests(self) -> tuple[Request, ...]:
        """All requests so far, oldest first."""
        with self._script.lock:
            return tuple(self._script.requests)

    @property
    def asked(self) -> tuple[Request, ...]:
        """The requests that took a turn of the script, oldest first."""
        return tuple(each for each in self.requests if each.method == "streamGenerateContent")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for gate in self._script.gates:
            gate.open()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
