"""Interpret stored tool calls: their kind, status, results, and displays."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

import orjson
from msgspec.structs import replace

from gemtui.calls.paths import PATH_ARGUMENTS, asked_path, in_project, recorded_path
from gemtui.text import holds_controls
from gemtui.transcript import tool_output
from gemtui.transcript.displays import (
    display_of,
    is_rebuilt,
    rebuilt_diff,
    table_display,
    written_display,
)
from gemtui.transcript.media import numbered
from gemtui.transcript.model import (
    DiffDisplay,
    Display,
    Image,
    TextDisplay,
    ToolCall,
    ToolStatus,
    excerpt,
)
from gemtui.transcript.parts import (
    Part,
    image_of,
    instant,
    mapping,
    objects,
    parts_of,
    pretty,
    string,
)
from gemtui.transcript.seal import is_sealed, unsealed, without_notice
from gemtui.transcript.tool_output import coloured


class ToolKind(StrEnum):
    """The purpose of a tool, which determines what its card looks like."""

    READ = "read"
    WRITE = "write"
    EDIT = "edit"
    SHELL = "shell"
    SEARCH = "search"
    LIST = "list"
    GLOB = "glob"
    WEB = "web"
    AGENT = "agent"
    TODOS = "todos"
    TOPIC = "topic"
    PLAN = "plan"
    MCP = "mcp"
    MEMORY = "memory"
    ASK = "ask"
    OTHER = "other"


WRITING = (ToolKind.WRITE, ToolKind.EDIT)
"""Kinds of tools that write the file named in their arguments."""

_READING = frozenset(
    {
        ToolKind.READ,
        ToolKind.SEARCH,
        ToolKind.LIST,
        ToolKind.GLOB,
        ToolKind.WEB,
        ToolKind.TODOS,
        ToolKind.TOPIC,
        ToolKind.PLAN,
        ToolKind.ASK,
    }
)
"""Kinds of tools that don't change project files."""

_KINDS = {
    "read_file": ToolKind.READ,
    "read_many_files": ToolKind.READ,
    "get_internal_docs": ToolKind.READ,
    "write_file": ToolKind.WRITE,
    "replace": ToolKind.EDIT,
    "run_shell_command": ToolKind.SHELL,
    "list_background_processes": ToolKind.SHELL,
    "read_background_output": ToolKind.SHELL,
    "grep_search": ToolKind.SEARCH,
    "search_file_content": ToolKind.SEARCH,
    "list_directory": ToolKind.LIST,
    "glob": ToolKind.GLOB,
    "google_web_search": ToolKind.WEB,
    "web_fetch": ToolKind.WEB,
    "invoke_agent": ToolKind.AGENT,
    "delegate_to_agent": ToolKind.AGENT,
    "codebase_investigator": ToolKind.AGENT,
    "generalist": ToolKind.AGENT,
    "cli_help": ToolKind.AGENT,
    "complete_task": ToolKind.AGENT,
    "write_todos": ToolKind.TODOS,
    "update_topic": ToolKind.TOPIC,
    "enter_plan_mode": ToolKind.PLAN,
    "exit_plan_mode": ToolKind.PLAN,
    "list_mcp_resources": ToolKind.MCP,
    "read_mcp_resource": ToolKind.MCP,
    "save_memory": ToolKind.MEMORY,
    "ask_user": ToolKind.ASK,
    "activate_skill": ToolKind.OTHER,
}
"""The kind of each built-in tool of Gemini CLI, including the tools of older versions."""

