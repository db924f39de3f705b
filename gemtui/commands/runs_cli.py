"""The words of `gemtui runs`: read by click, handed on to the module that does it."""

from __future__ import annotations

import click
from click.shell_completion import CompletionItem

_help = {"help_option_names": ["-h", "--help"]}
_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


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


@click.group(invoke_without_command=True, context_settings=_help)
@_json
@click.option("--clear", "clear_all", is_flag=True, help="The same as the command clear.")
@click.pass_context
def runs(ctx: click.Context, as_json: bool, clear_all: bool) -> None:
    """The runs that gemtui has started, and the copies of sessions that they keep.

    Without a command, lists them. ID is a run's id, the id of the session that it stored, a unique
    prefix of either, or `latest`.
    """
    if ctx.invoked_subcommand is not None:
        if clear_all:
            raise click.UsageError("--clear goes without a command")
        ctx.default_map = {ctx.invoked_subcommand: {"as_json": as_json}}
        return
    from gemtui.commands import runs as command

    (command.clear if clear_all else command.list_all)(as_json=as_json)


@runs.command("list")
@_json
def list_(as_json: bool) -> None:
    """List the runs, newest first, and those that go on."""
    from gemtui.commands import runs as command

    command.list_all(as_json=as_json)


@runs.command()
@_id
@_json
def show(id: str, as_json: bool) -> None:
    """Say all that is known of one run, its whole prompt included."""
    from gemtui.commands import runs as command

    command.show(id, as_json=as_json)


@runs.command()
@_id
@_json
def stop(id: str, as_json: bool) -> int:
    """End a run that goes on, with everything that it started.

    That includes background commands of a run that has ended, and all that is left where its
    supervisor was killed. Exit code 1 where there was nothing to end.
    """
    from gemtui.commands import runs as command

    return command.stop(id, as_json=as_json)


@runs.command()
@_id
@_json
def restore(id: str, as_json: bool) -> int:
    """Put the copy of a session back that a run of it has kept.

    ID is that of the session or of the run. Only files that are gone are put back, in the newest
    state that is kept; otherwise as gemtui vault restore does it. Exit code 1 where nothing was.
    """
    from gemtui.commands import vault as command

    return command.restore(id, by_run=True, as_json=as_json)


@runs.command()
@click.argument("run", required=False, shell_complete=_run_ids)
@_json
def questions(run: str | None, as_json: bool) -> None:
    """List the questions that wait for an answer, of all runs or of RUN.

    Each with the call, what it would do, and the words that answer it. --json has whole texts.
    """
    from gemtui.commands import runs_serve as command

    command.questions(run, as_json=as_json)


@runs.command()
@click.argument("run", shell_complete=_run_ids)
@click.argument("number", metavar="N", shell_complete=_question_names)
@click.argument("verdict", metavar="allow|deny", type=click.Choice(["allow", "deny"]))
@click.option("--because", metavar="TEXT", default="", help="With deny: what the model reads.")
@click.option("--similar", is_flag=True, help="With allow: all similar calls of this run as well.")
@_json
def answer(run: str, number: str, verdict: str, because: str, similar: bool, as_json: bool) -> int:
    """Answer question N of a run that waits, from anywhere.

    N is the question's number, or its id as `gemtui runs questions` prints it (3.9f2c41d05b7a6e18),
    which stands for what was shown. An answer to something that has changed since is refused: a
    number alone means the call as it was first asked about. Exit code 1 where the answer did not
    count: somebody was quicker, or what it would do has changed.
    """
    from gemtui.commands import runs_serve as command

    if because and verdict == "allow":
        raise click.UsageError("--because goes with deny")
    if similar and verdict == "deny":
        raise click.UsageError("--similar goes with allow")
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
@_json
def say(run: str, text: str, as_json: bool) -> int:
    """Send a message to a run that works; it reads it with its next tool result.

    TEXT - means stdin. Exit code 1 where the run does not go on, or asks nobody.
    """
    from gemtui.commands import runs_serve as command

    return command.say(run, text, as_json=as_json)


@runs.command()
@click.argument("run", shell_complete=_run_ids)
@click.argument("prompt", required=False)
@_json
def queue(run: str, prompt: str | None, as_json: bool) -> None:
    """Have PROMPT follow when RUN has ended; without one, list what waits behind it.

    PROMPT - means stdin. A run that asks sends it itself; behind any other, the app does.
    """
    from gemtui.commands import runs_serve as command

    command.queue(run, prompt, as_json=as_json)


@runs.command()
@click.option("--prompts", is_flag=True, help="Also the prompts that the run pane remembers.")
@_json
def clear(prompts: bool, as_json: bool) -> None:
    """Remove what is kept of runs that have ended.

    A run that keeps the only copy of a session stays, and is named.
    """
    from gemtui.commands import runs as command

    if prompts:
        command.clear_prompts()
    command.clear(as_json=as_json)
