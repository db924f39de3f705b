from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

from msgspec.structs import replace

from gemtui.marks import Mark
from gemtui.sessions.catalog.listing import (
    ALL_PINNED,
    Heading,
    Listing,
    ListQuery,
    Row,
    Rows,
    SessionRow,
    Sort,
    View,
    project_labels,
    short_model,
)
from gemtui.sessions.catalog.summary import CallFields, Flag, Summary
from gemtui.sessions.store.store import SessionKind
from gemtui.text import short_path
from tests.rows import each_row
from tests.sessions.summaries import summary

EVERYWHERE = View(everywhere=True)
GEMTUI, API = "/home/dev/src/gemtui", "/home/dev/src/api"


def arrange(sessions: Sequence[Summary], view: View, project: str | None = None, marks: Sequence[Mark] = ()) -> Rows:
    listing = Listing(None if project is None else Path(project))
    listing.replace_all(sessions)
    listing.mark({mark.session: mark for mark in marks})
    return listing.arrange(view)


def names(rows: Sequence[Row]) -> list[str]:
    """Ids of session rows with a dash for each step below; group names of headings."""
    return ["-" * row.depth + row.entry.summary.id if isinstance(row, SessionRow) else row.name for row in rows]


# --- search ----------------------------------------------------------------------------------

SEARCHED = (
    summary("4ba95511-271c", "Fix the JSONL parser", hours=1),
    summary("c0ffee00-1f7e", "Why is the build slow?", project=API, hours=2),
    summary("7024884b-dece", "The Parser, explained", hours=3, models=("gemini-3-flash",)),
)


@each_row(
    ("query", "found"),
    [
        ("", ["4ba95511-271c", "c0ffee00-1f7e", "7024884b-dece"]),
        ("parser", ["4ba95511-271c", "7024884b-dece"]),
        ("Parser", ["7024884b-dece"]),
        ("the fix", ["4ba95511-271c"]),
        ("parser !flash", ["4ba95511-271c"]),
        ("!parser", ["c0ffee00-1f7e"]),
        ("!", ["4ba95511-271c", "c0ffee00-1f7e", "7024884b-dece"]),
        ("api", ["c0ffee00-1f7e"]),
        ("coffee", []),
        ("c0ffee", ["c0ffee00-1f7e"]),
        ("3-flash", ["7024884b-dece"]),
    ],
)
def test_words_are_anded_over_title_project_model_and_id(query: str, found: list[str]) -> None:
    rows = arrange(SEARCHED, replace(EVERYWHERE, query=query))
    assert names(rows.rows) == found
    assert rows.shown == len(found)
    assert rows.total == 3


@each_row(
    ("query", "found"),
    [
        ("project:api", "b"),
        ("-project:api", "c a"),
        ("model:flash", "c"),
        ("tool:shell", "a"),
        ("file:main.py", "b"),
        ("is:failed", "b"),
        ("-is:failed build", "a"),
        ("is:pinned", "c"),
        ("tag:slow", "a"),
        ('"slow build"', "a"),
        ("build -fast", "a"),
        ("build !file:main", "a"),
        ("in:prompt", ""),
        ("project:", ""),
    ],
)
def test_fields_are_those_of_the_full_text_search(query: str, found: str) -> None:
    failed = CallFields("replace", failed=True, paths=("src/main.py",))
    sessions = (
        replace(summary("a", "The slow build"), calls=(CallFields("run_shell_command", failed=False),)),
        replace(summary("b", "A fast build, slow", project=API, failures=1), calls=(failed,)),
        summary("c", "Else", models=("gemini-3-flash",)),
    )
    marks = [Mark(session="c", pinned=True), Mark(session="a", tags=("slow",))]
    rows = arrange(sessions, replace(EVERYWHERE, query=query), marks=marks).rows
    assert " ".join(row.entry.summary.id for row in rows if isinstance(row, SessionRow)) == found


@each_row(
    ("query", "found"),
    [
        ("after:3h", ["4ba95511-271c", "c0ffee00-1f7e"]),
        ("after:3h build", ["c0ffee00-1f7e"]),
        ("before:1h", ["c0ffee00-1f7e", "7024884b-dece"]),
        ("after:2h before:1h", ["c0ffee00-1f7e"]),
        ("yesterday", ["7024884b-dece"]),
        ("today", ["4ba95511-271c", "c0ffee00-1f7e"]),
        ("after:someday", []),
    ],
)
def test_times_are_those_of_the_last_use(query: str, found: list[str]) -> None:
    named = (*SEARCHED[:2], summary("7024884b-dece", "Parser", hours=20))
    rows = [row for row in arrange(named, EVERYWHERE).rows if isinstance(row, SessionRow)]
    now = named[0].when + timedelta(minutes=30)
    selected = ListQuery(query, now).select(row.entry for row in rows)
    assert [entry.summary.id for entry in selected] == found


