"""A pane above the prompt that shows a run's questions.

A key counts as an answer only if the user can have read the question. If the user was already
typing when the question was drawn, keys are ignored until they pause. Until the end of the call has
been visible, the keys that allow it only scroll down.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, NamedTuple, cast

from rich.style import Style as RichStyle
from textual import events, on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.errors import NoWidget
from textual.message import Message
from textual.style import Style

from gemtui.agents import WORDS
from gemtui.runs.gate.proposal import Caution, Form, Proposal
from gemtui.runs.gate.questions import QUIET, Asked, Conversation, Question
from gemtui.runs.gate.similar_calls import SimilarCalls
from gemtui.text import counted, visible, visible_line
from gemtui.ui.draw.code import language_of
from gemtui.ui.draw.lines import Line, Piece, Pieces, flat, wrap
from gemtui.ui.draw.text_rows import (
    LINES,
    GutterRow,
    bounded_excerpt,
    line_count,
    note_line,
    text_rows,
    wrapped_rows,
)
from gemtui.ui.draw.theme import BOLD, UNDERLINE, Look, Role, glyphs_of
from gemtui.ui.kit.bars import BarLine
from gemtui.ui.kit.clean_widgets import Static
from gemtui.ui.kit.keys import BY_ID, Where, bindings, keys_of
from gemtui.ui.kit.text_view import DrawLines, LineView
from gemtui.ui.transcript.diff import change_counts, draw_changes, read_diff

if TYPE_CHECKING:
    from gemtui.ui.kit.app_base import AppBase

LONGEST = 20_000
"""How many characters of a command or its arguments to show; enter shows the rest."""
_LONGEST_OTHER = 1000
"""How many characters to show of arguments other than the command or change."""
_FEW = 3
"""Up to this number, warnings are shown without a line that counts them."""
_MOST_CAUTIONS = 100
"""Maximum number of warnings; the command itself also marks its dangerous parts."""


class Drawing(NamedTuple):
    """A rendered call.

    `left_out`: words that say what isn't shown, or "" if everything is.
    """

    lines: Sequence[Line]
    left_out: str = ""


def draw_proposal(
    proposal: Proposal, cautions: Sequence[Caution], project: Path, look: Look
) -> Drawing:
    """Render the warnings about a call, followed by everything the call would do.

    `project`: the absolute path of the run's folder, used to recognize paths and commands outside
    it.
    """
    lines = list(_cautions(cautions, look))
    if proposal.form is Form.COMMAND:
        drawing = _command(proposal, project, look)
    elif proposal.diff is not None:
        drawing = _file(proposal, project, look)
    else:
        drawing = _arguments(proposal, look)
    missing = [drawing.left_out] if drawing.left_out else []
    lines += drawing.lines
    for name, value in proposal.others():
        text = visible(value[:_LONGEST_OTHER]).replace("\n", look.glyphs.line_end)
        lines += wrap((Piece(visible(f"{name}: {text}"), look[Role.MUTED]),), look.width)
        if len(value) > _LONGEST_OTHER:
            more = counted(len(value) - _LONGEST_OTHER, "more character")
            missing.append(visible_line(f"{more} of {name}"[:200]))
    left_out = ", ".join(missing)
    if left_out:
        lines.append(note_line(f"not shown: {left_out}; press enter to see everything", look))
    return Drawing(lines, left_out)


def _cautions(cautions: Sequence[Caution], look: Look) -> Iterator[Line]:
    mark = look.glyphs.warning
    if len(cautions) > _FEW:
        count = Piece(f"{mark} {counted(len(cautions), 'warning')}:", look[Role.ERROR] + BOLD)
        yield from wrap((count,), look.width)
    for caution in cautions[:_MOST_CAUTIONS]:
        why = (
            look[Role.TEXT]
            if caution.piece
            else look[Role.ERROR if caution.danger else Role.WARNING]
        )
        sign = look[Role.ERROR] + BOLD if caution.danger else look[Role.WARNING]
        pieces = [Piece(f"{mark} ", sign)]
        if caution.piece:
            pieces.append(Piece(visible_line(caution.piece), look[Role.ERROR]))
        pieces.append(
            Piece(visible_line(f": {caution.why}" if caution.piece else caution.why), why)
        )
        yield from wrap(tuple(pieces), look.width)
    if len(cautions) > _MOST_CAUTIONS:
        more = counted(len(cautions) - _MOST_CAUTIONS, "more warning")
        yield note_line(f"{more}, marked in the command", look)


# --- files ---------------------------------------------------------------------------------------


def _file(proposal: Proposal, project: Path, look: Look) -> Drawing:
    assert proposal.diff is not None
    path = Piece(visible_line(proposal.place(project)), look[Role.TEXT] + BOLD)
    counts = change_counts(proposal.diff.added, proposal.diff.removed, look)
    lines = wrap((path, Piece("  ", look[Role.TEXT]), *counts), look.width)
    shown = bounded_excerpt(proposal.diff.diff, head=LINES, tail=0, cleaned=visible)
    changes = read_diff(shown.head)
    language = language_of(flat((proposal.diff.name or proposal.diff.path)[-200:]))
    lines += draw_changes(changes, look, language=language)
    for remark in proposal.line_ends:
        lines += wrap((Piece(f"  {remark}", look[Role.WARNING]),), look.width)
    missing = [counted(shown.left_out, "more line")] if shown.left_out else []
    if shown.cut:
        missing.append("the ends of very long lines")
    return Drawing(lines, ", ".join(missing))


# --- commands and arguments ----------------------------------------------------------------------


def _command(proposal: Proposal, project: Path, look: Look) -> Drawing:
    """Render a command with its dangerous parts marked.

    If the command would run outside the project's folder, the folder where it would run is shown
    above it.
    """
    lines: list[Line] = []
    folder = proposal.folder(project)
    if folder:
        lines += wrap((Piece(visible_line(f"in {folder}"), look[Role.WARNING]),), look.width)
    for index, pieces in enumerate(_lines(_marked(proposal, look))):
        gutter = (Piece("  " if index else "$ ", look[Role.MUTED]),)
        lines += wrapped_rows([GutterRow(gutter, pieces)], look)
    return Drawing(lines, _rest(proposal.text))


def _marked(proposal: Proposal, look: Look) -> Iterator[tuple[str, RichStyle]]:
    """Yield the parts of a command, which may hold several lines, with their styles."""
    text, at = proposal.text[:LONGEST], 0
    strong = look[Role.ERROR] + BOLD + UNDERLINE
    for danger in proposal.dangers:
        start, end = max(at, danger.start), min(danger.end, LONGEST)
        if start < end:
            yield visible(text[at:start]), look[Role.TEXT]
            yield visible(text[start:end]), strong
            at = end
    yield visible(text[at:]), look[Role.TEXT]


def _lines(parts: Iterator[tuple[str, RichStyle]]) -> Iterator[Pieces]:
    line: list[Piece] = []
    for text, style in parts:
        first, *more = text.expandtabs(4).split("\n")
        line.append(Piece(first, style))
        for rest in more:
            yield tuple(line)
            line = [Piece(rest, style)]
    yield tuple(line)


def _arguments(proposal: Proposal, look: Look) -> Drawing:
    text = proposal.text[:LONGEST]
    lines = text_rows(text, look, folded=False, language="json").lines
    left_out = _rest(proposal.text)
    if not left_out and (more := line_count(text) - LINES) > 0:
        left_out = counted(more, "line")
    return Drawing(lines, left_out)


def _rest(text: str) -> str:
    return counted(len(text) - LONGEST, "more character") if len(text) > LONGEST else ""


def whole_text(proposal: Proposal, cautions: Sequence[Caution]) -> str:
    """Return everything a call would do as one string, preceded by its warnings."""
    lines: list[str] = [visible_line(caution.text) for caution in cautions]
    if proposal.diff is not None:
        lines += [visible_line(proposal.diff.path), "", proposal.diff.diff.rstrip("\n")]
        lines += proposal.line_ends
    else:
        lines += ["", proposal.text] if lines else [proposal.text]
    others = [f"{name}: {value}" for name, value in proposal.others()]
    return "\n".join((*lines, *([""] if others else []), *others))


TYPING = 1.2
"""Extra seconds to wait after an ignored key that would have opened a text field.

