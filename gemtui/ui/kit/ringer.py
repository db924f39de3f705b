"""Alerts for a user who is looking elsewhere, limited in frequency."""

from __future__ import annotations

from collections.abc import Callable

from gemtui.notify import Notification
from gemtui.text import Clean

PAUSE = 3.0
"""Seconds between two alerts; events in between are combined into the next alert."""


class Ringer:
    """Limits how often alerts are sent.

    `sound(notice)` sends an alert. `later(seconds, call)` calls a function once after a delay.
    """

    def __init__(
        self,
        sound: Callable[[Notification], object],
        later: Callable[[float, Callable[[], None]], object],
    ) -> None:
        self._sound, self._later = sound, later
        self._held: list[Notification] = []
        self._pausing = False

    def ring(self, notice: Notification) -> None:
        """Send an alert, or during a pause add it to the one sent when the pause ends."""
        if self._pausing:
            self._held.append(notice)
        else:
            self._ring(notice)

    def _ring(self, notice: Notification) -> None:
        self._pausing = True
        self._sound(notice)
        self._later(PAUSE, self._go_on)

    def _go_on(self) -> None:
        held, self._held = self._held, []
        self._pausing = False
        if held:
            more = f" (and {len(held) - 1} more)" if len(held) > 1 else ""
            self._ring(Notification(title=held[-1].title, text=Clean(f"{held[-1].text}{more}")))
