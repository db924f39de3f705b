"""Messages to a working agent, and its prompt queue, in one file of a run's folder.

In a run that asks the user for approval, the supervisor delivers them: each message together with
the result of the next tool call, and each prompt when the previous turn has ended, in the same
process. Prompts that remain when a run has ended stay in the file; each then starts a follow-up run
(`send_next`).

Every change reads the file, and replaces it as a whole, while it holds the lock `changing`. A
queued prompt can be edited until it is sent. A follow-up run claims its prompt before it starts:
the file then names the new run's id. If a process is killed after that, the new run's folder shows
whether the prompt was sent; if not, the prompt returns to the queue. If several gemtui processes
want to send, only the one that holds the lock `sending` does.
"""

from __future__ import annotations

import asyncio
import errno
import time
import uuid
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from gemtui.agent.approval import Milliseconds
from gemtui.agent.run_folder import LARGEST_PROMPT, PROMPT_TOO_LARGE, RunFolder, is_too_large
from gemtui.errors import GemtuiError
from gemtui.files import is_folder, locked, path_exists
from gemtui.jsonfile import read_as, write_again
from gemtui.transcript.model import Author, Message, Outline, Text, Transcript, outline
from gemtui.transcript.rows import insert_row, of_rows, rows_of

_LARGEST_FILE = 40 * LARGEST_PROMPT
"""The largest file of a queue, in bytes. In JSON, a control character takes six."""
_FILE = "queue.json"
_CHANGING, _SENDING, _EDITING = "changing.lock", "sending.lock", "editing.lock"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunMessage:
    """A message to a working agent.

    `number`: 1-based. `at`: milliseconds since 1970.
    """

    text: str
    number: int
    at: Milliseconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivered:
    """A message's delivery: its time, and the tool call whose result carried it.

    `at`: milliseconds since 1970. `tool_use_id`: None if unknown.
    """

    at: Milliseconds
    tool_name: str = ""
    tool_use_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NextPrompt:
    """A prompt in the queue, waiting for the previous turn to end."""

    id: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SentPrompt:
    """A prompt that has been sent.

    `run`: the id of the run that started with this prompt; "" means that the prompt continued the
    run that owns the queue.
    """

    id: str
    text: str
    run: str


@dataclass(slots=True)
class _Message:
    """A message as it is stored."""

    text: str
    number: int
    at: Milliseconds
    delivered: Delivered | None = None

    @property
    def public(self) -> RunMessage:
        return RunMessage(text=self.text, number=self.number, at=self.at)


@dataclass(slots=True)
class _Prompt:
    """A prompt in the queue as it is stored.

    `run`: the id of the run that has claimed it; "" while it waits.
    """

    id: str
    text: str
    run: str = ""


@dataclass(slots=True)
class _Stored:
    """The contents of a queue's file. `sent`: in the order in which they were sent."""

    messages: list[_Message] = field(default_factory=list)
    prompts: list[_Prompt] = field(default_factory=list)
    sent: list[SentPrompt] = field(default_factory=list)
    options: dict[str, Any] | None = None

    @property
    def undelivered(self) -> list[_Message]:
        return [message for message in self.messages if message.delivered is None]

    @property
    def waiting(self) -> list[_Prompt]:
        return [prompt for prompt in self.prompts if not prompt.run]

    def find(self, id: str) -> _Prompt | None:
        """Return a waiting prompt; None if it was sent, claimed or removed."""
        for prompt in self.waiting:
            if prompt.id == id:
                return prompt
        return None

    def ids(self) -> set[str]:
        """Return the ids of all prompts, sent or not."""
        return {prompt.id for prompt in self.prompts} | {sent.id for sent in self.sent}

    def turn_messages_to_prompts(self) -> None:
        """Turn undelivered messages into prompts, at the front of the queue."""
        late = self.undelivered
        self.messages = [message for message in self.messages if message not in late]
        self.prompts[:0] = [_Prompt(_new_id(), message.text) for message in late]


def _new_id() -> str:
    return uuid.uuid4().hex[:8]


def _clock() -> int:
    return time.time_ns() // 1_000_000


