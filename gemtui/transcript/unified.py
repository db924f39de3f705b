"""Convert a stored record to the Claude-compatible unified message.

This format is meant for data exchange. It reorders a message (thinking, tool calls with their
results, then text) and renames tools, so it differs from what the app shows. The stored record is
kept unchanged under `_original`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, TypedDict

from gemtui.agents import Agent
from gemtui.calls.paths import PATH_ARGUMENTS
from gemtui.transcript.content import answer_text, is_feedback, text_of, thoughts_of, typed
from gemtui.transcript.model import Thought, ToolCall
from gemtui.transcript.parts import Part, instant, mapping, objects, parts_of, string, usage_of
from gemtui.transcript.tools import call_from_parts, raw_from_parts, tool_call
from gemtui.transcript.usage import Usage

UnifiedRole = Literal["user", "assistant", "system"]


class TextBlock(TypedDict):
    """Text from the user, the model, or the CLI."""

    type: Literal["text"]
    text: str


class ThinkingBlock(TypedDict):
    """The summary of a thought: "subject: description"."""

    type: Literal["thinking"]
    thinking: str


class ToolUseBlock(TypedDict):
    """A tool call, with Claude's name and arguments if Claude has such a tool."""

    type: Literal["tool_use"]
    id: str
    name: str
    input: dict[str, Any]


class ToolResultBlock(TypedDict):
    """The result of a tool call: its output, or else its error, or else ""."""

    type: Literal["tool_result"]
    tool_use_id: str
    content: str
    is_error: bool


class Base64Source(TypedDict):
    """Binary content contained in the record; `data` is base64."""

    type: Literal["base64"]
    media_type: str
    data: str


class UrlSource(TypedDict):
    """The address of binary content."""

    type: Literal["url"]
    url: str


class ImageBlock(TypedDict):
    """An image, or other binary content of the given `media_type`."""

    type: Literal["image"]
    source: Base64Source | UrlSource


UnifiedBlock = TextBlock | ThinkingBlock | ToolUseBlock | ToolResultBlock | ImageBlock


