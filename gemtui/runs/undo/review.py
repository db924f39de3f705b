"""Review the changes made by a session or a run, hunk by hunk, and revert some."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from gemtui.checkpoints.plan import Action, Step
from gemtui.checkpoints.project_files import ProjectFiles
from gemtui.checkpoints.review import (
    NOBODY_KNOWS,
    PERSON,
    Contents,
    HunkOwner,
    OwnerKind,
    PassingContents,
    ReviewedFile,
    ReviewHunk,
    chosen_hunks,
    dependent_hunks,
    file_reviews,
    missing,
    owned_changes,
    revert_steps,
)
from gemtui.checkpoints.store import UNKNOWN, CheckpointStore, FileState, WritingCall
from gemtui.checkpoints.take import Taker
from gemtui.checkpoints.undo import (
    REVIEW,
    Interruption,
    UndoInterrupted,
    covered_calls,
    made_by_user,
    open_project,
    uncovered_notes_of,
)
from gemtui.errors import UndoError
from gemtui.interrupts import StopRequest
from gemtui.jsonout import fields, json_value
from gemtui.paths import hooked_dir
from gemtui.runs.undo.checkpointing import project_of
from gemtui.runs.undo.hooked_checkpoints import is_pending, take_hooked_checkpoints
from gemtui.runs.undo.session_record import PlacedCall, SessionRecord, placed_calls, with_uses
from gemtui.runs.undo.undo import existing_folder, opened_checkpoints, prompts_of, require_idle
from gemtui.sessions.catalog.summary import Summary
from gemtui.text import counted
from gemtui.transcript.model import ToolCall, excerpt

_MOST_LINES = 2_000
"""The most lines of a hunk that are printed."""
_SUBJECT = 72
"""The longest first line of a commit message, in characters."""
_GONE = "this change is no longer in the files"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewSubject:
    """A session, or one of its runs, whose changes are reviewed.

    `folder`: where the session worked; None if unknown. `run`: the run's id; "" for the whole
    session. `calls`, `prompts`: functions that return the recorded calls and the text of the
    prompts; both may read files.
    """

    folder: Path | None
    session: str
    run: str = ""
    calls: Callable[[], Sequence[PlacedCall]]
    prompts: Callable[[], Sequence[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """The changes found by a review.

    `complete`: whether all changes are known. `notes`: what is unknown, one sentence each.
    """

    session: str
    files: tuple[ReviewedFile, ...]
    complete: bool = True
    notes: tuple[str, ...] = ()

    @property
    def nothing(self) -> str:
        """The message to show if no file is known to differ from its earlier contents."""
        if self.complete:
            return "Nothing to review: the files are as they were before this session."
        return " ".join(("No changes are known.", *self.notes[:1]))

    def to_dict(self) -> dict[str, Any]:
        """Return the value that `gemtui review --json` prints."""
        return {
            "version": 1,
            "session": self.session,
            "files": [_file(file) for file in self.files],
            "complete": self.complete,
            "notes": list(self.notes),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Reverted:
    """The result of reverting hunks.

    * `hunks`: the ids of the reverted hunks.
    * `steps`: what was done to each file.
    * `left`: what was left alone, as pairs of an id or path and the reason.
    * `built_on`: hunks that were kept although they modified lines that a reverted hunk had
      introduced, as pairs of the id and a line for the user.
    * `checkpoint`: the id of the checkpoint taken beforehand; None if nothing was done.
    * `notes`: what the user should know, one sentence each.
    * `interrupted`: how far it came if a signal stopped it.
    """

    hunks: tuple[str, ...]
    steps: tuple[Step, ...]
    left: tuple[tuple[str, str], ...]
    built_on: tuple[tuple[str, str], ...] = ()
    checkpoint: int | None = None
    notes: tuple[str, ...] = ()
    interrupted: Interruption | None = None

    @property
    def paths(self) -> list[str]:
        """The paths of the files that the revert changed, or would change."""
        return [os.fsdecode(step.path) for step in self.steps if step.action is not Action.KEEP]

    def to_dict(self) -> dict[str, Any]:
        """Return what `gemtui review --revert --json` prints in addition to the review."""
        return {
            "reverted": list(self.hunks),
            "left": [{"what": what, "why": why} for what, why in self.left],
            "built_on": [id for id, _ in self.built_on],
            "checkpoint": self.checkpoint,
            "interrupted": json_value(self.interrupted),
        }


def subject_of(session: Summary) -> ReviewSubject:
    """Return what to pass to `review_of` or `revert` for a whole stored session."""
    return ReviewSubject(
        folder=session.folder,
        session=session.id,
        calls=lambda: placed_calls(session),
        prompts=lambda: [prompt.text for prompt in prompts_of(session)],
    )


def subject_of_run(
    folder: Path, session: str, run: str, calls: Sequence[ToolCall], prompt: str
) -> ReviewSubject:
    """Return what to pass to `review_of` or `revert` for a single run.

    `calls`: the calls that the run has made so far.
    """
    placed = [PlacedCall(call, 1, call.id) for call in calls]
    return ReviewSubject(
        folder=folder, session=session, run=run, calls=lambda: placed, prompts=lambda: [prompt]
    )


def review_of(subject: ReviewSubject) -> Review:
    """Return the changes by a session or run that are still in the current files.

    The changes are taken from checkpoints; for calls without any, from the session's record.
    Nothing is written. Blocking, possibly for seconds. Raises OSError, CheckpointsUnreadable.
    """
    try:
        folder = existing_folder(subject.folder)
    except UndoError as error:
        return Review(session=subject.session, files=(), complete=False, notes=(str(error),))
    place, root, own = project_of(folder)
    late = PERSON if is_idle(folder) and not is_pending(root, hooked_dir()) else NOBODY_KNOWS
    with opened_checkpoints(place) as store, ProjectFiles(root) as files:
        contents = PassingContents(store)
        calls, record = _recorded(subject, root, store)
        is_own = partial(_is_of, subject, calls)
        changes = owned_changes(store, is_own, record.changes, contents)

        def now_of(path: bytes, keeper: Contents) -> FileState:
            return files.state(path, keeper)[0]

        reviews = tuple(file for _, file in file_reviews(changes, now_of, contents, late=late))
        uncovered = []
        if store is not None:
            own_calls = [call for call in store.calls().values() if is_own(call)]
            uncovered = uncovered_notes_of(store, Taker(root, store, own), own_calls)
    notes = [*record.notes(), *uncovered]
    if record.changes:
        number = counted(len(record.changes), "change")
        words = f"{number} not covered by a checkpoint: reconstructed from the session's record"
        notes.insert(0, words)
    complete = not record.left and not uncovered
    return Review(session=subject.session, files=reviews, complete=complete, notes=tuple(notes))


def revert(
    subject: ReviewSubject,
    ids: Collection[str],
    *,
    dry_run: bool = False,
    stop: StopRequest | None = None,
) -> Reverted:
    """Revert the selected hunks; ids of hunks that no longer exist are only reported.

    `ids`: the ids of hunks, files or calls. A checkpoint is taken first, so that a redo can restore
    the hunks. `dry_run`: only return what would be done; nothing is written. `stop`: says when to
    stop between two files. Raises UndoError while an agent is working in the folder, OSError,
    CheckpointsUnreadable.
    """
    folder = existing_folder(subject.folder)
    if not dry_run:
        require_idle(folder)
    place, root, own = project_of(folder)
    options = [word for id in sorted(ids) for word in ("--revert", id)]
    command = shlex.join(["gemtui", "review", subject.session, *options])
    files = list[ReviewedFile]()
    try:
        with open_project(place, root, own, dry_run=dry_run, stop=stop) as project:
            was_interrupted = project.completed(REVIEW)
            take_hooked_checkpoints(project, hooked_dir())
            store = project.store
            calls, record = _recorded(subject, root, store)
            also = {change.path: UNKNOWN for change in record.changes}

            def planned() -> list[Step]:
                is_own = partial(_is_of, subject, calls)
                changes = owned_changes(store, is_own, record.changes, store)
                steps, files[:] = revert_steps(changes, store.states_around(changes), store, ids)
                return steps

            result = project.change(REVIEW, subject.session, planned, also=also, command=command)
    except UndoInterrupted as error:
        steps, notes = error.files.steps, error.files.notes
        return Reverted(
            hunks=(), steps=steps, left=(), notes=notes, interrupted=error.files.interrupted
        )
    kept = {step.path: step.why for step in result.steps if step.action is Action.KEEP}
    left = [] if was_interrupted else [(id, _GONE) for id in missing(ids, files)]
    left += [(os.fsdecode(path), why) for path, why in kept.items()]
    reverted = [file for file in files if file.path not in kept]
    dependent = dependent_hunks(reverted, ids)
    return Reverted(
        hunks=tuple(sorted(chosen_hunks(reverted, ids))),
        steps=result.steps,
        left=tuple(left),
        built_on=tuple((hunk.id, stay_words(file, hunk)) for file, hunk in dependent),
        checkpoint=result.checkpoint,
        notes=result.notes,
    )


def is_idle(folder: Path) -> bool:
    """Return whether no agent is working in a folder."""
    try:
        require_idle(folder)
    except UndoError:
        return False
    return True


def _recorded(
    subject: ReviewSubject, root: Path, store: CheckpointStore | None
) -> tuple[Sequence[PlacedCall], SessionRecord]:
    """Return a subject's calls, and the changes of those without checkpoints."""
    calls, covered = subject.calls(), frozenset[str]()
    if store is not None:
        calls, covered = with_uses(calls, store), covered_calls(store)
    record = SessionRecord(root)
    for placed in calls:
        if placed.use not in covered:
            record.add(placed.call)
    return calls, record


