"""The query language: parses what a user types into the search field.

    parser "falls apart" -draft tool:shell after:7d is:failed in:answer

All words must occur in one message or tool call, `-` excludes a word, and fields narrow the search.
No query is rejected: if a part can't be parsed, the query is searched as words, and `Query.note`
says so.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from functools import lru_cache
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from gemtui.agents import Agent
from gemtui.moments import period
from gemtui.text import composed, either_form, or_list

if TYPE_CHECKING:
    from gemtui.marks import Mark
    from gemtui.sessions.catalog.summary import CallFields, Summary

LONGEST = 1000
"""Number of characters of a query that are used; the rest is ignored."""


class Field(StrEnum):
    """A field that narrows the search, as it is typed before the colon."""

    PROJECT = "project"
    TOOL = "tool"
    FILE = "file"
    MODEL = "model"
    TAG = "tag"
    BEFORE = "before"
    AFTER = "after"
    IS = "is"
    IN = "in"
    AGENT = "agent"


MARKED = ("pinned", "archived")
"""The user's own marks on a session, as values of `is:`."""
CHOICES: Mapping[Field, tuple[str, ...]] = {
    Field.IS: ("failed", "thought", *MARKED),
    Field.IN: ("prompt", "answer", "thought", "tool"),
    Field.AGENT: tuple(Agent),
}
"""The accepted values of those fields that accept only certain values."""


class Term(Struct, frozen=True, kw_only=True):
    """Words that must occur next to each other, in this order.

    `text`: the words as typed. `quoted`: match exactly, even if there are few or no hits. `prefix`:
    the last word may be incomplete. `excluded`: the words must not occur.
    """

    text: str
    quoted: bool = False
    prefix: bool = False
    excluded: bool = False


class Narrowed(Struct, frozen=True, kw_only=True):
    """A condition on a field, such as `tool:shell`.

    `value`: in lower case for the fields in CHOICES. `excluded`: whether the condition is negated,
    as in `-tool:shell`.
    """

    field: Field
    value: str
    excluded: bool = False


class Query(Struct, frozen=True, kw_only=True):
    """A parsed query.

    `before`: match only messages older than this time. `after`: match only messages from this time
    on. `note`: a message for the user if part of the query may have been interpreted differently
    from what they meant; otherwise None.
    """

    text: str
    terms: tuple[Term, ...] = ()
    fields: tuple[Narrowed, ...] = ()
    before: datetime | None = None
    after: datetime | None = None
    note: str | None = None

    def __bool__(self) -> bool:
        """Return whether the query has any condition."""
        return bool(self.terms or self.fields or self.before or self.after)


SYMBOLS_ONLY = r"[!#-/:-@\[-`{-~]+(?!\S)"
"""Matches a word of nothing but ASCII symbols; a `-` before it is one of them, as in `->`."""
_ITEM = re.compile(
    rf"""(?P<minus>-(?=[^\s-])(?!{SYMBOLS_ONLY})|!(?=(?i:{"|".join(Field)}):\S))?
        (?:(?P<field>[A-Za-z]+):(?=\S))?
        (?:"(?P<quoted>[^"]*)" | (?P<plain>\S+))""",
    re.VERBOSE,
)
_FIELDS = frozenset(map(str, Field))


def parse_query(text: str, *, now: datetime) -> Query:
    """Parse a query; never raises.

    `now`: a timezone-aware time, the reference for values such as `after:7d`. Days begin at
    midnight in its time zone.
    """
    text = text.encode(errors="replace").decode()  # sessions contain no lone surrogates
    if len(text) > LONGEST:
        return replace(
            parse_query(text[:LONGEST], now=now),
            text=text,
            note=f"the query is too long: only the first {LONGEST:,} characters are searched",
        )
    try:
        return _parsed(text, now)
    except _Malformed as error:
        ends = not text[-1:].isspace()
        texts = text.replace('"', " ").split()
        terms = [Term(text=word, prefix=ends and word is texts[-1]) for word in texts]
        return Query(text=text, terms=tuple(terms), note=f"{error} (searched as words)")


class _Malformed(Exception):
    """Raised if a part of a query looks like a field or a phrase but is invalid."""


def _parsed(text: str, now: datetime) -> Query:
    terms: list[Term] = []
    fields: list[Narrowed] = []
    times: dict[Field, datetime] = {}
    doubt = None
    if text.count('"') % 2:
        raise _Malformed('a closing quotation mark " is missing')
    for match in _ITEM.finditer(text):
        name = (match["field"] or "").lower()
        excluded = match["minus"] is not None
        if name not in _FIELDS:
            terms += _terms(match, name, ends=match.end() == len(text))
            doubt = doubt or _mistyped(name)
            continue
        field, value = Field(name), _value(match)
        if field in (Field.BEFORE, Field.AFTER) and not excluded:
            bound = _time(field, value, now)
            times[field] = (min if field is Field.BEFORE else max)(bound, times.get(field, bound))
        else:
            fields.append(_narrowed(field, value, excluded))
    return Query(
        text=text,
        terms=tuple(terms),
        fields=tuple(fields),
        before=times.get(Field.BEFORE),
        after=times.get(Field.AFTER),
        note=doubt,
    )


