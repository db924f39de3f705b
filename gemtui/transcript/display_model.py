"""What a tool shows a person, typed: the display of a tool call in the transcript model.

All text in here is raw and foreign, as in `model.py`.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct


class TextDisplay(Struct, frozen=True, kw_only=True):
    """Plain or Markdown text."""

    text: str
    markdown: bool = False


class DiffDisplay(Struct, frozen=True, kw_only=True):
    """A change to one file: unified diff as the CLI stored it (or rebuilt from the arguments).

    `added`, `removed`: lines, None = unknown. `path` is absolute where the CLI knew it.
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
    """One line that a search found; `line` counts from 1."""

    path: str
    line: int | None
    text: str


class MatchesDisplay(Struct, frozen=True, kw_only=True):
    """What grep_search found."""

    summary: str
    matches: tuple[Match, ...]


class FilesDisplay(Struct, frozen=True, kw_only=True):
    """What list_directory and read_many_files found; `skipped`: (path, reason)."""

    summary: str
    files: tuple[str, ...]
    skipped: tuple[tuple[str, str], ...] = ()


class Activity(Struct, frozen=True, kw_only=True):
    """One step of a subagent."""

    kind: str
    text: str
    status: str


class AgentDisplay(Struct, frozen=True, kw_only=True):
    """How far a subagent got."""

    agent: str
    state: str
    activities: tuple[Activity, ...]
    result: str | None = None
    reason: str | None = None


class Todo(Struct, frozen=True, kw_only=True):
    """One line of a todo list; `status` as the CLI says it (pending, in_progress, completed…)."""

    text: str
    status: str


class TodosDisplay(Struct, frozen=True, kw_only=True):
    """A todo list."""

    items: tuple[Todo, ...]


class Span(Struct, frozen=True, kw_only=True):
    """A run of terminal text in one style; `fg`, `bg`: "#rrggbb" or ""."""

    text: str
    bold: bool = False
    italic: bool = False
    underline: bool = False
    dim: bool = False
    inverse: bool = False
    fg: str = ""
    bg: str = ""


class ScreenDisplay(Struct, frozen=True, kw_only=True):
    """A terminal screen, as interactive shell runs store it; trailing blanks cut."""

    lines: tuple[tuple[Span, ...], ...]


class TableDisplay(Struct, frozen=True, kw_only=True):
    """Rows that a tool returned as a list of flat objects."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


class JsonDisplay(Struct, frozen=True, kw_only=True):
    """Anything else: shown as indented JSON."""

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
