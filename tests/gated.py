"""A run that asks, on the real CLI, with hooks that lead to its gate."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from gemtui.agent.options import AgentOptions
from gemtui.extension.content import NAME, write
from gemtui.paths import extension_dir
from gemtui.runs.adapter import GeminiAdapter
from tests.model_server import ModelServer
from tests.real_cli import MODEL, GeminiCli


def put_hooks(gemini: GeminiCli) -> None:
    """Install the extension as the CLI's own command does, without waiting for that."""
    write()
    place = gemini.store / "extensions" / NAME
    place.mkdir(parents=True)
    link = {"source": str(extension_dir()), "type": "link"}
    (place / ".gemini-extension-install.json").write_text(json.dumps(link))


def asking(gemini: GeminiCli, model: ModelServer, *, cli: Path | None = None) -> GeminiAdapter:
    """An adapter whose runs can ask."""
    environ = gemini.environment(model.url)
    return GeminiAdapter(cli=cli or gemini.program, runs=gemini.folder / "runs", environ=environ)


def asked(gemini: GeminiCli, **more: Any) -> AgentOptions:
    """Options of a run that asks, in the default mode."""
    base: dict[str, Any] = {"cwd": gemini.project, "model": MODEL, "approval_mode": "default"}
    return AgentOptions(**(base | {"ask": True} | more))