_KINDS_OF_OTHERS = {
    "Read": ToolKind.READ,
    "NotebookRead": ToolKind.READ,
    "zoom_image": ToolKind.READ,
    "Write": ToolKind.WRITE,
    "Edit": ToolKind.EDIT,
    "MultiEdit": ToolKind.EDIT,
    "NotebookEdit": ToolKind.EDIT,
    "edit": ToolKind.EDIT,
    "notebook_edit": ToolKind.EDIT,
    "Bash": ToolKind.SHELL,
    "BashOutput": ToolKind.SHELL,
    "KillBash": ToolKind.SHELL,
    "KillShell": ToolKind.SHELL,
    "Monitor": ToolKind.SHELL,
    "PowerShell": ToolKind.SHELL,
    "Grep": ToolKind.SEARCH,
    "LS": ToolKind.LIST,
    "Glob": ToolKind.GLOB,
    "WebFetch": ToolKind.WEB,
    "WebSearch": ToolKind.WEB,
    "web_search": ToolKind.WEB,
    "Agent": ToolKind.AGENT,
    "Task": ToolKind.AGENT,
    "TaskOutput": ToolKind.AGENT,
    "TaskStop": ToolKind.AGENT,
    "SendMessage": ToolKind.AGENT,
    "agent": ToolKind.AGENT,
    "task": ToolKind.AGENT,
    "TodoWrite": ToolKind.TODOS,
    "TaskCreate": ToolKind.TODOS,
    "TaskGet": ToolKind.TODOS,
    "TaskList": ToolKind.TODOS,
    "TaskUpdate": ToolKind.TODOS,
    "todo_write": ToolKind.TODOS,
    "EnterPlanMode": ToolKind.PLAN,
    "ExitPlanMode": ToolKind.PLAN,
    "ListMcpResourcesTool": ToolKind.MCP,
    "ReadMcpResourceTool": ToolKind.MCP,
    "AskUserQuestion": ToolKind.ASK,
    "ask_user_question": ToolKind.ASK,
    "Skill": ToolKind.OTHER,
    "ToolSearch": ToolKind.OTHER,
    "skill": ToolKind.OTHER,
    "tool_search": ToolKind.OTHER,
}
"""The kinds of the tools that Claude Code and Qwen Code have besides, or under another name."""

UNKNOWN_TOOL = "unknown_tool"


def kind_of(name: str) -> ToolKind:
    """Return the kind of a tool by its current name or any earlier one.

    A tool that is not built in is of kind MCP or OTHER.
    """
    kind = _KINDS.get(name) or _KINDS_OF_OTHERS.get(name)
    if kind:
        return kind
    if name.startswith("tracker_"):
        return ToolKind.TODOS
    return ToolKind.MCP if name.startswith("mcp_") or "__" in name else ToolKind.OTHER


def may_write(tool: str) -> bool:
    """Return whether a call to this tool can change project files.

    This includes all tools that are not built in.
    """
    return kind_of(tool) not in _READING


def tools_that_read() -> list[str]:
    """Return the names of Gemini CLI's built-in tools that can't change project files."""
    return [name for name in _KINDS if not may_write(name)]


def is_builtin(name: str) -> bool:
    """Return whether an agent has, or once had, a built-in tool with this name."""
    return name in _KINDS or name in _KINDS_OF_OTHERS


# --- one call --------------------------------------------------------------------------------


def tool_call(raw: Mapping[str, Any], *, asked: datetime | None = None) -> ToolCall:
    """Convert a stored `toolCalls[]` entry, whatever its form. Never raises.

    `asked`: the time of the entry's record, from which `duration` is measured. A call without a
    name is named `unknown_tool`. A call without an id gets the id of its response, or else "".
    """
    name = string(raw.get("name")) or UNKNOWN_TOOL
    args = stored_args(raw.get("args"))
    parts = _result_parts(raw)
    output = _output(parts)
    error = _error(parts)
    status = _status(raw, parts, error)
    time = instant(raw.get("timestamp"))
    return ToolCall(
        id=string(raw.get("id")) or _response_id(parts),
        name=name,
        args=args,
        status=status,
        output=output,
        error=error,
        display=_display(raw, name, args, status, output),
        description=excerpt(string(raw.get("description"))) or None,
        display_name=excerpt(string(raw.get("displayName"))) or None,
        time=time,
        duration=_duration(asked, time),
        agent_id=string(raw.get("agentId")) or None,
        images=_images(parts, name, args),
        exit_code=_exit_code(raw, parts),
    )


