"""A test on the real CLI is left out only where nothing that it covers has changed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests import covered, real_stories
from tests.covered import ROOT

GATE = ROOT / "tests/runs/test_gate_real.py"
RUNS = ROOT / "tests/cli/test_run_real.py"
REAL = ("tmp_path", "gemini_program")


def test_all_that_a_test_names_directly_or_not_is_covered() -> None:
    found = {str(file.relative_to(ROOT)) for file in covered.covered(GATE)}
    assert {
        "gemtui/runs/adapter.py",
        "gemtui/agent/__init__.py",
        "gemtui/runs/supervisor.py",  # started as a child
        "tests/real_cli.py",  # with the version
        "tests/conftest.py",
        "tests/runs/conftest.py",
    } <= found
    assert not any(each.startswith("gemtui/ui/") for each in found)


def test_what_is_no_import_is_covered() -> None:
    gate = {str(file.relative_to(ROOT)) for file in covered.covered(GATE)}
    assert {"gemtui/extension/files/ask.py", "gemtui/extension/files/hook.sh"} <= gate
    runs = {str(file.relative_to(ROOT)) for file in covered.covered(RUNS)}
    assert {
        "gemtui/commands/vault.py",  # loaded by a name that the command line puts together
        "tests/agent/child.py",  # started by its path
    } <= runs
    assert not any("__pycache__" in each for each in gate | runs)


@pytest.mark.parametrize("changed", ["gemtui/runs/adapter.py", "tests/data/policy/cases.jsonl"])
def test_one_changed_file_changes_the_digest(changed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before, line = covered.digest(GATE), covered._line
    other = (ROOT / changed).parts, "other"
    monkeypatch.setattr(covered, "_line", lambda file: other if file == ROOT / changed else line(file))
    assert covered.digest(GATE) != before


def _left_out(monkeypatch: pytest.MonkeyPatch, settled: set[str], *, args: Sequence[str] = ("tests",)) -> list[str]:
    """Return what is left out of four tests of two modules; a.py's second is run each time."""
    left: list[str] = []
    config: Any = SimpleNamespace(
        args=args, stash={}, hook=SimpleNamespace(pytest_deselected=lambda items: left.extend(i.nodeid for i in items))
    )

    def test(nodeid: str, fixtures: Sequence[str] = REAL, *, every_run: bool = False) -> Any:
        return SimpleNamespace(
            nodeid=nodeid,
            fixturenames=fixtures,
            add_marker=lambda _: None,
            get_closest_marker=lambda _: object() if every_run else None,
        )

    items = [test("a.py::one"), test("a.py::two", every_run=True), test("a.py::three", ("tmp_path",))]
    items.append(test("b.py::four"))
    monkeypatch.setattr(real_stories, "_is_settled", lambda module: module in settled)
    kept = list(items)
    real_stories.pytest_collection_modifyitems(config, kept)
    assert {each.nodeid for each in kept} == {each.nodeid for each in items} - set(left)
    return left


def test_what_is_settled_is_left_out_unless_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(real_stories, "WANTED", "")
    assert _left_out(monkeypatch, set()) == []
    assert _left_out(monkeypatch, {"a.py"}) == ["a.py::one"]
    assert _left_out(monkeypatch, {"a.py", "b.py"}) == ["a.py::one", "b.py::four"]
    assert _left_out(monkeypatch, {"a.py"}, args=["a.py"]) == []
    monkeypatch.setattr(real_stories, "WANTED", "changed")
    assert _left_out(monkeypatch, {"a.py"}, args=["a.py"]) == ["a.py::one"]
    monkeypatch.setattr(real_stories, "WANTED", "all")
    assert _left_out(monkeypatch, {"a.py", "b.py"}) == []


def test_a_module_with_a_failed_or_skipped_test_is_not_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = tmp_path / "passed.json"
    monkeypatch.setattr(real_stories, "PASSED", record)
    recorder = real_stories.Recorder()
    good, bad = "tests/runs/test_gate_real.py", "tests/test_real_cli.py"
    for nodeid, passed in ((f"{good}::a", True), (f"{bad}::a", True), (f"{bad}::b", False)):
        report: Any = SimpleNamespace(nodeid=nodeid, passed=passed, keywords={"real_cli": 1})
        recorder.pytest_runtest_logreport(report)
    kept = "tests/test_real_calls.py"
    recorder.write({bad: "old", kept: "same", "tests/test_removed.py": "gone"})
    assert json.loads(record.read_text()) == {good: covered.digest(GATE), kept: "same"}
