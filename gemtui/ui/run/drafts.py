"""Unsent prompts for the runs and sessions that are not shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gemtui.ui.run.live_run import LiveRun
    from gemtui.ui.run.registry import RunRegistry


class PromptDrafts:
    """One unsent prompt for each run, for each session to be continued, and for a new run.

    A run that continues another run inherits that run's unsent prompt.
    """

    def __init__(self, registry: RunRegistry) -> None:
        self._registry = registry
        self._texts: dict[str | None, str] = {}

    def exchange(self, here: str | None, text: str, to: LiveRun | None, resume: str | None) -> str:
        """Store an unsent prompt, and return the one for the run or session to show next.

        `here`: the id of the run or session that `text` is for; None for a new run. `to`: the run
        to show next; if it is None, `resume` is the session to continue, None for a new run.
        """
        places = [resume] if to is None else self._places(to)
        if here in places:
            return text
        self._texts[here] = text
        found = [self._texts.pop(place, "") for place in places]
        return "\n\n".join(filter(None, found))

    def _places(self, run: LiveRun) -> list[str | None]:
        """Return the ids of a run and of the runs that it continues, the oldest first."""
        return [each.id for each in self._registry.runs if each.latest is run.latest]
