"""`gemtui help` and `gemtui completion`: the manual offline, and scripts for shells."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

import click
from click.shell_completion import (
    CompletionItem,
    ShellComplete,
    add_completion_class,
    get_completion_class,
)

from gemtui.commands.output import columns, lines_to_stdout, terminal_width
from gemtui.files import is_folder

_COMMENT = re.compile(r"<!--.*?-->\n*|^!\[.*\n+", re.DOTALL | re.MULTILINE)
"""Matches comments, and pictures, which a terminal doesn't show."""
_LINK = re.compile(r"\[([^]]+)\]\(([\w-]+)\.md[^)]*\)")


def _pages() -> Mapping[str, Path]:
    """Return the manual's pages by name; in a checkout, they are in its folder `assets`."""
    package = Path(__file__).parents[1]
    packaged = package / "manual"
    folder = packaged if is_folder(packaged) else package.parent / "assets"
    return {path.stem: path for path in sorted(folder.glob("*.md"))}


def _topics(
    _context: click.Context, _param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    return [CompletionItem(name) for name in _pages() if name.startswith(incomplete)]


@click.command("help")
@click.argument("topic", required=False, shell_complete=_topics)
def show_page(topic: str | None) -> None:
    """Print a page of the manual, or list the pages. No network connection is needed."""
    pages = _pages()
    if topic is None:
        titles = {name: _text(path).partition("\n")[0] for name, path in pages.items()}
        rows = [(name, title.removeprefix("# ")) for name, title in titles.items()]
        lines_to_stdout(columns(rows, room=terminal_width()))
    elif topic in pages:
        text = _LINK.sub(r"\1 (gemtui help \2)", _COMMENT.sub("", _text(pages[topic])))
        lines_to_stdout(text.rstrip("\n").split("\n"))
    else:
        raise click.UsageError(
            f"the manual has no page '{topic}': gemtui help lists the pages, and a command "
            "explains itself with --help"
        )


def _text(page: Path) -> str:
    return page.read_text(encoding="utf-8")


@add_completion_class
class PowerShellComplete(ShellComplete):
    """Completion in PowerShell, which click doesn't have."""

    name = "powershell"
    source_template = """\
Register-ArgumentCompleter -Native -CommandName %(prog_name)s -ScriptBlock {
    param($word, $ast, $position)
    $typed = $ast.CommandElements | Select-Object -Skip 1 |
        Where-Object { $_.Extent.EndOffset -lt $position } | ForEach-Object { $_.Extent.Text }
    $env:COMP_WORDS = $typed -join "`n"
    $env:COMP_WORD = $word
    $env:%(complete_var)s = "powershell_complete"
    try {
        & %(prog_name)s | ForEach-Object {
            $value, $about = $_ -split "`t", 2
            [System.Management.Automation.CompletionResult]::new(
                $value, $value, "ParameterValue", $about)
        }
    } finally {
        Remove-Item Env:COMP_WORDS, Env:COMP_WORD, Env:%(complete_var)s
    }
}
"""

    def get_completion_args(self) -> tuple[list[str], str]:
        """Return the words before the one to complete, and that one."""
        typed = os.environ.get("COMP_WORDS", "").split("\n")
        return [word for word in typed if word], os.environ.get("COMP_WORD", "")

    def format_completion(self, item: CompletionItem) -> str:
        """Return a line with what would be typed, and what it means."""
        return f"{item.value}\t{item.help or item.value}"


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish", "powershell"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the script with which a shell completes gemtui's commands, options and session ids."""
    root = context.find_root()
    made = get_completion_class(shell)
    assert made is not None
    script = made(root.command, {}, str(root.info_name), "_GEMTUI_COMPLETE").source()
    lines_to_stdout(script.strip("\n").split("\n"))
