"""`gemtui doctor`: print the report, as lines or as JSON."""

from __future__ import annotations

from gemtui.commands.output import lines_to_stdout, note, to_stdout
from gemtui.doctor import examine
from gemtui.jsonout import encode


def run(*, as_json: bool) -> int:
    """Print the report; return 1 if there are problems."""
    report = examine()
    if as_json:
        if report.files.cache_renewed is not None:
            note(f"{report.files.cache}: {report.files.cache_renewed}")
        to_stdout([encode(report.to_dict()), b"\n"])
    else:
        lines_to_stdout(report.lines())
    return 1 if report.problems else 0
