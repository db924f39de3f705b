"""Find agent definitions that bring their own MCP servers.

Gemini CLI 0.61 starts such a server when the agent is invoked (assets/gemini-cli.md#settings).
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
_SERVERS: Final = re.compile(rb"mcp_servers|\\")
"""The key in the front matter, or a backslash, since an escape could spell it."""


def agents_with_servers(project: Path, environ: Mapping[str, str]) -> Iterator[Path]:
    """Yield the agent files, of the project and of the user, that may start servers.

    A file is included if it can't be read or its front matter can't be parsed.
    """
    home = gemini_home(environ)
    folders = (project / ".gemini" / "agents", home / "agents")
    for folder in (*folders, *sorted(home.glob("extensions/*/agents"))):
        yield from filter(_may_start_servers, sorted(folder.glob("*.md")))


def _may_start_servers(file: Path) -> bool:
    text = None
    with suppress(OSError):
        text = read_small(file, _LARGEST)
    head = None if text is None else _HEAD.match(text)
    return head is None or _SERVERS.search(head[1]) is not None
