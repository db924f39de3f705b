"""Naming a new file: find a free name, and check a typed one."""

from __future__ import annotations

from pathlib import Path

from gemtui.files import is_folder, path_exists, resolved
from gemtui.paths import current_folder, typed_path


def place_of(name: str) -> Path:
    """Return a typed name as a path, relative to the current folder unless absolute."""
    return current_folder() / typed_path(name.strip())


def free_name(stem: str, suffix: str) -> str:
    """Return the name of a file that does not exist yet, numbered if necessary."""
    for number in range(1, 1000):
        more = f"-{number}" if number > 1 else ""
        name = f"{stem}{more}{suffix}"
        if not path_exists(place_of(name)):
            return name
    return stem + suffix


def problem_of(name: str, *, forbidden: Path, folder: bool = False) -> str:
    """Return why a file with this name can't be created, or "" if it can.

    `forbidden`: Gemini CLI's folder, resolved; nothing may be written there. `folder`: the name is
    for a folder, which may already exist.
    """
    path = place_of(name)
    if not name.strip():
        return f"Enter a {'folder' if folder else 'file'} name."
    if is_folder(path) and not folder:
        return "That is a folder. Enter a file in it."
    if path_exists(path) and not is_folder(path):
        return "That file already exists. Choose another name."
    if not is_folder(path.parent):
        return "That folder does not exist."
    if resolved(path).is_relative_to(forbidden):
        return "That folder belongs to Gemini CLI. Choose another one."
    return ""
