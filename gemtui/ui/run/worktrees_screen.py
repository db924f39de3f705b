"""A screen with the worktrees of runs: review, apply or remove them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from rich.cells import cell_len
from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content

from gemtui.agent.options import AgentOptions
from gemtui.checkpoints.plan import Action
from gemtui.errors import GemtuiError, message_of
from gemtui.paths import runs_dir
from gemtui.policy.edit.store import Origin, list_policies
from gemtui.policy.file.policy_files import find_policy
from gemtui.runs.listing import Run, list_runs
from gemtui.runs.undo.review import ReviewSubject
from gemtui.runs.worktrees import (
    AppliedWorktree,
    WorktreeChange,
    apply_worktree,
    losses_of,
    remove_worktree,
    runs_of,
    worktree_changes,
)
from gemtui.text import clean_line, counted, relative, short_path
from gemtui.transcript.displays import content_diff
from gemtui.ui.draw.lines import (
    BLANK,
    Line,
    Piece,
    Pieces,
    cut,
    fit_end,
    fit_start,
    flat,
    two_ended,
    width_of,
)
from gemtui.ui.draw.text_rows import note_line, styled
from gemtui.ui.draw.theme import Glyphs, Look, Role
from gemtui.ui.kit.beside import BesideScreen
from gemtui.ui.kit.dialogs import AskScreen, at_most, confirm, left_alone
from gemtui.ui.kit.keys import Where, bindings
from gemtui.ui.kit.row_list import RowList
from gemtui.ui.kit.screens import DIALOG
from gemtui.ui.kit.text_view import LineView
from gemtui.ui.review.screen import ReviewScreen
from gemtui.ui.run.list_dialog import run_sign
from gemtui.ui.run.starting import start_run
from gemtui.ui.transcript.diff import draw_diff
from gemtui.worktree_records import Worktree, find_worktree, list_worktrees, made_at, origin_of

if TYPE_CHECKING:
    from gemtui.ui.kit.app_base import AppBase
    from gemtui.ui.run.live_run import LiveRun
    from gemtui.ui.run.registry import RunRegistry
    from gemtui.ui.run.screen import RunScreen


_NARROW = 40
"""Width in cells below which a row shows only a worktree's name and its files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorktreeRow:
    """A worktree with its newest run and its changes.

    `run`: None if no run in it is recorded. `changes`: None if they can't be determined; `why` is
    then the reason.
    """

    worktree: Worktree
    run: Run | None
    changes: tuple[WorktreeChange, ...] | None
    why: str = ""

    @property
    def running(self) -> bool:
        """Whether a run is working in the worktree."""
        return self.run is not None and self.run.alive

    @property
    def model(self) -> str:
        """The model chosen for the newest run, or "" if none was."""
        return (self.run.model or "") if self.run is not None else ""

    @property
    def variant(self) -> str:
        """The newest run's model and policies, which tell runs of the same prompt apart."""
        names = () if self.run is None else (path.stem for path in self.run.policies)
        return " ".join(filter(None, (self.model.removeprefix("gemini-"), *names)))

    @property
    def files(self) -> str:
        """The number of changed files, or a note that all changes have been applied."""
        if self.changes is None:
            return "?"
        if self.changes and all(change.is_applied for change in self.changes):
            return "applied"
        return counted(len(self.changes), "file")


def draw_worktree(row: WorktreeRow, look: Look) -> Pieces:
    """Render a worktree's row.

    If there is little room, the model, policies and age are left out and the start of the name is
    cut off, because names of worktrees for the same prompt differ at the end.
    """
    glyph, role = run_sign(row.run, look) if row.run else (" ", Role.MUTED)
    front = (Piece(f"{glyph} ", look[role]),)
    made, mark = made_at(row.worktree), look.glyphs.ellipsis
    age = "?" if made is None else relative(made, look.now)
    end = f"  {row.files}" if look.width < _NARROW else f"  {row.files}  {age:>4}"
    right = (Piece(end, look[Role.MUTED]),)
    room = look.width - width_of(front) - width_of(right)
    name = fit_end(clean_line(row.worktree.name), max(0, room), mark)
    variant = fit_start(flat(row.variant), room - cell_len(name) - 2, mark)
    shown = f"  {variant}" if variant else ""
    left = (*front, Piece(name, look[Role.TEXT]), Piece(shown, look[Role.MODEL]))
    return two_ended(left, right, look)


def worktree_facts(row: WorktreeRow, glyphs: Glyphs) -> str:
    """Return the heading for a worktree: its branch, result, model and policies."""
    facts = [row.worktree.branch, row.run.word if row.run else "", row.variant]
    return clean_line(f" {glyphs.dot} ".join(filter(None, facts)))


