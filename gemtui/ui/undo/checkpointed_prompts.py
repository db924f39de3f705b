"""The prompts that have a checkpoint before them, for the panes to mark."""

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
    """Return the readable checkpoints of a session. Blocking: reads files."""
    try:
        return checkpointed(session)
    except (GemtuiError, OSError):
        return _NONE


def shown_checkpoints(app: AppBase, session: str, transcript: Transcript) -> frozenset[int]:
    """Return the 1-based numbers of a transcript's prompts that have checkpoints.

    `session`: the id of the stored session, of which the transcript shows all or a part. The result
    is empty if nothing can be read.
    """
    try:
        summary = find_stored(app, session)
        first = prompt_at(transcript, 0)(prompts_of(summary))
    except (GemtuiError, OSError):
        return frozenset()
    before = first - 1
    return frozenset(each - before for each in read_checkpoints(summary).prompts if each > before)