def test_spans_are_where_the_words_stand() -> None:
    text = "The parser parses; PARSER"
    assert [text[a:b] for a, b in ListQuery("parser !gone").spans(text)] == ["parser", "PARSER"]
    assert [text[a:b] for a, b in ListQuery("PARSER").spans(text)] == ["PARSER"]
    assert [text[a:b] for a, b in ListQuery("par parse").spans(text)] == ["parse", "parse", "PARSE"]
    assert ListQuery("!parser").spans(text) == []


def test_fields_of_calls_mean_one_and_the_same_call() -> None:
    shell, edit = "run_shell_command", "replace"
    both = replace(summary("a"), calls=(CallFields(edit, failed=True), CallFields(shell, failed=False)))
    failed = replace(summary("b"), calls=(CallFields(shell, failed=True),))
    found = {
        "tool:shell is:failed": ["b"],
        "tool:shell -is:failed": ["a"],
        "-tool:shell is:failed": ["a"],
        "tool:shell tool:edit": [],
        "tool:shell": ["a", "b"],
        "is:failed": ["a", "b"],
        "-tool:edit": ["b"],
    }
    for query, ids in found.items():
        assert names(arrange((both, failed), replace(EVERYWHERE, query=query)).rows) == ids, query


def test_symbols_are_found_in_titles_with_and_without_a_variation_selector() -> None:
    sessions = (summary("a", "rated ⭐️ and 🔑"), summary("b", "rated ⭐, a != b -> c"))
    found = {"⭐️": ["a", "b"], "⭐": ["a", "b"], "🔑": ["a"], "->": ["b"], "!=": ["b"], "rated -🔑": ["b"]}
    for query, ids in found.items():
        assert names(arrange(sessions, replace(EVERYWHERE, query=query)).rows) == ids, query
    assert ListQuery("⭐").spans("a ⭐️ b") == ListQuery("⭐️").spans("a ⭐️ b") == [(2, 4)]


def test_a_regular_expression_is_only_text() -> None:
    assert ListQuery("a.c (").spans("abc a.c (") == [(4, 7), (8, 9)]


# --- order -----------------------------------------------------------------------------------

SORTED = (
    summary("new", "beta", project=API, hours=1, tokens=50, tools=2, failures=1),
    summary("mid", "Alpha", hours=2, tokens=None, tools=9, failures=0),
    summary("old", "gamma", hours=30, tokens=900, tools=2, failures=4),
)


@each_row(
    ("sort", "order", "reversed_order"),
    [
        (Sort.UPDATED, "new mid old", "old mid new"),
        (Sort.STARTED, "new mid old", "old mid new"),
        (Sort.TITLE, "mid new old", "old new mid"),
        (Sort.PROJECT, "new mid old", "mid old new"),
        (Sort.TOKENS, "old new mid", "new old mid"),
        (Sort.TOOLS, "mid new old", "new old mid"),
        (Sort.FAILURES, "old new mid", "mid new old"),
    ],
)
def test_each_property_orders_the_list(sort: Sort, order: str, reversed_order: str) -> None:
    view = replace(EVERYWHERE, sort=sort)
    assert names(arrange(SORTED, view).rows) == order.split()
    assert names(arrange(SORTED, replace(view, reverse=True)).rows) == reversed_order.split()


def test_the_order_is_said_in_words() -> None:
    assert View().order == "newest first"
    assert View(sort=Sort.TOKENS, reverse=True).order == "fewest tokens first"


# --- scope and groups ------------------------------------------------------------------------


def test_the_narrow_scope_is_one_project() -> None:
    rows = arrange(SORTED, View(), GEMTUI)
    assert names(rows.rows) == ["mid", "old"]
    assert (rows.shown, rows.total, rows.elsewhere) == (2, 3, 0)


def test_worktrees_belong_to_their_repository() -> None:
    tree = summary("tree", project=f"{GEMTUI}/.gemini/worktrees/fix", hours=1)
    sessions = (tree, summary("main", hours=2), summary("other", project=API, hours=3))
    for project in (GEMTUI, f"{GEMTUI}/.gemini/worktrees/fix"):
        rows = arrange(sessions, View(), project)
        assert names(rows.rows) == ["tree", "main"]
    rows = arrange(sessions, replace(EVERYWHERE, grouped=True))
    assert names(rows.rows) == [GEMTUI, "tree", "main", API, "other"]
    labels = [row.entry.project for row in rows.rows if isinstance(row, SessionRow)]
    assert labels == ["gemtui@fix", "gemtui", "api"]


