"""Hostile sessions at a real terminal: every screen is walked, nothing of them acts."""

from __future__ import annotations

import base64
import json
import os
import re
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

from gemtui.cli import main
from gemtui.policy.file.policy_files import policies_dir
from gemtui.text import clean, clean_line
from tests import hostile
from tests.fake_cli import FakeCli
from tests.rows import each_row
from tests.terminal import Terminal

pytestmark = pytest.mark.covers("gemtui/ui", "gemtui/commands", "gemtui/text.py")

ESCAPE, PAGE_DOWN, QUIT = "\x1b", "\x1b[6~", "\x11"
SILENCE = 20.0
"""Seconds without a byte after which a key has brought nothing."""


@pytest.fixture
def store(home: Path) -> list[str]:
    """The hostile store in GEMINI_CLI_HOME; the ids in it."""
    return hostile.make_store(home)


class Walk:
    """A person at the app, who waits for what each key brings."""

    def __init__(self, terminal: Terminal) -> None:
        self.terminal = terminal

    def to(self, *keys: str, shows: str) -> None:
        """Press keys until they bring something: none acts while a pane still takes an answer.

        They are pressed again only if nothing came for long: a machine may be slow, and what
        brought something late takes the same keys for something else.
        """
        assert shows not in self.terminal.text, f"{shows} is shown before {keys}"
        for _ in range(10):
            self.terminal.press(*keys)
            while shows not in self.terminal.text and self.terminal.read(SILENCE):
                pass
            if shows in self.terminal.text:
                return
        self.terminal.shows(shows)

    def away(self, key: str, hides: str) -> None:
        """Press a key until a text is gone: on a slow machine, none acts at once in a dialog."""
        for _ in range(10):
            self.terminal.press(key)
            while hides in self.terminal.text and self.terminal.read(SILENCE):
                pass
            if hides not in self.terminal.text:
                return
        self.terminal.hides(hides)

    def to_the_end(self) -> None:
        """Page down as long as that changes anything, forty pages at most."""
        for _ in range(40):
            before = self.terminal.text
            self.terminal.press(PAGE_DOWN)
            while self.terminal.read(0.1):
                pass
            if self.terminal.text == before:
                break


def copied(raw: bytes) -> list[str]:
    """What we ourselves put on the clipboard."""
    return [
        base64.b64decode(found).decode()
        for found in re.findall(rb"\x1b\]52;c;([A-Za-z0-9+/=]*)\x07", raw)
    ]


SIZES = pytest.mark.parametrize(("columns", "rows"), [(80, 24), (120, 36)])


@pytest.mark.deep
@SIZES
def test_nothing_that_a_session_says_reaches_the_terminal(
    store: list[str], tmp_path: Path, columns: int, rows: int
) -> None:
    with Terminal(
        [sys.executable, "-m", "gemtui"],
        environ=os.environ,
        folder=tmp_path,
        columns=columns,
        rows=rows,
    ) as terminal:
        walk = Walk(terminal)
        terminal.shows("evil␛]52", "? keys")
        walk.to(".", shows="subagent")
        walk.to("/", shows="to the list")
        walk.to("evil", "\x1b[B", shows="F search")
        walk.to("g", shows="▾")
        walk.to("s", shows="Sort sessions")
        walk.away("\x1b[B\r", "enter choose")
        walk.to("i", shows="esc close")
        walk.away(ESCAPE, "esc close")

        terminal.press("\x1b[H", "\x1b[B")
        walk.to("\r", shows="space fold")
        terminal.press("f")
        walk.to_the_end()
        walk.to("\x1b[F", shows="message 6 of 6")
        walk.to("/", shows="find in this transcript")
        walk.to("boom", shows=" of 80")
        walk.to("\r", shows="n/N match")
        terminal.press("n", "N", "n")
        walk.to(".", shows="message 7 of 7")
        walk.to("\x1b[H", "]", "v", shows="as stored")
        walk.to_the_end()
        walk.away("q", "as stored")
        walk.to("?", shows="Keys")
        walk.away(ESCAPE, "enter run")
        walk.to("\x10", shows="enter run")
        walk.to("no such thing", shows="No command matches")
        walk.away(ESCAPE, "enter run")
        terminal.press("Y")
        terminal.until(lambda: bool(copied(bytes(terminal.raw))), "a text on the clipboard")
        walk.to("!", shows="Unreadable files")
        walk.away("q", "Unreadable files")
        terminal.press(QUIT)
        assert terminal.wait() == 0
        raw = bytes(terminal.raw)

    (text,) = copied(raw)
    assert text == clean(text)
    assert "evil" in text
    nothing_acted(raw)


def nothing_acted(raw: bytes) -> None:
    """What came to the terminal is ours: no sequence of theirs, clean titles, an orderly end."""
    own = re.sub(rb"\x1b\]52;c;[A-Za-z0-9+/=]*\x07", b"", raw)
    assert hostile.CONTROLS.findall(own) == []
    for title in re.findall(rb"\x1b\]2;([^\x07]*)\x07", raw):
        assert title.decode() == clean_line(title.decode())
    assert b"\x1b[?1049l" in raw
    assert b"Traceback" not in raw


