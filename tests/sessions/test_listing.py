from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from gemtui.marks import Mark
from gemtui.sessions.catalog.columns import Sort
from gemtui.sessions.catalog.entries import ListQuery, SessionRow, short_model
from gemtui.sessions.catalog.listing import (
    ALL_PINNED,
    Heading,
    Listing,
    Row,
    Rows,
    View,
    project_labels,
)
from gemtui.sessions.catalog.summary import CallFields, Flag, Summary
from gemtui.sessions.store.store import SessionKind
from gemtui.text import short_path
from tests.rows import each_row, table
from tests.sessions.summaries import summary

TABLES = table("session_files/listing.json")

EVERYWHERE = View(everywhere=True)
GEMTUI, API = "/home/dev/src/gemtui", "/home/dev/src/api"


def arrange(
    sessions: Sequence[Summary], view: View, project: str | None = None, marks: Sequence[Mark] = ()
) -> Rows:
    listing = Listing(None if project is None else Path(project))
    listing.replace_all(sessions)
    listing.mark({mark.session: mark for mark in marks})
    return listing.arrange(view)


def names(rows: Sequence[Row]) -> list[str]:
    """Ids of session rows with a dash for each step below; group names of headings."""
    return [
        "-" * row.depth + row.entry.summary.id if isinstance(row, SessionRow) else row.name
        for row in rows
    ]


def session(row: dict[str, Any]) -> Summary:
    """The session that a row of a table tells."""
    options = dict(row)
    options["flags"] = tuple(map(Flag, row.get("flags", ())))
    options["kind"] = SessionKind(row.get("kind", "main"))
    if "copy" in row:
        options["copies"] = (session({"id": row["id"]} | options.pop("copy")),)
    return summary(**options)


def view(options: dict[str, Any]) -> View:
    """The view of a table's options, everywhere if they don't say otherwise."""
    folded = frozenset(options.get("folded", ()))
    sort = Sort(options.get("sort", "updated"))
    return replace(EVERYWHERE, **options | {"folded": folded, "sort": sort})


SORTED = [session(row) for row in TABLES["sorted"]]

# --- search ----------------------------------------------------------------------------------

SEARCHED = (
    summary("4ba95511-271c", "Fix the JSONL parser", hours=1),
    summary("c0ffee00-1f7e", "Why is the build slow?", project=API, hours=2),
    summary("7024884b-dece", "The Parser, explained", hours=3, models=("gemini-3-flash",)),
)


@each_row("query, found", TABLES["words"])
def test_words_are_anded_over_title_project_model_and_id(query: str, found: list[str]) -> None:
    rows = arrange(SEARCHED, replace(EVERYWHERE, query=query))
    assert names(rows.rows) == found
    assert rows.shown == len(found)
    assert rows.total == 3


@each_row("query, found", TABLES["fields"])
def test_fields_are_those_of_the_full_text_search(query: str, found: list[str]) -> None:
    failed = CallFields("replace", failed=True, paths=("src/main.py",))
    sessions = (
        replace(
            summary("a", "The slow build"), calls=(CallFields("run_shell_command", failed=False),)
        ),
        replace(summary("b", "A fast build, slow", project=API, failures=1), calls=(failed,)),
        summary("c", "Else", models=("gemini-3-flash",)),
    )
    marks = [Mark(session="c", pinned=True), Mark(session="a", tags=("slow",))]
    rows = arrange(sessions, replace(EVERYWHERE, query=query), marks=marks).rows
    assert [row.entry.summary.id for row in rows if isinstance(row, SessionRow)] == found


@each_row("query, found", TABLES["times"])
def test_times_are_those_of_the_last_use(query: str, found: list[str]) -> None:
    named = (*SEARCHED[:2], summary("7024884b-dece", "Parser", hours=20))
    rows = [row for row in arrange(named, EVERYWHERE).rows if isinstance(row, SessionRow)]
    now = named[0].when + timedelta(minutes=30)
    selected = ListQuery(query, now).select(row.entry for row in rows)
    assert [entry.summary.id for entry in selected] == found


