"""A run as shown on screen: its transcript so far, its changed files, its counts and its stage.

This module uses asyncio but no widgets. `LiveRun.follow` applies events to the transcript as they
arrive. The screen repaints only if `LiveRun.revision` has changed since its last frame, so several
events between two frames cause only one repaint.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path

from gemtui.agent.agent_run import AgentRun
from gemtui.agent.approval import AnswerSource, Away, Difference
from gemtui.agent.events import (
    AgentEvent,
    Done,
    DoneStatus,
    ErrorSaid,
    Init,
    Payload,
    ToolResult,
    ToolUse,
)
from gemtui.agent.fold import Fold
from gemtui.agent.folder_options import from_dict, to_dict
from gemtui.agent.options import AgentOptions
from gemtui.agent.prompt_queue import QueueState, load_queue, with_messages
from gemtui.agent.run_folder import Exit
from gemtui.agents import CAN, Can
from gemtui.folder_events import watching
from gemtui.policy.model.rules import ApprovalMode
from gemtui.runs.changed_files import FileStates, FileTracker, commands_may_have_changed
from gemtui.runs.gate.answered_calls import AnsweredCalls
from gemtui.runs.gate.questions import Conversation, Question, UnaskedCalls
from gemtui.runs.outcome import GO_ON, RunOutcome, RunProgress, keep_outcome
from gemtui.runs.recorded_calls import RecordedCalls
from gemtui.transcript.model import (
    Author,
    Message,
    Outline,
    ToolCall,
    ToolStatus,
    Transcript,
    with_project,
)
from gemtui.transcript.writes import FileWrite
from gemtui.ui.run.supervisor_reports import SupervisorReports


class LiveFiles:
    """The files that a run has changed, with the state of each.

    `rows` holds the files; `revision` goes up whenever they change, and then `changed` is called.
    `calls`: returns the tool calls that the run has made so far.
    """

    def __init__(
        self,
        run: AgentRun,
        calls: Callable[[], Sequence[ToolCall]],
        changed: Callable[[], None],
    ) -> None:
        self.rows: tuple[FileWrite, ...] = ()
        self.revision = 0
        self._run, self._calls, self._changed = run, calls, changed
        self._cwd = Path(run.request.cwd)
        self._tracker = FileTracker(self._cwd)
        self._stirred = asyncio.Event()
        self._looking = asyncio.Lock()
        self.more = False
        """Whether there may be files that are not listed."""

    async def follow(self, *, checkpoints: bool) -> None:
        """Update the rows whenever a file may have changed, until the task is cancelled.

        `checkpoints`: whether to list files that commands changed, which checkpoints show.
        """
        if checkpoints:
            self._tracker = FileTracker(self._cwd, self._run.folder.id)
        stamp = None
        with watching(self._run.folder.path, self._tracker.checkpoints) as stirs:
            while True:
                newest_stamp = await asyncio.to_thread(self._tracker.stamp)
                if self._stirred.is_set() or newest_stamp != stamp:
                    self._stirred.clear()
                    stamp = newest_stamp
                    await self.recompute()
                await stirs.next(LOOK, LONGEST)

    def process(self, payload: Payload) -> None:
        """Handle one of the run's events, after which files may have changed."""
        if isinstance(payload, ToolUse | ToolResult | Done):
            self._stirred.set()

    async def end(self, ended: datetime | None) -> None:
        """Update the rows one last time, after the run has ended.

        `ended`: when the run ended, or None if that was just now.
        """
        if ended is not None:
            self._tracker = FileTracker(self._cwd, self._run.folder.id, ended=ended)
        self._tracker.is_over = True
        await self.recompute()

    async def recompute(self) -> None:
        """Recompute the rows, and increase `revision` if they have changed."""
        async with self._looking:
            calls = self._calls()
            rows = await asyncio.to_thread(self._tracker.rows, calls)
        is_unlisted = not self._tracker.has_checkpoints and commands_may_have_changed(calls)
        more = self._tracker.has_more or is_unlisted
        if (rows, more) != (self.rows, self.more):
            self.rows, self.more = rows, more
            self.revision += 1
            self._changed()

    async def difference(self, path: Path) -> FileStates:
        """Return a file's state before this run and now, along with the diff."""
        return await asyncio.to_thread(self._tracker.difference, path, self._calls())


