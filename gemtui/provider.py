"""Gemini CLI as a response provider: send a prompt, get an answer and files."""

from __future__ import annotations

import asyncio
import logging
import os
import warnings
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from gemtui.agent.adapter import UnguardedAdapter
from gemtui.agent.agent_run import AgentRun
from gemtui.agent.detect import detect_cli
from gemtui.agent.events import AgentEvent, ErrorSaid, TextSaid
from gemtui.agent.fold import Fold
from gemtui.agent.options import AgentOptions
from gemtui.agent.output import meaningful_lines, stderr_end
from gemtui.errors import GemtuiError, OptionError, ProviderError, message_of
from gemtui.paths import gemini_home
from gemtui.policy.model.rules import ApprovalMode
from gemtui.policy.model.tool_catalog import name_problem
from gemtui.runs.enrich import enrich
from gemtui.runs.outcome import RunProgress, outcome_line
from gemtui.transcript.model import Author, Text, Transcript

_LOG = logging.getLogger(__name__)
_SAMPLE = 200
_DOCTOR = "run gemtui doctor to see what is wrong"
_LOOK = 0.1
"""Seconds between two checks of whether the caller has been interrupted."""
TIMEOUT = 600
"""The default time limit of a run, in seconds."""


@dataclass(frozen=True, slots=True)
class ProviderResult:
    """The result of a run.

    `response`: the answer. `files`: the paths that were written, in order, as given in the tool
    calls; the dict's values are always None. `model`: the model that wrote the last answer; None if
    unknown. `session_id`: the session where the CLI stores the conversation; None if unknown.
    """

    response: str
    files: dict[str, None] = field(default_factory=dict)
    model: str | None = field(default=None, compare=False)
    session_id: str | None = field(default=None, compare=False)


class GeminiCliProvider:
    """A provider that answers prompts by running Gemini CLI headlessly.

    `config` may have the keys `model`, `sandbox`, `approval_mode`, `include_directories`,
    `allowed_tools` (tools that need no confirmation), `working_dir`, `timeout` (seconds) and
    `trust` (whether to trust the folder during each run; default False). The default approval mode
    is `yolo`, for unattended use: all tools, including shell commands, run without confirmation.
    Unknown keys cause a warning; invalid values raise a ValueError that names the key.

    For each run, the logger `gemtui.provider` records the folder and the session (INFO), the CLI's
    stderr, and the outcome (INFO, or WARNING if the run failed).
    """

    def __init__(self, config: Mapping[str, Any] | None = None) -> None:
        self.config = dict(config or {})
        _check(self.config)
        self._adapter = UnguardedAdapter()

    @classmethod
    def get_metadata(cls) -> dict[str, Any]:
        """Return the name, the configuration keys and the capabilities of this provider."""
        return {
            "name": "gemini-cli",
            "description": "Gemini CLI AI agent via subprocess",
            "requires_config": False,
            "config_keys": list(_CHECKS),
            "default_response_timeout": TIMEOUT,
            "fs_ability": "local-write",
        }

    def validate(self) -> None:
        """Raise ProviderError unless a working CLI is installed."""
        problem = detect_cli().problem
        if problem is not None:
            raise ProviderError(problem)

    def generate(
        self,
        prompt: str,
        context: Mapping[str, Any] | None = None,
        system_prompt: str | None = None,
        response_timeout: float | None = None,
    ) -> ProviderResult:
        """Run a prompt and wait for the answer.

        Arguments, result and errors are the same as for `agenerate`. If this is called on a thread
        that has a running event loop, the loop is blocked until the answer arrives.
        """
        answer = self.agenerate(prompt, context, system_prompt, response_timeout)
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return asyncio.run(answer)
        return _in_thread(answer)

    async def agenerate(
        self,
        prompt: str,
        context: Mapping[str, Any] | None = None,
        system_prompt: str | None = None,
        response_timeout: float | None = None,
    ) -> ProviderResult:
        """Run a prompt, and return the answer and the files that were written.

        `context["prompt_file"]`: a file for the CLI to process instead of `prompt`.
        `context["project_root"]`: the folder to run in, unless the configuration has `working_dir`.
        `system_prompt`: text to put before the prompt, separated by an empty line.
        `response_timeout`: a time limit in seconds that overrides the configured `timeout`.

        The answer comes from the stored session if it is found, because the output stream repeats
        text whenever a request is retried. Cancelling the task ends the run. If the run fails or
        ends without a result, ProviderError is raised with the partial answer and the files written
        so far.
        """
        context = context or {}
        options = self._options(context, response_timeout)
        text = _words(prompt, context, system_prompt)
        try:
            run = await self._adapter.begin(text, options)
        except GemtuiError as error:
            raise ProviderError(str(error)) from error
        except OSError as error:
            raise ProviderError(
                f"the run could not be started ({message_of(error)}): {_DOCTOR}"
            ) from error
        gathered = _Gathered(text, run)
        async with aclosing(run.owned_events()) as events:
            async for event in events:
                gathered.add(event)
        return await asyncio.to_thread(gathered.result)

    def _options(self, context: Mapping[str, Any], timeout: float | None) -> AgentOptions:
        config = self.config
        folder = config.get("working_dir") or context.get("project_root")
        return AgentOptions(
            cwd=folder,
            model=config.get("model"),
            sandbox=bool(config.get("sandbox")),
            approval_mode=config.get("approval_mode") or ApprovalMode.YOLO,
            include_directories=config.get("include_directories") or (),
            approved_tools=config.get("allowed_tools") or (),
            timeout=timeout or config.get("timeout") or TIMEOUT,
            trust=bool(config.get("trust")),
            prompt_in_argv=bool(context.get("prompt_file")),
        )


