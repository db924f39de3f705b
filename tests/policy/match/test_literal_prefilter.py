"""Looking for a pattern's letters first never changes what it is found in."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gemtui.policy.match.literal_prefilter import is_literal, required_literal
from gemtui.policy.match.matching import CompiledRule, compile_rules
from gemtui.policy.match.patterns import PatternError, compile_pattern
from gemtui.policy.model.rules import Decision, Rule

PIECES = ["a", "b", "ab", '"', r"\.", r"\"", r"\\", "é", ".", "x*", "a?", "b{2}", "(a|b)", "|", "^"]
TEXTS = st.text(alphabet='ab".\\éx|', max_size=12)


def ready(**condition: object) -> CompiledRule:
    """One rule with a condition, made ready."""
    rule = Rule(decision=Decision.ALLOW, priority=1, tools=("*",), **condition)  # type: ignore[arg-type]
    return compile_rules([rule])[0]


@given(st.lists(st.sampled_from(PIECES), min_size=1, max_size=5), TEXTS)
def test_a_pattern_is_found_where_javascript_finds_it(pieces: list[str], text: str) -> None:
    source = "".join(pieces)
    try:
        pattern = compile_pattern(source)
    except PatternError:
        return
    needle = required_literal(source, prefix=False)
    quick = needle in text and (is_literal(source) or pattern.matches(text))
    assert quick is pattern.matches(text)


@given(TEXTS, TEXTS)
def test_a_prefix_is_found_where_its_pattern_is(prefix: str, rest: str) -> None:
    one = ready(command_prefixes=(prefix,), prefix_list=True)
    assert one.pattern is not None
    text = '{\0"command":"' + prefix.replace("\\", "\\\\").replace('"', '\\"') + rest + '"\0}'
    assert one.finds(text) is one.pattern.matches(text)


@pytest.mark.parametrize(
    ("source", "needle"),
    [
        ("abc", "abc"),
        (r"a\.b", "a.b"),
        ("abc*", "ab"),
        (r"ab\.?", "ab"),
        ("ab|cd", ""),
        (r"ab\|cd", "ab|cd"),
        (r"ab\d", "ab"),
        ("^ab", ""),
        ("ab+", "ab"),
        ("", ""),
    ],
)
def test_the_letters_that_every_match_needs(source: str, needle: str) -> None:
    assert required_literal(source, prefix=False) == needle
