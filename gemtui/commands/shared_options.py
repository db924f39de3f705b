"""Options, arguments and completion that the declarations of several commands share.

A command is declared and implemented in one module, which `LaterCommand` imports when the command
is used. This module is imported at startup, so it imports nothing but click.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from contextlib import closing, suppress
from datetime import datetime
from functools import wraps
from importlib import import_module
from pathlib import Path
from typing import Any, cast

import click
from click.shell_completion import CompletionItem

_COMPLETED = 500
"""How many of the newest sessions are offered for completion."""
_PLAIN_ID = re.compile(r"[\w.-]+", re.ASCII)
cursor_option = click.option(
    "--cursor",
    metavar="CURSOR",
    help="Show the next page; CURSOR is next_cursor of the previous answer.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
yes_option = click.option("--yes", is_flag=True, help="Don't ask for confirmation.")
force_option = click.option("--force", is_flag=True, help="Replace FILE if it exists.")
dry_run_option = click.option("--dry-run", is_flag=True, help="Only show what would be done.")


class LaterCommand(click.Command):
    """A command whose module is imported only when it is used.

    The list of commands shows only each command's name and one-line help, which are known without
    importing the module. `module`: the module of `gemtui.commands` that declares the command.
    """

    def __init__(self, name: str, module: str, short_help: str) -> None:
        super().__init__(name, short_help=short_help)
        self._module = module

    def load(self) -> click.Command:
        """Import the command."""
        for member in vars(import_module(f"gemtui.commands.{self._module}")).values():
            if isinstance(member, click.Command) and member.name == self.name:
                return member
        raise LookupError(self.name)


class LaterGroup(click.Group):
    """A group of commands that imports each `LaterCommand` when it is used."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that the first argument names, imported, and the other arguments."""
        name, command, rest = super().resolve_command(ctx, args)
        return name, command.load() if isinstance(command, LaterCommand) else command, rest


def project_option(help: str = "Use only the sessions of this folder.") -> Callable[..., Any]:
    """Return the option `--project DIR`."""
    folder = click.Path(file_okay=False, path_type=Path)
    return click.option("--project", metavar="DIR", type=folder, help=help)


def project_options(
    project: str = "Use only the sessions of this folder.",
    everywhere: str = "Use the sessions of all projects.",
) -> Callable[..., Any]:
    """Return a decorator that adds `--project DIR` and `--everywhere`, of which one can be given.

    `project`, `everywhere`: the help of each.
    """

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(command)
        def checked(*args: Any, **words: Any) -> Any:
            require_one(
                "--project", words["project"] is not None, "--everywhere", words["everywhere"]
            )
            return command(*args, **words)

        added = click.option("--everywhere", is_flag=True, help=everywhere)(checked)
        return cast("Callable[..., Any]", project_option(project)(added))

    return add


def output_option(
    help: str = "Write to FILE instead of stdout; only you can read a new file.",
) -> Callable[..., Any]:
    """Return the option `--output FILE`."""
    return click.option("--output", metavar="FILE", type=click.Path(path_type=Path), help=help)


def since_option(help: str) -> Callable[..., Any]:
    """Return the option `--since DATE`."""
    return click.option("--since", metavar="DATE", type=Moment(), help=help)


def until_option(help: str) -> Callable[..., Any]:
    """Return the option `--until DATE`, which includes a day, month or year that is named."""
    return click.option("--until", metavar="DATE", type=Moment(end=True), help=help)


def require_one(one: str, is_given: object, other: str, other_is_given: object) -> None:
    """Raise click.UsageError if two options are given that can't be combined.

    `one`, `other`: the names of the options. `is_given`, `other_is_given`: their values.
    """
    if is_given and other_is_given:
        raise click.UsageError(f"{one} and {other} can't be combined: use only one of them")


