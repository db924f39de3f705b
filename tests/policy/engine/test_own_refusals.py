"""What tools refuse by themselves, and that the real CLI's tools do."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gemtui.policy.engine.decide import Setup, decide
from gemtui.policy.engine.refusals import blocked_segment, tool_refuses
from gemtui.policy.file.policy import Policy
from gemtui.policy.model.rules import ApprovalMode, Call, Decision
from tests.model_server import ModelServer, answer, call, text
from tests.policy.rule_tables import rule_or_call
from tests.real_cli import GeminiCli
from tests.rows import table

TABLES = table("policy/own_refusals.json", rule_or_call)
pytestmark = pytest.mark.covers("gemtui/policy", "gemtui/calls")

REFUSED = TABLES["refused"]
DONE = TABLES["done"]


def name(made: Call) -> str:
    return f"{made.tool} {next(iter(made.args.values()))}"


@pytest.fixture
def project(gemini: GeminiCli) -> Path:
    """A project with what the calls are about, in the home of the real CLI."""
    for each in (".git/config", ".env", "docs/.env.example", "node_modules/a/index.js"):
        path = gemini.project / each
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x\n")
    (gemini.project / "linked").symlink_to(".git")
    return gemini.project


def test_the_tools_of_the_real_cli_refuse_what_we_say_they_do(
    gemini: GeminiCli, project: Path
) -> None:
    """All of them in one run, in which the policy allows everything."""
    made = (*REFUSED, *DONE)
    turns = [answer(*(call(each.tool, **each.args) for each in made)), answer(text("Done."))]
    with ModelServer(turns) as model, gemini.start(model, "go") as run:
        found = {
            event["tool_id"]: event for event in run.finish() if event["type"] == "tool_result"
        }
    refused = [name(one) for one, event in zip(made, found.values(), strict=True) if _is(event)]
    assert refused == list(map(name, REFUSED))
    setup = Setup(workspace=project)
    for each in made:
        said = decide(Policy(), each, ApprovalMode.YOLO, setup=setup)
        assert (said.tool_refuses is not None) is (each in REFUSED), name(each)


def _is(event: dict[str, Any]) -> bool:
    told = f"{event.get('output')} {event.get('error', {}).get('message')}"
    return "Blocked: command substitution" in told or "Path not in workspace" in told


def test_a_refusal_of_the_tool_is_a_deny_headless_and_says_why() -> None:
    said = decide(Policy(), Call("run_shell_command", {"command": "a `b`"}), "yolo")
    assert (said.decision, said.headless) == (Decision.ALLOW, Decision.DENY)
    assert (
        said.tool_refuses
        == "it does not accept command substitution: $(…), backticks, <(…) or >(…)"
    )
    assert "whatever the policy says: it does not accept command substitution" in said.because


def test_without_a_workspace_only_relative_paths_are_judged() -> None:
    def refused(path: str, mode: str = "yolo") -> bool:
        made = Call("write_file", {"file_path": path, "content": ""})
        return decide(Policy(), made, mode).tool_refuses is not None

    assert refused("a/.git/b")
    assert refused("../a")
    assert not refused("/srv/node_modules/app/a.txt")


def test_folders_that_the_settings_add_are_inside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`~` is a home there, `~name` a folder of that name."""
    monkeypatch.setenv("GEMINI_CLI_HOME", str(tmp_path / "home"))
    (tmp_path / "work").mkdir()
    added = ["../more", "~/x", "~root/y"]
    setup = Setup(workspace=tmp_path / "work", settings={"context": {"includeDirectories": added}})
    for path, refuses in (
        ("../more/a", False),
        ("../more/.git/a", True),
        ("../other/a", True),
        ("../home/x/a", False),
        ("~root/y/a", False),
        ("/root/y/a", True),
    ):
        said = decide(Policy(), Call("read_file", {"file_path": path}), setup=setup)
        assert (said.tool_refuses is not None) is refuses, path


PIECES = (
    "a",
    ".git",
    ".GIT",
    ".env ",
    "node_modules.",
    "gha-creds-1.json",
    "git~1",
    "..",
    ".",
    "",
    "~",
    "NODE_MODULES:x",
    "\0",
    "src",
    "/",
)


@given(st.lists(st.sampled_from(PIECES)), st.sampled_from("/\\"))
def test_recorded_paths_are_refused_by_every_name_that_live_ones_are(
    pieces: list[str], separator: str
) -> None:
    path = separator.join(pieces)
    read = Call(tool="read_file", args={"file_path": path})
    inside = os.path.normpath(path.replace("\0", ""))
    refused = tool_refuses(read, mode=ApprovalMode.DEFAULT, on_disk=False) is not None
    outside = inside.split("/")[0] == ".."
    expected = not inside.startswith("/") and (outside or blocked_segment(inside) is not None)
    assert refused is expected
