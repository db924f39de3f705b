"""Insert messages that are missing from a run's output into its transcript.

These are prompts that the user queued, and subagents' calls that the user was asked to approve.
"""

from __future__ import annotations

from datetime import datetime

from gemtui.transcript.model import Message, Outline, Transcript

OutlineRow = tuple[Outline, int | Message]
"""An outline with its message, or with the index of its message in a transcript."""


def rows_of(transcript: Transcript) -> list[OutlineRow]:
    """Return the rows of a transcript as a new list, which callers may modify.

    A row is an outline with the index of its message.
    """
    return [(line, at) for at, line in enumerate(transcript.outlines)]


def insert_row(rows: list[OutlineRow], row: OutlineRow) -> None:
    """Insert a row after the last row that is as old or older.

    It is appended if there is no such row or if the new row's time is unknown.
    """
    time = row[0].time
    places = range(len(rows), 0, -1)
    rows.insert(next((at for at in places if _is_older(rows[at - 1], time)), len(rows)), row)


def _is_older(row: OutlineRow, time: datetime | None) -> bool:
    return row[0].time is not None and time is not None and row[0].time <= time


def of_rows(transcript: Transcript, rows: list[OutlineRow]) -> Transcript:
    """Return a transcript of these rows.

    A row has an outline, and either a message or the index of a message in `transcript`.
    """
    outlines = tuple(row for _, row in rows)

    def read(at: int) -> Message:
        row = outlines[at]
        return transcript.read(row) if isinstance(row, int) else row

    lines = tuple(line for line, _ in rows)
    return Transcript(outlines=lines, read=read, revision=transcript.revision)
