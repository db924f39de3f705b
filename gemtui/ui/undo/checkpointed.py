"""The prompts and calls that have checkpoints, for the panes to mark."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gemtui.errors import GemtuiError
from gemtui.runs.undo import Checkpointed, checkpointed, prompts_of
from gemtui.sessions.summary import Summary
from gemtui.transcript.model import Transcript
from gemtui.ui.undo.marked_transcript import CheckpointMarks
from gemtui.ui.undo.start import find_stored, prompt_at

if TYPE_CHECKING:
    from gemtui.ui.kit.app_base import AppBase


def read_checkpoints(session: Summary) -> Checkpointed:
    """Return the readable checkpoints of a session. Blocking: reads files."""
    try:
        return checkpointed(session)
    except (GemtuiError, OSError):
        return Checkpointed()


def shown_checkpoints(app: AppBase, session: str, transcript: Transcript) -> CheckpointMarks:
    """Return the prompts and calls of a transcript that have checkpoints.

    `session`: the id of the stored session, of which the transcript shows all or a part. The result
    is empty if nothing can be read.
    """
    try:
        summary = find_stored(app, session)
        first = prompt_at(transcript, 0)(prompts_of(summary))
    except (GemtuiError, OSError):
        return CheckpointMarks()
    before, found = first - 1, read_checkpoints(summary)
    prompts = frozenset(each - before for each in found.prompts if each > before)
    return CheckpointMarks(prompts, found.calls)
