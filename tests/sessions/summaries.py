"""Summaries as an index gives them, made by hand."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from gemtui.sessions.catalog.summary import Flag, Summary, TitleSource
from gemtui.sessions.store.store import SessionKind
from gemtui.transcript.usage import Usage

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)


def summary(
    id: str,
    title: str = "A title",
    *,
    project: str | None = "/home/dev/src/gemtui",
    key: str | None = None,
    hours: float = 1,
    kind: SessionKind = SessionKind.MAIN,
    parent: str | None = None,
    models: tuple[str, ...] = ("gemini-2.5-pro",),
    prompts: int = 3,
    tools: int = 0,
    failures: int = 0,
    tokens: int | None = None,
    flags: tuple[Flag, ...] = (),
    partial: bool = False,
    copies: tuple[Summary, ...] = (),
) -> Summary:
    """A session that was updated so many hours before NOW, and started an hour earlier."""
    key = key or (Path(project).name if project else "nowhere")
    name = f"/home/dev/.gemini/tmp/{key}/chats/{id}.jsonl"
    updated = NOW - timedelta(hours=hours)
    return Summary(
        id=id,
        title=title,
        title_source=TitleSource.PROMPT,
        project=project,
        project_key=key,
        kind=kind,
        parent=parent,
        format="jsonl",
        names=(name, *(copy.name for copy in copies)),
        size=1000,
        modified=updated,
        started=updated - timedelta(hours=1),
        updated=updated,
        models=models,
        prompts=prompts,
        messages=2 * prompts,
        tool_calls=tools,
        tool_failures=failures,
        failed_calls=failures,
        tokens=Usage(total=tokens),
        flags=frozenset(flags),
        partial=partial,
        copies=copies,
    )
