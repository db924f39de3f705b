"""What tests of sessions in the app share."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def trash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home trash of freedesktop.org, in the test's own folder."""
    from send2trash import plat_other  # type: ignore[import-untyped]

    folder = tmp_path / "data" / "Trash"
    monkeypatch.setattr(plat_other, "HOMETRASH_B", bytes(folder))
    monkeypatch.setattr(plat_other, "XDG_DATA_HOME", bytes(folder.parent))
    monkeypatch.setattr("send2trash.send2trash", plat_other.send2trash)
    (tmp_path / "user").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    return folder
