"""Predict which files the CLI's clean-up will delete.

See assets/gemini-cli.md#clean-up.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from functools import cache
from itertools import chain
from operator import itemgetter
from pathlib import Path
from typing import Any

from gemtui.agent.trust import folder_settings
from gemtui.jsonout import fields
from gemtui.paths import vault_dir
from gemtui.sessions.catalog.stored_file import StoredFile
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
    """The settings that decide how long the CLI keeps a project's sessions.

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
    problems = _problems(unreadable)
    damaged = [_empty_session(Path(name), now) for name in problems]
    files = {
        file.name: file for session in (*sessions, *damaged) for file in (session, *session.copies)
    }
    facts = map(StoredFile.of, files.values())
    return tuple(
        DoomedFile(
            session=files[name],
            why=why,
            retention=rule,
            twin=None if twin is None else Path(twin),
            problem=problems.get(name, "") if why is Why.UNREADABLE else "",
        )
        for name, why, twin, rule in _doomed_files(facts, retention_of, now, problems)
    )


def count_deletions(
    files: Iterable[StoredFile],
    retention_of: Callable[[Path | None], Retention],
    now: datetime,
    unreadable: Iterable[Problem] = (),
) -> int:
    """Return how many files `next_deletions` would return.

    `files`: all session files of a store. The other arguments are the same.
    """
    problems = _problems(unreadable)
    damaged = (StoredFile.of(_empty_session(Path(name), now)) for name in problems)
    doomed = _doomed_files(chain(files, damaged), retention_of, now, problems)
    return sum(1 for _ in doomed)


def _problems(unreadable: Iterable[Problem]) -> dict[str, str]:
    """Return what is wrong with the files that the clean-up deletes because of it."""
    return {str(problem.path): problem.what for problem in unreadable if not problem.too_large}


def _doomed_files(
    files: Iterable[StoredFile],
    retention_of: Callable[[Path | None], Retention],
    now: datetime,
    unreadable: Container[str],
) -> Iterator[tuple[str, Why, str | None, Retention]]:
    """Yield the name, the reason, the twin and the retention settings of each doomed file."""
    vault = f"{vault_dir()}{os.sep}"
    folders: dict[str, list[StoredFile]] = {}
    for file in files:
        if _is_cleaned(file, vault):
            folders.setdefault(file.name.rpartition(os.sep)[0], []).append(file)
    rule_of = cache(retention_of)
    for group in folders.values():
        project = next((file.project for file in group if file.project), None)
        rule = rule_of(None if project is None else Path(project))
        if rule.enabled:
            for name, why, twin in _doomed(group, rule, now.timestamp(), unreadable):
                yield name, why, twin, rule


def _empty_session(path: Path, now: datetime) -> Summary:
    """Return an unreadable file as an empty session, which is how the CLI treats it."""
    return Summary(
        id=short_id(str(path)),
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


def _is_cleaned(file: StoredFile, vault: str) -> bool:
    """Return whether the clean-up examines a file.

    It examines the main files of sessions, but not those in the vault or in folders that are named
    by a project's hash, as in old versions. `vault`: what the paths of files in the vault begin
    with.
    """
    folder, _, name = file.name.rpartition(os.sep)  # a third of the time of os.path.split
    if not (name.startswith("session-") and folder.endswith(f"{os.sep}chats")):
        return False
    if file.kept or is_hash(file.project_key) or folder.startswith(vault):
        return False
    return name.endswith((".json", ".jsonl"))


def _doomed(
    files: Sequence[StoredFile], rule: Retention, now: float, unreadable: Container[str]
) -> Iterator[tuple[str, Why, str | None]]:
    """Yield those of a folder's files that the CLI will delete, each with the reason and its twin.

    `now`: in seconds since 1970. `unreadable`: the names of files that can't be read.
    """
    whys: dict[str, Why] = {}
    sessions: list[tuple[float, str]] = []
    for file in files:
        if file.name in unreadable:
            whys[file.name] = Why.UNREADABLE
        elif not file.resumable or file.parent is not None or file.kind != SessionKind.MAIN:
            whys[file.name] = Why.NOTHING
        elif not file.has_header:
            whys[file.name] = Why.NO_HEADER
        else:
            sessions.append((now if file.last_use is None else file.last_use, file.name))
    sessions.sort(key=itemgetter(0), reverse=True)
    for number, (last_use, name) in enumerate(sessions):
        if rule.age is not None and now - last_use > rule.age.total_seconds():
            whys[name] = Why.EXPIRED
        elif rule.count is not None and number >= rule.count:
            whys[name] = Why.TOO_MANY
    # With a file, the CLI deletes all others that have the same short id.
    ids = {file.name: short_id(file.name) for file in files}
    causes: dict[str, str] = {}
    for name, id in ids.items():
        if name in whys:
            causes.setdefault(id, name)
    causes.pop("", None)
    for name, id in ids.items():
        why, twin = whys.get(name), causes.get(id)
        if why is not None:
            yield name, why, None
        elif twin is not None:
            yield name, Why.TWIN, twin


def short_id(path: str) -> str:
    """Return the short session id in the name of the file at `path`; "" if there is none.

    The clean-up compares these ids.
    """
    name = path.rpartition(os.sep)[2]
    match = _SHORT_ID.search(name) if name.startswith("session-") else None
    return "" if match is None else match[1]


def expires(session: Summary, rule: Retention) -> datetime | None:
    """Return when a session becomes old enough to be deleted; None means never.

    `rule`: the retention settings of the session's project.
    """
    last_use = session.last_use
    if (
        not rule.enabled
        or rule.age is None
        or last_use is None
        or not _is_cleaned(StoredFile.of(session), f"{vault_dir()}{os.sep}")
    ):
        return None
    return last_use + rule.age if rule.age < _EVER else None


def is_expired(session: Summary, rule: Retention, now: datetime) -> bool:
    """Return whether the retention settings may cause a session's deletion now.

    That is so if its last update is too old, and for every session if the number of sessions is
    limited. The session may be in the store, or about to be restored to it.
    """
    late = rule.age is not None and now - (session.last_use or now) > rule.age
    return rule.enabled and (late or rule.count is not None)
