"""Insert messages that the user sent to a run in progress into its transcript."""

from __future__ import annotations

from datetime import datetime

from gemtui.transcript.model import Message, Outline, Transcript

OutlineRow = tuple[Outline, int | Message]
"""An outline with its message, or with the index of its message in a transcript."""


def rows_of(transcript: Transcript) -> list[OutlineRow]:
    """Return the rows of a transcript as a list to modify."""
    return [(line, at) for at, line in enumerate(transcript.outlines)]


def insert_row(rows: list[OutlineRow], row: OutlineRow) -> None:
    """Insert a message by time: after the last message that is not newer, or else at the end."""
    time = row[0].time
    places = range(len(rows), 0, -1)
    rows.insert(next((at for at in places if _is_older(rows[at - 1], time)), len(rows)), row)


def _is_older(row: OutlineRow, time: datetime | None) -> bool:
    return row[0].time is not None and time is not None and row[0].time <= time


def of_rows(transcript: Transcript, rows: list[OutlineRow]) -> Transcript:
    """Return a transcript with these rows; each row's index refers to `transcript`."""
    found = tuple(row for _, row in rows)

    def read(at: int) -> Message:
        row = found[at]
        return transcript.read(row) if isinstance(row, int) else row

    lines = tuple(line for line, _ in rows)
    return Transcript(outlines=lines, read=read, revision=transcript.revision)
