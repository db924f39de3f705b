"""Examine the terminal for `gemtui doctor`."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from gemtui.notify import ask_tmux, ringing_terminal

_PASS = "allow-passthrough on"


@dataclass(frozen=True, slots=True, kw_only=True)
class Terminal:
    """The terminal that the app would use.

    `columns`, `rows`: None if stdout is not a terminal. `set_clipboard`: tmux's option of that
    name, which must be `on` for copying to work; None outside tmux. `notifications`: the number of
    the terminal's escape code (OSC) for notifications; None if none is known. `allow_passthrough`:
    tmux's option of that name, on which notifications depend.
    """

    tty: bool
    term: str | None
    colorterm: str | None
    columns: int | None
    rows: int | None
    no_color: bool
    locale: str | None
    utf8: bool
    tmux: bool
    set_clipboard: str | None
    notifications: int | None
    allow_passthrough: str | None


def look_at_terminal(environ: Mapping[str, str]) -> Terminal:
    """Return the facts about stdout's terminal; inside tmux, run tmux to get options."""
    tmux = bool(environ.get("TMUX"))
    tty = sys.stdout is not None and sys.stdout.isatty()
    columns, rows = shutil.get_terminal_size() if tty else (None, None)
    names = (environ.get(name) for name in ("LC_ALL", "LC_CTYPE", "LANG"))
    locale = next((name for name in names if name), None)
    return Terminal(
        tty=tty,
        term=environ.get("TERM"),
        colorterm=environ.get("COLORTERM"),
        columns=columns,
        rows=rows,
        no_color=bool(environ.get("NO_COLOR")),
        locale=locale,
        utf8=re.search(r"utf-?8", locale or "", re.IGNORECASE) is not None,
        tmux=tmux,
        set_clipboard=ask_tmux("show-options", "-sv", "set-clipboard") if tmux else None,
        notifications=ringing_terminal(environ).osc,
        allow_passthrough=ask_tmux("show-options", "-gv", "allow-passthrough") if tmux else None,
    )


def terminal_rows(terminal: Terminal) -> Iterator[tuple[str, str]]:
    """Yield the rows of the report on the terminal as (name, text)."""
    where = f"{terminal.columns} x {terminal.rows}" if terminal.tty else "stdout is not a terminal"
    names = f"TERM {terminal.term or 'not set'}, COLORTERM {terminal.colorterm or 'not set'}"
    color = ", NO_COLOR is set: no colours" if terminal.no_color else ""
    yield "terminal", f"{where}, {names}{color}"
    if terminal.utf8:
        yield "", f"locale {terminal.locale}: UTF-8"
    else:
        yield ("", f"locale {terminal.locale or 'not set'}: not UTF-8; gemtui --ascii works without it")
    if terminal.tmux and terminal.set_clipboard != "on":
        now = terminal.set_clipboard or "unknown"
        yield ("", f"tmux: set-clipboard is {now}; to make copying work: tmux set -s set-clipboard on")
    if terminal.notifications is None:
        yield "", "not known to support notifications; questions ring the bell instead"
    elif terminal.tmux and terminal.allow_passthrough not in ("on", "all"):
        now = terminal.allow_passthrough or "unknown"
        yield "", f"tmux: allow-passthrough is {now}; to get notifications: tmux set -g {_PASS}"
