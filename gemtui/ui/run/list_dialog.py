"""The dialog that lists all runs, and what the user can do there: open, stop or restore."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from textual import on, work
from textual.app import ComposeResult

from gemtui.agent.prompt_queue import PromptQueue
from gemtui.agent.run_folder import RunFolder
from gemtui.agents import WORDS
from gemtui.kept.run_copies import last_copies
from gemtui.runs.ending import RunState
from gemtui.runs.listing import Run, stop_run, with_outcome
from gemtui.text import cells, clean_line, ellipsis, relative
from gemtui.ui.draw.lines import Piece, Pieces, two_ended
from gemtui.ui.draw.theme import Look, Role
from gemtui.ui.kit.app_base import DialogScreen
from gemtui.ui.kit.clean_widgets import Dialog
from gemtui.ui.kit.filtering import FiltersRows, SearchedRows
from gemtui.ui.kit.keys import Where, bindings
from gemtui.ui.kit.put_back import put_back_of_run
from gemtui.ui.kit.row_list import RowList
from gemtui.ui.run.labels import END_COLOURS, status_glyph

if TYPE_CHECKING:
    from gemtui.ui.kit.app_base import AppBase
    from gemtui.ui.run.live_run import LiveRun
    from gemtui.ui.run.registry import RunRegistry

_WORD = 16
"""Width in cells of the column with the runs' results."""
_FOLDER = 14
_SEARCHED = 20_000
"""How many characters of each prompt a search looks through."""


class RunAction(StrEnum):
    """The actions on a run in the list."""

    OPEN = "open"
    STOP = "stop"
    RESTORE = "restore"
    """Restore the run's session from the copy in the run's folder."""


class ChosenRun(NamedTuple):
    """The run that the user has chosen, and what to do with it."""

    run: Run
    what: RunAction


class RunListScreen(FiltersRows, DialogScreen[ChosenRun]):
    """A dialog that returns a `ChosenRun`, or None.

    `only_copies`: the folders of runs that hold the only copy of a session. `search`: the initial
    search text; once the user has chosen, the attribute `search` holds the last search text.
    """

    BINDINGS = bindings(Where.RUN_LIST)
    AUTO_FOCUS = "RowList"

    def __init__(
        self, runs: Sequence[Run], *, only_copies: Collection[RunFolder] = (), search: str = ""
    ) -> None:
        super().__init__()
        self.search = search
        self._runs, self._only_copies = list(runs), only_copies
        self._has_several_agents = len({run.agent for run in runs}) > 1
        self._prompts: dict[str, str] = {}
        """The prompts and messages sent to each run, by run id, once they are loaded."""

    def compose(self) -> ComposeResult:
        keys = "enter open  / filter  x stop  b restore  esc close"
        with Dialog("Runs", keys, id="run-list"):
            rows = SearchedRows[Run](self._draw, self._text, empty="")
            rows.styles.height = len(self._runs) + 1
            yield rows

    def on_mount(self) -> None:
        self.searched.show(self._runs, fresh=True)
        if self.search:
            self.searched.search_again(self.search)
        self._read_outcomes()
        self._read_prompts()

    @work
    async def _read_prompts(self) -> None:
        """Load all prompts and messages sent to the runs, so that searches cover them."""
        folders = [run.folder for run in self._runs]
        self._prompts = await asyncio.to_thread(_prompts, folders)
        self.searched.show(self._runs)

    @work
    async def _read_outcomes(self) -> None:
        """Determine the outcomes of runs that ended while no gemtui process was watching."""
        for index, run in enumerate(self._runs):
            if run.exit is not None and run.outcome is None:
                self._runs[index] = await asyncio.to_thread(with_outcome, run)
                self.searched.show(self._runs)

    # --- rows ----------------------------------------------------------------------------------

    def _notes(self, run: Run) -> str:
        """Return the notes to show before a run's prompt, such as "worktree"."""
        left = f"still running: {', '.join(map(str, run.pids))}  " if run.pids else ""
        left += f"{run.undelivered} unsent  " if run.undelivered else ""
        left += "worktree  " if run.worktree else ""
        return left + ("only copy of its session  " if run.folder in self._only_copies else "")

    def _text(self, run: Run) -> str:
        ids = f"{run.id} {run.session} {run.model} {run.agent}"
        prompts = self._prompts.get(run.id, run.prompt)
        return f"{prompts} {run.word} {run.state} {self._notes(run)} {run.cwd} {run.worktree} {ids}"

    def _draw(self, run: Run, look: Look) -> Pieces:
        glyph, role = run_sign(run, look)
        mark, muted = look.glyphs.ellipsis, look[Role.MUTED]
        age = relative(run.started, look.now)
        folder = ellipsis(clean_line(Path(run.cwd).name or run.cwd), _FOLDER, mark=mark)
        right = (
            Piece(f"  {run.word:<{_WORD}}", look[role]),
            Piece(f"{age:>5}  {folder}{' ' * (_FOLDER - cells(folder))}", muted),
        )
        letter = f"{WORDS[run.agent].letter} " if self._has_several_agents else ""
        left = (
            Piece(f"{glyph} ", look[role]),
            Piece(letter, muted),
            Piece(self._notes(run), look[Role.WARNING]),
            Piece(clean_line(run.prompt or "(no prompt)"), look[Role.TEXT]),
        )
        return two_ended(left, right, look)

    # --- keys ----------------------------------------------------------------------------------

    @on(RowList.Opened)
    def _opened(self) -> None:
        self.action_act(RunAction.OPEN)

    def action_act(self, what: str) -> None:
        run, self.search = self.searched.rows.chosen, self.searched.query_text
        if run is not None:
            self.dismiss(ChosenRun(run, RunAction(what)))


