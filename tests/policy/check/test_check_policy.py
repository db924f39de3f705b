from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from gemtui.policy.check.check_policy import check_files, check_text
from gemtui.policy.edit.document import Document
from gemtui.policy.match.command_patterns import allowed
from gemtui.policy.model.rules import Finding, Severity
from tests.rows import each_row, table

TABLES = table("policy/check_policy.json")

DATA = Path(__file__).parents[2] / "data/policy/cases.jsonl"
SHELL = 'toolName = "run_shell_command"\n'
GLOB = 'toolName = "glob"\n'
DENY = 'decision = "deny"\npriority = 100\n'
ALLOW = 'decision = "allow"\npriority = 100\nmodes = ["default", "autoEdit", "yolo"]\n'


def rule(*fields: str) -> str:
    return "[[rule]]\n" + "".join(fields)


def only(text: str, severity: Severity) -> Finding:
    """The one finding of that severity, which names the file."""
    found = [each for each in check_text(text, "work.toml") if each.severity is severity]
    assert len(found) == 1, found
    assert found[0].file == "work.toml"
    return found[0]


def says(finding: Finding, field: str, message: str, way_out: str = "") -> None:
    assert finding.field == field
    assert message in finding.message
    assert way_out in finding.way_out


def test_a_prefix_for_tests_names_the_forms_that_it_misses() -> None:
    prefix = rule(SHELL, 'commandPrefix = ["ruff check", "npm test"]\n', ALLOW)
    found = only(prefix, Severity.WARNING)
    says(found, "commandPrefix", '"npm test" misses forms', "policy words 'allow npm test'")
    assert found.message.endswith("`2>&1`, `| tail`, `cd FOLDER &&`, `CI=1` before it")
    some = rule(SHELL, 'commandPrefix = ["tail", "cd"]\nallowRedirection = true\n', ALLOW)
    redirected = prefix.replace(ALLOW, f"allowRedirection = true\n{ALLOW}")
    found = only(redirected + some, Severity.WARNING)
    assert found.message.endswith("it: `CI=1` before it")
    regex = allowed(("npm", "test"))
    all_forms = rule(SHELL, f"commandRegex = '{regex}'\nallowRedirection = true\n", ALLOW)
    all_forms = all_forms.replace("priority = 100", "priority = 996")
    assert check_text(prefix + all_forms, "work.toml") == ()


def test_a_plain_policy_has_no_findings() -> None:
    text = rule(GLOB, DENY) + rule(SHELL, 'commandPrefix = ["git status", "ls"]\n', ALLOW)
    assert check_text(text, "work.toml") == ()
    assert check_text("", "work.toml") == ()


# --- what the CLI drops with the whole file ------------------------------------------------------


@each_row("text, number, message", TABLES["toml_that_cant_be_read_names_its_line_and_rule"])
def test_toml_that_cant_be_read_names_its_line_and_rule(
    text: str, number: int, message: str
) -> None:
    finding = only(text, Severity.ERROR)
    assert finding.rule == number
    assert message in finding.message
    assert "ignores the whole file" in finding.message
    assert finding.way_out


@each_row("fields, field, message, way_out", TABLES["a_field_that_the_schema_refuses"])
def test_a_field_that_the_schema_refuses(
    fields: str, field: str, message: str, way_out: str
) -> None:
    finding = only(rule(GLOB, 'decision = "allow"\npriority = 1\n') + rule(fields), Severity.ERROR)
    assert finding.rule == 2
    says(finding, field, message, way_out)
    assert "ignores the whole file" in finding.message


@each_row("text, field, message, way_out", TABLES["a_table_that_the_cli_does_not_look_at"])
def test_a_table_that_the_cli_does_not_look_at(
    text: str, field: str, message: str, way_out: str
) -> None:
    finding = only(text, Severity.ERROR)
    assert finding.rule == 0
    says(finding, field, message, way_out)


def test_a_safety_checker_is_known_and_a_stray_key_is_not() -> None:
    text = '[[safety_checker]]\ntoolName = "*"\n[safety_checker.checker]\n'
    text += 'type = "in-process"\nname = "allowed-path"\n'
    assert check_text(text, "work.toml") == ()
    says(only("version = 1\n", Severity.WARNING), "version", 'the key "version"', "remove it")


