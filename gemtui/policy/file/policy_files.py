"""Find the policy files that the CLI reads at a path.

All code that lists a folder's policies does it here, so that it agrees with the CLI about links,
subfolders and the order. See assets/gemini-cli.md#policy-files.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from gemtui.files import is_file, is_folder

ENDING = ".toml"


class SkipReason(StrEnum):
    """Why the CLI doesn't read an entry of a folder."""

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
        found = [
            PolicyEntry(folder / each.name, _skipped(each)) for each in entries if each.name.lower().endswith(ENDING)
        ]
    return sorted(found, key=lambda each: os.fsencode(each.path.name))


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
            return [each.path for each in policy_entries(path) if each.skipped is None], ""
        if not path.exists():
            return (), "it does not exist"
    except OSError as error:
        return (), f"it can't be read ({error.strerror})"
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
