"""Two sessions compared, as text: facts, prompts, files, and the difference of what they wrote."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from gemtui.sessions.catalog.counted import counted_sessions
from gemtui.sessions.catalog.read_files import read_log
from gemtui.sessions.catalog.summary import Summary
from gemtui.sessions.read.conversation import transcript_of
from gemtui.sessions.read.session_log import SessionLog
from gemtui.sessions.store.store import Problem
from gemtui.sessions.written_files import written_texts
from gemtui.stats.prices import Prices
from gemtui.stats.reading import activities
from gemtui.stats.report import Sums, Tally
from gemtui.text import clean_line
from gemtui.transcript.displays import content_diff

_NAMES = ("A", "B")


def compared(
    sessions: Sequence[Summary], prices: Prices | None, *, home: Path, cache: Path | None
) -> Iterator[str]:
    """Yield the lines of a comparison of two sessions. Blocking: reads both.

    `sessions`: the two, titled as the user sees them. `prices`: None if they can't be read. `home`,
    `cache`: as in `activities`.
    """
    sums = [_sums(session, prices, home, cache) for session in sessions]
    texts = [written_texts(session) for session in sessions]
    for name, session in zip(_NAMES, sessions, strict=True):
        yield clean_line(f"{name}  {session.title}")
    yield ""
    yield f"{'':12}{'A':>12}{'B':>12}"
    for label, cells in _facts(sessions, sums):
        yield f"{label:12}{''.join(f'{cell:>12}' for cell in cells)}"
    for name, session in zip(_NAMES, sessions, strict=True):
        yield from ("", f"Prompts of {name}")
        yield from (f"  {prompt}" for prompt in _prompts(session))
    yield from ("", "Files")
    yield from _files(texts[0], texts[1])


def _sums(session: Summary, prices: Prices | None, home: Path, cache: Path | None) -> Sums:
    tally = Tally(prices, since=None, zone=None)
    for counted, activity in activities(counted_sessions([session], None), home=home, cache=cache):
        if not isinstance(activity, Problem):
            tally.add(counted, activity)
    return tally.stats().total


def _facts(sessions: Sequence[Summary], sums: Sequence[Sums]) -> Iterator[tuple[str, list[str]]]:
    yield "prompts", [f"{session.prompts:,}" for session in sessions]
    yield "tool calls", [f"{session.tool_calls:,}" for session in sessions]
    yield "failed", [f"{session.failed_calls:,}" for session in sessions]
    totals = [session.tokens.total for session in sessions]
    yield "tokens", ["?" if total is None else f"{total:,}" for total in totals]
    yield "cost", [total.own_dollars or total.dollars or "?" for total in sums]


def _prompts(session: Summary) -> Sequence[str]:
    def prompts(log: SessionLog) -> list[str]:
        outlines = transcript_of(log).outlines
        return [clean_line(line.excerpt) for line in outlines if line.is_current_prompt]

    found = read_log(session.path, prompts)
    return (clean_line(found.what),) if isinstance(found, Problem) else found


def _files(
    first: Mapping[str, str | None] | Problem, second: Mapping[str, str | None] | Problem
) -> Iterator[str]:
    """Yield each written file, with the difference from what A left in it to what B did."""
    if isinstance(first, Problem) or isinstance(second, Problem):
        yield "  unknown, because a session can't be read"
        return
    if not first and not second:
        yield "  none"
    for path in sorted(first.keys() | second.keys()):
        name = clean_line(path)
        if path not in second or path not in first:
            yield f"  only in {'A' if path in first else 'B'}: {name}"
            continue
        before, after = first[path], second[path]
        if before is None or after is None:
            yield f"  in both, but not all text is recorded: {name}"
        elif before == after:
            yield f"  the same in both: {name}"
        else:
            yield f"  different, from A to B: {name}"
            yield from content_diff(path, before, after).diff.splitlines()
