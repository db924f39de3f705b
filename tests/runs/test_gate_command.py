"""The command of a run that asks, and the rules that its supervisor adds."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from gemtui.agent.command import GATE, UNASKED, Command, Machine, command_of, rerun_line
from gemtui.agent.detect import NEWEST
from gemtui.agent.options import AgentOptions
from gemtui.agent.run_folder import Request, RunFolder
from gemtui.agent.settings import CliSettings, SettingsFile
from gemtui.calls.effect import CallContext, effect
from gemtui.calls.later_files import starts_it
from gemtui.policy.engine.decide import Engine, Setup
from gemtui.policy.file.levels import PermissionPolicy
from gemtui.policy.file.policy import Policy
from gemtui.policy.model.rules import ApprovalMode, Call, Decision
from gemtui.runs.gate.policy import GatePolicy, Judgement, Way
from gemtui.transcript.seal import new_seal, sealed
from tests.rows import each_row, table

TABLES = table("runs/gate_command.json")

SEAL = new_seal()


def command(tmp_path: Path, settings: CliSettings | None = None, **more: Any) -> Command:
    mine = tmp_path / "mine.toml"
    mine.touch()
    machine = Machine(
        cli=Path("/bin/gemini"),
        capabilities=NEWEST,
        environ={"HOME": str(tmp_path / "home")},
        user_policies=(mine,),
        settings=settings or CliSettings((), tmp_path),
    )
    base: dict[str, Any] = {"cwd": tmp_path, "approval_mode": "default"}
    options = AgentOptions(**(base | more))
    return command_of("go", options, machine, folder=tmp_path / "run", session_id="s1")


def policies(argv: tuple[str, ...] | list[str]) -> list[str]:
    return [Path(word).name for word in argv if word.startswith("--policy=")]


def test_it_is_the_run_as_it_is_with_one_file_more(tmp_path: Path) -> None:
    given: dict[str, Any] = {"disallowed_tools": ["glob"], "approved_tools": ["web_fetch"]}
    asks, plain = command(tmp_path, ask=True, **given), command(tmp_path, **given)
    assert policies(asks.argv) == ["policy-first.toml", GATE, "mine.toml", "policy-last.toml"]
    assert [word for word in asks.argv if not word.endswith(GATE)] == list(plain.argv)
    assert asks.environ == plain.environ
    assert policies(command(tmp_path, ask=True).argv) == [GATE, "mine.toml"]


@pytest.mark.parametrize("level", ["deny", "ask", "allow"])
def test_a_run_that_may_run_no_command_may_run_none_by_a_search(tmp_path: Path, level: str) -> None:
    made = command(
        tmp_path, approval_mode="yolo", permissions=PermissionPolicy(shell_execute=level)
    )
    policy = Policy.parse(made.files.get("policy-first.toml", ""))
    engine = Engine(policy, mode=ApprovalMode.YOLO)
    for pattern, denied in (("-Osh x", level != "allow"), ("[-]Osh x", False)):
        call = Call("grep_search", {"pattern": pattern, "include_pattern": "x"})
        assert (engine.outcome(call).decision is Decision.DENY) is denied


@pytest.mark.parametrize(
    ("repository", "denied"), TABLES["no search runs a command that the mode denies"]
)
def test_no_search_runs_a_command_that_the_mode_denies(
    tmp_path: Path, repository: str, denied: bool
) -> None:
    project = tmp_path / "project"
    (project / repository).mkdir(parents=True)
    option = Call("grep_search", {"pattern": "-Osh x", "include_pattern": "x"})
    mine = [tmp_path / "mine.toml"]
    for mode in (ApprovalMode.DEFAULT, ApprovalMode.AUTO_EDIT, ApprovalMode.PLAN):
        for more in ({"policies": mine}, {"disallowed_tools": ["glob"]}):
            made = command(tmp_path, cwd=project, approval_mode=mode, **more)
            policy = Policy.parse(made.files.get("policy-first.toml", ""))
            policy += Policy.parse(RULE.format("grep_search", "allow", 999))
            outcome = Engine(policy, mode=mode).outcome(option)
            assert (outcome.decision is Decision.DENY) is denied
        assert not policies(command(tmp_path, cwd=project, approval_mode=mode).argv)
    added = command(tmp_path, include_directories=[project], policies=mine)
    assert ("policy-first.toml" in policies(added.argv)) is denied


@pytest.mark.parametrize(
    "free", [{"approval_mode": "yolo"}, {"approved_tools": ["run_shell_command"]}]
)
def test_searches_are_limited_if_anything_limits_commands(
    tmp_path: Path, free: dict[str, Any]
) -> None:
    (tmp_path / ".git").mkdir()
    settings = SettingsFile(tmp_path, {"tools": {"exclude": ["run_shell_command"]}})

    def limits(rules: str = "", *files: SettingsFile) -> bool:
        (tmp_path / "mine.toml").write_text(rules)
        made = command(tmp_path, CliSettings(files, tmp_path), disallowed_tools=["glob"], **free)
        return "grep_search" in made.files["policy-first.toml"]

    assert not limits()
    assert not limits(RULE.format("run_shell_command", "allow", 9))
    assert not limits(RULE.format("write_file", "deny", 9))
    assert limits(RULE.format("run_shell_command", "ask_user", 9))
    assert limits(RULE.format("*", "deny", 9))
    assert limits("", settings)


def test_where_repositories_can_not_be_ruled_out_searches_have_no_options(tmp_path: Path) -> None:
    for number in range(1001):
        (tmp_path / str(number)).mkdir()
    made = command(tmp_path, policies=[tmp_path / "mine.toml"])
    assert policies(made.argv)[0] == "policy-first.toml"


def test_copied_lines_ask_nobody_and_are_free_to_nothing(tmp_path: Path) -> None:
    asks = command(tmp_path, ask=True, approval_mode="default")
    script = "\n".join(asks.script("go", tmp_path / "run", tmp_path))
    assert GATE not in script
    assert UNASKED in script
    assert "yolo" not in script
    folder = RunFolder.create(tmp_path, "run")
    request = Request(id="run", argv=asks.argv, cwd=str(tmp_path), environ=asks.environ)
    assert GATE not in rerun_line(request, folder)


@each_row("value, corrects", TABLES["a model may rewrite texts wherever the check says so"])
def test_a_model_may_rewrite_texts_wherever_the_check_says_so(
    value: object, corrects: bool
) -> None:
    setup = Setup(workspace=Path("/nowhere"), settings={"tools": {"disableLLMCorrection": value}})
    assert GatePolicy(Policy(), setup, ApprovalMode.DEFAULT).corrects is corrects


def judged(policy: GatePolicy, project: Path, named: object) -> Judgement:
    """What the gate says of a write to a file of a project."""
    args = {"file_path": str(named), "content": ""}
    does = effect("write_file", args, CallContext(project=project, model="gemini-2.5-pro"))
    return policy.judge(Call("write_file", args), does)


def decided(engine: Engine, call: Call, seal: str = SEAL) -> Decision:
    """The CLI's decision on a call that has a seal."""
    return engine.outcome(Call(call.tool, sealed(call.tool, call.args, seal))).decision


