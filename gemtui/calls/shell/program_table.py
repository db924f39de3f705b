"""The table of programs: with which options and arguments each of them is harmless.

`programs.toml` lists what is known to be good. Anything else is a reason to ask: abbreviations
(`--outp=x`), joined letters (`-iz`), and options added in future versions. Whoever needs a fact
about a program asks here: commands that run unasked (`reads_only.py`), “allow similar”
(`similar_options.py`), the warnings about a command (`dangers.py`), and suggested rules
(`gemtui/policy/suggest/prefixes.py`).
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from gemtui.calls.later_files import why_runs_later
from gemtui.calls.shell.words import PlainWord
from gemtui.files import resolved
from gemtui.text import visible_line

_NUMBER: Final = re.compile(r"-[0-9]+")
_SECONDS: Final = re.compile(r"[0-9]+(?:\.[0-9]+)?[smhd]?")
PYTHON: Final = re.compile(r"(?:python|pypy)[0-9.]*")
"""Matches the names of Python's interpreters."""
_NUMBERS: Final = re.compile(r"-[0-9]")
_ENTRIES: Final = 10_000
"""The most entries of a folder that are checked against a file pattern."""
_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:/+-]*")
"""Matches the names that `*` matches in the name of a subcommand."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandFolders:
    """The run's project and the folder a command runs in; both are real paths."""

    project: Path
    folder: Path

    def is_outside(self, path: str | Path) -> bool:
        """Return whether a path, with links followed, is outside the project.

        A relative path starts at `folder`.
        """
        return not resolved(self.folder / path).is_relative_to(self.project)


@dataclass(frozen=True, slots=True)
class ValueKind:
    """A kind of value or argument that is harmless.

    * `pattern`: must match the whole text; None means any text.
    * `where`: "" for text that names no file; "file" for files that must be inside the project;
      "new" for files inside the project that don't exist, and that decide nothing that is run
      later; "git" for revisions, or paths in the repository.
    """

    pattern: re.Pattern[str] | None = None
    where: str = ""

    def accepts(self, text: str, folders: CommandFolders) -> bool:
        """Return whether a value is of this kind."""
        if self.pattern is not None and not self.pattern.fullmatch(text):
            return False
        if self.where == "git":
            return not _goes_up(text)
        if self.where == "":
            return True
        path = resolved(folders.folder / text)
        if self.where == "new" and (os.path.lexists(path) or why_runs_later(path, folders.project)):
            return False
        return path.is_relative_to(folders.project)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramUse:
    """The options and arguments with which a program or subcommand may be called.

    * `reads`: whether it then only reads files of the project.
    * `spares`: whether it never changes the files that its arguments name.
    * `rule`: whether a policy's rule may allow the program with any arguments.
    * `could`: what the program could do with other arguments, in words for the user.
    * `opens`: what these arguments allow, in words for the user.
    * `needs`: options of which one must be given, since the program otherwise starts an editor.
    * `flags`: letters of options without a value, which may be joined.
    * `attached`: letters of options whose value is never the next word.
    * `long`: options without a value, or with a value after `=`.
    * `exact`: whole words that are options, such as `-race`.
    * `values`: options with a value that must be of one of the kinds. The value follows in the same
      word or is the next word; after options that end in `=`, it is never the next word.
    * `operands`: the kinds of the arguments that aren't options; () means that there are none.
    * `after`: the kinds of the words after `--`; None means the same as `operands`.
    * `numbers`: whether a number such as `-5` is an option.
    * `most`: the largest number of operands; None means any number.
    * `patterns`: whether operands may be file patterns, provided that these can't match an option
      or a link that leads out of the project.
    """

    reads: bool = False
    spares: bool = False
    rule: bool = True
    could: str = "nothing else"
    opens: str = ""
    needs: frozenset[str] = frozenset()
    flags: str = ""
    attached: str = ""
    long: frozenset[str] = frozenset()
    exact: frozenset[str] = frozenset()
    values: Mapping[str, tuple[ValueKind, ...]]
    operands: tuple[ValueKind, ...]
    after: tuple[ValueKind, ...] | None = None
    numbers: bool = False
    most: int | None = None
    patterns: bool = False


