"""`gemtui doctor`: examine this machine, and print a report as lines or as JSON.

`_examine` collects the facts. Each section below looks at one part of the machine, and has the rows
of the report on it.
"""

from __future__ import annotations

import os
import platform
import re
import shlex
import shutil
import sqlite3
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version as version_of_package
from pathlib import Path
from typing import Any

import click

from gemtui.agent.detect import ALIASES, INSTALL_LINK, MODELS, Detected, detect_cli
from gemtui.agent.settings import settings_problems
from gemtui.agent.trust import folder_settings
from gemtui.checkpoints.prune import PRUNE_CHECKPOINTS, CheckpointsUsage
from gemtui.checkpoints.prune import checkpoints_usage as usage_of_checkpoints
from gemtui.checkpoints.undo import InterruptedUndo, interrupted_undos
from gemtui.commands.output import fact_line, json_to_stdout, lines_to_stdout, note
from gemtui.commands.shared_options import json_option
from gemtui.config import Checkpoints, Config, load_config
from gemtui.errors import ConfigError, MarksUnreadable, StoreUnreadable, message_of
from gemtui.extension.content import starter_problem
from gemtui.extension.status import INSTALL, ExtensionState, HookState, extension_state
from gemtui.files import folder_sizes, is_private, path_exists, stat_if_possible
from gemtui.kept.contents import PRUNE_VAULT, VaultUsage, vault_status
from gemtui.kept.run_copies import last_copy_words
from gemtui.marks import Marks
from gemtui.notify import ask_tmux, ringing_terminal
from gemtui.paths import (
    cache_dir,
    checkpoints_dir,
    config_file,
    current_folder,
    gemini_home,
    prompts_file,
)
from gemtui.policy.check.check_policy import check_files
from gemtui.policy.file.policy_files import (
    is_empty_folder,
    named_policies,
    policies_dir,
    policy_files,
)
from gemtui.policy.model.rules import CHECKED_AGAINST, Severity
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
from gemtui.search.file_list import FileList, NoIndex, index_folder, list_file
from gemtui.sessions.catalog.catalog import Snapshot
from gemtui.sessions.catalog.index import Index
from gemtui.sessions.catalog.selection import listed_sessions, require_readable
from gemtui.sessions.catalog.summary import Flag, Summary
from gemtui.sessions.store.projects import registry_problem
from gemtui.sessions.store.store import Problem, SessionKind, StoreState
from gemtui.stats.prices import load_prices
from gemtui.text import Clean, clean_line, counted, size


@click.command()
@json_option
def doctor(as_json: bool) -> int:
    """Check sessions, Gemini CLI, the terminal, and gemtui's own files.

    Each problem comes with a solution. Exit code 1 if something is broken.
    """
    report = _examine()
    if as_json:
        if report.files.cache_renewed is not None:
            note(f"{report.files.cache}: {report.files.cache_renewed}")
        json_to_stdout(report.to_dict())
    else:
        lines_to_stdout(report.lines())
    return 1 if report.problems else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class _DoctorReport:
    """Everything that `_examine` found.

    `doomed`: how many session files the CLI deletes at its next start. `settings`: problems with
    the CLI's settings files. `registry`: the problem with the CLI's list of projects, or None.
    `unhooked`: see `_checkpoints_problem`.
    """

    gemtui: str
    python: str
    platform: str
    store: _StoreReport
    cli: Detected
    extension: ExtensionState
    unhooked: str | None
    policies: _PolicyReport
    terminal: _Terminal
    files: _GemtuiFiles
    search: _SearchReport
    vault: VaultUsage
    doomed: int
    checkpoints: CheckpointsUsage
    interrupted: tuple[InterruptedUndo, ...]
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
            yield fact_line(name, clean_line(text))


def _examine() -> _DoctorReport:
    """Examine this machine.

    To find out facts, this may run three programs: the CLI, tmux if it is in use, and the Python
    that the extension's hooks name.
    """
    environ = os.environ
    home, cache = gemini_home(), cache_dir()
    with closing(Index(home, cache=cache)) as index:
        found = index.load()
    extension = extension_state(environ)
    vault = vault_status(found, environ, datetime.now(UTC), hook=extension.state is HookState.READY)
    return _DoctorReport(
        gemtui=version_of_package("gemtui"),
        python=platform.python_version(),
        platform=_system(),
        store=_store(environ, home, found),
        cli=detect_cli(environ),
        extension=extension,
        unhooked=_checkpoints_problem(extension, environ),
        policies=look_at_policies(environ),
        terminal=_look_at_terminal(environ),
        files=_own_files(environ, cache, found),
        search=_look_at_search(cache, home),
        vault=vault.contents,
        doomed=len(vault.hits),
        checkpoints=usage_of_checkpoints(checkpoints_dir()),
        interrupted=tuple(interrupted_undos(checkpoints_dir())),
        runs=runs_usage(runs_dir()),
        settings=settings_problems(environ, current_folder()),
        registry=registry_problem(home),
    )


