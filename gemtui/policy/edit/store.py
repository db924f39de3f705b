"""List, read and save policy files: gemtui's, the CLI's, and those in settings.

A file is written completely or not at all. Changes made by other programs are only overwritten on
request.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256
from pathlib import Path

from gemtui.errors import PolicyChanged, PolicyError, PolicyNotFound, reason_of
from gemtui.files import (
    is_file,
    is_folder,
    path_exists,
    read_small,
    resolved,
    write_new,
    write_whole,
)
from gemtui.paths import gemini_home, make_own_folder
from gemtui.policy.edit.document import Document
from gemtui.policy.file.policy import LARGEST
from gemtui.policy.file.policy_files import (
    ENDING,
    named_policies,
    path_of,
    policies_dir,
    policy_files,
)


class Origin(StrEnum):
    """The places that policy files come from.

    OURS: gemtui's named policies. USER: the CLI's folder `~/.gemini/policies`. SETTINGS: a path in
    the setting `policyPaths`. ADMIN: a path in the setting `adminPolicyPaths`. FILE: any other
    file.
    """

    OURS = "ours"
    USER = "user"
    SETTINGS = "settings"
    ADMIN = "admin"
    FILE = "file"


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyFile:
    """A policy file's path, name and origin, and whether it can be saved.

    `name`: the file's name without `.toml`. `read_only`: why the file can't be saved; "" if it can
    be.
    """

    name: str
    path: Path
    origin: Origin
    read_only: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedPolicy:
    """A policy file's state when it was read.

    `seen`: a fingerprint of the contents and the path at that time, with which `save_policy`
    detects changes made by other programs.
    """

    file: PolicyFile
    document: Document
    seen: str


# --- listing -------------------------------------------------------------------------------------


def list_policies(named: Sequence[Path] = (), admin: Sequence[Path] = ()) -> tuple[PolicyFile, ...]:
    """List policy files: gemtui's own, the CLI's, and those the CLI's settings name.

    `named`: the files and folders that the setting `policyPaths` names. `admin`: those that
    `adminPolicyPaths` names. Of a folder, those files are listed that the CLI reads. A path that
    doesn't exist is also listed, with the reason in `read_only`.
    """
    by_path: dict[Path, PolicyFile] = {}
    users = policy_files(_users_dir())
    for files, origin in ((named_policies(), Origin.OURS), (users, Origin.USER)):
        for path in files:
            by_path.setdefault(path.absolute(), _file(path, origin))
    for paths, origin in ((named, Origin.SETTINGS), (admin, Origin.ADMIN)):
        for path in paths:
            for file in policy_files(path) if is_folder(path) else (path,):
                by_path.setdefault(file.absolute(), _file(file, origin))
    return tuple(by_path.values())


def _users_dir() -> Path:
    return gemini_home() / "policies"


def _file(path: Path, origin: Origin) -> PolicyFile:
    read_only = "it belongs to the administrator" if origin is Origin.ADMIN else _unwritable(path)
    name = path.name.removesuffix(ENDING)
    return PolicyFile(name=name, path=path, origin=origin, read_only=read_only)


def _unwritable(path: Path) -> str:
    if not path_exists(path):
        return "it does not exist"
    if not is_file(path):
        return "it is not a file"
    if not os.access(path, os.W_OK):
        return "you don't have permission to write to it"
    if not os.access(resolved(path).parent, os.W_OK):
        return "you don't have permission to write to its folder"
    return ""


# --- reading and writing -------------------------------------------------------------------------


def open_policy(file: Path | PolicyFile) -> OpenedPolicy:
    """Read a policy file for editing.

    Raises PolicyNotFound if it does not exist, and PolicyError if it can't be read, is larger than
    4 MiB, or is not valid UTF-8 or TOML.
    """
    if isinstance(file, Path):
        file = _file(file, _origin(file))
    data = _bytes(file.path)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise PolicyError(
            f"{file.path} is not valid UTF-8 (line {line}): save it as UTF-8 in an editor",
            path=file.path,
        ) from None
    document = Document.parse(text, source=str(file.path))
    document.check()
    return OpenedPolicy(file=file, document=document, seen=_seen(file.path, data))


def _origin(path: Path) -> Origin:
    folder = path.absolute().parent
    if folder == policies_dir().absolute():
        return Origin.OURS
    return Origin.USER if folder == _users_dir() else Origin.FILE


def _bytes(path: Path) -> bytes:
    try:
        return read_small(path, LARGEST)
    except FileNotFoundError:
        raise PolicyNotFound(f"there is no policy file {path}: check the name", path=path) from None
    except OSError as error:
        raise PolicyError(f"{path} {_why_not(error)}", path=path) from None


def _why_not(error: OSError) -> str:
    if error.errno == errno.EFBIG:
        return "is larger than 4 MiB, so it is not a policy file"
    if error.errno in (errno.EISDIR, errno.EINVAL):
        return "is not a file: give a policy file"
    return f"can't be read ({reason_of(error)}): check its permissions"


def _seen(path: Path, data: bytes) -> str:
    """Return a fingerprint of a file's contents and of its path with links resolved."""
    return f"{sha256(data).hexdigest()} {resolved(path)}"