class _ProgramRow(Struct, frozen=True, forbid_unknown_fields=True):
    """A program in `programs.toml`; lists of options are words in one string.

    `share`: names of lists of long options. `same`: the program whose fields count where this one
    has none; its options are added to this one's. The other fields are those of `ProgramUse`.
    """

    reads: bool | None = None
    spares: bool = False
    rule: bool = True
    could: str = ""
    opens: str = ""
    needs: str = ""
    flags: str = ""
    attached: str = ""
    long: str = ""
    exact: str = ""
    values: Mapping[str, str] = {}
    operands: str = ""
    after: str = ""
    numbers: bool = False
    most: int | None = None
    patterns: bool = False
    share: Sequence[str] = ()
    same: str = ""


class _NeverRow(Struct, frozen=True, forbid_unknown_fields=True):
    why: str
    programs: str
    unmarked: str = ""


class _OnlyRow(Struct, frozen=True, forbid_unknown_fields=True):
    why: str
    unmarked: Sequence[str] = ()


class _ProgramsFile(Struct, frozen=True, forbid_unknown_fields=True):
    kinds: Mapping[str, str]
    options: Mapping[str, str]
    aliases: Mapping[str, str]
    programs: Mapping[str, _ProgramRow]
    never: Mapping[str, _NeverRow]
    only: Mapping[str, _OnlyRow]
    groups: Mapping[str, str]
    hides: Mapping[str, str]


_OPERANDS: Final[Mapping[str, tuple[ValueKind, ...]]] = {
    "": (ValueKind(re.compile(r"(?!@)[^\0]*"), "file"),),
    "files": (ValueKind(re.compile(r"(?!@)[^\0]*"), "file"),),
    "words": (ValueKind(),),
    "git": (ValueKind(where="git"),),
    "none": (),
}


_GROUPS_OF_PROGRAMS = (
    *(
        "shells",
        "languages",
        "runners",
        "alone",
        "starters",
        "started",
        "tools",
        "reads",
        "harmless",
    ),
    *("makes", "checks", "write-last", "move", "write-all", "text-first"),
)
"""The groups in `programs.toml` that contain programs; others contain subcommands or modules."""


