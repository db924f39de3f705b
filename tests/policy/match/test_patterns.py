"""Patterns are read, refused, run and stopped as the CLI's are, on Node 20."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gemtui import worker
from gemtui.policy.file.policy import Policy
from gemtui.policy.match import pattern_process, patterns
from gemtui.policy.match.js_regex import PatternError
from gemtui.policy.match.matching import pattern_sources
from gemtui.policy.match.patterns import PatternTimeout, compile_pattern, slow, unsafe
from tests.patience import PATIENCE
from tests.policy.engine.test_cases import CASES
from tests.rows import each_row, table

TABLES = table("policy/patterns.json")


@each_row("pattern, text, found", TABLES["patterns_match_as_in_javascript"])
def test_patterns_match_as_in_javascript(pattern: str, text: str, found: bool) -> None:
    assert compile_pattern(pattern).matches(text) is found


@each_row(
    "pattern, why",
    [
        *TABLES["what_javascript_refuses_is_an_error_in_words"],
        ("(" * 300 + ")" * 300, "the groups are nested too deeply"),
    ],
)
def test_what_javascript_refuses_is_an_error_in_words(pattern: str, why: str) -> None:
    with pytest.raises(PatternError) as caught:
        compile_pattern(pattern)
    assert why in str(caught.value)
    assert not slow(pattern)


@each_row("pattern", [*TABLES["what_the_cli_finds_unsafe"], "x" * 2049, "😀" * 1025])
def test_what_the_cli_finds_unsafe(pattern: str) -> None:
    assert unsafe(pattern)


@each_row("pattern", [*TABLES["what_the_cli_does_not_find_unsafe"], "x" * 2048, "😀" * 1024])
def test_what_the_cli_does_not_find_unsafe(pattern: str) -> None:
    assert unsafe(pattern) is None


SLOW = [*TABLES["slow"], "a?" * 30 + "a" * 30, "(a|a)" * 30 + "b", "(ab?){0,80}" * 20 + "x"]
QUICK = [*TABLES["quick"], "x" * 2000]


@each_row("pattern", SLOW)
def test_a_pattern_that_is_slow_with_its_own_characters_is_reported(pattern: str) -> None:
    assert slow(pattern)


@each_row("pattern", QUICK)
def test_a_quick_pattern_is_not_called_slow(pattern: str) -> None:
    assert not slow(pattern)


@each_row(
    "pattern, text",
    [
        ("(a|a)*b", "a" * 60 + "!b"),
        ("(a|aa)+$", "a" * 60 + "!"),
        ("a?" * 30 + "[ab]" * 30, "a" * 29),
        (".*.*.*[xy]", "a" * 20_000),
    ],
)
def test_a_pattern_that_would_run_for_ever_is_stopped(
    pattern: str, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patterns, "LIMIT", 0.2)
    with pytest.raises(PatternTimeout, match=r"took longer than 0\.2 s") as caught:
        patterns.Pattern(pattern).matches(text)
    assert (caught.value.source, caught.value.seconds) == (pattern, 0.2)


def test_a_pattern_that_had_to_be_stopped_gets_less_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patterns, "LIMIT", 0.2)
    pattern, given = patterns.Pattern("(a|a)*[bc]"), []
    for _ in range(6):
        with pytest.raises(PatternTimeout) as caught:
            pattern.matches("a" * 60)
        given.append(caught.value.seconds)
    assert given == [pytest.approx(s) for s in (0.2, 0.1, 0.2 / 3, 0.05, 0.05, 0.05)]


def test_a_pattern_that_ends_is_answered_by_the_process() -> None:
    pattern = compile_pattern("(a|a)*b😀")
    assert pattern.matches("a" * 60 + "b😀") is True
    assert pattern.matches("aab") is False
    assert compile_pattern("(?:a|b|ab)*c").matches("é\ud800" + "ab" * 40 + "c") is True


@each_row(
    "pattern, text, matches",
    [
        (r'\x00"file_path":"a\.py"\0', '{\0"file_path":"a.py"\0}', True),
        (r'"command":"git\ push(?:[\s"]|\\")', '{\0"command":"git push -f"\0}', True),
        ("git (push|pull)", "npm test", False),
        (r'"src/[^"]*\.py"', '{\0"file_path":"src/a/b.py"\0}', True),
        (r'"src/[^"]*\.py"', '{\0"file_path":"src/a.txt","old":"b.py"\0}', False),
    ],
)
def test_what_is_found_quickly_needs_no_process(pattern: str, text: str, matches: bool) -> None:
    pattern_process.end()
    assert compile_pattern(pattern).matches(text) is matches
    assert pattern_process._PROCESS._worker is None


@each_row(
    "pattern, text",
    [("a*b*c", "aac"), ("(ab)*c", "abc"), ("a(b)", "ab"), ("a|b", "b"), ("a*c", "a" * 2000 + "c")],
)
def test_what_may_take_long_is_left_to_the_process(
    pattern: str, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pattern_process, "found", lambda *_: None)
    with pytest.raises(PatternTimeout):
        compile_pattern(pattern).matches(text)


def test_a_process_that_died_is_started_anew() -> None:
    pattern = patterns.Pattern("(a|a)*[bc]")
    assert pattern.matches("a" * 60 + "b")
    process = pattern_process._PROCESS._worker
    assert process is not None
    os.kill(process.pid, signal.SIGKILL)
    while process.is_running():
        pass
    assert pattern.matches("a" * 60 + "b")


def test_an_answer_that_nobody_waited_for_is_not_taken_for_the_next_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    assert pattern_process.found("(a+)+b", "aab", PATIENCE) is True
    with monkeypatch.context() as interrupted:
        interrupted.setattr(worker, "_receive", interrupt)
        with pytest.raises(KeyboardInterrupt):
            pattern_process.found("(a+)+b", "aab", PATIENCE)
    assert pattern_process.found("(a+)+b", "aaa", PATIENCE) is False


def test_an_ended_process_leaves_nothing_behind() -> None:
    assert patterns.Pattern("(a|a)*[bc]").matches("a" * 60 + "b")
    process = pattern_process._PROCESS._worker
    assert process is not None
    pattern_process.end()
    assert not process.is_running()
    pattern_process.end()


def test_the_process_ends_with_the_program() -> None:
    program = (
        "from gemtui.policy.match import pattern_process, patterns\n"
        "assert patterns.Pattern('(a|a)*[bc]').matches('a' * 60 + 'b')\n"
        "print(pattern_process._PROCESS._worker.pid)\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    with pytest.raises(ProcessLookupError):
        os.kill(int(done.stdout), 0)


def test_without_a_process_no_pattern_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    pattern_process.end()
    with pytest.raises(PatternTimeout):
        patterns.Pattern("(a|a)*[bc]").matches("a" * 60 + "b")


_PIECES = st.sampled_from(TABLES["pieces"])


@given(st.lists(_PIECES, max_size=20).map("".join), st.text(max_size=20))
def test_every_pattern_is_read_or_refused(pattern: str, text: str) -> None:
    unsafe(pattern)
    try:
        made = compile_pattern(pattern)
    except PatternError:
        return
    assert made.matches(text) in (True, False)


def test_the_patterns_that_were_observed_are_all_quick() -> None:
    cases = [json.loads(line) for line in CASES.read_text(encoding="utf-8").splitlines()]
    texts = {text for case in cases for text in case["files"].values()}
    rules = [rule for text in texts for rule in Policy.parse(text).rules]
    sources = {source for rule in rules for source in pattern_sources(rule) if source}
    assert len(sources) > 30
    assert [source for source in sources if slow(source)] == []
