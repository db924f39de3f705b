"""Find the parts of a shell command that the user should check before allowing it.

Among them are files that it may write outside the project, and files that decide what is run later.
Only the words of the command are examined, so this is a warning rather than a barrier: a program
may write other files as well.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import chain, islice
from pathlib import Path
from typing import Final, NamedTuple

from gemtui.calls.env_files import hook_variables, is_risky
from gemtui.calls.later_files import why_may_run_later, why_runs_later
from gemtui.calls.shell.command_safety import CommandSafety, judge
from gemtui.calls.shell.parser import CommandSpan, spans
from gemtui.calls.shell.program_table import (
    PYTHON,
    CommandFolders,
    position_of_program,
    program_table,
    why_unknown,
)
from gemtui.calls.shell.words import PlainWord, shell_words
from gemtui.files import resolved
from gemtui.text import holds_controls


class Danger(NamedTuple):
    """A dangerous part of a command, and the reason.

    `start`, `end`: its position in characters; the end is exclusive.
    """

    start: int
    end: int
    why: str


NOT_PARSED = "it can't be parsed"
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
_GIT_VALUED: Final = frozenset(
    ["-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path", "--config-env"]
)
_GIT_CONFIGURES: Final = re.compile(r"-c.*|--config-env.*|--exec-path=.*", re.DOTALL)
_CONFIGURES: Final = "it changes git's configuration, which can make git run programs"
_MAY_NOT_HOLD: Final = re.compile(r"[(|{;\n]|(?<![&>])&(?![&>])")
"""Syntax that may keep a `cd` from affecting all the commands that follow it."""
_LOADS: Final = "it sets a variable that can make programs run"
_HIDDEN: Final = "one of its arguments can run a program or write a file"
_ANY_CODE: Final = "it runs any code passed to it"


def dangers(
    command: str, project: Path | None = None, folder: str | None = None
) -> tuple[Danger, ...]:
    """Return the dangerous parts of a command, in order; () if none are found.

    `project`: the run's folder; None skips the check for writes outside the project. `folder`: the
    folder the command runs in; None means the project.
    """
    parts = None if len(command) > LONGEST else spans(command)
    if parts is None:
        return (Danger(0, len(command), NOT_PARSED),)
    reach = None if project is None else Reach.of(project, folder)
    marked: list[Danger] = []
    for span in parts:
        reach, reasons = _why(span, command, reach)
        marked += (Danger(span.start, span.end, why) for why in dict.fromkeys(reasons))
    if not marked and judge(command) is CommandSafety.DANGEROUS:
        return (Danger(0, len(command), "Gemini CLI classifies it as dangerous"),)
    return tuple(marked)


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
        return reach, [_HIDDEN] if hides_a_program("[[", _words(text)) else []
    if span.kind != "command":
        return reach, []
    variables, rest = _words_of(span.name, text)
    reasons = [*islice(_of_program(span.name, rest), 1)]
    if any(is_risky(name) or hook_variables({name: "/"}) for name in variables):
        reasons.append(_LOADS)
    if reach is None:
        return None, reasons
    if span.name in ("cd", "pushd"):
        reach = reach.after_cd(rest, certain=not _MAY_NOT_HOLD.search(command))
        return reach, [*reasons, LEAVES] if reach.is_outside else reasons
    return reach, [*reasons, *reach.dangers(span.name, rest)]


def _of_assignments(text: str) -> Iterator[str]:
    """Yield why a command's variable assignments are dangerous, as in `export PATH=.`."""
    arguments = _words(text)
    assignments = filter(None, map(_SETS.match, arguments))
    if any(is_risky(sets[1]) or hook_variables({sets[1]: "/"}) for sets in assignments):
        yield _LOADS
    if hides_a_program("export", arguments):
        yield _HIDDEN


def _of_redirect(text: str, reach: Reach | None) -> Iterator[str]:
    yield _WRITES
    redirect = _REDIRECT.match(text)
    if reach is not None and redirect is not None:
        for word in _words(text[redirect.end() :]):
            yield from reach.redirection_dangers(word)


