"""Keep gemtui's own files and folders private, whatever the umask."""

from __future__ import annotations

from pathlib import Path

from gemtui.files import close_folder, make_folder, make_private
from gemtui.paths import cache_dir, config_file, data_dir, state_dir


def make_own_folder(folder: Path) -> None:
    """Create one of gemtui's folders with its parents, accessible only to the user.

    If one of gemtui's own folders already exists, access by others is removed (0700). If the user
    chose a folder elsewhere, existing folders keep their mode. Raises OSError.
    """
    tops = config_file({}).parent, cache_dir(), data_dir(), state_dir()
    for place in (*reversed(folder.parents), folder):
        if any(map(place.is_relative_to, tops)):
            close_folder(place)
    make_folder(folder)


def make_own_file(path: Path) -> None:
    """Create one of gemtui's files (0600), and its folder as `make_own_folder` does.

    Raises OSError.
    """
    make_own_folder(path.parent)
    make_private(path)
