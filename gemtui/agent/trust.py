"""Determine which folders Gemini CLI will work in, and which ones gemtui trusts.

The CLI refuses to run headlessly in a folder that is not trusted. Trusting a folder also enables
the project's own settings, hooks and MCP servers, so the user is asked once per folder.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from stat import S_ISDIR

import msgspec
import orjson

from gemtui.agent.cli_settings import CliSettings
from gemtui.agent.command import TRUST_VARIABLE
from gemtui.agent.settings import read_settings
from gemtui.errors import OptionError
from gemtui.files import read_small, resolved, write_whole
from gemtui.paths import gemini_home, make_own_folder, state_dir

_TRUSTING = {"TRUST_FOLDER": 0, "TRUST_PARENT": 1}
_DISTRUST = "DO_NOT_TRUST"


class TrustState(StrEnum):
    """Whether a trusted folder's path still leads to the same folder."""

    SAME = "same"
    """The folder the user trusted, as far as can be determined."""
    REPLACED = "replaced"
    """A different folder, or a link to one; it is not trusted."""
    GONE = "gone"


@dataclass(frozen=True, slots=True)
class TrustedFolder:
    """A folder the user told gemtui to trust, by its real path.

    `inode`, `owner`: distinguish the folder from another folder at the same path.
    """

    path: str
    inode: int
    owner: int

    @property
    def place(self) -> TrustState:
        """Whether the path still leads to the folder that was trusted."""
        try:
            facts = Path(self.path).lstat()
            moved = not S_ISDIR(facts.st_mode) or os.path.realpath(self.path) != self.path
        except (OSError, ValueError):
            return TrustState.GONE
        known = (self.inode, self.owner) == (facts.st_ino, facts.st_uid)
        return TrustState.SAME if known and not moved else TrustState.REPLACED


def must_ask(folder: Path, environ: Mapping[str, str]) -> bool:
    """Return whether the user must be asked to trust this folder.

    The CLI refuses to work in such a folder. It works in a folder if its own list of folders trusts
    it, if its settings disable this check, or if the environment contains the trust variable.
    gemtui's list (`remembered`) is not considered.
    """
    if TRUST_VARIABLE in environ:
        return False
    settings = CliSettings.read(environ, None)  # a project can't declare itself trusted
    if settings.get("security", "folderTrust", "enabled") is False:
        return False
    return _level_by_cli(folder, environ) not in _TRUSTING


def _level_by_cli(folder: Path, environ: Mapping[str, str]) -> str | None:
    """Return the folder's trust level in the CLI's own list; None if no path matches.

    The longest matching path wins.
    """
    place, best, decisive = resolved(folder), -1, None
    for name, said in read_settings(gemini_home(environ) / "trustedFolders.json").items():
        root, level = Path(name), said if isinstance(said, str) else ""
        if _TRUSTING.get(level):
            root = root.parent
        if place.is_relative_to(root) and len(root.parts) > best:
            best, decisive = len(root.parts), level
    return decisive


def remembered(folder: Path, environ: Mapping[str, str] = os.environ) -> bool:
    """Return whether gemtui trusts this folder and the CLI doesn't distrust it.

    A different folder at the same path, recognised by its inode and owner, is not trusted. A link
    is resolved, so if it has been changed, its new target is not trusted either.
    """
    path = str(resolved(folder))
    known = any(each.path == path and each.place is TrustState.SAME for each in trusted_folders())
    return known and _level_by_cli(folder, environ) != _DISTRUST


def trusted_folders() -> tuple[TrustedFolder, ...]:
    """Return all folders the user told gemtui to trust, oldest first."""
    try:
        value = orjson.loads(read_small(_file()))
    except (OSError, orjson.JSONDecodeError):
        return ()
    found = []
    for each in value if isinstance(value, list) else ():
        with suppress(msgspec.ValidationError):
            found.append(msgspec.convert(each, TrustedFolder))
    return tuple(found)


def remember(folder: Path) -> None:
    """Trust this folder from now on.

    Raises OSError, and OptionError for a name that is not UTF-8.
    """
    path = resolved(folder)
    try:
        str(path).encode()
    except UnicodeEncodeError:
        raise OptionError(f"{str(path)!a} is not valid UTF-8: rename it") from None
    facts = path.stat()
    others = [each for each in trusted_folders() if each.path != str(path)]
    _write([*others, TrustedFolder(str(path), facts.st_ino, facts.st_uid)])


def forget(folder: Path) -> bool:
    """Stop trusting this folder; return False if gemtui didn't trust it.

    The folder may since have been deleted or replaced by a link, so the unresolved path is compared
    as well. Raises OSError.
    """
    named = {os.path.abspath(folder), str(resolved(folder))}  # noqa: PTH100 (`..` goes)
    known = trusted_folders()
    left = [each for each in known if each.path not in named]
    if len(left) == len(known):
        return False
    _write(left)
    return True


def _write(folders: list[TrustedFolder]) -> None:
    path = _file()
    make_own_folder(path.parent)
    listed = [asdict(each) if each.inode is not None else each.path for each in folders]
    write_whole(path, (orjson.dumps(listed, option=orjson.OPT_INDENT_2),), durable=True)


def _file() -> Path:
    return state_dir() / "trusted.json"
