"""A run as the screen shows it: its transcript so far, its counters, its stage.

Plain asyncio, no widgets: `follow` folds the events as they come, and a screen compares `revision`
whenever it paints, so that a delta costs nothing but the folding.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from enum import StrEnum
from pathlib import Path

from gemtui.agent.approval import Away, Difference
from gemtui.agent.events import (
    AgentEvent,
    Done,
    DoneStatus,
    ErrorSaid,
    Init,
    ToolResult,
    ToolUse,
)
from gemtui.agent.fold import Fold
from gemtui.agent.folder_options import from_dict, to_dict
from gemtui.agent.gemini import GeminiRun
from gemtui.agent.options import AgentOptions
from gemtui.agent.run_folder import Exit
from gemtui.agent.stderr import stderr_end, told
from gemtui.policy.model.rules import ApprovalMode
from gemtui.runs.answered_calls import AnsweredCalls
from gemtui.runs.conversation import Conversation
from gemtui.runs.kept_outcome import keep_outcome
from gemtui.runs.outcome import GO_ON, RunOutcome, RunProgress, retry_words
from gemtui.runs.questions import Question, UnaskedCalls
from gemtui.runs.steered import Steered, look, with_words
from gemtui.transcript.model import (
    Author,
    Message,
    Outline,
    ToolCall,
    ToolStatus,
    Transcript,
    Usage,
)
from gemtui.ui.run.live_files import LiveFiles

LISTEN = 0.3
"""Seconds between two reads of a run's stderr."""
LOOK = 0.2
"""Seconds between two checks of its files and its questions."""


class Stage(StrEnum):
    """The stage of a run."""

    RUNNING = "running"
    STOPPING = "stopping"
    """SIGTERM has been sent."""
    KILLING = "killing"
    """SIGKILL has been sent."""
    ENDED = "ended"


class ToolEnd(StrEnum):
    """The state of a tool call on its card and in the counts of a run."""

    OK = "ok"
    FAILED = "failed"
    """By its status or, once the session is stored, by its exit code."""
    DENIED = "denied"
    REFUSED = "refused"
    CANCELLED = "cancelled"
    RUNNING = "running"
    ASKED = "asked"
    """A person is being asked about it."""
    OPEN = "open"
    """Its end is unknown."""


