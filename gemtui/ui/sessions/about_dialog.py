"""A dialog with the facts about a session, and the sessions related to it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from textual import on
from textual.app import ComposeResult
from textual.content import Content
from textual.style import Style

from gemtui.extension.live import LiveSession
from gemtui.links import address_of, shows_links
from gemtui.sessions.catalog.summary import Flag, Summary, named
from gemtui.text import clean, clean_line, counted, short_path, size
from gemtui.ui.draw.theme import glyphs_of
from gemtui.ui.kit.app_base import DialogScreen
from gemtui.ui.kit.clean_widgets import Dialog, Option, OptionList
from gemtui.ui.kit.dialogs import fact
from gemtui.ui.kit.keys import Where, bindings
from gemtui.ui.kit.messages import CopyRequested
from gemtui.ui.sessions.live import STATE_WORDS

if TYPE_CHECKING:
    from gemtui.marks import Mark


_ASKED = 200
"""How many characters of a session's question are shown."""
NOTE, NOTE_LINES = 400, 5
"""How many characters and lines of a note are shown; the form for marks shows all."""


class AboutScreen(DialogScreen[Summary]):
    """A dialog that shows facts and returns the related session to open, or None.

    `marks`: the user's marks (name, tags, note and pin) by session id. `live`: what the session is
    doing now, if known. `fate`: words on when Gemini CLI will delete the session. `undo`: words on
    how the session's changes can be undone.
    """

    BINDINGS = bindings(Where.INFO)

    def __init__(
        self,
        summary: Summary,
        sessions: Sequence[Summary],
        marks: Mapping[str, Mark],
        live: LiveSession | None = None,
        fate: str = "",
        undo: str = "",
    ) -> None:
        super().__init__()
        self._summary, self._marks, self._live, self._fate = summary, marks, live, fate
        self._undo = undo
        self._relatives = list(relatives(summary, sessions))

    def compose(self) -> ComposeResult:
        with Dialog(
            clean_line(named(self._summary, self._marks).title),
            "enter open   y copy id   esc close",
        ):
            mark = self._marks.get(self._summary.id)
            cut = glyphs_of(self.app).ellipsis
            marked = () if mark is None else mark_facts(mark, self._summary, cut)
            more = (
                ("now", _now(self._live)),
                ("deletion", clean_line(self._fate)),
                ("undo", clean_line(self._undo)),
            )
            for name, value in (*marked, *summary_facts(self._summary), *more):
                if value:
                    yield fact(name, self._linked(value) if name == "file" else value)
            if self._relatives:
                yield OptionList(*map(self._option, self._relatives))

    def _linked(self, words: str) -> str | Content:
        if not (self.gemtui.config.links and shows_links(os.environ)):
            return words
        return Content.styled(words, Style(link=address_of(self._summary.path)))

    def _option(self, relative: tuple[str, Summary]) -> Option:
        what, session = relative
        return Option(_relative(what, named(session, self._marks)))

    @on(OptionList.OptionSelected)
    def _chosen(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(self._relatives[event.option_index][1])

    def action_copy_id(self) -> None:
        self.post_message(CopyRequested(self._summary.id, "the session id"))


def relatives(summary: Summary, sessions: Sequence[Summary]) -> Iterator[tuple[str, Summary]]:
    """Yield the sessions related to this one, each with the name of the relation.

    These are its parent, its subagents' sessions, its copies and, if it is itself a copy that isn't
    in use, the session that is.
    """
    for each in sessions:
        if each.id == summary.parent:
            yield "parent", each
    for each in sessions:
        if each.parent == summary.id and each is not summary:
            yield "subagent", each
    for each in sessions:
        if summary.path in each.files[1:]:
            yield "in use", each
    for copy in summary.copies:
        yield "copy", copy


def mark_facts(mark: Mark, summary: Summary, ellipsis: str) -> Iterator[tuple[str, str]]:
    """Yield the user's marks on a session as names and values.

    If the user has named the session, its own title is also yielded. `ellipsis`: ends a shortened
    note.
    """
    if mark.name is not None:
        yield "name", clean_line(mark.name)
        yield "title", clean_line(summary.title)
    yield "tags", clean_line(" ".join(f"#{tag}" for tag in mark.tags))
    states = [state for state in ("pinned", "archived") if getattr(mark, state)]
    yield "marked", clean_line(", ".join(states))
    note = clean(mark.note or "")
    beginning = "\n".join(note.split("\n")[:NOTE_LINES])[:NOTE]
    yield "note", note if beginning == note else (beginning + ellipsis)


def summary_facts(summary: Summary) -> Iterator[tuple[str, str]]:
    """Yield facts about a session as names and values; unknown ones are empty."""
    yield "id", clean_line(summary.id)
    yield (
        "project",
        clean_line(summary.project or f"unknown (stored in folder {summary.project_key})"),
    )
    yield "started", _time(summary.started)
    yield "updated", _time(summary.when)
    yield "models", clean_line(", ".join(summary.models))
    yield "messages", clean_line(_counts(summary))
    yield "tokens", clean_line(_tokens(summary))
    yield "wrote", clean_line(", ".join(summary.files_written))
    yield "state", clean_line(", ".join(flag.word for flag in Flag if flag in summary.flags))
    yield "file", clean_line(f"{short_path(summary.path)}  {size(summary.size)}")


def _now(live: LiveSession | None) -> str:
    """Return words for what the session is doing; "" if Gemini CLI's hooks don't say."""
    if live is None or live.state not in STATE_WORDS:
        return ""
    asked = f": {live.question.message[:_ASKED]}" if live.question is not None else ""
    since = f"{live.since.astimezone():%H:%M:%S}"
    return clean_line(f"{STATE_WORDS[live.state][0]} since {since}, process {live.pid}{asked}")


def _time(when: datetime | None) -> str:
    return clean_line("" if when is None else f"{when.astimezone():%Y-%m-%d %H:%M:%S}")


def _counts(summary: Summary) -> str:
    failed = f", {summary.failed_calls} failed" if summary.failed_calls else ""
    more = " or more" if summary.partial else ""
    return (
        f"{summary.messages}{more}, {counted(summary.prompts, 'prompt')}, "
        f"{counted(summary.tool_calls, 'tool call')}{failed}"
    )


def _tokens(summary: Summary) -> str:
    tokens = summary.tokens
    known = (
        ("in", tokens.input),
        ("cached", tokens.cached),
        ("out", tokens.output),
        ("thoughts", tokens.thoughts),
        ("tool", tokens.tool),
        ("total", tokens.total),
    )
    return ", ".join(f"{count:,} {name}" for name, count in known if count is not None)


def _relative(what: str, summary: Summary) -> Content:
    name = clean(f"{clean_line(summary.title)}  {clean_line(summary.path.name)}")
    return Content.assemble((f"{what:<10}", "dim"), name)