def save_policy(opened: OpenedPolicy, document: Document, *, force: bool = False) -> OpenedPolicy:
    """Write a document to the file it was opened from, and return the new state.

    The file is written completely or not at all. Unless the file is one of gemtui's own, its
    previous contents are saved in a file with `.bak` appended to its name. `force`: overwrite
    changes made since the file was read.

    Raises PolicyChanged if the file has been changed or removed since it was read (not with
    `force`), PolicyError if the file is read-only or the contents can't be encoded as UTF-8, and
    OSError if writing fails.
    """
    path = opened.file.path
    read_only = _file(path, opened.file.origin).read_only if path_exists(path) else ""
    if read_only:
        raise PolicyError(f"{path} can't be saved: {read_only}", path=path)
    data = _encoded(document.text, path)
    try:
        now: bytes | None = _bytes(path)
    except PolicyNotFound:
        now = None
    if not force and (now is None or _seen(path, now) != opened.seen):
        what = "no longer exists" if now is None else "has changed on disk"
        raise PolicyChanged(f"{path} {what}: reload it before you save", path=path)
    if now == data:
        return OpenedPolicy(file=opened.file, document=document, seen=_seen(path, data))
    if now is not None and opened.file.origin is not Origin.OURS:
        _back_up(path, now)
    write_whole(path, [data], durable=True)
    return OpenedPolicy(file=opened.file, document=document, seen=_seen(path, data))


def _encoded(text: str, path: Path) -> bytes:
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        text_problem = (
            f"{path} can't be saved: it contains an incomplete character (a lone surrogate)"
        )
        raise PolicyError(text_problem, path=path) from None


def _back_up(path: Path, data: bytes) -> None:
    """Save the previous contents as `name.toml.bak`, which the CLI does not read."""
    backup = path.with_name(f"{path.name}.bak")
    if backup.is_symlink():
        backup.unlink()
    write_whole(backup, [data], durable=True)
    backup.chmod(path.stat().st_mode & 0o777)


# --- gemtui's own policies -----------------------------------------------------------------------


def create(name: str, text: str = "") -> OpenedPolicy:
    """Create one of gemtui's own policies, readable only by its owner, and open it.

    Raises PolicyError if the name is invalid or already used, and OSError if writing fails.
    """
    path = path_of(name)
    make_own_folder(path.parent)
    data = _encoded(text, path)
    try:
        write_new(path, data, durable=True)
    except FileExistsError:
        raise _taken(path) from None
    return open_policy(path)


def rename_policy(path: Path, name: str) -> Path:
    """Rename one of gemtui's own policies and return its new path.

    Raises PolicyError if the file is not one of them, or the name is invalid or already used,
    PolicyNotFound if it does not exist, and OSError if renaming fails.
    """
    _check_ours(path, "renamed")
    target = path_of(name)
    if target.name != path.name:
        if os.path.lexists(target) and not _same_name(path, target):
            raise _taken(target)
        path.rename(target)
    return target


def _same_name(path: Path, other: Path) -> bool:
    """Return whether two names that differ only in case are one file on this disk.

    A link to the file doesn't count as the same file.
    """
    same_case = path.name.casefold() == other.name.casefold()
    return same_case and os.path.samestat(path.lstat(), other.lstat())


def delete_policy(path: Path) -> None:
    """Delete one of gemtui's own policies.

    Raises PolicyError if the file is not one of them, PolicyNotFound if it does not exist, and
    OSError if deleting fails.
    """
    _check_ours(path, "deleted")
    path.unlink()


def _check_ours(path: Path, what: str) -> None:
    if _origin(path) is not Origin.OURS:
        raise PolicyError(
            f"{path} is not one of gemtui's own policies, so it can't be {what} here", path=path
        )
    if not os.path.lexists(path):
        raise PolicyNotFound(f"there is no policy file {path}: check the name", path=path)


def _taken(path: Path) -> PolicyError:
    name = path.name.removesuffix(ENDING)
    return PolicyError(f"a policy named {name} already exists: choose another name", path=path)