class LiveRun:
    """One run.

    `began`: when it was requested. `before`: the conversation that it continues. `ours`: started by
    this gemtui, so that quitting asks about it. `past`: it had ended before we attached to it.
    `looked_at`: the user has seen how it ended.
    """

    def __init__(
        self,
        run: GeminiRun,
        prompt: str,
        *,
        began: datetime,
        before: Transcript | None = None,
        ours: bool = True,
        past: bool = False,
    ) -> None:
        about = run.request.about or {}
        self.run, self.prompt, self.began = run, prompt, began
        self.ours, self.past = ours, past
        self.model: str | None = about.get("model")
        self.session: str | None = about.get("session_id")
        self.stage = Stage.RUNNING
        self.done: Done | None = None
        self.outcome: RunOutcome | None = None
        """Its result, in words."""
        self.retry: str | None = None
        """The CLI's current retry, until other output comes."""
        self.exit: Exit | None = None
        self.ended: datetime | None = None
        self.stderr = ""
        self.unprotected = ""
        """Why later changes have no checkpoints; "" if they have."""
        self.first_checkpoint = ""
        """The progress of the first checkpoint, for which it waits; "" if it does not wait."""
        self.pid: int | None = None
        self.misread = 0
        self.looked_at = True
        self.files = LiveFiles(run, lambda: self.own.calls())
        self.notes: tuple[str, ...] = ()
        """Remarks on the session that it continued."""
        self.told: Transcript | None = None
        """The whole transcript, completed from the CLI's stored session, once it has ended."""
        self.before = Transcript.of(()) if before is None else before
        self.progress = RunProgress(run.request)
        self.questions: tuple[Question, ...] = ()
        self.differing: Sequence[Difference] = ()
        """The files that differ from their approved versions; known once it has ended."""
        """Its questions, as of the last check."""
        self._waiting: tuple[Question, ...] = ()
        self.asked: Callable[[LiveRun], None] = lambda _run: None
        """Called when it asks, and when a question has been answered."""
        self._unasked = UnaskedCalls()
        self.conversation, self._answered = Conversation(run.gate, self.cwd), AnsweredCalls()
        self._asked, self._reading = 0, asyncio.Lock()
        self.steered = Steered()
        """Messages sent to it, and its queue."""
        self.over = False
        """Whether it has ended, and its queue has been sent or waits for a person."""
        self.next: LiveRun | None = None
        """The run that continued with this one's queue."""
        self.held: str | None = None
        """Why the queue could not be sent."""
        self._words: dict[int, tuple[Outline, Message]] = {}
        self._fold = Fold(prompt, began=began, model=self.model)
        self._heard = time.monotonic()
        self._tools_changed = 0
        self._counts: tuple[tuple[int, bool], Counter[ToolEnd]] = ((-1, True), Counter())

    @property
    def id(self) -> str:
        """The run's id."""
        return self.run.folder.id

    @property
    def cwd(self) -> Path:
        """The folder in which it runs."""
        return Path(self.run.request.cwd)

    @property
    def alive(self) -> bool:
        """Whether it is still active."""
        return self.stage is not Stage.ENDED

    @property
    def status(self) -> DoneStatus | None:
        """Its final status; None while it is active."""
        return None if self.done is None else self.done.status

    @property
    def usage(self) -> Usage | None:
        """Its tokens, if known."""
        return None if self.done is None else self.done.tokens

    @property
    def revision(self) -> tuple[int, Stage, bool, int, int]:
        """A value that changes whenever there is something new to paint."""
        told = self.told is not None
        return self._fold.revision, self.stage, told, self.files.revision, self._asked

    @property
    def waiting(self) -> tuple[Question, ...]:
        """The questions waiting for a person, in the order of their calls."""
        return self._waiting if self.alive else ()

    @property
    def asked_about(self) -> frozenset[str]:
        """The known ids of calls waiting for a person."""
        calls = self._answered.calls
        return frozenset(calls[each.number] for each in self.waiting if each.number in calls)

    @property
    def queued(self) -> frozenset[str]:
        """The ids of calls that wait until a person has answered about another one."""
        if not self.waiting:
            return frozenset()
        calls = self.own.calls()
        return frozenset(call.id for call in calls if call.status is ToolStatus.QUEUED)

    # --- events --------------------------------------------------------------------------------

    async def follow(self, *, see_files: bool = False) -> None:
        """Process all events until the run has ended; `see_files`: also watch its folder."""
        beside = [self._listen(), self._follow_questions()]
        if not self.past:
            beside.append(self.files.follow(before=see_files))
            beside += [self.files.see()] if see_files else []
        tasks = [asyncio.create_task(each) for each in beside]
        try:
            async for event in self.run.events():
                self._take(event)
        finally:
            for task in tasks:
                task.cancel()
        await self.look_at_questions()
        await self._look_at_checkpoints()
        self.differing = await asyncio.to_thread(self.run.gate.differences)
        self.exit = self.run.exit()
        ended = (self.exit and self.exit.ended) or self.began if self.past else None
        await self.files.end(ended)
        await asyncio.to_thread(self.progress.settle, self.cwd, ended)
        said = await asyncio.to_thread(stderr_end, self.run.folder.stderr)
        self.stderr, self.retry = told(said), None
        said = await asyncio.to_thread(self.run.stderr)
        self.outcome = self.progress.outcome(said)
        if not self.past:
            await asyncio.to_thread(keep_outcome, self.run.folder, self.progress, said)
        self.stage = Stage.ENDED

    def _take(self, event: AgentEvent) -> None:
        self._fold.add(event)
        self.progress.add(event)
        self.retry = None
        self._heard = time.monotonic()
        self.session = event.session_id or self.session
        payload = event.payload
        if isinstance(payload, Done):
            self.done = payload
            self.session = payload.resume_token or self.session
        elif isinstance(payload, Init):
            self.model = payload.model
        elif isinstance(payload, ErrorSaid):
            self.misread += payload.code == "NDJSON_PARSE_ERROR"
        if isinstance(payload, ToolUse | ToolResult | Done):
            self._tools_changed += 1
        self.files.take(payload)

    @property
    def away(self) -> Away:
        """The treatment of questions while nobody is there."""
        away = (self.run.request.about or {}).get("away")
        return Away.REFUSE if away == Away.REFUSE else Away.WAIT

    # --- questions -----------------------------------------------------------------------------

    async def _follow_questions(self) -> None:
        """Poll for questions; an editor in the terminal still counts as somebody present."""
        gone = threading.Event()
        threading.Thread(target=self.conversation.questions.stay, args=(gone,), daemon=True).start()
        try:
            while True:
                await self.look_at_questions()
                await asyncio.sleep(LOOK)
        finally:
            gone.set()

    async def look_at_questions(self) -> None:
        """Load the questions and their answers."""
        async with self._reading:
            found = await asyncio.to_thread(self.conversation.look)
        await self.look_at_steering()
        if (unasked := self.conversation.questions.unasked) is not self._unasked:
            self._unasked = unasked
            self._asked += 1
        if found is not self.questions:
            self.questions, self._waiting = found, self._in_order(found)
            self._asked += 1
            self.asked(self)

    async def look_at_steering(self) -> None:
        """Load the messages sent to it, and its queue."""
        steered = await asyncio.to_thread(look, self.run.steering)
        if steered != self.steered:
            self.steered = steered
            self._asked += 1

    def _in_order(self, questions: Sequence[Question]) -> tuple[Question, ...]:
        """Return waiting questions in the order of their calls."""
        calls = {call.id: place for place, call in enumerate(self.streamed.calls())}

        def place(question: Question) -> tuple[int, int]:
            return calls.get(question.request.tool_use_id or "", len(calls)), question.number

        return tuple(sorted((each for each in questions if each.waits), key=place))

    @property
    def hears(self) -> bool:
        """Whether messages and prompts reach it while it is active."""
        return self.alive and self.run.asks

    async def say(self, text: str) -> None:
        """Send a message, read with its next tool result. Raises OSError."""
        await asyncio.to_thread(self.run.steering.say, text)
        await self.look_at_steering()

    async def queue(self, text: str, options: AgentOptions) -> None:
        """Queue a prompt for when the run has ended; the whole queue gets these options.

        Raises OSError.
        """
        stored, steering = to_dict(options), self.run.steering

        def queue() -> None:
            steering.keep_options(stored)
            steering.queue(text)

        await asyncio.to_thread(queue)
        await self.look_at_steering()

    async def keep_options(self, options: AgentOptions) -> None:
        """Set the options for the queue, if a new run must be started for it.

        Raises OSError.
        """
        await asyncio.to_thread(self.run.steering.keep_options, to_dict(options))

    def next_options(self) -> AgentOptions | None:
        """Return the options for the queue, continuing the session if possible.

        Reads a file. None if nobody has set any. Raises OptionError.
        """
        stored = self.run.steering.options()
        resume = self.session if self.can_go_on else self.resumes
        return None if stored is None else from_dict(stored, cwd=self.cwd, resume=resume)

    @property
    def latest(self) -> LiveRun:
        """The last run that continued this one's queue; else this one."""
        return self if self.next is None else self.next.latest

    @property
    def sends_next(self) -> bool:
        """Whether it ended in a way that sends its queue automatically."""
        well = self.outcome is not None and self.outcome.status.is_done
        return well and self.can_go_on and not self.past

    @property
    def renewed(self) -> datetime | None:
        """When its queue is sent automatically, once its quota is renewed."""
        wanted = (self.run.request.about or {}).get("wait_for_quota")
        return self.outcome.until if wanted and self.outcome is not None else None

    @property
    def prompt_again(self) -> str:
        """The prompt that continues it where it stopped; if nothing came of its own, that."""
        return GO_ON if self.progress.resumable and self.can_go_on else self.prompt

    # --- stderr --------------------------------------------------------------------------------

    async def _listen(self) -> None:
        """Poll stderr; a retry counts as a sign of life."""
        path, size = self.run.folder.stderr, 0
        while True:
            now = _size(path)
            if now != size:
                said = await asyncio.to_thread(stderr_end, path)
                self.stderr, self.retry = told(said), retry_words(said[size - now :])
                size = now
            await self._look_at_checkpoints()
            if self.pid is None:
                owner = await asyncio.to_thread(self.run.folder.owner)
                self.pid = None if owner is None else owner.cli
            await asyncio.sleep(LISTEN)

    async def _look_at_checkpoints(self) -> None:
        from gemtui.runs.checkpoint_state import CheckpointPhase, checkpoint_state

        if not self.unprotected:
            state = await asyncio.to_thread(checkpoint_state, self.run.folder)
            self.unprotected = "" if state is None else state.problem
            waits = state is not None and state.phase is CheckpointPhase.FIRST
            self.first_checkpoint = state.progress if state and waits else ""

    # --- state for the screen ------------------------------------------------------------------

    @property
    def streamed(self) -> Transcript:
        """The transcript of its stream, without the person's messages."""
        return self._fold.transcript()

    @property
    def own(self) -> Transcript:
        """The transcript of this run, without the conversation before it."""
        said = self.streamed if self.told is None else self.told
        told = self._answered.told(said, self.questions, self._unasked)
        return with_words(told, self.steered, self._words)

    def transcript(self) -> Transcript:
        """Return the conversation so far, including the part before this run.

        Messages that did not change keep their outlines.
        """
        return _after(self.before, self.own)

    def settled(self) -> Transcript:
        """Return the whole conversation, with message ids that no later run will use."""
        said = (replace(each, id=f"{self.id}.{each.id}") for each in self.own)
        return _after(self.before, Transcript.of(tuple(said)))

    @property
    def resumes(self) -> str | None:
        """The id of the session that it continued; None for a new one."""
        return (self.run.request.about or {}).get("resume")

    @property
    def can_go_on(self) -> bool:
        """Whether there is a session to continue."""
        spoke = self.answers() > 0 or self.resumes is not None
        return not self.alive and self.session is not None and spoke

    @property
    def planned(self) -> bool:
        """Whether it was a finished plan that can be carried out."""
        mode = (self.run.request.about or {}).get("approval_mode")
        done = self.outcome is not None and self.outcome.status.is_done
        return mode == ApprovalMode.PLAN and done and self.can_go_on

    def ends(self) -> Counter[ToolEnd]:
        """Return the numbers of this run's tool calls by their state, as on their cards."""
        state = self._tools_changed, self.told is None
        if self._counts[0] != state:
            self._counts = state, Counter(map(_end, self.own.calls()))
        asked = Counter({ToolEnd.RUNNING: len(self.asked_about)})
        return self._counts[1] - asked + Counter({ToolEnd.ASKED: len(self.waiting)})

    def answers(self) -> int:
        """Return the number of the model's answers, which the CLI's turn limit counts."""
        return sum(each.author is Author.MODEL for each in self._fold.transcript().outlines)

    def elapsed(self, now: datetime) -> float:
        """Return the seconds from its request to its end, or until now."""
        return max(0.0, ((self.ended or now) - self.began).total_seconds())

    def quiet(self) -> float:
        """Return the seconds since the last event."""
        return time.monotonic() - self._heard

    def place_of(self, call: str) -> tuple[int, int] | None:
        """Return message and block of a tool call in the transcript."""
        transcript = self.transcript()
        for index, line in enumerate(transcript.outlines):
            if line.calls:
                for at, block in enumerate(transcript.read(index).blocks):
                    if isinstance(block, ToolCall) and block.id == call:
                        return index, at
        return None

    # --- actions -------------------------------------------------------------------------------

    def stop(self) -> None:
        """End the process tree by SIGTERM; when called again, by SIGKILL."""
        if self.alive:
            self.stage = Stage.STOPPING if self.stage is Stage.RUNNING else Stage.KILLING
            self.run.abort()


def _size(path: Path) -> int:
    with suppress(OSError):
        return path.stat().st_size
    return 0


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
    """Return one transcript appended to another; their ids must differ."""
    if not len(first):
        return second
    count = len(first)

    def read(index: int) -> Message:
        return first.read(index) if index < count else second.read(index - count)

    return Transcript(
        outlines=(*first.outlines, *second.outlines), read=read, revision=second.revision
    )
