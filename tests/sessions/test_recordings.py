"""What gemtui says of every recorded file; the facts were written down after reading the files."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from gemtui.sessions.catalog.summary import Flag, Summary
from gemtui.sessions.read.conversation import dropped_counts, transcript_of
from gemtui.sessions.read.session_log import SessionLog
from gemtui.transcript.model import ToolCall
from gemtui.transcript.usage import Usage
from tests.rows import each_row, table
from tests.sessions import logs
from tests.sessions.logs import texts
from tests.sessions.stores import DATA, MAIN, read, session, uuid

TABLES = table("session_files/recordings.json")

# store, file (the folder that is named by a hash is called hash) | prompts messages tool_calls
# tool_failures tokens.total | title_source | title | flags
FACTS = """
acp proj/22-55-00000000.jsonl | 0 0 0 0 - | none | (empty) | empty
acp proj/22-55-53aca88e.jsonl | 0 0 0 0 - | prompt | Change hello to bye | buried
acp proj/22-55-aaf0b34b.jsonl | 0 0 0 0 - | none | (empty) | empty
0.4.1 hash/23-17-382ff8ac.json | 1 3 0 0 2759 | prompt | Change the greeting to bye |
0.5.5 hash/22-48-14b2e712.json | 1 3 0 0 2759 | prompt | Change the greeting to bye |
0.8.2 hash/22-48-e7ad01bd.json | 1 3 0 0 2759 | prompt | Change the greeting to bye |
0.11.3 hash/22-48-43d15b2d.json | 1 3 4 0 2759 | prompt | Change the greeting to bye |
0.12.0 hash/22-48-e2206222.json | 1 3 4 0 2759 | prompt | Change the greeting to bye |
0.16.0 hash/22-48-b4120c91.json | 1 3 4 0 2759 | prompt | Change the greeting to bye |
0.20.2 hash/22-49-0908b2ea.json | 1 3 4 0 2759 | prompt | Change the greeting to bye |
0.25.0 hash/22-49-2d48e3c3.json | 1 3 4 0 2759 | prompt | Change the greeting to bye |
0.28.2 hash/23-17-d07f7723.json | 1 3 4 0 2759 | prompt | Change the greeting to bye |
0.29.0 greeter/23-17-d17ee0c3.json | 1 3 4 0 2759 | prompt | Change the greeting to bye |
0.30.1 greeter/22-49-1273e7ee.json | 1 3 4 0 2759 | prompt | Change the greeting to bye |
0.35.3 greeter/22-49-799514a7.json | 1 5 4 0 5511 | prompt | Change the greeting to bye |
0.36.0 greeter/22-49-2d1df674.json | 1 5 4 0 5511 | prompt | Change the greeting to bye |
0.38.2 greeter/22-49-de6a8cc5.json | 1 5 4 0 5511 | prompt | Change the greeting to bye |
0.39.1 greeter/22-49-2cb1c5a6.jsonl | 1 5 4 0 5511 | prompt | Change the greeting to bye |
0.40.1 greeter/22-49-bd287e24.jsonl | 1 5 4 0 5511 | prompt | Change the greeting to bye |
0.45.2 greeter/22-49-0832fc97.jsonl | 1 5 4 0 5511 | prompt | Change the greeting to bye |
0.51.0 greeter/22-49-dba0d677.jsonl | 1 5 4 0 5511 | prompt | Change the greeting to bye |
0.55.1 greeter/22-49-08bbf6c5.jsonl | 1 5 4 0 5511 | prompt | Change the greeting to bye |
interactive-cancelled tools/23-21-4ba95511.jsonl | 1 3 1 0 2040 | prompt | show colours | buried
mcp proj/23-21-f6ef8ad7.jsonl | 1 3 1 0 2040 | prompt | weather? |
todos-0.25.0 hash/23-21-66b06c92.json | 1 3 1 0 2040 | prompt | plan it |
main greeter-1/23-04-c3ab9c4c.jsonl | 1 2 0 0 7009 | prompt | A second directory that is … |
main greeter/23-04-0a9a25b3.jsonl | 1 4 3 1 23134 | prompt | Print the numbers to 30000, … |
main greeter/23-04-2096d467.jsonl | 1 4 3 1 21341 | prompt | Plan a big refactoring |
main greeter/23-04-31c3d867.jsonl | 1 2 0 0 7109 | prompt | What is in @dot.png and @hello.py ? |
main greeter/23-04-379b10d4.jsonl | 1 3 1 0 14338 | prompt | Use the investigator to find … |
main greeter/379b10d4/e28bd434.jsonl | 1 3 2 0 1130 | prompt | Your task is to do a deep … |
main greeter/23-04-6cafb191.jsonl | 0 0 0 0 - | failed_prompt | This one fails | failed_prompt
main greeter/23-04-7024884b.jsonl | 1 6 8 2 37245 | prompt | Change the greeting from hello … |
main greeter/23-04-71ada263.jsonl | 0 0 0 0 - | failed_prompt | This one is empty | failed_prompt
main greeter/23-05-b3bf9d1b.jsonl | 3 7 1 0 1124 | prompt | first question |
main greeter/23-04-c0ffee00.jsonl | 1 5 8 2 29620 | prompt | Change the greeting from … | torn
main greeter/checkpoint-mytag.json | 3 7 1 0 - | name | mytag |
main hash/23-04-0b1943c7.json | 1 3 0 0 4400 | prompt | What does Stock.add do? | duplicate
main hash/23-04-27523a93.json | 1 3 4 0 4400 | prompt | Add a remove method to Stock | duplicate
main hash/23-04-9babadd1.json | 1 3 4 0 4400 | prompt | Add a docstring to Stock | duplicate
main hash/23-04-b1bd8dd0.json | 1 3 4 0 4400 | prompt | Type-annotate Stock.add | duplicate
main hash/23-04-eca88b17.json | 1 3 0 0 4400 | prompt | Explain the tests | duplicate
main inventory/23-04-0b1943c7.json | 1 3 0 0 4400 | prompt | What does Stock.add do? |
main inventory/23-04-17563cb9.json | 1 4 3 0 8194 | prompt | Summarise the inventory package |
main inventory/23-04-27523a93.json | 1 3 4 0 4400 | prompt | Add a remove method to Stock |
main inventory/23-04-2cc718f7.jsonl | 1 3 2 0 5474 | prompt | Bump the version |
main inventory/23-04-30b43f9b.jsonl | 1 3 2 0 5474 | prompt | Check for typos in README |
main inventory/23-04-860c2194.json | 1 4 3 0 8194 | prompt | Run the tests |
main inventory/23-04-9babadd1.json | 1 3 4 0 4400 | prompt | Add a docstring to Stock |
main inventory/23-04-b1bd8dd0.json | 1 3 4 0 4400 | prompt | Type-annotate Stock.add |
main inventory/23-04-b954db01.jsonl | 1 3 2 0 5474 | prompt | Rename add to put |
main inventory/23-04-ec782e47.json | 1 3 3 0 5474 | prompt | Write a test for remove |
main inventory/23-04-eca88b17.json | 1 3 0 0 4400 | prompt | Explain the tests |
main notes/23-05-63a18d40.json | 1 3 1 0 4123 | prompt | Write a haiku file | duplicate
main notes/23-05-63a18d40.jsonl | 2 5 1 0 11129 | prompt | Write a haiku file |
main notes/23-04-cc1b3512.jsonl | 2 4 0 0 14108 | summary | Collecting a list of fruit |
main notes/23-05-cc1b3512.jsonl | 0 0 0 0 - | none | (empty) | ghost duplicate
main t-project/23-04-142b2ee6.jsonl | 1 2 0 0 7009 | prompt | Übersetze die README — s'il … |
"""


class Fact(NamedTuple):
    numbers: str
    source: str
    title: str
    flags: set[str]


def _facts() -> dict[str, Fact]:
    rows = [line.split("|") for line in FACTS.strip().splitlines()]
    return {
        name.strip(): Fact(numbers.strip(), source.strip(), title.strip(), set(flags.split()))
        for name, numbers, source, title, flags in rows
    }


def _name(path: Path) -> str:
    """A short name for a recorded file, as the table has it."""
    store, _, rest = str(path.relative_to(DATA)).partition("/.gemini/tmp/")
    rest = re.sub(r"^[0-9a-f]{64}", "hash", rest).replace("/chats/", "/")
    rest = re.sub(r"([0-9a-f]{8})-[0-9a-f]{4}-[0-9a-f-]{22}", r"\1", rest)
    return f"{store.rpartition('/')[2]} {rest.replace('session-2026-11-20T', '')}"


def _recorded() -> Iterator[Summary]:
    for home in sorted(DATA.rglob(".gemini")):
        for summary in read(home).sessions:
            yield summary
            yield from summary.copies


@pytest.fixture(scope="module")
def recorded() -> dict[str, Summary]:
    return {_name(summary.path): summary for summary in _recorded()}


def test_every_recorded_file_is_in_the_table(recorded: dict[str, Summary]) -> None:
    names = ("chats/*.json*", "chats/*/*.jsonl", "checkpoint-*.json")
    files = {_name(path) for name in names for path in DATA.rglob(name)}
    assert files == _facts().keys()
    assert recorded.keys() == files


@pytest.mark.parametrize("name", _facts())
def test_facts(name: str, recorded: dict[str, Summary]) -> None:
    summary, fact = recorded[name], _facts()[name]
    total = summary.tokens.total
    counts = (summary.prompts, summary.messages, summary.tool_calls, summary.tool_failures)
    assert " ".join(map(str, (*counts, "-" if total is None else total))) == fact.numbers
    assert summary.title_source == fact.source
    start, cut, _ = fact.title.partition("…")
    assert summary.title.startswith(start) if cut else summary.title == start
    assert summary.flags - {Flag.LIVE} == fact.flags
    assert (summary.problems, summary.partial) == (0, False)


def test_one_session_in_full(recorded: dict[str, Summary]) -> None:
    summary = recorded["main notes/23-05-63a18d40.jsonl"]
    folder = MAIN / "tmp" / "notes" / "chats"
    assert [call.tool for call in summary.calls] == ["write_file"]
    names = ("session-2026-11-20T23-05-63a18d40.jsonl", "session-2026-11-20T23-05-63a18d40.json")
    assert summary.to_dict() | {"flags": []} == TABLES["in full"] | {
        "files": [str(folder / name) for name in names]
    }


def test_projects(recorded: dict[str, Summary]) -> None:
    """A folder named by a hash gets its path from the files written."""
    of_folders = {name.rpartition("/")[0]: summary.project for name, summary in recorded.items()}
    assert of_folders.items() >= TABLES["projects of folders"].items()
    for name, project in TABLES["projects of files"].items():
        assert recorded[name].project == project


def test_the_subagent_stands_below_its_parent(recorded: dict[str, Summary]) -> None:
    agent = recorded["main greeter/379b10d4/e28bd434.jsonl"]
    assert agent.kind == "subagent"
    assert agent.parent == recorded["main greeter/23-04-379b10d4.jsonl"].id
    assert agent.hidden


def test_sums(recorded: dict[str, Summary]) -> None:
    """The six counters add up to the total in every recording."""
    for summary in recorded.values():
        assert summary.tokens.adds_up
    assert recorded["main greeter/checkpoint-mytag.json"].tokens == Usage()


def test_what_a_list_shows() -> None:
    shown = [summary for summary in read(MAIN).sessions if not summary.hidden]
    assert len(shown) == 24
    assert len({summary.id for summary in shown}) == 24
    assert shown == sorted(shown, key=lambda each: each.when, reverse=True)


@each_row("path", sorted(DATA.rglob("chats/**/*.json*")))
def test_dropped_messages_stand_between_the_others_once(path: Path) -> None:
    with SessionLog(path) as log:
        log.refresh()
        kept, both = transcript_of(log), transcript_of(log, dropped=True)
        assert [o for o in both.outlines if o.dropped is None] == list(kept.outlines)
        dropped = Counter(o.dropped for o in both.outlines if o.dropped)
        assert dropped == dropped_counts(log)
        calls = [block.id for m in both for block in m.blocks if isinstance(block, ToolCall)]
        assert len(set(calls)) == len(calls)


@each_row(
    "file, before, after, between",
    [
        ("*b3bf9d1b.jsonl", "Wrote a.txt.", "third question, to be rewound", 1),
        ("*4ba95511.jsonl", "show colours", "write never.txt", None),
    ],
)
def test_what_was_dropped_stands_where_it_stood(
    file: str, before: str, after: str, between: int | None
) -> None:
    """Also what a cancelled request wrote again: it stands before the request."""
    (path,) = DATA.rglob(file)
    with SessionLog(path) as log:
        log.refresh()
        in_order = texts(log, dropped=True)
    steps = in_order.index(after) - in_order.index(before)
    assert steps == between if between else steps > 0


def test_a_session_ended_badly_only_if_failed_calls_are_its_last_word(tmp_path: Path) -> None:
    failed = logs.gemini("g", "", toolCalls=[logs.call("c", status="error")])
    for number, records in enumerate(([failed], [failed, logs.gemini("h", "It is not there.", 5)])):
        session(
            tmp_path, uuid(number), [logs.header(uuid(number)), logs.user("u", "Read it"), *records]
        )
    found = {
        summary.id: (summary.failed_calls, summary.ended_badly)
        for summary in read(tmp_path).sessions
    }
    assert found == {uuid(0): (1, True), uuid(1): (1, False)}
