"""Messages to a working agent, and its prompt queue, as files in a run's folder.

gemtui writes these files. In a run that asks the user for approval, the supervisor delivers them:
each message together with the result of the next tool call, and each prompt when the previous turn
has ended, in the same process. Prompts that remain when a run has ended stay in the folder; each
then starts a follow-up run (`send_next`).

A queued prompt can be edited until it is sent. Sending a prompt means renaming its file, so that it
is sent exactly once and never lost, even if a process is killed at any point. A follow-up run
claims its prompt before it starts: the file's new name includes the new run's id. If a process is
killed after that, the new run's folder shows whether the prompt was sent; if not, the prompt
returns to the queue. If several gemtui processes want to send, only the one that holds the queue's
lock does.
"""

from __future__ import annotations

import asyncio
import errno
import re
import time
import uuid
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from gemtui.agent.approval import Milliseconds
from gemtui.agent.run_folder import LARGEST_PROMPT, PROMPT_TOO_LARGE, RunFolder, is_too_large
from gemtui.errors import GemtuiError
from gemtui.files import is_folder, locked, path_exists
from gemtui.jsonfile import read_as, write_again, write_once
from gemtui.transcript.model import Author, Message, Outline, Text, Transcript, outline
from gemtui.transcript.rows import insert_row, of_rows, rows_of

_LARGEST_FILE = 7 * LARGEST_PROMPT
"""The largest file of a message or prompt, in bytes: in JSON, a control character takes six."""
_WORD = re.compile(r"word-([0-9]{1,9})\.json")
_DELIVERED = re.compile(r"delivered-([0-9]{1,9})\.json")
_PROMPT = re.compile(r"(next|sending|sent)-([0-9]{6})-([0-9a-f]{8})((?:\.[0-9A-Za-z-]+)?)\.json")
_OPTIONS = "options.json"
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


@dataclass(frozen=True, slots=True)
class _Text:
    """The contents of a prompt's file.

    A message's file has more fields, which are ignored once it has become a prompt.
    """

    text: str


@dataclass(frozen=True, slots=True)
class _Options:
    options: Mapping[str, Any]


class _File(NamedTuple):
    """The fields in the name of a prompt's file.

    `state`: next, sending or sent. `place`: the position in the queue or, once sent, among the sent
    prompts. `run`: as in `SentPrompt`.
    """

    state: str
    place: int
    id: str
    run: str = ""

    @property
    def name(self) -> str:
        run = f".{self.run}" if self.run else ""
        return f"{self.state}-{self.place:06d}-{self.id}{run}.json"


