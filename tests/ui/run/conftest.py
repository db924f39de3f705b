"""What holds for all tests of the run pane."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gemtui.ui.run import run_keys
from tests.patience import PATIENCE


@pytest.fixture
def project(tmp_path: Path, home: Path) -> Path:
    """A folder that Gemini CLI trusts."""
    folder = tmp_path / "project"
    folder.mkdir()
    (home / ".gemini/trustedFolders.json").write_text(json.dumps({str(folder): "TRUST_FOLDER"}))
    return folder


@pytest.fixture(autouse=True)
def no_second_press_is_late(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine may need longer for two presses of ctrl+c than a person does."""
    monkeypatch.setattr(run_keys, "_TWICE", PATIENCE)
