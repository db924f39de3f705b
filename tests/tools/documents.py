"""The parts of the documents that follow from the program.

    python -m tests.tools.documents

writes them anew, each between two comments such as `<!-- keys -->` and `<!-- end of keys -->`.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import click

from gemtui.cli import root
from gemtui.commands.shared_options import LaterCommand
from gemtui.config import settings
from gemtui.redact.rules import RULES
from gemtui.ui.kit.key_table import MATTER_MOST
from gemtui.ui.kit.keys import BY_ID, Key, Where, keys_of
from gemtui.version import VERSION
from tests.tools.bench.record import table

HERE = Path(__file__).parents[2]
ASSETS = HERE / "assets"
PANES = {
    "Everywhere": (
        Where.APP,
        Where.FILTER,
        Where.RAW,
        Where.NOTICE,
        Where.CONFIRM,
        Where.CONFIRM_FOR_GOOD,
        Where.DIALOG,
        Where.CHOICES,
        Where.HELP,
    ),
    "Sessions": (
        Where.SESSIONS,
        Where.LIST,
        Where.TRANSCRIPT,
        Where.FIND,
        Where.INFO,
        Where.MARKS,
        Where.WAITING,
        Where.VAULT,
        Where.STATS,
        Where.SEARCH,
        Where.FILES,
        Where.HISTORY,
        Where.PATCH,
        Where.UNDO,
        Where.UNDO_FILE,
        Where.REVIEW,
        Where.EMPTY,
    ),
    "Runs": (
        Where.PROMPT,
        Where.RUN,
        Where.WRITES,
        Where.OPTIONS,
        Where.RUN_LIST,
        Where.WORKTREES,
        Where.QUESTION,
        Where.CHANGE_CALL,
        Where.QUEUE,
    ),
    "Policies": (Where.POLICY, Where.RULES, Where.LEVELS, Where.RULE, Where.POLICY_FILES),
    "Try, history": (
        Where.TRY,
        Where.POLICY_HISTORY,
        Where.ROWS,
        Where.CALLS,
        Where.PICK,
        Where.CALL,
        Where.DRAWING,
    ),
}
NAMES = {
    Where.APP: "Any place",
    Where.SESSIONS: "List and transcript",
    Where.RUN_LIST: "List of runs",
}


def documents() -> list[Path]:
    """The README and all that it leads to."""
    habits = sorted((HERE / ".github").glob("*.md"))
    return [HERE / "README.md", *sorted(ASSETS.glob("*.md")), *habits]


def keys() -> Iterator[str]:
    """The keys that matter most, then a table for each place where keys act, pane by pane."""
    yield from ("## The thirty that matter most", "", "| key | in | does |", "| --- | --- | --- |")
    for id in MATTER_MOST:
        key = BY_ID[id]
        yield f"| {_faces(key)} | {NAMES.get(key.where, key.where)} | {_cell(key.help)} |"
    yield ""
    for pane, places in PANES.items():
        yield from (f"## {pane}", "")
        for place in places:
            name = NAMES.get(place, place)
            yield from (f"### {name}", "", "| key | does |", "| --- | --- |")
            for key in keys_of(place):
                yield f"| {_faces(key)} | {_cell(key.help)} |"
            yield ""


def _faces(key: Key) -> str:
    """Return a key's names, or how a command without a key is found."""
    names = " ".join(f"`{face}`" for face in key.shown().split())
    return names or f"`^p` *{key.label}*"


def options() -> Iterator[str]:
    """A table of all settings."""
    yield "| setting and default | values | what it does |"
    yield "| --- | --- | --- |"
    for each in settings():
        yield f"| `{each.toml}` | {each.values} | {each.doc} |"
    yield ""


def commands() -> Iterator[str]:
    """What each command takes."""
    for names, command in _commands(root, ("gemtui",)):
        context = click.Context(command, info_name=" ".join(names))
        yield f"### {' '.join(names)}"
        yield ""
        yield f"`{' '.join([*names, *command.collect_usage_pieces(context)])}`"
        yield ""
        yield " ".join(_inline(command.help or "").split())
        yield ""
        yield from _options(command, context)


