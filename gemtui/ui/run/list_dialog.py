"""The list of all runs: open one, stop one, put back the session that one keeps."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

from textual import on
from textual.app import ComposeResult
from textual.content import Content

from gemtui.ui.draw.lines import own
from gemtui.ui.kit.clean_widgets import Dialog, Option, OptionList
from gemtui.ui.kit.dialog_guard import DialogScreen
from gemtui.ui.kit.dialogs import Choice
from gemtui.ui.kit.keys import Where, bindings


class What(StrEnum):
    """What to do with a run."""

    OPEN = "open"
    STOP = "stop"
    RESTORE = "restore"
    """Put back the session of which it keeps a copy."""


class Wanted(NamedTuple):
    """What to do with the run of this id."""

    id: str
    what: What


class RunListScreen(DialogScreen[Wanted]):
    """Closes with a `Wanted`, or with None."""

    BINDINGS = bindings(Where.RUN_LIST)

    def __init__(self, runs: Sequence[Choice]) -> None:
        super().__init__()
        self._runs = runs

    def compose(self) -> ComposeResult:
        """One line for each run."""
        with Dialog(own("Runs"), own("enter opens   x stops   b puts back   esc closes")):
            yield OptionList(*(Option(_row(run), id=run.id) for run in self._runs))

    def on_mount(self) -> None:
        """Begin at the newest."""
        self.query_one(OptionList).action_first()

    @on(OptionList.OptionSelected)
    def _opened(self, event: OptionList.OptionSelected) -> None:
        assert event.option_id is not None
        self.dismiss(Wanted(event.option_id, What.OPEN))

    def action_stop(self) -> None:
        """End the run under the cursor."""
        self._do(What.STOP)

    def action_restore(self) -> None:
        """Put the session back of which the run under the cursor keeps a copy."""
        self._do(What.RESTORE)

    def _do(self, what: What) -> None:
        option = self.query_one(OptionList).highlighted_option
        if option is not None and option.id is not None:
            self.dismiss(Wanted(option.id, what))

    def action_close(self) -> None:
        """Nothing."""
        self.dismiss(None)


def _row(run: Choice) -> Content:
    return Content.assemble((run.label, "bold"), "  ", (run.meaning, "dim"))
