"""Rules in the words of a CLI that knows no policy files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import orjson
import pytest

from gemtui.agent.capabilities import Capabilities
from gemtui.agent.command import Command, Machine, command_of
from gemtui.agent.legacy_flags import LegacyFlags, legacy_flags_for
from gemtui.agent.options import AgentOptions
from gemtui.agent.run_folder import SETTINGS
from gemtui.errors import OptionError
from gemtui.policy.file.levels import Level, PermissionPolicy
from gemtui.policy.file.policy import Policy
from gemtui.policy.model.rules import ApprovalMode

FLAGS = "allowed-mcp-server-names allowed-tools approval-mode model output-format resume"


def rule(tool: str, decision: str, priority: int = 100, **more: str) -> str:
    fields = {"toolName": f'"{tool}"', "decision": f'"{decision}"', "priority": priority, **more}
    return "[[rule]]\n" + "".join(f"{name} = {value}\n" for name, value in fields.items())


def said(*rules: str, mode: ApprovalMode | None = None) -> LegacyFlags:
    return legacy_flags_for(Policy.parse("\n".join(rules), source="p.toml").rules, mode)


def command(options: AgentOptions, *, unread: str | None = None) -> Command:
    machine = Machine(
        cli=Path("/bin/gemini"),
        capabilities=Capabilities(
            flags=frozenset(FLAGS.split()),
            output_formats=("stream-json",),
            approval_modes=("default", "auto_edit", "yolo"),
        ),
        environ={},
        system_settings={"tools": {"core": ["glob", "read_file"]}},
        settings_unread=unread,
    )
    return command_of("x", options, machine, folder=Path("/runs/r"), session_id="s")


SHELL = "run_shell_command"
GIT = rule(SHELL, "allow", commandPrefix='["git status", "git log"]')


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        ((), LegacyFlags()),
        ((rule("write_file", "allow"),), LegacyFlags(allowed=("write_file",))),
        ((rule("write_file", "deny"),), LegacyFlags(exclude=("write_file",))),
        ((rule("write_file", "ask_user"),), LegacyFlags(exclude=("write_file",))),
        (
            (rule("write_file", "deny", 1), rule("write_file", "allow", 2)),
            LegacyFlags(allowed=("write_file",)),
        ),
        (
            (rule("write_file", "deny"), rule("write_file", "allow")),
            LegacyFlags(exclude=("write_file",)),
        ),
        ((rule("write_file", "deny", interactive="true"),), LegacyFlags()),
        ((rule("write_file", "deny", modes='["yolo"]'),), LegacyFlags()),
        (
            (GIT,),
            LegacyFlags(
                allowed=("run_shell_command(git status)", "run_shell_command(git log)"),
            ),
        ),
        ((GIT, rule(SHELL, "allow", 1)), LegacyFlags(allowed=(SHELL,))),
        ((GIT, rule(SHELL, "deny", 999)), LegacyFlags(exclude=(SHELL,))),
        (
            (rule("glob", "allow", 999), GIT, rule("*", "deny", 1)),
            LegacyFlags(
                allowed=("glob", "run_shell_command(git status)", "run_shell_command(git log)"),
                core=("glob", SHELL),
            ),
        ),
        ((rule("*", "deny"),), LegacyFlags(core=())),
        (
            (rule("grep_search", "deny"),),
            LegacyFlags(exclude=("grep_search", "search_file_content")),
        ),
        (
            (rule("write_file", "deny", 999), rule("write_file", "deny", argsPattern='"x"')),
            LegacyFlags(exclude=("write_file",)),
        ),
    ],
)
def test_what_can_be_said(rules: Sequence[str], words: LegacyFlags) -> None:
    assert said(*rules) == words


def test_yolo_allows_without_a_word() -> None:
    words = said(
        rule("glob", "deny", 999), GIT, rule("write_file", "allow"), mode=ApprovalMode.YOLO
    )
    assert words == LegacyFlags(exclude=("glob",))


@pytest.mark.parametrize(
    ("rules", "mode", "why"),
    [
        ((rule("write_file", "deny", argsPattern='"x"'),), None, "patterns for arguments"),
        ((rule("write_file", "ask_user", argsPattern='"x"'),), None, "patterns for arguments"),
        ((rule(SHELL, "deny", commandPrefix='"git push"'),), None, "rules that deny a command"),
        ((rule("*", "deny", argsPattern='"x"'),), None, "patterns for arguments"),
        ((rule("x", "deny", mcpName='"srv"'),), None, "tools of MCP servers"),
        ((rule("mcp_srv_*", "deny"),), None, "tools of MCP servers"),
        ((rule("glob", "deny", subagent='"generalist"'),), None, "rules for one subagent"),
        (
            (GIT, rule(SHELL, "deny", 1)),
            ApprovalMode.YOLO,
            "command prefixes that are exceptions in yolo mode",
        ),
    ],
)
def test_a_refusal_that_would_be_lost_stops_the_run(
    rules: Sequence[str], mode: ApprovalMode | None, why: str
) -> None:
    with pytest.raises(OptionError, match=r"^p\.toml: rule \d refuses calls, and .*") as caught:
        said(*rules, mode=mode)
    assert why in str(caught.value)
    assert "update it to 0.30 or newer, or leave the rule out" in str(caught.value)


def test_a_server_s_tools_are_closed_with_all_others() -> None:
    assert said(rule("mcp_srv_*", "deny"), rule("*", "deny", 1)) == LegacyFlags(core=())
    only = command(AgentOptions(only_tools=("glob", "discovered_tool_x"), mcp_servers=("srv",)))
    assert "--allowed-mcp-server-names=no-server" in only.argv
    assert "--allowed-mcp-server-names=srv" not in only.argv
    assert orjson.loads(only.files[SETTINGS])["tools"] == {"core": ["glob"]}


@pytest.mark.parametrize(
    ("rules", "note"),
    [
        (
            rule("write_file", "allow", argsPattern='"docs"'),
            "doesn't support patterns for arguments",
        ),
        (rule("mcp_srv_x", "allow"), "doesn't support rules for tools of MCP servers"),
        (rule(SHELL, "allow", commandPrefix='"echo a,b"'), "command prefixes with a comma"),
    ],
)
def test_an_allow_that_is_lost_is_noted(rules: str, note: str) -> None:
    words = said(rules)
    assert (words.allowed, words.core) == ((), None)
    assert words.notes[0].startswith("p.toml: rule 1 allows nothing")
    assert note in words.notes[0]


def test_all_of_a_run_s_words_at_once(tmp_path: Path) -> None:
    policy = tmp_path / "mine.toml"
    policy.write_text(GIT + rule("write_file", "allow", 999) + rule("web_fetch", "deny"))
    options = AgentOptions(
        permissions=PermissionPolicy(file_write=Level.DENY, network_access=Level.ALLOW),
        policies=(policy,),
        approved_tools=("discovered_tool_x",),
    )
    found = command(options)
    assert found.argv == (
        "/bin/gemini",
        "--output-format=stream-json",
        "--allowed-tools=discovered_tool_x",
        "--allowed-tools=google_web_search",
        "--allowed-tools=web_fetch",
    )
    assert set(found.files) == {SETTINGS}
    tools = orjson.loads(found.files[SETTINGS])["tools"]
    assert tools["exclude"] == ["replace", "run_shell_command", "write_file"]
    assert "headless runs can't ask, so “ask” means deny" in found.notes


def test_denies_that_nobody_hears_stop_the_run() -> None:
    options = AgentOptions(disallowed_tools=("glob",))
    with pytest.raises(OptionError, match="would ignore which tools are denied"):
        command(options, unread="others may write there")
