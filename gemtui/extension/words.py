"""The explanations shown before the extension is installed or removed."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

from gemtui.extension.content import NAME
from gemtui.paths import extension_dir, gemini_home, live_dir, vault_dir
from gemtui.text import short_path

WARNING = "Google does not vet, endorse, or guarantee the functionality or security of extensions."
"""Quoted from the notice that Gemini CLI shows when an extension is installed."""


MCP = (
    "In every session in a trusted folder, agents can then search and read the stored sessions of "
    "that folder, by tools of a server that gemtui starts; nothing can be changed by it. What a "
    "model reads there goes where its other text goes."
)
"""The additional effect if the extension provides the MCP server that reads sessions."""


def before_install(environ: Mapping[str, str] = os.environ, *, mcp: bool = False) -> Iterator[str]:
    """Yield paragraphs about what the extension does, and what installing it changes.

    `mcp`: the extension also provides agents with an MCP server that reads stored sessions.
    """
    yield (
        "gemtui's extension of Gemini CLI lets it ask you before a run acts, show which Gemini "
        "sessions work or wait for you in any terminal, and, once you switch that on, keep "
        "sessions that Gemini CLI deletes."
    )
    yield (
        "Its hooks, a short shell script, run in every Gemini session of yours. In those that "
        "gemtui did not start they take milliseconds, change nothing, and note what happened last, "
        f"which may be part of a prompt or a file, in {short_path(live_dir())}, readable by you "
        "alone. With the setting “checkpoints” at “always” they also take checkpoints of the "
        "folders in which Gemini CLI works. Nothing leaves this machine. While you work in Gemini "
        "CLI, its status line says "
        f"“Executing Hook: {NAME}” now and then; its setting hooksConfig.notifications hides that."
    )
    if mcp:
        yield MCP
    yield (
        f"gemtui writes it to {short_path(extension_dir())}. Below "
        f"{short_path(gemini_home(environ))} Gemini CLI's own command `gemini extensions link` "
        f"writes: extensions/{NAME}/.gemini-extension-install.json, extensions/"
        "extension-enablement.json, extension_integrity.json, gemini-credentials.json, and what "
        "any start in your home folder writes: projects.json, installation_id, a folder in tmp and "
        "in history."
    )
    yield f"Gemini CLI says of every extension: “{WARNING}”"
    yield "To take it out again: gemtui extension remove"


def before_removal(environ: Mapping[str, str] = os.environ) -> Iterator[str]:
    """Yield paragraphs about what removing the extension does, and what remains."""
    home = short_path(gemini_home(environ))
    yield (
        "Gemini CLI's own command `gemini extensions uninstall` removes "
        f"{home}/extensions/{NAME}, then gemtui removes {short_path(extension_dir())} and "
        f"{short_path(live_dir())}. Running sessions are not disturbed."
    )
    yield (
        f"Gemini CLI leaves the name {NAME} in {home}/extension_integrity.json, a signed file, "
        f"where it does nothing. What {short_path(vault_dir())} keeps stays."
    )
    yield "Then gemtui can't ask you during a run, and sees less of sessions in other terminals."
