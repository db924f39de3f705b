"""What gemtui is on Windows, as far as another system can show it.

With `-p tests.windows_like`, gemtui's modules see this system as Windows (CONTRIBUTING.md).
"""

from __future__ import annotations

import io
import pkgutil
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

import gemtui
from gemtui import AgentOptions, GemtuiError, paths, system
from gemtui.agent.detect import detect_cli
from gemtui.agent.process_tree import is_alive
from gemtui.agent.run_folder import Abort, Request, RunFolder
from gemtui.checkpoints.project_files import ProjectFiles
from gemtui.extension.install import install_extension
from gemtui.extension.status import HookState, extension_state
from gemtui.policy.model.rules import ApprovalMode
from gemtui.runs.gate.checks import check_gate
from gemtui.runs.worktrees import enter_worktree
from gemtui.ui.app import GemtuiApp
from gemtui.ui.run.next_run import in_mode, switched
from tests.fake_cli import CHILD
from tests.patience import PATIENCE, until
from tests.tools import wine


def test_every_module_can_be_imported() -> None:
    names = [module.name for module in pkgutil.walk_packages(gemtui.__path__, "gemtui.")]
    for name in names:
        if not name.startswith("gemtui.extension.files."):  # programs of hooks
            import_module(name)
    assert len(names) > 300


def test_a_file_that_a_reader_has_open_is_replaced_once_it_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refusals = 3

    def refuse(_path: Path, _target: Path) -> None:
        raise PermissionError(13, "The process cannot access the file")

    def wait(_seconds: float) -> None:
        nonlocal refusals
        refusals -= 1
        if refusals == 0:
            monkeypatch.undo()

    for name in ("new", "old"):
        (tmp_path / name).write_text(name)
    monkeypatch.setattr(system, "sys", SimpleNamespace(platform="win32"))
    monkeypatch.setattr(system, "sleep", wait)
    monkeypatch.setattr(Path, "replace", refuse)
    system.move(lambda target: (tmp_path / "new").replace(target), tmp_path / "old")
    assert [path.read_text() for path in tmp_path.iterdir()] == ["new"]


def test_the_home_folder_is_that_of_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "HOME", "USERPROFILE")
    environ = {"HOME": "/git/bash", "USERPROFILE": "/users/ada"}
    assert paths.gemini_home(environ) == Path("/users/ada/.gemini")


def test_what_is_printed_is_the_same_as_on_linux(monkeypatch: pytest.MonkeyPatch) -> None:
    printed = io.BytesIO()
    stdout = io.TextIOWrapper(printed, "cp1252", newline="\r\n")
    monkeypatch.setattr(
        system, "sys", SimpleNamespace(platform="win32", stdout=stdout, stderr=None)
    )
    system.use_utf8()
    stdout.write("␍ ✓\n")
    stdout.flush()
    assert printed.getvalue() == "␍ ✓\n".encode()


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize(
    ("act", "what"),
    [
        (ProjectFiles, "undo"),
        (lambda _: install_extension(detect_cli()), "gemtui's extension"),
        (lambda folder: enter_worktree("Go", AgentOptions(worktree=True, cwd=folder)), "a run in"),
        (lambda _: check_gate(AgentOptions(ask=True), {}, version="0.61.0"), "“Ask me”"),
    ],
)
def test_what_does_not_work_there_says_so(
    act: Callable[[Path], object], what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(system, "sys", SimpleNamespace(platform="win32"))
    with pytest.raises(
        (OSError, GemtuiError), match=f"{what}.* does not work on Windows yet: use gemtui in WSL"
    ):
        act(tmp_path)


@pytest.mark.usefixtures("home")
def test_what_does_not_work_there_is_not_offered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(system, "sys", SimpleNamespace(platform="win32"))
    extension = extension_state()
    assert (extension.state, extension.installed) == (HookState.UNSUPPORTED, False)
    assert extension.problem == system.why_not(system.Unported.EXTENSION)
    assert not in_mode(AgentOptions(), ApprovalMode.DEFAULT, can_ask=False).ask
    messages: list[str] = []
    app: Any = SimpleNamespace(show_message=messages.append)
    assert switched(app, AgentOptions(), Path()) == AgentOptions()
    GemtuiApp.action_suspend_process(app)
    assert [message.partition(" does")[0] for message in messages] == [
        "a run in a worktree",
        "ctrl+z",
    ]


SUPERVISOR = (
    "import sys, tests.windows_like; from gemtui.agent.supervise import main; main(sys.argv[1:])"
)


@pytest.mark.parametrize("is_aborted", [False, True])
def test_a_run_ends_with_what_it_started(is_aborted: bool, tmp_path: Path) -> None:
    steps = ["orphan", "wait"] if is_aborted else ["print:Hello", "tmp:report"]
    argv = (sys.executable, str(CHILD), *steps)
    folder = RunFolder.create(tmp_path / "runs", "windows-run")
    folder.write_request(
        Request(id="windows-run", argv=argv, cwd=str(tmp_path), environ={}, grace=0.2)
    )
    words = [sys.executable, "-c", SUPERVISOR, str(folder.path)]
    with subprocess.Popen(words, cwd=Path(__file__).parents[1]) as supervisor:
        if is_aborted:
            until(lambda: folder.stdout.exists() and folder.stdout.read_text())
            pid = int(folder.stdout.read_text())
            orphan = psutil.Process(pid)
            folder.abort(Abort.TERM)
            supervisor.wait(PATIENCE)
            assert not is_alive(orphan)
    exit = folder.exit()
    assert exit is not None
    assert (exit.aborted, exit.killed, exit.problem) == (is_aborted, is_aborted, None)
    assert not (folder.path / "tmp").exists()


def test_without_wine_nothing_is_compared_and_the_reason_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("shutil.which", lambda program: None if program == "wine" else program)
    wine.main()
    assert capsys.readouterr().out == "skipped: this needs Debian's packages wine\n"
