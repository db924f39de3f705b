"""A dialog to jump to a day in the list of sessions."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta

from gemtui.sessions.listing import DayCount
from gemtui.text import Clean, counted
from gemtui.ui.draw.lines import own
from gemtui.ui.kit.dialogs import Choice, ChooseScreen


def day_screen(days: Sequence[DayCount], today: date, at: date | None) -> ChooseScreen:
    """Return a dialog that closes with the key of the first session of the chosen day.

    `at`: the day the cursor starts on; None means the first day.
    """
    choices = [
        Choice(each.first, _name(each.day, today), own(counted(each.count, "session")))
        for each in days
    ]
    places = {each.day: place for place, each in enumerate(days)}
    return ChooseScreen(own("Go to a day"), (), choices, at=places.get(at or today, 0))


def _name(day: date, today: date) -> Clean:
    named = {today: "  today", today - timedelta(days=1): "  yesterday"}
    return own(f"{day:%Y-%m-%d  %a}{named.get(day, '')}")
