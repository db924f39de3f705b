"""The screen for undo and redo: the planned effects by file, then the results; and forks."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum, StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content

from gemtui.checkpoints.plan import Action, Step
from gemtui.errors import GemtuiError, UndoError, message_of
from gemtui.interrupts import StopRequest
from gemtui.runs.undo.fork import Fork, fork_session
from gemtui.runs.undo.undo import (
    NO_FILE,
    NOTHING_LEFT,
    Prompt,
    StateText,
    StepTexts,
    Undone,
    prompts_of,
    redo_project,
    require_idle,
    step_texts,
    undo_session,
)
from gemtui.sessions.catalog.summary import Summary
from gemtui.text import clean, clean_line, counted, ellipsis
from gemtui.transcript.displays import content_diff
from gemtui.transcript.model import DiffDisplay
from gemtui.ui.draw.code import language_of
from gemtui.ui.draw.lines import BLANK, Line, Piece, Pieces, two_ended, width_of, wrap
from gemtui.ui.draw.text_rows import note_line, text_rows
from gemtui.ui.draw.theme import Look, Role, look_of
from gemtui.ui.kit.beside import BesideScreen
from gemtui.ui.kit.dialogs import Choice, ChooseScreen
from gemtui.ui.kit.keys import Where, bindings
from gemtui.ui.kit.messages import ChatRequested
from gemtui.ui.kit.row_list import RowList
from gemtui.ui.kit.screens import DIALOG, FullScreen
from gemtui.ui.kit.text_view import LineView
from gemtui.ui.transcript.diff import draw_diff
from gemtui.ui.undo.checkpoint_marks import Number, last_prompt

if TYPE_CHECKING:
    from gemtui.ui.kit.app_base import AppBase

_PROMPT = 60
"""The maximum width, in cells, of the prompt in the title."""

_SECOND = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class UndoRow:
    """A row about an effect of an undo on a file (`step`) or the chat, or with a note.

    `sign`: the name of the attribute of `Glyphs` that holds the row's symbol. `word`: the effect in
    a word. `name`: the file, or a description. `why`: the reason, shown at the right if there is
    room. `about`: if the row isn't about a file, what to show when the cursor is on it.
    """

    sign: str
    role: Role
    word: str
    name: str
    why: str = ""
    about: str = ""
    step: Step | None = None


class _Words(NamedTuple):
    role: Role
    planned: str
    done: str


_ACTIONS = {
    Action.KEEP: _Words(Role.WARNING, "leave alone", "left alone"),
    Action.RESTORE: _Words(Role.SUCCESS, "restore", "restored"),
    Action.REMOVE: _Words(Role.REMOVED, "remove", "removed"),
    Action.MERGE: _Words(Role.MODEL, "merge", "merged"),
}
"""The words for each action, in display order: what needs attention comes first."""


def undo_rows(undone: Undone, prompts: Sequence[str], *, chat: bool, done: bool) -> list[UndoRow]:
    """Return the effects of an undo as rows: on the chat, on files, then notes.

    `prompts`: the session's prompts; empty for a redo. `chat`: whether a new chat is created.
    `done`: whether the undo is finished, not only planned.
    """
    notes = dict.fromkeys(undone.notes)
    if chat:
        notes.pop(NOTHING_LEFT, None)  # the chat's row says so
    if undone.interrupted is not None:
        chat, notes = False, {_sentence(undone.interrupted.words): None, **notes}
    return [
        *([_chat_row(undone, prompts, done=done)] if chat else ()),
        *_file_rows(undone, done=done),
        *map(_note_row, notes),
    ]


def _chat_row(undone: Undone, prompts: Sequence[str], *, done: bool) -> UndoRow:
    kept = undone.to - 1
    past = (
        f"with {counted(kept, 'earlier prompt')}"
        if kept
        else "empty, because this is the first prompt"
    )
    notes = [note for note in dict.fromkeys(undone.notes) if note != NOTHING_LEFT]
    new = f"A new chat that ends just before prompt {undone.to}." if kept else "An empty chat."
    words = [
        f"{new} This chat does not change.",
        "",
        f"Prompt {undone.to}, which you can change and send again:",
        *prompts[kept : kept + 1],
        *(line for note in notes for line in ("", note)),
    ]
    return UndoRow(
        sign="ok" if done else "pending",
        role=Role.SUCCESS,
        word="new chat",
        name=past,
        about=clean("\n".join(words)),
    )


def _file_rows(undone: Undone, *, done: bool) -> Iterator[UndoRow]:
    steps = () if undone.files is None else undone.files.steps
    for action, words in _ACTIONS.items():
        for step in (each for each in steps if each.action is action):
            kept = action is Action.KEEP
            yield UndoRow(
                sign="warning" if kept else "ok" if done else "pending",
                role=words.role,
                word=words.done if done else words.planned,
                name=clean_line(os.fsdecode(step.path)),
                why=clean_line(step.why),
                step=step,
            )


def _note_row(note: str) -> UndoRow:
    return UndoRow(
        sign="warning", role=Role.WARNING, word="note", name=clean_line(note), about=clean(note)
    )


def totals_words(undone: Undone, *, done: bool) -> str:
    """Return words that count the files by action, as in "2 restored, 1 left alone"."""
    if undone.files is None:
        return "files are not changed"
    kinds = [each.action for each in undone.files.steps]
    found = [
        f"{kinds.count(action)} {words.done if done else f'to {words.planned}'}"
        for action, words in _ACTIONS.items()
        if action in kinds
    ]
    return ", ".join(found) or "no files need to change"


def undo_title(undone: Undone, prompts: Sequence[str], *, redo: bool) -> str:
    """Return the screen's title: the prompt to go back to, or the undo to reverse."""
    if redo:
        what = f"undo to before prompt {undone.to}" if undone.to else "last change by gemtui"
        return clean_line(f"Redo: reverse the {what}")
    text = ellipsis(clean_line("".join(prompts[undone.to - 1 : undone.to])), _PROMPT)
    return clean_line(f"Undo to before prompt {undone.to} of {len(prompts)}: {text}")