T = TypeVar("T", RunMessage, Delivered, _Text, _Options)


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
        number = max(self._numbers(_WORD), default=0)
        while True:
            number += 1
            word = RunMessage(text=text, number=number, at=self.clock())
            with suppress(FileExistsError):
                self._write(f"word-{number}.json", word)
                return word

    def messages(self) -> list[RunMessage]:
        """Return all messages so far, in order."""
        found = (
            self._read(f"word-{each}.json", RunMessage) for each in sorted(self._numbers(_WORD))
        )
        return [each for each in found if each is not None]

    def delivery(self, word: RunMessage) -> Delivered | None:
        """Return when, and with which call, a message was delivered; None if it wasn't."""
        return self._read(f"delivered-{word.number}.json", Delivered)

    def record_delivery(self, word: RunMessage, tool_name: str, tool_use_id: str | None) -> None:
        """Record that a message is being delivered with a tool call's result.

        The supervisor calls this. Raises OSError.
        """
        told = Delivered(at=self.clock(), tool_name=tool_name, tool_use_id=tool_use_id)
        self._write(f"delivered-{word.number}.json", told)

    def messages_to_prompts(self) -> None:
        """Turn undelivered messages into prompts, at the front of the queue.

        Call this when a turn has ended. Raises OSError.
        """
        left = sorted({*self._numbers(_WORD)} - {*self._numbers(_DELIVERED)})
        if not left:
            return
        with self._changing():
            order = [uuid.uuid4().hex[:8] for _ in left]
            places = self._spread([*order, *(each.id for each in self._waiting())])
            for number, id in zip(left, order, strict=True):
                self._rename(f"word-{number}.json", _File("next", places[id], id).name)

    # --- prompts ---------------------------------------------------------------------------------

    def add_prompt(self, text: str) -> NextPrompt:
        """Append a prompt to the queue. Raises OSError."""
        _check_size(text)
        prompt = NextPrompt(id=uuid.uuid4().hex[:8], text=text)
        with self._changing():
            self._write(_File("next", self._last() + 1, prompt.id).name, _Text(text))
        return prompt

    def prompts(self) -> list[NextPrompt]:
        """Return the queued prompts, the next one first."""
        found = ((each.id, self._text(each)) for each in self._waiting())
        return [NextPrompt(id=id, text=text) for id, text in found if text is not None]

    def edit(self, id: str, text: str) -> bool:
        """Edit a queued prompt. Raises OSError.

        Returns False if the prompt has already been sent or removed.
        """
        _check_size(text)
        with self._changing():
            for file in self._waiting(id):
                write_again(self.path / file.name, _Text(text), _LARGEST_FILE)
                return any(self._waiting(id)) or not self._removed(file)
        return False

    def drop(self, id: str) -> bool:
        """Remove a queued prompt. Raises OSError.

        Returns False if the prompt has already been sent or removed.
        """
        with self._changing():
            return any(self._removed(file) for file in self._waiting(id))

    def move(self, id: str, to: int) -> bool:
        """Move a queued prompt to position `to`, where 0 is next. Raises OSError.

        Returns False if the prompt has already been sent or removed.
        """
        with self._changing():
            order = [each.id for each in self._waiting()]
            if id not in order:
                return False
            order.remove(id)
            self._spread([*order[:to], id, *order[to:]])
            return any(self._waiting(id))

    def send(self) -> SentPrompt | None:
        """Take the next prompt from the queue for the process that is running. Raises OSError.

        Returns None if the queue is empty, a prompt is being edited, or the next prompt needs a new
        process (`needs_new_process`). The supervisor calls this.
        """
        self.messages_to_prompts()
        if self._is_edited():
            return None
        while waiting := self.prompts():
            if needs_new_process(waiting[0].text):
                return None
            for file in self._waiting(waiting[0].id):
                if (sent := self._taken(file, "sent")) is not None:
                    return sent
        return None

    def sent(self) -> list[SentPrompt]:
        """Return the prompts that have been sent, in order."""
        files = sorted(each for each in self._files() if each.state == "sent")
        found = ((each, self._text(each)) for each in files)
        return [SentPrompt(id=f.id, text=t, run=f.run) for f, t in found if t is not None]

    def undelivered(self) -> int:
        """Return the number of messages and prompts that have not reached the agent."""
        words = {*self._numbers(_WORD)} - {*self._numbers(_DELIVERED)}
        files = self._files()
        sent = {each.id for each in files if each.state == "sent"}
        return len(words) + len({each.id for each in files} - sent)

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
        with locked(self.path / _EDITING, wait=False) as free:
            return not free

    def claim(self, run: str, id: str | None = None) -> SentPrompt | None:
        """Take a prompt from the queue for a new run, which will start with it.

        `run`: the new run's id. `id`: the prompt's id; None means the next prompt. Returns None if
        there is no such prompt, or if `id` is None and a prompt is being edited. Call this only
        while holding the lock `sending`. Call `confirm` once the run has started, or
        `return_claimed` if it did not start.
        """
        if id is None and self._is_edited():
            return None
        with self._changing():
            for file in self._waiting(id):
                if self._text(file) is not None:
                    return self._taken(file, "sending", run)
        return None

    def claimed(self) -> list[str]:
        """Return the ids of runs whose prompts were claimed but never confirmed."""
        return [each.run for each in self._files() if each.state == "sending"]

    def confirm(self, run: str) -> None:
        """Record that the run has started with its claimed prompt. Raises OSError."""
        for file in self._files():
            if (file.state, file.run) == ("sending", run):
                self._rename(file.name, file._replace(state="sent", place=self._sends()).name)

    def return_claimed(self, run: str) -> None:
        """Put a run's claimed prompt back into the queue, because the run didn't start.

        Raises OSError.
        """
        for file in self._files():
            if (file.state, file.run) == ("sending", run):
                self._rename(file.name, _File("next", file.place, file.id).name)

    def hand_over(self, to: PromptQueue) -> None:
        """Move all queued prompts to the end of another run's queue. Raises OSError.

        This queue's options for runs are copied as well, unless the other queue already has some.
        """
        if not self._waiting():
            return
        if to.options() is None and (options := self.options()) is not None:
            to.keep_options(options)
        with self._changing(), to._changing():
            for file in self._waiting():
                place = file._replace(place=to._last() + 1)
                (self.path / file.name).rename(to.path / place.name)

    # --- options for sending the queue ---------------------------------------------------------

    def options(self) -> Mapping[str, Any] | None:
        """Return the options for runs that start with queued prompts; None if unset."""
        found = self._read(_OPTIONS, _Options)
        return None if found is None else found.options

    def keep_options(self, options: Mapping[str, Any]) -> None:
        """Set the options for runs that start with queued prompts. Raises OSError."""
        self.path.mkdir(mode=0o700, exist_ok=True)
        write_again(self.path / _OPTIONS, _Options(options), _LARGEST_FILE)

    # --- files -----------------------------------------------------------------------------------

    def _names(self) -> list[str]:
        with suppress(OSError):
            return [each.name for each in self.path.iterdir()]
        return []

    def _numbers(self, pattern: re.Pattern[str]) -> list[int]:
        found = map(pattern.fullmatch, self._names())
        return [int(each[1]) for each in found if each]

    def _files(self) -> list[_File]:
        found = map(_PROMPT.fullmatch, self._names())
        return [_File(each[1], int(each[2]), each[3], each[4][1:]) for each in found if each]

    def _waiting(self, id: str | None = None) -> list[_File]:
        """Return the files of all queued prompts, or only of the one with this id.

        A prompt that is being sent is no longer in the queue.
        """
        files = self._files()
        gone = {each.id for each in files if each.state != "next"}
        waiting = sorted(each for each in files if each.id not in gone)
        return [each for each in waiting if id in (None, each.id)]

    def _last(self) -> int:
        return max((each.place for each in self._waiting()), default=0)

    def _sends(self) -> int:
        """Return the 1-based number that the next prompt to be sent gets."""
        return 1 + sum(each.state == "sent" for each in self._files())

    def _spread(self, order: list[str]) -> dict[str, int]:
        """Renumber the queued prompts in the order of these ids; return each id's number."""
        places = {id: at for at, id in enumerate(order, start=1)}
        for file in self._waiting():
            if file.id in places:
                self._rename(file.name, file._replace(place=places[file.id]).name)
        return places

    def _taken(self, file: _File, state: str, run: str = "") -> SentPrompt | None:
        """Take a prompt from the queue atomically; None if another process got it first.

        `state`: the prompt's new state, sending or sent. `run`: the id of the run that starts with
        it; "" for the run that owns this queue.
        """
        place = self._sends() if state == "sent" else file.place
        taken = _File(state, place, file.id, run)
        text = self._text(taken) if self._rename(file.name, taken.name) else None
        return None if text is None else SentPrompt(id=file.id, text=text, run=run)

    def _text(self, file: _File) -> str | None:
        found = self._read(file.name, _Text)
        return None if found is None else found.text

    def _changing(self) -> AbstractContextManager[bool]:
        """Return a context manager that locks the queue against changes.

        Other gemtui processes then can't edit the queue. The supervisor ignores this lock and can
        still send prompts.
        """
        self.path.mkdir(mode=0o700, exist_ok=True)
        return locked(self.path / _CHANGING)

    def _removed(self, file: _File) -> bool:
        """Remove a file; return False if the file is already gone."""
        with suppress(FileNotFoundError):
            (self.path / file.name).unlink()
            return True
        return False

    def _rename(self, name: str, other: str) -> bool:
        """Rename a file; return False if the file is already gone."""
        with suppress(FileNotFoundError):
            (self.path / name).rename(self.path / other)
            return True
        return False

    def _write(self, name: str, value: RunMessage | Delivered | _Text) -> None:
        self.path.mkdir(mode=0o700, exist_ok=True)
        write_once(self.path / name, value, _LARGEST_FILE)

    def _read(self, name: str, wanted: type[T]) -> T | None:
        return read_as(self.path / name, wanted, _LARGEST_FILE)


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
        words = (word.text for word, delivered in self.messages if delivered is None)
        return (*words, *(prompt.text for prompt in self.prompts))


