"""Patches, applied by git itself."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gemtui.transcript.diffs import NoPatch, apply_diff, file_patch
from tests.deep import some_of
from tests.rows import each_row, table

TABLES = table("transcript/patch.json")

LINES = st.lists(st.sampled_from(["a", "b", "", "c\r", "d\x0ce", "é", "-- x", "@@ y"]), max_size=9)
CONTENT = st.none() | st.builds(
    lambda lines, end: "\n".join(lines) + end, LINES, st.sampled_from(["", "\n"])
)
NAMES = st.sampled_from(["a.txt", "two words.py", 'a"b', "back\\slash", "tab\there", "été/ñ.txt"])


def apply(folder: Path, patch: str) -> None:
    subprocess.run(
        ["git", "apply", "--whitespace=nowarn"],
        input=patch.encode(),
        cwd=folder,
        check=True,
        capture_output=True,
    )


@settings(max_examples=some_of(60))
@given(name=NAMES, before=CONTENT, after=CONTENT)
def test_git_makes_of_the_one_the_other(
    tmp_path_factory: pytest.TempPathFactory, name: str, before: str | None, after: str | None
) -> None:
    folder = tmp_path_factory.mktemp("tree")
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    if before is not None:
        path.write_bytes(before.encode())
    patch = file_patch(name, before, after)
    assert (patch == "") == (before == after)
    if patch:
        apply(folder, patch)
    assert (path.read_bytes().decode() if path.exists() else None) == after


def test_a_file_of_very_many_lines_is_replaced(tmp_path: Path) -> None:
    before, after = "same\n" * 9_000, "same\n" * 9_001 + "new"
    (tmp_path / "long").write_text(before)
    apply(tmp_path, file_patch("long", before, after))
    assert (tmp_path / "long").read_text() == after


HUNK = "@@ -1,2 +1,2 @@\n one\n-two\n+2\n"


@each_row("before, diff, after", TABLES["a_recorded_diff_makes_of_the_one_text_the_other"])
def test_a_recorded_diff_makes_of_the_one_text_the_other(
    before: str, diff: str, after: str | None
) -> None:
    if after is None:
        with pytest.raises(NoPatch):
            apply_diff(before, diff)
    else:
        assert apply_diff(before, diff) == after


SECOND = "diff --git a/../evil b/../evil\nnew file mode 120000\n--- /dev/null\n+++ b/../evil\n"


@each_row("diff", TABLES["a_recorded_diff_of_more_or_less_than_one_file_is_refused"])
def test_a_recorded_diff_of_more_or_less_than_one_file_is_refused(diff: str) -> None:
    with pytest.raises(NoPatch):
        apply_diff("one\ntwo\n", diff)


@each_row(
    "name", [*TABLES["a_name_that_git_refuses_makes_no_patch"], "x" * 256, "x/" * 2047 + "xx"]
)
def test_a_name_that_git_refuses_makes_no_patch(name: str) -> None:
    with pytest.raises(NoPatch):
        file_patch(name, None, "x\n")


def test_a_hunk_with_a_huge_number_is_not_taken_for_a_second_file() -> None:
    with pytest.raises(NoPatch, match="corrupt"):
        apply_diff("one\n", f"@@ -{'1' * 5000},1 +1,1 @@\n-one\n+2\n")
    with pytest.raises(NoPatch, match="more than one file"):
        apply_diff("one\ntwo\n", HUNK + SECOND)


def test_text_that_is_not_utf_8_makes_no_patch() -> None:
    for before, after in [("a\n", "\udce9\n"), ("\ud800\n", "a\n"), ("caf\ufffd\n", "a\n")]:
        with pytest.raises(NoPatch, match="UTF-8"):
            file_patch("a", before, after)
    assert file_patch("a", "a\n", "\ufffd\n")