def test_matches_elsewhere_are_counted_if_there_are_none_here() -> None:
    rows = arrange(SORTED, View(query="beta"), GEMTUI)
    assert (rows.shown, rows.elsewhere) == (0, 1)


def test_without_a_project_there_is_only_the_wide_scope() -> None:
    assert names(arrange(SORTED, View()).rows) == ["new", "mid", "old"]


def test_groups_come_in_the_order_of_their_first_session() -> None:
    rows = arrange(SORTED, replace(EVERYWHERE, grouped=True))
    assert names(rows.rows) == [API, "new", GEMTUI, "mid", "old"]
    headings = [row for row in rows.rows if isinstance(row, Heading)]
    assert [heading.count for heading in headings] == [1, 2]


def test_a_folded_group_is_its_heading() -> None:
    view = replace(EVERYWHERE, grouped=True, folded=frozenset({GEMTUI}))
    rows = arrange(SORTED, view)
    assert names(rows.rows) == [API, "new", GEMTUI]
    assert rows.shown == 3


def test_a_hash_folder_and_a_slug_folder_of_one_project_are_one_group() -> None:
    sessions = (summary("a", key="gemtui"), summary("b", key="f" * 64))
    rows = arrange(sessions, replace(EVERYWHERE, grouped=True))
    assert names(rows.rows) == [GEMTUI, "a", "b"]


# --- hidden ones -----------------------------------------------------------------------------

COPY = summary("main", "the copy", hours=5, key="f" * 64, flags=(Flag.DUPLICATE,))
FAMILY = (
    summary("other", hours=1),
    summary("sub", hours=2, kind=SessionKind.SUBAGENT, parent="main"),
    summary("main", hours=3, copies=(COPY,)),
    summary("subsub", hours=3, kind=SessionKind.SUBAGENT, parent="sub"),
    summary("empty", hours=4, flags=(Flag.EMPTY,)),
)


def test_hidden_sessions_are_counted() -> None:
    rows = arrange(FAMILY, EVERYWHERE)
    assert names(rows.rows) == ["other", "main"]
    assert (rows.shown, rows.total, rows.concealed) == (2, 2, 4)


def test_shown_hidden_sessions_stand_below_what_they_belong_to() -> None:
    rows = arrange(FAMILY, replace(EVERYWHERE, hidden=True))
    assert names(rows.rows) == ["other", "main", "-sub", "--subsub", "-main", "empty"]
    assert (rows.shown, rows.total, rows.concealed) == (6, 6, 0)


def test_a_subagent_whose_parent_is_filtered_out_stands_alone() -> None:
    rows = arrange(FAMILY, replace(EVERYWHERE, hidden=True, query="subsub"))
    assert names(rows.rows) == ["subsub"]


def test_sessions_that_name_each_other_as_parents_still_show() -> None:
    loop = (
        summary("a", kind=SessionKind.SUBAGENT, parent="b"),
        summary("b", kind=SessionKind.SUBAGENT, parent="a"),
        summary("c", kind=SessionKind.SUBAGENT, parent="c"),
    )
    rows = arrange(loop, replace(EVERYWHERE, hidden=True))
    assert sorted(name.lstrip("-") for name in names(rows.rows)) == ["a", "b", "c"]


def test_checkpoints_of_one_tag_in_two_projects_are_two_rows() -> None:
    tagged = [summary("checkpoint-x", project=p, kind=SessionKind.CHECKPOINT) for p in (GEMTUI, API)]
    rows = arrange(tagged, replace(EVERYWHERE, hidden=True)).rows
    assert len({row.key for row in rows}) == 2


def test_sessions_of_one_id_in_two_projects_are_two_rows() -> None:
    rows = arrange([summary("nightly", project=p) for p in (GEMTUI, API)], EVERYWHERE).rows
    assert len({row.key for row in rows}) == 2


# --- what is the user's own ------------------------------------------------------------------

MARKS = (
    Mark(session="old", pinned=True, name="A tail\x07", tags=("bug", "later")),
    Mark(session="mid", archived=True, note="Umbrella\nand rain", tags=("bugle",)),
)


