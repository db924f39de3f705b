"""The text of a tool call's card: the request, the person's answer, and the result.

`call_text` returns all of it, and searches cover the same text. The other functions return the
parts of it that cards and exports draw.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gemtui.calls.paths import asked_path
from gemtui.transcript.displays import content_diff, hunks
from gemtui.transcript.media import image_text
from gemtui.transcript.model import (
    Consent,
    DiffDisplay,
    Display,
    TextDisplay,
    TodosDisplay,
    ToolCall,
    ToolStatus,
)
from gemtui.transcript.parts import string
from gemtui.transcript.result_rows import (
    Row,
    RowRole,
    changed_lines,
    joined_lines,
    plain_text,
    result_rows,
    searched_text,
    unescaped,
)
from gemtui.transcript.tool_output import FileLines, lines_read, requested_lines
from gemtui.transcript.tools import ToolKind, is_builtin, kind_of, target, target_argument

_DISPLAY_FIRST = (ToolKind.SHELL, ToolKind.TOPIC)
_VERBATIM = (ToolKind.READ, ToolKind.SEARCH, ToolKind.LIST, ToolKind.GLOB, ToolKind.SHELL)
_COUNTED = (ToolKind.READ, ToolKind.SEARCH, ToolKind.LIST, ToolKind.GLOB, ToolKind.WEB)
"""Kinds of tools whose results the CLI displays only as a number."""
_REASON_ONLY = (ToolStatus.ERROR, ToolStatus.DENIED, ToolStatus.REFUSED)
_LONG = 300
"""Maximum number of characters of a reason, or of a rule's place, on a card."""
_LINES = frozenset({"start_line", "end_line", "offset", "limit"})
"""The arguments with which a call requests lines of a file."""
_DEFAULTS = frozenset({"allow_multiple", "is_background", "replace_all"})
"""The switches of built-in tools that are off unless a call turns them on."""
_FILE_TEXTS = frozenset({"content", "old_string", "new_string"})


# --- whole text ----------------------------------------------------------------------------------


def call_text(call: ToolCall) -> str:
    """Return everything a card can show about a call, in the card's order.

    The text is raw and untrusted. Search covers the same text, so that a card can highlight every
    hit. The names of a built-in tool and of its arguments are left out, because they are the same
    in every call to the tool. Line numbers and gemtui's own words are left out, too.
    """
    request = _request_text(call)
    result = only_reason(call) or searched_text(call_rows(call))
    return joined_lines(
        (
            "" if is_builtin(call.name) else call.name,
            target(call),
            lines_asked(call),
            _original_text(call),
            *((result, request) if call.status.failed else (request, result)),
            *map(image_text, call.images),
            shown_rule(call),
            shown_reason(call),
        )
    )


def _request_text(call: ToolCall) -> str:
    """Return, as text, the arguments that a card's first line and result may not show.

    The lines that a read requested are among them if the first line words them differently: a
    narrow card has no room for them there.
    """
    repeated = omitted_arguments(call) - _LINES
    texts = {name: unescaped(value) for name, value in call.args.items() if name not in repeated}
    if not is_builtin(call.name):
        return joined_lines(f"{name}: {text}" for name, text in texts.items())
    elsewhere = {target_argument(call), *lines_asked(call).split("-")}
    return joined_lines(text for text in texts.values() if text.strip() and text not in elsewhere)


# --- the user's answer ---------------------------------------------------------------------------


def shown_reason(call: ToolCall) -> str:
    """Return the reason that the user gave with an answer, as far as a card shows it."""
    return "" if call.answer is None or shown_rule(call) else call.answer.reason[:_LONG]


def shown_rule(call: ToolCall) -> str:
    """Return which rule made asking unnecessary, as far as a card shows it; "" if none did."""
    allowed = call.answer is None or call.answer.consent is Consent.ALLOWED
    return call.rule[:_LONG] if allowed else ""


def original_command(call: ToolCall) -> str | None:
    """Return the command that Gemini asked for if the user changed it; otherwise None."""
    asked = None if call.answer is None else call.answer.asked
    if asked is None or not isinstance(call.args.get("command"), str):
        return None
    command = asked.get("command")
    return command if isinstance(command, str) else None


def difference_from_original(call: ToolCall) -> DiffDisplay | None:
    """Return the diff between Gemini's and the user's version of a file.

    Returns None if the user didn't change the call, or if it doesn't contain text of a file.
    """
    if call.answer is None:
        return None
    path = asked_path(call.args)
    match call.answer.asked, call.args:
        case {"content": str(asked)}, {"content": str(ran)}:
            return content_diff(path, asked, ran)
        case (
            {"old_string": str(old), "new_string": str(new)},
            {"old_string": str(before), "new_string": str(after)},
        ):
            return content_diff(path, before.replace(old, new) if old else new, after)
    return None


def _original_text(call: ToolCall) -> str:
    command = original_command(call)
    if command is not None:
        return command
    difference = difference_from_original(call)
    return "" if difference is None else changed_lines(difference.diff)


# --- request -------------------------------------------------------------------------------------


