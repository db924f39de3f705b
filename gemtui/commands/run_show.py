"""The output of a run in a terminal: the answer on stdout, progress on stderr."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import click

from gemtui.agent.events import (
    AgentEvent,
    Done,
    ErrorSaid,
    ResultStatus,
    TextDelta,
    TextSaid,
    ToolResult,
    ToolUse,
)
from gemtui.agent.options import AgentOptions
from gemtui.agent.run_folder import Request
from gemtui.commands.output import note, stdout_encoding, to_stdout
from gemtui.jsonout import encode
from gemtui.runs.ending import Status
from gemtui.runs.outcome import GO_ON, RunProgress, outcome_line, retry_words
from gemtui.text import Clean, clean, clean_line, command_line, counted, duration, ellipsis
from gemtui.transcript.model import ToolCall, ToolStatus
from gemtui.transcript.tools import target

NO_RESULT = "GEMINI_NO_RESULT"
"""The error that precedes an end without a result; the outcome explains more."""
_WIDTH = 160
_AHEAD = 4 * 1024 * 1024
"""The most bytes that may be waiting for the reader."""
_CODES = {
    Status.OK: 0,
    Status.WARNING: 0,
    Status.REFUSED: 0,
    Status.INCOMPLETE: 1,
    Status.FAILED: 1,
    Status.TURN_LIMIT: 53,
    Status.TIMEOUT: 124,
    Status.BUDGET: 79,
    Status.INTERRUPTED: 130,
}
"""The exit codes of `gemtui run`, by status."""


class Show:
    """Turns a run's events into output.

    `as_json`: print the events themselves to stdout. `fail_on_denied`: treat a finished run as
    failed if any of its calls were denied.
    """

    def __init__(self, *, as_json: bool, quiet: bool, fail_on_denied: bool = False) -> None:
        self._as_json, self._quiet = as_json, quiet
        self._fail_on_denied = fail_on_denied
        self._progress = RunProgress()
        self._streamed = self._midline = self._failed = False

    def set_request(self, request: Request) -> None:
        """Set the request of the run that has started."""
        self._progress.request = request

    def output(self, event: AgentEvent) -> bytes:
        """Return the bytes to write to stdout for one event; print progress to stderr."""
        self._progress.add(event)
        if self._as_json:
            return encode(self._with_denied(event)) + b"\n"
        match event.payload:
            case ErrorSaid(recoverable=True, code=code, message=message) if code != NO_RESULT:
                self.progress(f"warning: {message}")
            case ToolUse() as use:
                self.progress(f"  {_call(use)}")
            case ToolResult(status=status) as result if status is not ResultStatus.SUCCESS:
                self.progress(f"  {_failure(result)}")
            case _:
                pass
        return "".join(self._text(event)).encode(stdout_encoding(), "replace")

    def _with_denied(self, event: AgentEvent) -> dict[str, Any]:
        """Return the event as JSON; the run's last event gets the list of denied calls."""
        told = event.to_dict()
        if isinstance(event.payload, Done) and self._progress.denied:
            told["metadata"] = {**(event.metadata or {}), "deniedCalls": self._progress.denied}
        return told

    def _text(self, event: AgentEvent) -> Iterator[str]:
        match event.payload:
            case TextDelta(delta=text):
                self._streamed = True
                yield self._piece(text)
            case TextSaid(content=text):
                if not self._streamed:
                    yield self._piece(text)
                if self._midline:
                    yield "\n"
                self._streamed = self._midline = False
            case _:
                pass

    def _piece(self, text: str) -> Clean:
        piece = clean(text)
        if piece:
            self._midline = not piece.endswith("\n")
        return piece

    def progress(self, words: str) -> None:
        """Print one line to stderr, truncated to a reasonable width."""
        if not self._quiet:
            lead = words[: len(words) - len(words.lstrip())]
            click.echo(lead + ellipsis(clean_line(words), _WIDTH), err=True)

    def note(self, words: str) -> None:
        """Print one line about this run to stderr, without truncating it."""
        if not self._quiet:
            click.echo(f"note: {clean_line(words)}", err=True)

    def resolve_writes(self, folder: Path) -> None:
        """Find out from the files in `folder` whether writes of unknown outcome happened.

        `folder`: the folder in which the run worked.
        """
        self._progress.settle(folder)

    def fail(self) -> None:
        """Mark the run as failed, however it ended, because its session is lost."""
        self._failed = True

    def stderr(self, text: str) -> None:
        """Show the retries that the CLI reports in `text`, whole lines from its stderr."""
        if words := retry_words(text):
            self.progress(words)

    def close(self, stderr: str) -> int:
        """Report the end of the run; return the exit code.

        `stderr`: the CLI's stderr, or the beginning of it.
        """
        outcome, done = self._progress.outcome(stderr), self._progress.done
        assert outcome is not None
        assert done is not None
        words = outcome_line(outcome, resume=done.resume_token)
        denied = self._fail_on_denied and bool(self._progress.denied)
        code = _CODES[outcome.status] or int(self._failed or denied)
        if code != 0 or (outcome.status is not Status.OK and not self._quiet):
            note(words)
        if code == 0 and not self._as_json:
            self.progress(self._summary(done))
        return code

    def quota_until(self, stderr: str) -> datetime | None:
        """Return when the quota whose exhaustion ended the run is renewed.

        Returns None if the run did not end because of a quota.
        """
        outcome = self._progress.outcome(stderr)
        return None if outcome is None else outcome.until

    def continued(self, prompt: str, options: AgentOptions) -> tuple[str, AgentOptions]:
        """Return the prompt and options that continue an interrupted run.

        If there was no answer at all to the prompt, the same prompt is sent again.
        """
        done = self._progress.done
        if done is None or not self._progress.resumable:
            return prompt, options
        return GO_ON, replace(options, resume=done.resume_token)

    def _summary(self, done: Done) -> str:
        parts = [duration(timedelta(milliseconds=done.duration_ms))]
        if done.tool_uses:
            parts.append(counted(done.tool_uses, "tool call"))
        if self._progress.written:
            parts.append(f"wrote {', '.join(self._progress.written)}")
        if done.resume_token:
            parts.append(f"session {done.resume_token}")
        return "; ".join(parts)


