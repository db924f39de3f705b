"""Effects against the real CLI: over generated calls, byte for byte.

`GEMTUI_TEST_CALLS=2000` tries that many calls, `GEMTUI_TEST_SEED` others.
"""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import pytest

from gemtui.calls.effect import CallContext, Effect, effect
from tests.calls.generated import Case, arguments, case_of, files, put
from tests.model_server import ModelServer, answer, call, text
from tests.real_cli import GeminiCli, Running

CALLS = int(os.environ.get("GEMTUI_TEST_CALLS", "240"))
SEED = int(os.environ.get("GEMTUI_TEST_SEED", "1"))
A_RUN = 120
"""Cases of one run; each is called twice, as it is and as its effect pins it."""
MODELS = ("gemini-2.5-flash", "gemini-flash-latest", "gemini-3-pro-preview", "house-model")


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
