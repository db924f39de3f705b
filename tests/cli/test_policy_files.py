"""`gemtui policy list`, `show` and `check`."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from gemtui.policy.edit import store
from gemtui.policy.file.policy_files import policies_dir
from tests.cli.conftest import Gemtui, has, values
from tests.cli.shapes import fits
from tests.rows import each_row, table

TABLES = table("cli/policy_files.json")


GOOD = """\
[[rule]]
toolName = "run_shell_command"
commandPrefix = ["pytest", "ruff check"]
decision = "allow"
priority = 200
modes = ["default", "autoEdit"]
allowRedirection = true

[[rule]]
toolName = "*"
decision = "deny"
priority = 300
interactive = false

#off [[rule]]
#off toolName = "web_fetch"
#off decision = "ask_user"
#off priority = 1
"""
DOUBTFUL = '[[rule]]\ntoolName = "glob"\ndecision = "deny"\npriority = 9\nfrob = 1\n'
BROKEN = '[[rule]]\ntoolName = "glob"\ndecision = "ask"\npriority = 1\n'


@pytest.fixture
def place(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A current folder with files; one policy of ours, `work`."""
    store.create("work", GOOD)
    folder = tmp_path / "project"
    folder.mkdir()
    for name, text in (("good", GOOD), ("doubtful", DOUBTFUL), ("broken", BROKEN)):
        (folder / f"{name}.toml").write_text(text)
    monkeypatch.chdir(folder)
    return folder


@each_row("case", table("cli/answers.json")["policies"])
def test_answers(gemtui: Gemtui, place: Path, case: Any) -> None:
    gemtui.answers(case)


# --- check ---------------------------------------------------------------------------------------


def test_the_settings_servers_tell_which_tools_get_one_name(
    gemtui: Gemtui, home: Path, tmp_path: Path
) -> None:
    servers = {"My Docs": {"command": "true"}, "My_Docs": {"command": "true"}}
    (home / ".gemini").mkdir(exist_ok=True)
    (home / ".gemini/settings.json").write_text(json.dumps({"mcpServers": servers}))
    rule = '[[rule]]\nmcpName = "My_Docs"\ntoolName = "read"\ndecision = "deny"\npriority = 100\n'
    (tmp_path / "deny.toml").write_text(rule)
    answer = gemtui("policy check", tmp_path / "deny.toml", "--json")
    (finding,) = answer.json["findings"]
    assert (finding["kind"], finding["severity"], answer.code) == ("same_name", "warning", 0)
    assert '"My Docs"' in finding["message"]


def test_findings_as_json(gemtui: Gemtui, place: Path) -> None:
    answer = gemtui("policy check broken.toml doubtful.toml --json")
    assert answer.code == 1
    assert answer.err == ""
    fits(answer.json, "Checked")
    assert values(answer.json["findings"], "file", "rule", "field") == [
        ("broken.toml", 1, "decision"),
        ("doubtful.toml", 1, "frob"),
    ]
    assert answer.json["findings"][0]["message"].endswith('write "ask_user"')
    good = gemtui("policy check good.toml --json")
    assert (good.code, good.json) == (
        0,
        {"version": 1, "findings": [], "examples": [], "replay": None},
    )


def test_a_folder_is_checked_as_the_cli_loads_it(gemtui: Gemtui, place: Path) -> None:
    (place / "z.toml").write_text(DOUBTFUL.replace("frob = 1", "interactive = false"))
    answer = gemtui("policy check", place)
    assert answer.code == 1
    assert [line.partition(": ")[0] for line in answer.out.splitlines()] == [
        str(place / "broken.toml"),
        str(place / "doubtful.toml"),
        str(place / "z.toml"),
    ]
    assert f"{place / 'doubtful.toml'} (priority 9, deny) is loaded first" in answer.out


def test_what_a_file_holds_does_not_reach_the_terminal_raw(gemtui: Gemtui, place: Path) -> None:
    (place / "x.toml").write_text(
        '[[rule]]\ntoolName = "a\\u001b]0;x\\u0007\\nb  c\\u202e"\ndecision = "deny"\npriority = '
        "1\n"
    )
    answer = gemtui("policy check x.toml")
    assert answer.out.count("\n") == 1
    assert 'no tool "a␛]0;x␇ b  c⟨U+202E⟩"' in answer.out
    assert not {"\x1b", "\x07", "\u202e"} & {*answer.out}


