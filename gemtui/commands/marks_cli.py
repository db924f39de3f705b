"""The words of `gemtui mark` and `gemtui marks`: read by click, handed on to what does it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

_help = {"help_option_names": ["-h", "--help"]}
_OPTIONS = (
    click.option("--name", metavar="T", help="Call it T instead of its title; '' = no longer."),
    click.option("--tag", "tags", metavar="T", multiple=True, help="Give it the tag T."),
    click.option("--untag", "untags", metavar="T", multiple=True, help="Take the tag T away."),
    click.option("--pin/--unpin", "pinned", default=None, help="Keep it on top of lists, or not."),
    click.option("--note", metavar="T", help="Keep the note T with it; '' = none."),
    click.option(
        "--archive/--unarchive", "archived", default=None, help="Take it out of lists, or back."
    ),
    click.option("--json", "as_json", is_flag=True, help="Print JSON."),
)


def mark_command(complete: Callable[..., Any]) -> click.Command:
    """Return the command `mark`. `complete`: completes session ids."""

    @click.command("mark", context_settings=_help)
    @click.argument("id", shell_complete=complete)
    def mark(id: str, as_json: bool, **words: Any) -> None:
        """Name, tag, pin, annotate or archive a session.

        Without an option, prints what it has. All of it is kept in gemtui's own folder and changes
        nothing of Gemini's. ID is what `gemtui show` takes.
        """
        from gemtui.commands import marks as command

        command.mark(id, **words, as_json=as_json)

    for option in _OPTIONS:
        mark = option(mark)
    return mark


@click.group(context_settings=_help)
def marks() -> None:
    """The names, tags, notes and pins of all sessions, to another machine and back."""


@marks.command()
@click.option(
    "--output",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Write to FILE instead, whole or not at all; a new one is readable by you alone.",
)
def export(output: Path | None) -> None:
    """Print all of them as JSON."""
    from gemtui.commands import marks as command

    command.export(output)


@marks.command("import")
@click.argument("file", type=click.File("rb"))
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def import_(file: Any, as_json: bool) -> None:
    """Add those of FILE (- = stdin), which `gemtui marks export` wrote.

    Nothing is replaced: a name or note that is there already stays, and is named.
    """
    from gemtui.commands import marks as command

    command.import_(file, as_json=as_json)
