"""`gemtui doctor`: examine this machine, and print a report as lines or as JSON.

Each function below examines one part of the machine and returns a `Section`, which has both forms
of every fact.
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
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import click
from msgspec import Struct, field

from gemtui.agent.detect import ALIASES, INSTALL_LINK, MODELS, Detected, detect_cli
from gemtui.agent.settings import settings_problems
from gemtui.agent.trust import folder_settings
from gemtui.agents import WORDS, Agent, impossible, other_roots
from gemtui.checkpoints.usage import PRUNE_CHECKPOINTS, checkpoints_usage
from gemtui.commands.output import fact_line, json_to_stdout, lines_to_stdout, note
from gemtui.commands.shared_options import json_option
from gemtui.config import Checkpoints, Config, load_config
from gemtui.errors import ConfigError, MarksUnreadable, StoreUnreadable, message_of
from gemtui.extension.content import starter_problem
from gemtui.extension.status import INSTALL, ExtensionState, HookState, extension_state
from gemtui.files import folder_sizes, is_folder, is_private, path_exists, stat_if_possible
from gemtui.jsonout import json_value
from gemtui.kept.cleanup import count_deletions, retention
from gemtui.kept.contents import PRUNE_VAULT, VaultUsage, contents
from gemtui.marks import Marks
from gemtui.notify import ask_tmux, ringing_terminal
from gemtui.paths import (
    cache_dir,
    checkpoints_dir,
    config_file,
    current_folder,
    failed_commands_dir,
    gemini_home,
    prompts_file,
    runs_dir,
    sandboxed_home,
)
from gemtui.policy.file.policy_files import (
    is_empty_folder,
    named_policies,
    policies_dir,
    policy_files,
)
from gemtui.policy.model.rules import CHECKED_AGAINST, Severity
from gemtui.runs.disk_usage import DiskUsage, runs_usage
from gemtui.runs.limits import (
    BROKEN,
    CLEAR,
    CLEAR_PROMPTS,
    MOST_BYTES,
    MOST_RUNS,
    lost_words,
    orphaned_words,
)
from gemtui.search.file_list import FileList, NoIndex, index_folder, list_file
from gemtui.sessions.catalog.index import Index
from gemtui.sessions.catalog.newest import NewestSessions, Unsure
from gemtui.sessions.catalog.selection import listed_sessions, require_readable
from gemtui.sessions.catalog.stored_file import StoredFile
from gemtui.sessions.store.projects import registry_problem
from gemtui.sessions.store.shelf import agent_of_key
from gemtui.sessions.store.store import UNREADABLE, Problem, StoreState
from gemtui.stats.prices import load_prices
from gemtui.text import clean_line, counted, or_list, size
from gemtui.version import VERSION

_SHOWN_PROBLEMS = 10
_LOOKED_INTO = 20
"""How many of the newest sessions of an agent are read, to find lines of unknown types."""
_STATES = {
    StoreState.MISSING: "does not exist yet; Gemini CLI creates it when you first use it",
    StoreState.NO_FOLDER: "not a folder",
    StoreState.EMPTY: "no sessions yet",
    StoreState.UNREADABLE: "can't be read",
    StoreState.OK: "readable",
}
_PRIVATE = {True: ", readable only by you", False: ""}


class Section(Struct, kw_only=True):
    """The facts about one part of the machine, such as the CLI or the vault.

    * `name`: what the lines begin with.
    * `values`: the facts as JSON values; null means unknown or missing.
    * `lines`: the facts in words.
    * `problems`: what is broken, each with the fix.
    * `is_open`: whether something, though not broken, waits for the user.
    * `remarks`: what happened during the examination; a JSON report prints it on stderr.
    """

    name: str
    values: dict[str, Any]
    lines: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    is_open: bool = False
    remarks: list[str] = field(default_factory=list)


_PLACES = ("home", "folder", "link", "path")
"""The values of sections that are paths."""


@click.command()
@json_option
def doctor(as_json: bool) -> int:
    """Check sessions, Gemini CLI, the terminal, and gemtui's own files.

    Each problem comes with a solution. Exit code 1 if something is broken.
    """
    sections = dict(_examine(os.environ))
    problems = [problem for section in sections.values() for problem in section.problems]
    if as_json:
        for section in sections.values():
            for remark in section.remarks:
                note(remark)
        json_to_stdout({**_nested(sections), "problems": problems})
        return 1 if problems else 0
    rows = list[tuple[str, str]]()
    for section in sections.values():
        for index, line in enumerate(section.lines):
            rows.append((section.name if index == 0 else "", line))
    rows += [("broken", problem) for problem in problems]
    if not problems:
        is_open = any(section.is_open for section in sections.values())
        rows.append(("no problems" if is_open else "all well", ""))
    values = [section.values.get(key) for section in sections.values() for key in _PLACES]
    links = [Path(value) for value in values if isinstance(value, str)]
    lines = (fact_line(name, clean_line(text)) for name, text in rows)
    lines_to_stdout(lines, links=[*links, INSTALL_LINK])
    return 1 if problems else 0


def _nested(sections: Mapping[str, Section]) -> dict[str, Any]:
    """Return the sections as a JSON object; `files.cache` becomes `cache` in `files`."""
    report: dict[str, Any] = {}
    for key, section in sections.items():
        *outer, last = key.split(".")
        values = report
        for part in outer:
            values = values.setdefault(part, {})
        values[last] = section.values
    return report


def _examine(environ: Mapping[str, str]) -> Iterator[tuple[str, Section]]:
    """Examine this machine, and yield the sections, each with its place in the JSON report.

    To find out facts, this may run three programs: the CLI, tmux if it is in use, and the Python
    that the extension's hooks name.
    """
    home, cache = gemini_home(environ), cache_dir()
    store = _read_store(home, cache)
    cli = detect_cli(environ)
    extension = extension_state(environ)
    yield "gemtui", _program()
    yield "store", _store(environ, home, store)
    yield "agents", _agents(environ, store.files)
    yield "cli", _cli(environ, cli)
    yield "extension", _extension(environ, extension)
    yield "policies", look_at_policies(environ, cli.version)
    yield "terminal", _terminal(environ)
    yield "files.config", _settings(config_file(environ))
    yield "files.cache", _cache(cache, store)
    yield "files.prompts", _prompts(prompts_file())
    yield "files.marks", _marks(Marks())
    yield "files.search", _search(index_folder(cache, home))
    rule = partial(retention, environ)
    doomed = count_deletions(store.files, rule, datetime.now(UTC), store.unreadable)
    yield "files.vault", _vault(contents(), doomed)
    yield "files.checkpoints", _checkpoints(checkpoints_dir())
    yield "runs", _runs(runs_usage(runs_dir()))


def _program() -> Section:
    system = platform.uname()  # `platform.platform` may start a program
    values = {
        "version": VERSION,
        "python": platform.python_version(),
        "platform": f"{system.system} {system.release} {system.machine}",
    }
    line = f"{values['version']}, Python {values['python']}, {values['platform']}"
    return Section(name="gemtui", values=values, lines=[line])


class _Store(NamedTuple):
    """The session files of a store; `cache`, `renewed`: as in a snapshot."""

    state: StoreState
    files: Sequence[StoredFile]
    unreadable: Sequence[Problem]
    cache: Problem | None
    renewed: Problem | None


def _read_store(home: Path, cache: Path) -> _Store:
    """Read all session files, or what is in the cache about them."""
    with closing(Index(home, cache=cache)) as index:
        try:
            store = NewestSessions(index)
            files, problems = store.stored(), store.problems()
            return _Store(StoreState.OK, files, problems, index.cache_problem, index.renewed)
        except (Unsure, StoreUnreadable):
            snapshot = index.load()
    listed = listed_sessions(snapshot, project=None, hidden=True)
    return _Store(
        state=snapshot.state,
        files=[StoredFile.of(session) for session in listed],
        unreadable=snapshot.unreadable,
        cache=snapshot.cache,
        renewed=snapshot.renewed,
    )


# --- Gemini CLI ----------------------------------------------------------------------------------


def _store(environ: Mapping[str, str], home: Path, store: _Store) -> Section:
    """Report the CLI's folder; `home_from`: how it was found; `bytes`: of all files."""
    files = store.files
    hidden = Counter(file.why_hidden for file in files if file.why_hidden)
    listed = len(files) - hidden.total()
    projects = len({file.project or file.project_key for file in files})
    bytes = sum(file.size for file in files)
    home_from = "GEMINI_CLI_HOME" if environ.get("GEMINI_CLI_HOME") else "home folder"
    section = Section(
        name="store",
        values={
            "home": str(home),
            "home_from": home_from,
            "state": store.state.value,
            "projects": projects,
            "files": len(files),
            "sessions": listed,
            "hidden": dict(hidden),
            "unreadable": json_value(store.unreadable),
            "bytes": bytes,
            "sandboxed": None,
        },
        lines=[
            f"{home} (from {home_from}): {_STATES[store.state]}",
            f"{counted(listed, 'session')} of {counted(projects, 'project')}; "
            f"{counted(len(files), 'file')}, {size(bytes)}",
        ],
    )
    sandboxed = sandboxed_home(home)
    if is_folder(sandboxed / "tmp"):
        section.values["sandboxed"] = str(sandboxed)
        section.lines.append(
            f"{sandboxed} has more, of runs in macOS's sandbox; to read them: "
            f"GEMINI_CLI_HOME={shlex.quote(str(sandboxed.parent))} gemtui"
        )
    if hidden:
        counts = ", ".join(f"{count} {why}" for why, count in sorted(hidden.items()))
        section.lines.append(f"hidden: {counts}")
    for problem in store.unreadable[:_SHOWN_PROBLEMS]:
        section.lines.append(f"unreadable: {problem.path}: {problem.what}")
    more = len(store.unreadable) - _SHOWN_PROBLEMS
    if more > 0:
        section.lines.append(f"unreadable: {more} more (see --json)")

    try:
        require_readable(home, store.state, store.unreadable)
    except StoreUnreadable as error:
        section.problems.append(str(error))
    else:
        if store.unreadable:
            section.problems.append(
                f"{len(store.unreadable)} of the store's files or folders can't be read: see "
                "the reasons in the “store” section"
            )
    registry = registry_problem(home)
    if registry is not None:
        section.problems.append(registry)
    return section