LOOK = 0.2
"""Minimum seconds between two looks at a run's folder, at its changed files, or for new calls."""
LONGEST = 5.0
"""Seconds between two looks while the system reports no changes."""
_MOST_LOOKS = 20
"""How often the session is checked for calls that have ended; some are never stored."""


class Stage(StrEnum):
    """The stages of a run: running, being stopped, or ended."""

    RUNNING = "running"
    STOPPING = "stopping"
    """SIGTERM has been sent."""
    KILLING = "killing"
    """SIGKILL has been sent."""
    ENDED = "ended"


class ToolEnd(StrEnum):
    """The state of a tool call, as shown on its card and counted for the run."""

    OK = "ok"
    FAILED = "failed"
    """The call failed, going by its status or by the exit code in the stored session."""
    DENIED = "denied"
    REFUSED = "refused"
    CANCELLED = "cancelled"
    RUNNING = "running"
    ASKED = "asked"
    """The user is being asked whether to allow the call."""
    OPEN = "open"
    """The call has no known result."""


class LiveRun:
    """A run, either active or finished.

    `home`: Gemini CLI's folder, which contains the run's session; None if it isn't to be read while
    the run works. `prompt`: the prompt it was started with. `began`: when the run was requested.
    `before`: the conversation that it continues. `ours`: whether this gemtui process started it; if
    so, gemtui asks about it before quitting. `past`: whether it had already ended when this gemtui
    process opened it. `looked_at`: whether the user has seen its outcome.
    """

    def __init__(
        self,
        run: AgentRun,
        prompt: str,
        *,
        began: datetime,
        home: Path | None = None,
        before: Transcript | None = None,
        ours: bool = True,
        past: bool = False,
    ) -> None:
        about = run.request.about
        self.run, self.prompt, self.began = run, prompt, began
        self.ours, self.past = ours, past
        self.model: str | None = about.get("model")
        self.session: str | None = about.get("session_id")
        self.stage = Stage.RUNNING
        self.done: Done | None = None
        self.outcome: RunOutcome | None = None
        """How the run ended, in words; None while it is active."""
        self.exit: Exit | None = None
        self.ended: datetime | None = None
        self.reports = SupervisorReports(run)
        self.options: AgentOptions | None = None
        """The options that it was started with; None if another gemtui process started it."""
        self.newest: Payload | None = None
        """The payload of the newest event; None as long as Gemini CLI starts."""
        self.misread = 0
        self.looked_at = True
        self.stirred: Callable[[], None] = lambda: None
        """Called when `revision` may have changed."""
        self.files = LiveFiles(run, lambda: self.own_transcript.calls(), lambda: self.stirred())
        self.notes: tuple[str, ...] = ()
        """Notes on what happened to the session that this run continued."""
        self.told: Transcript | None = None
        """A finished run's transcript, completed from its stored session; None before."""
        self.before = Transcript.of(()) if before is None else before
        self.progress = RunProgress(run.request)
        self.questions: tuple[Question, ...] = ()
        self.differing: Sequence[Difference] = ()
        """Files that differ from what the user approved; empty until the run has ended."""
        self._waiting: tuple[Question, ...] = ()
        self.asked: Callable[[LiveRun], None] = lambda _run: None
        """Called with this run when it has asked a question or received an answer."""
        self._unasked = UnaskedCalls()
        self.conversation = Conversation(run.gate, self.cwd, AnswerSource.PANE)
        self._answered = AnsweredCalls()
        self._asked, self._reading = 0, asyncio.Lock()
        self.queue_state = QueueState()
        """The messages sent to the run, and its queue of prompts."""
        self.over = False
        """Whether the run has ended and its queue has been dealt with.

        The queue has then either been sent or been left to the user.
        """
        self.next: LiveRun | None = None
        """The run that was started from this run's queue, or None."""
        self.held: str | None = None
        """Why the queue couldn't be sent, or None."""
        self._words: dict[int, tuple[Outline, Message]] = {}
        self._fold = Fold(prompt, began=began, model=self.model)
        self._recorded = None if home is None else RecordedCalls(home)
        self._unrecorded: set[str] = set()
        """The ids of calls that have ended but have not been found in the session yet."""
        self._call_ended = asyncio.Event()
        self._own: tuple[object, Transcript] | None = None
        """The last transcript, after the facts that it was made from."""
        self._heard = time.monotonic()
        self._tools_changed = 0
        self._counts: tuple[tuple[int, bool], Counter[ToolEnd]] = ((-1, True), Counter())

    @property
    def id(self) -> str:
        """The run's id."""
        return self.run.folder.id

    @property
    def cwd(self) -> Path:
        """The run's working directory."""
        return Path(self.run.request.cwd)

    @property
    def alive(self) -> bool:
        """Whether the run is still active."""
        return self.stage is not Stage.ENDED

    @property
    def works(self) -> bool:
        """Whether the run is active, and the agent has something to do."""
        return self.alive and self.reports.kept_until is None

    @property
    def status(self) -> DoneStatus | None:
        """The run's final status, or None while it is active."""
        return None if self.done is None else self.done.status

    @property
    def revision(self) -> tuple[int, Stage, bool, int, int, int]:
        """A value that changes whenever the screen has something new to paint."""
        has_stored = self.told is not None
        return (
            self._fold.revision,
            self.stage,
            has_stored,
            self.files.revision,
            self._asked,
            self._tools_changed,
        )

    @property
    def waiting(self) -> tuple[Question, ...]:
        """The questions that the user hasn't answered yet, in the order of their calls."""
        return self._waiting if self.alive else ()

    @property
    def waiting_call_ids(self) -> frozenset[str]:
        """The ids of the calls that await the user's answer.

        A call is missing while the id that belongs to its question isn't known yet.
        """
        calls = self._answered.calls
        return frozenset(
            calls[question.number] for question in self.waiting if question.number in calls
        )

    @property
    def queued(self) -> frozenset[str]:
        """The ids of the calls that can't start until another call's question is answered."""
        if not self.waiting:
            return frozenset()
        calls = self.own_transcript.calls()
        return frozenset(call.id for call in calls if call.status is ToolStatus.QUEUED)

    # --- events --------------------------------------------------------------------------------

    async def follow(self, *, see_files: bool = False) -> None:
        """Handle the run's events until it has ended, then determine its outcome.

        `see_files`: whether to list files that commands changed as well.
        """
        beside = [self._follow_folder()]
        if not self.past:
            beside += [self.files.follow(checkpoints=see_files), self._follow_session()]
        tasks = [asyncio.create_task(step) for step in beside]
        try:
            async for event in self.run.events():
                self._take(event)
        finally:
            for task in tasks:
                task.cancel()
        await self._read_session()
        if self._recorded is not None:
            await asyncio.to_thread(self.progress.read_dropped, self._recorded)
            self._recorded.close()
        await self.refresh_questions()
        await self.reports.read_last()
        self.differing = await asyncio.to_thread(self.run.gate.differences)
        self.exit = self.run.exit()
        ended = (self.exit and self.exit.ended) or self.began if self.past else None
        await self.files.end(ended)
        await asyncio.to_thread(self.progress.settle, self.cwd, ended)
        stderr = await asyncio.to_thread(self.run.stderr)
        self.outcome = self.progress.outcome(stderr)
        if not self.past:
            await asyncio.to_thread(keep_outcome, self.run.folder, self.progress, stderr)
        self.stage, self.reports.kept_until = Stage.ENDED, None
        self.stirred()

    def _take(self, event: AgentEvent) -> None:
        self._fold.add(event)
        self.progress.add(event)
        self.reports.retry = None
        self._heard = time.monotonic()
        self.session = event.session_id or self.session
        payload = self.newest = event.payload
        if isinstance(payload, Done):
            self.done = payload
            self.session = payload.resume_token or self.session
        elif isinstance(payload, Init):
            self.model = payload.model
        elif isinstance(payload, ErrorSaid):
            self.misread += payload.code == "NDJSON_PARSE_ERROR"
        if isinstance(payload, ToolUse | ToolResult | Done):
            self._tools_changed += 1
        if isinstance(payload, ToolResult):
            self._unrecorded.add(payload.tool_use_id)
            self._call_ended.set()
        self.files.process(payload)
        self.stirred()

    # --- the session while the run works -------------------------------------------------------

    async def _follow_session(self) -> None:
        """Complete calls from the session soon after their end, until the task is cancelled."""
        while True:
            await self._call_ended.wait()
            self._call_ended.clear()
            for _ in range(_MOST_LOOKS):
                await self._read_session()
                if not self._unrecorded or self._call_ended.is_set():
                    break
                await asyncio.sleep(LOOK)

    async def _read_session(self) -> None:
        """Look in the session for calls that have ended; it has their exit codes and diffs."""
        if self._recorded is None or self.session is None or not self._unrecorded:
            return
        recorded = await asyncio.to_thread(
            self._recorded.read, self.session, tuple(self._unrecorded)
        )
        if recorded:
            self._unrecorded.difference_update(call.id for call in recorded)
            self.progress.add_recorded(recorded)
            self._tools_changed += 1
            self.stirred()

    @property
    def away(self) -> Away:
        """The way to treat this run's questions while no gemtui is open to answer them."""
        away = self.run.request.about.get("away")
        return Away.REFUSE if away == Away.REFUSE else Away.WAIT

    # --- questions -----------------------------------------------------------------------------

    async def _follow_folder(self) -> None:
        """Look at the run's questions, queue and stderr after each change, until cancelled.

        At the same time, a background thread keeps telling the run that a user is there to answer.
        The event loop couldn't do this, because it is blocked while an editor is open.
        """
        gone = threading.Event()
        threading.Thread(target=self.conversation.stay, args=(gone,), daemon=True).start()
        run = self.run
        try:
            with watching(run.folder.path, run.gate.path, run.queue.path) as stirs:
                while True:
                    await self.refresh_questions()
                    if await self.reports.read():
                        self._asked += 1
                    self.stirred()
                    await stirs.next(LOOK, LONGEST)
        finally:
            gone.set()

    async def refresh_questions(self) -> None:
        """Reload the run's questions and their answers."""
        async with self._reading:
            questions = await asyncio.to_thread(self.conversation.refresh)
        await self.refresh_queue()
        if self.conversation.unasked is not self._unasked:
            self._unasked = self.conversation.unasked
            self._asked += 1
        if questions is not self.questions:
            calls = {call.id: index for index, call in enumerate(self.streamed.calls())}

            def order(question: Question) -> tuple[int, int]:
                return calls.get(question.request.tool_use_id or "", len(calls)), question.number

            waiting = (question for question in questions if question.waits)
            self.questions, self._waiting = questions, tuple(sorted(waiting, key=order))
            self._asked += 1
            self.stirred()
            self.asked(self)

    async def refresh_queue(self) -> None:
        """Reload the messages sent to the run and its queue of prompts."""
        state = await asyncio.to_thread(load_queue, self.run.queue)
        if state != self.queue_state:
            self.queue_state = state
            self._asked += 1
            self.stirred()

    @property
    def accepts_messages(self) -> bool:
        """Whether messages can be sent to the run now, that is, while it is working."""
        return self.works and self.run.asks and Can.CHANGE in CAN[self.run.request.agent]

    async def send_message(self, text: str) -> None:
        """Send a message, which the model reads together with its next tool result.

        Raises OSError.
        """
        await asyncio.to_thread(self.run.queue.send_message, text)
        await self.refresh_queue()

    async def queue(self, text: str, options: AgentOptions) -> None:
        """Queue a prompt to send once the run has ended.

        The options replace those stored for the queue, so they apply to all of its prompts. Raises
        OSError.
        """
        stored, prompts = to_dict(options), self.run.queue

        def queue() -> None:
            prompts.keep_options(stored)
            prompts.add_prompt(text)

        await asyncio.to_thread(queue)
        await self.refresh_queue()

    async def keep_options(self, options: AgentOptions) -> None:
        """Store the options with which the queued prompts will be sent.

        Raises OSError.
        """
        await asyncio.to_thread(self.run.queue.keep_options, to_dict(options))

    def next_options(self) -> AgentOptions | None:
        """Return the options with which the queued prompts will be sent.

        They make the new run continue this run's session if possible. Returns None if none are
        stored. Blocking: reads a file. Raises OptionError.
        """
        stored = self.run.queue.options()
        resume = self.session if self.can_continue else self.resumes
        return None if stored is None else from_dict(stored, cwd=self.cwd, resume=resume)

    @property
    def latest(self) -> LiveRun:
        """The last of the runs that were started, one after the other, from the queue.

        This is the run itself if no run was started from its queue.
        """
        return self if self.next is None else self.next.latest

    @property
    def sends_next(self) -> bool:
        """Whether the run ended well, so that its queue can be sent automatically.

        False if the run had already ended when this gemtui process opened it.
        """
        well = self.outcome is not None and self.outcome.status.is_done
        return well and self.can_continue and not self.past

    @property
    def renewed(self) -> datetime | None:
        """When the quota will be renewed, if the run's queue is to be sent then.

        None if the run's options don't ask for that, or if the quota isn't used up.
        """
        wanted = self.run.request.about.get("wait_for_quota")
        return self.outcome.until if wanted and self.outcome is not None else None

    @property
    def prompt_again(self) -> str:
        """The prompt with which a new run continues where this one stopped.

        If that isn't possible, this is the run's original prompt.
        """
        return GO_ON if self.progress.resumable and self.can_continue else self.prompt

    # --- state for the screen ------------------------------------------------------------------

    @property
    def streamed(self) -> Transcript:
        """The transcript from the event stream, without messages sent during the run.

        Calls that have ended are completed from the stored session.
        """
        streamed = self._fold.transcript()
        return streamed if self._recorded is None else self._recorded.complete(streamed)

    @property
    def own_transcript(self) -> Transcript:
        """This run's transcript, without the conversation that it continues."""
        state = self._fold.revision, self._tools_changed, self._asked, self.told
        if self._own is None or self._own[0] != state:
            transcript = self.streamed if self.told is None else self.told
            answered = self._answered.with_answers(transcript, self.questions, self._unasked)
            self._own = state, with_messages(answered, self.queue_state, self._words)
        return self._own[1]

    def transcript(self) -> Transcript:
        """Return the conversation so far, including the part before this run."""
        return with_project(_after(self.before, self.own_transcript), str(self.cwd))

    def settled_transcript(self) -> Transcript:
        """Return the whole conversation, with message ids that no later run will use.

        This allows the messages of a run that continues this one to be appended.
        """
        messages = (
            replace(message, id=f"{self.id}.{message.id}") for message in self.own_transcript
        )
        return _after(self.before, Transcript.of(tuple(messages)))

    @property
    def resumes(self) -> str | None:
        """The id of the session that the run continued, or None if it started a new one."""
        return self.run.request.about.get("resume")

    @property
    def can_continue(self) -> bool:
        """Whether the run has ended and has left a session that can be continued."""
        spoke = self.answers() > 0 or self.resumes is not None
        return not self.alive and self.session is not None and spoke

    def goes_on_with(self, options: AgentOptions) -> bool:
        """Return whether a run with these options can continue the run's session."""
        return self.can_continue and self.run.request.agent is options.agent

    @property
    def planned(self) -> bool:
        """Whether the run has successfully made a plan that can now be carried out."""
        mode = self.run.request.about.get("approval_mode")
        is_done = self.outcome is not None and self.outcome.status.is_done
        return mode == ApprovalMode.PLAN and is_done and self.can_continue

    def ends(self) -> Counter[ToolEnd]:
        """Return the number of this run's tool calls by state, as shown on their cards."""
        state = self._tools_changed, self.told is None
        if self._counts[0] != state:
            self._counts = state, Counter(map(_end, self.own_transcript.calls()))
        asked = Counter({ToolEnd.RUNNING: len(self.waiting_call_ids)})
        return self._counts[1] - asked + Counter({ToolEnd.ASKED: len(self.waiting)})

    def answers(self) -> int:
        """Return how many times the model has answered.

        Gemini CLI calls these answers turns, and limits their number.
        """
        return sum(outline.author is Author.MODEL for outline in self._fold.transcript().outlines)

    def elapsed(self, now: datetime) -> float:
        """Return the seconds from the run's request to its end, or to `now` while active."""
        return max(0.0, ((self.ended or now) - self.began).total_seconds())

    def seconds_since_event(self) -> float:
        """Return how many seconds ago the last event arrived."""
        return time.monotonic() - self._heard

    # --- actions -------------------------------------------------------------------------------

    def stop(self) -> None:
        """Send SIGTERM to the run's process tree or, if called again, SIGKILL."""
        if self.alive:
            self.stage = Stage.STOPPING if self.stage is Stage.RUNNING else Stage.KILLING
            self.run.abort()
            self.stirred()


