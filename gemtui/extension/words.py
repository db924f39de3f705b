"""What a person is told before the extension is installed or removed."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

from gemtui.extension.content import NAME
from gemtui.paths import extension_dir, gemini_home, live_dir, vault_dir

WARNING = (
    "Google does not vet, endorse, or guarantee the functionality or security of extensions. "
    "Please carefully inspect any extension and its source code before installing"
)
"""From what Gemini CLI says whenever an extension is installed."""


def before_install(environ: Mapping[str, str] = os.environ) -> Iterator[str]:
    """Yield the paragraphs that say what the extension does and what installing it touches."""
    home = gemini_home(environ)
    yield (
        "This extension of Gemini CLI lets gemtui ask you before a run acts, show which of your "
        "Gemini sessions work or wait for you, and keep sessions that Gemini CLI deletes."
    )
    yield (
        "Its hooks, a short shell script, run in every Gemini session of yours, in any terminal. "
        "In sessions that gemtui did not start they take some milliseconds, change nothing, and "
        "note what the session does now, which may be part of a prompt or a file, in "
        f"{live_dir()}, readable by you alone. Nothing leaves this machine. Sessions are kept "
        "only once you switch that on."
    )
    yield (
        f"gemtui writes it to {extension_dir()}. Below {home} Gemini CLI's own command `gemini "
        f"extensions link` writes: extensions/{NAME}/.gemini-extension-install.json, which refers "
        "to that folder; extensions/extension-enablement.json; extension_integrity.json with "
        "gemini-credentials.json; and what any start of it in your home folder writes: "
        "projects.json, installation_id and a folder below tmp and history."
    )
    yield f"Gemini CLI says of every extension: “{WARNING}”"
    yield "To take it out again: gemtui extension remove"


def before_removal(environ: Mapping[str, str] = os.environ) -> Iterator[str]:
    """Yield the paragraphs that say what removing the extension does and leaves."""
    home = gemini_home(environ)
    yield (
        "Gemini CLI's own command `gemini extensions uninstall` removes "
        f"{home}/extensions/{NAME}, then gemtui removes {extension_dir()} and {live_dir()}. "
        "Sessions that go on are not disturbed."
    )
    yield (
        f"Gemini CLI leaves the name {NAME} in {home}/extension_integrity.json, a signed file, "
        f"where it does nothing. What {vault_dir()} keeps stays."
    )
    yield "Then gemtui can't ask you during a run, and sees less of sessions in other terminals."
