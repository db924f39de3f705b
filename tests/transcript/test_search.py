from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gemtui.transcript.call_text import omitted_arguments
from gemtui.transcript.model import (
    Attachment,
    Author,
    Block,
    Image,
    Message,
    Notice,
    NoticeLevel,
    Text,
    Thought,
    Transcript,
)
from gemtui.transcript.search import TranscriptHit, block_text, find
from gemtui.transcript.tools import tool_call
from tests.rows import each_row, table
from tests.transcript.raw_calls import raw_call, reply


def transcript(*messages: tuple[Block, ...]) -> Transcript:
    return Transcript.of(
        [
            Message(id=str(number), author=Author.MODEL, blocks=blocks)
            for number, blocks in enumerate(messages)
        ]
    )


SHELL = tool_call(
    raw_call(
        "run_shell_command",
        args={"command": "ls"},
        result=reply(output="Output: needle\nExit Code: 1"),
        resultDisplay="needle",
    )
)
TALK = transcript(
    (Text(text="A Needle here,\nneedle there"), Thought(subject="needle", description="")),
    (Notice(level=NoticeLevel.INFO, text="none"), SHELL),
)


def test_hits_come_in_order_with_spans_of_the_block_text() -> None:
    hits = list(find(TALK, "needle"))
    assert hits == [
        TranscriptHit(0, 0, 2, 8),
        TranscriptHit(0, 0, 15, 21),
        TranscriptHit(0, 1, 0, 6),
        TranscriptHit(1, 1, 3, 9),
    ]
    for hit in hits:
        block = TALK.read(hit.message).blocks[hit.block]
        assert block_text(block)[hit.start : hit.end].lower() == "needle"


@each_row(
    "tool, args, omitted",
    [
        ("Edit", {"file_path": "a", "replace_all": False}, {"replace_all"}),
        ("Edit", {"file_path": "a", "replace_all": True}, set()),
        ("run_shell_command", {"command": "ls", "is_background": False}, {"is_background"}),
        ("mcp__notes__edit", {"replace_all": False}, set()),
    ],
)
def test_a_switch_of_a_built_in_tool_that_is_off_is_not_shown(
    tool: str, args: dict[str, object], omitted: set[str]
) -> None:
    assert omitted_arguments(tool_call(raw_call(tool, args=args))) & set(args) == omitted


@each_row("promise, text, query, hits", table("transcript/hits.json"))
def test_a_query_finds(promise: str, text: str | None, query: str, hits: list[list[int]]) -> None:
    talk = TALK if text is None else transcript((Text(text=text),))
    assert list(find(talk, query)) == [TranscriptHit(*hit) for hit in hits], promise


def test_a_cancelled_search_reads_no_further_message() -> None:
    read: list[int] = []

    def reading(index: int) -> Message:
        read.append(index)
        return TALK.read(index)

    watched = Transcript(outlines=TALK.outlines, read=reading)
    hits = find(watched, "needle", cancelled=lambda: bool(read))
    assert [hit.message for hit in hits] == [0, 0, 0]
    assert read == [0]


@given(st.text(), st.text())
def test_every_hit_is_an_occurrence(text: str, query: str) -> None:
    for hit in find(transcript((Text(text=text),)), query):
        found = " ".join(text[hit.start : hit.end].split()).casefold()
        assert len(found) >= len(query.split()[0])


@each_row(
    "block, text",
    [
        (Attachment(name="a.py", text="code"), "a.py\ncode"),
        (Attachment(name="a" * 500, text="code"), f"{'a' * 400}\ncode"),
        (Thought(subject="s", description="d"), "s\nd"),
        (
            Image(mime_type="image/png", name="a.png", uri="gs://b/a.png"),
            "a.png\nimage/png\ngs://b/a.png",
        ),
        (Image(mime_type="image/png"), "image/png"),
        (SHELL, "ls\nneedle"),
    ],
)
def test_block_text_is_what_a_screen_shows(block: Block, text: str) -> None:
    assert block_text(block) == text


def test_what_the_model_got_is_found_where_the_person_saw_one_line() -> None:
    glob = tool_call(
        raw_call(
            "glob",
            args={"pattern": "*"},
            result=reply(output="Found 2:\n/a\n/b"),
            resultDisplay="Found 2 matching file(s)",
        )
    )
    assert block_text(glob) == "*\nFound 2:\n/a\n/b\nFound 2 matching file(s)"


def test_an_error_is_found_once() -> None:
    failed = tool_call(
        raw_call(status="error", result=reply(error="No such file: a"), resultDisplay="No such")
    )
    assert block_text(failed) == "No such file: a"
