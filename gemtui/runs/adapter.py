"""The adapter to use for Gemini CLI: it keeps the sessions safe that runs resume."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from gemtui.agent import gemini
from gemtui.agent.adapter import Guard
from gemtui.runs.resume import ResumeGuard


class GeminiAdapter(gemini.GeminiAdapter):
    """Runs Gemini CLI; a session is copied before a run resumes it, and watched meanwhile.

    `cli`: the program; None = the one found on this machine. `runs`: the folder that holds the
    runs' folders; None = gemtui's own.
    """

    def __init__(
        self,
        *,
        cli: Path | None = None,
        runs: Path | None = None,
        environ: Mapping[str, str] = os.environ,
        guard: Guard | None = None,
    ) -> None:
        super().__init__(cli=cli, runs=runs, environ=environ, guard=guard or ResumeGuard())
