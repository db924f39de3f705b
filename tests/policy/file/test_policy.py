"""Policy files are loaded as the CLI loads them: which, in which order, and what is dropped."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

import pytest

from gemtui.policy.check.check_policy import check_files
from gemtui.policy.file.policy import LARGEST, TOO_LARGE, Policy
from gemtui.policy.model.rules import Decision, Rule, Severity, Tier
from tests.rows import each_row, table

TABLES = table("policy/policy_files.json")

RULE = '[[rule]]\ntoolName = "{tool}"\ndecision = "deny"\npriority = 100\n'


def write(folder: Path, **tools: str) -> None:
    """A file for each tool, named as given."""
    folder.mkdir(exist_ok=True)
    for name, tool in tools.items():
        (folder / f"{name}.toml").write_text(RULE.format(tool=tool))


def loaded(text: str) -> Policy:
    """A policy of a file with a good rule, and `text` behind it."""
    return Policy.parse(RULE.format(tool="glob") + text, source="a.toml")


# --- files ---------------------------------------------------------------------------------------


def names(policy: Policy) -> list[str]:
    """The tools of all rules in load order."""
    return [rule.tools[0] for rule in policy.rules]


def test_a_folder_is_read_by_the_bytes_of_its_names(tmp_path: Path) -> None:
    write(tmp_path / "p", **{"9": "n9", "10": "n10", "B": "nB", "a": "na", ".x": "nx"})
    assert names(Policy.load([tmp_path / "p"])) == ["nx", "n10", "n9", "nB", "na"]


def test_only_files_that_end_in_toml_count_in_a_folder(tmp_path: Path) -> None:
    folder = tmp_path / "p"
    write(folder, a="glob")
    for other in ("b.txt", "C.TOML", "d.toml.bak"):
        (folder / other).write_text(RULE.format(tool="other"))
    (folder / "sub.toml").mkdir()
    write(folder / "sub", e="other")
    assert names(Policy.load([folder])) == ["glob"]


def test_a_link_counts_when_it_is_named_but_not_in_a_folder(tmp_path: Path) -> None:
    write(tmp_path, real="glob")
    folder = tmp_path / "p"
    folder.mkdir()
    link = folder / "link.toml"
    link.symlink_to(tmp_path / "real.toml")
    assert names(Policy.load([folder])) == []
    assert names(Policy.load([link])) == ["glob"]


def test_paths_are_loaded_as_they_stand_and_commas_part_them(tmp_path: Path) -> None:
    write(tmp_path, a="na", b="nb")
    both = Path(f"{tmp_path / 'b.toml'}, {tmp_path / 'a.toml'},")
    assert names(Policy.load([both])) == ["nb", "na"]
    assert names(Policy.load([tmp_path / "a.toml"] * 2)) == ["na", "na"]


def test_one_path_will_do(tmp_path: Path) -> None:
    write(tmp_path, a="glob")
    expected = Policy.load([tmp_path / "a.toml"])
    assert names(expected) == ["glob"]
    assert Policy.load(tmp_path / "a.toml") == expected
    assert Policy.load(str(tmp_path / "a.toml")) == expected
    assert Policy.load([str(tmp_path)]) == expected


@each_row(
    "name, said",
    [
        ("none.toml", "it does not exist"),
        ("none", "it does not exist"),
        ("a.txt", "its name does not end in .toml"),
        ("x" * 300 + ".toml", "it can't be read (File name too long)"),
    ],
)
def test_what_is_named_and_no_policy_gives_a_finding_and_no_rules(
    tmp_path: Path, name: str, said: str
) -> None:
    (tmp_path / "a.txt").write_text(RULE.format(tool="glob"))
    found = Policy.load([tmp_path / name])
    assert found.rules == ()
    (finding,) = found.findings
    assert (finding.file, finding.rule, finding.severity) == (
        str(tmp_path / name),
        0,
        Severity.ERROR,
    )
    assert finding.message == f"{said}, so no rules are read from it"


def test_a_folder_that_can_not_be_read_gives_a_finding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path) -> NoReturn:
        raise PermissionError(13, "Permission denied", str(path))

    write(tmp_path, a="glob")
    monkeypatch.setattr("os.scandir", refuse)
    (finding,) = Policy.load(tmp_path).findings
    assert finding.message.startswith("it can't be read (Permission denied)")


def test_a_folder_without_policies_is_none_to_complain_of(tmp_path: Path) -> None:
    assert Policy.load([tmp_path]) == Policy()


def test_what_is_far_too_large_is_not_read(tmp_path: Path) -> None:
    write(tmp_path, a="glob")
    with (tmp_path / "a.toml").open("ab") as file:
        file.truncate(LARGEST + 1)
    found = Policy.load(tmp_path / "a.toml")
    assert found.rules == ()
    assert [each.message for each in found.findings] == [TOO_LARGE]
    assert [each.message for each in check_files([tmp_path / "a.toml"])] == [TOO_LARGE]


def test_a_pattern_that_is_dropped_is_named_by_its_field() -> None:
    text = '[[rule]]\ntoolName = "run_shell_command"\n{}\ndecision = "allow"\npriority = 1\n'
    long = "x" * 3000
    for field in ("commandPrefix", "commandRegex", "argsPattern"):
        (finding,) = Policy.parse(text.format(f'{field} = "{long}"')).findings
        assert finding.field == field


def test_bytes_that_are_no_text_do_not_stop_the_reading(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_bytes(RULE.format(tool="glob").encode() + b"# \xff\xfe\n")
    assert names(Policy.load([tmp_path / "a.toml"])) == ["glob"]


def test_a_rule_says_where_it_stands(tmp_path: Path) -> None:
    write(tmp_path, a="glob")
    (rule,) = Policy.load([tmp_path / "a.toml"], tier=Tier.ADMIN).rules
    assert (rule.source, rule.index, rule.tier) == (str(tmp_path / "a.toml"), 1, Tier.ADMIN)
    assert rule.effective == 5.1


# --- what drops a whole file ---------------------------------------------------------------------


@each_row("text", TABLES["one_mistake_of_form_drops_the_whole_file"])
def test_one_mistake_of_form_drops_the_whole_file(text: str) -> None:
    policy = loaded(text)
    assert policy.rules == ()
    assert policy.findings
    assert {finding.severity for finding in policy.findings} == {Severity.ERROR}


def test_a_byte_order_mark_drops_the_file() -> None:
    policy = Policy.parse("\ufeff" + RULE.format(tool="glob"))
    assert policy.rules == ()
    assert "byte order mark" in policy.findings[0].message


def test_a_single_table_drops_the_file() -> None:
    assert Policy.parse(RULE.format(tool="glob").replace("[[rule]]", "[rule]")).rules == ()


@each_row("text", TABLES["what_the_cli_takes_is_kept"])
def test_what_the_cli_takes_is_kept(text: str) -> None:
    policy = loaded(text)
    assert names(policy) == (["glob", "x"] if "[[rule]]" in text else ["glob"])
    assert policy.findings == ()


# --- what drops one rule -------------------------------------------------------------------------


@each_row("pattern", ["[", "(?i)x", "(?P<n>x)", "(a+)+", "x" * 2049])
def test_a_pattern_that_can_not_be_used_drops_its_rule_alone(pattern: str) -> None:
    policy = loaded(RULE.format(tool="read_file") + f"argsPattern = '{pattern}'\n")
    assert names(policy) == ["glob"]
    assert [(found.rule, found.field) for found in policy.findings] == [(2, "argsPattern")]


def test_an_extension_may_neither_allow_nor_speak_for_yolo() -> None:
    text = RULE.format(tool="a").replace("deny", "allow") + RULE.format(tool="b")
    text += RULE.format(tool="c") + 'modes = ["yolo"]\n'
    policy = Policy.parse(text, tier=Tier.EXTENSION)
    assert names(policy) == ["b"]
    assert [finding.rule for finding in policy.findings] == [1, 3]


@each_row("field", ["toolName", "mcpName", "subagent"])
def test_an_empty_name_is_found_and_kept_for_the_engine_to_tell(field: str) -> None:
    text = RULE.format(tool="x") + f'{field} = ""\n'
    if field == "toolName":
        text = RULE.format(tool="")
    policy = loaded(text)
    assert len(policy.rules) == 2
    assert [(found.rule, found.field) for found in policy.findings] == [(2, field)]


def test_old_spellings_are_read_where_the_new_ones_are_not_there() -> None:
    old = 'deny_message = "old"\nallow_redirection = true\n'
    (_, rule) = loaded(RULE.format(tool="x") + old).rules
    assert (rule.deny_message, rule.allow_redirection) == ("old", True)
    (_, rule) = loaded(RULE.format(tool="x") + old + 'denyMessage = "new"\n').rules
    assert rule.deny_message == "new"


def test_every_field_is_read() -> None:
    (rule,) = Policy.parse(
        """
[[rule]]
toolName = "run_shell_command"
mcpName = "srv"
subagent = "generalist"
commandPrefix = ["git", "npm"]
decision = "ask_user"
priority = 7
modes = ["autoEdit"]
interactive = false
toolAnnotations = { readOnlyHint = true }
allowRedirection = true
denyMessage = "why"
extra = 1
"""
    ).rules
    assert rule == Rule(
        tools=("run_shell_command",),
        mcp_name="srv",
        subagent="generalist",
        command_prefixes=("git", "npm"),
        prefix_list=True,
        decision=Decision.ASK_USER,
        priority=7,
        modes=("autoEdit",),
        interactive=False,
        annotations={"readOnlyHint": True},
        allow_redirection=True,
        deny_message="why",
        source="policy.toml",
        index=1,
        more={"extra": 1},
    )
