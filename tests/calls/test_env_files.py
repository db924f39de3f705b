"""The `.env` file that the CLI reads, its variables, and what they can do."""

from __future__ import annotations

from pathlib import Path

import pytest

from gemtui.calls.env_files import (
    MOST,
    destinations,
    env_files,
    env_variables,
    hook_variables,
    risky_variables,
)
from tests.rows import each_row, table

TABLES = table("calls/env_files.json")


@pytest.mark.parametrize(
    ("there", "found"),
    [
        ((), None),
        (("a/b/.env",), "a/b/.env"),
        (("a/b/.gemini/.env", "a/b/.env"), "a/b/.gemini/.env"),
        (("a/.env", "home/.env"), "a/.env"),
        (("home/.gemini/.env", "home/.env"), "home/.gemini/.env"),
        (("home/.env",), "home/.env"),
    ],
)
def test_the_nearest_file_counts(tmp_path: Path, there: tuple[str, ...], found: str | None) -> None:
    for name in there:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("A=1")
    (tmp_path / "a/b").mkdir(parents=True, exist_ok=True)
    environ = {"GEMINI_CLI_HOME": str(tmp_path / "home")}
    expected = () if found is None else (tmp_path / found,)
    assert env_files(tmp_path / "a/b", environ) == expected
    local = env_files(tmp_path / "a/b", environ, ignore_local=True)
    kept = found is not None and ("home" in found or ".gemini" in found)
    assert local == (expected if kept else ()) or "home" in str(local)


TEXT = """\
# BASH_ENV=comment
export A=1
B: two # words
C="x\\ny" # z
D='l1
BASH_ENV=inside
l2'
\ufeff GIT_PAGER=sh
\xa0NODE_OPTIONS
 = --require ./x.js
ENV=production
DEBUG=1
GOOGLE_GEMINI_BASE_URL=http://me:secret@far.example:81/v1
"""


def test_variables_are_those_that_dotenv_finds(tmp_path: Path) -> None:
    path = tmp_path / ".env"
    path.write_text(TEXT.replace("\n", "\r\n"), newline="")
    found = env_variables(path)
    assert found["C"] == "x\ny"
    assert found["D"] == "l1\nBASH_ENV=inside\nl2"
    assert list(found) == [*"ABCD", "GIT_PAGER", "NODE_OPTIONS", "ENV", "GOOGLE_GEMINI_BASE_URL"]
    assert risky_variables(path) == ("GIT_PAGER", "NODE_OPTIONS")
    assert risky_variables(path, {"GIT_PAGER": "cat"}) == ("NODE_OPTIONS",)
    assert destinations(found) == {"GOOGLE_GEMINI_BASE_URL": "far.example:81"}


@each_row("line, counts", TABLES["what_reaches_into_hooks_is_known"])
def test_what_reaches_into_hooks_is_known(tmp_path: Path, line: str, counts: bool) -> None:
    (tmp_path / ".env").write_text(line)
    assert bool(hook_variables(env_variables(tmp_path / ".env"))) is counts


def test_a_file_that_the_cli_can_not_read_sets_nothing_and_a_huge_one_is_an_error(
    tmp_path: Path,
) -> None:
    assert env_variables(tmp_path) == env_variables(tmp_path / "none") == {}
    (tmp_path / ".env").write_text("A='\n" * MOST)
    with pytest.raises(OSError, match="too large"):
        env_variables(tmp_path / ".env")
