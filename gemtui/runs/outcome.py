"""Describe how a run ended, in terms that a user can act on.

gemtui makes finer distinctions than the CLI's notion of success (assets/gemini-cli.md#endings):
denied tools, loops, blocked prompts and missing answers don't count as plain success. What the
CLI's output doesn't show can't be reported; for example, an answer that the model truncated at its
token limit looks like any other. Outcomes of finished runs are cached, so that lists needn't read
their output.
"""

from __future__ import annotations

import asyncio
import re
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import orjson

from gemtui.agent.agent_run import AgentRun
from gemtui.agent.approval import SAID_NO
from gemtui.agent.events import (
    AgentEvent,
    Done,
    DoneStatus,
    ErrorSaid,
    Prompted,
    ResultStatus,
    TextSaid,
    ToolResult,
    ToolUse,
)
from gemtui.agent.output import meaningful_lines
from gemtui.agent.run_folder import Limit, Request, RunFolder
from gemtui.agents import WORDS, Agent, Words
from gemtui.calls.paths import asked_path
from gemtui.errors import GemtuiError
from gemtui.files import changed_at, read_if_present, size_of
from gemtui.jsonfile import read_object
from gemtui.paths import gemini_home
from gemtui.policy.model.rules import Call
from gemtui.runs.causes import cause_of, renewed_at, until_words
from gemtui.runs.effective_policy import OPTIONS_PLACE, RunPolicy
from gemtui.runs.ending import Status
from gemtui.runs.recorded_calls import DroppedCall, RecordedCalls
from gemtui.text import Clean, clean_line, counted, ellipsis
from gemtui.transcript.model import ToolCall, ToolStatus, excerpt
from gemtui.transcript.parts import mapping, string
from gemtui.transcript.tool_output import is_blocked
from gemtui.transcript.tools import WRITING, ToolKind, kind_of, may_write

_HOOK = re.compile(r"Agent execution stopped by hook: (.*)", re.DOTALL)
GO_ON = "Continue where you stopped."
"""The prompt that lets the model continue after an interrupted run."""
_KEPT = 20
_LOOP = "Loop detected"
"""In the CLI's message when it ends a run that repeats itself."""
_BEFORE_LOOP = 4
"""How many calls the CLI makes at least before it drops one as a repetition."""
_DETAIL = 600


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOutcome:
    """The end of a run, in words for the user.

    `headline`: a line written by gemtui. `detail`: the original message, which is raw untrusted
    text and may be empty. `ways_out`: suggestions, best first. `until`: when the quota that stopped
    the run is renewed; None if the cause was not a quota, or if the time is unknown. `by_mode`:
    whether calls were denied because nobody could be asked.
    """

    status: Status
    headline: str
    detail: str = ""
    ways_out: tuple[str, ...] = ()
    until: datetime | None = None
    by_mode: bool = False


