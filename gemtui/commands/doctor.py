"""`gemtui doctor`: print a report on the installation, as lines or as JSON."""

from __future__ import annotations

from gemtui.commands.output import json_to_stdout, lines_to_stdout, note
from gemtui.doctor import examine


def run(*, as_json: bool) -> int:
    """Print a report on the installation; return 1 if it contains problems."""
    report = examine()
    if as_json:
        if report.files.cache_renewed is not None:
            note(f"{report.files.cache}: {report.files.cache_renewed}")
        json_to_stdout(report.to_dict())
    else:
        lines_to_stdout(report.lines())
    return 1 if report.problems else 0
