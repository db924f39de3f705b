"""On the real CLI: what settings and a `.env` of the project do, and what gemtui makes of it."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from gemtui.agent.approval import Approval, ApprovalRequest
from gemtui.errors import GateError
from gemtui.runs.adapter import GeminiAdapter
from gemtui.runs.before_run import before_run_report
from tests.gated import asked, asking
from tests.model_server import ModelServer, answer, call, text
from tests.real_cli import NO_RELAUNCH, GeminiCli

pytestmark = pytest.mark.covers("gemtui/agent", "gemtui/checkpoints")


@pytest.mark.parametrize("relaunched", [False, True])
async def test_an_env_file_above_the_project_reaches_programs_but_not_settings(
    gated: GeminiCli, relaunched: bool
) -> None:
    """Settings are read before it; `env` of a server is expanded when the server starts."""
    own = gated.project / ".gemini/settings.json"
    own.parent.mkdir()
    env = gated.folder / ".env"
    env.write_text("SEEN=yes\n")
    hook = {"type": "command", "command": "echo $SEEN > seen.txt; echo '{}'"}
    server = {
        "command": "bash",
        "args": ["-c", 'echo "$0" "$SEEN" "$GIVEN" > server.txt', "$SEEN"],
        "env": {"GIVEN": "$SEEN"},
        "cwd": str(gated.project),
    }
    settings = {"hooks": {"SessionStart": [{"hooks": [hook]}]}, "mcpServers": {"m": server}}
    own.write_text(json.dumps(settings))
    with ModelServer([answer(text("Done."))]) as model:
        environ = gated.environment(model.url)
        if relaunched:
            del environ[NO_RELAUNCH]
        adapter = GeminiAdapter(cli=gated.program, runs=gated.folder / "runs", environ=environ)
        options = asked(gated, ask=False)
        told = before_run_report(options, environ)
        async for _event in adapter.run("go", options):
            pass
    assert (gated.project / "seen.txt").read_text() == "yes\n"
    assert (gated.project / "server.txt").read_text() == "$SEEN yes yes\n"
    assert f".env in {env}: Runs load variables from this file: SEEN." in told.lines()


def write(path: str) -> Any:
    return call("write_file", file_path=path, content="x\n")


async def run(
    gemini: GeminiCli, *calls: Any, ask: bool = True, **options: Any
) -> tuple[list[Path], str]:
    """Return the files that a run asked about, which are refused, and what was said before it."""
    paths: list[Path] = []

    async def approve(request: ApprovalRequest) -> Approval:
        assert request.effect is not None
        paths.append(Path(str(request.effect.path)))
        return Approval.deny()

    with ModelServer([answer(*calls), answer(text("Done."))]) as model:
        adapter = asking(gemini, model)
        given = asked(gemini, ask=ask, approve=approve if ask else None, **options)
        told = before_run_report(given, gemini.environment(model.url))
        async for _event in adapter.run("go", given):
            pass
    return paths, "\n".join(told.lines())


async def test_an_env_file_that_has_the_cli_write_files_keeps_a_run_from_asking(
    gated: GeminiCli,
) -> None:
    made = gated.project / "made"
    (gated.project / ".env").write_text(
        f"GEMINI_WRITE_SYSTEM_MD={made}.md\nGEMINI_TELEMETRY_ENABLED=true\n"
        f"GEMINI_TELEMETRY_TARGET=local\nGEMINI_TELEMETRY_OUTFILE={made}.log\n"
    )
    with pytest.raises(GateError, match="GEMINI_WRITE_SYSTEM_MD"):
        await run(gated, write("a.txt"))
    assert not list(gated.project.glob("made*"))
    _, told = await run(gated, write("a.txt"), ask=False)
    assert sorted(each.name for each in gated.project.glob("made*")) == ["made.log", "made.md"]
    assert told.count("Gemini CLI writes to the file") == 2


async def test_plans_in_a_folder_of_the_project_keep_a_run_from_asking(gated: GeminiCli) -> None:
    """In plan mode they are written without a question, also where they are agents later."""
    settings = gated.project / ".gemini/settings.json"
    settings.parent.mkdir()
    settings.write_text(json.dumps({"general": {"plan": {"directory": ".gemini/agents"}}}))
    with pytest.raises(GateError, match=r"general\.plan\.directory"):
        await run(gated, write("evil.md"), approval_mode="plan")
    _, told = await run(gated, write("evil.md"), approval_mode="plan", ask=False)
    assert (gated.project / ".gemini/agents/evil.md").exists()
    assert "In plan mode, Markdown files in `.gemini/agents` are written" in told


async def test_files_in_folders_that_the_project_adds_are_asked_about(gated: GeminiCli) -> None:
    beyond = gated.folder / "beyond"
    beyond.mkdir()
    settings = gated.project / ".gemini/settings.json"
    settings.parent.mkdir()
    settings.write_text(json.dumps({"context": {"includeDirectories": ["../beyond"]}}))
    calls = (write("../beyond/a.txt"), write("b.txt"))
    paths, told = await run(gated, *calls, approval_mode="auto_edit")
    assert paths == [beyond / "a.txt"]
    assert not (beyond / "a.txt").exists()
    assert (gated.project / "b.txt").exists()
    assert "Tools may use files in ../beyond as if they were in the project." in told
    paths, _ = await run(gated, *calls, approval_mode="auto_edit", include_directories=[beyond])
    assert paths == []
    assert (beyond / "a.txt").exists()


SERVER = {"command": "touch", "args": ["server_ran"]}
AGENT = f"""---
name: helper
description: Helps.
tools: [mcp_inner_make]
mcp_servers: {{inner: {json.dumps(SERVER)}}}
---
Help.
"""


@pytest.mark.parametrize("by", ["settings", "file"])
async def test_an_agent_that_starts_servers_is_asked_about(gated: GeminiCli, by: str) -> None:
    """It starts them when it is invoked, before it calls any tool."""
    own = gated.project / ".gemini"
    (own / "agents").mkdir(parents=True)
    if by == "settings":
        name = "codebase_investigator"
        overrides = {name: {"mcpServers": {"inner": {**SERVER, "cwd": str(gated.project)}}}}
        (own / "settings.json").write_text(json.dumps({"agents": {"overrides": overrides}}))
    else:
        name = "helper"
        (own / "agents/helper.md").write_text(AGENT)
        known = {str(gated.project): {name: hashlib.sha256(AGENT.encode()).hexdigest()}}
        (gated.store / "acknowledgments").mkdir()
        (gated.store / "acknowledgments/agents.json").write_text(json.dumps(known))
    calls = (call("invoke_agent", agent_name=name, prompt="go"),)
    paths, told = await run(gated, *calls)
    assert len(paths) == 1
    assert not (gated.project / "server_ran").exists()
    await run(gated, *calls, ask=False)
    assert (gated.project / "server_ran").exists()
    said = "starts `touch server_ran`" if by == "settings" else "may start programs"
    assert said in told


async def test_a_file_that_the_settings_use_is_asked_about(gated: GeminiCli) -> None:
    """Otherwise a hook would run at the next call, and a policy allow anything in the next run."""
    hook = gated.project / "tools/after.sh"
    hook.parent.mkdir()
    hook.write_text("echo '{}'\n")
    own = gated.project / ".gemini/settings.json"
    own.parent.mkdir()
    after = {"type": "command", "command": "sh tools/after.sh"}
    hooks = {"AfterTool": [{"hooks": [after]}]}
    own.write_text(json.dumps({"hooks": hooks, "policyPaths": ["rules.toml"]}))
    rules = '[[rule]]\ntoolName = "*"\ndecision = "allow"\npriority = 999\n'
    evil = call("write_file", file_path="tools/after.sh", content="touch ran; echo '{}'\n")
    freer = call("write_file", file_path="rules.toml", content=rules)
    calls = (evil, freer, call("list_directory", dir_path="."), write("plain.txt"))
    paths, _ = await run(gated, *calls, approval_mode="auto_edit")
    assert paths == [hook, gated.project / "rules.toml"]
    assert not (gated.project / "rules.toml").exists()
    assert (gated.project / "plain.txt").exists()
    assert not (gated.project / "ran").exists()