# --- list ----------------------------------------------------------------------------------------


def test_all_policies_are_listed(gemtui: Gemtui, place: Path, home: Path) -> None:
    (home / ".gemini/policies").mkdir()
    (home / ".gemini/policies/u.toml").write_text(BROKEN)
    answer = gemtui.ok("policy list")
    lines = [" ".join(line.split()) for line in answer.out.splitlines()]
    assert lines[:3] == [
        "NAME RULES FINDINGS OF FILE",
        f"work 2 none gemtui {policies_dir() / 'work.toml'}",
        f"u 1 1 error Gemini CLI {home}/.gemini/policies/u.toml",
    ]
    assert any(line.startswith("yolo everything is allowed") for line in lines)


def test_the_list_as_json_says_what_the_cli_loads(gemtui: Gemtui, place: Path, home: Path) -> None:
    (home / ".gemini/policies").mkdir()
    (home / ".gemini/policies/u.toml").write_bytes(b"\xff")
    settings = home / ".gemini/settings.json"
    settings.write_text(f'{{"policyPaths": ["{place}/good.toml"]}}')
    found = gemtui.json("policy list")
    fits(found, "Policies")
    assert values(found["policies"], "name", "origin", "loaded") == [
        ("work", "ours", False),
        ("u", "user", False),
        ("good", "settings", True),
    ]
    assert "not valid UTF-8" in found["policies"][1]["problem"]
    table = gemtui("policy list").out
    assert "not loaded: replaced by policyPaths in the settings" in table
    assert "can't be read" in table


def test_no_policies_of_ours_is_said_with_a_way_out(gemtui: Gemtui, home: Path) -> None:
    gemtui.ok("policy list").complains("no gemtui policies in")


def test_the_settings_of_a_project_name_policies_as_well(
    gemtui: Gemtui, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = tmp_path / "project"
    for folder, name in ((home / ".gemini", "~/mine.toml"), (project / ".gemini", "a,b.toml")):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "settings.json").write_text(json.dumps({"policyPaths": ["\0", name]}))
    (home / "mine.toml").write_text(GOOD)
    (project / "a,b.toml").write_text(GOOD)
    monkeypatch.chdir(project)
    monkeypatch.setenv("GEMINI_CLI_TRUST_WORKSPACE", "true")
    found = gemtui.json("policy list")["policies"]
    assert values(found, "name", "origin", "rules") == [
        ("mine", "settings", 2),
        ("a,b", "settings", 2),
    ]


def test_without_a_command_the_help_is_said(gemtui: Gemtui) -> None:
    answer = gemtui("policy")
    assert (answer.code, answer.out) == (2, "")
    for name in ("list", "show", "check", "words", "flags", "explain", "replay", "suggest"):
        assert f"\n  {name} " in answer.err
    assert "..." not in answer.err.replace("[ARGS]...", "")


# --- show ----------------------------------------------------------------------------------------


def test_rules_are_shown_as_they_are_asked(gemtui: Gemtui, place: Path) -> None:
    answer = gemtui("policy show work")
    assert (answer.code, answer.err) == (0, "")
    assert [" ".join(line.split()) for line in answer.out.splitlines()] == [
        "RULE PRIORITY DECISION WHAT",
        "2 300 deny any tool, headless only",
        (
            '1 200 allow run_shell_command, prefix "pytest" or "ruff check", mode default or '
            "autoEdit, allows redirection"
        ),
        "off 1 ask web_fetch",
    ]


def test_rules_as_json_come_in_file_order_with_the_text(gemtui: Gemtui, place: Path) -> None:
    found = gemtui.json("policy show work")
    fits(found, "PolicyRules")
    assert found["text"] == GOOD
    assert values(found["rules"], "index", "enabled", "line") == [
        (1, True, 1),
        (2, True, 9),
        (0, False, 15),
    ]
    assert found["rules"][1]["fields"] == {
        "toolName": "*",
        "decision": "deny",
        "priority": 300,
        "interactive": False,
    }