@dataclass(frozen=True, slots=True)
class PromptQueue:
    """The messages and the prompt queue under `path`.

    The folder is created together with its first file. `clock`: returns milliseconds since 1970.
    """

    path: Path
    clock: Callable[[], int] = _clock

    @classmethod
    def of(cls, run: RunFolder) -> PromptQueue:
        """Return the messages and the prompt queue of a run."""
        return cls(run.path / "steering")

    # --- messages --------------------------------------------------------------------------------

    def send_message(self, text: str) -> RunMessage:
        """Send the agent a message, which it reads with its next tool result.

        Raises OSError.
        """
        _check_size(text)
        with self._change() as stored:
            number = max((message.number for message in stored.messages), default=0) + 1
            message = _Message(text, number, self.clock())
            stored.messages.append(message)
            return message.public

    def messages(self) -> list[RunMessage]:
        """Return all messages so far, in order."""
        return [message.public for message in self._read().messages]

    def delivery(self, word: RunMessage) -> Delivered | None:
        """Return when, and with which call, a message was delivered; None if it wasn't."""
        for message in self._read().messages:
            if message.number == word.number:
                return message.delivered
        return None

    def record_delivery(self, word: RunMessage, tool_name: str, tool_use_id: str | None) -> None:
        """Record that a message is being delivered with a tool call's result.

        The supervisor calls this. Raises OSError, also if the message was delivered before.
        """
        with self._change() as stored:
            for message in stored.undelivered:
                if message.number == word.number:
                    message.delivered = Delivered(
                        at=self.clock(), tool_name=tool_name, tool_use_id=tool_use_id
                    )
                    return
            raise OSError(errno.EEXIST, "the message was delivered before", str(self.path / _FILE))

    def messages_to_prompts(self) -> None:
        """Turn undelivered messages into prompts, at the front of the queue.

        Call this when a turn has ended. Raises OSError.
        """
        if self._load().undelivered:
            with self._change() as stored:
                stored.turn_messages_to_prompts()

    # --- prompts ---------------------------------------------------------------------------------

    def add_prompt(self, text: str) -> NextPrompt:
        """Append a prompt to the queue. Raises OSError."""
        _check_size(text)
        with self._change() as stored:
            prompt = _Prompt(_new_id(), text)
            stored.prompts.append(prompt)
            return NextPrompt(id=prompt.id, text=text)

    def prompts(self) -> list[NextPrompt]:
        """Return the queued prompts, the next one first."""
        return [NextPrompt(id=prompt.id, text=prompt.text) for prompt in self._read().waiting]

    def edit(self, id: str, text: str) -> bool:
        """Edit a queued prompt. Raises OSError.

        Returns False if the prompt has already been sent or removed.
        """
        _check_size(text)
        with self._change() as stored:
            prompt = stored.find(id)
            if prompt is None:
                return False
            prompt.text = text
            return True

    def drop(self, id: str) -> bool:
        """Remove a queued prompt. Raises OSError.

        Returns False if the prompt has already been sent or removed.
        """
        with self._change() as stored:
            prompt = stored.find(id)
            if prompt is None:
                return False
            stored.prompts.remove(prompt)
            return True

    def move(self, id: str, to: int) -> bool:
        """Move a queued prompt to position `to`, where 0 is next. Raises OSError.

        Returns False if the prompt has already been sent or removed.
        """
        with self._change() as stored:
            prompt = stored.find(id)
            if prompt is None:
                return False
            stored.prompts.remove(prompt)
            following = stored.waiting[to:]
            at = stored.prompts.index(following[0]) if following else len(stored.prompts)
            stored.prompts.insert(at, prompt)
            return True

    def send(self) -> SentPrompt | None:
        """Take the next prompt from the queue for the process that is running. Raises OSError.

        Returns None if the queue is empty, a prompt is being edited, or the next prompt needs a new
        process (`needs_new_process`). The supervisor calls this.
        """
        with self._change() as stored:
            stored.turn_messages_to_prompts()
            waiting = stored.waiting
            if not waiting or self._is_edited() or needs_new_process(waiting[0].text):
                return None
            sent = SentPrompt(id=waiting[0].id, text=waiting[0].text, run="")
            stored.prompts.remove(waiting[0])
            stored.sent.append(sent)
            return sent

    def sent(self) -> list[SentPrompt]:
        """Return the prompts that have been sent, in order."""
        return self._read().sent

    def undelivered(self) -> int:
        """Return the number of messages and prompts that have not reached the agent.

        It is 1 if the file can't be read.
        """
        try:
            stored = self._load()
        except OSError:
            return 1
        return len(stored.undelivered) + len(stored.prompts)

    # --- the queue of a finished run -----------------------------------------------------------

    def sending(self) -> AbstractContextManager[bool]:
        """Return a context manager that locks the queue for sending. Raises OSError.

        It yields False if another process holds the lock. The lock is released at the latest when
        this process ends.
        """
        self.path.mkdir(mode=0o700, exist_ok=True)
        return locked(self.path / _SENDING, wait=False)

    def editing(self) -> AbstractContextManager[bool]:
        """Return a context manager that holds back the queue while a prompt is edited.

        It yields False if another process holds the lock. The lock is released at the latest when
        this process ends. Raises OSError.
        """
        self.path.mkdir(mode=0o700, exist_ok=True)
        return locked(self.path / _EDITING, wait=False)

    def _is_edited(self) -> bool:
        if not path_exists(self.path / _EDITING):
            return False
        with locked(self.path / _EDITING, wait=False) as is_free:
            return not is_free

    def claim(self, run: str, id: str | None = None) -> SentPrompt | None:
        """Take a prompt from the queue for a new run, which will start with it.

        `run`: the new run's id. `id`: the prompt's id; None means the next prompt. Returns None if
        there is no such prompt, or if `id` is None and a prompt is being edited. Call this only
        while holding the lock `sending`. Call `confirm` once the run has started, or
        `return_claimed` if it did not start. Raises OSError.
        """
        if id is None and self._is_edited():
            return None
        with self._change() as stored:
            for prompt in stored.waiting:
                if id in (None, prompt.id):
                    prompt.run = run
                    return SentPrompt(id=prompt.id, text=prompt.text, run=run)
        return None

    def claimed(self) -> list[str]:
        """Return the ids of runs whose prompts were claimed but never confirmed."""
        return [prompt.run for prompt in self._read().prompts if prompt.run]

    def confirm(self, run: str) -> None:
        """Record that the run has started with its claimed prompt. Raises OSError."""
        with self._change() as stored:
            for prompt in [prompt for prompt in stored.prompts if prompt.run == run]:
                stored.prompts.remove(prompt)
                stored.sent.append(SentPrompt(id=prompt.id, text=prompt.text, run=run))

    def return_claimed(self, run: str) -> None:
        """Put a run's claimed prompt back into the queue, because the run didn't start.

        Raises OSError.
        """
        with self._change() as stored:
            for prompt in stored.prompts:
                if prompt.run == run:
                    prompt.run = ""

    def hand_over(self, to: PromptQueue, *, known: Collection[str] = ()) -> None:
        """Move all queued prompts to the end of another run's queue. Raises OSError.

        This queue's options for runs are copied as well, unless the other queue already has some.
        If the process is killed between the two writes, both queues have the prompts; they are told
        apart by their ids when this is done again. `known`: ids of prompts that were moved before.
        """
        if not self._load().waiting:
            return
        with self._change() as stored:
            with to._change() as following:
                moved = {*known, *following.ids()}
                following.prompts += [prompt for prompt in stored.waiting if prompt.id not in moved]
                if following.options is None:
                    following.options = stored.options
            stored.prompts = [prompt for prompt in stored.prompts if prompt.run]

    # --- options for sending the queue ---------------------------------------------------------

    def options(self) -> Mapping[str, Any] | None:
        """Return the options for runs that start with queued prompts; None if unset."""
        return self._read().options

    def keep_options(self, options: Mapping[str, Any]) -> None:
        """Set the options for runs that start with queued prompts. Raises OSError."""
        with self._change() as stored:
            stored.options = dict(options)

    # --- the file --------------------------------------------------------------------------------

    @contextmanager
    def _change(self) -> Iterator[_Stored]:
        """Yield the queue's contents, locked against other changes, and write them afterwards.

        If the block raises an exception, nothing is written. Raises OSError.
        """
        self.path.mkdir(mode=0o700, exist_ok=True)
        with locked(self.path / _CHANGING):
            stored = self._load()
            yield stored
            write_again(self.path / _FILE, stored, _LARGEST_FILE)

    def _load(self) -> _Stored:
        """Return the queue's contents. Raises OSError if there is a file that can't be read."""
        file = self.path / _FILE
        stored = read_as(file, _Stored, _LARGEST_FILE)
        if stored is None and path_exists(file):
            raise OSError(errno.EINVAL, "the queue can't be read", str(file))
        return stored or _Stored()

    def _read(self) -> _Stored:
        """Return the queue's contents; empty if they can't be read."""
        try:
            return self._load()
        except OSError:
            return _Stored()


