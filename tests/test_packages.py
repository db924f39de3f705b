"""What is released: a source archive, and a wheel that is enough to use gemtui anywhere.

Skipped where the tests' own requirements are older and lack the build backend; not where CI=true.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import sysconfig
import venv
import zipfile
from importlib.util import find_spec
from pathlib import Path

import pytest

from gemtui.version import VERSION
from tests.patience import PATIENCE
from tests.terminal import Terminal
from tests.tools.documents import ASSETS

pytestmark = [
    pytest.mark.covers("pyproject.toml", "gemtui/demo", "gemtui/cli.py"),
    pytest.mark.skipif(
        not (find_spec("hatchling") and find_spec("twine")) and os.environ.get("CI") != "true",
        reason="hatchling or twine is not installed: pip install -e '.[test]'",
    ),
]

HERE = Path(__file__).parents[1]
BUILD = """
import sys
from hatchling.build import build_sdist, build_wheel
{"sdist": build_sdist, "wheel": build_wheel}[sys.argv[1]](sys.argv[2])
"""


def build(what: str, source: Path, place: Path) -> Path:
    """The archive made of what is in `source`, in the empty folder `place`."""
    subprocess.run(
        [sys.executable, "-c", BUILD, what, place], cwd=source, check=True, timeout=PATIENCE
    )
    (archive,) = place.iterdir()
    return archive


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source archive, unpacked."""
    place = tmp_path_factory.mktemp("unpacked")
    archive = build("sdist", HERE, tmp_path_factory.mktemp("sdist"))
    subprocess.run(["tar", "-xf", archive], cwd=place, check=True)
    return place / f"gemtui-{VERSION}"


@pytest.fixture(scope="module")
def wheel(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, made of the source archive."""
    return build("wheel", sdist, tmp_path_factory.mktemp("wheel"))


def files_of(root: Path, *folders: str) -> set[str]:
    """The files in these folders of `root` that belong to the source."""
    return {
        str(path.relative_to(root))
        for folder in folders
        for path in (root / folder).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def test_the_source_archive_holds_code_tests_documents_and_licence(sdist: Path) -> None:
    folders = (".ci", ".github", "assets", "gemtui", "tests")
    beside = {".gitignore", ".pre-commit-config.yaml", "LICENSE", "PKG-INFO"}
    beside |= {"README.md", "pyproject.toml"}
    assert files_of(sdist, ".") == files_of(HERE, *folders) | beside


def test_the_wheel_holds_the_package_and_its_manual_alone(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    about = {"METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE"}
    pages = {f"gemtui/manual/{page.name}" for page in ASSETS.glob("*.md")}
    man = {f"gemtui-{VERSION}.data/data/share/man/man1/gemtui.1"}
    own = {f"gemtui-{VERSION}.dist-info/{name}" for name in about}
    assert names == files_of(HERE, "gemtui") | pages | man | own


def test_what_is_published_is_accepted_and_leads_nowhere_but_to_the_web(
    sdist: Path, wheel: Path
) -> None:
    words = [sys.executable, "-m", "twine", "check", "--strict", str(wheel)]
    subprocess.run(words, check=True, capture_output=True, timeout=PATIENCE)
    with zipfile.ZipFile(wheel) as archive:
        metadata = archive.read(f"gemtui-{VERSION}.dist-info/METADATA").decode()
    assert metadata == (sdist / "PKG-INFO").read_text()
    assert "uvx gemtui" in metadata
    assert not re.findall(r"\]\((?!https://)|<!--|Project-URL", metadata)


@pytest.fixture
def installed(wheel: Path, tmp_path: Path) -> Path:
    """The program `gemtui`, installed from the wheel; its dependencies are those of the tests."""
    place = tmp_path / "venv"
    venv.create(place, symlinks=True)
    python = place / "bin/python"
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet"]
    subprocess.run([*pip, "--no-index", "--no-deps", wheel], check=True, timeout=PATIENCE)
    (packages,) = place.glob("lib/python*/site-packages")
    dependencies = {sysconfig.get_path(name) for name in ("purelib", "platlib")}
    (packages / "dependencies.pth").write_text("\n".join(dependencies))
    return place / "bin/gemtui"


@pytest.mark.deep
def test_the_wheel_is_enough(
    installed: Path, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = subprocess.check_output([installed, "--version"], text=True, timeout=PATIENCE)
    assert said == f"gemtui {VERSION}\n"
    page = subprocess.check_output([installed, "help", "undo"], text=True, timeout=PATIENCE)
    assert page.startswith("# Undo\n")
    assert (installed.parents[1] / "share/man/man1/gemtui.1").exists()
    monkeypatch.setenv("GEMTUI_DEMO_PACE", "0.05")
    words = [str(installed), "--demo"]
    with Terminal(words, environ=dict(os.environ), folder=tmp_path) as screen:
        screen.shows("demo", "Running the tests.")
        screen.press("2")
        screen.shows("enter starts a run")
        screen.press("Be polite", "\r")
        screen.shows("run_shell_command  python3", "running")
        screen.process.send_signal(signal.SIGTERM)
        assert screen.wait() == 128 + signal.SIGTERM
