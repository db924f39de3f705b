"""The export of sessions: its dialog, and the exported files."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from textual import on
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.content import Content

from gemtui.errors import GemtuiError, message_of
from gemtui.export_formats import Format, pieces, repository_note
from gemtui.files import resolved, write_new, write_whole
from gemtui.paths import current_folder
from gemtui.redact.redactor import Replaced
from gemtui.sessions.catalog.redacted import redact, redacted_summary, replaced_in
from gemtui.sessions.catalog.summary import Summary, named
from gemtui.sessions.read.session_log import SessionLog
from gemtui.text import clean_line, counted, file_name, short_path, visible_line
from gemtui.ui.kit.app_base import start_worker
from gemtui.ui.kit.clean_widgets import Dialog, Input, Label, Option, OptionList, Static, Tick
from gemtui.ui.kit.dialogs import FieldScreen, file_name_problem, free_name, new_file_path
from gemtui.ui.kit.keys import Where, bindings
from gemtui.ui.kit.text_view import show_text

if TYPE_CHECKING:
    from gemtui.marks import Mark
    from gemtui.ui.kit.app_base import AppBase
    from gemtui.ui.sessions.left_off import LeftOff


class Export(NamedTuple):
    """The format and file of an export.

    `redact`: whether to replace secrets in the exported text.
    """

    format: Format
    path: Path
    redact: bool = False


class Preview(NamedTuple):
    """The numbers of secrets that redaction would replace in a session.

    `stem`: the suggested file name without its suffix, with secrets replaced.
    """

    replaced: Sequence[Replaced]
    stem: str


FORMS = {
    Format.MARKDOWN: (".md", "Markdown, to read or share"),
    Format.HTML: (".html", "HTML, one self-contained page"),
    Format.TEXT: (".txt", "Plain text"),
    Format.JSON: (".json", "JSONL, the records as the agent stored them"),
    Format.UNIFIED: (".unified.json", "Claude-compatible messages"),
    Format.REPLAY: (".replay.html", "Replay, a page that plays the session"),
}


class ExportScreen(FieldScreen[Export]):
    """A dialog that returns an `Export`, or None.

    `title`: the session's title or, if there are several sessions, their number. `stem`: the
    suggested file name without its suffix. `previews`: functions that return the preview of each
    session; they read the session and may raise GemtuiError or OSError. `forbidden`: Gemini CLI's
    folder, where gemtui must not write. `folder`: whether to export to a folder, which may already
    exist; a single file must not exist yet. `redact`: whether redaction is chosen at first.
    """

    BINDINGS = bindings(Where.DIALOG)

    def __init__(
        self,
        title: str,
        stem: str,
        *,
        previews: Sequence[Callable[[], Preview]],
        forbidden: Path,
        folder: bool = False,
        redact: bool = False,
    ) -> None:
        super().__init__(subject=stem)
        self._redact = redact
        self._previews = previews
        self._searched = ""
        self._heading, self._stem, self._forbidden = title, stem, forbidden
        self._folder = folder
        self._suffix = self._suffix_of(Format.MARKDOWN)

    def compose(self) -> ComposeResult:
        what = "folder" if self._folder else "file"
        with Dialog("Export", f"enter export   tab {what} name, redact   esc close"):
            yield Label(Content.styled(self._heading, "bold"))
            yield OptionList(*(Option(text, id=format) for format, (_, text) in FORMS.items()))
            yield Label(
                Content(f"{what.capitalize()} in {short_path(current_folder())}"),
                id="export-folder",
            )
            yield Input(visible_line(free_name(self._stem, self._suffix)))
            yield Tick("Redact secrets (space toggles)", id="redact")
            with VerticalScroll(id="replaced", can_focus=True) as replaced:
                replaced.display = False
                yield Static(id="replaced-words")
            yield Label(id="problem")

    def on_mount(self) -> None:
        self.query_one(Tick).value = self._redact

    @on(OptionList.OptionHighlighted)
    def _other_form(self, event: OptionList.OptionHighlighted) -> None:
        name, suffix = self.query_one(Input), self._suffix_of(Format(event.option_id or ""))
        if name.value == free_name(self._stem, self._suffix):
            name.value = free_name(self._stem, suffix)
        elif name.value.endswith(self._suffix):
            name.value = name.value.removesuffix(self._suffix) + suffix
        self._suffix = suffix

    @on(Input.Changed)
    def _other_name(self) -> None:
        self._say_problem()

    @on(Tick.Changed)
    def _redaction(self, event: Tick.Changed) -> None:
        self.query_one("#replaced").display = event.value
        if event.value:
            start_worker(self, self._preview, group="preview", exclusive=True)
        else:
            self.workers.cancel_group(self, "preview")
            self._searched = ""
            self._say_problem()

    async def _preview(self) -> None:
        """List what will be redacted, and remove secrets from the suggested file name."""
        words = self.query_one("#replaced-words", Static)
        lines: list[str] = []
        self._searched = "Looking for secrets..."
        self._say_problem()
        for number, preview in enumerate(self._previews, 1):
            words.update(f"{self._searched} {number:,} of {len(self._previews):,}")
            try:
                found = await asyncio.to_thread(preview)
            except (GemtuiError, OSError) as error:
                lines.append(clean_line(f"could not be read: {message_of(error)}"))
                continue
            lines += map(_replaced_line, found.replaced)
            if not self._folder:
                self._other_stem(found.stem)
        words.update("\n".join(lines) or "No secrets found.")
        self._searched = ""
        self._say_problem()

    def _other_stem(self, stem: str) -> None:
        name = self.query_one(Input)
        if name.value == visible_line(free_name(self._stem, self._suffix)):
            name.value = visible_line(free_name(stem, self._suffix))
        self._stem = stem

    def _say_problem(self) -> None:
        name = self.query_one(Input).value
        problem = self._searched or self._problem(name)
        words = problem or clean_line(repository_note(new_file_path(name)))
        self.query_one("#problem", Label).update(words)

    @on(OptionList.OptionSelected)
    def action_take(self) -> None:
        """Close and return the chosen export, unless the file name has a problem."""
        name = self.query_one(Input).value
        if not self._searched and not self._problem(name):
            redact = self.query_one(Tick).value
            self.dismiss(Export(self._format(), new_file_path(name), redact))

    def _format(self) -> Format:
        option = self.query_one(OptionList).highlighted_option
        return Format(option.id or "") if option is not None else Format.MARKDOWN

    def _suffix_of(self, format: Format) -> str:
        return "" if self._folder else FORMS[format][0]

    def _problem(self, name: str) -> str:
        return file_name_problem(name, forbidden=self._forbidden, folder=self._folder)


def _replaced_line(each: Replaced) -> str:
    return clean_line(f"{counted(each.times, 'place')}: {each.shortened} -> {each.placeholder}")


async def export_sessions(
    app: AppBase,
    sessions: Sequence[Summary],
    home: Path,
    marks: Mapping[str, Mark],
    left_off: LeftOff,
) -> None:
    """Ask for a format and a file, and export the sessions.

    Several sessions are exported to a folder, one file each. `home`: Gemini CLI's folder, where
    gemtui must not write. `marks`: the user's marks by session id. If a mark contains a name, it
    becomes the session's title, except in exported JSON records, which stay as they are stored.
    `left_off`: whether the user redacted the last export.
    """
    titled = [named(each, marks) for each in sessions]
    many = len(sessions) > 1
    title = clean_line(f"{len(sessions):,} sessions" if many else titled[0].title)
    stem = "gemini-sessions" if many else _stem(titled[0])
    screen = ExportScreen(
        title,
        stem,
        previews=[partial(_preview, each) for each in titled],
        forbidden=resolved(home),
        folder=many,
        redact=left_off.redact,
    )
    chosen = await app.push_screen_wait(screen)
    if chosen is None:
        return
    left_off.redact = chosen.redact
    if chosen.format is not Format.JSON:
        sessions = titled
    with app.reporting("Nothing was exported"):
        if many:
            done = await asyncio.to_thread(_write_all, sessions, titled, chosen)
            _say_written(app, chosen, *done)
        else:
            await asyncio.to_thread(_write, sessions[0], chosen, over=False)
            app.show_message(f"Exported to {short_path(chosen.path)}")


def _stem(summary: Summary) -> str:
    return f"{file_name(summary.title[:60])}-{file_name(summary.id)[:8]}"


def _preview(summary: Summary) -> Preview:
    redactor = replaced_in(summary)
    return Preview(redactor.replaced(), _stem(redacted_summary(summary, redactor)))


def _write(summary: Summary, chosen: Export, *, over: bool) -> None:
    with SessionLog.read(summary.path) as log:
        redactor = redact(log, summary) if chosen.redact else None
        data = pieces(log, summary, chosen.format, redactor=redactor)
        write_whole(chosen.path, data, durable=True, special=True, over=over)


def _write_all(
    sessions: Sequence[Summary], titled: Sequence[Summary], chosen: Export
) -> tuple[int, list[str]]:
    """Export each session to a new file of its own.

    Returns how many were exported, and why the others weren't. `titled`: the same sessions, with
    the titles to use for the file names. Raises OSError if the folder can't be created.
    """
    chosen.path.mkdir(exist_ok=True)
    problems = []
    for summary, title in zip(sessions, titled, strict=True):
        try:
            stem = _preview(title).stem if chosen.redact else _stem(title)
            path = _claimed(chosen.path, stem, FORMS[chosen.format][0])
            try:
                _write(summary, chosen._replace(path=path), over=True)
            except BaseException:
                path.unlink()
                raise
        except (GemtuiError, OSError) as error:
            problems.append(f"{summary.title}: {message_of(error)}")
    return len(sessions) - len(problems), problems


def _claimed(folder: Path, stem: str, suffix: str) -> Path:
    """Create an empty file under a free name, and return its path.

    `stem`, `suffix`: the two parts of the name; if the name is taken, a number is put between them.
    Raises OSError.
    """
    for number in count(1):
        path = folder / f"{stem}{f'-{number}' if number > 1 else ''}{suffix}"
        with suppress(FileExistsError):
            write_new(path, b"")
            return path
    raise AssertionError


def _say_written(app: AppBase, chosen: Export, written: int, problems: Sequence[str]) -> None:
    app.show_message(f"Exported {counted(written, 'file')} to {short_path(chosen.path)}")
    if problems:
        title = f"{counted(len(problems), 'session')} could not be exported"
        show_text(app, title, "\n".join(problems), what="the list")
