r"""Notifications of the desktop, asked of the terminal: who understands which, and their bytes.

    notice = Notice(title=clean_line("gemtui: api"), text=clean_line("It asks."))
    stream.write(rung(notice, ringing_terminal(os.environ)))

A terminal that knows none only gets its bell. What is written holds the escape codes made here and
no others: title and text are clean, and what would end a field early is taken out of them.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping

from msgspec import Struct

from gemtui.processes import FOLDER, find_program
from gemtui.text import Clean, ellipsis

BELL = "\a"
TITLE, TEXT = 60, 160
"""Cells that a notification shows; what is longer is cut."""
_TMUX_LIMIT = 2.0
_KITTY, _ITERM, _RXVT = 99, 9, 777
"""The OSC numbers of notifications, by who began with them."""
_KNOWN = {
    "kitty": _KITTY,
    "foot": _RXVT,
    "ghostty": _RXVT,
    "wezterm": _RXVT,
    "rxvt": _RXVT,
    "iterm": _ITERM,
}
"""What a terminal understands, by a part of its name."""


class Notification(Struct, frozen=True, kw_only=True):
    """What happened: where, in `title`, and what, in `text`."""

    title: Clean
    text: Clean


class RingingTerminal(Struct, frozen=True):
    """How a terminal rings. `osc`: the number of its notifications, None = it has none.

    `tmux`: they have to pass tmux, which lets them through with `allow-passthrough on`.
    """

    osc: int | None = None
    tmux: bool = False


def ringing_terminal(environ: Mapping[str, str]) -> RingingTerminal:
    """Return how the terminal around us rings; inside tmux, tmux is asked which one that is."""
    if environ.get("STY"):  # screen lets nothing through
        return RingingTerminal()
    if environ.get("TMUX"):
        name = ask_tmux("display-message", "-p", "#{client_termtype} #{client_termname}")
        return RingingTerminal(_osc(name), tmux=True)
    # one that was started in another one has that one's TERM_PROGRAM, but its own TERM
    names = (environ.get(name) for name in ("TERM", "TERM_PROGRAM", "LC_TERMINAL"))
    return RingingTerminal(next(filter(None, map(_osc, names)), None))


def _osc(name: str | None) -> int | None:
    lower = (name or "").lower()
    return next((osc for part, osc in _KNOWN.items() if part in lower), None)


def ask_tmux(*words: str) -> str | None:
    """Return what tmux answers to a command; None where it does not, within two seconds."""
    tmux = find_program("tmux")
    if tmux is None:
        return None
    try:
        answer = subprocess.run(
            [tmux, *words],
            cwd=FOLDER,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_TMUX_LIMIT,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return answer.stdout.decode(errors="replace").strip() or None


def rung(notice: Notification, terminal: RingingTerminal) -> str:
    """Return what rings the bell of a terminal and has it show a notification."""
    codes = (f"\x1b]{code}\x1b\\" for code in _codes(notice, terminal.osc))
    return BELL + "".join(map(_through_tmux, codes) if terminal.tmux else codes)


def _codes(notice: Notification, osc: int | None) -> Iterator[str]:
    title, text = ellipsis(notice.title, TITLE), ellipsis(notice.text, TEXT)
    match osc:
        case 9:
            yield f"9;{title}: {text}"
        case 99:
            yield f"99;i=gemtui:d=0;{title}"
            yield f"99;i=gemtui:p=body;{text}"
        case 777:
            yield f"777;notify;{title.replace(';', ',')};{text}"


def _through_tmux(code: str) -> str:
    return "\x1bPtmux;" + code.replace("\x1b", "\x1b\x1b") + "\x1b\\"
