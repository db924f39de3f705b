"""Attached images in the app: named, and shown by the desktop's own program."""

from __future__ import annotations

import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gemtui.ui.transcript.block_keys import NoViewer, opener
from tests.sessions import logs, stores
from tests.transcript.pictures import inline, png
from tests.ui.people import NARROW, Person, person

OPENER = """#!/bin/sh
echo "$1" > "{log}"
cp -p "$1" "{copy}"
exit {code}
"""


def store_of(folder: Path, *parts: dict[str, Any], prompt: str = "See @shot.png") -> Path:
    """A store with one session: a prompt with these parts, and a call that read two images."""
    asked = logs.user("u", prompt)
    asked["content"] += parts
    read = logs.call("c", name="read_many_files", args={"include": ["*.png"]})
    read["result"] += [inline(png(3, 4)), inline(png(5, 6))]
    records = [logs.header(), logs.context(), asked, logs.gemini("g", "I see.", toolCalls=[read])]
    home = folder / "home" / ".gemini"
    stores.session(home, stores.uuid(1), records)
    return home


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, empty."""
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Put an opener on PATH that keeps what it opens; the answer is that copy."""

    def put(code: int = 0) -> Path:
        folder = tmp_path / "bin"
        folder.mkdir()
        program = folder / ("open" if sys.platform == "darwin" else "xdg-open")
        copy = tmp_path / "copy"
        program.write_text(OPENER.format(log=tmp_path / "log", copy=copy, code=code))
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
        monkeypatch.setenv("DISPLAY", ":99")
        return copy

    return put


async def on_the_image(me: Person) -> None:
    await me.does("enter", "I see.")
    await me.press("home", "down")


async def test_one_of_several_images_of_a_call_is_chosen(
    tmp_path: Path, work: Path, install: Callable[..., Path]
) -> None:
    del work
    copy = install()
    async with person(store_of(tmp_path, inline(png())), NARROW) as me:
        await on_the_image(me)
        await me.sees(f"[shot.png, image/png, 64x48, {len(png())} B]", "enter open")
        await me.does("]", "image 1 of 2, image/png, 3x4", "image 2 of 2, image/png, 5x6")
        await me.does("o", "Which attachment?")
        await me.press("down", "enter")
        await me.until(lambda: copy.exists() and copy.read_bytes() == png(5, 6))
    assert (tmp_path / "log").read_text().strip().endswith("/image-2-of-2.png")


async def test_it_is_shown_from_a_private_file_with_its_real_suffix(
    tmp_path: Path, work: Path, install: Callable[..., Path]
) -> None:
    del work
    copy = install()
    part = inline(png(), "text/html", displayName="../../x;touch y.desktop")
    async with person(store_of(tmp_path, part), NARROW) as me:
        await on_the_image(me)
        await me.press("o")
        await me.until(lambda: copy.exists() and copy.read_bytes() == png())
    place = Path((tmp_path / "log").read_text().strip())
    assert place.name == "x-touch-y.png"
    assert not place.is_relative_to(tmp_path / "work")
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    assert stat.S_IMODE(place.parent.stat().st_mode) == 0o700


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"<svg onload='x()'/>", "Not opened, because it"),
        (b"#!/bin/sh\ntouch y", "Not opened, because it"),
        ("!!", "corrupt"),
    ],
)
async def test_what_is_no_image_by_its_bytes_is_not_opened(
    tmp_path: Path, work: Path, install: Callable[..., Path], data: bytes | str, said: str
) -> None:
    del work
    copy = install()
    async with person(store_of(tmp_path, inline(data)), NARROW) as me:
        await on_the_image(me)
        await me.press("o")
        await me.is_told(said)
    assert not copy.exists()


async def test_an_opener_that_fails_and_a_missing_display_are_said(
    tmp_path: Path, work: Path, install: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    del work
    install(code=3)
    async with person(store_of(tmp_path, inline(png())), NARROW) as me:
        await on_the_image(me)
        await me.press("o")
        await me.is_told("could not open it (exit code 3)")
        monkeypatch.delenv("DISPLAY")
        monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
        monkeypatch.setenv("SSH_CONNECTION", "10.0.0.1 1 10.0.0.2 22")
        await me.press("o")
        await me.is_told("over ssh.")


async def test_without_a_stored_image_the_key_says_so(tmp_path: Path, work: Path) -> None:
    del work
    address = {"fileData": {"mimeType": "image/png", "fileUri": "https://x/y.png"}}
    async with person(store_of(tmp_path, address), NARROW) as me:
        await on_the_image(me)
        await me.does("o", "no file here")


@pytest.mark.parametrize(
    ("environ", "platform", "said"),
    [
        ({}, "linux", "no display"),
        ({"SSH_CONNECTION": "x"}, "darwin", "over ssh"),
        ({"DISPLAY": ":0", "PATH": "/nowhere"}, "linux", "xdg-open.*not found"),
        ({"DISPLAY": ":0", "PATH": "."}, "linux", "xdg-open.*not found"),
    ],
)
def test_without_an_opener_the_reason_is_given(
    environ: dict[str, str], platform: str, said: str
) -> None:
    with pytest.raises(NoViewer, match=said):
        opener(environ, platform)