@pytest.fixture
def surroundings(fake_cli: FakeCli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A hostile folder to start in: so are its files, the CLI, its home, policies, environment."""
    folder = tmp_path / hostile.FILE_NAME
    folder.mkdir()
    (folder / f"{hostile.FILE_NAME}.md").write_text(hostile.ATTACK.replace("\ud800", ""))
    home = tmp_path / f"home{hostile.FILE_NAME}"
    hostile.make_store(home)
    users = home / ".gemini/policies"
    for place, text in ((policies_dir(), hostile.POLICY), (users, hostile.WRONG_POLICY)):
        place.mkdir(parents=True)
        (place / f"{hostile.FILE_NAME}.toml").write_text(text)
    said = tmp_path / "said"
    said.write_text("\n".join(map(json.dumps, hostile.EVENTS)) + "\n")
    program = fake_cli(f"err:{hostile.FILE_NAME}", f"file:{said}", "exit:1")
    program = program.rename(folder / f"gemini{hostile.FILE_NAME}")
    monkeypatch.setenv("GEMINI_CLI_PATH", str(program))
    monkeypatch.setenv("GEMINI_CLI_HOME", str(home))
    monkeypatch.setenv("GEMINI_CLI_TRUST_WORKSPACE", "true")
    for name in ("EDITOR", "VISUAL", "TMUX", "TERM_PROGRAM", "GEMINI_MODEL", "USER", "HOSTNAME"):
        monkeypatch.setenv(name, hostile.FILE_NAME)
    return folder


@pytest.mark.deep
@SIZES
def test_nothing_around_us_reaches_the_terminal(
    surroundings: Path, columns: int, rows: int
) -> None:
    with Terminal(
        [sys.executable, "-m", "gemtui"],
        environ=os.environ,
        folder=surroundings,
        columns=columns,
        rows=rows,
    ) as terminal:
        walk = Walk(terminal)
        terminal.shows("? keys")

        walk.to("2", shows="enter starts a run")
        walk.to("\x0f", shows="The next run")
        walk.away(ESCAPE, "The next run")
        walk.to("\x07", shows="Prompt from a file")
        walk.to("/nowhere[/x]", "\r", shows="[/x]")
        walk.away(ESCAPE, "Prompt from a file")
        walk.to("@ev", shows="@ev")
        terminal.press(ESCAPE)
        walk.to("\x14", shows="The command that enter will run")
        walk.away(ESCAPE, "The command that enter will run")
        walk.to("i", " [red", "\r", shows="1 failed")
        walk.to(ESCAPE, shows="? keys")
        walk.to("s", shows="2 lines")
        walk.away("q", "2 lines")
        walk.to("C", shows="Copied")
        walk.to("\x0c", shows="x stop")
        walk.away(ESCAPE, "x stop")

        walk.to("3", shows="[3 Policy")
        walk.to("f", shows="r rename")
        walk.to("r", shows="New name for evil␛]52")
        walk.away(ESCAPE, "New name for")
        walk.to("f", shows="r rename")
        walk.to("d", shows="Delete this policy?")
        walk.away(ESCAPE, "Delete this policy?")
        for key, shows in {
            "a": "A new rule",
            "\r": "Rule 1",
            "t": "Try a call",
            "h": "Rules that would allow more",
            "s": "Rules that would allow more",
            "?": "Keys",
        }.items():
            walk.to(key, shows=shows)
            walk.away(ESCAPE, shows)
        walk.to("y", shows="Copied")
        terminal.press("v", "p", "l")
        walk.to("\x1bOQ", shows="Theme")
        walk.away(ESCAPE, "enter apply")
        terminal.press(QUIT)
        assert terminal.wait() == 0
    nothing_acted(bytes(terminal.raw))


@each_row(
    "words, code",
    [
        (("sessions", "--everywhere", "--hidden"), 0),
        (("sessions", "--everywhere", "--hidden", "--json"), 0),
        (("doctor",), 1),
        (("doctor", "--json"), 1),
        (("show", "evil"), 2),
        (("show", f"nothing{hostile.FILE_NAME}"), 2),
        (("show", "evil0000", "--output", f"/nowhere/{hostile.FILE_NAME}/x"), 2),
    ],
)
def test_nothing_hostile_in_what_the_commands_print(
    store: list[str],
    capfdbinary: pytest.CaptureFixture[bytes],
    words: tuple[str, ...],
    code: int,
) -> None:
    assert main(list(words)) == code
    output = b"".join(capfdbinary.readouterr())
    assert hostile.CONTROLS.findall(output) == []
    assert b"evil" in output


@pytest.mark.parametrize("form", ["text", "markdown", "html", "json", "unified"])
def test_nothing_hostile_in_a_session_shown(
    store: list[str], form: str, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    for id in store:
        code = main(["show", id, "--format", form])
        output, said = capfdbinary.readouterr()
        assert (code, hostile.CONTROLS.findall(output + said)) == (0, [])
        assert output.count(b"evil") > 50
        if form in ("json", "unified"):
            json.loads(output)
        if form == "html":
            page = Page()
            page.feed(output.decode())
            assert page.acting == []


class Page(HTMLParser):
    """Collects everything in a page that could act or load."""

    def __init__(self) -> None:
        super().__init__()
        self.acting: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in ("script", "iframe", "object", "embed", "img", "link", "form", "base", "svg"):
            self.acting.append(tag)
        for name, value in attrs:
            target = (value or "").strip().lower()
            links = name in ("href", "src", "action", "style", "srcset")
            if name.startswith("on") or (links and not target.startswith(("http", "mailto:", "#"))):
                self.acting.append(f"{tag} {name}={value}")
