"""The words of `gemtui extension`: read by click, handed on to the module that does it."""

from __future__ import annotations

import click

_help = {"help_option_names": ["-h", "--help"]}
_yes = click.option("--yes", is_flag=True, help="Do not ask.")


@click.group(context_settings=_help)
def extension() -> None:
    """gemtui's extension for Gemini CLI: runs that ask you, sessions in other terminals.

    It is a change to Gemini CLI, made by its own command and only when you say yes.
    """


@extension.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def status(as_json: bool) -> int:
    """Say whether its hooks run in the current folder. Exit code 1 where they do not."""
    from gemtui.commands import extension as command

    return command.status(as_json=as_json)


@extension.command()
@_yes
@click.option(
    "--mcp/--no-mcp",
    default=None,
    help="Whether agents may search and read stored sessions, by `gemtui mcp`; without it, as "
    "before.",
)
def install(yes: bool, mcp: bool | None) -> int:
    """Say what it does and touches, ask, and install it; or update it.

    Exit code 2 where nobody can be asked and there is no --yes.
    """
    from gemtui.commands import extension as command

    return command.install(yes=yes, mcp=mcp)


@extension.command()
@_yes
def remove(yes: bool) -> int:
    """Remove it. Exit code 2 where nobody can be asked and there is no --yes."""
    from gemtui.commands import extension as command

    return command.remove(yes=yes)
