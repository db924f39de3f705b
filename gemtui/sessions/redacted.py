"""A session without its secrets."""

from __future__ import annotations

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
    redactor = learned(log, summary)
    log.rewrite(redactor.apply)
    return redactor


def learned(log: SessionLog, summary: Summary) -> Redactor:
    """Return a redactor that knows the secrets of a session, those in dropped messages too."""
    redactor = Redactor()
    redactor.learn(summary.to_dict())
    for record in records_of(log):
        redactor.learn(record)
    for _, record in dropped_of(log):
        redactor.learn(record)
    return redactor


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
