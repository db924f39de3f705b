"""The outputs of tools without Gemini CLI's additions, and the colours in them.

See assets/gemini-cli.md#tool-calls. SGR sequences become coloured spans; all other control
characters are made harmless by `gemtui.text.clean` when the text is rendered.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, NamedTuple

from msgspec.structs import replace

from gemtui.text import COLOUR, newlines
from gemtui.transcript.model import AnsiSpan, ScreenDisplay

_HEAD = re.compile(r"(?:Command: (?s:.*?)\nDirectory: [^\n]*\n)?(?:Output|Stdout): ")
_TAIL = re.compile(
    r"(?:^|\n)(?:Error: \(none\)\n)?"
    r"(?:Exit Code: (?P<code>-?\d{1,10}|\(none\))\n?)?"
    r"(?:(?:Signal|Background PIDs|Process Group PGID): [^\n]*\n?)*\s*\Z"
)
_CODE, _BEFORE_CODE = "Exit Code: ", "\nError: (none)\n"
_LINES = 2000
"""Number of characters at the end in which to search for the exit code."""
_EMPTY = "(empty)"
_REFUSED = "Command injection detected: command substitution syntax"
_BLOCKED = "Blocked: command substitution detected in shell command."
_SUBSTITUTION = re.compile(r"\$\(|`|[<>]\(")


def exit_code(output: str | None, *, shown: str = "") -> int | None:
    """Return the exit code at the end of the output the model received.

    `shown`: the command's own output as the user saw it; anything in it that looks like an exit
    code is ignored.
    """
    text = output or ""
    written = shown.rstrip("\n")
    head = _HEAD.match(text)
    start = 0 if head is None else head.end()
    if text.startswith(written, start):
        start += len(written)
    named = text.find(_CODE, max(start, len(text) - _LINES))
    if named < 0:
        return None
    match = _TAIL.search(text, max(start, named - len(_BEFORE_CODE)))
    code = None if match is None else match["code"]
    return int(code) if code and code != "(none)" else None


def command_output(output: str | None) -> str:
    """Return the command's own output, without the lines Gemini CLI adds."""
    text = output or ""
    head = _HEAD.match(text)
    if head is None:
        return text
    end = _end(text, head.end())
    inner = text[head.end() : len(text) if end is None else end.start()]
    return "" if inner == _EMPTY else inner


def _end(text: str, start: int) -> re.Match[str] | None:
    return _TAIL.search(text, max(start, len(text) - _LINES))


def is_refused(output: str) -> bool:
    """Return whether the model was told that the shell tool refused a command."""
    return output.startswith(_REFUSED)


def is_blocked(shown: str) -> bool:
    """Return whether the text the CLI displayed is a refusal by the shell tool.

    A command may print the same words, so also check something else, such as `substitutes`.
    """
    return shown == _BLOCKED


def substitutes(command: str) -> bool:
    """Return whether a command may use `$(…)`, backticks, `<(…)`, or `>(…)`.

    The shell tool refuses commands that use any of these.
    """
    return _SUBSTITUTION.search(command) is not None


BASIC = (
    "#000000",
    "#800000",
    "#008000",
    "#808000",
    "#000080",
    "#800080",
    "#008080",
    "#c0c0c0",
    "#808080",
    "#ff0000",
    "#00ff00",
    "#ffff00",
    "#0000ff",
    "#ff00ff",
    "#00ffff",
    "#ffffff",
)
"""The sixteen basic terminal colours, with the values Gemini CLI stores."""
LIMIT = 1_000_000
"""Maximum length, in characters, of a string whose colours are parsed."""
SEQUENCES = 5_000
"""Maximum number of colour changes in a string whose colours are parsed.

Each of them takes as long as hundreds of characters.
"""
_MOST = 32
_PLAIN = AnsiSpan(text="")
_ON = {1: "bold", 2: "dim", 3: "italic", 4: "underline", 7: "inverse"}
_OFF = {22: ("bold", "dim"), 23: ("italic",), 24: ("underline",), 27: ("inverse",)}


