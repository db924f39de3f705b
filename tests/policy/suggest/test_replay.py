"""A policy over recorded calls: numbers by rule that add up."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from gemtui.policy.engine.decide import Engine
from gemtui.policy.file.policy import Policy
from gemtui.policy.model.rules import Call, CallStatus, RecordedCall
from gemtui.policy.suggest.replay import KEPT, ReplayCounter, ReplayCounts, ReplayDecision

RULES = """
[[rule]]
toolName = "run_shell_command"
commandPrefix = "git"
decision = "allow"
priority = 200

[[rule]]
toolName = "run_shell_command"
commandPrefix = "git push"
decision = "deny"
priority = 300

[[rule]]
toolName = "write_file"
decision = "ask_user"
priority = 100

[[rule]]
toolName = "web_fetch"
decision = "deny"
priority = 100
"""


def recorded(tool: str, number: int = 0, **args: str) -> RecordedCall:
    call = Call(tool=tool, args=args)
    return RecordedCall(
        call=call, session=f"s{number % 3}", id=f"c{number}", ended=CallStatus.SUCCEEDED
    )


def shell(command: str, number: int = 0) -> RecordedCall:
    return recorded("run_shell_command", number, command=command)


CALLS = [
    shell("git status"),
    shell("git push"),
    shell("git diff", 2),
    shell("rm x"),
    recorded("write_file", file_path="a", content="x"),
    recorded("web_fetch", prompt="http://x"),
    recorded("read_file", file_path="a"),
    recorded("save_memory"),
    recorded("search_file_content", pattern="x"),
]


@pytest.fixture
def engine() -> Engine:
    return Engine(Policy.parse(RULES, source="w.toml"))


def replay(calls: Iterable[RecordedCall], engine: Engine, *, keep: int = KEPT) -> ReplayCounts:
    run = ReplayCounter(engine, keep=keep)
    run.feed(calls)
    return run.counts()


def test_every_call_has_one_verdict(engine: Engine) -> None:
    counts = replay(CALLS, engine)
    assert (counts.calls, counts.allow, counts.ask_user, counts.deny, counts.not_offered) == (
        9,
        4,
        1,
        2,
        2,
    )
    assert sum(share.calls for share in counts.by_rule) == counts.calls
    for decision in ReplayDecision:
        shares = [share for share in counts.by_rule if share.decision is decision]
        assert sum(share.calls for share in shares) == getattr(counts, decision.value)


def test_shares_name_their_rule_and_calls(engine: Engine) -> None:
    counts = replay(CALLS, engine)
    by_index = {
        (share.rule.index, share.decision): share
        for share in counts.by_rule
        if share.rule is not None and share.rule.source.endswith("w.toml")
    }
    git = by_index[1, ReplayDecision.ALLOW]
    assert [each.argument for each in git.references] == ["git status", "git diff"]
    assert [(each.session, each.id) for each in git.references] == [("s0", "c0"), ("s2", "c2")]
    assert git.examples == (CALLS[0], CALLS[2])
    assert by_index[2, ReplayDecision.DENY].calls == 1
    assert by_index[3, ReplayDecision.ASK_USER].calls == 1
    assert by_index[4, ReplayDecision.NOT_OFFERED].calls == 1


def test_tools_of_other_versions_are_counted_apart(engine: Engine) -> None:
    counts = replay([*CALLS, recorded("frobnicate"), recorded("frobnicate")], engine)
    assert counts.unknown == {"save_memory": 1, "frobnicate": 2}
    assert counts.calls == 11


def test_batches_make_no_difference(engine: Engine) -> None:
    def batches() -> Iterator[list[RecordedCall]]:
        for start in range(0, len(CALLS), 2):
            yield CALLS[start : start + 2]

    run = ReplayCounter(engine)
    seen = []
    for batch in batches():
        run.feed(batch)
        seen.append(run.counts().calls)
    assert seen == [2, 4, 6, 8, 9]
    assert run.counts() == replay(CALLS, engine)


def test_references_are_bounded_and_counts_are_not(engine: Engine) -> None:
    counts = replay([shell("git status", number) for number in range(10)], engine, keep=4)
    (share,) = counts.by_rule
    assert (share.calls, len(share.references), len(share.examples)) == (10, 4, 3)


def test_nothing_is_nothing(engine: Engine) -> None:
    counts = replay([], engine)
    assert (counts.calls, counts.by_rule, dict(counts.unknown)) == (0, (), {})


def test_what_the_tool_itself_refuses_is_counted_apart() -> None:
    calls = [
        shell("git log $(git x)"),
        shell("git push `x`"),
        recorded("read_file", file_path=".env"),
    ]
    found = replay(calls, Engine(Policy.parse(RULES)))
    assert (found.allow, found.deny, found.tool_refuses) == (0, 1, 2)
    (share,) = (each for each in found.by_rule if each.decision is ReplayDecision.TOOL_REFUSES)
    assert (share.rule, share.calls) == (None, 2)


def test_of_windows_commands_are_not_checked_and_paths_are_judged_by_its_rules() -> None:
    project = Path(r"c:\users\ada\app")
    calls = [
        shell("git status; Remove-Item x"),
        recorded("write_file", file_path=r"C:\Users\Ada\app\src\a.ts"),
        recorded("write_file", file_path=r"C:\Users\Ada\app\.git\config"),
        recorded("write_file", file_path=r"..\other\a.ts"),
    ]
    engine = Engine(Policy.parse("[[rule]]\ntoolName='*'\ndecision='allow'\npriority=500"))
    found = replay([replace(each, project=project) for each in calls], engine)
    assert (found.allow, found.tool_refuses, found.not_checked, found.deny) == (2, 1, 1, 0)
