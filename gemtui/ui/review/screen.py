"""The review of a session's changes: keep or revert hunks, and comment on lines."""

from __future__ import annotations

import asyncio
import os
import textwrap
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, ClassVar, NamedTuple, cast

from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container, Vertical
from textual.content import Content

from gemtui.checkpoints.review import ReviewedFile, ReviewHunk, dependent_hunks
from gemtui.errors import GemtuiError, message_of
from gemtui.runs.undo.review import (
    Comment,
    Reverted,
    Review,
    ReviewSubject,
    changed_words,
    comments_prompt,
    commit_message,
    diff_lines,
    is_idle,
    owner_words,
    revert,
    review_of,
    stay_words,
    subject_of,
)
from gemtui.sessions.catalog.summary import Summary
from gemtui.text import clean_line, counted, visible
from gemtui.ui.draw.lines import Piece, Pieces, tabless, two_ended
from gemtui.ui.draw.theme import Look, Role
from gemtui.ui.kit.bars import BarLine
from gemtui.ui.kit.dialogs import AskScreen, at_most, confirm, left_alone
from gemtui.ui.kit.editor import open_git_tool
from gemtui.ui.kit.keys import Where, bindings
from gemtui.ui.kit.row_list import RowList
from gemtui.ui.kit.screens import DIALOG, FullScreen
from gemtui.ui.transcript.diff import change_counts

if TYPE_CHECKING:
    from gemtui.ui.kit.app_base import AppBase

MOST_LINES = 2_000
"""The maximum number of lines of a hunk to show."""
_LETTERS = {"added": "A", "modified": "M", "deleted": "D"}
_DIGITS = 5
_LONGEST = 2_000
"""The maximum number of characters of a line to show."""

WAIT = 1.0
"""How many seconds to wait between checks of whether the run has ended."""
_CONTEXT = 2
"""How many lines before and after a commented line are sent with the comment."""
_MOST_LISTED = 200
_COMMENT_WIDTH = 60
_Place = tuple[bytes, str, int]
"""Identifies the line of a comment: the file's path, the line's sign and number."""


class ReviewRow(NamedTuple):
    """A row of the list of files and hunks; `hunk` is None in a file's own row."""

    file: ReviewedFile
    hunk: ReviewHunk | None

    @property
    def key(self) -> str:
        """The id of the row's file or hunk, by which the list identifies the row."""
        return self.file.id if self.hunk is None else self.hunk.id

    @property
    def hunks(self) -> Sequence[ReviewHunk]:
        """The hunks that the row stands for: one or, in a file's row, all of the file's."""
        return self.file.hunks if self.hunk is None else (self.hunk,)


class DiffRow(NamedTuple):
    """A row of a file's diff.

    `sign`: "@" for a hunk's header, "." for a note, "#" for the user's comment on the line above,
    and "+", "-" or " " for a line of the diff.
    `line`: the line's number in the current file or, for a removed line, in the old file; 0 for
    other rows.
    """

    file: ReviewedFile
    hunk: ReviewHunk
    sign: str
    line: int
    text: str


def list_rows(files: Sequence[ReviewedFile]) -> list[ReviewRow]:
    """Return the rows of the list: each file followed by its hunks."""
    return [ReviewRow(file, hunk) for file in files for hunk in (None, *file.hunks)]


def diff_rows(file: ReviewedFile, comments: Mapping[_Place, Comment]) -> list[DiffRow]:
    """Return the rows of a file's diff with the user's comments; long hunks are truncated."""
    rows = list[DiffRow]()
    for hunk in file.hunks:
        for row in _rows(file, hunk):
            rows.append(row)
            comment = comments.get(_place(row))
            lines = [] if comment is None else textwrap.wrap(comment.text, _COMMENT_WIDTH)
            rows += [DiffRow(file, hunk, "#", 0, line) for line in lines]
    return rows


def _rows(file: ReviewedFile, hunk: ReviewHunk) -> Iterator[DiffRow]:
    yield DiffRow(file, hunk, "@", 0, "")
    if hunk.about:
        yield DiffRow(file, hunk, ".", 0, hunk.about)
    if hunk.fixed:
        yield DiffRow(file, hunk, ".", 0, f"can't be reverted: {hunk.fixed}")
    now, before = hunk.now - len(hunk.above), hunk.before
    for at, (sign, line) in enumerate(diff_lines(hunk)):
        if at == MOST_LINES:
            rest = len(hunk.above) + len(hunk.removed) + len(hunk.added) + len(hunk.below) - at
            yield DiffRow(file, hunk, ".", 0, counted(rest, "more line"))
            return
        text = line.removesuffix(b"\n")[:_LONGEST].decode("utf-8", "replace")
        yield DiffRow(file, hunk, sign, before if sign == "-" else now, text)
        before, now = before + (sign == "-"), now + (sign != "-")


