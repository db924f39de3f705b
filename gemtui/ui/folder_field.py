"""A folder as a person writes it, and the pattern by which a rule holds for the files below it."""

from __future__ import annotations

import re

from gemtui.policy.folder_words import files_of
from gemtui.policy.folders import below

_WORDS = "files below "
_FRONT = below("", ()).partition("/(?!")[0]
"""What a pattern begins with that knows no project's folder."""
_NO_PART = re.compile(r'["\\\x00-\x1f\x7f*?]')


def folder_of(pattern: str) -> str:
    """The folder, such as "src/", whose files alone a pattern lets pass; "" = it says else."""
    words = files_of(pattern) or ""
    return words.removeprefix(_WORDS) if words.startswith(_WORDS) else ""


def pattern_of(folder: str, project: str, before: str = "") -> str:
    """The pattern for the files below a folder of the project.

    `before`: the pattern that the rule has; one for another folder keeps the projects it names.
    Raises ValueError where the text names no folder below the project.
    """
    name = _name(folder, project.rstrip("/"))
    if old := folder_of(before).rstrip("/"):
        end = below(old, ()).removeprefix(_FRONT)
        return before.removesuffix(end) + below(name, ()).removeprefix(_FRONT)
    return below(name, [f"{project.rstrip('/')}/"] if project.rstrip("/") else [])


def _name(folder: str, project: str) -> str:
    text = re.sub(r"(/\*{1,2})?/*$", "", folder.strip())
    if project:
        text = text.removeprefix(f"{project}/")
    name = text.removeprefix("./")
    if not name or name.startswith(("/", "~")) or {".", "..", ""} & {*name.split("/")}:
        raise ValueError("a folder of the project, such as src/")
    if _NO_PART.search(name):
        raise ValueError("one folder, without quotes, backslashes, * and ?")
    return name
