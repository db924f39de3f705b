"""`gemtui undo`, `redo`, `checkpoints`, `review`, `fork`: go back in a session.

Undo and redo change files and the chat, a review reverts single changes, and a fork continues from
an earlier prompt in a new session.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import click

from gemtui.agents import Can, why_not
from gemtui.checkpoints.plan import Action
from gemtui.checkpoints.undo import Interruption
from gemtui.commands.output import (
    json_to_stdout,
    lines_to_stdout,
    note,
    require_terminal,
    require_yes,
    slow_note,
)
from gemtui.commands.session_choice import session_named, session_to_change, session_words
from gemtui.commands.shared_options import (
    Count,
    dry_run_option,
    json_option,
    project_option,
    session_ids,
    yes_option,
)
from gemtui.errors import SessionNotFound
from gemtui.interrupts import Interrupted, StopRequest, signals_caught
from gemtui.jsonout import fields
from gemtui.paths import checkpoints_dir, current_folder, gemini_home
from gemtui.runs.undo.checkpointing import prune_checkpoints
from gemtui.runs.undo.fork import fork_session
from gemtui.runs.undo.review import (
    Reverted,
    Review,
    ReviewSubject,
    changed_words,
    hunk_text,
    owner_words,
    revert,
    review_of,
    subject_of,
)
from gemtui.runs.undo.undo import (
    Undone,
    checkpoint_list,
    interrupted_change,
    redo_project,
    undo_session,
)
from gemtui.text import clean_line, counted, ellipsis, size, visible

_COMMAND = 60
_COMPARING = "comparing files; the first time, this can take a few seconds in a large folder"
_ID = re.compile(r"[hfc][0-9a-f]{10}")

_session = click.argument("session", default="latest", shell_complete=session_ids)
_paths = click.option(
    "--path",
    "paths",
    metavar="PATH",
    multiple=True,
    type=click.Path(),
    help="Only this file, or the files in this folder; repeatable.",
)


# --- undo and redo -------------------------------------------------------------------------------


@click.command()
@_session
@click.option(
    "--to",
    metavar="N",
    type=Count(),
    help="Undo to just before prompt N (1 is the first); by default the last prompt.",
)
@click.option("--files", is_flag=True, help="Undo only the files; the chat doesn't change.")
@click.option("--chat", is_flag=True, help="Undo only the chat; files don't change.")
@_paths
@dry_run_option
@yes_option
@json_option
def undo(
    session: str,
    to: int | None,
    files: bool,
    chat: bool,
    paths: tuple[str, ...],
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> int:
    """Revert the files and the chat of a session to just before a prompt.

    SESSION accepts the same values as `gemtui show`; the default, `latest`, is the newest session
    of this folder. Files are restored from the checkpoints of the session's runs, which include the
    effects of shell commands, or, without checkpoints, from what the session recorded. Your own
    later edits are kept: they are merged if they don't overlap; otherwise the file is left
    alone. The chat continues in a fork, and the original is not changed. `gemtui redo` reverts
    an undo. Exit code 1 if a file was left alone.
    """
    if files and chat:
        raise click.UsageError(
            "--files and --chat can't be used together; for both, omit both options"
        )
    if chat and paths:
        raise click.UsageError("--path applies only to files: leave out --chat")
    with interruptible() as stop:
        of = session_to_change(session)
        forks = not files and not paths and not why_not(of.agent, Can.FORK)

        def act(stop: StopRequest | None) -> Undone:
            return undo_session(
                of,
                to,
                files=not chat,
                chat=not files and not paths,
                paths=paths or None,
                dry_run=stop is None,
                stop=stop,
            )

        def question(planned: Undone) -> str:
            parts = ["files"] * (planned.count > 0) + ["chat"] * forks
            return f"Undo {' and '.join(parts)}" if parts else ""

        def subject(_: Undone) -> str:
            return session_words(of)

        return _act(act, subject, question, stop, dry_run=dry_run, yes=yes, as_json=as_json)


@click.command()
@_paths
@dry_run_option
@yes_option
@json_option
def redo(paths: tuple[str, ...], dry_run: bool, yes: bool, as_json: bool) -> int:
    """Revert the newest undo in the current folder.

    Files return to their state before the undo. Your later edits are kept, as with `gemtui
    undo`. The original chat was never changed. Exit code 1 if a file was left alone, or if
    nothing was undone here.
    """
    folder = current_folder()

    def act(stop: StopRequest | None) -> Undone:
        return redo_project(folder, paths=paths or None, dry_run=stop is None, stop=stop)

    def question(_: Undone) -> str:
        return "Reverse the undo"

    with interruptible() as stop:
        return _act(act, _subject, question, stop, dry_run=dry_run, yes=yes, as_json=as_json)


def _act(
    act: Callable[[StopRequest | None], Undone],
    subject: Callable[[Undone], str],
    question: Callable[[Undone], str],
    stop: StopRequest,
    *,
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> int:
    """Ask, then undo or redo, and print what was done.

    `act`: undoes or redoes; with None, it only says what would be done. `subject`, `question`:
    return for a plan how its session is named, and what to ask; "" if there is nothing to do.
    """
    if dry_run or not yes:
        if not dry_run:
            require_terminal()
        with slow_note(_COMPARING):
            planned = act(None)
        if dry_run and not as_json:
            lines_to_stdout([subject(planned)])
        asked = question(planned)
        if dry_run or not asked:
            _print_undone(planned, "would be ", as_json=as_json)
            return 1 if planned.kept else 0
        require_yes(
            undone_words(planned, "would be "), f"{asked} of {subject(planned)}{_to(planned)}?"
        )
    with slow_note(_COMPARING):
        undone = act(stop)
    undone = replace(undone, interrupted=interruption(stop, undone.interrupted, undone.count))
    _print_undone(undone, "", as_json=as_json)
    return exit_code(stop, undone.interrupted, 1 if undone.kept else 0)


def _to(planned: Undone) -> str:
    return f" to before prompt {planned.to}" if planned.to else " made in a review"


def _subject(planned: Undone) -> str:
    """Return how the plan of a redo names its session, which may be gone."""
    if not planned.session:
        return "this folder"
    try:
        return session_words(session_named(planned.session))
    except SessionNotFound:
        return clean_line(f"session {planned.session}")


def _print_undone(done: Undone, would: str, *, as_json: bool) -> None:
    if as_json:
        json_to_stdout(done.to_dict())
    else:
        lines_to_stdout(undone_words(done, would))


@contextmanager
def interruptible() -> Iterator[StopRequest]:
    """Catch the signals that end a program while a command changes a project's files.

    Yields what to pass on as `stop`. If a signal arrives before any file is changed, the command
    says so and ends.
    """
    stop = StopRequest()
    with signals_caught(stop):
        try:
            yield stop
        except Interrupted as error:
            note("interrupted before any file was changed")
            raise click.exceptions.Exit(128 + error.number) from None


def interruption(stop: StopRequest, found: Interruption | None, count: int) -> Interruption | None:
    """Return how far a change came if a signal arrived; None if none did.

    `found`: what the change itself says if it was stopped. `count`: how many files it changed if it
    was not.
    """
    return found if found is not None or not stop.number else Interruption(count, 0, "")


def exit_code(stop: StopRequest, found: Interruption | None, code: int) -> int:
    """Return a command's exit code after saying what a signal has done to it.

    `found`: the result of `interruption`. `code`: the exit code without a signal.
    """
    if found is None:
        return code
    note(found.words)
    return 128 + stop.number


_DONE = {
    Action.RESTORE: "restored",
    Action.REMOVE: "removed",
    Action.MERGE: "merged with later edits",
}


def undone_words(done: Undone, would: str) -> Iterator[str]:
    """Yield lines that say what an undo did. `would`: "would be " if it has only been planned."""
    kept = [(os.fsdecode(step.path), step.why) for step in done.kept]
    yield from step_lines({would + _DONE[action]: done.paths(action) for action in _DONE}, kept)
    if done.files is not None and not done.files.steps:
        yield "No files need to be changed."
    for remark in done.notes:
        yield clean_line(remark)
    if done.fork is not None and done.to and not would:
        yield clean_line(f"To continue from there, use session {done.fork}")


def step_lines(done: Mapping[str, Iterable[str]], kept: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Yield a line for each path, with what was done to it.

    `done`: maps a word such as "restored" to the paths to which it applies. `kept`: (path, reason)
    for each path that was left unchanged.
    """
    for label, paths in done.items():
        for path in paths:
            yield clean_line(f"{label}: {path}")
    for path, why in kept:
        yield clean_line(f"left alone: {path}: {why}")


