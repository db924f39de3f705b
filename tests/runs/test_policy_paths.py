"""`policyPaths`: run, simulator and editor read the same files."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from gemtui.agent.settings import CliSettings
from gemtui.policy.edit.store import Origin, list_policies
from gemtui.runs.effective_policy import effective_policy
from tests.rows import table


@pytest.mark.parametrize(("value", "names"), table("runs/policy_paths.json"))
def test_everybody_reads_policy_paths_alike(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: object, names: list[str]
) -> None:
    home, work = tmp_path / "home", tmp_path / "work"
    (home / ".gemini").mkdir(parents=True)
    work.mkdir()
    monkeypatch.setenv("GEMINI_CLI_HOME", str(home))
    monkeypatch.chdir(work)
    (home / ".gemini/settings.json").write_text(json.dumps({"policyPaths": value}))
    (home / ".gemini/policies").mkdir()
    wanted = [home / name[2:] if name.startswith("~/") else work / name for name in names]
    for path in wanted:
        path.write_text("")
    run = CliSettings.read(os.environ, work).user_policies(work)
    simulated = effective_policy(workspace=work)
    editor = list_policies(simulated.settings.policy_paths(work))
    assert list(run) == list(simulated.files) == (wanted or [home / ".gemini/policies"])
    assert [each.path for each in editor if each.origin is Origin.SETTINGS] == wanted