def asked_by(command: Command, cwd: Path, mode: str = "default", **environ: str) -> GatePolicy:
    """What the gate of a run with this command knows."""
    about: Any = {"ask": True, "approval_mode": mode}
    request = Request(id="run", argv=command.argv, cwd=str(cwd), environ=environ, about=about)
    return GatePolicy.of(request, os.environ)


def gate(text: str, mode: ApprovalMode = ApprovalMode.DEFAULT) -> GatePolicy:
    return GatePolicy(Policy.parse(text), Setup(workspace=Path("/nowhere")), mode)


def unasked(text: str, mode: ApprovalMode = ApprovalMode.DEFAULT) -> Engine:
    """The CLI's own decisions in such a run."""
    policy = Policy.parse(gate(text, mode).rules_text(SEAL)) + Policy.parse(text)
    assert not policy.findings
    return Engine(policy, mode=mode)


RULE = '[[rule]]\ntoolName = "{}"\ndecision = "{}"\npriority = {}\n'
RULES_FILE = "Later runs read their rules from this file."
CALLS = (
    Call("write_file", {"file_path": "a", "content": ""}),
    Call("run_shell_command", {"command": "touch a && cat < b > c | sh"}),
    Call("web_fetch", {"prompt": "x"}),
)


def test_what_has_the_seal_is_allowed_and_nothing_else(tmp_path: Path) -> None:
    engine = unasked("")
    for call in CALLS:
        assert engine.outcome(call).decision is Decision.DENY
        assert decided(engine, call) is Decision.ALLOW
        assert decided(engine, call, new_seal()) is Decision.DENY


