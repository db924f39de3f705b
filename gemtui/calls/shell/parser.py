"""Parse shell commands as the CLI does, into parts, redirections and wrappers.

A wrapper is a command that runs another one, such as `bash -c`. Like the CLI, this module uses
tree-sitter's bash grammar (assets/gemini-cli.md#shell-rules).
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from typing import Final, Literal

import tree_sitter_bash
from tree_sitter import Language, Node, Parser, Tree

from gemtui.calls.javascript import BLANKS
from gemtui.calls.shell.words import shell_words

_LANGUAGE: Final = Language(tree_sitter_bash.language())
_PARSE_SECONDS: Final = 1.0
_SHORT: Final = 4096
_NULS: Final = "\0" * 4096
"""A run of NULs so long that parsing it would take too long.

Parsing time grows quadratically with the number of NULs, and the parser can't be interrupted while
it reads them.
"""

_NO_COMMANDS: Final = {
    "file_redirect": "redirection (>)",
    "heredoc_redirect": "heredoc (<<)",
    "herestring_redirect": "herestring (<<<)",
    "command_substitution": "command substitution",
    "backtick_substitution": "backtick substitution",
    "process_substitution": "process substitution",
    "subshell": "subshell",
}
"""The names that the CLI's policy engine gives to parts that aren't commands.

A command that happens to have one of these names is skipped as well.
"""

_SPACES: Final = re.compile("[\u0085\u2000-\u2006\u2008-\u200a\u2028\u2029\u205f\u3000]")
_LETTERS: Final = re.compile(r"[^\W\x00-\xff]")
_SIGNS: Final = re.compile(r"(?!\A\ufeff)[^\x00-\xff\u2000]")

_ARITHMETIC: Final = "(("
"""The name of the command that the CLI's grammar finds in `((1+1))`.

This project's version of the grammar, 0.25.1, finds a block instead.
"""

_SKIPPED: Final = frozenset((*_NO_COMMANDS.values(), "redirection (<)"))
_REDIRECTS: Final = frozenset(
    ("redirected_statement", "file_redirect", "heredoc_redirect", "herestring_redirect")
)

_WRAPPER: Final = re.compile(
    r"_*(?:(?:~+/)?(?:sh|bash|zsh)_+-c|cmd\.exe_+/c"
    r"|(?:powershell|pwsh)(?:\.exe)?_+(?:-NoProfile_+)?-Command)_+".replace(
        "_", f"[{BLANKS}]"
    ).replace("~", f"[^{BLANKS}]"),
    re.IGNORECASE | re.ASCII,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandPart:
    """One command inside a command line.

    * `text`: the command as written, without surrounding whitespace.
    * `name`: the command's name without quotes.
    * `whole`: whether this is the entire command line. If not, the CLI's policy engine judges this
      command separately.
    * `inner`: the command inside a wrapper such as `bash -c '...'`, which the policy engine judges
      as well; "" if it is empty. None if there is no wrapper.
    """

    text: str
    name: str
    whole: bool
    inner: str | None

    @property
    def redirected(self) -> bool:
        """Whether the part itself contains a redirection."""
        return has_redirection(self.text)


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedCommand:
    """A command line as the CLI's policy engine parses it.

    * `parsed`: False if the line is blank, can't be parsed within a second, or is something the
      policy engine refuses (`${x@P}`, or nothing but assignments). In that case there are no parts.
    * `parts`: the line's commands in order. Redirections and subshells themselves are not included,
      so the tuple may be empty (`> f`).
    * `redirected`: whether the line contains a redirection anywhere.
    """

    text: str
    parsed: bool
    parts: tuple[CommandPart, ...]
    redirected: bool

    @property
    def roots(self) -> tuple[str, ...]:
        """The names of the commands, in order."""
        return tuple(part.name for part in self.parts)


def parse_command(text: str) -> ParsedCommand:
    """Parse a command line as the CLI's policy engine does. Never raises."""
    return _read_short(text) if len(text) <= _SHORT else _read(text)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandSpan:
    """The position of a command or another construct in a command line.

    `kind`: the grammar's name for the construct, such as `command`. `name`: a command's name,
    without quotes. `start`, `end`: positions in characters; the end is exclusive.
    """

    kind: str
    name: str
    start: int
    end: int


def spans(text: str) -> tuple[CommandSpan, ...] | None:
    """Return a command line's commands, assignments, redirections and substitutions.

    They are in order and include nested ones. Returns None if the command line can't be parsed.
    """
    source = _CommandBytes(text)
    tree = source.tree() if text.strip(BLANKS) else None
    if tree is None or tree.root_node.has_error:
        return None
    command_spans: list[CommandSpan] = []
    stack = [tree.root_node]
    while stack:
        node = stack.pop()
        name = _name(node, node.type, source.slice)
        if not name and node.type == "variable_assignment" and not _is_within_command(node):
            name = "="
        if name:
            start, end = source.span(node)
            command_spans.append(CommandSpan(kind=node.type, name=name, start=start, end=end))
        stack.extend(reversed(node.children))
    return tuple(command_spans)


def _is_within_command(node: Node) -> bool:
    return node.parent is not None and node.parent.type in ("command", "declaration_command")


def has_redirection(text: str) -> bool:
    """Return whether the CLI's policy engine finds a redirection in a command line."""
    return ("<" in text or ">" in text) and parse_command(text).redirected


