"""Report what settings and `.env` files allow a run to do without asking the user.

The report is shown before the run. Digests of its items are stored for each folder, so that the
next report can say what has changed since the last run.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gemtui.agent.claude_settings import starts_of, trusts
from gemtui.agent.options import AgentOptions
from gemtui.agent.settings import SettingsFile
from gemtui.agent.trust import folder_settings
from gemtui.agents import Agent
from gemtui.calls.env_files import (
    destinations,
    env_files,
    env_variables,
    is_of_user,
    risky_variables,
    written_by,
)
from gemtui.calls.later_files import agents_that_start
from gemtui.calls.setting_effects import SettingEffect, SettingKind, setting_effects
from gemtui.errors import reason_of
from gemtui.files import is_folder, read_small, resolved, write_whole
from gemtui.jsonfile import read_object
from gemtui.jsonout import encode, fields
from gemtui.paths import current_folder, setting_paths, state_dir
from gemtui.policy.file.policy_files import policy_files
from gemtui.text import counted

_MOST_NAMES = 12
_GONE = " (gone)"


_MODE = "general.defaultApprovalMode"
_POLICIES = ("policyPaths", "adminPolicyPaths")


@dataclass(frozen=True, slots=True)
class RunNotice:
    """One item in the pre-run report, about a setting that affects the run.

    The item may quote untrusted text from the file that contains the setting. `follows`: what the
    setting makes the run do, in one sentence. `digest`: identifies the setting's value, which
    itself is never stored. `own`: whether the file belongs to the user or the machine rather than
    the project.
    """

    setting: str
    file: Path
    kind: str
    follows: str
    digest: str
    own: bool

    @property
    def key(self) -> str:
        """A key that identifies the notice in later reports: the setting and its file."""
        return f"{self.setting} in {self.file}"

    @property
    def words(self) -> str:
        """The notice as one line for the user."""
        return f"{self.key}: {self.follows}"


@dataclass(frozen=True, slots=True)
class Report:
    """The report shown before a run.

    `changed`: the keys of notices that have been added, removed or changed since the last run.
    `seen`: whether there has been a report for this folder before. `replaced`: the earlier digests
    of notices that this run's options replace, which are neither changed nor gone.
    """

    folder: Path
    notices: tuple[RunNotice, ...]
    changed: tuple[str, ...] = ()
    seen: bool = True
    replaced: Mapping[str, str] = field(default_factory=dict)
    agent: Agent = Agent.GEMINI

    @property
    def is_news(self) -> bool:
        """Whether the user must agree to new or changed notices about the project.

        Notices that have disappeared, and those about the user's own settings, need no agreement.
        """
        return any(
            not notice.own and (not self.seen or notice.key in self.changed)
            for notice in self.notices
        )

    @property
    def taken_away(self) -> int:
        """How many of the project's settings turn off confirmations.

        The setting for the approval mode is not counted.
        """
        return sum(
            notice.kind == SettingKind.UNASKED and not notice.own and notice.setting != _MODE
            for notice in self.notices
        )

    def summary(self) -> str:
        """Return a short clause that sums up the notices; "" if there are none."""
        unasked = sum(notice.kind == SettingKind.UNASKED for notice in self.notices)
        others = len(self.notices) - unasked
        clauses = []
        if unasked:
            turns = "turns" if unasked == 1 else "turn"
            clauses.append(f"{counted(unasked, 'setting')} {turns} off confirmations")
        if others:
            clauses.append(counted(others, "other notice" if unasked else "notice"))
        return ", ".join(clauses)

    def lines(self) -> Iterator[str]:
        """Yield one line that names all changes, then one line for each notice."""
        if self.changed:
            yield f"changed since the last run: {', '.join(self.changed)}"
        yield from (notice.words for notice in self.notices)

    @property
    def message(self) -> str:
        """The lines as one, which ends like a sentence."""
        clauses = [line.removesuffix(".") for line in self.lines()]
        return f"{'; '.join(clauses)}."

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON values."""
        notices = [fields(notice, "setting", "kind", "follows", "file") for notice in self.notices]
        return {"notices": notices, "changed": list(self.changed)}

    def remember(self) -> None:
        """Store digests of this report, so that the next report can be compared with it.

        Raises OSError.
        """
        path = _kept(self.folder, self.agent)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_whole(
            path, (encode({**self.replaced, **_digests(self.notices)}), b"\n"), durable=True
        )


def before_run_report(options: AgentOptions, environ: Mapping[str, str] = os.environ) -> Report:
    """Report what settings allow a run with these options to do without asking the user.

    Environment variables in a setting are expanded to judge its value, but the report shows their
    names instead of their values.
    """
    folder = resolved(options.cwd or current_folder())
    environ = {**environ, **options.environment}
    notices = tuple(_notices(options, folder, environ))
    last: dict[str, Any] | None = None
    with suppress(OSError):
        last = read_object(_kept(folder, options.agent))
    changed = () if last is None else tuple(_changed(last, notices))
    replaced: dict[str, str] = {}
    if last is not None and options.approval_mode is not None:
        replaced = {key: digest for key, digest in last.items() if key.startswith(f"{_MODE} in ")}
        changed = tuple(key for key in changed if key.removesuffix(_GONE) not in replaced)
    return Report(
        folder,
        notices,
        changed,
        seen=last is not None,
        replaced=replaced,
        agent=options.agent,
    )


