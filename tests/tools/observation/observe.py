"""One run of the real CLI in which a scripted model makes the calls, and what came of each.

Headless the stream tells the outcome; interactively the run goes by ACP, every question is answered
with a no, and the outcome is whether it was asked and what the model was told.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from tests.model_server import Failure, ModelServer, Request, Turn, answer, call, text
from tests.patience import PATIENCE
from tests.tools.observation.cases import Case, Seen
from tests.tools.observation.place import Place

PROMPT = "Make the calls of this observation."
"""Told apart by it: the run's own requests, and those of agents that it calls."""

_REFUSALS = {
    "tool_not_registered": "not_offered",
    "policy_violation": "denied_by_policy",
    "invalid_tool_params": "invalid_params",
}
_TOLD = (
    ("was canceled by the user", "ask_user"),
    ("not found in registry", "not_offered"),
    ("denied by policy", "denied_by_policy"),
    ("Path not in workspace", "invalid_params"),
    ("Access denied: plan path", "invalid_params"),
)


class Lost(Exception):
    """The CLI ended before it had made all calls, or took too long; the message has its words."""


class Script:
    """A model that makes calls, and remembers what it was offered and told.

    `at_once`: all calls in one answer instead of one a turn. Interactively a command asks again
    when a word of it stood in an earlier turn's output; at once, calls don't meet each other so.
    """

    def __init__(self, calls: Sequence[tuple[str, dict[str, Any]]], *, at_once: bool) -> None:
        step = len(calls) if at_once else 1
        self._turns = [calls[at : at + step] for at in range(0, len(calls), step)]
        self.offered: list[bool] = []
        self.told: list[Any] = []

    def __call__(self, request: Request) -> Turn:
        """The next calls; agents that are called get nothing done."""
        contents = request.body["contents"]
        if PROMPT not in json.dumps(contents):
            return Failure(status=400, message="agents have no script")
        if self.offered:
            self.told += _responses(contents[-1])
        if not self._turns:
            return answer(text("Done."))
        calls = self._turns.pop(0)
        self.offered += [tool in request.tools for tool, _ in calls]
        return answer(*(call(tool, **args) for tool, args in calls))


def _responses(content: Any) -> Iterator[Any]:
    """What the last turn's content tells of its calls."""
    for part in content.get("parts", ()):
        if response := part.get("functionResponse"):
            yield response.get("response")


def observe(program: Path, folder: Path, cases: Sequence[Case]) -> tuple[Seen, ...]:
    """What the CLI does with the calls of one run; `folder` must not be there yet.

    Raises Lost.
    """
    place = Place.set_up(program, folder, cases[0])
    interactive = cases[0].interactive
    calls = [(case.tool, place.args(case)) for case in cases]
    script = Script(calls, at_once=interactive)
    look = _interactive if interactive else _headless
    with ModelServer(script) as model:
        return tuple(look(place, script, model.url, len(cases)))


# --- headless ------------------------------------------------------------------------------------


def _headless(place: Place, script: Script, url: str, calls: int) -> Iterator[Seen]:
    words = [*place.words(), "--output-format=stream-json", f"--prompt={PROMPT}"]
    folder = place.cli.folder
    with (folder / "stdout").open("wb") as out, _started(words, place, url, stdout=out) as process:
        code = process.wait()
    events = [json.loads(line) for line in _lines(folder / "stdout") if line.startswith("{")]
    used = [event["tool_id"] for event in events if event["type"] == "tool_use"]
    results = {event["tool_id"]: event for event in events if event["type"] == "tool_result"}
    if not script.offered:
        said = " ".join(_lines(folder / "stderr"))
        yield from [Seen(outcome="cli_error", offered=None, message=f"exit {code}: {said}")] * calls
        return
    if len(used) != calls or set(used) - set(results):
        raise Lost(f"{len(used)} of {calls} calls, exit {code}: {_tail(folder)}")
    for tool_id, offered in zip(used, script.offered, strict=True):
        yield _of_result(results[tool_id], offered)


