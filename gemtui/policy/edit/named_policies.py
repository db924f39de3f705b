"""Our named policies: where they are, which names fit, which file a word means."""

from __future__ import annotations

import os
from pathlib import Path

from gemtui.errors import PolicyError, PolicyNotFound
from gemtui.files import is_file, is_folder, is_there, resolved
from gemtui.paths import config_file, typed_path
from gemtui.text import file_name

ENDING = ".toml"


def policies_dir() -> Path:
    """The folder of our named policies; it need not exist."""
    return config_file().parent / "policies"


def find_policy(wanted: str, *, folders: bool = False) -> Path:
    """The file that a person means: a path, or the name of one of ours; resolved.

    A word without a folder and an ending is a name first. `folders`: a folder will do. Raises
    PolicyNotFound.
    """
    path, ours = typed_path(wanted), policies_dir()
    named = (ours / wanted, ours / f"{wanted}{ENDING}")
    as_path = os.sep in wanted or wanted.endswith(ENDING)
    for each in (path, *named) if as_path else (*named, path):
        if is_file(each) or (folders and each == path and is_folder(each)):
            return resolved(each)
    if wanted and is_there(path):
        what = "a folder: name a file in it" if is_folder(path) else "no file: name a policy file"
        raise PolicyNotFound(f"{wanted} is {what}", path=path)
    raise PolicyNotFound(
        f"there is no policy {wanted or 'without a name'}, as a file or in {ours}: check the name",
        path=path,
    )


def path_of(name: str) -> Path:
    """The file of one of ours by its name; raises PolicyError for a name that does not fit."""
    bare = name.removesuffix(ENDING)
    fitting = file_name(bare)
    if not bare.strip():
        raise PolicyError("a policy needs a name, such as work")
    if bare != fitting:
        raise PolicyError(f"{bare!r} can't be a file's name everywhere: call it {fitting}")
    return policies_dir() / f"{bare}{ENDING}"
