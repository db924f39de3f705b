"""The programs on the CLI's list of safe commands, and when they only read.

The CLI looks for options that are known to do more than read. This module does the opposite: it
lists the options that only read, and anything else is a reason to ask the user. That includes
abbreviations (`--outp=x`), joined letters (`-iz`) and options added in future versions.
assets/gemini-cli.md#safe-commands lists what each program could do.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path
from typing import Final

from gemtui.calls.shell.command_safety import Workspace
from gemtui.calls.shell.words import PlainWord
from gemtui.files import resolved
from gemtui.text import visible_line

_NUMBER: Final = re.compile(r"-[0-9]+")
_ENTRIES: Final = 10_000
"""The most entries of a folder that are checked against a file pattern."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandPlace:
    """The run's project and the folder a command runs in; both are real paths."""

    project: Path
    folder: Path

    def is_outside(self, path: str | Path) -> bool:
        """Return whether a path, with links followed, is outside the project.

        A relative path starts at `folder`.
        """
        return not resolved(self.folder / path).is_relative_to(self.project)


class Operands(Enum):
    """How to check a program's operands, which are the arguments that aren't options."""

    FILES = auto()
    """They are, or may be, files, and must all be inside the project."""
    WORDS = auto()
    """They name no file that is read or written."""
    GIT = auto()
    """They are revisions, or paths in the repository."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """The options and operands with which a program only reads.

    * `could`: what the program could do with other arguments, in words for the user.
    * `flags`: letters of options without a value, which may be joined.
    * `valued`: letters of options with a value, which may be the next word.
    * `attached`: letters of options whose value is never the next word.
    * `long`: long options, with or without `=value`.
    * `operands`: how to check the arguments that aren't options.
    * `numbers`: whether a number such as `-5` is an option.
    * `most`: the largest number of operands; None means any number.
    * `patterns`: whether operands may be file patterns, provided that these can't match an option
      or a link that leads out of the project.
    """

    could: str = "nothing else"
    flags: str = ""
    valued: str = ""
    attached: str = ""
    long: frozenset[str] = frozenset()
    operands: Operands = Operands.FILES
    numbers: bool = False
    most: int | None = None
    patterns: bool = False


def long_options(text: str) -> frozenset[str]:
    """Return long options for the names in a string: `--a` and `--b` for "a b"."""
    return frozenset(f"--{name}" for name in text.split())


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_OUTSIDE: Final = "read files outside of the project"
_ENDLESS: Final = "run forever (`-f`)"
READERS: Final[Mapping[str, Reader]] = {
    "cat": Reader(
        could=_OUTSIDE,
        flags="AbeEnstTuv",
        long=long_options("""number number-nonblank show-all show-ends show-nonprinting show-tabs squeeze-blank"""),
        patterns=True,
    ),
    "cut": Reader(
        could=_OUTSIDE,
        flags="nsz",
        valued="bcdf",
        long=long_options(
            """bytes characters complement delimiter fields only-delimited output-delimiter
            zero-terminated"""
        ),
        patterns=True,
    ),
    "echo": Reader(flags="neE", operands=Operands.WORDS),
    "expr": Reader(operands=Operands.WORDS),
    "false": Reader(operands=Operands.WORDS),
    "grep": Reader(
        could="read patterns from files (`-f`), follow symbolic links out of the project (`-R`)",
        flags="EFGHILPTabchilnoqrsvwx",
        valued="ABCem",
        long=long_options(
            """after-context basic-regexp before-context binary byte-offset color colour context
            count exclude exclude-dir extended-regexp files-with-matches files-without-match
            fixed-strings ignore-case include initial-tab invert-match line-number line-regexp
            max-count no-filename no-ignore-case no-messages null only-matching perl-regexp quiet
            recursive regexp silent text with-filename word-regexp"""
        ),
        numbers=True,
        patterns=True,
    ),
    "head": Reader(
        could=_OUTSIDE,
        flags="qvz",
        valued="cn",
        long=long_options("bytes lines quiet silent verbose zero-terminated"),
        numbers=True,
        patterns=True,
    ),
    "id": Reader(flags="Gagnruz", long=long_options("group groups name real user zero"), operands=Operands.WORDS),
    "ls": Reader(
        could="list folders outside of the project, also through symbolic links (`-L`, `-H`)",
        flags="1ABCFGNQRSUXabcdfghiklmnopqrstuvx",
        long=long_options(
            """all almost-all author block-size classify color directory escape file-type format
            full-time group-directories-first hide human-readable ignore ignore-backups
            indicator-style inode kibibytes literal no-group numeric-uid-gid quote-name
            quoting-style recursive reverse si size sort time time-style width"""
        ),
        patterns=True,
    ),
    "nl": Reader(
        could=_OUTSIDE,
        flags="p",
        valued="bdfhilnsvw",
        long=long_options("body-numbering number-format number-separator number-width"),
        patterns=True,
    ),
    "numfmt": Reader(
        flags="z",
        valued="d",
        long=long_options(
            """delimiter field format from from-unit grouping header invalid padding round suffix to
            to-unit zero-terminated"""
        ),
        operands=Operands.WORDS,
    ),
    "paste": Reader(
        could=_OUTSIDE, flags="sz", valued="d", long=long_options("delimiters serial zero-terminated"), patterns=True
    ),
    "pwd": Reader(flags="LP", long=long_options("logical physical"), operands=Operands.WORDS),
    "rev": Reader(could=_OUTSIDE, patterns=True),
    "seq": Reader(
        flags="w", valued="fs", long=long_options("equal-width format separator"), operands=Operands.WORDS, numbers=True
    ),
    "stat": Reader(
        could="inspect files outside of the project, also through symbolic links (`-L`)",
        flags="ft",
        valued="c",
        long=long_options("file-system format printf terse"),
        patterns=True,
    ),
    "tac": Reader(could=_OUTSIDE, flags="br", valued="s", long=long_options("before regex separator"), patterns=True),
    "tail": Reader(
        could=f"{_OUTSIDE}, {_ENDLESS}",
        flags="qvz",
        valued="cn",
        long=long_options("bytes lines quiet silent verbose zero-terminated"),
        numbers=True,
        patterns=True,
    ),
    "tr": Reader(
        flags="Ccdst", long=long_options("complement delete squeeze-repeats truncate-set1"), operands=Operands.WORDS
    ),
    "true": Reader(operands=Operands.WORDS),
    "uname": Reader(
        flags="aimnoprsv",
        long=long_options(
            """all hardware-platform kernel-name kernel-release kernel-version machine nodename
            operating-system processor"""
        ),
        operands=Operands.WORDS,
    ),
    "uniq": Reader(
        could="write to a second file",
        flags="Dcdiuz",
        valued="fsw",
        long=long_options(
            """all-repeated check-chars count group ignore-case repeated skip-chars skip-fields
            unique zero-terminated"""
        ),
        most=1,
    ),
    "wc": Reader(
        could="read a list of files (`--files0-from`)",
        flags="Lclmw",
        long=long_options("bytes chars lines max-line-length total words"),
        patterns=True,
    ),
    "which": Reader(flags="as", operands=Operands.WORDS),
    "whoami": Reader(operands=Operands.WORDS),
    "base64": Reader(
        could="write a file (`-o` on macOS, also combined with other options, as in `-Do`)",
        flags="Ddi",
        valued="w",
        long=long_options("decode ignore-garbage wrap"),
        most=1,
    ),
    "rg": Reader(
        could=("run programs (`--pre`, `--hostname-bin`, `-z`, also combined with other options, as in `-iz`)"),
        flags="FHINPSUachilnopqsuvwx",
        valued="ABCegmtT",
        long=long_options(
            """after-context before-context case-sensitive color column context count count-matches
            files files-with-matches files-without-match fixed-strings glob heading hidden
            ignore-case invert-match json line-number line-regexp max-count max-depth multiline
            no-heading no-ignore no-line-number only-matching pcre2 quiet regexp smart-case sort
            stats text trim type type-list type-not word-regexp"""
        ),
        patterns=True,
    ),
}
"""Maps programs with the usual option syntax to the arguments that only read."""

_LOG: Final = long_options(
    """abbrev abbrev-commit after all all-match author before branches cherry-mark cherry-pick color
    committer date date-order decorate decorate-refs decorate-refs-exclude dense do-walk
    extended-regexp first-parent fixed-strings follow format full-history full-index graph grep
    invert-grep left-right max-count max-parents merges min-parents no-abbrev no-abbrev-commit
    no-color no-decorate no-graph no-max-parents no-merges no-min-parents no-notes no-walk notes
    oneline pretty reflog regexp-ignore-case remotes reverse simplify-by-decoration simplify-merges
    since skip tags topo-order until"""
)
_DIFF: Final = long_options(
    """abbrev binary break-rewrites check color color-moved compact-summary cumulative
    diff-algorithm diff-filter dirstat dst-prefix exit-code find-copies find-copies-harder
    find-renames full-index function-context histogram ignore-all-space ignore-blank-lines
    ignore-cr-at-eol ignore-space-at-eol ignore-space-change indent-heuristic inter-hunk-context
    minimal name-only name-status no-color no-color-moved
    no-ext-diff no-indent-heuristic no-patch no-prefix
    no-renames no-textconv numstat patch patch-with-raw patch-with-stat patience pickaxe-all
    pickaxe-regex quiet raw relative shortstat src-prefix stat stat-count stat-width summary text
    unified word-diff"""
)
_GIT_COULD: Final = "write a file (`--output`), run programs (`--ext-diff`, `--textconv`, `%G`)"
_GIT_LOG: Final = Reader(
    could=_GIT_COULD,
    flags="EFRWabgimpstuwz",
    valued="GSn",
    attached="BCMU",
    long=_LOG | _DIFF,
    operands=Operands.GIT,
    numbers=True,
)
GIT_READERS: Final[Mapping[str, Reader]] = {
    "status": Reader(
        flags="bsvz",
        attached="u",
        long=long_options(
            """ahead-behind branch column find-renames ignored long no-ahead-behind no-column
            no-renames porcelain renames short show-stash untracked-files verbose"""
        ),
        operands=Operands.GIT,
    ),
    "log": _GIT_LOG,
    "diff": Reader(
        could=f"{_GIT_COULD}, read any file (`--no-index`)",
        flags="RWabpsuwz",
        valued="GS",
        attached="BCMU",
        long=_DIFF | long_options("cached merge-base staged"),
        operands=Operands.GIT,
    ),
    "show": _GIT_LOG,
    "branch": Reader(
        could="create, rename and delete branches",
        flags="alrv",
        long=long_options("all color format list no-color remotes show-current verbose"),
        operands=Operands.GIT,
        most=0,
    ),
}
"""Maps git's subcommands to the arguments that make them only read."""
_GIT_RUNS: Final = re.compile(r"%G|%\((?:signature|trailers)", re.IGNORECASE)
"""Placeholders in format strings that make git run gpg or a configured command."""
_GIT_ACTS: Final = (
    "--output",
    "--output-directory",
    "--ext-diff",
    "--textconv",
    "--exec",
    "--open-files-in-pager",
    "--paginate",
    "--upload-pack",
    "--receive-pack",
    "--git-dir",
    "--work-tree",
    "--no-index",
    "--config-env",
    "--template",
    "--separate-git-dir",
    "--filters",
    "--show-signature",
)

