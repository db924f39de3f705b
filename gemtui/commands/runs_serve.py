"""`gemtui runs questions`, `answer`, `say`, `queue`: interact with a run."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from gemtui.agent.approval import GateFolder, Settled
from gemtui.agent.prompt_queue import LARGEST, PromptQueue, load_queue
from gemtui.commands.output import json_to_stdout, lines_to_stdout, note, to_stdout
from gemtui.commands.run_ask import question_lines
from gemtui.commands.shared_options import json_option, run_ids
from gemtui.errors import RunAmbiguous, RunNotFound
from gemtui.jsonout import encode_array
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
from gemtui.runs.listing import Run, find_run, list_runs, runs_dir
from gemtui.text import Clean, clean_line, duration, visible_line
from gemtui.transcript.model import Consent

_run = click.argument("id", metavar="RUN", shell_complete=run_ids)
_SHORT = 8
_CONSENTS = {
    Consent.ALLOWED: "allowed",
    Consent.CHANGED: "allowed with changed arguments",
    Consent.DENIED: "denied",
    Consent.STOPPED: "denied, and the run was stopped",
    Consent.ABANDONED: "denied, because nobody answered",
}


def _question_names(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    try:
        run = find_run(runs_dir(), str(ctx.params.get("id") or ""))
    except (RunNotFound, RunAmbiguous):
        return []
    waiting = [(each.name, each.asked.question) for each in waiting_questions([run])]
    return [
        CompletionItem(name, help=clean_line(f"{question.request.tool_name} {question.about}"))
        for name, question in waiting
        if name.startswith(incomplete)
    ]


@click.command()
@click.argument("id", metavar="[RUN]", required=False, shell_complete=run_ids)
@json_option
def questions(id: str | None, as_json: bool) -> None:
    """List the questions that are waiting for an answer, of all runs or of RUN.

    Each question is printed with the tool call, what the call would do, and the command that
    answers it. --json prints the complete texts.
    """
    place = runs_dir()
    runs = list_runs(place) if id is None else (find_run(place, id),)
    found = waiting_questions(runs)
    if as_json:
        entries = (each.to_dict() for each in found)
        to_stdout(encode_array(entries, head=b'{"version":1,"questions":', tail=b"}\n"))
        return
    waiting = list(found)
    lines_to_stdout(line for each in waiting for line in _lines(each))
    if not waiting:
        note("no run is waiting for an answer" if id is None else "this run is not waiting for an answer")


def _lines(waiting: WaitingQuestion) -> Iterator[Clean]:
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
        yield Clean("  The call would now do something different from when the run asked.")
    if asked.refusal is not None:
        yield visible_line(f"  This call can't be allowed: {asked.refusal}")
    if asked.similar.rule is not None:
        yield visible_line(f"  --similar allows {asked.similar.words}")
    yield clean_line(f"  gemtui runs answer {run.id[:_SHORT]} {waiting.name} allow")
    yield clean_line(f'  gemtui runs answer {run.id[:_SHORT]} {waiting.name} deny --because "…"')
    yield Clean("")


# --- answers -------------------------------------------------------------------------------------


@click.command()
@_run
@click.argument("name", metavar="N", shell_complete=_question_names)
@click.argument("verdict", metavar="allow|deny", type=click.Choice(["allow", "deny"]))
@click.option("--because", metavar="TEXT", default="", help="With deny: the reason to give to the model.")
@click.option("--similar", is_flag=True, help="With allow: also allow similar calls in this run.")
@json_option
def answer(id: str, name: str, verdict: str, because: str, similar: bool, as_json: bool) -> int:
    """Answer question N of a waiting run, from any terminal.

    N is the question's number, or its id as printed by `gemtui runs questions`, such as
    3.9f2c41d05b7a6e18. The id refers to the call exactly as it was shown: if the call has changed
    since, the answer is not accepted. A plain number refers to the call as it was when the run
    first asked. Exit code 1 if the answer had no effect, because somebody else answered first or
    because the call would now do something different.
    """
    allow = verdict == "allow"
    if because and allow:
        raise click.UsageError("--because works only with deny")
    if similar and not allow:
        raise click.UsageError("--similar works only with allow")
    parsed = parse_name(name)
    if parsed is None:
        raise click.UsageError(f"{name!r} is not a question's number or id: list them with gemtui runs questions")
    run, (number, token) = find_run(runs_dir(), id), parsed
    if allow and token is None and not run.id.startswith(id):
        raise click.UsageError(
            f"{id!r} may mean another run by now: give the run's id, or the question's id from gemtui runs questions"
        )
    talking = Conversation.of(run)
    question = next((each for each in talking.refresh() if each.number == number), None)
    if question is None:
        listed = f"gemtui runs questions {run.id[:_SHORT]}"
        raise click.UsageError(f"run {run.id[:_SHORT]} has no question {number}: see {listed}")
    if (why := _too_late(run, question)) is not None:
        return _refused(run, number, why, as_json=as_json)
    asked = talking.asked(question)
    if token_of(asked.effect) != (token or first_token(asked)) and (allow or token is not None):
        why = f"the call has changed since it was shown: see gemtui runs questions {run.id[:_SHORT]}"
        return _refused(run, number, why, as_json=as_json)
    try:
        given = _give(talking, asked, allow=allow, because=because, similar=similar)
    except ValueError as error:
        return _refused(run, number, f"the call can't be allowed: {error}", as_json=as_json)
    if not given:
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


def _give(talking: Conversation, asked: Asked, *, allow: bool, because: str, similar: bool) -> AnswerOutcome:
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
        note(f"the call changed before your answer, so the run asked again as question {settled.again}")
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
    told = {
        "consent": None if settled is None else settled.consent.value,
        "reason": None if settled is None else settled.reason,
        "again": None if settled is None else settled.again or None,
    }
    _print({"run": run.id, "number": number, "counted": counted, **told})


# --- messages and prompts ------------------------------------------------------------------------


@click.command()
@_run
@click.argument("text")
@json_option
def say(id: str, text: str, as_json: bool) -> int:
    """Send a message to a working run, which reads it with its next tool result.

    With TEXT -, the message is read from stdin. Exit code 1 if the run has ended, or was not
    started with "Ask me".
    """
    run, words = find_run(runs_dir(), id), _text(text)
    if not _is_listening(run):
        why = (
            "only runs with “Ask me” on can be messaged while they work"
            if run.state is RunState.RUNNING
            else f"run {run.id[:_SHORT]} has ended"
        )
        note(f"{why}: queue a prompt for later with gemtui runs queue")
        return 1
    word = PromptQueue.of(run.folder).send_message(words)
    if as_json:
        _print({"run": run.id, "message": word.number})
    return 0


@click.command()
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
            _print({"run": run.id, "added": added.id, "waiting": _waiting(queue)})
        return
    if as_json:
        _print({"run": run.id, "waiting": _waiting(queue)})
        return
    waiting = load_queue(queue).undelivered
    lines_to_stdout(visible_line(each) for each in waiting)
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
    found = load_queue(queue)
    words = [{"id": None, "text": word.text} for word, at in found.messages if at is None]
    return words + [{"id": each.id, "text": each.text} for each in found.prompts]


def _text(given: str) -> str:
    """Return the text given as an argument, or read it from stdin if that is `-`.

    Raises click.UsageError if the text is empty or too large.
    """
    text = given
    if given == "-":
        if sys.stdin is None:
            raise click.UsageError("stdin is closed, so there is no text to read")
        text = sys.stdin.buffer.read(LARGEST).decode("utf-8", "replace")
    if not text.strip():
        raise click.UsageError("the text is empty: give the text to send")
    if len(text.encode("utf-8", "replace")) >= LARGEST:
        raise click.UsageError("the text is too large")
    return text


def _print(value: dict[str, Any]) -> None:
    json_to_stdout({"version": 1, **value})
