"""Saving text that was made from sessions to a new file."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from gemtui.files import resolved, write_new
from gemtui.text import short_path
from gemtui.ui.kit.app_base import AppBase
from gemtui.ui.kit.dialogs import AskScreen, file_name_problem, new_file_path


async def save_text(
    app: AppBase, text: str, offered: Callable[[], str], *, home: Path, question: str
) -> None:
    """Ask for a file's name, save a text under it, and show where it is.

    * `offered`: returns the name to suggest. Blocking: called on a background thread.
    * `home`: Gemini CLI's folder, where gemtui must not write.
    * `question`: the title of the dialog.
    """
    forbidden = resolved(home)
    name = await app.push_screen_wait(
        AskScreen(
            question,
            value=await asyncio.to_thread(offered),
            problem=lambda name: file_name_problem(name, forbidden=forbidden),
        )
    )
    if name is None:
        return
    path = new_file_path(name)
    with app.reporting("The file was not saved"):
        await asyncio.to_thread(write_new, path, text.encode(errors="replace"))
        app.show_message(f"Saved: {short_path(path)}")
