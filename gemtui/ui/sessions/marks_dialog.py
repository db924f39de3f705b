"""The form for the marks (name, tags, note, pin) of one or more sessions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence

from msgspec.structs import replace
from textual import work
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.content import Content

from gemtui.errors import GemtuiError
from gemtui.marks import LONGEST_NOTE, Mark, MarkEdit, tag_of
from gemtui.text import clean, clean_line, ellipsis, visible_line
from gemtui.ui.draw.theme import glyphs_of
from gemtui.ui.kit.clean_widgets import Dialog, Input, Label, Static, Tick
from gemtui.ui.kit.dialogs import FormScreen, labelled
from gemtui.ui.kit.keys import Where, bindings
from gemtui.ui.kit.text_area import EnteredTextArea, TextArea
from gemtui.ui.sessions.marks import BETWEEN, complete_tag

_TITLE, _TAGS = 72, 64
"""Maximum width in cells of the title, and of the line below the field for tags."""


class MarksScreen(FormScreen[bool]):
    """A form for name, tags, note, pin and archive; returns True if they were changed.

    `about`: the session's own title or, if there are several sessions, their number. `marks`: the
    sessions' current marks. `tags`: the tags in use, most frequent first. `keep`: a function that
    saves the change; if it raises GemtuiError, the error is shown in the form and the input is
    kept. `subject`: the sessions' ids.
    """

    BINDINGS = bindings(Where.MARKS)
    AUTO_FOCUS = "Input"

    def __init__(
        self,
        about: str,
        marks: Sequence[Mark],
        tags: Sequence[str],
        keep: Callable[[MarkEdit], Awaitable[None]],
        *,
        subject: str,
    ) -> None:
        super().__init__(subject=subject)
        self._about, self._marks, self._tags, self._keep = about, marks, tags, keep
        self._one = marks[0] if len(marks) == 1 else None
        self._common = set.intersection(*(set(mark.tags) for mark in marks))
        self._some = set().union(*(mark.tags for mark in marks)) - self._common
        self._old_name = visible_line("" if self._one is None else self._one.name or "")
        self._old_note = clean("" if self._one is None else self._one.note or "")

    def compose(self) -> ComposeResult:
        with Dialog(
            "Name, tags, note", "tab next   enter save   ^j new line   esc close", id="marks"
        ):
            mark = glyphs_of(self.app).ellipsis
            about = ellipsis(self._about, _TITLE, mark=mark)
            yield Label(Content.styled(about, "bold"))
            if self._one is not None:
                name = Input(self._old_name, placeholder=visible_line(about), id="name")
                yield labelled("Name", name)
            tags = Input(
                visible_line(" ".join(sorted(self._common))),
                placeholder="separated by spaces",
                id="tags",
                complete=lambda text: complete_tag(text, lambda: self._tags),
            )
            yield labelled("Tags", tags)
            if words := self._words_about_tags():
                yield Static(words, id="tags-in-use")
            if self._one is not None:
                note = EnteredTextArea(longest=LONGEST_NOTE, id="note")
                note.text = self._old_note
                note.placeholder = "anything you want to remember"
                yield Horizontal(Label("Note"), note, id="note-row")
            yield Horizontal(Label(), *self._ticks(), id="mark-states")
            yield Static(id="problem")
            yield from self.buttons("Save")

    def _ticks(self) -> Iterator[Tick]:
        for state in ("pinned", "archived"):
            some = sum(getattr(mark, state) for mark in self._marks)
            mixed = (
                f" ({some:,} of {len(self._marks):,} are)" if some and not self._all(state) else ""
            )
            yield Tick(state + mixed, self._all(state), id=state)

    def _words_about_tags(self) -> str:
        some = bool(self._some)
        tags = " ".join(sorted(self._some) if some else self._tags)
        words = clean_line(f"{'some have' if some else 'in use'}: {tags}" if tags else "")
        return ellipsis(words, _TAGS)

    # --- saving --------------------------------------------------------------------------------

    @work(exclusive=True, group="take")
    async def action_take(self) -> None:
        try:
            edit = self._edit()
            if changes := edit != MarkEdit():
                await self._keep(edit)
        except GemtuiError as error:
            sign = glyphs_of(self.app).failed
            problem = self.query_one("#problem", Static)
            problem.update(clean_line(f"{sign} {error}"))
            problem.add_class("-wrong")
        else:
            self.dismiss(changes)

    def _edit(self) -> MarkEdit:
        """Return the changes that the user has made in the form. Raises MarkError."""
        words = BETWEEN.split(self.query_one("#tags", Input).value)
        tags = {tag_of(word) for word in words if word}
        edit = MarkEdit(
            add=tuple(sorted(tags - self._common)),
            remove=tuple(sorted(self._common - tags)),
            pinned=self._ticked("pinned"),
            archived=self._ticked("archived"),
        )
        if self._one is None:
            return edit
        name, note = self.query_one("#name", Input).value, self.query_one(TextArea).text
        return replace(
            edit,
            name=None if name == self._old_name else name,
            note=None if note == self._old_note else note,
        )

    def _ticked(self, state: str) -> bool | None:
        ticked = self.query_one(f"#{state}", Tick).value
        return None if ticked is self._all(state) else ticked

    def _all(self, state: str) -> bool:
        return all(getattr(mark, state) for mark in self._marks)
