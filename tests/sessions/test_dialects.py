"""The lines of other agents, one by one, as records of the inner form."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gemtui.sessions.read import claude, qwen
from gemtui.sessions.read.conversation import transcript_of, unified_of
from gemtui.sessions.read.dialect import Dialect
from gemtui.sessions.read.session_log import SessionLog
from gemtui.transcript.diffs import hunks_of_diff
from tests.deep import some_of
from tests.odd_json import spoilt

Line = dict[str, Any]
ENVELOPE = {"parentUuid": "p", "isSidechain": False, "sessionId": "s", "cwd": "/work"}


def user(content: object, **fields: object) -> Line:
    message = {"role": "user", "content": content}
    return {**ENVELOPE, "type": "user", "message": message, "uuid": "u", **fields}


def answered(*blocks: Line, **fields: object) -> Line:
    message = {"id": "msg", "model": "claude-fable-5", "content": list(blocks)}
    return {**ENVELOPE, "type": "assistant", "message": message, "uuid": "u", **fields}


def result(content: object, **fields: object) -> Line:
    block = {"type": "tool_result", "tool_use_id": "call", "content": content}
    block["is_error"] = bool(fields.pop("is_error", False))
    return user([block], **fields)


def system(subtype: str, **fields: object) -> Line:
    return {**ENVELOPE, "type": "system", "subtype": subtype, "uuid": "u", **fields}


def attachment(kind: str, **fields: object) -> Line:
    head = {"parentUuid": "p", "isSidechain": False}
    return {**head, "attachment": {"type": kind, **fields}, "type": "attachment", "uuid": "u"}


def record(dialect: Dialect, line: Line) -> Mapping[str, Any]:
    found = dialect.translate(line)
    assert found is not None
    return found


def text_in(record: Mapping[str, Any]) -> str:
    content = record["content"]
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


def reply(line: Line) -> Mapping[str, Any]:
    (part,) = record(claude, line)["content"]
    found: Mapping[str, Any] = part["functionResponse"]
    return found


COMMAND = "<command-name>/compact</command-name>\n<command-args>{}</command-args>"


@pytest.mark.parametrize(
    ("line", "prompt"),
    [
        (user("Hello"), "Hello"),
        (user([{"type": "text", "text": "Hello"}]), "Hello"),
        (user(COMMAND.format("shorter")), "/compact shorter"),
        (user(COMMAND.format("")), "/compact"),
        (user("<bash-input>ls</bash-input>"), "!ls"),
        (attachment("queued_command", prompt="And this"), "And this"),
    ],
)
def test_what_a_person_typed_is_a_prompt(line: Line, prompt: str) -> None:
    found = record(claude, line)
    assert (found["type"], found["prompt"], text_in(found)) == ("user", True, prompt)


TASK = "<task-notification><status>completed</status><summary>Done</summary></task-notification>"


@pytest.mark.parametrize(
    ("line", "kind", "text"),
    [
        (user("<local-command-stdout>\x1b[2mok\x1b[22m</local-command-stdout>"), "info", "ok"),
        (
            user("<bash-stdout>out</bash-stdout><bash-stderr>bad</bash-stderr>"),
            "info",
            "out\nbad",
        ),
        (user("[Request interrupted by user]"), "info", "Request interrupted by user"),
        (user("What it said", isCompactSummary=True), "info", "What it said"),
        (user(TASK, origin={"kind": "task-notification"}), "info", "Done"),
        (
            system("compact_boundary", compactMetadata={"preTokens": 1200}),
            "info",
            "The conversation was compacted here (1,200 tokens before).",
        ),
        (system("informational", content="Careful", level="warning"), "warning", "Careful"),
        (
            system("api_error", level="error", error={"error": {"message": "Overloaded"}}),
            "error",
            "Overloaded",
        ),
        (
            answered({"type": "text", "text": "Limit reached"}, isApiErrorMessage=True),
            "error",
            "Limit reached",
        ),
    ],
)
def test_what_claude_code_itself_said_is_a_notice(line: Line, kind: str, text: str) -> None:
    found = record(claude, line)
    assert (found["type"], found["content"], "prompt" in found) == (kind, text, False)


@pytest.mark.parametrize(
    "line",
    [
        user("<bash-stdout>" * 80_000),
        user("<command-name>/x</command-name>" + "<command-args>" * 80_000),
        user("<summary>" * 80_000, origin={"kind": "task-notification"}),
        system("local_command", content="<local-command-stdout>" * 80_000),
    ],
)
def test_a_megabyte_of_elements_without_an_end_is_read_at_once(line: Line) -> None:
    assert record(claude, line)["content"], "reading it anew for each would take minutes"


def test_a_block_of_an_answer_has_the_usage_of_the_whole_answer() -> None:
    usage = {
        "input_tokens": 3,
        "cache_read_input_tokens": 20,
        "cache_creation_input_tokens": 100,
        "output_tokens": 7,
    }
    thinking = {"type": "thinking", "thinking": "Hm", "signature": "x"}
    line = answered(thinking)
    line["message"]["usage"] = usage
    found = record(claude, line)
    counts = {"input": 123, "output": 7, "cached": 20, "thoughts": 0, "tool": 0, "total": 130}
    counts["written"] = 100
    assert (found["answer"], found["model"], found["tokens"]) == ("msg", "claude-fable-5", counts)
    assert [thought["description"] for thought in found["thoughts"]] == ["Hm"]
    call = {"type": "tool_use", "id": "c", "name": "Bash", "input": {"command": "ls"}}
    (part,) = record(claude, answered(call))["content"]
    assert part["functionCall"] == {"id": "c", "name": "Bash", "args": {"command": "ls"}}


@pytest.mark.parametrize(
    ("line", "status", "code"),
    [
        (result("fine"), "success", None),
        (result("Exit code 3\nout", is_error=True), "success", 3),
        (result("no", is_error=True, toolDenialKind="user-rejected"), "cancelled", None),
        (result("no", is_error=True, toolDenialKind="interrupted"), "cancelled", None),
        (
            result("no", is_error=True, toolDenialKind="permission-rule", holdsPersonsWords=True),
            "cancelled",
            None,
        ),
        (result("no", is_error=True, toolDenialKind="permission-rule"), "denied", None),
        (result("PreToolUse:Write hook error: no", is_error=True), "denied", None),
        (
            result("The user doesn't want to proceed with this tool use. …", is_error=True),
            "cancelled",
            None,
        ),
    ],
)
def test_how_a_call_ended_is_told_by_its_result(line: Line, status: str, code: int | None) -> None:
    found = reply(line)
    assert (found["status"], found.get("exitCode")) == (status, code)


PATCH = {"oldStart": 1, "oldLines": 2, "newStart": 1, "newLines": 2}
HUNK = {**PATCH, "lines": [" one", "-two", "+2", "\\ No newline at end of file"]}


@pytest.mark.parametrize(
    ("change", "before", "after", "is_new"),
    [
        ({"type": "create", "content": "a\nb", "structuredPatch": []}, "", "a\nb", True),
        ({"type": "update", "content": "one\n2", "originalFile": "one\ntwo"}, "one\ntwo", None, 0),
        ({"oldString": "two", "newString": "2", "originalFile": "one\ntwo"}, "one\ntwo", None, 0),
        ({"oldString": "x", "newString": "2", "originalFile": None}, None, "", 0),
    ],
)
def test_a_changed_file_has_its_diff_and_both_texts(
    change: Line, before: str | None, after: str | None, is_new: bool
) -> None:
    written = {"filePath": "/work/a.txt", "structuredPatch": [HUNK], **change}
    shown = reply(result("Done", toolUseResult=written))["resultDisplay"]
    (hunk,) = hunks_of_diff(shown["fileDiff"])
    assert (shown["filePath"], shown["originalContent"]) == ("/work/a.txt", before)
    assert shown["newContent"] == ("one\n2" if after is None else after or None)
    assert shown["isNewFile"] == bool(is_new)
    assert [line.rstrip("\n") for line in hunk.added] == (["a", "b"] if is_new else ["one", "2"])


IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "QUJD"}}


def test_images_of_prompts_and_results_stay_attached() -> None:
    data = {"mimeType": "image/png", "data": "QUJD", "displayName": ""}
    found = record(claude, user([{"type": "text", "text": "Look"}, IMAGE]))
    assert found["content"] == [{"text": "Look"}, {"inlineData": data}]
    assert reply(result([IMAGE]))["parts"] == [{"inlineData": data}]


@pytest.mark.parametrize(
    ("line", "header"),
    [
        ({"type": "custom-title", "customTitle": "Mine"}, {"summary": "Mine"}),
        ({"type": "ai-title", "aiTitle": "Its"}, {"summary": "Its"}),
        ({"type": "summary", "summary": "Old"}, {"summary": "Old"}),
        ({"type": "cost-state", "totalCostUSD": 0.25}, {"cost": 0.25}),
    ],
)
def test_titles_and_costs_change_the_header(line: Line, header: Line) -> None:
    assert claude.translate(line) == {"$set": header}


def test_a_cost_that_claude_code_cannot_know_is_not_taken() -> None:
    line = {"type": "cost-state", "totalCostUSD": 0.25, "hasUnknownModelCost": True}
    assert claude.translate(line) is None


def qwen_line(kind: str, *parts: Line, **fields: object) -> Line:
    head = {"uuid": "u", "parentUuid": "p", "sessionId": "s", "timestamp": "t", "type": kind}
    return {**head, "cwd": '/a "b"', "message": {"parts": list(parts)}, **fields}


HI = {"text": "Hi"}


@pytest.mark.parametrize(
    ("line", "kind", "text"),
    [
        (qwen_line("user", HI, provenance="real_user"), "user", "Hi"),
        (qwen_line("user", HI, subtype="mid_turn_user_message"), "user", "Hi"),
        (qwen_line("user", HI, subtype="notification"), "info", "Hi"),
        (qwen_line("user", HI, provenance="system"), "info", "Hi"),
        (qwen_line("assistant", HI), "gemini", "Hi"),
        (
            qwen_line("system", subtype="slash_command", systemPayload={"rawCommand": "/about"}),
            "info",
            "/about",
        ),
        (
            qwen_line(
                "system",
                subtype="chat_compression",
                systemPayload={"info": {"originalTokenCount": 9000}},
            ),
            "info",
            "The conversation was compressed here (9,000 tokens before).",
        ),
    ],
)
def test_the_lines_of_qwen_code_keep_their_roles(line: Line, kind: str, text: str) -> None:
    found = record(qwen, line)
    assert (found["type"], text_in(found), "prompt" in found) == (kind, text, kind == "user")


@pytest.mark.parametrize(
    ("status", "code", "ends"),
    [("success", 0, "success"), ("error", 3, "success"), ("error", None, "error")],
)
def test_a_command_of_qwen_code_ends_with_its_exit_code(
    status: str, code: int | None, ends: str
) -> None:
    shown = {"type": "shell_result", "output": "hi", "exitCode": code}
    response = {"error": "Output: hi"} if status == "error" else {"output": "Output: hi"}
    reply = {"functionResponse": {"id": "c", "name": "run_shell_command", "response": response}}
    ended = {"status": status, "resultDisplay": shown}
    (part,) = record(qwen, qwen_line("tool_result", reply, toolCallResult=ended))["content"]
    found = part["functionResponse"]
    assert (found["status"], found.get("exitCode") or 0) == (ends, code or 0)
    assert found["resultDisplay"] == "hi"
    assert ("error" in found["response"]) == (ends == "error")


SKIPPED: list[tuple[Dialect, Line]] = [
    (claude, {"type": "api-request-shape", "sessionId": "s"}),
    (claude, {"type": "queue-operation", "operation": "enqueue"}),
    (claude, attachment("prompt_snapshot")),
    (claude, {"parentUuid": None, "isSidechain": True, "agentId": "a", **attachment("date")}),
    (qwen, qwen_line("system", subtype="ui_telemetry")),
    (qwen, qwen_line("system", provenance="system", subtype="rewind")),
]


@pytest.mark.parametrize(("dialect", "line"), SKIPPED)
def test_lines_without_words_are_known_by_their_beginning(dialect: Dialect, line: Line) -> None:
    ordered = {key: line[key] for key in line if key != "message"}
    assert dialect.translate(line) is None
    assert not dialect.wants(json.dumps(ordered, separators=(",", ":")).encode())


@pytest.mark.parametrize("dialect", [claude, qwen])
@pytest.mark.parametrize("kind", ["of-tomorrow", "system"])
def test_a_line_of_an_unknown_type_is_named(dialect: Dialect, kind: str) -> None:
    line = {"type": kind, "subtype": "new", "uuid": "u"}
    assert dialect.wants(json.dumps(line, separators=(",", ":")).encode())
    assert dialect.translate(line) == {"type": "system/new" if kind == "system" else kind}


# --- lines of any form ---------------------------------------------------------------------------

CALL = {"type": "tool_use", "id": "call", "name": "Edit", "input": {"file_path": "/a"}}
CHANGE = {
    "filePath": "/a",
    "originalFile": "one",
    "oldString": "one",
    "newString": "two",
    "structuredPatch": [HUNK],
}
OF_CLAUDE = [
    user([{"type": "text", "text": "Hello"}, IMAGE]),
    user(COMMAND.format("x")),
    answered({"type": "thinking", "thinking": "Hm"}, {"type": "text", "text": "Hi"}, CALL),
    result("Exit code 3\nout", is_error=True, toolUseResult=CHANGE),
    result([{"type": "text", "text": "Done"}], toolUseResult={"agentType": "a", "content": []}),
    system("compact_boundary", compactMetadata={"preTokens": 1}, logicalParentUuid="u"),
    system("api_error", error={"error": {"message": "Overloaded"}}),
    attachment("queued_command", prompt="And this", commandMode="prompt"),
    {"type": "cost-state", "totalCostUSD": 0.25},
]
SHOWN = {"type": "shell_result", "output": "hi", "exitCode": 3}
OF_QWEN = [
    qwen_line("user", HI, systemPayload={"displayText": "Hi"}),
    qwen_line("assistant", HI, {"functionCall": {"id": "c", "name": "edit", "args": {}}}),
    qwen_line(
        "tool_result",
        {"functionResponse": {"id": "c", "name": "edit", "response": {"error": "x"}}},
        toolCallResult={"status": "error", "resultDisplay": SHOWN},
    ),
    qwen_line("system", subtype="slash_command", systemPayload={"outputHistoryItems": [HI]}),
    qwen_line("system", subtype="chat_compression", systemPayload={"info": {}}),
]


@settings(max_examples=some_of(60), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), lines=st.sampled_from([OF_CLAUDE, OF_QWEN]))
def test_a_file_with_odd_values_in_its_lines_can_be_read(
    tmp_path: Path, data: st.DataObject, lines: list[Line]
) -> None:
    odd = data.draw(st.lists(st.sampled_from(lines).flatmap(spoilt), max_size=6))
    path = tmp_path / "session.jsonl"
    stored = [json.dumps(line) for line in [lines[0], *odd]]
    path.write_text("\n".join(stored))
    with SessionLog.read(path) as log:
        transcript = transcript_of(log, dropped=True)
        for index in range(len(transcript.outlines)):
            assert transcript.read(index).id
        assert len(list(unified_of(log))) <= len(log.replay.entries)
