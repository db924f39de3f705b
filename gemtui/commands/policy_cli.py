"""The command line of `gemtui policy`; other modules do the work."""

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
    """Parses an approval mode, as spelled by the CLI, policy rules or other agents."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the mode as the CLI spells it."""
        from gemtui.policy.file.levels import approval_mode

        try:
            return approval_mode(value).value
        except OptionError:
            return super().convert(value, param, ctx)


def _names(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete the name of one of gemtui's policies, or a file if no name matches."""
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
    "--mode", "--approval-mode", type=_Mode(MODES), default="default", show_default=True, help="Use this approval mode."
)
_interactive = click.option(
    "--interactive",
    is_flag=True,
    help="Decide as in an interactive session, where you can be asked, not as in a headless run.",
)


def _situation(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that describe a run to a command that decides calls by policies."""
    for option in (
        click.option(
            "--allowed-tools",
            "--allowed-tool",
            "allowed_tools",
            metavar="T",
            multiple=True,
            help="Assume that Gemini CLI is started with --allowed-tools T; repeatable.",
        ),
        click.option(
            "--settings",
            metavar="FILE",
            type=click.Path(path_type=Path),
            help="Use this Gemini CLI settings file instead of this machine's settings.",
        ),
        click.option(
            "--admin-policy",
            "admin",
            metavar="FILE",
            multiple=True,
            type=click.Path(path_type=Path),
            help="An admin policy file, which takes precedence over all others; repeatable.",
        ),
        click.option(
            "--alone", is_flag=True, help="Ignore your own Gemini CLI policies, as `gemini --policy FILE` does."
        ),
        _interactive,
        _mode,
        _policy,
    ):
        command = option(command)
    return command


def _calls(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add to a command the options that select recorded calls."""
    for option in (
        click.option("--everywhere", is_flag=True, help="Use recorded calls from all projects."),
        click.option(
            "--project",
            metavar="DIR",
            type=click.Path(file_okay=False, path_type=Path),
            help="Use recorded calls from this folder's sessions.",
        ),
        click.option("--session", metavar="ID", help="Use recorded calls from one session."),
    ):
        command = option(command)
    return command


@click.group(invoke_without_command=True)
@click.pass_context
def policy(ctx: click.Context) -> int:
    """Show, check, and test policies, which are rules for what an agent may do.

    NAME is one of gemtui's policies, which are in the folder `policies` next to its settings file.
    FILE is any Gemini CLI policy file.
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

    return command.print_policies(as_json=as_json)


@policy.command(short_help="Print the rules of a policy.")
@click.argument("name", metavar="NAME|FILE", shell_complete=_names)
@json_option
def show(name: str, as_json: bool) -> int:
    """Print the rules of a policy in the order in which Gemini CLI tries them.

    Rules that are turned off come last. Exit code 1 if no rule can be read.
    """
    from gemtui.commands import policy_files as command

    return command.print_policy(name, as_json=as_json)


@policy.command(short_help="Find mistakes in policy files.")
@click.argument("files", metavar="FILE...", nargs=-1, required=True, shell_complete=_names)
@click.option("--strict", is_flag=True, help="Exit with 1 on warnings, too.")
@click.option(
    "--replay",
    "since",
    metavar="DATE",
    type=Moment(),
    help="Also test the policy against successful calls since DATE, such as 30d or 2026-11-20.",
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
    """Find mistakes in policy files, and test the examples in them.

    FILE is a policy file, a folder of them, or the name of one of gemtui's policies. An error is
    something that Gemini CLI ignores, or an example that fails. An example is a comment such as #
    example: deny run_shell_command {"command": "git push"}. A warning is a rule that probably
    doesn't do what you meant, such as one that is easily bypassed. --session, --project,
    --everywhere and --mode are for --replay. Exit code 1 if there are errors, or if --replay finds
    a successful call that would now be denied.
    """
    from gemtui.commands import policy_files as command
    from gemtui.commands.policy_calls import CallSelection
    from gemtui.policy.model.rules import ApprovalMode

    which = CallSelection(session=session, project=project, everywhere=everywhere)
    replay = None
    if since is not None:
        replay = command.ReplayRequest(since=since, which=which, mode=ApprovalMode(mode))
    return command.print_findings(files, strict=strict, as_json=as_json, replay=replay)


@policy.command(short_help="Turn sentences into rules.")
@click.argument("sentences", metavar="SENTENCES", nargs=-1, required=True)
@click.option(
    "--write",
    "name",
    metavar="NAME",
    shell_complete=_names,
    help="Add the rules to this gemtui policy, creating it if necessary.",
)
@_mode
@json_option
def words(sentences: tuple[str, ...], name: str | None, mode: str, as_json: bool) -> int:
    """Create rules from sentences such as "allow edit src/**; deny git push; deny everything else".

    A sentence starts with allow, ask or deny. After that comes read or edit, which can be followed
    by a path; run, network or agents; mcp SERVER; the name of a tool; a command; or "everything
    else". Paths are relative to the current folder. For each rule, the output says what it covers
    and what it can't, and what happens to all other calls. Exit code 1 if a sentence describes no
    rule; then nothing is written.
    """
    from gemtui.commands import policy_words as command

    text = ";".join(sentences)
    return command.run(text, name=name, mode=mode, as_json=as_json)


@policy.command(cls=SetupCommand, short_help="Print the command line for a run with a policy.")
@click.argument("name", metavar="NAME|FILE", shell_complete=_names)
@json_option
def flags(name: str, **words: Any) -> int:
    """Print the exact command line for a run with a policy, and the files that it needs.

    The options are those of gemtui run. The command reads its prompt from prompt.txt.
    """
    from gemtui.commands import run_dry as command

    return command.print_flags(name, RunArguments.of(words))


@policy.command(short_help="Show how a tool call would be decided, and why.")
@_situation
@click.option("--tool", metavar="T", required=True, help="The name of the called tool.")
@click.option(
    "--args", metavar="JSON", default="{}", help="The call's arguments as a JSON object; - reads them from stdin."
)
@click.option("--subagent", metavar="NAME", help="The subagent that makes the call.")
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
    """Show how a tool call would be decided, and by which rule.

    The answer is for a run that gemtui would start with these policies. Your Gemini CLI policies
    and settings therefore apply, too, and the answer lists their files. Exit code 1 if Gemini CLI
    would ignore one of the files, or a rule in it.
    """
    from gemtui.commands import policy_calls as command
    from gemtui.commands.policy_context import Situation

    return command.print_explanation(Situation(**situation), tool=tool, args=args, subagent=subagent, as_json=as_json)


@policy.command(short_help="Replay recorded tool calls under a policy.")
@_situation
@_calls
@json_option
def replay(session: str | None, project: Path | None, everywhere: bool, as_json: bool, **situation: Any) -> int:
    """Replay recorded tool calls, and count how many a policy would allow, ask about, and deny.

    By default, the calls of the current folder's project are replayed, or all calls if it has none,
    including those of subagents. Exit code 1 if there are none.
    """
    from gemtui.commands import policy_calls as command
    from gemtui.commands.policy_context import Situation

    which = command.CallSelection(session=session, project=project, everywhere=everywhere)
    return command.print_replay(Situation(**situation), which, as_json=as_json)


@policy.command(short_help="Suggest rules from recorded tool calls.")
@_situation
@_calls
@output_option("Write the rules to FILE as a new policy, with the evidence for each as a comment.")
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
    return policy_suggest.run(Situation(**situation), which, output=output, force=force, as_json=as_json)
