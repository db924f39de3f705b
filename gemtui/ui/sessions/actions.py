"""What the user can do with a session besides reading it; with questions and answers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from gemtui.errors import DeletionFailed, GemtuiError
from gemtui.export_formats import pieces
from gemtui.files import is_folder, resolved, write_whole
from gemtui.jsonout import indented
from gemtui.paths import typed_path
from gemtui.runs.copies import forget
from gemtui.sessions.delete import Deletion, Item, carry_out, plan
from gemtui.sessions.problem import Problem
from gemtui.sessions.records import SessionLog
from gemtui.sessions.summary import Flag, Summary
from gemtui.text import Clean, clean, clean_line, counted, file_name, short_path, size
from gemtui.transcript.model import Block, Message, ToolCall
from gemtui.ui.kit.dialogs import AskScreen, ConfirmForGoodScreen, ConfirmScreen
from gemtui.ui.sessions.export_dialog import Export, ExportScreen

if TYPE_CHECKING:
    from gemtui.ui.kit.app_base import AppBase


async def export(app: AppBase, summary: Summary, home: Path) -> None:
    """Ask for form and file, and write the session there."""
    stem = f"{file_name(summary.title[:60])}-{file_name(summary.id)[:8]}"
    title = clean_line(summary.title)
    chosen = await app.push_screen_wait(ExportScreen(title, stem, forbidden=resolved(home)))
    if chosen is None:
        return
    try:
        await asyncio.to_thread(_write, summary, chosen)
    except (GemtuiError, OSError) as error:
        app.say(f"Nothing was written: {error}", problem=True)
    else:
        app.say(f"Written: {short_path(chosen.path)}")


def _write(summary: Summary, chosen: Export) -> None:
    with SessionLog(summary.path) as log:
        log.refresh()
        write_whole(chosen.path, pieces(log, summary, chosen.format), durable=True, special=True)


async def delete(app: AppBase, summary: Summary, home: Path) -> bool:
    """Delete a session's files, after a question that lists them; return whether it was done."""
    try:
        await _require_rest(app, summary)
        deletion = await asyncio.to_thread(plan, summary, home)
        said = ["It goes to the system's trash, from where you can bring it back.", *_live(summary)]
        if not await _sure(app, "Delete this session?", said, deletion, home, yes="Delete"):
            return False
        await _require_rest(app, summary)
        if done := await _carry_out(app, deletion, home):
            await _forget(app, summary, home)
        return done
    except DeletionFailed as error:
        app.say(str(error), problem=True)
        return False


async def _forget(app: AppBase, summary: Summary, home: Path) -> None:
    """Remove the copies of a deleted session that runs have kept: it would seem lost."""
    try:
        await asyncio.to_thread(forget, app.runs_dir, home, summary.id)
    except OSError as error:
        app.say(f"A copy that a run kept could not be removed: {error}", problem=True)


async def _require_rest(app: AppBase, summary: Summary) -> None:
    """Raises DeletionFailed where a run goes on in a session."""
    if await app.is_running_in(summary.id):
        raise DeletionFailed("A run goes on in this session: stop it first.", left=())


async def _carry_out(app: AppBase, deletion: Deletion, home: Path) -> bool:
    """To the trash; where only that fails, ask whether to do without it."""
    try:
        done = await asyncio.to_thread(carry_out, deletion)
    except DeletionFailed as error:
        rest = await asyncio.to_thread(plan, deletion.session, home)
        unchanged = set(rest.items) <= set(deletion.items)
        if not unchanged:
            raise
        question, said = "Delete for good?", [*_why(error), *_live(rest.session)]
        if not await _sure(app, question, said, rest, home, yes="Delete for good", undone=False):
            return False
        done = await asyncio.to_thread(carry_out, rest, permanent=True)
    app.say(str(done))
    return True


def _why(error: DeletionFailed) -> Iterator[str]:
    yield "The system's trash does not take it. It would be removed, and nothing brings it back."
    yield f"The system says: {error.left[0][1]}"


def _live(summary: Summary) -> Iterator[str]:
    if Flag.LIVE in summary.flags:
        yield "It is still written to: Gemini CLI may be at work in it."


async def _sure(
    app: AppBase,
    question: str,
    said: Sequence[str],
    deletion: Deletion,
    home: Path,
    *,
    yes: str,
    undone: bool = True,
) -> bool:
    """Ask; `undone`: it can be, so that the usual key is enough."""
    lines = [*map(clean_line, said), Clean("")]
    lines += [clean_line(f"In {short_path(home)}, {size(deletion.size)}:")]
    lines += [_line(item, home) for item in deletion.items]
    title = clean_line(deletion.session.title)
    screen = ConfirmScreen if undone else ConfirmForGoodScreen
    asked = screen(clean_line(question), title, lines, yes=yes, no="Keep")
    return await app.push_screen_wait(asked)


def _line(item: Item, home: Path) -> Clean:
    """The size comes first: a long path wraps."""
    path = item.path.relative_to(home) if item.path.is_relative_to(home) else item.path
    inside = f"/  {counted(item.files, 'file')}" if item.folder else ""
    return clean(f"{size(item.size):>9}  {path}{inside}")


def show_raw(app: AppBase, message: Message, block: Block | None) -> None:
    """Show the stored record of a message, the tool call's own part first."""
    record = message.original
    if record is None:
        app.say("There is no stored record for this.")
        return
    if isinstance(block, ToolCall):
        calls = record.get("toolCalls")
        for call in calls if isinstance(calls, list) else ():
            if isinstance(call, dict) and call.get("id") == block.id:
                app.show_text(f"{block.name}, as stored", indented(call), what="the tool call")
                return
    app.show_text(f"Record {message.id}", indented(record), what="the record")


def show_problems(app: AppBase, problems: Sequence[Problem]) -> None:
    """Show what could not be read, each with its file and line."""
    if not problems:
        app.say("Everything could be read.")
        return
    lines = [
        f"{each.path}{'' if each.line is None else f', line {each.line}'}: {each.what}"
        for each in problems
    ]
    app.show_text("What could not be read", "\n".join(lines), what="the list")


async def ask_home(app: AppBase, home: Path) -> Path | None:
    """Ask for another folder that holds Gemini's sessions."""
    chosen = await app.push_screen_wait(
        AskScreen(clean_line("Folder of Gemini CLI"), value=str(home), problem=_no_home)
    )
    return None if chosen is None else _home(chosen)


def _home(text: str) -> Path:
    """The folder that was meant: itself, or the `.gemini` in it."""
    path = typed_path(text.strip()).absolute()
    return path / ".gemini" if is_folder(path / ".gemini") else path


def _no_home(text: str) -> str:
    return "" if text.strip() and is_folder(_home(text)) else "There is no such folder."
