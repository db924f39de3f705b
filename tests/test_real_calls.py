"""What the real Gemini CLI stores and says of calls that are out of the ordinary."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from gemtui.agent.events import ResultStatus, ToolResult
from gemtui.agent.output import NdjsonReader
from gemtui.agent.stream import Stream
from gemtui.policy.model.rules import CallStatus
from gemtui.runs.call_history import recorded_calls
from gemtui.sessions.catalog.file_in_use import is_live
from gemtui.sessions.catalog.index import Index
from gemtui.sessions.catalog.summary import Flag, Summary
from gemtui.sessions.read.conversation import IN_FLIGHT, transcript_of
from gemtui.sessions.read.session_log import SessionLog
from gemtui.transcript.call_text import file_lines
from gemtui.transcript.export_text import to_text
from gemtui.transcript.media import image_bytes, pixels
from gemtui.transcript.model import Image, Notice, NoticeLevel, ToolCall, ToolStatus, Transcript
from gemtui.ui.transcript.message import draw_message
from tests.model_server import Gate, ModelServer, answer, call, text
from tests.patience import PATIENCE
from tests.real_cli import GeminiCli
from tests.sessions.stores import read
from tests.transcript.pictures import png
from tests.ui.talks import look

pytestmark = pytest.mark.covers("gemtui/calls", "gemtui/transcript")

ASKED = {"questions": [{"question": "Which one?", "header": "H", "options": []}]}
SCRIPT = "echo one\necho two\nexit 3"


def shell(command: str) -> dict[str, object]:
    return dict(call("run_shell_command", command=command))


def writer(fifo: Path) -> int:
    """The end of a fifo to write to, as soon as somebody reads it."""
    until = time.monotonic() + PATIENCE
    while True:
        try:
            return os.open(fifo, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.01)


class Seen:
    """A session of the real CLI: while a command ran, afterwards, and what the stream said."""

    def __init__(self, cli: GeminiCli) -> None:
        fifo = cli.project / "go"
        os.mkfifo(fifo)
        turns = [
            answer(shell("true"), shell("echo $(whoami)"), shell(SCRIPT)),
            answer(call("ask_user", **ASKED)),
            answer(shell("cat go")),
            answer(text("Done.")),
        ]
        with ModelServer(turns) as model, cli.start(model, "Try it") as run:
            with os.fdopen(writer(fifo), "w") as file:
                (path,) = cli.store.rglob("chats/session-*.jsonl")
                with SessionLog(path) as log:
                    log.refresh()
                    self.meanwhile = list(transcript_of(log))
                file.write("gone\nExit Code: 1\n")
            run.finish()
        self.log = SessionLog(path)
        self.log.refresh()
        self.transcript: Transcript = transcript_of(self.log)
        self.path = path
        self.summary: Summary = Index(cli.store, cache=None).find(str(path))
        blocks = [block for message in self.transcript for block in message.blocks]
        self.calls = [block for block in blocks if isinstance(block, ToolCall)]
        self.stdout = run.stdout.read_bytes()


@pytest.fixture(scope="module")
def seen(gemini_program: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seen]:
    seen = Seen(GeminiCli.set_up(gemini_program, tmp_path_factory.mktemp("calls")))
    yield seen
    seen.log.close()


def drawn(tool: ToolCall, seen: Seen) -> str:
    message = next(message for message in seen.transcript if tool in message.blocks)
    drawing = draw_message(message, look(78), folded=lambda _: False)
    return "\n".join(strip.text for strip in drawing.strips)


def test_a_command_that_the_tool_refused_is_no_success(seen: Seen) -> None:
    refused = seen.calls[1]
    assert refused.args["command"] == "echo $(whoami)"
    assert refused.status is ToolStatus.REFUSED
    assert "⊘ run_shell_command" in drawn(refused, seen)
    assert "refused" in drawn(refused, seen)
    assert "Status: rejected by the tool itself" in "".join(to_text(seen.transcript, seen.summary))
    stream, reader = Stream(cwd="/p"), NdjsonReader()
    events = [event for line in reader.feed(seen.stdout) for event in stream.feed(line)]
    results = [each.payload for each in events if isinstance(each.payload, ToolResult)]
    assert [each.status for each in results[:3]] == [
        ResultStatus.SUCCESS,
        ResultStatus.DENIED,
        ResultStatus.SUCCESS,
    ]


def test_failures_are_counted_by_status_and_exit_code_everywhere(seen: Seen) -> None:
    assert [tool.failed for tool in seen.calls] == [False, True, True, True, False]
    assert seen.summary.failed_calls == 3
    assert sum(line.failures for line in seen.transcript.outlines) == 3
    assert seen.summary.to_dict()["tool_failures"] == 1
    ended = [each.ended for step in recorded_calls([seen.summary]) for each in step.calls]
    assert ended == [
        CallStatus.SUCCEEDED,
        CallStatus.REFUSED,
        CallStatus.FAILED,
        CallStatus.DENIED,
        CallStatus.SUCCEEDED,
    ]


def test_what_the_cli_writes_around_an_output_is_no_output(seen: Seen) -> None:
    said = "".join(to_text(seen.transcript, seen.summary))
    whole = said + "".join(drawn(tool, seen) for tool in seen.calls)
    assert "PGID" not in whole
    assert "(empty)" not in whole
    assert [tool.exit_code for tool in seen.calls] == [None, None, 3, None, None]


def test_arguments_are_exported_whole(seen: Seen) -> None:
    said = "".join(to_text(seen.transcript, seen.summary))
    assert re.search(r"command:\n +echo one\n +echo two\n +exit 3\n", said)
    asked = said.partition("Argument questions:")[2].partition("Error")[0]
    assert json.loads(asked) == ASKED["questions"]


def test_a_call_in_flight_says_so(seen: Seen) -> None:
    assert seen.meanwhile[-1].blocks == (Notice(level=NoticeLevel.INFO, text=IN_FLIGHT),)
    assert not any(
        isinstance(block, Notice) for message in seen.transcript for block in message.blocks
    )


def test_a_session_is_live_when_it_was_written_not_when_it_is_copied(
    seen: Seen, tmp_path: Path
) -> None:
    written = seen.summary.modified
    assert is_live(seen.summary, written + timedelta(seconds=59))
    assert not is_live(seen.summary, written + timedelta(seconds=60))
    copy = tmp_path / seen.path.name
    copy.write_bytes(seen.path.read_bytes())
    later = written.timestamp() + 90
    os.utime(copy, (later, later))
    summary = Index(tmp_path, cache=None).find(str(copy))
    assert not is_live(summary, written + timedelta(seconds=91))


def test_images_have_the_names_that_the_prompt_and_the_call_gave_them(gemini: GeminiCli) -> None:
    areas = {"shot.png": (64, 48), "b c.png": (4, 5), "Z.png": (8, 9)}
    for name, area in areas.items():
        (gemini.project / name).write_bytes(png(*area))
    (gemini.project / "notes.txt").write_text("words\n")
    turns = [answer(call("read_file", file_path="shot.png")), answer(text("Done."))]
    prompt = r"See @shot.png, @b\ c.png and @Z.png @notes.txt"
    with ModelServer(turns) as model, gemini.start(model, prompt) as run:
        run.finish()
    (path,) = gemini.store.rglob("chats/session-*.jsonl")
    with SessionLog(path) as log:
        log.refresh()
        blocks = [block for message in transcript_of(log) for block in message.blocks]
    sent = [block for block in blocks if isinstance(block, Image)]
    found = {each.name: pixels(image_bytes(each)) for each in sent}
    assert found == areas
    (read,) = (block for block in blocks if isinstance(block, ToolCall))
    (given,) = read.images
    assert (given.name, image_bytes(given)) == ("shot.png", png(64, 48))


def test_a_session_waits_for_a_subagent_also_behind_words(gemini: GeminiCli) -> None:
    gate = Gate()
    report = {"SummaryOfFindings": "found", "ExplorationTrace": [], "RelevantLocations": []}
    turns = [
        answer(
            text("I ask somebody."),
            call("invoke_agent", agent_name="codebase_investigator", prompt="Find it"),
        ),
        answer(call("complete_task", report=report), after=gate),
        answer(text("Done.")),
    ]
    with ModelServer(turns) as model, gemini.start(model, "Where is it?") as run:
        assert gate.reached.wait(PATIENCE)
        meanwhile = parent_in(gemini)
        gate.open()
        run.finish()
    assert Flag.LIVE in meanwhile.flags
    assert meanwhile.waits
    assert not parent_in(gemini).waits


def parent_in(cli: GeminiCli) -> Summary:
    """The session of the run itself."""
    sessions = read(cli.store).sessions
    (parent,) = (each for each in sessions if each.parent is None)
    return parent


def test_a_part_of_a_file_is_its_lines_with_their_numbers(gemini: GeminiCli) -> None:
    (gemini.project / "a.py").write_text("".join(f"x{line} = {line}\n" for line in range(1, 41)))
    turns = [
        answer(
            call("read_file", file_path="a.py", start_line=9, end_line=10),
            call("read_file", file_path="a.py"),
        ),
        answer(text("Done.")),
    ]
    with ModelServer(turns) as model, gemini.start(model, "Read it") as run:
        run.finish()
    (path,) = gemini.store.rglob("chats/session-*.jsonl")
    with SessionLog(path) as log:
        log.refresh()
        blocks = [block for message in transcript_of(log) for block in message.blocks]
    part, whole = (file_lines(block) for block in blocks if isinstance(block, ToolCall))
    assert part == (9, "x9 = 9\nx10 = 10")
    assert whole is not None
    assert (whole.first, whole.text.count("\n")) == (1, 40)
