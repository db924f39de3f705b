"""A verdict in one plain line, for stderr and for exceptions: what, what was said, ways out."""

from __future__ import annotations

import shlex

from gemtui.runs.words import Verdict
from gemtui.text import Clean, clean_line, ellipsis

_DETAIL = 300
_NAMES = ("Gemini", "Google")


def one_line(verdict: Verdict, *, resume: str | None = None) -> Clean:
    """`what (what was said): way out; way out`; `resume` is the session that one can continue."""
    what = verdict.headline
    if not what.startswith(_NAMES):
        what = what[:1].lower() + what[1:]
    said = ellipsis(clean_line("; ".join(verdict.detail.splitlines())), _DETAIL)
    ways = "; ".join(verdict.ways_out)
    if resume and "continue the session" in ways:
        command = f"gemtui run --resume {shlex.quote(resume)}"
        ways = ways.replace("continue the session", f"continue the session ({command})", 1)
    line = f"{what} ({said})" if said else what
    return clean_line(f"{line}: {ways}" if ways else line)