def _call(use: ToolUse) -> str:
    call = ToolCall(
        id=use.tool_use_id, name=use.tool_name, args=use.input, status=ToolStatus.RUNNING
    )
    return f"{use.tool_name} {command_line(target(call))}"


def _failure(result: ToolResult) -> str:
    word = "denied" if result.status is ResultStatus.DENIED else "failed"
    output = result.output if isinstance(result.output, str) else ""
    why = next((line for line in output.splitlines() if line.strip()), "")
    return f"{word}: {result.tool_name}" + (f": {why}" if why else "")


class Writer:
    """Writes to stdout in the background, in order, so that a slow reader doesn't delay ctrl+c.

    `failed`: called when nobody reads the data.
    """

    def __init__(self, failed: Callable[[], None]) -> None:
        self._failed = failed
        self._waiting: list[bytes] = []
        self._size = 0
        self._closed = False
        self._more, self._room = asyncio.Event(), asyncio.Event()
        self._task = asyncio.ensure_future(self._write())

    async def write(self, data: bytes) -> None:
        """Queue `data`, waiting while the reader is far behind.

        Data that can't be written is discarded.
        """
        if self._task.done():
            return
        self._waiting.append(data)
        self._size += len(data)
        self._more.set()
        if self._size > _AHEAD:
            self._room.clear()
            await self._room.wait()

    async def close(self) -> None:
        """Wait until everything has been written. Raises the writer's errors."""
        self._closed = True
        self._more.set()
        await self._task

    async def _write(self) -> None:
        try:
            while self._waiting or not self._closed:
                await self._more.wait()
                self._more.clear()
                data, self._waiting, self._size = self._waiting, [], 0
                await asyncio.to_thread(to_stdout, data)
                self._room.set()
        except OSError:
            self._failed()
            raise
        finally:
            self._room.set()
