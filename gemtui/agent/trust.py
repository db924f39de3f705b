"""Whether Gemini CLI will work in a folder, and what the person has said about it (contract 4.5).

The CLI refuses to run headless in a folder that nobody has trusted. Trusting also switches on the
project's own settings, hooks and MCP servers, so the person is asked once per folder and never
taken for granted.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson

from gemtui.agent.command import TRUST_VARIABLE
from gemtui.agent.settings import read_settings
from gemtui.files import read_small, write_whole
from gemtui.paths import gemini_home, state_dir

_TRUSTING = {"TRUST_FOLDER": 0, "TRUST_PARENT": 1}


def must_ask(folder: Path, environ: Mapping[str, str]) -> bool:
    """Whether neither the CLI nor the environment says that this folder is trusted."""
    if TRUST_VARIABLE in environ:
        return False
    home = gemini_home(environ)
    folder_trust = _at(read_settings(home / "settings.json"), "security", "folderTrust", "enabled")
    if folder_trust is False:
        return False
    return not _trusted_by_cli(folder, read_settings(home / "trustedFolders.json"))


def _trusted_by_cli(folder: Path, rules: Mapping[str, Any]) -> bool:
    """As the CLI's own list says; the longest path that holds the folder decides."""
    place, best, trusted = folder.resolve(), -1, False
    for name, said in rules.items():
        root, level = Path(name), said if isinstance(said, str) else ""
        if _TRUSTING.get(level):
            root = root.parent
        if place.is_relative_to(root) and len(root.parts) > best:
            best, trusted = len(root.parts), level in _TRUSTING
    return trusted


def remembered(folder: Path) -> bool:
    """Whether the person has told us to trust this folder."""
    return str(folder.resolve()) in _folders(_file())


def remember(folder: Path) -> None:
    """The person trusts this folder. Raises OSError."""
    path = _file()
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    folders = [*_folders(path), str(folder.resolve())]
    write_whole(path, (orjson.dumps(folders, option=orjson.OPT_INDENT_2),))


def _file() -> Path:
    return state_dir() / "trusted.json"


def _folders(path: Path) -> list[str]:
    try:
        value = orjson.loads(read_small(path))
    except (OSError, orjson.JSONDecodeError):
        return []
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []


def _at(value: Any, *names: str) -> Any:
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value
