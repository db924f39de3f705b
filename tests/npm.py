"""Programs that tests install by npm, each in a pinned version, once for all runs of the tests.

Without node and npm, tests of such a program are skipped with the reason; where CI=true they fail
instead, so that nobody takes a green run for more than it was.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
from pathlib import Path

import pytest


class ProgramMissing(Exception):
    """The program cannot be installed here; the message says why."""


def installed(config: pytest.Config, package: str, version: str) -> Path:
    """Return the folder `node_modules` with this version of a package; skip the test without."""
    cache = config.cache.mkdir(package.rsplit("/", 1)[-1])
    try:
        return install(cache, package, version)
    except ProgramMissing as missing:
        if os.environ.get("CI") == "true":
            pytest.fail(str(missing))
        pytest.skip(str(missing))


def install(cache: Path, package: str, version: str) -> Path:
    """Install a package below `cache` once, whoever else asks; return its `node_modules`."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        raise ProgramMissing(f"{package} needs Node.js and npm on PATH")
    place = cache / version
    with (cache / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not place.exists():
            _npm_install(cache / "incoming", f"{package}@{version}")
            (cache / "incoming").rename(place)
    return place / "node_modules"


def _npm_install(place: Path, package: str) -> None:
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    options = ["--ignore-scripts", "--no-audit", "--no-fund"]
    done = subprocess.run(
        ["npm", "install", "--prefix", str(place), *options, package],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise ProgramMissing(f"npm could not install {package}:\n{done.stderr}")
