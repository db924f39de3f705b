"""The home folder of `gemtui --demo`: three projects, three weeks of work.

The demo is for people who have no sessions yet, and for screenshots. All of its contents are sample
data. The folder `home` next to this module is a user's home directory, with `.gemini` as Gemini CLI
leaves it, and with those project files that no session wrote. To add a session, add its file to
that `.gemini` folder.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import shutil
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

from gemtui.agents import FOLDER_VARIABLES
from gemtui.jsonout import iso
from gemtui.processes import python

_HOME = Path(__file__).with_name("home")
_PERSON = "/home/ada"
"""The home directory in the packaged files."""
_NOW = datetime(2026, 11, 21, 1, tzinfo=UTC)
"""The current time from the packaged files' point of view."""
_UNDATED = datetime(2026, 11, 18, 22, 1, 46, tzinfo=UTC)
"""The time of the packaged checkpoint, which, unlike other files, contains none."""

_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
_TIME_IN_NAME = re.compile(r"\d{4}-\d\d-\d\dT\d\d-\d\d")
_DATE = re.compile(r"(?<=Today's date is )\w+, \w+ \d\d, \d{4}")


def write_store(home: Path, *, now: datetime) -> None:
    """Write the demo's store under `home`, which serves as a user's home directory.

    `home/.gemini` is as Gemini CLI leaves it, and the project folders in `home` contain the files
    that the sessions wrote. `now`: a timezone-aware time, which becomes the time of the last write
    in the newest session. The same arguments always produce the same bytes. Raises OSError.
    """
    shift = now - _NOW
    hashes = _project_hashes(home)
    for source in filter(Path.is_file, _HOME.rglob("*")):
        text = source.read_text("utf-8")
        times = [datetime.fromisoformat(time) for time in _TIME.findall(text)] or [_UNDATED]
        named = json.dumps(str(home))[1:-1] if source.suffix.startswith(".json") else str(home)
        text = _replaced(text, hashes | {_PERSON: named})
        text = _TIME.sub(lambda time: iso(datetime.fromisoformat(time[0]) + shift), text)
        text = _DATE.sub(f"{times[0] + shift:%A, %B %d, %Y}", text)
        name = _replaced(str(source.relative_to(_HOME)), hashes)
        name = _TIME_IN_NAME.sub(f"{times[0] + shift:%Y-%m-%dT%H-%M}", name)
        _write(home / name, text)
        written = (times[-1] + shift).timestamp()
        os.utime(home / name, (written, written))
    _write_projects(home)


def _project_hashes(home: Path) -> dict[str, str]:
    """Map each project hash in the packaged files to the hash of its path in `home`."""
    projects = json.loads((_HOME / ".gemini" / "projects.json").read_bytes())["projects"]
    return {_hash(root): _hash(root.replace(_PERSON, str(home))) for root in projects}


def _hash(root: str) -> str:
    return hashlib.sha256(os.fsencode(root)).hexdigest()


def _replaced(text: str, words: Mapping[str, str]) -> str:
    for old, new in words.items():
        text = text.replace(old, new)
    return text


def _write_projects(home: Path) -> None:
    """Write the projects' files as they are after the last session."""
    for marker in (home / ".gemini" / "tmp").glob("*/.project_root"):
        root = Path(os.fsdecode(marker.read_bytes()))
        for log in sorted(marker.parent.glob("chats/session-*")):
            for name, content in _edits(log):
                _write(root / name, content)


def _edits(log: Path) -> Iterator[tuple[str, str]]:
    """Yield the path and contents of each file a session wrote, in order."""
    text = log.read_text("utf-8")
    lines = text.splitlines() if log.suffix == ".jsonl" else [text]
    for record in map(json.loads, lines):
        for message in record.get("messages", [record]):
            for call in message.get("toolCalls", ()):
                display = call["resultDisplay"]
                if call["status"] == "success" and "newContent" in display:
                    yield call["args"]["file_path"], display["newContent"]


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode("utf-8", "surrogateescape"))


PROJECT = "src/tidewatch"
"""The folder in which runs start, relative to the demo's home."""

POLICIES = Path(__file__).with_name("policies")
"""The folder with the demo's policies: one for everyday use and a read-only one."""

DEMO_SETTINGS = {
    "general": {"defaultApprovalMode": "auto_edit"},
    "tools": {"allowed": ["run_shell_command"]},
}


def install_agent(home: Path) -> dict[str, str]:
    """Install the stand-in for Gemini CLI (`demo.agent`) in the demo's `home`.

    Returns the environment variables to add. They name the program, its home, settings with two
    policies, and folders for gemtui's own files and for other agents, so that the user's files are
    neither shown nor touched. Raises OSError.
    """
    program = home / "bin" / "gemini"
    program.parent.mkdir()
    words = shlex.join(python("-m", "gemtui.demo.agent"))
    program.write_text(f'#!/bin/sh\nexec {words} "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    store = home / ".gemini"
    (store / "settings.json").write_text(json.dumps(DEMO_SETTINGS, indent=2), encoding="utf-8")
    trusted = {str(home): "TRUST_FOLDER"}
    (store / "trustedFolders.json").write_text(json.dumps(trusted, indent=2), encoding="utf-8")
    config = home / "config" / "config.toml"
    shutil.copytree(POLICIES, config.parent / "policies")
    return {
        "GEMTUI_CONFIG": str(config),
        "GEMINI_CLI_HOME": str(home),
        "GEMINI_CLI_PATH": str(program),
        "XDG_DATA_HOME": str(home / "data"),
        "XDG_STATE_HOME": str(home / "state"),
        "XDG_CACHE_HOME": str(home / "cache"),
        **{name: str(home / "other agents") for name in FOLDER_VARIABLES.values()},
    }
