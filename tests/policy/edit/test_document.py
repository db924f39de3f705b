from __future__ import annotations

import tomllib
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gemtui.errors import PolicyError
from gemtui.policy.check.check_policy import check_text
from gemtui.policy.edit.document import Document
from gemtui.policy.file.policy import Policy
from gemtui.policy.file.rule_codec import rules_to_toml
from gemtui.policy.file.toml_dialect import parse_toml
from gemtui.policy.model.rules import Decision, Rule
from tests.policy.rule_strategies import RULES, told
from tests.rows import each_row, table

TABLES = table("policy/document.json")

ALLOW = Rule(tools=("read_file",), decision=Decision.ALLOW, priority=5)

FILE = """\
# The policy of a project.
# It has a head.

# Tests may run.
[[rule]]  # one
toolName = "run_shell_command"
commandPrefix = ["pytest", "ruff"]  # both are quick
decision = "allow"
priority = 200

# --- what is denied ---

[[rule]]
toolName = [
  "write_file",  # whole files
  "replace",
]
decision = "deny"
priority = 300
denyMessage = '''
Not [[rule]]
[[rule]]
here'''
[rule.toolAnnotations]
readOnlyHint = false
# the hint is a guess

#off [[rule]]
#off toolName = "web_fetch"
#off decision = "ask_user"
#off priority = 1

[[safety_checker]]
toolName = "*"
"""
ENDS = each_row("end", ["\n", "\r\n"])


def parse(text: str, end: str = "\n") -> Document:
    document = Document.parse(text.replace("\n", end))
    assert document.locked == ""
    return document


def opened(text: str, index: int = 0, end: str = "\n") -> tuple[Document, Rule]:
    """A document, and one of its rules."""
    document = parse(text, end)
    rule = document.rules[index].rule
    assert rule is not None
    return document, rule


def tools(document: Document) -> list[tuple[str, ...] | None]:
    """The tools of its rules; None for a rule that can't be read."""
    return [entry.rule.tools if entry.rule else None for entry in document.rules]


def decided(document: Document) -> list[tuple[str, str]]:
    """The tools and decisions that the file holds for the CLI."""
    tables = tomllib.loads(document.text).get("rule", [])
    return [(str(each["toolName"]), each["decision"]) for each in tables]


# --- reading -------------------------------------------------------------------------------------


@ENDS
def test_a_file_is_shown_with_all_its_rules_and_kept_as_it_is(end: str) -> None:
    document = parse(FILE, end)
    assert document.text == FILE.replace("\n", end)
    first, second, third = document.rules
    assert first.rule is not None
    assert first.rule.command_prefixes == ("pytest", "ruff")
    assert first.line == 4
    assert first.text.startswith("# Tests may run.")
    assert second.rule is not None
    assert second.rule.deny_message == "Not [[rule]]\n[[rule]]\nhere"
    assert second.rule.annotations == {"readOnlyHint": False}
    assert second.text.endswith(f"# the hint is a guess{end}")
    assert [each.enabled for each in document.rules] == [True, True, False]
    assert [each.rule.index for each in document.rules if each.rule] == [1, 2, 0]
    assert third.rule is not None
    assert third.rule.tools == ("web_fetch",)


@each_row("text", ["", "\n", "# only words\n", "x = 1\n", "# no end"])
def test_a_file_without_rules_takes_one(text: str) -> None:
    document = parse(text).add(ALLOW)
    assert document.text.startswith(text)
    assert decided(document) == [("read_file", "allow")]


@each_row("text, why", TABLES["a_file_that_cant_be_edited_says_why"])
def test_a_file_that_cant_be_edited_says_why(text: str, why: str) -> None:
    document = Document.parse(text, source="work.toml")
    assert document.text == text
    assert why in document.locked
    assert "editor" in document.locked
    with pytest.raises(PolicyError, match=r"^work\.toml: "):
        document.add(ALLOW)
    with pytest.raises(PolicyError):
        document.move(0, 0)


def test_rules_of_a_broken_file_are_shown_as_far_as_they_can_be() -> None:
    document = Document.parse(FILE.replace('"write_file",', '"write_file').replace("'''", "'"))
    assert "line 15" in document.locked
    assert tools(document) == [("run_shell_command",), None, None, ("web_fetch",)]


def test_rules_in_one_inline_list_are_shown() -> None:
    document = Document.parse('rule = [{toolName = "x", decision = "deny", priority = 1}, {}]\n')
    assert tools(document) == [("x",), None]


