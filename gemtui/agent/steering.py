"""Words to an agent while it works, and the prompts that follow, as files in a run's folder.

gemtui writes them; the supervisor of a run that asks delivers them: words with the result of the
next tool call, prompts one by one, each when the turn before has ended, in the same process. What
was not delivered when a run ends stays there. A prompt that waits can be changed until it is sent:
whoever renames its file first has it.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypeVar

import msgspec

from gemtui.agent.gate_folder import GateFolder
from gemtui.agent.run_folder import RunFolder
from gemtui.files import move_new, read_small

LARGEST = 16_000_000
"""Bytes of a word or a prompt."""
_WORD = re.compile(r"word-([0-9]{1,9})\.json")
_NEXT = re.compile(r"next-([0-9]{6})-([0-9a-f]{8})\.json")


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """A word to the agent in mid-run. `number`: from 1. `at`: milliseconds since 1970."""

    text: str
    number: int
    at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivered:
    """When something reached the agent, and with the result of which call.

    `at`: milliseconds since 1970. `tool_use_id`: None = unknown, or a prompt.
    """

    at: int
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
    at: int
    number: int


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
        for place in self._taken(id):
            self._write(_name(place, id), NextPrompt(id=id, text=text))
            return True
        return False

    def drop(self, id: str) -> bool:
        """Take a prompt that waits away; False = it has been sent, or dropped. Raises OSError."""
        return any(True for _ in self._taken(id))

    def move(self, id: str, to: int) -> bool:
        """Put a prompt that waits at position `to`, 0 = next; False as above. Raises OSError."""
        text = next((each.text for each in self.prompts() if each.id == id), None)
        if text is None or not self.drop(id):
            return False
        order = [each for _, each in self._waiting()]
        place = self._spread([*order[:to], id, *order[to:]])
        self._write(_name(place[id], id), NextPrompt(id=id, text=text))
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
        for place, id in self._waiting():
            prompt = self._read(_name(place, id), NextPrompt)
            if prompt is not None and any(True for _ in self._taken(id)):
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

    def _taken(self, id: str) -> Iterator[int]:
        """Take a prompt's file away, and yield its place; nothing if somebody was quicker."""
        for place, each in self._waiting():
            if each == id:
                with suppress(FileNotFoundError):
                    (self.path / _name(place, id)).unlink()
                    yield place
                return

    def _write(self, name: str, value: Word | Delivered | NextPrompt | SentPrompt) -> None:
        """Write whole, and never over what is there; `json` keeps lone surrogates."""
        handle, made = tempfile.mkstemp(prefix=".", dir=self.path)
        try:
            with os.fdopen(handle, "w", encoding="ascii") as stream:
                json.dump(asdict(value), stream)
            move_new(Path(made), self.path / name)
        finally:
            Path(made).unlink(missing_ok=True)

    def _read(self, name: str, wanted: type[T]) -> T | None:
        with suppress(OSError, ValueError, RecursionError):
            return msgspec.convert(json.loads(read_small(self.path / name, LARGEST)), wanted)
        return None


def _name(place: int, id: str) -> str:
    return f"next-{place:06d}-{id}.json"
