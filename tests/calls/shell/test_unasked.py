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
from tests.rows import each_row

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


@pytest.mark.parametrize(
    "command",
    [
        "ls",
        "ls -la src",
        "ls\t-l 'src'",
        "'ls' -- src",
        "bash -c 'ls src'",
        "cat src/a.py | head -5",
        "cat src/a.py && wc -l src/a.py; pwd",
        "grep -rn --include='*.py' \"def \\w+\" .",
        "grep -m5 -e x -A 2 src/*.py",
        "wc -l src/*.py",
        "sed -n 1,20p src/a.py",
        "find . -name '*.py' -not -path './x/*' -type f",
        "find . \\( -name a -o -name b \\) -print",
        "head -n 5 src/a.py",
        "uniq -c src/a.py",
        "cut -d: -f1 src/a.py",
        "echo 'a * b' done",
        "seq -5 2 9",
        "git status",
        "git status --short -uno",
        "git --no-pager log --oneline -n 5",
        "git log -3 --format='%h %s' main..HEAD~2 -- src/a.py",
        "git diff --stat -U5 HEAD^ src",
        "git show HEAD:src/a.py",
        "git branch -a",
        "base64 -d src/a.py",
        "cd src",
    ],
)
def test_commands_that_only_read_the_project_pass(project: Path, command: str) -> None:
    assert ask(command, project) is None


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("", "has no command"),
        *((f"ls{blank}x/e.sh", "") for blank in BLANKS if blank not in " \t\n"),
        ("ls\u00a0x/e.sh", "U+00A0"),
        ("echo 'a\u3000b'", "U+3000"),
        ("bash\u00a0-c 'ls'", "U+00A0"),
        ("ls \u200b", "invisible"),
        ("ls\nsh x", "does not recognise"),
        ("ls ; ; ls", "has no command"),
        ("ls |", "has no command"),
        ("ls & ls", "background"),
        ("ls |& sh", "background"),
        ("./ls", "does not recognise"),
        ("l[s]", "does not recognise"),
        ("bash -c \"bash -c 'ls'\"", "does not recognise"),
        ("X=1 ls", "sets a variable"),
        ("ls $HOME", "variable"),
        ('ls "$(id)"', "quote"),
        ("ls `id`", "substitution"),
        ("ls > x", "redirection"),
        ("ls <(id)", "redirection"),
        ("(ls)", "parentheses"),
        ("{ ls; }", "braces"),
        ("ls {a,b}", "braces"),
        ("ls 'x", "quote"),
        ("ls # x", "comment"),
        ("ls a\\\nb", "line break"),
        ("ls à", "split words"),
        ("ls ~", "home"),
        ("ls ..", "leads out"),
        ("ls /", "leads out"),
        ("cat out/passwd", "leads out"),
        ("ls *", "name looks like an option"),
        ("ls '-'*", "`-*`"),
        ("ls */x", "name looks like an option"),
        ("ls src/*/x", "outside"),
        ("ls ./.*", "outside"),
        ("ls ./*", "outside"),
        ("ls /*", "outside"),
        ("ls -L out", "-L"),
        ("cd src && ls", "changes the working directory"),
        ("uniq src/a.py b", "second file"),
        ("uniq src/*", "pattern"),
        ("grep -R x .", "-R"),
        ("grep -f out/x src", "-f"),
        ("grep --fil=x src", "--fil"),
        ("wc --files0-from=x", "--files0-from"),
        ("tail -f src/a.py", "-f"),
        ("base64 -Do x src/a.py", "-Do"),
        ("sort -o x y", "does not recognise"),
        ("sed -n 'w x' y", "sed can"),
        ("sed -n 1p -i", "sed can"),
        ("sed -n 1p *", "sed can"),
        ("sed -n 1p /etc/passwd", "leads out"),
        ("find . -exec id +", "-exec"),
        ("find . -fprint x", "-fprint"),
        ("find . -delete", "-delete"),
        ("find -L . -name x", "-L"),
        ("find /", "leads out"),
        ("find . -name *.py", "pattern"),
        ("rg x", "system folder"),
        ("/tmp/rg x", "system folder"),
        ("/usr/bin/rg -iz x", "-iz"),
        ("/usr/bin/rg --pre=x y", "--pre"),
        ("git", "does not recognise"),
        ("git push", "does not recognise"),
        ("git -C . status", "does not recognise"),
        ("git -c core.pager=x log", "does not recognise"),
        ("git -p log", "does not recognise"),
        ("git log --output=x", "--output"),
        ("git log --outp=x", "--outp"),
        ("git diff --no-index a /etc/passwd", "--no-index"),
        ("git diff -U /etc/passwd src", "leads out"),
        ("git diff src/a.py /etc/passwd", "leads out"),
        ("git diff src/a.py ../x", "leads out"),
        ("git log --show-signature", "--show-signature"),
        ("git log --format=%G?", "%G"),
        ("git log --textconv", "--textconv"),
        ("git diff --ext-diff", "--ext-diff"),
        ("git diff -O/etc/passwd", "-O"),
        ("git branch x", "rename and delete"),
        ("git branch -D x", "-D"),
        ("git show *", "pattern"),
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


@pytest.mark.parametrize(
    ("config", "why"),
    [
        ("[diff]\n\texternal = x", "`diff.external`, which can run"),
        ('[diff "x"]\ntextconv = x', "`diff.x.textconv`, which can run"),
        ("[diff.x]\ntextconv = x", "textconv"),
        ('[DIFF "x]"]\n  TextConv=x', "textconv"),
        ('[filter "x"]\nclean = x', "can run"),
        ('[filter "x"]\nprocess = x', "can run"),
        ("[core]\nfsmonitor", "can run"),
        ("[core]\nhooksPath = .husky", "can run"),
        ("[core]\nsshCommand = x", "can run"),
        ("[core]\nworktree = /", "core.worktree"),
        ("[core]\nattributesFile = x", "core.attributesfile"),
        ("[core]\nbare = true", "core.bare"),
        ("[core]\nbare", "core.bare"),
        ("[pager]\nlog = x", "can run"),
        ("[alias]\nx = !x", "can run"),
        ("[gpg]\nprogram = x", "can run"),
        ('[gpg "ssh"]\nprogram = x', "can run"),
        ("[interactive]\ndiffFilter = x", "can run"),
        ("[include]\npath = x", "includes another"),
        ('[includeIf "gitdir:x"]\npath = x', "includes another"),
        ("[extensions]\nworktreeConfig = true", "extensions.worktreeconfig"),
        ('[remote "x"]\npromisor = true', "remote.x.promisor"),
        ('[submodule "x"]\nurl = y', "submodule.x.url"),
        ("[log]\nshowSignature = true", "log.showsignature"),
        ('[x "\u202e"]\ny = z', "⟨U+202E⟩"),
        ("[core] fsmonitor = x", "reliably"),
        ("[user]\nname = x\\\n[core]\nfsmonitor = x", "reliably"),
        ("[user]\nname = x\r[core]", "reliably"),
        ("name = x", "reliably"),
        ("[core", "reliably"),
    ],
)
def test_git_is_asked_about_where_its_configuration_may_act(project: Path, config: str, why: str) -> None:
    (project / ".git/config").write_bytes(config.encode())
    for command in ("git log", "git status", "ls | git show"):
        found = ask(command, project)
        assert found is not None
        assert why in found
    assert ask("ls", project) is None


def test_git_is_asked_about_outside_of_the_runs_own_repository(project: Path, tmp_path: Path) -> None:
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
