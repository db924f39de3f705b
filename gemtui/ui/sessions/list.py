"""The list of sessions: rows of one or two lines, with foldable groups and days."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from textual.strip import Strip

from gemtui.extension.live import LiveState
from gemtui.sessions.catalog.catalog import Snapshot
from gemtui.sessions.catalog.listing import Heading, ListQuery, SessionRow
from gemtui.sessions.catalog.summary import Flag, Summary
from gemtui.text import clean_line
from gemtui.ui.draw.lines import Line, Piece, own, strip_of, wrap
from gemtui.ui.draw.theme import Look, Role, look_of
from gemtui.ui.kit.filtering import FilterBar
from gemtui.ui.kit.keys import Where, bindings
from gemtui.ui.kit.messages import CopyRequested
from gemtui.ui.kit.row_list import RowList
from gemtui.ui.kit.screens import HasParts
from gemtui.ui.sessions.labels import empty_text, resume_line
from gemtui.ui.sessions.list_base import ArrangedSessions
from gemtui.ui.sessions.list_keys import ListSelection, ViewKeys
from gemtui.ui.sessions.row import RowContext, draw_row

_MINUTE = 60.0


class SessionList(HasParts, ArrangedSessions, inherit_bindings=False):
    """The list of sessions on screen, with its keys.

    Ages are relative to the app's clock (see `look_of`) and are updated every minute.
    """

    BINDINGS = bindings(Where.LIST)

    class Highlighted(RowList.Highlighted):
        """Posted when the cursor has moved; `summary` is None if it is on a heading."""

        def __init__(self, rows: SessionList) -> None:
            super().__init__(rows)
            self.summary = rows.highlighted

    class Opened(RowList.Opened):
        """Posted when the user opens a session, which is in `summary`."""

        def __init__(self, rows: SessionList, summary: Summary) -> None:
            super().__init__(rows)
            self.summary = summary

    def __init__(self, bar: FilterBar, project: Path | None = None) -> None:
        super().__init__(bar, project)
        self._live: Mapping[str, LiveState] = {}
        self._undoable: frozenset[str] = frozenset()
        self.selection = ListSelection(self)
        self.add_parts(self.selection, ViewKeys(self))

    # --- contents ------------------------------------------------------------------------------

    @property
    def selected(self) -> tuple[Summary, ...]:
        """The selected sessions, newest first, including any that aren't listed."""
        return self.summaries(self.selection.keys)

    def show_sessions(self, snapshot: Snapshot) -> None:
        """List the sessions of the store, and deselect sessions that no longer exist."""
        super().show_sessions(snapshot)
        if snapshot.complete:
            self.selection.keys = self._listing.known(self.selection.keys)

    def update_live(self, live: Mapping[str, LiveState]) -> None:
        """Show what each session is doing.

        `live`: the states by session id.
        """
        if live != self._live:
            self._live = live
            self.refresh()

    def update_undoable(self, sessions: frozenset[str]) -> None:
        """Show which sessions have checkpoints.

        `sessions`: their ids.
        """
        if sessions != self._undoable:
            self._undoable = sessions
            self.refresh()

    def sees(self, session: str) -> bool:
        """Return whether the session with this id is in the visible part of the list."""
        place = self.find(session)
        return place is not None and self.in_sight(place)

    # --- rendering -----------------------------------------------------------------------------

    def strips(self, place: int, look: Look) -> Sequence[Strip]:
        """Return the lines of the row at this index."""
        height = self._places.bottom(place) - self._places.top(place)
        return draw_row(self.items[place], look, self._around(place), height)

    def _around(self, place: int) -> RowContext:
        row = self.items[place]
        session = row.entry.summary if isinstance(row, SessionRow) else None
        copied = session is None or Flag.DUPLICATE in session.flags  # only originals have a state
        return RowContext(
            query=ListQuery(self.view.query),
            projects=self.view.everywhere and not self.view.grouped,
            sort=self.view.sort,
            days=self.days if self.view.by_day else None,
            chosen=place == self.cursor,
            selected=row.key in self.selection.keys,
            focused=self.has_focus,
            live=None if session is None or copied else self._live.get(session.id),
            undoable=session is not None and session.id in self._undoable,
        )

    def empty_strips(self, look: Look) -> Sequence[Strip]:
        """Return lines that explain why there are no rows."""
        style, indent = look[Role.MUTED], Piece(own("   "), look[Role.TEXT])
        typing = bool(self.view.query) and not self.has_focus
        texts = empty_text(self.view, self.rows, self._snapshot, look.glyphs, typing=typing)
        lines = (
            Line((indent, *wrapped.pieces))
            for text in texts
            for wrapped in wrap((Piece(clean_line(text), style),), max(1, look.width - 4))
        )
        return [Strip([]), *(strip_of(line, look.width) for line in lines)]

    # --- events --------------------------------------------------------------------------------

    def on_mount(self) -> None:
        """Redraw every minute, because ages grow and the names of days change."""
        self.set_interval(_MINUTE, self._tick)

    def _tick(self) -> None:
        if self.days is not None and self.days.today != look_of(self.app, 1).today:
            self.rearrange(self.view)
        self.refresh()

    def opens(self, clicks: int) -> bool:
        """Return whether this many clicks open a row: one for a group, two for a session."""
        return super().opens(clicks) or isinstance(self.chosen, Heading)

    # --- actions -------------------------------------------------------------------------------

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Keep actions enabled even without rows, because some of them bring rows back."""
        del parameters
        return self.can(action)

    def action_open(self) -> None:
        self._moved = True
        if isinstance(self.chosen, Heading):
            self.fold()
        elif (summary := self.highlighted) is not None:
            self.post_message(self.Opened(self, summary))

    def action_clear(self) -> None:
        """Clear the selection or, if nothing is selected, the search."""
        if not self.selection.clear():
            self.filter("")

    def action_copy_id(self) -> None:
        if (summary := self.highlighted) is not None:
            self.post_message(CopyRequested(summary.id, "the session id"))

    def action_copy_resume(self) -> None:
        if (summary := self.highlighted) is not None:
            self.post_message(CopyRequested(resume_line(summary), "the command that resumes this session"))
