"""Print a run's output in a terminal: the answer on stdout, progress on stderr."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
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
from gemtui.paths import gemini_home
from gemtui.runs.ending import Status
from gemtui.runs.outcome import GO_ON, RunProgress, outcome_line, retry_words
from gemtui.runs.recorded_calls import RecordedCalls
from gemtui.text import clean, clean_line, command_line, counted, duration, ellipsis
from gemtui.transcript.model import ToolCall, ToolStatus
from gemtui.transcript.tools import target

NO_RESULT = "GEMINI_NO_RESULT"
"""The code of the error event that is sent if a run ends without a result.

It isn't printed, because the run's outcome explains more.
"""
_WIDTH = 160
_AHEAD = 4 * 1024 * 1024
"""How many bytes may be waiting for a slow reader before `Writer.write` waits."""


class Show:
    """Turns a run's events into output.

    `as_json`: print the events themselves to stdout, as JSON. `quiet`: print no progress and no
    notes. `fail_on_denied`: return exit code 1 if any of the run's calls were denied.
    """

    def __init__(self, *, as_json: bool, quiet: bool, fail_on_denied: bool = False) -> None:
        self._as_json, self._quiet = as_json, quiet
        self._fail_on_denied = fail_on_denied
        self._progress = RunProgress()
        self._recorded, self._looked = RecordedCalls(gemini_home()), 0
        self._streamed = self._midline = self._failed = False

    def set_request(self, request: Request) -> None:
        """Set the request from which the run was started."""
        self._progress.request = request

    def needs_session(self, event: AgentEvent) -> bool:
        """Return whether `read_session` should be called before this event is shown.

        That is the case if a command has ended. Gemini CLI stores its exit code before the model
        goes on.
        """
        commands, payload = len(self._progress.unrecorded), event.payload
        return not isinstance(payload, ToolResult) and (
            commands > self._looked or isinstance(payload, Done)
        )

    def read_session(self, event: AgentEvent) -> None:
        """Report the commands that have failed since the last time. Blocking: reads the session.

        `event`: the one that is shown next; before the last one, dropped calls are looked for, and
        rules that denied calls.
        """
        progress = self._progress
        if progress.session is not None and progress.unrecorded:
            recorded = self._recorded.read(progress.session, tuple(progress.unrecorded))
            for call in progress.add_recorded(recorded):
                subject = f"{call.name} {command_line(target(call))}".strip()
                self.progress(f"  failed: {subject}: exit code {call.exit_code}")
        self._looked = len(progress.unrecorded)
        if isinstance(event.payload, Done):
            progress.read_dropped(self._recorded)
            progress.name_rules()

    def output(self, event: AgentEvent) -> bytes:
        """Return what to write to stdout for one event; print any progress to stderr."""
        self._progress.add(event)
        if self._as_json:
            return encode(self._with_lists(event)) + b"\n"
        match event.payload:
            case ErrorSaid(recoverable=True, code=code, message=message) if code != NO_RESULT:
                self.progress(f"warning: {message}")
            case ToolUse() as use:
                self.progress(f"  {_call(use)}")
            case ToolResult(status=status) as result if status is not ResultStatus.SUCCESS:
                self.progress(f"  {failure_words(result)}")
            case _:
                pass
        return "".join(self._text(event)).encode(stdout_encoding(), "replace")

    def _with_lists(self, event: AgentEvent) -> dict[str, Any]:
        """Return an event as JSON values; the last one also lists the denied and failed calls."""
        values = event.to_dict()
        if isinstance(event.payload, Done):
            dropped = [asdict(call) for call in self._progress.dropped]
            lists = {
                "deniedCalls": self._progress.denied,
                "failedCalls": self._progress.failures,
                "droppedCalls": dropped,
            }
            values["metadata"] = {
                **(event.metadata or {}),
                **{name: calls for name, calls in lists.items() if calls},
            }
        return values

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

    def _piece(self, text: str) -> str:
        piece = clean(text)
        if piece:
            self._midline = not piece.endswith("\n")
        return piece

    def progress(self, words: str) -> None:
        """Print one line to stderr, truncated to a reasonable width, unless quiet."""
        if not self._quiet:
            lead = words[: len(words) - len(words.lstrip())]
            click.echo(lead + ellipsis(clean_line(words), _WIDTH), err=True)

    def note(self, words: str) -> None:
        """Print a note about the run to stderr, in full, unless quiet."""
        if not self._quiet:
            click.echo(f"note: {clean_line(words)}", err=True)

    def resolve_writes(self, folder: Path) -> None:
        """Find out from the files whether writes with an unknown outcome happened.

        `folder`: the folder in which the run worked.
        """
        self._progress.settle(folder)

    def fail(self) -> None:
        """Make the exit code nonzero, however the run ended, because its session is lost."""
        self._failed = True

    def stderr(self, text: str) -> None:
        """Print a progress line for each retry that the CLI reports in `text`.

        `text`: whole lines of the CLI's stderr.
        """
        retry = retry_words(text)
        if retry:
            self.progress(retry)

    def close(self, stderr: str) -> int:
        """Report how the run ended; return the exit code.

        `stderr`: the CLI's stderr, or the beginning of it.
        """
        self._recorded.close()
        outcome, ending = self._progress.outcome(stderr), self._progress.done
        assert outcome is not None
        assert ending is not None
        line = outcome_line(outcome, resume=ending.resume_token)
        denied = self._fail_on_denied and bool(self._progress.denied)
        code = outcome.status.exit_code or int(self._failed or denied)
        if code != 0 or (outcome.status is not Status.OK and not self._quiet):
            note(line)
        if code == 0 and not self._as_json:
            self.progress(self.summary())
        return code

    def quota_until(self, stderr: str) -> datetime | None:
        """Return when the quota is renewed, if the run ended because it was exhausted.

        Returns None if the run ended for another reason. `stderr`: as in `close`.
        """
        outcome = self._progress.outcome(stderr)
        return None if outcome is None else outcome.until

    def continued(self, prompt: str, options: AgentOptions) -> tuple[str, AgentOptions]:
        """Return the prompt and options with which to continue a run that was cut short.

        If nothing was answered yet, these are the original ones, so that the prompt is sent again.
        """
        ending = self._progress.done
        if ending is None or not self._progress.resumable:
            return prompt, options
        return GO_ON, replace(options, resume=ending.resume_token)

    def summary(self) -> str:
        """Return the line about a run that went well."""
        done = self._progress.done
        assert done is not None
        parts = [duration(timedelta(milliseconds=done.duration_ms))]
        if done.tool_uses:
            failed = self._progress.failed.total()
            parts.append(
                counted(done.tool_uses, "tool call") + (f", {failed} failed" if failed else "")
            )
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


def failure_words(result: ToolResult) -> str:
    """Return what to say about a call that was denied or failed."""
    word = "denied" if result.status is ResultStatus.DENIED else "failed"
    output = result.output if isinstance(result.output, str) else ""
    why = next((line for line in output.splitlines() if line.strip()), "")
    return f"{word}: {result.tool_name}" + (f": {why}" if why else "")


class Writer:
    """Writes to stdout in the background, so that a slow reader doesn't delay ctrl+c.

    The order of the data is kept. `failed`: called if writing fails, as when the reader is gone.
    """

    def __init__(self, failed: Callable[[], None]) -> None:
        self._failed = failed
        self._waiting: list[bytes] = []
        self._size = 0
        self._closed = False
        self._more, self._room = asyncio.Event(), asyncio.Event()
        self._task = asyncio.ensure_future(self._write())

    async def write(self, data: bytes) -> None:
        """Queue data to be written; wait while too much is queued.

        Once writing has failed, data is discarded.
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
        """Wait until everything has been written. Raises the OSError if writing failed."""
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
