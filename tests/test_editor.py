from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from gemtui import editor
from gemtui.editor import NoEditor, edited_text, editor_command
from gemtui.errors import GemtuiError

FILE = Path("/src/a b.py")


@pytest.mark.parametrize(
    ("setting", "environ", "words"),
    [
        ("nano", {"VISUAL": "vim", "EDITOR": "ed"}, ["nano", "+7", "/src/a b.py"]),
        ("", {"VISUAL": "vim -R", "EDITOR": "ed"}, ["vim", "-R", "+7", "/src/a b.py"]),
        ("", {"EDITOR": "/opt/bin/hx"}, ["/opt/bin/hx", "/src/a b.py:7"]),
        ("code --wait", {}, ["code", "--wait", "--goto", "/src/a b.py:7"]),
        ("'my ed' -x", {}, ["my ed", "-x", "/src/a b.py"]),
    ],
)
def test_the_setting_comes_first_and_the_line_as_the_editor_wants_it(
    setting: str, environ: dict[str, str], words: list[str]
) -> None:
    assert editor_command(setting, environ, FILE, 7) == words


def test_a_command_of_windows_keeps_its_backslashes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(editor, "sys", SimpleNamespace(platform="win32"))
    words = [r"C:\My Tools\vim.exe", "-R", "+7", str(FILE)]
    assert editor_command(r'"C:\My Tools\vim.exe" -R', {}, FILE, 7) == words


def test_without_a_line_there_is_only_the_file() -> None:
    assert editor_command("vim", {}, FILE) == ["vim", "/src/a b.py"]


@pytest.mark.parametrize("setting", ["", "   ", "vim 'unclosed"])
def test_no_editor_is_an_error_with_the_way_out(setting: str) -> None:
    with pytest.raises(NoEditor, match=r"EDITOR|can't be parsed"):
        editor_command(setting, {}, FILE)


def edited_by(folder: Path, script: str) -> str:
    editor = folder / "editor"
    editor.write_text(f"#!/bin/sh\n{script}\n")
    editor.chmod(0o755)
    return edited_text("one\udc00\n", "a b.sh", setting=str(editor))


def test_a_text_is_what_the_editor_left(tmp_path: Path) -> None:
    assert edited_by(tmp_path, 'echo "${1##*/}" >>"$1"') == "one\udc00\na b.sh\n"


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("exit 3", "exited with 3"),
        (r"""printf '\377' >"$1" """, "not valid UTF-8"),
        ('rm "$1"; mkfifo "$1"', "not a regular file"),
    ],
)
def test_what_an_editor_left_that_is_no_text_is_said(tmp_path: Path, script: str, why: str) -> None:
    with pytest.raises((GemtuiError, OSError), match=why):
        edited_by(tmp_path, script)
