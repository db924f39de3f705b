"""Policy files: our named ones, the user's of the CLI, and what the settings name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from gemtui.paths import config_file
from gemtui.policy.document import Document


class Origin(StrEnum):
    """Whose a policy file is."""

    OURS = "ours"
    USER = "user"
    SETTINGS = "settings"
    ADMIN = "admin"


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyFile:
    """One policy file. `name`: without `.toml`. `read_only`: why it can't be saved, "" = it can."""

    name: str
    path: Path
    origin: Origin
    read_only: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """A file as it was read. `seen`: its bytes' digest, by which `save` knows a change on disk."""

    file: PolicyFile
    document: Document
    seen: str


def policies_dir() -> Path:
    """The folder of our named policies; it need not exist."""
    return config_file().parent / "policies"


def list_policies(settings: Mapping[str, Any] | None = None) -> tuple[PolicyFile, ...]:
    """Ours, then the user's of the CLI, then those that `settings` name, each sorted by name."""
    raise NotImplementedError


def find_policy(wanted: str) -> Path:
    """A file, or one of our own by its name. Raises PolicyNotFound."""
    raise NotImplementedError


def open_policy(path: Path) -> Opened:
    """Read a file for editing. Raises PolicyNotFound, PolicyError for what can't be read."""
    raise NotImplementedError


def save(opened: Opened, document: Document, *, force: bool = False) -> Opened:
    """Write the document whole or not at all; a file that is not ours leaves a `.bak` beside it.

    Raises PolicyChanged when the file is no longer what was opened (not with `force`), PolicyError
    for a file that is read-only.
    """
    raise NotImplementedError


def create(name: str, text: str = "") -> Opened:
    """A new policy of ours. Raises PolicyError for a name that does not fit or is taken."""
    raise NotImplementedError


def rename(path: Path, name: str) -> Path:
    """Give one of ours another name. Raises PolicyError as `create`, and for what is not ours."""
    raise NotImplementedError


def delete(path: Path) -> None:
    """Remove one of ours. Raises PolicyError for what is not ours."""
    raise NotImplementedError
