"""`gemtui runs`: current and past runs, and their backups of sessions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

import click

from gemtui.agent import process_tree
from gemtui.agent.approval import Difference, GateFolder
from gemtui.agent.prompt_queue import PromptQueue, load_queue
from gemtui.commands.output import columns, json_to_stdout, lines_to_stdout, note, terminal_width, to_stdout
from gemtui.commands.runs_serve import answer, questions, queue, say
from gemtui.commands.shared_options import json_option, run_ids
from gemtui.jsonout import encode, encode_array
from gemtui.kept.run_copies import last_copies, last_copy_words
from gemtui.paths import gemini_home, prompts_file
from gemtui.runs.ending import RunState
from gemtui.runs.gate.questions import Conversation, Question
from gemtui.runs.listing import (
    BROKEN,
    Run,
    broken_runs,
    find_run,
    list_runs,
    orphaned_words,
    prune_runs,
    runs_dir,
    waiting_words,
    with_outcome,
)
from gemtui.runs.listing import clear_runs as clear_runs
from gemtui.runs.listing import stop_run as end_run
from gemtui.runs.undo.checkpointing import checkpoint_state
from gemtui.sessions.catalog.summary import iso
from gemtui.text import Clean, clean, clean_line, counted, duration, ellipsis, relative, size, visible_line
from gemtui.transcript.diffs import hunks_of
from gemtui.transcript.writes import FileWrite, WriteStatus, totals

_id = click.argument("id", shell_complete=run_ids)
_HEAD = ("ID", "AGE", "STATE", "TIME", "SIZE", "FOLDER", "PROMPT")
_SHORT = 8
_FOLDER_WIDTH = 24


@click.group(invoke_without_command=True)
@json_option
@click.pass_context
def runs(ctx: click.Context, as_json: bool) -> None:
    """List, show, answer, and stop runs, and restore sessions from their backups.

    Without a command, list the runs. ID is the id of a run or of its session, a unique prefix of
    either, or `latest`.
    """
    if ctx.invoked_subcommand is not None:
        ctx.default_map = {ctx.invoked_subcommand: {"as_json": as_json}}
        return
    _list(as_json=as_json)


@runs.command("list")
@json_option
def list_(as_json: bool) -> None:
    """List past and current runs, newest first."""
    _list(as_json=as_json)


def _list(*, as_json: bool) -> None:
    """Print the runs, after removing the oldest if there are too many or too large."""
    place = runs_dir()
    prune_runs(place)
    runs, kept = tuple(map(with_outcome, list_runs(place))), last_copies(place)
    if as_json:
        head = b'{"version":1,"place":' + encode(str(place)) + b',"runs":'
        only = {copy.folder: copy.session_id for copy in kept}
        rows = (each.to_dict() | {"only_copy_of": only.get(each.folder)} for each in runs)
        to_stdout(encode_array(rows, head=head, tail=b"}\n"))
        return
    lines_to_stdout(_table(runs, datetime.now(UTC)))
    for run in runs:
        if run.state is RunState.ORPHANED:
            note(orphaned_words(run.id))
        if run.undelivered and run.state is not RunState.RUNNING:
            note(waiting_words(run.undelivered, run.id))
    for copy in kept:
        note(last_copy_words(copy))
    if not runs:
        note(f"no runs in {place}: start one with gemtui run")
    for folder in broken_runs(place):
        note(f"{folder} {BROKEN}")


@runs.command()
@_id
@json_option
def show(id: str, as_json: bool) -> None:
    """Show everything about one run, including its whole prompt."""
    run = with_outcome(find_run(runs_dir(), id))
    from gemtui.runs.changed_files import recorded_files

    prompt = run.folder.prompt_text() or run.prompt
    files, questions = (recorded_files(run, gemini_home()), Conversation.of(run).refresh())
    checkpoints = checkpoint_state(run.folder)
    differing = GateFolder.of(run.folder).differences()
    waits = load_queue(PromptQueue.of(run.folder)).undelivered
    if as_json:
        told = None if files is None else [each.to_dict() for each in files]
        more = {
            "prompt": prompt,
            "files": told,
            "questions": [each.to_dict() for each in questions],
            "waiting": waits,
            "checkpoints": None if checkpoints is None else checkpoints.to_dict(),
            "differences": [asdict(each) for each in differing],
        }
        json_to_stdout({"version": 1, "run": run.to_dict() | more})
        return
    now = datetime.now(UTC)
    rows = {
        "run": run.id,
        "state": run.word,
        "started": f"{iso(run.started)} ({relative(run.started, now)})",
        "time": _time(run, now),
        "in": run.cwd,
        "branch": run.worktree or "",
        "model": run.model or "",
        "session": run.session or "",
        "runs on": ", ".join(map(str, run.pids)),
        "ended": _ended_with(run),
        "kept in": f"{run.folder.path} ({size(run.size)})",
        "files": totals(files or ()).words(),
    }
    facts = (Clean(f"{name:<9}{clean_line(text)}") for name, text in rows.items() if text)
    changed = (_file(each, Path(run.cwd)) for each in files or ())
    answers = map(_question, questions)
    differs = (row for each in differing for row in _differs(each))
    left = (Clean(f"{'waits':<9}{visible_line(text)}") for text in waits)
    notes = [] if checkpoints is None else checkpoints.notes()
    unsure = (Clean(f"{'note':<9}{clean_line(text)}") for text in notes)
    lines_to_stdout((*facts, *changed, *answers, *differs, *left, *unsure, Clean(""), clean(prompt.rstrip())))


def _ended_with(run: Run) -> str:
    """Say how many processes that the run left behind were killed; "" if none were."""
    count = 0 if run.exit is None else run.exit.ended_others
    return f"killed {counted(count, 'process', 'processes')} that the run had left behind" if count else ""


def _question(question: Question) -> Clean:
    """Return the line for a question in a run's details: its outcome and its call."""
    told = question.to_dict()
    words = f"{told['consent']}: {told['tool']} {told['about']}"
    reason = f" ({told['reason']})" if told["reason"] else ""
    return Clean(f"{'asked':<9}{visible_line(words + reason)}")


