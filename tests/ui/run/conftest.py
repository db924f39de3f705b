"""What holds for all tests of the run pane."""

from __future__ import annotations

import json
from pathlib import Path

import pytest


@pytest.fixture
def project(tmp_path: Path, home: Path) -> Path:
    """A folder that Gemini CLI trusts."""
    folder = tmp_path / "project"
    folder.mkdir()
    (home / ".gemini/trustedFolders.json").write_text(json.dumps({str(folder): "TRUST_FOLDER"}))
    return folder