# --- rendering -----------------------------------------------------------------------------------


def draw_review_row(row: ReviewRow, look: Look, reverted: Collection[str], comments: int) -> Pieces:
    """Render a file with its status letter, or a hunk with its author.

    `reverted`: the ids of the hunks that are marked to be reverted. `comments`: how many comments
    the user has written in the file.
    """
    muted, marked = look[Role.MUTED], [each.id in reverted for each in row.hunks]
    added = sum(len(each.added) for each in row.hunks)
    removed = sum(len(each.removed) for each in row.hunks)
    right = [*change_counts(added or None, removed, look, front="  ")]
    if comments:
        right.append(Piece(f"  {counted(comments, 'comment')}", look[Role.ACCENT]))
    if any(marked):
        words = "revert" if all(marked) else f"revert {sum(marked)} of {len(marked)}"
        right.append(Piece(f"  {look.glyphs.warning} {words}", look[Role.WARNING]))
    if row.hunk is None:
        letter, name = _LETTERS[row.file.change], clean_line(os.fsdecode(row.file.path))
        pieces = (Piece(f"{letter} ", muted), Piece(name, look[Role.TEXT]))
    else:
        line = f"  {row.hunk.now or row.hunk.before:>4} " if row.hunk.before else "       "
        pieces = (Piece(line, muted), Piece(clean_line(owner_words(row.hunk.owner)), muted))
    return two_ended(pieces, tuple(right), look)


def draw_diff_row(row: DiffRow, look: Look, reverted: Collection[str]) -> Pieces:
    """Render a row of a diff, with the line's number and its sign.

    `reverted`: the ids of the hunks that are marked to be reverted.
    """
    muted = look[Role.MUTED]
    if row.sign == "@":
        owner = clean_line(owner_words(row.hunk.owner))
        pieces: Pieces = (Piece(f"@@ {owner}", look[Role.HEADING]),)
        if words := changed_words(row.hunk):
            pieces += (Piece(f"  {clean_line(words)}", muted),)
        if row.hunk.id not in reverted:
            return pieces
        right = (Piece(f"  {look.glyphs.warning} revert", look[Role.WARNING]),)
        return two_ended(pieces, right, look)
    if row.sign == ".":
        return (Piece(f"  {clean_line(row.text)}", muted),)
    if row.sign == "#":
        bar = Piece(f"{' ' * _DIGITS} {look.glyphs.bar} ", look[Role.ACCENT])
        return (bar, Piece(clean_line(row.text), look[Role.TEXT]))
    role = {"+": Role.ADDED, "-": Role.REMOVED}.get(row.sign, Role.TEXT)
    sign = {"+": look.glyphs.added, "-": look.glyphs.removed}.get(row.sign, " ")
    text = tabless(visible(row.text.replace("\n", " ")))
    return (
        Piece(f"{row.line:>{_DIGITS}} ", muted),
        Piece(f"{sign} ", look[role]),
        Piece(text, look[role]),
    )


def review_session(summary: Summary, title: str) -> ReviewScreen:
    """Return the screen to review a stored session's changes."""
    return ReviewScreen(subject_of(summary), title)


async def revert_file(app: AppBase, subject: ReviewSubject, path: PurePath) -> None:
    """Ask the user, then revert a session's or run's changes to one file, not the user's own."""
    with app.reporting("Not reverted"):
        found = await asyncio.to_thread(review_of, subject)
        files = [file for file in found.files if _path_of(subject, file) == path]
        hunks = [hunk for file in files for hunk in file.hunks]
        ids = frozenset(hunk.id for hunk in hunks if hunk.owner.id)  # "" for the user
        if not ids:
            app.show_message("Nothing to revert: no change of this file is left or known.")
            return
        name, lines = clean_line(os.fsdecode(files[0].path)), _marked_words(files, ids)
        if await confirm(app, "Revert?", name, lines, yes="Revert", no="Keep"):
            done = await asyncio.to_thread(revert, subject, ids, stop=app.stop)
            app.show_message(_reverted_words(done, files, "press R"), problem=bool(done.left))