The user then probably keeps typing, and that text must not count as answers.
"""
_MOST_LISTED = 4
"""Maximum number of rows in the list of unanswered questions."""
_AROUND = 12
"""Rows of the screen that transcript and call can't use while a question is shown."""


YES = frozenset(("yes", "all_run", "always"))
"""The actions that allow a call."""
_SIMILAR = ("all_run", "always")
_TYPED_BEHIND = frozenset(BY_ID[f"question.{action}"].keys for action in ("no_because", "change"))
_ANSWERS = [f"question.{each}" for each in ("yes", "no", "change", "all_run", "always")]
_ANSWERS += ["question.no_because", "question.stop_run", "question.whole"]
"""Ids of the keys that are listed below a question, the most useful first."""


class QuestionView(LineView, inherit_bindings=False):
    """A scrollable view of the call that awaits an answer; it has the answer keys."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(Where.QUESTION)

    def __init__(self) -> None:
        super().__init__(what="the call", id="question-view")
        self._quiet_since = Message().time
        self.reached_end = False
        """Whether the call's last line has been visible since the call was drawn."""

    def begin(self) -> None:
        """Record that something new is on screen.

        Keys pressed before it was drawn can't be meant as an answer to it.
        """
        self._quiet_since = max(self._quiet_since, Message().time)

    @property
    def accepts_keys(self) -> bool:
        """Whether a key pressed now would count as an answer."""
        return Message().time - self._quiet_since >= QUIET

    # --- visible lines -------------------------------------------------------------------------

    def show(self, draw: DrawLines, *, fresh: bool = True) -> None:
        """Show a call, and record that its end hasn't been seen yet."""
        super().show(draw, fresh=fresh)
        self.reached_end = False
        self._moved()

    @property
    def _end_of_sight(self) -> int:
        """The number of lines from the call's first line to the last visible one."""
        try:
            rows = self.screen.find_widget(self).visible_region.height
        except NoWidget:
            rows = 0
        return min(len(self._lines), self.scroll_offset.y + rows) if rows else 0

    @property
    def total(self) -> int:
        """The call's number of lines."""
        return len(self._lines)

    @property
    def below(self) -> int:
        """The number of lines below the last visible one."""
        return self.total - self._end_of_sight

    @property
    def overflows(self) -> bool:
        """Whether the call is too long to be fully visible at once."""
        return self.total > self.size.height

    def page_down(self) -> None:
        """Scroll down by a page minus one line."""
        rows = max(1, self.size.height - 1)
        self.begin()
        self.scroll_to(y=self.scroll_offset.y + rows, animate=False, immediate=True)

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """After scrolling, check whether the last line is now visible."""
        super().watch_scroll_y(old_value, new_value)
        self._moved()

    def on_resize(self) -> None:
        super().on_resize()
        self._moved()

    def _moved(self) -> None:
        if self.is_attached:
            self.call_after_refresh(self._look_where)

    def _look_where(self) -> None:
        if self.is_attached:
            if not self.reached_end and self.total and not self.below:
                self.reached_end = True
                self.begin()
            self._pane.show_progress()

    # --- keys ----------------------------------------------------------------------------------

    def on_focus(self) -> None:
        self.begin()

    async def _on_key(self, event: events.Key) -> None:
        """Ignore an answer key that is pressed too soon after the call was drawn.

        Such keys work only after a pause of `QUIET` seconds without one.
        """
        if event.key not in _ANSWERING or not self.has_focus:
            return
        since, quiet = event.time - self._quiet_since, QUIET
        if since < quiet:
            self._quiet_since = event.time + (TYPING if event.key in _TYPED_BEHIND else 0)
            event.prevent_default()
            event.stop()
            self._pane.press("too_soon")
        else:
            self._quiet_since = -quiet

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Disable the keys whose actions aren't available for the question on screen."""
        return self._pane.can(str(parameters[0]) if action in ("answer", "press") else action)

    @property
    def _pane(self) -> QuestionPane:
        assert isinstance(self.parent, QuestionPane)
        return self.parent

    def action_press(self, action: str) -> None:
        self._pane.press(action)

    def action_answer(self, action: str) -> None:
        """Give an answer, unless something new has been drawn since the key was pressed."""
        self._pane.press(action if self.accepts_keys else "too_soon")

    def action_leave(self) -> None:
        self._pane.press("leave")


