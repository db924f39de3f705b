"""The adapter as everybody should use it: what a run resumes is kept safe."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from gemtui.agent import gemini
from gemtui.agent.adapter import Guard
from gemtui.runs.resume import ResumeGuard


class GeminiAdapter(gemini.GeminiAdapter):
    """Runs Gemini CLI; a session that a run resumes is copied before and looked after meanwhile.

    `cli`: the program, None = the one found on this machine. `runs`: the folder for run folders,
    None = gemtui's own.
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
