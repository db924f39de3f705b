"""Files seen to change during a run, with real files and a real git."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
from contextlib import aclosing
from pathlib import Path

import pytest

from gemtui.runs.folder_state import kept, seen_files, too_large
from tests.foreign_folder import ForeignFolder
from tests.patience import PATIENCE


async def after(folder: Path, *, wanted: str, most: int = 200) -> tuple[str, ...]:
    """What is seen once `wanted` is; the file `start` is touched until somebody watches."""
    async with asyncio.timeout(PATIENCE), aclosing(seen_files(folder, most=most)) as found:
        toucher = asyncio.create_task(_touch(folder / wanted))
        try:
            async for paths in found:
                names = tuple(str(path.relative_to(folder)) for path in paths)
                if wanted in names:
                    return names
        finally:
            toucher.cancel()
    raise AssertionError(f"{wanted} was never seen")


async def _touch(path: Path) -> None:
    while True:
        for near in ("node_modules/x.js", ".hidden", "out.log", path.name):
            (path.parent / near).parent.mkdir(exist_ok=True)
            (path.parent / near).write_text("x")
        await asyncio.sleep(0.2)


async def test_what_changes_is_seen_without_hidden_and_kept_files(tmp_path: Path) -> None:
    names = await after(tmp_path, wanted="made.txt")
    assert set(names) <= {"made.txt", "out.log"}


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_the_folder_s_own_repository_is_asked_even_inside_of_another_git(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    (tmp_path / ".gitignore").write_text("*.log\n")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "none"))
    assert kept(tmp_path, [tmp_path / "a.log", tmp_path / "a.txt"]) == [tmp_path / "a.txt"]


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
async def test_what_git_ignores_is_left_out(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    (tmp_path / ".gitignore").write_text("*.log\n")
    assert await after(tmp_path, wanted="made.txt") == ("made.txt",)


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
async def test_commands_that_a_repository_names_are_not_run(
    foreign: ForeignFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monitor = foreign.program(tmp_path / "monitor")
    foreign.repository(fsmonitor=str(monitor), pager=str(monitor), sshCommand=str(monitor))
    (foreign.path / ".gitignore").write_text("*.log\n")
    subprocess.run(["git", "-C", str(foreign.path), "add", ".gitignore"], check=True)
    assert foreign.ran == ["monitor"]  # the settings are heard
    (tmp_path / "marks/monitor").unlink()
    monkeypatch.chdir(foreign.path)
    monkeypatch.setenv("PATH", foreign.path_variable)
    assert await after(foreign.path, wanted="made.txt") == ("made.txt",)
    assert foreign.ran == []


async def test_a_folder_that_is_not_there_ends_at_once(tmp_path: Path) -> None:
    assert [seen async for seen in seen_files(tmp_path / "gone")] == []


def test_a_link_to_the_home_folder_or_above_is_too_large(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "users/home"
    (home / "project").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    for name, target in (
        ("a", home),
        ("b", home.parent),
        ("c", Path("/")),
        ("d", home / "project"),
    ):
        (tmp_path / name).symlink_to(target)
    assert [name for name in "abcd" if too_large(tmp_path / name)] == ["a", "b", "c"]