_FIND_TESTS: Final = _names(
    """-a -and -daystart -depth -empty -executable -false -ls -mount -not -noleaf -o -or -print
    -print0 -prune -quit -readable -true -writable -xdev"""
)
_FIND_VALUED: Final = _names(
    """-amin -atime -cmin -ctime -gid -group -iname -inum -ipath -iregex -iwholename -links
    -maxdepth -mindepth -mmin -mtime -name -path -perm -printf -regex -regextype -size -type -uid
    -user -wholename -xtype"""
)
_SED_LINES: Final = re.compile(r"[0-9]+(?:,[0-9]+)?p")
_SED: Final = "sed can write files and run programs; gemtui recognises only `sed -n 1,5p FILE` as read-only"
_NOT_READING: Final = "gemtui does not recognise it as a read-only command"


def is_known_program(words: Sequence[PlainWord]) -> bool:
    """Return whether `why_acts` has rules for a command's program or git subcommand."""
    name = program(words)
    if name == "git":
        return git_subcommand(words) in GIT_READERS
    return name in READERS or name in ("cd", "find", "sed")


def program(words: Sequence[PlainWord]) -> str:
    """Return the program that a command starts, under the name that the tables use.

    This is the command's first word, or "" if that is a file pattern. An absolute path is shortened
    only for ripgrep, because the CLI considers ripgrep safe only with its absolute path.
    """
    first = words[0]
    if first.glob is not None:
        return ""
    return "rg" if first.text.startswith("/") and first.text.endswith("/rg") else first.text