def _system() -> str:
    """Return the operating system, such as `Linux 6.1 x86_64`.

    Unlike the module `platform`, this starts no helper program.
    """
    facts = os.uname()
    return f"{facts.sysname} {facts.release} {facts.machine}"


def _problems(report: _DoctorReport) -> Iterator[str]:
    store, files, cli = report.store, report.files, report.cli
    if store.problem is not None:
        yield store.problem
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
    yield from _extension_problems(report.extension, report.unhooked)
    yield from _policy_problems(report.policies)
    yield from (f"{folder} {BROKEN}" for folder in report.runs.broken)
    if files.config_problem is not None:
        yield files.config_problem
    yield from files.failed_commands
    if files.cache_problem is not None:
        yield files.cache_problem
    if files.marks_problem is not None:
        yield files.marks_problem
    yield from map(orphaned_words, report.runs.orphaned)
    yield from (each.advice for each in report.interrupted)


def _rows(report: _DoctorReport) -> Iterator[tuple[str, str]]:
    yield "gemtui", f"{report.gemtui}, Python {report.python}, {report.platform}"
    yield from _store_rows(report.store)
    yield from _cli_rows(report.cli)
    yield from _extension_rows(report.extension)
    yield from _policy_rows(report.policies, report.cli.version)
    yield from _terminal_rows(report.terminal)
    yield from _file_rows(report.files)
    yield from _search_rows(report.search)
    yield from _vault_rows(report.vault, report.doomed)
    yield from _checkpoint_rows(report.checkpoints)
    yield from _run_rows(report.runs)
    for problem in report.problems:
        yield "broken", problem
    if not report.problems:
        open_matters = report.runs.only_copies or report.runs.asking or report.doomed
        yield "no problems" if open_matters else "all well", ""


# --- the store ------------------------------------------------------------------------------------


_SHOWN_PROBLEMS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class _StoreReport:
    """The state of the CLI's folder.

    `home_from`: how the folder was found. `problem`: why no session can be read. `hidden`: how many
    sessions are hidden, by reason. `bytes`: the size of all files.
    """

    home: Path
    home_from: str
    state: StoreState
    problem: str | None
    projects: int
    files: int
    sessions: int
    hidden: Mapping[str, int]
    unreadable: tuple[Problem, ...]
    bytes: int


