"""Where the agents besides Gemini CLI keep their session files.

Both have a folder for each project: Claude Code `projects/FOLDER/ID.jsonl`, and the sessions of
subagents in `projects/FOLDER/ID/subagents`; Qwen Code `projects/FOLDER/chats/ID.jsonl`, and
`projects/FOLDER/subagents/ID`. FOLDER is made of the project's path in a way that can't be
reversed; the sessions themselves name the path.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from gemtui.agents import Agent, other_roots
from gemtui.paths import gemini_home

SESSION = re.compile(r"(?!agent-)(.{1,8}).*\.jsonl", re.DOTALL)
SUBAGENT = re.compile(r"agent-(.+)\.jsonl", re.DOTALL)


class Shelf(NamedTuple):
    """The session files of one agent. `projects`: the folder with a folder for each project."""

    agent: Agent
    projects: Path

    def key(self, folder: str) -> str:
        """Return the key of a project's folder; no folder of Gemini CLI's has such a name."""
        return f"{self.agent}/{folder}"

    def chats(self, folder: str) -> Path:
        """Return the folder that holds a project's sessions."""
        project = self.projects / folder
        return project / "chats" if self.agent is Agent.QWEN else project

    def callers(self, folder: str) -> Path:
        """Return the folder with a folder for each session of a project that called subagents."""
        project = self.projects / folder
        return project / "subagents" if self.agent is Agent.QWEN else project

    def subagents(self, folder: str, session: str) -> Path:
        """Return the folder that holds the sessions of a session's subagents."""
        caller = self.callers(folder) / session
        return caller if self.agent is Agent.QWEN else caller / "subagents"

    def name_of(self, path: Path) -> tuple[str, str, str | None] | None:
        """Return (project key, name id, parent) as in `ChatFile`; None if it is no session file.

        A file that has a parent holds a subagent's session.
        """
        if not path.is_relative_to(self.projects) or path == self.projects:
            return None
        folder = path.relative_to(self.projects).parts[0]
        parent = self._caller(folder, path.parent)
        if parent is None and path.parent != self.chats(folder):
            return None
        match = (SUBAGENT if parent else SESSION).fullmatch(path.name)
        return None if match is None else (self.key(folder), match[1], parent)

    def is_folder(self, path: Path) -> bool:
        """Return whether sessions may lie in a folder, or in folders below it."""
        if not path.is_relative_to(self.projects):
            return False
        parts = path.relative_to(self.projects).parts
        if not parts:
            return True
        project, callers = parts[0], self.callers(parts[0])
        if path in (self.projects / project, self.chats(project), callers):
            return True
        is_caller = path.parent == callers and "." not in path.name
        return is_caller or self._caller(project, path) is not None

    def _caller(self, folder: str, path: Path) -> str | None:
        """Return the session whose subagents lie in a folder; None if it is no such folder."""
        for session in (path.name, path.parent.name):
            if path == self.subagents(folder, session):
                return session
        return None


def shelves(home: Path) -> tuple[Shelf, ...]:
    """Return the shelves beside the store in `home`: none beside one that is not the user's own."""
    if home != gemini_home():
        return ()
    return tuple(Shelf(agent, folder / "projects") for agent, folder in other_roots())


def agent_of_key(project_key: str) -> Agent:
    """Return the agent whose project has this key."""
    agent, slash, _ = project_key.partition("/")
    return Agent(agent) if slash else Agent.GEMINI
