"""Earlier prompts and the files behind an @."""

from __future__ import annotations

from pathlib import Path

import pytest

from gemtui.ui.run.prompt_sources import LONGEST, MOST_PROMPTS, History, matching_paths, paths_below


def test_prompts_outlive_a_start_in_a_private_file(tmp_path: Path) -> None:
    place = tmp_path / "state" / "prompts.jsonl"
    history = History(place)
    for prompt in ("one", "two\nlines", "one"):
        history.add(prompt)
    assert History(place).prompts == ["two\nlines", "one"]
    assert place.stat().st_mode & 0o777 == 0o600
    assert place.parent.stat().st_mode & 0o777 == 0o700


def test_what_another_gemtui_added_or_removed_counts(tmp_path: Path) -> None:
    place = tmp_path / "prompts.jsonl"
    one, other = History(place), History(place)
    one.add("one")
    other.add("two")
    assert History(place).prompts == ["one", "two"]
    place.unlink()
    one.add("three")
    assert History(place).prompts == one.prompts == ["three"]


def test_history_is_bounded(tmp_path: Path) -> None:
    history = History(tmp_path / "prompts.jsonl")
    for number in range(MOST_PROMPTS + 5):
        history.add(str(number))
    history.add("x" * (LONGEST + 1))
    history.add("  \n")
    kept = History(history.path).prompts
    assert (len(kept), kept[0], kept[-1]) == (MOST_PROMPTS, "5", str(MOST_PROMPTS + 4))


def test_a_damaged_history_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    place = tmp_path / "prompts.jsonl"
    place.write_bytes(b'"good"\n{"no": 1}\nhalf\n\xff\n"\\u001b]0;x\\u0007clean"\n')
    assert History(place).prompts == ["good", "␛]0;x␇clean"]


def test_a_history_that_cannot_be_written_stops_nobody(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    history = History(tmp_path / "file" / "prompts.jsonl")
    history.add("one")
    assert history.prompts == ["one"]


def test_files_below_are_those_a_person_means(tmp_path: Path) -> None:
    for name in ("src/b.py", "src/deep/c.py", "a.md", ".git/config", "node_modules/x/y.js"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "bad\x1bname").touch()
    (tmp_path / "loop").symlink_to(tmp_path)
    assert paths_below(tmp_path) == (
        "a.md",
        "loop",
        "src/",
        "src/b.py",
        "src/deep/",
        "src/deep/c.py",
    )
    assert paths_below(tmp_path / "gone") == ()


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ("read", ("src/reader.py", "docs/readme.md", "spread.txt")),
        ("SRC", ()),
        ("sr", ("src/reader.py", "spread.txt", "docs/readme.md")),
        ("dcsm", ("docs/readme.md",)),
    ],
)
def test_the_best_fitting_files_come_first(wanted: str, found: tuple[str, ...]) -> None:
    paths = ("spread.txt", "src/reader.py", "docs/readme.md")
    assert matching_paths(wanted, paths, most=3) == found
    assert matching_paths(wanted, paths, most=1) == found[:1]
