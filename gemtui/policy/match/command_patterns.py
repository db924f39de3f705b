"""Build patterns that allow one shell command in the forms that agents use.

The pattern is a `commandRegex`: it begins at the command's first letter, and `"` marks the
command's end (assets/gemini-cli.md#shell-rules). Only plain words may follow the command: no
quotes, `$`, `;`, backquotes, or files after `>`, so that nothing can be hidden in an argument. The
engine checks a chain such as `cd src && npm test` as a whole and each of its parts, so the pattern
matches all of these. A group followed by `?` would make the CLI drop the rule, so `(?:x|)` is used
instead.
"""

from __future__ import annotations

import json
import re

from gemtui.policy.match.pattern_forms import WITHIN, anywhere_pattern

_SPECIAL_IN_COMMANDS = re.compile(r"[.*+?^${}()|\[\]\\/]")
_PLAIN = re.compile(r"[\w./:@^~=+,-]+")
_FOLDER_PATH = r"\w[\w/-]{0,40}"
"""Matches a folder's path, limited in length to keep the search fast."""
_VARIABLE = "(?:CI=1 |CI=true |)"
_ARGUMENTS = r'(?= |")[ \w./:@^~=+,-]*'
_NO_OUTPUT = r'(?![^"]*--o(?!neline))'
"""Excludes git's option `--output`, as in `git log --output=.git/config`.

With that option, a git command could write an alias or a hook, and so run anything later.
"""
_MESSAGE = r' -a?m \\"[^"\\$`]{0,300}\\"'
"""Matches the message in `git commit -m "TEXT"`."""
_PIPED = r'(?: 2>&1|)(?: \| |(?="))'
_SHORTENED = r"(?:(?:tail|head)(?: -n|)(?: -?\d\d?\d?|)|)"
FORMS = "`CI=1` before it, `cd FOLDER &&`, `2>&1`, and `| tail` or `| head`"
"""A description, for the user, of the forms of a command that the pattern allows."""


def command_words(text: str) -> tuple[str, ...]:
    """Split a command into words.

    Raises ValueError if a word isn't plain, or the first word sets a variable.
    """
    words = tuple(text.split())
    odd = next((word for word in words if _PLAIN.fullmatch(word) is None), None)
    if odd is not None:
        raise ValueError(
            f"{odd} is not a plain word: name one command without quotes, *, $, ;, & or >"
        )
    if "=" in words[0]:
        raise ValueError(f"{words[0]} sets a variable: start with the program instead")
    return words


def allowed(words: tuple[str, ...], root: str = "") -> str:
    """Return a commandRegex that allows a command followed by plain arguments.

    `root`: the project's folder; if given, the command may also follow `cd ROOT`. Otherwise, only a
    `cd` to a relative folder is accepted before the command.
    """
    folders = (
        f"{_escaped(root)}|{_FOLDER_PATH}" if root and _PLAIN.fullmatch(root) else _FOLDER_PATH
    )
    command = f"{' '.join(map(_escaped, words))}{_arguments(words)}{_PIPED}"
    return f'(?:cd (?:{folders})(?: && |(?="))|){_VARIABLE}(?:{command}|){_SHORTENED}"'


def covers(words: tuple[str, ...], command: str) -> bool:
    """Return whether the pattern `allowed(words)` would allow a whole command line.

    `words`: the command that the pattern is built for. `command`: the command line, which may add
    arguments and other usual forms (`FORMS`).
    """
    return re.match(allowed(words), json.dumps(command, ensure_ascii=False)[1:]) is not None


_CORE = re.compile(
    rf"(?:cd {_FOLDER_PATH} && )?{_VARIABLE}(.+?)(?: 2>&1)?(?: \| (?:tail|head)\b.*)?"
)


def core_command(command: str) -> str:
    """Return a command without what agents add around it (see `FORMS`).

    Returns "" if the command has more than one line.
    """
    core = _CORE.fullmatch(command)
    return core[1] if core else ""


def _arguments(words: tuple[str, ...]) -> str:
    if words[:2] == ("git", "commit"):
        return _MESSAGE
    return f"{_NO_OUTPUT if words[0] == 'git' else ''}{_ARGUMENTS}"


def allowed_command(pattern: str) -> str:
    """Return the command for which `allowed` built a pattern; "" for other patterns."""
    return _made(pattern)[0]


def allowed_root(pattern: str) -> str:
    """Return the `root` with which `allowed` built a pattern; "" for other patterns."""
    return _made(pattern)[1]


def _made(pattern: str) -> tuple[str, str]:
    made = _MADE.match(pattern)
    if made is None:
        return "", ""
    root = _unescaped(made[1] or "")
    words = tuple(_unescaped(made[2]).split())
    return (" ".join(words), root) if allowed(words, root) == pattern else ("", "")


_MADE = re.compile(
    rf"\(\?:cd \(\?:(?:(.*)\|)?{re.escape(_FOLDER_PATH)}\).*{re.escape(_VARIABLE)}\(\?:(.+?)"
    rf"(?:{re.escape(_MESSAGE)}|(?:{re.escape(_NO_OUTPUT)})?\(\?= \|)"
)


def mentioned_words(pattern: str) -> str:
    """Return the words that a pattern built by `anywhere_pattern` looks for.

    Returns "" for any other pattern.
    """
    words = " ".join(re.findall(r"(?:\\b)?((?:\\[^bx]|[^\\\[\]()|])+)(?:\\b)?", _mentions(pattern)))
    words = _unescaped(words)
    return words if words and anywhere_pattern((words,)) == pattern else ""


def _mentions(pattern: str) -> str:
    front, _, rest = pattern.partition(WITHIN)
    return rest.replace(WITHIN, "()") if front == '"command":"' else ""


def _escaped(text: str) -> str:
    return _SPECIAL_IN_COMMANDS.sub(lambda match: f"\\{match[0]}", text)


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text)