def _terms(match: re.Match[str], name: str, *, ends: bool) -> Iterator[Term]:
    """Yield the search terms for a word or phrase in the query.

    `name`: the text before a colon in the query if that isn't a field's name; it is searched as a
    word. `ends`: whether the word is at the end of the query, where it may be incomplete.
    """
    excluded = match["minus"] is not None
    plain, quoted = match["plain"], match["quoted"]
    if quoted is not None:
        if name:
            yield Term(text=name, excluded=excluded)
        if quoted.strip():
            yield Term(text=quoted, quoted=True, excluded=excluded)
        return
    if plain.rstrip(":").lower() in _FIELDS and plain.endswith(":"):
        raise _Malformed(f"{plain} needs a word after it")
    whole = f"{match['field']}:{plain}" if name else plain
    yield Term(text=whole, prefix=ends and not excluded, excluded=excluded)


def _mistyped(name: str) -> str | None:
    """Return a note about a misspelled field; None if `name` resembles no field."""
    from difflib import get_close_matches

    near = get_close_matches(name, _FIELDS, n=1, cutoff=0.75) if len(name) > 2 else []
    return (
        f"{name}: is not a field (did you mean {near[0]}:), so it is searched as words"
        if near
        else None
    )


def _value(match: re.Match[str]) -> str:
    value = match["quoted"] if match["quoted"] is not None else match["plain"]
    if not value.strip():
        raise _Malformed(f"{match['field']}: needs a value")
    return value


def _narrowed(field: Field, value: str, excluded: bool) -> Narrowed:
    choices = CHOICES.get(field)
    if choices is not None and (value := value.lower()) not in choices:
        raise _Malformed(f"{field}:{value} is not valid; use {or_list(choices)}")
    if field in (Field.BEFORE, Field.AFTER):
        raise _Malformed(f"-{field}: can't be used to exclude")
    return Narrowed(field=field, value=value, excluded=excluded)


# --- times ---------------------------------------------------------------------------------------


def _time(field: Field, value: str, now: datetime) -> datetime:
    """Parse a field's date or period; return the time at which it starts.

    A day, month, or year starts at its midnight; a period such as `7d` starts that long before
    `now`. `field`: the field with this value, for the error message. Raises _Malformed.
    """
    moments = period(value, now)
    if moments is None:
        raise _Malformed(
            f"{field}:{value} is not a valid date; examples: 2026-11-20, yesterday or 7d"
        )
    return moments[0]


# --- sessions ------------------------------------------------------------------------------------


def is_of_sessions(narrowed: Narrowed) -> bool:
    """Return whether a field is a condition on whole sessions, not on single messages.

    This is true of `project:`, `model:`, `tag:`, `agent:`, `is:pinned`, and `is:archived`.
    """
    if narrowed.field is Field.IS:
        return narrowed.value in MARKED
    return narrowed.field in (Field.PROJECT, Field.MODEL, Field.TAG, Field.AGENT)


def can_tell(narrowed: Narrowed) -> bool:
    """Return whether `fits_all` can evaluate a field from a session's summary.

    It can't evaluate `in:` or `is:thought`, because summaries don't contain these facts.
    """
    return narrowed.field is not Field.IN and narrowed.value != "thought"


def is_of_calls(narrowed: Narrowed) -> bool:
    """Return whether a field is a condition on a single call: `tool:`, `file:`, and `is:failed`."""
    return narrowed.field in (Field.TOOL, Field.FILE) or (
        narrowed.field is Field.IS and narrowed.value == "failed"
    )


def fields_of_sessions(query: Query) -> tuple[Narrowed, ...]:
    """Return the conditions of a full-text search that are conditions on whole sessions.

    If a query asks for nothing in a message, but only excludes calls, as `-tool:shell` does, it
    means the sessions without such a call.
    """
    of_sessions = [field for field in query.fields if is_of_sessions(field)]
    others = [field for field in query.fields if not is_of_sessions(field)]
    if not query.terms and all(field.excluded and is_of_calls(field) for field in others):
        of_sessions += others
    return tuple(of_sessions)