def draw_undo_row(row: UndoRow, look: Look) -> Pieces:
    """Render a row's symbol, effect and file, and the reason if there is room for it."""
    glyph = f"{getattr(look.glyphs, row.sign)} "
    front = (Piece(glyph, look[row.role]), Piece(f"{row.word:<12}", look[row.role]))
    why = (Piece(f"  {row.why}", look[Role.MUTED]),) if row.why else ()
    name = Piece(row.name, look[Role.MUTED if row.word == "note" else Role.TEXT])
    if width_of((*front, name, *why)) > look.width:
        why = ()
    return two_ended((*front, name), why, look)


def heading_of(row: UndoRow, look: Look) -> Sequence[Content]:
    """Return the heading above the details of a row."""
    words = f"{getattr(look.glyphs, row.sign)} {row.word}  "
    if row.step is None:
        return [Content.styled(words.rstrip(), "bold")]
    return [Content.styled(clean_line(f"{words}{row.why or row.name}"), "bold")]


# --- a single file -------------------------------------------------------------------------------


class StateView(NamedTuple):
    """One way to look at a file, such as its contents before the prompt.

    `draw`: renders the lines of this view.
    """

    title: str
    draw: TextDrawing


class TextDrawing:
    """Renders a file's text, or the change to it.

    `before`: the text before the change; None means to render `text` itself.
    """

    def __init__(self, name: str, text: StateText, before: StateText | None = None) -> None:
        self._name, self._text, self._before = name, text, before

    def __call__(self, look: Look) -> Sequence[Line]:
        if self._before is None:
            return _text_lines(self._name, self._text, look)
        return _change_lines(self._name, self._before, self._text, look)


def pages_of(step: Step, texts: StepTexts) -> list[StateView]:
    """Return the ways to look at a file, the most informative one first.

    `step`: what the undo does to the file. `texts`: the versions of the file.
    """
    name = os.fsdecode(step.path)
    states = [
        StateView("before the prompt", TextDrawing(name, texts.target)),
        StateView("as the session left it", TextDrawing(name, texts.left)),
        StateView("now", TextDrawing(name, texts.now)),
    ]
    if step.action is Action.KEEP:
        mine = StateView("changed since the session", TextDrawing(name, texts.now, texts.left))
        return [*states, mine, StateView("not undone", TextDrawing(name, texts.target, texts.left))]
    return [StateView("the change", TextDrawing(name, texts.result, texts.now)), *states]


def side_lines(step: Step, texts: StepTexts, look: Look) -> Sequence[Line]:
    """Return the lines to show beside the list of files for one of them.

    They show the change, or why the file is left unchanged.
    """
    name = os.fsdecode(step.path)
    if step.action is not Action.KEEP:
        before, after = step.now, step.result
        if before.kind == after.kind and before.content == after.content:
            words = f"permissions change from {before.mode:o} to {after.mode:o}"
            return (note_line(words, look),)
        return _change_lines(name, texts.now, texts.result, look)
    return (
        *_said(
            f"Left alone: {step.why}. Press enter to see its three versions.", look, Role.WARNING
        ),
        BLANK,
        *_said("Changed since the session:", look, Role.MUTED),
        *_change_lines(name, texts.left, texts.now, look),
        BLANK,
        *_said("Not undone:", look, Role.MUTED),
        *_change_lines(name, texts.left, texts.target, look),
    )


