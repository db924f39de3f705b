"""`gemtui policy flags`, and runs with policies as they are typed."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from gemtui.paths import runs_dir
from gemtui.runs.listing import list_runs
from tests.cli.conftest import Gemtui, put
from tests.cli.shapes import fits
from tests.fake_cli import INIT, OK, FakeCli
from tests.patience import PATIENCE
from tests.rows import each_row

GOOD = '[[rule]]\ntoolName = "glob"\ndecision = "deny"\npriority = 100\n'
BROKEN = GOOD.replace("deny", "Deny")


@pytest.fixture
def policies() -> Path:
    """The folder of our named policies, with one in it."""
    folder = Path(os.environ["XDG_CONFIG_HOME"]) / "gemtui/policies"
    folder.mkdir(parents=True)
    (folder / "careful.toml").write_text(GOOD)
    return folder


def test_the_words_of_a_policy_with_options(
    fake_cli: FakeCli, gemtui: Gemtui, policies: Path, tmp_path: Path
) -> None:
    cli = fake_cli()
    own = tmp_path / "own.toml"
    own.write_text(GOOD)
    answer = gemtui(
        *("policy", "flags", "careful", "--policy", own, "--approval-mode", "plan"),
        *("--deny-tool", "glob", "-C", tmp_path, "--json"),
    )
    assert (answer.code, answer.err) == (0, "")
    found = answer.json
    fits(found, "Flags")
    assert found["policy"] == f"{policies}/careful.toml"
    assert found["argv"] == [
        str(cli),
        "--output-format=stream-json",
        "--approval-mode=plan",
        f"--policy={found['folder']}/policy-first.toml",
        f"--policy={policies}/careful.toml",
        f"--policy={own}",
    ]
    assert 'toolName = "glob"' in found["files"]["policy-first.toml"]
    assert not Path(found["folder"]).exists()


def test_without_a_cli_the_words_are_those_of_the_newest(
    no_cli: None, gemtui: Gemtui, policies: Path
) -> None:
    answer = gemtui("policy flags careful")
    assert (answer.code, answer.err) == (0, "")
    assert (
        answer.out.splitlines()[0]
        == "# no Gemini CLI is installed: these options are for version 0.61.0"
    )
    assert f"--policy={policies}/careful.toml < prompt.txt" in answer.out


def test_without_a_cli_settings_that_can_t_be_read_are_named(
    no_cli: None, gemtui: Gemtui, policies: Path, tmp_path: Path
) -> None:
    settings = tmp_path / ".gemini" / "settings.json"
    put(settings, "{")
    gemtui("policy flags careful -C", tmp_path).shows(f"{settings} can't be read")


def test_the_script_can_be_run_as_it_is(
    fake_cli: FakeCli, gemtui: Gemtui, policies: Path, tmp_path: Path
) -> None:
    fake_cli("stdin")
    project = tmp_path / "it's a project"
    project.mkdir()
    (project / "prompt.txt").write_text("from a file")
    answer = gemtui("policy flags careful -C", project, "--file-write", "deny")
    done = subprocess.run(
        ["bash", "-c", answer.out], capture_output=True, text=True, check=True, timeout=PATIENCE
    )
    assert "from a file" in done.stdout
    (written,) = runs_dir().glob("*/policy-first.toml")
    assert 'toolName = "write_file"' in written.read_text()


@each_row(
    "name, shown",
    [(b"\xff", r"\xff"), ("\u202eü".encode(), r"\xe2\x80\xae\xc3\xbc"), ("ü".encode(), "ü")],
)
def test_a_file_of_any_name_can_be_named(
    fake_cli: FakeCli, gemtui: Gemtui, tmp_path: Path, name: bytes, shown: str
) -> None:
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + name + b".toml"))
    path.write_text(GOOD)
    cli = fake_cli()
    answer = gemtui.ok("policy flags", path)
    *_, command = answer.out.splitlines()
    assert f"/{shown}.toml" in command
    printed = command.replace(str(cli), "printf '%s\\0'").replace("< prompt.txt", "")
    done = subprocess.run(
        ["bash", "-c", printed], capture_output=True, check=True, timeout=PATIENCE
    )
    assert done.stdout.split(b"\0")[-2] == b"--policy=" + os.fsencode(path)


@each_row("words", [("run", "Go"), ("run", "Go", "--dry-run"), ("policy", "flags")])
def test_a_broken_policy_starts_nothing(
    fake_cli: FakeCli, gemtui: Gemtui, policies: Path, words: tuple[str, ...]
) -> None:
    fake_cli(f"print:{INIT}", f"print:{OK}")
    (policies / "broken.toml").write_text(BROKEN)
    named = ("broken",) if words[0] == "policy" else ("--policy", "broken")
    answer = gemtui(*words, *named)
    assert (answer.code, answer.out) == (2, "")
    assert answer.complaint.startswith(
        f'gemtui: policies: {policies}/broken.toml, rule 1, decision: "Deny" is not a valid'
    )
    assert answer.complaint.endswith('write "deny"')
    assert list_runs(runs_dir()) == ()


def test_what_is_hardly_meant_is_said_and_run(
    fake_cli: FakeCli, gemtui: Gemtui, policies: Path, home: Path
) -> None:
    fake_cli(f"print:{INIT}", f"print:{OK}")
    (policies / "typo.toml").write_text(GOOD + "frob = 1\n")
    mine = home / ".gemini/policies/mine.toml"
    put(mine, BROKEN)
    gemtui("run Go --policy typo").tells(
        f'note: {policies}/typo.toml, rule 1, frob: Gemini CLI does not recognise the key "frob"',
        f"note: in your own policies, which every session loads: {mine}, rule 1",
    )
    (run,) = list_runs(runs_dir())
    assert run.exit is not None
