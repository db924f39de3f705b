"""Policy files looked at before a run."""

from __future__ import annotations

from pathlib import Path

import pytest

from gemtui.agent.adapter import UnguardedAdapter
from gemtui.agent.command import Machine, command_of, policy_warnings
from gemtui.agent.detect import NEWEST
from gemtui.agent.options import AgentOptions
from gemtui.agents import Agent
from gemtui.errors import OptionError
from gemtui.runs.gate.decider import AgentPolicy
from tests.fake_cli import INIT, OK, FakeCli
from tests.rows import table

GOOD = '[[rule]]\ntoolName = "glob"\ndecision = "deny"\npriority = 100\n'
TYPO = '[[rule]]\ntoolName = "wirte_file"\ndecision = "allow"\npriority = 100\n'


def notes(*policies: Path, user: tuple[Path, ...] = ()) -> tuple[str, ...]:
    machine = Machine(cli=Path("gemini"), capabilities=NEWEST, environ={}, user_policies=user)
    options = AgentOptions(policies=policies)
    return command_of("x", options, machine, folder=Path("/runs/r"), session_id=None).notes


@pytest.mark.parametrize(("text", "words"), table("agent/policy_errors.json"))
def test_a_broken_file_keeps_the_run_from_starting(tmp_path: Path, text: str, words: str) -> None:
    policy = tmp_path / "mine.toml"
    policy.write_text(text)
    with pytest.raises(OptionError) as caught:
        notes(policy)
    assert str(caught.value).startswith(f"policies: {policy}")
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_file_keeps_the_run_from_starting(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"gone\.toml: it does not exist: .*: check the path"):
        notes(tmp_path / "gone.toml")


def test_all_that_is_wrong_has_its_command(tmp_path: Path) -> None:
    policy = tmp_path / "mine.toml"
    policy.write_text(GOOD.replace("deny", "Deny").replace("100", "-1"))
    with pytest.raises(OptionError, match=rf"\(1 more: gemtui policy check {policy}\)$"):
        notes(policy)


def test_a_name_that_gemini_cli_cuts_keeps_no_other_agent_from_starting(tmp_path: Path) -> None:
    policy = tmp_path / "mine.toml"
    policy.write_text(GOOD.replace("glob", f"mcp_server_{'x' * 80}"))
    with pytest.raises(OptionError, match=r"mine\.toml, rule 1, toolName"):
        policy_warnings([policy], None)
    (note,) = policy_warnings([policy], None, Agent.CLAUDE)
    assert note.startswith(f"{policy}, rule 1, toolName: ")
    AgentPolicy(Agent.CLAUDE, [policy], tmp_path)
    policy.write_text(GOOD.replace("100", "-1"))
    with pytest.raises(OptionError):
        policy_warnings([policy], None, Agent.CLAUDE)


def test_a_warning_is_said_and_the_run_goes_on(tmp_path: Path) -> None:
    policy = tmp_path / "mine.toml"
    policy.write_text(TYPO)
    (note,) = notes(policy)
    assert note.startswith(f'{policy}, rule 1, toolName: there is no tool "wirte_file"')
    assert 'write "write_file"' in note


def test_many_warnings_don_t_bury_the_run(tmp_path: Path) -> None:
    policy = tmp_path / "mine.toml"
    policy.write_text("".join(TYPO.replace("wirte", f"wirte{number}") for number in range(8)))
    *_, last = found = notes(policy)
    assert len(found) == 4
    assert last.startswith("there are more warnings about the policies (")
    assert last.endswith(f" more: gemtui policy check {policy})")


def test_what_is_broken_in_the_user_s_own_files_is_said(tmp_path: Path) -> None:
    (tmp_path / "bad.toml").write_text("[[rules]]\n")
    (tmp_path / "typo.toml").write_text(TYPO)
    (note,) = notes(user=(tmp_path,))
    assert note.startswith("in your own policies, which every session loads: ")
    assert f"{tmp_path}/bad.toml, rules" in note
    assert notes(user=(tmp_path / "none",)) == ()


def test_an_empty_folder_of_the_user_s_is_nothing_to_speak_of(tmp_path: Path) -> None:
    assert notes(user=(tmp_path,)) == ()
    (tmp_path / "READ.TOML").write_text(GOOD)
    assert len(notes(user=(tmp_path,))) == 1


def test_a_path_that_the_cli_would_cut_is_refused(tmp_path: Path) -> None:
    policy = tmp_path / "a,b.toml"
    policy.write_text(GOOD)
    with pytest.raises(OptionError, match="contains a comma"):
        notes(policy)


async def test_the_library_starts_nothing_either(tmp_path: Path, fake_cli: FakeCli) -> None:
    fake_cli(f"print:{INIT}", f"print:{OK}")
    policy = tmp_path / "mine.toml"
    policy.write_text("[[rules]]\n")
    adapter = UnguardedAdapter()
    events = adapter.run("x", AgentOptions(policies=(policy,), cwd=tmp_path))
    with pytest.raises(OptionError, match="does not recognise the table"):
        await anext(events)
    assert not adapter.runs.exists()
