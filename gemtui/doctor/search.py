"""The state of the search index for `gemtui doctor`: location, size and contents."""

from __future__ import annotations

import shlex
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gemtui.files import folder_sizes, is_private
from gemtui.search.file_list import FileList, NoIndex, index_folder, list_file
from gemtui.text import counted, size


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchReport:
    """The search index of the store.

    `files`: how many session files are in the index; None if the index does not exist, or is not
    used because of `problem`. `private`: whether only the user can access the index.
    """

    folder: Path
    files: int | None
    bytes: int
    private: bool
    problem: str | None

    @property
    def clear(self) -> str:
        """The shell command that removes the index, which the app then recreates."""
        return f"rm -r {shlex.quote(str(self.folder))}"

    def to_dict(self) -> dict[str, Any]:
        """Return this report as JSON values for `gemtui doctor --json`."""
        return {
            "path": str(self.folder),
            "files": self.files,
            "bytes": self.bytes,
            "private": self.private,
            "problem": self.problem,
            "clear": self.clear,
        }


def look_at_search(cache: Path, home: Path) -> SearchReport:
    """Inspect the search index of the store in `home`, without reading indexed text.

    `cache`: gemtui's cache folder.
    """
    folder = index_folder(cache, home)
    files, problem = None, None
    try:
        with closing(FileList(list_file(folder))) as found:
            files = len(found.rows())
    except NoIndex as error:
        problem = str(error) if error.is_there else None
    except (sqlite3.Error, OSError, ValueError) as error:
        problem = f"it is corrupt ({error})"
    return SearchReport(
        folder=folder, files=files, bytes=sum(folder_sizes(folder)), private=is_private(folder), problem=problem
    )


def search_rows(search: SearchReport) -> Iterator[tuple[str, str]]:
    """Yield the rows of the report on the search index as (name, text)."""
    if search.problem is not None:
        yield "search", f"{search.folder}: not used: {search.problem}; the app will rebuild it"
    elif search.files is None:
        yield "search", "no index yet; until the app has built one, files are searched directly"
    else:
        private = ", readable only by you" if search.private else ""
        kept = f"index of {counted(search.files, 'file')}, {size(search.bytes)}"
        yield "search", f"{search.folder}: {kept}{private}"
        yield "", f"it contains words from your sessions; to delete it: {search.clear}"
