"""Search in the prompts of sessions whose files are gone.

Gemini CLI keeps what was typed in `logs.json` (assets/gemini-cli.md#places). The files are small
and not in the index: a search reads them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from gemtui.jsonout import iso
from gemtui.search.documents import DocumentKind
from gemtui.search.results import Hit, Page, Results, SessionHits
from gemtui.search.words import needed_symbols, symbols, words
from gemtui.sessions.catalog.query import (
    Field,
    Narrowed,
    Query,
    Term,
    fits_all,
    is_of_sessions,
    phrase_pattern,
)
from gemtui.sessions.catalog.summary import Flag, Summary, TitleSource
from gemtui.sessions.store.projects import ProjectFolders, Projects
from gemtui.sessions.store.store import SessionKind
from gemtui.sessions.store.typed_prompts import TypedPrompt, all_prompts
from gemtui.text import composed
from gemtui.transcript.model import excerpt


class LostSession(NamedTuple):
    """A session whose file is gone, and its prompts."""

    session: Summary
    prompts: Sequence[TypedPrompt]


class LostSessions:
    """The sessions of a store whose files are gone.

    `home`: the CLI's folder. `known`: the ids of the sessions that have files. `project`: only the
    sessions of this project; None means all. The files are read when something is searched first.
    """

    def __init__(self, home: Path, known: Collection[str], project: Path | None) -> None:
        self._home, self._known, self._project = home, known, project

    def added_to(self, results: Results, *, limit: int, page: Page | None) -> Results:
        """Return results with the hits in lost sessions after the others, on the last page.

        `limit`: the maximum number of hits. `page`: the page of the results.
        """
        first = page is None or (page.before is None and page.after is None)
        if results.next is not None and not first:
            return results
        matching = list(self._matching(results.query))
        rank = len(results.hits)
        groups = list(results.groups)
        for session, prompts in matching if results.next is None else ():
            shown = prompts[: max(0, limit - rank)]
            hits = tuple(_hit(session, prompt, number) for number, prompt in enumerate(shown, rank))
            rank += len(hits)
            if hits:
                groups.append(SessionHits(session=session, hits=hits, count=len(prompts)))
        return replace(
            results,
            groups=tuple(groups),
            total_sessions=results.total_sessions + len(matching),
            total_hits=results.total_hits + sum(len(prompts) for _, prompts in matching),
        )

    def _matching(self, query: Query) -> Iterator[LostSession]:
        of_sessions = [field for field in query.fields if is_of_sessions(field)]
        if not all(map(_of_prompts, query.fields)):
            return
        for session, prompts in self._sessions:
            matching = [prompt for prompt in prompts if _matches(prompt, query)]
            if matching and fits_all(of_sessions, session, None):
                yield LostSession(session, matching)

    @cached_property
    def _sessions(self) -> Sequence[LostSession]:
        """All lost sessions, newest first."""
        by_id: dict[tuple[Path, str], list[TypedPrompt]] = {}
        for prompt in all_prompts(self._home):
            if prompt.session not in self._known:
                by_id.setdefault((prompt.path, prompt.session), []).append(prompt)
        projects = Projects(self._home, {path.parent.name for path, _ in by_id})
        folders = None if self._project is None else ProjectFolders(self._project)
        lost_sessions = [
            LostSession(_summary(prompts, projects), prompts) for prompts in by_id.values()
        ]
        inside = [
            lost for lost in lost_sessions if folders is None or lost.session.project in folders
        ]
        return sorted(inside, key=lambda each: each.session.when, reverse=True)


def prompts_text(prompts: Iterable[TypedPrompt]) -> str:
    """Return prompts as raw and untrusted text, each below its time."""
    return "\n".join(f"{iso(prompt.time) or 'time unknown'}\n{prompt.text}\n" for prompt in prompts)


def _summary(prompts: Sequence[TypedPrompt], projects: Projects) -> Summary:
    """Return a summary with what prompts tell of their session."""
    first = prompts[0]
    times = [prompt.time for prompt in prompts if prompt.time is not None]
    return Summary(
        id=first.session,
        title=excerpt(first.text),
        title_source=TitleSource.PROMPT,
        project=projects.root_of(first.path.parent.name),
        project_key=first.path.parent.name,
        kind=SessionKind.MAIN,
        format="json",
        names=(str(first.path),),
        size=0,
        modified=max(times, default=datetime.fromtimestamp(0, UTC)),
        prompts=len(prompts),
        flags=frozenset({Flag.LOST}),
    )


def _hit(session: Summary, prompt: TypedPrompt, rank: int) -> Hit:
    return Hit(
        session=session,
        file=session,
        message="",
        block=rank,
        kind=DocumentKind.USER,
        tool="",
        time=prompt.time,
        score=0.0,
        rank=rank,
        text=prompt.text,
    )


def _of_prompts(field: Narrowed) -> bool:
    """Return whether a prompt without a session can satisfy a condition."""
    if is_of_sessions(field) or field.excluded:
        return field != Narrowed(field=Field.IN, value="prompt", excluded=True)
    return field.field is Field.IN and field.value == "prompt"


def _matches(prompt: TypedPrompt, query: Query) -> bool:
    if query.before is not None and (prompt.time is None or prompt.time >= query.before):
        return False
    if query.after is not None and (prompt.time is None or prompt.time < query.after):
        return False
    return all(_has(prompt.text, term) is not term.excluded for term in query.terms)


def _has(text: str, term: Term) -> bool:
    """Return whether a text has a term's symbols, and its words next to each other."""
    text = composed(text)
    row, needed = words(term.text), needed_symbols(term.text)
    if not row and not needed:
        return False
    pattern = phrase_pattern(row, prefix=term.prefix) if row else None
    return set(needed) <= set(symbols(text)) and (
        pattern is None or pattern.search(text) is not None
    )
