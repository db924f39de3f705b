"""Stores as years of work leave them, for what depends on words and sizes; the same seed, the same.

    python -m tests.tools.bench.used_store FOLDER [SESSIONS]

makes FOLDER/.gemini with so many sessions (200) of 2 KB to 20 MB, 130 KB on average. Few words are
common and most are rare; there is what makes reading hard: rewinds, messages that a list dropped,
last lines that are cut, subagents, copies of the older form.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from functools import cache
from itertools import accumulate
from pathlib import Path
from typing import Any

import orjson

from tests.tools.bench.make_store import (
    CODE,
    NOW,
    PROJECTS,
    SOURCE,
    WORDS,
    Author,
    Record,
    as_object,
    lay_out,
)

MOST = 20_000_000
"""Bytes of a session."""
_RARE = 40_000
_SYLLABLES = ("ka", "to", "mi", "ren", "sol", "va", "du", "pex", "lin", "or", "ba", "chi", "sta")


@cache
def _vocabulary() -> tuple[Sequence[str], Sequence[float]]:
    """Words, and the sums of how often each occurs: the n-th an n-th as often as the first."""
    chance = random.Random(1)
    rare = {"".join(chance.choices(_SYLLABLES, k=chance.randint(2, 5))) for _ in range(_RARE)}
    names = [f"{one}{other.capitalize()}" for one, other in zip(WORDS, sorted(rare), strict=False)]
    found = [*WORDS, *names, *chance.sample(sorted(rare), len(rare))]
    return found, list(accumulate(1 / (rank + 10) for rank in range(len(found))))


@cache
def _lines() -> Sequence[str]:
    """Lines of code and of what programs print."""
    chance = random.Random(2)
    words, sums = _vocabulary()

    def line() -> str:
        one, two, three = chance.choices(words, cum_weights=sums, k=3)
        number = chance.randint(1, 99_999)
        return chance.choice(
            (
                f"    {one} = {two}_{three}({number}, key={three!r})",
                f"def {one}_{two}(self, {three}: int = {number}) -> None:",
                f"{one}/{two}.py:{number}: {three} is not what was expected",
                f"tests/test_{one}.py::test_{two}_{three} PASSED",
                f"2026-11-20 12:00:{number % 60:02} INFO {one}.{two} {chance.getrandbits(64):016x}",
                f"        return {one}.{two}[{number}]",
            )
        )

    return [*CODE, *(line() for _ in range(20_000))]


class UsedAuthor(Author):
    """Writes a session in all kinds of words; some turns are taken back, or fail."""

    def hazards(self, said: Sequence[Record]) -> Iterator[Record]:
        """Now and then what takes back some of the messages that were said."""
        asked = [each["id"] for each in said if each.get("type") == "user"]
        dice = self.random.random()
        if asked and dice < 0.02:
            yield {"$rewindTo": self.random.choice(asked[-5:])}
        elif dice < 0.03 and len(said) < 40:
            yield {"$set": {"messages": [each for each in said[:-3] if "id" in each]}}
        elif dice < 0.04:
            yield self._user([{"text": self._words(12)}])
            yield {"$set": {"messages": [each for each in said[-40:] if "id" in each]}}

    def _words(self, count: int) -> str:
        words, sums = _vocabulary()
        return " ".join(self.random.choices(words, cum_weights=sums, k=count))

    def _code(self, least: int, most: int) -> str:
        return "\n".join(self.random.choices(_lines(), k=self.random.randint(least, most)))

    def _shell(self) -> tuple[str, Record, str, Any]:
        name, args, _, _ = super()._shell()
        lines = self._code(1, int(min(self.random.lognormvariate(3, 1.2), 5_000)) + 1)
        return name, args, f"Output: {lines}\nExit Code: 0\n", lines


def write_session(
    folder: Path, *, size: int, seed: int, start: datetime, parent: str | None = None
) -> tuple[Path, str]:
    """Write one session of at least `size` bytes: its path and its id.

    `parent`: that of which it is a subagent.
    """
    author = UsedAuthor(seed, project=SOURCE / folder.parent.name, start=start)
    name = f"session-{start:%Y-%m-%dT%H-%M}-{author.id[:8]}" if parent is None else author.id
    folder = folder if parent is None else folder / parent
    folder.mkdir(exist_ok=True)
    path = folder / f"{name}.jsonl"
    head = list(author.head())
    if parent is not None:
        head[0]["kind"] = "subagent"
    said: list[Record] = []
    with path.open("wb") as file:
        written = _write(file, head)
        while written < size:
            turn = list(author.turn())
            said += turn
            written += _write(file, [*turn, *author.hazards(said)])
        if author.random.random() < 0.01:
            file.truncate(written - 7)
    author.leave(path)
    return path, author.id


def _write(file: Any, records: Sequence[Record]) -> int:
    written: int = file.write(
        b"".join(orjson.dumps(each, option=orjson.OPT_APPEND_NEWLINE) for each in records)
    )
    return written


def make_used_store(home: Path, sessions: int) -> int:
    """`home/.gemini` with so many sessions; bytes of all of them.

    One in ten is of the older form, one in thirty has a subagent, one in a hundred a copy.
    """
    chance = random.Random(sessions)
    tmp = lay_out(home)
    for index in range(sessions):
        folder = tmp / chance.choice(PROJECTS) / "chats"
        size = int(min(chance.lognormvariate(9.85, 1.75), MOST))
        start = NOW - timedelta(minutes=index * 40 + 40)
        path, id = write_session(folder, size=size, seed=index, start=start)
        if index % 30 == 7:
            seed = sessions + index
            write_session(folder, size=size // 10, seed=seed, start=start, parent=id)
        if index % 10 == 9:
            as_object(path, keep=index % 100 == 99)
    return sum(path.stat().st_size for path in tmp.rglob("*.json*"))


if __name__ == "__main__":
    folder, *count = sys.argv[1:]
    print(f"{make_used_store(Path(folder), int(count[0]) if count else 200):,} bytes")
