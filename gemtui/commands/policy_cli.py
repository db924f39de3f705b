"""The words of `gemtui policy`: read by click, handed on to the module that does it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from gemtui.commands.run_cli import MODES, RunArguments, SetupCommand
from gemtui.errors import OptionError

_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


class _Mode(click.Choice[str]):
    """An approval mode, by the CLI's word or as rules and other agents spell it."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The CLI's word."""
        from gemtui.policy.file.levels import approval_mode

        try:
            return approval_mode(value).value
        except OptionError:
            return super().convert(value, param, ctx)


def _names(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The names of gemtui's policies, else files."""
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
    help="A policy file, a folder of them, or the name of one of gemtui's; may be given again.",
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
    help="As where a person can be asked; else headless, as in `gemtui run`.",
)


def _situation(command: Callable[..., Any]) -> Callable[..., Any]:
    """In which run a call is decided."""
    for option in (
        click.option(
            "--allowed-tools",
            "--allowed-tool",
            "allowed_tools",
            metavar="T",
            multiple=True,
            help="As Gemini CLI has this option; may be given again.",
        ),
        click.option(
            "--settings",
            metavar="FILE",
            type=click.Path(path_type=Path),
            help="Gemini CLI's settings, instead of those of this machine.",
        ),
        click.option(
            "--admin-policy",
            "admin",
            metavar="FILE",
            multiple=True,
            type=click.Path(path_type=Path),
            help="A policy file of the admin tier, above all others; may be given again.",
        ),
        click.option(
            "--alone",
            is_flag=True,
            help="As `gemini --policy FILE`: without your own policies of Gemini CLI.",
        ),
        _interactive,
        _mode,
        _policy,
    ):
        command = option(command)
    return command


def _calls(command: Callable[..., Any]) -> Callable[..., Any]:
    """Which recorded calls are taken."""
    for option in (
        click.option("--everywhere", is_flag=True, help="The calls of all projects."),
        click.option(
            "--project",
            metavar="DIR",
            type=click.Path(file_okay=False, path_type=Path),
            help="The calls of this folder's sessions.",
        ),
        click.option("--session", metavar="ID", help="The calls of one session."),
    ):
        command = option(command)
    return command


@click.group(invoke_without_command=True)
@click.pass_context
def policy(ctx: click.Context) -> int:
    """Say what an agent may do, and see what that means.

    NAME is one of gemtui's policies, which stand in `policies` beside its settings file, or a
    policy file of Gemini CLI anywhere.
    """
    if ctx.invoked_subcommand is not None:
        return 0
    click.echo(ctx.get_help(), err=True)
    return 2


@policy.command(name="list", short_help="List the policies that there are.")
@_json
def list_(as_json: bool) -> int:
    """List the policies: gemtui's, yours of Gemini CLI, and those that its settings name."""
    from gemtui.commands import policy_files as command

    return command.list_all(as_json=as_json)


@policy.command(short_help="Print the rules of a policy.")
@click.argument("name", metavar="NAME|FILE", shell_complete=_names)
@_json
def show(name: str, as_json: bool) -> int:
    """Print the rules of a policy in the order in which they are asked.

    Those that are switched off come last. Exit code 1 if no rule can be read.
    """
    from gemtui.commands import policy_files as command

    return command.show(name, as_json=as_json)


@policy.command(short_help="Find what is wrong in policy files.")
@click.argument("files", metavar="FILE...", nargs=-1, required=True, shell_complete=_names)
@click.option("--strict", is_flag=True, help="Warnings give exit code 1, too.")
@_json
def check(files: tuple[str, ...], strict: bool, as_json: bool) -> int:
    """Find what Gemini CLI would drop or ignore in policy files, and what was hardly meant.

    FILE is a file, a folder of them, or the name of one of gemtui's policies. An error is what
    Gemini CLI drops or ignores, a warning what it accepts and was hardly meant. Exit code 1 on
    errors.
    """
    from gemtui.commands import policy_files as command

    return command.check(files, strict=strict, as_json=as_json)


@policy.command(cls=SetupCommand, short_help="Print the command of a run with a policy.")
@click.argument("name", metavar="NAME|FILE", shell_complete=_names)
@_json
def flags(name: str, **words: Any) -> int:
    """Print the exact command of a run with a policy, and the files that it needs.

    The options are those of gemtui run. The command takes its prompt from prompt.txt.
    """
    from gemtui.commands import policy_flags as command

    return command.flags(name, RunArguments.of(words))


@policy.command(short_help="Say what would happen to one tool call, and why.")
@_situation
@click.option("--tool", metavar="T", required=True, help="The tool that is called.")
@click.option(
    "--args", metavar="JSON", default="{}", help="Its arguments, an object; - reads stdin."
)
@click.option("--subagent", metavar="NAME", help="The subagent that calls it.")
@click.option(
    "--include-directory",
    "include_directories",
    metavar="DIR",
    multiple=True,
    type=click.Path(path_type=Path),
    help="A folder that tools of the run may use as well; may be given again.",
)
@_json
def explain(tool: str, args: str, subagent: str | None, as_json: bool, **situation: Any) -> int:
    """Say what would happen to one tool call, and which rule decides.

    In a run that gemtui would start with these policies: Gemini CLI's own policy files and
    settings take part; the files are named in the answer. Exit code 1 if Gemini CLI would drop
    one of them, or a rule in it.
    """
    from gemtui.commands import policy_calls as command
    from gemtui.commands.policy_context import Situation

    return command.explain(
        Situation(**situation), tool=tool, args=args, subagent=subagent, as_json=as_json
    )


@policy.command(short_help="Run a policy over recorded tool calls.")
@_situation
@_calls
@_json
def replay(
    session: str | None, project: Path | None, everywhere: bool, as_json: bool, **situation: Any
) -> int:
    """Run a policy over recorded tool calls: how many would be allowed, asked, denied.

    Without --session, --project or --everywhere, over those of the current folder's project, or
    all where it has none. The calls of subagents count as well. Exit code 1 if there are none.
    """
    from gemtui.commands import policy_calls as command
    from gemtui.commands.policy_context import Situation

    which = command.CallSelection(session=session, project=project, everywhere=everywhere)
    return command.replay(Situation(**situation), which, as_json=as_json)


@policy.command(short_help="Propose rules for what agents did.")
@_situation
@_calls
@click.option(
    "--output",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Write the rules to FILE, a new policy, each with its evidence as a comment.",
)
@_json
def suggest(
    session: str | None,
    project: Path | None,
    everywhere: bool,
    output: Path | None,
    as_json: bool,
    **situation: Any,
) -> int:
    """Propose rules that allow what agents did and succeeded with; nothing is applied.

    What is allowed already needs none. Commands that could delete, take rights, publish or run
    anything get none, which is said. Exit code 1 if there are no recorded calls.
    """
    from gemtui.commands import policy_suggest
    from gemtui.commands.policy_calls import CallSelection
    from gemtui.commands.policy_context import Situation

    which = CallSelection(session=session, project=project, everywhere=everywhere)
    return policy_suggest.suggest(Situation(**situation), which, output=output, as_json=as_json)
