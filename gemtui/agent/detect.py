"""Find the installed Gemini CLI, its version, and the features of its command line.

`GEMINI_CLI_PATH` overrides everything else. Without this variable, gemtui searches `PATH`, and then
the places where npm, mise, nvm, Volta, Bun and Homebrew install programs. Reading sessions requires
no CLI.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from time import monotonic
from typing import Any

import orjson

from gemtui import system
from gemtui.errors import CliNotFound, reason_of
from gemtui.files import is_file, write_whole
from gemtui.jsonfile import read_object
from gemtui.paths import cache_dir, make_own_folder
from gemtui.processes import absolute_folders, find_program

# --- what `--help` says ---------------------------------------------------------------------------


_FLAG = re.compile(r"^\s+(?:-\w, )?--([a-z][a-z-]*)(.*)$", re.MULTILINE)
_CHOICES = re.compile(r"\[choices: ([^\]]*)\]")
_QUOTED = re.compile(r'"([^"]*)"')

MODELS = (
    "auto",
    "pro",
    "flash",
    "flash-lite",
    "gemini-2.5-pro",
    "gemini-2.5-flash",
    "gemini-2.5-flash-lite",
    "gemini-3-pro-preview",
    "gemini-3-flash-preview",
    "gemini-3.1-pro-preview",
    "gemini-3.1-pro-preview-customtools",
    "gemini-3.1-flash-lite",
    "gemini-3-flash",
    "gemini-3.5-flash",
    "gemini-3.5-flash-lite",
    "gemini-3.8-flash",
    "gemma-4-31b-it",
    "gemma-4-26b-a4b-it",
)
"""The model names that Gemini CLI 0.61.0 recognizes as values of `--model`.

The CLI sends any other name to the API unchanged.
"""
ALIASES = frozenset({"auto", "pro", "flash", "flash-lite"})
"""The names in `MODELS` that are aliases for another model."""

STREAM_JSON = "stream-json"
"""The value of `--output-format` for runs, accepted since CLI 0.11.

See assets/gemini-cli.md#events.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """The features of the CLI's command line; `flags` are without leading dashes."""

    flags: frozenset[str]
    output_formats: tuple[str, ...] = ()
    approval_modes: tuple[str, ...] = ()

    def supports(self, flag: str) -> bool:
        """Return whether the CLI accepts a flag.

        The CLI exits with code 1 if it is passed any other flag.
        """
        return flag in self.flags

    @property
    def streams(self) -> bool:
        """Whether the CLI can report a run's events while the run is in progress."""
        return STREAM_JSON in self.output_formats

    @property
    def sufficient(self) -> bool:
        """Whether gemtui can start runs: the CLI reports events and reads policy files."""
        return self.streams and self.supports("policy")

    def to_dict(self) -> dict[str, object]:
        """Return the capabilities as `gemtui doctor --json` prints them.

        `web_search` and `thinking` are always true, because they don't depend on flags: web search
        is a tool, and thoughts are in the stored session, though never in the stream.
        """
        return {
            "stream": self.streams,
            "resume": self.supports("resume"),
            "session_id": self.supports("session-id"),
            "policies": self.supports("policy"),
            "skip_trust": self.supports("skip-trust"),
            "approval_modes": list(self.approval_modes),
            "models": list(MODELS),
            "web_search": True,
            "thinking": True,
        }


NEWEST = Capabilities(
    flags=frozenset(
        {
            "allowed-mcp-server-names",
            "approval-mode",
            "extensions",
            "include-directories",
            "model",
            "output-format",
            "policy",
            "prompt",
            "resume",
            "sandbox",
            "session-id",
            "skip-trust",
        }
    ),
    output_formats=("text", "json", STREAM_JSON),
    approval_modes=("default", "auto_edit", "yolo", "plan"),
)
"""The capabilities of version `CHECKED_AGAINST`, assumed if no CLI is installed."""


def parse_help(text: str) -> Capabilities:
    """Parse the output of `--help`; any other text yields no capabilities."""
    lines = dict(_FLAG.findall(text))
    return Capabilities(
        flags=frozenset(lines),
        output_formats=_choices(lines.get("output-format", "")),
        approval_modes=_choices(lines.get("approval-mode", "")),
    )


def _choices(line: str) -> tuple[str, ...]:
    match = _CHOICES.search(line)
    return tuple(_QUOTED.findall(match[1])) if match else ()


# --- the program ----------------------------------------------------------------------------------


