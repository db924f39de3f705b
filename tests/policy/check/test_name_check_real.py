"""What the CLI offers of MCP servers with odd names, under rules as they are and as they are
fixed.
"""

from __future__ import annotations

import json
from pathlib import Path

from gemtui.policy.check.check_policy import check_files
from gemtui.policy.check.pitfalls import fixed
from gemtui.policy.engine.decide import Engine, McpTool, Setup
from gemtui.policy.file.policy import Policy
from gemtui.policy.file.rule_codec import rules_to_toml
from gemtui.policy.model.mcp_names import cli_name
from gemtui.policy.model.rules import ApprovalMode, Call, Decision, FindingKind, Rule
from tests.gated import put_server
from tests.model_server import ModelServer, answer, text
from tests.real_cli import GeminiCli

SERVERS = {
    "atlassian-rovo-mcp-server": ("deleteConfluencePageWithAttachmentsAndPermissions",),
    "My Docs": ("delete page",),
    "Her Docs": ("delete page",),
    "mcp_things": ("make",),
    "docs": ("a/b", "fine", "full"),
    "büro": ("löschen",),
}
TOOLS = {
    cli_name(server, tool): McpTool(server=server, name=tool)
    for server in SERVERS
    for tool in SERVERS[server]
}
DENIED = [(server, tool) for server, tools in SERVERS.items() for tool in tools]


def _deny(server: str, tool: str) -> Rule:
    return Rule(tools=(tool,), mcp_name=server, decision=Decision.DENY, priority=100)


RULES = [
    _deny("docs", "fine"),
    _deny("docs", "mcp_docs_full"),
    _deny("Her Docs", "*"),
    *(_deny(*pair) for pair in DENIED if pair[0] != "Her Docs" and pair[1] not in ("fine", "full")),
]


def _offered(gemini: GeminiCli, policy: Path) -> set[str]:
    with (
        ModelServer([answer(text("Done."))]) as model,
        gemini.start(model, "go", f"--policy={policy}") as run,
    ):
        run.finish()
        return {tool for tool in model.asked[0].tools if tool.startswith("mcp_")}


def test_rules_for_names_that_no_tool_has_deny_nothing_and_fixed_they_deny_all(
    gemini: GeminiCli,
) -> None:
    put_server(gemini, SERVERS)
    settings = json.loads((gemini.store / "settings.json").read_text())
    setup = Setup(settings=settings, mcp_tools=tuple(TOOLS.values()))
    hidden = {"mcp_docs_fine", "mcp_docs_full"}
    better = [fixed(rule) or rule for rule in RULES]
    for name, rules, expected in (("as-is", RULES, set(TOOLS) - hidden), ("fixed", better, set())):
        policy = gemini.folder / f"{name}.toml"
        policy.write_text(rules_to_toml(rules))
        never = [
            each.rule for each in check_files([policy]) if each.kind is FindingKind.NEVER_MATCHES
        ]
        assert never == ([*range(3, len(RULES) + 1)] if expected else [])
        engine = Engine(Policy.load(policy), mode=ApprovalMode.YOLO, setup=setup)
        assert {tool for tool in TOOLS if engine.outcome(Call(tool)).offered} == expected
        assert _offered(gemini, policy) == expected