def _words_of(program: str, text: str) -> tuple[list[str], list[str]]:
    """Return the names of variables set before a program, and the program's arguments.

    In `A=1 make all`, these are `A` and `all`.
    """
    left = _words(text)
    variables: list[str] = []
    while left and left[0] != program:
        sets = _SETS.match(left[0])
        if sets is None:
            break
        variables.append(sets[1])
        left.pop(0)
    return variables, left[1:]


def _words(text: str) -> list[str]:
    """Split a command into words, leaving variables as `$NAME`; [] if that fails."""
    try:
        return [word.text for word in shell_words(text, lambda name: f"${name}")]
    except ValueError:
        return []


def _of_program(program: str, rest: list[str]) -> Iterator[str]:
    """Yield why a command is dangerous, judging by its program and arguments."""
    yield from _of_words(program, rest)
    table = program_table()
    if table.is_in(program.rsplit("/", 1)[-1], "starters"):
        for at, word in enumerate(rest):
            if table.is_in(word.rsplit("/", 1)[-1], "started"):
                yield from _of_words(word, rest[at + 1 :])


def _of_words(program: str, rest: list[str]) -> Iterator[str]:
    table = program_table()
    name = program.rsplit("/", 1)[-1].lower()
    if rest in (["--version"], ["--help"]) and _NAME.fullmatch(program):
        return
    if name == "git":
        configures, rest = _of_git(rest)
        if configures:
            yield _CONFIGURES
    if hides_a_program(name, rest):
        yield _HIDDEN
    if holds_controls(program) or not _NAME.fullmatch(program):
        yield "its name is quoted, computed or unusual"
    why = table.why_marked(name)
    harmless = (name == "find" and all(map(_only_finds, rest))) or (
        name == "set" and set(rest) <= _STRICT
    )
    if why is not None and not harmless:
        yield why
    second = next((word for word in rest if not word.startswith("-")), "")
    is_script = second.endswith(tuple(table.groups["scripts"]))
    if table.is_in(name, "shells", "languages") and not is_script:
        yield _ANY_CODE
    if PYTHON.fullmatch(name) and (not second or "-c" in rest):
        yield _ANY_CODE
    if table.is_marked(name, rest):
        yield table.why_only(name) or _HIDDEN
    elif table.is_in(name, "tools") and name != "git" and table.is_in(second, "beyond"):
        yield table.reason("beyond" if second in ("publish", "push", "deploy") else "deletes")


def _only_finds(word: str) -> bool:
    """Return whether a word of a `find` command can't make it run a program or change a file."""
    usage = program_table().usage("find")
    return word in usage.exact or word in usage.values or _PREDICATE.fullmatch(word) is None


def _of_git(rest: list[str]) -> tuple[bool, list[str]]:
    """Return whether git's global options set configuration, and the words after them."""
    configures, at = False, 0
    while at < len(rest) and rest[at].startswith("-"):
        configures = configures or bool(_GIT_CONFIGURES.fullmatch(rest[at]))
        at += 2 if rest[at] in _GIT_VALUED else 1
    return configures, rest[at:]


_NAME: Final = re.compile(r"[\w./@%+:,^-]+", re.ASCII)
_PREDICATE: Final = re.compile(r"-[A-Za-z]{2,}.*", re.DOTALL)
"""Matches what may be a test or an action of `find`; `-L` and the like only choose how links are
followed.
"""
_STRICT: Final = frozenset(
    ["-e", "-u", "-x", "-eu", "-ex", "-eux", "-euo", "-euxo", "-o", "pipefail"]
)


