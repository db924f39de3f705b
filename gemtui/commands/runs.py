"""`gemtui runs`: current and past runs, their questions, messages, and saved sessions."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from gemtui.agent import process_tree
from gemtui.agent.agent_run import LOST
from gemtui.agent.approval import AnswerSource, Difference, GateFolder, Settled
from gemtui.agent.prompt_queue import PromptQueue, load_queue
from gemtui.agent.run_folder import LARGEST_PROMPT, PROMPT_TOO_LARGE, is_too_large
from gemtui.agents import WORDS
from gemtui.commands.output import (
    columns,
    fact_line,
    json_list_to_stdout,
    json_to_stdout,
    lines_to_stdout,
    note,
    terminal_width,
)
from gemtui.commands.run_ask import question_lines
from gemtui.commands.shared_options import by_default, completions, json_option
from gemtui.errors import InsideRunError, RunAmbiguous, RunNotFound
from gemtui.files import changed_at
from gemtui.jsonout import fields, iso, json_value
from gemtui.kept.run_copies import last_copies, last_copy_words
from gemtui.paths import gemini_home, prompts_file, runs_dir
from gemtui.runs.ending import RunState
from gemtui.runs.gate.questions import (
    AnswerOutcome,
    Asked,
    Conversation,
    Question,
    WaitingQuestion,
    first_token,
    outcome_of,
    parse_name,
    token_of,
    waiting_questions,
)
from gemtui.runs.limits import BROKEN, lost_words, orphaned_words
from gemtui.runs.listing import (
    LATEST,
    Run,
    asking_words,
    broken_runs,
    clear_runs,
    find_run,
    list_runs,
    prune_runs,
    stop_run,
    waiting_words,
    with_outcome,
)
from gemtui.runs.undo.checkpointing import checkpoint_state
from gemtui.text import (
    clean,
    clean_line,
    counted,
    duration,
    ellipsis,
    relative,
    size,
    visible_line,
)
from gemtui.transcript.diffs import hunks_of
from gemtui.transcript.model import Consent
from gemtui.transcript.writes import FileWrite, WriteStatus, totals

_fact = partial(fact_line, width=8)
_HEAD = ("ID", "AGE", "AGENT", "STATE", "TIME", "SIZE", "FOLDER", "PROMPT")
_AGENT_COLUMN = _HEAD.index("AGENT")
_SHORT = 8
_FOLDER_WIDTH = 24
_CONSENTS = {
    Consent.ALLOWED: "allowed",
    Consent.CHANGED: "allowed with changed arguments",
    Consent.DENIED: "denied",
    Consent.STOPPED: "denied, and the run was stopped",
    Consent.ABANDONED: "not run",
}

_FROM = {
    AnswerSource.PANE: "in the run pane",
    AnswerSource.SHELL: "in the run's terminal",
    AnswerSource.TERMINAL: "by gemtui runs answer",
    AnswerSource.LIBRARY: "by a program",
}
"""Maps the places where answers are given to words."""


def _run_ids(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete a run's id."""
    offered = [(LATEST, "the newest run of this folder")]
    offered += [(run.id, clean_line(run.prompt)) for run in list_runs(runs_dir())]
    return completions(offered, incomplete)


_id = click.argument("id", shell_complete=_run_ids)
_run = click.argument("id", metavar="RUN", shell_complete=_run_ids)


@click.group(invoke_without_command=True)
@json_option
@click.pass_context
def runs(ctx: click.Context, as_json: bool) -> None:
    """List, show, answer, and stop runs, and restore sessions from their backups.

    Without a command, list the runs. ID is the id of a run or of its session, a unique prefix of
    either, or `latest`.
    """
    by_default(ctx, list_, as_json=as_json)


@runs.command("list")
@json_option
def list_(as_json: bool) -> None:
    """List past and current runs, newest first."""
    runs_folder = runs_dir()
    prune_runs(runs_folder)
    listed, kept = tuple(map(with_outcome, list_runs(runs_folder))), last_copies(runs_folder)
    if as_json:
        only = {copy.folder: copy.session_id for copy in kept}
        rows = (run.to_dict() | {"only_copy_of": only.get(run.folder)} for run in listed)
        json_list_to_stdout("runs", rows, before={"place": str(runs_folder)})
        return
    lines_to_stdout(_table(listed, datetime.now(UTC)))
    for run in listed:
        if run.state is RunState.LOST:
            note(lost_words(run.id))
        if run.state is RunState.ORPHANED:
            note(orphaned_words(run.id))
        if run.undelivered and run.state is not RunState.RUNNING:
            note(waiting_words(run.undelivered, run.id))
    asking = asking_words(runs_folder)
    if asking:
        note(asking)
    for copy in kept:
        note(last_copy_words(copy))
    if not listed:
        note(f"no runs in {runs_folder}: start one with gemtui run")
    for folder in broken_runs(runs_folder):
        note(f"{folder} {BROKEN}")


