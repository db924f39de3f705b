"""`gemtui search`, as it is typed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from gemtui.paths import cache_dir
from gemtui.search import matching
from tests.cli.conftest import Answer, Gemtui, has, values
from tests.cli.shapes import fits
from tests.patience import PATIENCE
from tests.rows import each_row
from tests.sessions import logs, stores

GREETER = "/home/dev/src/greeter"
MAIN_OTHER = "/home/dev/notes"
INVESTIGATED = "379b10d4-2d75-4878-b7af-f507dc35be26"

pytestmark = pytest.mark.usefixtures("store")


def test_shape_and_facts(gemtui: Gemtui) -> None:
    answer = gemtui("search --everywhere --json the greeting")
    assert (answer.code, answer.err) == (0, "")
    fits(answer.json, "Search")
    assert answer.json["query"] == "the greeting"
    hits = answer.json["hits"]
    assert {"user", "tool"} <= {hit["kind"] for hit in hits}
    assert answer.json["total_sessions"] == len({(hit["session"], hit["project"]) for hit in hits})
    for hit in hits:
        words = {hit["snippet"][start:end].lower() for start, end in hit["spans"]}
        assert words <= {"the", "greeting"}
    assert values(hits, "score") == sorted((hit["score"] for hit in hits), reverse=True)


def test_every_session_that_matches_is_found_with_a_large_limit(gemtui: Gemtui) -> None:
    few = gemtui.json("search --everywhere --limit 2 tool:shell")
    all_hits = gemtui.json("search --everywhere --limit 100000 tool:shell")
    assert len(few["hits"]) == 2
    assert values(few["hits"], "message") == values(all_hits["hits"], "message")[:2]
    assert few["total_sessions"] == all_hits["total_sessions"]
    sessions = {(hit["session"], hit["project"]) for hit in all_hits["hits"]}
    assert len(sessions) == all_hits["total_sessions"] > 2


@pytest.mark.parametrize("fetched", [2000, 5])
def test_pages_have_each_hit_once_while_sessions_come(
    store: Path, gemtui: Gemtui, monkeypatch: pytest.MonkeyPatch, fetched: int
) -> None:
    monkeypatch.setattr(matching, "_RANKED", fetched)

    def names(answer: Answer) -> list[str]:
        return [f"{hit['message']} {hit['snippet']}" for hit in answer.json["hits"]]

    whole = names(gemtui("search greeting --everywhere --limit 9999 --json"))
    paged: list[str] = []
    cursor: tuple[str, ...] = ()
    for number in range(100):
        page = gemtui("search greeting --everywhere --limit 2", *cursor, "--json")
        paged += names(page)
        if (following := page.json["next_cursor"]) is None:
            break
        cursor = ("--cursor", following)
        if not number:
            records = [logs.header("99999999-new"), logs.user("new", "greeting " * 9)]
            logs.write(store / "tmp/new/chats/session-2026-11-29T10-00-99999999.jsonl", records)
    assert sorted(each for each in paged if not each.startswith("new ")) == sorted(whole)
    assert paged.index(whole[0]) == 0
    gemtui("search hello --everywhere", *cursor, "--json").refuses("belongs to another query")


def test_what_a_subagent_said_counts_as_its_session_s(gemtui: Gemtui) -> None:
    hits = gemtui.json("search --everywhere objective")["hits"]
    said = {(hit["session"], hit["subagent"] is not None) for hit in hits}
    assert (INVESTIGATED, True) in said


def test_lines_are_grouped_by_session(gemtui: Gemtui) -> None:
    answer = gemtui("search --everywhere --limit 3", "greeting printed")
    heads = [line for line in answer.out.splitlines() if not line.startswith(" ")]
    assert answer.code == 0
    assert heads[0].split()[0] == INVESTIGATED[:8]
    assert "  user        Use the investigator to find where the greeting is printed" in answer.out


def test_one_project_is_searched_if_it_is_named(gemtui: Gemtui) -> None:
    here = gemtui.json("search --project", GREETER, "file")
    everywhere = gemtui.json("search --everywhere file")
    assert {hit["project"] for hit in here["hits"]} == {GREETER}
    assert here["total_sessions"] < everywhere["total_sessions"]


def test_an_incomplete_search_without_hits_only_says_so(
    gemtui: Gemtui, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gemtui.search.search.AT_ONCE", 0)  # no file is small enough to be sure
    answer = gemtui("search --everywhere qqxxyyzz")
    assert answer.code == 1
    assert answer.complaint.startswith(
        "gemtui: no matches so far: the search index is being built ("
    )


def test_dropped_messages_are_searched_if_asked_for(home: Path, gemtui: Gemtui) -> None:
    said = [logs.header(), logs.user("u", "a secret"), logs.gemini("g", "no"), {"$rewindTo": "u"}]
    stores.session(home / ".gemini", stores.uuid(1), said)
    assert gemtui("search secret").code == 1
    gemtui.ok("search --dropped secret").shows("user        a secret")


def test_the_index_is_brought_up_to_date_if_asked_for(gemtui: Gemtui) -> None:
    assert gemtui.json("doctor")["files"]["search"]["files"] is None
    without = gemtui("search --everywhere --json greeting")
    made = gemtui("search --index --everywhere --json greeting")
    assert (made.code, made.err) == (0, "")
    assert gemtui.json("doctor")["files"]["search"]["files"] > 5
    again = gemtui("search --everywhere --json greeting")
    for answer in (made, again):
        assert places(answer) == places(without)
    lists = [
        gemtui("search", *words, "--everywhere", "greeting").out for words in ([], ["--index"])
    ]
    assert lists[0] == lists[1]


def places(answer: Answer) -> set[tuple[str, str]]:
    return {(hit["session"], hit["message"]) for hit in answer.json["hits"]}


def test_an_index_that_can_not_be_written_is_said(gemtui: Gemtui) -> None:
    cache_dir().mkdir(parents=True, exist_ok=True)
    (cache_dir() / "search").write_text("no folder")
    gemtui.ok("search --index --everywhere greeting").tells("the search index can't be written")


def test_tags_and_pins_narrow_down(gemtui: Gemtui) -> None:
    gemtui.ok("mark", INVESTIGATED, "--tag", "later")
    found = gemtui.json("search --everywhere", "tag:later greeting")
    assert {hit["session"] for hit in found["hits"]} == {INVESTIGATED}


def test_lines_name_a_session_as_its_user_does(gemtui: Gemtui) -> None:
    gemtui("mark", INVESTIGATED, "--name", "What calls greet")
    assert "What calls greet" in gemtui("search --everywhere objective").out


@each_row("command", [("search", "needle"), ("sessions", "--everywhere")])
def test_a_project_known_only_by_its_hash_has_a_short_name(
    home: Path, gemtui: Gemtui, command: tuple[str, ...]
) -> None:
    key = stores.hashed("/home/dev/gone")
    stores.session(
        home / ".gemini", stores.uuid(1), [logs.header(), logs.user("u", "needle")], key=key
    )
    said = gemtui(*command).out
    assert (f" {key[:8]}… " in said, key[:9] in said) == (True, False)


@each_row("words", [["--json"], []])
def test_hostile_text_is_clean(home: Path, gemtui: Gemtui, words: list[str]) -> None:
    evil = "needle \x1b]0;title\x07 \u202e evil\r\nnext"
    stores.session(home / ".gemini", stores.uuid(1), [logs.header(), logs.user("u", evil)])
    answer = gemtui.ok("search", *words, "needle")
    assert not {"\x1b", "\x07", "\u202e", "\r"} & set(answer.out)
    if words:
        assert json.loads(answer.out)["hits"][0]["spans"] == [[0, 6]]


def test_the_prompts_of_lost_sessions_are_found_after_all_others(
    store: Path, gemtui: Gemtui
) -> None:
    known = "63a18d40-df0d-4a78-8965-77892f4a9218"
    prompts = [
        ("aaaa1111-2", "Where does the\nGreeting come from?"),
        ("aaaa2222-2", "another"),
        (known, "a greeting"),
    ]
    stores.typed(store, prompts, key="greeter")
    answer = gemtui.json("search --everywhere greeting --limit 99999")
    fits(answer, "Search")
    assert [hit["session"] for hit in answer["hits"] if hit.get("lost")] == ["aaaa1111-2"]
    last = answer["hits"][-1]
    has(last, session="aaaa1111-2", kind="user", snippet="Greeting come from?", project=GREETER)
    assert "aaaa1111-2" in gemtui("search --everywhere where greeting come").out
    for query, found in {
        "where greeting": True,
        "in:prompt where greeting come": True,
        '"greeting come" where': True,
        "where -another greeting come": True,
        "after:2026-01-03 where greeting come": False,
        "tool:shell where greeting come": False,
        "project:greeter where greeting come": True,
        "-project:greeter where greeting come": False,
        "where greeting come another": False,
    }.items():
        hits = gemtui("search --everywhere --limit 99999 --json --", query).json["hits"]
        assert any(hit.get("lost") for hit in hits) is found, query
    assert not any(
        hit.get("lost") for hit in gemtui.json(f"search --project {MAIN_OTHER} where")["hits"]
    )


WITHOUT_ENGINE = """
import sys
sys.modules["tantivy"] = None
from gemtui.cli import main
sys.exit(main(["doctor", "--help"]) or main(["search", "hello"]))
"""


@pytest.mark.usefixtures("home")
def test_without_its_engine_the_search_says_so_and_all_else_works() -> None:
    words = [sys.executable, "-c", WITHOUT_ENGINE]
    ended = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert ended.returncode == 1
    assert ended.stderr.startswith("gemtui: the search needs the package tantivy")
    assert ended.stderr.count("\n") == 1


def test_the_advice_if_nothing_is_found_names_the_likely_cause(gemtui: Gemtui) -> None:
    every = "search --everywhere"
    gemtui(every, "after:1h greeting").fails("no matches in this period: give other dates")
    gemtui(every, "project:note5 greeting").fails("no project “note5”: did you mean", "notes?")


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("--since 7d", "--since: give the period in QUERY, such as after:7d"),
        ("--until 2026", "--until: give the period in QUERY, such as before:"),
        ("--limit abc", "'abc' is not a whole number of at least 1"),
        ("--limit 0", "'0' is not a whole number of at least 1"),
    ],
)
def test_a_wrong_option_names_what_is_meant(gemtui: Gemtui, line: str, complaint: str) -> None:
    gemtui("search greeting", *line.split()).refuses(complaint)