class RunProgress:
    """Collects facts about a run from its events.

    Call `add` for each event, then `outcome`. `request`: the run's request, which names the tools
    that the run hides; None if unknown.
    """

    def __init__(self, request: Request | None = None) -> None:
        self.request = request
        self.done: Done | None = None
        self.ended: datetime | None = None
        """When the run ended."""
        self.exit_code: int | None = None
        self.complete = False
        self.calls = 0
        self.may_have_changed = False
        """Whether a tool that can change files was run."""
        self.written: dict[str, None] = {}
        """The files that were written, as named in the calls, in order of the first write."""
        self.failed: Counter[str] = Counter()
        """How many calls failed, by tool."""
        self.failures: list[Mapping[str, Any]] = []
        """The failed calls in order, each with `toolUseId`, `toolName` and `exitCode`.

        The exit code is None if the call failed otherwise.
        """
        self.unrecorded: dict[str, str] = {}
        """Maps the commands that have ended to their tool, until their exit code is known."""
        self.stopped_by: str | None = None
        """The message of the hook that stopped the run, if one did."""
        self.refused: dict[tuple[str, str], int] = {}
        """How many calls were denied, by (tool, reason)."""
        self.denied: list[dict[str, str]] = []
        """The denied calls in order, each with `toolUseId`, `toolName` and `reason`.

        If a rule of the user's denied it, the reason names the rule, and `cliReason` is the CLI's.
        """
        self.by_rule: set[str] = set()
        """The reasons for denials that name the user's own rule."""
        self.by_mode = {_NOT_PERMITTED, _NEEDS_APPROVAL}
        """The reasons for denials that another approval mode or an option would lift."""
        self.missing: dict[str, None] = {}
        """The tools that were called but don't exist."""
        self.errors: list[ErrorSaid] = []
        """The most recent errors."""
        self.loops: list[str] = []
        """The prompts at which the CLI ended the turn as a loop; "" if a prompt is unknown."""
        self.dropped: tuple[DroppedCall, ...] = ()
        """The calls that the CLI dropped as repetitions, once `read_dropped` has looked for them.
        """
        self.answered = False
        self.session: str | None = None
        """The id of the run's session, once it is known."""
        self._began: datetime | None = None
        self._prompt = ""
        """The prompt that was handed on to the run last; "" if it works on its first one."""
        self._open: dict[str, ToolCall] = {}
        """The calls that have no result yet, by id."""
        self._landed: dict[str, bool] = {}
        """Maps calls in `_open` to whether they wrote their file, where the disk shows it."""
        self._denied: list[tuple[ToolCall, str]] = []
        """The calls that a rule may have denied, each with the reason that the CLI gave."""

    @property
    def unsettled(self) -> int:
        """How many calls have an outcome that neither events nor the disk show."""
        return len(self._open) - len(self._landed)

    @property
    def agent(self) -> Agent:
        """The agent that runs; Gemini CLI if the request is not known."""
        return Agent.GEMINI if self.request is None else self.request.agent

    @property
    def words(self) -> Words:
        """The agent's words."""
        return WORDS[self.agent]

    def add(self, event: AgentEvent) -> None:
        """Update the facts with one event."""
        payload = event.payload
        self.session = event.session_id or self.session
        self._began = self._began or datetime.fromtimestamp(event.timestamp / 1000, UTC)
        if isinstance(payload, TextSaid):
            self.answered = self.answered or bool(payload.content.strip())
        elif isinstance(payload, ToolUse):
            self.calls += 1
            self._open[payload.tool_use_id] = ToolCall(
                id=payload.tool_use_id,
                name=payload.tool_name,
                args=payload.input,
                status=ToolStatus.UNCONFIRMED,
                time=datetime.fromtimestamp(event.timestamp / 1000, UTC),
            )
        elif isinstance(payload, ToolResult):
            self._result(payload, self._open.pop(payload.tool_use_id, None))
        elif isinstance(payload, Prompted):
            self._prompt = payload.content
        elif isinstance(payload, ErrorSaid) and _LOOP in payload.message:
            self.loops.append(self._current_prompt())
        elif isinstance(payload, ErrorSaid):
            self.errors = [*self.errors[-_KEPT:], payload]
        elif isinstance(payload, Done):
            metadata = event.metadata or {}
            self.done = payload
            self.ended = datetime.fromtimestamp(event.timestamp / 1000, UTC)
            self.exit_code = metadata.get("exitCode")
            self.complete = metadata.get("complete") is True

    def add_recorded(self, calls: Iterable[ToolCall]) -> tuple[ToolCall, ...]:
        """Count commands that failed, and return them.

        `calls`: calls of this run as the stored session has them. Only the session has the exit
        codes of commands (assets/gemini-cli.md#events).
        """
        failed = list[ToolCall]()
        for call in calls:
            if self.unrecorded.pop(call.id, None) is not None and call.exit_code:
                failed.append(call)
                self._fail(call.id, call.name, call.exit_code)
        return tuple(failed)

    def _current_prompt(self) -> str:
        """Return the first line of the prompt that the run is working on; "" if unknown."""
        about = {} if self.request is None else self.request.about
        return excerpt(self._prompt or about.get("prompt", ""))

    def read_dropped(self, recorded: RecordedCalls) -> None:
        """Look for calls that the CLI dropped as repetitions. Blocking: reads the session.

        Only the session tells of them (assets/gemini-cli.md#loops). Call this when the run has
        ended.
        """
        if self.session is not None and self._began is not None and self.calls >= _BEFORE_LOOP:
            self.dropped = recorded.dropped(self.session, self._began)

    def _fail(self, id: str, tool: str, exit_code: int | None = None) -> None:
        self.failed[tool] += 1
        self.failures.append({"toolUseId": id, "toolName": tool, "exitCode": exit_code})

    def settle(self, folder: Path, ended: datetime | None = None) -> None:
        """Find out which calls without a result wrote files, and which rules denied calls.

        Files on disk are read for this. `folder`: the run's folder. `ended`: when the run ended;
        None means right now.
        """
        self.name_rules(ended)
        for call in self._open.values():
            path = _to_write(call)
            is_written = was_written(call, folder / path, ended=ended) if path else None
            if is_written is not None:
                self._landed[call.id] = is_written

    def name_rules(self, ended: datetime | None = None) -> None:
        """Find the rules that denied calls, unless a policy has changed since the run.

        Blocking: reads the policies.

        `ended`: when the run ended; None means right now.
        """
        if self.request is None or not self._denied:
            return
        with suppress(GemtuiError, OSError):
            policy = RunPolicy.of(self.request)
            if ended is None or policy.is_older_than(ended):
                for call, why in self._denied:
                    rule = policy.deciding(Call(call.name, call.args))
                    if rule is None:
                        self.by_mode.add(why)
                    elif rule.asks is (why == _NEEDS_APPROVAL):
                        self._by_rule(call.id, call.name, why, rule.place)
        self._denied = []

    def _by_rule(self, id: str, tool: str, why: str, rule: str) -> None:
        """Record which of the user's rules caused a denial, in place of the CLI's reason.

        `id`, `tool`: the call's. `why`: the CLI's reason. `rule`: the rule's place.
        """
        wanted = "you chose" if rule == OPTIONS_PLACE else "your policy says"
        does = _HELD_BACK if why == _NEEDS_APPROVAL else "denied"
        message = why.removeprefix(_DENIED) if why.startswith(_DENIED) else ""
        named = f"{does} as {wanted}, by {rule}{message}"
        self.refused[tool, named] = self.refused.get((tool, named), 0) + 1
        self.refused[tool, why] -= 1
        if not self.refused[tool, why]:
            del self.refused[tool, why]
        self.by_rule.add(named)
        for call in self.denied:
            if call["toolUseId"] == id:
                call.update(reason=named, cliReason=why)

    @property
    def settled(self) -> Mapping[str, bool]:
        """Maps the files of calls without a result to whether they were written, if known."""
        return {_to_write(self._open[id]): written for id, written in self._landed.items()}

    def _result(self, result: ToolResult, call: ToolCall | None) -> None:
        tool, output = result.tool_name, string(result.output)
        if result.status is ResultStatus.DENIED:
            self._refuse(result, call)
            return
        path = "" if call is None else _to_write(call)
        if path and result.status is ResultStatus.SUCCESS:
            self.written[path] = None
        if may_write(tool):
            self.may_have_changed = True
        stopped = _HOOK.match(output)
        if stopped is not None:
            self.stopped_by = stopped[1]
        elif result.status is ResultStatus.SUCCESS:
            if kind_of(tool) is ToolKind.SHELL:
                self.unrecorded[result.tool_use_id] = tool
        elif result.status is ResultStatus.ERROR:
            self._fail(result.tool_use_id, tool)
            # An MCP server's tool may exist, but be hidden, unless the run recorded what it hides.
            knows_hidden = self.request is not None and "hidden" in self.request.about
            if _NOT_FOUND.match(output) and (knows_hidden or not tool.startswith("mcp_")):
                self.missing[tool] = None

    def _refuse(self, result: ToolResult, call: ToolCall | None) -> None:
        why, tool = refusal_words(string(result.output)), result.tool_name
        self.refused[tool, why] = self.refused.get((tool, why), 0) + 1
        self.denied.append({"toolUseId": result.tool_use_id, "toolName": tool, "reason": why})
        if call is None:
            return
        if why.startswith(_DENIED) or why == _NEEDS_APPROVAL:
            self._denied.append((call, why))
        elif self.request is not None and why == _NOT_PERMITTED:
            with suppress(KeyError):
                rule = self.request.hides(tool)
                if rule:
                    self._by_rule(result.tool_use_id, tool, why, rule)

    def outcome(self, stderr: str = "") -> RunOutcome | None:
        """Return how the run ended; None if it is still running.

        `stderr`: the run's output to stderr, or the end of it.
        """
        if self.done is None:
            return None
        outcome = _ended(self, self.done.status, stderr)
        if not outcome.status.is_done:
            detail = "\n".join(filter(None, (outcome.detail, *_open_lines(self))))
            outcome = replace(outcome, detail=detail)
        outcome = _with_policy(outcome, stderr)
        ways = outcome.ways_out if self.resumable else map(_without_session, outcome.ways_out)
        return replace(outcome, ways_out=tuple(dict.fromkeys(ways)))

    @property
    def resumable(self) -> bool:
        """Whether the run has left a session that can be resumed.

        The CLI removes a failed prompt from the session, and an empty session can't be resumed
        (assets/gemini-cli.md#session-files).
        """
        if self.done is None or self.done.resume_token is None:
            return False
        failed = self.done.status is DoneStatus.ERROR and self.complete
        return self.answered or self.calls > 0 or not failed