@runs.command()
@_id
@json_option
def show(id: str, as_json: bool) -> None:
    """Show everything about one run, including its whole prompt."""
    run = with_outcome(find_run(runs_dir(), id))
    from gemtui.runs.changed_files import UNLISTED, recorded_files

    prompt = run.folder.prompt_text() or run.prompt
    recorded, asked = recorded_files(run, gemini_home()), Conversation.of(run).refresh()
    if run.state is not RunState.RUNNING:
        asked = tuple(question.of_ended_run() for question in asked)
    files = None if recorded is None else recorded.rows
    checkpoints = checkpoint_state(run.folder)
    differing = GateFolder.of(run.folder).differences()
    waits = load_queue(PromptQueue.of(run.folder)).undelivered
    if as_json:
        more = {
            "prompt": prompt,
            "files": json_value(files),
            "files_complete": recorded and recorded.complete,
            "questions": json_value(asked),
            "waiting": waits,
            "checkpoints": json_value(checkpoints),
            "differences": [asdict(difference) for difference in differing],
        }
        json_to_stdout({"run": run.to_dict() | more})
        return
    now = datetime.now(UTC)
    rows = {
        "run": run.id,
        "agent": WORDS[run.agent].program,
        "state": run.word,
        "why": "" if run.outcome is None else run.outcome.why,
        **_lost(run, now),
        "denied": "; ".join(() if run.outcome is None else run.outcome.denials),
        "warning": "; ".join(() if run.outcome is None else run.outcome.warnings),
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
    facts = (_fact(name, clean_line(text)) for name, text in rows.items() if text)
    changed = (_file(write, Path(run.cwd)) for write in files or ())
    answers = map(_question, asked)
    differs = (row for difference in differing for row in _differs(difference))
    left = (_fact("waits", visible_line(text)) for text in waits)
    notes = [] if checkpoints is None else list(checkpoints.notes())
    if recorded is not None and not recorded.complete:
        notes.append(UNLISTED)
    unsure = (_fact("note", clean_line(text)) for text in notes)
    lines_to_stdout(
        (*facts, *changed, *answers, *differs, *left, *unsure, "", clean(prompt.rstrip()))
    )


def _lost(run: Run, now: datetime) -> dict[str, str]:
    """Say that a run's supervisor was killed, since when, and what to do; nothing if it wasn't."""
    if run.exit is not None or run.state is RunState.RUNNING:
        return {}
    last = datetime.fromtimestamp(changed_at(run.folder.stdout), UTC)
    resume = f" --resume {shlex.quote(run.session)}" if run.session else ""
    go_on = f"nothing of the run works any more: to go on, use gemtui run{resume} PROMPT"
    return {
        "why": LOST,
        "since": f"{iso(last)} ({relative(last, now)}), when its output ends",
        "to do": orphaned_words(run.id) if run.pids else go_on,
    }


def _ended_with(run: Run) -> str:
    """Say how many processes that the run left behind were killed; "" if none were."""
    count = 0 if run.exit is None else run.exit.ended_others
    return (
        f"killed {counted(count, 'process', 'processes')} that the run had left behind"
        if count
        else ""
    )


def _question(question: Question) -> str:
    """Return the line for a question in a run's details: its outcome and its call."""
    values, consent = question.to_dict(), question.consent
    state = "answered" if consent is Consent.WAITS and question.answered else consent.value
    if question.source is not None and consent is not Consent.ABANDONED:
        state = f"{state} {_FROM[question.source]}"
    text = f"{state}: {values['tool']} {values['about']}"
    reason = f" ({values['reason']})" if values["reason"] else ""
    return _fact("asked", visible_line(text + reason))


def _differs(difference: Difference) -> Iterator[str]:
    """Yield lines about a file whose contents differ from what the user approved."""
    text = f"{difference.path} differs from what you approved in question {difference.number}"
    yield _fact("differs", visible_line(text))
    if difference.found is None:
        yield _fact("", "the file has no readable text")
        return
    for line in hunks_of(difference.approved or "", difference.found):
        yield _fact("", visible_line(line))


def _file(write: FileWrite, root: Path) -> str:
    """Return the line for a file that the run wrote; `root`: the run's folder."""
    path = write.path.relative_to(root) if write.path.is_relative_to(root) else write.path
    sign = write.letter.value if write.written is WriteStatus.YES else "-"
    cells = filter(None, (sign, str(path), *write.numbers, write.words))
    return _fact("", clean_line(" ".join(cells)))


@runs.command()
@_id
@json_option
def stop(id: str, as_json: bool) -> int:
    """Stop a run and everything that it started.

    This includes background commands of a finished run, and processes left behind because the run's
    supervisor was killed. Exit code 1 if there was nothing to stop, or if some processes remain.
    """
    run = find_run(runs_dir(), id)
    pids = sorted({*run.pids, *(process.pid for process in process_tree.tagged(run.id))})
    ended = stop_run(run) if run.alive else False
    if as_json:
        json_to_stdout({"run": run.id, "stopped": pids if ended else []})
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
    from gemtui.commands.vault import restore_session

    return restore_session(id, by_run=True, as_json=as_json)


@runs.command()
@click.option("--prompts", is_flag=True, help="Also delete the prompt history of the run pane.")
@json_option
def clear(prompts: bool, as_json: bool) -> None:
    """Delete the records of finished runs.

    A run that holds the only copy of a session is kept, and its id is printed.
    """
    if prompts:
        _clear_prompts()
    folder = runs_dir()
    waited = sum(run.undelivered for run in list_runs(folder) if not run.alive)
    removed, kept = clear_runs(folder), last_copies(folder)
    left = len(list_runs(folder))
    if as_json:
        ids = [copy.folder.id for copy in kept]
        json_to_stdout({"removed": removed, "left": left, "only_copies": ids})
        return
    others = left - len(kept)
    going = f"; {others} not removed (still running, or could not be deleted)" if others > 0 else ""
    unsent = f", including {counted(waited, 'queued prompt')}" if waited else ""
    note(f"removed {counted(removed, 'run')} from {folder}{unsent}{going}")
    for copy in kept:
        note(last_copy_words(copy))


def _clear_prompts() -> None:
    """Delete the file with the prompts typed in the app's run pane. Raises OSError."""
    path = prompts_file()
    path.unlink(missing_ok=True)
    note(f"removed {path}")


def _table(runs: Sequence[Run], now: datetime) -> Iterator[str]:
    """Yield a header and one line per run; prompts are cut to fit the terminal.

    The agent of each run has a column if there are several agents.
    """
    if not runs:
        return
    rows = [list(_HEAD), *(list[str](map(clean_line, _row(run, now))) for run in runs)]
    if len({run.agent for run in runs}) == 1:
        for row in rows:
            del row[_AGENT_COLUMN]
    yield from columns(rows, room=terminal_width(), cut=True)


def _row(run: Run, now: datetime) -> tuple[str, ...]:
    return (
        run.id[:_SHORT],
        relative(run.started, now),
        WORDS[run.agent].command,
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


# --- questions -----------------------------------------------------------------------------------


def _question_names(
    ctx: click.Context, _param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    try:
        run = find_run(runs_dir(), str(ctx.params.get("id") or ""))
    except (RunNotFound, RunAmbiguous):
        return []
    waiting = [(question.name, question.asked.question) for question in waiting_questions([run])]
    offered = (
        (name, clean_line(f"{asked.request.tool_name} {asked.about}")) for name, asked in waiting
    )
    return completions(offered, incomplete)


@runs.command()
@click.argument("id", metavar="[RUN]", required=False, shell_complete=_run_ids)
@json_option
def questions(id: str | None, as_json: bool) -> None:
    """List the questions that are waiting for an answer, of all runs or of RUN.

    Each question is printed with the tool call, what the call would do, and the command that
    answers it. --json prints the complete texts.
    """
    folder = runs_dir()
    open_questions = waiting_questions(list_runs(folder) if id is None else (find_run(folder, id),))
    if as_json:
        json_list_to_stdout("questions", open_questions)
        return
    waiting = list(open_questions)
    lines_to_stdout(line for question in waiting for line in _question_lines(question))
    if not waiting:
        note(
            "no run is waiting for an answer"
            if id is None
            else "this run is not waiting for an answer"
        )


def _question_lines(waiting: WaitingQuestion) -> Iterator[str]:
    """Yield a question as `gemtui run --ask` prints it, then commands to answer it."""
    run, asked = waiting.run, waiting.asked
    request = asked.question.request
    asked_at = datetime.fromtimestamp(request.asked / 1000, UTC)
    since = duration(datetime.now(UTC) - asked_at)
    head = f"run {run.id[:_SHORT]} in {run.cwd}: question {request.number}, asked {since} ago"
    yield visible_line(head)
    yield from question_lines(asked, Path(run.cwd))
    if request.because:
        yield visible_line(f"  why: {request.because}")
    if waiting.changed:
        yield "  The call would now do something different from when the run asked."
    if asked.refusal is not None:
        yield visible_line(f"  This call can't be allowed: {asked.refusal}")
    if asked.similar.rule is not None:
        yield visible_line(f"  --similar allows {asked.similar.words}")
    yield clean_line(f"  gemtui runs answer {run.id[:_SHORT]} {waiting.name} allow")
    yield clean_line(f'  gemtui runs answer {run.id[:_SHORT]} {waiting.name} deny --because "…"')
    yield ""


# --- answers -------------------------------------------------------------------------------------


@runs.command()
@_run
@click.argument("name", metavar="N", shell_complete=_question_names)
@click.argument("verdict", metavar="allow|deny", type=click.Choice(["allow", "deny"]))
@click.option(
    "--because", metavar="TEXT", default="", help="With deny: the reason to give to the model."
)
@click.option("--similar", is_flag=True, help="With allow: also allow similar calls in this run.")
@json_option
def answer(id: str, name: str, verdict: str, because: str, similar: bool, as_json: bool) -> int:
    """Answer question N of a waiting run, from any terminal.

    N is the question's number, or its id as printed by `gemtui runs questions`, such as
    3.9f2c41d05b7a6e18. The id refers to the call exactly as it was shown: if the call has changed
    since, the answer is not accepted. A plain number refers to the call as it was when the run
    first asked. Exit code 1 if the answer had no effect, because somebody else answered first or
    because the call would now do something different; 2 if the run itself started this command.
    """
    allow = verdict == "allow"
    if because and allow:
        raise click.UsageError("--because works only with deny")
    if similar and not allow:
        raise click.UsageError("--similar works only with allow")
    parsed = parse_name(name)
    if parsed is None:
        raise click.UsageError(
            f"{name!r} is not a question's number or id: list them with gemtui runs questions"
        )
    run, (number, token) = find_run(runs_dir(), id), parsed
    if allow and token is None and not run.id.startswith(id):
        raise click.UsageError(
            f"{id!r} may mean another run by now: give the run's id, or the question's id from "
            "gemtui runs questions"
        )
    talking = Conversation.of(run, AnswerSource.TERMINAL)
    try:
        talking.require_outside()
    except InsideRunError as error:
        raise click.UsageError(str(error)) from None
    question = {question.number: question for question in talking.refresh()}.get(number)
    if question is None:
        listed = f"gemtui runs questions {run.id[:_SHORT]}"
        raise click.UsageError(f"run {run.id[:_SHORT]} has no question {number}: see {listed}")
    why = _too_late(run, question)
    if why is not None:
        return _refused(run, number, why, as_json=as_json)
    asked = talking.asked(question)
    if token_of(asked.effect) != (token or first_token(asked)) and (allow or token is not None):
        why = (
            f"the call has changed since it was shown: see gemtui runs questions {run.id[:_SHORT]}"
        )
        return _refused(run, number, why, as_json=as_json)
    try:
        outcome = _give(talking, asked, allow=allow, because=because, similar=similar)
    except ValueError as error:
        return _refused(run, number, f"the call can't be allowed: {error}", as_json=as_json)
    if not outcome:
        return _refused(run, number, "somebody else answered first", as_json=as_json)
    return _tell(run, number, allow, outcome_of(run, number), as_json=as_json)


def _too_late(run: Run, question: Question) -> str | None:
    """Return, as a clause, why a question can no longer be answered; None if it can."""
    settled = question.settled
    if settled is not None and settled.again:
        return f"the run asked again as question {settled.again}: {settled.reason}"
    if settled is not None:
        return f"the question has already been answered: {_CONSENTS[settled.consent]}"
    if question.answered:
        return "the question has already been answered"
    return None if run.state is RunState.RUNNING else "the run has ended"


def _give(
    talking: Conversation, asked: Asked, *, allow: bool, because: str, similar: bool
) -> AnswerOutcome:
    if not allow:
        return talking.deny(asked, because)
    return talking.allow_similar(asked) if similar else talking.allow(asked)


def _refused(run: Run, number: int, why: str, *, as_json: bool) -> int:
    """Report that an answer had no effect, and return the exit code 1.

    `why`: the reason, as a clause.
    """
    if as_json:
        _print_answer(run, number, counted=False, settled=None)
    note(f"your answer to question {number} of run {run.id[:_SHORT]} was not used: {why}")
    return 1


def _tell(run: Run, number: int, allow: bool, settled: Settled | None, *, as_json: bool) -> int:
    """Report what became of a call after it was allowed or denied.

    `allow`: whether the answer was to allow it. `settled`: the effect of the answer, as recorded by
    the run; None if the run hasn't read the answer yet. Returns 1 if the run asked about the call
    again, or if an allowed call was not made.
    """
    if as_json:
        _print_answer(run, number, counted=True, settled=settled)
    if settled is None:
        note("answer saved; the run has not read it yet")
        return 0
    if settled.again:
        note(
            "the call changed before your answer, so the run asked again as question "
            f"{settled.again}"
        )
        return 1
    if not as_json:
        lines_to_stdout([clean_line(f"question {number}: {_CONSENTS[settled.consent]}")])
    if not allow or settled.consent in (Consent.ALLOWED, Consent.CHANGED):
        return 0
    note(f"the call did not run: {settled.reason}")
    return 1


def _print_answer(run: Run, number: int, *, counted: bool, settled: Settled | None) -> None:
    """Print an answer's JSON object.

    `counted`: whether the answer had an effect. The keys are `version`, `run`, `number`, `counted`,
    `consent`, `reason` and `again`.
    """
    ending = dict.fromkeys(("consent", "reason", "again"))
    if settled is not None:
        ending = fields(settled, "consent", "reason") | {"again": settled.again or None}
    json_to_stdout({"run": run.id, "number": number, "counted": counted, **ending})


# --- messages and prompts ------------------------------------------------------------------------


@runs.command()
@_run
@click.argument("text")
@json_option
def say(id: str, text: str, as_json: bool) -> int:
    """Send a message to a working run, which reads it with its next tool result.

    With TEXT -, the message is read from stdin. Exit code 1 if the run has ended, or was not
    started with "Ask me".
    """
    run, message = find_run(runs_dir(), id), _text(text)
    if not _is_listening(run):
        why = (
            "only runs with “Ask me” on can be messaged while they work"
            if run.state is RunState.RUNNING
            else f"run {run.id[:_SHORT]} has ended"
        )
        note(f"{why}: queue a prompt for later with gemtui runs queue")
        return 1
    word = PromptQueue.of(run.folder).send_message(message)
    if as_json:
        json_to_stdout({"run": run.id, "message": word.number})
    return 0


@runs.command()
@_run
@click.argument("prompt", required=False)
@json_option
def queue(id: str, prompt: str | None, as_json: bool) -> None:
    """Queue PROMPT to be sent when RUN has ended; without PROMPT, list the queue.

    With PROMPT -, the prompt is read from stdin. "Ask me" runs send queued prompts themselves; for
    other runs, the app sends them.
    """
    run = find_run(runs_dir(), id)
    queue = PromptQueue.of(run.folder)
    if prompt is not None:
        added = queue.add_prompt(_text(prompt))
        if not _is_listening(run):
            note("queued; the app will send the prompt when the run ends")
        if as_json:
            json_to_stdout({"run": run.id, "added": added.id, "waiting": _waiting(queue)})
        return
    if as_json:
        json_to_stdout({"run": run.id, "waiting": _waiting(queue)})
        return
    waiting = load_queue(queue).undelivered
    lines_to_stdout(visible_line(queued) for queued in waiting)
    if not waiting:
        note("no queued prompts for this run")


def _is_listening(run: Run) -> bool:
    """Return whether a run accepts messages: it is running, and asks the user.

    The supervisor, which is the gemtui process that controls such a run, delivers messages and
    queued prompts itself.
    """
    return run.state is RunState.RUNNING and GateFolder.of(run.folder).exists()


def _waiting(queue: PromptQueue) -> list[dict[str, Any]]:
    """Return the undelivered messages, followed by the queued prompts, as JSON values.

    A message's `id` is None.
    """
    state = load_queue(queue)
    messages = [{"id": None, "text": word.text} for word, at in state.messages if at is None]
    return messages + [{"id": prompt.id, "text": prompt.text} for prompt in state.prompts]


def _text(given: str) -> str:
    """Return the text given as an argument, or read it from stdin if that is `-`.

    Raises click.UsageError if the text is empty or too large.
    """
    text = given
    if given == "-":
        if sys.stdin is None:
            raise click.UsageError("stdin is closed, so there is no text to read")
        text = sys.stdin.buffer.read(LARGEST_PROMPT + 1).decode("utf-8", "replace")
    if not text.strip():
        raise click.UsageError("the text is empty: give the text to send")
    if is_too_large(text):
        raise click.UsageError(PROMPT_TOO_LARGE)
    return text
