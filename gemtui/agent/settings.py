"""The CLI's settings files: where they are, which it reads, and what is in one of them."""

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
"""The first CLI that looks at who could have written a settings file of the machine."""


def settings_unread(path: Path, *, version: str | None) -> str | None:
    """Return why the CLI would ignore our settings file for a run at `path`; None = it reads it.

    Since 0.60 (seen in 0.61.0) it reads such a file, and those of the machine, only if root owns
    the file and every folder above it, and neither group nor others may write there. So an ordinary
    user has no settings for one run, and nobody has any below /tmp. A file that does not exist yet
    counts as ours. `version`: of the CLI, None = unknown, which counts as new.
    """
    numbers = re.match(r"(\d+)\.(\d+)", version or "")
    if numbers and (int(numbers[1]), int(numbers[2])) < CHECKED_SINCE:
        return None
    if os.geteuid() != 0 and not os.path.lexists(path):
        return "Gemini CLI takes settings for one run from root alone"
    return next((word for place in _on_the_way(path) if (word := _unsafe(place))), None)


def _on_the_way(path: Path) -> Iterator[Path]:
    """The file and all folders above it, as named and as they are behind symbolic links."""
    named, real = path.absolute(), resolved(path)
    yield from dict.fromkeys((named, *named.parents, real, *real.parents))


def _unsafe(place: Path) -> str | None:
    try:
        facts, link = place.stat(), place.lstat()
    except FileNotFoundError:
        return None
    except OSError as error:
        return f"{place} can't be looked at: {error.strerror}"
    if facts.st_uid != 0 or link.st_uid != 0:
        return f"{place} does not belong to root"
    if facts.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return f"others than root may write in {place}"
    return None


def system_settings_path(environ: Mapping[str, str], platform: str = sys.platform) -> Path:
    """Return where the machine's settings are, unless the environment names another file."""
    if named := environ.get(SETTINGS_VARIABLE):
        return Path(named)
    if platform == "darwin":
        return Path("/Library/Application Support/GeminiCli/settings.json")
    if platform == "win32":
        return Path("C:/ProgramData/gemini-cli/settings.json")
    return Path("/etc/gemini-cli/settings.json")


def settings_places(environ: Mapping[str, str], project: Path | None) -> list[Path]:
    """The settings files of a run, from the lowest to the highest (assets/gemini-cli.md#settings).

    Those of the machine are left out where the CLI passes over them, as are those of the project
    for None.
    """
    system = system_settings_path(environ)
    named = environ.get("GEMINI_CLI_SYSTEM_DEFAULTS_PATH")
    defaults = Path(named) if named else system.parent / "system-defaults.json"
    unread = {path for path in (defaults, system) if settings_unread(path, version=None)}
    projects = [] if project is None else [project / ".gemini" / "settings.json"]
    places = (defaults, gemini_home(environ) / "settings.json", *projects, system)
    return [path for path in dict.fromkeys(places) if path not in unread]


def system_settings(environ: Mapping[str, str], *, version: str | None) -> dict[str, Any]:
    """Return the machine's settings, as far as a CLI of this version reads them."""
    path = system_settings_path(environ)
    return read_settings(path) if settings_unread(path, version=version) is None else {}


def read_settings(path: Path, environ: Mapping[str, str] | None = None) -> dict[str, Any]:
    """As `load_settings`, but return an empty dict where the file can't be read."""
    with suppress(OSError):
        return load_settings(path, environ)
    return {}


def load_settings(path: Path, environ: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Read a settings file of the CLI, which may hold comments.

    `environ`: what `$NAME`, `${NAME}` and `${NAME:-else}` in strings are replaced from (seen in
    0.61.0); None = they are kept. Raises OSError, also for what is no JSON object.
    """
    found = object_of(without_comments(read_small(path)), path)
    settings: dict[str, Any] = found if environ is None else _with_variables(found, environ)
    return settings


def settings_problems(environ: Mapping[str, str], project: Path | None = None) -> tuple[str, ...]:
    """Return which settings files exist and can't be read, each with why and the way out.

    `project`: the folder of a run, whose own settings are looked at as well. The values in the
    files are not judged.
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
        return f"{why}; Gemini CLI ends at once with it (exit code 52): mend or remove it"
    return None


_VARIABLE = re.compile(r"\$(?:(\w+)|\{([^}]+?)(?::-([^}]*))?\})", re.ASCII)


def _with_variables(value: Any, environ: Mapping[str, str]) -> Any:
    """A setting with variables put into its texts; one that is not set stays as it is written."""

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
