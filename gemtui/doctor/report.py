"""Examine this machine: sessions, CLI, terminal, and gemtui's files.

`examine` collects the facts. `DoctorReport.to_dict` returns the output of `gemtui doctor --json`,
and `DoctorReport.lines` returns the lines of `gemtui doctor`.
"""

from __future__ import annotations

import os
import platform
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import asdict, dataclass
from importlib.metadata import version as version_of_package
from pathlib import Path
from typing import Any

from gemtui.agent.detect import ALIASES, INSTALL_LINK, MODELS, Detected, detect_cli
from gemtui.agent.settings import settings_problems
from gemtui.api import problem_dict
from gemtui.checkpoints.prune import PRUNE as PRUNE_CHECKPOINTS
from gemtui.checkpoints.prune import CheckpointsUsage
from gemtui.checkpoints.prune import checkpoints_usage as usage_of_checkpoints
from gemtui.config import Checkpoints, Config, load_config
from gemtui.doctor.policies import PolicyReport, look_at_policies, policy_problems, policy_rows
from gemtui.doctor.search import SearchReport, look_at_search, search_rows
from gemtui.doctor.terminal import Terminal, look_at_terminal, terminal_rows
from gemtui.errors import ConfigError, MarksUnreadable
from gemtui.extension.starter import starter_problem
from gemtui.extension.status import INSTALL, ExtensionState, HookState, extension_state
from gemtui.files import folder_sizes, is_private, path_exists
from gemtui.kept.contents import PRUNE, VaultUsage, contents
from gemtui.kept.run_copies import last_copy_words
from gemtui.marks import Marks
from gemtui.paths import cache_dir, checkpoints_dir, config_file, current_folder, gemini_home, prompts_file
from gemtui.runs.gate.user_commands import failures
from gemtui.runs.listing import (
    BROKEN,
    CLEAR,
    CLEAR_PROMPTS,
    MOST_BYTES,
    MOST_RUNS,
    DiskUsage,
    orphaned_words,
    runs_dir,
    runs_usage,
)
from gemtui.sessions.catalog.catalog import Snapshot
from gemtui.sessions.catalog.index import Index
from gemtui.sessions.catalog.selection import listed_sessions
from gemtui.sessions.catalog.summary import Flag, Summary
from gemtui.sessions.store.projects import registry_problem
from gemtui.sessions.store.store import Problem, SessionKind, StoreState
from gemtui.stats.prices import load_prices
from gemtui.text import Clean, clean_line, counted, size

_SHOWN_PROBLEMS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreReport:
    """The state of the CLI's folder.

    `home_from`: how the folder was found. `hidden`: how many sessions are hidden, by reason.
    `bytes`: the size of all files.
    """

    home: Path
    home_from: str
    state: StoreState
    projects: int
    files: int
    sessions: int
    hidden: Mapping[str, int]
    unreadable: tuple[Problem, ...]
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GemtuiFiles:
    """gemtui's settings, cache, saved prompts, and the user's marks on sessions.

    * `config_problem`: None if the settings file is valid or missing.
    * `failed_commands`: why the user's own commands failed.
    * `theme`: the theme in the settings; None means the default. Only the app knows whether such a
      theme exists.
    * `cache_private`: whether only the user can access the cache folder.
    * `cache_problem`: why the cache is not used; None if it is.
    * `cache_renewed`: why the cache has just been recreated; None if it hasn't been.
    * `prompts_bytes`: the size of the file with prompts; None if it is missing.
    * `marks`: the file with names, tags and notes.
    * `marked`: how many sessions that file contains; None if it can't be read because of
      `marks_problem`.
    """

    config: Path
    config_found: bool
    config_problem: str | None
    failed_commands: tuple[str, ...]
    theme: str | None
    cache: Path
    cache_files: int
    cache_bytes: int
    cache_private: bool
    cache_problem: str | None
    cache_renewed: str | None
    prompts: Path
    prompts_bytes: int | None
    marks: Path
    marked: int | None
    marks_problem: str | None

    @property
    def clear(self) -> str:
        """The shell command that removes the cache, which is recreated when needed."""
        return f"rm -r {shlex.quote(str(self.cache))}"


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorReport:
    """Everything that `examine` found.

    `settings`: problems with the CLI's settings files. `registry`: the problem with the CLI's list
    of projects, or None. `unhooked`: see `checkpoints_problem`.
    """

    gemtui: str
    python: str
    platform: str
    store: StoreReport
    cli: Detected
    extension: ExtensionState
    unhooked: str | None
    policies: PolicyReport
    terminal: Terminal
    files: GemtuiFiles
    search: SearchReport
    vault: VaultUsage
    checkpoints: CheckpointsUsage
    runs: DiskUsage
    settings: tuple[str, ...]
    registry: str | None

    @property
    def problems(self) -> tuple[str, ...]:
        """The problems, each with the fix; a missing CLI is not a problem."""
        return tuple(_problems(self))

    def to_dict(self) -> dict[str, Any]:
        """Return the output of `gemtui doctor --json`; null means unknown or missing."""
        return {
            "version": 1,
            "gemtui": {"version": self.gemtui, "python": self.python, "platform": self.platform},
            "store": _store_dict(self.store),
            "cli": self.cli.to_dict(),
            "extension": self.extension.to_dict(),
            "policies": self.policies.to_dict(self.cli.version),
            "terminal": asdict(self.terminal),
            "files": _files_dict(self.files)
            | {"search": self.search.to_dict(), "vault": self.vault.to_dict()}
            | {"checkpoints": self.checkpoints.to_dict()},
            "runs": self.runs.to_dict(),
            "problems": list(self.problems),
        }

    def lines(self) -> Iterator[Clean]:
        """Yield the lines of the report, each with a name and a finding."""
        for name, text in _rows(self):
            yield Clean(f"{name:<10}{clean_line(text)}".rstrip())