def _prompts(folders: Sequence[RunFolder]) -> dict[str, str]:
    return {folder.id: "\n".join(_said(folder)) for folder in folders}


def _said(folder: RunFolder) -> Iterator[str]:
    """Yield the start of each prompt and message that the user has sent or queued.

    `folder`: the run's folder.
    """
    queue = PromptQueue.of(folder)
    sent = (prompt.text for prompt in queue.sent())
    waiting = (prompt.text for prompt in queue.prompts())
    messages = (message.text for message in queue.messages())
    for text in (folder.prompt_text(), *sent, *waiting, *messages):
        yield text[:_SEARCHED]


def run_sign(run: Run, look: Look) -> tuple[str, Role]:
    """Return a run's symbol for lists, and the role that determines its colour."""
    if run.state is RunState.ORPHANED:
        return look.glyphs.warning, Role.ERROR
    if run.asks:
        return look.glyphs.ask, Role.WARNING
    if run.kept_until is not None:
        return look.glyphs.ok, Role.SUCCESS
    if run.state is RunState.RUNNING:
        return look.glyphs.running, Role.ACCENT
    if run.end is None:
        return look.glyphs.ask, Role.WARNING
    return status_glyph(run.end, look.glyphs), Role(END_COLOURS[run.end])


async def choose_run(app: AppBase, registry: RunRegistry) -> LiveRun | None:
    """Let the user choose one of the recorded runs; return it, or None.

    The list includes runs that other and earlier gemtui processes started. From the list, the user
    can also stop active runs and restore lost sessions.
    """
    search = ""
    while runs := await registry.find():
        lost = {copy.folder for copy in await asyncio.to_thread(last_copies, registry.adapter.runs)}
        screen = RunListScreen(runs, only_copies=lost, search=search)
        wanted, search = await app.push_screen_wait(screen), screen.search
        if wanted is None:
            return None
        if wanted.what is RunAction.STOP:
            await _stop(app, wanted.run)
            continue
        if wanted.what is RunAction.RESTORE:
            await put_back_of_run(app, wanted.run.folder)
            continue
        run = await registry.attach(wanted.run)
        if run is None:
            app.show_message(
                "This run can't be shown, because its files are corrupt.", problem=True
            )
        return run
    app.show_message("No runs yet.")
    return None


async def _stop(app: AppBase, run: Run) -> None:
    """End all processes of a run.

    This works even if the run's supervisor (the process that watches it) is gone.
    """
    if not run.alive:
        app.show_message("This run has no running processes.")
        return
    app.show_message("Stopping (SIGTERM)")
    with app.reporting("The run's result could not be saved"):
        ended = await asyncio.to_thread(stop_run, run)
        app.show_message(
            "Stopped" if ended else "Some of the run's processes could not be stopped. Try again."
        )