_BACK = "go back and press R, or run gemtui redo"


def _path_of(subject: ReviewSubject, file: ReviewedFile) -> PurePath | None:
    return None if subject.folder is None else subject.folder / os.fsdecode(file.path)


class ReviewScreen(FullScreen[str]):
    """The screen to review changes.

    `first`: the path of the file whose diff is shown first; None shows the list of files. The
    screen returns a prompt that contains the user's comments, or None if there are none to send.
    """

    BINDINGS: ClassVar[list[BindingType]] = bindings(Where.REVIEW)
    AUTO_FOCUS = "#review-list"

    def __init__(
        self, subject: ReviewSubject, title: str, *, first: PurePath | None = None
    ) -> None:
        super().__init__(id="review-screen")
        self._subject, self._title, self._first = subject, title, first
        self._review: Review | None = None
        self._marked: set[str] = set()
        self._waiting = False
        self._comments: dict[_Place, Comment] = {}
        self._shown: ReviewedFile | None = None

    @property
    def files(self) -> RowList[ReviewRow]:
        return cast("RowList[ReviewRow]", self.query_one("#review-list", RowList))

    @property
    def diff(self) -> RowList[DiffRow]:
        """The rows of the selected file's diff."""
        return cast("RowList[DiffRow]", self.query_one("#review-diff", RowList))

    def compose(self) -> ComposeResult:
        files = RowList[ReviewRow](
            self._draw, key=lambda row: row.key, empty="reading", id="review-list"
        )
        side = Vertical(
            BarLine(id="review-heading", classes="heading"),
            RowList[DiffRow](self._draw_line, stops=lambda row: row.sign != "#", id="review-diff"),
            id="review-side",
            classes="pane",
        )
        yield from self.framed(Container(files, side, id="review-panes"))

    def on_mount(self) -> None:
        self.header.show_parts([Content(clean_line(f"Review of {self._title}"))])
        self.call_after_refresh(self.action_reload)

    # --- contents ------------------------------------------------------------------------------

    @work(exclusive=True, group="read")
    async def action_reload(self) -> None:
        """Compare the files again, because they may have changed."""
        await self._read()

    async def _read(self) -> None:
        self.show_status("comparing the files")
        try:
            found = await asyncio.to_thread(review_of, self._subject)
        except (GemtuiError, OSError) as error:
            self.files.empty = clean_line(f"The changes can't be read: {message_of(error)}")
            self.files.refresh()
            self.show_status("")
            return
        self._review = found
        known = {hunk.id for file in found.files for hunk in file.hunks}
        self._marked &= known
        self.files.empty = clean_line(found.nothing)
        self.files.show(list_rows(found.files))
        self._go_to_first()
        self._show_file(self.files.chosen)
        self._say_state()
        self.refresh_bindings()

    def _go_to_first(self) -> None:
        """Go to the diff of the file that is to be shown first."""
        rows, first, self._first = self.files.items, self._first, None
        places = (at for at, row in enumerate(rows) if _path_of(self._subject, row.file) == first)
        place = None if first is None else next(places, None)
        if place is not None:
            self.files.go(place)
            self._open()

    @on(RowList.Highlighted, "#review-list")
    def _moved(self) -> None:
        self._show_file(self.files.chosen)

    def _show_file(self, row: ReviewRow | None) -> None:
        """Show the diff of a row's file, scrolled to the row's hunk."""
        if row is None or row.file is not self._shown:
            self._shown = None if row is None else row.file
            self._show_lines(fresh=True)
        heading = self.query_one("#review-heading", BarLine)
        if row is None:
            heading.show_parts([])
            return
        heading.show_parts([Content(clean_line(os.fsdecode(row.file.path)))])
        if not self.diff.has_focus:
            wanted = row.hunk or row.file.hunks[0]
            rows = self.diff.items
            self.diff.go(next(at for at, each in enumerate(rows) if each.hunk is wanted))

    def _show_lines(self, *, fresh: bool = False) -> None:
        file = self._shown
        self.diff.show(() if file is None else diff_rows(file, self._comments), fresh=fresh)

    def _draw(self, row: ReviewRow, look: Look) -> Pieces:
        comments = sum(place[0] == row.file.path for place in self._comments)
        return draw_review_row(row, look, self._marked, 0 if row.hunk else comments)

    def _draw_line(self, row: DiffRow, look: Look) -> Pieces:
        return draw_diff_row(row, look, self._marked)

    def _say_state(self) -> None:
        """Show how many hunks are marked, and notes on anything uncertain about them."""
        if self._review is None:
            return
        words = [counted(len(self._review.files), "file")]
        if self._marked:
            waits = " once the agent is done" if self._waiting else ""
            words.append(f"{counted(len(self._marked), 'hunk')} to revert{waits}")
        if self._comments:
            words.append(counted(len(self._comments), "comment"))
        words += self._review.notes
        self.show_status(*map(clean_line, words))
        self.files.refresh()
        self.diff.refresh()
        self.refresh_bindings()

    # --- navigation ----------------------------------------------------------------------------

    @on(RowList.Opened, "#review-list")
    def _open(self) -> None:
        self.add_class("-diff")
        self.diff.focus()

    @on(RowList.Opened, "#review-diff")
    def _open_line(self) -> None:
        self.action_comment()

    def action_other_part(self) -> None:
        if self.diff.has_focus:
            self._to_list()
        else:
            self._open()

    def _to_list(self) -> None:
        self.remove_class("-diff")
        self.files.focus()

    def action_close(self) -> None:
        """Go from the diff to the list; from the list, close the screen.

        The user is asked first if comments or marks would be lost.
        """
        if self.diff.has_focus:
            self._to_list()
        else:
            self._leave()

    @work(exclusive=True, group=DIALOG)
    async def _leave(self) -> None:
        if self._comments or self._marked:
            lost = [counted(len(self._comments), "comment")] if self._comments else []
            lost += [f"{counted(len(self._marked), 'hunk')} to revert"] if self._marked else []
            question, about = "Leave the review?", f"Unfinished work: {', '.join(lost)}"
            if not await confirm(self.app, question, about, yes="Leave", no="Stay"):
                return
        self.dismiss(None)

    # --- keeping and reverting -----------------------------------------------------------------

    @property
    def _hunks(self) -> Sequence[ReviewHunk]:
        """The hunks that keys act on: the one under the cursor, or all of a file's hunks."""
        if self.diff.has_focus:
            row = self.diff.chosen
            return () if row is None else (row.hunk,)
        chosen = self.files.chosen
        return () if chosen is None else chosen.hunks

    def action_mark(self) -> None:
        self._toggle(self._hunks)

    def action_mark_call(self) -> None:
        if self._review is None or not self._hunks:
            return
        owner = self._hunks[0].owner
        hunks = [h for file in self._review.files for h in file.hunks if h.owner == owner]
        self._toggle(hunks)
        self.gemtui.show_message(f"{counted(len(hunks), 'hunk')} of {owner_words(owner)}")

    def _toggle(self, hunks: Sequence[ReviewHunk]) -> None:
        able = {each.id for each in hunks if not each.fixed}
        if hunks and not able:
            self.gemtui.show_message(f"This can't be reverted: {hunks[0].fixed}", problem=True)
        elif able <= self._marked:
            self._marked -= able
        else:
            self._marked |= able
        self._say_state()

    @work(exclusive=True, group=DIALOG)
    async def action_apply(self) -> None:
        """Ask the user, then revert the marked hunks.

        If an agent is working in the folder, wait until it is done.
        """
        if self._subject.folder is None:
            return
        idle = await asyncio.to_thread(is_idle, self._subject.folder)
        files = () if self._review is None else self._review.files
        waits = "An agent is working here. Hunks are reverted once it is done."
        words = _marked_words(files, self._marked)
        sure = await confirm(
            self.app,
            "Revert?",
            counted(len(self._marked), "hunk"),
            words if idle else [waits, "", *words],
            yes="Revert" if idle else "Revert when done",
            no="Keep all",
        )
        if not sure:
            return
        if idle:
            await self._revert()
        else:
            self._wait_and_revert()

    @work(exclusive=True, group="wait")
    async def _wait_and_revert(self) -> None:
        """Wait until no agent is working in the folder, then revert the marked hunks."""
        assert self._subject.folder is not None
        self._waiting = True
        self._say_state()
        try:
            while self._marked and not await asyncio.to_thread(is_idle, self._subject.folder):
                await asyncio.sleep(WAIT)
        finally:
            self._waiting = False
        if self._marked:
            await self._revert()
        self._say_state()

    async def _revert(self) -> None:
        ids = frozenset(self._marked)
        self.show_status("reverting")
        with self.gemtui.reporting("Not reverted"):
            done = await asyncio.to_thread(revert, self._subject, ids, stop=self.gemtui.stop)
            files = () if self._review is None else self._review.files
            words = _reverted_words(done, files, _BACK)
            self._marked.clear()
            await self._read()
            self.gemtui.show_message(words, problem=bool(done.left))
            return
        self._say_state()

    # --- comments ------------------------------------------------------------------------------

    @work(exclusive=True, group=DIALOG)
    async def action_comment(self) -> None:
        """Ask for a comment on the line under the cursor.

        An empty comment removes the old one.
        """
        row = self.diff.chosen
        if row is None or not row.line:
            self.gemtui.show_message("Move to a line of the diff to comment on it.")
            return
        place = _place(row)
        known = self._comments.get(place)
        named = clean_line(f"{os.fsdecode(row.file.path)}:{row.line}")
        text = await self.app.push_screen_wait(
            AskScreen(
                clean_line(f"Comment on {named}"),
                value="" if known is None else known.text,
                problem=lambda _: "",
            )
        )
        if text is None:
            return
        if text.strip():
            gone = " (a removed line)" if row.sign == "-" else ""
            context = _context(self.diff.items, self.diff.cursor)
            self._comments[place] = Comment(f"{named}{gone}", text.strip(), context)
        else:
            self._comments.pop(place, None)
        self._show_lines()
        self._say_state()

    def action_send(self) -> None:
        places = sorted(self._comments, key=lambda place: (place[0], place[2], place[1]))
        told = [self._comments[place] for place in places]
        self.dismiss(comments_prompt(told))

    # --- git -----------------------------------------------------------------------------------

    @work(exclusive=True, group="copy")
    async def action_copy_message(self) -> None:
        with self.gemtui.reporting():
            prompts = await asyncio.to_thread(self._subject.prompts)
            self.gemtui.copy(commit_message(prompts), "a commit message")

    def action_copy_files(self) -> None:
        files = () if self._review is None else self._review.files
        names = "\n".join(os.fsdecode(each.path) for each in files)
        self.gemtui.copy(names, f"the names of {counted(len(files), 'file')}")

    async def action_git(self) -> None:
        """Open the user's git tool in the project, then compare the files again."""
        if self._subject.folder is not None:
            open_git_tool(self.gemtui, self._subject.folder)
            self.action_reload()

    def can(self, action: str) -> bool:
        """Return whether the key for an action is available right now."""
        some = self._review is not None and bool(self._review.files)
        if action == "apply":
            return bool(self._marked) and not self._waiting
        if action == "send":
            return bool(self._comments)
        if action == "comment":
            return some and self.diff.has_focus
        if action == "git":
            return self._subject.folder is not None
        return some or action in ("close", "reload", "copy_message")