def _to_write(call: ToolCall) -> str:
    """Return the file that a call should write, as named in the call; "" if none."""
    return asked_path(call.args) if kind_of(call.name) in WRITING else ""


def _open_lines(progress: RunProgress) -> Iterator[str]:
    """Yield a line about each call that had no result when the run ended."""
    for path, written in progress.settled.items():
        words = "written, although the call has no result" if written else "not written"
        yield f"{path} was {words}"
    if progress.unsettled:
        yield f"{_calls(progress.unsettled)} had not finished, so the result is unknown"


def _without_session(way: str) -> str:
    """Reword a suggestion for a run that has left no session to continue."""
    for words in (
        "continue the session, or run it again",
        "run it again, or continue the session",
        "continue the session",
    ):
        way = way.replace(words, "run it again")
    return way


def _ended(progress: RunProgress, status: DoneStatus, stderr: str) -> RunOutcome:
    match status:
        case DoneStatus.INTERRUPTED:
            return RunOutcome(
                status=Status.INTERRUPTED,
                headline="The run was stopped",
                ways_out=("continue the session, or run it again",),
            )
        case DoneStatus.MAX_TURNS:
            return RunOutcome(
                status=Status.TURN_LIMIT,
                headline="The run reached its turn limit",
                detail="\n".join(_refused_lines(progress)),
                ways_out=("continue the session", "or allow more turns"),
            )
        case DoneStatus.ERROR:
            return _failed(progress, stderr)
        case DoneStatus.SUCCESS:
            return _succeeded(progress, stderr)


