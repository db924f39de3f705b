"""What the demo's stand-in plays, whatever it is asked: a small change with a test that fails."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence

from gemtui.demo.live import LiveChat, Said
from gemtui.demo.tools import Bench, Plan, Rights
from gemtui.demo.workspace import Call, failed

FETCH = '''\
"""Fetch a page that may need several tries, politely."""

import time
from collections.abc import Callable


def fetch(get: Callable[[], str], *, tries: int = 4, pause: float = 0.5) -> str:
    """What `get` returns; between two tries the pause doubles."""
    for number in range({tries}):
        try:
            return get()
        except OSError:
            time.sleep(pause * 2**number)
    return get()
'''
BUGGY, RIGHT = "tries - 2", "tries - 1"

TEST = '''\
import unittest

from {module} import fetch


class Shy:
    """A server that answers only at the n-th try."""

    def __init__(self, answers_at: int) -> None:
        self.left = answers_at

    def __call__(self) -> str:
        self.left -= 1
        if self.left:
            raise ConnectionRefusedError("busy")
        return "the page"


class FetchTest(unittest.TestCase):
    def test_the_first_try(self) -> None:
        self.assertEqual(fetch(Shy(1)), "the page")

    def test_the_last_try(self) -> None:
        self.assertEqual(fetch(Shy(4)), "the page")

    def test_one_try_too_many(self) -> None:
        with self.assertRaises(ConnectionRefusedError):
            fetch(Shy(5), pause=0)
'''

NOTE = "Pages are fetched with up to four tries, see `{path}`.\n"

HELLO = (
    "I am the stand-in of gemtui's demo: there is no model behind me, and I play the same piece "
    "whatever I am asked. Everything else is real: this stream, the files, the commands and the "
    "session that is stored meanwhile.\n\nToday a page is to be fetched *politely*, with several "
    "tries. I'll look around first."
)
WRITE = (
    "A small module and a test for it. The pause doubles from try to try, so that a busy server "
    "gets time to recover."
)
LOST = (
    "`test_the_last_try` fails: a server that answers at the **fourth** try gets only three. The "
    "loop counts the tries before the last one, which stands behind it, so it has to go to\n\n"
    "```python\nrange(tries - 1)\n```"
)
END = (
    "Done:\n\n"
    "| file | what |\n| --- | --- |\n"
    "| `{path}` | `fetch`, with a pause that doubles |\n"
    "| `{test}` | three tests, all pass |\n\n"
    "1. A page that comes at once costs **no** pause.\n"
    "2. The fourth and last try is really made: that was the mistake which the test found.\n\n"
    "Ask on: the same session goes on, and I run the tests once more."
)
NO_WRITING = (
    "I may not write files in this mode, so nothing was changed. Choose the mode `auto_edit` or "
    "`yolo`, or allow writing, and run it again."
)
NO_SHELL = (
    "The files are written, but I may not run commands in this mode, so the tests are left to "
    "you:\n\n```sh\n{command}\n```"
)
STUCK = "That should have passed, and does not: the output above says what this machine lacks."
AGAIN = "You have asked on, and the session goes on where it was. I'll look at the file again."
AGAIN_END = "Nothing has changed, and all tests pass: the last try is made, and no more than that."

TEXT_STEP, CHARACTERS = 0.06, 14
"""Seconds between two pieces of text, and how long these are at least."""


class TurnLimit(Exception):
    """The settings allow no more turns."""


class Player:
    """Plays one run. `pace`: 1 = as a model would, 0 = without waiting. `turns`: how many are
    allowed, None = any number.
    """

    def __init__(
        self, chat: LiveChat, said: Said, rights: Rights, *, pace: float, turns: int | None
    ) -> None:
        self.chat, self.said, self.rights = chat, said, rights
        self.pace, self._left = pace, turns
        self.calls = 0

    def say(
        self, text: str, *plans: Plan, thoughts: tuple[str, ...] = (), after: float = 1.4
    ) -> list[Call]:
        """One answer and its calls, which are all told before the first of them comes back."""
        self._begin(after)
        for piece in _pieces(text):
            self.said("message", role="assistant", content=piece, delta=True)
            self._wait(TEXT_STEP)
        asked = tuple(plan.asked for plan in plans)
        record = self.chat.answer(text, asked, thoughts)
        ids = self.chat.call_ids(asked)
        for id, call in zip(ids, asked, strict=True):
            self._wait(0.3)
            self.said("tool_use", tool_name=call.name, tool_id=id, parameters=call.args)
        self._wait(0.5 if plans else 0)
        done = [self._done(plan) for plan in plans]
        for id, (call, refused) in zip(ids, done, strict=True):
            self.said("tool_result", tool_id=id, **_result(call, refused))
        calls = [call for call, _ in done]
        if calls:
            self.calls += len(calls)
            self.chat.ended(record, ids, tuple(calls))
        return calls

    def _begin(self, after: float) -> None:
        if self._left is not None:
            self._left -= 1
            if self._left < 0:
                raise TurnLimit
        self._wait(after)

    def _done(self, plan: Plan) -> tuple[Call, str]:
        """The call with its result, and the type of the error if it was refused."""
        refusal = self.rights.refusal(plan.asked)
        if refusal is None:
            return plan.run(), ""
        print(f"Error executing tool {plan.asked.name}: {refusal.message}", file=sys.stderr)  # noqa: T201
        return failed(plan.asked, refusal.message), refusal.type

    def _wait(self, seconds: float) -> None:
        time.sleep(seconds * self.pace)


def play(player: Player, bench: Bench, *, resumed: bool) -> None:
    """The piece: all of it, or what is left to do when it has been played in this session."""
    inside = bench.slug if f"{bench.slug}/__init__.py" in bench.files else ""
    path = f"{inside}/fetch.py" if inside else "fetch.py"
    test = "tests/test_fetch.py" if inside else "test_fetch.py"
    if resumed and RIGHT in bench.files.get(path, ""):
        _once_more(player, bench, path, test)
    else:
        _whole(player, bench, path, test)


def _whole(player: Player, bench: Bench, path: str, test: str) -> None:
    tests = _testing(bench, test)
    module = path.removesuffix(".py").replace("/", ".")
    player.say(
        HELLO,
        bench.reading("README.md") if "README.md" in bench.files else bench.listing(),
        thoughts=("Getting my bearings: A look at the project before anything is changed.",),
        after=1.0,
    )
    written = player.say(
        WRITE,
        bench.writing(path, FETCH.replace("{tries}", BUGGY)),
        bench.writing(test, TEST.replace("{module}", module)),
        thoughts=("Choosing the pause: Doubling it keeps the number of tries small.",),
    )
    if _refused(written):
        player.say(NO_WRITING)
        return
    if _refused(player.say("", tests)):
        player.say(NO_SHELL.format(command=tests.asked.args["command"]))
        return
    thoughts = ("Counting tries: Three pauses lie between four tries, and one is missing.",)
    fix = bench.editing(path, BUGGY, RIGHT, "Make the last try, too.")
    player.say(LOST, fix, thoughts=thoughts)
    (passed,) = player.say("Once more, with patience: the tests really wait.", tests)
    if not passed.display.endswith("OK"):
        player.say(STUCK)
        return
    if (note := _noting(bench, path)) is not None:
        player.say("All three pass. A line in the README, so that others find it.", note)
    player.say(END.format(path=path, test=test))


def _once_more(player: Player, bench: Bench, path: str, test: str) -> None:
    player.say(AGAIN, bench.reading(path))
    tests = _testing(bench, test)
    (ended,) = player.say("", tests)
    if _refused([ended]):
        player.say(NO_SHELL.format(command=tests.asked.args["command"]))
    else:
        player.say(AGAIN_END if ended.display.endswith("OK") else STUCK)


def _testing(bench: Bench, test: str) -> Plan:
    folder, _, name = test.rpartition("/")
    command = f"python3 -m unittest discover -v -s {folder or '.'} -p {name}"
    return bench.running(command, "Run the tests")


def _noting(bench: Bench, path: str) -> Plan | None:
    """A line below the README's heading; None where there is no place for it, or it is there."""
    readme, note = bench.files.get("README.md", ""), NOTE.format(path=path)
    heading = readme.split("\n", 1)[0] + "\n"
    if note in readme or readme.count(heading) != 1:
        return None
    return bench.editing("README.md", heading, f"{heading}\n{note}", "Name the new module.")


def _refused(calls: Sequence[Call]) -> bool:
    return any(call.status == "error" for call in calls)


def _result(call: Call, refused: str) -> dict[str, object]:
    """A tool_result's fields: the string form of the display only."""
    if refused:
        message = call.response["error"]
        error = {"type": refused, "message": message}
        return {"status": "error", "output": message, "error": error}
    shown = {"output": call.display} if isinstance(call.display, str) else {}
    return {"status": "success", **shown}


def _pieces(text: str) -> list[str]:
    """The text in pieces that end behind a word, as a model sends them."""
    pieces = [""]
    for word in text.replace(" ", " \0").split("\0"):
        if len(pieces[-1]) >= CHARACTERS:
            pieces.append("")
        pieces[-1] += word
    return [piece for piece in pieces if piece]
