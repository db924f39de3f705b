"""The programs and settings that a project's own files bring into Claude Code unasked.

Without a terminal, Claude Code asks nobody whether to trust a folder: it starts the servers and
programs that the project names, and loads its environment (assets/agents.md#trust-in-claude-code).
So gemtui leaves these files out, unless the user has trusted the folder in Claude Code itself.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from gemtui.errors import reason_of
from gemtui.files import resolved
from gemtui.jsonfile import read_object
from gemtui.system import HOME
from gemtui.transcript.parts import mapping

HARMLESS = frozenset(
    (
        "$schema",
        "alwaysThinkingEnabled",
        "attribution",
        "cleanupPeriodDays",
        "disableAllHooks",
        "effortLevel",
        "hooks",
        "includeCoAuthoredBy",
        "language",
        "model",
        "outputStyle",
        "permissions",
        "respectGitignore",
        "statusLine",
        "theme",
    )
)
"""Settings that start nothing in a run of gemtui, which turns hooks off and decides all calls."""
SERVERS = ".mcp.json"


def claude_home(environ: Mapping[str, str]) -> Path:
    """Return the folder of Claude Code's settings and sessions."""
    chosen = environ.get("CLAUDE_CONFIG_DIR")
    base = environ.get(HOME) or Path.home()
    return Path(chosen).absolute() if chosen else Path(base, ".claude").absolute()


def trusts(folder: Path, environ: Mapping[str, str]) -> bool:
    """Return whether the user has trusted a folder, or one that it is in, in Claude Code."""
    home = claude_home(environ)
    beside = home if environ.get("CLAUDE_CONFIG_DIR") else home.parent
    try:
        projects = mapping(read_object(beside / ".claude.json").get("projects"))
    except OSError:
        return False
    real = resolved(folder)
    return any(
        mapping(projects.get(str(path))).get("hasTrustDialogAccepted") is True
        for path in (real, *real.parents)
    )


def variables(folder: Path, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that Claude Code's settings add to a run in this folder.

    Settings that can't be read add none.
    """
    home = claude_home(environ)
    places = [home / "settings.json", *(_own(folder) if trusts(folder, environ) else ())]
    added: dict[str, str] = {}
    for path in places:
        with suppress(OSError):
            env = mapping(read_object(path).get("env"))
            added |= {name: str(value) for name, value in env.items()}
    return added


def _own(folder: Path) -> tuple[Path, ...]:
    return tuple(folder / ".claude" / name for name in ("settings.json", "settings.local.json"))


def starts_of(folder: Path) -> Iterator[tuple[Path, str, str]]:
    """Yield what the files of a project may start: a file, a setting, and what follows.

    A file that can't be read counts, because Claude Code may read it.
    """
    for path in _own(folder):
        try:
            settings = read_object(path)
        except FileNotFoundError:
            continue
        except OSError as error:
            yield path, "the file", f"It can't be checked: {reason_of(error)}."
            continue
        for setting, value in settings.items():
            if setting == "env":
                names = ", ".join(map(str, mapping(value)))
                yield path, setting, f"Claude Code and all commands get the variables {names}."
            elif setting not in HARMLESS:
                yield path, setting, "Claude Code may start programs because of it."
    path = folder / SERVERS
    if os.path.lexists(path):
        yield path, "mcpServers", "Claude Code starts the MCP servers that it names."
