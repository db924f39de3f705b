"""`gemtui extension`: its status; its installation and removal after confirmation."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from functools import partial

import click

from gemtui.agent.detect import detect_cli
from gemtui.commands.output import agreed, json_to_stdout, lines_to_stdout, note, terminal_width
from gemtui.commands.shared_options import json_option, yes_option
from gemtui.extension import install as action
from gemtui.extension.install import MCP, before_install, cached_program, removal_notes
from gemtui.extension.status import ExtensionState, HookState, extension_state
from gemtui.text import clean_line

_WIDEST = 100


@click.group()
def extension() -> None:
    """Install or remove gemtui's extension for Gemini CLI.

    The extension makes "Ask me" runs possible, and lets gemtui show which sessions need you, in any
    terminal. It is installed by Gemini CLI's own command after you have agreed.
    """


@extension.command()
@json_option
def status(as_json: bool) -> int:
    """Show whether the extension's hooks run in the current folder. Exit code 1 if they don't."""
    state = extension_state()
    if as_json:
        json_to_stdout({"extension": state})
    else:
        _say_state(state)
    return 0 if state.state is HookState.READY else 1


@extension.command()
@yes_option
@click.option(
    "--mcp/--no-mcp",
    default=None,
    help="Turn agents' access to stored sessions (`gemtui mcp`) on or off; unchanged by default.",
)
def install(yes: bool, mcp: bool | None) -> int:
    """Explain what the extension does and changes, ask for confirmation, and install or update it.

    Without a terminal, --yes is required; otherwise the exit code is 2.
    """
    before = extension_state()
    cli = detect_cli()
    if before.state is HookState.MISSING:
        cli.program()
        if not _agreed(before_install(mcp=bool(mcp)), "Install the extension?", yes=yes):
            return 1
    else:
        for warning in cached_program():
            note(warning)
        if (
            mcp
            and not before.offers_mcp
            and not _agreed([MCP], "Let agents read sessions?", yes=yes)
        ):
            return 1
    state = action.install_extension(cli, mcp=mcp)
    _say_state(state)
    return 0 if state.state is HookState.READY else 1


@extension.command()
@yes_option
def remove(yes: bool) -> int:
    """Remove the extension. Without a terminal, --yes is required; otherwise the exit code is 2."""
    if not extension_state().installed:
        note("gemtui's extension is not installed")
        return 1
    if not _agreed(removal_notes(), "Remove the extension?", yes=yes):
        return 1
    action.remove_extension(detect_cli())
    lines_to_stdout(
        [clean_line("removed the extension; sessions started from now on don't use it")]
    )
    return 0


def _agreed(words: Iterable[str], question: str, *, yes: bool) -> bool:
    """Explain a change, then ask the user to confirm it; return the answer.

    `words`: the paragraphs of the explanation. `yes`: don't ask, and return True. Raises
    click.UsageError if the user would have to be asked without a terminal.
    """
    width = min(_WIDEST, terminal_width() or _WIDEST)
    wrap = partial(textwrap.wrap, width=width, break_long_words=False, break_on_hyphens=False)
    lines = [clean_line(line) for paragraph in words for line in (*wrap(paragraph), "")]
    if not yes:
        return agreed(lines, question)
    lines_to_stdout(lines)
    return True


def _say_state(found: ExtensionState) -> None:
    if found.problem is None:
        lines = [f"installed: its hooks in {found.folder} run in every Gemini CLI session"]
        if found.offers_mcp:
            lines.append(
                "agents may search and read the stored sessions of the folder they work in (mcp)"
            )
    else:
        lines = [found.problem]
    lines_to_stdout(map(clean_line, lines))
