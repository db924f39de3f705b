"""A long test is left out only where nothing that it covers has changed since it passed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests import stories
from tests.stories import ROOT, covered, digest

pytest_plugins = ["pytester"]

GATE = "tests/runs/test_gate_real.py"


def test_a_story_covers_its_module_the_mirrored_package_and_what_it_names() -> None:
    files = {str(file.relative_to(ROOT)) for file in covered(GATE, ["gemtui/extension"])}
    assert {
        GATE,
        "gemtui/runs/adapter.py",
        "gemtui/runs/gate/questions.py",
        "gemtui/extension/files/hook.sh",
        "tests/real_cli.py",  # with the version of the CLI
    } <= files
    assert not any(name.startswith("gemtui/ui/") or name.endswith(".pyc") for name in files)


def test_a_story_that_mirrors_and_names_nothing_covers_the_whole_package() -> None:
    files = set(covered("tests/test_real_cli.py", []))
    assert {ROOT / "gemtui/ui/app.py", ROOT / "gemtui/text.py"} <= files


@pytest.mark.parametrize("changed", ["gemtui/runs/adapter.py", GATE, "tests/model_server.py"])
def test_one_changed_file_changes_the_digest(changed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = digest(GATE, [])
    contents = stories._contents
    monkeypatch.setattr(
        stories, "_contents", lambda file: "other" if file == ROOT / changed else contents(file)
    )
    assert digest(GATE, []) != before


MODULE = """
import pytest

@pytest.mark.deep
def test_long(): pass

@pytest.mark.deep
@pytest.mark.every_run
def test_long_and_each_time(): pass

def test_short(): pass
"""


@pytest.fixture
def checkout(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with one module of three tests, two of them stories, and an empty record."""
    monkeypatch.setattr(stories, "ROOT", pytester.path)
    monkeypatch.setattr(stories, "RECORD", pytester.path / "stories.json")
    monkeypatch.setattr(stories, "PROGRAMS", ())
    monkeypatch.setattr(stories, "DEEP", False)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.mkdir("gemtui")
    module = pytester.mkdir("tests") / "test_one.py"
    module.write_text(MODULE)
    (pytester.path / "stories.json").write_text("{}")
    return pytester.path


def run(pytester: pytest.Pytester, argument: str = "tests") -> tuple[set[str], set[str]]:
    """Run pytest with the plugin and record what passed; return the names of what passed and
    failed.
    """
    recorder = stories.Recorder()
    result = pytester.inline_run(argument, plugins=[stories, recorder])
    stories._contents.cache_clear()
    recorder.write()
    passed, _, failed = result.listoutcomes()
    names = [
        {str(report.nodeid).split("::")[1] for report in reports} for reports in (passed, failed)
    ]
    return names[0], names[1]


def test_a_story_that_passed_is_left_out_until_its_module_changes(
    checkout: Path, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    every = {"test_long", "test_long_and_each_time", "test_short"}
    assert run(pytester) == (every, set())
    assert run(pytester) == (every - {"test_long"}, set())
    assert run(pytester, "tests/test_one.py") == (every, set()), (
        "a module that is named is run whole"
    )
    with (checkout / "tests/test_one.py").open("a") as module:
        module.write("# changed\n")
    assert run(pytester) == (every, set())
    monkeypatch.setattr(stories, "DEEP", True)
    assert run(pytester) == (every, set())


def test_a_module_with_a_story_that_failed_is_not_recorded(
    checkout: Path, pytester: pytest.Pytester
) -> None:
    (checkout / "tests/test_one.py").write_text(
        MODULE.replace("def test_long(): pass", "def test_long(): assert 0")
    )
    (checkout / "stories.json").write_text(
        json.dumps({"tests/test_one.py": "old", "tests/test_gone.py": "gone"})
    )
    assert run(pytester) == ({"test_long_and_each_time", "test_short"}, {"test_long"})
    assert json.loads((checkout / "stories.json").read_text()) == {}