@settings(deadline=None)
@given(st.lists(st.sampled_from(TABLES["scraps"]), max_size=30).map("".join))
def test_any_text_is_a_document_and_kept(text: str) -> None:
    document = Document.parse(text)
    assert document.text == text
    if document.locked:
        return
    assert told(document.add(ALLOW).rules[-1].rule) == ALLOW
    for index, entry in enumerate(document.rules):
        off = document.enable(index, False)
        assert off.enable(index, True).text == document.enable(index, True).text
        assert not off.rules[index].enabled
        assert len(document.remove(index).rules) == len(document.rules) - 1
        assert document.duplicate(index).rules[index + 1].rule == (
            entry.rule and replace(entry.rule, index=entry.rule.index + entry.enabled)
        )


# --- changing ------------------------------------------------------------------------------------


@ENDS
@each_row("promise, text, index, fields, changes, returns", TABLES["changes"])
def test_a_change_of_a_rule_changes_its_own_lines(
    promise: str,
    text: str | None,
    index: int,
    fields: dict[str, Any],
    changes: list[list[str]],
    returns: bool,
    end: str,
) -> None:
    expected = text or FILE
    document, rule = opened(expected, index, end)
    values: Any = {
        name: tuple(value) if isinstance(value, list) else value for name, value in fields.items()
    }
    changed = document.replace(index, replace(rule, **values))
    for before, after in changes:
        assert before in expected
        expected = expected.replace(before, after)
    assert changed.text == expected.replace("\n", end), promise
    assert (changed.replace(index, rule).text == document.text) is returns, promise


def test_a_list_over_several_lines_keeps_the_comments_of_what_stays() -> None:
    document, rule = opened(FILE, 1)
    text = document.replace(1, replace(rule, tools=("write_file", "glob"))).text
    assert '  "write_file",  # whole files\n' in text
    assert '"glob"' in text
    assert '"replace"' not in text


def test_dotted_keys_are_one_value() -> None:
    _, rule = opened(
        '[[rule]]\ntoolAnnotations.a = 1\ntoolAnnotations . "b" = 2\ndecision = "deny"\npriority '
        "= 1\n"
    )
    assert rule.annotations == {"a": 1, "b": 2}


def test_what_cant_be_read_in_a_rule_stays_until_it_is_set() -> None:
    text = '[[rule]]\ntoolName = "x"\nmodes = "plan"\ndecision = "ask"\npriority = "high"\n'
    document = parse(text)
    assert document.rules[0].rule is None
    changed = document.replace(0, replace(ALLOW, tools=("x",)))
    assert changed.text == text.replace('"ask"', '"allow"').replace('"high"', "5")
    again = changed.replace(0, replace(ALLOW, tools=("x",), modes=("yolo",)))
    assert 'modes = ["yolo"]' in again.text


def test_half_a_character_is_refused_with_a_reason() -> None:
    with pytest.raises(PolicyError, match="lone surrogate"):
        parse(FILE).add(replace(ALLOW, tools=("\ud83d",)))


# --- structure -----------------------------------------------------------------------------------

TOOLS = [
    ("run_shell_command", "allow"),
    ("['write_file', 'replace']", "deny"),
    ("web_fetch", "ask_user"),
]


@ENDS
@each_row("at", [0, 1, 2, 3, None])
def test_a_rule_is_added_at_its_place(at: int | None, end: str) -> None:
    document = parse(FILE, end)
    added = document.add(ALLOW, at)
    place = 3 if at is None else at
    assert tools(added)[place] == ("read_file",)
    assert [e.text for i, e in enumerate(added.rules) if i != place] == [
        each.text for each in document.rules
    ]
    assert added.text.count("\n") == added.text.count(end)
    assert added.remove(place).text == document.text


@each_row("index", [0, 1, 2])
def test_a_removed_rule_takes_its_comments_along(index: int) -> None:
    document = parse(FILE)
    left = document.remove(index)
    assert left.locked == ""
    assert len(left.rules) == 2
    assert document.rules[index].text not in left.text
    for other in (0, 1, 2):
        if other != index:
            assert document.rules[other].text in left.text
    assert "# The policy of a project." in left.text
    assert "# --- what is denied ---" in left.text
    assert "\n\n\n" not in left.text


