"""Patches, applied by git itself."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gemtui.transcript.patch import file_patch, patch_of_diff

LINES = st.lists(st.sampled_from(["a", "b", "", "c\r", "d\x0ce", "é", "-- x", "@@ y"]), max_size=9)
CONTENT = st.none() | st.builds(
    lambda lines, end: "\n".join(lines) + end, LINES, st.sampled_from(["", "\n"])
)
NAMES = st.sampled_from(["a.txt", "two words.py", 'a"b', "back\\slash", "tab\there", "été/ñ.txt"])


def apply(folder: Path, patch: str) -> None:
    subprocess.run(
        ["git", "apply", "--whitespace=nowarn"],
        input=patch.encode(), cwd=folder, check=True, capture_output=True,
    )  # fmt: skip


@settings(max_examples=60)
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


def test_a_stored_diff_becomes_a_patch(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    head = "Index: a.txt\n=====\n--- a.txt\tCurrent\n+++ a.txt\tProposed\n"
    stored = f"{head}@@ -1,2 +1,2 @@\n one\n-two\n+2\n"
    apply(tmp_path, patch_of_diff("a.txt", stored, is_new=False))
    assert (tmp_path / "a.txt").read_text() == "one\n2\n"
    assert patch_of_diff("a.txt", "Index: a.txt\n", is_new=False) == ""
