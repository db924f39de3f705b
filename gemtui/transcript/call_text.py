"""The text of a tool call: the arguments and results that are displayed.

`call_text` returns everything a tool card shows, and search covers the same text. The other
functions return the parts of it that cards and exports render.
"""

from __future__ import annotations

import re
from itertools import groupby
from typing import assert_never

from gemtui.calls.paths import asked_path
from gemtui.transcript.displays import content_diff, hunks
from gemtui.transcript.media import image_text
from gemtui.transcript.model import (
    Activity,
    AgentDisplay,
    Consent,
    DiffDisplay,
    Display,
    FilesDisplay,
    JsonDisplay,
    Match,
    MatchesDisplay,
    ScreenDisplay,
    TableDisplay,
    TextDisplay,
    TodosDisplay,
    ToolCall,
    ToolStatus,
)
from gemtui.transcript.parts import pretty, string
from gemtui.transcript.tool_output import FileLines, lines_read, requested_lines
from gemtui.transcript.tools import ToolKind, is_builtin, kind_of, target

_DISPLAY_FIRST = (ToolKind.SHELL, ToolKind.TOPIC)
_VERBATIM = (ToolKind.READ, ToolKind.SEARCH, ToolKind.LIST, ToolKind.GLOB, ToolKind.SHELL)
_COUNTED = (ToolKind.READ, ToolKind.SEARCH, ToolKind.LIST, ToolKind.GLOB, ToolKind.WEB)
"""Kinds of tools whose results the CLI displays only as a number."""
_REASON_ONLY = (ToolStatus.ERROR, ToolStatus.DENIED, ToolStatus.REFUSED)
_LONG = 300
"""Maximum number of characters of a reason, or of a rule's place, on a card."""
_LINES = frozenset({"start_line", "end_line", "offset", "limit"})
"""The arguments with which a call requests lines of a file."""
_FILE_TEXTS = frozenset({"content", "old_string", "new_string"})
_ESCAPE = re.compile(r'\\(["\\bfnrt]|u[0-9a-f]{4})')
_ESCAPED = {'"': '"', "\\": "\\", "n": "\n"}


# --- whole text ----------------------------------------------------------------------------------


def call_text(call: ToolCall) -> str:
    """Return everything a card can show about a call, in the card's order.

    The text is raw and untrusted. Search covers the same text, so that a card can highlight every
    hit. The names of a built-in tool and of its arguments are left out, because they are the same
    in every call to the tool. Line numbers and gemtui's own words are left out, too.
    """
    asked, gave, line = _asked_text(call), only_reason(call), ""
    if not gave and (shown := shown_display(call)) is not None:
        gave, line = _drawn_text(shown), replaced_line(call, shown)
    about = ("" if is_builtin(call.name) else call.name, target(call), lines_asked(call))
    rest = (gave, asked) if call.status.failed else (asked, gave)
    images = map(image_text, call.images)
    end = (shown_rule(call), shown_reason(call), line)
    return _lines(*about, *_original_texts(call), *rest, *images, *end)


def _asked_text(call: ToolCall) -> str:
    """Return, as text, the arguments that a card's first line and result may not show.

    The lines that a read requested are among them if the first line words them differently: a
    narrow card has no room for them there.
    """
    repeated = repeated_arguments(call) - _LINES
    texts = {name: _plain(value) for name, value in call.args.items() if name not in repeated}
    if not is_builtin(call.name):
        return _lines(*(f"{name}: {text}" for name, text in texts.items()))
    elsewhere = {target(call), *lines_asked(call).split("-")}
    return _lines(*(text for text in texts.values() if text.strip() and text not in elsewhere))


def _plain(value: object) -> str:
    """Return an argument as text: strings unchanged, others as JSON without escapes.

    The result is for display and search, and need not be valid JSON.
    """
    if isinstance(value, str):
        return value
    return _ESCAPE.sub(lambda found: _ESCAPED.get(found[1], " "), pretty(value))


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
    path = asked_path(call.args)
    match None if call.answer is None else call.answer.asked, call.args:
        case {"content": str(asked)}, {"content": str(ran)}:
            return content_diff(path, asked, ran)
        case (
            {"old_string": str(old), "new_string": str(new)},
            {"old_string": str(before), "new_string": str(after)},
        ):
            return content_diff(path, before.replace(old, new) if old else new, after)
    return None


def _original_texts(call: ToolCall) -> tuple[str, ...]:
    if call.answer is None or call.answer.asked is None:
        return ()
    if (command := original_command(call)) is not None:
        return (command,)
    difference = difference_from_original(call)
    return () if difference is None else (_changes(difference.diff),)


# --- request -------------------------------------------------------------------------------------