@each_row("index", [0, 1, 2])
@each_row("to", [0, 1, 2])
def test_a_rule_moves_with_its_comments_and_back(index: int, to: int) -> None:
    document = parse(FILE)
    moved = document.move(index, to)
    order = [0, 1, 2]
    order.insert(to, order.pop(index))
    assert [each.text for each in moved.rules] == [document.rules[at].text for at in order]
    assert moved.move(to, index).text == document.text


def test_a_copy_stands_right_below() -> None:
    document = parse(FILE).duplicate(0)
    assert tools(document) == [("run_shell_command",), *tools(parse(FILE))]
    assert document.rules[0].text == document.rules[1].text


@ENDS
def test_a_rule_that_is_off_is_hidden_from_the_cli_and_comes_back_as_it_was(end: str) -> None:
    document = parse(FILE, end)
    off = document.enable(1, False)
    assert decided(off) == TOOLS[:1]
    assert [each.enabled for each in off.rules] == [True, False, False]
    assert tools(off) == tools(document)
    assert off.enable(1, True).text == document.text
    assert document.enable(1, True) is document


def test_rules_below_each_other_without_a_blank_line_are_told_apart() -> None:
    text = rules_to_toml([ALLOW, replace(ALLOW, tools=("glob",))]).replace("\n\n", "\n")
    document = parse(text)
    assert len(document.rules) == 2
    assert document.enable(0, False).enable(1, False).rules[1].enabled is False
    assert decided(document.move(0, 1)) == [("glob", "allow"), ("read_file", "allow")]


def test_a_comment_below_a_rule_stays_with_it_when_it_moves() -> None:
    one, two = rules_to_toml([ALLOW]), rules_to_toml([replace(ALLOW, tools=("glob",))])
    document = parse(f"{one}{two}# of glob")
    moved = document.move(1, 0)
    assert moved.rules[0].text == f"{two}# of glob\n"
    assert moved.rules[1].text == one


@each_row("index", [-1, 3])
def test_a_rule_that_is_not_there_is_an_error(index: int) -> None:
    document = parse(FILE)
    for change in (document.remove, document.duplicate, lambda at: document.move(0, at)):
        with pytest.raises(IndexError):
            change(index)
    with pytest.raises(IndexError):
        document.add(ALLOW, index if index < 0 else 4)


def test_a_value_that_does_not_equal_itself_locks_nothing() -> None:
    text = '[[rule]]\ntoolName = "glob"\ndecision = "deny"\npriority = 5\nx = nan\n'
    document = Document.parse(text)
    assert document.locked == ""
    assert document.enable(0, False).enable(0, True).text == text


# --- one edit after the other --------------------------------------------------------------------


def same(edited: Document, whole: Document) -> None:
    """An edited document says what a person's editor would find in its text."""
    assert edited.locked == whole.locked
    assert edited.rules == whole.rules
    assert edited.findings == whole.findings == check_text(whole.text, whole.source)
    assert edited.problems == whole.problems
    assert edited.policy == whole.policy == Policy.parse(whole.text, source=whole.source)
    tables = parse_toml(whole.text).get("rule", []) if not whole.locked else []
    assert whole.locked or len(tables) == sum(each.enabled for each in whole.rules)


EDITS = st.sampled_from(["add", "replace", "remove", "duplicate", "move", "enable"])


def edited(document: Document, edit: str, data: st.DataObject) -> Document:
    place = data.draw(st.integers(0, max(len(document.rules) - 1, 0)))
    if edit == "add" or not document.rules:
        return document.add(data.draw(RULES), place)
    match edit:
        case "replace":
            return document.replace(place, data.draw(RULES))
        case "move":
            return document.move(place, data.draw(st.integers(0, len(document.rules) - 1)))
        case "enable":
            return document.enable(place, not document.rules[place].enabled)
    return getattr(document, edit)(place)  # type: ignore[no-any-return]


LINES = st.sampled_from(TABLES["lines"])


@settings(deadline=None)
@given(
    st.sampled_from(["", FILE, FILE.replace("\n", "\r\n")]) | st.lists(LINES).map("".join),
    st.lists(EDITS, min_size=1, max_size=6),
    st.data(),
)
def test_edits_leave_what_the_whole_text_says(
    text: str, edits: list[str], data: st.DataObject
) -> None:
    document = Document.parse(text)
    same(document, document)
    for edit in edits:
        if document.locked:
            return
        try:
            document = edited(document, edit, data)
        except PolicyError:
            continue
        same(document, Document.parse(document.text))