INSTALL_LINK = "https://github.com/google-gemini/gemini-cli"
NOT_FOUND = "Gemini CLI is not on PATH; install it with: npm install -g @google/gemini-cli"
ANSWER_LIMIT = 5.0
"""Seconds to wait for `gemini --version` or `--help` if it isn't using the CPU.

Usually, either takes 0.5 to 2 seconds.
"""
LONGEST = 30.0
"""Seconds to wait for `gemini --version` or `--help` while it is using the CPU."""

_NAME = "gemini"
_ENDINGS = (".exe", ".cmd") if sys.platform == "win32" else ("",)
_WINDOWS_PLACES = (
    ("APPDATA", "npm"),
    ("NVM_SYMLINK", ""),
    ("LOCALAPPDATA", "pnpm"),
    ("LOCALAPPDATA", "Volta/bin"),
    ("USERPROFILE", ".bun/bin"),
    ("USERPROFILE", "scoop/persist/nodejs/bin"),
)
"""Where the CLI is on Windows: a variable that names a folder, and the folder in it."""
_VERSION = re.compile(r"^v?(\d+\.\d+\.\d+\S*)(?: \(Claude Code\))?$", re.MULTILINE)
_VERSION_FILE, _HELP_FILE = "cli-version.json", "cli-help.json"
_CHECK_AGAIN = 1.0
_IDLE = 0.03
"""CPU seconds; a process that has used fewer since the last check counts as idle."""


class FoundBy(StrEnum):
    """The ways in which gemtui finds the CLI."""

    CALLER = "caller"
    """The caller passed the path."""
    VARIABLE = "GEMINI_CLI_PATH"
    PATH = "PATH"
    USUAL_PLACE = "default location"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cli:
    """An installed CLI; `path` is absolute, with symbolic links kept.

    The file is known to exist unless the user or the caller gave the path.
    """

    path: Path
    found_by: FoundBy


@dataclass(frozen=True, slots=True, kw_only=True)
class CliAnswer:
    """The CLI's answer to one flag, such as `--version`.

    `text`: the answer; None if there is none. In that case, `problem` says why, in one sentence.
    `late`: whether the CLI failed to answer in time.
    """

    text: str | None = None
    problem: str | None = None
    late: bool = False


def find_cli(
    environ: Mapping[str, str] = os.environ, *, places: Iterable[Path] | None = None
) -> Cli | None:
    """Return the CLI a run would start, or None if there is none.

    `places`: paths to try instead of the usual ones. If `GEMINI_CLI_PATH` is set, its path is
    returned without checking it.
    """
    named = environ.get("GEMINI_CLI_PATH")
    if named:
        return Cli(path=Path(named).absolute(), found_by=FoundBy.VARIABLE)
    on_path = find_program(_NAME, environ, endings=_ENDINGS)
    if on_path:
        return Cli(path=Path(on_path), found_by=FoundBy.PATH)
    for path in usual_paths(environ) if places is None else places:
        if is_file(path) and os.access(path, os.X_OK):
            return Cli(path=path, found_by=FoundBy.USUAL_PLACE)
    return None


def usual_paths(environ: Mapping[str, str] = os.environ) -> Iterator[Path]:
    """Yield the paths where package managers install the CLI, newest Node.js first."""
    if sys.platform == "win32":
        for variable, folder in _WINDOWS_PLACES:
            if environ.get(variable):
                for ending in _ENDINGS:
                    yield Path(environ[variable], folder, _NAME + ending)
        return
    prefix = environ.get("NPM_CONFIG_PREFIX")
    if prefix:
        yield Path(prefix, "bin", _NAME)
    home = _user_home(environ)
    if home:
        yield home / ".npm-global/bin" / _NAME
        yield home / ".local/bin" / _NAME
        mise = Path(environ.get("MISE_DATA_DIR") or home / ".local/share/mise") / "installs"
        yield from _newest_first(mise, f"npm-google-gemini-cli/*/bin/{_NAME}")
        yield from _newest_first(mise, f"node/*/bin/{_NAME}")
        nvm = Path(environ.get("NVM_DIR") or home / ".nvm")
        yield from _newest_first(nvm, f"versions/node/*/bin/{_NAME}")
        yield home / ".volta/bin" / _NAME
        yield home / ".bun/bin" / _NAME
    for folder in ("/usr/local/bin", "/opt/homebrew/bin", "/home/linuxbrew/.linuxbrew/bin"):
        yield Path(folder, _NAME)


