"""The dialect of Claude Code: its stored lines as records of the inner form (see `dialect`).

The lines are described in assets/agents.md#claude-code.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from gemtui.transcript.claude_displays import claude_display, count
from gemtui.transcript.parts import Part, mapping, parts_of, string

_SKIPPED = (
    "agent-color",
    "agent-name",
    "agent-setting",
    "api-request",
    "api-request-blob",
    "api-request-resumed",
    "api-request-shape",
    "artifact-autoreact-ledger",
    "artifact-comment-monitor",
    "atis-latch",
    "attribution-snapshot",
    "bridge-session",
    "content-replacement",
    "continued-in",
    "data-flow-incomplete",
    "data-flow-records",
    "derived-from",
    "dev-mods",
    "ended-by-model",
    "file-history-delta",
    "file-history-snapshot",
    "fork-context-ref",
    "frame-link",
    "history-suppression",
    "host-row",
    "hybrid-organization",
    "isolation-latch",
    "last-prompt",
    "memory-mode",
    "mode",
    "observer-ref",
    "permission-mode",
    "pr-link",
    "progress",
    "queue-operation",
    "relocated",
    "repl-mode",
    "resume-head-vouch",
    "session-owner",
    "tag",
    "tools-used",
    "worktree-state",
)
"""Types of lines that hold nothing of the conversation."""

_SKIPPED_LINE = re.compile(
    rb'\{"type":"(?:' + "|".join(_SKIPPED).encode() + rb')"'
    rb'|\{"parentUuid":(?:null|"[^"]*"),"isSidechain":(?:true|false),(?:"agentId":"[^"]*",)?'
    rb'"attachment":\{"type":"(?!queued_command")'
)
"""The beginning of such a line, or of an attachment, as Claude Code writes them."""

_TYPED_COMMAND = re.compile(r"\s*<command-name>(.*?)</command-name>", re.DOTALL)
_TYPED_SHELL = re.compile(r"\s*<bash-input>(.*?)</bash-input>", re.DOTALL)
_OPENING = re.compile(r"<([a-z-]+)>")
_PRINTED = ("local-command-stdout", "local-command-stderr", "bash-stdout", "bash-stderr")
_TASK = ("summary", "result")
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_INTERRUPTED = "[Request interrupted by user"
_EXIT_CODE = re.compile(r"Exit code (\d{1,10})(?:\n|\Z)")
_CANCELLED_KINDS = ("user-rejected", "interrupted", "cancelled")
_CANCELLED = (
    "The user doesn't want to proceed with this tool use.",
    _INTERRUPTED,
    "<tool_use_error>Cancelled",
)
_DENIED = re.compile(r"Permission to use .{1,200} has been denied|PreToolUse:\S+ hook error: ")


def wants(line: bytes) -> bool:
    """Return whether a line has to be parsed; see `Dialect`."""
    return _SKIPPED_LINE.match(line) is None


def translate(line: Mapping[str, Any]) -> Part | None:
    """Return a parsed line as a record; see `Dialect`."""
    kind = line.get("type")
    if kind in _SKIPPED:
        return None
    match kind:
        case "assistant":
            return _answer(line)
        case "user":
            return _user(line)
        case "system":
            return _system(line)
        case "attachment":
            return _attachment(line)
        case "custom-title":
            return _header(summary=string(line.get("customTitle")))
        case "ai-title":
            return _header(summary=string(line.get("aiTitle")))
        case "summary":
            return _header(summary=string(line.get("summary")))
        case "cost-state":
            return _cost(line)
        case _:
            return {"type": string(kind)}


def _record(line: Part, kind: str, content: object) -> dict[str, Any]:
    return {
        "id": line.get("uuid"),
        "timestamp": line.get("timestamp"),
        "type": kind,
        "content": content,
    }


def _notice(line: Part, text: str, kind: str = "info") -> Part | None:
    text = _COLOUR.sub("", text).strip()
    return _record(line, kind, text) if text else None


def _header(**changes: object) -> Part | None:
    return {"$set": changes} if all(changes.values()) else None


def _cost(line: Part) -> Part | None:
    cost = line.get("totalCostUSD")
    is_known = type(cost) in (int, float) and not line.get("hasUnknownModelCost")
    return _header(cost=cost) if is_known else None


# --- what the model said ---------------------------------------------------------------------


def _answer(line: Part) -> Part | None:
    message = mapping(line.get("message"))
    blocks = parts_of(message.get("content"))
    text = "\n".join(string(block.get("text")) for block in blocks if "text" in block)
    if line.get("isApiErrorMessage") is True:
        return _notice(line, text, "error")
    model = string(message.get("model"))
    if model == "<synthetic>":
        return _notice(line, text)
    thoughts = [_thought(line, block) for block in blocks if block.get("thinking")]
    return {
        **_record(line, "gemini", [part for block in blocks for part in _said(block)]),
        "thoughts": thoughts,
        "model": model or None,
        "tokens": _tokens(message.get("usage")),
        "answer": string(message.get("id")) or None,
    }


def _thought(line: Part, block: Part) -> Part:
    description = string(block.get("thinking"))
    return {"subject": "", "description": description, "timestamp": line.get("timestamp")}


def _said(block: Part) -> list[Part]:
    kind = block.get("type", "text")
    if kind == "text":
        return [{"text": string(block.get("text"))}]
    if kind in ("tool_use", "server_tool_use"):
        call = {"id": block.get("id"), "name": block.get("name"), "args": block.get("input")}
        return [{"functionCall": call}]
    return _media(block)


def _tokens(usage: object) -> Part | None:
    if not isinstance(usage, dict):
        return None
    names = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    fresh, cached, written = (count(usage.get(name)) for name in names)
    output = count(usage.get("output_tokens"))
    given = fresh + cached + written
    return {
        "input": given,
        "output": output,
        "cached": cached,
        "thoughts": 0,
        "tool": 0,
        "total": given + output,
        "written": written,
    }


# --- what the user and the tools said --------------------------------------------------------


def _user(line: Part) -> Part | None:
    if line.get("isMeta") is True:
        return None
    content = mapping(line.get("message")).get("content")
    blocks = parts_of(content)
    replies = [_reply(line, block) for block in blocks if block.get("type") == "tool_result"]
    text = "\n".join(string(block.get("text")) for block in blocks if "text" in block)
    if replies:
        return _record(line, "user", replies)
    if line.get("isCompactSummary") is True:
        return _notice(line, text)
    if _begins_with(text, _PRINTED):
        return _notice(line, "\n".join(part.strip("\n") for part in _inside(text, _PRINTED)))
    if mapping(line.get("origin")).get("kind") == "task-notification":
        return _notice(line, "\n\n".join(map(str.strip, _inside(text, _TASK))) or text)
    if line.get("rowSource") == "harness" or text.startswith(_INTERRUPTED):
        return _notice(line, text.strip().strip("[]"))
    return _prompt(line, blocks, text)


def _prompt(line: Part, blocks: list[Part], text: str) -> Part:
    command = _TYPED_COMMAND.match(text)
    if command is not None:
        arguments = _inside(text, ("command-args",))[:1]
        words = map(str.strip, (command[1], *arguments))
        parts: list[Part] = [{"text": " ".join(filter(None, words))}]
    elif (shell := _TYPED_SHELL.match(text)) is not None:
        parts = [{"text": f"!{shell[1]}"}]
    else:
        parts = [part for block in blocks for part in _said(block)]
    return {**_record(line, "user", parts), "prompt": True}


def _begins_with(text: str, names: Sequence[str]) -> bool:
    """Return whether a text begins with an element of one of these names."""
    start = text.lstrip()
    return any(start.startswith(f"<{name}>") and f"</{name}>" in start for name in names)


def _inside(text: str, names: Sequence[str]) -> list[str]:
    """Return what is in the elements of these names.

    The text is read once, however many elements have no end; a pattern would read it for each.
    """
    contents = []
    ended = set(names)
    at = 0
    while (opening := _OPENING.search(text, at)) is not None:
        name = opening[1]
        at = opening.end()
        end = text.find(f"</{name}>", at) if name in ended else -1
        if end < 0:
            ended.discard(name)
        else:
            contents.append(text[at:end])
            at = end
    return contents


def _media(block: Part) -> list[Part]:
    """Return an image or a document as a part; nothing for a block of another type."""
    source = mapping(block.get("source"))
    mime, name = string(source.get("media_type")), string(block.get("title"))
    match source.get("type"):
        case "base64":
            return [
                {"inlineData": {"mimeType": mime, "data": source.get("data"), "displayName": name}}
            ]
        case "url":
            url = string(source.get("url"))
            return [{"fileData": {"mimeType": mime, "fileUri": url, "displayName": name}}]
        case "text":
            return [{"text": string(source.get("data"))}]
        case _:
            return []


def _attachment(line: Part) -> Part | None:
    """Return a prompt that was typed while the model worked; nothing for other attachments."""
    attachment = mapping(line.get("attachment"))
    is_typed = attachment.get("type") == "queued_command" and not attachment.get("isMeta")
    if not is_typed or attachment.get("commandMode", "prompt") != "prompt":
        return None
    blocks = parts_of(attachment.get("prompt"))
    text = "\n".join(string(block.get("text")) for block in blocks if "text" in block)
    return _prompt(line, blocks, text)


# --- results of calls ------------------------------------------------------------------------


def _reply(line: Part, block: Part) -> Part:
    told = parts_of(block.get("content"))
    output = "\n".join(string(part.get("text")) for part in told if "text" in part)
    detail = mapping(line.get("toolUseResult"))
    reply = {
        "id": block.get("tool_use_id"),
        "name": "",
        "response": {"output": output},
        "parts": [part for inner in told for part in _media(inner)],
        "status": "success",
        "timestamp": line.get("timestamp"),
        "agentId": string(detail.get("agentId")) or None,
    }
    if block.get("is_error") is not True:
        return {"functionResponse": {**reply, "resultDisplay": claude_display(detail)}}
    code = _EXIT_CODE.match(output)
    if code is not None:
        ended = {"exitCode": int(code[1]), "resultDisplay": output[code.end() :]}
        return {"functionResponse": {**reply, **ended}}
    failed = {"response": {"error": output}, "status": _status(line, output)}
    return {"functionResponse": {**reply, **failed}}


def _status(line: Part, error: str) -> str:
    kind = line.get("toolDenialKind")
    by_user = line.get("holdsPersonsWords") is True
    if kind in _CANCELLED_KINDS or (kind and by_user) or error.startswith(_CANCELLED):
        return "cancelled"
    return "denied" if kind or _DENIED.match(error) else "error"


# --- what the program said -------------------------------------------------------------------

_SILENT = frozenset({"stop_hook_summary", "turn_duration", "file_snapshot", "thinking_tokens"})
_LEVELS = {"error": "error", "warning": "warning"}


def _system(line: Part) -> Part | None:
    subtype = string(line.get("subtype"))
    text = string(line.get("content"))
    if line.get("isMeta") is True or subtype in _SILENT:
        return None
    if subtype == "compact_boundary":
        return _boundary(line)
    if subtype == "api_error":
        text = _api_error(line.get("error"))
    printed = _inside(text, _PRINTED)
    if printed:
        text = "\n".join(printed)
    if not text:
        return None if printed else {"type": f"system/{subtype}"}
    return _notice(line, text, _LEVELS.get(string(line.get("level")), "info"))


def _boundary(line: Part) -> Part | None:
    tokens = mapping(line.get("compactMetadata")).get("preTokens")
    before = f" ({tokens:,} tokens before)" if type(tokens) is int else ""
    notice = _notice(line, f"The conversation was compacted here{before}.")
    return None if notice is None else {**notice, "parent": line.get("logicalParentUuid")}


def _api_error(error: object) -> str:
    """Return the innermost message of an error; the API's own stands in several objects."""
    message = ""
    while isinstance(error, dict):
        message = string(error.get("message")) or message
        error = error.get("error")
    return message or "A request to the model failed; Claude Code tries again."
