"""Which commands pass unasked by our own reading, and why others do not."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gemtui.calls.javascript import BLANKS
from gemtui.calls.shell.program_table import program_table
from gemtui.calls.shell.unasked import why_ask
from gemtui.calls.shell.words import Unclear, plain_commands
from tests.rows import each_row, table

TABLES = table("calls/unasked.json")

CONFIG = """\
[core]
\trepositoryformatversion = 0
\tbare = false
[remote "origin"]
\turl = https://example.org/x.git
\tfetch = +refs/heads/*:refs/remotes/origin/*
[branch "main"]
\tremote = origin
; a comment
"""


def repository(folder: Path, config: str = CONFIG) -> Path:
    for name in ("objects", "refs", "hooks"):
        (folder / ".git" / name).mkdir(parents=True)
    (folder / ".git/HEAD").write_text("ref: refs/heads/main\n")
    (folder / ".git/config").write_text(config)
    return folder


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = repository(tmp_path / "project")
    (folder / "src").mkdir()
    (folder / "src/a.py").touch()
    (folder / "out").symlink_to("/etc")
    return folder


def ask(command: str, project: Path, **more: object) -> str | None:
    environ = {"HOME": str(project.parent / "home"), "PATH": "/usr/bin:/bin"}
    return why_ask(command, project=project, **{"environ": environ, **more})  # type: ignore[arg-type]


@each_row("command", TABLES["commands_that_only_read_the_project_pass"])
def test_commands_that_only_read_the_project_pass(project: Path, command: str) -> None:
    assert ask(command, project) is None


@each_row(
    "command, why",
    [
        *TABLES["what_may_do_more_is_asked_about"],
        *((f"ls{blank}x/e.sh", "") for blank in BLANKS if blank not in " \t\n"),
    ],
)
def test_what_may_do_more_is_asked_about(project: Path, command: str, why: str) -> None:
    found = ask(command, project)
    assert found is not None
    assert why in found


READS = [name for name in program_table().names() if program_table().usage(name).reads]


@each_row("name", READS)
def test_each_program_of_the_list_is_documented_with_what_it_could_do(name: str) -> None:
    facts = (Path(__file__).parents[3] / "assets/gemini-cli.md").read_text()
    facts = facts.partition("| Commands | Could also |")[2]
    row = next(line for line in facts.splitlines() if line.startswith("| ") and f"`{name}`" in line)
    assert program_table().usage(name).could in row


@each_row("config, why", TABLES["git_is_asked_about_where_its_configuration_may_act"])
def test_git_is_asked_about_where_its_configuration_may_act(
    project: Path, config: str, why: str
) -> None:
    (project / ".git/config").write_bytes(config.encode())
    for command in ("git log", "git status", "ls | git show"):
        found = ask(command, project)
        assert found is not None
        assert why in found
    assert ask("ls", project) is None


def test_git_is_asked_about_outside_of_the_runs_own_repository(
    project: Path, tmp_path: Path
) -> None:
    (project / "src/deep").mkdir()
    repository(project / "nested")
    for name in ("objects", "refs"):
        (project / "bare" / name).mkdir(parents=True)
    (project / "bare/HEAD").write_text("ref: refs/heads/main\n")
    assert ask("git status", project, dir_path="src/deep") is None
    assert ask("git status", project / "src") is None
    for folder in ("nested", "bare", "bare/refs", ".git", "../", "missing", "out", "s%72c", "@src"):
        assert ask("git status", project, dir_path=folder), folder
    assert ask("ls", project, dir_path="nested") is None
    assert ask("git status", tmp_path)
    for name, content in (
        ("commondir", b"../x"),
        ("hooks/post-index-change", b""),
        ("modules", b""),
        ("index", b"DIRC" + bytes(20) + b"\0\0\xe0\0"),
        ("sharedindex.x", b""),
    ):
        (project / ".git" / name).write_bytes(content)
        assert ask("git status", project), name
        (project / ".git" / name).unlink()
    assert ask("git status", project) is None
    (project / ".git").rename(tmp_path / "real")
    (project / ".git").symlink_to(tmp_path / "real")
    assert ask("git status", project)
    (project / ".git").unlink()
    (project / ".git").write_text("gitdir: ../real\n")
    assert ask("git status", project)


def test_variables_that_can_change_what_runs_are_asked_about(project: Path) -> None:
    (project / ".env").write_text("GIT_AUTHOR_NAME=x\nPORT=1\n")
    assert ask("git diff", project) is None
    (project / ".env").write_text("PORT=1\nGIT_EXTERNAL_DIFF=x\n")
    assert "GIT_EXTERNAL_DIFF" in str(ask("ls", project))
    assert ask("ls", project, env_files=()) is None
    (project / ".env").unlink()
    (project / ".gemini").mkdir()
    (project / ".gemini/.env").write_text("export BASH_ENV=x\n")
    assert "BASH_ENV" in str(ask("ls", project))
    (project / ".gemini/.env").unlink()
    (project / "ls").touch()
    path = {"PATH": "/usr/bin:/bin"}
    for environ, command in (
        ({"GIT_EXTERNAL_DIFF": "x"}, "git diff"),
        ({"PATH": f"{project}:/bin"}, "ls"),
        ({"PATH": ":/bin"}, "ls"),
        ({"BASH_FUNC_ls%%": "() { x; }"}, "ls"),
        ({"BASH_ENV": "x"}, "pwd"),
        ({"LD_PRELOAD": f"libc.so.6 {project}/x.so"}, "ls"),
        ({"LD_LIBRARY_PATH": "/opt/lib:"}, "ls"),
    ):
        assert ask(command, project, environ={**path, **environ}), environ
    safe = {"BASH_ENV": "/opt/init", "LD_PRELOAD": "libx.so", "GIT_AUTHOR_NAME": "x", **path}
    assert ask("git log", project, environ=safe) is None


@given(st.text(st.sampled_from("ab -*~#=;|&<>'\"\\$`(){}\n\t\u00a0!"), max_size=12))
def test_what_passes_has_words_and_nothing_else(text: str) -> None:
    with suppress(Unclear):
        assert all(plain_commands(text))
