"""Predict which files the CLI's clean-up will delete.

See assets/gemini-cli.md#clean-up.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Any

from gemtui.agent.trust import folder_settings
from gemtui.jsonout import fields
from gemtui.paths import vault_dir
from gemtui.sessions.catalog.summary import NO_TITLE, Flag, Summary, TitleSource
from gemtui.sessions.store.projects import is_hash
from gemtui.sessions.store.store import Problem, SessionKind

SETTING = "general.sessionRetention.enabled"
"""The setting that turns the clean-up off if it is false."""
_PERIOD = re.compile(r"([0-9]+)([hdwm])")
_HOURS = {"h": 1, "d": 24, "w": 24 * 7, "m": 24 * 30}
_SHORT_ID = re.compile(r"-([a-zA-Z0-9]{8})\.jsonl?\Z")
_EVER = timedelta(days=400_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """How long the CLI keeps a project's sessions, according to its settings.

    `enabled`: whether the clean-up deletes any sessions; also False if the CLI considers the
    settings invalid. `age`: the age at which it deletes sessions; None means no limit. `age_text`:
    the age as written in the setting. `count`: how many sessions it keeps; None means all.
    """

    enabled: bool = True
    age: timedelta | None = timedelta(days=30)
    age_text: str = "30d"
    count: int | None = None


def retention(environ: Mapping[str, str], project: Path | None) -> Retention:
    """Return the retention settings for a project. Never raises.

    `project`: the project's folder, whose own settings count only if it is trusted; None stands for
    no project.
    """
    settings: dict[str, Any] = {"enabled": True, "maxAge": "30d"}
    own_settings = folder_settings(project, environ).get("general", "sessionRetention")
    if isinstance(own_settings, dict):
        settings |= own_settings
    age_text, count = settings.get("maxAge"), settings.get("maxCount")
    age = _period(age_text)
    least_age = _period(settings.get("minRetention")) or timedelta(days=1)
    if not isinstance(count, int):
        count = None
    has_bad_age = bool(age_text) and (age is None or age < least_age)
    has_bad_count = count is not None and count < 1
    has_limit = age is not None or count is not None
    return Retention(
        enabled=bool(settings["enabled"]) and has_limit and not has_bad_age and not has_bad_count,
        age=age,
        age_text=str(age_text or ""),
        count=count,
    )


def _period(text: object) -> timedelta | None:
    """Parse a period such as 30d; return None if the CLI rejects it."""
    match = _PERIOD.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        return None
    hours = int(match[1][:9]) * _HOURS[match[2]]
    return min(timedelta(hours=hours), _EVER) or None


class Why(StrEnum):
    """The reason why the clean-up will delete a file.

    The values are used in `gemtui vault status --json`.
    """

    EXPIRED = "expired"
    TOO_MANY = "too_many"
    NOTHING = "nothing_to_resume"
    UNREADABLE = "unreadable"
    NO_HEADER = "no_header"
    """The first line, which names the session and its project, is corrupt or missing."""
    TWIN = "twin"
    """A file with the same short id will be deleted, and this one along with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DoomedFile:
    """A file that will be deleted the next time the CLI starts in its project.

    `session`: the file, as a session. `retention`: the project's retention settings. `twin`: for
    `Why.TWIN`, the file with the same short id that causes the deletion. `problem`: for
    `Why.UNREADABLE`, why no session can be read from the file.
    """

    session: Summary
    why: Why
    retention: Retention
    twin: Path | None = None
    problem: str = ""

    def words(self) -> str:
        """Return the reason as a phrase."""
        match self.why:
            case Why.EXPIRED:
                return f"not used for {self.retention.age_text}"
            case Why.TOO_MANY:
                return f"not among the newest {self.retention.count}"
            case Why.NOTHING:
                return "contains nothing to resume"
            case Why.UNREADABLE:
                return self.problem
            case Why.NO_HEADER if self.session.format == "jsonl":
                return "its first line is corrupt or missing; gemtui vault restore repairs it"
            case Why.NO_HEADER:
                return "it has no session id"
            case Why.TWIN:
                return "has the same id as another file that will be deleted"

    def to_dict(self) -> dict[str, Any]:
        """Return the file as an item of `next` in `gemtui vault status --json`."""
        session = fields(self.session, "title", "project", session="id", file="name")
        return session | fields(self, "why", "twin")


