"""From a recorded call to the place in its session where it stands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gemtui.sessions.summary import Summary

if TYPE_CHECKING:
    from gemtui.ui.app import GemtuiApp


async def read_session(app: GemtuiApp, session: Summary | None, call: str) -> None:
    """Show a session with the cursor on a tool call, by its id ("" = at its start)."""
    if session is None:
        app.say("This session is not there any more.", problem=True)
        return
    await app.action_sessions()
    screen = app.sessions
    screen.show(session)
    if call:
        screen.pane.go_to_call(call)
