"""Decide which other commands “allow similar” allows for an approved program.

A policy rule with a prefix allows all arguments. “Allow similar” covers fewer: programs such as
`cat`, whose purpose is to read, may only read. For the programs in `_COVERED`, each accepted option
is listed, so the user is asked about abbreviations and about options added in future versions.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from gemtui.calls.git_repository import same_repository
from gemtui.calls.shell.reads_only import (
    CommandPlace,
    Operands,
    Reader,
    is_known_program,
    long_options,
    program,
    why_acts,
    why_git_may_act,
    why_reader_acts,
)
from gemtui.calls.shell.unasked import why_commands_act
from gemtui.calls.shell.words import PlainWord

_MORE: Final = "its options or arguments could do more than “allow similar” permits"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Covered:
    """The arguments of a program that “allow similar” covers.

    * `reader`: the covered options and operands.
    * `opens`: a description of what is covered, for the user.
    * `odd`: if this pattern is found in a word, the command is not covered.
    * `passes_on`: whether the words after `--` are for a script, and therefore all covered.
    """

    reader: Reader
    opens: str
    odd: re.Pattern[str] | None = None
    passes_on: bool = False


_SHOWS: Final = "with any names, and options that only choose what it shows"
_CONTAINERS: Final = _Covered(
    reader=Reader(
        flags="alqst",
        valued="n",
        long=long_options(
            """all details digests filter format latest last no-stream no-trunc platform quiet since
            size tail timestamps tree type until"""
        ),
        operands=Operands.WORDS,
    ),
    opens=_SHOWS,
)
_BUILDS: Final = _Covered(
    reader=Reader(
        flags="q", valued="t", long=long_options("build-arg no-cache progress pull quiet tag target"), most=2
    ),
    odd=re.compile(r"://|\Agit@|\Agithub\.com"),
    opens="in folders of the project; the build runs code in a container",
)
_COVERED: Final[Mapping[str, _Covered]] = {
    "date": _Covered(
        reader=Reader(
            flags="Ru",
            attached="I",
            long=long_options("date iso-8601 rfc-3339 rfc-email universal utc"),
            operands=Operands.WORDS,
        ),
        odd=re.compile(r"\A[^+-]"),  # `date 01012030` sets the clock
        opens="with options that only show a time",
    ),
    "file": _Covered(
        reader=Reader(flags="bi", long=long_options("brief mime mime-encoding mime-type"), patterns=True),
        opens="with files of the project",
    ),
    "kubectl": _Covered(
        reader=Reader(
            flags="Aw",
            valued="Lclno",
            long=long_options(
                """all-containers all-namespaces api-group api-version chunk-size client container
                field-selector ignore-not-found label-columns namespace namespaced no-headers
                output prefix previous recursive selector show-events show-kind show-labels since
                since-time sort-by tail timestamps verbs watch watch-only"""
            ),
            operands=Operands.WORDS,
        ),
        odd=re.compile("file"),  # `-o go-template-file=…`, `-o jsonpath-file=…`
        opens=_SHOWS,
    ),
    "npm": _Covered(
        reader=Reader(
            flags="DEOPs",
            long=long_options(
                """depth if-present include include-workspace-root json legacy-peer-deps long
                no-audit no-fund no-progress no-save offline omit parseable prefer-offline save
                save-dev save-exact save-optional silent verbose workspace workspaces"""
            ),
            operands=Operands.WORDS,
        ),
        opens="with any names, and any options after --; packages can run any code",
        passes_on=True,
    ),
    **{
        f"{name} {command}": _CONTAINERS
        for name in ("docker", "podman")
        for command in ("images", "info", "inspect", "logs", "ps", "pull", "stats", "version")
    },
    **dict.fromkeys(("docker build", "podman build"), _BUILDS),
}


def what_is_covered(words: Sequence[PlainWord]) -> str | None:
    """Describe which arguments “allow similar” covers for a command's program.

    None means all of them.
    """
    if is_known_program(words):
        return "with arguments that only read files of the project"
    if program(words) == "git":
        return "with any arguments except those that write elsewhere or run programs, such as --output"
    found = _covered(words)
    return None if found is None else found.opens


def why_not_covered(
    words: Sequence[PlainWord], commands: Sequence[Sequence[PlainWord]], place: CommandPlace
) -> str | None:
    """Return why “allow similar” doesn't cover a command; None if it does.

    `words`: the command. `commands`: all commands of the same call, because a `cd` affects them.
    """
    if program(words) == "git" and not same_repository(place.project, place.folder):
        return "its folder belongs to another git repository"
    if program(words) == "cd":
        return why_commands_act(commands, place)
    if is_known_program(words):
        return why_acts(words, place)
    if program(words) == "git":
        return why_git_may_act(words)
    found = _covered(words)
    return None if found is None else _why_more(found, words[1:], place)


def _covered(words: Sequence[PlainWord]) -> _Covered | None:
    name = program(words).rpartition("/")[2]
    second = words[1].text if len(words) > 1 else ""
    return _COVERED.get(f"{name} {second}", _COVERED.get(name))


def _why_more(covered: _Covered, words: Sequence[PlainWord], place: CommandPlace) -> str | None:
    texts = [word.text for word in words]
    if covered.passes_on and "--" in texts:
        words = words[: texts.index("--")]
    if covered.odd is not None and any(covered.odd.search(word.text) for word in words):
        return _MORE
    return None if why_reader_acts(covered.reader, words, place) is None else _MORE
