"""Names for new files: suggestions of free ones, and validation of typed ones."""

from __future__ import annotations

from pathlib import Path

from gemtui.files import is_folder, path_exists, resolved
from gemtui.paths import current_folder, typed_path


def new_file_path(name: str) -> Path:
    """Return the path for a typed name, which may be relative to the current folder."""
    return current_folder() / typed_path(name.strip())


def free_name(stem: str, suffix: str) -> str:
    """Return a name for a new file, with a number between stem and suffix if needed."""
    for number in range(1, 1000):
        more = f"-{number}" if number > 1 else ""
        name = f"{stem}{more}{suffix}"
        if not path_exists(new_file_path(name)):
            return name
    return stem + suffix


def problem_of(name: str, *, forbidden: Path, folder: bool = False) -> str:
    """Return why no file can be created under this name, or "" if one can.

    `forbidden`: Gemini CLI's folder, with symlinks resolved; gemtui must not write there. `folder`:
    whether the name is for a folder, which may already exist.
    """
    path = new_file_path(name)
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
