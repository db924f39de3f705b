"""Reading costs in proportion to the bytes of a file; what costs more is named."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import orjson
import pytest

from gemtui.errors import NotASession
from gemtui.sessions.catalog.index import Index
from gemtui.sessions.read import legacy_json, session_log
from gemtui.sessions.read.conversation import calls_of, transcript_of
from gemtui.sessions.read.session_log import SessionLog
from gemtui.sessions.store.store import ChatFile, SessionKind
from tests.sessions import logs
from tests.sessions.stores import append, hashed, load, only, read, session, set_time, talk, uuid

TIMES = 8
MOST = 24
"""Eight times as much may cost so many times as much: a quadratic step would cost 64 times."""


def one(home: Path, *messages: object) -> None:
    session(home, uuid(1), [logs.header(uuid(1)), logs.context(), *messages])


def deep_path(home: Path, count: int) -> None:
    path = "/" + "/".join(["a"] * count) + "/f.py"
    call = logs.call("c", name="write_file", args={"file_path": path, "content": "x"})
    head = [logs.header(uuid(1)), logs.user("u", "hi"), logs.gemini("g", "x", toolCalls=[call])]
    session(home, uuid(1), head, key=hashed("/nowhere"))


def contexts(home: Path, count: int) -> None:
    one(home, logs.user("u", "<session_context></session_context>" * count + "Hello"))


def rewinds(home: Path, count: int) -> None:
    kept = [logs.user(f"u{number}", "x") for number in range(count)]
    one(home, *kept, *({"$rewindTo": each["id"]} for each in reversed(kept)))


def rewinds_of_the_last(home: Path, count: int) -> None:
    def turn(number: int) -> Iterable[object]:
        return (
            logs.user(f"u{number}", "x"),
            logs.user(f"v{number}", "x"),
            {"$rewindTo": f"v{number}"},
        )

    one(home, *(line for number in range(count) for line in turn(number)))


def calls_in_one_message(home: Path, count: int) -> None:
    parts = [{"functionCall": {"id": f"p{i}", "name": "x", "args": {}}} for i in range(count)]
    one(
        home,
        logs.gemini("g", "", content=parts, toolCalls=[logs.call(f"c{i}") for i in range(count)]),
    )


def calls_told_twice(home: Path, count: int) -> None:
    """Parts whose calls and replies stand in other lines."""
    parts = [{"functionCall": {"id": f"c{i}", "name": "x", "args": {}}} for i in range(count)]
    replies = [{"functionResponse": {"id": f"d{i}", "response": {}}} for i in range(count)]
    others = [{"functionCall": {"id": f"d{i}", "name": "x", "args": {}}} for i in range(count)]
    one(
        home,
        logs.gemini("g", "", toolCalls=[logs.call(f"c{i}") for i in range(count)]),
        logs.gemini("h", "", content=parts),
        logs.gemini("k", "", content=others),
        {"id": "r", "type": "user", "content": replies},
    )


def calls_of_a_checkpoint(home: Path, count: int) -> None:
    asked = [{"functionCall": {"name": f"n{i}", "args": {}}} for i in range(count)]
    told = [{"functionResponse": {"name": f"n{i}", "response": {}}} for i in reversed(range(count))]
    history = [{"role": "model", "parts": asked}, {"role": "user", "parts": told}]
    path = home / "tmp" / "proj" / "checkpoint-mine.json"
    path.parent.mkdir(parents=True)
    path.write_bytes(orjson.dumps({"history": history}))


def links(home: Path, count: int) -> None:
    chats = session(home, uuid(1)).parent
    for number in range(count):
        (chats / f"session-{number}.jsonl").symlink_to("x")


def one_id_in_many_projects(home: Path, count: int) -> None:
    for number in range(count):
        head = logs.header(uuid(1), projectHash=f"{number:064x}")
        session(home, uuid(1), [head, logs.user("u", "Hello")], key=f"p{number}")


@pytest.fixture
def uncollected() -> Iterator[None]:
    """What the garbage collector costs depends on all that other tests have left behind."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def cost(home: Path) -> float:
    """Seconds of this thread's work for the list, and for every body of every session."""
    began = time.thread_time()
    for each in read(home).sessions[:10]:
        with SessionLog(each.path) as log:
            log.refresh()
            for message in transcript_of(log, dropped=True):
                assert message.id
            for call in calls_of(log):
                assert call is not None
    return time.thread_time() - began


@pytest.mark.usefixtures("uncollected")
@pytest.mark.parametrize(
    ("make", "count"),
    [
        (deep_path, 1000),
        (contexts, 1000),
        (rewinds, 1000),
        (rewinds_of_the_last, 1000),
        (calls_in_one_message, 800),
        (calls_told_twice, 100),
        (calls_of_a_checkpoint, 400),
        (links, 1000),
        (one_id_in_many_projects, 100),
    ],
)
def test_costs_grow_with_the_bytes(
    make: Callable[[Path, int], None], count: int, tmp_path: Path
) -> None:
    make(tmp_path / "few", count)
    make(tmp_path / "many", TIMES * count)
    few = min(cost(tmp_path / "few") for _ in range(3))
    assert any(cost(tmp_path / "many") < MOST * few for _ in range(3))


# --- what costs more is set aside and named ------------------------------------------------------


