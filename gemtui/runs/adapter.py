"""The adapter to use for Gemini CLI: it keeps the sessions safe that runs resume."""

from __future__ import annotations

from gemtui.agent import gemini
from gemtui.runs.resume import ResumeGuard


class GeminiAdapter(gemini.GeminiAdapter):
    """Runs Gemini CLI; a session is copied before a run resumes it, and watched meanwhile.

    `cli`: the program; None = the one found on this machine. `runs`: the folder that holds the
    runs' folders; None = gemtui's own.
    """

    _guard = ResumeGuard()