_ANSWERING = frozenset(
    name for key in keys_of(Where.QUESTION) if key.answers for name in key.keys.split(",")
)


class QuestionPane(Vertical):
    """The unanswered questions of a run; one of them is shown in full."""

    @dataclass
    class Answered(Message):
        """Posted when the user has answered a question.

        `action`: the answer. `shown`: the question and its call that were on screen at that time.
        """

        action: str
        shown: Asked

    @dataclass
    class WholeRequested(Message):
        """Request to show the whole call on a screen of its own."""

        shown: Asked

    class QuestionLeft(Message):
        """Request to move the focus elsewhere; the question stays unanswered."""

    def __init__(self) -> None:
        super().__init__(id="question")
        self._conversation: Conversation | None = None
        self.waiting: tuple[Question, ...] = ()
        self._number: int | None = None
        self.shown: Asked | None = None
        self._left_out = ""

    def compose(self) -> ComposeResult:
        yield BarLine(id="question-title")
        yield Static(id="question-list")
        yield QuestionView()
        yield BarLine(id="question-more")
        yield Static(id="question-words")
        yield BarLine(id="question-keys")

    @property
    def view(self) -> QuestionView:
        """The view that shows the call and receives the keys."""
        return self.query_one(QuestionView)

    @property
    def asks(self) -> bool:
        """Whether there is an unanswered question."""
        return bool(self.waiting)

    def can(self, action: str) -> bool:
        """Return whether an action is available now."""
        if action in ("next", "previous"):
            return len(self.waiting) > 1
        if action in _SIMILAR:
            return self.shown is not None and self.shown.changed is None
        return self.shown is not None or action == "leave"

    # --- display -------------------------------------------------------------------------------

    def show(self, waiting: Sequence[Question], conversation: Conversation | None = None) -> None:
        """Show these unanswered questions of a run's conversation.

        If the question on screen is no longer among them, the next one is shown.
        """
        if tuple(waiting) == self.waiting:
            return
        before = [question.number for question in self.waiting]
        self.waiting, self._conversation = tuple(waiting), conversation
        numbers = [question.number for question in waiting]
        if self._number not in numbers:
            behind = before[before.index(self._number) + 1 :] if self._number in before else numbers
            after = (number for number in behind if number in numbers)
            self._go_to(next(after, numbers[-1] if numbers else None))
        self._say()

    def _go_to(self, number: int | None) -> None:
        self._number, self.shown = number, None
        self.view.show(lambda _look: ())
        self.view.begin()
        for question in self.waiting:
            if question.number == number and self._conversation is not None:
                self._look_at(question, self._conversation)

    @work(exclusive=True, group="proposal")
    async def _look_at(self, question: Question, conversation: Conversation) -> None:
        asked = await asyncio.to_thread(conversation.asked, question)
        if question.number == self._number and conversation is self._conversation:
            self._draw(asked)

    def redraw(self, shown: Asked, now: Asked) -> None:
        """Replace the call on screen with what it would do now, if it is still `shown`.

        `now`: the same question, with the call's current effects.
        """
        if self.shown is shown:
            self._draw(now)

    def _draw(self, shown: Asked) -> None:
        self.shown = shown
        self.view.begin()
        self.view.show(self._lines)
        self._say()
        self.screen.refresh_bindings()

    def _lines(self, look: Look) -> Sequence[Line]:
        if self.shown is None or self._conversation is None:
            return ()
        project = self._conversation.cwd
        drawing = draw_proposal(self.shown.runs, self.shown.cautions, project, look)
        self._left_out = drawing.left_out
        return drawing.lines

    def note_read(self, shown: Asked) -> None:
        """Record that the user has seen all of the call `shown`, including its end."""
        if self.shown is shown:
            self._left_out = ""
            self.view.reached_end = True
            self.show_progress()

    # --- texts ---------------------------------------------------------------------------------

    def _say(self) -> None:
        self.set_class(self.asks, "-asks")
        if not self.asks:
            return
        self._say_title()
        self._say_list()
        self._say_words()
        self._say_keys()
        self._fit()

    def _say_title(self) -> None:
        at = [question.number for question in self.waiting].index(self._number or 0)
        request = self.waiting[at].request
        who = f"{request.asker} asks"
        title = Content.styled(f" {glyphs_of(self.app).ask} {who} ", "bold reverse $text-warning")
        name = Content.styled(visible_line(request.tool_name[:200]), "bold")
        left = [title, name]
        if self.shown is not None and self.shown.changed is not None:
            left.insert(1, Content.styled("changed by you", "bold $text-accent"))
        several = len(self.waiting) > 1
        position = (
            Content.styled(f"{at + 1} of {len(self.waiting)}", "bold") if several else Content("")
        )
        self.query_one("#question-title", BarLine).show_parts(left, [position])

    def show_progress(self) -> None:
        """Show how much of the call isn't visible, and whether its end has been seen."""
        line, view = self.query_one("#question-more", BarLine), self.view
        line.display = self.shown is not None and (view.overflows or bool(self._left_out))
        line.show_parts(
            [Content.styled(self._more(), "dim" if view.reached_end else "bold $text-warning")]
        )

    def _more(self) -> str:
        yes, whole = (BY_ID[key].footer() for key in ("question.yes", "question.whole"))
        if self.view.below:
            text = f"{counted(self.view.below, 'more line')} below"
            return text if self.view.reached_end else f"{text} ({yes} scrolls down)"
        if self._left_out:
            return visible_line(f"not shown: {self._left_out}; press {whole} to see everything")
        return f"End ({counted(self.view.total, 'line')})"

    def _say_list(self) -> None:
        """If there are several questions, list those around the one on screen."""
        rows, numbers = [], [question.number for question in self.waiting]
        at = numbers.index(self._number or 0)
        first = max(0, min(at - 1, len(numbers) - _MOST_LISTED))
        for index, question in enumerate(self.waiting[first : first + _MOST_LISTED], first):
            is_shown = index == at
            text = visible_line(f"{question.request.tool_name} {question.about}"[:300])
            sign = glyphs_of(self.app).cursor if is_shown else " "
            row = Content.styled(f"{sign}{index + 1} {text}", "bold" if is_shown else "dim")
            width = max(10, self.size.width - 3)
            rows.append(row.truncate(width, ellipsis=True))
        listed = self.query_one("#question-list", Static)
        listed.display = len(numbers) > 1
        listed.update(Content("\n").join(rows))

    def _say_words(self) -> None:
        """Show why the run asks, and which similar calls an answer could also allow.

        For a call that the user has edited, show the original call instead of the similar ones.
        """
        label = self.query_one("#question-words", Static)
        shown = self.shown
        if shown is None:
            label.update("reading…")
            return
        because = shown.question.request.because
        lines = []
        if because and shown.question.request.again:
            again = visible_line(f"Asked again: {because[:500]}")
            lines.append(Content.styled(again, "bold $text-warning"))
        elif because:
            lines.append(Content.styled(visible_line(f"Why: {because[:500]}"), "dim"))
        if shown.changed is not None:
            lines.append(self._asked(shown))
        else:
            lines.append(self._similar(shown.similar))
        label.update(Content("\n").join(lines))

    def _similar(self, similar: SimilarCalls) -> Content:
        keys = "/".join(BY_ID[f"question.{key}"].footer() for key in _SIMILAR)
        if similar.rule is None:
            return Content.styled(visible_line(f"{keys} not available: {similar.words}"), "dim")
        text = f" allow {visible_line(similar.words)}"
        return Content.assemble((keys, "bold $text-accent"), text)

    def _asked(self, shown: Asked) -> Content:
        """Return a line with the call that the model originally requested.

        It is shown because the user has edited the call, so that allowing it runs something else.
        """
        asked = shown.proposal
        what = (
            asked.text[:200]
            if asked.form is Form.COMMAND
            else f"{asked.tool} with different arguments"
        )
        return Content.styled(
            visible_line(f"{WORDS[asked.agent].speaker} asked for: {what}"), "dim"
        )

    def _say_keys(self) -> None:
        line = self.query_one("#question-keys", BarLine)
        if not self.view.has_focus:
            leave = BY_ID["prompt.leave"].footer()
            text = f"Press {leave} to answer this question"
            line.show_parts([Content.styled(text, "bold $text-warning")])
            return
        ascii = glyphs_of(self.app).ascii
        hints = []
        for key in (BY_ID[id] for id in _ANSWERS):
            if self._acts(key.action):
                face = key.footer(ascii=ascii)
                hint = Content.assemble((face, "bold $text-accent"), f" {key.label.lower()}")
                hints.append(hint.stylize(Style.from_meta({"key": key.id})))
        line.show_parts(hints)

    def _acts(self, action: str) -> bool:
        similar = self.shown is not None and self.shown.has_similar
        return self.can(action) and (similar or action not in _SIMILAR)

    def on_resize(self) -> None:
        if self.asks:
            self._say()

    def _fit(self) -> None:
        rows = self.screen.size.height
        listed = min(_MOST_LISTED, len(self.waiting)) if len(self.waiting) > 1 else 0
        self.view.styles.max_height = max(3, rows - _AROUND - listed - max(4, rows // 6))

    # --- keys ----------------------------------------------------------------------------------

    @on(events.DescendantFocus)
    @on(events.DescendantBlur)
    def _focused(self) -> None:
        self.call_after_refresh(self._say_keys)

    def press(self, action: str) -> None:
        """Handle the key for an answer or another action on the question on screen."""
        shown = self.shown
        if action == "leave":
            self.post_message(self.QuestionLeft())
        elif action in ("next", "previous"):
            self._step(1 if action == "next" else -1)
        elif action == "too_soon":
            self._tell("Ignored, because the question had only just appeared. Press the key again.")
        elif shown is None:
            return
        elif action == "whole":
            self.post_message(self.WholeRequested(shown))
        elif action in _SIMILAR and not shown.has_similar:
            self._tell(
                f"No rule for similar calls: {shown.similar.words}. Press y to allow only this one."
            )
        elif action in YES and not self._is_read:
            self._read_on()
        else:
            self.post_message(self.Answered(action, shown))

    @property
    def _is_read(self) -> bool:
        return self.view.reached_end and not self._left_out

    def _read_on(self) -> None:
        """Scroll down instead of allowing the call, because its end hasn't been seen."""
        below = self.view.below
        if below:
            self.view.page_down()
            more = counted(below, "more line")
            self._tell(f"Not answered yet: {more} below. Keep reading, then press the key again.")
        elif self._left_out:
            self._tell(f"Not answered yet: {self._more()}.")
        else:
            self._tell("Ignored, because the question had only just appeared. Press the key again.")

    def _step(self, by: int) -> None:
        numbers = [question.number for question in self.waiting]
        if self._number in numbers:
            self._go_to(numbers[(numbers.index(self._number) + by) % len(numbers)])
            self._say()

    def _tell(self, words: str) -> None:
        if not self.query_one("#question-keys", BarLine).show_message(visible_line(words), 3):
            cast("AppBase", self.app).show_message(words)
