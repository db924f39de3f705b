"""Any rule that a policy file can hold, for Hypothesis."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from gemtui.policy.model.rules import Decision, Rule

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
PLAIN = st.sampled_from(["run_shell_command", "write_file", "*", "mcp_s_*", "näme", 'a"b\\c\n'])
_LISTS = st.lists(PLAIN | TEXT, max_size=3).map(tuple)


def _listed(name: str, flag: str) -> st.SearchStrategy[dict[str, Any]]:
    one = (PLAIN | TEXT).map(lambda value: {name: (value,), flag: False})
    return one | _LISTS.map(lambda values: {name: values, flag: True})


_VALUES = st.booleans() | st.integers(-5, 5) | TEXT | st.lists(TEXT, max_size=2)
_KNOWN = {
    "toolName",
    "mcpName",
    "subagent",
    "commandPrefix",
    "commandRegex",
    "argsPattern",
    "decision",
    "toolAnnotations",
    "priority",
    "modes",
    "interactive",
    "allowRedirection",
    "allow_redirection",
    "denyMessage",
    "deny_message",
}
_MORE = st.dictionaries(
    st.sampled_from(["note", "toolname", "a b", ""]) | TEXT.filter(lambda key: key not in _KNOWN),
    _VALUES,
    max_size=2,
)

RULES: st.SearchStrategy[Rule] = st.builds(
    lambda tools, prefixes, given: Rule(**tools, **prefixes, **given),
    _listed("tools", "tool_list"),
    st.just({}) | _listed("command_prefixes", "prefix_list"),
    st.fixed_dictionaries(
        {"decision": st.sampled_from(Decision), "priority": st.integers(0, 999)},
        optional={
            "mcp_name": TEXT,
            "subagent": TEXT,
            "command_regex": TEXT,
            "args_pattern": TEXT,
            "annotations": st.dictionaries(TEXT, _VALUES, max_size=2),
            "modes": st.lists(st.sampled_from(["default", "autoEdit", "yolo", "plan"])).map(tuple),
            "interactive": st.booleans(),
            "allow_redirection": st.booleans(),
            "deny_message": TEXT,
            "more": _MORE,
        },
    ),
)


def told(rule: Rule | None) -> Rule:
    """The rule without the place that it was read from."""
    assert rule is not None
    return replace(rule, source="", index=0, more=dict(rule.more))