# --- denied tools --------------------------------------------------------------------------------

_BY_TOOL = "rejected by the tool itself because of a command substitution"
_SAID_NO = "you said no"
_DENIED = "denied by a policy"
_NOT_PERMITTED = "not permitted in this mode"
_NEEDS_APPROVAL = "needed approval, which headless runs can't ask for"
_HELD_BACK = "needs approval"
_NOT_FOUND = re.compile(r'Tool "[^"]*" not found')
_CUT_OFF = "not made, because the run ended first"
_NOT_APPROVED = "not approved"
_BY_SETTINGS = "denied by Claude Code's own settings"
_BLOCKED = r"(?:Tool execution blocked|PreToolUse:\S+ hook error): "
_BY_PERSON = re.compile(rf"{_BLOCKED}{SAID_NO}(?:: |\.)(.*)", re.DOTALL)
_BY_HOOK = re.compile(rf"{_BLOCKED}(.*)", re.DOTALL)
_BY_OTHERS = (
    (re.compile(r"\[Operation Cancelled\]$"), _NOT_APPROVED),
    (re.compile(r"The user doesn't want to "), _CUT_OFF),
    (re.compile(r"Permission to use .{1,200} has been denied"), _BY_SETTINGS),
)
_BY_POLICY = re.compile(r"Tool execution denied by policy\.?\s*(.*)", re.DOTALL)


def refusal_words(output: str) -> str:
    """Return why a tool call was denied, in words for the user.

    The reason is derived from the agent's message, or is the message itself if gemtui doesn't know
    it. If Gemini CLI says that it did not find the tool, the tool is hidden in this mode
    (assets/gemini-cli.md#refusals).
    """
    if is_blocked(output):
        return _BY_TOOL
    if "requires user confirmation" in output:
        return _NEEDS_APPROVAL
    for pattern, words in ((_BY_POLICY, _DENIED), (_BY_PERSON, _SAID_NO), (_BY_HOOK, "")):
        match = pattern.search(output)
        if match is not None:
            why = " ".join(match[1].split())
            return ": ".join(filter(None, (words, why)))
    for pattern, words in _BY_OTHERS:
        if pattern.match(output):
            return words
    said = " ".join(output.split())
    if _NOT_FOUND.match(said) or not said:
        return _NOT_PERMITTED
    return ellipsis(said, _PLAIN_DETAIL)