def is_older(version: str | None, than: tuple[int, int]) -> bool | None:
    """Return whether a version of the CLI, such as 0.61.0, is older than another; None if
    unknown.
    """
    numbers = re.match(r"(\d+)\.(\d+)", version or "")
    return None if numbers is None else (int(numbers[1]), int(numbers[2])) < than


def version_of(
    cli: Path,
    *,
    cache: Path | None,
    environ: Mapping[str, str] = os.environ,
    limit: float = ANSWER_LIMIT,
    name: str = _VERSION_FILE,
) -> CliAnswer:
    """Return the version of the CLI at `cli`, cached until its file changes.

    `cache`: gemtui's cache folder; None disables caching. `name`: the cache's file. `limit`:
    seconds to wait, extended to LONGEST while the CLI is using the CPU. Never raises: a failure is
    reported in the answer's `problem`.
    """

    def ask() -> CliAnswer:
        answer = _ask(cli, "--version", environ, limit)
        return answer if answer.text is None else _version(cli, answer.text)

    return _once(cli, cache, name, ask)


def _once(cli: Path, cache: Path | None, name: str, ask: Callable[[], CliAnswer]) -> CliAnswer:
    """Return the CLI's answer from the cache, or else call `ask` and cache its answer.

    `name`: the cache file's name. A cached answer is used only while the CLI's file is unchanged.
    """
    try:
        facts = cli.stat()
    except OSError as error:
        return CliAnswer(problem=f"{cli} can't be read: {reason_of(error)}")
    key: list[str | int] = [os.fspath(cli), facts.st_mtime_ns, facts.st_size]
    remembered = _recall(cache, name, key)
    if remembered is not None:
        return CliAnswer(text=remembered)
    answer = ask()
    if answer.text and cache is not None:
        _remember(cache, name, key, answer.text)
    return answer


def _user_home(environ: Mapping[str, str]) -> Path | None:
    try:
        return Path(environ.get(system.HOME) or Path.home())
    except RuntimeError:
        return None


def _newest_first(folder: Path, pattern: str) -> list[Path]:
    """Return the files that match `pattern`, sorted by version, newest first.

    The version is taken from the numbers in the path.
    """

    def numbers(path: Path) -> list[int]:
        return [int(number) for number in re.findall(r"\d+", str(path.relative_to(folder)))]

    return sorted(folder.glob(pattern), key=numbers, reverse=True)


def _ask(cli: Path, word: str, environ: Mapping[str, str], limit: float) -> CliAnswer:
    """Run the CLI with `word` as its only argument, and return its output.

    The CLI runs in a temporary home folder, so it can't change the user's.
    """
    from gemtui.agent.npm_shim import start_words

    with (
        tempfile.TemporaryDirectory(prefix="gemtui-version-") as home,
        tempfile.TemporaryFile() as answer,
    ):
        # A Node.js that only a version manager can find is in the same folder as its CLI.
        path = os.pathsep.join((os.fspath(cli.parent), *absolute_folders(environ)))
        try:
            process = subprocess.Popen(
                [*start_words(cli, environ), word],
                stdin=subprocess.DEVNULL,
                stdout=answer,
                stderr=subprocess.DEVNULL,
                cwd=home,
                env={**environ, "PATH": path, "GEMINI_CLI_HOME": home},
                **system.DETACHED,
            )
        except CliNotFound as error:
            return CliAnswer(problem=str(error))
        except OSError as error:
            return CliAnswer(problem=f"{cli} can't be started: {reason_of(error)}")
        began = monotonic()
        try:
            code = _wait(process, limit)
        except subprocess.TimeoutExpired:
            waited = round(monotonic() - began) or limit
            return CliAnswer(problem=f"{cli} {word} took longer than {waited:g} s", late=True)
        finally:
            _end_group(process)
        answer.seek(0)
        if code != 0:
            return CliAnswer(problem=f"{cli} {word} ended with exit code {code}")
        return CliAnswer(text=answer.read(64 * 1024).decode(errors="replace"))


def _wait(process: subprocess.Popen[bytes], limit: float) -> int:
    """Wait for the process, and return its exit code.

    Raises TimeoutExpired as soon as the process has taken `limit` seconds and neither uses the CPU
    nor waits for its turn, or has taken LONGEST seconds.
    """
    from gemtui.agent.process_tree import cpu_seconds, wants_cpu

    latest = monotonic() + max(limit, LONGEST)
    computed = 0.0
    while True:
        try:
            return process.wait(limit)
        except subprocess.TimeoutExpired:
            before = computed
            computed = cpu_seconds(process.pid)
            # if the sum has decreased, a child process ended, so there was work
            used_none = 0 <= computed - before < _IDLE
            if (used_none and not wants_cpu(process.pid)) or monotonic() >= latest:
                raise
        limit = min(_CHECK_AGAIN, limit)


