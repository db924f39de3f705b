"""Starting Gemini CLI while the user still types the prompt."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from gemtui.agent.options import AgentOptions
from gemtui.errors import GemtuiError
from gemtui.ui.kit.screens import background
from gemtui.ui.run.next_run import NextRun
from gemtui.ui.run.panes import RunPane, RunPart
from gemtui.ui.run.prompt_sources import own_command, slash_word
from gemtui.ui.run.registry import RunRegistry

_PAUSE = 0.3
"""Seconds without a further change until Gemini CLI is started."""
_LOOK = 5.0
"""Seconds between two checks that the waiting CLI can still be used."""
_LONG = 60.0
"""Seconds after which another CLI takes the place of one that can't be used any more.

If something changes more often, such as the project's files, none is started for this prompt.
"""


class Readying(RunPart):
    """Keeps one Gemini CLI waiting for the prompt that the user is typing.

    It is started with the prompt's first character. If that or the options change, another one
    takes its place. `session`: returns the id of the session that the next prompt continues, or
    None.
    """

    def __init__(
        self,
        screen: RunPane,
        registry: RunRegistry,
        next_run: NextRun,
        session: Callable[[], str | None],
    ) -> None:
        super().__init__(screen)
        self._registry, self._next, self._session = registry, next_run, session
        self._wanted: tuple[str, AgentOptions] | None = None

    def update(self) -> None:
        """Start or end a CLI if the prompt or the options have changed."""
        start, config = self.screen.gemtui.start, self.screen.gemtui.config
        if start.demo or config.ready_minutes <= 0:
            return
        wanted = self.wanted()
        if wanted != self._wanted:
            self._wanted = wanted
            self._keep_ready(config.ready_minutes * 60)

    def wanted(self) -> tuple[str, AgentOptions] | None:
        """Return the first character and the options for which a CLI should wait, or None.

        While the prompt is empty, the CLI goes on waiting.
        """
        run, text = self.screen.run_shown, self.screen.prompt.text
        if run is not None and not run.over:
            return None
        options = replace(self._next.options, resume=self._session())
        if not text:
            is_same = self._wanted is not None and self._wanted[1] == options
            return self._wanted if is_same else None
        if own_command(text) is not None or slash_word(text) is not None:
            return None
        return text[0], options

    @background("ready", exclusive=True)
    async def _keep_ready(self, seconds: float) -> None:
        """Replace the waiting CLI by the one that is wanted, and watch it."""
        await asyncio.sleep(_PAUSE)
        wanted = self._wanted
        with suppress(GemtuiError, OSError):  # sending the prompt says what is wrong
            await asyncio.shield(self._registry.make_ready(wanted, seconds))
        began, has_started = time.monotonic(), False
        while await self._registry.is_ready():
            has_started = True
            await asyncio.sleep(_LOOK)
        if not has_started or time.monotonic() - began >= _LONG:
            self._wanted = None  # so that the next key starts one
