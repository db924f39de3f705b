"""Each surprise: what the engine does with the rule, and with the one that is offered instead."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import given, settings

from gemtui.policy.check.check_policy import check_text
from gemtui.policy.check.pitfalls import fixed, pitfalls
from gemtui.policy.engine.decide import Engine
from gemtui.policy.file.policy import Policy, of
from gemtui.policy.file.rule_codec import rules_to_toml
from gemtui.policy.match.matching import dropped, pattern_sources
from gemtui.policy.model.rules import ApprovalMode, Call, Decision, Rule, Severity
from tests.policy.rule_strategies import RULES
from tests.policy.rule_tables import rule_or_call
from tests.rows import each_row, table

TABLES = table("policy/pitfalls.json", rule_or_call)

SHELL = "run_shell_command"
ALLOW, ASK, DENY = Decision.ALLOW, Decision.ASK_USER, Decision.DENY
OUTSIDE_PLAN = ("default", "autoEdit", "yolo")
REST = Rule(tools=("*",), decision=ALLOW, priority=1)


def rule(decision: Decision, **fields: Any) -> Rule:
    fields.setdefault("tools", (SHELL,))
    if decision is ALLOW:
        fields.setdefault("modes", OUTSIDE_PLAN)
    return Rule(decision=decision, priority=100, source="work.toml", index=1, **fields)


def prefix(decision: Decision, *prefixes: str, **fields: Any) -> Rule:
    return rule(decision, command_prefixes=prefixes, prefix_list=True, **fields)


def run(command: str, **args: Any) -> Call:
    return Call(tool=SHELL, args={"command": command, **args})


def write(path: str) -> Call:
    return Call(tool="write_file", args={"file_path": path, "content": "x"})


def decides(one: Rule, call: Call, *, mode: ApprovalMode = ApprovalMode.DEFAULT) -> bool:
    """Whether this rule, above one that allows everything, is the one that decides."""
    outcome = Engine(of([one, REST]), mode=mode, interactive=True).outcome(call)
    return outcome.rule is not None and outcome.rule.priority == 100


def better_than(one: Rule) -> Rule:
    """The rule that is offered instead."""
    better = fixed(one)
    assert better is not None
    return better


def field_of(one: Rule) -> tuple[str, ...]:
    found = tuple(pitfalls(one))
    assert all(each.way_out and each.severity is Severity.WARNING for each in found)
    return tuple(each.field for each in found)


@each_row("plain", TABLES["a_rule_that_does_what_it_says_has_none"])
def test_a_rule_that_does_what_it_says_has_none(plain: Rule) -> None:
    assert field_of(plain) == ()
    assert fixed(plain) is None


CASES = TABLES["cases"]


@each_row("one, field, missed, wrong, right", CASES)
def test_the_offered_rule_does_what_was_meant(
    one: Rule, field: str, missed: list[Call], wrong: list[Call], right: list[Call]
) -> None:
    assert field in field_of(one)
    better = better_than(one)
    assert fixed(better) is None, "what is offered is surprising itself"
    assert not any(dropped(source) for source in pattern_sources(better) if source)
    assert not any(decides(one, call) for call in missed)
    for call in (*missed, *right):
        assert decides(better, call), call
    for call in wrong:
        assert not decides(better, call), call
    assert any(decides(one, call) for call in right) or not right


def test_the_offered_rule_comes_back_from_its_file() -> None:
    for one, *_rest in CASES:
        better = better_than(one)
        (read,) = Policy.parse(rules_to_toml([better]), source="work.toml").rules
        assert read == better


def outcome(one: Rule, call: Call, mode: ApprovalMode = ApprovalMode.DEFAULT) -> Decision:
    return Engine(of([one]), mode=mode).outcome(call).decision


@each_row("tools", [(SHELL,), ("*",)])
def test_an_ask_of_the_shell_lets_safe_commands_run(tools: tuple[str, ...]) -> None:
    ask = rule(ASK, tools=tools)
    assert field_of(ask) == ("decision",)
    assert outcome(ask, run("ls")) is ALLOW
    better = better_than(ask)
    assert outcome(better, run("ls")) is ASK
    assert outcome(better, run("ls && cat a")) is ASK
    if tools == ("*",):
        assert outcome(better, write("a")) is ASK


def test_an_allow_of_the_shell_still_asks_for_what_is_dangerous() -> None:
    allow = rule(ALLOW)
    assert field_of(allow) == ("decision",)
    assert outcome(allow, run("rm -rf q")) is ASK
    assert outcome(allow, run("true && rm -rf q")) is ALLOW
    assert fixed(allow) is None


def test_a_denied_tool_is_hidden_and_its_message_with_it() -> None:
    deny = rule(DENY, deny_message="ask a person")
    assert field_of(deny) == ("denyMessage",)
    better = better_than(deny)
    for one, offered in ((deny, False), (better, True)):
        engine = Engine(of([one]), mode=ApprovalMode.YOLO)
        assert engine.outcome(run("ls")).offered is offered
        assert engine.outcome(run("ls")).decision is DENY
    explained = Engine(of([better]), mode=ApprovalMode.YOLO).explain(run("ls"))
    assert explained.message == "ask a person"


def test_a_message_is_shown_where_a_stronger_rule_keeps_the_tool_in_sight() -> None:
    deny = rule(DENY, deny_message="ask a person")
    shown = replace(prefix(ALLOW, "git", modes=("yolo",)), priority=200)
    weaker, of_another = replace(shown, priority=50), replace(shown, tools=("glob",))
    of_subagent, denying = replace(shown, subagent="x"), replace(shown, decision=DENY)
    for others, hidden in (
        ([shown], False),
        ([weaker], True),
        ([of_another], True),
        ([of_subagent], True),
        ([denying], True),
    ):
        text = of([*others, deny]).to_toml()
        found = [each for each in check_text(text, "work.toml") if each.rule == 2]
        assert any("never shown" in each.message for each in found) is hidden
        assert (fixed(deny, found) is not None) is hidden
    explained = Engine(of([shown, deny]), mode=ApprovalMode.YOLO).explain(run("ls"))
    assert (explained.offered, explained.message) == (True, "ask a person")


def test_an_allow_without_modes_opens_plan_mode() -> None:
    allow = prefix(ALLOW, "pytest", modes=())
    assert field_of(allow) == ("modes",)
    assert decides(allow, run("pytest -q"), mode=ApprovalMode.PLAN)
    better = fixed(allow)
    assert better == replace(allow, modes=OUTSIDE_PLAN)
    assert not decides(better, run("pytest -q"), mode=ApprovalMode.PLAN)


@each_row("command", ["echo x > a", "pytest -q && ruff check", "ls | wc -l > n"])
def test_a_prefix_over_more_than_a_command_allows_nothing(command: str) -> None:
    allow = prefix(ALLOW, command)
    assert set(field_of(allow)) == {"commandPrefix"}
    assert outcome(allow, run(command)) is DENY
    better = better_than(allow)
    assert outcome(better, run(command)) is ALLOW


@each_row("one, message", TABLES["what_has_no_better_form_is_said_all_the_same"])
def test_what_has_no_better_form_is_said_all_the_same(one: Rule, message: str) -> None:
    (finding,) = pitfalls(one)
    assert message in finding.message
    assert finding.way_out
    assert fixed(one) is None


@settings(deadline=None)
@given(RULES)
def test_any_rule_can_be_looked_at(one: Rule) -> None:
    better = fixed(one)
    for each in pitfalls(one):
        assert each.severity is Severity.WARNING
        assert each.way_out
    assert better != one
    if better is not None:
        assert fixed(better) is None
