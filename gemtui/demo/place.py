"""Prepare the demo's home for runs: the stand-in as a program, settings, environment."""

from __future__ import annotations

import json
import shlex
import shutil
from pathlib import Path

from gemtui.processes import python

PROJECT = "src/tidewatch"
"""The folder in which runs start, below the demo's home."""

POLICIES = Path(__file__).with_name("policies")
"""The demo's policies: one for everyday use, one that only reads."""

SETTINGS = {
    "general": {"defaultApprovalMode": "auto_edit"},
    "tools": {"allowed": ["run_shell_command"]},
}


def install_agent(home: Path) -> dict[str, str]:
    """Install the stand-in as the Gemini CLI of the demo's `home`, which already has a store.

    Returns the environment variables to add: the program, its home, settings with two policies, and
    folders for gemtui's own files, so that none of the user's are touched. Raises OSError.
    """
    program = home / "bin" / "gemini"
    program.parent.mkdir()
    words = shlex.join(python("-m", "gemtui.demo.agent"))
    program.write_text(f'#!/bin/sh\nexec {words} "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    store = home / ".gemini"
    (store / "settings.json").write_text(json.dumps(SETTINGS, indent=2), encoding="utf-8")
    trusted = {str(home): "TRUST_FOLDER"}
    (store / "trustedFolders.json").write_text(json.dumps(trusted, indent=2), encoding="utf-8")
    config = home / "config" / "config.toml"
    shutil.copytree(POLICIES, config.parent / "policies")
    return {
        "GEMTUI_CONFIG": str(config),
        "GEMINI_CLI_HOME": str(home),
        "GEMINI_CLI_PATH": str(program),
        "XDG_DATA_HOME": str(home / "data"),
        "XDG_STATE_HOME": str(home / "state"),
        "XDG_CACHE_HOME": str(home / "cache"),
    }