# --- what the CLI ends with, drops, ignores or never matches -------------------------------------


@each_row(
    "fields, field, message, way_out",
    [
        *TABLES["a_rule_that_does_not_do_what_it_says"],
        (f'{GLOB}argsPattern = "{"a" * 2049}"\n{DENY}', "argsPattern", "ignores the rule", ""),
        (
            f'{SHELL}commandPrefix = "{"a" * 2049}"\n{ALLOW}',
            "commandPrefix",
            "ignores the rule",
            "",
        ),
    ],
)
def test_a_rule_that_does_not_do_what_it_says(
    fields: str, field: str, message: str, way_out: str
) -> None:
    finding = only(rule(fields), Severity.ERROR)
    assert finding.rule == 1
    says(finding, field, message, way_out)


@each_row(
    "name", ["*", "mcp_*", "mcp_s_*", "mcp_un_der_*", "mcp_s_x", "generalist", "discovered_tool_x"]
)
def test_names_that_rules_do_match(name: str) -> None:
    assert check_text(rule(f'toolName = "{name}"\n{DENY}'), "work.toml") == ()


# --- what was hardly meant -----------------------------------------------------------------------


@each_row("fields, field, message, way_out", TABLES["a_rule_that_was_hardly_meant_so"])
def test_a_rule_that_was_hardly_meant_so(
    fields: str, field: str, message: str, way_out: str
) -> None:
    finding = only(rule(fields), Severity.WARNING)
    assert finding.rule == 1
    says(finding, field, message, way_out)


def test_a_slow_pattern_is_a_warning() -> None:
    text = rule(GLOB, "argsPattern = '(a|aa)*b'\n", DENY)
    says(only(text, Severity.WARNING), "argsPattern", "may take very long", "more specific")


def test_findings_come_in_the_order_of_the_rules_those_of_the_file_first() -> None:
    text = rule('toolName = "a_*"\n', DENY) + rule('toolName = ""\n', DENY) + "[[rules]]\nx = 1\n"
    assert [each.rule for each in check_text(text, "work.toml")] == [0, 1, 2]


def test_a_document_gives_each_rule_its_own_findings() -> None:
    text = rule(GLOB, DENY) + "\n" + rule('toolName = "x_*"\n', DENY)
    document = Document.parse(text + "\n#off [[rule]]\n#off toolName = 'y_*'\n")
    assert [[each.field for each in found] for found in document.problems] == [
        [],
        ["toolName"],
        ["decision", "priority"],
    ]
    assert document.findings == document.problems[1]
    assert {each.rule for each in document.problems[2]} == {0}


# --- files and folders ---------------------------------------------------------------------------


def files(found: tuple[Finding, ...]) -> list[tuple[str, str, str]]:
    return [(Path(each.file).name, each.severity.value, each.message) for each in found]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "good.toml").write_text(rule(GLOB, DENY))
    return tmp_path


@pytest.fixture
def odd_place(place: Path) -> Path:
    for name in ("plain", "UPPER.TOML"):
        (place / name).write_text(rule(GLOB, DENY))
    os.mkfifo(place / "pipe")
    (place / "empty").mkdir()
    (place / "loop.toml").symlink_to("gone")
    return place


def test_good_files_and_folders_have_no_findings(place: Path) -> None:
    assert check_files([place / "good.toml", place]) != ()  # the second is below the first
    assert check_files([place]) == ()
    (place / ".toml").write_text(rule(SHELL, DENY))
    (place / "readme.md").write_text("no policy")
    (place / "empty").mkdir()
    assert check_files([place]) == ()