def _agents(environ: Mapping[str, str], files: Sequence[StoredFile]) -> Section:
    """Report the other agents whose sessions are read, and lines that gemtui doesn't know."""
    section = Section(name="agents", values={})
    homes: dict[Agent, list[str]] = {}
    for agent, home in other_roots(environ):
        homes.setdefault(agent, []).append(str(home))
    for agent, folders in homes.items():
        of_agent = [file for file in files if agent_of_key(file.project_key) is agent]
        of_agent.sort(key=lambda file: file.last_use or 0, reverse=True)
        unknown = _unknown_lines(of_agent[:_LOOKED_INTO])
        sessions = sum(not file.why_hidden for file in of_agent)
        section.values[agent.value] = {
            "home": folders[0],
            "homes": folders,
            "sessions": sessions,
            "problems": dict(unknown),
        }
        section.lines.append(
            f"{WORDS[agent].program} ({', '.join(folders)}): {counted(sessions, 'session')}; "
            f"from gemtui, they can't be {or_list(impossible(agent))}"
        )
        for what, count in unknown.most_common(_SHOWN_PROBLEMS):
            section.lines.append(f"{counted(count, 'line')} of the newest sessions: {what}")
    return section


def _unknown_lines(files: Sequence[StoredFile]) -> Counter[str]:
    """Count the lines of session files that gemtui doesn't know, by what they are."""
    unknown = Counter[str]()
    if not files:
        return unknown
    from gemtui.sessions.read.session_log import SessionLog

    for file in files:
        with suppress(*UNREADABLE), SessionLog.read(Path(file.name)) as log:
            unknown.update(problem.what for problem in log.problems)
    return unknown