OUTSIDE: Final = "it writes outside of the project"
NAMES_OUTSIDE: Final = "it names a file outside of the project"
LEAVES: Final = "the commands after it run outside of the project"
LATER: Final = "it changes a file that affects later commands"
NAMES_LATER: Final = "it names a file that affects later commands"
HARMLESS: Final = frozenset(("/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty"))
_PUTTING: Final = ("write-last", "move")
"""The groups of programs that put files into a folder, under the names that they have."""
_READERS: Final = frozenset(("find", "rg", "tree", "["))
"""Programs whose operands are only read, besides the groups *reads* and *harmless*.

Options that make them write are checked elsewhere.
"""
TOO_MUCH: Final = "its file names are too many or too long to check"
_MOST_PATHS: Final = 100
"""The most paths to check; a command with more gets the warning `TOO_MUCH`."""
_LONGEST: Final = 1024
"""The longest path, in characters, that is checked."""
_MOST_FOLDERS: Final = 8
"""The most folders that are tracked for one command.

If a command may run in more, its folder counts as unknown.
"""
_MOST_WORDS: Final = 64
"""The most words to which the braces in one word are expanded."""
_MOST_ENTRIES: Final = 1000
"""The most entries of a folder that are matched against a file pattern."""
_TARGET_OPTION: Final = re.compile(r"(?:-[A-Za-z]*?t|--t[a-z-]*=?)(.*)", re.DOTALL)
"""Matches the option, or an abbreviation of it, that gives the folder to put files into."""
_VALUE: Final = re.compile(r"(?:-[A-Za-z]|[\w-]+=)(?=[~/.$])(.*)", re.DOTALL)
"""Matches a path after an option's letter or after `=`, and captures the path."""
_BRACES: Final = re.compile(r"\{([^{}]*,[^{}]*)\}")
_PATTERN: Final = re.compile(r"[*?[]")
_UNCERTAIN: Final = re.compile(r"[*?[{$`~]")


class _TooMuchError(Exception):
    """Raised if a command names too many paths to check, or paths that are too long."""


