"""`gemtui review`: print or revert the changes a session made, hunk by hunk."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence

import click

from gemtui.commands.output import json_to_stdout, lines_to_stdout, note, require_terminal, slow_note
from gemtui.commands.pick_session import choose, index_of_user
from gemtui.commands.undo import COMPARING
from gemtui.runs.undo.review import Reverted, Review, changed_words, hunk_text, owner_words, revert, subject_of
from gemtui.runs.undo.review import review as review_of
from gemtui.text import Clean, clean_line, counted, visible

_ID = re.compile(r"[hfc][0-9a-f]{10}")


def run(wanted: str, *, reverted: Sequence[str], yes: bool, as_json: bool) -> int:
    """Print the changes a session made, or revert those with the ids in `reverted`.

    An id names a hunk, a file or a call. Returns 1 if something that should have been reverted was
    left unchanged.
    """
    if bad := [each for each in reverted if not _ID.fullmatch(each)]:
        raise click.UsageError(f"{bad[0]} is not the id of a hunk, file or call: list the ids with gemtui review")
    with index_of_user() as index:
        subject = subject_of(choose(wanted, index))
    ids = frozenset(reverted)
    if not ids:
        _print(review_of(subject), None, as_json=as_json)
        return 0
    if not yes:
        require_terminal()
        with slow_note(COMPARING):
            planned = revert(subject, ids, dry_run=True)
        for line in _words(planned, "would be "):
            click.echo(line, err=True)
        click.confirm(f"Revert {counted(len(planned.hunks), 'hunk')}?", abort=True, err=True)
    with slow_note(COMPARING):
        done = revert(subject, ids)
    if as_json:
        _print(review_of(subject), done, as_json=True)
    else:
        lines_to_stdout(_words(done, ""))
    return 1 if done.left else 0


def _print(found: Review, done: Reverted | None, *, as_json: bool) -> None:
    if as_json:
        more = {} if done is None else done.to_dict()
        json_to_stdout(found.to_dict() | more)
        return
    for each in found.notes:
        note(clean_line(each))
    if found.complete and not found.files:
        note(clean_line(found.nothing))
    lines_to_stdout(_lines(found))


def _lines(found: Review) -> Iterator[Clean]:
    for file in found.files:
        yield clean_line(f"{file.id}  {file.change}  {os.fsdecode(file.path)}")
        for hunk in file.hunks:
            why = f"  (can't be reverted: {hunk.fixed})" if hunk.fixed else ""
            over = f", {words}" if (words := changed_words(hunk)) else ""
            yield clean_line(f"{hunk.id}  {owner_words(hunk.owner)}{over}{why}")
            text = hunk_text(hunk).encode("utf-8", "surrogateescape").decode("utf-8", "replace")
            yield from map(visible, text.removesuffix("\n").split("\n"))
        yield Clean("")


def _words(done: Reverted, would: str) -> Iterator[Clean]:
    for path in done.paths:
        yield clean_line(f"{would}changed: {path}")
    for what, why in done.left:
        yield clean_line(f"left alone: {what}: {why}")
    for id, words in done.built_on:
        yield clean_line(f"{words} ({id})")
    if not done.paths:
        yield Clean("No files need to be changed.")
