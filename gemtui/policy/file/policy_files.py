"""Find policy files: those that the CLI reads at a path, and gemtui's own named ones.

All code that lists a folder's policies does it here, so that it agrees with the CLI about links,
subfolders and the order. See assets/gemini-cli.md#policy-files.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from gemtui.errors import PolicyError, PolicyNotFound, reason_of
from gemtui.files import is_file, is_folder, path_exists, resolved
from gemtui.paths import config_file, typed_path
from gemtui.text import file_name

ENDING = ".toml"


class SkipReason(StrEnum):
    """The reasons why the CLI doesn't read an entry of a folder."""

    LINK = "link"
    """It is a symbolic link, wherever it leads."""
    CASE = "case"
    """Its name doesn't end in .toml in lowercase."""
    FOLDER = "folder"
    OTHER = "other"
    """It is neither a file nor a folder, for example a pipe."""


@dataclass(frozen=True, slots=True)
class PolicyEntry:
    """An entry of a folder whose name ends in .toml; `skipped` is None if the CLI reads it."""

    path: Path
    skipped: SkipReason | None


def policy_entries(folder: Path) -> list[PolicyEntry]:
    """Return a folder's entries that are, or look like, policy files, in the CLI's order.

    The order is that of their names' bytes. Uppercase letters in the ending are accepted, because
    the user may take such a file for a policy file. Raises OSError.
    """
    with os.scandir(folder) as entries:
        policies = [
            PolicyEntry(folder / entry.name, _skipped(entry))
            for entry in entries
            if entry.name.lower().endswith(ENDING)
        ]
    return sorted(policies, key=lambda entry: os.fsencode(entry.path.name))


def _skipped(entry: os.DirEntry[str]) -> SkipReason | None:
    if entry.is_symlink():
        return SkipReason.LINK
    if not entry.name.endswith(ENDING):
        return SkipReason.CASE
    if entry.is_file(follow_symlinks=False):
        return None
    return SkipReason.FOLDER if entry.is_dir(follow_symlinks=False) else SkipReason.OTHER


def policy_files(path: Path) -> Sequence[Path]:
    """Return the policy files the CLI reads at a path; () if there are none. Never raises."""
    return find_policy_files(path)[0]


def find_policy_files(path: Path) -> tuple[Sequence[Path], str]:
    """Return the policy files the CLI reads at a path, and the reason for having none.

    The reason is "" for a folder, even if it contains no policies. A symbolic link is read if
    `path` itself is the link, but not inside a folder. Never raises.
    """
    try:
        if path.is_dir():
            return [entry.path for entry in policy_entries(path) if entry.skipped is None], ""
        if not path.exists():
            return (), "it does not exist"
    except OSError as error:
        return (), f"it can't be read ({reason_of(error)})"
    except ValueError:  # a NUL in the name
        return (), "its name is invalid"
    if not path.name.endswith(ENDING):
        return (), "its name does not end in .toml"
    return ((path,), "") if is_file(path) else ((), "it is not a file")


def is_empty_folder(path: Path) -> bool:
    """Return whether `path` is a readable folder without anything like a policy file."""
    try:
        return is_folder(path) and not policy_entries(path)
    except OSError:
        return False


def policies_dir() -> Path:
    """Return the folder where gemtui keeps named policies; it may not exist yet."""
    return config_file().parent / "policies"


def named_policies() -> list[Path]:
    """Return the files of gemtui's named policies, sorted by name.

    Links are included, because each policy is passed to the CLI by its own path.
    """
    try:
        entries = policy_entries(policies_dir())
    except OSError:
        return []
    return [
        entry.path for entry in entries if not is_folder(entry.path) and policy_files(entry.path)
    ]


def find_policy(wanted: str, *, folders: bool = False) -> Path:
    """Resolve a path or a policy's name to the path of a policy file.

    `wanted`: tried as a name first, unless it contains a folder or ends in `.toml`. `folders`: also
    accept the path of a folder. Raises PolicyNotFound.
    """
    path = typed_path(wanted)
    ours = policies_dir()
    named = (ours / wanted, ours / f"{wanted}{ENDING}")
    as_path = os.sep in wanted or wanted.endswith(ENDING)
    for candidate in (path, *named) if as_path else (*named, path):
        if is_file(candidate) or (folders and candidate == path and is_folder(candidate)):
            return resolved(candidate)
    if wanted and path_exists(path):
        what = (
            "a folder: give the name of a file in it"
            if is_folder(path)
            else "not a file: give a policy file"
        )
        raise PolicyNotFound(f"{wanted} is {what}", path=path)
    raise PolicyNotFound(
        (
            f"there is no policy {wanted or 'without a name'}, neither as a file nor in {ours}: "
            "check the name"
        ),
        path=path,
    )


def path_of(name: str) -> Path:
    """Return a named policy's path. Raises PolicyError for an invalid name."""
    bare = name.removesuffix(ENDING)
    fitting = file_name(bare)
    if not bare.strip():
        raise PolicyError("a policy needs a name, such as work")
    if bare != fitting:
        raise PolicyError(f"{bare!r} is not a valid file name on every system: use {fitting}")
    return policies_dir() / f"{bare}{ENDING}"
