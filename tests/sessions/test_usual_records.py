"""Records of the usual form have the same facts, however they are found."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import orjson
import pytest

from gemtui.jsonin import loads
from gemtui.sessions.read.replay import Replay, facts_of
from gemtui.sessions.read.usual_records import feed_usual, usual_facts
from gemtui.transcript.seal import NOTICE
from tests.sessions.logs import call, gemini, reply, restore, user

DIFF = {"fileDiff": "@@", "filePath": "/home/me/a.py"}
WRITE: dict[str, Any] = {"name": "write_file", "args": {"file_path": "a.py"}, "resultDisplay": DIFF}
REFUSED = "Command injection detected: command substitution syntax"
FAILED = "Output: no\nExit Code: 3"
WRAPPED = f"<untrusted_context>\n{FAILED}\n</untrusted_context>"


def shell(output: str = FAILED, **values: Any) -> dict[str, Any]:
    """A command, and what the model received of it."""
    response = {"id": "c", "name": "run_shell_command", "response": {"output": output}}
    command: dict[str, Any] = {"name": "run_shell_command", "args": {"command": "ls"}}
    return call("c", **{**command, "result": [{"functionResponse": response}], **values})


SEALED = {"command": "ls", "dir_path": f"gemtui-{'0' * 32}/.."}
RECORDS = {
    "prompt": user("u", "one\ntwo"),
    "answer": gemini("g", "text"),
    "thoughts": gemini("g", "", thoughts=[{"subject": "s", "description": "d"}]),
    "write": gemini("g", "", toolCalls=[call("c", **WRITE)]),
    "command": gemini("g", "", toolCalls=[shell()]),
    "command that prints a code": gemini("g", "", toolCalls=[shell(resultDisplay=FAILED[8:])]),
    "refused command": gemini("g", "", toolCalls=[shell(REFUSED)]),
    "approved command": gemini("g", "", toolCalls=[shell(f"{FAILED}\n{NOTICE}", args=SEALED)]),
    "reply": reply("r", "c"),
    "reply of a command": user("r", "") | {"content": shell(WRAPPED)["result"]},
}
ODD = (
    *("null", "true", "0", "1.0", "-1", "1e400", "9" * 25, "[]", "{}", "[{}]", "[null]", '["s"]'),
    *('""', '" "', '"/help"', '"\\ud800"', '"\udcff"', '"success"', '"error"', '"user"', '"info"'),
    *('"run_shell_command"', '"2026-11-20"', '{"error": "no"}', '{"output": 5}', '{"input": 1}'),
    *('{"text": "t"}', '{"functionResponse": {"response": {}}}', '"<session_context>x"'),
    '"one\\n--- Content from referenced files ---\\n--- End of content ---"',
    "\"System: Potential loop detected. Details: . Please take a step back and confirm you're "
    'making forward progress. If not, take a step back"',
)
ADDED = (
    *("$rewindTo", "displayContent", "functionCall", "inlineData", "thought", "parts", "error"),
    *("path", "paths", "resultDisplay", "text", "toolCalls", "tokens"),
)


def with_a_change(value: Any) -> Iterator[str]:
    """A value as JSON, each time with another odd value in one place."""
    yield from ODD
    if isinstance(value, Mapping):
        fields = {name: f"{written(name)}:{written(value[name])}" for name in value}
        for key in (*value, *ADDED):
            rest = [text for name, text in fields.items() if name != key]
            yield an_object(*rest)
            for odd in with_a_change(value[key]) if key in value else ODD[::3]:
                yield an_object(*rest, f"{written(key)}:{odd}")
        for key in value:
            yield from (an_object(f"{written(key)}:{odd}", *fields.values()) for odd in ODD)
    elif isinstance(value, list):
        items = [written(item) for item in value]
        yield from (f"[{','.join([*items, odd])}]" for odd in ODD)
        for index, item in enumerate(value):
            for odd in with_a_change(item):
                yield f"[{','.join([*items[:index], odd, *items[index + 1 :]])}]"


def an_object(*fields: str) -> str:
    return f"{{{','.join(fields)}}}"


def written(value: object) -> str:
    return orjson.dumps(value).decode()


@pytest.mark.parametrize("name", RECORDS)
def test_a_record_with_one_odd_value_has_the_facts_that_a_record_of_any_form_has(name: str) -> None:
    assert usual_facts(orjson.dumps(RECORDS[name]), 1) is not None
    for text in with_a_change(RECORDS[name]):
        line = text.encode(errors="surrogateescape")
        facts = usual_facts(line, len(line))
        if facts is not None:
            record = loads(line)
            assert facts == facts_of(record, len(line)), line
            assert isinstance(record["id"], str), line
            assert not record.get("$rewindTo"), line


LISTS = {
    "an update": {"$set": {"lastUpdated": "2026-11-20"}},
    "a list of messages": restore(RECORDS["prompt"], RECORDS["answer"]),
    "the same message twice": restore(RECORDS["prompt"], RECORDS["prompt"]),
}


@pytest.mark.parametrize("name", LISTS)
def test_a_change_with_one_odd_value_leaves_the_replay_that_a_change_of_any_form_leaves(
    name: str,
) -> None:
    assert feed_usual(Replay(), orjson.dumps(LISTS[name]), 0)
    for text in with_a_change(LISTS[name]):
        line = text.encode(errors="surrogateescape")
        usual, other = a_replay(), a_replay()
        if feed_usual(usual, line, 900):
            assert other.feed(loads(line), 900, len(line)) is None, line
        assert vars(usual) == vars(other), line


def a_replay() -> Replay:
    replay = Replay()
    for record in (RECORDS["prompt"], RECORDS["command"]):
        replay.feed(record, 0, 9)
    return replay
