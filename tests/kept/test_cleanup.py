"""What the CLI's clean-up takes at its next start, as gemtui says before."""

from __future__ import annotations

import json
import os
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from gemtui.kept.cleanup import Retention, Why, expires, next_deletions, retention
from gemtui.kept.vault import keep_all
from gemtui.sessions.catalog.summary import Flag
from gemtui.sessions.read.session_log import SessionLog
from gemtui.sessions.store.store import Problem
from gemtui.transcript.model import Author
from tests.rows import each_row, table
from tests.sessions import logs
from tests.sessions.stores import hashed, legacy, read, session, talk, uuid


def record(data: dict[str, Any]) -> dict[str, Any]:
    """A record of a session that the table names by its author's text."""
    match data:
        case {"user": text, **more}:
            return logs.user("u", text) | more
        case {"gemini": text, **more}:
            return logs.gemini("g", text) | more
    return data


TABLES = table("kept/cleanup.json", record)

NOW = logs.START + timedelta(days=31)


RULE = Retention()


def whys(home: Path, rule: Retention = RULE) -> dict[str, Why]:
    """By file name."""
    found = read(home)
    hits = next_deletions(found.sessions, lambda _: rule, NOW, found.unreadable)
    return {hit.session.path.name: hit.why for hit in hits}


def test_what_is_too_old_goes_and_what_was_used_stays(store: Path) -> None:
    old = session(store, uuid(1))
    session(store, uuid(2), talk(uuid(2), seconds=2 * 86400))
    assert whys(store) == {old.name: Why.EXPIRED}
    assert whys(store, Retention(age=None)) == {}
    assert whys(store, Retention(enabled=False)) == {}


def test_what_has_nothing_to_resume_goes_with_all_of_its_short_id(store: Path) -> None:
    fresh = 2 * 86400
    real = session(store, uuid(1), talk(uuid(1), seconds=fresh))
    ghost = session(
        store, uuid(1), [logs.header(uuid(1)), logs.context()], minute="2026-12-20T10-00"
    )
    failed = session(
        store, uuid(2), [*talk(uuid(2), seconds=fresh), {"$set": {"messages": [logs.context()]}}]
    )
    command = session(store, uuid(3), [logs.header(uuid(3)), logs.user("u", "/about")])
    assert whys(store) == {
        real.name: Why.TWIN,
        ghost.name: Why.NOTHING,
        failed.name: Why.NOTHING,
        command.name: Why.NOTHING,
    }


@each_row(
    "records, stays",
    [
        *TABLES["a session goes unless the cli could resume something"],
        ([logs.user("u", "/help"), logs.gemini("g", "", toolCalls=[logs.call("c")])], True),
        ([logs.context(), logs.reply("r", "c")], True),
        ([logs.user("u", "hello"), logs.restore(logs.context())], False),
    ],
)
def test_a_session_goes_unless_the_cli_could_resume_something(
    store: Path, records: list[dict[str, object]], stays: bool
) -> None:
    path = session(
        store, uuid(1), [logs.header(uuid(1), lastUpdated=logs.at(30 * 86400)), *records]
    )
    assert whys(store) == ({} if stays else {path.name: Why.NOTHING})
    spoken = any(outline.author is not Author.SYSTEM for outline in SessionLog.read(path).outlines)
    assert (Flag.NOT_RESUMABLE in read(store).sessions[0].flags) is (spoken and not stays)


def test_a_log_that_does_not_say_when_it_was_used_is_never_too_old(store: Path) -> None:
    head = logs.header(uuid(1))
    del head["lastUpdated"]
    session(store, uuid(1), [head, logs.user("u", "hello")])
    assert whys(store) == {}
    assert expires(read(store).sessions[0], RULE) is None


def test_another_program_s_file_is_said_to_go_as_that(store: Path) -> None:
    line = {"type": "session_meta", "payload": {"id": "s"}}
    path = session(store, uuid(1), [line])
    found = read(store)
    (hit,) = next_deletions(found.sessions, lambda _: RULE, NOW, found.unreadable)
    assert hit.session.path == path
    assert (
        hit.words() == "has the format of Codex, not of Gemini CLI (no sessionId at its beginning)"
    )


@pytest.mark.parametrize(
    "head",
    [b"", b"\0" * 80 + b"\n", b'{"sessionId":"x"}\n', b'{"sessionId":7,"projectHash":"x"}\n'],
)
def test_a_log_whose_first_line_is_damaged_or_missing_goes(store: Path, head: bytes) -> None:
    path = session(store, uuid(1), talk(uuid(1), seconds=2 * 86400))
    lines = [
        line for line in path.read_bytes().splitlines(keepends=True)[1:] if b"$set" not in line
    ]
    path.write_bytes(head + b"".join(lines))
    assert whys(store) == {path.name: Why.NO_HEADER}