def _words(prompt: str, context: Mapping[str, Any], system_prompt: str | None) -> str:
    file = context.get("prompt_file")
    if file:
        prompt = f"Process the prompt in {file}"
    return f"{system_prompt}\n\n{prompt}" if system_prompt else prompt


# --- configuration -------------------------------------------------------------------------------


def _text(value: object) -> str | None:
    return None if isinstance(value, str) and value else "must be a non-empty string"


def _folder(value: object) -> str | None:
    return None if isinstance(value, str | os.PathLike) else "must be a path"


def _flag(value: object) -> str | None:
    return None if isinstance(value, bool) else "must be True or False"


def _mode(value: object) -> str | None:
    return None if value in tuple(ApprovalMode) else f"must be one of {', '.join(ApprovalMode)}"


def _list_of(check: Callable[[object], str | None], what: str) -> Callable[[object], str | None]:
    def checked(value: object) -> str | None:
        if not isinstance(value, list):
            return "must be a list"
        for at, item in enumerate(value):
            if check(item) is not None:
                return f"must be a list of {what}, but [{at}] is not"
        return None

    return checked


def _seconds(value: object) -> str | None:
    number = isinstance(value, int | float) and not isinstance(value, bool) and value > 0
    return None if number else "must be > 0 (seconds)"


_CHECKS = {
    "model": _text,
    "sandbox": _flag,
    "approval_mode": _mode,
    "include_directories": _list_of(_folder, "paths"),
    "allowed_tools": _list_of(_text, "strings"),
    "working_dir": _folder,
    "timeout": _seconds,
    "trust": _flag,
}


def _check(config: Mapping[str, Any]) -> None:
    """Raise ValueError for an invalid value and warn about unknown keys.

    A value of None means that the key is not set.
    """
    for key, value in config.items():
        if key not in _CHECKS:
            warnings.warn(
                f"unknown config key {key!r}: the keys are {', '.join(_CHECKS)}", stacklevel=3
            )
        elif value is not None and (problem := _CHECKS[key](value)):
            raise OptionError(f"{key} {problem}, got: {value!r}")
    for at, name in enumerate(config.get("allowed_tools") or ()):
        problem = name_problem(name)
        if problem:
            raise OptionError(f"allowed_tools[{at}]: {problem}")