def change_lines(row: WorktreeRow, look: Look) -> Sequence[Line]:
    """Return lines with the prompt of a worktree's run, and its changes by file."""
    head = (_words(row.worktree.prompt or "(no prompt)", look, Role.MUTED), BLANK)
    if row.changes is None:
        return (*head, note_line(row.why, look))
    if not row.changes:
        return (*head, note_line("No changes in this worktree.", look))
    return (*head, *(line for change in row.changes for line in (*_file(change, look), BLANK)))


def _words(words: str, look: Look, role: Role) -> Line:
    return Line(cut((Piece(clean_line(words), look[role]),), look))


def _file(change: WorktreeChange, look: Look) -> Iterator[Line]:
    added, removed = change.lines
    numbers = "" if added is None else f"  +{added} {look.glyphs.removed}{removed}"
    front, end = f"{change.change}  ", f"{numbers}{'  applied' if change.is_applied else ''}"
    name = _path(change.name, look.width - len(front) - len(end), look)
    yield Line(styled(f"{front}{name}{end}", look[Role.HEADING]))
    yield from _diff(change, look)


def _path(name: str, room: int, look: Look) -> str:
    return fit_end(clean_line(name), room, look.glyphs.ellipsis)


def _diff(change: WorktreeChange, look: Look) -> Sequence[Line]:
    if change.why:
        return (note_line(change.why, look),)
    if change.old == change.new:
        modes = f"permissions {change.before.mode:o} to {change.after.mode:o}"
        return (note_line(modes, look),)
    is_new = change.old is None
    diff = content_diff(change.name, change.old or "", change.new or "", is_new=is_new)
    body = draw_diff(diff, look, folded=False)
    return body.lines or (note_line(body.note, look),)


LOOK = 2.0
"""Seconds between two updates while a run is working in a worktree."""
_MOST_LISTED = 200


Variant = Mapping[str, Any]
"""The options, by name, in which a run differs from others with the same prompt."""


class Then(StrEnum):
    """The actions of the run pane after the worktrees screen has closed."""

    SHOW = "show"
    """Show the worktree's newest run or, if there is none, prepare a new run in it."""
    EACH = "each"
    """Send the worktree's first prompt again with other options, in new worktrees."""


class WorktreeChoice(NamedTuple):
    """The user's choice for a worktree, which the run pane carries out.

    `runs`: the worktree's runs, newest first. `variants`: for `Then.EACH` (one new run per
    variant), the options in which each new run differs from the others. `prompt`: the text to put
    into the prompt field.
    """

    then: Then
    worktree: Worktree
    runs: tuple[Run, ...]
    variants: tuple[Variant, ...] = ()
    prompt: str = ""