class ProgramTable:
    """All rows of `programs.toml`, ready to be looked up.

    * `groups`: the names in each group.
    * `hides`: for each program, a pattern for arguments that run a program or write a file.
    """

    def __init__(self, file: _ProgramsFile) -> None:
        self._file = file
        self._usages: dict[str, ProgramUse] = {}
        self._names: dict[str, list[str]] = {}
        for name in file.programs:
            self._names.setdefault(name.partition(" ")[0], []).append(name)
        self.groups = {name: frozenset(names.split()) for name, names in file.groups.items()}
        self.hides = {
            name: pattern for names, pattern in file.hides.items() for name in names.split()
        }
        self._never: dict[str, str] = {}
        self._marked: set[str] = set()
        for row in file.never.values():
            self._never.update(dict.fromkeys((row.programs + " " + row.unmarked).split(), row.why))
            self._marked.update(row.programs.split())

    def is_in(self, program: str, *groups: str) -> bool:
        """Return whether a program is in one of these groups."""
        return any(program in self.groups[group] for group in groups)

    def knows(self, program: str) -> bool:
        """Return whether a row, or a group of programs, names a program, or it is a Python."""
        named = {*self._names, *self._never, *self._file.aliases, *self._file.only}
        if program in named or self.is_in(program, *_GROUPS_OF_PROGRAMS):
            return True
        return PYTHON.fullmatch(program) is not None

    def why_never(self, program: str) -> str | None:
        """Return why no rule is suggested for a program; None if one may be."""
        return self._never.get("mkfs" if program.startswith("mkfs.") else program)

    def why_marked(self, program: str) -> str | None:
        """Return why a program is marked in a command, whatever its arguments are."""
        name = "mkfs" if program.startswith("mkfs.") else program
        return self._never[name] if name in self._marked else None

    def why_only(self, program: str) -> str | None:
        """Return why only known subcommands of a program get a suggested rule; None if all may."""
        row = self._file.only.get(program)
        return None if row is None else row.why

    def is_marked(self, program: str, words: Sequence[str]) -> bool:
        """Return whether a subcommand is marked, because it is not a known one.

        `words`: the words after the program's own options.
        """
        row = self._file.only.get(program)
        if row is None or not row.unmarked or not words:
            return False
        subcommands = {*row.unmarked, *self.subcommands(program)}
        return words[0] not in subcommands and " ".join(words[:2]) not in subcommands

    def reason(self, name: str) -> str:
        """Return the reason in the row of `never` with this name."""
        return self._file.never[name].why

    def find(self, words: Sequence[str]) -> tuple[int, ProgramUse] | None:
        """Find how a program may be called.

        Returns the number of words that name the program and its subcommand, and the usage; None
        for an unknown program or subcommand. `words`: the command's words.
        """
        program = self._file.aliases.get(words[0], words[0])
        longest: list[str] = []
        for name in self._names.get(program, ()):
            parts = name.split()
            fits = len(parts) <= len(words) and all(map(_is_named, parts[1:], words[1:]))
            if fits and len(parts) > len(longest):
                longest = parts
        return (len(longest), self.usage(" ".join(longest))) if longest else None

    def names(self) -> tuple[str, ...]:
        """Return the names of all rows: a program, or a program and its subcommand."""
        return tuple(self._file.programs)

    def subcommands(self, program: str) -> frozenset[str]:
        """Return the known subcommands of a program for which a policy may have a rule."""
        names = self._names.get(self._file.aliases.get(program, program), ())
        return frozenset(
            name.split()[1] for name in names if " " in name and self._file.programs[name].rule
        )

    def usage(self, name: str) -> ProgramUse:
        """Return the usage in the row with this name."""
        if name not in self._usages:
            self._usages[name] = self._usage(self._file.programs[name])
        return self._usages[name]

    def _usage(self, row: _ProgramRow) -> ProgramUse:
        base = self._usage(self._file.programs[row.same]) if row.same else None
        long = {f"--{name}" for name in row.long.split()}
        for name in row.share:
            long.update(f"--{option}" for option in self._file.options[name].split())
        values: dict[str, tuple[ValueKind, ...]] = {}
        for kind, options in row.values.items():
            for option in options.split():
                values[option] = self._kinds(kind)
        after = self._kinds(row.after) if row.after else None
        if base is None:
            return ProgramUse(
                reads=bool(row.reads),
                spares=row.spares,
                rule=row.rule,
                could=row.could or "nothing else",
                opens=row.opens,
                needs=frozenset(row.needs.split()),
                flags=row.flags,
                attached=row.attached,
                long=frozenset(long),
                exact=frozenset(row.exact.split()),
                values=values,
                operands=self._operands(row.operands),
                after=after,
                numbers=row.numbers,
                most=row.most,
                patterns=row.patterns,
            )
        return ProgramUse(
            reads=base.reads if row.reads is None else row.reads,
            spares=base.spares,
            could=row.could or base.could,
            opens=row.opens or base.opens,
            needs=base.needs.union(row.needs.split()),
            flags=base.flags + row.flags,
            attached=base.attached + row.attached,
            long=base.long | long,
            exact=base.exact.union(row.exact.split()),
            values={**base.values, **values},
            operands=self._operands(row.operands) if row.operands else base.operands,
            after=after or base.after,
            numbers=base.numbers,
            most=base.most if row.most is None else row.most,
            patterns=base.patterns,
        )

    def _operands(self, name: str) -> tuple[ValueKind, ...]:
        common = _OPERANDS.get(name)
        return self._kinds(name) if common is None else common

    def _kinds(self, name: str) -> tuple[ValueKind, ...]:
        """Return the kinds that a name in `[kinds]` or a pattern means.

        A pattern can have `file:` or `new:` before it, and alternatives can differ in that.
        """
        if name == "any":
            return (ValueKind(),)
        if name == "file":
            return _OPERANDS["files"]
        pattern = self._file.kinds.get(name, name)
        before, file, inside = pattern.partition("file:")
        if file:
            text = (ValueKind(re.compile(before.rstrip("|"))),) if before else ()
            return (*text, ValueKind(re.compile(inside, re.DOTALL), "file"))
        if pattern.startswith("new:"):
            return (ValueKind(re.compile(pattern[4:], re.DOTALL), "new"),)
        return (ValueKind(re.compile(pattern, re.DOTALL)),)


