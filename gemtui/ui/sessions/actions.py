"""Actions on sessions, with their dialogs: export, stored records and problems."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from gemtui.errors import GemtuiError
from gemtui.export_formats import Format, pieces
from gemtui.files import is_folder, resolved, write_new, write_whole
from gemtui.jsonout import indented
from gemtui.paths import typed_path
from gemtui.sessions.catalog.redacted import redact, redacted_summary, replaced_in
from gemtui.sessions.catalog.summary import Summary
from gemtui.sessions.read.session_log import SessionLog
from gemtui.sessions.store.store import Problem
from gemtui.text import clean_line, counted, file_name, short_path
from gemtui.transcript.model import Block, Message, ToolCall
from gemtui.ui.kit.dialogs import AskScreen
from gemtui.ui.kit.text_view import show_text
from gemtui.ui.sessions.export_dialog import FORMS, Export, ExportScreen, Preview
from gemtui.ui.sessions.marking import named

if TYPE_CHECKING:
    from gemtui.marks import Mark
    from gemtui.ui.kit.app_base import AppBase


async def export_sessions(app: AppBase, sessions: Sequence[Summary], home: Path, marks: Mapping[str, Mark]) -> None:
    """Ask for a format and a file, and export the sessions.

    Several sessions are exported to a folder, one file each. `home`: Gemini CLI's folder, where
    gemtui must not write. `marks`: the user's marks by session id. If a mark contains a name, it
    becomes the session's title, except in exported JSON records, which stay as they are stored.
    """
    titled = [named(each, marks) for each in sessions]
    many = len(sessions) > 1
    title = clean_line(f"{len(sessions):,} sessions" if many else titled[0].title)
    stem = "gemini-sessions" if many else _stem(titled[0])
    screen = ExportScreen(
        title, stem, previews=[partial(_preview, each) for each in titled], forbidden=resolved(home), folder=many
    )
    chosen = await app.push_screen_wait(screen)
    if chosen is None:
        return
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
    with SessionLog(summary.path) as log:
        log.refresh()
        redactor = redact(log, summary) if chosen.redact else None
        data = pieces(log, summary, chosen.format, redactor=redactor)
        write_whole(chosen.path, data, durable=True, special=True, over=over)


def _write_all(sessions: Sequence[Summary], titled: Sequence[Summary], chosen: Export) -> tuple[int, list[str]]:
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
            problems.append(f"{summary.title}: {error}")
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


def show_raw(app: AppBase, message: Message, block: Block | None) -> None:
    """Show a message's stored record.

    For a tool call, only the part of the record for that call is shown.
    """
    record = message.original
    if record is None:
        app.show_message("There is no stored record of this block.")
        return
    if isinstance(block, ToolCall):
        calls = record.get("toolCalls")
        for call in calls if isinstance(calls, list) else ():
            if isinstance(call, dict) and call.get("id") == block.id:
                show_text(app, f"{block.name}, as stored", indented(call), what="the tool call")
                return
    show_text(app, f"Record {message.id}", indented(record), what="the record")


def show_problems(app: AppBase, problems: Sequence[Problem]) -> None:
    """Show what couldn't be read in the store, with the file and line of each problem."""
    if not problems:
        app.show_message("All session files could be read.")
        return
    lines = [f"{each.path}{'' if each.line is None else f', line {each.line}'}: {each.what}" for each in problems]
    show_text(app, "Unreadable files", "\n".join(lines), what="the list")


async def choose_home(app: AppBase, home: Path) -> Path | None:
    """Ask for a different folder with Gemini CLI sessions; return None if cancelled.

    `home`: the current folder.
    """
    chosen = await app.push_screen_wait(AskScreen(clean_line("Gemini CLI's folder"), value=str(home), problem=_no_home))
    return None if chosen is None else _home(chosen)


def _home(text: str) -> Path:
    """Return the folder that the user typed, or its `.gemini` subfolder if it has one."""
    path = typed_path(text.strip()).absolute()
    return path / ".gemini" if is_folder(path / ".gemini") else path


def _no_home(text: str) -> str:
    return "" if text.strip() and is_folder(_home(text)) else "Folder not found."
