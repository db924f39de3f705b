"""The command line of `gemtui runs`, whose work is done in other modules."""

from __future__ import annotations

import click
from click.shell_completion import CompletionItem

from gemtui.commands.shared_options import json_option


def _run_ids(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from gemtui.runs.listing import LATEST, list_runs, runs_dir
    from gemtui.text import clean_line

    offered = [(LATEST, "the newest run")]
    offered += [(run.id, clean_line(run.prompt)) for run in list_runs(runs_dir())]
    return [CompletionItem(id, help=words) for id, words in offered if id.startswith(incomplete)]


def _question_names(
    ctx: click.Context, _param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    from gemtui.errors import RunAmbiguous, RunNotFound
    from gemtui.runs.listing import find_run, runs_dir
    from gemtui.runs.served import waiting_questions
    from gemtui.text import clean_line

    try:
        run = find_run(runs_dir(), str(ctx.params.get("run") or ""))
    except (RunNotFound, RunAmbiguous):
        return []
    waiting = [(each.name, each.asked.question) for each in waiting_questions([run])]
    return [
        CompletionItem(name, help=clean_line(f"{question.request.tool_name} {question.about}"))
        for name, question in waiting
        if name.startswith(incomplete)
    ]


_id = click.argument("id", shell_complete=_run_ids)


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
    from gemtui.commands import runs as command

    command.list_all(as_json=as_json)


@runs.command("list")
@json_option
def list_(as_json: bool) -> None:
    """List past and current runs, newest first."""
    from gemtui.commands import runs as command

    command.list_all(as_json=as_json)


@runs.command()
@_id
@json_option
def show(id: str, as_json: bool) -> None:
    """Show everything about one run, including its whole prompt."""
    from gemtui.commands import runs as command

    command.show(id, as_json=as_json)


@runs.command()
@_id
@json_option
def stop(id: str, as_json: bool) -> int:
    """Stop a run and everything that it started.

    This includes background commands of a finished run, and processes left behind because the run's
    supervisor was killed. Exit code 1 if there was nothing to stop.
    """
    from gemtui.commands import runs as command

    return command.stop(id, as_json=as_json)


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


@runs.command()
@click.argument("run", required=False, shell_complete=_run_ids)
@json_option
def questions(run: str | None, as_json: bool) -> None:
    """List the questions that are waiting for an answer, of all runs or of RUN.

    Each question is printed with the tool call, what the call would do, and the command that
    answers it. --json prints the complete texts.
    """
    from gemtui.commands import runs_serve as command

    command.questions(run, as_json=as_json)


@runs.command()
@click.argument("run", shell_complete=_run_ids)
@click.argument("number", metavar="N", shell_complete=_question_names)
@click.argument("verdict", metavar="allow|deny", type=click.Choice(["allow", "deny"]))
@click.option(
    "--because", metavar="TEXT", default="", help="With deny: the reason to give to the model."
)
@click.option("--similar", is_flag=True, help="With allow: also allow similar calls in this run.")
@json_option
def answer(run: str, number: str, verdict: str, because: str, similar: bool, as_json: bool) -> int:
    """Answer question N of a waiting run, from any terminal.

    N is the question's number, or its id as printed by `gemtui runs questions`, such as
    3.9f2c41d05b7a6e18. The id stands for exactly what was shown: if the call has changed since, the
    answer is not accepted. A plain number stands for the call as it was first asked about. Exit
    code 1 if the answer had no effect, because somebody else answered first or because the call
    would now do something different.
    """
    from gemtui.commands import runs_serve as command

    if because and verdict == "allow":
        raise click.UsageError("--because works only with deny")
    if similar and verdict == "deny":
        raise click.UsageError("--similar works only with allow")
    return command.answer(
        run,
        number,
        allow=verdict == "allow",
        because=because,
        similar=similar,
        as_json=as_json,
    )


@runs.command()
@click.argument("run", shell_complete=_run_ids)
@click.argument("text")
@json_option
def say(run: str, text: str, as_json: bool) -> int:
    """Send a message to a working run, which reads it with its next tool result.

    With TEXT -, the message is read from stdin. Exit code 1 if the run has ended, or was not
    started with "Ask me".
    """
    from gemtui.commands import runs_serve as command

    return command.say(run, text, as_json=as_json)


@runs.command()
@click.argument("run", shell_complete=_run_ids)
@click.argument("prompt", required=False)
@json_option
def queue(run: str, prompt: str | None, as_json: bool) -> None:
    """Queue PROMPT until RUN has ended; without PROMPT, list the queue.

    With PROMPT -, the prompt is read from stdin. "Ask me" runs send queued prompts themselves; for
    other runs, the app sends them.
    """
    from gemtui.commands import runs_serve as command

    command.queue(run, prompt, as_json=as_json)


@runs.command()
@click.option("--prompts", is_flag=True, help="Also delete the prompt history of the run pane.")
@json_option
def clear(prompts: bool, as_json: bool) -> None:
    """Delete the records of finished runs.

    A run that holds the only copy of a session is kept, and its id is printed.
    """
    from gemtui.commands import runs as command

    if prompts:
        command.clear_prompts()
    command.clear(as_json=as_json)
