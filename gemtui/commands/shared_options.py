"""Options and arguments shared by several commands, and their completion."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

HELP = {"help_option_names": ["-h", "--help"]}
"""The click `context_settings` of every command, so that `-h` also prints help."""
cursor_option = click.option(
    "--cursor", metavar="CURSOR", help="Show the next page; CURSOR is next_cursor of the previous answer."
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
yes_option = click.option("--yes", is_flag=True, help="Don't ask for confirmation.")
force_option = click.option("--force", is_flag=True, help="Replace FILE if it exists.")
dry_run_option = click.option("--dry-run", is_flag=True, help="Only show what would be done.")
everywhere_option = click.option("--everywhere", is_flag=True, help="Use the sessions of all projects.")


def project_option(help: str = "Use only the sessions of this folder.") -> Callable[..., Any]:
    """Return the option `--project DIR`."""
    folder = click.Path(file_okay=False, path_type=Path)
    return click.option("--project", metavar="DIR", type=folder, help=help)


def output_option(help: str = "Write to FILE instead of stdout; only you can read a new file.") -> Callable[..., Any]:
    """Return the option `--output FILE`."""
    return click.option("--output", metavar="FILE", type=click.Path(path_type=Path), help=help)


def since_option(help: str) -> Callable[..., Any]:
    """Return the option `--since DATE`."""
    return click.option("--since", metavar="DATE", type=Moment(), help=help)


def require_one(one: str, is_given: object, other: str, other_is_given: object) -> None:
    """Raise click.UsageError if two options are given that can't be combined.

    `one`, `other`: the names of the options. `is_given`, `other_is_given`: their values.
    """
    if is_given and other_is_given:
        raise click.UsageError(f"{one} and {other} can't be combined: use only one of them")


def session_ids(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete a session's id, or a file if no id matches."""
    from gemtui.commands.pick_session import session_completions
    from gemtui.errors import GemtuiError

    try:
        found = session_completions(incomplete)
    except (GemtuiError, OSError):
        found = []
    items = [CompletionItem(id, help=title) for id, title in found]
    return items or [CompletionItem(incomplete, type="file")]


def run_ids(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete a run's id."""
    from gemtui.runs.listing import LATEST, list_runs, runs_dir
    from gemtui.text import clean_line

    offered = [(LATEST, "the newest run")]
    offered += [(run.id, clean_line(run.prompt)) for run in list_runs(runs_dir())]
    return [CompletionItem(id, help=words) for id, words in offered if id.startswith(incomplete)]


class Moment(click.ParamType[datetime]):
    """Parses a date or time, in local time unless it names a time zone.

    A date without a time means the beginning of the day, month or year; with `end`, its end.
    """

    name = "date"

    def __init__(self, *, end: bool = False) -> None:
        self._end = end

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        """Return a datetime with a time zone; an invalid value is a usage error."""
        from gemtui.moments import EXAMPLES, period

        if isinstance(value, datetime):
            return value
        found = period(str(value), datetime.now().astimezone())
        if found is None:
            self.fail(f"{value!r} is not a date: use a date such as {EXAMPLES}", param, ctx)
        return found[self._end]