def by_default(ctx: click.Context, command: click.Command, *, as_json: bool) -> Any:
    """Invoke a group's default command if no command is given.

    If one is given, a `--json` before its name counts as if it came after it.
    """
    if ctx.invoked_subcommand is None:
        return ctx.invoke(command, as_json=as_json)
    ctx.default_map = {ctx.invoked_subcommand: {"as_json": as_json}}
    return 0


def completions(offered: Iterable[tuple[str, str]], begun: str) -> list[CompletionItem]:
    """Return the words that begin with `begun`, each with its help, for a shell."""
    return [CompletionItem(word, help=help) for word, help in offered if word.startswith(begun)]


def existing_folder_here() -> Path:
    """Return the current folder. Raises click.UsageError if it has been deleted."""
    from gemtui.paths import folder_here

    folder = folder_here()
    if folder is None:
        raise click.UsageError("the current folder has been deleted: change to another one")
    return folder


def session_ids(
    _ctx: click.Context, _param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Complete a session's id by its beginning, or by words of the title, name or tags.

    Only sessions of the current folder's project are offered, if it has any. If none match, a file
    is completed.
    """
    from gemtui.errors import GemtuiError, MarksUnreadable
    from gemtui.marks import Mark, Marks
    from gemtui.paths import cache_dir, current_folder, gemini_home
    from gemtui.sessions.catalog.index import Index
    from gemtui.sessions.catalog.selection import LATEST, listed_sessions
    from gemtui.sessions.catalog.summary import named
    from gemtui.text import clean_line

    offered: list[CompletionItem] = []
    with suppress(GemtuiError, OSError):
        with closing(Index(gemini_home(), cache=cache_dir())) as index:
            snapshot = index.quick(project=None, limit=_COMPLETED)
        sessions = list(listed_sessions(snapshot, project=current_folder(), hidden=False))
        sessions = sessions or list(listed_sessions(snapshot, project=None, hidden=False))
        offered = completions([(LATEST, "the newest session")], incomplete)
        marks: dict[str, Mark] = {}
        with suppress(MarksUnreadable):
            marks = Marks().all()
        begun = incomplete.lower()
        for session in sessions:
            title, mark = clean_line(named(session, marks).title), marks.get(session.id)
            tags = () if mark is None else mark.tags
            words = (session.id, *title.lower().split(), *tags)
            if _PLAIN_ID.fullmatch(session.id) and any(word.startswith(begun) for word in words):
                offered.append(CompletionItem(session.id, help=title))
    return offered or [CompletionItem(incomplete, type="file")]


def policy_names(
    _ctx: click.Context, _param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Complete the name of one of gemtui's policies, or a file if no name matches."""
    from gemtui.errors import GemtuiError
    from gemtui.policy.edit.store import Origin, list_policies

    offered: list[tuple[str, str]] = []
    with suppress(GemtuiError, OSError):
        offered = [(policy.name, "") for policy in list_policies() if policy.origin is Origin.OURS]
    return completions(offered, incomplete) or [CompletionItem(incomplete, type="file")]


class Count(click.IntRange):
    """Parses a whole number of at least 1; its error names what the option takes."""

    def __init__(self) -> None:
        super().__init__(min=1)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the number; anything else is a usage error."""
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter:
            self.fail(f"{value!r} is not a whole number of at least 1", param, ctx)


class Moment(click.ParamType[datetime]):
    """Parses a date or time, in local time unless it names a time zone.

    A date without a time means the beginning of the day, month or year; with `end`, its end.
    """

    name = "date"

    def __init__(self, *, end: bool = False) -> None:
        self._end = end

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> datetime:
        """Return a datetime with a time zone; an invalid value is a usage error."""
        from gemtui.moments import EXAMPLES, period

        if isinstance(value, datetime):
            return value
        moment = period(str(value), datetime.now().astimezone())
        if moment is None:
            self.fail(f"{value!r} is not a date: use a date such as {EXAMPLES}", param, ctx)
        return moment[self._end]
