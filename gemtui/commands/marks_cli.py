"""The command line of `gemtui mark` and `gemtui marks`: parsed by click, passed to a module."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from gemtui.commands.shared_options import json_option

_OPTIONS = (
    click.option("--name", metavar="T", help="Use the name T as its title; '' removes it."),
    click.option("--tag", "tags", metavar="T", multiple=True, help="Add the tag T; repeatable."),
    click.option(
        "--untag", "untags", metavar="T", multiple=True, help="Remove the tag T; repeatable."
    ),
    click.option(
        "--pin/--unpin", "pinned", default=None, help="Pin it to the top of lists, or unpin it."
    ),
    click.option("--note", metavar="T", help="Set the note T; '' removes it."),
    click.option(
        "--archive/--unarchive",
        "archived",
        default=None,
        help="Hide it from lists, or show it again.",
    ),
    json_option,
)


def mark_command(complete: Callable[..., Any]) -> click.Command:
    """Return the command `mark`. `complete`: completes session ids."""

    @click.command("mark")
    @click.argument("id", shell_complete=complete)
    def mark(id: str, as_json: bool, **words: Any) -> None:
        """Name, tag, pin, annotate, or archive a session.

        Without an option, print its marks. Marks are saved in gemtui's own folder; Gemini CLI's
        files don't change. ID is what `gemtui show` takes.
        """
        from gemtui.commands import marks as command

        command.mark(id, **words, as_json=as_json)

    for option in _OPTIONS:
        mark = option(mark)
    return mark


@click.group()
def marks() -> None:
    """Export and import the names, tags, notes, and pins of all sessions."""


@marks.command()
@click.option(
    "--output",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Write to FILE instead of stdout; only you can read a new file.",
)
@click.option("--force", is_flag=True, help="Replace FILE if it exists.")
def export(output: Path | None, force: bool) -> None:
    """Print the marks of all sessions as JSON."""
    from gemtui.commands import marks as command

    command.export(output, force=force)


@marks.command("import")
@click.argument("file", type=click.File("rb"))
@json_option
def import_(file: Any, as_json: bool) -> None:
    """Add the marks from FILE (- is stdin), written by `gemtui marks export`.

    Nothing is overwritten: existing names and notes stay and are listed.
    """
    from gemtui.commands import marks as command

    command.import_(file, as_json=as_json)
