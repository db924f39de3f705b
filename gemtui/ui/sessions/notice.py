"""A notice in place of a transcript or list: what happened, and which keys help."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.content import Content
from textual.message import Message

from gemtui.agents import WORDS
from gemtui.sessions.catalog.catalog import Snapshot
from gemtui.sessions.store.store import StoreState
from gemtui.text import clean, counted, short_path
from gemtui.ui.draw.theme import glyphs_of
from gemtui.ui.kit.bars import key_line
from gemtui.ui.kit.clean_widgets import Static
from gemtui.ui.kit.keys import Where, bindings
from gemtui.ui.kit.messages import BackRequested, CopyRequested


class NoticePane(VerticalScroll, can_focus=True):
    """A notice: a heading, text that can be selected and copied, and keys that help."""

    BINDINGS = bindings(Where.NOTICE)
    KEYS: ClassVar[Sequence[str]] = ("notice.again", "notice.copy", "notice.back")
    """Ids of the keys that help."""

    class AgainRequested(Message):
        """Request to repeat what failed."""

    def __init__(self) -> None:
        super().__init__()
        self._text = ""

    def compose(self) -> ComposeResult:
        yield Static()

    def show_notice(self, heading: str, lines: Sequence[str]) -> None:
        """Show a heading with lines of text below it, followed by the keys that help."""
        self._text = "\n".join((heading, "", *lines))
        parts = [Content.styled(heading, "bold"), Content(""), *map(Content, lines), Content("")]
        parts += [key_line(key, glyphs_of(self.app), room=5) for key in self.KEYS]
        self.query_one(Static).update(Content("\n").join(parts))

    def action_copy(self) -> None:
        self.post_message(CopyRequested(self._text, "this message"))

    def action_again(self) -> None:
        """Post a request to repeat what failed."""
        self.post_message(self.AgainRequested())

    def action_back(self) -> None:
        self.post_message(BackRequested())


class EmptyStore(NoticePane):
    """The notice for an empty session list: where gemtui looked, and what to do."""

    BINDINGS = bindings(Where.EMPTY)
    KEYS = ("empty.again", "empty.elsewhere", "empty.copy", "app.help", "app.back")

    class ElsewhereRequested(Message):
        """Request to look for sessions in a different folder."""

    def explain(self, home: Path, snapshot: Snapshot) -> None:
        """Explain why there are no sessions in `home`, Gemini CLI's folder.

        `snapshot`: the result of looking for sessions there.
        """
        self.show_notice(*_words(home, snapshot))

    def action_elsewhere(self) -> None:
        self.post_message(self.ElsewhereRequested())


_PROGRAMS = [words.program for words in WORDS.values()]
_START = (
    f"gemtui reads the sessions of {', '.join(_PROGRAMS[:-1])} and {_PROGRAMS[-1]}.",
    "Start one of them in a project and ask it something. The session will appear here.",
    "To try gemtui without sessions, run  gemtui --demo",
)


def _words(home: Path, snapshot: Snapshot) -> tuple[str, list[str]]:
    place = short_path(home)
    match snapshot.state:
        case StoreState.MISSING:
            heading = "No sessions here yet."
            lines = [
                f"Gemini CLI stores sessions in  {place}/tmp",
                "That folder does not exist.",
                "",
            ]
            lines += _START
        case StoreState.NO_FOLDER:
            heading = "Gemini CLI can't store sessions here."
            why = [f"  {problem.path}  {problem.what}" for problem in snapshot.unreadable[:1]]
            lines = [f"Gemini CLI stores sessions in  {place}/tmp", *why, ""]
            lines += ["Move it out of the way, then try again."]
        case StoreState.UNREADABLE:
            heading = "The sessions can't be read."
            why = [f"  {problem.path}  {problem.what}" for problem in snapshot.unreadable]
            lines = ["gemtui can't read:", *why, ""]
            lines += ["Give yourself permission to read it, then try again."]
        case _:
            heading = "No sessions yet."
            lines = [
                f"Gemini CLI stores sessions in  {place}/tmp/<project>/chats",
                f"There are no session files in {_folders(snapshot)}.",
                *(f"  {problem.path}  {problem.what}" for problem in snapshot.unreadable),
                "",
                *_START,
            ]
    return heading, [clean(line) for line in lines]


def _folders(snapshot: Snapshot) -> str:
    return counted(sum(path.name == "chats" for path in snapshot.looked), "project")
