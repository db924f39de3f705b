"""Determine who trusts a folder, and which settings count in it.

The CLI refuses to run headlessly in a folder that is not trusted. Trusting a folder also enables
the project's own settings, hooks and MCP servers, so the user is asked once per folder. See
assets/gemini-cli.md#trust.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from stat import S_ISDIR
from typing import Final

import msgspec
import orjson

from gemtui.agent.settings import CliSettings, read_settings
from gemtui.errors import OptionError
from gemtui.files import read_small, resolved, stat_if_possible, write_whole
from gemtui.paths import gemini_home, make_own_folder, state_dir

TRUST_VARIABLE = "GEMINI_CLI_TRUST_WORKSPACE"
TRUST_VALUES: Final = {"true": True, "false": False}
"""Maps the variable's values to whether they trust the folder; others have no effect."""
_PARENT = "TRUST_PARENT"
_TRUSTING = frozenset({"TRUST_FOLDER", _PARENT})
_DISTRUST = "DO_NOT_TRUST"
_RESTRICTED = "GEMINI_RESTRICTED_MODE"


class FolderTrust(StrEnum):
    """The trust in a folder: by Gemini CLI, by gemtui, or by nobody."""

    CLI = "cli"
    """Gemini CLI, by its own list of folders, its settings or the environment."""
    GEMTUI = "gemtui"
    """Only gemtui, which therefore starts runs there with the trust option."""
    NOBODY = "nobody"
    """Neither, so the user must be asked before a run."""
    FORBIDDEN = "forbidden"
    """Nobody can trust it, because the environment forbids that; asking the user is of no use."""

    @property
    def is_trusted(self) -> bool:
        """Whether the project's own settings count in runs that gemtui starts."""
        return self in (FolderTrust.CLI, FolderTrust.GEMTUI)


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
        facts = stat_if_possible(self.path)
        if facts is None:
            return TrustState.GONE
        moved = not S_ISDIR(facts.st_mode) or os.path.realpath(self.path) != self.path
        is_same = (self.inode, self.owner) == (facts.st_ino, facts.st_uid)
        return TrustState.SAME if is_same and not moved else TrustState.REPLACED


def trust_of(folder: Path, environ: Mapping[str, str] = os.environ) -> FolderTrust:
    """Return who trusts a folder.

    The user's latest word counts: a folder in gemtui's list is not trusted if the CLI's list says
    that it must not be.
    """
    by_environment = _said_by_environment(environ)
    if by_environment is not None:
        return FolderTrust.CLI if by_environment else FolderTrust.FORBIDDEN
    settings = CliSettings.read(environ, None)  # a project can't declare itself trusted
    enabled = settings.get("security", "folderTrust", "enabled")
    level = _level_by_cli(folder, environ)
    if (enabled is not None and not enabled) or level in _TRUSTING:
        return FolderTrust.CLI
    is_trusted = level != _DISTRUST and _is_listed(folder)
    return FolderTrust.GEMTUI if is_trusted else FolderTrust.NOBODY


def folder_settings(
    folder: Path | None, environ: Mapping[str, str], *, for_run: bool = False, expand: bool = True
) -> CliSettings:
    """Return the settings that count in a folder; its own count only if it is trusted.

    `folder`: None stands for no project. `for_run`: whether to return the settings of a run that
    gemtui starts there; the user has to trust the folder first, so its settings count even if
    nobody trusts it yet. `expand`: replace variables in strings with their values, as the CLI does.
    """
    trust = FolderTrust.NOBODY if folder is None else trust_of(folder, environ)
    counts = trust.is_trusted or (for_run and trust is not FolderTrust.FORBIDDEN)
    return CliSettings.read(environ, folder if counts else None, expand=expand)


def _said_by_environment(environ: Mapping[str, str]) -> bool | None:
    """Return whether environment variables have every folder trusted; None if they don't say."""
    if environ.get(_RESTRICTED) == "true":
        return False
    return TRUST_VALUES.get(environ.get(TRUST_VARIABLE, ""))


def _level_by_cli(folder: Path, environ: Mapping[str, str]) -> str | None:
    """Return the folder's trust level in the CLI's own list; None if no path matches.

    Of several paths that match, the one with the longest text wins. With an unknown level in the
    list, the CLI refuses to start, so the list trusts no folder.
    """
    path = resolved(folder)
    longest = -1
    decisive = None
    is_valid = True
    for name, level in read_settings(gemini_home(environ) / "trustedFolders.json").items():
        written = os.path.abspath(name)  # noqa: PTH100 (`..` goes)
        is_valid = is_valid and level in (*_TRUSTING, _DISTRUST)
        root = resolved(Path(written).parent if level == _PARENT else Path(written))
        if path.is_relative_to(root) and len(written) > longest:
            longest = len(written)
            decisive = level
    return decisive if is_valid or decisive == _DISTRUST else None


def _is_listed(folder: Path) -> bool:
    """Return whether gemtui trusts this folder.

    A different folder at the same path, recognised by its inode and owner, is not trusted. A link
    is resolved, so if it has been changed, its new target is not trusted either.
    """
    path = str(resolved(folder))
    return any(
        trusted.path == path and trusted.place is TrustState.SAME for trusted in trusted_folders()
    )


def trusted_folders() -> tuple[TrustedFolder, ...]:
    """Return all folders the user told gemtui to trust, oldest first."""
    try:
        value = orjson.loads(read_small(trusted_folders_file()))
    except (OSError, orjson.JSONDecodeError):
        return ()
    folders = []
    for entry in value if isinstance(value, list) else ():
        with suppress(msgspec.ValidationError):
            folders.append(msgspec.convert(entry, TrustedFolder))
    return tuple(folders)


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
    others = [trusted for trusted in trusted_folders() if trusted.path != str(path)]
    _write([*others, TrustedFolder(str(path), facts.st_ino, facts.st_uid)])


def forget(folder: Path) -> bool:
    """Stop trusting this folder; return False if gemtui didn't trust it.

    The folder may since have been deleted or replaced by a link, so the unresolved path is compared
    as well. Raises OSError.
    """
    named = {os.path.abspath(folder), str(resolved(folder))}  # noqa: PTH100 (`..` goes)
    folders = trusted_folders()
    left = [trusted for trusted in folders if trusted.path not in named]
    if len(left) == len(folders):
        return False
    _write(left)
    return True


def _write(folders: list[TrustedFolder]) -> None:
    path = trusted_folders_file()
    make_own_folder(path.parent)
    listed = [asdict(folder) if folder.inode is not None else folder.path for folder in folders]
    write_whole(path, (orjson.dumps(listed, option=orjson.OPT_INDENT_2),), durable=True)


def trusted_folders_file() -> Path:
    """Return the file that lists the folders the user told gemtui to trust."""
    return state_dir() / "trusted.json"
