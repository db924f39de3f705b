"""Render what an undo does: one row per file, and details about a single file."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from textual.content import Content

from gemtui.checkpoints.plan import Action, Step
from gemtui.runs.undo.undo import StateText, StepTexts, Undone
from gemtui.text import Clean, clean, clean_line, counted, ellipsis
from gemtui.transcript.displays import content_diff
from gemtui.transcript.model import DiffDisplay
from gemtui.ui.draw.code import language_of
from gemtui.ui.draw.gutter_rows import note_line, text_rows
from gemtui.ui.draw.lines import BLANK, Line, Piece, Pieces, own, two_ended, width_of, wrap
from gemtui.ui.draw.theme import Look, Role
from gemtui.ui.transcript.card_body import draw_diff

_PROMPT = 60
"""The maximum width, in cells, of the prompt in the title."""


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
    name: Clean
    why: Clean = Clean("")  # noqa: RUF009 (a string)
    about: Clean = Clean("")  # noqa: RUF009 (a string)
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
    return [
        *([_chat_row(undone, prompts, done=done)] if chat else ()),
        *_file_rows(undone, done=done),
        *(_note_row(each) for each in dict.fromkeys(undone.notes)),
    ]


def _chat_row(undone: Undone, prompts: Sequence[str], *, done: bool) -> UndoRow:
    kept = undone.to - 1
    past = f"with {counted(kept, 'earlier prompt')}" if kept else "empty, because this is the first prompt"
    words = [
        f"A new chat that ends just before prompt {undone.to}. This chat does not change.",
        "",
        f"Prompt {undone.to}, which you can change and send again:",
        *prompts[kept : kept + 1],
        *(line for note in dict.fromkeys(undone.notes) for line in ("", note)),
    ]
    return UndoRow(
        sign="ok" if done else "pending",
        role=Role.SUCCESS,
        word="new chat",
        name=own(past),
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
    return UndoRow(sign="warning", role=Role.WARNING, word="note", name=clean_line(note), about=clean(note))


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


def undo_title(undone: Undone, prompts: Sequence[str], *, redo: bool) -> Clean:
    """Return the screen's title: the prompt to go back to, or the undo to reverse."""
    if redo:
        return clean_line(f"Redo: reverse the undo to before prompt {undone.to}")
    text = ellipsis(clean_line("".join(prompts[undone.to - 1 : undone.to])), _PROMPT)
    return clean_line(f"Undo to before prompt {undone.to} of {len(prompts)}: {text}")


def draw_undo_row(row: UndoRow, look: Look) -> Pieces:
    """Render a row's symbol, effect and file, and the reason if there is room for it."""
    glyph = own(f"{getattr(look.glyphs, row.sign)} ")
    front = (Piece(glyph, look[row.role]), Piece(own(f"{row.word:<12}"), look[row.role]))
    why = (Piece(own(f"  {row.why}"), look[Role.MUTED]),) if row.why else ()
    name = Piece(row.name, look[Role.MUTED if row.word == "note" else Role.TEXT])
    if width_of((*front, name, *why)) > look.width:
        why = ()
    return two_ended((*front, name), why, look)


def heading_of(row: UndoRow, look: Look) -> Sequence[Content]:
    """Return the heading above the details of a row."""
    words = f"{getattr(look.glyphs, row.sign)} {row.word}  "
    if row.step is None:
        return [Content.styled(own(words.rstrip()), "bold")]
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
        *_said(f"Left alone: {step.why}. Press enter to see its three versions.", look, Role.WARNING),
        BLANK,
        *_said("Changed since the session:", look, Role.MUTED),
        *_change_lines(name, texts.left, texts.now, look),
        BLANK,
        *_said("Not undone:", look, Role.MUTED),
        *_change_lines(name, texts.left, texts.target, look),
    )


def _said(words: str, look: Look, role: Role) -> Sequence[Line]:
    return wrap((Piece(clean_line(words), look[role]),), look.width)


def wrapped_lines(words: Clean, look: Look) -> list[Line]:
    """Return text as lines that fit the width."""
    lines = words.split("\n")
    return [row for line in lines for row in wrap((Piece(Clean(line), look[Role.TEXT]),), look.width)]


def _text_lines(name: str, text: StateText, look: Look) -> Sequence[Line]:
    if text.text is None:
        return (note_line(text.why, look),)
    if not text.text:
        return (note_line("empty file", look),)
    language = language_of(clean_line(name))
    return text_rows(text.text, look, folded=False, language=language, first=1).lines


def _change_lines(name: str, before: StateText, after: StateText, look: Look) -> Sequence[Line]:
    gone = "there is no such file"
    odd = [each.why for each in (before, after) if each.text is None and each.why != gone]
    if odd:
        return (note_line(odd[0], look),)
    body = draw_diff(_diff(name, before, after), look, folded=False)
    return body.lines or (note_line(body.note, look),)


def _diff(name: str, before: StateText, after: StateText) -> DiffDisplay:
    return content_diff(name, before.text or "", after.text or "", is_new=before.text is None)
