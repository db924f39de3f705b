"""Dialogs that install and remove gemtui's extension for Gemini CLI."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from gemtui.agent.detect import Detected, detect_cli
from gemtui.extension.install import (
    before_install,
    install_extension,
    removal_notes,
    remove_extension,
)
from gemtui.extension.status import ExtensionState, HookState, extension_state
from gemtui.text import clean_line
from gemtui.ui.kit.dialogs import Choice, ChooseScreen, confirm

if TYPE_CHECKING:
    from gemtui.ui.kit.app_base import AppBase

_TITLE = "Gemini CLI extension"
_RUNS = "Installed. Its hooks run in every Gemini CLI session."


@contextmanager
def _alone(app: AppBase) -> Iterator[bool]:
    """Prevent other changes to the extension during the `with` block.

    Yields False if such a block is already active; the caller must then change nothing, because the
    extension may be half-installed.
    """
    if app.at_extension:
        yield False
        return
    app.at_extension = True
    try:
        yield True
    finally:
        app.at_extension = False


async def show_extension(app: AppBase) -> None:
    """Offer to install, repair or remove the extension."""
    with _alone(app) as alone:
        if alone:
            await _show(app)


async def ask_to_install(app: AppBase) -> bool:
    """Offer to install the extension, and return whether its hooks work afterwards."""
    with _alone(app) as alone:
        return alone and await _install(app)


async def _show(app: AppBase) -> None:
    if app.start.demo:
        app.show_message("Not available in the demo. Quit it first.")
        return
    state = await asyncio.to_thread(extension_state)
    if state.state is HookState.MISSING:
        await _install(app)
        return
    if not state.installed:
        app.show_message(str(state.problem), problem=True)
        return
    about = _RUNS if state.problem is None else clean_line(state.problem)
    choices = [Choice("install", "Reinstall", "rewrite its files")]
    choices += [Choice("remove", "Remove it", "asks first")]
    chosen = await app.push_screen_wait(ChooseScreen(_TITLE, (about,), choices))
    if chosen == "install":
        await _do(
            app, install_extension, "Installed. Its hooks run in every session started from now on."
        )
    elif chosen == "remove" and await _agreed(
        app, "Remove the extension?", removal_notes(), yes="Remove it", no="Keep it"
    ):
        await _do(app, remove_extension, "Removed. Sessions started from now on run without it.")


async def _install(app: AppBase) -> bool:
    yes = await _agreed(
        app, "Install the extension?", before_install(), yes="Install it", no="Cancel"
    )
    message = "Installed. Its hooks run in every session started from now on."
    return yes and await _do(app, install_extension, message)


async def _agreed(app: AppBase, question: str, words: Iterable[str], *, yes: str, no: str) -> bool:
    lines = [line for each in words for line in (clean_line(each), "")]
    return await confirm(app, _TITLE, question, lines[:-1], yes=yes, no=no)


async def _do(app: AppBase, action: Callable[[Detected], ExtensionState], said: str) -> bool:
    """Run an action on the extension on a background thread, and show its result.

    The action takes seconds. `said`: the message to show after success. Returns whether the
    extension works now.
    """
    work = asyncio.create_task(asyncio.to_thread(lambda: action(detect_cli())))
    while not work.done():
        app.show_message("Gemini CLI is working; this can take a few seconds.")
        await asyncio.wait({work}, timeout=app.NOTIFICATION_TIMEOUT)
    with app.reporting():
        found = work.result()
        done = found.problem is None or not found.installed
        app.show_message(said if done else str(found.problem), problem=not done)
        return found.problem is None
    return False
