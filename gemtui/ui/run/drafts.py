"""Unsent prompts for runs and sessions that aren't on screen."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gemtui.ui.run.live_run import LiveRun
    from gemtui.ui.run.registry import RunRegistry


class PromptDrafts:
    """Unsent prompts: one per run, one per session to continue, and one for a new run.

    Runs that were started from one another's queue share their unsent prompts.
    """

    def __init__(self, registry: RunRegistry) -> None:
        self._registry = registry
        self._texts: dict[str | None, str] = {}

    def exchange(self, here: str | None, text: str, to: LiveRun | None, resume: str | None) -> str:
        """Store an unsent prompt, and return the stored one for what is shown next.

        `here`: the id of the run or session that `text` was typed for, or None for a new run. `to`:
        the run that is shown next, or None. `resume`: if `to` is None, the id of the session that
        is shown next, or None for a new run. If `here` is the same as what is shown next, `text`
        itself is returned.
        """
        places = [resume] if to is None else self._places(to)
        if here in places:
            return text
        self._texts[here] = text
        found = [self._texts.pop(place, "") for place in places]
        return "\n\n".join(filter(None, found))

    def _places(self, run: LiveRun) -> list[str | None]:
        """Return the ids of the runs that share unsent prompts with this one.

        The oldest comes first.
        """
        return [each.id for each in self._registry.runs if each.latest is run.latest]
