"""`gemtui trust`: show and change which folders gemtui trusts."""

from __future__ import annotations

from pathlib import Path

import click
from click.shell_completion import CompletionItem

from gemtui.agent.trust import TrustedFolder, TrustState, forget, trusted_folders
from gemtui.commands.output import json_to_stdout, lines_to_stdout, note
from gemtui.commands.shared_options import by_default, completions, json_option
from gemtui.text import clean_line

_WORDS = {
    TrustState.SAME: "",
    TrustState.REPLACED: "replaced by another folder, which is not trusted",
    TrustState.GONE: "does not exist",
}


def _folders(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return completions(((folder.path, "") for folder in trusted_folders()), incomplete)


@click.group(invoke_without_command=True)
@json_option
@click.pass_context
def trust(ctx: click.Context, as_json: bool) -> None:
    """List the folders that you told gemtui to trust, or stop trusting one.

    Runs in these folders are trusted as with --trust. Without a command, list them.
    """
    by_default(ctx, list_, as_json=as_json)


@trust.command("list")
@json_option
def list_(as_json: bool) -> None:
    """List the trusted folders."""
    folders = trusted_folders()
    if as_json:
        listed = [{"path": folder.path, "place": folder.place.value} for folder in folders]
        json_to_stdout({"folders": listed})
        return
    lines_to_stdout(map(_line, folders))
    if not folders:
        note("no trusted folders")


@trust.command()
@click.argument("folder", metavar="DIR", shell_complete=_folders, type=click.Path(path_type=Path))
@json_option
def remove(folder: Path, as_json: bool) -> int:
    """Stop trusting DIR. Exit code 1 if it was not trusted."""
    removed = forget(folder)
    if as_json:
        json_to_stdout({"removed": removed})
    elif not removed:
        note(f"gemtui does not trust {folder}: list trusted folders with gemtui trust")
    return 0 if removed else 1


def _line(folder: TrustedFolder) -> str:
    text = _WORDS[folder.place]
    path = clean_line(folder.path)
    return f"{path}  ({text})" if text else path
