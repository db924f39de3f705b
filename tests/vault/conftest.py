"""A store of the CLI's that the vault looks after."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from gemtui.vault.keeping import switch_on

SMALL = 400_000
"""Bytes of the other file system."""


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """The CLI's folder; the vault is on."""
    switch_on()
    return tmp_path / "home" / ".gemini"


@pytest.fixture
def other_file_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A small file system of its own, where our data is: there can be no links."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={SMALL},mode=700", "tmpfs", str(place)]
    try:
        subprocess.run(mount, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("a small disk can be made by root on Linux alone")
    monkeypatch.setenv("XDG_DATA_HOME", str(place))
    switch_on()
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=True)