@each_row("query, text, found", TABLES["spans"])
def test_spans_are_where_the_words_stand(query: str, text: str, found: list[str]) -> None:
    assert [text[start:end] for start, end in ListQuery(query).spans(text)] == found


@each_row("query, found", TABLES["one call"])
def test_fields_of_calls_mean_one_and_the_same_call(query: str, found: list[str]) -> None:
    shell, edit = "run_shell_command", "replace"
    both = replace(
        summary("a"), calls=(CallFields(edit, failed=True), CallFields(shell, failed=False))
    )
    failed = replace(summary("b"), calls=(CallFields(shell, failed=True),))
    assert names(arrange((both, failed), replace(EVERYWHERE, query=query)).rows) == found


@each_row("query, found", TABLES["symbols"])
def test_symbols_are_found_in_titles_with_and_without_a_variation_selector(
    query: str, found: list[str]
) -> None:
    sessions = (summary("a", "rated ⭐️ and 🔑"), summary("b", "rated ⭐, a != b -> c"))
    assert names(arrange(sessions, replace(EVERYWHERE, query=query)).rows) == found


# --- order, scope and groups -----------------------------------------------------------------


@each_row("sort, order, reversed_order", TABLES["order"])
def test_each_property_orders_the_list(
    sort: str, order: list[str], reversed_order: list[str]
) -> None:
    by_property = replace(EVERYWHERE, sort=Sort(sort))
    assert names(arrange(SORTED, by_property).rows) == order
    assert names(arrange(SORTED, replace(by_property, reverse=True)).rows) == reversed_order


def test_the_order_is_said_in_words() -> None:
    assert View().order == "newest first"
    assert View(sort=Sort.TOKENS, reverse=True).order == "fewest tokens first"


@each_row("promise, sessions, options, project, found, counts", TABLES["arranged"])
def test_sessions_are_arranged_as_promised(
    promise: str,
    sessions: Any,
    options: dict[str, Any],
    project: str | None,
    found: list[str],
    counts: dict[str, int],
) -> None:
    rows_of_sessions = TABLES[sessions] if isinstance(sessions, str) else sessions
    rows = arrange([session(row) for row in rows_of_sessions], view(options), project)
    assert names(rows.rows) == found, promise
    assert {name: getattr(rows, name) for name in counts} == counts, promise


def test_groups_count_their_sessions_and_worktrees_have_a_label() -> None:
    grouped = replace(EVERYWHERE, grouped=True)
    headings = [row for row in arrange(SORTED, grouped).rows if isinstance(row, Heading)]
    assert [heading.count for heading in headings] == [1, 2]
    projects = (f"{GEMTUI}/.gemini/worktrees/fix", GEMTUI, API)
    rows = arrange([summary(project, project=project) for project in projects], grouped).rows
    labels = [row.entry.project for row in rows if isinstance(row, SessionRow)]
    assert labels == ["gemtui@fix", "gemtui", "api"]


def test_sessions_that_name_each_other_as_parents_still_show() -> None:
    loop = (
        summary("a", kind=SessionKind.SUBAGENT, parent="b"),
        summary("b", kind=SessionKind.SUBAGENT, parent="a"),
        summary("c", kind=SessionKind.SUBAGENT, parent="c"),
    )
    hidden = replace(EVERYWHERE, hidden=True)
    assert names(arrange(loop, hidden).rows) == ["c", "a", "-b"]
    assert names(arrange(loop[:2], hidden).rows) == ["a", "-b"]


@each_row("id, kind", [("checkpoint-x", SessionKind.CHECKPOINT), ("nightly", SessionKind.MAIN)])
def test_what_has_one_id_in_two_projects_is_two_rows(id: str, kind: SessionKind) -> None:
    both = [summary(id, project=project, kind=kind) for project in (GEMTUI, API)]
    rows = arrange(both, replace(EVERYWHERE, hidden=True)).rows
    assert len({row.key for row in rows}) == 2


