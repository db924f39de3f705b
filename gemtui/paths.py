"""The locations of Gemini CLI's files and of gemtui's own.

gemtui's own files follow the conventions of the system (XDG on Linux, Library on macOS) and are
never in the CLI's folder.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import platformdirs

from gemtui.files import close_folder, make_folder, make_private
from gemtui.system import HOME

_APP = "gemtui"


def gemini_home(environ: Mapping[str, str] = os.environ) -> Path:
    """Return the CLI's folder: `$GEMINI_CLI_HOME/.gemini` if set, or else `~/.gemini`."""
    base = environ.get("GEMINI_CLI_HOME") or environ.get(HOME)
    return (Path(base) if base else Path.home()).absolute() / ".gemini"


def sandboxed_home(home: Path) -> Path:
    """Return the folder with the sessions of CLIs that run in macOS's sandbox.

    `home`: the CLI's folder, `.gemini` (assets/gemini-cli.md#places).
    """
    return home.parent / ".cache" / home.name


def typed_path(text: str | os.PathLike[str]) -> Path:
    """Expand `~` and `~name` in a path the user typed.

    If there is no such user, the path is returned unchanged, as a shell would.
    """
    try:
        return Path(os.path.expanduser(text))  # noqa: PTH111  (Path.expanduser raises for it)
    except ValueError:  # a NUL in the name
        return Path(text)


def settings_path(text: str, home: Path) -> Path:
    """Expand a path in the CLI's settings as the CLI does.

    `home`: the CLI's folder, `.gemini`. `~` means the parent of `home`; `~name` is not expanded.
    """
    return home.parent / text[2:] if text == "~" or text.startswith("~/") else Path(text)


def setting_paths(value: object, home: Path, base: Path) -> tuple[Path, ...]:
    """Return the paths in a setting such as `policyPaths`, without duplicates.

    `value`: a list, or a single string, which is not split at commas. `home`: the CLI's folder, as
    in `settings_path`. `base`: the folder that relative paths refer to, which is the run's folder.
    Paths keep their order.
    """
    if isinstance(value, str):
        value = [value]
    items = value if isinstance(value, list) else ()
    texts = (item for item in items if isinstance(item, str) and item and "\0" not in item)
    return tuple(dict.fromkeys(base / settings_path(text, home) for text in texts))


def folder_here() -> Path | None:
    """Return the folder gemtui was started in; None if it has been removed."""
    try:
        return Path.cwd()
    except OSError:
        return None


_stood_in = [Path(os.environ.get("PWD") or os.sep)]


def current_folder() -> Path:
    """Return the current folder, or its last known path if it has been removed."""
    with suppress(OSError):
        _stood_in[0] = Path.cwd()
    return _stood_in[0]


def config_file(environ: Mapping[str, str] = os.environ) -> Path:
    """Return the path of gemtui's settings file, which `$GEMTUI_CONFIG` overrides.

    The file need not exist.
    """
    chosen = environ.get("GEMTUI_CONFIG")
    if chosen:
        return typed_path(chosen)
    return platformdirs.user_config_path(_APP, appauthor=False) / "config.toml"


def cache_dir() -> Path:
    """Return the folder for data that can be recreated, such as session summaries."""
    return platformdirs.user_cache_path(_APP, appauthor=False)


def data_dir() -> Path:
    """Return the folder for the user's own, irreplaceable data, such as notes."""
    return platformdirs.user_data_path(_APP, appauthor=False)


def extension_dir() -> Path:
    """Return the folder of gemtui's extension, which the CLI loads from there."""
    return data_dir() / "extension"


def live_dir() -> Path:
    """Return the folder where Gemini CLI hooks write one file per CLI process."""
    return data_dir() / "live"


def vault_dir() -> Path:
    """Return the vault: the folder that archives sessions the CLI may delete."""
    return data_dir() / "vault"


def checkpoints_dir() -> Path:
    """Return the folder for project checkpoints, which are used to undo changes."""
    return data_dir() / "checkpoints"


def worktrees_dir() -> Path:
    """Return the folder for the git worktrees where runs work, one subfolder each."""
    return data_dir() / "worktrees"


def hooked_dir() -> Path:
    """Return the folder where Gemini CLI hooks write requests for checkpoints."""
    return data_dir() / "hooked"


def state_dir() -> Path:
    """Return the folder for state that is kept between starts, except settings."""
    return platformdirs.user_state_path(_APP, appauthor=False)


def runs_dir() -> Path:
    """Return the folder that contains all runs' folders."""
    return state_dir() / "runs"


def left_off_file() -> Path:
    """Return the file with the places where the user left sessions and lists."""
    return state_dir() / "left-off.json"


def failed_commands_dir() -> Path:
    """Return the folder that records failures of the user's own commands."""
    return state_dir() / "failed-commands"


def prompts_file() -> Path:
    """Return the file with the history of prompts offered in the run pane."""
    return state_dir() / "prompts.jsonl"


def marks_file() -> Path:
    """Return the file with the sessions' names, tags and notes; it may not exist yet."""
    return data_dir() / "marks.sqlite3"


def make_own_folder(folder: Path) -> None:
    """Create one of gemtui's folders and its parents, accessible only to the user.

    If one of gemtui's own folders already exists, other users' access to it is removed (0700). If
    the user chose a folder elsewhere, existing folders keep their mode. Raises OSError.
    """
    tops = config_file({}).parent, cache_dir(), data_dir(), state_dir()
    for parent in (*reversed(folder.parents), folder):
        if any(map(parent.is_relative_to, tops)):
            close_folder(parent)
    make_folder(folder)


def make_own_file(path: Path) -> None:
    """Create one of gemtui's files (0600), and its folder as `make_own_folder` does.

    Raises OSError.
    """
    make_own_folder(path.parent)
    make_private(path)