def git_subcommand(words: Sequence[PlainWord]) -> str:
    """Return git's subcommand; "" if an option other than `--no-pager` comes first."""
    left = [word.text for word in words[1:] if word.text != "--no-pager"]
    return left[0] if left and not left[0].startswith("-") else ""


def why_acts(words: Sequence[PlainWord], place: CommandPlace) -> str | None:
    """Return why a command may do more than read project files; None if it only reads.

    The reason is a phrase such as "it writes a file". Programs that git starts because of its
    configuration are not considered here.
    """
    name = program(words)
    if name == "rg" and not Workspace.of(place.project, "").trusts(words[0].text):
        return "its program is not in a system folder"
    if name == "git":
        return _why_git_acts(words, place)
    if name == "find":
        return _why_find_acts(words[1:], place)
    if name == "sed":
        return _why_sed_acts(words[1:], place)
    if name == "cd":
        return why_reader_acts(Reader(flags="LP"), words[1:], place)
    reader = READERS.get(name)
    return _NOT_READING if reader is None else why_reader_acts(reader, words[1:], place)


def why_git_may_act(words: Sequence[PlainWord]) -> str | None:
    """Return why a git command may write a file or run a program; None if it may not.

    Use this for subcommands that are not in `GIT_READERS`. The reason names the first option that
    has such an effect; abbreviated options are recognised, because git accepts them.
    """
    for word in words[1:]:
        name = word.text.partition("=")[0]
        if len(name) > 2 and any(option.startswith(name) for option in _GIT_ACTS):
            return f"`{_shown(word)}` can write a file or run a program"
    return None


