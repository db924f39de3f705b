"""The checks of `gemtui doctor`: the facts about this machine, and problems."""

from gemtui.doctor.report import DoctorReport, examine

__all__ = ["DoctorReport", "examine"]