def test_an_old_object_takes_along_the_log_that_went_on_from_it(store: Path) -> None:
    old = legacy(store, uuid(1), [logs.user("u", "Hello")], key="proj")
    log = session(store, uuid(1), talk(uuid(1), seconds=3 * 86400))
    assert whys(store) == {old.name: Why.EXPIRED, log.name: Why.TWIN}


def test_a_file_that_can_not_be_read_goes_and_takes_along_all_of_its_short_id(store: Path) -> None:
    real = session(store, uuid(1), talk(uuid(1), seconds=3 * 86400))
    broken = real.with_name(real.name.replace("-20T23-04-", "-21T10-00-")).with_suffix(".json")
    broken.write_bytes(b"no session")
    assert whys(store) == {broken.name: Why.UNREADABLE, real.name: Why.TWIN}
    keep_all(store)
    broken.unlink()
    assert whys(store) == {}


def test_what_is_too_large_for_us_is_not_said_to_go(store: Path) -> None:
    path = session(store, uuid(1), talk(uuid(1), seconds=3 * 86400))
    large = Problem(path=path, line=None, what="too large", too_large=True)
    assert next_deletions((), lambda _: RULE, NOW, [large]) == ()


def test_only_so_many_stay_where_settings_count_them(store: Path) -> None:
    for number in range(1, 4):
        session(store, uuid(number), talk(uuid(number), seconds=86400 * number))
    assert set(whys(store, Retention(age=None, count=2)).values()) == {Why.TOO_MANY}
    assert list(whys(store, Retention(age=None, count=2))) == [
        session(store, uuid(1), talk(uuid(1), seconds=86400)).name
    ]


def test_folders_of_older_versions_subagents_and_kept_files_are_not_cleaned(store: Path) -> None:
    session(store, uuid(1), key=hashed("/work"))
    main = session(store, uuid(2), talk(uuid(2), seconds=3 * 86400))
    logs.write(main.parent / uuid(2) / "helper.jsonl", talk("helper"))
    gone = session(store, uuid(3))
    keep_all(store)
    gone.unlink()
    assert whys(store) == {}


def found(
    home: Path, tmp_path: Path, settings: object, project: object = None, trusted: bool = True
) -> Retention:
    """The rule where these are the user's settings, and the project's."""
    home.mkdir(parents=True, exist_ok=True)
    folder = tmp_path / "project"
    for place, value in ((home, settings), (folder / ".gemini", project)):
        if value is not None:
            place.mkdir(parents=True, exist_ok=True)
            general = {"general": {"sessionRetention": value}}
            (place / "settings.json").write_text(json.dumps(general))
    said = {str(folder): "TRUST_FOLDER" if trusted else "DO_NOT_TRUST"}
    (home / "trustedFolders.json").write_text(json.dumps(said))
    return retention(dict(os.environ) | {"GEMINI_CLI_HOME": str(home.parent)}, folder)


def test_thirty_days_unless_settings_say_else(store: Path, tmp_path: Path) -> None:
    assert found(store, tmp_path, None) == Retention()
    assert found(store, tmp_path, {"maxAge": "2w"}).age == timedelta(days=14)
    assert not found(store, tmp_path, {"enabled": False}).enabled
    assert found(store, tmp_path, {"enabled": False}, {"enabled": True}).enabled
    assert found(store, tmp_path, {"maxCount": 7}).count == 7


def test_settings_of_an_untrusted_project_spare_no_session(store: Path, tmp_path: Path) -> None:
    settings = {"maxAge": "7d"}, {"enabled": False, "maxAge": "90d"}
    assert not found(store, tmp_path, *settings).enabled
    assert found(store, tmp_path, *settings, trusted=False) == Retention(
        age=timedelta(days=7), age_text="7d"
    )


@pytest.mark.parametrize("wrong", TABLES["wrong settings switch it off as the cli does"])
def test_wrong_settings_switch_it_off_as_the_cli_does(
    store: Path, tmp_path: Path, wrong: object
) -> None:
    assert not found(store, tmp_path, wrong).enabled


def test_the_day_is_told_on_which_a_session_becomes_too_old(store: Path) -> None:
    session(store, uuid(1))
    (one,) = read(store).sessions
    assert expires(one, Retention()) == one.when + timedelta(days=30)
    assert expires(one, Retention(enabled=False)) is None
    assert expires(one, Retention(age=None)) is None