def _cli(environ: Mapping[str, str], detected: Detected) -> Section:
    """Report the CLI and its settings; a missing CLI is not a problem."""
    section = Section(name="gemini", values=detected.to_dict())
    section.problems += settings_problems(environ, current_folder())
    if detected.cli is None:
        section.lines.append(
            f"not found, but stored sessions can still be read; to install it: {INSTALL_LINK}"
        )
        return section
    section.lines.append(
        f"{detected.version or 'version unknown'}, {detected.cli.path} "
        f"(found by {detected.cli.found_by.value})"
    )
    if detected.problem is not None:
        section.problems.insert(0, detected.problem)
        return section
    features = detected.capabilities.to_dict()
    supported = [name.replace("_", " ") for name, has in features.items() if has is True]
    section.lines += [
        f"supports: {', '.join(supported)}; modes: "
        f"{', '.join(detected.capabilities.approval_modes)}",
        f"models: {', '.join(MODELS)}, and any others that the API offers",
        _price_words(),
    ]
    return section


def _price_words() -> str:
    """Describe how old the prices are, and name the CLI's models that have no price."""
    try:
        prices = load_prices()
    except ConfigError as error:
        return f"prices: {error}"
    lacking = ", ".join(prices.without(model for model in MODELS if model not in ALIASES))
    return f"prices of {prices.date}; no price known for: {lacking or 'none'}"


