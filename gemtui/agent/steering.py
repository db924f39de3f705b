"""Words to an agent while it works, and the prompts that follow, as files in a run's folder.

gemtui writes them; the supervisor of a run that asks delivers them: words with the result of the
next tool call, prompts one by one, each when the turn before has ended, in the same process. What
was not delivered when a run ends stays there. A prompt that waits can be changed until it is sent:
whoever renames its file first has it.
"""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, TypeVar

from gemtui.agent.approval import Milliseconds
from gemtui.agent.gate_folder import GateFolder
from gemtui.agent.run_folder import RunFolder
from gemtui.files import move_new
from gemtui.jsonfile import read_as, write_once

LARGEST = 16_000_000
"""Bytes of a word or a prompt."""
_WORD = re.compile(r"word-([0-9]{1,9})\.json")
_NEXT = re.compile(r"next-([0-9]{6})-([0-9a-f]{8})\.json")


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """A word to the agent in mid-run. `number`: from 1. `at`: milliseconds since 1970."""

    text: str
    number: int
    at: Milliseconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivered:
    """When something reached the agent, and with the result of which call.

    `at`: milliseconds since 1970. `tool_use_id`: None = unknown, or a prompt.
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
    """A prompt that was sent. `at`: milliseconds since 1970; `number`: from 1."""

    id: str
    text: str
    at: Milliseconds
    number: int


class _Taken(NamedTuple):
    """A prompt that nobody else has: where it waited, and its file."""

    place: int
    file: Path


T = TypeVar("T", Word, Delivered, NextPrompt, SentPrompt)


def _clock() -> int:
    return time.time_ns() // 1_000_000


@dataclass(frozen=True, slots=True)
class Steering:
    """The files below `path`, the gate of a run. `clock`: milliseconds since 1970."""

    path: Path
    clock: Callable[[], int] = _clock

    @classmethod
    def of(cls, run: RunFolder) -> Steering:
        """Return the words and prompts of a run that asks."""
        return cls(GateFolder.of(run).path)

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

    # --- prompts ---------------------------------------------------------------------------------

    def queue(self, text: str) -> NextPrompt:
        """Add a prompt at the end of those that wait. Raises OSError."""
        prompt = NextPrompt(id=uuid.uuid4().hex[:8], text=text)
        last = max((place for place, _ in self._waiting()), default=0)
        self._write(_name(last + 1, prompt.id), prompt)
        return prompt

    def prompts(self) -> list[NextPrompt]:
        """Return the prompts that wait, the next one first."""
        found = (self._read(_name(*each), NextPrompt) for each in self._waiting())
        return [each for each in found if each is not None]

    def edit(self, id: str, text: str) -> bool:
        """Change a prompt that waits; False = it has been sent, or dropped. Raises OSError."""
        with self._taken(id) as taken:
            if taken is not None:
                self._write(_name(taken.place, id), NextPrompt(id=id, text=text))
            return taken is not None

    def drop(self, id: str) -> bool:
        """Take a prompt that waits away; False = it has been sent, or dropped. Raises OSError."""
        with self._taken(id) as taken:
            return taken is not None

    def move(self, id: str, to: int) -> bool:
        """Put a prompt that waits at position `to`, 0 = next; False as above. Raises OSError."""
        with self._taken(id) as taken:
            if taken is None:
                return False
            order = [each for _, each in self._waiting()]
            places = self._spread([*order[:to], id, *order[to:]])
            move_new(taken.file, self.path / _name(places[id], id))
            return True

    def _spread(self, order: list[str]) -> dict[str, int]:
        """Give the prompts that wait places in this order; return all places."""
        places = {id: at for at, id in enumerate(order, start=1)}
        for place, id in self._waiting():
            with suppress(FileNotFoundError, KeyError):  # sent, or added, meanwhile
                (self.path / _name(place, id)).rename(self.path / _name(places[id], id))
        return places

    def send(self) -> SentPrompt | None:
        """Take the next prompt, which is sent now; None = none waits. For the supervisor.

        Raises OSError.
        """
        for id in [each.id for each in self.prompts()]:
            with self._taken(id) as taken:
                prompt = None if taken is None else self._read(taken.file.name, NextPrompt)
                if prompt is not None:
                    number = len(self.sent()) + 1
                    sent = SentPrompt(id=id, text=prompt.text, at=self.clock(), number=number)
                    self._write(f"sent-{number}.json", sent)
                    return sent
        return None

    def sent(self) -> list[SentPrompt]:
        """Return the prompts that were sent, in their order."""
        numbers = sorted(self._numbers(re.compile(r"sent-([0-9]{1,9})\.json")))
        found = (self._read(f"sent-{each}.json", SentPrompt) for each in numbers)
        return [each for each in found if each is not None]

    def undelivered(self) -> int:
        """Return how many words and prompts have not reached the agent."""
        left = [word for word in self.words() if self.delivered(word) is None]
        return len(left) + len(self.prompts())

    # --- files -----------------------------------------------------------------------------------

    def _names(self) -> list[str]:
        with suppress(OSError):
            return [each.name for each in self.path.iterdir()]
        return []

    def _numbers(self, pattern: re.Pattern[str]) -> list[int]:
        found = map(pattern.fullmatch, self._names())
        return [int(each[1]) for each in found if each]

    def _waiting(self) -> list[tuple[int, str]]:
        """Place and id of the prompts that wait."""
        found = map(_NEXT.fullmatch, self._names())
        return sorted((int(each[1]), each[2]) for each in found if each)

    @contextmanager
    def _taken(self, id: str) -> Iterator[_Taken | None]:
        """Have a prompt alone; it waits again where what is done with it fails.

        None: it does not wait any more, or somebody was quicker.
        """
        place = next((place for place, each in self._waiting() if each == id), None)
        waited, file = self.path / _name(place or 0, id), self.path / f".{id}-{uuid.uuid4().hex}"
        try:
            waited.rename(file)
        except FileNotFoundError:
            place = None
        if place is None:
            yield None
            return
        try:
            yield _Taken(place, file)
        except BaseException:
            move_new(file, waited)
            raise
        file.unlink(missing_ok=True)

    def _write(self, name: str, value: Word | Delivered | NextPrompt | SentPrompt) -> None:
        write_once(self.path / name, value, LARGEST)

    def _read(self, name: str, wanted: type[T]) -> T | None:
        return read_as(self.path / name, wanted, LARGEST)


def _name(place: int, id: str) -> str:
    return f"next-{place:06d}-{id}.json"
