"""Find out which prompts and calls have checkpoints, so that panes can mark them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gemtui.errors import GemtuiError
from gemtui.runs.undo.undo import Checkpointed, checkpointed, prompts_of
from gemtui.sessions.catalog.summary import Summary
from gemtui.transcript.model import Transcript
from gemtui.ui.undo.marked_transcript import CheckpointMarks
from gemtui.ui.undo.start import find_stored, prompt_at

if TYPE_CHECKING:
    from gemtui.ui.kit.app_base import AppBase


def read_checkpoints(session: Summary) -> Checkpointed:
    """Return which of a session's prompts and calls have checkpoints.

    If the checkpoints can't be read, the result is empty. Blocking: reads files.
    """
    try:
        return checkpointed(session)
    except (GemtuiError, OSError):
        return Checkpointed()


def shown_checkpoints(app: AppBase, session: str, transcript: Transcript) -> CheckpointMarks:
    """Return which prompts and calls in a transcript have checkpoints.

    `session`: the id of the stored session; the transcript may show only a part of it. If the
    checkpoints can't be read, the result is empty. Blocking: reads files.
    """
    try:
        summary = find_stored(app, session)
        first = prompt_at(transcript, 0)(prompts_of(summary))
    except (GemtuiError, OSError):
        return CheckpointMarks()
    before, found = first - 1, read_checkpoints(summary)
    prompts = frozenset(each - before for each in found.prompts if each > before)
    return CheckpointMarks(prompts, found.calls)
