"""Words for the session list: its description, why it is empty, and periods."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from textual.content import Content

from gemtui.sessions.catalog.catalog import Snapshot
from gemtui.sessions.catalog.listing import ListQuery, Rows, View
from gemtui.sessions.catalog.summary import Summary
from gemtui.text import Clean, short_path
from gemtui.ui.draw.lines import fit_end, own
from gemtui.ui.draw.theme import UNICODE, Glyphs
from gemtui.ui.kit.bars import GAP, LEAST
from gemtui.ui.kit.keys import BY_ID


class Period(NamedTuple):
    """A period of time that ends now.

    `days`: its length; None means all time.
    """

    words: str
    days: int | None


SPANS = (Period("all time", None), Period("30 days", 30), Period("7 days", 7), Period("24 hours", 1))


def since(span: int, now: datetime) -> datetime | None:
    """Return the start of the period with this index in `SPANS`, or None for all time."""
    days = SPANS[span].days
    return None if days is None else now - timedelta(days=days)


def scope_parts(title: str, project: Path | None, span: int | None = None) -> list[Content]:
    """Return the parts of a header: a title, the scope and the period.

    `project`: the folder that the scope is limited to; None for all projects. `span`: the period's
    index in `SPANS`; None for no period.
    """
    where = own("all projects") if project is None else short_path(project)
    period = [] if span is None else [Content(SPANS[span].words)]
    return [Content.styled(title, "bold"), Content(where), *period]


def titled_path(title: str, path: Path, room: int, glyphs: Glyphs) -> list[Content]:
    """Return a title and a path as parts of a header, cutting the start of the path.

    `room`: how many cells there are for both.
    """
    left = max(LEAST, room - len(title) - 2 * len(GAP))
    shown = fit_end(short_path(path), left, own(glyphs.ellipsis))
    return [Content.styled(own(title), "bold"), Content(shown)]


def crumbs(view: View, rows: Rows, snapshot: Snapshot | None) -> tuple[str, ...]:
    """Return a description of the session list, in parts.

    They are the number of sessions, the scope, the loading progress, the sort order, and the number
    of hidden sessions.
    """
    amount = f"{rows.shown:,}" if rows.shown == rows.total else f"{rows.shown:,} of {rows.total:,}"
    words = [amount, "all projects" if view.everywhere else "this project"]
    if snapshot is not None and not snapshot.complete:
        words.append(f"reading {snapshot.done:,} of {snapshot.total:,}")
    words.append(view.order)
    if view.hidden:
        words.append("including hidden")
    elif rows.concealed:
        words.append(f"{rows.concealed:,} hidden")
    return tuple(words)


def selection(selected: int, unlisted: int) -> str:
    """Return words that say how many sessions are selected; "" if there are none.

    `unlisted`: how many of the selected sessions aren't currently in the list.
    """
    if not selected:
        return ""
    return f"{selected:,} selected" + (f", {unlisted:,} not listed" if unlisted else "")


def shorter(words: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Yield the list's description, followed by ever shorter versions of it.

    The sort order is shortened first, then the scope. `words`: the parts that `crumbs` returned.
    """
    yield words
    words = tuple(word.removesuffix(" first") for word in words)
    yield words
    yield tuple(_SHORT.get(word, word) for word in words)


_SHORT = {"all projects": "all", "this project": "this one"}


def empty_text(
    view: View, rows: Rows, snapshot: Snapshot | None, glyphs: Glyphs = UNICODE, *, typing: bool = False
) -> tuple[str, ...]:
    """Return why the list is empty and which keys help, one paragraph per item.

    `typing`: whether the search field has the focus. Other keys would then type into the field, so
    the key that leaves it is named first.
    """
    before = f"{BY_ID['filter.done'].footer(ascii=glyphs.name == 'ascii')} " if typing else ""
    lines = [_reason(view, rows, snapshot, glyphs)]
    query = ListQuery(view.query)
    for field in query.of_messages[:1]:
        key = BY_ID["sessions.search"].footer()
        lines.append(f"{field} only works in the full search. Press {before}{key} to open it.")
    if query.note is not None:
        lines.append(f"{query.note}.")
    if rows.elsewhere:
        lines.append(f"{rows.elsewhere} in other projects. Press {before}{_key('scope')} to show all.")
    if rows.concealed and not view.query:
        lines.append(f"{rows.concealed} hidden. Press {_key('hidden')} to show all.")
    return tuple(lines)


def resume_line(summary: Summary) -> Clean:
    """Return the shell command that resumes a session in its project's folder."""
    from gemtui.agent.command import quoted

    folder = "" if summary.project is None else f"cd {quoted(summary.project)} && "
    return Clean(f"{folder}gemini --resume {quoted(summary.id)}")


def _reason(view: View, rows: Rows, snapshot: Snapshot | None, glyphs: Glyphs) -> str:
    if view.query:
        quoted = f'"{view.query}"' if glyphs.ascii else f"“{view.query}”"
        return f"Nothing matches {quoted}. Press {_key('clear')} to clear the search."
    if snapshot is None or not snapshot.complete:
        return f"Reading{glyphs.ellipsis}"
    return "No sessions in this project." if rows.elsewhere else "No sessions yet."


def _key(action: str) -> str:
    return BY_ID[f"list.{action}"].footer()
