"""The dialog that opens policy files; it also manages those of gemtui."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from textual import on
from textual.app import ComposeResult
from textual.content import Content

from gemtui.policy.edit.store import Origin, PolicyFile
from gemtui.text import clean_line, short_path
from gemtui.ui.draw.lines import own
from gemtui.ui.kit.clean_widgets import Dialog, Option, OptionList, Static
from gemtui.ui.kit.dialog_guard import DialogScreen
from gemtui.ui.kit.keys import Where, bindings

_ORIGINS = {
    Origin.OURS: "Your gemtui policies",
    Origin.USER: "Gemini CLI's own folder (used in every session)",
    Origin.SETTINGS: "Listed in Gemini CLI's settings",
    Origin.ADMIN: "Set by the administrator",
}


class FileAction(StrEnum):
    """What the user can do with a policy file."""

    OPEN = "open"
    NEW = "new"
    RENAME = "rename"
    DELETE = "delete"


class FileChoice(NamedTuple):
    """What the user has chosen to do, and with which file (None for a new one)."""

    what: FileAction
    file: PolicyFile | None = None


class PolicyFilesScreen(DialogScreen[FileChoice]):
    """A dialog that returns a `FileChoice`, or None.

    `current`: the file being edited.
    """

    BINDINGS = bindings(Where.POLICY_FILES)

    def __init__(self, files: Sequence[PolicyFile], current: Path | None) -> None:
        super().__init__()
        self._files, self._current = files, current

    def compose(self) -> ComposeResult:
        with Dialog(own("Policies"), own("enter open  n new  r rename  d delete  esc close")):
            if not self._files:
                yield Static(own("No policies yet. Press n to create one."))
            yield OptionList(*self._options())

    def _options(self) -> Iterator[Option]:
        origin: Origin | None = None
        for at, file in enumerate(self._files):
            if file.origin is not origin:
                origin = file.origin
                yield Option(Content.styled(_ORIGINS[origin], "bold"), disabled=True)
            yield Option(self._row(file), id=str(at))

    def _row(self, file: PolicyFile) -> Content:
        here = "open now  " if file.path == self._current else ""
        why = f"  {file.read_only}" if file.read_only else ""
        return Content.assemble(
            f"  {clean_line(file.name):<20} ",
            (here, "$text-accent"),
            (clean_line(f"{short_path(file.path)}{why}"), "dim"),
        )

    def on_mount(self) -> None:
        options = self.query_one(OptionList)
        options.focus()
        paths = [file.path for file in self._files]
        if self._current in paths:
            options.highlighted = options.get_option_index(str(paths.index(self._current)))
        else:
            options.action_first()

    @property
    def _chosen(self) -> PolicyFile | None:
        option = self.query_one(OptionList).highlighted_option
        return None if option is None or option.id is None else self._files[int(option.id)]

    @on(OptionList.OptionSelected)
    def _opened(self) -> None:
        self.dismiss(FileChoice(FileAction.OPEN, self._chosen))

    def action_new(self) -> None:
        self.dismiss(FileChoice(FileAction.NEW))

    def action_ask(self, what: str) -> None:
        if self._chosen is not None:
            self.dismiss(FileChoice(FileAction(what), self._chosen))
