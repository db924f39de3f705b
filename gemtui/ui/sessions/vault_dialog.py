"""Dialogs that turn the vault on or off, and show which sessions are in it.

The vault holds gemtui's own copies of sessions.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING

from textual import on
from textual.app import ComposeResult
from textual.content import Content

from gemtui.extension.status import HookState, extension_state
from gemtui.kept.contents import STOP, VaultStatus, deletion_date_text, vault_status
from gemtui.kept.vault import switch_off, turn_on
from gemtui.sessions.catalog.catalog import Snapshot
from gemtui.sessions.catalog.summary import Summary, title_of
from gemtui.text import clean_line, counted, ellipsis, relative, short_path
from gemtui.ui.draw.theme import glyphs_of
from gemtui.ui.kit.app_base import DialogScreen
from gemtui.ui.kit.clean_widgets import Dialog, Option, OptionList
from gemtui.ui.kit.dialogs import confirm, fact
from gemtui.ui.kit.keys import BY_ID, Where, bindings

if TYPE_CHECKING:
    from gemtui.ui.kit.app_base import AppBase

_WORDS = (
    "Gemini CLI deletes sessions that have not been used for 30 days. It also deletes session "
    "files without anything to resume, and all other files with the same id.",
    "",
    "With the vault on, gemtui keeps a copy of each session file in its own folder. Sessions that "
    "Gemini CLI deletes, even on your command, stay in the list, marked kept, and {key} restores "
    "them. gemtui itself never deletes them unasked.",
)
_MOST = 500
"""Maximum number of sessions to list."""
_TITLE = 26
"""Width in cells of a session's title if the reason for its removal follows."""


async def show_vault(app: AppBase, snapshot: Snapshot) -> Summary | bool | None:
    """Offer to turn the vault on or, if it is on or has contents, show it.

    Returns a session to open, True if the vault has been turned on, or None.
    """
    found = await asyncio.to_thread(_look, snapshot, app.clock())
    if not found.contents.on and not found.contents.files:
        return await _ask_for_it(app, found)
    answer = await app.push_screen_wait(VaultScreen(found, app.clock()))
    if answer == "switch":
        return await (_switch_off(app) if found.contents.on else _switch_on(app))
    return answer if isinstance(answer, Summary) else None


def _look(snapshot: Snapshot, now: datetime) -> VaultStatus:
    hook = extension_state(os.environ).state is HookState.READY
    return vault_status(snapshot, os.environ, now, hook=hook)


async def _ask_for_it(app: AppBase, found: VaultStatus) -> bool | None:
    lines: list[str] = [
        clean_line(line.format(key=BY_ID["sessions.restore"].footer())) for line in _WORDS
    ]
    lines += ["", clean_line(f"The vault is in {short_path(found.contents.folder)}.")]
    if found.listed:
        lines += ["", clean_line(f"Gemini CLI will delete these next ({STOP}):")]
        lines += [clean_line(line) for line in _hit_lines(app, found)]
    about = clean_line("The vault is off, so sessions that Gemini CLI deletes are lost.")
    question = clean_line("Keep all sessions?")
    sure = await confirm(app, question, about, lines, yes="Turn on", no="No")
    return await _switch_on(app) if sure else None


def _title(app: AppBase, session: Summary) -> str:
    return title_of(session, app.name_of(session.id))


def _hit_lines(app: AppBase, found: VaultStatus) -> Iterator[str]:
    for hit in found.listed[:_MOST]:
        yield (
            f"{relative(hit.session.when, app.clock()):>4}  {_title(app, hit.session)}: "
            f"{hit.words()}"
        )


async def _switch_on(app: AppBase) -> bool | None:
    with app.reporting("The vault can't be turned on"):
        await asyncio.to_thread(turn_on)
        app.show_message("The vault is on.")
        return True
    return None


async def _switch_off(app: AppBase) -> None:
    with app.reporting("The vault can't be turned off"):
        await asyncio.to_thread(switch_off)
        app.show_message("The vault is off. Kept sessions stay in it.")


class VaultScreen(DialogScreen[Summary | str]):
    """A dialog about the vault that returns a session to open, "switch", or None.

    "switch" means to turn the vault on or off.
    """

    BINDINGS = bindings(Where.VAULT)

    def __init__(self, found: VaultStatus, now: datetime) -> None:
        super().__init__()
        self._found, self._now = found, now
        self._rows = [("kept", each, "") for each in found.kept[:_MOST]]
        self._rows += [("next", hit.session, hit.words()) for hit in found.listed[:_MOST]]

    def compose(self) -> ComposeResult:
        on = self._found.contents.on
        hint = f"enter open   o turn it {'off' if on else 'on'}   esc close"
        with Dialog(clean_line("The vault"), hint):
            for name, text in self._found.rows():
                yield fact(name, clean_line(text))
            if self._found.listed:
                text = f"{counted(len(self._found.listed), 'session')} at Gemini CLI's next start"
                words = clean_line(f"{text}; {STOP}")
                yield fact("next", words)
            elif self._found.first is not None:
                session, when = self._found.first
                words = clean_line(
                    f"{_title(self.gemtui, session)}, {deletion_date_text(when)}; {STOP}"
                )
                yield fact("next", words)
            if self._rows:
                yield OptionList(*(Option(self._row(*row)) for row in self._rows))

    def _row(self, what: str, session: Summary, why: str) -> Content:
        age = relative(session.when, self._now)
        cut = glyphs_of(self.app).ellipsis
        title = ellipsis(
            clean_line(_title(self.gemtui, session)), _TITLE if why else 2 * _TITLE, mark=cut
        )
        return Content.assemble((f"{what:<5}{age:>4}  ", "dim"), title, (f"  {why}", "dim"))

    @on(OptionList.OptionSelected)
    def _chosen(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(self._rows[event.option_index][1])

    def action_switch(self) -> None:
        self.dismiss("switch")
