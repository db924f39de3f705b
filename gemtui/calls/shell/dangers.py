"""Find the parts of a shell command that the user should check before allowing it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from gemtui.calls.env_files import hook_variables, is_risky
from gemtui.calls.shell import programs
from gemtui.calls.shell.command_safety import CommandSafety, judge
from gemtui.calls.shell.parser import CommandSpan, spans
from gemtui.calls.shell.quote import shell_words
from gemtui.calls.shell.targets import LEAVES, Reach
from gemtui.text import holds_controls


class Danger(NamedTuple):
    """A dangerous part of a command, and the reason.

    `start`, `end`: its position in characters; the end is exclusive.
    """

    start: int
    end: int
    why: str


UNREADABLE = "it can't be parsed"
LONGEST: Final = 20_000
"""The longest command, in characters, that is analysed."""
_SUBSTITUTES: Final = {
    "command_substitution": "it uses the output of one command as arguments of another",
    "process_substitution": "it passes a command's output as if it were a file",
    "heredoc_redirect": "it passes text to a command as if it were a file",
}
_WRITES: Final = "it writes a file"
_SAFE_TARGET: Final = re.compile(
    r"[0-9]*>{1,2}\s*/dev/null|[0-9]*>&[0-9-]|&>{1,2}\s*/dev/null|[0-9]*<(?!>).*", re.DOTALL
)
_REDIRECT: Final = re.compile(r"[^<>]*[<>&|]+\s*")
_SETS: Final = re.compile(r"([A-Za-z_]\w*)(?:\[.*\])?\+?=", re.ASCII | re.DOTALL)
_GIT_VALUED: Final = frozenset(["-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path", "--config-env"])
_GIT_CONFIGURES: Final = re.compile(r"-c.*|--config-env.*|--exec-path=.*", re.DOTALL)
_CONFIGURES: Final = "it changes git's configuration, which can make git run programs"
_MAY_NOT_HOLD: Final = re.compile(r"[(|{;\n]|(?<![&>])&(?![&>])")
"""Syntax that may keep a `cd` from affecting all the commands that follow it."""
_LOADS: Final = "it sets a variable that can make programs run"
_HIDDEN: Final = "one of its arguments can run a program or write a file"
_ANY_CODE: Final = "it runs any code passed to it"
_DELETES: Final = frozenset(
    ["rm", "rmdir", "unlink", "shred", "truncate", "dd", "mkfs", "wipefs", "fdisk", "parted", "srm"]
)
_RUNS: Final = frozenset(["eval", "exec", "source", ".", "xargs", "parallel", "crontab", "at", "batch"])
_GIT: Final = frozenset(
    [
        "push",
        "reset",
        "clean",
        "checkout",
        "restore",
        "rebase",
        "filter-branch",
        "stash",
        "gc",
        "rm",
        "config",
        "switch",
    ]
)
_BEYOND: Final = frozenset(
    ["publish", "unpublish", "push", "deploy", "release", "upload", "delete", "destroy", "rm", "rmi", "prune", "purge"]
)


def dangers(command: str, project: Path | None = None, folder: str | None = None) -> tuple[Danger, ...]:
    """Return the dangerous parts of a command, in order; () if none are found.

    `project`: the run's folder; None skips the check for writes outside the project. `folder`: the
    folder the command runs in; None means the project.
    """
    if len(command) > LONGEST or (found := spans(command)) is None:
        return (Danger(0, len(command), UNREADABLE),)
    reach = None if project is None else Reach.of(project, folder)
    seen: list[Danger] = []
    for span in found:
        reach, reasons = _why(span, command, reach)
        seen += (Danger(span.start, span.end, why) for why in dict.fromkeys(reasons))
    if not seen and judge(command) is CommandSafety.DANGEROUS:
        return (Danger(0, len(command), "Gemini CLI classifies it as dangerous"),)
    return tuple(seen)


def _why(span: CommandSpan, command: str, reach: Reach | None) -> tuple[Reach | None, list[str]]:
    """Return where the next part of a command can run, and why this part is dangerous.

    `span`: this part. `reach`: the folders it may run in; None skips the check of the paths
    it writes. The first value returned is the `reach` of the next part.
    """
    text = command[span.start : span.end]
    if span.kind in _SUBSTITUTES:
        return reach, [_SUBSTITUTES[span.kind]]
    if span.kind == "file_redirect":
        return reach, [] if _SAFE_TARGET.fullmatch(text) else [*_of_redirect(text, reach)]
    if span.kind in ("variable_assignment", "declaration_command"):
        return reach, [*_of_assignments(text)]
    if span.kind == "test_command":
        return reach, [_HIDDEN] if programs.hides_a_program("[[", _words(text)) else []
    if span.kind != "command":
        return reach, []
    variables, rest = _words_of(span.name, text)
    first = next(_of_program(span.name, rest), None)
    found = [] if first is None else [first]
    if any(is_risky(name) or hook_variables({name: "/"}) for name in variables):
        found.append(_LOADS)
    if reach is None:
        return None, found
    if span.name in ("cd", "pushd"):
        reach = reach.after_cd(rest, certain=not _MAY_NOT_HOLD.search(command))
        return reach, [*found, LEAVES] if reach.is_outside else found
    return reach, [*found, *reach.dangers(span.name, rest)]


def _of_assignments(text: str) -> Iterator[str]:
    """Yield why a command's variable assignments are dangerous, as in `export PATH=.`."""
    words = _words(text)
    names = [sets[1] for word in words if (sets := _SETS.match(word))]
    if any(is_risky(name) or hook_variables({name: "/"}) for name in names):
        yield _LOADS
    if programs.hides_a_program("export", words):
        yield _HIDDEN