# --- one run -------------------------------------------------------------------------------------


class _Gathered:
    """Collects the result of a run from its events, and logs it."""

    def __init__(self, prompt: str, run: AgentRun) -> None:
        self._run = run
        self._progress = RunProgress(run.request)
        self._fold = Fold(prompt, began=datetime.now(UTC))
        self._said: list[str] = []
        self._session: str | None = None

    def add(self, event: AgentEvent) -> None:
        self._fold.add(event)
        self._progress.add(event)
        if event.session_id and event.session_id != self._session:
            self._session = event.session_id
            _LOG.info("run %s: session %s", self._run.folder.path, self._session)
        match event.payload:
            case TextSaid(content=text):
                self._said.append(text)
            case ErrorSaid(code="NDJSON_PARSE_ERROR", message=message):
                _LOG.warning("Gemini CLI wrote a line that is not JSON: %s", message[:_SAMPLE])
            case _:
                pass

    def result(self) -> ProviderResult:
        """Return the run's result; call this after the `done` event has been added.

        Raises ProviderError for a run that failed.
        """
        response, model = self._answer()
        stderr, ending = self._run.stderr(), self._progress.done
        self._progress.settle(Path(self._run.request.cwd))
        outcome = self._progress.outcome(stderr)
        assert ending is not None
        assert outcome is not None
        failed = not outcome.status.is_done
        level = logging.WARNING if failed else logging.INFO
        message = meaningful_lines(stderr)
        if message:
            _LOG.log(level, "session %s: stderr: %s", self._session, message)
        line = outcome_line(outcome)
        _LOG.log(level, "session %s ended: %s: %s", self._session, ending.status, line)
        if failed:
            folder = self._run.folder
            raise ProviderError(
                f"{line} (files of the run: {folder.path})",
                response=response,
                files=self._progress.written,
                stderr=stderr_end(folder.stderr),
                run=folder.path,
            )
        asked = ending.models or ()
        return ProviderResult(
            response,
            self._progress.written,
            model=model or (asked[0] if len(asked) == 1 else None),
            session_id=self._session,
        )

    def _answer(self) -> tuple[str, str | None]:
        """Return the complete answer and its model.

        Both come from the stored session if that session is found. Otherwise the answer is the text
        in the output stream, and the model is None.
        """
        live = self._fold.transcript()
        whole = enrich(live, gemini_home(), self._session)
        if whole is live:
            return "".join(self._said), None
        models = [message.model for message in whole if message.author is Author.MODEL]
        return _answer(whole), next((model for model in reversed(models) if model), None)


def _answer(transcript: Transcript) -> str:
    """Return the text of all the model's messages, separated by empty lines."""
    answers = (message for message in transcript if message.author is Author.MODEL)
    blocks = (block for message in answers for block in message.blocks)
    texts = (block.text for block in blocks if isinstance(block, Text))
    return "\n\n".join(text for text in texts if text.strip())


def _in_thread(answer: Coroutine[Any, Any, ProviderResult]) -> ProviderResult:
    """Run a coroutine on a new thread with its own event loop; wait for its result.

    If the caller is interrupted or cancelled while waiting, the coroutine is cancelled as well.
    """
    outer = asyncio.current_task()
    begun: Future[asyncio.Task[Any] | None] = Future()

    async def work() -> ProviderResult:
        begun.set_result(asyncio.current_task())
        return await answer

    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(asyncio.run, work())
        try:
            while not wait([waiting], _LOOK).done:
                # asyncio.run turns ctrl+c into a cancellation, which is not noticed during a
                # blocking wait
                if outer is not None and outer.cancelling():
                    raise asyncio.CancelledError
            return waiting.result()
        except BaseException:
            task = begun.result()
            if task is not None and not waiting.done():
                task.get_loop().call_soon_threadsafe(task.cancel)
            raise
