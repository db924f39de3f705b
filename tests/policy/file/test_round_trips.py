"""Rules and policies written as TOML and read again, and edits of any rule into any other."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gemtui.errors import PolicyError
from gemtui.policy.edit.document import Document
from gemtui.policy.file.policy import Policy
from gemtui.policy.file.rule_codec import rules_to_toml
from gemtui.policy.model.rules import Decision, Rule
from tests.policy.rule_strategies import RULES, TEXT, told

ALLOW = Rule(tools=("read_file",), decision=Decision.ALLOW, priority=5)


@settings(deadline=None)
@given(st.lists(RULES, max_size=4))
def test_rules_come_back_from_their_text_as_they_were(rules: list[Rule]) -> None:
    document = Document.parse(rules_to_toml(rules))
    assert document.locked == ""
    assert [told(each.rule) for each in document.rules] == rules


@settings(deadline=None)
@given(st.lists(RULES, max_size=4))
def test_a_policy_comes_back_from_its_toml(rules: list[Rule]) -> None:
    policy = Policy.parse(rules_to_toml(rules))
    again = Policy.parse(policy.to_toml())
    assert [told(rule) for rule in again.rules] == [told(rule) for rule in policy.rules]


@settings(deadline=None)
@given(RULES, RULES, st.data())
def test_any_rule_becomes_any_other_and_nothing_else_changes(
    old: Rule, new: Rule, data: st.DataObject
) -> None:
    comment = data.draw(st.sampled_from(["", "# note\n", "\n# loose\n\n"]))
    end = data.draw(st.sampled_from(["\n", "\r\n"]))
    text = "".join(
        (rules_to_toml([ALLOW]), comment, rules_to_toml([old]), comment, rules_to_toml([ALLOW]))
    )
    document = Document.parse(text.replace("\n", end))
    changed = document.replace(1, new)
    assert told(changed.rules[1].rule) == new
    assert changed.rules[0].text == document.rules[0].text
    assert changed.rules[2].text == document.rules[2].text
    assert document.replace(1, told(document.rules[1].rule)).text == document.text


@settings(deadline=None)
@given(TEXT, TEXT)
def test_any_characters_survive_in_names_and_messages(name: str, message: str) -> None:
    rule = replace(ALLOW, tools=(name,), deny_message=message)
    table: Any = tomllib.loads(rules_to_toml([rule]))["rule"][0]
    assert (table["toolName"], table["denyMessage"]) == (name, message)


def test_a_pattern_is_written_so_that_it_can_be_read() -> None:
    text = rules_to_toml([replace(ALLOW, args_pattern='"file_path":"docs/')])
    assert """argsPattern = '"file_path":"docs/'""" in text


def test_a_fraction_of_a_setting_is_refused() -> None:
    with pytest.raises(PolicyError, match="priority"):
        rules_to_toml([replace(ALLOW, priority=300.5)])
