"""On the real CLI: what a `.env` above the project reaches."""

from __future__ import annotations

import json

import pytest

from gemtui.runs.adapter import GeminiAdapter
from gemtui.runs.before_run import told_before
from tests.gated import asked
from tests.model_server import ModelServer, answer, text
from tests.real_cli import NO_RELAUNCH, GeminiCli


@pytest.mark.parametrize("relaunched", [False, True])
async def test_an_env_file_above_the_project_reaches_programs_but_not_settings(
    gated: GeminiCli, relaunched: bool
) -> None:
    """Settings are read before it; `env` of a server is expanded when the server starts."""
    own = gated.project / ".gemini" / "settings.json"
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
        told = told_before(options, environ)
        async for _event in adapter.run("go", options):
            pass
    assert (gated.project / "seen.txt").read_text() == "yes\n"
    assert (gated.project / "server.txt").read_text() == "$SEEN yes yes\n"
    assert f".env in {env}: Runs take variables from it: SEEN." in told.lines()
