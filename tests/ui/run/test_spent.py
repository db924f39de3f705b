"""What stands beside the prompt: how full the context is, and what was spent."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

from gemtui.agent.detect import ALIASES, MODELS
from gemtui.stats.prices import Price, Prices
from gemtui.stats.report import Sums
from gemtui.transcript.model import Author, Outline
from gemtui.transcript.usage import Usage
from gemtui.ui.run.spending import spent_words
from tests.fake_cli import INIT, FakeCli, says, uses
from tests.rows import each_row
from tests.sessions import logs
from tests.ui.people import WIDE, person
from tests.ui.run.test_screen import runner

NOW = datetime(2026, 1, 1, tzinfo=UTC)
PRICES = Prices(
    date=NOW.date(), models={"known": Price(input=1.0, output=2.0, cached=0.5, context=1000)}
)
USED = Usage(input=200, output=50, cached=0, thoughts=0, tool=0, total=250)


def answer(model: str, usage: Usage | None) -> Outline:
    return Outline(id=model, author=Author.MODEL, model=model, usage=usage, time=NOW)


def spent(cost: float, *, unknown: int = 0) -> Sums:
    return Sums(cost=cost, priced=True, unknown=unknown)


@each_row(
    ("shown", "today", "words"),
    [
        (None, None, []),
        (None, spent(1.5), ["today $1.50"]),
        (None, spent(1.5, unknown=1), ["today $1.50+"]),
        ([answer("known", USED)], None, ["context 25%", "cost $0.00"]),
        ([answer("known", None)], None, ["context ?", "cost ?"]),
        ([answer("other", USED)], None, ["context ?", "cost ?"]),
        ([answer("known", None), answer("known", USED)], None, ["context 25%", "cost $0.00+"]),
    ],
)
def test_what_is_unknown_is_never_told_as_nothing(
    shown: list[Outline] | None, today: Sums | None, words: list[str]
) -> None:
    assert list(spent_words(shown, today, PRICES, NOW)) == words


async def test_a_continued_session_shows_its_context_and_the_cost_of_the_day(
    home: Path, project: Path, fake_cli: FakeCli
) -> None:
    fake_cli()
    tokens = {"input": 100_000, "output": 4_857, "cached": 0, "thoughts": 0, "tool": 0}
    at = {"timestamp": "2026-11-21T00:30:00.000Z"}
    records = [
        {"sessionId": "abcdef12-0000", "projectHash": "x", "startTime": at["timestamp"]},
        logs.user("u", "stored question") | at,
        logs.gemini("a", "Yes", model="gemini-2.5-pro", tokens=tokens) | at,
    ]
    chats = home / ".gemini/tmp/project/chats"
    path = logs.write(chats / "session-2026-11-21T00-30-abcdef12.jsonl", records)
    (chats.parent / ".project_root").write_text(str(project))
    ago = datetime(2026, 11, 21, 0, 30, tzinfo=UTC).timestamp()
    os.utime(path, (ago, ago))
    async with person(home / ".gemini", WIDE, project=project) as me:
        await me.sees("stored question")
        await me.does("c", "continues session abcdef12", "context 10%  cost $0.17  today $0.17")


async def test_a_working_run_shows_the_cost_that_its_session_has_recorded(
    home: Path, project: Path, fake_cli: FakeCli
) -> None:
    init = INIT.replace('"s1"', '"abcdef12-0000"')
    fake_cli(f"print:{init}", says("I look."), uses("c1", "read_file", "a.py"), "wait")
    tokens = {"input": 100_000, "output": 4_857, "cached": 0, "thoughts": 0, "tool": 0}
    records = [
        {"sessionId": "abcdef12-0000", "projectHash": "x", "startTime": logs.at(0)},
        logs.user("u", "go"),
        logs.gemini("a", "I look.", model="gemini-2.5-pro", tokens=tokens),
    ]
    chats = home / ".gemini/tmp/project/chats"
    logs.write(chats / "session-2026-11-21T00-30-abcdef12.jsonl", records)
    (chats.parent / ".project_root").write_text(str(project))
    async with runner(home, project) as me:
        await me.ask("go")
        await me.sees("running", "context 10%  cost $0.17")


def test_the_table_of_prices_names_the_models_of_the_cli() -> None:
    assert PRICES.without(["known", "models/known", "other"]) == ["other"]
    assert set(MODELS) > ALIASES