def fits_all(
    fields: Iterable[Narrowed],
    session: Summary,
    mark: Mark | None,
    calls: Sequence[CallFields] | None = None,
) -> bool:
    """Return whether a session satisfies the conditions of all fields.

    Conditions on a call must be true of one and the same call: `tool:shell is:failed` is a shell
    call that failed, as in the full-text search. If all of them are excluded, no call may satisfy
    any. `mark`: the user's mark on the session. `calls`: the session's calls together with those of
    its subagents; None means that it has no subagents.
    """
    of_calls: list[Narrowed] = []
    for field in fields:
        if is_of_calls(field):
            of_calls.append(field)
        elif _fits(field, session, mark) is field.excluded:
            return False
    calls = session.calls if calls is None else calls
    if all(field.excluded for field in of_calls):
        return not any(any(map(_call_test(field.field, field.value), calls)) for field in of_calls)
    for field in of_calls:
        test = _call_test(field.field, field.value)
        calls = [call for call in calls if test(call) is not field.excluded]
    return bool(calls)


def _fits(narrowed: Narrowed, session: Summary, mark: Mark | None) -> bool:
    """Return whether a session satisfies the condition of a field that is none of calls."""
    value = composed(narrowed.value).lower()
    match narrowed.field:
        case Field.PROJECT:
            return value in composed(session.project or session.project_key).lower()
        case Field.MODEL:
            return any(value in model.lower() for model in session.models)
        case Field.AGENT:
            return session.agent == value
        case Field.TAG:
            return mark is not None and value.removeprefix("#") in mark.tags
        case Field.IS if value in MARKED:
            return mark is not None and bool(getattr(mark, value))
        case _:
            return not narrowed.excluded


@lru_cache(maxsize=16)
def _call_test(field: Field, value: str) -> Callable[[CallFields], bool]:
    """Return a test of whether a call satisfies a condition.

    The test remembers its answers, because lists ask it about the calls of 10,000 sessions.
    """

    @lru_cache(maxsize=1 << 15)
    def of_tool(tool: str) -> bool:
        return bool(tool) and _any_has(value, (tool_words(tool),))

    @lru_cache(maxsize=1 << 15)
    def of_paths(paths: tuple[str, ...]) -> bool:
        return _any_has(value, paths)

    match field:
        case Field.TOOL:
            return lambda call: of_tool(call.tool)
        case Field.FILE:
            return lambda call: of_paths(call.paths)
        case _:
            return lambda call: call.failed


# --- words ---------------------------------------------------------------------------------------


@lru_cache
def tool_words(tool: str) -> str:
    """Return the text in which `tool:` searches: the tool's name, and its kind, such as `edit`."""
    from gemtui.transcript.tools import kind_of

    return f"{tool} {kind_of(tool).value}"


def phrase_pattern(
    phrase: Sequence[str], *, inside: bool = False, prefix: bool = False
) -> re.Pattern[str]:
    """Return a pattern for words that occur next to each other, in this order.

    A word is a run of letters and digits. `inside`: the first word may end, and the last word may
    begin, a longer one. `prefix`: the last word may be the beginning of a longer one.
    """
    start = "" if inside else r"(?<![^\W_])"
    end = "" if inside or prefix else r"(?![^\W_])"
    return re.compile(start + r"[\W_]+".join(map(either_form, phrase)) + end, re.IGNORECASE)


def _any_has(value: str, texts: Iterable[str]) -> bool:
    """Return whether a text has the words of a field's value; the last one need only begin so.

    The search library finds the same (`gemtui.search.matching`).
    """
    pattern = _pattern_of(value)
    return pattern is not None and any(pattern.search(composed(text)) for text in texts)


@lru_cache(maxsize=16)
def _pattern_of(value: str) -> re.Pattern[str] | None:
    row = re.findall(r"[^\W_]+", composed(value).lower())
    return phrase_pattern(row, prefix=True) if row else None


# --- completing ----------------------------------------------------------------------------------


_BEGUN = re.compile(r'(?:^|(?<=\s))-?(?:(?P<field>[A-Za-z]+):)?(?P<begun>[^\s":]*)$')


def query_completions(text: str, values: Mapping[Field, Sequence[str]]) -> list[str]:
    """Return whole queries that complete the field or value at the end of `text`.

    `values`: the known values of each field, the most likely first. Values in CHOICES are built in.
    `agent:` completes nothing unless there is a choice.
    """
    match = _BEGUN.search(text)
    if match is None or text.count('"') % 2:
        return []
    name, begun = match["field"], match["begun"].lower()
    if name is None:
        useful = [field for field in Field if field is not Field.AGENT or values.get(field)]
        ways = [f"{field}:" for field in useful] if begun else []
    elif name.lower() in _FIELDS:
        field = Field(name.lower())
        ways = list(CHOICES.get(field, ())) or [_quoted(value) for value in values.get(field, ())]
    else:
        return []
    head = text[: match.start("begun")]
    fitting = [way for way in ways if way.strip('"').lower().startswith(begun)]
    return [head + way for way in fitting if way.lower() != begun]


def _quoted(value: str) -> str:
    return f'"{value}"' if re.search(r"\s", value) else value