@pytest.mark.parametrize("head", [b'{"sessionId": "1", "messages": [\n', b'{"messages":['])
def test_an_object_of_too_many_values_is_named_and_the_rest_is_read(
    head: bytes, tmp_path: Path
) -> None:
    good = session(tmp_path, uuid(2))
    path = good.with_name("session-2026-11-20T23-04-00000001.json")
    path.write_bytes(head + b"{}," * (legacy_json.VALUES // 2 + 1) + b"{}]}")
    found = read(tmp_path)
    assert only(found).path == good
    (problem,) = found.unreadable
    assert problem.path == path
    assert f"JSON values, but gemtui reads at most {legacy_json.VALUES:,}" in problem.what
    assert "resume it once in Gemini CLI" in problem.what


def test_commas_in_texts_are_no_values(tmp_path: Path) -> None:
    text = "[{,\\" * (legacy_json.VALUES // 3)
    path = tmp_path / "session-2026-11-20T23-04-00000001.json"
    path.write_bytes(orjson.dumps(logs.legacy(logs.user("u", text))))
    with SessionLog(path) as log:
        log.refresh()
        assert logs.texts(log) == [text]


def test_a_line_of_too_many_values_is_left_out_and_named(tmp_path: Path) -> None:
    path = session(tmp_path, uuid(1))
    lines = path.read_bytes().count(b"\n")
    with path.open("ab") as file:
        file.write(b'{"id": "x", "content": [' + b"[]," * (legacy_json.VALUES // 2 + 1) + b"[]]}\n")
    append(path, logs.user("n", "New"))
    with SessionLog(path) as log:
        log.refresh()
        assert [(each.line, each.what) for each in log.problems] == [
            (lines + 1, f"more than {legacy_json.VALUES:,} JSON values, so it was left out")
        ]
        assert logs.texts(log)[-1] == "New"
    path.write_bytes(path.read_bytes().rsplit(b"\n", 2)[0])
    with SessionLog(path) as log:
        log.refresh()
        assert len(log.problems) == 1


def test_a_log_of_too_many_messages_is_named_and_the_rest_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_log, "HELD_LIMIT", 100)
    good = session(tmp_path, uuid(2), talk(uuid(2), turns=40))
    long = session(tmp_path, uuid(1), talk(uuid(1), turns=60))
    again = [line for _ in range(60) for line in talk(uuid(3))]
    rewritten = session(tmp_path, uuid(3), again)
    found = read(tmp_path)
    assert {each.path for each in found.sessions} == {good, rewritten}
    (problem,) = found.unreadable
    assert problem.path == long
    assert "gemtui reads at most 100: split it at line breaks" in problem.what


@pytest.mark.parametrize("depth", [200, 300, 900, 990, 1010, 1020, 1030, 100_000])
@pytest.mark.parametrize(("begin", "end"), [(b"[", b"]"), (b'{"a":', b"}")])
def test_deep_values_stop_nothing(depth: int, begin: bytes, end: bytes, tmp_path: Path) -> None:
    value = begin * depth + (b"1" if end == b"}" else b"") + end * depth
    for number, field in enumerate(
        ("type", "content", "toolCalls", "displayContent", "tokens", "timestamp", "model", "x")
    ):
        path = session(tmp_path, uuid(number))
        with path.open("ab") as file:
            file.write(b'{"id":"x","type":"gemini","%s":%s}\n' % (field.encode(), value))
            file.write(b'{"id":"y","%s":%s}\n' % (field.encode(), value))
            file.write(b'{"$set":{"%s":%s}}\n' % (field.encode(), value))
            file.write(b'{"$set":{"messages":[{"id":"z","%s":%s}]}}\n' % (field.encode(), value))
        legacy = path.with_suffix(".json")
        legacy.write_bytes(
            b'{"sessionId":"l%d","messages":[\n{"id":"x","%s":%s}]}'
            % (number, field.encode(), value)
        )
        with SessionLog(legacy) as log:
            try:
                log.refresh()
            except NotASession:
                continue
            legacy.write_bytes(legacy.read_bytes() + b" ")
            log.refresh()
    cost(tmp_path)
    assert len(read(tmp_path).sessions) >= 8


def test_huge_counters_are_unknown_and_sums_can_be_written(tmp_path: Path) -> None:
    most = 2**64 - 1
    tokens = {"input": most, "output": 5, "total": -(2**63)}
    one(tmp_path, *(logs.gemini(f"g{number}", "x", tokens=tokens) for number in range(3)))
    found = only(read(tmp_path))
    assert (found.tokens.input, found.tokens.output, found.tokens.total) == (None, None, None)
    orjson.dumps(found.to_dict())


def test_times_beyond_the_calendar(tmp_path: Path) -> None:
    """File systems, and what people put into records, know more years than calendars do."""

    def file(nanoseconds: int) -> ChatFile:
        return ChatFile("/x", "proj", SessionKind.MAIN, "", 1, nanoseconds, 1)

    assert file(2**80).modified.year == 9999
    assert file(-(2**80)).modified.year == 1
    home, cache = tmp_path / "home", tmp_path / "cache"
    times = ("9999-12-31T23:59:59.999Z", "0001-01-01T00:00:00Z", "+275760-09-13T00:00:00.000Z")
    for number, when in enumerate(times):
        head = logs.header(uuid(number), startTime=when, lastUpdated=when)
        user = logs.user("u", "Hello") | {"timestamp": when}
        set_time(session(home, uuid(number), [head, user]), 2**33 + number)
    index = Index(home, cache=cache)
    first = load(index)
    index.close()
    assert (len(first.sessions), first.cache) == (3, None)
    assert all(each.when.astimezone().isoformat() for each in first.sessions)
    again = Index(home, cache=cache)
    assert load(again).sessions == first.sessions
    again.close()
