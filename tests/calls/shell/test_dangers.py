"""What is marked in a command that a person is asked about."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gemtui.calls.shell.dangers import NOT_PARSED, TOO_MUCH, dangers
from tests.rows import each_row, table

TABLES = table("calls/dangers.json")


def marked(command: str) -> list[str]:
    return [command[each.start : each.end] for each in dangers(command)]


@each_row("command, expected", TABLES["what_is_dangerous_is_marked_where_it_stands"])
def test_what_is_dangerous_is_marked_where_it_stands(command: str, expected: list[str]) -> None:
    assert marked(command) == expected


@each_row(
    "command, quiet",
    [
        *TABLES["arguments_of_usual_programs_that_run_something_are_marked"],
        ("sed " + "s/s/" * 4000, "sed '$!N;P;D' a"),
    ],
)
def test_arguments_of_usual_programs_that_run_something_are_marked(
    command: str, quiet: str
) -> None:
    assert dangers(command)
    assert not dangers(quiet)


_OUTSIDE = "outside of the project"
_LATER = "affects later commands"


@pytest.fixture
def project(project: Path) -> Path:
    """A repository with a link out of it, and files that are harmless where they are."""
    for name in (".git/hooks", "sub", "made/workflows", "made/in", "kept/tasks"):
        (project / name).mkdir(parents=True)
    for name in ("bazel", "made/bazel", "made/workflows/a", "made/in/ci.py", "conf.py", "sub/a.py"):
        (project / name).touch()
    (project / "kept/tasks/__init__.py").touch()
    (project / "link").symlink_to("..")
    return project


@each_row(
    "command, expected", TABLES["writes_beyond_the_project_and_to_what_runs_later_are_marked"]
)
def test_writes_beyond_the_project_and_to_what_runs_later_are_marked(
    command: str, expected: str, project: Path
) -> None:
    found = " ".join(each.why for each in dangers(command, project))
    if expected:
        assert expected in found
    else:
        assert _OUTSIDE not in found
        assert _LATER not in found


@each_row(
    "command",
    [
        "touch " + " ".join(f"a{at}" for at in range(3000)),
        "; ".join(f"touch a{at}" for at in range(1500)),
        "touch " + "a*/" * 6000,
        "make " + "{a,b}" * 3000,
        "touch /" + "a" * 5000,
    ],
)
def test_more_paths_than_are_looked_at_are_said(command: str, tmp_path: Path) -> None:
    assert TOO_MUCH in {each.why for each in dangers(command, tmp_path)}


@each_row("word", ["~\ud800", "\ud800*/x", "/\ud800/x", "a\0b"])
def test_words_that_are_no_paths_raise_nothing(word: str, tmp_path: Path) -> None:
    dangers(f"touch {word}; make {word}; cd {word}", tmp_path)


def test_a_command_is_judged_in_its_folder(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    assert not dangers("touch ../a", tmp_path, str(tmp_path / "sub"))
    assert dangers("touch ../../a", tmp_path, str(tmp_path / "sub"))


def test_what_is_not_taken_apart_is_marked_whole() -> None:
    assert [each.why for each in dangers("echo x; " * 10_000)] == [NOT_PARSED]


@given(st.text(max_size=60))
def test_places_lie_within_any_text(command: str) -> None:
    found = dangers(command, Path("/project"))
    assert all(0 <= each.start <= each.end <= len(command) for each in found)