@each_row(
    "name, message, way_out",
    [
        ("missing.toml", "it does not exist", "check the path"),
        ("good.toml,other.toml", "splits paths at commas", "separately"),
        ("plain", "does not end in .toml", "plain.toml"),
        ("UPPER.TOML", "does not end in .toml", "UPPER.TOML.toml"),
        ("pipe", "not a file", ""),
        ("empty", "no .toml file", "add one"),
        ("loop.toml", "does not exist", ""),
    ],
)
def test_a_path_from_which_the_cli_reads_nothing(
    odd_place: Path, name: str, message: str, way_out: str
) -> None:
    (finding,) = check_files([odd_place / name])
    assert (finding.file, finding.rule, finding.severity) == (odd_place / name, 0, Severity.ERROR)
    assert message in finding.message
    assert way_out in finding.way_out


def test_what_the_cli_passes_over_in_a_folder(place: Path) -> None:
    (place / "link.toml").symlink_to(place / "good.toml")
    (place / "BIG.TOML").write_text("")
    (place / "sub.toml").mkdir()
    found = files(check_files([place]))
    assert [name for name, _severity, _message in found] == ["BIG.TOML", "link.toml", "sub.toml"]
    assert {severity for _name, severity, _message in found} == {"error"}
    assert "lowercase" in found[0][2]
    assert "symbolic link" in found[1][2]
    assert "subfolder" in found[2][2]
    assert check_files([place / "link.toml"]) == ()  # named itself, it is followed


def test_a_file_that_may_not_be_read(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path, flags: int) -> int:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(os, "open", refuse)
    ((name, severity, message),) = files(check_files([place / "good.toml"]))
    assert (name, severity) == ("good.toml", "error")
    assert "can't be read (Permission denied)" in message


def test_a_file_that_is_not_utf_8_is_read_with_a_warning(place: Path) -> None:
    path = place / "latin.toml"
    path.write_bytes(b"# caf\xe9\n" + rule(GLOB, DENY).encode())
    ((name, severity, message),) = files(check_files([path]))
    assert (name, severity) == ("latin.toml", "warning")
    assert "line 1 is not valid UTF-8" in message


def test_rules_are_compared_across_files(place: Path) -> None:
    (place / "b.toml").write_text(rule(GLOB, ALLOW.replace("= 100", "= 50")))
    (finding,) = check_files([place / "good.toml", place / "b.toml"])
    assert finding.file == place / "b.toml"
    assert (
        f"rule 1 of {place / 'good.toml'} (priority 100, deny) is checked first" in finding.message
    )


def test_rules_of_a_file_that_is_dropped_stand_in_nobodys_way(place: Path) -> None:
    (place / "a.toml").write_text(rule(GLOB, DENY.replace("100", "900")) + rule(GLOB, "x = 1\n"))
    (place / "b.toml").write_text(rule(GLOB, ALLOW.replace("= 100", "= 200")))
    found = check_files([place / "a.toml", place / "b.toml"])
    assert {each.file for each in found} == {place / "a.toml"}


# --- what the CLI said ---------------------------------------------------------------------------


def said() -> list[tuple[str, dict[str, str], list[str]]]:
    """Observed cases: the files, and what the CLI printed about them."""
    found = {}
    for line in DATA.read_text(encoding="utf-8").splitlines():
        case = json.loads(line)
        stderr = [each for each in case.get("stderr") or () if "Policy file" in each]
        found[case["id"].partition("/")[0]] = (case["id"], case["files"], stderr)
    return [one for one in found.values() if one[1]]


def test_whatever_the_cli_complained_of_is_found() -> None:
    complaints = 0
    for id, texts, stderr in said():
        for line in stderr:
            name = line.partition(" in ")[2].partition(":")[0]
            found = check_text(texts[name], name)
            wanted = {Severity.ERROR} if "error" in line.partition(" in ")[0] else set(Severity)
            assert wanted & {each.severity for each in found}, (id, line)
            complaints += 1
    assert complaints >= 8


def test_files_that_the_cli_dropped_are_named_as_dropped_and_no_others() -> None:
    for id, texts, stderr in said():
        for name, text in texts.items():
            if not name.endswith(".toml") or text.startswith("-> "):
                continue  # passed over, as is a symbolic link
            dropped = any(
                f"error in {name}:" in line and ("parsing" in line or "Schema" in line)
                for line in stderr
            )
            found = any("ignores the whole file" in each.message for each in check_text(text, name))
            assert found == dropped, (id, name)