def _said(words: str, look: Look, role: Role) -> Sequence[Line]:
    return wrap((Piece(clean_line(words), look[role]),), look.width)


def wrapped_lines(words: str, look: Look) -> list[Line]:
    """Return text as lines that fit the width."""
    lines = words.split("\n")
    return [row for line in lines for row in wrap((Piece(line, look[Role.TEXT]),), look.width)]


def _text_lines(name: str, text: StateText, look: Look) -> Sequence[Line]:
    if text.text is None:
        return (note_line(text.why, look),)
    if not text.text:
        return (note_line("empty file", look),)
    language = language_of(clean_line(name))
    return text_rows(text.text, look, folded=False, language=language, first=1).lines


def _change_lines(name: str, before: StateText, after: StateText, look: Look) -> Sequence[Line]:
    for state in (before, after):
        if state.text is None and state != NO_FILE:
            return (note_line(state.why, look),)
    body = draw_diff(_diff(name, before, after), look, folded=False)
    return body.lines or (note_line(body.note, look),)


def _diff(name: str, before: StateText, after: StateText) -> DiffDisplay:
    return content_diff(name, before.text or "", after.text or "", is_new=before.text is None)


class UndoScope(StrEnum):
    """The parts of a session to undo; each value is the name shown on the screen."""

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
    `number`: returns the number of the session's prompt to go back to, by default the last.
    `scopes`: what can be undone; the first is what the screen begins with.
    """

    folder: Path | None
    home: Path
    find: Callable[[], Summary] | None = None
    number: Number = last_prompt
    scopes: tuple[UndoScope, ...] = tuple(UndoScope)


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
        self._request, self._scope = request, request.scopes[0]
        self._stage, self._since = _Stage.PLANNING, time.monotonic()
        self._plan: _Plan | None = None

    def compose(self) -> ComposeResult:
        side = LineView(what="the change")
        side.can_focus = False
        rows = RowList[UndoRow](draw_undo_row, empty="comparing files")
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
            self.gemtui.show_message(_sentence(message_of(error)), problem=True)
            self.dismiss()
            return
        self._take(plan, _Stage.PLANNED)

    @work(exclusive=True, group="plan")
    async def _do(self, plan: _Plan) -> None:
        what = "Redo" if self._is_redo else "Undo"
        with self.gemtui.reporting(f"{what} did not finish"):
            undone = await asyncio.to_thread(
                _done, self._request, plan, self._scope, self.gemtui.stop
            )
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
        self.rows.empty = "no files need to change"
        self.rows.show(undo_rows(plan.undone, plan.prompts, chat=chat, done=done), fresh=True)
        self._moved()
        self.rows.focus()

    # --- texts ---------------------------------------------------------------------------------

    def _tick(self) -> None:
        if self._stage in (_Stage.PLANNING, _Stage.DOING):
            self._say()

    def _say(self) -> None:
        plan, done = self._plan, self._stage is _Stage.DONE
        title = "Redo" if self._is_redo else "Undo"
        if plan is not None:
            title = undo_title(plan.undone, plan.prompts, redo=self._is_redo)
        self.header.show_parts([Content.styled(title, "bold")])
        scope = "done" if done else "preview" if self._is_redo else str(self._scope)
        self.panes.above.show_parts([Content(scope)])
        self.status.show_parts(list(self._status()))

    def _status(self) -> Sequence[Content]:
        plan, glyphs = self._plan, self.gemtui.glyphs
        if self._stage in (_Stage.PLANNING, _Stage.DOING) or plan is None:
            what = "writing files" if self._stage is _Stage.DOING else "comparing files"
            seconds = int(time.monotonic() - self._since)
            return [Content(f"{what}, {seconds} s" if seconds else what)]
        done = self._stage is _Stage.DONE
        if plan.refused and not done:
            words = clean_line(f"{glyphs.warning} {plan.refused}")
            return [Content.styled(words, "$text-warning")]
        words = clean_line(totals_words(plan.undone, done=done))
        if not done:
            return [Content(words), Content("nothing has changed yet")]
        return [Content.styled(f"{glyphs.ok} done", "$text-success"), Content(words)]

    @on(RowList.Highlighted)
    def _moved(self) -> None:
        self._show_side(self.rows.chosen)

    @work(exclusive=True, group="side")
    async def _show_side(self, row: UndoRow | None) -> None:
        heading, view = self.panes.heading, self.panes.side
        look = look_of(self.app, self.size.width)
        heading.show_parts([] if row is None else heading_of(row, look))
        if row is None or row.step is None:
            words = "" if row is None else row.about
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
        files = None if self._plan is None else self._plan.undone.files
        try:
            contents = {} if files is None else files.contents
            return await asyncio.to_thread(step_texts, folder, step, contents)
        except (GemtuiError, OSError) as error:
            words = message_of(error)

            def draw(look: Look) -> Sequence[Line]:
                return (note_line(clean_line(words), look),)

            self.panes.side.show(draw)
            return None

    @property
    def _folder(self) -> Path | None:
        session = None if self._plan is None else self._plan.session
        return (session and session.folder) or self._request.folder

    # --- keys ----------------------------------------------------------------------------------

    def can(self, action: str) -> bool:
        """Return whether the key for an action is available at this stage."""
        plan, stage = self._plan, self._stage
        if action == "confirm":
            return stage is _Stage.PLANNED and plan is not None and not plan.refused
        if action == "scope":
            has_choice = len(self._request.scopes) > 1 and not self._is_redo
            return has_choice and stage in (_Stage.PLANNING, _Stage.PLANNED)
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
        every = self._request.scopes
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
            self.app.post_message(
                ChatRequested(folder, chat.session_id, chat.path, prompt, chat.agent)
            )

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
    session, prompts, number = _prompt_to_go_to(request.find, request.number)
    files = scope is not UndoScope.CHAT
    undone = undo_session(session, number, files=files, chat=False, dry_run=True)
    return _Plan(
        undone=undone,
        session=session,
        prompts=tuple(each.text for each in prompts),
        refused=_refused(session.folder) if files and session.folder is not None else "",
    )


def _prompt_to_go_to(
    find: Callable[[], Summary], number: Number
) -> tuple[Summary, list[Prompt], int]:
    """Return a session, its prompts, and the number of the one to go back to."""
    session = find()
    prompts = prompts_of(session)
    if not prompts:
        raise UndoError("this session has no prompts")
    return session, prompts, number(session)


def _refused(folder: Path) -> str:
    try:
        require_idle(folder)
    except UndoError as error:
        return _sentence(str(error))
    return ""


def _done(request: UndoRequest, plan: _Plan, scope: UndoScope, stop: StopRequest) -> Undone:
    if plan.session is None:
        assert request.folder is not None
        return redo_project(request.folder, stop=stop)
    return undo_session(
        plan.session,
        plan.undone.to,
        files=scope is not UndoScope.CHAT,
        chat=scope is not UndoScope.FILES,
        home=request.home,
        stop=stop,
    )


def _sentence(words: str) -> str:
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


async def show_fork(
    app: AppBase, find: Callable[[], Summary], number: Number, folder: Path | None, home: Path
) -> None:
    """Ask how to fork a session just before a prompt, fork it, and show the new chat.

    The chat is shown in the run pane. For the parameters, see `UndoRequest`.
    """
    with app.reporting("The chat was not forked"):
        session, prompts, at = await asyncio.to_thread(_prompt_to_go_to, find, number)
        about = (clean_line(prompts[at - 1].text), "")
        choices = (
            Choice("before", "Before this prompt", "files are not changed"),
            Choice("files", "With the files as they were", "preview first"),
            Choice("whole", "The whole chat", "files are not changed"),
        )
        title = clean_line(f"New chat from prompt {at} of {len(prompts)}")
        answer = await app.push_screen_wait(ChooseScreen(title, about, choices))
        if answer == "files":
            request = UndoRequest(folder=folder, home=home, find=lambda: session, number=number)
            await app.push_screen_wait(UndoScreen(request))
        elif answer is not None:
            await _make_fork(app, session, home, at if answer == "before" else None)


async def _make_fork(app: AppBase, session: Summary, home: Path, before: int | None) -> None:
    fork: Fork = await asyncio.to_thread(partial(fork_session, session, home, before=before))
    if fork.project is None:
        app.show_message("The new chat is in the list of sessions. Its folder is unknown.")
        return
    prompt = fork.prompt or ""
    chat = ChatRequested(fork.project, fork.session_id, fork.path, prompt, fork.agent)
    app.post_message(chat)