def needs_new_process(prompt: str) -> bool:
    """Return whether the CLI would read a prompt differently if it is handed on to it.

    It expands files after `@` and commands behind `/` only in the prompt that it starts with; a
    prompt that is handed on reaches the model as it is (assets/gemini-cli.md#hooks).
    """
    return "@" in prompt or prompt.lstrip().startswith("/")


def _check_size(text: str) -> None:
    """Raise OSError if a message or prompt is larger than the CLI reads."""
    if is_too_large(text):
        raise OSError(errno.EFBIG, PROMPT_TOO_LARGE)


# --- the state of a queue -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueState:
    """A snapshot of a run's messages and its queued prompts.

    `messages`: each message with its delivery, which is None if it hasn't been delivered yet.
    """

    messages: tuple[tuple[RunMessage, Delivered | None], ...] = ()
    prompts: tuple[NextPrompt, ...] = ()

    @property
    def undelivered(self) -> tuple[str, ...]:
        """The messages and prompts that have not reached the agent, as text, in order."""
        texts = (word.text for word, delivered in self.messages if delivered is None)
        return (*texts, *(prompt.text for prompt in self.prompts))


def load_queue(queue: PromptQueue) -> QueueState:
    """Read the messages and queued prompts."""
    stored = queue._read()
    return QueueState(
        messages=tuple((message.public, message.delivered) for message in stored.messages),
        prompts=tuple(NextPrompt(id=prompt.id, text=prompt.text) for prompt in stored.waiting),
    )


