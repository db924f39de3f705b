"""Ask for the file and the form of an export."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from textual import on
from textual.app import ComposeResult
from textual.content import Content

from gemtui.export_formats import Format
from gemtui.paths import current_folder
from gemtui.text import Clean, short_path, visible_line
from gemtui.ui.draw.lines import own
from gemtui.ui.kit.clean_widgets import Dialog, Input, Label, Option, OptionList
from gemtui.ui.kit.dialog_guard import DialogScreen
from gemtui.ui.kit.keys import Where, bindings
from gemtui.ui.kit.new_file import free_name, place_of, problem_of


class Export(NamedTuple):
    """The form and the file of an export."""

    format: Format
    path: Path


FORMS = {
    Format.MARKDOWN: (".md", "Markdown, to read or share"),
    Format.HTML: (".html", "HTML, one self-contained page"),
    Format.TEXT: (".txt", "Plain text"),
    Format.JSON: (".json", "JSONL, the records as Gemini CLI stored them"),
    Format.UNIFIED: (".unified.json", "Claude-compatible messages"),
}


class ExportScreen(DialogScreen[Export]):
    """Closes with an `Export` to a file that does not exist yet, or with None.

    `folder`: to a folder, which may exist.
    """

    BINDINGS = bindings(Where.DIALOG)

    def __init__(self, title: Clean, stem: str, *, forbidden: Path, folder: bool = False) -> None:
        super().__init__()
        self._heading, self._stem, self._forbidden = title, stem, forbidden
        self._folder = folder
        self._suffix = self._suffix_of(Format.MARKDOWN)

    def compose(self) -> ComposeResult:
        """The forms, the file, what is wrong with it."""
        what = "folder" if self._folder else "file"
        with Dialog(own("Export"), own(f"enter export   tab {what} name   esc close")):
            yield Label(Content.styled(self._heading, "bold"))
            yield OptionList(
                *(Option(own(text), id=format) for format, (_, text) in FORMS.items()),
            )
            yield Label(
                Content(f"{what.capitalize()} in {short_path(current_folder())}"), id="folder"
            )
            yield Input(visible_line(free_name(self._stem, self._suffix)))
            yield Label(id="problem")

    @on(OptionList.OptionHighlighted)
    def _other_form(self, event: OptionList.OptionHighlighted) -> None:
        name, suffix = self.query_one(Input), self._suffix_of(Format(event.option_id or ""))
        if name.value == free_name(self._stem, self._suffix):
            name.value = free_name(self._stem, suffix)
        elif name.value.endswith(self._suffix):
            name.value = name.value.removesuffix(self._suffix) + suffix
        self._suffix = suffix

    @on(Input.Changed)
    def _other_name(self, event: Input.Changed) -> None:
        self.query_one("#problem", Label).update(own(self._problem(event.value)))

    @on(Input.Submitted)
    @on(OptionList.OptionSelected)
    def _chosen(self) -> None:
        name = self.query_one(Input).value
        if not self._problem(name):
            self.dismiss(Export(self._format(), place_of(name)))

    def _format(self) -> Format:
        option = self.query_one(OptionList).highlighted_option
        return Format(option.id or "") if option is not None else Format.MARKDOWN

    def _suffix_of(self, format: Format) -> str:
        return "" if self._folder else FORMS[format][0]

    def _problem(self, name: str) -> str:
        return problem_of(name, forbidden=self._forbidden, folder=self._folder)
