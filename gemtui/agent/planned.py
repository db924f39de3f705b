"""What a command would be made for, where there may be no CLI yet."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from gemtui.agent.capabilities import NEWEST
from gemtui.agent.command import SETTINGS, Machine
from gemtui.agent.gemini import GeminiAdapter
from gemtui.agent.settings import (
    settings_unread,
    system_settings,
    user_policies,
)
from gemtui.errors import CliNotFound
from gemtui.policy.rules import CHECKED_AGAINST


def planned_machine(
    adapter: GeminiAdapter, cwd: Path | None = None, environ: Mapping[str, str] = os.environ
) -> tuple[Machine, str]:
    """What commands in `cwd` depend on; without a CLI the newest known one, and words that say so.

    The words are "" where a CLI is there. May take seconds: the CLI is asked.
    """
    try:
        return adapter.machine(cwd), ""
    except CliNotFound:
        machine = Machine(
            cli=Path("gemini"),
            capabilities=NEWEST,
            environ=environ,
            user_policies=user_policies(environ, cwd),
            system_settings=system_settings(environ, version=CHECKED_AGAINST),
            settings_unread=settings_unread(adapter.runs / SETTINGS, version=CHECKED_AGAINST),
        )
        return machine, f"no Gemini CLI is installed: these are the words for {CHECKED_AGAINST}"
