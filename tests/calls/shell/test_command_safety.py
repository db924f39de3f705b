"""Commands are judged as by the CLI: the expected values are those of its own functions."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gemtui.calls.shell.command_safety import CommandSafety, judge
from tests.rows import each_row


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A run's folder with a file, links out of it and into it, and files named like options."""
    outside = tmp_path / "outside"
    outside.mkdir()
    workspace = tmp_path / "work"
    (workspace / "sub").mkdir(parents=True)
    for name in ("a.txt", "-x", "sub/b.txt"):
        (workspace / name).touch()
    (workspace / "out").symlink_to(outside)
    (workspace / "-y").symlink_to(outside)
    (workspace / "in").symlink_to("sub")
    (workspace / "loop").symlink_to("loop")
    return workspace


SAFE = [
    "ls",
    "ls -la sub",
    "'ls'",
    "\\ls",
    "ls $HOME",
    "ls a.txt b.txt",
    "ls in/b.txt",
    "ls -x",
    "ls loop",
    "ls -- a.txt",
    "ls *.py",
    "ls ..x",
    "cat sub/../a.txt",
    "cat -",
    "cat --color=a",
    "pwd",
    "echo anything /etc",
    "cd sub",
    "grep -r x .",
    "grep -f a.txt x",
    "grep --file=a.txt x",
    "grep -f",
    "head -n 5 a.txt",
    "find . -name x",
    "base64 a.txt",
    "base64 -d a.txt",
    "/usr/bin/rg x .",
    "git status",
    "git -C /tmp status",
    "git --git-dir x log -p",
    "git diff -- /etc",
    "git branch",
    "git branch -a -v",
    "git branch --format=x",
    "sed -n 1p",
    "sed -n 1,20p a.txt",
    "bash -c 'ls sub'",
    "bash -lc 'ls; cat a.txt && git status'",
    "zsh -c pwd",
    "which sudo",
    "tr a b",
    "ls '",
]
SAFE_AS_A_WHOLE = ["ls # x", "ls;", "ls &", "ls > f", "true && rm -rf q", "ls | sh"]
"""The engine asks for these all the same: it looks at their parts afterwards."""
PLAIN = [
    "",
    "  ",
    " X=1 ls",
    "/bin/ls",
    "LS",
    "ls ..",
    "ls /etc",
    "ls ~",
    "ls ~root",
    "ls '$x'",
    "ls '`x`'",
    "ls out",
    "ls out/x",
    "ls -y",
    "cat --file=/etc/x",
    "cd",
    "cd ..",
    "cd -",
    "cd ~",
    "grep -f /etc/x y",
    "grep x /etc",
    "find /etc",
    "rg x",
    "./rg x",
    "rm q",
    "rm -r q",
    "rm -r -f q",
    "/bin/rm -rf q",
    "(rm -rf q)",
    "bash -c 'rm -rf q'",
    "X=1 rm -rf q",
    "sudo ls",
    "git",
    "git push",
    "git -C",
    "sed 1p",
    "sed -n p a",
    "sed -n 1,p a",
    "sed -n 1p /etc/x",
    "sed -n 1p a b",
    "bash -c 'ls > f'",
    "bash -c 'ls $(x)'",
    "bash -c ''",
    "bash -c '${'",
    "bash -c ls x",
    "bash -x 'ls'",
    "bash -c 'ls | sh'",
    "dash -c ls",
    "ln a b",
    "echo ${",
    "chmod 777 /",
    "curl x",
    "cat /usr/bin/rg",
]
DANGEROUS = [
    "rm -f q",
    "rm -rf q",
    "rm -fr q",
    "r\\m -rf q",
    "'rm' \"-rf\" q",
    "sudo rm -rf q",
    "sudo sudo rm -f q",
    "find . -delete",
    "find . -exec rm {} ;",
    "find -fprint x",
    "rg --pre x y",
    "/usr/bin/rg --pre=x y",
    "rg -z x",
    "rg --hostname-bin=x y",
    "ln -s a b",
    "ln -fs a b",
    "ln --symbolic a b",
    "base64 -o f",
    "base64 -of",
    "base64 --output=f",
    "git -c a=b status",
    "git -ca=b status",
    "git push -c x",
    "git --config-env=x status",
    "git log --output=x",
    "git diff --ext-diff",
    "git branch x",
    "git branch -D x",
    "git -C . branch -l x",
]