@each_row(
    ("view", "found"),
    [
        (EVERYWHERE, ["Pinned", "old", "Others", "new"]),
        (replace(EVERYWHERE, sort=Sort.TITLE), ["Pinned", "old", "Others", "new"]),
        (replace(EVERYWHERE, hidden=True), ["Pinned", "old", "Others", "new", "mid"]),
        (replace(EVERYWHERE, grouped=True), ["Pinned", "old", API, "new"]),
        (replace(EVERYWHERE, grouped=True, folded=frozenset({ALL_PINNED})), ["Pinned", API, "new"]),
        (replace(EVERYWHERE, query="is:pinned"), ["Pinned", "old"]),
        (replace(EVERYWHERE, query="!is:pinned"), ["new"]),
        (replace(EVERYWHERE, query="is:archived"), ["mid"]),
        (replace(EVERYWHERE, query="is:archived !umbrella"), []),
        (replace(EVERYWHERE, query="#bug"), ["Pinned", "old"]),
        (replace(EVERYWHERE, query="#BUG", hidden=True), ["Pinned", "old", "Others", "mid"]),
        (replace(EVERYWHERE, query="tail"), ["Pinned", "old"]),
        (replace(EVERYWHERE, query="gamma"), ["Pinned", "old"]),
        (replace(EVERYWHERE, query="rain", hidden=True), ["mid"]),
        (replace(EVERYWHERE, query="is"), []),
    ],
)
def test_pinned_ones_come_first_and_archived_ones_where_they_are_asked_for(view: View, found: list[str]) -> None:
    assert names(arrange(SORTED, view, marks=MARKS).rows) == found


def test_archived_ones_are_counted_as_hidden() -> None:
    rows = arrange(SORTED, EVERYWHERE, marks=MARKS)
    assert (rows.shown, rows.total, rows.concealed) == (2, 2, 1)


def test_a_mark_changes_the_entries_of_its_session_alone() -> None:
    listing = Listing()
    listing.replace_all(SORTED)
    listing.mark({mark.session: mark for mark in MARKS})
    before = {row.key: row.entry for row in entries(listing)}
    listing.mark({"old": MARKS[0], "new": Mark(session="new", name="delta")})
    after = {row.key: row.entry for row in entries(listing)}
    assert after["old"] is before["old"]
    assert (after["new"].title, after["new"].unseen) == ("delta", ("beta",))
    assert not after["mid"].archived


def entries(listing: Listing) -> list[SessionRow]:
    rows = listing.arrange(replace(EVERYWHERE, hidden=True)).rows
    return [row for row in rows if isinstance(row, SessionRow)]


# --- from one snapshot to the next -----------------------------------------------------------


def test_rows_keep_their_keys_and_unchanged_entries() -> None:
    listing = Listing()
    listing.replace_all(SORTED)
    before = listing.arrange(EVERYWHERE).rows
    listing.replace_all((summary("newest", hours=0), replace(SORTED[0], prompts=99), *SORTED[1:]))
    after = listing.arrange(EVERYWHERE).rows
    assert [row.key for row in after[1:]] == [row.key for row in before]
    kept = [row.entry for row in after if isinstance(row, SessionRow)]
    old = [row.entry for row in before if isinstance(row, SessionRow)]
    assert kept[2:] == old[1:]
    assert kept[1].summary.prompts == 99


def test_prepared_sessions_are_listed_with_the_marks_of_the_moment_they_are_shown() -> None:
    listing, newer = Listing(), tuple(SORTED)
    listing.replace_all(SORTED)
    listing.prepare(newer)
    listing.mark({mark.session: mark for mark in MARKS})
    listing.replace_all(newer)
    kept = listing.arrange(EVERYWHERE).rows
    assert names(kept) == names(arrange(SORTED, EVERYWHERE, marks=MARKS).rows)
    listing.prepare(newer)
    listing.replace_all(newer)
    assert listing.arrange(EVERYWHERE).rows == kept


# --- names -----------------------------------------------------------------------------------


def test_projects_of_the_same_name_are_told_apart() -> None:
    sessions = [
        summary("a", project="/home/dev/src/greeter"),
        summary("b", project="/home/dev/tmp/greeter"),
        summary("c", project="/home/dev/notes"),
        summary("d", project=None, key="ab" * 32),
        summary("e", project=None, key="old-slug"),
    ]
    assert list(project_labels(sessions).values()) == ["src/greeter", "tmp/greeter", "notes", "abababab…", "old-slug"]


def test_names_are_cleaned() -> None:
    hostile = summary("a", "evil\x1b]52;c;aGk=\x07 title", project="/tmp/a\x1b[31mb")
    row = arrange([hostile], EVERYWHERE).rows[0]
    assert isinstance(row, SessionRow)
    assert (row.entry.title, row.entry.project) == ("evil␛]52;c;aGk=␇ title", "a␛[31mb")


def test_short_forms() -> None:
    home = Path("/home/dev")
    assert short_path(Path("/home/dev/src/x"), home) == "~/src/x"
    assert short_path(Path("/srv/x"), home) == "/srv/x"
    assert short_path(home, home) == "/home/dev"
    assert short_model("models/gemini-2.5-pro") == "2.5-pro"