# --- what is the user's own ------------------------------------------------------------------

MARKS = (
    Mark(session="old", pinned=True, name="A tail\x07", tags=("bug", "later")),
    Mark(session="mid", archived=True, note="Umbrella\nand rain", tags=("bugle",)),
)


@each_row(
    "options, found",
    [*TABLES["marked"], ({"grouped": True, "folded": [ALL_PINNED]}, ["Pinned", API, "new"])],
)
def test_pinned_ones_come_first_and_archived_ones_where_they_are_asked_for(
    options: dict[str, Any], found: list[str]
) -> None:
    assert names(arrange(SORTED, view(options), marks=MARKS).rows) == found


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


def test_prepared_sessions_are_in_order_before_they_are_shown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    listing, newer = Listing(), (summary("newest", hours=0), *SORTED)
    listing.replace_all(SORTED)
    listing.arrange(EVERYWHERE)
    listing.prepare(newer)
    before = names(arrange(SORTED, EVERYWHERE).rows)
    monkeypatch.delattr("gemtui.sessions.catalog.listing._sorted")
    listing.replace_all(newer)
    listing.mark({})
    assert names(listing.arrange(EVERYWHERE).rows) == ["newest", *before]
    oldest = listing.arrange(replace(EVERYWHERE, reverse=True))
    assert names(oldest.rows) == [*reversed(before), "newest"]


def test_a_list_that_has_changed_is_arranged_like_a_new_one() -> None:
    chance, shown, folder = random.Random(1), View(), GEMTUI
    sessions: tuple[Summary, ...] = ()
    marks: tuple[Mark, ...] = ()
    listing = Listing(Path(folder))
    for change in chance.choices(("sessions", "marks", "folder", "orders", *VIEWS), k=500):
        if change == "sessions":
            sessions = tuple(ANY[at] for at in sorted(chance.sample(range(len(ANY)), 5)))
            listing.prepare(sessions)
            marks = MARKS[: chance.randrange(3)]
            listing.mark({mark.session: mark for mark in marks})
            listing.replace_all(sessions)
        elif change == "marks":
            marks = MARKS[: chance.randrange(3)]
            listing.mark({mark.session: mark for mark in marks})
        elif change == "folder":
            folder = chance.choice((GEMTUI, API))
            listing.limit(Path(folder))
        elif change == "orders":
            listing.prepare_orders()
        else:
            shown = replace(shown, **{change: chance.choice(VIEWS[change])})
        changed, new = listing.arrange(shown), arrange(sessions, shown, folder, marks)
        assert facts(changed) == facts(new), shown


EITHER = (False, True)
VIEWS: dict[str, Sequence[object]] = {
    "query": ("", "a", "is:archived"),
    "sort": tuple(Sort),
    "reverse": EITHER,
    "grouped": EITHER,
    "everywhere": EITHER,
    "hidden": EITHER,
}
ANY = (
    *SORTED,
    *SEARCHED,
    summary("child", "a copy", hours=7, kind=SessionKind.SUBAGENT, parent="mid"),
    summary("old-child", "Alpha", hours=9, kind=SessionKind.SUBAGENT, parent="child"),
)


def facts(rows: Rows) -> Any:
    return names(rows.rows), rows.shown, rows.total, rows.concealed, rows.elsewhere


# --- names -----------------------------------------------------------------------------------


def test_projects_of_the_same_name_are_told_apart() -> None:
    sessions = [
        summary("a", project="/home/dev/src/greeter"),
        summary("b", project="/home/dev/tmp/greeter"),
        summary("c", project="/home/dev/notes"),
        summary("d", project=None, key="ab" * 32),
        summary("e", project=None, key="old-slug"),
    ]
    assert list(project_labels(sessions).values()) == [
        "src/greeter",
        "tmp/greeter",
        "notes",
        "abababab…",
        "old-slug",
    ]


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
