"""Format times and token counts for the screen."""

from __future__ import annotations

from datetime import datetime

from gemtui.ui.draw.theme import Look


def short_count(number: int) -> str:
    """Format a number of tokens in at most five characters, such as `41` or `1.9k`."""
    for size, letter in ((1_000_000, "M"), (1_000, "k")):
        if number >= size - size // 2000:
            value = number / size
            return f"{value:.0f}{letter}" if value >= 99.95 else f"{value:.1f}{letter}"
    return str(number)


def format_time(when: datetime, look: Look) -> str:
    """Format a date and time relative to today, such as `12:04` or `yesterday 23:11`."""
    local = when.astimezone(look.tz)
    match (look.today - local.date()).days:
        case 0:
            return f"{local:%H:%M}"
        case 1:
            return f"yesterday {local:%H:%M}"
        case _:
            return f"{local:%Y-%m-%d %H:%M}"


def time_of_day(when: datetime, look: Look) -> str:
    """Format a time of day including seconds."""
    return f"{when.astimezone(look.tz):%H:%M:%S}"
