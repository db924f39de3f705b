"""Effects against the real CLI: over generated calls, byte for byte.

`GEMTUI_TEST_CALLS=2000` tries that many calls, `GEMTUI_TEST_SEED` others.
"""

from __future__ import annotations

import os
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from gemtui.calls.effect import CallContext, Effect, effect
from tests.model_server import ModelServer, answer, call, text
from tests.real_cli import GeminiCli, Running

CALLS = int(os.environ.get("GEMTUI_TEST_CALLS", "240"))
SEED = int(os.environ.get("GEMTUI_TEST_SEED", "1"))
A_RUN = 120
"""Cases of one run; each is called twice, as it is and as its effect pins it."""
MODELS = ("gemini-2.5-flash", "gemini-flash-latest", "gemini-3-pro-preview", "house-model")

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
_TAILS = (b"", b"\n", b"\n", b"\xff", b"\xe2\x82", b"\r\n")
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


def foreseen(folder: Path, found: Effect) -> dict[str, bytes]:
    """What the folder holds after the call, by its effect."""
    now = files(folder)
    if found.path is not None and found.after is not None:
        now[str(Path(found.path).relative_to(folder))] = found.after.encode()
    return now


def run(gemini: GeminiCli, model: str, calls: list[dict[str, Any]]) -> None:
    """Have the CLI make these calls, twenty in a turn."""
    turns = [
        answer(*(call(each["tool"], **each["args"]) for each in calls[at : at + 20]))
        for at in range(0, len(calls), 20)
    ]
    words = [str(gemini.program), "-o", "stream-json", "--approval-mode", "yolo", "-m", model]
    with ModelServer([*turns, answer(text("Done."))]) as server:
        Running([*words, "--prompt=go"], cli=gemini, url=server.url).finish()


@pytest.mark.parametrize("model", MODELS)
def test_generated_calls_do_what_their_effects_say(
    gemini_program: Path, tmp_path: Path, model: str
) -> None:
    chance = random.Random(f"{SEED} {model}")
    left = CALLS // (2 * len(MODELS))
    while left > 0:
        generated = [case_of(chance) for _ in range(min(A_RUN, left))]
        left -= len(generated)
        try_all(GeminiCli.set_up(gemini_program, tmp_path / str(left)), generated, model)


def try_all(gemini: GeminiCli, generated: list[Case], model: str) -> None:
    expected: dict[str, tuple[Case, Effect, dict[str, bytes]]] = {}
    calls, changed = [], 0
    context = CallContext(project=gemini.project, model=model)
    for number, case in enumerate(generated):
        for form in ("raw", "pinned"):
            folder = gemini.project / f"{form}{number}"
            put(folder, case)
            before, args = files(folder), arguments(case, folder.name)
            found = effect(case.tool, args, context)
            assert found.certain
            if form == "pinned" or is_guessed(case, found):
                args = dict(found.arguments)
            expected[folder.name] = (case, found, foreseen(folder, found))
            changed += before != expected[folder.name][2]
            calls.append({"tool": case.tool, "args": args})
    assert changed > len(calls) / 3
    run(gemini, model, calls)
    for name, (case, found, after) in expected.items():
        assert files(gemini.project / name) == after, (name, case, found)


def is_guessed(case: Case, found: Effect) -> bool:
    """Whether the CLI would look elsewhere for a file that is not there, which a pin prevents."""
    return case.tool == "replace" and (found.path is None or not Path(found.path).exists())