@pytest.mark.parametrize(("name", "said"), TABLES["what_is_no_policy_is_told_apart"])
@pytest.mark.parametrize("command", ["show", "flags"])
def test_what_is_no_policy_is_told_apart(
    gemtui: Gemtui, place: Path, command: str, name: str, said: str
) -> None:
    (place / "folder.toml").mkdir()
    os.mkfifo(place / "pipe.toml")
    gemtui("policy", command, name).refuses(said)


@each_row("text", ['[[rule]]\ntoolName = "gl\0ob"\n', "= 1\n", "a = \n", "\ufeff"])
def test_a_file_of_which_no_rule_can_be_read_costs_1(
    gemtui: Gemtui, place: Path, text: str
) -> None:
    (place / "broken.toml").write_text(text)
    answer = gemtui("policy show broken.toml")
    assert (answer.code, answer.out) == (1, "")
    assert answer.complaint == "gemtui: 1 error: see gemtui policy check broken.toml"


def test_odd_values_of_toml_are_json_all_the_same(gemtui: Gemtui, place: Path) -> None:
    (place / "odd.toml").write_text(DOUBTFUL + "much = inf\nnest = { a = [nan] }\n")
    has(gemtui.json("policy show odd.toml")["rules"][0]["fields"], much="inf", nest={"a": ["nan"]})


def test_a_date_is_an_error_that_claims_nothing_about_the_cli(gemtui: Gemtui, place: Path) -> None:
    (place / "dated.toml").write_text(DOUBTFUL + "when = 1979-05-27T07:32:00Z\n")
    answer = gemtui("policy check dated.toml")
    assert answer.code == 1
    assert "rule 1, when: gemtui reads no dates and times in policies" in answer.out
    assert "Gemini CLI may ignore the whole file" in answer.out


# --- examples ------------------------------------------------------------------------------------

EXAMPLES = """\
# example: deny run_shell_command {"command": "git push"} in yolo
# example: allow run_shell_command {"command": "git push"} in yolo

[[rule]]
toolName = "run_shell_command"
argsPattern = "push"
decision = "deny"
priority = 1
"""


def test_an_example_that_fails_is_an_error(gemtui: Gemtui, tmp_path: Path) -> None:
    path = tmp_path / "a.toml"
    path.write_text(EXAMPLES)
    answer = gemtui("policy check", path)
    assert answer.code == 1
    assert "line 2: expected allow, got deny by rule 1 of a.toml" in answer.out
    assert "1 of 2 examples passed" in answer.err
    found = gemtui.json("policy check", path)
    assert values(found["findings"], "field") == ["example"]
    assert values(found["examples"], "line", "passes") == [(1, True), (2, False)]
    path.write_text(EXAMPLES.replace("# example: allow", "# was: allow"))
    gemtui.ok("policy check", path, "--strict")


# --- words ---------------------------------------------------------------------------------------


def test_sentences_become_rules_of_a_policy(home: Path, gemtui: Gemtui) -> None:
    text = "allow read; deny git push; deny everything else"
    answer = gemtui("policy words", text, "--write", "goal")
    assert (answer.code, answer.err.split()[1:4]) == (0, ["3", "rules", "added"])
    assert 'deny run_shell_command, contains the words "git push"' in answer.out
    again = gemtui("policy words", text, "ask network", "--write", "goal", "--json")
    assert again.err.split()[1:4] == ["1", "rule", "added"]
    found = again.json
    assert [len(each["rules"]) for each in found["sentences"]] == [1, 1, 1, 1]
    otherwise = {each["tool"]: each["otherwise"] for each in found["tools"]}
    has(otherwise, read_file="allow", write_file="deny")
    gemtui.ok("policy check goal --strict")


def test_a_sentence_that_makes_no_rule_writes_nothing(home: Path, gemtui: Gemtui) -> None:
    answer = gemtui("policy words", "allow read; consider all", "--write", "goal")
    assert (answer.code, "start with allow" in answer.err) == (1, True)
    assert gemtui("policy show goal").code == 2