@cache
def program_table() -> ProgramTable:
    """Return the table that is shipped with gemtui."""
    text = Path(__file__).with_name("programs.toml").read_text(encoding="utf-8")
    return ProgramTable(msgspec.convert(tomllib.loads(text), _ProgramsFile))


def position_of_program(texts: Sequence[str]) -> int:
    """Return the position of the program that others start, as in `npx eslint` or `uv run pytest`.

    It is 0 if the first program starts no other one.
    """
    at = 0
    while (step := words_before(texts[at:])) > 0:
        at += step
    return at


def words_before(texts: Sequence[str]) -> int:
    """Return how many words stand before the program that the first one starts; 0 if it starts
    none.
    """
    name = texts[0] if texts else ""
    second = texts[1] if len(texts) > 1 else ""
    if program_table().is_in(name, "alone"):
        return 1
    if second == "run" and name == "rustup":
        return 3
    if second == "run" and program_table().is_in(name, "runners"):
        return 2
    if second == "-m" and PYTHON.fullmatch(name):
        return 2
    if name in ("timeout", "gtimeout") and _SECONDS.fullmatch(second):
        return 2
    return 2 if (name, second) == ("bundle", "exec") else 0


def _is_named(name: str, word: str) -> bool:
    return _NAME.fullmatch(word) is not None if name == "*" else word == name


def why_unknown(
    usage: ProgramUse, words: Sequence[PlainWord], folders: CommandFolders
) -> str | None:
    """Return why a program may do more than its usage says with these arguments, as a clause.

    `words`: the arguments after the program and its subcommand. Returns None if all of them are
    known.
    """
    operands: list[PlainWord] = []
    after: list[PlainWord] = []
    for word in words:
        if word.glob is not None and not usage.patterns:
            return f"`{_shown(word)}` is a pattern that matches file names"
    left = iter(words)
    if usage.needs and not any(_is_given(usage, word.text) for word in words):
        return f"without {' or '.join(sorted(usage.needs))}, it starts an editor"
    for word in left:
        text = word.text
        if text == "--":
            after = list(left)
            if usage.after is None and any(operand.text.startswith("-") for operand in after):
                return "some programs read options even after `--`"
        elif text == "-" or not text.startswith("-"):
            operands.append(word)
        elif not _is_option(usage, text, left, folders):
            return (
                f"with `{_shown(word)}`, it may do more than read" if usage.reads else _more(word)
            )
    if usage.after is None:
        operands += after
        after = []
    if usage.most is not None and len(operands) > usage.most:
        return f"with `{_shown(operands[usage.most])}` it could {usage.could}"
    for word in operands:
        reason = _why_operand(usage, usage.operands, word, folders)
        if reason is not None:
            return reason
    for word in after:
        reason = _why_operand(usage, usage.after or (), word, folders)
        if reason is not None:
            return reason
    return None


def _is_given(usage: ProgramUse, text: str) -> bool:
    """Return whether a word is one of the options that the program needs, or ends in one."""
    letters = text[1:] if re.match("-[A-Za-z]", text) else ""
    flags = letters[: len(letters) - len(letters.lstrip(usage.flags)) + 1]
    return text.partition("=")[0] in usage.needs or any(
        f"-{letter}" in usage.needs for letter in flags
    )