@dataclass(frozen=True, slots=True)
class Reach:
    """A run's project, and the folders one of its commands may run in.

    The methods find the dangers in the words of this command. In `folders`, None means an unknown
    folder, in which a relative path may lead anywhere. `left`: an iterator with one item for each
    path that may still be checked.
    """

    project: Path
    folders: tuple[Path | None, ...]
    left: Iterator[int]

    @classmethod
    def of(cls, project: Path, folder: str | None) -> Reach:
        """Return the project and folder for a command that runs in `folder`.

        If `folder` is None, the command runs in the project's folder.
        """
        root = resolved(project)
        start = root if folder is None else resolved(Path(folder))
        return cls(root, (start,), iter(range(_MOST_PATHS)))

    def after_cd(self, rest: Sequence[str], *, certain: bool) -> Reach:
        """Return the reach of the commands that follow a `cd`.

        `rest`: the arguments of the `cd`. `certain`: whether all of these commands run in the new
        folder; not if the `cd` is in a subshell or may fail.
        """
        operand = next((word for word in rest if not word.startswith("-")), "~")
        unknown = rest[-1:] == ["-"]
        unknown = unknown or len(self.folders) > _MOST_FOLDERS or not self._is_checked(operand)
        led = [None if unknown else _real(operand, folder) for folder in self.folders]
        folders = dict.fromkeys((*(() if certain else self.folders), *led))
        return Reach(self.project, tuple(folders), self.left)

    @property
    def is_outside(self) -> bool:
        """Whether the command may run in a folder that is unknown or outside the project."""
        for folder in self.folders:
            if folder is None or not folder.is_relative_to(self.project):
                return True
        return False

    def dangers(self, program: str, rest: Sequence[str]) -> Iterator[str]:
        """Yield why a command is dangerous, judging by the paths in its arguments."""
        with suppress(_TooMuchError):
            yield from self._why(program.rsplit("/", 1)[-1], rest)
            return
        yield TOO_MUCH

    def redirection_dangers(self, word: str) -> Iterator[str]:
        """Yield why it is dangerous to redirect output to `word`."""
        with suppress(_TooMuchError):
            yield from self._why_written(word)
            return
        yield TOO_MUCH

    def _why(self, name: str, rest: Sequence[str]) -> Iterator[str]:
        table = program_table()
        if name in _READERS or (name != "cd" and table.is_in(name, "reads", "harmless")):
            return
        if name == "git" and "mv" in rest:
            name = "mv"
            rest = rest[rest.index("mv") + 1 :]
        writes = table.is_in(name, "write-last", "write-all") or _edits_in_place(name, rest)
        if not writes and self._spares([name, *rest]):
            return
        for word in _targets(name, rest):
            yield from self._why_written(word) if writes else self._why_named(name, word)
        if table.is_in(name, *_PUTTING):
            yield from self._why_put(name, rest)
        if name in ("ln", "gln"):
            for word in rest:
                yield from self._why_named(name, word)

    def _why_written(self, word: str) -> Iterator[str]:
        if word in HARMLESS:
            return
        for path in self._paths(word):
            if path is None or not path.is_relative_to(self.project):
                yield OUTSIDE
            why = None if path is None else self._why_later(path)
            if why is not None:
                yield f"{LATER}: {why}"

    def _why_put(self, name: str, rest: Sequence[str]) -> Iterator[str]:
        """Yield why it is dangerous to put files into a folder, under the names that they have.

        `name`, `rest`: a program that moves or copies them, and its arguments.
        """
        operands, _, into = _operands(name, rest)
        sources, target = (operands, into) if into else (operands[:-1], operands[-1:])
        for folder in filter(None, chain.from_iterable(map(self._paths, target))):
            for word in sources:
                for source in self._paths(word):
                    why = self._why_put_there(folder, word, source)
                    if why:
                        yield f"{LATER}: {why}"

    def _why_put_there(self, folder: Path, word: str, source: Path | None) -> str | None:
        """Return why a file, put into `folder`, affects what is run later; None if it doesn't.

        `word`: the argument that names it; some options keep the folders in it. `source`: its path;
        if this is a folder, the files below it count as well.
        """
        if source is None or not os.path.lexists(source):
            return why_may_run_later(folder, self.project)
        for path in self._new_paths(folder, word, source):
            why = self._why_later(path)
            if why is not None:
                return why
        return None

    def _new_paths(self, folder: Path, word: str, source: Path) -> Iterator[Path]:
        """Yield the paths that a file or folder, and all below it, may get in `folder`."""
        yield folder / source.name
        yield folder / word.lstrip("/")
        for path in self._inside(source):
            inner = path.relative_to(source)
            yield folder / inner
            yield folder / source.name / inner

    def _inside(self, folder: Path) -> Iterator[Path]:
        """Yield the paths of all files and folders below a folder; reads the disk."""
        for path, folders, files in os.walk(folder):
            for name in (*folders, *files):
                if not self._is_checked(name):
                    raise _TooMuchError
                yield Path(path, name)

    def _why_named(self, program: str, word: str) -> Iterator[str]:
        """Yield why an argument is dangerous, for a program not known to write to it.

        Paths that neither exist nor could be created are ignored. So is `HEAD`, because it is
        usually the name of a git revision.
        """
        if word in HARMLESS or word == "HEAD":
            return
        for path in self._paths(word):
            if path is None:
                continue
            if not path.is_relative_to(self.project) and _could_be(path):
                yield NAMES_OUTSIDE
            elif program != "git":
                why = self._why_later(path)
                if why is not None:
                    yield f"{NAMES_LATER}: {why}"

    def _why_later(self, path: Path) -> str | None:
        """Return why writing to a path affects what is run later; None if it doesn't.

        If files in `path` would have this effect, `path` counts as well.
        """
        return why_runs_later(path, self.project) or why_runs_later(path / "x", self.project)

    def _spares(self, words: Sequence[str]) -> bool:
        """Return whether a command is known to change none of the files that its arguments name."""
        started = words[position_of_program(words) :]
        row = program_table().find(started) if started else None
        if row is None or any(_UNCERTAIN.search(word) for word in started):
            return False
        length, usage = row
        if not usage.spares:
            return False
        arguments = [PlainWord(word) for word in started[length:]]
        for folder in self.folders:
            if folder is None or why_unknown(
                usage, arguments, CommandFolders(project=self.project, folder=folder)
            ):
                return False
        return True

    def _paths(self, word: str) -> Iterator[Path | None]:
        for expanded in _without_braces(word):
            if _BRACES.search(expanded):  # too many to expand
                yield None
            for folder in self.folders:
                for path in (expanded, *_matches(expanded, folder)):
                    if not self._is_checked(path):
                        raise _TooMuchError
                    yield _real(path, folder)

    def _is_checked(self, path: str) -> bool:
        return len(path) <= _LONGEST and next(self.left, None) is not None


