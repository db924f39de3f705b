"""The command line of `gemtui extension`: parsed by click, passed to the module that does it."""

from __future__ import annotations

import click

from gemtui.commands.shared_options import json_option, yes_option


@click.group()
def extension() -> None:
    """Install or remove gemtui's extension for Gemini CLI.

    It makes "Ask me" runs possible and shows which sessions need you, in any terminal. Gemini CLI's
    own command installs it, after you have agreed.
    """


@extension.command()
@json_option
def status(as_json: bool) -> int:
    """Show whether its hooks run in the current folder. Exit code 1 if they don't."""
    from gemtui.commands import extension as command

    return command.status(as_json=as_json)


@extension.command()
@yes_option
@click.option(
    "--mcp/--no-mcp",
    default=None,
    help="Let agents search and read stored sessions (`gemtui mcp`), or stop it; by default "
    "unchanged.",
)
def install(yes: bool, mcp: bool | None) -> int:
    """Explain what the extension does and changes, ask, and install or update it.

    Without a terminal it needs --yes, or exits with 2.
    """
    from gemtui.commands import extension as command

    return command.install(yes=yes, mcp=mcp)


@extension.command()
@yes_option
def remove(yes: bool) -> int:
    """Remove the extension. Without a terminal it needs --yes, or exits with 2."""
    from gemtui.commands import extension as command

    return command.remove(yes=yes)
