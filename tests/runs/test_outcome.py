"""How runs ended, in words: every recorded stream, and what was never recorded."""

from __future__ import annotations

import json
import re
import tomllib
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path, PurePath
from typing import Any

import pytest

from gemtui.agent.approval import ALTERED, MOVED, PASSED, UNGATED
from gemtui.agent.fold import Fold
from gemtui.agent.output import NdjsonReader, Parsed
from gemtui.agent.run_folder import About, Limit, Request
from gemtui.agent.stream import Ending, Stream
from gemtui.runs.effective_policy import RunPolicy
from gemtui.runs.ending import Status
from gemtui.runs.outcome import RunOutcome, RunProgress, plain_message, refusal_words, retry_words
from gemtui.transcript.model import ToolCall, ToolStatus
from gemtui.transcript.writes import WriteStatus, write_of, writing_calls
from tests.rows import each_row, table

TABLES = table("runs/outcome.json")

STREAMS = Path(__file__).parent.parent / "data/streams"
INIT = '{"type":"init","session_id":"s1","model":"auto"}'
HELLO = '{"type":"message","role":"assistant","content":"hello","delta":true}'
OK = '{"type":"result","status":"success"}'
ENDINGS = {
    run: (Status(ending["status"]), ending["headline"])
    for ending in tomllib.loads((STREAMS / "endings.toml").read_text())["ending"]
    for run in ending["runs"]
}
NAMES = sorted(str(path.relative_to(STREAMS))[:-6] for path in STREAMS.rglob("*.jsonl"))


def outcome(output: bytes, ending: Ending, stderr: str = "") -> RunOutcome:
    stream, reader, progress = Stream(cwd="/p"), NdjsonReader(), RunProgress()
    for line in (*reader.feed(output), *reader.close()):
        for event in stream.feed(line):
            progress.add(event)
    assert progress.outcome() is None
    for event in stream.finish(ending):
        progress.add(event)
    found = progress.outcome(stderr)
    assert found is not None
    return found


@each_row("name", NAMES)
def test_what_is_counted_is_what_the_transcript_shows(name: str) -> None:
    stream, reader, progress = Stream(cwd="/p"), NdjsonReader(), RunProgress()
    fold = Fold("x", began=datetime.now(UTC))
    for line in (*reader.feed((STREAMS / f"{name}.jsonl").read_bytes()), *reader.close()):
        for event in stream.feed(line):
            progress.add(event)
            fold.add(event)
    blocks = [block for message in fold.transcript() for block in message.blocks]
    calls = [block for block in blocks if isinstance(block, ToolCall)]
    ended = Counter(call.status for call in calls)
    assert progress.unsettled == ended.pop(ToolStatus.RUNNING, 0)
    stopped = progress.stopped_by is not None
    assert progress.failed.total() + stopped == ended[ToolStatus.ERROR]
    assert sum(progress.refused.values()) == ended[ToolStatus.DENIED] + ended[ToolStatus.REFUSED]
    files = [write_of(*each) for each in writing_calls(calls).items()]
    done = [each.path for each in files if each.written is WriteStatus.YES]
    assert [*map(PurePath, progress.written)] == done


def recorded(name: str) -> RunOutcome:
    stderr = (STREAMS / f"{name}.stderr").read_text("utf-8", "replace")
    code = int((STREAMS / f"{name}.exit").read_text())
    output = (STREAMS / f"{name}.jsonl").read_bytes()
    return outcome(output, Ending(code=code, stderr=stderr), stderr)


def test_a_quota_is_renewed_after_the_error_however_late_that_is_read() -> None:
    assert recorded("err429quota").until == datetime(2026, 11, 21, 8, tzinfo=UTC)


def said(*lines: str, code: int | None = 0, stderr: str = "", **ending: object) -> RunOutcome:
    output = "\n".join(lines).encode()
    return outcome(output, Ending(code=code, stderr=stderr, **ending), stderr)  # type: ignore[arg-type]


def ending_of(data: dict[str, Any]) -> dict[str, Any]:
    """An ending of the table, with the limit that its name stands for."""
    return data | {"limit": Limit(data["limit"])} if "limit" in data else data


