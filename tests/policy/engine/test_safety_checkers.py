"""Safety checkers of policy files, as the real CLI asks them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gemtui.policy.check.check_policy import check_text
from gemtui.policy.engine.decide import Engine, Setup
from gemtui.policy.file.policy import Policy
from gemtui.policy.model.rules import ApprovalMode, Call, Decision
from tests.model_server import ModelServer, answer, call, text
from tests.policy.rule_tables import rule_or_call
from tests.real_cli import GeminiCli
from tests.rows import each_row, table

TABLES = table("policy/safety_checkers.json", rule_or_call)
pytestmark = pytest.mark.covers("gemtui/policy")

ALLOWED_PATH = '[safety_checker.checker]\ntype = "in-process"\nname = "allowed-path"\n'
UNKNOWN = '[safety_checker.checker]\ntype = "external"\nname = "mine"\n'
POLICY = f"""
[[safety_checker]]
toolName = ["read_file", "write_file"]
{ALLOWED_PATH}
[[safety_checker]]
toolName = "list_directory"
{ALLOWED_PATH}required_context = []

[[safety_checker]]
toolName = "grep_search"
priority = 5
{ALLOWED_PATH}config = {{ excluded_args = ["dir_path"] }}

[[safety_checker]]
toolName = "glob"
modes = ["yolo"]
{UNKNOWN}
[[safety_checker]]
toolName = "update_topic"
modes = ["plan"]
{UNKNOWN}
[[safety_checker]]
toolName = "run_shell_command"
commandPrefix = "rm"
{UNKNOWN}"""
ALLOW, ASK, DENY = Decision.ALLOW, Decision.ASK_USER, Decision.DENY
CALLS = TABLES["calls"]


def test_the_real_cli_asks_the_checkers_as_we_do(gemini: GeminiCli) -> None:
    """All calls in one run, under yolo."""
    for name in ("a.txt", ".vscode/settings.json", "VSCODE~1/settings.json"):
        path = gemini.project / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("x\n")
    (gemini.project / "linked").symlink_to(".vscode")
    file = gemini.folder / "checkers.toml"
    file.write_text(POLICY)
    made = answer(*(call(each.tool, **each.args) for each, _ in CALLS))
    with (
        ModelServer([made, answer(text("Done."))]) as model,
        gemini.start(model, "go", f"--policy={file}") as run,
    ):
        results = [event for event in run.finish() if event["type"] == "tool_result"]
    assert [_seen(event) for event in results] == [decision for _, decision in CALLS]
    setup = Setup(workspace=gemini.project)
    engine = Engine(Policy.load(file), mode=ApprovalMode.YOLO, setup=setup)
    assert [engine.outcome(each).decision for each, _ in CALLS] == [wanted for _, wanted in CALLS]


def _seen(event: dict[str, Any]) -> Decision:
    match event.get("error", {}).get("type"):
        case "policy_violation":
            return DENY
        case "unhandled_exception" if "confirmation" in event["error"]["message"]:
            return ASK
        case None:
            return ALLOW
    raise AssertionError(event)


def test_a_checker_that_decides_is_told_with_the_rule_that_matched() -> None:
    said = Engine(Policy.parse(POLICY), mode=ApprovalMode.YOLO).explain(CALLS[1][0])
    assert said.because.startswith(
        "A built-in rule of Gemini CLI matches and would allow it, but Gemini CLI asks "
        "first: the safety checker allowed-path always asks about files in .vscode."
    )


def test_auto_edit_has_such_a_checker_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "linked").symlink_to(".vscode")
    for workspace, path in ((tmp_path, "linked/x"), (None, "VSCODE~1/x"), (None, "/a/.vscode/b")):
        engine = Engine(Policy(), mode=ApprovalMode.AUTO_EDIT, setup=Setup(workspace=workspace))
        made = Call("write_file", {"file_path": path, "content": ""})
        assert engine.outcome(made).decision is ASK
    yolo = Engine(Policy(), mode=ApprovalMode.YOLO)
    made = Call("write_file", {"file_path": ".vscode/x", "content": ""})
    assert yolo.outcome(made).decision is ALLOW


@each_row(
    "checker, said",
    [
        (UNKNOWN, "no external checker"),
        (f"{ALLOWED_PATH}required_context = ['history']\n", "environment"),
    ],
)
def test_a_checker_that_refuses_everything_is_told(checker: str, said: str) -> None:
    (found,) = check_text(f'[[safety_checker]]\ntoolName = "*"\n{checker}', "work.toml")
    assert said in found.message
    assert not check_text(f'[[safety_checker]]\ntoolName = "*"\n{ALLOWED_PATH}', "work.toml")