def _of_redirect(text: str, reach: Reach | None) -> Iterator[str]:
    yield _WRITES
    if reach is not None and (target := _REDIRECT.match(text)):
        for word in _words(text[target.end() :]):
            yield from reach.redirection_dangers(word)


def _words_of(program: str, text: str) -> tuple[list[str], list[str]]:
    """Return the names of variables set before a program, and the program's arguments.

    In `A=1 make all`, these are `A` and `all`.
    """
    found, variables = _words(text), []
    while found and found[0] != program and (sets := _SETS.match(found[0])):
        variables.append(sets[1])
        found.pop(0)
    return variables, found[1:]


def _words(text: str) -> list[str]:
    """Split a command into words, leaving variables as `$NAME`; [] if that fails."""
    try:
        return [word.text for word in shell_words(text, lambda name: f"${name}")]
    except ValueError:
        return []


def _of_program(program: str, rest: list[str]) -> Iterator[str]:
    """Yield why a command is dangerous, judging by its program and arguments."""
    yield from _of_words(program, rest)
    if program.rsplit("/", 1)[-1] in _STARTERS:
        for at, word in enumerate(rest):
            if word.rsplit("/", 1)[-1] in _STARTED:
                yield from _of_words(word, rest[at + 1 :])


def _of_words(program: str, rest: list[str]) -> Iterator[str]:
    name = program.rsplit("/", 1)[-1].lower()
    if rest in (["--version"], ["--help"]) and _NAME.fullmatch(program):
        return
    if name == "git":
        configures, rest = _of_git(rest)
        if configures:
            yield _CONFIGURES
    if programs.hides_a_program(name, rest):
        yield _HIDDEN
    second = next((word for word in rest if not word.startswith("-")), "")
    why = programs.NEVER.get(name, programs.DELETES if name.startswith("mkfs.") else "")
    if holds_controls(program) or not _NAME.fullmatch(program):
        yield "its name is quoted, computed or unusual"
    if why == programs.DELETES and name not in _DELETES:
        return
    if why == programs.RUNS and name not in _RUNS:
        return
    if name == "find" or (name == "set" and set(rest) <= _STRICT):
        why = ""
    if why:
        yield why
    if name in programs.SHELLS | programs.LANGUAGES and not second.endswith(_SCRIPTS):
        yield _ANY_CODE
    if _PYTHON.fullmatch(name) and (not second or "-c" in rest):
        yield _ANY_CODE
    if name == "find" and not _FIND_ACTS.isdisjoint(rest):
        yield programs.NEVER["find"]
    if name == "git" and second in _GIT and " ".join(rest[:2]) not in _GIT_LOOKS:
        yield programs.ONLY["git"][1]
    if name in programs.TOOLS and name != "git" and second in _BEYOND:
        yield programs.BEYOND if second in ("publish", "push", "deploy") else programs.DELETES


def _of_git(rest: list[str]) -> tuple[bool, list[str]]:
    """Return whether git's global options set configuration, and the words after them."""
    configures, at = False, 0
    while at < len(rest) and rest[at].startswith("-"):
        configures = configures or bool(_GIT_CONFIGURES.fullmatch(rest[at]))
        at += 2 if rest[at] in _GIT_VALUED else 1
    return configures, rest[at:]


_NAME: Final = re.compile(r"[\w./@%+:,^-]+", re.ASCII)
_STARTERS: Final = frozenset(
    ["env", "nohup", "time", "nice", "ionice", "timeout", "gtimeout", "command", "builtin", "stdbuf", "setsid", "xargs"]
)
_STARTED: Final = _DELETES | programs.SHELLS | {"sudo", "doas", "curl", "wget", "git", "eval"}
"""Programs that are also checked if another program, such as `env`, starts them.

Checking more programs would cause too many false alarms.
"""
_FIND_ACTS: Final = frozenset(
    ["-delete", "-exec", "-execdir", "-ok", "-okdir", "-fls", "-fprint", "-fprint0", "-fprintf"]
)
_GIT_LOOKS: Final = ("config --get", "config --list", "config -l", "stash list", "stash show")
_STRICT: Final = frozenset(["-e", "-u", "-x", "-eu", "-ex", "-eux", "-euo", "-euxo", "-o", "pipefail"])
_PYTHON: Final = re.compile(r"(?:python|pypy)[\d.]*")
_SCRIPTS: Final = (".sh", ".js", ".mjs", ".cjs", ".pl", ".rb", ".php", ".lua", ".R", ".jl", ".tcl")
