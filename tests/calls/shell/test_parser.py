"""Commands come apart as in the CLI: the expected values are those of its own functions."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gemtui.calls.shell.parser import has_redirection, parse_command, unwrapped
from gemtui.calls.shell.words import shell_words
from tests.deep import some_of
from tests.rows import each_row


@each_row(
    ("command", "parts"),
    [
        ("ls", ["ls"]),
        (" ls ", ["ls"]),
        ("git add . && git commit -m x", ["git add .", "git commit -m x"]),
        ("a; b | c || d & e", ["a", "b", "c", "d", "e"]),
        ("a |& b", ["a", "b"]),
        ("(ls; rm q)", ["ls", "rm q"]),
        ("{ ls; rm q; }", ["ls", "rm q"]),
        ("echo $(date) `whoami`", ["echo $(date) `whoami`", "date", "whoami"]),
        ('echo "$(rm q)"', ['echo "$(rm q)"', "rm q"]),
        ("echo '$(rm q)'", ["echo '$(rm q)'"]),
        ("diff <(ls a) <(ls b)", ["diff <(ls a) <(ls b)", "ls a", "ls b"]),
        ("FOO=1 git push", ["FOO=1 git push"]),
        ("FOO=$(git push)", ["git push"]),
        ("for i in 1 2; do git push; done", ["git push"]),
        ("while true; do rm q; done", ["true", "rm q"]),
        ("if ls; then a; else b; fi", ["ls", "a", "b"]),
        ("case x in a) git push;; esac", ["git push"]),
        ("f() { git push; }; f", ["git push", "f"]),
        ("! ls", ["ls"]),
        ("[[ -f x ]] && ls", ["[[ -f x ]]", "ls"]),
        ("export A=$(ls)", ["export A=$(ls)", "ls"]),
        ("unset A", ["unset A"]),
        ("((1+1))", ["((1+1))"]),
        ("# a comment\nls", ["ls"]),
        ("cat <<E\n$(git push)\nE\n", ["cat", "git push"]),
        ("cat <<'E'\n$(git push)\nE\n", ["cat"]),
        ("cat <<E\n`git push`\nE\n", ["cat"]),
        ("bash -c 'git push'", ["bash -c 'git push'"]),
        ("git x > out", ["git x"]),
        ("> out", []),
        ("'git' push", ["'git' push"]),
        ("'' push && ls", ["ls"]),
        ("subshell x; ls", ["ls"]),
        ("sudo -u me ls\\\n -l", ["sudo -u me ls\\\n -l"]),
        ("echo 😀; ls é", ["echo 😀", "ls é"]),
        ("echo \ud800; ls", ["echo \ud800", "ls"]),
        ("\ufeffls; é=1 x", ["ls", "é=1 x"]),
        ("a\u2003b\x85c", ["a\u2003b\x85c"]),
    ],
)
def test_a_command_is_split_into_its_parts(command: str, parts: list[str]) -> None:
    reading = parse_command(command)
    assert reading.parsed
    assert [part.text for part in reading.parts] == parts
    assert [part.whole for part in reading.parts] == [text == command for text in parts]


@each_row(
    "command",
    [
        *("", "  ", "\n", "git 'x", 'git "x', "ls |", "(ls", "if ls", "A=1", "''", "\ufeff", "$(("),
        *("echo ${x@P}", "echo ${x@p}", "# nothing", "ls && && ls", "a \0 b"),
        "cat <<E\n$\U0010ffff\nE\n[ -\U0010ffff ]",
    ],
)
def test_what_can_not_be_parsed_has_no_parts(command: str) -> None:
    reading = parse_command(command)
    assert (reading.parsed, reading.parts, reading.roots) == (False, (), ())


@each_row(
    ("command", "redirected"),
    [
        *((f"git {x}", True) for x in ("> o", ">> o", ">| o", "2>&1", "< f", "<<< x", ">&2", "&> o")),
        *((f"git {x}", False) for x in ("'>'", '">"', "\\>", "<(ls)", ">(ls)", "|& tee", "$((1<2))")),
        ("cat <<E\nx\nE\n", True),
        ("[[ a > b ]]", False),
        ("git && npm > o", True),
        ("echo $(ls > o)", True),
        ("(ls) > o", True),
        ("  ", False),
        ("git 'x > o", False),
        ("if > o", True),
    ],
)
def test_redirections_are_found(command: str, redirected: bool) -> None:
    assert has_redirection(command) is redirected
    assert parse_command(command).redirected is redirected


def test_a_part_knows_whether_it_redirects_alone() -> None:
    assert [p.redirected for p in parse_command("echo $(a > o) > x; b").parts] == [True, False, False]


@each_row(
    ("command", "inner"),
    [
        ("bash -c 'git push'", "git push"),
        ("sh -c ls", "ls"),
        ("zsh   -c   ls -l", "ls -l"),
        ("/bin/bash -c 'a && b'", "a && b"),
        ("BASH -C 'a'", "a"),
        ("cmd.exe /c 'dir'", "dir"),
        ("powershell -Command 'x'", "x"),
        ("powershell.exe -NoProfile -Command x", "x"),
        ("pwsh -Command x", "x"),
        ('bash -c "echo \\"$HOME\\""', 'echo "$HOME"'),
        ('bash -c "a" "b"', 'a" "b'),
        ('bash -c "echo *"', "echo *"),
        ('bash -c "${x"', "${x"),
        ("bash -c ''", ""),
        ("bash -c '", "'"),
        ("bash -lc 'git push'", None),
        ("bash -x -c 'git push'", None),
        ("dash -c 'git push'", None),
        ("env bash -c 'git push'", None),
        ("sudo bash -c 'git push'", None),
        ("bash -c", None),
        ("baſh -c ls", None),
        ("git push", None),
    ],
)
def test_wrappers_are_opened(command: str, inner: str | None) -> None:
    assert unwrapped(command) == (command if inner is None else inner)
    assert [part.inner for part in parse_command(command).parts] in ([inner], [])


@pytest.mark.parametrize(
    ("command", "roots"),
    [
        ("git push && '/bin/ls' x | \"wc\" -l", ("git", "/bin/ls", "wc")),
        ("A=1 sudo rm; [ -f x ]; export B", ("sudo", "[", "export")),
    ],
)
def test_the_names_of_commands(command: str, roots: tuple[str, ...]) -> None:
    assert parse_command(command).roots == roots


@each_row(
    ("command", "found"),
    [
        ("ls -la  x", ["ls", "-la", "x"]),
        ("\u00a0ls\ufeffx", ["ls", "x"]),
        ("a\x85b", ["a\x85b"]),
        ("a 'b c' \"d e\"f\\ g", ["a", "b c", "d ef g"]),
        ("a&&b||c;d>>e<f", ["a", "&&", "b", "||", "c", ";", "d", ">>", "e", "<", "f"]),
        ("ls *.py", ["ls", "*.py"]),
        ("ls # x y", ["ls", ""]),
        ("ls a#b c", ["ls", "a", ""]),
        ("rm $x -f", ["rm", "", "-f"]),
        ("echo $", ["echo", "$"]),
        ("echo a${b}c $?d", ["echo", "ac", ""]),
        ("echo '$x' \"$x\"", ["echo", "$x", ""]),
        ("git 'x", ["git", "x"]),
        ('"a\\"', ['a"']),
        ('"a\\nb\\"c"', ['a\\nb"c']),
        ("", []),
    ],
)
def test_words_are_those_of_the_package_that_the_cli_uses(command: str, found: list[str]) -> None:
    assert [word.text for word in shell_words(command)] == found


@pytest.mark.parametrize("command", ["echo ${", "echo ${}", "echo ${a b}", '"${"'])
def test_a_broken_substitution_gives_no_words(command: str) -> None:
    with pytest.raises(ValueError, match="bad substitution"):
        shell_words(command)


_ODD = st.text(st.one_of(st.sampled_from("'\"\\$&;|<>()# \n\t`{}[]=a1*!~-"), st.characters()), max_size=60)


@given(_ODD)
def test_no_text_is_too_odd(command: str) -> None:
    reading = parse_command(command)
    assert reading.redirected is has_redirection(command)
    assert reading.parsed or not reading.parts
    for part in reading.parts:
        assert part.text in command
        assert part.inner is None or part.inner == unwrapped(part.text)


@each_row("text", ["a;", "é;", "(", "$(", "'", "x", "\0", "< ", "\ud800"])
def test_a_very_long_text_is_read_in_bounded_work(text: str) -> None:
    command = text * some_of(160_000)
    start = time.thread_time()
    reading = parse_command(command)
    unwrapped(command)
    assert reading.text == command
    assert time.thread_time() - start < 60