def _real(word: str, folder: Path | None) -> Path | None:
    """Return the real path that a word names; None if that can't be known.

    `folder`: where a relative path starts; None if unknown.
    """
    if "$" in word or "`" in word or "\0" in word:
        return None
    if word == "~" or word.startswith("~/"):
        word = f"{Path.home()}{word[1:]}"
    elif word.startswith("~"):
        return None
    if folder is None and not word.startswith("/"):
        return None
    return resolved((folder or Path("/")) / word)


def _matches(word: str, folder: Path | None) -> Iterator[str]:
    """Yield the paths that result from expanding the first file pattern in a path.

    Only the first component with a pattern is expanded. Reads the disk.
    """
    parts = word.split("/") if len(word) <= _LONGEST else []
    at = 0
    while at < len(parts) and not _PATTERN.search(parts[at]):
        at += 1
    if at == len(parts):
        return
    above = _real("/".join((*parts[:at], "")) or ".", folder)
    if above is None:
        return
    with suppress(OSError, ValueError), os.scandir(above) as entries:
        for entry in islice(entries, _MOST_ENTRIES):
            if fnmatchcase(entry.name, parts[at]):
                yield "/".join((*parts[:at], entry.name, *parts[at + 1 :]))


def _operands(name: str, rest: Sequence[str]) -> tuple[list[str], list[str], list[str]]:
    """Return a program's operands, the paths in its options, and the folder that `-t` gives."""
    operands, values = list[str](), list[str]()
    into: list[str] = []
    puts = program_table().is_in(name, *_PUTTING) and name not in ("rsync", "scp")
    at = 0
    while at < len(rest):
        word = rest[at]
        at += 1
        option = _TARGET_OPTION.fullmatch(word) if puts else None
        value = _VALUE.fullmatch(word)
        if option is not None:
            into = [option[1]] if option[1] else [*rest[at : at + 1]]
            at += not option[1]
        elif value is not None:
            values.append(value[1])
        elif not word.startswith("-"):
            operands.append(word)
    return operands, values, into


def _targets(name: str, rest: Sequence[str]) -> Iterator[str]:
    """Yield the arguments that may be paths a program writes to."""
    operands, values, into = _operands(name, rest)
    if program_table().is_in(name, "write-last"):
        yield from into or operands[-1:]
        return
    yield from into
    yield from values
    yield from operands[1:] if program_table().is_in(name, "text-first") else operands


def _edits_in_place(name: str, rest: Sequence[str]) -> bool:
    return name in ("sed", "gsed", "perl") and any(
        re.match(r"-[A-Za-z]*i|--in-place", word) for word in rest
    )


def _could_be(path: Path) -> bool:
    """Return whether a file exists or could be created because its folder exists."""
    return os.path.lexists(path) or (path.parent != Path("/") and os.path.lexists(path.parent))


def _without_braces(word: str) -> Iterator[str]:
    """Yield the words that result when bash expands braces: `a{b,c}` gives `ab`, `ac`."""
    expanded = [word]
    while len(expanded) < _MOST_WORDS:
        braces = _BRACES.search(expanded[0])
        if braces is None:
            break
        first = expanded.pop(0)
        before, after = first[: braces.start()], first[braces.end() :]
        expanded += [f"{before}{choice}{after}" for choice in braces[1].split(",")]
    yield from expanded


_LONGEST_SCRIPT: Final = 1000
"""The longest sed or awk script, in characters, that is analysed."""
_STRING: Final = re.compile(r'"(?:[^"\\]|\\.)*"')


def hides_a_program(name: str, words: Sequence[str]) -> bool:
    """Return whether arguments make a known program start another or write a file.

    `name`: the program without its folder. `words`: its arguments, without quotes.
    """
    table = program_table()
    pattern = table.hides.get(name)
    if pattern is None:
        return False
    if table.is_in(name, "awk"):
        words = [_STRING.sub('""', word) for word in words]
    too_long = any(len(word) > _LONGEST_SCRIPT for word in words)
    if too_long and table.is_in(name, "awk", "sed"):
        return True
    return any(re.fullmatch(pattern, word) for word in words)
