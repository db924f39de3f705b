"""The checks of `gemtui doctor`: facts about this machine, and problems."""

from gemtui.doctor.report import DoctorReport, examine

__all__ = ["DoctorReport", "examine"]
