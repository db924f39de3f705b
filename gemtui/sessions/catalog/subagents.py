"""Find the session that called a subagent, and the calls of a session together with those of its
subagents.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gemtui.sessions.catalog.summary import CallFields, Summary
from gemtui.sessions.store.store import SessionKind


def mains_by_id(sessions: Sequence[Summary]) -> Mapping[tuple[str, str], Summary]:
    """Map (project folder, session id) and ("", session id) to a session.

    If several sessions have the same key, the newest one is used.
    """
    mains = [session for session in sessions if session.kind is SessionKind.MAIN]
    return {
        (key, session.id): session
        for session in reversed(mains)
        for key in ("", session.project_key)
    }


def asker_of(
    project_key: str, parent: str | None, mains: Mapping[tuple[str, str], Summary]
) -> Summary | None:
    """Return the session that called a subagent, preferably one in the same project.

    `parent`: the caller's id. `mains`: the result of `mains_by_id`. Returns None if there is no
    such session.
    """
    if not parent:
        return None
    return mains.get((project_key, parent)) or mains.get(("", parent))


def calls_with_subagents(sessions: Sequence[Summary]) -> Mapping[str, tuple[CallFields, ...]]:
    """Return the calls of the sessions that called subagents, including the subagents' calls.

    `sessions`: sorted newest first. The keys are the paths of the sessions' files.
    """
    subagents = [session for session in sessions if session.parent]
    mains = mains_by_id(sessions) if subagents else {}
    calls: dict[str, tuple[CallFields, ...]] = {}
    for subagent in subagents:
        asker = asker_of(subagent.project_key, subagent.parent, mains)
        if asker is not None:
            calls[asker.name] = calls.get(asker.name, asker.calls) + subagent.calls
    return calls