def _is_option(
    usage: ProgramUse, text: str, left: Iterator[PlainWord], folders: CommandFolders
) -> bool:
    """Return whether a word is one of the accepted options.

    `left`: yields the words after it. If the next word is the option's value, it is consumed.
    """
    if text in usage.exact or (usage.numbers and _NUMBER.fullmatch(text)):
        return True
    name, equals, value = text.partition("=")
    if text in usage.values:
        return _is_value(usage.values[text], next(left, None), folders)
    if equals and len(name) > 2:
        kinds = usage.values.get(name) or usage.values.get(f"{name}=")
        if kinds is not None:
            return any(kind.accepts(value, folders) for kind in kinds)
    if text.startswith("--"):
        return name in usage.long or (not equals and f"{name}=" in usage.values)
    return _are_letters(usage, text, left, folders)


def _are_letters(
    usage: ProgramUse, text: str, left: Iterator[PlainWord], folders: CommandFolders
) -> bool:
    """Return whether a word such as `-xvf` consists of letters of accepted options."""
    for at, letter in enumerate(text[1:], 2):
        if letter in usage.attached:
            return True
        kinds = usage.values.get(f"-{letter}")
        if kinds is not None:
            value = PlainWord(text[at:]) if at < len(text) else next(left, None)
            return _is_value(kinds, value, folders)
        if letter not in usage.flags:
            return False
    return True


def _is_value(kinds: Sequence[ValueKind], value: PlainWord | None, folders: CommandFolders) -> bool:
    """Return whether a word can be an option's value.

    A file pattern can't, because it may match several names, of which the others are arguments. Nor
    can what looks like an option, in case the program takes it as one.
    """
    if value is None or value.glob is not None:
        return False
    if value.text.startswith("-") and not _NUMBERS.match(value.text):
        return False
    return any(kind.accepts(value.text, folders) for kind in kinds)


def _why_operand(
    usage: ProgramUse, kinds: Sequence[ValueKind], word: PlainWord, folders: CommandFolders
) -> str | None:
    if word.glob is not None:
        return _why_pattern_acts(word, word.glob, folders)
    if word.text == "-":
        return None if usage.reads else _more(word)
    if any(kind.accepts(word.text, folders) for kind in kinds):
        return None
    of_files = any(kind.where in ("file", "git") for kind in kinds)
    leads_out = folders.is_outside(word.text) or _goes_up(word.text)
    return outside(word) if of_files and leads_out else _more(word)


def _why_pattern_acts(word: PlainWord, glob: int, folders: CommandFolders) -> str | None:
    """Return why a file pattern may match an option or a file outside the project.

    `glob`: the index of the pattern's first special character. Returns None if it can't.
    """
    start_text = word.text[:glob]
    folder, slash, start = start_text.rpartition("/")
    if not start_text or start_text.startswith(("-", "@")):
        return f"`{_shown(word)}` could match a file whose name looks like an option"
    base = folders.folder / (folder or slash)
    if "/" in word.text[glob:] or start.startswith(".") or folders.is_outside(base):
        return f"`{_shown(word)}` could match files outside of the project"
    try:
        with os.scandir(base) as entries:
            for count, entry in enumerate(entries):
                linked = entry.is_symlink() and entry.name.startswith(start)
                if count > _ENTRIES or (linked and folders.is_outside(base / entry.name)):
                    return f"`{_shown(word)}` could match files outside of the project"
    except OSError:
        return f"`{_shown(word)}` is a pattern in a folder that can't be read"
    return None


def _goes_up(text: str) -> bool:
    return text.startswith("/") or ".." in re.split("[/:]", text)


def outside(word: PlainWord) -> str:
    """Return the clause that a word names a file outside of the project."""
    return f"`{_shown(word)}` leads outside of the project"


def _more(word: PlainWord) -> str:
    return f"gemtui doesn't know what it does with `{_shown(word)}`"


def _shown(word: PlainWord) -> str:
    return visible_line(word.text[:60])