def _differs(difference: Difference) -> Iterator[Clean]:
    """Yield lines about a file whose contents differ from what the user approved."""
    words = f"{difference.path} differs from what you approved in question {difference.number}"
    yield Clean(f"{'differs':<9}{visible_line(words)}")
    if difference.found is None:
        yield Clean(f"{'':<9}the file has no readable text")
        return
    for line in hunks_of(difference.approved or "", difference.found):
        yield Clean(f"{'':<9}{visible_line(line)}")


def _file(write: FileWrite, root: Path) -> Clean:
    """Return the line for a file that the run wrote; `root`: the run's folder."""
    path = write.path.relative_to(root) if write.path.is_relative_to(root) else write.path
    sign = write.letter.value if write.written is WriteStatus.YES else "-"
    words = filter(None, (sign, str(path), *write.numbers, write.words))
    return Clean(f"{'':<9}{clean_line(' '.join(words))}")


@runs.command()
@_id
@json_option
def stop(id: str, as_json: bool) -> int:
    """Stop a run and everything that it started.

    This includes background commands of a finished run, and processes left behind because the run's
    supervisor was killed. Exit code 1 if there was nothing to stop, or if some processes remain.
    """
    run = find_run(runs_dir(), id)
    pids = sorted({*run.pids, *(each.pid for each in process_tree.tagged(run.id))})
    ended = end_run(run) if run.alive else False
    if as_json:
        json_to_stdout({"version": 1, "run": run.id, "stopped": pids if ended else []})
    if not run.alive:
        note("this run has no running processes")
    elif ended:
        note(f"stopped the run and its processes: {', '.join(map(str, pids))}")
    else:
        note("some of the run's processes could not be stopped: see gemtui runs show")
    return 0 if ended else 1


@runs.command()
@_id
@json_option
def restore(id: str, as_json: bool) -> int:
    """Restore a lost session from a run's backup.

    ID is the id of the session or of the run. Only missing files are restored, in their newest
    saved state, as with `gemtui vault restore`. Exit code 1 if nothing was restored.
    """
    from gemtui.commands import vault as command

    return command.restore_session(id, by_run=True, as_json=as_json)


for _command in (questions, answer, say, queue):
    runs.add_command(_command)


@runs.command()
@click.option("--prompts", is_flag=True, help="Also delete the prompt history of the run pane.")
@json_option
def clear(prompts: bool, as_json: bool) -> None:
    """Delete the records of finished runs.

    A run that holds the only copy of a session is kept, and its id is printed.
    """
    if prompts:
        _clear_prompts()
    place = runs_dir()
    waited = sum(run.undelivered for run in list_runs(place) if not run.alive)
    removed, kept = clear_runs(place), last_copies(place)
    left = len(list_runs(place))
    if as_json:
        ids = [each.folder.id for each in kept]
        json_to_stdout({"version": 1, "removed": removed, "left": left, "only_copies": ids})
        return
    others = left - len(kept)
    going = f"; {others} not removed (still running, or could not be deleted)" if others > 0 else ""
    unsent = f", including {counted(waited, 'queued prompt')}" if waited else ""
    note(f"removed {counted(removed, 'run')} from {place}{unsent}{going}")
    for copy in kept:
        note(last_copy_words(copy))


def _clear_prompts() -> None:
    """Delete the file with the prompts typed in the app's run pane. Raises OSError."""
    place = prompts_file()
    place.unlink(missing_ok=True)
    note(f"removed {place}")


def _table(runs: Sequence[Run], now: datetime) -> Iterator[Clean]:
    """Yield a header and one line per run; prompts are cut to fit the terminal."""
    if not runs:
        return
    rows = [_HEAD, *([*map(clean_line, _row(each, now))] for each in runs)]
    yield from columns(rows, room=terminal_width(), cut=True)


def _row(run: Run, now: datetime) -> tuple[str, ...]:
    return (
        run.id[:_SHORT],
        relative(run.started, now),
        run.word,
        _time(run, now),
        size(run.size),
        ellipsis(clean_line(Path(run.cwd).name or run.cwd), _FOLDER_WIDTH),
        run.prompt,
    )


def _time(run: Run, now: datetime) -> str:
    """Return how long a run took, or has taken so far; "" if unknown."""
    end = now if run.state is RunState.RUNNING else run.ended
    return "" if end is None else duration(end - run.started)
