"""Choose the command prefix to suggest for a shell command, or a reason for none.

A rule with a prefix switches off the CLI's own check for dangerous commands
(assets/gemini-cli.md#safe-commands): everything that begins with the prefix is allowed. So a prefix
is suggested only if no arguments can make the command delete, gain rights, publish, or run
arbitrary commands.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from gemtui.calls.shell.program_table import program_table, words_before

_PLAIN = re.compile(r"[\w./@%+:,^-]+", re.ASCII)
_ASSIGNED = re.compile(r"\w+\+?=", re.ASCII)
_PYTHON = re.compile(r"(?:python|pypy)[\d.]*w?")
_PIP = re.compile(r"pip[\d.]*")
_BLANKS = re.compile(r"[ \t\n]+")
"""Matches what separates words in Bash; `str.split()` splits at more characters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prefix:
    """A prefix to suggest as a rule's commandPrefix.

    `opens`: a description of what else the prefix allows.
    """

    text: str
    opens: str

    @property
    def program(self) -> str:
        """The name of the program, which is the prefix's first word."""
        return self.text.partition(" ")[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class NoPrefix:
    """A command for which no prefix is suggested, and the reason.

    `what`: the words that the prefix would have had. `why`: the reason, as a clause.
    """

    what: str
    why: str


_ANYTHING = "with any arguments"
_CHECKS = "with any arguments; options such as --fix change files, and plugins run code"
_CODE = "with any arguments; it runs code, which can do anything that a program can do"


def _is_in(name: str, *groups: str) -> bool:
    return program_table().is_in(name, *groups)


def _why(name: str) -> str:
    return program_table().reason(name)


def prefix_of(text: str) -> Prefix | NoPrefix:
    """Return the prefix to suggest for one command, or why there is none.

    `text`: one part of a command line, without surrounding whitespace, as the engine checks it. The
    prefix is the program's name, followed by the subcommand for programs that have some, and by a
    third word if two are too general (`npm run test`).
    """
    words = _words(text)
    if not words:
        first = next(iter(_BLANKS.split(text)), "")
        if _ASSIGNED.match(first):
            return NoPrefix(what=first.partition("=")[0] + "=…", why="a variable is set before it")
        return NoPrefix(what=first[:40], why="its name is quoted, computed or unusual")
    return _prefix(words, 0)


def _words(text: str) -> list[str]:
    """Return a command's leading words, up to the first one that would need quoting.

    Returns [] if the command begins with an assignment to a variable.
    """
    plain: list[str] = []
    for word in text.split(" "):
        if not _PLAIN.fullmatch(word) or (not plain and _ASSIGNED.match(word)):
            break
        plain.append(word)
    return plain


def _prefix(words: list[str], at: int) -> Prefix | NoPrefix:
    """Return the prefix for the program `words[at]`, or why there is none.

    The words before it belong to a program that starts this one, such as `npx`.
    """
    if at >= len(words):
        return _no(words, _why("runs"))
    name = _name(words[at])
    second = words[at + 1] if at + 1 < len(words) else ""
    plain = name.lower()
    never = program_table().why_never(plain)
    if never is not None:
        return _no(words[: at + 1], never)
    if name == "python":
        return _python(words, at)
    before = words_before([name, second])
    if name in ("timeout", "gtimeout"):
        return _prefix(words, at + before) if before else _no(words[: at + 1], _why("runs"))
    if before:
        return _started(words, at + before)
    if _is_in(name, "shells", "languages"):
        return _file(words, at)
    if _is_in(name, "tools"):
        return _tool(words, at, name)
    return Prefix(text=" ".join(words[: at + 1]), opens=_opens(name))


def _name(word: str) -> str:
    """Return a program's name without its folder.

    For Python and pip, the version is removed as well.
    """
    name = word.rsplit("/", 1)[-1]
    if _PYTHON.fullmatch(name):
        return "python"
    return "pip" if _PIP.fullmatch(name) else name


def _no(words: list[str], why: str) -> NoPrefix:
    return NoPrefix(what=" ".join(words), why=why)


def _started(words: list[str], at: int) -> Prefix | NoPrefix:
    """Return the prefix if one program starts another, as in `npx eslint`.

    `at`: the position of the program that is started.
    """
    if at >= len(words) or words[at].startswith("-"):
        return _no(words[:at], _why("runs"))
    prefix = _prefix(words, at)
    if isinstance(prefix, NoPrefix):
        return prefix
    return Prefix(text=prefix.text, opens=_CODE)


def _python(words: list[str], at: int) -> Prefix | NoPrefix:
    if words[at + 1 : at + 2] != ["-m"]:
        return _file(words, at)
    module = words[at + 2] if at + 2 < len(words) else ""
    if not module or module.startswith("-") or _is_in(module, "evaluate"):
        return _no(words[: at + 3], _why("runs"))
    if module in ("pip", "uv"):
        return _tool(words, at + 2, module)
    return Prefix(text=" ".join(words[: at + 3]), opens=_CODE)


def _file(words: list[str], at: int) -> Prefix | NoPrefix:
    """Return the prefix for an interpreter and the script it runs.

    No prefix is suggested if an option follows the interpreter, because it could run anything.
    """
    if at + 1 >= len(words) or words[at + 1].startswith(("-", "/dev/", "/c", "/k")):
        return _no(words[: at + 2], "it runs any code passed to it")
    return Prefix(text=" ".join(words[: at + 2]), opens=_CODE)


def _tool(words: list[str], at: int, name: str) -> Prefix | NoPrefix:
    second = words[at + 1] if at + 1 < len(words) else ""
    named = words[: at + 2]
    if not second:
        return _no(named, "it has no subcommand, so a prefix rule would allow all subcommands")
    if second.startswith(("-", "+")):
        return _no(named, "it starts with an option, so a prefix rule would allow all subcommands")
    only = program_table().why_only(name)
    if only is not None and second != "compose":
        if second in program_table().subcommands(name):
            return Prefix(text=" ".join(named), opens=_only(name))
        return _no(named, only)
    if _is_in(second, "unsuggested"):
        return _no(
            named, _why("beyond") if second in ("publish", "push", "deploy") else _why("runs")
        )
    if _is_in(second, "general") or name == "gh":
        return _third(words, at, name)
    return Prefix(text=" ".join(named), opens=_installs(second))


def _third(words: list[str], at: int, name: str) -> Prefix | NoPrefix:
    third = words[at + 2] if at + 2 < len(words) else ""
    named = words[: at + 3]
    if not third or third.startswith("-"):
        return _no(named, "a prefix rule would allow anything that follows")
    bad = _is_in(third, "unsuggested") or third == "run"
    if bad or (name == "gh" and not _is_in(third, "gh")):
        return _no(named, _why("beyond" if name == "gh" else "runs"))
    return Prefix(text=" ".join(named), opens=_installs(third))


def _only(name: str) -> str:
    if name == "kubectl":
        return "with any arguments; options such as --kubeconfig can run programs"
    return "with any arguments; options such as --output can write a file"


def _installs(word: str) -> str:
    if _is_in(word, "installing"):
        return "with any arguments; it can install any package and run its code"
    return _CODE


def _opens(name: str) -> str:
    if _is_in(name, "reads"):
        return "with any arguments; it can read any file that you can read"
    if _is_in(name, "checks"):
        return _CHECKS
    if _is_in(name, "harmless"):
        return _ANYTHING
    if _is_in(name, "makes"):
        return "with any arguments; it creates files or folders but changes none"
    return _CODE