def _notices(
    options: AgentOptions, folder: Path, environ: Mapping[str, str]
) -> Iterator[RunNotice]:
    if options.agent is Agent.CLAUDE:
        yield from _of_claude(folder, environ)
    if options.agent is not Agent.GEMINI:
        return
    settings = folder_settings(folder, environ, for_run=True)
    unexpanded = folder_settings(folder, environ, for_run=True, expand=False)
    written = {file.path: file for file in unexpanded.files}
    own = folder / ".gemini" / "settings.json"
    for file in settings.files:
        as_written = _effects(written.get(file.path, file))
        for effect in _effects(file).values():
            if _counts(effect, options, project=file.path == own):
                shown = as_written.get(effect.setting, effect)
                words, value = shown.follows, shown.value
                if effect.setting in _POLICIES:
                    value = [value, *_contents(setting_paths(effect.value, settings.home, folder))]
                mine = file.path != own
                yield _notice(effect.setting, file.path, effect.kind, words, value, own=mine)
    for path in agents_that_start(folder, environ):
        if path.is_relative_to(folder):
            words = "This subagent may start programs, such as MCP servers."
            yield _notice("agent", path, SettingKind.STARTS, words, "")
    ignored = bool(settings.get("advanced", "ignoreLocalEnv"))
    for path in env_files(folder, environ, ignore_local=ignored):
        yield from _variables(path, environ)


def _of_claude(folder: Path, environ: Mapping[str, str]) -> Iterator[RunNotice]:
    """Yield what a project starts in Claude Code, which ignores it in folders without trust."""
    if trusts(folder, environ):
        for file, setting, follows in starts_of(folder):
            yield _notice(setting, file, SettingKind.STARTS, follows, [*_contents([file])])


def _contents(policies: Iterable[Path]) -> Iterator[str]:
    """Yield a digest of each policy file, so that a change of its rules is reported.

    `policies`: files, and folders that contain policy files.
    """
    for policy in policies:
        for file in policy_files(policy) if is_folder(policy) else [policy]:
            try:
                yield hashlib.sha256(read_small(file)).hexdigest()
            except OSError as error:
                yield reason_of(error)


def _effects(file: SettingsFile) -> dict[str, SettingEffect]:
    return {effect.setting: effect for effect in setting_effects(file.values)}


def _counts(effect: SettingEffect, options: AgentOptions, *, project: bool) -> bool:
    """Return whether to include a setting's effect in the report.

    Settings that suppress questions are always reported, other settings only if they are the
    project's. The setting for the approval mode is left out if the run's options replace it.
    """
    if effect.setting == _MODE and options.approval_mode is not None:
        return False
    if effect.kind is SettingKind.UNASKED:
        return True
    return project and effect.kind is not SettingKind.GUARDS


def _variables(path: Path, environ: Mapping[str, str]) -> Iterator[RunNotice]:
    """Yield the notices about a `.env` file.

    They contain no values except the hosts of URLs.
    """
    try:
        variables = env_variables(path, environ)
        risky = risky_variables(path, environ)
    except OSError as error:
        why = reason_of(error)
        yield _notice(".env", path, "environment", f"The file can't be checked: {why}.", why)
        return
    own = is_of_user(path, environ)
    effects = [
        (name, SettingKind.SENDS, f"The conversation or its telemetry is sent to {host}.")
        for name, host in destinations(variables).items()
    ]
    for name in risky:
        follows = "This variable can make programs run without asking."
        effects.append((name, SettingKind.STARTS, follows))
    for name in written_by(variables):
        follows = "Gemini CLI writes to the file named by this variable."
        effects.append((name, SettingKind.STARTS, follows))
    for name, kind, follows in effects:
        yield _notice(name, path, kind, follows, variables[name], own=own)
    if variables and not own:
        names = ", ".join(list(variables)[:_MOST_NAMES])
        if len(variables) > _MOST_NAMES:
            names += f" and {len(variables) - _MOST_NAMES} more"
        follows = f"Runs load variables from this file: {names}."
        yield _notice(".env", path, "environment", follows, sorted(variables))


def _notice(
    setting: str, file: Path, kind: str, follows: str, value: Any, *, own: bool = False
) -> RunNotice:
    whole = json.dumps([str(file), value], sort_keys=True, default=str)
    digest = hashlib.sha256(whole.encode("utf-8", "surrogatepass")).hexdigest()
    return RunNotice(setting, file, str(kind), follows, digest, own)


# --- the last run's report -----------------------------------------------------------------------


def _changed(last: Mapping[str, Any], notices: tuple[RunNotice, ...]) -> Iterator[str]:
    """Yield the keys of notices that are new, different or gone since the last run.

    `last`: the digests of the last run's notices, by key.
    """
    now = _digests(notices)
    for key, digest in now.items():
        if last.get(key) != digest:
            yield key
    yield from (f"{key}{_GONE}" for key in last if key not in now)


def _digests(notices: tuple[RunNotice, ...]) -> dict[str, str]:
    return {notice.key: notice.digest for notice in notices}


def _kept(folder: Path, agent: Agent) -> Path:
    whose = b"" if agent is Agent.GEMINI else f"\0{agent}".encode()
    name = hashlib.sha256(os.fsencode(folder) + whose).hexdigest()[:32]
    return state_dir() / "before-run" / f"{name}.json"
