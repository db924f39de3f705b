"""Whatever stands in a file: properties of reading and replaying."""

from __future__ import annotations

from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gemtui.errors import NotASession
from gemtui.sessions.read.conversation import transcript_of, unified_of
from gemtui.sessions.read.session_log import SessionLog
from gemtui.transcript.model import Message, Outline, ToolCall, Transcript
from tests.deep import some_of
from tests.sessions.logs import (
    at,
    call,
    context,
    gemini,
    header,
    lines,
    reply,
    restore,
    user,
    write,
)

LOG = lines(
    [
        header(),
        restore(context()),
        user("u", "one"),
        {"$set": {"lastUpdated": at(1)}},
        gemini("g", "text\u2028with é", toolCalls=[call("c")]),
        reply("r", "c"),
        {"nonsense": True},
        user("v", "two"),
        gemini("h", "gone"),
        {"$rewindTo": "v"},
        restore(context(), user("u", "one"), {"id": "g", "type": "gemini", "content": []}),
        user("w", "three"),
        header(startTime=at(30)),
    ]
)


@settings(max_examples=some_of(60), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cuts=st.lists(st.integers(1, len(LOG) - 1), max_size=6))
def test_reading_in_steps_gives_what_reading_at_once_gives(tmp_path: Path, cuts: list[int]) -> None:
    path = tmp_path / "session-step.jsonl"
    path.write_bytes(b"")
    log = SessionLog(path)
    before: dict[int, tuple[Outline, Message]] = {}
    done = 0
    for cut in [*sorted(set(cuts)), len(LOG)]:
        with path.open("ab") as file:
            file.write(LOG[done:cut])
        done = cut
        try:
            log.refresh()
        except NotASession:
            continue
        with SessionLog(path) as fresh:
            fresh.refresh()
            assert state(log) == state(fresh)
        transcript = transcript_of(log, dropped=True)
        now = {
            id(o): (o, message) for o, message in zip(transcript.outlines, transcript, strict=True)
        }
        assert all(before[key][1] == now[key][1] for key in now.keys() & before.keys())
        before = now
    path.unlink()


def state(log: SessionLog) -> object:
    messages = list(transcript_of(log, dropped=True))
    return messages, log.metadata, log.problems, log.torn, log.size


@settings(max_examples=some_of(150), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.binary(max_size=400), cut=st.integers(0, len(LOG)), name=st.sampled_from("ab"))
def test_any_bytes_give_a_transcript_or_a_named_error(
    tmp_path: Path, data: bytes, cut: int, name: str
) -> None:
    path = tmp_path / f"session-{name}.{'json' if name == 'a' else 'jsonl'}"
    path.write_bytes(LOG[:cut] + data)
    with SessionLog(path) as log:
        try:
            log.refresh()
        except NotASession as error:
            assert_names(error, path)
        else:
            assert_whole(transcript_of(log, dropped=True))


def assert_names(error: NotASession, path: Path) -> None:
    assert str(path) in str(error)


def assert_whole(transcript: Transcript) -> None:
    """Outlines tell the truth about their messages, and no id comes twice."""
    messages = list(transcript)
    calls = [[b for b in m.blocks if isinstance(b, ToolCall)] for m in messages]
    assert len({message.id for message in messages}) == len(messages)
    assert [m.id for m in messages] == [o.id for o in transcript.outlines]
    assert [len(found) for found in calls] == [o.calls for o in transcript.outlines]
    assert [sum(c.status.failed for c in found) for found in calls] == [
        o.failures for o in transcript.outlines
    ]


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**40), 2**40)
    | st.floats(allow_nan=False)
    | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)
IDS = st.sampled_from(["", "a", "b", "c"]) | JSON
TIMES = st.sampled_from([at(1), at(5), at(9)]) | JSON
REPLY = st.fixed_dictionaries({}, optional={"id": IDS, "name": JSON, "response": JSON})
PARTS = st.lists(
    JSON
    | st.fixed_dictionaries({"text": st.text() | JSON})
    | st.fixed_dictionaries({"functionResponse": REPLY | JSON})
    | st.fixed_dictionaries({"functionCall": REPLY | JSON}),
    max_size=3,
)
CALL = st.fixed_dictionaries(
    {},
    optional={
        "id": IDS,
        "name": st.sampled_from(["write_file", "run_shell_command"]) | JSON,
        "args": JSON,
        "status": st.sampled_from(["success", "error", "cancelled"]) | JSON,
        "timestamp": TIMES,
        "result": PARTS | JSON,
        "resultDisplay": JSON,
    },
)
RECORD = st.fixed_dictionaries(
    {
        "id": st.sampled_from("abc") | JSON,
        "type": st.sampled_from(["user", "gemini", "info", "?"]) | JSON,
    },
    optional={
        "content": PARTS | JSON,
        "toolCalls": st.lists(CALL | JSON, max_size=3) | JSON,
        "thoughts": JSON,
        "tokens": JSON,
        "model": JSON,
        "timestamp": TIMES,
        "displayContent": JSON,
    },
)
LINE = st.one_of(
    RECORD,
    JSON,
    st.fixed_dictionaries({"$rewindTo": st.sampled_from("abc") | JSON}),
    st.lists(RECORD | JSON, max_size=3).map(lambda records: {"$set": {"messages": records}}),
)


@settings(max_examples=some_of(150), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(records=st.lists(LINE, max_size=8))
def test_any_records_are_replayed_without_an_error(tmp_path: Path, records: list[object]) -> None:
    path = write(tmp_path / "session-any.jsonl", [header(), *records])
    with SessionLog(path) as log:
        log.refresh()
        messages = list(transcript_of(log, dropped=True))
        assert len({message.id for message in messages}) == len(messages)
        assert all(
            message.id == o.id
            for message, o in zip(messages, transcript_of(log, dropped=True).outlines, strict=True)
        )
        list(unified_of(log))
