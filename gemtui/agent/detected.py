"""What can be told of the installed CLI before it is run, and in words what is wrong with it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gemtui.agent.capabilities import Capabilities, parse_help
from gemtui.agent.detect import INSTALL_LINK, Answer, Cli, capabilities_of, find_cli, version_of
from gemtui.paths import cache_dir


@dataclass(frozen=True, slots=True, kw_only=True)
class Detected:
    """The CLI that a run would start. `problem`: why it can't, with the way out; None = it can.

    `cli` None: not found. `version` None: it did not say, or took too long; it may run all the
    same.
    """

    cli: Cli | None
    version: str | None
    capabilities: Capabilities
    problem: str | None

    def to_dict(self) -> dict[str, Any]:
        """What `gemtui doctor --json` says of it; null = unknown or not there."""
        cli = self.cli
        return {
            "path": None if cli is None else str(cli.path),
            "found_by": None if cli is None else cli.found_by.value,
            "version": self.version,
            "problem": None if cli is None else self.problem,
            "install": INSTALL_LINK,
            "capabilities": self.capabilities.to_dict() if self.capabilities.flags else None,
        }


def detect_cli(environ: Mapping[str, str] = os.environ) -> Detected:
    """Look for the CLI and ask it for its version and options, once per change of its file.

    Never raises. Asking takes seconds, looking up an earlier answer milliseconds.
    """
    cli = find_cli(environ)
    if cli is None:
        words = f"gemini was not found on PATH: install it from {INSTALL_LINK}"
        return Detected(cli=None, version=None, capabilities=parse_help(""), problem=words)
    answer = version_of(cli.path, cache=cache_dir(), environ=environ)
    found = capabilities_of(cli.path, cache=cache_dir(), environ=environ)
    problem = None if found.streams else _why_not(answer)
    return Detected(cli=cli, version=answer.text, capabilities=found, problem=problem)


def _why_not(version: Answer) -> str:
    """Why a CLI can't be run that does not take the words of a run."""
    if version.problem is not None:
        return f"{version.problem}: reinstall Gemini CLI ({INSTALL_LINK})"
    return (
        f"Gemini CLI {version.text} can't report a run as it happens: "
        f"update it to 0.11 or newer ({INSTALL_LINK})"
    )
