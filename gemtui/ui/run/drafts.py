"""What is written for runs and sessions that are not shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gemtui.ui.run.live_run import LiveRun
    from gemtui.ui.run.registry import RunRegistry


class PromptDrafts:
    """One text for each run, for each session to be continued, and for a new run.

    A run that continues another one has the text of that one, too.
    """

    def __init__(self, registry: RunRegistry) -> None:
        self._registry = registry
        self._texts: dict[str | None, str] = {}

    def exchange(self, here: str | None, text: str, to: LiveRun | None, resume: str | None) -> str:
        """Put a text away and return the one that belongs to what is shown next.

        `here`: the id of the run or session that the text is for, None = a new run. `to`: the run
        that is shown next; without one, `resume` is the session that is continued.
        """
        places = [resume] if to is None else self._places(to)
        if here in places:
            return text
        self._texts[here] = text
        found = [self._texts.pop(place, "") for place in places]
        return "\n\n".join(filter(None, found))

    def _places(self, run: LiveRun) -> list[str | None]:
        """The ids of a run and of those that it continues, the oldest first."""
        return [each.id for each in self._registry.runs if each.latest is run.latest]
