"""A stand-in for Gemini CLI in the demo, with the CLI's own options.

The stand-in responds to `--version` and `--help`. Otherwise it reads a prompt from stdin or
`--prompt` and plays back a recording, whatever the prompt and the options are: events as
stream-json, the files of the recorded calls, and a stored session. Other options are ignored. It
works only under `$GEMINI_CLI_HOME`, where the demo's projects are. `$GEMTUI_DEMO_PACE` changes its
speed.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import signal
import sys
import time
import uuid
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import Any

from gemtui.system import ENDING

DEMO_CLI = "0.61.0-demo"
MODEL = "gemini-2.5-pro"

HELP = """\
Usage: gemini [options]

gemtui's stand-in for Gemini CLI. It plays back one recording, whatever it is asked.

Options:
  -m, --model                     Model to report  [string]
  -p, --prompt                    The prompt, appended to stdin  [string]
      --approval-mode             Has no effect here  [string] \
[choices: "default", "auto_edit", "yolo", "plan"]
      --policy                    Has no effect here  [array]
      --skip-trust                Has no effect here  [boolean]
      --include-directories       Has no effect here  [array]
  -e, --extensions                Has no effect here  [array]
      --allowed-mcp-server-names  Has no effect here  [array]
      --session-id                Start a new session with this id  [string]
  -r, --resume                    Continue a session by its full id  [string]
  -o, --output-format             The format of the output  [string] [choices: "stream-json"]
  -v, --version                   Show the version  [boolean]
  -h, --help                      Show this help  [boolean]
"""

_RECORDED = Path(__file__).with_name("recorded")
"""The recordings: `first.jsonl` for new sessions, `again.jsonl` for resumed ones.

Each line has `after`, the seconds since the previous line, and one of `event` (for stdout),
`record` (for the session's log) and `file` (a path in the project, and its contents). A placeholder
such as `@ROOT@` is replaced by its value in this run, and each `@ID1@` by a new id.
"""


def main(words: list[str]) -> int:
    """Behave like the CLI with these arguments; return the exit code it would return."""
    for number in ENDING:
        signal.signal(number, _end)
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("-m", "--model", default=MODEL)
    parser.add_argument("-p", "--prompt", default="")
    parser.add_argument("--session-id", default=str(uuid.uuid4()))
    parser.add_argument("-r", "--resume")
    parser.add_argument("-v", "--version", action="store_true")
    parser.add_argument("-h", "--help", action="store_true")
    wanted, _ = parser.parse_known_args(words)
    if wanted.version:
        print(DEMO_CLI)  # noqa: T201
        return 0
    if wanted.help:
        print(HELP, end="")  # noqa: T201
        return 0
    home, root = Path(os.environ["GEMINI_CLI_HOME"]).resolve(), Path.cwd()
    if not root.is_relative_to(home):
        print(f"The demo's Gemini CLI works only in the demo's projects: {home}", file=sys.stderr)  # noqa: T201
        return 1
    typed = "" if sys.stdin.isatty() else sys.stdin.read()
    session = wanted.resume or wanted.session_id
    values = {
        "@PROMPT@": "\n\n".join(filter(str.strip, (typed, wanted.prompt))),
        "@SESSION@": session,
        "@MODEL@": wanted.model,
        "@ROOT@": str(root),
        "@HOME@": str(home),
        "@HASH@": hashlib.sha256(os.fsencode(root)).hexdigest(),
        "@DATE@": f"{datetime.now(UTC):%A, %B %d, %Y}",
    }
    recording = _RECORDED / ("again.jsonl" if wanted.resume else "first.jsonl")
    log = _log(home / ".gemini" / "tmp" / _slug(home, root) / "chats", session)
    _play(recording.read_text("utf-8"), values, root, log)
    return 0


def _end(_number: int, _frame: FrameType | None) -> None:
    """Exit immediately with code 0, as the CLI does on SIGINT, SIGTERM, or SIGHUP."""
    os._exit(0)


def _play(recording: str, values: Mapping[str, str], root: Path, log: Path) -> None:
    """Play a recording as if it happened now, with values for its placeholders.

    Events are printed, records are appended to `log`, and files are written below `root`.
    """
    ids = {id: str(uuid.uuid4()) for id in re.findall(r"@ID\d+@", recording)}
    pace = float(os.environ.get("GEMTUI_DEMO_PACE", "1"))
    for line in recording.splitlines():
        step = json.loads(line)
        time.sleep(step["after"] * pace)
        step = _filled(step, {"@NOW@": _now(), **ids, **values})
        match step:
            case {"event": event}:
                print(json.dumps(event, ensure_ascii=False), flush=True)  # noqa: T201
            case {"record": record}:
                with log.open("a", encoding="utf-8", newline="\n") as file:
                    file.write(f"{json.dumps(record, ensure_ascii=False)}\n")
            case {"file": {"path": path, "text": text}}:
                (root / path).parent.mkdir(parents=True, exist_ok=True)
                (root / path).write_text(text, encoding="utf-8", newline="\n")


_WORD = re.compile(r"@[A-Z]+\d*@")


def _filled(value: Any, values: Mapping[str, str]) -> Any:
    """Replace the recording's placeholders in all strings of a JSON value."""
    match value:
        case dict():
            return {key: _filled(item, values) for key, item in value.items()}
        case list():
            return [_filled(item, values) for item in value]
        case str():
            return _WORD.sub(lambda word: values[word[0]], value)
    return value


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _log(chats: Path, id: str) -> Path:
    """Return the log to write: a new one, or the log of the session to resume.

    For a session written by an older CLI, a new log is created next to the session's file, as the
    CLI does.
    """
    logs = sorted(chats.glob(f"session-*-{id[:8]}.jsonl"), key=lambda log: log.stat().st_size)
    if logs:
        return logs[-1]
    for old in chats.glob(f"session-*-{id[:8]}.json"):
        stored = json.loads(old.read_text("utf-8"))
        records = (stored, *stored.pop("messages"))
        log = old.with_suffix(".jsonl")
        log.write_text("".join(f"{json.dumps(record)}\n" for record in records), encoding="utf-8")
        return log
    chats.mkdir(parents=True, exist_ok=True)
    return chats / f"session-{datetime.now(UTC):%Y-%m-%dT%H-%M}-{id[:8]}.jsonl"


def _slug(home: Path, root: Path) -> str:
    """Return the name of the project's folder in the store; register a new project."""
    registry = home / ".gemini" / "projects.json"
    projects = json.loads(registry.read_text("utf-8"))
    slug = projects["projects"].get(str(root))
    if slug is None:
        slug = re.sub(r"[^a-z0-9]+", "-", root.name.lower()).strip("-") or "project"
        projects["projects"][str(root)] = slug
        registry.write_text(json.dumps(projects, indent=2), encoding="utf-8")
    return str(slug)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
