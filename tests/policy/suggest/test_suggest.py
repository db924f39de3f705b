"""Rules from what was done: they allow all of it, and not what lies beside it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from gemtui.policy.engine.decide import Engine, Setup
from gemtui.policy.file.policy import Policy, of
from gemtui.policy.match import patterns
from gemtui.policy.model.rules import ApprovalMode, Call, CallStatus, Decision, RecordedCall, Rule
from gemtui.policy.suggest.replay import POWERSHELL
from gemtui.policy.suggest.suggest import Evidence, Suggestions, suggest
from tests.rows import each_row, table

TABLES = table("policy/suggest.json")

HOME = Path("/home/dev/app")
PLAIN = Policy()


def made(
    tool: str, session: str = "s", ended: CallStatus = CallStatus.SUCCEEDED, **args: Any
) -> RecordedCall:
    call = Call(tool=tool, args=args)
    return RecordedCall(call=call, session=session, id="c", ended=ended, project=HOME)


def shell(
    command: str, session: str = "s", ended: CallStatus = CallStatus.SUCCEEDED
) -> RecordedCall:
    return made("run_shell_command", session, ended, command=command)


def write(path: str, session: str = "s") -> RecordedCall:
    return made("write_file", session, file_path=path, content="x\n")


def only(found: Suggestions) -> Rule:
    (suggestion,) = found.suggestions
    return suggestion.rule


def prefixes(found: Suggestions) -> set[str]:
    return {text for each in found.suggestions for text in each.rule.command_prefixes}


def reasons(found: Suggestions) -> dict[str, str]:
    return {each.what: each.why for each in found.left_out}


@each_row("mode", [ApprovalMode.DEFAULT, ApprovalMode.AUTO_EDIT])
def test_one_rule_covers_a_command_in_the_forms_in_which_agents_run_it(mode: ApprovalMode) -> None:
    calls = list(map(shell, TABLES["forms_of_npm_test"]))
    found = suggest(calls, PLAIN, mode=mode)
    rule = only(found)
    assert (rule.command_prefixes, found.left_out) == ((), ())
    assert found.suggestions[0].calls == len(calls)
    assert "also with `CI=1` before it" in found.suggestions[0].about
    engine = with_them(found, mode=mode)
    assert all(allows(engine, calls))
    others = ["npm test > out", "npm test; rm x", "npm install", "npm test 2>&1 | sh"]
    assert not any(allows(engine, map(shell, others)))


def with_them(found: Suggestions, policy: Policy = PLAIN, **more: Any) -> Engine:
    """An engine with the rules as a file has them."""
    text = of([each.rule for each in found.suggestions]).to_toml()
    return Engine(Policy.parse(text, source="suggested.toml") + policy, **more)


def allows(engine: Engine, calls: Iterable[RecordedCall]) -> list[bool]:
    outcomes = [engine.outcome(each.call) for each in calls]
    return [each.found and each.decision is Decision.ALLOW for each in outcomes]


# --- shell ---------------------------------------------------------------------------------------


def test_commands_by_prefix_with_their_evidence() -> None:
    calls = [
        shell("pytest -q"),
        shell("pytest tests/x.py", "t"),
        shell("git status", "t"),
        shell("git diff HEAD", "t"),
    ]
    found = suggest(calls, PLAIN)
    assert (found.calls, found.succeeded, found.allowed) == (4, 4, 0)
    assert prefixes(found) == {"pytest", "git status", "git diff"}
    assert [each.calls for each in found.suggestions] == [2, 2]
    by_program = {each.rule.command_prefixes[0]: each for each in found.suggestions}
    assert by_program["pytest"].sessions == 2
    assert by_program["git diff"].sessions == 1
    assert by_program["git diff"].rule.prefix_list
    assert [each.argument for each in by_program["pytest"].examples] == [
        "pytest -q",
        "pytest tests/x.py",
    ]
    assert "git diff, git status with any arguments" in by_program["git diff"].opens
    assert all(allows(with_them(found), calls))


def test_the_parts_of_a_chain_each_need_a_prefix() -> None:
    calls = [shell("cd src && pytest -q | tail -5"), shell("ls -a; exit 3")]
    found = suggest(calls, PLAIN)
    assert prefixes(found) == {"cd", "pytest", "tail", "ls", "exit"}
    assert all(allows(with_them(found), calls))


DANGEROUS = TABLES["dangerous"]


@each_row("command", DANGEROUS)
def test_no_rule_for_what_is_dangerous_or_not_to_be_told_apart(command: str) -> None:
    found = suggest([shell(command)], PLAIN)
    assert found.suggestions == ()
    (left,) = found.left_out
    assert left.calls == 1
    assert left.what
    assert left.why
    assert left.examples[0].argument == command


def test_dangerous_neighbours_stay_shut() -> None:
    good = list(map(shell, TABLES["good_commands"]))
    found = suggest([*good, *map(shell, DANGEROUS)], PLAIN)
    engine = with_them(found)
    assert all(allows(engine, good))
    shut = [*DANGEROUS, *TABLES["neighbours"]]
    assert not any(allows(engine, map(shell, shut)))


def test_only_what_succeeded_counts() -> None:
    ended = [CallStatus.FAILED, CallStatus.CANCELLED, CallStatus.DENIED, CallStatus.UNKNOWN]
    found = suggest([shell("pytest", ended=each) for each in ended], PLAIN)
    assert (found.calls, found.succeeded, found.suggestions, found.left_out) == (4, 0, (), ())


# --- files ---------------------------------------------------------------------------------------


def test_files_by_folder() -> None:
    calls = [
        write("src/a.py"),
        write("./src/pkg/b.py"),
        write("/home/dev/app/src/c.py", "t"),
        made("replace", file_path="src/a.py", instruction="i", old_string="a", new_string="b"),
    ]
    found = suggest(calls, PLAIN)
    rule = only(found)
    assert rule.tools == ("replace", "write_file")
    assert found.suggestions[0].calls == 4
    assert found.suggestions[0].sessions == 2
    assert "src/" in found.suggestions[0].opens
    engine = with_them(found)
    assert all(allows(engine, [*calls, write("src/deep/er/new.txt"), write("src/..x")]))
    assert not any(allows(engine, map(write, TABLES["beside_src"])))


def test_content_can_not_stand_in_for_the_path() -> None:
    engine = with_them(suggest([write("src/a.py")], PLAIN))
    text = '\0"file_path":"src/a.py"\0'
    lies = made("write_file", file_path="docs/a.md", content=text)
    nested = made("write_file", file_path="docs/a.md", more={"file_path": "src/a.py"})
    assert allows(engine, [lies, nested]) == [False, False]


def test_the_deepest_common_folder() -> None:
    calls = [write("src/app/models/a.py"), write("src/app/views/b.py"), write("docs/a.md")]
    found = suggest(calls, PLAIN)
    assert {each.about.rsplit(" ", 1)[1] for each in found.suggestions} == {"src/app/", "docs/"}
    assert allows(with_them(found), [write("src/app/x"), write("src/x")]) == [True, False]


def test_files_beside_the_folders_are_named_one_by_one() -> None:
    calls = [write("hello.py"), write("/home/dev/app/README.md")]
    found = suggest(calls, PLAIN)
    engine = with_them(found)
    assert all(allows(engine, [*calls, write("./hello.py"), write("README.md")]))
    beside = ["helloXpy", "hello.pyc", "x/hello.py", "other.py", ".bashrc", "../hello.py"]
    assert not any(allows(engine, map(write, beside)))


@each_row("path", TABLES["files_that_get_no_rule"])
def test_files_that_get_no_rule(path: str) -> None:
    found = suggest([write(path)], PLAIN)
    assert found.suggestions == ()
    assert found.left_out[0].why


def test_odd_names_are_meant_literally() -> None:
    calls = [write("a+b (1)/x.[y].py"), write("a+b (1)/{z}$.py"), write("münchen/ß.txt")]
    found = suggest(calls, PLAIN)
    assert all(allows(with_them(found), calls))
    assert allows(with_them(found), [write("aab 1/x.[y].py")]) == [False]


def test_patterns_are_kept_by_the_cli() -> None:
    calls = [write("src/a.py"), write("hello.py"), write("a+(b)/c")]
    for each in suggest(calls, PLAIN).suggestions:
        assert each.rule.args_pattern is not None
        assert patterns.unsafe(each.rule.args_pattern) is None


def test_many_files_make_patterns_that_fit() -> None:
    calls = [write(f"a-rather-long-name-of-a-file-{number}.txt") for number in range(200)]
    found = suggest(calls, PLAIN)
    assert len(found.suggestions) > 1
    assert all(len(each.rule.args_pattern or "") <= 2048 for each in found.suggestions)
    assert sum(each.calls for each in found.suggestions) == 200
    assert all(allows(with_them(found), calls))


# --- other tools, modes, what stands already ---------------------------------------------------


def test_what_is_allowed_already_needs_no_rule() -> None:
    calls = [made("read_file", file_path="a"), write("src/a.py"), shell("ls")]
    assert suggest(calls, PLAIN).allowed == 1
    assert suggest(calls, PLAIN, mode=ApprovalMode.AUTO_EDIT).allowed == 2
    found = suggest(calls, PLAIN, mode=ApprovalMode.YOLO)
    assert (found.allowed, found.suggestions) == (3, ())
    own = Policy.parse(
        '[[rule]]\ntoolName = "run_shell_command"\ncommandPrefix = "ls"\ndecision = '
        '"allow"\npriority = 5\n'
    )
    found = suggest([shell("ls"), shell("ls && pytest")], own)
    assert found.allowed == 1
    assert prefixes(found) == {"pytest"}
    assert all(allows(with_them(found, own), [shell("ls && pytest")]))


def test_tools_by_their_full_names() -> None:
    setup = Setup(settings={"mcpServers": {"weather": {"command": "x"}}})
    calls = [made("mcp_weather_get_forecast", city="Oslo"), made("web_fetch", prompt="http://x")]
    found = suggest(calls, PLAIN, setup=setup)
    assert {each.rule.tools for each in found.suggestions} == {
        ("mcp_weather_get_forecast",),
        ("web_fetch",),
    }
    engine = with_them(found, setup=setup)
    assert all(allows(engine, calls))
    assert allows(engine, [made("mcp_weather_set_alarm")]) == [False]


def test_tools_that_are_gone_get_no_rule() -> None:
    found = suggest([made("save_memory", fact="x"), made("weather__get", city="x")], PLAIN)
    assert found.suggestions == ()
    assert set(reasons(found)) == {"save_memory", "weather__get"}


def test_the_mode_is_never_left_by_rule() -> None:
    shut = Policy.parse('[[rule]]\ntoolName = "*"\ndecision = "deny"\npriority = 1\n')
    found = suggest([made("exit_plan_mode", plan_filename="x")], shut, mode=ApprovalMode.PLAN)
    assert found.suggestions == ()
    assert "approval mode" in reasons(found)["exit_plan_mode"]


@each_row("mode", [ApprovalMode.DEFAULT, ApprovalMode.AUTO_EDIT])
def test_rules_count_in_the_mode_that_was_asked_for(mode: ApprovalMode) -> None:
    found = suggest([shell("pytest")], PLAIN, mode=mode)
    assert only(found).modes == (mode.in_rules,)
    for other in ApprovalMode:
        expected = other in (mode, ApprovalMode.YOLO)
        assert allows(with_them(found, mode=other), [shell("pytest")]) == [expected]


def test_a_deny_on_purpose_stands() -> None:
    policy = Policy.parse(
        (
            '[[rule]]\ntoolName = "run_shell_command"\ncommandPrefix = "pytest"\ndecision = '
            '"deny"\npriority = 5\n'
        ),
        source="mine.toml",
    )
    found = suggest([shell("pytest"), shell("ls")], policy)
    assert prefixes(found) == {"ls"}
    assert reasons(found)["run_shell_command pytest"] == "rule 1 of mine.toml denies it"


def test_rules_that_guard_other_calls_keep_their_say() -> None:
    policy = Policy.parse(
        '[[rule]]\ntoolName = "run_shell_command"\ncommandPrefix = "pytest --danger"\n'
        'decision = "deny"\npriority = 50\n'
    )
    found = suggest([shell("pytest -q")], policy)
    assert only(found).priority == 49
    calls = [shell("pytest -q"), shell("pytest --danger")]
    assert allows(with_them(found, policy), calls) == [True, False]


def test_nothing_is_proposed_above_a_rule_that_guards() -> None:
    policy = Policy.parse(
        '[[rule]]\ntoolName = "run_shell_command"\ncommandPrefix = "pytest --danger"\n'
        'decision = "deny"\npriority = 50\n\n'
        '[[rule]]\ntoolName = "*"\ndecision = "deny"\npriority = 90\n'
    )
    found = suggest([shell("pytest -q")], policy)
    assert found.suggestions == ()
    assert "higher priority than rule 1" in found.left_out[0].why


@each_row("tool, decision", TABLES["what_is_asked_about_or_shut_with_all_else_is_overruled"])
def test_what_is_asked_about_or_shut_with_all_else_is_overruled(tool: str, decision: str) -> None:
    policy = Policy.parse(
        f'[[rule]]\ntoolName = "{tool}"\ndecision = "{decision}"\npriority = 500\n'
    )
    found = suggest([shell("pytest")], policy)
    assert only(found).priority == 501
    assert all(allows(with_them(found, policy), [shell("pytest")]))


def test_settings_that_exclude_a_tool_can_not_be_overruled() -> None:
    setup = Setup(settings={"tools": {"exclude": ["run_shell_command"]}})
    found = suggest([shell("pytest")], PLAIN, setup=setup)
    assert found.suggestions == ()
    assert found.left_out[0].why


def test_evidence_may_come_in_batches() -> None:
    calls = [shell("pytest"), write("src/a.py"), shell("rm x"), shell("git status")]
    evidence = Evidence(PLAIN)
    for each in calls:
        evidence.feed([each])
    assert evidence.suggest() == suggest(calls, PLAIN)
    assert evidence.suggest() == evidence.suggest()


def test_redirections_are_said_where_the_mode_lets_them_pass() -> None:
    calls = [shell("pytest > out.txt")]
    (found,) = suggest(calls, PLAIN, mode=ApprovalMode.AUTO_EDIT).suggestions
    assert "redirection" in found.opens
    (plain,) = suggest([shell("pytest")], PLAIN).suggestions
    assert "redirection" not in plain.opens


def test_nothing_is_proposed_for_what_the_tool_itself_would_refuse() -> None:
    calls = [shell("echo $(date)"), write(f"{HOME}/.git/hooks/x"), write(f"{HOME}/a.txt")]
    yolo = suggest(calls, PLAIN, mode=ApprovalMode.YOLO)
    assert (yolo.allowed, yolo.suggestions) == (1, ())
    for found in (yolo, suggest(calls, PLAIN)):
        why = reasons(found)
        assert "command substitution" in why["run_shell_command echo $(date)"]
        assert "through .git" in why[f"write_file {HOME}/.git/hooks/x"]
    assert only(suggest(calls, PLAIN)).args_pattern is not None


def test_what_was_written_outside_may_have_been_in_a_folder_of_the_run() -> None:
    assert suggest([write("/srv/notes/a.txt")], PLAIN, mode=ApprovalMode.YOLO).allowed == 1


def test_nothing_of_windows_is_suggested_that_no_pattern_names() -> None:
    paths = (r"C:\Users\Ada\app\src\a.py", "C:/Users/Ada/app/src/a.py")
    calls = [shell("git status; Remove-Item x"), *map(write, paths), write("src/a.py")]
    project = Path(r"c:\users\ada\app")
    found = suggest([replace(each, project=project) for each in calls], PLAIN)
    assert "users" not in (only(found).args_pattern or "")
    assert set(reasons(found).values()) == {
        POWERSHELL,
        "it is an absolute path of Windows, which suggested rules don't name",
    }
