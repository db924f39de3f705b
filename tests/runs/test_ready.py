"""A CLI that waits for a prompt: which run it is used for, and that nothing of it is left."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from gemtui.agent import process_tree, trust
from gemtui.agent.command import Machine
from gemtui.agent.detect import NEWEST
from gemtui.agent.options import AgentOptions
from gemtui.agent.ready import ReadyCli
from gemtui.agent.run_folder import Request
from gemtui.paths import checkpoints_dir, config_file, runs_dir
from gemtui.policy.model.rules import ApprovalMode
from gemtui.runs.adapter import GeminiAdapter
from gemtui.runs.disk_usage import runs_usage
from gemtui.runs.listing import broken_runs, list_runs, prune_runs
from gemtui.runs.loaded_files import LoadedFiles
from tests.agent.test_supervise import ended, supervisor_of
from tests.fake_cli import INIT, OK, FakeCli
from tests.patience import until
from tests.rows import each_row
from tests.sessions import logs, stores

HOUR = 3600.0


@pytest.fixture
def options(tmp_path: Path, home: Path, fake_cli: FakeCli) -> AgentOptions:
    """A run in a project with everything that Gemini CLI reads when it starts."""
    fake_cli("stdin", f"print:{INIT}", f"print:{OK}")
    project = tmp_path / "project"
    for path in ("src/GEMINI.md", ".gemini/settings.json", ".gitignore", "src/deep/a.py"):
        (project / path).parent.mkdir(parents=True, exist_ok=True)
        (project / path).write_text("{}")
    for path in ("policies/p.toml", "extensions/x/gemini-extension.json", "settings.json"):
        (home / ".gemini" / path).parent.mkdir(parents=True, exist_ok=True)
        (home / ".gemini" / path).write_text("{}" if path.endswith("json") else "")
    (tmp_path / "own.toml").write_text("")
    return AgentOptions(cwd=project, policies=(tmp_path / "own.toml",))


def prepared(options: AgentOptions, first: str = "h") -> ReadyCli:
    ready = GeminiAdapter().prepare(first, options, seconds=HOUR)
    assert ready is not None
    return ready


@contextmanager
def waiting(options: AgentOptions) -> Iterator[ReadyCli]:
    """A CLI that waits, and of which nothing is left."""
    ready = prepared(options)
    yield ready
    ready.end()
    until(lambda: not ready.folder.path.exists())
    assert not process_tree.tagged(ready.folder.id)


def test_a_waiting_cli_becomes_the_run_of_its_prompt(options: AgentOptions) -> None:
    ready = prepared(options)
    until(lambda: (owner := ready.folder.owner()) is not None and owner.cli is not None)
    assert not list_runs(runs_dir())
    assert not broken_runs(runs_dir())
    assert runs_usage(runs_dir()).runs == 0
    assert not checkpoints_dir().exists(), "changes until the prompt aren't those of the run"
    run = GeminiAdapter().start("hello", options, ready=ready)
    assert ended(run.folder).code == 0
    assert run.folder.path == ready.folder.path
    assert run.folder.stdout.read_text().startswith("hello")
    assert any(checkpoints_dir().iterdir())
    ready.end()
    assert run.folder.abort_request() is None, "it is a run now"
    (listed,) = list_runs(runs_dir())
    assert listed.prompt == "hello"


def test_a_waiting_cli_that_gets_no_prompt_leaves_nothing(options: AgentOptions) -> None:
    with waiting(options) as ready:
        id = ready.waiting.request.about["session_id"]
        assert id is not None
        home = Path(os.environ["GEMINI_CLI_HOME"]) / ".gemini"
        session = stores.session(home, id, [logs.header(id), logs.context()])
    assert not session.exists()
    assert list(runs_dir().iterdir()) == []


@each_row(
    "change, prompt",
    [
        ({"model": "another"}, "hello"),
        ({"approval_mode": ApprovalMode.PLAN}, "hello"),
        ({"policies": ()}, "hello"),
        ({}, "Hello"),
    ],
)
def test_a_waiting_cli_is_not_used_for_a_different_run(
    options: AgentOptions, change: dict[str, Any], prompt: str
) -> None:
    with waiting(options) as ready:
        run = GeminiAdapter().start(prompt, replace(options, **change), ready=ready)
        assert run.folder.path != ready.folder.path
        assert ended(run.folder).code == 0


@each_row(
    "place, name",
    [
        ("above", "own.toml"),
        ("above", "GEMINI.md"),
        ("config", config_file().name),
        ("state", trust.trusted_folders_file().name),
        ("home", "settings.json"),
        ("home", "trustedFolders.json"),
        ("home", "policies/new.toml"),
        ("home", "extensions/x/gemini-extension.json"),
        ("home", "extensions/y/gemini-extension.json"),
        ("home", "agents/one.md"),
        ("home", "GEMINI.md"),
        ("home", ".env"),
        ("project", ".gemini/settings.json"),
        ("project", ".env"),
        ("project", ".gitignore"),
        ("project", "src/GEMINI.md"),
        ("project", "src/deep/new.py"),
    ],
)
def test_a_change_of_what_gemini_cli_reads_is_noticed(
    options: AgentOptions, home: Path, tmp_path: Path, place: str, name: str
) -> None:
    assert options.cwd is not None
    folders = {
        "above": tmp_path,
        "config": config_file().parent,
        "state": trust.trusted_folders_file().parent,
        "home": home / ".gemini",
        "project": options.cwd,
    }
    request = Request(id="x", argv=(), cwd=str(options.cwd), environ={})
    cli = Path(os.environ["GEMINI_CLI_PATH"])
    machine = Machine(cli=cli, capabilities=NEWEST, environ=os.environ)
    path = folders[place] / name
    path.parent.mkdir(parents=True, exist_ok=True)
    loaded = LoadedFiles(request, options, machine)
    assert not loaded.changed()
    path.write_text("# changed")
    assert loaded.changed()
    loaded = LoadedFiles(request, options, machine)
    path.unlink()
    assert loaded.changed()


def test_a_waiting_cli_is_not_used_in_a_folder_that_was_moved(
    options: AgentOptions, tmp_path: Path
) -> None:
    folder = tmp_path / "empty"
    folder.mkdir()
    options = replace(options, cwd=folder)
    with waiting(options) as ready:
        folder.rename(tmp_path / "moved")
        folder.mkdir()
        run = GeminiAdapter().start("hello", options, ready=ready)
        assert run.folder.path != ready.folder.path
        assert ended(run.folder).code == 0


def test_a_waiting_cli_is_used_after_changes_that_it_does_not_read(
    options: AgentOptions, home: Path
) -> None:
    assert options.cwd is not None
    ready = prepared(options)
    (options.cwd / "src/deep/a.py").write_text("changed")
    (home / ".gemini/tmp/other").mkdir(parents=True)
    (home / ".gemini/projects.json").write_text("{}")
    run = GeminiAdapter().start("hello", options, ready=ready)
    assert ended(run.folder).code == 0
    assert run.folder.path == ready.folder.path


def test_a_session_that_went_on_elsewhere_is_resumed_anew(
    options: AgentOptions, home: Path
) -> None:
    id = stores.uuid(1)
    session = stores.session(home / ".gemini", id, stores.talk(id))
    options = replace(options, resume=id)
    with waiting(options) as ready:
        stores.append(session, logs.user("u9", "More"))
        run = GeminiAdapter().start("hello", options, ready=ready)
        assert run.folder.path != ready.folder.path
        assert ended(run.folder).code == 0
    assert session.exists()


def test_no_session_is_resumed_in_the_minute_of_its_file(options: AgentOptions, home: Path) -> None:
    id = stores.uuid(1)
    session = stores.session(home / ".gemini", id, stores.talk(id))
    minute = f"{datetime.now(UTC):%Y-%m-%dT%H-%M}"
    session.rename(session.with_name(f"session-{minute}-{id[:8]}.jsonl"))
    assert GeminiAdapter().prepare("h", replace(options, resume=id), seconds=HOUR) is None


@each_row("version", ["0.60.2", "unknown"])
def test_only_a_cli_that_is_known_to_wait_is_prepared(
    options: AgentOptions, fake_cli: FakeCli, version: str
) -> None:
    fake_cli("stdin", version=version)
    assert GeminiAdapter().prepare("h", options, seconds=HOUR) is None


def test_what_a_killed_supervisor_left_is_removed_later(
    options: AgentOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    ready = prepared(options)
    folder = ready.folder
    until(lambda: (owner := folder.owner()) is not None and owner.cli is not None)
    owner = folder.owner()
    assert owner is not None
    assert owner.cli is not None
    for pid in (ready.supervisor.pid, supervisor_of(folder), owner.cli):
        os.kill(pid, signal.SIGKILL)
    until(lambda: not process_tree.owner_lives(owner))
    until(lambda: not ready.is_usable())
    prune_runs(runs_dir())
    assert folder.path.exists(), "it is too new to be sure"
    hour_ago = time.time() - HOUR
    os.utime(folder.path, (hour_ago, hour_ago))
    prune_runs(runs_dir())
    assert not folder.path.exists()


def test_a_waiting_cli_has_the_settings_of_its_run(options: AgentOptions) -> None:
    with waiting(options) as ready:
        names = {path.name for path in ready.folder.path.iterdir()}
        stored = json.loads((ready.folder.path / "waiting.json").read_text())
    assert "request.json" not in names
    assert "prompt.txt" not in names
    assert stored["request"]["about"]["prompt"] == ""
