"""Which prompts have a checkpoint before them, read in a thread for the panes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gemtui.errors import GemtuiError
from gemtui.runs.undo import Checkpointed, checkpointed, prompts_of
from gemtui.sessions.summary import Summary
from gemtui.transcript.model import Transcript
from gemtui.ui.undo.start import find_stored, prompt_at

if TYPE_CHECKING:
    from gemtui.ui.kit.app_base import AppBase

_NONE = Checkpointed(0, None, frozenset())


def read_checkpoints(session: Summary) -> Checkpointed:
    """Return what checkpoints there are of a session, as far as they can be read."""
    try:
        return checkpointed(session)
    except (GemtuiError, OSError):
        return _NONE


def shown_checkpoints(app: AppBase, session: str, transcript: Transcript) -> frozenset[int]:
    """Return which prompts of a transcript have a checkpoint, by number, 1 = the first one shown.

    `session`: the id of the stored session of which the transcript shows all or a part. Empty where
    nothing can be read.
    """
    try:
        summary = find_stored(app, session)
        first = prompt_at(transcript, 0)(prompts_of(summary))
    except (GemtuiError, OSError):
        return frozenset()
    before = first - 1
    return frozenset(each - before for each in read_checkpoints(summary).prompts if each > before)
