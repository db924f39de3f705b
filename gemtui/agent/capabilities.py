"""The features of the installed CLI's command line, parsed from its `--help`."""

from __future__ import annotations

import re
from dataclasses import dataclass

_FLAG = re.compile(r"^\s+(?:-\w, )?--([a-z][a-z-]*)(.*)$", re.MULTILINE)
_CHOICES = re.compile(r"\[choices: ([^\]]*)\]")
_QUOTED = re.compile(r'"([^"]*)"')

MODELS = (
    "auto",
    "pro",
    "flash",
    "flash-lite",
    "gemini-2.5-pro",
    "gemini-2.5-flash",
    "gemini-2.5-flash-lite",
    "gemini-3-pro-preview",
    "gemini-3-flash-preview",
    "gemini-3.1-pro-preview",
    "gemini-3.1-pro-preview-customtools",
    "gemini-3.1-flash-lite",
    "gemini-3-flash",
    "gemini-3.5-flash",
    "gemini-3.5-flash-lite",
    "gemini-3.8-flash",
    "gemma-4-31b-it",
    "gemma-4-26b-a4b-it",
)
"""The model names that Gemini CLI 0.61.0 recognizes as values of `--model`.

The CLI sends any other name to the API unchanged.
"""
ALIASES = frozenset({"auto", "pro", "flash", "flash-lite"})
"""The names in `MODELS` that are aliases for another model."""

STREAM_JSON = "stream-json"
"""The value of `--output-format` for runs, accepted since CLI 0.11.

See assets/gemini-cli.md#events.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """The features of the CLI's command line; `flags` are without leading dashes."""

    flags: frozenset[str]
    output_formats: tuple[str, ...] = ()
    approval_modes: tuple[str, ...] = ()

    def supports(self, flag: str) -> bool:
        """Return whether the CLI accepts a flag.

        The CLI exits with code 1 if it is passed any other flag.
        """
        return flag in self.flags

    @property
    def streams(self) -> bool:
        """Whether the CLI can report a run's events while the run is in progress."""
        return STREAM_JSON in self.output_formats

    @property
    def sufficient(self) -> bool:
        """Whether gemtui can start runs: the CLI reports events and reads policy files."""
        return self.streams and self.supports("policy")

    def to_dict(self) -> dict[str, object]:
        """Return the capabilities as `gemtui doctor --json` prints them.

        `web_search` and `thinking` are always true, because they don't depend on flags: web search
        is a tool, and thoughts are in the stored session, though never in the stream.
        """
        return {
            "stream": self.streams,
            "resume": self.supports("resume"),
            "session_id": self.supports("session-id"),
            "policies": self.supports("policy"),
            "skip_trust": self.supports("skip-trust"),
            "approval_modes": list(self.approval_modes),
            "models": list(MODELS),
            "web_search": True,
            "thinking": True,
        }


NEWEST = Capabilities(
    flags=frozenset(
        {
            "allowed-mcp-server-names",
            "approval-mode",
            "extensions",
            "include-directories",
            "model",
            "output-format",
            "policy",
            "prompt",
            "resume",
            "sandbox",
            "session-id",
            "skip-trust",
        }
    ),
    output_formats=("text", "json", STREAM_JSON),
    approval_modes=("default", "auto_edit", "yolo", "plan"),
)
"""The capabilities of version `CHECKED_AGAINST`, assumed if no CLI is installed."""


def parse_help(text: str) -> Capabilities:
    """Parse the output of `--help`; any other text yields no capabilities."""
    lines = dict(_FLAG.findall(text))
    return Capabilities(
        flags=frozenset(lines),
        output_formats=_choices(lines.get("output-format", "")),
        approval_modes=_choices(lines.get("approval-mode", "")),
    )


def _choices(line: str) -> tuple[str, ...]:
    found = _CHOICES.search(line)
    return tuple(_QUOTED.findall(found[1])) if found else ()