class WorktreesScreen(BesideScreen[WorktreeChoice, WorktreeRow]):
    """A screen that returns a `WorktreeChoice`, or None."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(Where.WORKTREES)
    AUTO_FOCUS = "RowList"

    def __init__(self) -> None:
        super().__init__(id="worktrees-screen")

    def compose(self) -> ComposeResult:
        rows = RowList[WorktreeRow](
            draw_worktree, key=lambda row: row.worktree.name, empty="reading"
        )
        side = LineView(what="the changes")
        yield from self.beside(rows, side)

    def on_mount(self) -> None:
        self.header.show_parts([Content.styled("Worktrees", "bold")])
        self.set_interval(LOOK, self._look)
        self.call_after_refresh(self.action_reload)

    # --- contents ------------------------------------------------------------------------------

    def _look(self) -> None:
        """Reload if a run is working in one of the worktrees."""
        if self.is_current and any(row.running for row in self.rows.items):
            self.action_reload()

    @work(exclusive=True, group="read")
    async def action_reload(self) -> None:
        """List the worktrees and their changes again."""
        await self._read()

    async def _read(self) -> None:
        rows = await asyncio.to_thread(_rows)
        self.rows.empty = (
            "No worktrees. Type /worktree in the run pane to create one for the next run."
        )
        self.rows.show(rows)
        self._show_side(fresh=False)
        self.refresh_bindings()

    @on(RowList.Highlighted)
    def _moved(self) -> None:
        self._show_side(fresh=True)
        self.show_status("")
        self.refresh_bindings()

    def _show_side(self, *, fresh: bool) -> None:
        """Show the changes in the worktree under the cursor.

        `fresh`: scroll to the first line.
        """
        row = self.rows.chosen
        of, heading, side = self.panes.above, self.panes.heading, self.panes.side
        if row is None:
            of.show_parts([])
            heading.show_parts([])
            side.show(lambda _look: (), fresh=fresh)
            return
        of.show_parts([Content(short_path(row.worktree.repository))])
        heading.show_parts([Content(worktree_facts(row, self.gemtui.glyphs))])
        side.show(lambda look: change_lines(row, look), fresh=fresh)

    # --- keys ----------------------------------------------------------------------------------

    def action_close(self) -> None:
        if self.panes.side.has_focus:
            self.rows.focus()
        else:
            self.dismiss(None)

    @on(RowList.Opened)
    def _open(self) -> None:
        row = self.rows.chosen
        if row is not None:
            self._leave(Then.SHOW, row)

    @work(exclusive=True, group="leave")
    async def _leave(
        self, then: Then, row: WorktreeRow, variants: tuple[Variant, ...] = (), prompt: str = ""
    ) -> None:
        runs = await asyncio.to_thread(lambda: runs_of(row.worktree, list_runs(runs_dir())))
        self.dismiss(WorktreeChoice(then, row.worktree, runs, variants, prompt))

    @work(exclusive=True, group=DIALOG)
    async def action_each(self) -> None:
        row = self.rows.chosen
        if row is None:
            return
        text = await self.app.push_screen_wait(
            AskScreen(
                "Models, separated by commas",
                value="",
                problem=lambda text: "" if _names(text) else "Enter at least one model.",
            )
        )
        if text is not None:
            self._leave(Then.EACH, row, tuple({"model": name} for name in _names(text)))

    @work(exclusive=True, group=DIALOG)
    async def action_each_policy(self) -> None:
        row = self.rows.chosen
        if row is None:
            return
        policies = await asyncio.to_thread(list_policies)
        ours = (policy.path.stem for policy in policies if policy.origin is Origin.OURS)
        text = await self.app.push_screen_wait(
            AskScreen(
                "Policies, separated by commas",
                value=", ".join(ours),
                problem=_policies_problem,
            )
        )
        if text is not None:
            variants = tuple({"policies": (find_policy(name),)} for name in _names(text))
            self._leave(Then.EACH, row, variants)

    @work(exclusive=True, group=DIALOG)
    async def action_review(self) -> None:
        """Let the user review the changes in a worktree hunk by hunk.

        Hunks that the user reverts there won't be applied. Comments become the worktree's next
        prompt.
        """
        row = self.rows.chosen
        if row is None or row.run is None:
            return
        run, prompt = row.run, row.worktree.prompt
        subject = ReviewSubject(
            folder=row.worktree.folder,
            session=run.session or "",
            run="" if run.session else run.id,
            calls=tuple,
            prompts=lambda: [prompt],
        )
        text = await self.app.push_screen_wait(ReviewScreen(subject, row.worktree.name))
        if text:
            self._leave(Then.SHOW, row, prompt=text)
        else:
            await self._read()

    @work(exclusive=True, group=DIALOG)
    async def action_apply(self) -> None:
        row = self.rows.chosen
        if row is None:
            return
        worktree = await self._current(row.worktree)
        if worktree is None:
            return
        self.show_status("comparing with the repository")
        planned = await self._applied(worktree, dry_run=True)
        self.show_status("")
        if planned is None:
            return
        if not planned.steps:
            self.gemtui.show_message("No files need to change.")
            return
        sure = await confirm(
            self.app,
            "Apply?",
            clean_line(f"to {short_path(worktree.repository)}"),
            _planned_words(planned),
            yes="Apply",
            no="Don't apply",
        )
        if not sure:
            return
        applied = await self._applied(worktree, dry_run=False)
        await self._read()
        if applied is not None:
            self._tell(applied)

    async def _applied(self, worktree: Worktree, *, dry_run: bool) -> AppliedWorktree | None:
        """Apply a worktree's changes to its repository, and return what was done.

        On failure, the reason is shown and None is returned. `dry_run`: only determine what would
        be done.
        """
        with self.gemtui.reporting("Not applied"):
            return await asyncio.to_thread(
                apply_worktree, worktree, dry_run=dry_run, stop=self.gemtui.stop
            )
        return None

    async def _current(self, worktree: Worktree) -> Worktree | None:
        """Return the worktree as it is recorded now.

        If that fails, the reason is shown, the list is read again, and None is returned.
        """
        with self.gemtui.reporting():
            return await asyncio.to_thread(find_worktree, worktree.name)
        await self._read()
        return None

    def _tell(self, done: AppliedWorktree) -> None:
        changed = len(done.steps) - len(done.kept)
        back = "To reverse this, run gemtui redo in the repository."
        text = f"Applied: {counted(changed, 'file')} changed. {back}"
        if not done.kept:
            self.gemtui.show_message(text)
            return
        left = [f"{path}: {why}" for path, why in done.kept]
        self.gemtui.show_message(f"{text} {left_alone(left)}", problem=True)

    @work(exclusive=True, group=DIALOG)
    async def action_remove(self) -> None:
        row = self.rows.chosen
        worktree = None if row is None else await self._current(row.worktree)
        if worktree is None:
            return
        losses = await asyncio.to_thread(losses_of, worktree)
        lines = [clean_line(line) for line in losses.lines()]
        if losses.commits:
            stays = f"Branch {worktree.branch} is kept, because no other branch has its commits."
            lines.append(clean_line(stays))
        sure = await confirm(
            self.app,
            "Remove this worktree?",
            clean_line(worktree.name),
            lines or ["Nothing will be lost."],
            yes="Remove",
            no="Keep it",
        )
        if not sure:
            return
        with self.gemtui.reporting("Not removed"):
            removed = await asyncio.to_thread(remove_worktree, worktree)
            self.gemtui.show_message("; ".join(["Removed", *removed.notes]))
        await self._read()

    def can(self, action: str) -> bool:
        """Return whether an action is available for the worktree under the cursor."""
        row = self.rows.chosen
        if action in ("close", "reload", "other_part"):
            return True
        if action == "review":
            return row is not None and row.run is not None and row.worktree.exists
        if action == "apply":
            return row is not None and bool(row.changes)
        return row is not None


def _rows() -> list[WorktreeRow]:
    """Return all worktrees with their newest runs and their changes.

    Blocking: call this on a background thread.
    """
    runs, rows = list_runs(runs_dir()), list[WorktreeRow]()
    for worktree in list_worktrees():
        newest = next(iter(runs_of(worktree, runs)), None)
        try:
            rows.append(
                WorktreeRow(worktree=worktree, run=newest, changes=worktree_changes(worktree))
            )
        except (GemtuiError, OSError) as error:
            rows.append(
                WorktreeRow(worktree=worktree, run=newest, changes=None, why=message_of(error))
            )
    return rows


def _names(text: str) -> tuple[str, ...]:
    return tuple(filter(None, (name.strip() for name in text.split(","))))


def _policies_problem(text: str) -> str:
    try:
        return "" if [find_policy(name) for name in _names(text)] else "Enter at least one policy."
    except GemtuiError as error:
        return str(error)


_DOES = {Action.RESTORE: "write", Action.REMOVE: "remove", Action.MERGE: "merge with your edits"}


def _planned_words(planned: AppliedWorktree) -> Sequence[str]:
    """Return one line per file that says what applying would do to it."""
    lines = [
        clean_line(f"{does}  {path}")
        for action, does in _DOES.items()
        for path in planned.paths(action)
    ]
    lines += [clean_line(f"leave alone  {path}: {why}") for path, why in planned.kept]
    return at_most(lines, _MOST_LISTED)


async def carry_out(
    app: AppBase, registry: RunRegistry, screen: RunScreen, wanted: WorktreeChoice
) -> None:
    """Carry out the user's choice for a worktree: show its run, or start new ones."""
    if wanted.then is Then.EACH:
        await _start_each(app, registry, screen, wanted)
        return
    run = await registry.attach(wanted.runs[0]) if wanted.runs else None
    if run is None:
        screen.prepare(wanted.worktree.folder)
    else:
        screen.show_run(run)
    if wanted.prompt:
        screen.prompt.set_text(wanted.prompt)


async def _start_each(
    app: AppBase, registry: RunRegistry, screen: RunScreen, wanted: WorktreeChoice
) -> None:
    """Send a worktree's first prompt once per variant, and show the first new run.

    Each run gets a new worktree and its variant's options (see `WorktreeChoice`).
    """
    worktree = wanted.worktree
    begun: list[LiveRun] = []
    first = wanted.runs[-1].folder if wanted.runs else None
    prompt = worktree.prompt if first is None else await asyncio.to_thread(first.prompt_text)
    folder = origin_of(worktree.folder)
    same = screen.options.cwd in (folder, worktree.folder)
    options = screen.options if same else AgentOptions(cwd=folder)
    for variant in wanted.variants:
        chosen = replace(options, cwd=folder, worktree=True, resume=None, **variant)
        sent = prompt or worktree.prompt
        with registry.beginning(sent, None):
            run = await start_run(app, registry, sent, chosen, None)
        if run is None:
            break
        begun.append(run)
    if begun:
        screen.show_run(begun[0])
        app.show_message(
            f"Started {counted(len(begun), 'run')}. Type /worktrees to see the results."
        )
