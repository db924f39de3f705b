"""A store of the CLI's that the vault looks after."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gemtui.kept.vault import turn_on


@pytest.fixture(autouse=True)
def quick_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let nothing wait for the disk; who wants to see what is flushed replaces this again."""
    monkeypatch.setattr(os, "fsync", lambda _: None)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """The CLI's folder; the vault is on."""
    turn_on()
    return tmp_path / "home/.gemini"
