"""Files that calls name, looked for on this computer."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from gemtui.calls import paths
from gemtui.calls.paths import (
    absolute,
    file_key,
    in_project,
    recorded_path,
    within,
    written_file,
)
from gemtui.errors import GemtuiError
from tests.rows import each_row


def test_a_relative_path_is_meant_in_the_project(tmp_path: Path) -> None:
    (tmp_path / "a.py").touch()
    assert written_file("a.py", tmp_path) == tmp_path / "a.py"
    assert written_file(str(tmp_path / "a.py"), Path("/elsewhere")) == tmp_path / "a.py"


@pytest.mark.parametrize(
    ("name", "words"),
    [("gone.py", "no longer exists"), ("folder", "not a regular"), ("pipe", "not a regular")],
)
def test_what_is_no_file_is_said(tmp_path: Path, name: str, words: str) -> None:
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(GemtuiError, match=words):
        written_file(name, tmp_path)


@each_row("name, root", [(r"C:\app\a.py", ""), ("a.py", r"c:\app")])
def test_a_file_on_windows_is_told_as_that(name: str, root: str) -> None:
    with pytest.raises(GemtuiError, match="is on the Windows computer"):
        written_file(name, Path(root) if root else None)


@each_row(
    "folder, path, whole, inside",
    [
        (r"C:\app", "a.py", r"C:\app\a.py", True),
        (r"C:\app", "src/../../b.py", r"C:\b.py", False),
        (r"C:\app", r"c:\APP\a.py", r"c:\APP\a.py", True),
        (r"C:\app", r"C:\apple\a.py", r"C:\apple\a.py", False),
        ("/app", "a.py", "/app/a.py", True),
        ("/app", r"C:\a.py", "/app/C:\\a.py", True),
        ("/", "//a/../b", "/b", True),
    ],
)
def test_a_path_is_one_of_the_system_of_its_folder(
    folder: str, path: str, whole: str, inside: bool
) -> None:
    assert absolute(folder, path) == whole
    assert within(folder, whole) is inside


@each_row(
    "one, other, folder",
    [
        ("src/Caf\u00e9.py", "/App/SRC/cafe\u0301.py", "/app"),
        (r"src\a.py", r"C:\Users\Ada\SRC\A.py", r"c:\users\ada"),
    ],
)
def test_two_spellings_are_one_file_where_disks_ignore_case(
    one: str, other: str, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paths, "sys", SimpleNamespace(platform="darwin"))
    project = recorded_path(folder)
    spellings = {recorded_path(path, folder) for path in (one, other)}
    assert len(spellings) == len({file_key(path, folder) for path in (one, other)}) == 1
    assert spellings.pop().relative_to(project) == recorded_path(other).relative_to(project)
    assert not recorded_path(f"{folder}2").is_relative_to(project)
    assert within(folder, str(recorded_path(other)))


def test_a_relative_path_without_a_project_is_said() -> None:
    with pytest.raises(GemtuiError, match="folder of this session is unknown"):
        written_file("a.py", None)


@each_row(
    "text, project, shown",
    [
        ("/p/src/a.py", "/p", "src/a.py"),
        ("/p/src/a.py", "/p/", "src/a.py"),
        ("/pp/a.py", "/p", "/pp/a.py"),
        ("/p", "/p", "/p"),
        ("cat /p/a", "/p", "cat /p/a"),
        ("first\n/p/a\n/q/b", "/p", "first\na\n/q/b"),
        ("/p.x/a", "/p.x", "a"),
        ("/pyx/a", "/p.x", "/pyx/a"),
        (r"C:\App\src\a.py", r"c:\app", r"src\a.py"),
        ("C:/App/src/a.py", r"c:\app", "src/a.py"),
        ("/P/a", "/p", "/P/a"),
        ("/p/a", "/", "/p/a"),
        ("/p/a", None, "/p/a"),
    ],
)
def test_paths_of_files_in_the_project_are_relative_to_it(
    text: str, project: str | None, shown: str
) -> None:
    assert in_project(text, project) == shown
