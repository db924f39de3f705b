"""The answers of a run's gate to an agent about its calls, not yet in the agent's own JSON.

Each agent has a transport that spells these answers as its agent reads them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Pass:
    """The gate changes nothing: the agent's own rules decide, or the agent just goes on."""


@dataclass(frozen=True, slots=True)
class Allow:
    """The call is made, with exactly these arguments."""

    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Deny:
    """The call is not made; the model reads why."""

    reason: str


@dataclass(frozen=True, slots=True)
class Stop:
    """The call is not made, and the run ends."""

    reason: str


@dataclass(frozen=True, slots=True)
class Say:
    """The model reads this text, and goes on."""

    context: str


@dataclass(frozen=True, slots=True)
class Prompt:
    """The agent goes on with this prompt."""

    text: str


Verdict = Pass | Allow | Deny | Stop | Say | Prompt
