"""Which `.env` file counts for a run, and which of its variables could start a program."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from gemtui.calls.env_files import env_files, is_risky, risky_variables, variables


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "home").mkdir()
    return {"HOME": str(tmp_path / "home")}


@pytest.mark.parametrize(
    ("files", "read", "read_without_local"),
    [
        ([], None, None),
        (["up/project/.env"], "up/project/.env", None),
        (["up/project/.env", "up/project/.gemini/.env"], "up/project/.gemini/.env", "same"),
        (["up/.env", "home/.env"], "up/.env", "home/.env"),
        (["up/.gemini/.env", "up/project/.env"], "up/project/.env", "up/.gemini/.env"),
        (["home/.env", "home/.gemini/.env"], "home/.gemini/.env", "same"),
    ],
)
def test_the_nearest_file_is_read_and_home_is_last(
    tmp_path: Path,
    environ: dict[str, str],
    files: list[str],
    read: str | None,
    read_without_local: str | None,
) -> None:
    (tmp_path / "up/project").mkdir(parents=True)
    for file in files:
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).touch()
    without = read if read_without_local == "same" else read_without_local
    project = tmp_path / "up/project"
    assert env_files(project, environ) == ((tmp_path / read,) if read else ())
    found = env_files(project, environ, ignore_local=True)
    assert found == ((tmp_path / without,) if without else ())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A=1\nexport B = two words # said\nC: x\n", {"A": "1", "B": "two words", "C": "x"}),
        ("A='x # y'\nB=\"a\\nb\"\n# GIT_DIR=x\n", {"A": "x # y", "B": "a\nb"}),
        ("A='one\nGIT_DIR=x\n'\n", {"A": "one\nGIT_DIR=x\n"}),
        ("\ufeff  A=1\r\nB=2\rC=3", {"A": "1", "B": "2", "C": "3"}),
        ("# x\u2028A=1\nB=2\u2028C=3\n", {"A": "1", "B": "2\u2028C=3"}),
        ("A\nB =\n\n\u00a0C\u00a0=\u00a01", {"B": "", "C": "1"}),
    ],
)
def test_a_file_is_read_as_the_cli_reads_it(
    tmp_path: Path, text: str, expected: dict[str, str]
) -> None:
    (tmp_path / ".env").write_bytes(text.encode())
    assert variables(tmp_path / ".env") == expected


def test_variables_that_can_start_programs_are_risky(tmp_path: Path) -> None:
    risky = "GIT_EXTERNAL_DIFF PATH LD_PRELOAD DYLD_X BASH_ENV ENV BASH_FUNC_ls SHELLOPTS PAGER"
    risky += " MANPAGER LESSOPEN NODE_OPTIONS PYTHONPATH PERL5OPT HOME XDG_CONFIG_HOME IFS PS4"
    plain = "GEMINI_API_KEY GIT_AUTHOR_NAME NODE_ENV LDAP GITHUB_TOKEN APP_PATH DATABASE_URL PORT"
    assert all(map(is_risky, risky.split()))
    assert not any(map(is_risky, plain.split()))
    (tmp_path / ".env").write_text("".join(f"{name}=x\n" for name in f"{plain} {risky}".split()))
    assert risky_variables(tmp_path / ".env") == tuple(sorted(risky.split()))


@pytest.mark.parametrize("evil", ["\n", " ", "a=\n", "a='", "a='\\'", "=", "a\n", "a :", '"`'])
def test_hostile_files_are_read_in_linear_time(tmp_path: Path, evil: str) -> None:
    (tmp_path / ".env").write_text(evil * (900_000 // len(evil)))
    start = time.process_time()
    variables(tmp_path / ".env")
    assert time.process_time() - start < 5
