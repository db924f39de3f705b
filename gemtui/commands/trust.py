"""`gemtui trust`: the folders that gemtui was told to trust, and taking that back."""

from __future__ import annotations

from pathlib import Path

from gemtui.agent.trust import TrustedFolder, TrustState, forget, trusted_folders
from gemtui.commands.output import lines_to_stdout, note, to_stdout
from gemtui.jsonout import encode
from gemtui.text import Clean, clean_line

_WORDS = {
    TrustState.SAME: "",
    TrustState.REPLACED: "replaced by another folder, not trusted",
    TrustState.GONE: "not there",
}


def list_all(*, as_json: bool) -> None:
    """List the folders, the first one first."""
    folders = trusted_folders()
    if as_json:
        listed = [{"path": each.path, "place": each.place.value} for each in folders]
        to_stdout([encode({"version": 1, "folders": listed}), b"\n"])
        return
    lines_to_stdout(map(_line, folders))
    if not folders:
        note("no trusted folders")


def _line(folder: TrustedFolder) -> Clean:
    words = _WORDS[folder.place]
    path = clean_line(folder.path)
    return Clean(f"{path}  ({words})") if words else path


def remove(folder: Path, *, as_json: bool) -> int:
    """Trust a folder no longer; 1 where it was not trusted. Raises OSError."""
    removed = forget(folder)
    if as_json:
        to_stdout([encode({"version": 1, "removed": removed}), b"\n"])
    elif not removed:
        note(f"gemtui was not told to trust {folder}: gemtui trust lists those it was")
    return 0 if removed else 1
