"""What gemtui is on Windows, as far as another system can show it.

With `-p tests.windows_like`, gemtui's modules see this system as Windows (CONTRIBUTING.md).
"""

from __future__ import annotations

import io
import pkgutil
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import pytest

import gemtui
from gemtui import AgentOptions, GateError, GeminiAdapter, system
from gemtui.agent.detect import detect_cli
from gemtui.checkpoints.project_files import ProjectFiles
from gemtui.extension.install import install_extension
from gemtui.runs.gate import checks


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
        (lambda folder: GeminiAdapter().start("Hello", AgentOptions(cwd=folder)), "a run"),
        (ProjectFiles, "undo"),
        (lambda _: install_extension(detect_cli()), "gemtui's extension"),
    ],
)
def test_what_does_not_work_there_says_so(
    act: Callable[[Path], object], what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(system, "sys", SimpleNamespace(platform="win32"))
    with pytest.raises(OSError, match=f"{what} does not work on Windows yet: use gemtui in WSL"):
        act(tmp_path)


@pytest.mark.usefixtures("home")
def test_a_run_that_asks_is_refused_because_its_hooks_would_fail_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(checks, "sys", SimpleNamespace(platform="win32"))
    with pytest.raises(GateError, match="“Ask me” does not work on Windows yet: use gemtui in WSL"):
        checks.check_gate(AgentOptions(ask=True), {}, version="0.61.0")