def next_deletions(
    sessions: Iterable[Summary],
    retention_of: Callable[[Path | None], Retention],
    now: datetime,
    unreadable: Iterable[Problem] = (),
) -> tuple[DoomedFile, ...]:
    """Return the files the CLI will delete when it starts next in their projects.

    This assumes that no session is open at that time. `sessions`, `unreadable`: all of a store's,
    as in a snapshot. `retention_of`: called once per project.
    """
    folders: dict[Path, list[Summary]] = {}
    lost = {str(problem.path): problem.what for problem in unreadable if not problem.too_large}
    damaged = [_unread(Path(name), now) for name in lost]
    for session in (*sessions, *damaged):
        for file in (session, *session.copies):
            if _is_cleaned(file):
                folders.setdefault(file.path.parent, []).append(file)
    rules: dict[Path | None, Retention] = {}
    doomed: list[DoomedFile] = []
    for files in folders.values():
        project = next((file.folder for file in files if file.folder), None)
        if project not in rules:
            rules[project] = retention_of(project)
        if rules[project].enabled:
            doomed += _hits(files, rules[project], now, lost)
    return tuple(doomed)


def _unread(path: Path, now: datetime) -> Summary:
    """Return an unreadable file as an empty session, which is how the CLI treats it."""
    return Summary(
        id=short_id(path),
        title=NO_TITLE,
        title_source=TitleSource.NONE,
        project=None,
        project_key=path.parent.parent.name,
        kind=SessionKind.MAIN,
        format="json" if path.suffix == ".json" else "jsonl",
        names=(str(path),),
        size=0,
        modified=now,
        flags=frozenset({Flag.EMPTY}),
    )


def _is_cleaned(file: Summary) -> bool:
    """Return whether the clean-up examines a file.

    It examines the main files of sessions, but not those in the vault or in folders that are named
    by a project's hash, as in old versions.
    """
    path = file.path
    named = path.parent.name == "chats" and path.name.startswith("session-")
    if path.suffix not in (".json", ".jsonl") or path.is_relative_to(vault_dir()):
        return False
    return named and Flag.KEPT not in file.flags and not is_hash(file.project_key)


def _hits(
    files: Sequence[Summary], rule: Retention, now: datetime, lost: Mapping[str, str]
) -> Iterator[DoomedFile]:
    whys = _own_reasons(files, rule, now)
    whys |= {file.name: Why.UNREADABLE for file in files if file.name in lost}
    going: dict[str, Summary] = {}
    for file in files:
        if file.name in whys and (id := short_id(file.path)):
            going.setdefault(id, file)
    for file in files:
        if file.name in whys:
            why, problem = whys[file.name], lost.get(file.name, "")
            yield DoomedFile(session=file, why=why, retention=rule, problem=problem)
        elif (twin := going.get(short_id(file.path))) is not None:
            yield DoomedFile(session=file, why=Why.TWIN, retention=rule, twin=twin.path)


def _own_reasons(files: Sequence[Summary], rule: Retention, now: datetime) -> dict[str, Why]:
    resumable = [file for file in files if file.resumable and file.parent is None]
    kept = {file.name for file in resumable if file.kind is SessionKind.MAIN}
    whys = {file.name: Why.NOTHING for file in files if file.name not in kept}
    headless = [file for file in files if file.name in kept and not file.has_header]
    whys |= {file.name: Why.NO_HEADER for file in headless}
    mains = [file for file in resumable if file.name in kept and file.has_header]
    last_use = {file.name: _last_use(file) or now for file in mains}
    for at, file in enumerate(sorted(mains, key=lambda file: last_use[file.name], reverse=True)):
        if rule.age is not None and now - last_use[file.name] > rule.age:
            whys[file.name] = Why.EXPIRED
        elif rule.count is not None and at >= rule.count:
            whys[file.name] = Why.TOO_MANY
    return whys


def _last_use(file: Summary) -> datetime | None:
    """Return when the CLI takes a file to have been used last; None means just now.

    That is so for a log that doesn't say when. An old object counts as used when it was started.
    """
    if file.updated is not None or file.partial:
        return file.when
    return None if file.format == "jsonl" else file.started or file.modified


def short_id(path: Path) -> str:
    """Return the short session id in a file's name; "" if there is none.

    The clean-up compares these ids.
    """
    match = _SHORT_ID.search(path.name) if path.name.startswith("session-") else None
    return "" if match is None else match[1]


def expires(session: Summary, rule: Retention) -> datetime | None:
    """Return when a session becomes old enough to be deleted; None means never.

    `rule`: the retention settings of the session's project.
    """
    last_use = _last_use(session)
    if not rule.enabled or rule.age is None or last_use is None or not _is_cleaned(session):
        return None
    return last_use + rule.age if rule.age < _EVER else None


def is_expired(session: Summary, rule: Retention, now: datetime) -> bool:
    """Return whether the retention settings may cause a session's deletion now.

    That is so if its last update is too old, and for every session if the number of sessions is
    limited. The session may be in the store, or about to be restored to it.
    """
    late = rule.age is not None and now - (_last_use(session) or now) > rule.age
    return rule.enabled and (late or rule.count is not None)
