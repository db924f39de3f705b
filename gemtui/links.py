"""Links in a terminal (OSC 8): to files and addresses that gemtui itself has resolved.

Never link what a model, a tool or a session names: a click would open what they chose.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path

from gemtui.text import clean_line, short_path

_KNOWN = ("alacritty", "foot", "ghostty", "iterm", "kitty", "vscode", "wezterm")
"""Parts of the names of terminals that show links."""
_FIRST_VTE = 5000
"""The first version of VTE, the widget in GNOME Terminal and others, that shows links."""


def shows_links(environ: Mapping[str, str]) -> bool:
    """Return whether the terminal is known to show links.

    tmux and GNU screen may drop them, so that nothing is known inside of these.
    """
    if environ.get("TMUX") or environ.get("STY"):
        return False
    term = environ.get("TERM", "")
    if term.startswith("xterm"):  # other terminals may have inherited these variables
        vte = environ.get("VTE_VERSION", "")
        if environ.get("WT_SESSION") or (vte.isdecimal() and int(vte) >= _FIRST_VTE):
            return True
    names = f"{term} {environ.get('TERM_PROGRAM', '')}".lower()
    return term != "dumb" and any(known in names for known in _KNOWN)


def address_of(path: Path) -> str:
    """Return the address of a file, with the computer's name, as terminals expect it."""
    return path.absolute().as_uri().replace("file://", f"file://{socket.gethostname()}", 1)


def linker(targets: Iterable[Path | str]) -> Callable[[str], str]:
    """Return a function that turns paths and addresses in a line of clean text into links.

    `targets`: the paths, which are found as they are and with `~`, and the addresses.
    """
    addresses: dict[str, str] = {}
    for target in targets:
        if isinstance(target, Path):
            spellings = (clean_line(str(target)), short_path(target))
            addresses |= dict.fromkeys(spellings, address_of(target))
        else:
            addresses[target] = target
    names = "|".join(map(re.escape, sorted(addresses, key=len, reverse=True)))
    name = re.compile(rf"(?<!\S)(?:{names})(?=[:;,]?(?:\s|$))")

    def link(match: re.Match[str]) -> str:
        return f"\x1b]8;;{addresses[match[0]]}\x1b\\{match[0]}\x1b]8;;\x1b\\"

    return partial(name.sub, link)
