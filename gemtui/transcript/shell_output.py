"""What a shell command gave, without what Gemini CLI writes around it for the model.

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
"""Characters at the end in which the lines about the end of a command stand."""
_EMPTY = "(empty)"
_REFUSED = "Command injection detected: command substitution syntax"
_BLOCKED = "Blocked: command substitution detected in shell command."
_SUBSTITUTION = re.compile(r"\$\(|`|[<>]\(")


def exit_code(output: str | None, *, shown: str = "") -> int | None:
    """The exit code at the end of what the model got of a command; nowhere else is one.

    `shown`: what the person saw, which is what the command wrote: what looks so there is no code.
    """
    text, written = output or "", shown.rstrip("\n")
    head = _HEAD.match(text)
    start = 0 if head is None else head.end()
    found = _end(text, start + len(written) if text.startswith(written, start) else start)
    code = None if found is None else found["code"]
    return int(code) if code and code != "(none)" else None


def said(output: str | None) -> str:
    """What the command itself said; text without Gemini CLI's lines around it as it is."""
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
    """Whether what the model got says that the shell tool refused a command by itself."""
    return output.startswith(_REFUSED)


def is_blocked(shown: str) -> bool:
    """Whether what a person sees says so, if the command `substitutes`: one may print the same."""
    return shown == _BLOCKED


def substitutes(command: str) -> bool:
    """Whether a command may hold what the shell tool refuses: `$(…)`, backticks, `<(…)`, `>(…)`."""
    return _SUBSTITUTION.search(command) is not None
