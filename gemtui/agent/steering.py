"""Words to an agent while it works, and the prompts that follow, as files in a run's folder.

gemtui writes them. The supervisor of a run that asks delivers them: words with the result of the
next tool call, prompts one by one, each when the turn before has ended, in the same process. What
is left when a run has ended waits there, to be sent by going on with the session. A prompt that
waits can be changed until it is sent: one renaming of its file sends it, so that it is sent once,
and is never lost, wherever a process is killed.
"""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from gemtui.agent.approval import Milliseconds
from gemtui.agent.run_folder import RunFolder
from gemtui.files import is_there, locked
from gemtui.jsonfile import read_as, write_again, write_once

LARGEST = 16_000_000
"""Bytes of a word or a prompt."""
_WORD = re.compile(r"word-([0-9]{1,9})\.json")
_DELIVERED = re.compile(r"delivered-([0-9]{1,9})\.json")
_PROMPT = re.compile(r"(next|sending|sent)-([0-9]{6})-([0-9a-f]{8})((?:\.[0-9A-Za-z-]+)?)\.json")
_OPTIONS = "options.json"
_CHANGING, _SENDING, _EDITING = "changing.lock", "sending.lock", "editing.lock"


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """A word to the agent in mid-run. `number`: from 1. `at`: milliseconds since 1970."""

    text: str
    number: int
    at: Milliseconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivered:
    """When something reached the agent, and with the result of which call.

    `at`: milliseconds since 1970. `tool_use_id`: None = unknown.
    """

    at: Milliseconds
    tool_name: str = ""
    tool_use_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NextPrompt:
    """A prompt that waits until the turn before it has ended."""

    id: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SentPrompt:
    """A prompt that was sent. `run`: the id of the run that began with it, "" = in the same one."""

    id: str
    text: str
    run: str


@dataclass(frozen=True, slots=True)
class _Text:
    """What a prompt's file holds; that of a word holds more."""

    text: str


@dataclass(frozen=True, slots=True)
class _Options:
    options: Mapping[str, Any]


class _File(NamedTuple):
    """What the name of a prompt's file says. `state`: next, sending or sent."""

    state: str
    place: int
    id: str
    run: str = ""

    @property
    def name(self) -> str:
        run = f".{self.run}" if self.run else ""
        return f"{self.state}-{self.place:06d}-{self.id}{run}.json"


T = TypeVar("T", Word, Delivered, _Text, _Options)


def _clock() -> int:
    return time.time_ns() // 1_000_000