def unwrapped(text: str) -> str:
    """Return the command inside a wrapper such as `bash -c '...'`.

    Only wrappers that the CLI's policy engine recognises count. Any other command is returned
    without surrounding whitespace.
    """
    match = _WRAPPER.match(text)
    if not match:
        return text.strip(BLANKS)
    inner = text[match.end() :].strip(BLANKS)
    if len(inner) < 2 or inner[0] != inner[-1] or inner[0] not in "\"'":
        return inner
    if inner[0] == '"' and match.group().rstrip(BLANKS).endswith("-c"):
        try:
            words = shell_words(inner, lambda name: "$" + name)
        except ValueError:
            words = []
        if len(words) == 1 and words[0].plain:
            return words[0].text
    return inner[1:-1]


@dataclass(slots=True)
class _Walked:
    """The result of walking a syntax tree.

    `parts`: the position, name and text of each part. `redirected`: whether there is a redirection.
    `refused`: whether the CLI's policy engine refuses the command.
    """

    parts: list[tuple[int, str, str]] = field(default_factory=list)
    redirected: bool = False
    refused: bool = False


def _read(text: str) -> ParsedCommand:
    source = _CommandBytes(text)
    tree = source.tree() if text.strip(BLANKS) else None
    if tree is None:
        return ParsedCommand(
            text=text, parsed=False, parts=(), redirected="<" in text or ">" in text
        )
    seen = _walk(tree.root_node, source.slice)
    if not seen.parts or seen.refused or tree.root_node.has_error:
        return ParsedCommand(text=text, parsed=False, parts=(), redirected=seen.redirected)
    seen.parts.sort(key=lambda part: part[0])
    parts = tuple(_part(name, piece, text) for _, name, piece in seen.parts if name not in _SKIPPED)
    return ParsedCommand(text=text, parsed=True, parts=parts, redirected=seen.redirected)


_read_short = lru_cache(maxsize=8192)(_read)


def _part(name: str, piece: str, command: str) -> CommandPart:
    inner = unwrapped(piece)
    return CommandPart(
        text=piece, name=name, whole=piece == command, inner=None if inner == piece else inner
    )


class _CommandBytes:
    """A command as bytes for the parser; maps byte offsets back to characters."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._width = 1 if text.isascii() else 2
        self._data = text.encode() if text.isascii() else _plainer(text).encode("utf-16-le")

    def tree(self) -> Tree | None:
        """Return the syntax tree; None if parsing would take too long."""
        if _NULS in self._text:
            return None
        parser = Parser(_LANGUAGE)
        data = self._data
        encoding: Literal["utf8", "utf16le"] = "utf8" if self._width == 1 else "utf16le"
        if len(data) <= _SHORT:
            return parser.parse(data, encoding=encoding)
        end = time.thread_time() + _PARSE_SECONDS
        try:
            return parser.parse(
                lambda offset, _point: data[offset : offset + 65536],
                encoding=encoding,
                progress_callback=lambda _offset, _error: time.thread_time() > end,
            )
        except ValueError:
            return None

    def span(self, node: Node) -> tuple[int, int]:
        """Return where a node starts and ends in the command; the end is exclusive."""
        return node.start_byte // self._width, node.end_byte // self._width

    def slice(self, node: Node) -> str:
        """Return the text of a node."""
        start, end = self.span(node)
        return self._text[start:end]


def _plainer(text: str) -> str:
    """Replace characters above U+00FF with one representative of their class.

    The grammar only distinguishes whether such a character is a space, a letter or neither.
    Without this replacement, its scanner may read past the end of a C library table when it looks
    up the class.
    """
    return _SIGNS.sub("\u00ac", _LETTERS.sub("\u00e9", _SPACES.sub("\u2000", text)))


def _walk(root: Node, text_of: Callable[[Node], str]) -> _Walked:
    seen = _Walked()
    stack = [root]
    while stack:
        node = stack.pop()
        kind = node.type
        name = _name(node, kind, text_of)
        if name:
            seen.parts.append((node.start_byte, name, text_of(node).strip(BLANKS)))
        if kind in _REDIRECTS:
            seen.redirected = True
        elif kind == "expansion" and _is_prompt(node, text_of):
            seen.refused = True
        stack.extend(reversed(node.children))
    return seen


def _name(node: Node, kind: str, text_of: Callable[[Node], str]) -> str:
    """Return the command name that the CLI's policy engine sees in a syntax node.

    `kind`: the node's type. `text_of`: returns a node's text. Returns "" if the node has no name.
    """
    if kind == "command":
        named = node.child_by_field_name("name")
    elif kind in ("declaration_command", "unset_command", "test_command"):
        named = node.child(0)
    elif kind == "compound_statement":
        return _ARITHMETIC if node.children[0].type == _ARITHMETIC else ""
    else:
        return _NO_COMMANDS.get(kind, "")
    return _unquoted(text_of(named)) if named else ""


def _unquoted(name: str) -> str:
    if len(name) >= 2 and name[0] == name[-1] and name[0] in "\"'":
        return name[1:-1]
    return name.strip(BLANKS)


def _is_prompt(expansion: Node, text_of: Callable[[Node], str]) -> bool:
    """Return whether an expansion is like `${x@P}`, which executes the value of x.

    The CLI's policy engine refuses such a command.
    """
    texts = [text_of(child) for child in expansion.children]
    return any(a == "@" and b in ("p", "P") for a, b in pairwise(texts))
