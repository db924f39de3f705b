"""Looking for a pattern's letters first never changes what it is found in."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from regress import Regex

from gemtui.policy.match.js_regex import PatternError
from gemtui.policy.match.matching import compile_rules
from gemtui.policy.match.patterns import compile_pattern
from gemtui.policy.model.rules import Decision, Rule

PIECES = [
    "a",
    "b",
    "ab",
    '"',
    r"\x00",
    r"\0",
    "{",
    r"\.",
    r"\"",
    r"\\",
    "é",
    ".",
    "x*",
    "a?",
    "b{2}",
    "(a|b)",
    "|",
    "^",
]
TEXTS = st.text(alphabet='ab".\\éx|\0{', max_size=12)


@given(st.lists(st.sampled_from(PIECES), min_size=1, max_size=5), TEXTS)
def test_a_pattern_is_found_where_javascript_finds_it(pieces: list[str], text: str) -> None:
    source = "".join(pieces)
    try:
        pattern = compile_pattern(source)
    except PatternError:
        return
    assert pattern.matches(text) is (Regex(source).find(text) is not None)


@given(TEXTS, TEXTS)
def test_a_prefix_is_found_where_its_pattern_is(prefix: str, rest: str) -> None:
    rule = Rule(
        decision=Decision.ALLOW,
        priority=1,
        tools=("*",),
        command_prefixes=(prefix,),
        prefix_list=True,
    )
    (one,) = compile_rules([rule])
    assert one.pattern is not None
    text = '{\0"command":"' + prefix.replace("\\", "\\\\").replace('"', '\\"') + rest + '"\0}'
    assert one.matches(text) is (Regex(one.pattern.source).find(text) is not None)
