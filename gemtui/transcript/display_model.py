"""What a tool shows a person, typed: the display of a tool call in the transcript model.

All text in here is raw and foreign, as in `model.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class TextDisplay:
    """Plain or Markdown text."""

    text: str
    markdown: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffDisplay:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """One line that a search found; `line` counts from 1."""

    path: str
    line: int | None
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchesDisplay:
    """What grep_search found."""

    summary: str
    matches: tuple[Match, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesDisplay:
    """What list_directory and read_many_files found; `skipped`: (path, reason)."""

    summary: str
    files: tuple[str, ...]
    skipped: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Activity:
    """One step of a subagent."""

    kind: str
    text: str
    status: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentDisplay:
    """How far a subagent got."""

    agent: str
    state: str
    activities: tuple[Activity, ...]
    result: str | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Todo:
    """One line of a todo list; `status` as the CLI says it (pending, in_progress, completed…)."""

    text: str
    status: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TodosDisplay:
    """A todo list."""

    items: tuple[Todo, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A run of terminal text in one style; `fg`, `bg`: "#rrggbb" or ""."""

    text: str
    bold: bool = False
    italic: bool = False
    underline: bool = False
    dim: bool = False
    inverse: bool = False
    fg: str = ""
    bg: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScreenDisplay:
    """A terminal screen, as interactive shell runs store it; trailing blanks cut."""

    lines: tuple[tuple[Span, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TableDisplay:
    """Rows that a tool returned as a list of flat objects."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonDisplay:
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
