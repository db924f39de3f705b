from __future__ import annotations

from gemtui.policy.match.path_patterns import describe_files, files_pattern, folder_pattern
from tests.rows import each_row, table

TABLES = table("policy/path_patterns.json")

ROOTS = [(), ("/home/me/project/",), ("/a(b)/", "/c [d]/")]


@each_row("roots", ROOTS)
@each_row("folder", ["src", "src/a.b", "my files", "a+b (c)", "ünï", "x|y", "$[1]"])
def test_a_proposed_folder_is_said_back(folder: str, roots: tuple[str, ...]) -> None:
    assert describe_files(folder_pattern(folder, roots)) == f"files below {folder}/"


@each_row("roots", ROOTS)
def test_proposed_files_are_said_back(roots: tuple[str, ...]) -> None:
    assert describe_files(files_pattern(["README.md"], roots)) == "the file README.md"
    assert describe_files(files_pattern(["a|b.txt", "c (d)"], roots)) == "the files a|b.txt, c (d)"


def test_the_simplest_form_by_hand_is_said_as_it_is() -> None:
    assert describe_files('"file_path":"src/') == "paths that begin with src/"
    assert describe_files(r'\x00"file_path":"src\/a') == "paths that begin with src/a"
    said = "paths that begin with src/ or tests/"
    assert describe_files('"file_path":"(src|tests)/') == said
    assert describe_files('"file_path":"(src/|tests/)') == said


@each_row(
    "pattern",
    [
        *TABLES["other_patterns_are_not_put_in_words"],
        folder_pattern("src", ()).replace("(?!", "(?=", 1),
        folder_pattern("src", ()) + "x",
        files_pattern(["a"], ()).replace("a", "a*"),
    ],
)
def test_other_patterns_are_not_put_in_words(pattern: str) -> None:
    assert describe_files(pattern) is None
