"""The stand-in for the Gemini API says what the script says, in its order."""

from __future__ import annotations

import http.client
import json
import threading
import urllib.error
import urllib.request
from typing import Any

import pytest

from tests.model_server import (
    Answer,
    Chunk,
    Failure,
    Gate,
    ModelServer,
    answer,
    call,
    text,
    thought,
    usage,
)
from tests.patience import PATIENCE

STREAM = "streamGenerateContent?alt=sse"


def ask(model: ModelServer, method: str = STREAM) -> bytes:
    body = {"contents": [], "tools": [{"functionDeclarations": [{"name": "t"}]}]}
    url = f"{model.url}/v1beta/models/some-model:{method}"
    request = urllib.request.Request(url, data=json.dumps(body).encode())
    with urllib.request.urlopen(request, timeout=PATIENCE) as response:
        data: bytes = response.read()
    return data


def chunks(data: bytes) -> list[dict[str, Any]]:
    return [json.loads(event.removeprefix(b"data: ")) for event in data.split(b"\r\n\r\n") if event]


def test_turns_come_in_order_and_requests_are_kept() -> None:
    turns = [answer(thought("Look"), call("read_file", file_path="a")), answer(text("b"))]
    with ModelServer(turns) as model:
        first, second = chunks(ask(model)), chunks(ask(model))
    parts = [part for chunk in first for part in chunk["candidates"][0]["content"]["parts"]]
    assert parts[0]["thought"] is True
    assert parts[1]["functionCall"] == {"name": "read_file", "args": {"file_path": "a"}}
    assert second[-1]["candidates"][0]["finishReason"] == "STOP"
    assert second[-1]["usageMetadata"] == usage()
    assert [(each.model, each.tools) for each in model.asked] == [("some-model", ("t",))] * 2


def test_a_failure_and_the_end_of_the_script_are_api_errors() -> None:
    with ModelServer([Failure(status=403, message="no")]) as model:
        for status in (403, 400):
            with pytest.raises(urllib.error.HTTPError) as error:
                ask(model)
            with error.value:
                assert error.value.code == status
                assert json.load(error.value)["error"]["code"] == status


def test_side_jobs_do_not_use_up_the_script() -> None:
    aside = answer(text("a "), text("title"))
    with ModelServer([answer(text("one"))], aside=lambda request: aside) as model:
        title = json.loads(ask(model, "generateContent"))
        assert json.loads(ask(model, "countTokens"))["totalTokens"] > 0
        assert b"one" in ask(model)
    assert [part["text"] for part in title["candidates"][0]["content"]["parts"]] == ["a ", "title"]


def test_a_gate_holds_the_answer_back() -> None:
    gate = Gate()
    got: list[bytes] = []
    with ModelServer([answer(text("late"), after=gate)]) as model:
        client = threading.Thread(target=lambda: got.append(ask(model)))
        client.start()
        assert gate.reached.wait(PATIENCE)
        assert not got
        gate.open()
        client.join(PATIENCE)
    assert b"late" in got[0]


def test_a_cut_stream_breaks_and_raw_bytes_go_out_as_they_are() -> None:
    steps = (Chunk(parts=(text("half"),)), b"data: {not json")
    broken = pytest.raises(http.client.IncompleteRead)
    with ModelServer([Answer(steps=steps, cut=True)]) as model, broken as error:
        ask(model)
    assert b'"half"' in error.value.partial
    assert error.value.partial.endswith(b"data: {not json")
