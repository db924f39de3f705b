"""The checks of `gemtui doctor`: what there is on this machine, and what is broken."""

from gemtui.doctor.report import Report, examine

__all__ = ["Report", "examine"]
