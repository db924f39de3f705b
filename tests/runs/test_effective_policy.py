"""Which policy files and settings take part in a run, in which order."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gemtui.errors import OptionError
from gemtui.policy.edit.store import open_policy
from gemtui.policy.engine.decide import Engine
from gemtui.policy.model.rules import Call, Decision, Tier
from gemtui.runs.effective_policy import EffectivePolicy, effective_policy
from gemtui.ui.policy.files import policy_context
from tests.model_server import ModelServer
from tests.real_cli import GeminiCli

pytestmark = pytest.mark.covers("gemtui/agent", "gemtui/policy")


def rule(path: Path, decision: str = "allow", priority: int = 100) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        f'[[rule]]\ntoolName = "web_fetch"\ndecision = "{decision}"\npriority = {priority}\n'
    )
    return path


def settings(path: Path, **values: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(values))
    return path


def read(found: EffectivePolicy) -> tuple[Path, ...]:
    return tuple(file.path for file in found.settings.files)


def sources(found: EffectivePolicy) -> list[str]:
    return [Path(each.source).name for each in found.policy.rules]


def fetches(found: EffectivePolicy) -> Decision:
    return Engine(found.policy, setup=found.setup).outcome(Call(tool="web_fetch")).decision


@pytest.fixture
def gemini(home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The CLI's folder; the machine itself has no settings."""
    monkeypatch.setenv("GEMINI_CLI_SYSTEM_SETTINGS_PATH", str(tmp_path / "none.json"))
    monkeypatch.setenv("GEMINI_CLI_SYSTEM_DEFAULTS_PATH", str(tmp_path / "none.json"))
    return home / ".gemini"


def test_a_plain_run_has_the_users_folder(gemini: Path) -> None:
    rule(gemini / "policies/b.toml")
    rule(gemini / "policies/a.toml")
    found = effective_policy()
    assert sources(found) == ["a.toml", "b.toml"]
    assert found.files == (gemini / "policies",)
    assert effective_policy(alone=True).files == found.files


def test_a_broken_settings_file_of_a_project_stops_the_cli_and_every_decision(
    gemini_program: Path, tmp_path: Path
) -> None:
    cli = GeminiCli.set_up(gemini_program, tmp_path / "place")
    broken = cli.project / ".gemini/settings.json"
    broken.parent.mkdir()
    broken.write_text('{"tools": ')
    with (
        ModelServer([]) as model,
        cli.start(model, "go") as run,
        pytest.raises(AssertionError, match=r"ended with 52:[\s\S]*settings\.json"),
    ):
        run.finish()
    environ = cli.environment("")
    found = effective_policy(workspace=cli.project, environ=environ)
    said = Engine(found.policy, setup=found.setup).explain(Call(tool="glob"))
    assert said.headless is Decision.DENY
    assert f"Gemini CLI does not start: {broken} can't be read" in said.because


def test_no_folder_no_rules(gemini: Path) -> None:
    found = effective_policy()
    assert (found.policy.rules, found.files, found.admin, read(found)) == ((), (), (), ())


def test_the_users_files_come_before_those_of_the_run(gemini: Path, tmp_path: Path) -> None:
    rule(gemini / "policies/mine.toml", "deny")
    given = rule(tmp_path / "run.toml", "allow")
    found = effective_policy([given])
    assert sources(found) == ["mine.toml", "run.toml"]
    assert found.files == (gemini / "policies", given)
    assert fetches(found) is Decision.DENY
    alone = effective_policy([given], alone=True)
    assert sources(alone) == ["run.toml"]
    assert fetches(alone) is Decision.ALLOW


def test_settings_name_other_files(gemini: Path, tmp_path: Path) -> None:
    rule(gemini / "policies/mine.toml")
    named, admin = rule(tmp_path / "named.toml"), rule(tmp_path / "admin.toml", "deny", 1)
    path = settings(
        gemini / "settings.json", policyPaths=[str(named)], adminPolicyPaths=[str(admin)]
    )
    found = effective_policy()
    assert sources(found) == ["named.toml", "admin.toml"]
    assert found.policy.rules[1].tier is Tier.ADMIN
    assert (found.admin, read(found)) == ((admin,), (path,))
    assert fetches(found) is Decision.DENY
    other = rule(tmp_path / "other.toml", "allow", 1)
    assert effective_policy(admin=[other]).admin == (other,)


