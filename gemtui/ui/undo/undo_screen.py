"""The screen for undo and redo: the planned effects by file, then the results."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum, StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content

from gemtui.checkpoints.plan import Step
from gemtui.errors import GemtuiError, UndoError
from gemtui.runs.undo.undo import (
    Prompt,
    StepTexts,
    Undone,
    prompts_of,
    redo_project,
    require_idle,
    step_texts,
    undo_session,
)
from gemtui.sessions.catalog.summary import Summary
from gemtui.text import Clean, clean_line
from gemtui.ui.draw.gutter_rows import note_line
from gemtui.ui.draw.lines import Line, own
from gemtui.ui.draw.theme import Look, look_of
from gemtui.ui.kit.keys import Where, bindings
from gemtui.ui.kit.messages import ChatRequested
from gemtui.ui.kit.row_list import BesideScreen, RowList
from gemtui.ui.kit.screens import DIALOG, FullScreen
from gemtui.ui.kit.text_view import LineView
from gemtui.ui.undo.drawing import (
    StateView,
    UndoRow,
    draw_undo_row,
    heading_of,
    pages_of,
    side_lines,
    totals_words,
    undo_rows,
    undo_title,
    wrapped_lines,
)

if TYPE_CHECKING:
    pass


_SECOND = 1.0


class UndoScope(StrEnum):
    """What to undo; each value is the name shown on the screen."""

    BOTH = "files and chat"
    FILES = "files only"
    CHAT = "chat only"


class _Stage(Enum):
    PLANNING, PLANNED, DOING, DONE = range(4)


@dataclass(frozen=True, slots=True, kw_only=True)
class UndoRequest:
    """A request to undo a session's changes, or to redo.

    `folder`: the project; None if unknown. `home`: Gemini CLI's folder. `find`: returns the
    session, and is called on a background thread; None means to redo the newest undo in the folder.
    `number`: takes the session's prompts, and returns the number of the one to go back to (by
    default, the last); may raise UndoError.
    """

    folder: Path | None
    home: Path
    find: Callable[[], Summary] | None = None
    number: Callable[[Sequence[Prompt]], int] = len


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    """A planned undo or redo.

    `session`: None for a redo. `prompts`: the session's prompts. `refused`: why it can't be carried
    out right now; "" if it can be.
    """

    undone: Undone
    session: Summary | None
    prompts: tuple[str, ...]
    refused: str


class UndoScreen(BesideScreen[None, UndoRow]):
    """Plans an undo or redo, shows the plan, and carries it out if the user confirms."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(Where.UNDO)
    AUTO_FOCUS = "RowList"

    def __init__(self, request: UndoRequest) -> None:
        super().__init__(id="undo-screen")
        self._request, self._scope = request, UndoScope.BOTH
        self._stage, self._since = _Stage.PLANNING, time.monotonic()
        self._plan: _Plan | None = None

    def compose(self) -> ComposeResult:
        side = LineView(what="the change")
        side.can_focus = False
        rows = RowList[UndoRow](draw_undo_row, empty=own("comparing files"))
        yield from self.beside(rows, side)

    def on_mount(self) -> None:
        self.set_interval(_SECOND, self._tick)
        self._begin(_Stage.PLANNING)
        self._make_plan()

    # --- the plan and its execution ------------------------------------------------------------

    @property
    def _is_redo(self) -> bool:
        return self._request.find is None

    @work(exclusive=True, group="plan")
    async def _make_plan(self) -> None:
        try:
            plan = await asyncio.to_thread(_planned, self._request, self._scope)
        except (GemtuiError, OSError) as error:
            self.gemtui.show_message(_sentence(error), problem=True)
            self.dismiss()
            return
        self._take(plan, _Stage.PLANNED)

    @work(exclusive=True, group="plan")
    async def _do(self, plan: _Plan) -> None:
        what = "Redo" if self._is_redo else "Undo"
        with self.gemtui.reporting(f"{what} did not finish"):
            undone = await asyncio.to_thread(_done, self._request, plan, self._scope)
            self._take(replace(plan, undone=undone), _Stage.DONE)
            return
        self._begin(_Stage.PLANNING)
        self._make_plan()

    def _begin(self, stage: _Stage) -> None:
        self._stage, self._since = stage, time.monotonic()
        self._say()
        self.refresh_bindings()

    def _take(self, plan: _Plan, stage: _Stage) -> None:
        self._plan = plan
        self._begin(stage)
        chat = not self._is_redo and self._scope is not UndoScope.FILES
        done = stage is _Stage.DONE
        self.rows.empty = own("no files need to change")
        self.rows.show(undo_rows(plan.undone, plan.prompts, chat=chat, done=done), fresh=True)
        self._moved()
        self.rows.focus()

    # --- texts ---------------------------------------------------------------------------------

    def _tick(self) -> None:
        if self._stage in (_Stage.PLANNING, _Stage.DOING):
            self._say()

    def _say(self) -> None:
        plan, done = self._plan, self._stage is _Stage.DONE
        title = own("Redo" if self._is_redo else "Undo")
        if plan is not None:
            title = undo_title(plan.undone, plan.prompts, redo=self._is_redo)
        self.header.show_parts([Content.styled(title, "bold")])
        scope = "done" if done else "preview" if self._is_redo else str(self._scope)
        self.panes.above.show_parts([Content(own(scope))])
        self.status.show_parts(list(self._status()))

    def _status(self) -> Sequence[Content]:
        plan, glyphs = self._plan, self.gemtui.glyphs
        if self._stage in (_Stage.PLANNING, _Stage.DOING) or plan is None:
            what = "writing files" if self._stage is _Stage.DOING else "comparing files"
            seconds = int(time.monotonic() - self._since)
            return [Content(own(f"{what}, {seconds} s" if seconds else what))]
        done = self._stage is _Stage.DONE
        if plan.refused and not done:
            words = clean_line(f"{glyphs.warning} {plan.refused}")
            return [Content.styled(words, "$text-warning")]
        words = clean_line(totals_words(plan.undone, done=done))
        if not done:
            return [Content(words), Content(own("nothing has changed yet"))]
        return [Content.styled(own(f"{glyphs.ok} done"), "$text-success"), Content(words)]

    @on(RowList.Highlighted)
    def _moved(self) -> None:
        self._show_side(self.rows.chosen)

    @work(exclusive=True, group="side")
    async def _show_side(self, row: UndoRow | None) -> None:
        heading, view = self.panes.heading, self.panes.side
        look = look_of(self.app, self.size.width)
        heading.show_parts([] if row is None else heading_of(row, look))
        if row is None or row.step is None:
            words = Clean("") if row is None else row.about
            view.show(lambda look: wrapped_lines(words, look))
            return
        step, texts = row.step, await self._texts(row.step)
        if texts is not None:
            view.show(lambda look: side_lines(step, texts, look))

    async def _texts(self, step: Step) -> StepTexts | None:
        """Return the versions of a file's contents, or None if they can't be read.

        In the latter case, the reason is shown beside the list.
        """
        folder = self._folder
        if folder is None:
            return None
        try:
            return await asyncio.to_thread(step_texts, folder, step)
        except (GemtuiError, OSError) as error:
            words = str(error)

            def draw(look: Look) -> Sequence[Line]:
                return (note_line(clean_line(words), look),)

            self.panes.side.show(draw)
            return None

    @property
    def _folder(self) -> Path | None:
        session = None if self._plan is None else self._plan.session
        if session is not None and session.project is not None:
            return Path(session.project)
        return self._request.folder

    # --- keys ----------------------------------------------------------------------------------

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Return whether the key for an action is available at this stage."""
        del parameters
        plan, stage = self._plan, self._stage
        if action == "confirm":
            return stage is _Stage.PLANNED and plan is not None and not plan.refused
        if action == "scope":
            return stage in (_Stage.PLANNING, _Stage.PLANNED) and not self._is_redo
        if action == "redo":
            return stage is _Stage.DONE and self._can_redo
        if action == "go_on":
            return stage is _Stage.DONE and (self._scope is not UndoScope.FILES or self._is_redo)
        return True

    @property
    def _can_redo(self) -> bool:
        undone = None if self._plan is None else self._plan.undone
        done = None if undone is None else undone.files
        return not self._is_redo and done is not None and done.undo is not None

    def action_confirm(self) -> None:
        if self._plan is not None:
            self._begin(_Stage.DOING)
            self._do(self._plan)

    def action_scope(self) -> None:
        """Plan again with the next scope: files and chat, only files, or only the chat."""
        every = list(UndoScope)
        self._scope = every[(every.index(self._scope) + 1) % len(every)]
        self._begin(_Stage.PLANNING)
        self._make_plan()

    @on(RowList.Opened)
    @work(exclusive=True, group=DIALOG)
    async def action_diff(self) -> None:
        step = None if self.rows.chosen is None else self.rows.chosen.step
        texts = None if step is None else await self._texts(step)
        if step is not None and texts is not None:
            await self.app.push_screen_wait(UndoFileScreen(step, texts))

    def action_redo(self) -> None:
        self._request = replace(self._request, folder=self._folder, find=None)
        self._scope = UndoScope.BOTH
        self._begin(_Stage.PLANNING)
        self._make_plan()

    def action_go_on(self) -> None:
        plan, folder = self._plan, self._folder
        if plan is None or folder is None:
            return
        self.dismiss()
        chat = plan.undone.chat
        if chat is None:
            self.app.post_message(ChatRequested(folder, plan.undone.fork, None, ""))
        else:
            prompt = chat.prompt or ""
            self.app.post_message(ChatRequested(folder, chat.session_id, chat.path, prompt))

    def action_close(self) -> None:
        """Close the screen, but not while files are being written."""
        if self._stage is not _Stage.DOING:
            self.dismiss()


# --- thread --------------------------------------------------------------------------------------


def _planned(request: UndoRequest, scope: UndoScope) -> _Plan:
    if request.find is None:
        folder = request.folder
        if folder is None:
            raise UndoError("the folder of this session is unknown")
        undone = redo_project(folder, dry_run=True)
        return _Plan(undone=undone, session=None, prompts=(), refused=_refused(folder))
    session = request.find()
    prompts = prompts_of(session)
    if not prompts:
        raise UndoError("this session has no prompts to go back to")
    number, files = request.number(prompts), scope is not UndoScope.CHAT
    undone = undo_session(session, number, files=files, chat=False, dry_run=True)
    project = None if session.project is None else Path(session.project)
    return _Plan(
        undone=undone,
        session=session,
        prompts=tuple(each.text for each in prompts),
        refused=_refused(project) if files and project is not None else "",
    )


def _refused(folder: Path) -> str:
    try:
        require_idle(folder)
    except UndoError as error:
        return _sentence(error)
    return ""


def _done(request: UndoRequest, plan: _Plan, scope: UndoScope) -> Undone:
    if plan.session is None:
        assert request.folder is not None
        return redo_project(request.folder)
    return undo_session(
        plan.session,
        plan.undone.to,
        files=scope is not UndoScope.CHAT,
        chat=scope is not UndoScope.FILES,
        home=request.home,
    )


def _sentence(error: Exception) -> str:
    words = str(error)
    return words[:1].upper() + words[1:]


class UndoFileScreen(FullScreen[None]):
    """A screen that shows one file in several ways, between which keys switch."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(Where.UNDO_FILE)
    AUTO_FOCUS = "LineView"
    HAS_STATUS = False

    def __init__(self, step: Step, texts: StepTexts) -> None:
        super().__init__(id="undo-file")
        self._path = clean_line(os.fsdecode(step.path))
        self._pages: Sequence[StateView] = pages_of(step, texts)
        self._at = 0

    def compose(self) -> ComposeResult:
        yield from self.framed(LineView(what="the text"))

    def on_mount(self) -> None:
        self._show()

    def _show(self) -> None:
        page = self._pages[self._at]
        place = f"{self._at + 1} of {len(self._pages)}"
        left = [Content.styled(self._path, "bold"), Content(page.title)]
        self.header.show_parts(left, [Content.styled(place, "dim")])
        self.query_one(LineView).show(page.draw)

    def action_turn(self, step: int) -> None:
        """Switch to the next (`step` 1) or the previous (-1) way of showing the file."""
        self._at = (self._at + step) % len(self._pages)
        self._show()