def _refused_lines(progress: RunProgress) -> Iterator[str]:
    for (tool, why), count in progress.refused.items():
        times = f" ({count} times)" if count > 1 else ""
        yield f"{tool}: {why}{times}"


_REWORD = "rephrase the prompt so that commands don't use $(...), backticks or <(...)"
_ALLOW = (
    "allow it with --file-write, --shell, --network or --allow-tool NAME, or with a policy",
    "or choose a mode that allows more: auto_edit writes files, yolo runs everything",
)
_EXPLAIN = "see which rule denies it with gemtui policy explain"


def _ways_to_allow(progress: RunProgress) -> Iterator[str]:
    """Yield suggestions for how to allow what was denied.

    There is none for what the user's own rules, answers or hooks denied, because that is what the
    user wanted.
    """
    for why in dict.fromkeys(why for _, why in progress.refused):
        if why in progress.by_mode:
            yield from _ALLOW
        elif why in progress.by_rule:
            if why.startswith(_HELD_BACK):
                yield "use --ask to be asked for approval"
        elif why == _BY_TOOL:
            yield _REWORD
        elif why.startswith(_DENIED):
            yield _EXPLAIN


# --- endings -------------------------------------------------------------------------------------


def _failed(progress: RunProgress, stderr: str) -> RunOutcome:
    fatal = [error for error in progress.errors if not error.recoverable]
    last = fatal[-1] if fatal else None
    if last is not None and last.code in (Limit.TIMEOUT.code, Limit.IDLE.code):
        return _timed_out(last, stderr)
    if last is not None and last.code == Limit.BUDGET.code:
        return _over_budget(last)
    said = last.message if last else ""
    cause = cause_of(said, meaningful_lines(stderr), progress.exit_code, progress.agent)
    detail = [*_retries(stderr, progress.words), *_refused_lines(progress)]
    if not cause.tells_all:
        detail.insert(0, plain_message(said) or _last_line(stderr))
    headline, ways_out, until = cause.headline, cause.ways_out, None
    if cause.quota and progress.ended is not None:
        until = renewed_at(said, stderr, progress.ended)
    if until is not None:
        words = until_words(until, datetime.now(UTC))
        headline = f"{headline}, until {words}"
        ways_out = ("use --wait-for-quota to wait until then and continue", *ways_out[1:])
    return RunOutcome(
        status=Status.FAILED,
        headline=headline,
        detail="\n".join(line for line in detail if line),
        ways_out=ways_out,
        until=until,
    )


def _timed_out(error: ErrorSaid, stderr: str) -> RunOutcome:
    idle = error.code == Limit.IDLE.code
    limit = "the idle timeout" if idle else "the timeout"
    return RunOutcome(
        status=Status.TIMEOUT,
        headline="There was no output for too long" if idle else "The run took too long",
        detail="\n".join((error.message, *_last_retry(stderr))),
        ways_out=(f"increase {limit}", "or continue the session"),
    )


def _over_budget(error: ErrorSaid) -> RunOutcome:
    return RunOutcome(
        status=Status.BUDGET,
        headline="The budget is used up",
        detail=error.message,
        ways_out=("continue the session with a new budget",),
    )


def _last_retry(stderr: str) -> Iterator[str]:
    """Yield why the CLI's last attempt at a request failed, if stderr reports one.

    The last attempt with an HTTP status is preferred.
    """
    attempts = list(_ATTEMPT.finditer(stderr))
    with_status = [attempt for attempt in attempts if attempt[2]]
    for last in (with_status or attempts)[-1:]:
        why = f"HTTP status {last[2]}" if last[2] else (last[3] or "").strip()
        yield f"attempt {last[1]} had failed" + (f": {why}" if why else "")


_NOT_DONE = (Status.INTERRUPTED, Status.TURN_LIMIT, Status.TIMEOUT, Status.BUDGET, Status.FAILED)
_POLICY_ERROR = re.compile(r"^.*Policy file error in .*$(?:\n(?!\s*$).*){0,4}", re.MULTILINE)


