"""The real Claude Code and Qwen Code, installed by npm, each in a home of its own.

Both talk to a model on loopback, and with a test over stream-json: prompts and answers to questions
go in, events come out.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self

import pytest

from tests.npm import installed
from tests.patience import PATIENCE

CLAUDE_VERSION = os.environ.get("GEMTUI_TEST_CLAUDE_VERSION", "2.1.332")
QWEN_VERSION = os.environ.get("GEMTUI_TEST_QWEN_VERSION", "0.24.4")
QWEN_SETTINGS = {
    "security": {"auth": {"selectedType": "gemini"}},
    "general": {"enableAutoUpdate": False},
    "memory": {"enableManagedAutoMemory": False, "enableManagedAutoDream": False},
    "privacy": {"usageStatisticsEnabled": False},
}

Event = Mapping[str, Any]
Reply = Literal["allow", "deny", "interrupt", "kill"]


@dataclass(frozen=True, slots=True)
class Agent:
    """A home and a project, and the program that runs in them."""

    program: Path
    folder: Path

    @property
    def home(self) -> Path:
        """The user's home."""
        return self.folder / "home"

    @property
    def project(self) -> Path:
        """The folder in which the program is started."""
        return self.folder / "project"

    def set_up(self) -> Self:
        """Make the home and the project."""
        self.home.mkdir(parents=True)
        self.project.mkdir()
        return self

    def environment(self, url: str) -> dict[str, str]:
        """The whole environment: nothing of the person who runs the tests leaks in."""
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "LANG": "C.UTF-8",
            "TMPDIR": str(self.folder),
        }

    def session_file(self, session: str) -> Path:
        """Return the file of a session."""
        (found,) = self.home.rglob(f"{session}.jsonl")
        return found


class Claude(Agent):
    """Claude Code."""

    options = ("-p", "--verbose", "--permission-prompt-tool", "stdio")
    mode = "--permission-mode"

    def environment(self, url: str) -> dict[str, str]:
        """Name the model, and keep it from talking to anybody else."""
        return super().environment(url) | {
            "ANTHROPIC_BASE_URL": url,
            "ANTHROPIC_API_KEY": "not-a-key",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
        }


class Qwen(Agent):
    """Qwen Code, with a model that speaks the Gemini API."""

    options = ("--auth-type", "gemini", "-m", "gemini-2.5-flash")
    mode = "--approval-mode"

    def set_up(self) -> Self:
        """Make its settings, too."""
        super().set_up()
        self._settings.parent.mkdir()
        self._settings.write_text(json.dumps(QWEN_SETTINGS))
        return self

    @property
    def _settings(self) -> Path:
        return self.home / ".qwen/settings.json"

    def use_server(self, name: str, command: str, *arguments: str) -> None:
        """Let it start a server of MCP."""
        server = {"command": command, "args": arguments, "trust": True}
        settings = json.loads(self._settings.read_text())
        self._settings.write_text(json.dumps({**settings, "mcpServers": {name: server}}))

    def environment(self, url: str) -> dict[str, str]:
        """Name the model."""
        named = {"GEMINI_API_KEY": "not-a-key", "GOOGLE_GEMINI_BASE_URL": url}
        return super().environment(url) | named


def allow_all(question: Event) -> Reply:
    """Allow each call that is asked about."""
    return "allow"


class Talk:
    """One process of an agent; leaving it closes its input and waits for its end."""

    def __init__(
        self,
        agent: Claude | Qwen,
        url: str,
        *options: str,
        answer: Callable[[Event], Reply] = allow_all,
    ) -> None:
        self.events: list[Event] = []
        self._answer = answer
        stream = ("--input-format", "stream-json", "--output-format", "stream-json")
        words = [str(agent.program), *agent.options, agent.mode, "default", *stream, *options]
        self._errors = (agent.folder / "stderr").open("ab")
        self._process = subprocess.Popen(
            words,
            cwd=agent.project,
            env=agent.environment(url),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            start_new_session=True,
        )
        self._send(type="control_request", request_id="begin", request={"subtype": "initialize"})

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._errors.close()
        try:
            self._process.stdin.close()
            self._process.wait(PATIENCE)
        finally:
            self._kill()
            self._process.stdout.close()

    @property
    def session(self) -> str:
        """The session's id."""
        return next(str(event["session_id"]) for event in self.events if "session_id" in event)

    def send(self, content: object) -> None:
        """Send a prompt: a text, or blocks."""
        self._send(type="user", message={"role": "user", "content": content}, session_id="")

    def ask(self, content: object) -> Event:
        """Send a prompt and wait for the end of the turn."""
        self.send(content)
        return self.until("result")

    def until(self, kind: str) -> Event:
        """Wait for an event of a type, and answer the questions before it."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            event = json.loads(line)
            self.events.append(event)
            if event["type"] == "control_request":
                self._reply(event)
            if event["type"] == kind:
                return event  # type: ignore[no-any-return]
        raise EOFError(f"the agent has ended without {kind}")

    def _reply(self, event: Event) -> None:
        question = event["request"]
        match self._answer(question):
            case "allow":
                answer = {"behavior": "allow", "updatedInput": question["input"]}
            case "deny":
                answer = {"behavior": "deny", "message": "use tabs"}
            case "interrupt":
                request = {"subtype": "interrupt"}
                return self._send(type="control_request", request_id="stop", request=request)
            case "kill":
                return self._kill()
        response = {"subtype": "success", "request_id": event["request_id"], "response": answer}
        return self._send(type="control_response", response=response)

    def _send(self, **message: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        self._process.stdin.flush()

    def _kill(self) -> None:
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()


@pytest.fixture(scope="session")
def claude_program(pytestconfig: pytest.Config) -> Path:
    """The installed program: what the package itself starts, for this machine."""
    modules = installed(pytestconfig, "@anthropic-ai/claude-code", CLAUDE_VERSION)
    (program,) = modules.glob("@anthropic-ai/claude-code-*/claude")
    return program


@pytest.fixture(scope="session")
def qwen_program(pytestconfig: pytest.Config) -> Path:
    """The installed program."""
    return installed(pytestconfig, "@qwen-code/qwen-code", QWEN_VERSION) / ".bin" / "qwen"
