"""gemtui's own named policies: their folder, valid names, and lookup by name."""

from __future__ import annotations

import os
from pathlib import Path

from gemtui.errors import PolicyError, PolicyNotFound
from gemtui.files import is_file, is_folder, path_exists, resolved
from gemtui.paths import config_file, typed_path
from gemtui.policy.file.policy_files import ENDING, policy_entries, policy_files
from gemtui.text import file_name


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
    return [each.path for each in entries if not is_folder(each.path) and policy_files(each.path)]


def find_policy(wanted: str, *, folders: bool = False) -> Path:
    """Resolve a path or a policy's name to the path of a policy file.

    `wanted`: tried as a name first, unless it contains a folder or ends in `.toml`. `folders`: also
    accept the path of a folder. Raises PolicyNotFound.
    """
    path, ours = typed_path(wanted), policies_dir()
    named = (ours / wanted, ours / f"{wanted}{ENDING}")
    as_path = os.sep in wanted or wanted.endswith(ENDING)
    for each in (path, *named) if as_path else (*named, path):
        if is_file(each) or (folders and each == path and is_folder(each)):
            return resolved(each)
    if wanted and path_exists(path):
        what = "a folder: give the name of a file in it" if is_folder(path) else "not a file: give a policy file"
        raise PolicyNotFound(f"{wanted} is {what}", path=path)
    raise PolicyNotFound(
        (f"there is no policy {wanted or 'without a name'}, neither as a file nor in {ours}: check the name"), path=path
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
