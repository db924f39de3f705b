from __future__ import annotations

import os
from pathlib import Path

import pytest

from gemtui.paths import (
    cache_dir,
    config_file,
    data_dir,
    gemini_home,
    make_own_folder,
    state_dir,
    typed_path,
)


@pytest.mark.parametrize(
    ("environ", "home"),
    [
        ({"HOME": "/home/dev"}, "/home/dev/.gemini"),
        ({"HOME": "/home/dev", "GEMINI_CLI_HOME": "/srv/cli"}, "/srv/cli/.gemini"),
        ({"HOME": "/home/dev", "GEMINI_CLI_HOME": ""}, "/home/dev/.gemini"),
    ],
)
def test_the_store_is_where_the_cli_has_it(environ: dict[str, str], home: str) -> None:
    assert gemini_home(environ) == Path(home)


def test_a_relative_store_is_named_by_its_whole_path(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    assert gemini_home({"GEMINI_CLI_HOME": "dev"}) == tmp_path / "dev" / ".gemini"


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("~/x", "/home/dev/x"),
        ("~", "/home/dev"),
        ("~nobody-has-this-name/x", "~nobody-has-this-name/x"),
        ("a/~/b", "a/~/b"),
    ],
)
def test_paths_as_they_are_typed(text: str, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/dev")
    assert typed_path(text) == Path(path)


def test_the_config_file_can_be_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/dev")
    assert config_file({"GEMTUI_CONFIG": "~/other.toml"}) == Path("/home/dev/other.toml")


def test_our_own_folders_are_not_in_geminis(tmp_path: Path) -> None:
    home = gemini_home()
    for place in (config_file({}), cache_dir(), data_dir(), state_dir()):
        assert place.is_absolute()
        assert not place.is_relative_to(home)


def test_xdg_is_respected(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_dir() == tmp_path / "gemtui"


@pytest.mark.parametrize("umask", [0o000, 0o022])
def test_own_folders_are_closed_from_the_top_whatever_the_umask(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, umask: int
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "home" / "state"))
    top, before = state_dir(), os.umask(umask)
    try:
        (top / "open").mkdir(parents=True)
        make_own_folder(top / "open" / "new" / "deep")
        make_own_folder(tmp_path / "chosen" / "deep")
        make_own_folder(tmp_path)
    finally:
        os.umask(before)
    ours = (top, top / "open", top / "open" / "new", top / "open" / "new" / "deep")
    missing = (tmp_path / "chosen", tmp_path / "chosen" / "deep")
    assert {place.stat().st_mode & 0o777 for place in (*ours, *missing)} == {0o700}
    assert top.parent.stat().st_mode & 0o777 == 0o777 & ~umask
