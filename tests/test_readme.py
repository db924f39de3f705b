"""What the README says is what the program does."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from gemtui.cli import root
from tests.fake_cli import INIT, OK, FakeCli, ends, uses
from tests.readme import README, rewritten

DATA = Path(__file__).parent / "data" / "sessions"
TEXT = README.read_text(encoding="utf-8")


def test_its_tables_are_those_of_the_program() -> None:
    assert rewritten(TEXT) == TEXT, "run: python -m tests.readme"


def test_its_pictures_and_links_are_there() -> None:
    targets = re.findall(r"\]\(([^)#]+)[^)]*\)|(?:src|href)=\"([^\"#]+)\"", TEXT)
    here = [a or b for a, b in targets if not (a or b).startswith("http")]
    assert len([each for each in here if each.endswith(".svg")]) >= 3
    assert [each for each in here if not (README.parent / each).exists()] == []


def test_its_first_commands_start_the_program_and_run_the_tests() -> None:
    commands = re.findall(r"^python3 -m venv .*$", TEXT, flags=re.M)
    assert [command.rpartition("/")[2] for command in commands] == ["gemtui", "python -m pytest"]


LINES = sorted({line.partition("#")[0] for line in re.findall(r"^gemtui .*$", TEXT, flags=re.M)})


@pytest.mark.parametrize("line", LINES)
def test_its_commands_exist(line: str) -> None:
    words = re.split("[|>]", line)[0].split()[1:]
    command = [word for word in words[:1] if word in root.commands]
    if command == ["policy"]:
        command.append(words[1])
    shown = CliRunner().invoke(root, [*command, "--help"]).output
    assert [word for word in words if word.startswith("-") and word not in shown] == []


def test_its_programs_run(
    home: Path,
    fake_cli: FakeCli,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shutil.copytree(DATA / "main" / ".gemini", home / ".gemini", dirs_exist_ok=True)
    reading, running, deciding = re.findall(r"```python\n(.*?)```", TEXT, flags=re.S)
    exec(compile(reading, "README.md", "exec"), {})
    assert "assistant (" in capsys.readouterr().out
    fake_cli(f"print:{INIT}", uses("t", "write_file", "haiku.txt"), ends("t"), f"print:{OK}")
    exec(compile(running, "README.md", "exec"), {})
    assert "['haiku.txt']" in capsys.readouterr().out
    monkeypatch.chdir(home)
    Path("work.toml").write_text(
        '[[rule]]\ntoolName = "run_shell_command"\ncommandPrefix = "git push"\n'
        'decision = "deny"\npriority = 9\n'
    )
    exec(compile(deciding, "README.md", "exec"), {})
    assert "deny True Rule 1 of work.toml" in capsys.readouterr().out