def why_reader_acts(reader: Reader, words: Sequence[PlainWord], place: CommandPlace) -> str | None:
    """Return why a program may do more than read with these arguments, as a clause.

    `reader`: what is accepted. `words`: the arguments. Returns None if all of them are accepted.
    """
    operands: list[PlainWord] = []
    left = iter(words)
    for word in left:
        text = word.text
        if word.glob is not None and not reader.patterns:
            return f"`{_shown(word)}` is a pattern that matches file names"
        if text == "--":
            operands += left
        elif text == "-" or not text.startswith("-"):
            operands.append(word)
        elif not _is_option(reader, text, left):
            return f"with `{_shown(word)}`, it may do more than read"
    if reader.most is not None and len(operands) > reader.most:
        return f"with `{_shown(operands[reader.most])}` it could {reader.could}"
    return next(filter(None, (_why_operand(reader, word, place) for word in operands)), None)


def _is_option(reader: Reader, text: str, left: Iterator[PlainWord]) -> bool:
    """Return whether a word is one of the accepted options.

    `left`: yields the words after it. If the next word is the option's value, it is consumed.
    """
    if text.startswith("--"):
        name, _, value = text.partition("=")
        return name in reader.long and not _GIT_RUNS.search(value)
    if reader.numbers and _NUMBER.fullmatch(text):
        return True
    for at, letter in enumerate(text[1:], 2):
        if letter in reader.attached:
            return True
        if letter in reader.valued:
            return at < len(text) or next(left, None) is not None
        if letter not in reader.flags:
            return False
    return True


