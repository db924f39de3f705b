"""The run that the demo's stand-in plays, whatever the prompt."""

from __future__ import annotations

import sys
import time
import tomllib
from collections.abc import Sequence
from pathlib import Path

from gemtui.demo.live import EventWriter, LiveChat
from gemtui.demo.tools import Bench, DemoCall, Plan, Rights

TEXTS = tomllib.loads(Path(__file__).with_name("story.toml").read_text("utf-8"))
"""The contents of answers and files, by name."""
BUGGY, RIGHT = "tries - 2", "tries - 1"

TEXT_STEP, CHARACTERS = 0.06, 14
"""Seconds between two pieces of text, and the shortest piece in characters."""


class TurnLimitReached(Exception):
    """Raised if the settings allow no more turns."""


class Player:
    """Plays one run.

    `pace`: 1 is as fast as a model, 0 is without waiting. `turns`: the most turns; None for no
    limit.
    """

    def __init__(
        self, chat: LiveChat, said: EventWriter, rights: Rights, *, pace: float, turns: int | None
    ) -> None:
        self.chat, self.said, self.rights = chat, said, rights
        self.pace, self._left = pace, turns
        self.calls = 0

    def say(
        self, text: str, *plans: Plan, thoughts: tuple[str, ...] = (), after: float = 1.4
    ) -> list[DemoCall]:
        """Play one answer with its calls, and return the calls with their results.

        All calls are announced before the first result.
        """
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
                raise TurnLimitReached
        self._wait(after)

    def _done(self, plan: Plan) -> tuple[DemoCall, str]:
        """Run a call; return it with its result, and the error type if it was refused."""
        refusal = self.rights.refusal(plan.asked)
        if refusal is None:
            return plan.run(), ""
        print(f"Error executing tool {plan.asked.name}: {refusal.message}", file=sys.stderr)  # noqa: T201
        return plan.asked.failed(refusal.message), refusal.type

    def _wait(self, seconds: float) -> None:
        time.sleep(seconds * self.pace)


def play(player: Player, bench: Bench, *, resumed: bool) -> None:
    """Play the run, or its remainder if the session already contains the first part."""
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
        TEXTS["hello"],
        bench.reading("README.md") if "README.md" in bench.files else bench.listing(),
        thoughts=("Getting my bearings: A look at the project before anything is changed.",),
        after=1.0,
    )
    written = player.say(
        TEXTS["write"],
        bench.writing(path, TEXTS["fetch"].replace("{tries}", BUGGY)),
        bench.writing(test, TEXTS["test"].replace("{module}", module)),
        thoughts=("Choosing the pause: Doubling it keeps the number of tries small.",),
    )
    if _refused(written):
        player.say(TEXTS["no_writing"])
        return
    if _refused(player.say("", tests)):
        player.say(TEXTS["no_shell"].format(command=tests.asked.args["command"]))
        return
    thoughts = ("Counting tries: Three pauses lie between four tries, and one is missing.",)
    fix = bench.editing(path, BUGGY, RIGHT, "Make the last try, too.")
    player.say(TEXTS["lost"], fix, thoughts=thoughts)
    (passed,) = player.say("Once more, with patience: the tests really wait.", tests)
    if not passed.display.endswith("OK"):
        player.say(TEXTS["stuck"])
        return
    if (note := _noting(bench, path)) is not None:
        player.say("All three pass. A line in the README, so that others find it.", note)
    player.say(TEXTS["end"].format(path=path, test=test))


def _once_more(player: Player, bench: Bench, path: str, test: str) -> None:
    player.say(TEXTS["again"], bench.reading(path))
    tests = _testing(bench, test)
    (ended,) = player.say("", tests)
    if _refused([ended]):
        player.say(TEXTS["no_shell"].format(command=tests.asked.args["command"]))
    else:
        player.say(TEXTS["again_end"] if ended.display.endswith("OK") else TEXTS["stuck"])


def _testing(bench: Bench, test: str) -> Plan:
    folder, _, name = test.rpartition("/")
    command = f"python3 -m unittest discover -v -s {folder or '.'} -p {name}"
    return bench.running(command, "Run the tests")


def _noting(bench: Bench, path: str) -> Plan | None:
    """Plan to add a line after the README's heading.

    Return None if the line is already there, or if there is no heading.
    """
    readme, note = bench.files.get("README.md", ""), TEXTS["note"].format(path=path)
    heading = readme.split("\n", 1)[0] + "\n"
    if note in readme or readme.count(heading) != 1:
        return None
    return bench.editing("README.md", heading, f"{heading}\n{note}", "Name the new module.")


def _refused(calls: Sequence[DemoCall]) -> bool:
    return any(call.status == "error" for call in calls)


def _result(call: DemoCall, refused: str) -> dict[str, object]:
    """Return the fields of a tool_result event, in which the display is a string."""
    if refused:
        message = call.response["error"]
        error = {"type": refused, "message": message}
        return {"status": "error", "output": message, "error": error}
    shown = {"output": call.display} if isinstance(call.display, str) else {}
    return {"status": "success", **shown}


def _pieces(text: str) -> list[str]:
    """Split text into pieces that end after a word, the way a model sends them."""
    pieces = [""]
    for word in text.replace(" ", " \0").split("\0"):
        if len(pieces[-1]) >= CHARACTERS:
            pieces.append("")
        pieces[-1] += word
    return [piece for piece in pieces if piece]
