"""The output of a shell command, without Gemini CLI's additions.

See assets/gemini-cli.md#tool-calls.
"""

from __future__ import annotations

import re

_HEAD = re.compile(r"(?:Command: (?s:.*?)\nDirectory: [^\n]*\n)?(?:Output|Stdout): ")
_TAIL = re.compile(
    r"(?:^|\n)(?:Error: \(none\)\n)?"
    r"(?:Exit Code: (?P<code>-?\d{1,10}|\(none\))\n?)?"
    r"(?:(?:Signal|Background PIDs|Process Group PGID): [^\n]*\n?)*\s*\Z"
)
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
    text, written = output or "", shown.rstrip("\n")
    head = _HEAD.match(text)
    start = 0 if head is None else head.end()
    found = _end(text, start + len(written) if text.startswith(written, start) else start)
    code = None if found is None else found["code"]
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
