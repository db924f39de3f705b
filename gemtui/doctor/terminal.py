"""Examine the terminal."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from gemtui.processes import FOLDER, find_program

_TMUX_LIMIT = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Terminal:
    """The terminal that the app would use.

    `columns`, `rows`: None if stdout is not a terminal. `set_clipboard`: tmux's option of that
    name, which copying by OSC 52 depends on; None outside of tmux.
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


def look_at_terminal(environ: Mapping[str, str]) -> Terminal:
    """Examine stdout; inside tmux, run tmux for an option."""
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
        tmux=bool(environ.get("TMUX")),
        set_clipboard=_set_clipboard() if environ.get("TMUX") else None,
    )


def _set_clipboard() -> str | None:
    tmux = find_program("tmux")
    if tmux is None:
        return None
    try:
        answer = subprocess.run(
            [tmux, "show-options", "-sv", "set-clipboard"],
            cwd=FOLDER,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_TMUX_LIMIT,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return answer.stdout.decode(errors="replace").strip() or None


def terminal_rows(terminal: Terminal) -> Iterator[tuple[str, str]]:
    """Yield the lines of the report as (name, text)."""
    where = f"{terminal.columns} x {terminal.rows}" if terminal.tty else "stdout is no terminal"
    names = f"TERM {terminal.term or 'not set'}, COLORTERM {terminal.colorterm or 'not set'}"
    color = ", NO_COLOR is set: no colours" if terminal.no_color else ""
    yield "terminal", f"{where}, {names}{color}"
    if terminal.utf8:
        yield "", f"locale {terminal.locale}: UTF-8"
    else:
        yield "", f"locale {terminal.locale or 'not set'}: not UTF-8; gemtui --ascii draws without"
    if terminal.tmux and terminal.set_clipboard != "on":
        now = terminal.set_clipboard or "unknown"
        yield "", f"tmux: set-clipboard is {now}; copying needs: tmux set -s set-clipboard on"