def repeated_arguments(call: ToolCall) -> frozenset[str]:
    """Return the names of arguments whose values a call's card shows elsewhere.

    The first line of the card or the call's result shows them in full.
    """
    match call.display:
        case DiffDisplay() if hunks(call.display.diff) and not only_reason(call):
            return _FILE_TEXTS
        case TodosDisplay() if not only_reason(call):
            return frozenset({"todos"})
        case TextDisplay() if kind_of(call.name) is ToolKind.TOPIC:
            shown = call.display.text
            return frozenset(name for name, value in call.args.items() if string(value) in shown)
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
    kind, text = kind_of(call.name), "" if display is None else display.text
    if not output or not _is_replaced(kind, text, output):
        return display
    if (lines := file_lines(call)) is not None:
        return TextDisplay(text=lines.text)
    markdown = display is not None and display.markdown and kind not in _VERBATIM
    return TextDisplay(text=output, markdown=markdown)


def replaced_line(call: ToolCall, shown: Display | None) -> str:
    """Return the line that a card shows below its result; "" if there is none.

    That is the line that the CLI displayed if the card shows a longer text instead. Below todos, it
    is what the model received besides them. `shown`: the call's `shown_display`.
    """
    if isinstance(shown, TodosDisplay):
        return _besides(shown, call.output or "")
    line = call.display.text if isinstance(call.display, TextDisplay) else ""
    text = shown.text if isinstance(shown, TextDisplay) else ""
    return line if line != text and "\n" in text.strip() else ""


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
    display = shown_display(call)
    pieces = (call.error or "", "" if display is None else display_text(display))
    return "\n".join(piece for piece in pieces if piece)


def display_text(display: Display) -> str:
    """Return a displayed result as raw plain text.

    Each match, file, todo, or table row has its own line. Table cells are separated by tabs.
    """
    match display:
        case TextDisplay():
            return display.text
        case DiffDisplay():
            return hunks(display.diff)
        case MatchesDisplay():
            return _lines(display.summary, *map(_match, display.matches))
        case FilesDisplay():
            skipped = (f"skipped: {path} {reason}".rstrip() for path, reason in display.skipped)
            return _lines(display.summary, *display.files, *skipped)
        case AgentDisplay():
            state = " ".join(filter(None, (display.agent, display.state, display.reason)))
            return _lines(state, *map(_activity, display.activities), display.result or "")
        case TodosDisplay():
            return _lines(*(f"{todo.status}: {todo.text}" for todo in display.items))
        case ScreenDisplay():
            return "\n".join("".join(span.text for span in line) for line in display.lines)
        case TableDisplay():
            return _lines("\t".join(display.columns), *map("\t".join, display.rows))
        case JsonDisplay():
            return pretty(display.value)
        case _:
            assert_never(display)


def _drawn_text(display: Display) -> str:
    """Return the text of a displayed result as it appears on a card.

    Unlike in `display_text`, parts that the card omits or puts into other words are left out.
    """
    match display:
        case DiffDisplay():
            return _changes(display.diff)
        case MatchesDisplay(matches=()):
            return display.summary
        case MatchesDisplay():
            groups = groupby(display.matches, key=lambda match: match.path)
            return _lines(*(_lines(path, *(each.text for each in some)) for path, some in groups))
        case AgentDisplay():
            steps = (f"{_words(step.kind)}  {step.text}" for step in display.activities)
            return _lines(*steps, display.result or "", display.reason or "")
        case TodosDisplay():
            return _lines(*(f"{todo.text}  {_todo_state(todo.status)}" for todo in display.items))
        case JsonDisplay():
            return _plain(display.value)
        case FilesDisplay():
            skipped = (f"{path}  skipped: {reason}" for path, reason in display.skipped)
            return _lines(*display.files, *skipped, display.summary)
        case TextDisplay() | ScreenDisplay() | TableDisplay():
            return display_text(display)
        case _:
            assert_never(display)


def _todo_state(status: str) -> str:
    """Return a todo's status in words; "" if a card shows it as a symbol."""
    return "" if status in ("completed", "pending") else _words(status)


def _changes(diff: str) -> str:
    """Return a unified diff's changed and unchanged lines as plain text.

    The signs before the lines, the file names, and the line numbers are left out.
    """
    from gemtui.transcript.diffs import (
        GAP,
        diff_lines,
        is_diff_text,
    )  # slow, so not imported earlier

    lines = [line for line in diff_lines(diff.split("\n")) if line.sign != GAP]
    if not lines:
        return diff if any(map(is_diff_text, diff.split("\n"))) else ""
    return "\n".join(line.text for line in lines)


def _lines(*lines: str) -> str:
    return "\n".join(line for line in lines if line)


def _match(match: Match) -> str:
    place = match.path if match.line is None else f"{match.path}:{match.line}"
    return f"{place}: {match.text}"


def _activity(activity: Activity) -> str:
    words = (_words(activity.kind), activity.text, activity.status)
    return " ".join(filter(None, words))


def _words(name: str) -> str:
    return name.replace("_", " ")
