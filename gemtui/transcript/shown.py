"""What a user sees of a tool call: which of its results is shown, and that as plain text."""

from __future__ import annotations

from typing import assert_never

from gemtui.transcript.display_model import (
    Activity,
    AgentDisplay,
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
)
from gemtui.transcript.file_output import FileLines, lines_read
from gemtui.transcript.model import ToolCall
from gemtui.transcript.parts import pretty
from gemtui.transcript.tools import ToolKind, asked_path, kind_of

_DISPLAY_FIRST = (ToolKind.SHELL, ToolKind.TOPIC)
_VERBATIM = (ToolKind.READ, ToolKind.SEARCH, ToolKind.LIST, ToolKind.GLOB, ToolKind.SHELL)


def shown(call: ToolCall) -> Display | None:
    """What to show of a call's result beside its error; None if there is nothing.

    That is what the CLI showed, except where it showed one line ("Read lines 1-20", "Found 6
    matching file(s)") and the model got all of it, and where it showed the error in fewer words.
    """
    display, output = call.display, call.output
    kind = kind_of(call.name)
    if isinstance(display, TextDisplay):
        if call.error:
            return None
        if output is None or kind in _DISPLAY_FIRST or not _says_more(output, display.text):
            return display
        if (lines := file_lines(call)) is not None:
            return TextDisplay(text=lines.text)
        return TextDisplay(text=output, markdown=display.markdown and kind not in _VERBATIM)
    if display is None and output and kind is not ToolKind.SHELL:
        return TextDisplay(text=output)
    return display


def file_lines(call: ToolCall) -> FileLines | None:
    """The lines that a read of one file gave; None for other calls."""
    if kind_of(call.name) is not ToolKind.READ or not asked_path(call.args) or call.images:
        return None
    display = call.display.text if isinstance(call.display, TextDisplay) else ""
    return lines_read(call.output or "", display, call.args)


def _says_more(output: str, display: str) -> bool:
    return len(output) > len(display) or output.count("\n") > display.count("\n")


def output_text(call: ToolCall) -> str:
    """What a call gave as raw plain text, its error first; the empty string if it gave nothing."""
    display = shown(call)
    pieces = (call.error or "", "" if display is None else display_text(display))
    return "\n".join(piece for piece in pieces if piece)


def display_text(display: Display) -> str:
    """A display as raw plain text: a line per match, file, todo and row, tabs between cells."""
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


def hunks(diff: str) -> str:
    """A unified diff of one file without the file names at its head."""
    _, at, rest = f"\n{diff}".partition("\n@@")
    return f"@@{rest}" if at else ""


def _lines(*lines: str) -> str:
    return "\n".join(line for line in lines if line)


def _match(match: Match) -> str:
    place = match.path if match.line is None else f"{match.path}:{match.line}"
    return f"{place}: {match.text}"


def _activity(activity: Activity) -> str:
    words = (activity.kind.replace("_", " "), activity.text, activity.status)
    return " ".join(filter(None, words))
