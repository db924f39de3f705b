"""`gemtui fork`: create a new chat that begins with a stored session's history."""

from __future__ import annotations

from pathlib import Path

from gemtui.commands.output import json_to_stdout, lines_to_stdout, note
from gemtui.commands.pick_session import choose, index_of_user
from gemtui.paths import gemini_home
from gemtui.runs.undo.fork import Fork, fork_session
from gemtui.text import clean_line


def run(wanted: str, *, before: int | None, project: Path | None, as_json: bool) -> None:
    """Fork the session that `wanted` names, and print the new session's id.

    `before`: fork before the prompt with this number; None copies the whole session. `project`:
    consider only this folder's sessions. Raises SessionNotFound, SessionAmbiguous, ForkFailed,
    OSError.
    """
    with index_of_user() as index:
        session = choose(wanted, index, project=project)
    fork = fork_session(session, gemini_home(), before=before)
    if as_json:
        json_to_stdout(_report(fork, session.id))
    elif fork.session_id is None:
        note(f"there are no messages before prompt {fork.before}: start a new chat instead")
    else:
        lines_to_stdout([clean_line(fork.session_id)])
        note(f"to continue the copy in its project: gemtui run --resume {fork.session_id} PROMPT")


def _report(fork: Fork, of: str) -> dict[str, object]:
    return {
        "version": 1,
        "session": fork.session_id,
        "file": None if fork.path is None else str(fork.path),
        "of": of,
        "before": fork.before,
        "prompt": fork.prompt,
        "project": None if fork.project is None else str(fork.project),
    }
