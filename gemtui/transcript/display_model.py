"""Typed displays: the results of tool calls as shown to the user.

All strings are raw and untrusted, as in `model.py`.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct


class TextDisplay(Struct, frozen=True, kw_only=True):
    """Plain text or Markdown."""

    text: str
    markdown: bool = False


class DiffDisplay(Struct, frozen=True, kw_only=True):
    """A change to one file, as a unified diff.

    The diff was either stored by the CLI or built from the call's arguments. `path`: absolute if
    the CLI stored an absolute path. `added`, `removed`: numbers of lines; None if unknown.
    `original`, `new`: the file's contents before and after; None if unknown.
    """

    diff: str
    path: str
    name: str
    added: int | None = None
    removed: int | None = None
    is_new: bool = False
    original: str | None = None
    new: str | None = None


class Match(Struct, frozen=True, kw_only=True):
    """A line found by a search. `line`: its 1-based number; None if unknown."""

    path: str
    line: int | None
    text: str


class MatchesDisplay(Struct, frozen=True, kw_only=True):
    """The result of grep_search."""

    summary: str
    matches: tuple[Match, ...]


class FilesDisplay(Struct, frozen=True, kw_only=True):
    """The result of list_directory or read_many_files.

    `skipped`: pairs of a path and the reason it was skipped.
    """

    summary: str
    files: tuple[str, ...]
    skipped: tuple[tuple[str, str], ...] = ()


class Activity(Struct, frozen=True, kw_only=True):
    """A step of a subagent."""

    kind: str
    text: str
    status: str


class AgentDisplay(Struct, frozen=True, kw_only=True):
    """A subagent's progress. `reason`: why it ended; None if unknown or still running."""

    agent: str
    state: str
    activities: tuple[Activity, ...]
    result: str | None = None
    reason: str | None = None


class Todo(Struct, frozen=True, kw_only=True):
    """A todo item.

    `status`: as stored by the CLI, such as pending, in_progress, or completed.
    """

    text: str
    status: str


class TodosDisplay(Struct, frozen=True, kw_only=True):
    """A todo list."""

    items: tuple[Todo, ...]


class AnsiSpan(Struct, frozen=True, kw_only=True):
    """A piece of terminal output in one style.

    `fg` and `bg`: the colours as "#rrggbb", or "" for the default.
    """

    text: str
    bold: bool = False
    italic: bool = False
    underline: bool = False
    dim: bool = False
    inverse: bool = False
    fg: str = ""
    bg: str = ""


class ScreenDisplay(Struct, frozen=True, kw_only=True):
    """An interactive shell's terminal screen, without trailing spaces."""

    lines: tuple[tuple[AnsiSpan, ...], ...]


class TableDisplay(Struct, frozen=True, kw_only=True):
    """A table, from a tool that returned a list of flat objects."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


class JsonDisplay(Struct, frozen=True, kw_only=True):
    """A result of any other form, to be shown as indented JSON."""

    value: Any


Display = (
    TextDisplay
    | DiffDisplay
    | MatchesDisplay
    | FilesDisplay
    | AgentDisplay
    | TodosDisplay
    | ScreenDisplay
    | TableDisplay
    | JsonDisplay
)