def _extension(environ: Mapping[str, str], extension: ExtensionState) -> Section:
    section = Section(name="extension", values=extension.to_dict())
    match extension.state:
        case HookState.READY:
            line = f"{extension.folder}: its hooks run in every Gemini CLI session"
        case HookState.MISSING:
            line = f"not installed; to see what it does, and to install it: {INSTALL}"
        case _:
            line = str(extension.problem)
    section.lines.append(line)
    if extension.state in (HookState.GONE, HookState.OLDER):
        section.problems.append(str(extension.problem))
    elif extension.state is not HookState.DISABLED and _wants_checkpoints(environ):
        # The user wants checkpoints of all sessions, which the extension's hooks take.
        problem = extension.problem
        if problem is None and extension.source is not None:
            starter = starter_problem(extension.source)
            problem = None if starter is None else f"{starter}: {INSTALL}"
        if problem is not None:
            setting = f'checkpoints = "{Checkpoints.ALWAYS}"'
            section.problems.append(f"{setting} has no effect: {problem}")
    return section


def _wants_checkpoints(environ: Mapping[str, str]) -> bool:
    """Return whether valid settings ask for checkpoints of Gemini CLI's own sessions."""
    try:
        return load_config(config_file(environ)).checkpoints is Checkpoints.ALWAYS
    except ConfigError:
        return False


def look_at_policies(environ: Mapping[str, str], installed: str | None) -> Section:
    """Check gemtui's policies, and the policies that every CLI session loads.

    Folders that don't exist are left out. `installed`: the installed CLI's version, which is
    compared with the version gemtui's policy engine was checked against; None if unknown.
    """
    engine = f"gemtui's policy engine was checked against Gemini CLI {CHECKED_AGAINST}"
    is_installed = None if installed is None else installed == CHECKED_AGAINST
    if is_installed:
        engine += ", the installed version"
    elif installed is not None:
        engine += f", but {installed} is installed, which may decide some calls differently"
    places: list[dict[str, Any]] = []
    section = Section(
        name="policies",
        values={"engine": CHECKED_AGAINST, "engine_is_installed": is_installed, "places": places},
        lines=[engine],
    )
    folder = current_folder()
    users = folder_settings(folder, environ).user_policies(folder)
    for path, is_ours in ((policies_dir(), True), *((path, False) for path in users)):
        if not path_exists(path):
            continue
        files = named_policies() if is_ours else policy_files(path)
        checked = files if is_ours or is_empty_folder(path) else [path]
        findings = _findings(checked)
        errors, warnings = findings[Severity.ERROR], findings[Severity.WARNING]
        command = f"gemtui policy check {shlex.quote(str(path))}"
        places.append(
            {
                "path": str(path),
                "ours": is_ours,
                "files": len(files),
                "errors": errors,
                "warnings": warnings,
                "check": command,
            }
        )
        whose = "ours" if is_ours else "yours, used in every session"
        section.lines.append(
            f"{path} ({whose}): {counted(len(files), 'file')}, {counted(errors, 'error')}, "
            f"{counted(warnings, 'warning')}"
        )
        if findings:
            section.lines.append(f"to see the findings: {command}")
        if errors:
            effect = "Gemini CLI ignores the affected rules"
            if is_ours:
                effect = "gemtui starts no runs until they are fixed"
            section.problems.append(f"{path}: {counted(errors, 'error')}, {effect}: {command}")
    return section


def _findings(files: Sequence[Path]) -> Counter[Severity]:
    """Return how many findings there are in these policy files, by severity."""
    if not files:
        return Counter()
    from gemtui.policy.check.check_policy import check_files

    return Counter(finding.severity for file in files for finding in check_files([file]))


# --- the terminal --------------------------------------------------------------------------------


