"""The agents whose sessions gemtui reads: their words, what gemtui can do with them, their folders.

Gemini CLI is the first of them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from enum import Flag, StrEnum, auto
from pathlib import Path
from typing import NamedTuple

from gemtui.system import HOME


class Agent(StrEnum):
    """An agent, by the name that JSON, `agent:` in a query, and `claude:ID` use."""

    GEMINI = "gemini"
    QWEN = "qwen"
    CLAUDE = "claude"

    __hash__ = str.__hash__


class Words(NamedTuple):
    """The names of an agent in texts.

    `program`: its name. `speaker`: who says what its model says. `command`: how a shell starts it.
    `letter`: its letter in the list.
    """

    program: str
    speaker: str
    command: str
    letter: str


WORDS: Mapping[Agent, Words] = {
    Agent.GEMINI: Words("Gemini CLI", "Gemini", "gemini", "G"),
    Agent.QWEN: Words("Qwen Code", "Qwen", "qwen", "Q"),
    Agent.CLAUDE: Words("Claude Code", "Claude", "claude", "C"),
}


class Can(Flag):
    """What gemtui may support, besides reading an agent's sessions: actions on them, and `RUN`.

    `CHANGE`: the user may change a call before it is made, and send words while the agent works.
    """

    RESUME = auto()
    FORK = auto()
    DELETE = auto()
    RESTORE = auto()
    RUN = auto()
    CHANGE = auto()


CAN: Mapping[Agent, Can] = {
    Agent.GEMINI: ~Can(0),
    Agent.QWEN: Can.RESUME | Can.RUN,
    Agent.CLAUDE: Can.RESUME | Can.FORK | Can.RESTORE | Can.RUN | Can.CHANGE,
}
RUNNABLE = tuple(agent for agent in Agent if Can.RUN in CAN[agent])
"""The agents that gemtui runs."""
_WHATS = {
    Can.RESUME: "continued",
    Can.FORK: "forked",
    Can.DELETE: "deleted",
    Can.RESTORE: "restored",
}


def why_not(agent: Agent, can: Can) -> str:
    """Return why gemtui can't do this with an agent's sessions, in words; "" if it can."""
    if can in CAN[agent]:
        return ""
    return f"Sessions of {WORDS[agent].program} can't be {_WHATS[can]} from gemtui."


def impossible(agent: Agent) -> list[str]:
    """Return what can't be done with an agent's sessions from gemtui, such as "forked"."""
    return [what for can, what in _WHATS.items() if can not in CAN[agent]]


class AgentFolder(NamedTuple):
    """The folder in which an agent keeps its data, such as `~/.claude`."""

    agent: Agent
    home: Path


FOLDER_VARIABLES = {Agent.QWEN: "QWEN_RUNTIME_DIR", Agent.CLAUDE: "CLAUDE_CONFIG_DIR"}
"""The variable that moves an agent's folder; else it is named after the command."""


_OLDER_FOLDERS = {Agent.CLAUDE: ".config/claude"}
"""The folder that earlier versions of an agent used."""


def other_roots(environ: Mapping[str, str] = os.environ) -> tuple[AgentFolder, ...]:
    """Return the folders of the agents besides Gemini CLI that have stored sessions here.

    There may be several of one agent; a folder that is a link to another one is left out.
    """
    base = Path(environ.get(HOME) or Path.home()).absolute()
    roots: dict[str, AgentFolder] = {}
    for agent, variable in FOLDER_VARIABLES.items():
        names = [f".{WORDS[agent].command}", *filter(None, [_OLDER_FOLDERS.get(agent)])]
        chosen = environ.get(variable)
        homes = [Path(chosen).absolute()] if chosen else [base / name for name in names]
        for home in homes:
            if os.path.isdir(home / "projects"):  # noqa: PTH112 (never raises)
                real = os.path.realpath(home / "projects")
                roots.setdefault(real, AgentFolder(agent, home))
    return tuple(roots.values())
