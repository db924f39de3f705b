"""What docstrings and comments refer to can be read here."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FACTS = ROOT / "assets" / "gemini-cli.md"
SOURCES = sorted(path for part in ("gemtui", "tests") for path in (ROOT / part).rglob("*.py"))
ELSEWHERE = re.compile(
    r"\bcontract(?: sections?)? \d|\bconformance\b|\bpolicy-engine\b|\b(?:GEMINI|ADR)-\d|\btrap \d"
    r"|\b(?:of|in|have) interfaces\b",
    re.IGNORECASE,
)
"""Papers that are not in the repository, as they used to be cited."""
ANCHORS = re.compile(r"gemini-cli\.md((?:,? ?#[a-z-]+)+)")


def anchors_of(text: str) -> list[str]:
    """The anchors of `gemini-cli.md` in a text; `gemini-cli.md#ghosts, #growth` names both."""
    return [anchor for found in ANCHORS.findall(text) for anchor in re.findall("#([a-z-]+)", found)]


def headings() -> set[str]:
    """The anchors that the headings of the facts have on a web page."""
    found = re.findall(r"^#+ (.+)$", FACTS.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in found}


def prose(source: str) -> Iterator[str]:
    """The docstrings of a module, of its variables too, and its comments, on one line each."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Expr(value=ast.Constant(value=str(text))):
                yield " ".join(text.split())
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.string


Prose = list[tuple[Path, str]]


@pytest.fixture(scope="module")
def all_prose() -> Prose:
    """The prose of all modules that cite something; most do not, and parsing takes its time."""
    sources = {path: path.read_text(encoding="utf-8") for path in SOURCES}
    return [
        (path, text)
        for path, source in sources.items()
        if _may_cite(" ".join(source.split()))
        for text in prose(source)
    ]


def _may_cite(line: str) -> bool:
    return bool(ANCHORS.search(line) or ELSEWHERE.search(line))


def test_every_anchor_that_is_named_is_a_section_of_the_facts(all_prose: Prose) -> None:
    named = {(path.name, anchor) for path, text in all_prose for anchor in anchors_of(text)}
    assert len(named) > 20
    assert {each for each in named if each[1] not in headings()} == set()


def test_the_facts_own_links_lead_to_their_sections() -> None:
    links = set(re.findall(r"\]\(#([^)]+)\)", FACTS.read_text(encoding="utf-8")))
    assert links
    assert links <= headings()


def test_nothing_is_cited_that_is_not_in_the_repository(all_prose: Prose) -> None:
    assert [(path.name, text) for path, text in all_prose if ELSEWHERE.search(text)] == []


@pytest.mark.parametrize(
    "text",
    [
        "(contract 1.6)",
        "as conformance section 4 decides",
        '(policy-engine, "Names")',
        "GEMINI-007",
        "names as in interfaces",
    ],
)
def test_such_a_citation_would_be_seen(text: str) -> None:
    assert ELSEWHERE.search(text)


def test_an_anchor_is_seen_in_every_form() -> None:
    assert anchors_of("(assets/gemini-cli.md#ghosts, #args-text)") == ["ghosts", "args-text"]