def _why_operand(reader: Reader, word: PlainWord, place: CommandPlace) -> str | None:
    if reader.operands is Operands.WORDS:
        return None if word.glob is None else f"`{_shown(word)}` is a pattern that matches file names"
    if word.glob is not None:
        return _why_pattern_acts(word, word.glob, place) if reader.patterns else _pattern(word)
    if reader.operands is Operands.GIT:
        return _outside(word) if _goes_up(word.text) else None
    return _outside(word) if word.text != "-" and place.is_outside(word.text) else None


def _why_pattern_acts(word: PlainWord, glob: int, place: CommandPlace) -> str | None:
    """Return why a file pattern may match an option or a file outside the project.

    `glob`: the index of the pattern's first special character. Returns None if it can't.
    """
    known = word.text[:glob]
    folder, slash, start = known.rpartition("/")
    if not known or known.startswith("-"):
        return f"`{_shown(word)}` could match a file whose name looks like an option"
    base = place.folder / (folder or slash)
    if "/" in word.text[glob:] or start.startswith(".") or place.is_outside(base):
        return f"`{_shown(word)}` could match files outside of the project"
    try:
        with os.scandir(base) as entries:
            for count, entry in enumerate(entries):
                linked = entry.is_symlink() and entry.name.startswith(start)
                if count > _ENTRIES or (linked and place.is_outside(base / entry.name)):
                    return f"`{_shown(word)}` could match files outside of the project"
    except OSError:
        return f"`{_shown(word)}` is a pattern in a folder that can't be read"
    return None


def _why_git_acts(words: Sequence[PlainWord], place: CommandPlace) -> str | None:
    reader = GIT_READERS.get(git_subcommand(words))
    if reader is None:
        return "gemtui does not recognise it as a read-only git command"
    left = [word for word in words[1:] if word.text != "--no-pager"]
    return why_reader_acts(reader, left[1:], place)


def _why_find_acts(words: Sequence[PlainWord], place: CommandPlace) -> str | None:
    left = iter(words)
    for word in left:
        if word.glob is not None:
            return _pattern(word)
        if word.text in _FIND_VALUED:
            value = next(left, None)
            if value is not None and value.glob is not None:
                return _pattern(value)
        elif word.text.startswith("-"):
            if word.text not in _FIND_TESTS:
                return f"with `{_shown(word)}`, it may do more than read"
        elif word.text not in ("!", "(", ")", ",") and place.is_outside(word.text):
            return _outside(word)
    return None


def _why_sed_acts(words: Sequence[PlainWord], place: CommandPlace) -> str | None:
    texts = [word.text for word in words]
    lines = len(texts) in (2, 3) and texts[0] == "-n" and _SED_LINES.fullmatch(texts[1])
    if not lines or any(word.glob is not None for word in words):
        return _SED
    if any(text.startswith("-") for text in texts[2:]):
        return _SED
    return next((_outside(word) for word in words[2:] if place.is_outside(word.text)), None)


def _goes_up(text: str) -> bool:
    return text.startswith("/") or ".." in re.split("[/:]", text)


def _outside(word: PlainWord) -> str:
    return f"`{_shown(word)}` leads outside of the project"


def _pattern(word: PlainWord) -> str:
    return f"`{_shown(word)}` is a pattern that matches file names"


def _shown(word: PlainWord) -> str:
    return visible_line(word.text[:60])
