"""A monkey at the keys: what it does is random, made of a seed, and typed as a terminal would.

A move is what comes in one read (keys, text, pastes, mouse reports, odd sequences), or a new size.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from textual._ansi_sequences import ANSI_SEQUENCES_KEYS
from textual.keys import _character_to_key

from gemtui.ui.kit.keys import KEYS

Move = str | tuple[int, int]


def _length(item: tuple[str, object]) -> int:
    """The shortest sequence of a key is the last one, and so is used."""
    return -len(item[0])


_NAMED = {
    **{
        keys[0].value: code
        for code, keys in sorted(ANSI_SEQUENCES_KEYS.items(), key=_length)
        if isinstance(keys, tuple) and len(keys) == 1
    },
    **{_character_to_key(char): char for char in map(chr, range(32, 127))},
    "enter": "\r",
    "escape": "\x1b",
}
LEAVES = {"q", "\x11"}
"""Typed seldom: they end the app, and another one has to be started."""
BOUND = sorted({_NAMED[key] for each in KEYS for key in each.keys.split(",") if key in _NAMED})
MOVES = [_NAMED[key] for key in ("up", "down", "left", "right", "tab", "shift+tab", "home", "end")]
PASTES = (
    "two\nlines",
    "n" * 300,
    "e\u0301\u202e\u2066\u200d👩‍👩‍👧 \x1b]0;x\x07 \x9b2J",
    "[/x][@click=app.quit]boom[/]",
    "\t" * 50,
    '{"file_path": "a", ',
    "^(a+)+$",
    "x" * 20_000,
    "e\u0301漢👩‍👩‍👧 " * 2_000,
)
ODD = (
    "\x1b[<0;1;1M",
    "\x1b[<999;999;999m",
    "\x1b[I",
    "\x1b[O",
    "\x1b[99~",
    "\x1b[1;5A",
    "\x1bOZ",
    "\x1b[?2026;2$y",
    "\x1b[57358u",
    "\x1b[97;5u",
    "\x1b]52;c;QUFB\x07",
    "\x1b\x1b",
    "\x00\x01\x1c\x1d\x1e\x1f\x7f",
    "\udc80\ud800",
    "é漢👩‍👩‍👧\u0301\u202e",
)


@dataclass(frozen=True)
class Chances:
    """How likely a move is each of these; the rest are single keys."""

    burst: float = 0.5
    size: float = 0.03
    paste: float = 0.02
    mouse: float = 0.05
    odd: float = 0.03
    longest: int = 10
    """Keys of a burst."""


def moves(seed: int, keys: int, chances: Chances = Chances()) -> Iterator[Move]:
    """Moves of about `keys` keys in all, always the same for a seed."""
    random, done = Random(seed), 0
    while done < keys:
        at = random.random()
        count, move = 1, ""
        if at < chances.size:
            some = random.randint(1, 300), random.randint(1, 100)
            yield random.choice((some, (80, 24), (6, 10)))
            continue
        if (at := at - chances.size) < chances.paste:
            move = f"\x1b[200~{random.choice(PASTES)}\x1b[201~"
        elif (at := at - chances.paste) < chances.mouse:
            move = _mouse(random)
        elif (at := at - chances.mouse) < chances.odd:
            move = random.choice(ODD)
        elif (at := at - chances.odd) < chances.burst:
            count = random.randint(2, chances.longest)
            same = _key(random) if random.random() < 0.4 else ""
            move = "".join(same or _key(random) for _ in range(count))
        else:
            move = _key(random)
        done += count
        yield move


def _key(random: Random) -> str:
    at = random.random()
    if at < 0.5:
        key = random.choice(BOUND)
        return key if key not in LEAVES or random.random() < 0.1 else "\x1b"
    if at < 0.6:
        return random.choice(("\r", "\r", "\x1b", " ", "y", "n", "d", "u", "v"))
    if at < 0.8:
        return random.choice(MOVES)
    return random.choice("123etaoin /.-_@*~[]\"'0")


def _mouse(random: Random) -> str:
    x, y = random.randint(1, 120), random.randint(1, 40)
    match random.randrange(4):
        case 0:
            return f"\x1b[<{random.choice((64, 65))};{x};{y}M"
        case 1:
            to = f"{random.randint(1, 120)};{random.randint(1, 40)}"
            return f"\x1b[<0;{x};{y}M\x1b[<32;{to}M\x1b[<0;{to}m"
        case 2:
            return f"\x1b[<35;{x};{y}M"
        case _:
            button = random.choice((0, 0, 0, 1, 2))
            return f"\x1b[<{button};{x};{y}M\x1b[<{button};{x};{y}m" * random.choice((1, 1, 2))