@each_row("promise, cases", table("runs/endings.json", ending_of).items())
def test_a_run_has_words_for_its_end(promise: str, cases: list[dict[str, Any]]) -> None:
    output = {"init": INIT, "hello": HELLO, "ok": OK}
    for case in cases:
        found = said(
            *(output.get(line, line) for line in case.get("lines", ())), **case.get("ending", {})
        )
        expected = case.get("outcome", {})
        assert {name: getattr(found, name) for name in expected} == expected
        assert [*found.ways_out] == case.get("ways", [*found.ways_out])
        assert all(found.detail.count(part) == 1 for part in case.get("says", ()))


@each_row("name", NAMES)
def test_every_recorded_stream_has_its_words(name: str) -> None:
    found = recorded(name)
    status, headline = ENDINGS.get(name, (Status.OK, "Done"))
    assert (found.status, found.headline.partition(", until ")[0]) == (status, headline)
    assert bool(found.ways_out) or found.status in (Status.OK, Status.WARNING)
    assert "auth login" not in " ".join(found.ways_out)


def test_every_ending_named_here_is_recorded() -> None:
    assert set(ENDINGS) <= set(NAMES)


def test_the_prompt_at_which_a_loop_ended_the_run_is_named() -> None:
    request = Request(id="r", argv=(), cwd="/p", environ={}, about={"prompt": "first"})
    stream, progress = Stream(cwd="/p", asks=True), RunProgress(request)
    loop = {"type": "error", "severity": "warning", "message": "Loop detected, stopping execution"}
    handed_on = {
        "type": "error",
        "severity": "warning",
        "message": "Agent execution blocked: second\nline",
    }
    for event in (json.loads(INIT), loop, handed_on, json.loads(HELLO), loop, json.loads(OK)):
        for each in stream.feed(Parsed(data=event)):
            progress.add(each)
    for each in stream.finish(Ending(code=0)):
        progress.add(each)
    found = progress.outcome()
    assert found is not None
    assert (found.status, found.headline.partition(" at ")[0]) == (
        Status.WARNING,
        "Done, but Gemini repeated itself and was stopped",
    )
    assert [name in found.headline + found.detail for name in ("“first”", "“second”", "line")] == [
        True,
        True,
        False,
    ]
    assert found.ways_out == ("send that prompt again, or rephrase it",)


def test_a_login_that_is_missing_names_all_three_ways() -> None:
    ways = " ".join(recorded("noauth2").ways_out)
    assert "GEMINI_API_KEY" in ways
    assert "Vertex" in ways
    assert "start gemini once" in ways


def test_refused_tools_say_why() -> None:
    assert recorded("default_mode").detail.split("\n") == [
        "write_file: not permitted in this mode",
        "run_shell_command: not permitted in this mode",
    ]
    assert recorded("policy-deny").detail.split("\n") == [
        "run_shell_command: denied by a policy: Pushing is for people.",
        "write_file: needed approval, which headless runs can't ask for",
    ]


@pytest.mark.parametrize(
    ("output", "words"),
    [
        ("Tool execution denied by policy.", "denied by a policy"),
        ("PreToolUse:Bash hook error: The user said no.", "you said no"),
        ("PreToolUse:Bash hook error: The user said no: use tabs", "you said no: use tabs"),
        ("PreToolUse:Write hook error: Too large.", "Too large."),
        (
            "The user doesn't want to take this action right now. STOP what you are doing",
            "not made, because the run ended first",
        ),
        (
            "Permission to use Bash with command ls has been denied.",
            "denied by Claude Code's own settings",
        ),
        ("[Operation Cancelled]", "not approved"),
        ("Claude says\n something new.", "Claude says something new."),
    ],
)
def test_a_refusal_is_told_in_words_for_the_user(output: str, words: str) -> None:
    assert refusal_words(output) == words


ERRORS = {
    "not found": ("tool_not_registered", 'Tool "{}" not found.'),
    "violation": ("policy_violation", "Tool execution denied by policy. Not {} here."),
    "approval": (
        "unhandled_exception",
        'Tool execution for "{}" requires user confirmation, which is not supported',
    ),
}
RULES = """
[[rule]]
toolName = "run_shell_command"
commandPrefix = "git push"
decision = "deny"
priority = 500
denyMessage = "Not run_shell_command here."

[[rule]]
toolName = ["web_fetch", "mcp_srv_drop"]
decision = "deny"
priority = 500

[[rule]]
toolName = "replace"
decision = "ask_user"
priority = 500
"""