# --- checkpoints ---------------------------------------------------------------------------------


@click.command()
@_session
@click.option(
    "--prune",
    is_flag=True,
    help="Delete checkpoints beyond the limits in the settings, in all projects.",
)
@json_option
def checkpoints(session: str, prune: bool, as_json: bool) -> int:
    """List the checkpoints of a session with their time, prompt, call, and number of files.

    SESSION accepts the same values as `gemtui show`; the default is the newest session of this
    folder. Exit code 1 if there are none.
    """
    if prune:
        freed = prune_checkpoints()
        if as_json:
            json_to_stdout(freed.to_dict())
        else:
            note(
                f"removed old checkpoints of {counted(freed.projects, 'project')}: "
                f"{size(freed.bytes)}"
            )
        return 0
    of = session_named(session)
    listed = checkpoint_list(of)
    change = None if of.folder is None else interrupted_change(of.folder)
    if as_json:
        about = fields(of, "project", session="id")
        json_to_stdout({**about, "checkpoints": listed, "interrupted": change})
        return 0 if listed else 1
    if listed:
        lines_to_stdout(_rows(listed))
    else:
        note(f"{checkpoints_dir()} has no checkpoints of this session")
    if change is not None:
        note(change.advice)
    return 0 if listed else 1


def _rows(checkpoints: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield a line for each checkpoint, followed by its notes.

    Notes that are the same as those of the checkpoint before are not repeated.
    """
    before: list[str] = []
    for checkpoint in checkpoints:
        yield _row(checkpoint)
        for remark in checkpoint["notes"] if checkpoint["notes"] != before else ():
            yield clean_line(f"{'':>5}  {remark}")
        before = checkpoint["notes"]


def _row(each: dict[str, Any]) -> str:
    when = datetime.fromisoformat(each["time"]).strftime("%Y-%m-%d %H:%M:%S")
    prompt = "" if each["prompt"] is None else f"prompt {each['prompt']}"
    what = each["reason"] if each["tool"] is None else each["tool"]
    command = "" if not each["command"] else f" {ellipsis(clean_line(each['command']), _COMMAND)}"
    files = counted(len(each["files"]), "file") if each["files"] else "no changes"
    return clean_line(f"{each['id']:>5}  {when}  {prompt:<10}  {files:<9}  {what}{command}")


# --- review --------------------------------------------------------------------------------------


@click.command()
@_session
@click.option(
    "--revert",
    "reverted",
    metavar="ID",
    multiple=True,
    help="Revert this hunk, this whole file, or everything that this call changed; repeatable.",
)
@yes_option
@json_option
def review(session: str, reverted: tuple[str, ...], yes: bool, as_json: bool) -> int:
    """Print what a session changed, hunk by hunk, or revert some of the changes.

    For each hunk, the output names the tool call that made it.

    SESSION accepts the same values as `gemtui show`; the default is the newest session of this
    folder. The current files are compared with their contents before the session's first
    change, using the checkpoints of its runs or, without checkpoints, what the session
    recorded. Your own changes are marked as yours. Hunks, files and calls keep their ids as
    long as the files don't change. A revert changes nothing else, is not possible while a run
    is working in the folder, and can be undone with `gemtui redo`. Exit code 1 if a hunk was
    left alone because it is no longer in its file or can't be reverted.
    """
    bad = [id for id in reverted if not _ID.fullmatch(id)]
    if bad:
        raise click.UsageError(
            f"{bad[0]} is not the id of a hunk, file or call: list the ids with gemtui review"
        )
    ids = frozenset(reverted)
    with interruptible() as stop:
        of = session_to_change(session) if ids else session_named(session)
        subject = subject_of(of)
        if not ids:
            _print_review(review_of(subject), None, as_json=as_json)
            return 0
        if not yes:
            require_terminal()
            with slow_note(_COMPARING):
                planned = revert(subject, ids, dry_run=True)
            if not planned.hunks:
                return _nothing_reverted(subject, planned, as_json=as_json)
            hunks = counted(len(planned.hunks), "hunk")
            require_yes(_reverted(planned, "would be "), f"Revert {hunks} of {session_words(of)}?")
        with slow_note(_COMPARING):
            reverted_hunks = revert(subject, ids, stop=stop)
        reverted_hunks = replace(
            reverted_hunks,
            interrupted=interruption(stop, reverted_hunks.interrupted, len(reverted_hunks.paths)),
        )
        if as_json:
            _print_review(review_of(subject), reverted_hunks, as_json=True)
        else:
            lines_to_stdout(_reverted(reverted_hunks, ""))
        return exit_code(stop, reverted_hunks.interrupted, 1 if reverted_hunks.left else 0)


def _nothing_reverted(subject: ReviewSubject, planned: Reverted, *, as_json: bool) -> int:
    if as_json:
        _print_review(review_of(subject), planned, as_json=True)
    else:
        lines_to_stdout(_reverted(planned, ""))
    return 1 if planned.left else 0


def _print_review(found: Review, done: Reverted | None, *, as_json: bool) -> None:
    if as_json:
        more = {} if done is None else done.to_dict()
        json_to_stdout(found.to_dict() | more)
        return
    for remark in found.notes:
        note(clean_line(remark))
    if found.complete and not found.files:
        note(clean_line(found.nothing))
    lines_to_stdout(_hunk_lines(found))


def _hunk_lines(found: Review) -> Iterator[str]:
    for file in found.files:
        yield clean_line(f"{file.id}  {file.change}  {os.fsdecode(file.path)}")
        for hunk in file.hunks:
            why = f"  (can't be reverted: {hunk.fixed})" if hunk.fixed else ""
            over = f", {changed}" if (changed := changed_words(hunk)) else ""
            yield clean_line(f"{hunk.id}  {owner_words(hunk.owner)}{over}{why}")
            text = hunk_text(hunk).encode("utf-8", "surrogateescape").decode("utf-8", "replace")
            yield from map(visible, text.removesuffix("\n").split("\n"))
        yield ""


def _reverted(done: Reverted, would: str) -> Iterator[str]:
    for path in done.paths:
        yield clean_line(f"{would}changed: {path}")
    for what, why in done.left:
        yield clean_line(f"left alone: {what}: {why}")
    for id, text in done.built_on:
        yield clean_line(f"{text} ({id})")
    for text in done.notes:
        yield clean_line(text)
    if not done.paths:
        yield "No files need to be changed."


# --- fork ----------------------------------------------------------------------------------------


@click.command()
@click.argument("id", metavar="[ID]", default="latest", shell_complete=session_ids)
@click.option(
    "--before",
    metavar="N",
    type=Count(),
    help="Copy only what comes before prompt N (1 is the first); by default everything.",
)
@project_option("Choose only among the sessions of this folder.")
@json_option
def fork(id: str, before: int | None, project: Path | None, as_json: bool) -> None:
    """Copy a session, or its beginning, into a new session, and print the new id.

    ID accepts the same values as `gemtui show`; the default, `latest`, is the newest session of
    this folder. Sessions that only the vault has can be copied, too. The original session and the
    project's files don't change. Its agent lists and resumes the new session like its own. With
    --before 1, there is nothing to copy, so no session is created. Claude Code makes the copy
    itself, and only after its last compaction.
    """
    session = session_to_change(id, project=project)
    made = fork_session(session, gemini_home(), before=before)
    if as_json:
        about = fields(made, "before", "prompt", "project", session="session_id", file="path")
        json_to_stdout({**about, "of": session.id})
    elif made.session_id is None:
        note(f"there are no messages before prompt {made.before}: start a new chat instead")
    else:
        lines_to_stdout([clean_line(made.session_id)])
        note(f"to continue the copy in its project: gemtui run --resume {made.session_id} PROMPT")
