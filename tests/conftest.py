"""What holds for every test: a fixed time zone, no animation, and homes of the test's own."""

from __future__ import annotations

import gc
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from itertools import count
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from gemtui.agent import adapter
from tests.deep import some_of
from tests.quick_supervisors import quick_supervisors

pytest_plugins = [
    "tests.agents.programs",
    "tests.agents.recordings",
    "tests.fake_cli",
    "tests.foreign_folder",
    "tests.real_cli",
    "tests.stories",
]

ROOT = Path(__file__).parents[1]
DATA = ROOT / "tests/data"
RECORDED = DATA / "sessions"
A_WHILE = 600
_AGENTS = ("GEMINI_", "GEMTUI_", "CLAUDE_", "QWEN_", "GOOGLE_", "ANTHROPIC_")
"""How variables of agents and of gemtui begin: whoever runs the tests may use them, too."""
_OWN = ("GEMTUI_TEST_", "GEMTUI_MONKEY")
_TERMINAL = (
    *("NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES", "TMUX", "STY", "TERM_PROGRAM", "LC_TERMINAL"),
    *("VTE_VERSION", "WT_SESSION", "KITTY_WINDOW_ID", "SSH_CONNECTION", "EDITOR", "VISUAL"),
)
_NUMBERS = count()
"""Of the tests' places: looking for a free number costs more with each of thousands of tests."""

settings.register_profile(
    "busy", max_examples=some_of(100), deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("busy")


def pytest_configure() -> None:
    """Let children have the signals as they are by default, and the garbage collector rest.

    What is compiled is kept, whatever the environment says: hundreds of processes import it. Files
    have the usual permissions, whatever the user's umask.

    What is started in the background or by `nohup` ignores some, and hands that down. A handler is
    not handed down; ours still ignores.
    """
    os.umask(0o022)
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, lambda *_: None)
    gc.set_threshold(100_000)  # it looks seldom, as it does in the app


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Return one process for each core and one more, which works while others wait for programs.

    Modules that are named get none of their own: they start sooner.
    """
    if any(".py" in argument for argument in config.args):
        config.option.dist = "no"
        return 0
    can_tell = hasattr(os, "sched_getaffinity")
    return 1 + (len(os.sched_getaffinity(0)) if can_tell else os.cpu_count() or 1)


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """Of several workers, let each import other modules first: none compiles what others have done.

    What fails here is imported again, and fails, when its tests are collected.
    """
    own, workers = (
        os.environ.get("PYTEST_XDIST_WORKER", "gw0"),
        os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"),
    )
    folders = [Path(word) for word in session.config.args if Path(word).is_dir()]
    modules = sorted(path for folder in folders for path in folder.resolve().rglob("test_*.py"))
    if int(workers) > 1:
        for path in modules[int(own.removeprefix("gw")) :: int(workers)]:
            name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
            with warnings.catch_warnings(), suppress(Exception, pytest.skip.Exception):
                warnings.simplefilter("error")
                import_module(name)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what needs root: `.ci/run` runs all tests as an ordinary user, and these as root,
    too.
    """
    for item in items:
        if "other_file_system" in getattr(item, "fixturenames", ()):
            item.add_marker("root")


def pytest_collection_finish() -> None:
    """Let the garbage collector leave alone what stays until the end: all modules and tests."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def settled_data() -> None:
    """Recorded sessions are not live, however fresh the checkout is."""
    before = time.time() - A_WHILE
    for path in DATA.rglob("*"):
        os.utime(path, (before, before))


@pytest.fixture(scope="session", autouse=True)
def forked_supervisors() -> Iterator[None]:
    """Supervisors are forked from a process that has imported everything, where that can be."""
    if not hasattr(os, "pidfd_open"):
        yield
        return
    with quick_supervisors() as process, pytest.MonkeyPatch.context() as patch:
        patch.setattr(adapter, "IndependentProcess", process)
        yield


@pytest.fixture(autouse=True)
def own_places(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """No test sees the real `~/.gemini`, our real caches, the settings of terminal or editor."""
    base = tmp_path_factory.getbasetemp() / "places" / str(next(_NUMBERS))
    base.mkdir(parents=True)
    theirs = [name for name in os.environ if name.startswith(_AGENTS) and not name.startswith(_OWN)]
    for name in (*theirs, *_TERMINAL):
        monkeypatch.delenv(name, raising=False)
    for name in ("HOME", "GEMINI_CLI_HOME"):
        monkeypatch.setenv(name, str(base / "home"))
    for name in ("CACHE", "CONFIG", "STATE", "DATA"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(base / name.lower()))
    monkeypatch.setenv("TEXTUAL_ANIMATIONS", "none")
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()


@pytest.fixture
def home(own_places: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The parent of an empty `.gemini`, named by GEMINI_CLI_HOME."""
    place = tmp_path / "home"
    (place / ".gemini").mkdir(parents=True)
    monkeypatch.setenv("GEMINI_CLI_HOME", str(place))
    return place


@pytest.fixture
def no_cli(own_places: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No agent is installed: programs are only in a folder of the test, and in no usual places."""
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setattr("gemtui.agent.detect.usual_paths", lambda _: iter(()))


@pytest.fixture
def store(home: Path) -> Path:
    """The `.gemini` folder of GEMINI_CLI_HOME, with the recorded sessions of several projects."""
    shutil.copytree(RECORDED / "main/.gemini", home / ".gemini", dirs_exist_ok=True)
    return home / ".gemini"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """An empty folder."""
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


@pytest.fixture
def trusted_project(project: Path, home: Path) -> Path:
    """An empty folder that Gemini CLI trusts."""
    (home / ".gemini/trustedFolders.json").write_text(json.dumps({str(project): "TRUST_FOLDER"}))
    return project


@pytest.fixture
def trash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home trash of freedesktop.org, in the test's own folder."""
    from send2trash import plat_other  # type: ignore[import-untyped]

    folder = tmp_path / "data" / "Trash"
    monkeypatch.setattr(plat_other, "HOMETRASH_B", bytes(folder))
    monkeypatch.setattr(plat_other, "XDG_DATA_HOME", bytes(folder.parent))
    monkeypatch.setattr("send2trash.send2trash", plat_other.send2trash)
    (tmp_path / "user").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    return folder


NOBODY = 65534


@contextmanager
def nobody() -> Iterator[None]:
    """Whoever runs the test is not root meanwhile: root may read everything."""
    root = os.geteuid() == 0
    if root:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder in which every user may do everything."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o777)
    yield folder
    for path in folder.rglob("*"):
        path.chmod(0o700)
    shutil.rmtree(folder)


@pytest.fixture
def other_user(open_folder: Path) -> Iterator[Path]:
    """A folder, for a test that an ordinary user runs."""
    with nobody():
        yield open_folder


SMALL = 400_000
"""Bytes of the other file system."""


def fill(disk: Path) -> None:
    """Fill a disk until not one byte more has room."""
    with (disk / "full").open("ab", buffering=0) as more:
        for size in (4096, 1):
            with suppress(OSError):
                while True:
                    more.write(bytes(size))


@pytest.fixture
def other_file_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A small file system of its own, where our data is: there can be no links."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={SMALL},mode=700", "tmpfs", str(place)]
    try:
        subprocess.run(mount, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("a small disk can be made by root on Linux alone")
    monkeypatch.setenv("XDG_DATA_HOME", str(place))
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=True)