def with_messages(
    transcript: Transcript, state: QueueState, made: dict[int, tuple[Outline, Message]]
) -> Transcript:
    """Return a transcript with the user's messages inserted where they were delivered.

    `made`: a cache to pass to each call; maps the numbers of messages to what was inserted for
    them.
    """
    placed = [(word, at) for word, at in state.messages if at is not None]
    if not placed:
        return transcript
    rows = rows_of(transcript)
    for word, delivered in placed:
        if word.number not in made:
            message = Message(
                id=f"word-{word.number}",
                author=Author.USER,
                blocks=(Text(text=word.text),),
                time=datetime.fromtimestamp(delivered.at / 1000, UTC),
            )
            made[word.number] = outline(message), message
        insert_row(rows, made[word.number])
    return of_rows(transcript, rows)


# --- follow-up runs -------------------------------------------------------------------------------


SENDER_PAUSE = 0.1
"""Seconds between checks whether another gemtui process is still sending."""
PATIENCE = 10.0
"""Seconds to wait until another gemtui process has finished sending."""

BegunRun = TypeVar("BegunRun")
Begin = Callable[[str, str], Awaitable[BegunRun | None]]
"""A function that starts a run with the given prompt and id.

It returns None if the run did not start.
"""


async def send_next(
    run: RunFolder, begin: Begin[BegunRun], *, prompt: str | None = None
) -> BegunRun | None:
    """Start a run with a prompt that was still queued when `run` ended.

    The rest of the queue moves to the new run. `begin`: starts a run with a given prompt and id;
    its result is returned. `prompt`: the id of the prompt to send; None means the next one. Returns
    None if the queue is empty, the run did not start, or another gemtui process is sending. Raises
    OSError and the errors of `begin`. If no run started, the queue is unchanged.
    """
    queue = PromptQueue.of(run)
    if not await asyncio.to_thread(queue.undelivered):
        return None
    with ExitStack() as stack:
        if not await _alone(queue, stack):
            return None
        await asyncio.to_thread(_settle, run)
        id = str(uuid.uuid4())
        sent = await asyncio.to_thread(queue.claim, id, prompt)
        if sent is None:
            return None
        try:
            begun = await begin(sent.text, id)
        except (GemtuiError, OSError):
            await asyncio.to_thread(queue.return_claimed, id)
            raise
        except BaseException:
            _settle(run)
            raise
        if begun is None:
            await asyncio.to_thread(queue.return_claimed, id)
            return None
        with suppress(OSError):  # `settle` would confirm it later
            await asyncio.to_thread(queue.confirm, id)
            await asyncio.to_thread(_settle, run)
        return begun