class UnifiedUsage(TypedDict, total=False):
    """The token counts under Claude's names; unknown counts are left out.

    `input_tokens` includes `cache_read_input_tokens`. `output_tokens` does not include thoughts.
    `total_tokens` is input + output + thoughts + tool; the counts of thoughts and tool are only in
    `_original`.
    """

    input_tokens: int
    output_tokens: int
    total_tokens: int
    cache_read_input_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class UnifiedMessage:
    """A message in the Claude-compatible format.

    `content`: the blocks, or the stored string if there are no blocks. If the CLI added files to a
    prompt, the text is only what the user typed (`displayContent`). `timestamp`: milliseconds since
    1970; None if unknown. `tool`: the agent's name. `original`: the stored record.
    """

    id: str
    role: UnifiedRole
    content: str | tuple[UnifiedBlock, ...]
    timestamp: int | None
    tool: str = Agent.GEMINI.value
    model: str | None = None
    usage: UnifiedUsage | None = None
    original: Mapping[str, Any] = field(repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form; an unknown model or usage is left out."""
        shape: dict[str, Any] = {
            "id": self.id,
            "role": self.role,
            "content": self.content if isinstance(self.content, str) else list(self.content),
            "timestamp": self.timestamp,
            "tool": self.tool,
        }
        if self.model is not None:
            shape["model"] = self.model
        if self.usage is not None:
            shape["usage"] = self.usage
        return {**shape, "_original": self.original}


Find = Callable[[str], Part | None]
"""Returns what other records contain for the id of a call, or None."""


def _nothing(_id: str) -> Part | None:
    return None


def parse_message(
    record: Mapping[str, Any], *, reply: Find = _nothing, call: Find = _nothing
) -> UnifiedMessage:
    """Convert a stored message record to the Claude-compatible format.

    Never raises, whatever the record contains. `record`: a message of a `.jsonl` log or of a
    `.json` file. Tool calls that exist only as `functionCall` parts, as in restored histories,
    become tool_use blocks; `functionResponse` parts become tool_result blocks. Such a call's result
    is in another record: `call` returns the call's `toolCalls` entry by its id, and `reply` its
    functionResponse, or None.
    """
    role = _role(record)
    asked = instant(record.get("timestamp"))
    blocks = tuple(_blocks(role, record, reply, call))
    content = record.get("content")
    return UnifiedMessage(
        id=string(record.get("id")),
        role=role,
        content=blocks or (content if isinstance(content, str) else ""),
        timestamp=_milliseconds(asked),
        model=string(record.get("model")) or None,
        usage=_usage(usage_of(record.get("tokens"))),
        original=record,
    )


def _role(record: Mapping[str, Any]) -> UnifiedRole:
    type = record.get("type")
    if type == "gemini":
        return "assistant"
    return "user" if type == "user" and not is_feedback(record) else "system"


def _milliseconds(time: datetime | None) -> int | None:
    return None if time is None else round(time.timestamp() * 1000)


def _usage(usage: Usage | None) -> UnifiedUsage | None:
    if usage is None:
        return None
    counts: UnifiedUsage = {}
    if usage.input is not None:
        counts["input_tokens"] = usage.input
    if usage.output is not None:
        counts["output_tokens"] = usage.output
    if usage.total is not None:
        counts["total_tokens"] = usage.total
    if usage.cached is not None:
        counts["cache_read_input_tokens"] = usage.cached
    return counts or None


# --- blocks ----------------------------------------------------------------------------------


def _user_blocks(record: Part) -> Iterator[UnifiedBlock]:
    parts = parts_of(record.get("content"))
    for part in parts:
        if isinstance(response := part.get("functionResponse"), Mapping):
            yield _tool_result(call_from_parts({}, response), string(response.get("id")))
    if (text := typed(record).text).strip():
        yield {"type": "text", "text": text}
    yield from _images(parts)


def _assistant_blocks(record: Part, find_reply: Find, find_call: Find) -> Iterator[UnifiedBlock]:
    for thought in thoughts_of(record):
        thinking = _thinking(thought)
        if thinking:
            yield {"type": "thinking", "thinking": thinking}
    content = record.get("content")
    parts = parts_of(content)
    yield from _calls(record, parts, find_reply, find_call)
    yield from _text(answer_text(content))
    yield from _images(parts)


def _system_blocks(record: Part) -> Iterator[UnifiedBlock]:
    yield from _text(text_of(record.get("content")))


def _blocks(
    role: UnifiedRole, record: Part, find_reply: Find, find_call: Find
) -> Iterator[UnifiedBlock]:
    if role == "assistant":
        return _assistant_blocks(record, find_reply, find_call)
    return _user_blocks(record) if role == "user" else _system_blocks(record)


def _thinking(thought: Thought) -> str:
    return ": ".join(filter(None, (thought.subject, thought.description)))


def _text(text: str) -> Iterator[UnifiedBlock]:
    if text.strip():
        yield {"type": "text", "text": text}


def _images(parts: list[Part]) -> Iterator[UnifiedBlock]:
    for part in parts:
        data, file = mapping(part.get("inlineData")), mapping(part.get("fileData"))
        if data:
            yield {"type": "image", "source": _inline(data)}
        elif file:
            url = string(file.get("fileUri"))
            yield {"type": "image", "source": {"type": "url", "url": url}}


def _inline(data: Part) -> Base64Source:
    return {
        "type": "base64",
        "media_type": string(data.get("mimeType")),
        "data": string(data.get("data")),
    }


# --- tool calls ------------------------------------------------------------------------------


def _calls(
    record: Part, parts: list[Part], find_reply: Find, find_call: Find
) -> Iterator[UnifiedBlock]:
    stored = objects(record.get("toolCalls"))
    ids = {string(raw.get("id")) for raw in stored} - {""}
    named = [
        raw
        for raw in _named_calls(parts, find_reply, find_call)
        if string(raw.get("id")) not in ids
    ]
    for number, raw in enumerate([*stored, *named]):
        call = tool_call(raw)
        id = call.id or f"{string(record.get('id'))}:{number}"
        yield _tool_use(call, id)
        if parts_of(raw.get("result")):
            yield _tool_result(call, id)


def _named_calls(parts: list[Part], find_reply: Find, find_call: Find) -> Iterator[Part]:
    """Yield calls that the message names only in parts, in the form of `toolCalls[]` entries."""
    for part in parts:
        if isinstance(call := part.get("functionCall"), Mapping):
            id = string(call.get("id"))
            yield find_call(id) or raw_from_parts(call, find_reply(id))


def _tool_use(call: ToolCall, id: str) -> ToolUseBlock:
    name, unified_input = _TOOLS.get(call.name, (call.name, dict))
    return {"type": "tool_use", "id": id, "name": name, "input": unified_input(call.args)}


def _tool_result(call: ToolCall, id: str) -> ToolResultBlock:
    return {
        "type": "tool_result",
        "tool_use_id": id,
        "content": call.output or call.error or "",
        "is_error": call.status.failed or call.error is not None,
    }


def _keys(**sources: tuple[str, ...]) -> Callable[[Part], dict[str, Any]]:
    """Return a function that picks values from a tool call's arguments and renames them.

    `sources`: for each new name, the argument names to try; the first one that is set is used.
    """

    def pick(args: Part) -> dict[str, Any]:
        picked = {}
        for key, names in sources.items():
            for name in names:
                if key not in picked and args.get(name) is not None:
                    picked[key] = args[name]
        return picked

    return pick


def _search(args: Part) -> dict[str, Any]:
    """Convert a search's arguments to those of Grep, which has no others like them."""
    wanted = _grep(args)
    if args.get("names_only") is True:
        wanted["output_mode"] = "files_with_matches"
    if isinstance(case_sensitive := args.get("case_sensitive"), bool):
        wanted["-i"] = not case_sensitive
    return wanted


def _fetch(args: Part) -> dict[str, Any]:
    """Convert a fetch's arguments; most versions name the address only in the prompt."""
    wanted = _page(args)
    address = _ADDRESS.search(string(args.get("prompt")))
    if "url" not in wanted and address is not None:
        wanted = {"url": address[0].rstrip(_AFTER_ADDRESS), **wanted}
    return wanted


_ADDRESS = re.compile(r"https?://[^\s<>\"'`]+")
_AFTER_ADDRESS = ".,;:!?)]}"
"""Punctuation that ends a sentence or a bracket rather than an address."""
_read = _keys(
    file_path=PATH_ARGUMENTS,
    offset=("offset",),
    limit=("limit",),
    start_line=("start_line",),
    end_line=("end_line",),
)
_write = _keys(file_path=PATH_ARGUMENTS, content=("content",))
_edit = _keys(file_path=PATH_ARGUMENTS, old_string=("old_string",), new_string=("new_string",))
_FOLDER = ("dir_path", "path")
_list = _keys(path=_FOLDER)
_shell = _keys(command=("command",), description=("description",))
_glob = _keys(pattern=("pattern",), path=_FOLDER)
_grep = _keys(
    pattern=("pattern",),
    path=_FOLDER,
    glob=("include_pattern", "include"),
    head_limit=("total_max_matches",),
    **{"-A": ("after",), "-B": ("before",), "-C": ("context",)},
)
_page = _keys(url=("url",), prompt=("prompt",))

_TOOLS: dict[str, tuple[str, Callable[[Part], dict[str, Any]]]] = {
    "read_file": ("Read", _read),
    "write_file": ("Write", _write),
    "replace": ("Edit", _edit),
    "list_directory": ("Glob", lambda args: {"pattern": "*", **_list(args)}),
    "glob": ("Glob", _glob),
    "grep_search": ("Grep", _search),
    "search_file_content": ("Grep", _search),
    "run_shell_command": ("Bash", _shell),
    "google_web_search": ("WebSearch", dict),
    "web_fetch": ("WebFetch", _fetch),
}
