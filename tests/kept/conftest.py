"""A store of the CLI's that the vault looks after."""

from __future__ import annotations

from pathlib import Path

import pytest

from gemtui.kept.vault import turn_on


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """The CLI's folder; the vault is on."""
    turn_on()
    return tmp_path / "home/.gemini"
