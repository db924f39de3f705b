"""The bytes by which a terminal rings."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gemtui.notify import Notification, RingingTerminal, notification_sequence, ringing_terminal
from gemtui.text import Clean, clean_line
from tests.hostile import ATTACK, ESCAPES, FILE_NAME, LONG, ORDER, UNTERMINATED
from tests.rows import each_row

NOTICE = Notification(title=Clean("gemtui: api"), text=Clean("Fix it; then test: it asks."))


@each_row(
    ("environ", "osc"),
    [
        ({"TERM": "xterm-kitty"}, 99),
        ({"TERM": "xterm-kitty", "TERM_PROGRAM": "WezTerm"}, 99),
        ({"TERM": "xterm-256color", "TERM_PROGRAM": "WezTerm"}, 777),
        ({"TERM": "xterm-ghostty"}, 777),
        ({"TERM": "foot-extra"}, 777),
        ({"TERM": "rxvt-unicode-256color"}, 777),
        ({"TERM": "xterm-256color", "TERM_PROGRAM": "iTerm.app"}, 9),
        ({"TERM": "xterm-256color", "LC_TERMINAL": "iTerm2"}, 9),
        ({"TERM": "xterm-256color", "TERM_PROGRAM": "Apple_Terminal"}, None),
        ({"TERM": "linux"}, None),
        ({"TERM": "xterm-kitty", "STY": "1.pts"}, None),
        ({}, None),
    ],
)
def test_what_a_terminal_understands_follows_from_its_name(
    environ: dict[str, str], osc: int | None
) -> None:
    assert ringing_terminal(environ) == RingingTerminal(osc)


def test_inside_tmux_the_terminal_outside_counts(tmp_path: Path) -> None:
    tmux = tmp_path / "tmux"
    tmux.write_text('#!/bin/sh\necho "$*" > "$0.asked"; echo "ghostty 1.1.3 xterm-256color"\n')
    tmux.chmod(0o755)
    environ = {"TMUX": "/tmp/tmux,1,0", "TERM": "tmux-256color", "KITTY_WINDOW_ID": "1"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
        assert ringing_terminal(environ) == RingingTerminal(777, tmux=True)
        tmux.write_text("#!/bin/sh\nexit 1\n")
        assert ringing_terminal(environ) == RingingTerminal(None, tmux=True)


@each_row(
    ("terminal", "written"),
    [
        (RingingTerminal(), "\a"),
        (RingingTerminal(9), "\a\x1b]9;gemtui: api: Fix it; then test: it asks.\x1b\\"),
        (RingingTerminal(777), "\a\x1b]777;notify;gemtui: api;Fix it; then test: it asks.\x1b\\"),
        (
            RingingTerminal(99),
            (
                "\a\x1b]99;i=gemtui:d=0;gemtui: api\x1b\\\x1b]99;i=gemtui:p=body;Fix it; then "
                "test: "
                "it asks.\x1b\\"
            ),
        ),
        (
            RingingTerminal(9, tmux=True),
            "\a\x1bPtmux;\x1b\x1b]9;gemtui: api: Fix it; then test: it asks.\x1b\x1b\\\x1b\\",
        ),
        (RingingTerminal(None, tmux=True), "\a"),
    ],
)
def test_the_bytes_of_each_terminal(terminal: RingingTerminal, written: str) -> None:
    assert notification_sequence(NOTICE, terminal) == written


@each_row("osc", [9, 99, 777])
@each_row("hostile", [ATTACK, *ESCAPES, *ORDER, LONG, UNTERMINATED, FILE_NAME])
def test_nothing_foreign_ends_or_begins_an_escape_code(osc: int, hostile: str) -> None:
    text = clean_line(hostile)
    inside = notification_sequence(
        Notification(title=text, text=text), RingingTerminal(osc)
    ).removeprefix("\a")
    codes = re.findall(r"\x1b\][^\x1b]*\x1b\\", inside)
    assert "".join(codes) == inside
    assert len(codes) == (2 if osc == 99 else 1)
    assert all(code[2:-2].isprintable() for code in codes)


def test_a_title_does_not_reach_into_the_text() -> None:
    notice = Notification(title=Clean("a;b"), text=Clean("c"))
    assert "notify;a,b;c" in notification_sequence(notice, RingingTerminal(777))


def test_a_long_text_is_cut() -> None:
    notice = Notification(title=Clean("t" * 999), text=Clean("x" * 9999))
    assert len(notification_sequence(notice, RingingTerminal(777))) < 300
