"""Extract the parts of the CLI's stderr that matter to the user.

If a run succeeds, stderr is only noise, but if the CLI fails to start, only stderr says why.
"""

from __future__ import annotations

import re
from pathlib import Path

from gemtui.files import read_end
from gemtui.text import clean

TAIL = 16 * 1024
"""How many bytes of stderr are read to explain how a run ended."""
_WORDS = 2000

_USAGE = re.compile(r"^Usage: gemini \[options\]", re.MULTILINE)
"""The first line of the CLI's help, which is noise; any error comes before it."""
_NOISE = re.compile(
    r"YOLO mode is enabled|\[STARTUP\]|^\(node:\d+\)|^\(Use `node --trace-"
    r"|DeprecationWarning|^Loaded cached credentials|256-color|true ?color|^Warning: .*(TERM|color)"
    r"|^\s+at .*\(?(file|node):|^Full report available at:|^Ripgrep is not available",
    re.IGNORECASE,
)


def meaningful_lines(text: str) -> str:
    """Return the lines of stderr output, without noise, blank lines and duplicates.

    Control characters are escaped. Only the last 2,000 characters are returned.
    """
    said = _USAGE.split(clean(text))[0]
    lines = (line.rstrip() for line in said.split("\n"))
    kept = dict.fromkeys(line for line in lines if line.strip() and not _NOISE.search(line))
    return "\n".join(kept)[-_WORDS:]


def stderr_end(path: Path) -> str:
    """Return the end of a stderr file, unfiltered; "" if the file can't be read."""
    try:
        return read_end(path, TAIL).decode("utf-8", "replace")
    except OSError:
        return ""


def last_words(path: Path) -> str:
    """Return the meaningful lines at the end of a stderr file."""
    return meaningful_lines(stderr_end(path))