@pytest.mark.parametrize(
    ("command", "judgement"),
    [
        *((command, CommandSafety.SAFE) for command in (*SAFE, *SAFE_AS_A_WHOLE)),
        *((command, CommandSafety.PLAIN) for command in PLAIN),
        *((command, CommandSafety.DANGEROUS) for command in DANGEROUS),
    ],
)
def test_a_command_is_judged_as_by_the_cli(
    command: str, judgement: CommandSafety, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(workspace.parent))
    assert judge(command, workspace=workspace) is judgement


def test_a_home_within_the_workspace_is_no_way_out(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(workspace / "sub"))
    assert judge("cat ~/b.txt", workspace=workspace) is CommandSafety.SAFE
    assert judge("cd", workspace=workspace) is CommandSafety.SAFE


def test_full_paths_within_the_workspace_are_safe(workspace: Path) -> None:
    assert judge(f"cat {workspace}/a.txt", workspace=workspace) is CommandSafety.SAFE
    assert judge(f"cat {workspace}x/a.txt", workspace=workspace) is CommandSafety.PLAIN


@pytest.mark.parametrize(
    ("dir_path", "judgement"),
    [
        ("sub", CommandSafety.SAFE),
        (".", CommandSafety.SAFE),
        ("", CommandSafety.SAFE),
        (None, CommandSafety.SAFE),
        ("in", CommandSafety.SAFE),
        ("nowhere", CommandSafety.SAFE),
        ("out", CommandSafety.PLAIN),
        ("loop", CommandSafety.SAFE),
        ("..", CommandSafety.OUTSIDE),
        ("/tmp", CommandSafety.OUTSIDE),
        ("sub/../..", CommandSafety.OUTSIDE),
    ],
)
def test_the_folder_of_a_command_counts(dir_path: str | None, judgement: CommandSafety, workspace: Path) -> None:
    assert judge("ls", workspace=workspace, dir_path=dir_path) is judgement


def test_paths_are_seen_from_the_folder_of_the_command(workspace: Path) -> None:
    assert judge("cat ../a.txt", workspace=workspace, dir_path="sub") is CommandSafety.SAFE
    assert judge("cat ../../a.txt", workspace=workspace, dir_path="sub") is CommandSafety.PLAIN


def test_outside_counts_before_danger(workspace: Path) -> None:
    assert judge("rm -rf q", workspace=workspace, dir_path="/tmp") is CommandSafety.OUTSIDE


def test_a_workspace_may_be_a_link(workspace: Path) -> None:
    link = workspace.parent / "link"
    link.symlink_to(workspace)
    assert judge("ls sub", workspace=link) is CommandSafety.SAFE
    assert judge(f"ls {link}/sub", workspace=link) is CommandSafety.PLAIN
    assert judge(f"ls {workspace}/sub", workspace=link) is CommandSafety.SAFE


@each_row(
    ("command", "judgement"),
    [
        ("ls sub", CommandSafety.SAFE),
        ("ls -x", CommandSafety.SAFE),
        ("ls ..", CommandSafety.PLAIN),
        ("ls /", CommandSafety.PLAIN),
        ("cat ~/x", CommandSafety.PLAIN),
        ("cd", CommandSafety.PLAIN),
        ("rm -rf q", CommandSafety.DANGEROUS),
        ("/usr/bin/rg x", CommandSafety.SAFE),
        ("/opt/rg x", CommandSafety.PLAIN),
    ],
)
def test_without_a_workspace_the_words_alone_count(command: str, judgement: CommandSafety) -> None:
    assert judge(command) is judgement
    assert judge("ls", dir_path="sub") is CommandSafety.SAFE
    assert judge("ls", dir_path="..") is CommandSafety.OUTSIDE


@given(
    st.lists(
        st.sampled_from((*SAFE, *PLAIN, *DANGEROUS)).map(lambda c: c.split(" ")[0])
        | st.sampled_from(("-f", "/etc", "..", "'", '"', "$x", "a\0b", "\ud800", "x" * 5000, "/" * 5000))
        | st.text(max_size=5),
        max_size=6,
    ).map(" ".join),
    st.none() | st.text(max_size=8),
)
def test_no_command_is_too_odd(command: str, dir_path: str | None) -> None:
    assert judge(command, dir_path=dir_path) in CommandSafety
    assert judge(command, workspace=Path("/"), dir_path=dir_path) in CommandSafety


def test_a_long_command_is_judged_at_once(workspace: Path) -> None:
    assert judge("ls " + "a/" * 500_000, workspace=workspace) is CommandSafety.SAFE
    assert judge("ls " + "../" * 300_000, workspace=workspace) is CommandSafety.PLAIN
    assert judge("ls" + " a" * 100_000, workspace=workspace) is CommandSafety.SAFE