def _commands(
    command: click.Command, names: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    yield names, command
    if isinstance(command, click.Group):
        for name, each in command.commands.items():
            whole = each.load() if isinstance(each, LaterCommand) else each
            yield from _commands(whole, (*names, name))


def _options(command: click.Command, context: click.Context) -> Iterator[str]:
    found = list(option_rows(command, context))
    if found:
        yield "| option | does |"
        yield "| --- | --- |"
        for opts, value, help in found:
            yield f"| `{_cell(opts + value)}` | {_cell(_inline(help))} |"
        yield ""


def option_rows(command: click.Command, context: click.Context) -> Iterator[tuple[str, str, str]]:
    """The names, the value and the help of each option of a command."""
    for option in command.get_params(context):
        if not isinstance(option, click.Option) or option.hidden:
            continue
        if "--help" not in option.opts:
            value = "" if option.is_flag else f" {option.make_metavar(context)}"
            yield ", ".join((*option.opts, *option.secondary_opts)), value, option.help or ""


def _inline(words: str) -> str:
    """Words that stand in Markdown as they are."""
    pieces = words.split("`")
    return "`".join(
        p if at % 2 else re.sub(r"([*~<\[])", r"\\\1", p) for at, p in enumerate(pieces)
    )


def _cell(words: str) -> str:
    """What stands in one cell of a table."""
    return words.replace("|", "\\|")


def contracts() -> Iterator[str]:
    """The layers of the whole program, as pyproject.toml has them for `lint-imports`."""
    project = tomllib.loads((HERE / "pyproject.toml").read_text(encoding="utf-8"))
    layers = project["tool"]["importlinter"]["contracts"][0]["layers"]
    yield from ("```text", *layers, "```", "")


def secrets() -> Iterator[str]:
    """What `--redact` replaces, and where its form is documented."""
    yield from ("| placeholder | replaced | source |", "| --- | --- | --- |")
    for rule in RULES:
        if rule.what:
            source = f"<{rule.source}>" if rule.source.startswith("https://") else rule.source
            yield f"| `{rule.kind}` | {rule.what} | {source} |"
    yield "| `env-value` | Values of environment files that the session read or wrote | |"
    yield ""


def man_page() -> str:
    """The manual page: each command with its help, and each of its options."""
    lines = [f'.TH GEMTUI 1 "" "gemtui {VERSION}"', ".SH NAME"]
    lines += ["gemtui \\- read, search and continue Gemini CLI sessions", ".SH DESCRIPTION"]
    for names, command in _commands(root, ("gemtui",)):
        context = click.Context(command, info_name=" ".join(names))
        if len(names) > 1:
            lines.append(".SS " + _roff(" ".join(names)))
        usage = " ".join([*names, *command.collect_usage_pieces(context)])
        lines += [f"\\fB{_roff(usage)}\\fR"]
        for paragraph in (command.help or "").split("\n\n"):
            lines += [".PP", _roff(" ".join(paragraph.split()))]
        for opts, value, help in option_rows(command, context):
            lines += [".TP", f"\\fB{_roff(opts)}\\fR{_roff(value)}", _roff(help)]
        if len(names) == 1:
            lines.append(".SH COMMANDS")
    lines += [".SH SEE ALSO", _roff("gemtui help lists the pages of the manual."), ""]
    return "\n".join(lines)


def _roff(words: str) -> str:
    """Words that stand in a manual page as they are."""
    escaped = words.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{escaped}" if escaped.startswith((".", "'")) else escaped


PARTS: dict[str, Callable[[], Iterator[str]]] = {
    "keys": keys,
    "settings": options,
    "commands": commands,
    "secrets": secrets,
    "contracts": contracts,
    "benchmarks": table,
}


def rewritten(text: str) -> str:
    """A document with every part as it should be. Raises ValueError where one has no end."""
    for name, part in PARTS.items():
        begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->\n"
        before, found, rest = text.partition(begin)
        if found:
            _, closed, after = rest.partition(end)
            if not closed:
                raise ValueError(f"{name} has no {end}")
            text = before + begin + "\n" + "\n".join(part()) + "\n" + end + after
    return text


MAN_PAGE = ASSETS / "gemtui.1"

if __name__ == "__main__":
    MAN_PAGE.write_text(man_page(), encoding="utf-8")
    for document in documents():
        document.write_text(rewritten(document.read_text(encoding="utf-8")), encoding="utf-8")
