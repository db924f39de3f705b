"""Split a command into words: as bash does, and as the CLI does when it judges commands.

`plain_commands` follows bash and is stricter than most parsers: if a word depends on variables,
files or other things outside the command, it raises `Unclear`. So it returns exactly the words that
the programs get, except that file patterns are not expanded.

`shell_words` reproduces the JavaScript package shell-quote, by whose words the CLI classifies
commands (assets/gemini-cli.md#safe-commands), with its quirks: variables are empty, `#` starts a
comment even inside a word, and an unterminated quote and the character after `$?` are dropped.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from gemtui.calls.javascript import BLANKS
from gemtui.text import holds_controls, visible_line

_OPERATOR = r"\|\||&&|;;|\|&|<\(|<<<|>>|>&|<&|[&;()|<>]"
_BARE = rf"""[^{BLANKS}'"|&;()<>\\]+|\\['"|&;()<> \t]?"""
_QUOTED_TOKEN = re.compile(
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


def shell_words(
    text: str, variable: Callable[[str], str] = lambda name: "" if name else "$"
) -> list[ShellWord]:
    """Split a command into words as the JavaScript package shell-quote does.

    `variable`: returns the value of a variable; called with its name, or with "" for a lone `$`. A
    comment becomes one empty word. Raises ValueError if a `${` is empty or not closed.
    """
    read_words: list[ShellWord] = []
    for match in _QUOTED_TOKEN.finditer(text):
        token = match.group()
        if _WHOLE_OPERATOR.fullmatch(token):
            read_words.append(ShellWord(token, plain=False))
        elif not _NEEDS_READING.search(token):
            read_words.append(ShellWord(token))
        else:
            reader = _Reader(token, variable)
            read_words.extend(reader.read())
            if reader.commented:
                break
    return read_words


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
                return [
                    *([ShellWord("".join(out))] if any(out) else []),
                    ShellWord("", plain=False),
                ]
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


_TOKEN: Final = re.compile(
    r"""(?P<blank>[ \t]+)|(?P<end>&&|\|\||[|;\n])|'(?P<single>[^']*)'"""
    r"""|"(?P<double>(?:[^"\\$`]|\\[^\n])*)"|\\(?P<escaped>[^\n])"""
    r"""|(?P<bare>[^ \t\n|;&()<>'"\\$`{}]+)"""
)
_ESCAPED: Final = re.compile(r'\\([$`"\\])')
_TILDE: Final = re.compile(r"(?:\A|[:=])~")
_GLOB: Final = re.compile(r"[*?[]")
_ASSIGNS: Final = re.compile(r"[A-Za-z_]\w*(?:\[.*\])?\+?=", re.ASCII)
_CAN_FOLLOW_NOTHING: Final = ("\n",)
_CAN_END: Final = ("\n", ";", "")
_WHY: Final = {
    "$": "it contains a variable or a substitution",
    "`": "it contains a substitution",
    ">": "it contains a redirection",
    "<": "it contains a redirection",
    "(": "it contains parentheses outside of quotes",
    ")": "it contains parentheses outside of quotes",
    "{": "it contains braces outside of quotes",
    "}": "it contains braces outside of quotes",
    "&": "it starts a process in the background",
    "'": "it contains an unclosed quote",
    "\\": "it contains a line break after a backslash",
}


class Unclear(Exception):
    """Raised if the words of a command can't be determined from the command alone.

    The message is a clause.
    """


@dataclass(frozen=True, slots=True)
class PlainWord:
    """A word without its quotes.

    `glob`: the index of the first unquoted pattern character (`*`, `?` or `[`); None if there is
    none.
    """

    text: str
    glob: int | None = None


def first_unseen_character(command: str) -> str | None:
    """Describe the first invisible or unusual whitespace character, as a clause.

    Returns None if there is none. JavaScript, and so the CLI, splits words at more whitespace
    characters than bash does.
    """
    if not holds_controls(command):
        return None
    odd = next((char for char in command if char in BLANKS and holds_controls(char)), None)
    if odd is None:
        return "it contains invisible characters"
    return f"it contains U+{ord(odd):04X}, which bash doesn't treat as a space"


def plain_commands(text: str) -> tuple[tuple[PlainWord, ...], ...]:
    """Return the words of each command in a list or pipeline, as in `a | b && c`.

    Only words, quotes, `|`, `||`, `&&`, `;` and newlines are supported. Anything else raises
    Unclear, such as variables, redirections, assignments, comments, compound commands, and
    whitespace that bash does not recognise.
    """
    why = first_unseen_character(text)
    if why is not None:
        raise Unclear(why)
    commands: list[tuple[PlainWord, ...]] = []
    words: list[PlainWord] = []
    reader = _Word()
    last = ""
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise Unclear(_WHY.get(text[at], "it contains an unclosed quote"))
        kind = match.lastgroup
        at = match.end()
        if kind not in ("blank", "end"):
            reader.add(kind or "", match[kind or 0])
            continue
        words += reader.finish()
        if kind == "end":
            last = match[0]
            if words:
                commands.append(_checked(words))
                words = []
            elif last not in _CAN_FOLLOW_NOTHING:
                raise Unclear("one of its parts has no command")
    words += reader.finish()
    if words:
        commands.append(_checked(words))
    elif last not in _CAN_END or not commands:
        raise Unclear("one of its parts has no command")
    return tuple(commands)


def _checked(words: list[PlainWord]) -> tuple[PlainWord, ...]:
    if _ASSIGNS.match(words[0].text):
        raise Unclear("it sets a variable")
    return tuple(words)


class _Word:
    """The word that is being parsed, collected piece by piece."""

    def __init__(self) -> None:
        self._pieces: list[str] | None = None
        self._glob: int | None = None

    def add(self, kind: str, text: str) -> None:
        """Append a piece of the word. Raises Unclear.

        `kind`: how the piece is quoted; a group of `_TOKEN`.
        """
        before = "".join(self._pieces or ())
        if kind == "double":
            text = _ESCAPED.sub(r"\1", text)
        elif kind == "bare":
            self._check(text, first=self._pieces is None)
            glob = _GLOB.search(text)
            if glob and self._glob is None:
                self._glob = len(before) + glob.start()
        self._pieces = [before, text]

    @staticmethod
    def _check(text: str, *, first: bool) -> None:
        if first and text.startswith("#"):
            raise Unclear("it contains a comment")
        if _TILDE.search(text):
            raise Unclear("it contains `~`, which means a home folder")
        # in some locales, old versions of bash treat these two bytes as whitespace
        odd = next((char for char in text if not {0x85, 0xA0}.isdisjoint(char.encode())), None)
        if odd is not None:
            raise Unclear(f"some shells split words at `{visible_line(odd)}` outside of quotes")

    def finish(self) -> list[PlainWord]:
        """Return the completed word, in a list, and start the next one.

        The list is empty if no piece has been added.
        """
        pieces, glob = self._pieces, self._glob
        self._pieces = self._glob = None
        return [] if pieces is None else [PlainWord("".join(pieces), glob)]