def _terminal(environ: Mapping[str, str]) -> Section:
    """Report stdout's terminal; inside tmux, run tmux to get options.

    * `columns`, `rows`: null if stdout is not a terminal.
    * `set_clipboard`: tmux's option of that name, which must be `on` for copying to work in a tmux
      older than 3.2; null outside tmux.
    * `notifications`: the number of the terminal's escape code (OSC) for notifications; null if
      none is known.
    * `allow_passthrough`: tmux's option of that name, on which notifications depend.
    """
    tty = sys.stdout is not None and sys.stdout.isatty()
    columns, rows = shutil.get_terminal_size() if tty else (None, None)
    term, colorterm = environ.get("TERM"), environ.get("COLORTERM")
    no_color = bool(environ.get("NO_COLOR"))
    locale = environ.get("LC_ALL") or environ.get("LC_CTYPE") or environ.get("LANG") or None
    utf8 = re.search(r"utf-?8", locale or "", re.IGNORECASE) is not None
    notifications = ringing_terminal(environ).osc
    tmux = bool(environ.get("TMUX"))
    clipboard = passthrough = None
    if tmux:
        clipboard = ask_tmux("show-options", "-sv", "set-clipboard")
        passthrough = ask_tmux("show-options", "-gv", "allow-passthrough")
    section = Section(
        name="terminal",
        values={
            "tty": tty,
            "term": term,
            "colorterm": colorterm,
            "columns": columns,
            "rows": rows,
            "no_color": no_color,
            "locale": locale,
            "utf8": utf8,
            "tmux": tmux,
            "set_clipboard": clipboard,
            "notifications": notifications,
            "allow_passthrough": passthrough,
        },
    )
    where = f"{columns} x {rows}, " if tty else ""
    names = f"TERM {term or 'not set'}, COLORTERM {colorterm or 'not set'}"
    section.lines.append(f"{where}{names}{', NO_COLOR is set: no colours' if no_color else ''}")
    if utf8:
        section.lines.append(f"locale {locale}: UTF-8")
    else:
        section.lines.append(
            f"locale {locale or 'not set'}: not UTF-8; gemtui --ascii works without it"
        )
    if tmux and clipboard != "on":
        section.lines.append(
            f"tmux: set-clipboard is {clipboard or 'unknown'}; before tmux 3.2, copying needs: "
            "tmux set -s set-clipboard on"
        )
    if notifications is None:
        section.lines.append("not known to support notifications; questions ring the bell instead")
    elif tmux and passthrough not in ("on", "all"):
        section.lines.append(
            f"tmux: allow-passthrough is {passthrough or 'unknown'}; to get notifications: "
            "tmux set -g allow-passthrough on"
        )
    return section


# --- gemtui's own files --------------------------------------------------------------------------


def _settings(path: Path) -> Section:
    settings, problem = Config(), None
    try:
        settings = load_config(path)
    except ConfigError as error:
        problem = str(error)
    is_there = path_exists(path)
    section = Section(
        name="settings", values={"path": str(path), "found": is_there, "problem": problem}
    )
    if not is_there:
        section.lines.append(f"{path}: not there, defaults")
    else:
        section.lines.append(f"{path}: {'valid' if problem is None else 'not valid'}")
    if settings.theme != Config().theme:  # only the app knows which themes there are
        section.lines.append(f'theme "{settings.theme}" will be checked when the app starts')
    if problem is not None:
        section.problems.append(problem)
    if is_folder(failed_commands_dir()):
        from gemtui.runs.gate.user_commands import failures

        section.problems += [failure.text for failure in failures()]
    return section


def _cache(folder: Path, store: _Store) -> Section:
    sizes, private = list(folder_sizes(folder)), is_private(folder)
    clear = f"rm -r {shlex.quote(str(folder))}"
    section = Section(
        name="cache",
        values={
            "path": str(folder),
            "files": len(sizes),
            "bytes": sum(sizes),
            "private": private,
            "problem": None,
            "clear": clear,
        },
        lines=[f"{folder}: {counted(len(sizes), 'file')}, {size(sum(sizes))}{_PRIVATE[private]}"],
    )
    if store.cache is not None:
        problem = f"{store.cache.path}: {store.cache.what}"
        section.values["problem"] = problem
        section.problems.append(problem)
    if store.renewed is not None:
        section.lines.append(store.renewed.what)
        section.remarks.append(f"{folder}: {store.renewed.what}")
    section.lines.append(f"to clear it: {clear}")
    return section