def examine(environ: Mapping[str, str] = os.environ) -> DoctorReport:
    """Examine this machine.

    To find out facts, this may run three programs: the CLI, tmux if it is in use, and the Python
    that the extension's hooks name.
    """
    home, cache = gemini_home(environ), cache_dir()
    with closing(Index(home, cache=cache)) as index:
        found = index.load(publish=lambda _: None, cancelled=lambda: False)
    extension = extension_state(environ)
    return DoctorReport(
        gemtui=version_of_package("gemtui"),
        python=platform.python_version(),
        platform=_system(),
        store=_store(environ, home, found),
        cli=detect_cli(environ),
        extension=extension,
        unhooked=checkpoints_problem(extension, environ),
        policies=look_at_policies(environ),
        terminal=look_at_terminal(environ),
        files=_own_files(environ, cache, found),
        search=look_at_search(cache, home),
        vault=contents(),
        checkpoints=usage_of_checkpoints(checkpoints_dir()),
        runs=runs_usage(runs_dir()),
        settings=settings_problems(environ, current_folder()),
        registry=registry_problem(home),
    )


# --- scanning ------------------------------------------------------------------------------------


def _system() -> str:
    """Return the operating system, such as `Linux 6.1 x86_64`.

    Unlike the module `platform`, this starts no helper program.
    """
    facts = os.uname()
    return f"{facts.sysname} {facts.release} {facts.machine}"


def _store(environ: Mapping[str, str], home: Path, found: Snapshot) -> StoreReport:
    sessions = list(listed_sessions(found, project=None, hidden=True))
    return StoreReport(
        home=home,
        home_from="GEMINI_CLI_HOME" if environ.get("GEMINI_CLI_HOME") else "home folder",
        state=found.state,
        projects=len({each.project or each.project_key for each in sessions}),
        files=len(sessions),
        sessions=sum(not each.hidden for each in sessions),
        hidden=Counter(_why_hidden(each) for each in sessions if each.hidden),
        unreadable=found.unreadable,
        bytes=sum(each.size for each in sessions),
    )


def _why_hidden(session: Summary) -> str:
    if session.kind is not SessionKind.MAIN:
        return session.kind.value
    reasons = (Flag.GHOST, Flag.EMPTY, Flag.DUPLICATE)
    return next(flag.value for flag in reasons if flag in session.flags)


def _own_files(environ: Mapping[str, str], cache: Path, found: Snapshot) -> GemtuiFiles:
    config = config_file(environ)
    settings, problem = Config(), None
    try:
        settings = load_config(config)
    except ConfigError as error:
        problem = str(error)
    sizes, marks = list(folder_sizes(cache)), Marks()
    marked, marks_problem = _marked(marks)
    return GemtuiFiles(
        config=config,
        config_found=path_exists(config),
        config_problem=problem,
        failed_commands=tuple(each.text for each in failures()),
        theme=None if settings.theme == Config().theme else settings.theme,
        cache=cache,
        cache_files=len(sizes),
        cache_bytes=sum(sizes),
        cache_private=is_private(cache),
        cache_problem=None if found.cache is None else f"{found.cache.path}: {found.cache.what}",
        cache_renewed=None if found.renewed is None else found.renewed.what,
        prompts=prompts_file(),
        prompts_bytes=_bytes(prompts_file()),
        marks=marks.path,
        marked=marked,
        marks_problem=marks_problem,
    )


def _marked(marks: Marks) -> tuple[int | None, str | None]:
    """Return how many sessions have marks, or None and the reason why that is unknown."""
    try:
        return len(marks.all()), None
    except MarksUnreadable as error:
        return None, str(error)


def _bytes(file: Path) -> int | None:
    try:
        return file.stat().st_size
    except OSError:
        return None


