"""The explanations shown before the extension is installed or removed."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

from gemtui.extension.content import NAME
from gemtui.paths import extension_dir, gemini_home, live_dir, vault_dir
from gemtui.text import short_path

WARNING = "Google does not vet, endorse, or guarantee the functionality or security of extensions."
"""A quote from the notice Gemini CLI shows when installing an extension."""


MCP = (
    "In every session in a trusted folder, agents can then search and read the stored sessions of "
    "that folder, using a read-only MCP server that gemtui starts. What a model reads there is "
    "sent wherever the model's other input goes."
)
"""The additional paragraph if the extension provides the MCP server for sessions."""


def before_install(environ: Mapping[str, str] = os.environ, *, mcp: bool = False) -> Iterator[str]:
    """Yield paragraphs about what the extension does, and what installing it changes.

    `mcp`: also provide agents with an MCP server that reads stored sessions.
    """
    yield (
        "With this extension, gemtui can ask you before a run acts, show which Gemini CLI "
        "sessions are working or waiting for you in any terminal and, if you turn that on, save "
        "sessions that Gemini CLI deletes."
    )
    yield (
        "Its hooks, shell scripts, run in every Gemini CLI session. In sessions that gemtui did "
        "not start, they take milliseconds and change nothing. They save the latest event, which "
        f"may contain part of a prompt or file, in {short_path(live_dir())}, readable only by "
        "you. If the setting “checkpoints” is “always”, they also take checkpoints of the folders "
        "that sessions work in. Nothing leaves this machine. Gemini CLI sometimes shows "
        f"“Executing Hook: {NAME}”; its setting hooksConfig.notifications turns that off."
    )
    if mcp:
        yield MCP
    yield (
        f"gemtui writes the extension to {short_path(extension_dir())}. Under "
        f"{short_path(gemini_home(environ))}, Gemini CLI's own command `gemini extensions link` "
        f"writes extensions/{NAME}/.gemini-extension-install.json, "
        "extensions/extension-enablement.json, extension_integrity.json and "
        "gemini-credentials.json. Like any start of Gemini CLI in your home folder, it also "
        "writes projects.json, installation_id and one folder each in tmp and history."
    )
    yield f"Gemini CLI's warning about every extension: “{WARNING}”"
    yield "To remove it again: gemtui extension remove"


def removal_notes(environ: Mapping[str, str] = os.environ) -> Iterator[str]:
    """Yield paragraphs about what removing the extension does, and what remains."""
    home = short_path(gemini_home(environ))
    yield (
        "Gemini CLI's own command `gemini extensions uninstall` deletes "
        f"{home}/extensions/{NAME}, then gemtui deletes {short_path(extension_dir())} and "
        f"{short_path(live_dir())}. Sessions that are running are not affected."
    )
    yield (
        f"Gemini CLI keeps the name {NAME} in {home}/extension_integrity.json, a signed file, "
        f"where it has no effect. The files in {short_path(vault_dir())} are kept."
    )
    yield ("Afterwards, gemtui can't ask you during a run, and shows less about sessions in other terminals.")