def would_take(run: LiveRun, options: AgentOptions) -> bool:
    """Return whether a run's agent is kept and can take a prompt for a run with these options."""
    same = run.options is not None and to_dict(run.options) == to_dict(options)
    return run.reports.kept_until is not None and same


def only_running_call(run: LiveRun, now: datetime) -> tuple[str, float] | None:
    """Return the id of a run's call that is running, and for how many seconds it has been.

    The time in which the user was asked about it is left out. Returns None if no call is
    running, or several: then it is unknown which of them have been started.
    """
    if run.ends()[ToolEnd.RUNNING] != 1:
        return None
    calls = run.own_transcript.calls()
    call = next(call for call in calls if _end(call) is ToolEnd.RUNNING)
    if call.time is None:
        return None
    answered = (question.settled.at for question in run.questions if question.settled)
    asked_until = datetime.fromtimestamp(max(answered, default=0) / 1000, UTC)
    return call.id, (now - max(call.time, asked_until)).total_seconds()


_ENDS = {
    ToolStatus.SUCCESS: ToolEnd.OK,
    ToolStatus.ERROR: ToolEnd.FAILED,
    ToolStatus.CANCELLED: ToolEnd.CANCELLED,
    ToolStatus.DENIED: ToolEnd.DENIED,
    ToolStatus.REFUSED: ToolEnd.REFUSED,
    ToolStatus.QUEUED: ToolEnd.RUNNING,
    ToolStatus.RUNNING: ToolEnd.RUNNING,
}


def _end(call: ToolCall) -> ToolEnd:
    end = _ENDS.get(call.status, ToolEnd.OPEN)
    return ToolEnd.FAILED if end is ToolEnd.OK and call.failed else end


def _after(first: Transcript, second: Transcript) -> Transcript:
    """Return a transcript with the messages of both transcripts.

    No message id may occur in both.
    """
    if not len(first):
        return second
    count = len(first)

    def read(index: int) -> Message:
        return first.read(index) if index < count else second.read(index - count)

    return Transcript(
        outlines=(*first.outlines, *second.outlines), read=read, revision=second.revision
    )