def test_a_projects_settings_count_where_it_is_trusted(
    gemini: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = tmp_path / "project"
    settings(project / ".gemini/settings.json", tools={"exclude": ["glob"]}, x=1)
    settings(gemini / "settings.json", tools={"exclude": ["web_fetch"], "allowed": ["a"]}, x=2)
    untrusted = effective_policy(workspace=project)
    assert untrusted.setup.settings["tools"]["exclude"] == ["web_fetch"]
    monkeypatch.setenv("GEMINI_CLI_TRUST_WORKSPACE", "true")
    trusted = effective_policy(workspace=project)
    assert trusted.setup.settings == {
        "tools": {"exclude": ["web_fetch", "glob"], "allowed": ["a"]},
        "x": 1,
    }
    assert trusted.setup.workspace == project


def test_paths_that_no_file_can_have_are_passed_over(gemini: Path) -> None:
    paths = [f"/{'x' * 300}", "a\0b", ""]
    settings(gemini / "settings.json", policyPaths=paths, adminPolicyPaths=paths)
    found = effective_policy()
    assert (found.files, found.admin) == ((), ())


def test_paths_and_servers_of_all_settings_are_taken_together(
    gemini: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GEMINI_CLI_TRUST_WORKSPACE", "true")
    project = tmp_path / "project"
    users = {"s": {"command": "x", "trust": True}, "t": {"command": "y"}}
    settings(gemini / "settings.json", policyPaths="~/mine.toml", mcpServers=users)
    settings(
        project / ".gemini/settings.json",
        policyPaths=["of/project.toml", "~/mine.toml"],
        mcpServers={"s": {"command": "z"}},
    )
    mine, own = rule(gemini.parent / "mine.toml"), rule(project / "of/project.toml")
    found = effective_policy(workspace=project)
    assert found.files == (mine, own)
    assert found.setup.settings["mcpServers"] == {"s": {"command": "z"}, "t": {"command": "y"}}


def test_settings_of_the_machine_that_anybody_may_write_are_passed_over(
    gemini: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    users = settings(gemini / "settings.json", tools={"exclude": ["glob"]})
    for name in ("SETTINGS", "DEFAULTS"):
        path = settings(tmp_path / f"{name}.json", tools={"exclude": [name]})
        path.chmod(0o666)
        monkeypatch.setenv(f"GEMINI_CLI_SYSTEM_{name}_PATH", str(path))
    found = effective_policy()
    assert found.setup.settings == {"tools": {"exclude": ["glob"]}}
    assert read(found) == (users,)


def test_a_settings_file_in_their_place(gemini: Path, tmp_path: Path) -> None:
    settings(gemini / "settings.json", tools={"exclude": ["glob"]})
    only = settings(tmp_path / "only.json", tools={"allowed": ["${NO_SUCH_TOOL:-web_fetch}"]})
    found = effective_policy(settings=only)
    assert found.setup.settings == {"tools": {"allowed": ["web_fetch"]}}
    assert read(found) == (only,)
    assert fetches(found) is Decision.ALLOW
    with pytest.raises(OptionError, match=r"none\.json"):
        effective_policy(settings=tmp_path / "none.json")


def test_allowed_tools_take_part(gemini: Path) -> None:
    assert fetches(effective_policy()) is Decision.DENY
    assert fetches(effective_policy(allowed_tools=["web_fetch"])) is Decision.ALLOW


def test_files_that_gemini_cli_loads_itself_hold_for_it_alone(home: Path, tmp_path: Path) -> None:
    own = rule(home / ".gemini/policies/own.toml")
    chosen = rule(tmp_path / "chosen.toml")

    def only(*policies: Path) -> frozenset[str]:
        return effective_policy(policies, workspace=tmp_path).setup.gemini_only

    assert only(chosen) == {str(own)}
    assert only(chosen, own) == frozenset()
    assert policy_context(None, tmp_path).setup.gemini_only == {str(own)}
    assert policy_context(open_policy(own), tmp_path).setup.gemini_only == frozenset()