def omitted_arguments(call: ToolCall) -> frozenset[str]:
    """Return the names of arguments that a call's card leaves out of the request.

    The first line of the card or the call's result shows them in full, or they are defaults.
    """
    return _repeated(call) | switches_off(call.name, call.args)


def switches_off(tool: str, args: Mapping[str, Any]) -> frozenset[str]:
    """Return the names of a built-in tool's switches that a call leaves off, as they are anyway."""
    if not is_builtin(tool):
        return frozenset()
    return frozenset(name for name in _DEFAULTS if args.get(name) is False)


def _repeated(call: ToolCall) -> frozenset[str]:
    display = call.display
    if isinstance(display, DiffDisplay) and hunks(display.diff) and not only_reason(call):
        return _FILE_TEXTS
    if isinstance(display, TodosDisplay) and not only_reason(call):
        return frozenset({"todos"})
    if isinstance(display, TextDisplay) and kind_of(call.name) is ToolKind.TOPIC:
        return frozenset(name for name, value in call.args.items() if string(value) in display.text)
    if lines_asked(call):
        return _LINES
    return frozenset()


def lines_asked(call: ToolCall) -> str:
    """Return the line range requested by a call that reads a file, such as `1-120`.

    Returns "" if all lines were requested, and for calls that don't read a file.
    """
    if kind_of(call.name) is not ToolKind.READ:
        return ""
    first, last = requested_lines(call.args)
    if first is None and last is None:
        return ""
    return f"{1 if first is None else first}-{'' if last is None else last}"


# --- result --------------------------------------------------------------------------------------


def only_reason(call: ToolCall) -> str:
    """Return a failed call's error if its card shows no other part of the result.

    Returns "" for other calls. The error is the one the model received, or else the one that the
    CLI displayed.
    """
    if call.status not in _REASON_ONLY:
        return (call.error or "") if shown_display(call) is None else ""
    display = call.display.text if isinstance(call.display, TextDisplay) else ""
    return call.error or display or call.output or ""


def shown_display(call: ToolCall) -> Display | None:
    """Return the part of a call's result to show in addition to its error, or None.

    This is what the CLI displayed, with two exceptions. If the CLI displayed at most a single line
    ("Read lines 1-20", "Found 6 matching file(s)"), and the model received more, the whole output
    is shown instead. If what the CLI displayed only shortens the error, it is left out.
    """
    display, output = call.display, call.output
    if not isinstance(display, TextDisplay | None):
        return display
    if display is not None and call.error:
        return None
    kind = kind_of(call.name)
    text = "" if display is None else display.text
    if not output or not _is_replaced(kind, text, output):
        return display
    lines = file_lines(call)
    if lines is not None:
        return TextDisplay(text=lines.text)
    markdown = display is not None and display.markdown and kind not in _VERBATIM
    return TextDisplay(text=output, markdown=markdown)


def call_rows(call: ToolCall) -> list[Row]:
    """Return the rows of a call's result, as `shown_display` chooses it."""
    shown = shown_display(call)
    if shown is None:
        return []
    rows = list(result_rows(shown))
    line = _replaced_line(call, shown)
    return [*rows, Row(RowRole.NOTE, line, plain="")] if line else rows


def _replaced_line(call: ToolCall, shown: Display) -> str:
    """Return the line that a card shows below its result; "" if there is none.

    That is the line that the CLI displayed if the card shows a longer text instead. Below todos, it
    is what the model received besides them.
    """
    if isinstance(shown, TodosDisplay):
        return _besides(shown, call.output or "")
    if isinstance(shown, TextDisplay) and "\n" in shown.text.strip():
        line = call.display.text if isinstance(call.display, TextDisplay) else ""
        return line if line != shown.text else ""
    return ""


def _besides(todos: TodosDisplay, output: str) -> str:
    """Return the lines of an output that don't name any of the todos, as one line."""
    texts = [todo.text for todo in todos.items if todo.text]
    return " ".join(line for line in output.split("\n") if not any(text in line for text in texts))


def _is_replaced(kind: ToolKind, display: str, output: str) -> bool:
    """Return whether a card shows what the model received, not what the CLI displayed.

    This is the case if the CLI displayed at most a single line, and the model received more; for
    some kinds of tools, such as the shell, what the CLI displayed is always preferred.
    """
    if not display.strip():
        return kind is not ToolKind.SHELL
    if kind in _DISPLAY_FIRST or "\n" in display.strip():
        return False
    return (
        kind in _COUNTED or len(output) > len(display) or output.count("\n") > display.count("\n")
    )


def file_lines(call: ToolCall) -> FileLines | None:
    """Return the lines returned by a call that read one file; None for other calls."""
    if kind_of(call.name) is not ToolKind.READ or not asked_path(call.args) or call.images:
        return None
    display = call.display.text if isinstance(call.display, TextDisplay) else ""
    return lines_read(call.output or "", display, call.args)


def output_text(call: ToolCall) -> str:
    """Return a call's output as raw plain text, its error first; "" if there is none."""
    return joined_lines((call.error or "", plain_text(call_rows(call))))
