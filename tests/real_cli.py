"""The real Gemini CLI, installed by npm, in a home of its own and against a model on loopback.

`GEMTUI_TEST_GEMINI_VERSION` picks another version than the one the tests were written for.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pytest

from tests.model_server import ModelServer
from tests.npm import installed
from tests.patience import PATIENCE

PACKAGE = "@google/gemini-cli"
VERSION = os.environ.get("GEMTUI_TEST_GEMINI_VERSION", "0.61.0")
MODEL = "gemini-2.5-flash"

NO_RELAUNCH = "GEMINI_CLI_NO_RELAUNCH"
"""Spares the CLI a second process, and so half of its start; without it, it starts as a user's."""

SETTINGS = {
    "security": {"auth": {"selectedType": "gemini-api-key"}},
    "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False},
    "privacy": {"usageStatisticsEnabled": False},
    "telemetry": {"enabled": False},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class GeminiCli:
    """A home with settings and a project, and the program that runs in them."""

    program: Path
    folder: Path
    name: str = "greeter"
    """Of the project's folder."""

    @property
    def home(self) -> Path:
        """What GEMINI_CLI_HOME names."""
        return self.folder / "home"

    @property
    def store(self) -> Path:
        """The `.gemini` folder."""
        return self.home / ".gemini"

    @property
    def project(self) -> Path:
        """The folder in which the CLI is started."""
        return self.folder / self.name

    @classmethod
    def set_up(cls, program: Path, folder: Path, *, project: str = "greeter") -> Self:
        """Make the home and the project below `folder`."""
        cli = cls(program=program, folder=folder, name=project)
        cli.store.mkdir(parents=True)
        cli.project.mkdir()
        (cli.store / "settings.json").write_text(json.dumps(SETTINGS))
        return cli

    def plain_list(self) -> str:
        """What a start of the plain CLI says there is; its clean-up has ended then."""
        with ModelServer([]) as model:
            listed = subprocess.run(
                [self.program, "--list-sessions"],
                cwd=self.project,
                env=self.environment(model.url),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=PATIENCE,
                check=True,
            )
        return listed.stdout + listed.stderr

    def start(self, model: ModelServer, prompt: str, *options: str) -> Running:
        """Start a headless run with all tools allowed; its output goes to files."""
        words = [str(self.program), "-o", "stream-json", "--approval-mode", "yolo", "-m", MODEL]
        return Running([*words, *options, f"--prompt={prompt}"], cli=self, url=model.url)

    def environment(self, url: str) -> dict[str, str]:
        """The whole environment of a run: nothing of the person who runs the tests leaks in."""
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "LANG": "C.UTF-8",
            "TMPDIR": str(self.folder),
            "GEMINI_CLI_HOME": str(self.home),
            "GEMINI_API_KEY": "not-a-key",
            "GOOGLE_GEMINI_BASE_URL": url,
            "GEMINI_CLI_TRUST_WORKSPACE": "true",
            NO_RELAUNCH: "true",
        }


class Running:
    """One run of the CLI; leaving it ends what is still alive."""

    def __init__(
        self, words: list[str], *, cli: GeminiCli, url: str, more: Mapping[str, str] | None = None
    ) -> None:
        self.stdout = cli.folder / "stdout"
        self.stderr = cli.folder / "stderr"
        with self.stdout.open("wb") as out, self.stderr.open("wb") as err:
            self._process = subprocess.Popen(
                words,
                cwd=cli.project,
                env={**cli.environment(url), **(more or {})},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )

    def finish(self) -> list[dict[str, Any]]:
        """Wait for the end; the events that it printed. A run that failed raises its stderr."""
        code = self._process.wait(PATIENCE)
        if code != 0:
            raise AssertionError(f"gemini ended with {code}:\n{self.stderr.read_text()}")
        return [json.loads(line) for line in self.stdout.read_bytes().split(b"\n") if line]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()


@pytest.fixture(scope="session")
def gemini_program(pytestconfig: pytest.Config) -> Path:
    """The installed program."""
    return installed(pytestconfig, PACKAGE, VERSION) / ".bin" / "gemini"


@pytest.fixture
def remembered_help(
    own_places: None, monkeypatch: pytest.MonkeyPatch, pytestconfig: pytest.Config
) -> None:
    """What the CLI's --version and --help say is remembered between the tests."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(pytestconfig.cache.mkdir("gemtui-cache")))


@pytest.fixture
def gemini(gemini_program: Path, tmp_path: Path) -> GeminiCli:
    """The CLI with a fresh home and an empty project below this test's folder."""
    return GeminiCli.set_up(gemini_program, tmp_path)


@pytest.fixture
def on_loopback(
    gemini: GeminiCli, remembered_help: None, monkeypatch: pytest.MonkeyPatch
) -> GeminiCli:
    """The CLI that gemtui finds, in a home of its own; tests name the model's address."""
    for name, value in gemini.environment("").items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("GEMINI_CLI_PATH", str(gemini.program))
    monkeypatch.setenv("GEMINI_MODEL", MODEL)
    return gemini


@pytest.fixture
def relaunching(on_loopback: GeminiCli, monkeypatch: pytest.MonkeyPatch) -> None:
    """It starts itself once more, as a user's does."""
    monkeypatch.delenv(NO_RELAUNCH)