# --- report --------------------------------------------------------------------------------------


def _problems(report: DoctorReport) -> Iterator[str]:
    store, files, cli = report.store, report.files, report.cli
    if store.state is StoreState.NO_FOLDER:
        place = store.unreadable[0].path
        yield f"{place} is not a folder: move it away, because Gemini CLI stores sessions there"
    elif store.state is StoreState.UNREADABLE:
        yield f"{store.home} can't be read: give yourself permission to read the folder"
    elif store.unreadable:
        yield (
            f"{len(store.unreadable)} of the store's files or folders can't be read: see the "
            "reasons in the “store” section"
        )
    if cli.cli is not None and cli.problem is not None:
        yield cli.problem
    if report.registry is not None:
        yield report.registry
    yield from report.settings
    yield from extension_problems(report.extension, report.unhooked)
    yield from policy_problems(report.policies)
    yield from (f"{folder} {BROKEN}" for folder in report.runs.broken)
    if files.config_problem is not None:
        yield files.config_problem
    yield from files.failed_commands
    if files.cache_problem is not None:
        yield files.cache_problem
    if files.marks_problem is not None:
        yield files.marks_problem
    yield from map(orphaned_words, report.runs.orphaned)


def _store_dict(store: StoreReport) -> dict[str, Any]:
    return {
        "home": str(store.home),
        "home_from": store.home_from,
        "state": store.state.value,
        "projects": store.projects,
        "files": store.files,
        "sessions": store.sessions,
        "hidden": dict(store.hidden),
        "unreadable": [problem_dict(each) for each in store.unreadable],
        "bytes": store.bytes,
    }


def _files_dict(files: GemtuiFiles) -> dict[str, Any]:
    return {
        "config": {"path": str(files.config), "found": files.config_found, "problem": files.config_problem},
        "cache": {
            "path": str(files.cache),
            "files": files.cache_files,
            "bytes": files.cache_bytes,
            "private": files.cache_private,
            "problem": files.cache_problem,
            "clear": files.clear,
        },
        "prompts": {"path": str(files.prompts), "bytes": files.prompts_bytes, "clear": CLEAR_PROMPTS},
        "marks": {"path": str(files.marks), "sessions": files.marked, "problem": files.marks_problem},
    }


def _rows(report: DoctorReport) -> Iterator[tuple[str, str]]:
    yield "gemtui", f"{report.gemtui}, Python {report.python}, {report.platform}"
    yield from _store_rows(report.store)
    yield from _cli_rows(report.cli)
    yield from extension_rows(report.extension)
    yield from policy_rows(report.policies, report.cli.version)
    yield from terminal_rows(report.terminal)
    yield from _file_rows(report.files)
    yield from search_rows(report.search)
    yield from _vault_rows(report.vault)
    yield from _checkpoint_rows(report.checkpoints)
    yield from _run_rows(report.runs)
    for problem in report.problems:
        yield "broken", problem
    if not report.problems:
        yield "no problems" if report.runs.only_copies else "all well", ""


def _store_rows(store: StoreReport) -> Iterator[tuple[str, str]]:
    yield "store", f"{store.home} (from {store.home_from}): {_STATES[store.state]}"
    yield (
        "",
        f"{counted(store.sessions, 'session')} of {counted(store.projects, 'project')}; "
        f"{counted(store.files, 'file')}, {size(store.bytes)}",
    )
    if store.hidden:
        counts = ", ".join(f"{count} {why}" for why, count in sorted(store.hidden.items()))
        yield "", f"hidden: {counts}"
    for problem in store.unreadable[:_SHOWN_PROBLEMS]:
        yield "", f"unreadable: {problem.path}: {problem.what}"
    if len(store.unreadable) > _SHOWN_PROBLEMS:
        yield ("", f"unreadable: {len(store.unreadable) - _SHOWN_PROBLEMS} more (see --json)")


_STATES = {
    StoreState.MISSING: "does not exist yet; Gemini CLI creates it when you first use it",
    StoreState.NO_FOLDER: "not a folder",
    StoreState.EMPTY: "no sessions yet",
    StoreState.UNREADABLE: "can't be read",
    StoreState.OK: "readable",
}


def _cli_rows(found: Detected) -> Iterator[tuple[str, str]]:
    if found.cli is None:
        yield ("gemini", f"not found, but stored sessions can still be read; to install it: {INSTALL_LINK}")
        return
    place = f"{found.cli.path} (found by {found.cli.found_by.value})"
    yield "gemini", f"{found.version or 'version unknown'}, {place}"
    if found.problem is None:
        can = found.capabilities.to_dict()
        words = (name.replace("_", " ") for name, able in can.items() if able is True)
        yield ("", (f"supports: {', '.join(words)}; modes: {', '.join(found.capabilities.approval_modes)}"))
        yield "", f"models: {', '.join(MODELS)}, and any others that the API offers"
        yield "", _price_words()


