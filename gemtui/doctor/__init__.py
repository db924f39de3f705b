"""What gemtui finds on this machine, and what is broken (`gemtui doctor`)."""

from gemtui.doctor.report import Report, examine

__all__ = ["Report", "examine"]
