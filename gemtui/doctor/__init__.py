"""The checks of `gemtui doctor`: what there is on this machine, and what is broken."""

from gemtui.doctor.report import DoctorReport, examine

__all__ = ["DoctorReport", "examine"]