def _price_words() -> str:
    """Describe how old the prices are, and name the CLI's models that have no price."""
    try:
        prices = load_prices()
    except ConfigError as error:
        return f"prices: {error}"
    lacking = ", ".join(prices.without(each for each in MODELS if each not in ALIASES))
    return f"prices of {prices.date}; no price known for: {lacking or 'none'}"


def _file_rows(files: GemtuiFiles) -> Iterator[tuple[str, str]]:
    valid = "valid" if files.config_problem is None else "not valid"
    yield "settings", f"{files.config}: {valid if files.config_found else 'not there, defaults'}"
    if files.theme is not None:
        yield "", f'theme "{files.theme}" will be checked when the app starts'
    private = ", readable only by you" if files.cache_private else ""
    kept = f"{counted(files.cache_files, 'file')}, {size(files.cache_bytes)}"
    yield "cache", f"{files.cache}: {kept}{private}"
    if files.cache_renewed is not None:
        yield "", files.cache_renewed
    yield "", f"to clear it: {files.clear}"
    if files.prompts_bytes is not None:
        yield ("prompts", f"{files.prompts}: {size(files.prompts_bytes)}, prompts typed in the run pane")
        yield "", f"to delete them together with the runs: {CLEAR_PROMPTS}"
    if files.marked:
        yield ("marks", f"{files.marks}: names, tags and notes of {counted(files.marked, 'session')}")


def _checkpoint_rows(held: CheckpointsUsage) -> Iterator[tuple[str, str]]:
    if held.projects:
        words = f"{counted(held.projects, 'project')}, {size(held.bytes)}"
        yield "checkpoints", f"{held.folder}: {words}"
        yield ("", f"to delete old checkpoints beyond the limits in the settings: {PRUNE_CHECKPOINTS}")


def _vault_rows(held: VaultUsage) -> Iterator[tuple[str, str]]:
    if held.on or held.files:
        state = "on" if held.on else "off"
        yield ("vault", f"{held.folder}: {state}, {counted(held.files, 'file')}, {size(held.own_bytes)}")
        yield ("", f"including {held.kept} that Gemini CLI has deleted; to delete those, too: {PRUNE}")


def _run_rows(runs: DiskUsage) -> Iterator[tuple[str, str]]:
    private = ", readable only by you" if runs.private else ""
    yield "runs", f"{runs.place}: {counted(runs.runs, 'run')}, {size(runs.bytes)}{private}"
    yield "", "each run's prompt, answer and file contents are stored until the run is deleted:"
    bound = f"gemtui deletes the oldest beyond {MOST_RUNS} runs or {size(MOST_BYTES)}"
    yield "", f"{bound}; to delete all finished runs: {CLEAR}"
    for copy in runs.only_copies:
        yield "", last_copy_words(copy)


_BROKEN = (HookState.GONE, HookState.OLDER)
"""The states that mean something is broken, rather than chosen by the user."""
_ALWAYS = f'checkpoints = "{Checkpoints.ALWAYS}" has no effect'


def checkpoints_problem(extension: ExtensionState, environ: Mapping[str, str]) -> str | None:
    """Return why Gemini CLI's own sessions get no checkpoints despite the settings.

    Returns None if they get checkpoints, or if the settings don't request any or are invalid. A
    disabled extension is not a problem here, and a broken one is reported by `extension_problems`.
    The Python that the hooks name may be started.
    """
    try:
        wanted = load_config(config_file(environ)).checkpoints is Checkpoints.ALWAYS
    except ConfigError:
        return None
    if not wanted or extension.state in (*_BROKEN, HookState.DISABLED):
        return None
    if extension.problem is not None:
        return f"{_ALWAYS}: {extension.problem}"
    problem = None if extension.source is None else starter_problem(extension.source)
    return None if problem is None else f"{_ALWAYS}: {problem}: {INSTALL}"


def extension_problems(extension: ExtensionState, unhooked: str | None) -> Iterator[str]:
    """Yield problems with the extension, each with the fix.

    `unhooked`: the result of `checkpoints_problem`.
    """
    if extension.problem is not None and extension.state in _BROKEN:
        yield extension.problem
    if unhooked is not None:
        yield unhooked


def extension_rows(extension: ExtensionState) -> Iterator[tuple[str, str]]:
    """Yield the rows of the report on the extension as (name, text)."""
    match extension.state:
        case HookState.READY:
            yield "extension", f"{extension.folder}: its hooks run in every Gemini CLI session"
        case HookState.MISSING:
            yield "extension", f"not installed; to see what it does, and to install it: {INSTALL}"
        case _:
            yield "extension", str(extension.problem)
