"""What a person edits, without a screen: the way back and forth, the order, levels, changes."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from gemtui.policy.edit.document import Document
from gemtui.policy.engine.decide import decide
from gemtui.policy.file.levels import CAPABILITIES, Level
from gemtui.policy.file.policy import Policy
from gemtui.policy.match.path_patterns import folder_pattern
from gemtui.policy.model.rules import Call, Decision, Rule
from gemtui.text import visible_line
from gemtui.ui.policy.edits import NEW_RULE, EditedDocument, add_all, move, switch
from gemtui.ui.policy.levels import SimplePolicy, read, set_levels, with_levels
from gemtui.ui.policy.rule_table import rows
from gemtui.ui.policy.side_pane import MOST_LINES, text_diff
from gemtui.ui.rules.draft import Draft, move_rule, priority_order
from gemtui.ui.rules.form import MODES, FieldProblem, rule_of, values_of
from tests.rows import each_row


def rule(tool: str, priority: int, decision: Decision = Decision.ALLOW) -> Rule:
    return Rule(tools=(tool,), decision=decision, priority=priority)


def document(*rules: Rule) -> Document:
    return add_all(Document.parse(""), rules).document


def tools(shown: Document) -> list[str]:
    """The first tools of the rules, the strongest rule first."""
    found = (shown.rules[place].rule for place in priority_order(shown.rules))
    return [each.tools[0] for each in found if each is not None]


def test_a_search_finds_a_rule_however_its_accents_are_composed() -> None:
    draft = Draft()
    add(
        draft,
        rule("glob", 1),
        replace(NEW_RULE, tools=("run_shell_command",), command_prefixes=("caf\u00e9",)),
    )
    found = rows(draft, "RUN cafe\u0301")
    assert [row.place for row in found] == [1]
    assert len(rows(draft)) == 2


# --- back and forth ------------------------------------------------------------------------------


def add(draft: Draft, *rules: Rule) -> None:
    made = add_all(draft.document, rules)
    draft.change(made.document, made.what)


def test_changes_are_taken_back_and_made_again_in_order() -> None:
    draft = Draft()
    add(draft, rule("glob", 1))
    add(draft, rule("replace", 2), rule("read_file", 3))
    assert draft.changed
    assert draft.undo() == "add 2 rules"
    assert len(draft.entries) == 1
    assert draft.undo() == "add 1 rule"
    assert (draft.changed, draft.undo()) == (False, "")
    assert draft.redo() == "add 1 rule"
    assert draft.redo() == "add 2 rules"
    assert (len(draft.entries), draft.redo()) == (3, "")


def test_a_new_change_ends_what_could_be_made_again() -> None:
    draft = Draft()
    add(draft, rule("glob", 1))
    draft.undo()
    add(draft, rule("replace", 2))
    assert draft.redo() == ""
    assert tools(draft.document) == ["replace"]


def test_what_changes_nothing_is_no_step() -> None:
    draft = Draft()
    before = draft.revision
    assert not draft.change(draft.document, "nothing")
    assert draft.revision == before
    assert draft.undo() == ""


# --- order ---------------------------------------------------------------------------------------


def test_the_strongest_rule_comes_first_and_equals_stay_as_in_the_file() -> None:
    shown = document(rule("a", 1), rule("b", 9), rule("c", 1), rule("d", 9))
    assert tools(shown) == ["b", "d", "a", "c"]


@each_row("start", range(4))
@each_row("step", [-1, 1])
def test_a_rule_moves_past_its_neighbour_and_past_nothing_else(start: int, step: int) -> None:
    shown = document(rule("a", 5), rule("b", 9), rule("c", 5), rule("d", 1))
    before = tools(shown)
    places = priority_order(shown.rules)
    if not 0 <= start + step < len(places):
        return
    edit = move(shown, places[start], places[start + step], above=step < 0)
    assert edit is not None
    expected = list(before)
    expected[start], expected[start + step] = expected[start + step], expected[start]
    assert tools(edit.document) == expected
    assert edit.place is not None
    assert edit.document.rules[edit.place].rule is not None
    assert priority_order(edit.document.rules).index(edit.place) == start + step


def test_a_move_across_priorities_takes_the_other_one_and_says_so() -> None:
    shown = document(rule("a", 300), rule("b", 100))
    edit = move(shown, 1, 0, above=True)
    assert edit is not None
    assert "Priority changed to 300" in edit.description
    assert [each.rule.priority for each in edit.document.rules if each.rule] == [300, 300]


def test_a_move_among_equals_changes_the_file_order_only() -> None:
    shown = document(rule("a", 5), rule("b", 5))
    found = move_rule(shown, 0, 1, above=False)
    assert found is not None
    assert found.priority is None
    assert tools(found.document) == ["b", "a"]


def test_a_rule_switched_off_keeps_its_place_in_the_order() -> None:
    shown = switch(document(rule("a", 5), rule("b", 9)), 1).document
    assert [shown.rules[place].enabled for place in priority_order(shown.rules)] == [False, True]
    assert switch(shown, 1).document.rules[1].enabled


# --- levels and lists ----------------------------------------------------------------------------

SIMPLE = st.builds(
    SimplePolicy,
    levels=st.dictionaries(st.sampled_from(sorted(CAPABILITIES)), st.sampled_from(Level)),
    only=st.none() | st.lists(st.sampled_from(["glob", "read_file"]), unique=True).map(tuple),
    approved=st.lists(st.sampled_from(["list_directory", "ask_user"]), unique=True).map(tuple),
    disallowed=st.lists(st.sampled_from(["save_memory", "exit_plan_mode"]), unique=True).map(tuple),
)


def same(found: SimplePolicy, wished: SimplePolicy) -> bool:
    lists = [
        None if names is None else sorted(names)
        for each in (found, wished)
        for names in (each.only, each.approved, each.disallowed)
    ]
    return found.levels == wished.levels and lists[:3] == lists[3:]


@given(first=SIMPLE, then=SIMPLE)
def test_levels_and_lists_are_read_back_as_they_were_chosen(
    first: SimplePolicy, then: SimplePolicy
) -> None:
    own = rule("run_shell_command", 500)
    shown = document(replace(own, command_prefixes=("pytest",)))
    for wished in (first, then):
        shown = with_levels(shown, wished)
        assert same(read(shown), wished)
        assert read(shown).others == 1


@given(wished=SIMPLE)
def test_levels_that_stay_leave_the_file_alone(wished: SimplePolicy) -> None:
    shown = with_levels(Document.parse("# mine\n"), wished)
    assert with_levels(shown, read(shown)).text == shown.text


def test_what_restricts_is_written_before_what_allows() -> None:
    shown = document(rule("glob", 999))
    chosen = SimplePolicy(levels={"shell_execute": Level.DENY}, approved=("glob",))
    edit: EditedDocument = set_levels(shown, chosen, "levels")
    assert tools(edit.document)[0] == "run_shell_command"


# --- one rule in a form --------------------------------------------------------------------------

SIGNS = st.characters(blacklist_categories=("C", "Z"), max_codepoint=0x2FFF)
WORDS = st.text(SIGNS, min_size=1, max_size=12).filter(lambda word: visible_line(word) == word)
NAMES = st.lists(st.from_regex(r"[a-z_]{1,10}", fullmatch=True), unique=True, max_size=3).map(tuple)


@given(
    tools=NAMES,
    prefixes=st.lists(WORDS, max_size=3).map(tuple),
    priority=st.integers(0, 999),
    decision=st.sampled_from(Decision),
    modes=st.sets(st.sampled_from(MODES)).map(lambda found: tuple(sorted(found))),
    interactive=st.none() | st.booleans(),
    redirection=st.none() | st.booleans(),
    message=st.none() | WORDS,
)
def test_a_rule_comes_out_of_its_form_as_it_went_in(
    tools: tuple[str, ...],
    prefixes: tuple[str, ...],
    priority: int,
    decision: Decision,
    modes: tuple[str, ...],
    interactive: bool | None,
    redirection: bool | None,
    message: str | None,
) -> None:
    made = Rule(
        tools=tools,
        tool_list=len(tools) > 1,
        command_prefixes=prefixes,
        prefix_list=len(prefixes) > 1,
        priority=priority,
        decision=decision,
        modes=modes,
        interactive=interactive,
        allow_redirection=redirection,
        deny_message=message,
        annotations={"readOnlyHint": True},
    )
    assert rule_of(values_of(made), made) == made
    assert rule_of(values_of(made), NEW_RULE) == made


def test_what_can_not_be_drawn_stays_where_nobody_touches_it() -> None:
    made = replace(NEW_RULE, deny_message="a\x1b[1m\n  b", command_prefixes=(" x",))
    values = values_of(made)
    assert values["deny_message"] == "a␛[1m   b"
    assert rule_of(values | {"priority": "5"}, made) == replace(made, priority=5)


@each_row(
    ("field", "text"),
    [
        ("priority", "1000"),
        ("priority", "-1"),
        ("priority", "ten"),
        ("priority", ""),
        ("command_prefixes", '"pytest", ruff'),
        ("annotations", "readOnlyHint"),
    ],
)
def test_a_field_that_cannot_be_read_is_named(field: str, text: str) -> None:
    found = rule_of(values_of(NEW_RULE) | {field: text}, NEW_RULE)
    assert isinstance(found, FieldProblem)
    assert found.field == field


PROJECT = "/home/mara/tide"


@each_row("text", ["src", "src/", "./src/", "src/**", f"{PROJECT}/src/", " src/ "])
def test_a_folder_of_the_form_is_a_pattern_for_the_files_below_it(text: str) -> None:
    base = replace(NEW_RULE, tools=("write_file",))
    rule = rule_of(values_of(base) | {"folder": text}, base, PROJECT)
    assert isinstance(rule, Rule)

    def allowed(path: str) -> bool:
        call = Call(tool="write_file", args={"file_path": path, "content": ""})
        return decide(Policy(rules=(rule,)), call).decision is Decision.ALLOW

    assert all(map(allowed, ("src/a.py", "./src/b/c.py", f"{PROJECT}/src/a.py")))
    assert not any(map(allowed, ("a.py", "srcs/a.py", "src/../a.py", "/etc/src/a.py")))
    assert values_of(rule)["folder"] == "src/"
    assert values_of(rule)["args_pattern"] == ""


def test_another_folder_keeps_the_projects_that_the_pattern_names() -> None:
    base = replace(NEW_RULE, args_pattern=folder_pattern("src/tide", ("/a/", "/b/")))
    rule = rule_of(values_of(base) | {"folder": "src/"}, base, PROJECT)
    assert rule == replace(base, args_pattern=folder_pattern("src", ("/a/", "/b/")))
    assert rule_of(values_of(base), base, PROJECT) == base


def test_a_rule_without_its_folder_has_no_pattern() -> None:
    base = replace(NEW_RULE, args_pattern=folder_pattern("src", ()))
    assert rule_of(values_of(base) | {"folder": ""}, base) == NEW_RULE


@each_row("text", ["/", ".", "../other", "~/src", "/etc", "src/*.py", 'a"b', "a\\b"])
def test_what_is_no_folder_of_the_project_is_said(text: str) -> None:
    found = rule_of(values_of(NEW_RULE) | {"folder": text}, NEW_RULE, PROJECT)
    assert isinstance(found, FieldProblem)
    assert found.field == "folder"


def test_a_folder_and_a_pattern_are_not_both_taken() -> None:
    values = values_of(NEW_RULE) | {"folder": "src/", "args_pattern": "x"}
    assert isinstance(rule_of(values, NEW_RULE, PROJECT), FieldProblem)


# --- changes marked ------------------------------------------------------------------------------


@given(st.lists(st.sampled_from("abc")), st.lists(st.sampled_from("abc")))
def test_marked_lines_hold_both_texts(old: list[str], new: list[str]) -> None:
    found = text_diff("\n".join(old), "\n".join(new))
    assert [line.text for line in found.lines if line.sign != "-"] == new
    assert [line.text for line in found.lines if line.sign != "+"] == old
    assert (found.changes == 0) == (old == new)


def test_a_long_text_shows_what_changed_and_says_what_is_left_out() -> None:
    old = "\n".join(f"line {number}" for number in range(3 * MOST_LINES))
    found = text_diff(old, old.replace("line 4000\n", "other\n"))
    signs = [line.sign for line in found.lines]
    assert signs == ["…", " ", " ", " ", "-", "+", " ", " ", " ", "…"]
    assert found.changes == 1
