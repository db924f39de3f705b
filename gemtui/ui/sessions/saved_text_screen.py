"""Screens with text generated from sessions, which can be saved to a file."""

from __future__ import annotations

import asyncio
from pathlib import Path

from textual import work

from gemtui.files import resolved, write_new
from gemtui.text import Clean, short_path
from gemtui.ui.kit.dialogs import AskScreen, file_name_problem, new_file_path
from gemtui.ui.kit.screens import DIALOG, FullScreen


class SavedTextScreen(FullScreen[None]):
    """A screen that shows generated text and can save it to a file.

    `home`: Gemini CLI's folder, where gemtui must not write.
    """

    text: str | None = None
    """The text to save, or None if there is none yet."""

    def __init__(self, home: Path, *, id: str) -> None:
        super().__init__(id=id)
        self._home = home

    def question(self) -> Clean:
        """Return the title of the dialog that asks where to save the text."""
        raise NotImplementedError

    def offered(self) -> str:
        """Return a suggested name for the file to save the text in.

        Blocking: call this on a background thread.
        """
        raise NotImplementedError

    def can(self, action: str) -> bool:
        """Return False for "write" if there is no text."""
        return action != "write" or self.text is not None

    @work(exclusive=True, group=DIALOG)
    async def action_write(self) -> None:
        text, forbidden = self.text, resolved(self._home)
        offered = await asyncio.to_thread(self.offered)
        name = await self.gemtui.push_screen_wait(
            AskScreen(
                self.question(),
                value=offered,
                problem=lambda name: file_name_problem(name, forbidden=forbidden),
            )
        )
        if name is None or text is None:
            return
        path = new_file_path(name)
        with self.gemtui.reporting("The file was not saved"):
            await asyncio.to_thread(write_new, path, text.encode(errors="replace"))
            self.gemtui.show_message(f"Saved: {short_path(path)}")
