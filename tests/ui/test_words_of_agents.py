"""Screens that show any agent's sessions and runs name the agent by its own words."""

from __future__ import annotations

import ast
from pathlib import Path

import gemtui

PLACE = Path(gemtui.__file__).parent
SHARED = ("ui/run", "ui/transcript", "ui/review", "ui/undo", "transcript")
SHARED_FILES = (
    "commands/chat.py",
    "commands/run_ask.py",
    "runs/causes.py",
    "runs/gate/gate.py",
    "runs/gate/proposal.py",
    "runs/gate/similar_calls.py",
    "runs/outcome.py",
    "agent/stream.py",
    "agent/supervise.py",
)


def names_gemini(path: Path) -> bool:
    """Whether a module has a text with the name, other than in docstrings."""
    tree = ast.parse(path.read_text())
    docstrings = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    return any(
        isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and "Gemini" in node.value
        and id(node) not in docstrings
        for node in ast.walk(tree)
    )


def test_shared_screens_name_no_agent_themselves() -> None:
    paths = [path for folder in SHARED for path in (PLACE / folder).rglob("*.py")]
    paths += [PLACE / name for name in SHARED_FILES]
    assert [path.relative_to(PLACE).as_posix() for path in paths if names_gemini(path)] == []