def test_questions_of_the_user_s_rules_are_lifted_by_the_seal_alone() -> None:
    for mode in (ApprovalMode.DEFAULT, ApprovalMode.AUTO_EDIT, ApprovalMode.YOLO):
        text = RULE.format("write_file", "ask_user", 900)
        engine = unasked(text, mode)
        call = CALLS[0]
        assert gate(text, mode).judge(call).way is Way.ASK
        assert engine.outcome(call).decision is not Decision.ALLOW
        assert decided(engine, call) is Decision.ALLOW


def test_what_the_cli_takes_for_safe_and_is_not_is_asked_about() -> None:
    def judged(command: str, text: str = "") -> Judgement:
        return gate(text).judge(Call("run_shell_command", {"command": command}))

    assert judged("ls").way is Way.THROUGH
    for command in ("uniq a b", "ls\u00a0x/e.sh", "git -C x status"):
        assert judged(command).way is Way.ASK, command
    allowed = judged("uniq a b", RULE.format("run_shell_command", "allow", 5))
    assert (allowed.way, allowed.rule) == (Way.THROUGH, "rule 1 of policy.toml")


@pytest.mark.parametrize("tool", ["grep_search", "search_file_content"])
def test_a_search_whose_pattern_is_an_option_is_denied_by_hook_and_policy(tool: str) -> None:
    text = RULE.format("grep_search", "allow", 999)
    option, plain = ({"include_pattern": "x", "pattern": each} for each in ("-Osh x", "[-]Osh x"))
    excludes = {"exclude_pattern": "-x", "pattern": 'x "pattern":"-y'}
    for mode in (ApprovalMode.DEFAULT, ApprovalMode.AUTO_EDIT, ApprovalMode.PLAN):
        engine, judge = unasked(text, mode), gate(text, mode).judge
        assert judge(Call(tool, option)).way is Way.REFUSE
        assert engine.outcome(Call(tool, option)).decision is Decision.DENY
        assert engine.outcome(Call("grep_search", option)).offered
        for args in (plain, excludes):
            assert judge(Call(tool, args)).way is Way.PASS
            assert engine.outcome(Call(tool, args)).decision is Decision.ALLOW


def test_a_search_that_git_may_lead_elsewhere_is_denied(tmp_path: Path) -> None:
    plain = Setup(workspace=tmp_path)

    def way(folder: str = "", setup: Setup = plain) -> Way:
        policy = GatePolicy(Policy(), setup, ApprovalMode.DEFAULT)
        return policy.judge(Call("grep_search", {"pattern": "x", "dir_path": folder})).way

    assert way() is Way.PASS
    config = tmp_path / ".git/config"
    config.parent.mkdir()
    config.write_text("[core]\n\tbare = false\n")
    assert way() is Way.PASS
    for name in ("objects", "refs", "HEAD"):
        (tmp_path / "bare" / name).mkdir(parents=True)
    assert way("bare") is Way.REFUSE
    assert way("b%61re") is Way.REFUSE
    sub = tmp_path / "sub"
    sub.mkdir()
    (sub / ".git").write_text("gitdir: ../.git/modules/sub\n")
    module = tmp_path / ".git/modules/sub"
    module.mkdir(parents=True)
    (module / "config").write_text("[core]\n\tworktree = ../../../sub\n")
    assert way("sub") is Way.PASS
    (module / "config").write_text("[grep]\n\tfullName\n")
    assert way("sub") is Way.REFUSE
    added = Setup(workspace=sub, settings={"context": {"includeDirectories": [str(tmp_path)]}})
    config.write_text("[grep]\n\tfullName\n")
    (module / "config").write_text("")
    assert way(setup=Setup(workspace=sub)) is Way.PASS
    assert way(setup=added) is Way.REFUSE
    for text in (
        "#" * 5_000_000,
        "[core]\n\tworktree = /\n[grep]\n\tFULLNAME = true\n",
        "[include]\n\tpath = x\n",
    ):
        config.write_text(text)
        assert way() is Way.REFUSE


def test_writes_and_commands_without_the_seal_are_refused_and_not_hidden() -> None:
    text = RULE.format("write_file", "allow", 999) + RULE.format("run_shell_command", "allow", 5)
    for mode in (ApprovalMode.DEFAULT, ApprovalMode.AUTO_EDIT):
        engine = unasked(text, mode)
        for call in (*CALLS[:2], Call("run_shell_command", {"command": "ls"})):
            outcome = engine.outcome(call)
            assert (outcome.decision, outcome.offered) == (Decision.DENY, True)
            assert gate(text, mode).judge(call).way is not Way.PASS
            assert decided(engine, call) is Decision.ALLOW


