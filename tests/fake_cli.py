"""A program that stands in for the CLI: it knows --version and --help, then does as it is told.

What it does is written in the words of `tests/agent/child.py`.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from gemtui.agent import process_tree
from gemtui.agent.adapter import UnguardedAdapter
from gemtui.agent.run_folder import Request
from gemtui.paths import runs_dir

CHILD = Path(__file__).parent / "agent/child.py"
HELP = """Options:
  -m, --model            Model  [string]
      --approval-mode    Mode  [string] [choices: "default", "auto_edit", "yolo", "plan"]
      --policy           Policies  [array]
      --session-id       Start a new session  [string]
  -r, --resume           Resume  [string]
  -s, --sandbox          Sandbox  [boolean]
  -p, --prompt           Prompt  [string]
      --include-directories  Directories  [array]
  -o, --output-format    Format  [string] [choices: "text", "json", "stream-json"]
"""
INIT = '{"type":"init","session_id":"s1","model":"auto"}'
OK = '{"type":"result","status":"success"}'
FakeCli = Callable[..., Path]


def says(text: str) -> str:
    """A step that prints a piece of an answer."""
    return f'print:{{"type":"message","role":"assistant","content":"{text}","delta":true}}'


def uses(id: str, name: str, path: str) -> str:
    """A step that prints a call of a tool on a file."""
    given = f'{{"file_path":"{path}"}}'
    return f'print:{{"type":"tool_use","tool_name":"{name}","tool_id":"{id}","parameters":{given}}}'


def ends(id: str, status: str = "success") -> str:
    """A step that prints how a call ended."""
    return f'print:{{"type":"tool_result","tool_id":"{id}","status":"{status}"}}'


class HastyAdapter(UnguardedAdapter):
    """An adapter whose runs are killed soon after they were asked to end."""

    def _with_hidden(self, request: Request) -> Request:
        return replace(request, grace=0.3)


@pytest.fixture
def fake_cli(
    own_places: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[FakeCli]:
    """Make the CLI that a run finds do these steps; the words it was given stand in `words`."""

    def make(*steps: str, help: str = HELP, version: str = "0.61.0") -> Path:
        (tmp_path / "help.txt").write_text(help)
        program = tmp_path / "gemini"
        program.write_text(
            "#!/bin/sh\n"
            'case "$1" in\n'
            f"--version) echo {version}; exit 0;;\n"
            f"--help) /bin/cat {shlex.quote(str(tmp_path / 'help.txt'))}; exit 0;;\n"
            "esac\n"
            f'printf "%s\\n" "$@" > {shlex.quote(str(tmp_path / "words"))}\n'
            f"exec {shlex.join([sys.executable, str(CHILD), *steps])}\n"
        )
        program.chmod(0o755)
        monkeypatch.setenv("GEMINI_CLI_PATH", str(program))
        return program

    yield make
    for folder in runs_dir().glob("*"):
        process_tree.end_tagged(folder.name)
