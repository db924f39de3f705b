"""The command line of `gemtui policy`, whose work is done in other modules."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from gemtui.commands.run_cli import MODES, RunArguments, SetupCommand
from gemtui.commands.shared_options import Moment, force_option, json_option, output_option
from gemtui.errors import OptionError


class _Mode(click.Choice[str]):
    """An approval mode, as spelled by the CLI, in rules or by other agents."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the mode as the CLI spells it."""
        from gemtui.policy.file.levels import approval_mode

        try:
            return approval_mode(value).value
        except OptionError:
            return super().convert(value, param, ctx)


def _names(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete the names of gemtui's policies; if none match, complete files."""
    from gemtui.errors import GemtuiError
    from gemtui.policy.edit.store import Origin, list_policies

    try:
        found = [each.name for each in list_policies() if each.origin is Origin.OURS]
    except (GemtuiError, OSError):
        found = []
    items = [CompletionItem(name) for name in found if name.startswith(incomplete)]
    return items or [CompletionItem(incomplete, type="file")]


_policy = click.option(
    "--policy",
    "policies",
    metavar="NAME|FILE",
    multiple=True,
    shell_complete=_names,
    help="A policy file, a folder of them, or the name of one of gemtui's policies; repeatable.",
)
_mode = click.option(
    "--mode",
    "--approval-mode",
    type=_Mode(MODES),
    default="default",
    show_default=True,
    help="Approval mode.",
)
_interactive = click.option(
    "--interactive",
    is_flag=True,
    help="Decide as in a terminal, where a person can be asked; by default headless.",
)


def _situation(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that describe the run in which a call is judged to a command."""
    for option in (
        click.option(
            "--allowed-tools",
            "--allowed-tool",
            "allowed_tools",
            metavar="T",
            multiple=True,
            help="Gemini CLI's option of this name; repeatable.",
        ),
        click.option(
            "--settings",
            metavar="FILE",
            type=click.Path(path_type=Path),
            help="Use this settings file of Gemini CLI instead of this machine's.",
        ),
        click.option(
            "--admin-policy",
            "admin",
            metavar="FILE",
            multiple=True,
            type=click.Path(path_type=Path),
            help="A policy file for the admin tier, above all others; repeatable.",
        ),
        click.option(
            "--alone",
            is_flag=True,
            help="Leave out your own Gemini CLI policies, as `gemini --policy FILE` does.",
        ),
        _interactive,
        _mode,
        _policy,
    ):
        command = option(command)
    return command


def _calls(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that select recorded calls to a command."""
    for option in (
        click.option("--everywhere", is_flag=True, help="Use the calls of all projects."),
        click.option(
            "--project",
            metavar="DIR",
            type=click.Path(file_okay=False, path_type=Path),
            help="Use the calls of this folder's sessions.",
        ),
        click.option("--session", metavar="ID", help="Use the calls of one session."),
    ):
        command = option(command)
    return command


@click.group(invoke_without_command=True)
@click.pass_context
def policy(ctx: click.Context) -> int:
    """Show, check, and try policies: rules that say what an agent may do.

    NAME is one of gemtui's policies, which are in `policies` next to its settings file. FILE is any
    policy file of Gemini CLI.
    """
    if ctx.invoked_subcommand is not None:
        return 0
    click.echo(ctx.get_help(), err=True)
    return 2


@policy.command(name="list", short_help="List all policies.")
@json_option
def list_(as_json: bool) -> int:
    """List gemtui's policies, your Gemini CLI policies, and those that its settings name."""
    from gemtui.commands import policy_files as command

    return command.list_all(as_json=as_json)


@policy.command(short_help="Print the rules of a policy.")
@click.argument("name", metavar="NAME|FILE", shell_complete=_names)
@json_option
def show(name: str, as_json: bool) -> int:
    """Print the rules of a policy in the order in which Gemini CLI tries them.

    Rules that are turned off come last. Exit code 1 if no rule can be read.
    """
    from gemtui.commands import policy_files as command

    return command.show(name, as_json=as_json)


@policy.command(short_help="Find mistakes in policy files.")
@click.argument("files", metavar="FILE...", nargs=-1, required=True, shell_complete=_names)
@click.option("--strict", is_flag=True, help="Exit with 1 on warnings too.")
@click.option(
    "--replay",
    "since",
    metavar="DATE",
    type=Moment(),
    help="Try the recorded calls since then that succeeded, too: 30d, yesterday, 2026-11-20.",
)
@_calls
@_mode
@json_option
def check(
    files: tuple[str, ...],
    strict: bool,
    since: datetime | None,
    session: str | None,
    project: Path | None,
    everywhere: bool,
    mode: str,
    as_json: bool,
) -> int:
    """Find mistakes in policy files, and try the examples in them.

    FILE is a policy file, a folder of them, or the name of one of gemtui's policies. An error is
    something that Gemini CLI drops or ignores, or an example that fails: a comment such as
    # example: deny run_shell_command {"command": "git push"}. A warning is a rule that probably
    doesn't do what you meant, such as one that is easily bypassed. --session, --project,
    --everywhere and --mode are for --replay. Exit code 1 on errors, and with --replay if a call
    that succeeded would be denied.
    """
    from gemtui.commands import policy_files as command
    from gemtui.commands.policy_calls import CallSelection
    from gemtui.policy.model.rules import ApprovalMode

    which = CallSelection(session=session, project=project, everywhere=everywhere)
    replay = None
    if since is not None:
        replay = command.ReplayRequest(since=since, which=which, mode=ApprovalMode(mode))
    return command.check(files, strict=strict, as_json=as_json, replay=replay)


@policy.command(short_help="Make rules from sentences.")
@click.argument("sentences", metavar="SENTENCES", nargs=-1, required=True)
@click.option(
    "--write",
    "name",
    metavar="NAME",
    shell_complete=_names,
    help="Add the rules to this policy of gemtui's; it is made if there is none.",
)
@_mode
@json_option
def words(sentences: tuple[str, ...], name: str | None, mode: str, as_json: bool) -> int:
    """Make rules from sentences such as "allow edit src/**; deny git push; deny everything else".

    A sentence begins with allow, ask or deny. It goes on with read, edit, run, network, agents or
    mcp SERVER, a path behind read and edit, a tool's name, a command, or "everything else".
    Paths are relative to the current folder. What a rule covers and what it can't is printed
    beside it, and what becomes of all other calls. Exit code 1 if a sentence makes no rule; then
    nothing is written.
    """
    from gemtui.commands import policy_words as command

    text = ";".join(sentences)
    return command.words(text, name=name, mode=mode, as_json=as_json)


@policy.command(cls=SetupCommand, short_help="Print the command line of a run with a policy.")
@click.argument("name", metavar="NAME|FILE", shell_complete=_names)
@json_option
def flags(name: str, **words: Any) -> int:
    """Print the exact command line of a run with a policy, and the files that it needs.

    The options are those of gemtui run. The command reads its prompt from prompt.txt.
    """
    from gemtui.commands import run_dry as command

    return command.flags(name, RunArguments.of(words))


@policy.command(short_help="Show what would happen to a tool call, and why.")
@_situation
@click.option("--tool", metavar="T", required=True, help="The tool that is called.")
@click.option(
    "--args", metavar="JSON", default="{}", help="Its arguments as a JSON object; - reads stdin."
)
@click.option("--subagent", metavar="NAME", help="The subagent that calls it.")
@click.option(
    "--include-directory",
    "include_directories",
    metavar="DIR",
    multiple=True,
    type=click.Path(path_type=Path),
    help="Another folder that tools of the run may use; repeatable.",
)
@json_option
def explain(tool: str, args: str, subagent: str | None, as_json: bool, **situation: Any) -> int:
    """Show what would happen to a tool call, and which rule decides.

    The answer is for a run that gemtui would start with these policies, so your Gemini CLI policies
    and settings apply too; the answer names their files. Exit code 1 if Gemini CLI would drop one
    of the files, or a rule in it.
    """
    from gemtui.commands import policy_calls as command
    from gemtui.commands.policy_context import Situation

    return command.explain(
        Situation(**situation), tool=tool, args=args, subagent=subagent, as_json=as_json
    )


@policy.command(short_help="Replay recorded tool calls under a policy.")
@_situation
@_calls
@json_option
def replay(
    session: str | None, project: Path | None, everywhere: bool, as_json: bool, **situation: Any
) -> int:
    """Replay recorded tool calls: how many would a policy allow, ask about, and deny?

    By default the calls of the current folder's project, or all calls if it has none, including
    those of subagents. Exit code 1 if there are none.
    """
    from gemtui.commands import policy_calls as command
    from gemtui.commands.policy_context import Situation

    which = command.CallSelection(session=session, project=project, everywhere=everywhere)
    return command.replay(Situation(**situation), which, as_json=as_json)


@policy.command(short_help="Suggest rules from recorded tool calls.")
@_situation
@_calls
@output_option("Write the rules to FILE as a new policy, each with its evidence as a comment.")
@force_option
@json_option
def suggest(
    session: str | None,
    project: Path | None,
    everywhere: bool,
    output: Path | None,
    force: bool,
    as_json: bool,
    **situation: Any,
) -> int:
    """Suggest rules that allow recorded calls that succeeded; nothing is applied.

    Calls that are already allowed need no rule. Commands that could delete, change permissions,
    publish, or run any program get no rule and are listed. Exit code 1 if there are no recorded
    calls.
    """
    from gemtui.commands import policy_suggest
    from gemtui.commands.policy_calls import CallSelection
    from gemtui.commands.policy_context import Situation

    which = CallSelection(session=session, project=project, everywhere=everywhere)
    return policy_suggest.suggest(
        Situation(**situation), which, output=output, force=force, as_json=as_json
    )
