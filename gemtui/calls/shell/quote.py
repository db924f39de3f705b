"""Split commands into words as the CLI does, which differs from a shell.

The CLI classifies commands by the words that the JavaScript package shell-quote returns
(assets/gemini-cli.md#safe-commands). This module reproduces the package's quirks: variables are
empty, `#` starts a comment even inside a word, and an unterminated quote and the character after
`$?` are dropped.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from gemtui.calls.javascript import BLANKS

_OPERATOR = r"\|\||&&|;;|\|&|<\(|<<<|>>|>&|<&|[&;()|<>]"
_BARE = rf"""[^{BLANKS}'"|&;()<>\\]+|\\['"|&;()<> \t]?"""
_TOKEN = re.compile(
    rf"""{_OPERATOR}|(?:{_BARE}|{'"'}(?:[^"\\]++|\\"?)*+"|"(?s:.*)"|'(?:[^'\\]++|\\'?)*+'"""
    r"|'(?s:.*)')++"
)
_WHOLE_OPERATOR = re.compile(_OPERATOR)
_NEEDS_READING = re.compile(r"""['"\\$#*?|&;()<>]""")
_NAME_END = re.compile(r"[^A-Za-z0-9_]")


@dataclass(frozen=True, slots=True)
class ShellWord:
    """A word of a command.

    `plain`: False for an operator, a glob pattern or a comment.
    """

    text: str
    plain: bool = True


def shell_words(text: str, variable: Callable[[str], str] = lambda name: "" if name else "$") -> list[ShellWord]:
    """Split a command into words as the JavaScript package shell-quote does.

    `variable`: returns the value of a variable; called with its name, or with "" for a lone `$`. A
    comment becomes one empty word. Raises ValueError if a `${` is empty or not closed.
    """
    found: list[ShellWord] = []
    for match in _TOKEN.finditer(text):
        token = match.group()
        if _WHOLE_OPERATOR.fullmatch(token):
            found.append(ShellWord(token, plain=False))
        elif not _NEEDS_READING.search(token):
            found.append(ShellWord(token))
        else:
            reader = _Reader(token, variable)
            found.extend(reader.read())
            if reader.commented:
                break
    return found


class _Reader:
    """Resolves the quotes, escapes and variables in one token of a command."""

    def __init__(self, token: str, variable: Callable[[str], str]) -> None:
        self._token = token
        self._variable = variable
        self._at = 0
        self._out: list[str] = []
        self.commented = False

    def read(self) -> list[ShellWord]:
        quote = ""
        escaped = pattern = False
        token, out = self._token, self._out
        while self._at < len(token):
            char = token[self._at]
            pattern = pattern or (not quote and char in "*?")
            if escaped:
                out.append(char)
                escaped = False
            elif quote:
                quote = self._quoted(char, quote)
            elif char in "\"'":
                quote = char
            elif char in "&;()|<>":
                return [ShellWord(token, plain=False)]
            elif char == "#":
                self.commented = True
                return [*([ShellWord("".join(out))] if any(out) else []), ShellWord("", plain=False)]
            elif char == "\\":
                escaped = True
            elif char == "$":
                out.append(self._expanded())
            else:
                out.append(char)
            self._at += 1
        return [ShellWord("".join(out), plain=not pattern)]

    def _quoted(self, char: str, quote: str) -> str:
        """Process a character inside quotes; return the quote that is open afterwards.

        This is "" if the character has closed the quote.
        """
        if char == quote:
            return ""
        if quote == '"' and char == "\\":
            self._at += 1
            after = self._token[self._at : self._at + 1]
            self._out.append(after if after and after in '"\\$' else "\\" + after)
        elif quote == '"' and char == "$":
            self._out.append(self._expanded())
        else:
            self._out.append(char)
        return quote

    def _expanded(self) -> str:
        """Return the value of the variable at the current position.

        The position is advanced to the last character of the variable's name.
        """
        token = self._token
        self._at += 1
        char = token[self._at : self._at + 1]
        if char == "{":
            end = token.find("}", self._at)
            if end <= self._at + 1:
                raise ValueError(f"bad substitution: {token[self._at - 1 :]}")
            name = token[self._at + 1 : end]
            self._at = end
        elif char and char in "*@#?$!_-":
            name = char
            self._at += 1
        else:
            end_match = _NAME_END.search(token, self._at)
            end = end_match.start() if end_match else len(token) + 1
            name = token[self._at : end]
            self._at = end - 1
        return self._variable(name)
