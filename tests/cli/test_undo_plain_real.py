"""Undo of sessions of the plain CLI, whose hooks take checkpoints."""

from __future__ import annotations

import pytest

from gemtui.paths import config_file, hooked_dir
from tests.cli.conftest import Gemtui, values
from tests.cli.test_undo_real import SUBAGENT, answering, files, git
from tests.gated import put_hooks
from tests.model_server import call, shell
from tests.real_cli import GeminiCli

pytestmark = pytest.mark.covers(
    "gemtui/commands", "gemtui/checkpoints", "gemtui/runs", "gemtui/extension"
)

COMMAND = "rm -rf src && sed -i s/two/TWO/ keep.txt && touch made"


def test_a_session_of_the_plain_cli_is_undone(
    on_loopback: GeminiCli, gemtui: Gemtui, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = on_loopback.project
    monkeypatch.chdir(project)
    put_hooks(on_loopback)
    config_file().parent.mkdir(parents=True, exist_ok=True)
    config_file().write_text('checkpoints = "always"\n')
    (project / "src").mkdir()
    (project / "src/main.py").write_text("print()\n")
    (project / "keep.txt").write_text("one\ntwo\nthree\n")
    git(project, "init", "-q")
    git(project, "add", ".")
    before = files(project)
    turns = [
        shell(COMMAND),
        call("read_file", file_path="keep.txt"),
        call("write_file", file_path=str(project / "new.txt"), content="x" * 100_000),
        call("invoke_agent", agent_name=SUBAGENT, prompt="Write two files."),
    ]
    with (
        answering(*([turn] for turn in turns)) as model,
        on_loopback.start(model, "Go on.") as running,
    ):
        results = [each for each in running.finish() if each["type"] == "tool_result"]
    assert values(results, "status") == ["success"] * 4
    assert set(files(project)) == {"kept.txt", "made", "new.txt", "new/a.txt"}
    reviewed = gemtui.json("review")
    owners = [(f["path"], h["owner"]) for f in reviewed["files"] for h in f["hunks"]]
    assert owners == [
        ("keep.txt", "shell"),
        ("kept.txt", "shell"),
        ("made", "shell"),
        ("new.txt", "tool"),
        ("new/a.txt", "tool"),
        ("src/main.py", "shell"),
    ]
    done = gemtui("undo --files --yes --json")
    assert (done.code, done.json["kept"], done.json["complete"]) == (0, [], True), done.err
    assert files(project) == before
    assert list(hooked_dir().iterdir()) == []
    told = gemtui.json("checkpoints")["checkpoints"]
    assert values(told, "prompt", "tool")[:3] == [
        (1, None),
        (1, "run_shell_command"),
        (1, "write_file"),
    ]
