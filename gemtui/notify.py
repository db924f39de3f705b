"""Desktop notifications through the terminal, and tmux, in which it may run.

    notice = Notification(title="gemtui: api", text="It asks.")
    stream.write(notification_sequence(notice, ringing_terminal(os.environ)))

A terminal that doesn't support notifications only rings its bell. The output contains no escape
codes other than those built here, because title and text are cleaned, and characters that would end
a field early are removed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from msgspec import Struct

from gemtui.processes import find_program, finished
from gemtui.text import clean_line, ellipsis

BELL = "\a"
TITLE, TEXT = 60, 160
"""The widest title and text of a notification, in cells."""
_TMUX_LIMIT = 2.0
_KITTY, _ITERM, _RXVT = 99, 9, 777
"""The OSC codes for notifications, named after the terminals that introduced them."""
_KNOWN = {
    "kitty": _KITTY,
    "foot": _RXVT,
    "ghostty": _RXVT,
    "wezterm": _RXVT,
    "rxvt": _RXVT,
    "iterm": _ITERM,
}
"""Maps a part of a terminal's name to the OSC code that the terminal supports."""


class Notification(Struct, frozen=True, kw_only=True):
    """A desktop notification.

    `title`: where something has happened, such as `gemtui: api`. `text`: what has happened.
    """

    title: str
    text: str


class RingingTerminal(Struct, frozen=True):
    """A terminal's support for notifications.

    `osc`: the number of its escape code for notifications; None if it supports none. `tmux`:
    whether the escape code must pass through tmux, which requires `allow-passthrough on`.
    """

    osc: int | None = None
    tmux: bool = False


def ringing_terminal(environ: Mapping[str, str]) -> RingingTerminal:
    """Return what support for notifications the current terminal has.

    Inside tmux, the result describes the terminal the tmux client is running in.
    """
    if environ.get("STY"):  # GNU screen passes nothing through
        return RingingTerminal()
    if environ.get("TMUX"):
        name = ask_tmux("display-message", "-p", "#{client_termtype} #{client_termname}")
        return RingingTerminal(_osc(name), tmux=True)
    # a terminal started from another one inherits TERM_PROGRAM, but sets TERM itself
    names = (environ.get(name) for name in ("TERM", "TERM_PROGRAM", "LC_TERMINAL"))
    return RingingTerminal(next(filter(None, map(_osc, names)), None))


def _osc(name: str | None) -> int | None:
    lower = (name or "").lower()
    return next((osc for part, osc in _KNOWN.items() if part in lower), None)


def ask_tmux(*words: str, stdin: str = "") -> str | None:
    """Return a tmux command's output; None if there is none within two seconds."""
    tmux = find_program("tmux")
    if tmux is None:
        return None
    answer = finished([tmux, *words], _TMUX_LIMIT, stdin=stdin.encode(errors="replace"))
    if answer is None:
        return None
    return answer.stdout.decode(errors="replace").strip() or None


def notification_sequence(notice: Notification, terminal: RingingTerminal) -> str:
    """Return the characters that ring the bell and, if possible, show a notification."""
    codes = (f"\x1b]{code}\x1b\\" for code in _codes(notice, terminal.osc))
    return BELL + "".join(map(_through_tmux, codes) if terminal.tmux else codes)


def _codes(notice: Notification, osc: int | None) -> Iterator[str]:
    title = ellipsis(clean_line(notice.title), TITLE)
    text = ellipsis(clean_line(notice.text), TEXT)
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


PAUSE = 3.0
"""Seconds between two alerts; events in between are combined into the next alert."""


class Ringer:
    """Sends alerts, with a pause after each so that they don't come too often.

    `sound`: sends an alert. `later`: called with seconds and a function, which it calls after that
    time.
    """

    def __init__(
        self,
        sound: Callable[[Notification], object],
        later: Callable[[float, Callable[[], None]], object],
    ) -> None:
        self._sound, self._later = sound, later
        self._held: list[Notification] = []
        self._pausing = False

    def ring(self, notice: Notification) -> None:
        """Send an alert now or, during the pause after an earlier alert, when that ends.

        Alerts during a pause are combined into one.
        """
        if self._pausing:
            self._held.append(notice)
        else:
            self._ring(notice)

    def _ring(self, notice: Notification) -> None:
        self._pausing = True
        self._sound(notice)
        self._later(PAUSE, self._go_on)

    def _go_on(self) -> None:
        held, self._held = self._held, []
        self._pausing = False
        if held:
            more = f" (and {len(held) - 1} more)" if len(held) > 1 else ""
            self._ring(Notification(title=held[-1].title, text=f"{held[-1].text}{more}"))
