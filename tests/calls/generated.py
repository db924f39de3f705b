"""Calls of file tools by chance, and the folders that they are about."""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_LINES = (
    "def f(x):",
    "    return g(x)[0]",
    "\tif a == b { c }",
    "  print('it\\'s')  ",
    'say(\\"hi\\\\n\\")',
    "a\\tb\\\\n",
    "cost: $& $1 $$",
    "é😀 ünï",
    "x\u2028y\u00a0z",
    "\ufefftop",
    "",
    "   ",
    "one two three four five",
    "back\\",
    "stray\rreturn",
)
_NAMES = (
    "f.txt",
    "f.json",
    "f%2etxt",
    "f%252etxt",
    "f%2",
    "g%20h.md",
    "@f.txt",
    "n.ipynb",
    "%41.py",
)
_PREFIXES = ("", "", "", "./", "sub/../", "sub%2f", "%2e/", "new/deep/", "link/", "\0")
_THERE = ("f.txt", "f.txt", "f%2etxt", "f.json", "sub/f.txt", "A.py", None)


@dataclass(frozen=True)
class Case:
    """A file that may be there, as bytes, and a call that is about it or one like it."""

    there: str | None
    content: bytes
    spelled: str
    tool: str
    texts: dict[str, Any]
    at: bool


def case_of(chance: random.Random) -> Case:
    """A case by chance: all parts are as likely in the last case of a run as in the first."""
    content = a_text(chance)
    there = chance.choice(_THERE)
    if chance.random() < 0.4:
        tool = "write_file"
        texts: dict[str, Any] = {"content": a_text(chance)}
    else:
        tool = "replace"
        texts = {"old_string": old_text(content, chance), "new_string": a_text(chance)}
        texts["instruction"] = "change it"
        if chance.random() < 0.5:
            texts["allow_multiple"] = True
    other = chance.choice(_PREFIXES) + chance.choice(_NAMES)
    return Case(
        there=there,
        content=content.encode()
        + chance.choice((b"", b"\n", b"\n", b"\xff", b"\xe2\x82", b"\r\n")),
        spelled=there if there and chance.random() < 0.6 else other,
        tool=tool,
        texts=texts,
        at=chance.random() < 0.2,
    )


def a_text(chance: random.Random) -> str:
    end = chance.choice(("\n", "\n", "\n", "\r\n", "\n\n"))
    return end.join(chance.choices(_LINES, k=chance.randint(0, 7))) + chance.choice(("", end))


def old_text(content: str, chance: random.Random) -> str:
    """Some lines of the content, as they are or a little otherwise, or any text."""
    lines = content.split("\n")
    start = chance.randrange(len(lines))
    piece = "\n".join(lines[start : start + chance.randint(1, 4)])
    match chance.randrange(7):
        case 0:
            return a_text(chance)
        case 1:
            return "\n".join(line.strip() for line in piece.split("\n"))
        case 2:
            return piece.replace(" ", "  ").replace("(", " ( ")
        case 3 | 4 if len(piece) > 12:
            at = chance.randrange(len(piece))
            return piece[:at] + "xy"[: chance.randint(0, 2)] + piece[at + 1 :]
        case 5:
            at = chance.randrange(len(piece) + 1)
            return piece[at : at + chance.randint(1, 12)]
        case _:
            return piece


def put(folder: Path, case: Case) -> None:
    """Make the files of a case in a folder of its own."""
    (folder / "sub").mkdir(parents=True)
    (folder / "link").symlink_to("sub")
    if case.there is not None:
        (folder / case.there).write_bytes(case.content)


def files(folder: Path) -> dict[str, bytes]:
    """All files below a folder, by their names relative to it."""
    found = (each for each in folder.rglob("*") if each.is_file() and not each.is_symlink())
    return {str(each.relative_to(folder)): each.read_bytes() for each in found}


def arguments(case: Case, folder: str) -> dict[str, Any]:
    at = "@" if case.at else ""
    return {"file_path": f"{at}{folder}/{case.spelled}", **case.texts}