@each_row(
    "named, way",
    [
        ("a.md", Way.THROUGH),
        ("LICENSE", Way.THROUGH),
        ("src/A.TSX", Way.THROUGH),
        (".gitkeep", Way.THROUGH),
        (".npmrc", Way.ASK),
        ("bin/tool", Way.ASK),
        ("tool.conf", Way.ASK),
        ("a.md.later", Way.ASK),
    ],
)
def test_a_file_that_decides_what_runs_later_is_asked_about(
    tmp_path: Path, named: str, way: Way
) -> None:
    policy = GatePolicy(Policy(), Setup(workspace=tmp_path), ApprovalMode.AUTO_EDIT)
    for spelled in (named, named.replace(".", "%2e")):
        assert judged(policy, tmp_path, spelled).way is way


def test_a_file_that_settings_or_git_use_or_with_other_names_is_asked_about(tmp_path: Path) -> None:
    settings = {
        "hooks": {
            "AfterTool": [{"hooks": [{"command": "sh $GEMINI_PROJECT_DIR/tools/after.sh && x"}]}],
            "BeforeTool": [{"command": "python3 -m tools.before --config=tools/before.toml"}],
        },
        "mcpServers": {"m": {"command": "node", "args": ["--enable", "server.js"], "cwd": "srv"}},
        "agents": {"overrides": {"a": {"mcpServers": {"n": {"command": "./agent"}}}}},
        "tools": {"discoveryCommand": "bin/discover all"},
    }
    policy = GatePolicy(
        Policy(),
        Setup(workspace=tmp_path, settings=settings),
        ApprovalMode.AUTO_EDIT,
        {"PATH": f"/bin:{tmp_path}/on:."},
        policies=[tmp_path / each for each in ("rules", "none.toml", "named.toml")],
    )

    (tmp_path / ".git").mkdir()
    (tmp_path / ".git/config").write_text(
        "[core] hooksPath = ci/hooks # x\n[user]\n\tname = three.txt\n"
        '[filter "a.b"]\n\tclean = "python tools/clean.py" %f\n\tsmudge = sh \\\n tools/smudge\n'
        "[ALIAS]\n\tx = !tools/alias a\n\ty = log\n[core]\n\tfsmonitor = ./watch\n"
    )
    (tmp_path / "one.txt").write_text("x")
    (tmp_path / "two.txt").hardlink_to(tmp_path / "one.txt")
    (tmp_path / "link.sh").symlink_to("tools/after.sh")
    started = "tools/after.sh link.sh tools/before.py tools/before.toml srv/server.js agent"
    by_git = "ci/hooks/pre-commit tools/clean.py tools/smudge tools/alias watch"
    for named in f"{started} {by_git} bin/discover one.txt".split():
        assert judged(policy, tmp_path, named).way is Way.ASK, named
    assert judged(policy, tmp_path, "agent").why == "Gemini CLI's settings start it as a program."
    for program in (tmp_path / "on/lint.sh", tmp_path / "off/lint.sh"):
        program.parent.mkdir()
        program.touch(0o755)
    assert judged(policy, tmp_path, "on/lint.sh").why.startswith(
        "Shells run this file as the command lint.sh"
    )
    for named in ("rules/a.toml", "none.toml", "named.toml"):
        assert judged(policy, tmp_path, named).why == RULES_FILE
    for named in (
        "tools/other.sh",
        "server.js",
        "srv/other.js",
        "three.txt",
        "ci/x.sh",
        "log.txt",
        "off/lint.sh",
        "on/new.sh",
    ):
        assert judged(policy, tmp_path, named).way is Way.THROUGH, named


def test_a_hook_is_known_in_a_worktree_and_by_the_user_s_own_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    main, tree, home = tmp_path / "main", tmp_path / "tree", tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    git = ["git", "-C", str(main), "-c", "user.name=a", "-c", "user.email=a@b.c"]
    subprocess.run(["git", "init", "-q", str(main)], check=True)
    for words in ("commit -qm x --allow-empty", f"worktree add -q {tree}"):
        subprocess.run([*git, *words.split()], check=True)
    subprocess.run([*git, "config", "core.hooksPath", "ci"], check=True)
    (home / ".gitconfig").write_text("[core]\n\thooksPath = every\n")
    for name, starts in (("ci/pre-commit", True), ("every/pre-commit", True), ("x", False)):
        assert (starts_it({}, tree, tree / name) is not None) is starts