def _prompts(path: Path) -> Section:
    facts = stat_if_possible(path, follow=True)
    bytes = None if facts is None else facts.st_size
    clear = CLEAR_PROMPTS
    section = Section(name="prompts", values={"path": str(path), "bytes": bytes, "clear": clear})
    if bytes is not None:
        section.lines += [
            f"{path}: {size(bytes)}, prompts typed in the run pane",
            f"to delete them together with the runs: {clear}",
        ]
    return section


def _marks(marks: Marks) -> Section:
    sessions, problem = None, None
    try:
        sessions = len(marks.all())
    except MarksUnreadable as error:
        problem = str(error)
    section = Section(
        name="marks", values={"path": str(marks.path), "sessions": sessions, "problem": problem}
    )
    if sessions:
        section.lines.append(
            f"{marks.path}: names, tags and notes of {counted(sessions, 'session')}"
        )
    if problem is not None:
        section.problems.append(problem)
    return section


def _search(folder: Path) -> Section:
    """Report the store's search index, without reading indexed text.

    `files`: null if there is no index, or if it is not used because of `problem`.
    """
    files, problem = None, None
    try:
        with closing(FileList(list_file(folder))) as indexed:
            files = len(indexed.rows())
    except NoIndex as error:
        problem = str(error) if error.is_there else None
    except (sqlite3.Error, OSError, ValueError) as error:
        problem = f"it is corrupt ({message_of(error)})"
    bytes, private = sum(folder_sizes(folder)), is_private(folder)
    clear = f"rm -r {shlex.quote(str(folder))}"
    if problem is not None:
        lines = [f"{folder}: not used: {problem}; the next search will rebuild it"]
    elif files is None:
        lines = [
            "no index yet; the first search creates it, and searches the files directly until then"
        ]
    else:
        lines = [
            f"{folder}: index of {counted(files, 'file')}, {size(bytes)}{_PRIVATE[private]}",
            f"it contains words from your sessions; to delete it: {clear}",
        ]
    return Section(
        name="search",
        values={
            "path": str(folder),
            "files": files,
            "bytes": bytes,
            "private": private,
            "problem": problem,
            "clear": clear,
        },
        lines=lines,
    )


def _vault(vault: VaultUsage, doomed: int) -> Section:
    """Report the vault; `doomed`: how many session files the CLI deletes at its next start."""
    section = Section(name="vault", values=vault.to_dict(), is_open=doomed > 0)
    if vault.on or vault.files:
        section.lines += [
            f"{vault.folder}: {'on' if vault.on else 'off'}, {counted(vault.files, 'file')}, "
            f"{size(vault.own_bytes)}",
            f"including {vault.kept} that agents have deleted; to delete those, too: {PRUNE_VAULT}",
        ]
    if doomed:
        section.lines.append(
            f"Gemini CLI deletes {counted(doomed, 'session file')} at its next start; to list "
            "them: gemtui vault status"
        )
    return section


def _checkpoints(folder: Path) -> Section:
    usage = checkpoints_usage(folder)
    section = Section(name="checkpoints", values=usage.to_dict())
    if usage.projects:
        from gemtui.checkpoints.undo import interrupted_undos

        section.lines += [
            f"{usage.folder}: {counted(usage.projects, 'project')}, {size(usage.bytes)}",
            f"to delete old checkpoints beyond the limits in the settings: {PRUNE_CHECKPOINTS}",
        ]
        section.problems += [change.advice for change in interrupted_undos(folder)]
    return section


def _runs(usage: DiskUsage) -> Section:
    section = Section(
        name="runs",
        values=usage.to_dict(),
        lines=[
            f"{usage.place}: {counted(usage.runs, 'run')}, {size(usage.bytes)}"
            f"{_PRIVATE[usage.private]}",
            "each run's prompt, answer and file contents are stored until the run is deleted:",
            f"gemtui deletes the oldest beyond {MOST_RUNS} runs or "
            f"{size(MOST_BYTES)}; to delete all finished runs: {CLEAR}",
        ],
        is_open=bool(usage.only_copies or usage.asking or usage.lost),
    )
    if usage.only_copies:
        from gemtui.kept.run_copies import last_copy_words

        section.lines += map(last_copy_words, usage.only_copies)
    for id in usage.asking:
        section.lines.append(
            f"run {id[:8]} is waiting for your answer: see gemtui runs questions {id[:8]}"
        )
    section.lines += map(lost_words, usage.lost)
    section.problems += [f"{folder} {BROKEN}" for folder in usage.broken]
    section.problems += map(orphaned_words, usage.orphaned)
    return section
