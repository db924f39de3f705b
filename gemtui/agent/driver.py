"""The interface to an agent: finding its program, its command, and the events it prints."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Protocol

from gemtui.agent.approval import ApprovalRequest
from gemtui.agent.command import Command, Machine
from gemtui.agent.detect import Capabilities, Cli, Detected
from gemtui.agent.events import AgentEvent
from gemtui.agent.options import AgentOptions
from gemtui.agent.output import Malformed, Parsed
from gemtui.agent.run_folder import Request
from gemtui.agent.stream import Ending
from gemtui.agents import Agent


class EventStream(Protocol):
    """Converts one run's output to events, line by line.

    `session_id`: the session's id, as far as it is known.
    """

    session_id: str | None

    @property
    def parse(self) -> Callable[[bytes], Any]:
        """A function that parses a line for `feed`, or raises orjson.JSONDecodeError."""

    def feed(self, line: Parsed | Malformed) -> Iterable[AgentEvent]:
        """Return the events for one line."""

    def question_events(self, question: ApprovalRequest | None) -> Iterable[AgentEvent]:
        """Return the events for a question to the user; None is one that can't be read."""

    def finish(self, ending: Ending) -> Iterable[AgentEvent]:
        """Return the last events, after all output has been read."""


class Driver(Protocol):
    """Starts an agent and reads its output.

    `not_found`: the message if its program is missing. `newest`, `newest_version`: the features and
    the version to assume then.
    """

    agent: Agent
    not_found: str
    newest: Capabilities
    newest_version: str

    def find(self, environ: Mapping[str, str]) -> Cli | None:
        """Return the program on this machine, without starting it; None if there is none."""

    def version(self, cli: Path, environ: Mapping[str, str]) -> str | None:
        """Return the program's version; None if it doesn't answer. May take seconds."""

    def detect(self, environ: Mapping[str, str], cli: Path | None) -> Detected:
        """Return the program, its version and features. May take seconds. Never raises.

        `cli`: the program, if it is already known.
        """

    def machine(
        self,
        cli: Path,
        capabilities: Capabilities,
        version: str | None,
        *,
        environ: Mapping[str, str],
        cwd: Path,
        runs: Path,
    ) -> Machine:
        """Return everything that a command in `cwd` depends on, apart from the options.

        `runs`: the folder that contains the runs' folders.
        """

    def command(
        self,
        prompt: str,
        options: AgentOptions,
        machine: Machine,
        *,
        folder: Path,
        session_id: str | None,
    ) -> Command:
        """Return the command that runs `prompt` with `options`.

        `folder`: the run's. `session_id`: for a new session. Raises OptionError.
        """

    def stream(self, request: Request, hides: Callable[[str], bool]) -> EventStream:
        """Return what converts a run's output to events.

        `hides`: returns whether a tool that the agent did not find is hidden from the run.
        """