def test_rules_hold_for_the_file_that_a_path_leads_to(tmp_path: Path) -> None:
    denies = f"{RULE.format('write_file', 'deny', 9)}argsPattern = 'secret\\.md'\n"
    allows = f"{RULE.format('write_file', 'allow', 5)}argsPattern = '\"docs/'\n"
    policy = GatePolicy(
        Policy.parse(denies + allows), Setup(workspace=tmp_path), ApprovalMode.DEFAULT
    )
    for named, way in (
        ("docs/a.md", Way.THROUGH),
        ("docs%2fa.md", Way.ASK),
        ("docs/%2e%2e/a.md", Way.ASK),
        ("docs/secret%2emd", Way.REFUSE),
    ):
        assert judged(policy, tmp_path, named).way is way, named


def test_what_rules_hide_stays_hidden() -> None:
    engine = unasked(RULE.format("web_fetch", "deny", 5))
    assert not engine.outcome(CALLS[2]).offered
    assert engine.outcome(CALLS[0]).offered


def test_tools_of_servers_are_held_by_the_hook_and_the_user_s_denies() -> None:
    text = RULE.format("mcp_a_b", "deny", 50) + RULE.format("*", "ask_user", 40)
    engine = unasked(text)
    assert engine.outcome(Call("mcp_a_b")).decision is Decision.DENY
    assert engine.outcome(Call("mcp_a_c")).decision is Decision.ALLOW
    assert gate(text).judge(Call("mcp_a_b")).way is Way.REFUSE
    assert gate(text).judge(Call("mcp_a_c")).way is Way.ASK


def test_in_plan_mode_the_seal_opens_no_writes() -> None:
    engine = unasked("", ApprovalMode.PLAN)
    for call in CALLS[:2]:
        assert decided(engine, call) is Decision.DENY
    assert not engine.outcome(CALLS[1]).offered
    assert gate("", ApprovalMode.PLAN).judge(CALLS[2]).way is Way.ASK
    assert decided(engine, CALLS[2]) is Decision.ALLOW


def test_the_rules_of_the_options_count_for_whoever_is_asked(tmp_path: Path) -> None:
    asks = command(
        tmp_path, ask=True, approved_tools=["web_fetch"], disallowed_tools=["run_shell_command"]
    )
    folder = RunFolder.create(tmp_path, "run")
    for name, text in asks.files.items():
        folder.write(name, text)
    policy = asked_by(asks, tmp_path, HOME=str(tmp_path / "home"))
    ways = [policy.judge(call).way for call in CALLS]
    assert ways == [Way.ASK, Way.REFUSE, Way.PASS]


def test_a_folder_that_the_run_includes_is_asked_about_not_refused(tmp_path: Path) -> None:
    work, more = tmp_path / "work", tmp_path / "more"
    work.mkdir()
    more.mkdir()
    write = Call("write_file", {"file_path": str(more / "a.txt"), "content": "x"})
    for included, way in (((), Way.REFUSE), ((more,), Way.ASK)):
        asks = command(tmp_path, ask=True, include_directories=included)
        assert asked_by(asks, work, HOME=str(tmp_path / "home")).judge(write).way is way


def test_folders_and_rules_that_the_settings_name_are_those_of_the_runs_home(
    tmp_path: Path,
) -> None:
    home, work = tmp_path / "elsewhere", tmp_path / "work"
    for folder in (home / ".gemini", home / "more", work):
        folder.mkdir(parents=True)
    settings = {
        "context": {"includeDirectories": ["~/more", "a\0b"]},
        "policyPaths": ["~/more/rules"],
    }
    (home / ".gemini/settings.json").write_text(json.dumps(settings))
    included = [home / "more"]
    asks = command(tmp_path, ask=True, approval_mode="auto_edit", include_directories=included)
    policy = asked_by(asks, work, "auto_edit", GEMINI_CLI_HOME=str(home))

    assert judged(policy, work, home / "more/notes.txt").way is not Way.ASK
    assert judged(policy, work, home / "more/rules/a.toml").why == RULES_FILE
    write = Call("write_file", {"file_path": str(home / "more/notes.txt"), "content": ""})
    alone = asked_by(command(tmp_path, ask=True), work, GEMINI_CLI_HOME=str(home))
    assert alone.judge(write).way is Way.ASK
