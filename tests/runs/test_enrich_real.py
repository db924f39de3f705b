"""The stream of a run and the session that the real CLI stores of it say the same."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from datetime import UTC, datetime

import pytest

from gemtui.agent.adapter import UnguardedAdapter
from gemtui.agent.events import AgentEvent, Done, TextDelta, ToolUse
from gemtui.agent.fold import Fold
from gemtui.agent.options import AgentOptions
from gemtui.policy.model.rules import ApprovalMode
from gemtui.runs.enrich import enrich, stored_part
from gemtui.transcript.model import (
    Author,
    Block,
    DiffDisplay,
    Message,
    Text,
    Thought,
    ToolCall,
    ToolStatus,
    Transcript,
)
from gemtui.transcript.writes import WriteStatus, write_of, writing_calls
from tests.model_server import (
    Answer,
    Chunk,
    Failure,
    Gate,
    ModelServer,
    Part,
    Turn,
    answer,
    call,
    text,
    thought,
    usage,
)
from tests.patience import PATIENCE
from tests.real_cli import MODEL, GeminiCli

pytestmark = [
    pytest.mark.usefixtures("remembered_help"),
    pytest.mark.covers("gemtui/agent", "gemtui/transcript"),
]


class Told:
    """One run: what its stream told, and what its session adds."""

    def __init__(self, gemini: GeminiCli, live: Transcript, done: Done) -> None:
        self.gemini, self.live, self.done = gemini, live, done
        assert done.resume_token is not None
        self.id = done.resume_token

    @property
    def full(self) -> Transcript:
        return enrich(self.live, self.gemini.store, self.id)

    @property
    def stored(self) -> tuple[Message, ...]:
        return stored_part(list(self.live), self.gemini.store, self.id)


async def run(
    gemini: GeminiCli,
    turns: Sequence[Turn],
    prompt: str,
    *,
    resume: str | None = None,
    stop_at: type[TextDelta] | type[ToolUse] | None = None,
) -> Told:
    stop = asyncio.Event()
    options = AgentOptions(
        cwd=gemini.project, model=MODEL, approval_mode=ApprovalMode.YOLO, resume=resume, abort=stop
    )
    fold = Fold(prompt, began=datetime.now(UTC), model=MODEL)
    event: AgentEvent | None = None
    with ModelServer(turns) as model:
        adapter = UnguardedAdapter(
            cli=gemini.program, runs=gemini.folder / "runs", environ=gemini.environment(model.url)
        )
        async with asyncio.timeout(PATIENCE):
            async for event in adapter.run(prompt, options):
                fold.add(event)
                if stop_at is not None and isinstance(event.payload, stop_at):
                    stop.set()
    assert event is not None
    assert isinstance(event.payload, Done)
    return Told(gemini, fold.transcript(), event.payload)


def blocks(messages: Transcript | Sequence[Message]) -> list[Block]:
    return [block for message in messages for block in message.blocks]


def calls(messages: Transcript | Sequence[Message]) -> list[ToolCall]:
    return [block for block in blocks(messages) if isinstance(block, ToolCall)]


def texts(messages: Transcript | Sequence[Message]) -> list[tuple[Author, str]]:
    """Who said what; the CLI stores answers trimmed."""
    return [
        (message.author, block.text.strip())
        for message in messages
        for block in message.blocks
        if isinstance(block, Text)
    ]


def writes(told: Told, messages: Transcript | Sequence[Message]) -> list[tuple[object, ...]]:
    files = writing_calls(calls(messages), told.gemini.project)
    found = [write_of(*each) for each in files.items()]
    return [(each.path, each.written, each.letter, each.added, each.removed) for each in found]


def agree(told: Told) -> None:
    live, stored = told.live, told.stored
    assert [(c.id, c.name, c.status) for c in calls(live)] == [
        (c.id, c.name, c.status) for c in calls(stored)
    ]
    assert [dict(c.args) for c in calls(live)] == [dict(c.args) for c in calls(stored)]
    assert texts(live) == texts(stored)
    assert [w[:2] for w in writes(told, live)] == [w[:2] for w in writes(told, stored)]


EDIT = {"file_path": "hello.py", "instruction": "x", "new_string": "bye"}
WORK: list[Turn] = [
    answer(
        thought("Looking", "I read."),
        text("I'll look."),
        call("read_file", file_path="hello.py"),
        call("read_file", file_path="missing.py"),
        tokens=usage(1000, 20, 7, cached=600),
    ),
    answer(
        call("write_file", file_path="new.txt", content="one\ntwo\n"),
        call("replace", old_string="hello", **EDIT),
        call("replace", old_string="not there", **EDIT),
    ),
    answer(call("frobnicate"), call("run_shell_command", command="echo hi; exit 3")),
    answer(text("All "), text("done."), tokens=usage(1300, 10)),
]


async def test_stream_and_session_agree_and_the_session_adds(gemini: GeminiCli) -> None:
    (gemini.project / "hello.py").write_text("print('hello')\n")
    told = await run(gemini, WORK, "Change it")
    agree(told)
    full = list(told.full)
    assert [m.id for m in full] == [m.id for m in told.live]
    assert texts(full) == texts(told.live)
    assert [b.subject for b in blocks(full) if isinstance(b, Thought)] == ["Looking"]
    assert [c.exit_code for c in calls(full)][-1] == 3
    assert full[1].usage is not None
    assert (full[1].usage.thoughts, full[1].usage.cached) == (7, 600)
    _, _, new, edit, failed, _, shell = calls(full)
    assert isinstance(new.display, DiffDisplay)
    assert isinstance(edit.display, DiffDisplay)
    assert "-print('hello')" in edit.display.diff
    assert (failed.status, shell.status) == (ToolStatus.ERROR, ToolStatus.SUCCESS)
    assert all(c.duration is not None for c in calls(full))
    assert writes(told, told.full) == [
        (gemini.project / "new.txt", WriteStatus.YES, "A", 2, 0),
        (gemini.project / "hello.py", WriteStatus.YES, "M", 1, 1),
    ]


def any_call(chance: random.Random) -> Part:
    """A call that works, one that fails, or one that nobody knows."""
    name = f"f{chance.randrange(3)}.txt"
    old, new = str(chance.randrange(4)), str(chance.randrange(4))
    return chance.choice(
        [
            call("write_file", file_path=name, content=f"{old}\n{new}\n"),
            call("replace", file_path=name, instruction="x", old_string=old, new_string=new),
            call("read_file", file_path=name),
            call("glob", pattern="*.txt"),
            call("grep_search", pattern=old),
            call("list_directory", dir_path="."),
            call("run_shell_command", command=f"echo {new}; exit {old}"),
            call("no_such_tool", word=new),
        ]
    )


def any_turn(chance: random.Random, number: int) -> Answer:
    said = [text(f"Step {number}, "), text("now.")][: chance.randrange(3)]
    idea = [thought(f"Idea {number}", "why")] * chance.randrange(2)
    return answer(*idea, *said, *(any_call(chance) for _ in range(chance.randrange(1, 4))))


@pytest.mark.parametrize("seed", range(3))
async def test_any_run_and_its_session_agree(gemini: GeminiCli, seed: int) -> None:
    chance = random.Random(seed)
    turns = [any_turn(chance, number) for number in range(12)]
    told = await run(gemini, [*turns, answer(text("The end."))], "Go on")
    agree(told)
    assert [m.id for m in told.full] == [m.id for m in told.live]
    assert texts(told.full) == texts(told.live)
    assert writes(told, told.full) == writes(told, told.stored)


async def test_each_run_of_a_resumed_session_has_its_own_part(gemini: GeminiCli) -> None:
    (gemini.project / "hello.py").write_text("print('hello')\n")
    first = await run(gemini, WORK, "Change it")
    second = await run(gemini, [answer(text("Once more."))], "Again", resume=first.id)
    third = await run(
        gemini,
        [answer(call("glob", pattern="*")), answer(text("Files."))],
        "Which?",
        resume=first.id,
    )
    for told in (first, second, third):
        agree(told)
        assert [m.id for m in told.full] == [m.id for m in told.live]
        assert all(m.usage is not None for m in told.full if m.author is Author.MODEL)


async def test_an_interrupted_run_keeps_what_nobody_stored(gemini: GeminiCli) -> None:
    turn = answer(text("Now."), call("run_shell_command", command="sleep 600"))
    told = await run(gemini, [turn], "Sleep", stop_at=ToolUse)
    full = told.full
    assert texts(full) == [(Author.USER, "Sleep"), (Author.MODEL, "Now.")]
    assert [c.status for c in calls(full)] == [ToolStatus.UNCONFIRMED]
    gate = Gate()
    half = Answer(steps=(Chunk(parts=(text("Half of "),)), gate))
    told = await run(gemini, [half], "Say it", stop_at=TextDelta)
    assert texts(told.full) == [(Author.USER, "Say it"), (Author.MODEL, "Half of")]


async def test_a_failed_prompt_stays_with_its_error(gemini: GeminiCli) -> None:
    failure = Failure(status=403, message="Permission denied.", reason="PERMISSION_DENIED")
    told = await run(gemini, [failure], "This fails")
    assert told.stored == ()
    assert told.full is told.live
    assert texts(told.full) == [(Author.USER, "This fails")]


async def test_the_text_of_a_dropped_stream_stands_once(gemini: GeminiCli) -> None:
    cut = Answer(steps=(Chunk(parts=(text("The answer "),)),))
    told = await run(gemini, [cut, answer(text("The answer is plum."))], "What?")
    assert texts(told.live)[1][1] == "The answer The answer is plum."
    assert texts(told.full)[1][1] == "The answer is plum."
