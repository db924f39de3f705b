"""Where Gemini CLI keeps its things, and where we keep ours.

Ours follow the system (XDG on Linux, Library on macOS); nothing of ours is ever kept in Gemini's
folder.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import platformdirs

_APP = "gemtui"


def gemini_home(environ: Mapping[str, str] = os.environ) -> Path:
    """The CLI's folder: `$GEMINI_CLI_HOME/.gemini` if that is set, else `~/.gemini`."""
    base = environ.get("GEMINI_CLI_HOME") or environ.get("HOME")
    return (Path(base) if base else Path.home()).absolute() / ".gemini"


def typed_path(text: str | os.PathLike[str]) -> Path:
    """A path as a person or a settings file names it: `~` and `~name` are home directories.

    A name that nobody has, or can have, stays as it is, as in a shell.
    """
    try:
        return Path(os.path.expanduser(text))  # noqa: PTH111  (Path.expanduser raises for it)
    except ValueError:  # a NUL in the name
        return Path(text)


def config_file(environ: Mapping[str, str] = os.environ) -> Path:
    """Our settings; `$GEMTUI_CONFIG` names another file. It need not exist."""
    chosen = environ.get("GEMTUI_CONFIG")
    if chosen:
        return typed_path(chosen)
    return platformdirs.user_config_path(_APP, appauthor=False) / "config.toml"


def cache_dir() -> Path:
    """Folder for what can be made again: the summaries of sessions, their titles included."""
    return platformdirs.user_cache_path(_APP, appauthor=False)


def state_dir() -> Path:
    """Folder for what should outlive a start and is no setting."""
    return platformdirs.user_state_path(_APP, appauthor=False)


def prompts_file() -> Path:
    """The prompts of earlier runs, as the run pane offers them again."""
    return state_dir() / "prompts.jsonl"
