"""The driver of Qwen Code (assets/agents.md#the-gate-of-qwen-code)."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path

from gemtui.agent.claude import ClaudeDriver, OwnCommand
from gemtui.agent.claude_stream import ClaudeStream
from gemtui.agents import Agent
from gemtui.transcript.parts import Part, string

OWN_RULES = (
    "Ask me (by Qwen Code): Qwen Code asks by its own rules; gemtui can't see calls that it allows "
    "itself. You can't edit a call, and a question is denied after 10 minutes."
)
_DEFAULTS = "QWEN_CODE_SYSTEM_DEFAULTS_PATH"
_SYSTEM_SETTINGS = "QWEN_CODE_SYSTEM_SETTINGS_PATH"
_SYSTEM_FOLDERS = {
    "darwin": "/Library/Application Support/QwenCode",
    "win32": r"C:\ProgramData\qwen-code",
}
_FILE = "qwen-defaults.json"
_ASKED = (
    "agent",
    "edit",
    "grep_search",
    "glob",
    "mcp__*",
    "monitor",
    "notebook_edit",
    "read_file",
    "read_mcp_resource",
    "run_shell_command",
    "skill",
    "web_fetch",
    "write_file",
)
"""The tools that Qwen Code is told to ask about, whatever its settings allow."""
_ARGV = (
    "--input-format=stream-json",
    "--output-format=stream-json",
    "--include-partial-messages",
    "--approval-mode=default",
    "--exclude-tools=ask_user_question",
)


_CANCELLED = "[Operation Cancelled]"
"""The result of a call that was not made."""


class QwenStream(ClaudeStream):
    """Converts one run's output to events, line by line; call `finish` at the end."""

    agent = Agent.QWEN

    def _is_denied(self, block: Part, event: Part) -> bool:  # noqa: ARG002
        return string(block.get("content")).startswith(_CANCELLED)

    def _ended(self, event: Part, at: int) -> None:
        """Emit the end of the answer, without tokens: they contain hidden requests."""
        super()._ended({**event, "usage": {}}, at)


class QwenDriver(ClaudeDriver):
    """Starts Qwen Code, which speaks as Claude Code does but for its questions."""

    agent = Agent.QWEN
    not_found = "Qwen Code is not on PATH; install it with: npm install -g @qwen-code/qwen-code"
    newest_version = "0.24.4"
    oldest = (0, 24)
    version_file = "qwen-version.json"
    turn_limit = "--max-session-turns"
    streams = QwenStream

    def _own_command(
        self,
        environ: Mapping[str, str],
        cwd: Path,  # noqa: ARG002
        folder: Path,
    ) -> OwnCommand:
        if _has_defaults(environ):
            return OwnCommand(argv=_ARGV, notes=(OWN_RULES,))
        return OwnCommand(
            argv=_ARGV,
            notes=(OWN_RULES,),
            environ={_DEFAULTS: str(folder / _FILE)},
            files={_FILE: json.dumps({"permissions": {"ask": _ASKED}})},
        )


def _has_defaults(environ: Mapping[str, str]) -> bool:
    """Return whether this machine has a file of defaults, which gemtui's would replace."""
    settings = environ.get(_SYSTEM_SETTINGS)
    folder = _SYSTEM_FOLDERS.get(sys.platform, "/etc/qwen-code")
    place = Path(settings).parent if settings else Path(folder)
    return _DEFAULTS in environ or (place / "system-defaults.json").exists()