def coloured(text: str) -> ScreenDisplay | None:
    """Return a string as a coloured terminal screen.

    Returns None if the string has no colours, is too long, or has too many colour changes.
    """
    if len(text) > LIMIT or not 0 < _sequences(text) <= SEQUENCES:
        return None
    style = _PLAIN
    lines = []
    for line in newlines(text).rstrip("\n").split("\n"):
        spans: list[AnsiSpan] = []
        at = 0
        for sequence in COLOUR.finditer(line):
            spans.append(replace(style, text=line[at : sequence.start()]))
            style = _styled(style, sequence[0])
            at = sequence.end()
        spans.append(replace(style, text=line[at:]))
        lines.append(tuple(span for span in spans if span.text))
    return ScreenDisplay(lines=tuple(lines))


def _styled(style: AnsiSpan, sequence: str) -> AnsiSpan:
    """Return `style` as changed by an SGR sequence (an escape sequence for colours).

    Unsupported codes are ignored.
    """
    codes = _codes(sequence.partition("m")[0].lstrip("\x1b\x9b["))
    changes: dict[str, Any] = {}
    for code in codes:
        if code == 0:
            style = _PLAIN
            changes = {}
        elif code in _ON:
            changes[_ON[code]] = True
        elif code in _OFF:
            changes |= dict.fromkeys(_OFF[code], False)
        elif (ground := _GROUNDS.get(code // 10)) is not None:
            changes |= {ground: _colour(code, codes)}
    return replace(style, **changes)


def _codes(parameters: str) -> Iterator[int]:
    """Yield the codes in an SGR sequence's parameters, such as 1 and 31 in `1;31`.

    Colours in colon notation (`38:5:n`) yield the same codes as those in semicolon notation.
    """
    for group in parameters.split(";")[:_MOST]:
        code, *more = (int(code_text[:4] or 0) for code_text in group.split(":")[:_MOST])
        match more:
            case [5, number, *_] if code in (38, 48):
                yield from (code, 5, number)
            case [2, _, red, green, blue, *_] | [2, red, green, blue] if code in (38, 48):
                yield from (code, 2, red, green, blue)
            case [0, *_] if code == 4:
                yield 24
            case _ if not more or code == 4:
                yield code


def _sequences(text: str) -> int:
    """Count the colour changes in a string, stopping once there are too many.

    The result is at most one more than is permitted.
    """
    return sum(1 for _ in islice(COLOUR.finditer(text), SEQUENCES + 1))


_GROUNDS = {3: "fg", 9: "fg", 4: "bg", 10: "bg"}
"""The field that a colour code sets, by the code without its last digit."""


def _colour(code: int, codes: Iterator[int]) -> str:
    """Return the colour for a code, or "" for the default colour.

    After the codes 38 and 48, the colour is given by further codes, which are taken from `codes`.
    """
    if code % 10 < 8:
        return BASIC[code % 10 + (8 if code >= 90 else 0)]
    return _extended(codes) if code in (38, 48) else ""


def _extended(codes: Iterator[int]) -> str:
    """Return the colour after 38 or 48: `5;n` for one of 256, or `2;r;g;b`."""
    match next(codes, None):
        case 5:
            return _of_256(next(codes, 0))
        case 2:
            red, green, blue = (min(next(codes, 0), 255) for _ in range(3))
            return f"#{red:02x}{green:02x}{blue:02x}"
        case _:
            return ""


def _of_256(number: int) -> str:
    if number < 16:
        return BASIC[number]
    if number < 232:
        levels = (0, 95, 135, 175, 215, 255)
        cube = number - 16
        parts = levels[cube // 36], levels[cube // 6 % 6], levels[cube % 6]
        return "#{:02x}{:02x}{:02x}".format(*parts)
    return "#" + f"{8 + 10 * (min(number, 255) - 232):02x}" * 3


_FILE_HEAD = re.compile(
    r"\n?IMPORTANT: The file content has been truncated\.\n"
    r"Status: Showing lines (?P<lines>(?P<first>\d{1,9})-\d{1,9} of (?P<total>\d{1,9})) total lines"
    r"\.\n"
    r"[^\n]*\n\n--- FILE CONTENT \(truncated\) ---\n"
)
_OLD_HEAD = re.compile(
    r"\[File content (?:partially )?truncated: showing lines "
    r"(?P<lines>(?P<first>\d{1,9})-\d{1,9} of (?P<total>\d{1,9})) total lines[^\n]*\]\n"
)
_SHOWN = ("Read lines ", "Read all ", "Read SVG as text")
_SHORTENED = "... [truncated]"
_PROJECT_CONTEXT = "\n\n--- Newly Discovered Project Context ---\n"
_HOOK = "<hook_context>"
_SEPARATOR = re.compile(r"(?:\A|\n)--- (.+) ---\n\n")


class FileLines(NamedTuple):
    """Lines of a file, and the 1-based number of the first line."""

    first: int
    text: str


def lines_read(output: str, shown: str, args: Mapping[str, Any]) -> FileLines | None:
    """Return the lines of a file that a read call returned; None for any other output.

    `output`: the output that the model received, which may also be merely a message. `shown`: what
    the CLI displayed. `args`: the call's arguments. If a read returns only part of a file, the CLI
    puts a notice for the model before the lines; this notice is removed. Because the file may
    itself begin with such a notice, the result is None unless `shown` has the same line numbers as
    the notice.
    """
    if shown.strip() and not shown.startswith("Read lines "):
        return None
    head = _FILE_HEAD.match(output)
    if head is not None:
        own = shown.startswith(f"Read lines {head['lines']} from ")
        return FileLines(int(head["first"]), output[head.end() :]) if own else None
    return FileLines(max(1, requested_lines(args)[0] or 1), output)


class FilePart(NamedTuple):
    """Lines of a file in the output of a read.

    `first`: the 1-based number of the first line. `total`: the number of lines in the file,
    counting the empty string after a final line feed as a line; None if unknown. `certain`: whether
    the file had exactly these lines, apart from line endings.
    """

    first: int
    text: str
    total: int | None
    certain: bool


def part_read(output: str, shown: str, args: Mapping[str, Any]) -> FilePart | None:
    """Return what a read call shows of a file, and whether that is certain.

    Returns None for any other output. The arguments are the same as for `lines_read`. The part is
    not certain if Gemini CLI or a hook added something or if lines were shortened
    (assets/gemini-cli.md#tool-calls).
    """
    if shown.strip() and not shown.startswith(_SHOWN):
        return None
    text, added, _ = output.partition(_PROJECT_CONTEXT)
    certain = not added and _HOOK not in output
    first = max(1, requested_lines(args)[0] or 1)
    total = None
    for head in (_FILE_HEAD, _OLD_HEAD):
        match = head.match(text)
        if match is not None:
            certain &= match["lines"] in shown
            first, total = int(match["first"]), int(match["total"])
            text = text[match.end() :]
            break
    lines = text.split("\n")
    certain &= not any(line.endswith(_SHORTENED) for line in lines)
    return FilePart(first, text, first - 1 + len(lines) if total is None else total, certain)


def files_read(output: str) -> Iterator[tuple[str, str]]:
    """Yield the name and text of each file in the output of `read_many_files`.

    A file that itself contains a separator line is split incorrectly.
    """
    inner = output.removesuffix("\n--- End of content ---").removesuffix("\n")
    _, *pieces = _SEPARATOR.split(inner)
    for name, text in zip(pieces[::2], pieces[1::2], strict=True):
        yield name, text.removesuffix("\n").removesuffix("\n")


def requested_lines(args: Mapping[str, Any]) -> tuple[int | None, int | None]:
    """Return the first and last line (1-based) that a read call requested.

    A number is None if it is unspecified.
    """
    first, last, offset, limit = map(
        _number, map(args.get, ("start_line", "end_line", "offset", "limit"))
    )
    if offset is not None or limit is not None:
        start = (offset or 0) + 1
        return start, None if limit is None else start + limit - 1
    return first, last


def _number(value: object) -> int | None:
    return value if type(value) is int and 0 <= value < 10**9 else None
