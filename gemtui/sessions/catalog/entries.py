"""The sessions of a list with their texts, and the search for some of them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

from msgspec import Struct

from gemtui.moments import period
from gemtui.sessions.catalog.query import (
    SYMBOLS_ONLY,
    Field,
    Narrowed,
    Query,
    can_tell,
    fits_all,
    parse_query,
)
from gemtui.sessions.catalog.summary import CallFields, Summary, project_group, title_of
from gemtui.text import Clean, clean, clean_line, composed, either_form

if TYPE_CHECKING:
    from gemtui.marks import Mark


class ListEntry:
    """One session, with its strings prepared for display and search.

    `key`: unique in a listing, and stable for the session in later listings. `calls`: the calls of
    the session and of its subagents, as far as a query can ask about them. `project`: a short
    label, unique among projects, followed by `@` and the worktree's name if there is one. `group`:
    the same for all sessions of a project. `title`: the user's name for the session, or else its
    own title. `unseen`: text that is searched but not shown in a row. `plain`: the searched text,
    composed. `lower`: the same in lower case. `when`: as `Summary.when`. `above`: the id of the
    session that it belongs below. `row`: its row unless it is below that session.
    """

    __slots__ = (
        "above",
        "archived",
        "calls",
        "group",
        "hidden",
        "key",
        "lower",
        "mark",
        "models",
        "pinned",
        "plain",
        "project",
        "row",
        "summary",
        "tags",
        "title",
        "unseen",
        "when",
    )

    def __init__(
        self,
        summary: Summary,
        project: Clean,
        key: str,
        mark: Mark | None = None,
        calls: tuple[CallFields, ...] | None = None,
    ) -> None:
        self.summary = summary
        self.calls = summary.calls if calls is None else calls
        self.key = key
        self.mark = mark
        self.group = project_group(summary)
        self.when = summary.when
        self.above = summary.id if summary.is_copy else summary.parent
        self.pinned = mark is not None and mark.pinned
        self.archived = mark is not None and mark.archived
        self.hidden = summary.hidden or self.archived
        title = clean_line(summary.title)
        self.title = clean_line(title_of(summary, None if mark is None else mark.name))
        self.tags = () if mark is None else tuple(clean_line(f"#{tag}") for tag in mark.tags)
        self.project = project
        self.models = tuple(short_model(model) for model in summary.models)
        note = () if mark is None or mark.note is None else clean(mark.note).split("\n")
        self.unseen = (*(() if title == self.title else (title,)), *map(clean_line, note))
        shown = (self.title, project, *self.models, *self.tags)
        self.plain = composed("\n".join((*shown, *self.unseen, summary.id)))
        self.lower = self.plain.lower()
        self.row = SessionRow(self, key)


class SessionRow(Struct, frozen=True):
    """A session in the list; if `depth` > 0, it is shown under its parent session.

    `key`: that of the entry, which is the same in every snapshot.
    """

    entry: ListEntry
    key: str
    depth: int = 0


@lru_cache
def short_model(model: str) -> Clean:
    """Return a model's name without its usual prefix, such as `2.5-pro`."""
    return clean_line(model.removeprefix("models/").removeprefix("gemini-"))


# --- search ----------------------------------------------------------------------------------


class ListQuery:
    """A search for sessions: words that must all occur, and words that must not.

    It is parsed like a full-text search (`gemtui.sessions.catalog.query.parse_query`), and fields
    have the same meaning there (`gemtui.sessions.catalog.query.fits_all`). `-word` and `!word`
    exclude a word. A word with a capital letter is case-sensitive. The search covers a session's
    name, title, project, models, tags, note and id, but not its text. `#tag` also matches the
    beginning of a tag. `after:7d` and `before:2026-11-20` compare the time of last use. `today` and
    `yesterday` match the day, or match as words. `now`: a timezone-aware time; None means the
    current time.

    `note`: a message for the user if a part of the query is searched as words but was probably
    meant as something else; otherwise None. Fields such as `in:prompt`, which only a full-text
    search supports, are searched as words.
    """

    def __init__(self, text: str, now: datetime | None = None) -> None:
        now = now or datetime.now().astimezone()
        asked = text_query(text, now)
        self._fields = tuple(filter(can_tell, asked.fields))
        self._before, self._after = asked.before, asked.after
        terms = [(term.text, not term.excluded) for term in asked.terms]
        others = (field for field in asked.fields if not can_tell(field))
        terms += [(f"{field.field}:{field.value}", not field.excluded) for field in others]
        self.note = asked.note
        self.wanted = tuple(word for word, wanted in terms if wanted)
        self.unwanted = tuple(word for word, wanted in terms if word and not wanted)
        self._days = {
            wanted: day for wanted in self.wanted if (day := _day(wanted, now)) is not None
        }

    def __bool__(self) -> bool:
        times = self._before or self._after
        return bool(self.wanted or self.unwanted or self._fields or times)

    @property
    def for_archived(self) -> bool:
        """Whether the query asks for archived sessions (otherwise hidden from lists)."""
        return Narrowed(field=Field.IS, value="archived") in self._fields

    def select(self, entries: Iterable[ListEntry]) -> list[ListEntry]:
        """Return the entries that match, in their original order."""
        narrowed = self._fields or self._before or self._after
        selected = [entry for entry in entries if self._fits(entry)] if narrowed else list(entries)
        for word in self.wanted:
            if word in self._days:
                start, end = self._days[word]
                has = {id(entry) for entry in _having(word, selected, True)}
                selected = [
                    entry for entry in selected if start <= entry.when < end or id(entry) in has
                ]
            else:
                selected = _having(word, selected, True)
        for word in self.unwanted:
            selected = _having(word, selected, False)
        return selected

    def _fits(self, entry: ListEntry) -> bool:
        when, before, after = entry.when, self._before, self._after
        in_time = (before is None or when < before) and (after is None or when >= after)
        return in_time and fits_all(self._fields, entry.summary, entry.mark, entry.calls)

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Return the (start, end) of each required word found in a string, in order.

        The spans don't overlap.
        """
        return [match.span() for match in self._pattern.finditer(text)] if self.wanted else []

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        longest_first = sorted(self.wanted, key=len, reverse=True)
        return re.compile("|".join(map(_any_case, longest_first)))


def text_query(text: str, now: datetime) -> Query:
    """Return the full-text search for what the user has typed to search a list."""
    return parse_query(_NOT.sub(_minus, text), now=now)


_DAYS = ("today", "yesterday")
_NOT = re.compile(rf'"[^"]*"|(?<!\S)!(?!{SYMBOLS_ONLY})')
"""Matches a phrase, or a `!` that excludes the word after it, unless that is a symbol as in `!=`.

A `!` at the end, with no word after it yet, means nothing.
"""


def _minus(match: re.Match[str]) -> str:
    if match[0] != "!":
        return match[0]
    return "-" if match.string[match.end() :][:1].strip() else ""


def _day(word: str, now: datetime) -> tuple[datetime, datetime] | None:
    return period(word, now) if word in _DAYS else None


def _having(word: str, entries: list[ListEntry], wanted: bool) -> list[ListEntry]:
    word = composed(word)
    if _minds_case(word):
        return [entry for entry in entries if (word in entry.plain) is wanted]
    return [entry for entry in entries if (word.lower() in entry.lower) is wanted]


def _minds_case(word: str) -> bool:
    return word != word.lower() and not word.startswith("#")


def _any_case(word: str) -> str:
    pattern = either_form(word)
    return pattern if _minds_case(word) else f"(?i:{pattern})"
