"""A session without its secrets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from gemtui.redact.redactor import Redactor
from gemtui.sessions.load import dropped_of, records_of
from gemtui.sessions.records import SessionLog
from gemtui.sessions.summary import Summary


def redact(log: SessionLog, summary: Summary) -> Redactor:
    """Have a log give out its records without secrets, and return what replaces them.

    The log is read once as a whole for that. `Redactor.apply` is for all else that is given away of
    the session.
    """
    redactor = _learned(log, summary)
    log.rewrite(redactor.apply)
    return redactor


def replaced_in(summary: Summary) -> Redactor:
    """Return a redactor that has replaced the secrets in all that a session's file holds.

    Raises NotASession, SessionTooLarge, OSError.
    """
    with SessionLog(summary.path) as log:
        log.refresh()
        redactor = _learned(log, summary)
        redactor.apply(summary.title)
        for record in _all_records(log):
            redactor.apply(record)
    return redactor


def _learned(log: SessionLog, summary: Summary) -> Redactor:
    redactor = Redactor()
    redactor.learn(summary.to_dict())
    for record in _all_records(log):
        redactor.learn(record)
    return redactor


def _all_records(log: SessionLog) -> Iterator[Mapping[str, Any]]:
    yield from records_of(log)
    for _, record in dropped_of(log):
        yield record


def redacted_summary(summary: Summary, redactor: Redactor) -> Summary:
    """Return what an export says of a session, without secrets."""
    return replace(
        summary,
        id=redactor.apply(summary.id),
        title=redactor.clipped(summary.title),
        project=redactor.apply(summary.project),
        parent=redactor.apply(summary.parent),
        models=tuple(map(redactor.apply, summary.models)),
    )