def call_from_parts(call: Mapping[str, Any], response: Mapping[str, Any] | None) -> ToolCall:
    """Convert a call that exists only as API parts, as in restored messages.

    Calls in checkpoints also have this form. `call`: the object in a `functionCall` part; empty if
    only the response exists. `response`: the object in its `functionResponse` part; if None, the
    call is unconfirmed.
    """
    return tool_call(raw_from_parts(call, response))


_OF_THE_CALL = ("status", "timestamp", "resultDisplay", "agentId", "exitCode")
"""What the responses of other agents say about their calls, as `toolCalls[]` entries do."""


def raw_from_parts(call: Mapping[str, Any], response: Mapping[str, Any] | None) -> Part:
    """Convert a call that exists only as API parts to a `toolCalls[]` entry.

    The arguments are the same as for `call_from_parts`.
    """
    reply = response or {}
    raw = {
        "id": string(call.get("id")) or string(reply.get("id")),
        "name": string(call.get("name")) or string(reply.get("name")),
        "args": call.get("args"),
        "result": None if response is None else [{"functionResponse": response}],
    }
    return raw | {name: reply[name] for name in _OF_THE_CALL if name in reply}


def with_own_result(raw: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a stored call without the replies to other calls in its result.

    The CLI adds such replies to a result when it resumes a session.
    """
    parts = parts_of(raw.get("result"))
    own = _of_this_call(string(raw.get("id")), parts)
    return raw if len(own) == len(parts) else {**raw, "result": own}


def stored_args(value: object) -> Part:
    """Return a stored call's arguments as a mapping, whatever their form.

    Arguments stored as JSON text are parsed. The token that gemtui adds in runs that ask for
    approval is removed. Never raises.
    """
    if isinstance(value, str):
        try:
            value = orjson.loads(value.encode(errors="replace"))
        except orjson.JSONDecodeError:
            return {"raw": value}
    return unsealed(mapping(value))


def _duration(asked: datetime | None, time: datetime | None) -> timedelta | None:
    if asked is None or time is None or time < asked:
        return None
    return time - asked


# --- status ----------------------------------------------------------------------------------

_UNFINISHED = ("validating", "scheduled", "executing", "awaiting_approval")
_CANCELLED = "[Operation Cancelled]"
_DENIED = re.compile(
    r"Tool execution denied by policy|\bpolicy_violation\b"
    r"|requires user confirmation, which is not supported|^Tool execution blocked: "
)
_NOT_REGISTERED = re.compile(r'Tool "[^"]*" not found|\btool_not_registered\b')


def call_status(raw: Mapping[str, Any]) -> ToolStatus:
    """Return how a stored call ended (assets/gemini-cli.md#tool-calls, #refusals).

    A denial is recognised by its error message, which may mention a policy, a confirmation that
    headless runs don't support, or a built-in tool that doesn't exist in this mode. If a call has
    no status, it is derived from its response.
    """
    parts = _result_parts(raw)
    return _status(raw, parts, _error(parts))


def call_end(raw: Mapping[str, Any]) -> tuple[ToolStatus, int | None]:
    """Return how a stored call ended, and the exit code recorded for a shell command.

    The exit code is None for other tools, and if none is recorded, which is usual after a success.
    """
    parts = _result_parts(raw)
    return _status(raw, parts, _error(parts)), _exit_code(raw, parts)


def _status(raw: Mapping[str, Any], parts: list[Part], error: str | None) -> ToolStatus:
    status = raw.get("status")
    if status in ("cancelled", "denied"):
        return ToolStatus(status)
    if status in _UNFINISHED:
        return ToolStatus.UNCONFIRMED
    if error is None and status != "error":
        ended = status == "success" or parts
        if ended and kind_of(string(raw.get("name"))) is ToolKind.SHELL and _is_refused(parts):
            return ToolStatus.REFUSED
        return ToolStatus.SUCCESS if ended else ToolStatus.UNCONFIRMED
    if error is None:
        error = string(raw.get("resultDisplay"))
    return _refusal(string(raw.get("name")), error) or (
        ToolStatus.CANCELLED
        if status != "error" and error.startswith(_CANCELLED)
        else ToolStatus.ERROR
    )


def _exit_code(raw: Mapping[str, Any], parts: list[Part]) -> int | None:
    if isinstance(code := raw.get("exitCode"), int):
        return code
    if kind_of(string(raw.get("name"))) is not ToolKind.SHELL:
        return None
    return _recorded_code(_output(parts), raw.get("resultDisplay"))


def _recorded_code(output: str | None, shown: object) -> int | None:
    if isinstance(shown, list) and tool_output.exit_code(output) is None:
        return None  # putting the screen together takes longer
    return tool_output.exit_code(output, shown=_written(shown))


def is_failed_command(output: str, shown: object) -> bool:
    """Return whether a shell command that the CLI stored as a success failed.

    That is, whether it was refused, or ended with another exit code than 0. `output`: the only one
    in its result. `shown`: what the CLI displayed.
    """
    return tool_output.is_refused(output) or bool(_recorded_code(_unwrapped(output), shown))


def _written(shown: object) -> str:
    """Return a command's output as the user saw it.

    `shown`: the stored output, which is a string or a terminal screen.
    """
    if not isinstance(shown, list):
        return string(shown)
    lines = ("".join(string(token.get("text")) for token in objects(line)) for line in shown)
    return "\n".join(line.rstrip(" ") for line in lines)


def _is_refused(parts: list[Part]) -> bool:
    outputs = (mapping(_response_part(part).get("response")).get("output") for part in parts)
    return any(tool_output.is_refused(string(output)) for output in outputs)


def _refusal(name: str, error: str) -> ToolStatus | None:
    head = error[:2000]
    if _DENIED.search(head) or (name in _KINDS and _NOT_REGISTERED.search(head)):
        return ToolStatus.DENIED
    return None


# --- result ----------------------------------------------------------------------------------


def _result_parts(raw: Mapping[str, Any]) -> list[Part]:
    """Return a call's result as a flat list of parts.

    Parts nested in another part follow the part that contains them.
    """
    parts = parts_of(raw.get("result"))
    if len(parts) > 1:
        parts = _of_this_call(string(raw.get("id")), parts)
    if is_sealed(raw.get("args")):
        parts = [_without_notice(part) for part in parts]
    flat = []
    for part in parts:
        flat.append(part)
        if "parts" in (reply := _response_part(part)):
            flat += parts_of(reply["parts"])
    return flat


def _without_notice(part: Part) -> Part:
    reply = _response_part(part)
    response = mapping(reply.get("response"))
    if not isinstance(output := response.get("output"), str):
        return part
    cleaned = {**response, "output": without_notice(output)}
    return {**part, "functionResponse": {**reply, "response": cleaned}}


def _of_this_call(id: str, parts: list[Part]) -> list[Part]:
    """Return the parts of a result without the replies to other calls.

    When the CLI resumes a session, it stores the replies to all calls of a turn in each of these
    calls (seen in 0.61.0). If any reply has the call's id, the replies with other ids are left out.
    """
    replies = [_response_part(part) for part in parts]
    ids = [string(reply.get("id")) for reply in replies]
    if not id or id not in ids:
        return parts
    return [
        part for part, reply, of in zip(parts, replies, ids, strict=True) if not reply or of == id
    ]


def _response_id(parts: list[Part]) -> str:
    for part in parts:
        id = string(_response_part(part).get("id"))
        if id:
            return id
    return ""


def _response_part(part: Part) -> Part:
    return mapping(part.get("functionResponse"))


def _output(parts: list[Part]) -> str | None:
    """Return the output that the model received, with text parts joined by newlines.

    Returns None if there are no text parts.
    """
    texts = [text for part in parts if (text := _part_output(part)) is not None]
    return "\n".join(texts) if texts else None


def _part_output(part: Part) -> str | None:
    if "functionResponse" not in part:
        text = part.get("text")
        return _unwrapped(text) if isinstance(text, str) and not part.get("thought") else None
    response = _response_part(part).get("response")
    if not isinstance(response, dict):
        return None if response is None else _as_text(response)
    if "output" in response:
        return None if response["output"] is None else _as_text(response["output"])
    return _as_text(response) if response and _response_error(part) is None else None


def _as_text(value: object) -> str:
    return _unwrapped(value) if isinstance(value, str) else pretty(value)


def _unwrapped(text: str) -> str:
    """Return text without the tags that Gemini CLI puts around untrusted output.

    If the output is long, the CLI adds a line before the tags that says where to find all of it.
    """
    start, end = "<untrusted_context>", "</untrusted_context>"
    stripped = text.rstrip()
    if not stripped.endswith(end):
        return text
    head, mark, inner = stripped.partition(start)
    if not mark or not inner.endswith(end) or (head and not head.endswith("\n")):
        return text
    return head + inner.removesuffix(end).strip("\n")


def _error(parts: list[Part]) -> str | None:
    errors = [error for part in parts if (error := _response_error(part)) is not None]
    return "\n".join(errors) if errors else None


def _response_error(part: Part) -> str | None:
    error = mapping(_response_part(part).get("response")).get("error")
    return _as_text(error) if error else None


def _images(parts: list[Part], name: str, args: Part) -> tuple[Image, ...]:
    """Return the binary content in a call's result.

    If the call read a single file, the content gets the file's name.
    """
    images = [image for part in parts if (image := image_of(part)) is not None]
    if len(images) == 1 and not images[0].name and kind_of(name) is ToolKind.READ:
        return numbered([replace(images[0], name=recorded_path(asked_path(args)).name or None)])
    return numbered(images)


# --- display ---------------------------------------------------------------------------------


def _display(
    raw: Part, name: str, args: Part, status: ToolStatus, output: str | None
) -> Display | None:
    markdown = raw.get("renderOutputAsMarkdown") is True
    display = display_of(raw.get("resultDisplay"), markdown=markdown)
    kind = kind_of(name)
    if kind is ToolKind.SHELL and (display is None or isinstance(display, TextDisplay)):
        whole = output if display is None else display.text
        return written_display(tool_output.command_output(whole) if whole == output else whole)
    if kind in (ToolKind.MCP, ToolKind.OTHER) and display in (None, TextDisplay(text=output or "")):
        return table_display(output or "") or coloured(output or "") or display
    if display is not None:
        return display
    return requested_change(kind, args, output) if status is ToolStatus.SUCCESS else None


_CREATED = ("Successfully created", "File created successfully")
"""How the outputs of calls begin that created a file; the second is Claude Code's."""


def requested_change(kind: ToolKind, args: Part, output: str | None) -> DiffDisplay | None:
    """Return the change that a write or edit requested, built from its arguments.

    Use this if the CLI stored no diff. Returns None for other calls.
    """
    path = asked_path(args)
    if kind is ToolKind.WRITE and isinstance(content := args.get("content"), str):
        is_new = (output or "").startswith(_CREATED)
        return rebuilt_diff(path, old=None, new=content, is_new=is_new)
    old, new = args.get("old_string"), args.get("new_string")
    if kind is ToolKind.EDIT and isinstance(old, str) and isinstance(new, str):
        return rebuilt_diff(path, old=old, new=new, is_new=not old)
    return None


# --- subject ---------------------------------------------------------------------------------

_TARGETS: dict[ToolKind, tuple[str, ...]] = {
    ToolKind.READ: (*PATH_ARGUMENTS, "paths"),
    ToolKind.WRITE: PATH_ARGUMENTS,
    ToolKind.EDIT: PATH_ARGUMENTS,
    ToolKind.SHELL: ("command", "pid", "bash_id", "shell_id"),
    ToolKind.SEARCH: ("pattern",),
    ToolKind.LIST: ("dir_path", "path"),
    ToolKind.GLOB: ("pattern",),
    ToolKind.WEB: ("query", "url", "prompt"),
    ToolKind.AGENT: ("agent_name", "objective", "request", "question", "description", "summary"),
    ToolKind.TODOS: ("title", "subject"),
    ToolKind.TOPIC: ("title", "strategic_intent"),
    ToolKind.PLAN: ("plan_filename", "plan_path", "reason", "plan"),
    ToolKind.MEMORY: ("fact",),
    ToolKind.ASK: ("question",),
}


def target(call: ToolCall) -> str:
    """Return what names a call's subject, such as its path or command.

    Paths of files in the project are relative to it. The text is raw and may have several lines; ""
    if there is none.
    """
    asked = target_argument(call)
    return in_project(asked, call.project) if kind_of(call.name) in _ABOUT_PATHS else asked


def target_argument(call: ToolCall) -> str:
    """Return the argument that names a call's subject, as the model wrote it.

    For a tool that is not built in, this is the first argument that is a string or a number.
    """
    for key in _TARGETS.get(kind_of(call.name)) or tuple(call.args):
        argument = _argument(call.args.get(key))
        if argument:
            return argument
    return ""


def _argument(value: object) -> str:
    if isinstance(value, list):
        return " ".join(filter(None, map(string, value)))
    return string(value)


_ABOUT_PATHS = (ToolKind.READ, ToolKind.WRITE, ToolKind.EDIT, ToolKind.LIST)
_CONTENTS = frozenset({"content", "old_string", "new_string"})


def args_hold_controls(args: Mapping[str, Any]) -> bool:
    """Return whether any of a call's arguments contains invisible characters.

    Applies `gemtui.text.holds_controls` to each string, and to each string in a list. File contents
    are not checked, because such characters there don't change what the call does.
    """
    values = (value for name, value in args.items() if name not in _CONTENTS)
    texts = (text for value in values for text in (value if isinstance(value, list) else [value]))
    return any(isinstance(text, str) and holds_controls(text) for text in texts)


def named_file(call: ToolCall, find: Callable[[str], str]) -> str:
    """Return the path of the file that a call names; "" if it names none.

    The path in a diff of Gemini CLI's is the file's own. If there is none, `find` is called with
    the path in the arguments, which the CLI may read as another (assets/gemini-cli.md#effects).
    """
    diff = call.display if isinstance(call.display, DiffDisplay) else None
    if diff is not None and diff.path and not is_rebuilt(diff):
        return diff.path
    asked = asked_path(call.args)
    return find(asked) if asked else ""


def named_paths(args: Mapping[str, Any], file: str) -> tuple[str, ...]:
    """Return the paths that a call names, for `file:` in a query.

    `args`: its arguments. `file`: the file that it names, or "".
    """
    several = args.get("paths")
    named = several if isinstance(several, list) else []
    return tuple([path for path in (file, *named) if path and isinstance(path, str)])


def paths_of_stored(raw: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the `named_paths` of a stored call."""
    args = stored_args(raw.get("args"))
    return named_paths(args, _path_of_diff(raw) or asked_path(args))


def written_path(raw: Mapping[str, Any], status: ToolStatus) -> str | None:
    """Return the path of the file that a stored call wrote, or None.

    `status`: the call's status. Only a successful write or edit wrote a file, although a cancelled
    one still has its proposed diff. The path is absolute if the call has a diff; otherwise it is
    taken from the arguments and may be relative.
    """
    if status is not ToolStatus.SUCCESS or kind_of(string(raw.get("name"))) not in WRITING:
        return None
    return _path_of_diff(raw) or asked_path(stored_args(raw.get("args"))) or None


def _path_of_diff(raw: Mapping[str, Any]) -> str:
    """Return the path in the diff that Gemini CLI stored with a call; "" if there is none."""
    shown = mapping(raw.get("resultDisplay"))
    return string(shown.get("filePath")) if isinstance(shown.get("fileDiff"), str) else ""