def _store(environ: Mapping[str, str], home: Path, found: Snapshot) -> _StoreReport:
    sessions = list(listed_sessions(found, project=None, hidden=True))
    problem = None
    try:
        require_readable(home, found.state, found.unreadable)
    except StoreUnreadable as error:
        problem = str(error)
    return _StoreReport(
        home=home,
        home_from="GEMINI_CLI_HOME" if environ.get("GEMINI_CLI_HOME") else "home folder",
        state=found.state,
        problem=problem,
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


def _store_dict(store: _StoreReport) -> dict[str, Any]:
    return {
        "home": str(store.home),
        "home_from": store.home_from,
        "state": store.state.value,
        "projects": store.projects,
        "files": store.files,
        "sessions": store.sessions,
        "hidden": dict(store.hidden),
        "unreadable": [each.to_dict() for each in store.unreadable],
        "bytes": store.bytes,
    }


_STATES = {
    StoreState.MISSING: "does not exist yet; Gemini CLI creates it when you first use it",
    StoreState.NO_FOLDER: "not a folder",
    StoreState.EMPTY: "no sessions yet",
    StoreState.UNREADABLE: "can't be read",
    StoreState.OK: "readable",
}


def _store_rows(store: _StoreReport) -> Iterator[tuple[str, str]]:
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


# --- the CLI and its extension --------------------------------------------------------------------


def _cli_rows(found: Detected) -> Iterator[tuple[str, str]]:
    if found.cli is None:
        yield (
            "gemini",
            f"not found, but stored sessions can still be read; to install it: {INSTALL_LINK}",
        )
        return
    place = f"{found.cli.path} (found by {found.cli.found_by.value})"
    yield "gemini", f"{found.version or 'version unknown'}, {place}"
    if found.problem is None:
        can = found.capabilities.to_dict()
        words = (name.replace("_", " ") for name, able in can.items() if able is True)
        yield (
            "",
            (
                f"supports: {', '.join(words)}; modes: "
                f"{', '.join(found.capabilities.approval_modes)}"
            ),
        )
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


_BROKEN = (HookState.GONE, HookState.OLDER)
"""The states that mean something is broken, rather than chosen by the user."""
_ALWAYS = f'checkpoints = "{Checkpoints.ALWAYS}" has no effect'


def _checkpoints_problem(extension: ExtensionState, environ: Mapping[str, str]) -> str | None:
    """Return why Gemini CLI's own sessions get no checkpoints despite the settings.

    Returns None if they get checkpoints, or if the settings don't request any or are invalid. A
    disabled extension is not a problem here, and a broken one is reported by `_extension_problems`.
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


def _extension_problems(extension: ExtensionState, unhooked: str | None) -> Iterator[str]:
    """Yield problems with the extension, each with the fix.

    `unhooked`: the result of `_checkpoints_problem`.
    """
    if extension.problem is not None and extension.state in _BROKEN:
        yield extension.problem
    if unhooked is not None:
        yield unhooked


def _extension_rows(extension: ExtensionState) -> Iterator[tuple[str, str]]:
    """Yield the rows of the report on the extension as (name, text)."""
    match extension.state:
        case HookState.READY:
            yield "extension", f"{extension.folder}: its hooks run in every Gemini CLI session"
        case HookState.MISSING:
            yield "extension", f"not installed; to see what it does, and to install it: {INSTALL}"
        case _:
            yield "extension", str(extension.problem)


# --- policies -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _PolicyPlace:
    """The policy files in one folder, or a single policy file.

    `ours`: whether it belongs to gemtui. `files`, `errors`, `warnings`: how many there are.
    """

    path: Path
    ours: bool
    files: int
    errors: int
    warnings: int

    @property
    def check(self) -> str:
        """The shell command that prints the findings."""
        return f"gemtui policy check {shlex.quote(str(self.path))}"

    def to_dict(self) -> dict[str, Any]:
        """Return this object as JSON values for `gemtui doctor --json`."""
        return {
            "path": str(self.path),
            "ours": self.ours,
            "files": self.files,
            "errors": self.errors,
            "warnings": self.warnings,
            "check": self.check,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class _PolicyReport:
    """The policy files that runs may use; folders that don't exist are left out."""

    places: tuple[_PolicyPlace, ...]

    def to_dict(self, installed: str | None) -> dict[str, Any]:
        """Return the report as JSON values for `gemtui doctor --json`.

        `installed`: the installed CLI's version, which is compared with the version gemtui's policy
        engine was checked against; None if unknown.
        """
        return {
            "engine": CHECKED_AGAINST,
            "engine_is_installed": None if installed is None else installed == CHECKED_AGAINST,
            "places": [place.to_dict() for place in self.places],
        }


def look_at_policies(environ: Mapping[str, str]) -> _PolicyReport:
    """Check gemtui's policies, and the policies that every CLI session loads."""
    here = current_folder()
    users = folder_settings(here, environ).user_policies(here)
    places = [(policies_dir(), True), *((path, False) for path in users)]
    return _PolicyReport(
        places=tuple(_look(path, ours) for path, ours in places if path_exists(path))
    )


def _look(path: Path, ours: bool) -> _PolicyPlace:
    files = named_policies() if ours else policy_files(path)
    checked = files if ours or is_empty_folder(path) else [path]
    found = Counter(finding.severity for each in checked for finding in check_files([each]))
    return _PolicyPlace(
        path=path,
        ours=ours,
        files=len(files),
        errors=found[Severity.ERROR],
        warnings=found[Severity.WARNING],
    )


def _policy_problems(policies: _PolicyReport) -> Iterator[str]:
    """Yield a line for each folder or file with errors in its rules, with the fix."""
    for place in policies.places:
        if place.errors:
            what = (
                "gemtui starts no runs until they are fixed"
                if place.ours
                else "Gemini CLI ignores the affected rules"
            )
            yield f"{place.path}: {counted(place.errors, 'error')}, {what}: {place.check}"


def _policy_rows(policies: _PolicyReport, installed: str | None) -> Iterator[tuple[str, str]]:
    """Yield the rows of the report on policies as (name, text)."""
    yield "policies", _engine_words(installed)
    for place in policies.places:
        whose = "ours" if place.ours else "yours, used in every session"
        found = f"{counted(place.errors, 'error')}, {counted(place.warnings, 'warning')}"
        yield "", f"{place.path} ({whose}): {counted(place.files, 'file')}, {found}"
        if place.errors or place.warnings:
            yield "", f"to see the findings: {place.check}"


def _engine_words(installed: str | None) -> str:
    checked = f"gemtui's policy engine was checked against Gemini CLI {CHECKED_AGAINST}"
    if installed is None:
        return checked
    if installed == CHECKED_AGAINST:
        return f"{checked}, the installed version"
    return f"{checked}, but {installed} is installed, which may decide some calls differently"


# --- the terminal ---------------------------------------------------------------------------------


_PASS = "allow-passthrough on"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Terminal:
    """The terminal that the app would use.

    `columns`, `rows`: None if stdout is not a terminal. `set_clipboard`: tmux's option of that
    name, which must be `on` for copying to work; None outside tmux. `notifications`: the number of
    the terminal's escape code (OSC) for notifications; None if none is known. `allow_passthrough`:
    tmux's option of that name, on which notifications depend.
    """

    tty: bool
    term: str | None
    colorterm: str | None
    columns: int | None
    rows: int | None
    no_color: bool
    locale: str | None
    utf8: bool
    tmux: bool
    set_clipboard: str | None
    notifications: int | None
    allow_passthrough: str | None


def _look_at_terminal(environ: Mapping[str, str]) -> _Terminal:
    """Return the facts about stdout's terminal; inside tmux, run tmux to get options."""
    tmux = bool(environ.get("TMUX"))
    tty = sys.stdout is not None and sys.stdout.isatty()
    columns, rows = shutil.get_terminal_size() if tty else (None, None)
    names = (environ.get(name) for name in ("LC_ALL", "LC_CTYPE", "LANG"))
    locale = next((name for name in names if name), None)
    return _Terminal(
        tty=tty,
        term=environ.get("TERM"),
        colorterm=environ.get("COLORTERM"),
        columns=columns,
        rows=rows,
        no_color=bool(environ.get("NO_COLOR")),
        locale=locale,
        utf8=re.search(r"utf-?8", locale or "", re.IGNORECASE) is not None,
        tmux=tmux,
        set_clipboard=ask_tmux("show-options", "-sv", "set-clipboard") if tmux else None,
        notifications=ringing_terminal(environ).osc,
        allow_passthrough=ask_tmux("show-options", "-gv", "allow-passthrough") if tmux else None,
    )


def _terminal_rows(terminal: _Terminal) -> Iterator[tuple[str, str]]:
    """Yield the rows of the report on the terminal as (name, text)."""
    where = f"{terminal.columns} x {terminal.rows}" if terminal.tty else "stdout is not a terminal"
    names = f"TERM {terminal.term or 'not set'}, COLORTERM {terminal.colorterm or 'not set'}"
    color = ", NO_COLOR is set: no colours" if terminal.no_color else ""
    yield "terminal", f"{where}, {names}{color}"
    if terminal.utf8:
        yield "", f"locale {terminal.locale}: UTF-8"
    else:
        yield (
            "",
            f"locale {terminal.locale or 'not set'}: not UTF-8; gemtui --ascii works without it",
        )
    if terminal.tmux and terminal.set_clipboard != "on":
        now = terminal.set_clipboard or "unknown"
        yield (
            "",
            f"tmux: set-clipboard is {now}; to make copying work: tmux set -s set-clipboard on",
        )
    if terminal.notifications is None:
        yield "", "not known to support notifications; questions ring the bell instead"
    elif terminal.tmux and terminal.allow_passthrough not in ("on", "all"):
        now = terminal.allow_passthrough or "unknown"
        yield "", f"tmux: allow-passthrough is {now}; to get notifications: tmux set -g {_PASS}"


# --- gemtui's own files ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _GemtuiFiles:
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


def _own_files(environ: Mapping[str, str], cache: Path, found: Snapshot) -> _GemtuiFiles:
    config = config_file(environ)
    settings, problem = Config(), None
    try:
        settings = load_config(config)
    except ConfigError as error:
        problem = str(error)
    sizes, marks = list(folder_sizes(cache)), Marks()
    marked, marks_problem = _marked(marks)
    return _GemtuiFiles(
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
    facts = stat_if_possible(file, follow=True)
    return None if facts is None else facts.st_size


def _files_dict(files: _GemtuiFiles) -> dict[str, Any]:
    return {
        "config": {
            "path": str(files.config),
            "found": files.config_found,
            "problem": files.config_problem,
        },
        "cache": {
            "path": str(files.cache),
            "files": files.cache_files,
            "bytes": files.cache_bytes,
            "private": files.cache_private,
            "problem": files.cache_problem,
            "clear": files.clear,
        },
        "prompts": {
            "path": str(files.prompts),
            "bytes": files.prompts_bytes,
            "clear": CLEAR_PROMPTS,
        },
        "marks": {
            "path": str(files.marks),
            "sessions": files.marked,
            "problem": files.marks_problem,
        },
    }


def _file_rows(files: _GemtuiFiles) -> Iterator[tuple[str, str]]:
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
        yield (
            "prompts",
            f"{files.prompts}: {size(files.prompts_bytes)}, prompts typed in the run pane",
        )
        yield "", f"to delete them together with the runs: {CLEAR_PROMPTS}"
    if files.marked:
        yield (
            "marks",
            f"{files.marks}: names, tags and notes of {counted(files.marked, 'session')}",
        )


# --- the search index, the vault, checkpoints and runs --------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _SearchReport:
    """The search index of the store.

    `files`: how many session files are in the index; None if the index does not exist, or is not
    used because of `problem`. `private`: whether only the user can access the index.
    """

    folder: Path
    files: int | None
    bytes: int
    private: bool
    problem: str | None

    @property
    def clear(self) -> str:
        """The shell command that removes the index, which the app then recreates."""
        return f"rm -r {shlex.quote(str(self.folder))}"

    def to_dict(self) -> dict[str, Any]:
        """Return this report as JSON values for `gemtui doctor --json`."""
        return {
            "path": str(self.folder),
            "files": self.files,
            "bytes": self.bytes,
            "private": self.private,
            "problem": self.problem,
            "clear": self.clear,
        }


def _look_at_search(cache: Path, home: Path) -> _SearchReport:
    """Inspect the search index of the store in `home`, without reading indexed text.

    `cache`: gemtui's cache folder.
    """
    folder = index_folder(cache, home)
    files, problem = None, None
    try:
        with closing(FileList(list_file(folder))) as found:
            files = len(found.rows())
    except NoIndex as error:
        problem = str(error) if error.is_there else None
    except (sqlite3.Error, OSError, ValueError) as error:
        problem = f"it is corrupt ({message_of(error)})"
    return _SearchReport(
        folder=folder,
        files=files,
        bytes=sum(folder_sizes(folder)),
        private=is_private(folder),
        problem=problem,
    )


def _search_rows(search: _SearchReport) -> Iterator[tuple[str, str]]:
    """Yield the rows of the report on the search index as (name, text)."""
    if search.problem is not None:
        yield (
            "search",
            f"{search.folder}: not used: {search.problem}; the next search will rebuild it",
        )
    elif search.files is None:
        yield (
            "search",
            "no index yet; the first search creates it, and searches the files directly until then",
        )
    else:
        private = ", readable only by you" if search.private else ""
        kept = f"index of {counted(search.files, 'file')}, {size(search.bytes)}"
        yield "search", f"{search.folder}: {kept}{private}"
        yield "", f"it contains words from your sessions; to delete it: {search.clear}"


def _vault_rows(held: VaultUsage, doomed: int) -> Iterator[tuple[str, str]]:
    if held.on or held.files:
        state = "on" if held.on else "off"
        yield (
            "vault",
            f"{held.folder}: {state}, {counted(held.files, 'file')}, {size(held.own_bytes)}",
        )
        yield (
            "",
            (
                f"including {held.kept} that Gemini CLI has deleted; to delete those, too: "
                f"{PRUNE_VAULT}"
            ),
        )
    if doomed:
        files = counted(doomed, "session file")
        yield (
            "deletions",
            f"Gemini CLI deletes {files} at its next start; to list them: gemtui vault status",
        )


def _checkpoint_rows(held: CheckpointsUsage) -> Iterator[tuple[str, str]]:
    if held.projects:
        words = f"{counted(held.projects, 'project')}, {size(held.bytes)}"
        yield "checkpoints", f"{held.folder}: {words}"
        yield (
            "",
            f"to delete old checkpoints beyond the limits in the settings: {PRUNE_CHECKPOINTS}",
        )


def _run_rows(runs: DiskUsage) -> Iterator[tuple[str, str]]:
    private = ", readable only by you" if runs.private else ""
    yield "runs", f"{runs.place}: {counted(runs.runs, 'run')}, {size(runs.bytes)}{private}"
    yield "", "each run's prompt, answer and file contents are stored until the run is deleted:"
    bound = f"gemtui deletes the oldest beyond {MOST_RUNS} runs or {size(MOST_BYTES)}"
    yield "", f"{bound}; to delete all finished runs: {CLEAR}"
    for copy in runs.only_copies:
        yield "", last_copy_words(copy)
    for id in runs.asking:
        yield "", f"run {id[:8]} is waiting for your answer: see gemtui runs questions {id[:8]}"