def _with_policy(outcome: RunOutcome, stderr: str) -> RunOutcome:
    """Return the outcome as a failure if the CLI ignored a broken policy file.

    The file's rules, which may deny calls, did not apply.
    """
    errors = dict.fromkeys(match[0].strip() for match in _POLICY_ERROR.finditer(stderr))
    if not errors:
        return outcome
    headline = "A policy file is broken, so its rules did not apply in this run"
    detail = "\n".join(errors)[:_DETAIL]
    if outcome.status in _NOT_DONE:
        return replace(outcome, detail=f"{outcome.detail}\n{headline}\n{detail}".strip())
    return RunOutcome(
        status=Status.FAILED,
        headline=headline,
        detail=detail,
        ways_out=("check what the run did", "repair the file, then run it again"),
    )


def _succeeded(progress: RunProgress, stderr: str) -> RunOutcome:
    if not progress.complete:
        return RunOutcome(
            status=Status.INCOMPLETE,
            headline="The run ended without a result: the answer may be incomplete",
            detail="\n".join([_last_line(stderr), *_refused_lines(progress)]).strip(),
            ways_out=("continue the session, or run it again",),
        )
    warnings, suggestions = list[str](), list[str]()
    for warning, suggestion in _warnings(progress, stderr):
        warnings.append(warning)
        suggestions.append(suggestion)
    refused = sum(progress.refused.values())
    if refused:
        return RunOutcome(
            status=Status.REFUSED,
            headline=_refused_headline(progress, refused),
            detail="\n".join((*_refused_lines(progress), *warnings)),
            ways_out=tuple(_ways_to_allow(progress)),
            by_mode=any(why in progress.by_mode for _, why in progress.refused),
        )
    if not warnings:
        return RunOutcome(
            status=Status.OK, headline="Done", detail="\n".join(_retries(stderr, progress.words))
        )
    return RunOutcome(
        status=Status.WARNING,
        headline=f"Done, but {warnings[0]}",
        detail="\n".join((*warnings[1:], *_retries(stderr, progress.words))),
        ways_out=tuple(dict.fromkeys(filter(None, suggestions))),
    )


def _refused_headline(progress: RunProgress, count: int) -> str:
    were = "was" if count == 1 else "were"
    denied = f"{_calls(count)} {were} denied"
    if all(why in progress.by_rule for _, why in progress.refused):
        return f"Done; {denied} by your own rules"
    if progress.may_have_changed or progress.unsettled:
        return f"Done, but {denied}"
    if count < progress.calls:
        denied = f"{count} of {_calls(progress.calls)} {were} denied"
    return f"Nothing was changed: {denied}"


def _warnings(progress: RunProgress, stderr: str) -> Iterator[tuple[str, str]]:
    """Yield (message, suggestion) for everything that went wrong, worst first.

    The suggestion is "" if there is none.
    """
    words = progress.words
    for prompt in progress.loops:
        where = f" at the prompt “{prompt}”: its last call was not made" if prompt else ""
        yield f"{words.speaker} repeated itself and was stopped{where}", _REPEATED
    for dropped in progress.dropped:
        left_out = f"neither it nor what followed in that answer was done: {dropped.call}"
        taken = f"{words.program} took a call after “{dropped.prompt}” for a repetition"
        yield f"{taken}, and {left_out}", _REPEATED
    for error in progress.errors:
        yield from _warning(error)
    if progress.stopped_by is not None:
        yield f"a hook stopped the run: {progress.stopped_by}", _HOOKS
    if progress.exit_code not in (0, None):
        yield (
            f"{words.command} exited with code {progress.exit_code}",
            "check what it printed on stderr",
        )
    if not progress.answered:
        yield "there is no answer", "continue the session, or run it again"
    if "Approval mode overridden" in stderr:
        yield (
            "the approval mode was lowered to default because the folder is not trusted",
            "run with --trust",
        )
    invalid = re.search(r"^Invalid configuration in (.*?):?$", stderr, re.MULTILINE)
    if invalid:
        yield f"these settings are not valid: {invalid[1]}", "repair that file"
    for tool in dict.fromkeys(_NO_SUCH_TOOL.findall(stderr)):
        yield (
            f"a policy names a tool that does not exist: {tool}",
            "correct the name in that policy",
        )
    for tool in progress.missing:
        yield f"the model called a tool that does not exist: {tool}", ""
    failed = {
        tool: count for tool, count in progress.failed.items() if tool not in progress.missing
    }
    if failed:
        yield f"{_calls(sum(failed.values()))} failed: {', '.join(failed)}", ""