def _is_of(subject: ReviewSubject, calls: Sequence[PlacedCall], call: WritingCall) -> bool:
    """Return whether a call in checkpoints belongs to the subject of a review.

    `calls`: those that the session has recorded.
    """
    if subject.run:
        return call.run == subject.run
    if made_by_user(call):
        return False
    return call.session == subject.session or any(
        placed.use == call.use for placed in calls if placed.use
    )


# --- descriptions ---------------------------------------------------------------------------------


def _file(file: ReviewedFile) -> dict[str, Any]:
    path, hunks = os.fsdecode(file.path), [_hunk(hunk) for hunk in file.hunks]
    return fields(file, "id", "change") | {"path": path, "hunks": hunks}


def _hunk(hunk: ReviewHunk) -> dict[str, Any]:
    owner = hunk.owner
    return {
        "id": hunk.id,
        **fields(owner, "tool", "command", owner="kind"),
        "call": owner.id or None,
        "session": owner.session or None,
        "text": hunk_text(hunk),
        "changed": [author.id for author in hunk.changed if author.id],
        "fixed": hunk.fixed or None,
    }


def owner_words(owner: HunkOwner) -> str:
    """Describe the author of a change in a few words."""
    if owner.kind is OwnerKind.PERSON:
        return f"you ({owner.tool})" if owner.tool else "you"
    if owner.kind is OwnerKind.UNKNOWN:
        return "unknown"
    return f"{owner.tool}: {excerpt(owner.command)}" if owner.command else owner.tool or "a tool"


