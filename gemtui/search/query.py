"""What is searched for: the words that a person types, taken apart.

    parser "falls apart" -draft tool:shell after:7d is:failed in:answer

Words that stand side by side must all occur in one message or tool call; `-` excludes; fields
narrow down. Nothing is refused: what can't be read as meant is searched as words, and `Query.note`
says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from gemtui.moments import period
from gemtui.text import listed

LONGEST = 1000
"""Characters of a query that are read."""


class Field(StrEnum):
    """What can be narrowed down, as it is typed before the colon."""

    PROJECT = "project"
    TOOL = "tool"
    FILE = "file"
    MODEL = "model"
    TAG = "tag"
    BEFORE = "before"
    AFTER = "after"
    IS = "is"
    IN = "in"


MARKED = ("pinned", "archived")
"""What a user has made of a session, which `is:` asks for."""
CHOICES: Mapping[Field, tuple[str, ...]] = {
    Field.IS: ("failed", "thought", *MARKED),
    Field.IN: ("prompt", "answer", "thought", "tool"),
}
"""Fields that take one of a few words."""


class Term(Struct, frozen=True, kw_only=True):
    """Words that must occur, in this order and without others between them.

    `text`: as typed. `quoted`: exactly so, however few hits there are. `prefix`: the last word may
    go on. `excluded`: they must not occur.
    """

    text: str
    quoted: bool = False
    prefix: bool = False
    excluded: bool = False


class Narrowed(Struct, frozen=True, kw_only=True):
    """A field with its value, in lower case for those of CHOICES. `excluded`: it must not hold."""

    field: Field
    value: str
    excluded: bool = False


class Query(Struct, frozen=True, kw_only=True):
    """A query taken apart.

    `before`, `after`: the times that messages are older than, or not older than. `note`: what was
    not read as it may have been meant; None = nothing.
    """

    text: str
    terms: tuple[Term, ...] = ()
    fields: tuple[Narrowed, ...] = ()
    before: datetime | None = None
    after: datetime | None = None
    note: str | None = None

    def __bool__(self) -> bool:
        """Whether it asks for anything."""
        return bool(self.terms or self.fields or self.before or self.after)


_ITEM = re.compile(
    r"""(?P<minus>-(?=[^\s-]))? (?:(?P<field>[A-Za-z]+):(?=\S))?
        (?:"(?P<quoted>[^"]*)" | (?P<plain>\S+))""",
    re.VERBOSE,
)
_FIELDS = frozenset(map(str, Field))


def parse(text: str, *, now: datetime) -> Query:
    """Take a query apart; nothing is raised, whatever it is.

    `now`: an aware time, from which `after:7d` counts; days begin at midnight of its zone.
    """
    text = text.encode(errors="replace").decode()  # what no text can hold is in no session
    if len(text) > LONGEST:
        return replace(
            parse(text[:LONGEST], now=now),
            text=text,
            note=f"too long: only the first {LONGEST:,} characters are searched",
        )
    try:
        return _parsed(text, now)
    except _Malformed as error:
        ends = not text[-1:].isspace()
        found = text.replace('"', " ").split()
        terms = [Term(text=word, prefix=ends and word is found[-1]) for word in found]
        return Query(text=text, terms=tuple(terms), note=f"{error} (searched as words)")


class _Malformed(Exception):
    """Something in the query can't be meant so."""


def _parsed(text: str, now: datetime) -> Query:
    terms: list[Term] = []
    fields: list[Narrowed] = []
    times: dict[Field, datetime] = {}
    doubt = None
    if text.count('"') % 2:
        raise _Malformed('a quotation mark " is missing')
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
    """The term of a word or phrase; with `name` it looked like a field and is none."""
    excluded = match["minus"] is not None
    plain, quoted = match["plain"], match["quoted"]
    if quoted is not None:
        if name:
            yield Term(text=name, excluded=excluded)
        if quoted.strip():
            yield Term(text=quoted, quoted=True, excluded=excluded)
        return
    if plain.rstrip(":").lower() in _FIELDS and plain.endswith(":"):
        raise _Malformed(f"nothing follows {plain}")
    whole = f"{match['field']}:{plain}" if name else plain
    yield Term(text=whole, prefix=ends and not excluded, excluded=excluded)


def _mistyped(name: str) -> str | None:
    """A word about what is no field and looks like one."""
    from difflib import get_close_matches

    near = get_close_matches(name, _FIELDS, n=1, cutoff=0.75) if len(name) > 2 else []
    return f"{name}: is no field, did you mean {near[0]}: (searched as words)" if near else None


def _value(match: re.Match[str]) -> str:
    value = match["quoted"] if match["quoted"] is not None else match["plain"]
    if not value.strip():
        raise _Malformed(f"nothing follows {match['field']}:")
    return value


def _narrowed(field: Field, value: str, excluded: bool) -> Narrowed:
    choices = CHOICES.get(field)
    if choices is not None and (value := value.lower()) not in choices:
        raise _Malformed(f"{field}:{value} is not known, only {listed(choices)}")
    if field in (Field.BEFORE, Field.AFTER):
        raise _Malformed(f"-{field}: can't be excluded")
    return Narrowed(field=field, value=value, excluded=excluded)


# --- times ---------------------------------------------------------------------------------------


def _time(field: Field, value: str, now: datetime) -> datetime:
    """The moment that a day, month or year begins, or that is so long ago."""
    found = period(value, now)
    if found is None:
        raise _Malformed(f"{field}:{value} is no day, such as 2026-11-20, yesterday or 7d")
    return found[0]


# --- completing ----------------------------------------------------------------------------------


_BEGUN = re.compile(r'(?:^|(?<=\s))-?(?:(?P<field>[A-Za-z]+):)?(?P<begun>[^\s":]*)$')


def completions(text: str, values: Mapping[Field, Sequence[str]]) -> list[str]:
    """Return what `text` may become: the field that is begun at its end, or the value of one.

    `values`: those that can be offered for a field, the likeliest first; CHOICES are known.
    """
    match = _BEGUN.search(text)
    if match is None or text.count('"') % 2:
        return []
    name, begun = match["field"], match["begun"].lower()
    if name is None:
        ways = [f"{field}:" for field in Field] if begun else []
    elif name.lower() in _FIELDS:
        field = Field(name.lower())
        ways = list(CHOICES.get(field, ())) or [_quoted(each) for each in values.get(field, ())]
    else:
        return []
    head = text[: match.start("begun")]
    fitting = [way for way in ways if way.strip('"').lower().startswith(begun)]
    return [head + way for way in fitting if way.lower() != begun]


def _quoted(value: str) -> str:
    return f'"{value}"' if re.search(r"\s", value) else value