_NO_SUCH_TOOL = re.compile(r'Unrecognized tool name "([^"]+)"')
_HOOKS = "check the hooks in the settings"
_REPEATED = "send that prompt again, or rephrase it"


def _warning(error: ErrorSaid) -> Iterator[tuple[str, str]]:
    if error.code == "NDJSON_PARSE_ERROR":
        yield "part of the output could not be read", "check the run's output file"
    elif "blocked" in error.message:
        yield f"a hook blocked the run: {error.message}", _HOOKS
    else:
        yield error.message, ""


# --- stderr --------------------------------------------------------------------------------------

_ATTEMPT = re.compile(r"Attempt (\d+) failed(?: with status (\d+)|: ([^\n]*))?")
_WAIT = re.compile(r"Retrying after (\d+)\s*ms")


def retry_words(stderr: str) -> str | None:
    """Describe the last retry that stderr reports; None if there is none.

    This is for the status line of a waiting run: `attempt 2 failed (503), retrying in 10 s`.
    """
    attempts = list(_ATTEMPT.finditer(stderr))
    if not attempts:
        return None
    last = attempts[-1]
    why = last[2] or (last[3] or "").strip()
    reason = f" ({why})" if why else ""
    wait = _WAIT.search(stderr, last.end())
    after = f" in {round(int(wait[1]) / 1000)} s" if wait else ""
    return f"attempt {last[1]} failed{reason}, retrying{after}"


def _retries(stderr: str, words: Words) -> Iterator[str]:
    count = len(_ATTEMPT.findall(stderr))
    if count:
        yield f"{words.program} retried {'once' if count == 1 else f'{count} times'}"


def _last_line(stderr: str) -> str:
    return meaningful_lines(stderr).rsplit("\n", 1)[-1][:_DETAIL]


_API_ERROR = re.compile(r"^\[API Error: (.*)\](\n.*)?$", re.DOTALL)


def plain_message(said: str) -> str:
    """Extract the message for the user from `[API Error: {"error": {"message": …}}]`.

    Any other message is only stripped of surrounding whitespace and shortened.
    """
    found = _API_ERROR.match(said.strip())
    text = f"{found[1]}{found[2] or ''}" if found else said.strip()
    try:
        error: Any = mapping(mapping(orjson.loads(text)).get("error"))
    except orjson.JSONDecodeError:
        return text[:_DETAIL]
    return (string(error.get("message")) or text)[:_DETAIL]


def _calls(count: int) -> str:
    return counted(count, "tool call") if count else ""


_PLAIN_DETAIL = 300
_NAMES = ("Google", *(words.speaker for words in WORDS.values()))


def outcome_line(outcome: RunOutcome, *, resume: str | None = None) -> Clean:
    """Return an outcome as one line: `headline (detail): suggestion; suggestion`.

    `resume`: the id of the session that can be continued.
    """
    what = outcome.headline
    if not what.startswith(_NAMES):
        what = what[:1].lower() + what[1:]
    said = ellipsis(clean_line("; ".join(outcome.detail.splitlines())), _PLAIN_DETAIL)
    ways = "; ".join(outcome.ways_out)
    if resume and "continue the session" in ways:
        command = f"gemtui run --resume {shlex.quote(resume)}"
        ways = ways.replace("continue the session", f"continue the session ({command})", 1)
    line = f"{what} ({said})" if said else what
    return clean_line(f"{line}: {ways}" if ways else line)


# --- cached outcomes ------------------------------------------------------------------------------