def load_queue(queue: PromptQueue) -> QueueState:
    """Read the messages and queued prompts from their files."""
    words = tuple((word, queue.delivery(word)) for word in queue.messages())
    return QueueState(messages=words, prompts=tuple(queue.prompts()))


def with_messages(
    transcript: Transcript, state: QueueState, made: dict[int, tuple[Outline, Message]]
) -> Transcript:
    """Return a transcript with the user's messages inserted where they were delivered.

    `made`: a cache to pass to each call; maps the numbers of messages to what was inserted for
    them.
    """
    here = [(word, at) for word, at in state.messages if at is not None]
    if not here:
        return transcript
    rows = rows_of(transcript)
    for word, delivered in here:
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
        if alone and prompt not in (each.text for each in queue.prompts()):
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
    if (last := went_on(run)) is not None:
        queue.hand_over(PromptQueue.of(last))


def went_on(run: RunFolder) -> RunFolder | None:
    """Return the last of the runs that continue `run`; None if there are none."""
    seen, last = {run.id}, None
    while (following := _following(last or run)) is not None and following.id not in seen:
        seen.add(following.id)
        last = following
    return last


def _following(run: RunFolder) -> RunFolder | None:
    begun = [each.run for each in PromptQueue.of(run).sent() if each.run]
    folder = run.path.parent / begun[-1] if begun else None
    return RunFolder(folder) if folder is not None and is_folder(folder) else None


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