def _end_group(process: subprocess.Popen[bytes]) -> None:
    """Kill all processes in the process's group, and reap the process itself."""
    with suppress(ProcessLookupError, PermissionError):
        system.kill_group(process.pid)
    process.wait()


def _version(cli: Path, output: str) -> CliAnswer:
    versions = _VERSION.findall(output)
    if not versions:
        return CliAnswer(problem=f"{cli} --version printed no version")
    return CliAnswer(text=versions[-1])


def _recall(cache: Path | None, name: str, key: list[str | int]) -> str | None:
    if cache is None:
        return None
    try:
        kept = read_object(cache / name)
    except OSError:
        return None
    match kept:
        case {"key": known, "answer": str(answer)} if known == key:
            return answer
        case _:
            return None


def _remember(cache: Path, name: str, key: list[str | int], answer: str) -> None:
    """Write the CLI's answer to the cache file `name`.

    `key`: the path, modification time and size of the CLI's file. Errors are ignored, because
    without the cache, the next start is only two seconds slower.
    """
    with suppress(OSError):
        make_own_folder(cache)
        write_whole(cache / name, [orjson.dumps({"key": key, "answer": answer})])


@dataclass(frozen=True, slots=True, kw_only=True)
class Detected:
    """The CLI a run would start.

    `cli`: None if no CLI was found. `version`: None if unknown, although the CLI may still work.
    `problem`: why no run can be started, and what to do about it; None if runs can be started.
    """

    cli: Cli | None
    version: str | None
    capabilities: Capabilities
    problem: str | None

    def program(self) -> Path:
        """Return the program to start runs with. Raises CliNotFound."""
        if self.cli is None or self.problem is not None:
            raise CliNotFound(self.problem)
        return self.cli.path

    def to_dict(self) -> dict[str, Any]:
        """Return the CLI as `gemtui doctor --json` prints it.

        null means unknown or missing.
        """
        cli = self.cli
        return {
            "path": None if cli is None else str(cli.path),
            "found_by": None if cli is None else cli.found_by.value,
            "version": self.version,
            "problem": None if cli is None else self.problem,
            "install": INSTALL_LINK,
            "capabilities": self.capabilities.to_dict() if self.capabilities.flags else None,
        }


def detect_cli(environ: Mapping[str, str] = os.environ, *, cli: Path | None = None) -> Detected:
    """Find the CLI, its version and its flags. Never raises.

    `cli`: the program, if it is already known. Running the CLI takes seconds, so its answers are
    cached until its file changes; reading the cache takes milliseconds. A CLI that doesn't answer
    `--version` in time is not asked for its flags.
    """
    program = (
        find_cli(environ) if cli is None else Cli(path=cli.absolute(), found_by=FoundBy.CALLER)
    )
    if program is None:
        return Detected(cli=None, version=None, capabilities=parse_help(""), problem=NOT_FOUND)
    version = version_of(program.path, cache=cache_dir(), environ=environ, limit=ANSWER_LIMIT)

    def ask() -> CliAnswer:
        return version if version.late else _ask(program.path, "--help", environ, ANSWER_LIMIT)

    flags = _once(program.path, cache_dir(), _HELP_FILE, ask)
    capabilities = parse_help(flags.text or "")
    return Detected(
        cli=program,
        version=version.text,
        capabilities=capabilities,
        problem=None if capabilities.sufficient else _why_not(program, version, flags),
    )


def _why_not(cli: Cli, version: CliAnswer, flags: CliAnswer) -> str:
    """Return why this CLI can't be used for runs, and what the user can do about it."""
    problem = version.problem or flags.problem
    if problem is None:
        return (
            f"Gemini CLI {version.text} is too old for runs: update it to 0.30 or newer "
            f"({INSTALL_LINK})"
        )
    if cli.found_by is FoundBy.VARIABLE and not is_file(cli.path):
        return f"GEMINI_CLI_PATH: {problem}: correct the variable, or unset it"
    again = "try again, or " if version.late or flags.late else ""
    return f"{problem}: {again}reinstall Gemini CLI ({INSTALL_LINK})"
