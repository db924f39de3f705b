"""Make gemtui's own files and folders closed to everybody else, whatever the umask."""

from __future__ import annotations

from pathlib import Path

from gemtui.files import close_folder, make_folder, make_private
from gemtui.paths import cache_dir, config_file, data_dir, state_dir


def make_own_folder(folder: Path) -> None:
    """Make one of gemtui's folders for the user alone (0700), with all above it up to gemtui's top.

    Those that are there are closed to others as well. Of a folder that the user has chosen
    elsewhere, only what is missing is made. Raises OSError.
    """
    tops = _tops()
    for place in (*reversed(folder.parents), folder):
        if any(map(place.is_relative_to, tops)):
            close_folder(place)
    make_folder(folder)


def make_own_file(path: Path) -> None:
    """Make a file of gemtui's 0600 in a folder as `make_own_folder` makes it. Raises OSError."""
    make_own_folder(path.parent)
    make_private(path)


def _tops() -> tuple[Path, ...]:
    return config_file({}).parent, cache_dir(), data_dir(), state_dir()