def _lines(path: Path) -> list[str]:
    """Lines as the CLI ends them; other separators stand raw in its JSON."""
    return path.read_text("utf-8", "replace").split("\n")


def _tail(folder: Path) -> str:
    return " ".join(_lines(folder / "stderr")[-5:])


def _of_result(result: dict[str, Any], offered: bool) -> Seen:
    error = result.get("error") or {}
    kind, message = error.get("type"), error.get("message")
    outcome = _REFUSALS.get(str(kind), "allowed")
    if kind == "unhandled_exception" and "requires user confirmation" in str(message):
        outcome = "needs_confirmation"
    return Seen(outcome=outcome, offered=offered, error=kind, message=message)


@contextmanager
def _started(
    words: list[str], place: Place, url: str, *, stdout: IO[bytes] | int
) -> Iterator[subprocess.Popen[bytes]]:
    """The CLI; its whole group is ended at the end, or when it takes too long."""
    with (place.cli.folder / "stderr").open("wb") as err:
        process = subprocess.Popen(
            words,
            cwd=place.cli.project,
            env=place.environment(url),
            stdin=subprocess.PIPE if stdout == subprocess.PIPE else subprocess.DEVNULL,
            stdout=stdout,
            stderr=err,
            start_new_session=True,
        )
    watch = threading.Timer(PATIENCE, _end, (process,))
    watch.start()
    try:
        yield process
    finally:
        watch.cancel()
        _end(process)
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with suppress(BrokenPipeError):
                    pipe.close()


def _end(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


# --- ACP -----------------------------------------------------------------------------------------


def _interactive(place: Place, script: Script, url: str, calls: int) -> Iterator[Seen]:
    with _started([*place.words(), "--acp"], place, url, stdout=subprocess.PIPE) as process:
        client = _Client(process)
        try:
            client.ask("initialize", protocolVersion=1, clientCapabilities={})
            session = client.ask("session/new", cwd=str(place.cli.project), mcpServers=[])
            prompt = [{"type": "text", "text": PROMPT}]
            client.ask("session/prompt", sessionId=session["sessionId"], prompt=prompt)
        except Lost as lost:
            if script.offered:
                raise
            said = f"{lost} {_tail(place.cli.folder)}"
            yield from [Seen(outcome="cli_error", offered=None, message=said)] * calls
            return
    seen = [_of_told(*each) for each in zip(script.told, script.offered, strict=True)]
    asked = sum(each.outcome == "ask_user" for each in seen)
    if len(seen) != calls or asked != client.refused:
        raise Lost(f"{len(seen)} of {calls} calls, {client.refused} questions for {asked}")
    yield from seen


def _of_told(told: Any, offered: bool) -> Seen:
    message = told.get("error") if isinstance(told, dict) else None
    words = str(message)
    outcome = next((outcome for sign, outcome in _TOLD if sign in words), "allowed")
    return Seen(outcome=outcome, offered=offered, message=message)


class _Client:
    """The client's side of ACP: one question at a time; requests for permission get a no."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._in, self._out = process.stdin, process.stdout
        self.refused = 0
        self._number = 0

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """The result of one request."""
        self._number += 1
        self._send(id=self._number, method=method, params=params)
        for line in self._out:
            if not line.startswith(b"{"):
                continue
            message = json.loads(line)
            if message.get("method") == "session/request_permission":
                self.refused += 1
                no = {"outcome": {"outcome": "selected", "optionId": "cancel"}}
                self._send(id=message["id"], result=no)
            elif message.get("id") == self._number and "method" not in message:
                if "error" in message:
                    raise Lost(f"{method}: {message['error']}")
                result: dict[str, Any] = message["result"]
                return result
        raise Lost(f"{method}: no answer")

    def _send(self, **message: Any) -> None:
        self._in.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self._in.flush()