_FILE = "outcome.json"
_RULES = 5
"""The version of the code that determines outcomes.

It is increased when the same output yields a different outcome, which invalidates the cache.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptOutcome:
    """The end of a finished run, with the numbers of denied and failed tool calls.

    `sizes`: the sizes in bytes of the stdout and stderr from which this was determined; the cache
    is outdated if they differ. `denials`: the denied calls, as lines with the tool and the reason.
    `warnings`: what else went wrong in a run that is done. `why`: why another run is not done, and
    what the user can do, in one line.
    """

    status: Status
    refused: int
    failed: int
    sizes: tuple[int, int]
    denials: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    why: str = ""
    rules: int = _RULES


def kept_outcome(folder: RunFolder) -> KeptOutcome | None:
    """Return the cached outcome of a run; None if it is missing or outdated."""
    with suppress(OSError, msgspec.ValidationError):
        kept = msgspec.convert(read_object(folder.path / _FILE), KeptOutcome)
        if (kept.rules, kept.sizes) == (_RULES, _sizes(folder)):
            return kept
    return None


def read_outcome(folder: RunFolder, request: Request) -> KeptOutcome | None:
    """Determine a finished run's outcome from all of its output, and cache it.

    Returns None if how the run ended was not recorded. Takes time proportional to the output.
    """
    sizes, progress, run = _sizes(folder), RunProgress(request), AgentRun(folder, request)

    async def read() -> None:
        async for event in run.events():
            progress.add(event)

    if run.exit() is None:
        return None
    asyncio.run(read())
    progress.settle(Path(request.cwd), progress.ended)
    recorded, session = RecordedCalls(gemini_home()), progress.session
    if session is not None and progress.unrecorded:
        progress.add_recorded(recorded.read(session, tuple(progress.unrecorded)))
    progress.read_dropped(recorded)
    recorded.close()
    return _keep(folder, progress, run.stderr(), sizes)


def keep_outcome(folder: RunFolder, progress: RunProgress, stderr: str) -> KeptOutcome | None:
    """Cache and return the outcome of a run whose events have been followed.

    Returns None if the run hasn't ended. `progress`: the facts from the events.
    """
    return _keep(folder, progress, stderr, _sizes(folder))


def _keep(
    folder: RunFolder, progress: RunProgress, stderr: str, sizes: tuple[int, int]
) -> KeptOutcome | None:
    outcome = progress.outcome(stderr)
    if outcome is None:
        return None
    is_done = outcome.status.is_done
    found = KeptOutcome(
        status=outcome.status,
        refused=sum(progress.refused.values()),
        failed=progress.failed.total(),
        sizes=sizes,
        denials=tuple(_refused_lines(progress)),
        warnings=tuple(line for line, _ in _warnings(progress, stderr)) if is_done else (),
        why="" if is_done else outcome_line(outcome, resume=progress.session),
    )
    with suppress(OSError):  # if this fails, the output is read again
        folder.write(_FILE, orjson.dumps(found).decode())
    return found


def _sizes(folder: RunFolder) -> tuple[int, int]:
    return size_of(folder.stdout), size_of(folder.stderr)


# --- calls without a result -----------------------------------------------------------------------


_SLACK = 1.0
"""How many seconds a file's time may be earlier than the call that wrote it."""


def was_written(call: ToolCall, path: Path, *, ended: datetime | None = None) -> bool | None:
    """Return whether a call's write or edit is on disk; None if unknown.

    True if the file has exactly the written contents, or an edit's new text but not the old text.
    False if the file is missing, has an edit's old text but not the new text, or has not changed
    since the call. If the file has changed since the end of the run, the result may be None.
    `ended`: when the run ended; None means right now. Reads the disk.
    """
    changed = changed_at(path)
    late = ended is not None and changed > ended.timestamp() + _SLACK
    try:
        data = read_if_present(path)
        text = None if data is None else _plain(data.decode())
    except (OSError, ValueError):
        return None
    if text is None:
        return None if late else False
    found = _holds(call, text)
    if found is None and call.time is not None and changed < call.time.timestamp() - _SLACK:
        return False
    return None if late and not found else found


def _holds(call: ToolCall, text: str) -> bool | None:
    """Return whether a file's text is what the call would write; None if unclear."""
    content = call.args.get("content")
    if kind_of(call.name) is ToolKind.WRITE:
        return True if isinstance(content, str) and text == _plain(content) else None
    old, new = (_plain(string(call.args.get(name))) for name in ("old_string", "new_string"))
    if not old:
        return True if text == new else None
    was = old in (text.replace(new, "\0") if new and old in new else text)
    now = bool(new) and new in (text.replace(old, "\0") if new in old else text)
    return None if was == now else now


def _plain(text: str) -> str:
    """Convert CRLF to LF, because edits keep the line endings that a file has."""
    return text.replace("\r\n", "\n")
