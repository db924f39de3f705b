"""The CLI's settings files: their paths, contents, and whether they are read."""

from __future__ import annotations

import os
import re
import stat
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from gemtui.files import read_small, resolved
from gemtui.jsonfile import object_of, without_comments
from gemtui.paths import gemini_home

SETTINGS_VARIABLE = "GEMINI_CLI_SYSTEM_SETTINGS_PATH"


CHECKED_SINCE = (0, 60)
"""The first CLI version that checks who can write to the machine's settings."""


def settings_unread(path: Path, *, version: str | None) -> str | None:
    """Return why the CLI would ignore the run's settings file at `path`, or None.

    Since 0.60 (seen in 0.61.0), the CLI reads a run's settings or the machine's only if root owns
    the file and every folder above it, and nobody else has write permission for them. So an
    ordinary user can't have settings for a single run, and even root can't have them under /tmp. A
    file that doesn't exist yet is treated as if the current user owned it. `version`: the CLI's
    version; None means unknown, which is treated as new.
    """
    numbers = re.match(r"(\d+)\.(\d+)", version or "")
    if numbers and (int(numbers[1]), int(numbers[2])) < CHECKED_SINCE:
        return None
    if os.geteuid() != 0 and not os.path.lexists(path):
        return "Gemini CLI accepts a settings file for a single run only if root owns the file"
    return next((word for place in _on_the_way(path) if (word := _unsafe(place))), None)


def _on_the_way(path: Path) -> Iterator[Path]:
    """Yield the path and all its parents, first as written, then with links resolved."""
    named, real = path.absolute(), resolved(path)
    yield from dict.fromkeys((named, *named.parents, real, *real.parents))


def _unsafe(place: Path) -> str | None:
    try:
        facts, link = place.stat(), place.lstat()
    except FileNotFoundError:
        return None
    except OSError as error:
        return f"{place} can't be checked: {error.strerror}"
    if facts.st_uid != 0 or link.st_uid != 0:
        return f"{place} does not belong to root"
    if facts.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return f"users other than root can write to {place}"
    return None


def system_settings_path(environ: Mapping[str, str], platform: str = sys.platform) -> Path:
    """Return the path of the machine's settings, which the environment may override."""
    if named := environ.get(SETTINGS_VARIABLE):
        return Path(named)
    if platform == "darwin":
        return Path("/Library/Application Support/GeminiCli/settings.json")
    if platform == "win32":
        return Path("C:/ProgramData/gemini-cli/settings.json")
    return Path("/etc/gemini-cli/settings.json")


def settings_places(environ: Mapping[str, str], project: Path | None) -> list[Path]:
    """Return a run's settings files, in ascending order of priority.

    See assets/gemini-cli.md#settings. The machine's files are left out if the CLI ignores them.
    `project`: None leaves out the project's settings.
    """
    system = system_settings_path(environ)
    named = environ.get("GEMINI_CLI_SYSTEM_DEFAULTS_PATH")
    defaults = Path(named) if named else system.parent / "system-defaults.json"
    unread = {path for path in (defaults, system) if settings_unread(path, version=None)}
    home = gemini_home(environ)
    places = [defaults, home / "settings.json"]
    if project is not None and resolved(project) != resolved(home.parent):  # else read already
        places.append(project / ".gemini" / "settings.json")
    places.append(system)
    return [path for path in dict.fromkeys(places) if path not in unread]


def system_settings(environ: Mapping[str, str], *, version: str | None) -> dict[str, Any]:
    """Return the machine's settings, or {} if a CLI of this version ignores them."""
    path = system_settings_path(environ)
    return read_settings(path) if settings_unread(path, version=version) is None else {}


def read_settings(path: Path, environ: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Read a settings file like `load_settings`, but return {} if that fails."""
    with suppress(OSError):
        return load_settings(path, environ)
    return {}


def load_settings(path: Path, environ: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Read one of the CLI's settings files, which may contain comments.

    `environ`: the values for `$NAME`, `${NAME}` and `${NAME:-default}` in strings (seen in 0.61.0);
    if None, variables are not replaced. Raises OSError, including when the file isn't a JSON
    object.
    """
    found = object_of(without_comments(read_small(path)), path)
    settings: dict[str, Any] = found if environ is None else _with_variables(found, environ)
    return settings


def settings_problems(environ: Mapping[str, str], project: Path | None = None) -> tuple[str, ...]:
    """Return a message, with a remedy, for each settings file that can't be read.

    `project`: a run's folder, whose own settings are checked as well. The values in the files are
    not checked.
    """
    places = [*settings_places(environ, project), gemini_home(environ) / "trustedFolders.json"]
    return tuple(problem for path in places if (problem := _problem(path)))


def _problem(path: Path) -> str | None:
    try:
        load_settings(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        why = f"{path} can't be read: {error.strerror}"
        return f"{why}; Gemini CLI exits immediately because of it (exit code 52): repair or remove it"
    return None


_VARIABLE = re.compile(r"\$(?:(\w+)|\{([^}]+?)(?::-([^}]*))?\})", re.ASCII)


def _with_variables(value: Any, environ: Mapping[str, str]) -> Any:
    """Replace variables in a setting's strings; unset variables are left unchanged."""

    def named(found: re.Match[str]) -> str:
        otherwise = found[0] if found[3] is None else found[3]
        return environ.get(found[1] or found[2], otherwise)

    if isinstance(value, str):
        return _VARIABLE.sub(named, value)
    if isinstance(value, list):
        return [_with_variables(item, environ) for item in value]
    if isinstance(value, dict):
        return {name: _with_variables(item, environ) for name, item in value.items()}
    return value
