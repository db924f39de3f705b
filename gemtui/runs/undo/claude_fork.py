"""Let Claude Code fork one of its sessions (assets/agents.md#forks-of-claude-code)."""

from __future__ import annotations

import os
from pathlib import Path
from uuid import uuid4

from gemtui.agent.claude import STARTS_NOTHING, STREAM, ClaudeDriver
from gemtui.errors import ForkFailed
from gemtui.files import is_folder
from gemtui.jsonout import encode
from gemtui.processes import finished
from gemtui.sessions.catalog.summary import Summary

_EMPTY = {"type": "user", "message": {"role": "user", "content": []}, "shouldQuery": False}
"""A message that makes Claude Code store the fork, adds nothing to it, and asks no model."""
_LIMIT = 60


def fork_by_claude(session: Summary, last: str | None) -> tuple[str, Path]:
    """Start Claude Code to fork a session; return the new session's id and file.

    `last`: the id of the last line to copy; None copies everything. Raises ForkFailed, for example
    if the line is before a compaction.
    """
    cli = ClaudeDriver().find(os.environ)
    if cli is None:
        raise ForkFailed(ClaudeDriver.not_found)
    if session.folder is None or not is_folder(session.folder):
        raise ForkFailed(
            f"the folder of {session.id} does not exist, and Claude Code forks a session only there"
        )
    id = str(uuid4())
    words = [str(cli.path), *STREAM, *STARTS_NOTHING, "--fork-session"]
    words += [f"--resume={session.id}", f"--session-id={id}"]
    words += [] if last is None else [f"--resume-session-at={last}"]
    ended = finished(words, _LIMIT, stdin=encode(_EMPTY) + b"\n", folder=session.folder)
    path = session.path.with_name(f"{id}.jsonl")
    if ended is None or not path.is_file():
        reason = "" if ended is None else ended.stderr.decode(errors="replace").strip()
        raise ForkFailed(
            f"Claude Code did not fork {session.id}: {reason or 'it did not answer'}. It can fork "
            "a stored session after its last compaction, but not before it."
        )
    return id, path