def changed_words(hunk: ReviewHunk) -> str:
    """Return a clause that names the other authors whose lines a hunk changed.

    Returns "" if there are none.
    """
    if not hunk.changed:
        return ""
    return f"changed lines written by {', '.join(map(owner_words, hunk.changed))}"


def stay_words(file: ReviewedFile, hunk: ReviewHunk) -> str:
    """Return a line for the user about a hunk that was not reverted.

    This happens when the hunk modified lines that a reverted hunk had introduced (see
    `Reverted.built_on`).
    """
    place = f"{os.fsdecode(file.path)}:{hunk.now}"
    return f"not reverted: {place}: {owner_words(hunk.owner)} {changed_words(hunk)}"


def hunk_text(hunk: ReviewHunk) -> str:
    """Format a hunk as in a unified diff; bytes that aren't UTF-8 become surrogates.

    If it has more than 2,000 lines, only these are included, and a last line says how many are
    missing.
    """
    lines = []
    if hunk.removed or hunk.added:
        spans = []
        for first, changed in ((hunk.before, hunk.removed), (hunk.now, hunk.added)):
            start, count = first - len(hunk.above), len(hunk.above + changed + hunk.below)
            spans.append(f"{start if count else max(0, start - 1)},{count}")
        lines.append("@@ -{} +{} @@".format(*spans))
    if hunk.about:
        lines.append(hunk.about)
    content = list(diff_lines(hunk))
    for sign, line in content[:_MOST_LINES]:
        lines.append(sign + line.decode("utf-8", "surrogateescape"))
    if len(content) > _MOST_LINES:
        lines.append(f"\\ {counted(len(content) - _MOST_LINES, 'more line')}")
    return "".join(line if line.endswith("\n") else line + "\n" for line in lines)


def diff_lines(hunk: ReviewHunk) -> Iterator[tuple[str, bytes]]:
    """Yield (symbol, line) for each of a hunk's lines and its context.

    The symbol is ` `, `-` or `+`, as in a unified diff.
    """
    yield from ((" ", line) for line in hunk.above)
    yield from (("-", line) for line in hunk.removed)
    yield from (("+", line) for line in hunk.added)
    yield from ((" ", line) for line in hunk.below)


class Comment(NamedTuple):
    """A user's comment on a line of a change.

    `place`: the file and line, such as `src/a.py:12`. `context`: the lines around it.
    """

    place: str
    text: str
    context: tuple[str, ...]


def comments_prompt(comments: Sequence[Comment]) -> str:
    """Return a prompt that contains the user's comments with their places and context."""
    parts = []
    for comment in comments:
        lines = "\n".join(f"    {line}" for line in comment.context)
        parts.append(f"{comment.place}: {comment.text}\n\n{lines}")
    return "\n\n".join(["Comments on your changes:", *parts])


def commit_message(prompts: Sequence[str]) -> str:
    """Return a commit message made of a session's prompts: the first is the subject."""
    if not prompts:
        return ""
    subject, *others = map(excerpt, prompts)
    if len(subject) > _SUBJECT:
        others.insert(0, subject)
        subject = subject[: _SUBJECT - 1].rstrip() + "…"
    lines = [subject]
    if others:
        lines += ["", *(f"* {prompt}" for prompt in others)]
    return "\n".join(lines)