@dataclass(frozen=True, slots=True)
class Steering:
    """The files below `path`, a folder that is made with the first of them.

    `clock`: milliseconds since 1970.
    """

    path: Path
    clock: Callable[[], int] = _clock

    @classmethod
    def of(cls, run: RunFolder) -> Steering:
        """Return the words and prompts of a run."""
        return cls(run.path / "steering")

    # --- words -----------------------------------------------------------------------------------

    def say(self, text: str) -> Word:
        """Say something to the agent; it reads it with its next tool result. Raises OSError."""
        number = max(self._numbers(_WORD), default=0)
        while True:
            number += 1
            word = Word(text=text, number=number, at=self.clock())
            with suppress(FileExistsError):
                self._write(f"word-{number}.json", word)
                return word

    def words(self) -> list[Word]:
        """Return all words so far, in their order."""
        found = (self._read(f"word-{each}.json", Word) for each in sorted(self._numbers(_WORD)))
        return [each for each in found if each is not None]

    def delivered(self, word: Word) -> Delivered | None:
        """Return when and where a word reached the agent; None = it did not."""
        return self._read(f"delivered-{word.number}.json", Delivered)

    def deliver(self, word: Word, tool_name: str, tool_use_id: str | None) -> None:
        """Say that a word reaches the agent now; for the supervisor. Raises OSError."""
        told = Delivered(at=self.clock(), tool_name=tool_name, tool_use_id=tool_use_id)
        self._write(f"delivered-{word.number}.json", told)

    def words_to_prompts(self) -> None:
        """Have the words that no tool result took along wait as prompts, before all others.

        For when a turn has ended. Raises OSError.
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

    def queue(self, text: str) -> NextPrompt:
        """Add a prompt at the end of those that wait. Raises OSError."""
        prompt = NextPrompt(id=uuid.uuid4().hex[:8], text=text)
        with self._changing():
            self._write(_File("next", self._last() + 1, prompt.id).name, _Text(text))
        return prompt

    def prompts(self) -> list[NextPrompt]:
        """Return the prompts that wait, the next one first."""
        found = ((each.id, self._text(each)) for each in self._waiting())
        return [NextPrompt(id=id, text=text) for id, text in found if text is not None]

    def edit(self, id: str, text: str) -> bool:
        """Change a prompt that waits; False = it has been sent, or dropped. Raises OSError."""
        with self._changing():
            for file in self._waiting(id):
                write_again(self.path / file.name, _Text(text), LARGEST)
                return any(self._waiting(id)) or not self._removed(file)
        return False

    def drop(self, id: str) -> bool:
        """Take a prompt that waits away; False = it has been sent, or dropped. Raises OSError."""
        with self._changing():
            return any(self._removed(file) for file in self._waiting(id))

    def move(self, id: str, to: int) -> bool:
        """Put a prompt that waits at position `to`, 0 = next; False as above. Raises OSError."""
        with self._changing():
            order = [each.id for each in self._waiting()]
            if id not in order:
                return False
            order.remove(id)
            self._spread([*order[:to], id, *order[to:]])
            return any(self._waiting(id))

    def send(self) -> SentPrompt | None:
        """Take the next prompt, which is sent now; None = none waits, or one is being edited.

        For the supervisor. Raises OSError.
        """
        self.words_to_prompts()
        if self._is_edited():
            return None
        while waiting := [each for each in self._waiting() if self._text(each) is not None]:
            if (sent := self._taken(waiting[0], "sent")) is not None:
                return sent
        return None

    def sent(self) -> list[SentPrompt]:
        """Return the prompts that were sent, in their order."""
        files = sorted(each for each in self._files() if each.state == "sent")
        found = ((each, self._text(each)) for each in files)
        return [SentPrompt(id=f.id, text=t, run=f.run) for f, t in found if t is not None]

    def undelivered(self) -> int:
        """Return how many words and prompts have not reached the agent."""
        words = {*self._numbers(_WORD)} - {*self._numbers(_DELIVERED)}
        files = self._files()
        sent = {each.id for each in files if each.state == "sent"}
        return len(words) + len({each.id for each in files} - sent)

    # --- prompts that wait behind a run that has ended -----------------------------------------

    def sending(self) -> AbstractContextManager[bool]:
        """Be the one who sends what waits behind the run; False = somebody else does.

        Ends with the process, too. Raises OSError.
        """
        self.path.mkdir(mode=0o700, exist_ok=True)
        return locked(self.path / _SENDING, wait=False)

    def editing(self) -> AbstractContextManager[bool]:
        """Have no prompt sent by itself while one is edited; False = another editor is open.

        Ends with the process, too. Raises OSError.
        """
        self.path.mkdir(mode=0o700, exist_ok=True)
        return locked(self.path / _EDITING, wait=False)

    def _is_edited(self) -> bool:
        if not is_there(self.path / _EDITING):
            return False
        with locked(self.path / _EDITING, wait=False) as free:
            return not free

    def claim(self, run: str, id: str | None = None) -> SentPrompt | None:
        """Take a prompt, with which the run of this id is to begin; None = it does not wait.

        `id`: None = the next one, unless a prompt is being edited. Only within `sending`, followed
        by `confirm` or `give_back`.
        """
        if id is None and self._is_edited():
            return None
        with self._changing():
            for file in self._waiting(id):
                if self._text(file) is not None:
                    return self._taken(file, "sending", run)
        return None

    def claimed(self) -> list[str]:
        """Return the ids of runs with which prompts were to be sent that nobody has confirmed."""
        return [each.run for each in self._files() if each.state == "sending"]

    def confirm(self, run: str) -> None:
        """Say that the run has begun with the prompt that was taken for it. Raises OSError."""
        for file in self._files():
            if (file.state, file.run) == ("sending", run):
                self._rename(file.name, file._replace(state="sent", place=self._sends()).name)

    def give_back(self, run: str) -> None:
        """Have the prompt wait again that was taken for a run, since none began. Raises OSError."""
        for file in self._files():
            if (file.state, file.run) == ("sending", run):
                self._rename(file.name, _File("next", file.place, file.id).name)

    def hand_on(self, to: Steering) -> None:
        """Have what waits here wait behind another run, at the end. Raises OSError."""
        if not self._waiting():
            return
        if to.options() is None and (options := self.options()) is not None:
            to.keep_options(options)
        with self._changing(), to._changing():
            for file in self._waiting():
                place = file._replace(place=to._last() + 1)
                (self.path / file.name).rename(to.path / place.name)

    # --- the options with which what waits is sent ---------------------------------------------

    def options(self) -> Mapping[str, Any] | None:
        """Return the options of runs that begin with these prompts; None = nobody named them."""
        found = self._read(_OPTIONS, _Options)
        return None if found is None else found.options

    def keep_options(self, options: Mapping[str, Any]) -> None:
        """Name the options of runs that begin with these prompts. Raises OSError."""
        self.path.mkdir(mode=0o700, exist_ok=True)
        write_again(self.path / _OPTIONS, _Options(options), LARGEST)

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
        """The prompts that wait, or the one with this id; one that is sent waits no longer."""
        files = self._files()
        gone = {each.id for each in files if each.state != "next"}
        waiting = sorted(each for each in files if each.id not in gone)
        return [each for each in waiting if id in (None, each.id)]

    def _last(self) -> int:
        return max((each.place for each in self._waiting()), default=0)

    def _sends(self) -> int:
        """The place of the next prompt among those that were sent."""
        return 1 + sum(each.state == "sent" for each in self._files())

    def _spread(self, order: list[str]) -> dict[str, int]:
        """Give the prompts that wait places in this order; return all places."""
        places = {id: at for at, id in enumerate(order, start=1)}
        for file in self._waiting():
            if file.id in places:
                self._rename(file.name, file._replace(place=places[file.id]).name)
        return places

    def _taken(self, file: _File, state: str, run: str = "") -> SentPrompt | None:
        """Take a prompt that waits, by one step; None if somebody was quicker."""
        place = self._sends() if state == "sent" else file.place
        taken = _File(state, place, file.id, run)
        text = self._text(taken) if self._rename(file.name, taken.name) else None
        return None if text is None else SentPrompt(id=file.id, text=text, run=run)

    def _text(self, file: _File) -> str | None:
        found = self._read(file.name, _Text)
        return None if found is None else found.text

    def _changing(self) -> AbstractContextManager[bool]:
        """Of several gemtui one changes what waits; the supervisor sends meanwhile."""
        self.path.mkdir(mode=0o700, exist_ok=True)
        return locked(self.path / _CHANGING)

    def _removed(self, file: _File) -> bool:
        """Remove a file; False if it is not there any more."""
        with suppress(FileNotFoundError):
            (self.path / file.name).unlink()
            return True
        return False

    def _rename(self, name: str, other: str) -> bool:
        """Give a file another name; False if it is not there any more."""
        with suppress(FileNotFoundError):
            (self.path / name).rename(self.path / other)
            return True
        return False

    def _write(self, name: str, value: Word | Delivered | _Text) -> None:
        self.path.mkdir(mode=0o700, exist_ok=True)
        write_once(self.path / name, value, LARGEST)

    def _read(self, name: str, wanted: type[T]) -> T | None:
        return read_as(self.path / name, wanted, LARGEST)
