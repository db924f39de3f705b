"""Links in a terminal, in what commands print and in the app."""

from __future__ import annotations

import io
import re
import socket
from pathlib import Path

import pytest

from gemtui.commands import output
from gemtui.links import address_of, linker, shows_links
from gemtui.paths import config_file
from tests.rows import each_row

LINK = re.compile(r"\x1b\]8;;([^\x1b]*)\x1b\\([^\x1b]*)\x1b\]8;;\x1b\\")


@each_row(
    "environ, shown",
    [
        ({"TERM": "xterm-kitty"}, True),
        ({"TERM": "xterm-256color", "TERM_PROGRAM": "iTerm.app"}, True),
        ({"TERM": "xterm-256color", "VTE_VERSION": "7600"}, True),
        ({"TERM": "xterm-256color", "VTE_VERSION": "4999"}, False),
        ({"TERM": "xterm-256color", "WT_SESSION": "a"}, True),
        ({"TERM": "xterm-256color"}, False),
        ({"TERM": "linux", "VTE_VERSION": "7600"}, False),
        ({"TERM": "dumb", "TERM_PROGRAM": "vscode"}, False),
        ({"TERM": "xterm-kitty", "TMUX": "a"}, False),
        ({"TERM": "xterm-kitty", "STY": "a"}, False),
        ({}, False),
    ],
)
def test_links_are_for_terminals_that_are_known_to_show_them(
    environ: dict[str, str], shown: bool
) -> None:
    assert shows_links(environ) is shown


def test_whole_paths_and_addresses_are_linked_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HOME", "/home/ada")
    monkeypatch.setattr(socket, "gethostname", lambda: "box")
    folder, file = Path("/home/ada/a b"), Path("/home/ada/a b/ü.toml")
    link = linker([folder, file, "https://example.org/a"])
    line = "~/a b/ü.toml, ~/a b: /home/ada/a b see https://example.org/a"
    assert LINK.findall(link(line)) == [
        ("file://box/home/ada/a%20b/%C3%BC.toml", "~/a b/ü.toml"),
        ("file://box/home/ada/a%20b", "~/a b"),
        ("file://box/home/ada/a%20b", "/home/ada/a b"),
        ("https://example.org/a", "https://example.org/a"),
    ]
    assert LINK.sub(r"\2", link(line)) == line
    for other in ("~/a b/other", "x~/a b", "https://example.org/ab"):
        assert link(other) == other


@pytest.mark.usefixtures("home")
def test_lines_have_links_only_at_a_terminal_and_unless_the_setting_forbids_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TERM", "xterm-kitty")
    file = Path("/a/b")

    def printed() -> str:
        written = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
        monkeypatch.setattr("sys.stdout", written)
        output.lines_to_stdout(["\x1b]8;;https://evil\x1b\\ /a/b"], links=[file])
        return written.buffer.getvalue().decode()

    assert "\x1b" not in printed()
    monkeypatch.setattr(output, "terminal_width", lambda: 80)
    assert LINK.findall(printed()) == [(address_of(file), "/a/b")]
    config_file().parent.mkdir(parents=True)
    config_file().write_text("links = false\n")
    assert "\x1b" not in printed()