@pytest.mark.parametrize(
    ("tool", "args", "error", "status", "words", "ways"),
    TABLES["the policy of a run says why a call was refused"],
)
def test_the_policy_of_a_run_says_why_a_call_was_refused(
    tmp_path: Path, tool: str, args: dict[str, str], error: str, status: str, words: str, ways: str
) -> None:
    """A tool that does not exist is an error that names it; no advice lifts a person's own rule."""
    (policy := tmp_path / "work.toml").write_text(RULES)
    home = {"GEMINI_CLI_HOME": str(tmp_path)}
    (settings := tmp_path / ".gemini/settings.json").parent.mkdir()
    settings.write_text('{"tools": {"exclude": ["read_file"]}}')
    argv = ("gemini", f"--policy={policy}")
    about: About = {"ask": error == "violation"}
    request = Request(id="r", argv=argv, cwd=str(tmp_path), environ=home, about=about)
    request = replace(request, about={**about, "hidden": RunPolicy.of(request).hidden()})
    stream = Stream(cwd="/p", hides=lambda name: request.hides(name) is not None)
    kind, message = ERRORS[error]
    failed = {"type": kind, "message": message.format(tool)}
    lines = (
        INIT,
        json.dumps({"type": "tool_use", "tool_name": tool, "tool_id": "1", "parameters": args}),
        json.dumps({"type": "tool_result", "tool_id": "1", "status": "error", "error": failed}),
        HELLO,
        OK,
    )
    progress, read = RunProgress(request), NdjsonReader().feed("\n".join((*lines, "")).encode())
    events = [each for line in read for each in stream.feed(line)]
    for each in (*events, *stream.finish(Ending(code=0))):
        progress.add(each)
    progress.settle(tmp_path)
    found = progress.outcome()
    assert found is not None
    assert found.status == status
    assert words in found.detail
    assert ways in " ".join(found.ways_out)
    assert ("yolo" in " ".join(found.ways_out)) is (ways == "yolo")
    if status == Status.WARNING:
        assert found.headline.startswith(
            f"Done, but the model called a tool that does not exist: {tool}"
        )
    policy.write_text(RULES.replace("deny", "allow"))
    assert not RunPolicy.of(request).is_older_than(datetime.fromtimestamp(0, UTC))


@each_row("code, headline", TABLES["an exit code alone has words"])
def test_an_exit_code_alone_has_words(code: int, headline: str) -> None:
    found = said(code=code)
    assert (found.status, found.headline) == (Status.FAILED, headline)
    assert found.ways_out


@each_row(
    "problem, headline",
    [
        (UNGATED, "The run was stopped because gemtui could not ask you"),
        (PASSED, "The run was stopped because gemtui could not ask you"),
        (MOVED, "The run was stopped because gemtui could not ask you"),
        (ALTERED, "The run was stopped because a tool did not run as you had approved it"),
    ],
)
def test_a_gate_that_does_not_hold_is_said(problem: str, headline: str) -> None:
    found = said(INIT, code=-9, problem=problem)
    assert found.headline == headline
    assert found.detail == problem
    assert found.ways_out


def test_a_time_limit_behind_retries_names_their_status() -> None:
    stderr = (STREAMS / "err503always.stderr").read_text()
    found = said(INIT, code=0, limit=Limit.TIMEOUT, limit_seconds=10, stderr=stderr)
    assert found.headline == "The run took too long"
    assert re.search(r"timed out after 10s\nattempt \d+ had failed: HTTP status 503", found.detail)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("err500once", "attempt 1 failed (500), retrying"),
        ("err429retry", "attempt 2 failed (Resource exhausted, retry), retrying in 10 s"),
        ("plain", None),
    ],
)
def test_retries_are_told_while_they_happen(name: str, words: str | None) -> None:
    stderr = (STREAMS / f"{name}.stderr").read_text()
    assert retry_words(stderr) == words


def test_retries_on_the_way_are_counted() -> None:
    assert recorded("err429retry").detail == "Gemini CLI retried 2 times"


@each_row("message, plain", TABLES["api errors are unwrapped"])
def test_api_errors_are_unwrapped(message: str, plain: str) -> None:
    assert plain_message(message) == plain
