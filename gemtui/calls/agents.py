"""Find agent definitions that start programs.

Gemini CLI 0.61 starts an agent's own MCP servers whenever the agent is invoked. For an agent on
another server, each start of the CLI runs the command that prints the agent's password
(assets/gemini-cli.md#settings).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from gemtui.files import read_small
from gemtui.paths import gemini_home

_LARGEST: Final = 1_000_000
_HEAD: Final = re.compile(rb"\A\s*---[ \t]*\r?\n(.*?)\r?\n---", re.DOTALL)
_STARTS: Final = re.compile(rb"mcp_servers|agent_card|\\")
"""A key in the front matter, or a backslash, because an escape could spell a key."""


def agents_that_start(project: Path, environ: Mapping[str, str]) -> Iterator[Path]:
    """Yield the user's and the project's agent files that may start programs.

    A file is included if it can't be read or its front matter can't be parsed.
    """
    home = gemini_home(environ)
    folders = (project / ".gemini" / "agents", home / "agents")
    for folder in (*folders, *sorted(home.glob("extensions/*/agents"))):
        yield from filter(_may_start, sorted(folder.glob("*.md")))


def _may_start(file: Path) -> bool:
    text = None
    with suppress(OSError):
        text = read_small(file, _LARGEST)
    head = None if text is None else _HEAD.match(text)
    return head is None or _STARTS.search(head[1]) is not None
