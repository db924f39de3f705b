"""A stand-in for Gemini CLI in the demo, with the CLI's own options.

The stand-in responds to `--version` and `--help`. Otherwise it reads a prompt from stdin or
`--prompt`, and plays a scripted run as stream-json, with real files, real commands and a stored
session. It works only under `$GEMINI_CLI_HOME`, where the demo's projects are. `$GEMTUI_DEMO_PACE`
changes its speed.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import sys
import time
import uuid
from collections.abc import Mapping
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from gemtui.demo.live import EventWriter, LiveChat, find_log
from gemtui.demo.story import Player, TurnLimitReached, play
from gemtui.demo.tools import Bench, Rights

VERSION = "0.61.0-demo"
MODEL = "gemini-2.5-pro"
FAILED, NO_PROMPT, TURN_LIMIT = 1, 42, 53

HELP = """\
Usage: gemini [options]

gemtui's stand-in for Gemini CLI. It plays one piece, whatever it is asked.

Options:
  -m, --model                     Model to name  [string]
  -p, --prompt                    The prompt, behind what comes on stdin  [string]
      --approval-mode             What needs no confirmation  [string] \
[choices: "default", "auto_edit", "yolo", "plan"]
      --policy                    Policy files or folders  [array]
      --skip-trust                Trust the folder for this session  [boolean]
      --include-directories       Has no effect here  [array]
  -e, --extensions                Has no effect here  [array]
      --allowed-mcp-server-names  Has no effect here  [array]
      --session-id                Start a new session with this id  [string]
  -r, --resume                    Continue a session by its full id  [string]
  -o, --output-format             The format of the output  [string] [choices: "stream-json"]
  -v, --version                   Show the version  [boolean]
  -h, --help                      Show this  [boolean]
"""


class Refused(Exception):
    """Raised if no run is possible.

    `code`: the exit code. The message is written to stderr.
    """

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise Refused(FAILED, f"{HELP}\n{message}")


def main(words: list[str]) -> int:
    """Run with these arguments and return the exit code that the CLI would return."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, _end)
    try:
        wanted = _parser().parse_args(words)
        if wanted.version:
            print(VERSION)  # noqa: T201
        elif wanted.help:
            print(HELP, end="")  # noqa: T201
        else:
            return _run(wanted)
    except Refused as refused:
        print(refused, file=sys.stderr)  # noqa: T201
        return refused.code
    return 0


def _end(_number: int, _frame: FrameType | None) -> None:
    """Exit immediately with code 0, leaving child processes running, as the CLI does."""
    os._exit(0)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="gemini", add_help=False, allow_abbrev=False)
    parser.add_argument("-m", "--model")
    parser.add_argument("-p", "--prompt", default="")
    parser.add_argument("--approval-mode", choices=("default", "auto_edit", "yolo", "plan"))
    parser.add_argument("--policy", action="append", type=Path)
    for name in ("--include-directories", "--extensions", "--allowed-mcp-server-names"):
        parser.add_argument(name, *(["-e"] if name == "--extensions" else []), action="append")
    parser.add_argument("--session-id")
    parser.add_argument("-r", "--resume")
    parser.add_argument("-o", "--output-format", choices=("stream-json",))
    for name in ("version", "help"):
        parser.add_argument(f"-{name[0]}", f"--{name}", action="store_true")
    parser.add_argument("--skip-trust", action="store_true")
    return parser


def _run(wanted: argparse.Namespace) -> int:
    began = time.monotonic()
    home, root = Path(os.environ["GEMINI_CLI_HOME"]).resolve(), Path.cwd()
    if not root.is_relative_to(home):
        raise Refused(
            FAILED,
            f"The demo's stand-in for Gemini CLI works only in the demo's projects: {home}",
        )
    prompt = _prompt(wanted.prompt)
    bench = Bench(root, _slug(home, root))
    chat = _chat(bench, home, wanted)
    settings = _settings(home)
    mode = wanted.approval_mode or settings.get("general", {}).get("defaultApprovalMode", "default")
    policies = wanted.policy or [home / ".gemini" / "policies"]
    said = EventWriter()
    player = Player(
        chat,
        said,
        Rights(mode, settings, policies),
        pace=float(os.environ.get("GEMTUI_DEMO_PACE", "1")),
        turns=settings.get("model", {}).get("maxSessionTurns"),
    )
    said("init", session_id=chat.id, model=wanted.model or "auto")
    said("message", role="user", content=prompt)
    chat.ask(prompt)
    try:
        play(player, bench, resumed=bool(wanted.resume))
    except TurnLimitReached:
        error = {"type": "FatalTurnLimitedError", "message": "Reached max session turns."}
        said("result", status="error", error=error, stats=_stats(player, 0))
        return TURN_LIMIT
    said("result", status="success", stats=_stats(player, time.monotonic() - began))
    return 0


def _prompt(word: str) -> str:
    typed = "" if sys.stdin.isatty() else sys.stdin.read()
    prompt = "\n\n".join(filter(str.strip, (typed, word)))
    if not prompt:
        raise Refused(NO_PROMPT, "No input provided via stdin. Pipe a prompt, or use --prompt.")
    return prompt


def _chat(bench: Bench, home: Path, wanted: argparse.Namespace) -> LiveChat:
    """Return the session of this run: a new one, or the one to resume."""
    id = wanted.resume or wanted.session_id or str(uuid.uuid4())
    chats = home / ".gemini" / "tmp" / bench.slug / "chats"
    log = find_log(chats, id)
    if wanted.resume and log is None:
        raise Refused(NO_PROMPT, f'Error resuming session: Invalid session identifier "{id}".')
    if not wanted.resume and log is not None:
        raise Refused(NO_PROMPT, f"Session ID {id} already exists.")
    return LiveChat(bench, id, chats, model=wanted.model or MODEL, resumed=log)


def _slug(home: Path, root: Path) -> str:
    """Return the project's folder name in the store; register a new project."""
    registry = home / ".gemini" / "projects.json"
    projects = json.loads(registry.read_text("utf-8"))
    slug = projects["projects"].get(str(root))
    if slug is None:
        slug = re.sub(r"[^a-z0-9]+", "-", root.name.lower()).strip("-") or "project"
        projects["projects"][str(root)] = slug
        registry.write_text(json.dumps(projects, indent=2), encoding="utf-8")
    return str(slug)


def _settings(home: Path) -> Mapping[str, Any]:
    """Return the user's settings, overridden by the run's settings in each section."""
    named = os.environ.get("GEMINI_CLI_SYSTEM_SETTINGS_PATH")
    merged: dict[str, Any] = {}
    for path in (home / ".gemini" / "settings.json", *([Path(named)] if named else [])):
        for section, values in json.loads(path.read_text("utf-8")).items():
            merged[section] = {**merged.get(section, {}), **values}
    return merged


def _stats(player: Player, seconds: float) -> dict[str, Any]:
    used = player.chat.used
    return {
        "total_tokens": used["total"],
        "input_tokens": used["input"],
        "output_tokens": used["output"],
        "cached": used["cached"],
        "duration_ms": round(seconds * 1000),
        "tool_calls": player.calls,
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
