"""Keep gemtui's own files and folders private, whatever the umask."""

from __future__ import annotations

from pathlib import Path

from gemtui.files import close_folder, make_folder, make_private
from gemtui.paths import cache_dir, config_file, data_dir, state_dir


def make_own_folder(folder: Path) -> None:
    """Create one of gemtui's folders with its parents, for the user alone.

    Existing ones are closed to others as well (0700). For a folder elsewhere, chosen by the user,
    only missing parts are created. Raises OSError.
    """
    tops = _tops()
    for place in (*reversed(folder.parents), folder):
        if any(map(place.is_relative_to, tops)):
            close_folder(place)
    make_folder(folder)


def make_own_file(path: Path) -> None:
    """Create one of gemtui's files (0600), in a folder as for `make_own_folder`.

    Raises OSError.
    """
    make_own_folder(path.parent)
    make_private(path)


def _tops() -> tuple[Path, ...]:
    return config_file({}).parent, cache_dir(), data_dir(), state_dir()
