"""Redact the secrets in a session."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from gemtui.redact.redactor import Redactor
from gemtui.sessions.catalog.summary import Summary
from gemtui.sessions.read.conversation import dropped_of, records_of
from gemtui.sessions.read.session_log import SessionLog


def redact(log: SessionLog, summary: Summary) -> Redactor:
    """Make a log return its records without secrets; return the redactor used.

    This reads the whole log once. Use `Redactor.apply` for all of the session's other data.
    """
    redactor = _learned(log, summary)
    log.rewrite(redactor.apply)
    return redactor


def replaced_in(summary: Summary) -> Redactor:
    """Redact a whole session file in memory; return the redactor.

    `Redactor.replaced` then returns the secrets that the file contains. Raises NotASession,
    SessionTooLarge, or OSError.
    """
    with SessionLog.read(summary.path) as log:
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
    """Return a session's summary without secrets, for exports."""
    return replace(
        summary,
        id=redactor.apply(summary.id),
        title=redactor.clipped(summary.title),
        project=redactor.apply(summary.project),
        parent=redactor.apply(summary.parent),
        models=tuple(map(redactor.apply, summary.models)),
    )