def queue_again(run: RunFolder, prompt: str) -> None:
    """Put an interrupted prompt back at the front of its run's queue.

    Does nothing if the prompt is already queued, or while another process is sending from the
    queue. Raises OSError.
    """
    queue = PromptQueue.of(run)
    with queue.sending() as alone:
        if alone and prompt not in (waiting.text for waiting in queue.prompts()):
            queue.move(queue.add_prompt(prompt).id, 0)


async def _alone(queue: PromptQueue, stack: ExitStack) -> bool:
    with suppress(TimeoutError):
        async with asyncio.timeout(PATIENCE):
            while True:
                locked = ExitStack()
                if await asyncio.to_thread(locked.enter_context, queue.sending()):
                    stack.push(locked)
                    return True
                locked.close()
                await asyncio.sleep(SENDER_PAUSE)
    return False


def settle(run: RunFolder) -> None:
    """Repair the queue of a finished run, unless a process is sending from it.

    Undelivered messages become queued prompts, claimed prompts are confirmed or return to the
    queue, and the queue moves to the run that continues this one, if any. Raises OSError.
    """
    queue = PromptQueue.of(run)
    if not queue.undelivered():
        return
    with queue.sending() as alone:
        if alone:
            _settle(run)


def _settle(run: RunFolder) -> None:
    queue = PromptQueue.of(run)
    queue.messages_to_prompts()
    for id in queue.claimed():
        begun = RunFolder(run.path.parent / id)
        if begun.owner() is not None or begun.exit() is not None:
            queue.confirm(id)
        elif not begun.is_starting():
            queue.return_claimed(id)
    continuations = _continuations(run)
    if continuations:
        queues = [PromptQueue.of(continuation) for continuation in continuations]
        moved = {sent.id for following in queues for sent in following.sent()}
        queue.hand_over(queues[-1], known=moved)


def went_on(run: RunFolder) -> RunFolder | None:
    """Return the last of the runs that continue `run`; None if there are none."""
    continuations = _continuations(run)
    return continuations[-1] if continuations else None


def _continuations(run: RunFolder) -> list[RunFolder]:
    """Return the runs that continue `run`, one after the other."""
    continuations: list[RunFolder] = []
    ids = {run.id}
    while True:
        started = [sent.run for sent in PromptQueue.of(run).sent() if sent.run]
        if not started or started[-1] in ids or not is_folder(run.path.parent / started[-1]):
            return continuations
        run = RunFolder(run.path.parent / started[-1])
        ids.add(run.id)
        continuations.append(run)


def hand_on(run: RunFolder, to: RunFolder) -> None:
    """Move a finished run's queue to the run that continues it.

    `to`: the run that continues it. Does nothing while a process is sending from the queue. Raises
    OSError.
    """
    queue = PromptQueue.of(run)
    if not queue.undelivered():
        return
    with queue.sending() as alone:
        if alone:
            _settle(run)
            queue.hand_over(PromptQueue.of(to))