def _marked_words(files: Sequence[ReviewedFile], marked: Collection[str]) -> Sequence[str]:
    """Return lines that list the marked hunks by file, for the user to confirm."""
    words = list[str]()
    for file in files:
        path = clean_line(os.fsdecode(file.path))
        for hunk in file.hunks:
            if hunk.id in marked:
                line = f":{hunk.now}" if hunk.now else ""
                words.append(clean_line(f"{path}{line}  {owner_words(hunk.owner)}"))
        words += [clean_line(stay_words(*pair)) for pair in dependent_hunks([file], marked)]
    return at_most(words, _MOST_LISTED)


def _reverted_words(reverted: Reverted, files: Sequence[ReviewedFile], back: str) -> str:
    """Return a message on what was reverted and what was left alone.

    `back`: what reverses it.
    """
    words = "Nothing reverted."
    if reverted.paths:
        count = counted(len(reverted.paths), "file")
        words = f"Reverted hunks in {count}. To reverse this, {back}."
    if not reverted.left:
        return words
    names = {
        hunk.id: f"{os.fsdecode(file.path)}:{hunk.now}" for file in files for hunk in file.hunks
    }
    left = [f"{names.get(what, what)}: {why}" for what, why in reverted.left]
    return f"{words} {left_alone(left)}"


def _place(row: DiffRow) -> _Place:
    return row.file.path, row.sign, row.line


def _context(rows: Sequence[DiffRow], at: int) -> tuple[str, ...]:
    """Return the lines of a diff around a row, each with its number and sign."""
    near = rows[max(0, at - _CONTEXT) : at + _CONTEXT + 1]
    mine = (row for row in near if row.hunk is rows[at].hunk and row.line)
    return tuple(f"{row.line:>5} {row.sign} {row.text}" for row in mine)
