"""Parse the arguments of `gemtui run`, including the options for the run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from gemtui.agent.options import RunOption

MODES = ("default", "auto_edit", "plan", "yolo")
_OF_ONE_RUN = ("resume", "ask", "timeout", "idle_timeout", "budget", "wait_for_quota")
"""Options that concern a single run, and so aren't offered for a reusable setup."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunArguments:
    """The arguments of `gemtui run`, after parsing.

    `options`: the values of the options for the run that were given, by name.
    """

    prompt: str | None = None
    prompt_file: Path | None = None
    fork: str | None = None
    each_model: tuple[str, ...] = ()
    each_policy: tuple[str, ...] = ()
    fail_on_denied: bool = False
    as_json: bool = False
    dry_run: bool = False
    quiet: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, words: Mapping[str, Any]) -> RunArguments:
        """Create an instance from all arguments that click has parsed, by name."""
        own = {name: words[name] for name in cls.__slots__ if name in words}
        given = {name: value for name, value in words.items() if name not in own}
        return cls(**own, options={name: value for name, value in given.items() if _is_set(value)})


def _is_set(value: object) -> bool:
    return value is not None and value is not False and value != ()


class SetupCommand(click.Command):
    """A click command with the options that set up a run.

    The modules that define these options are imported only when the command is used.
    """

    resume_completion: Callable[..., Any] | None = None
    """Completes the session's id for `--resume`.

    None leaves out the options that concern a single run.
    """

    @cached_property
    def _declared(self) -> list[click.Option]:
        from gemtui.agent.options import run_options

        return [
            self._option(each)
            for each in run_options()
            if each.flags and (self.resume_completion or each.name not in _OF_ONE_RUN)
        ]

    def _option(self, option: RunOption) -> click.Option:
        from gemtui.agent.options import OptionKind

        more: dict[str, Any] = {"metavar": option.metavar, "help": option.help}
        match option.kind:
            case OptionKind.SWITCH:
                more["is_flag"] = True
            case OptionKind.CHOICE:
                more["type"] = click.Choice([str(value) for value in option.values])
            case OptionKind.NUMBER:
                more["type"] = int
            case OptionKind.SECONDS:
                more["type"] = _Seconds()
            case OptionKind.DOLLARS:
                more["type"] = _Dollars()
            case OptionKind.PATH:
                more["type"] = click.Path()
            case OptionKind.PATHS:
                more |= {"type": click.Path(), "multiple": True}
            case OptionKind.NAMES:
                more["multiple"] = True
        if option.name == "resume":
            more["shell_complete"] = self.resume_completion
        return click.Option([*option.flags, option.name], **more)

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the command's parameters: the options for the run come first."""
        return [*self._declared, *super().get_params(ctx)]


def run_command(complete_session: Callable[..., Any]) -> type[SetupCommand]:
    """Return the command class of `gemtui run`, with all options for a run.

    `complete_session`: completes session ids in a shell.
    """

    class RunCommand(SetupCommand):
        resume_completion = staticmethod(complete_session)

    return RunCommand


def run_arguments(command: Any) -> Any:
    """Add to a command the argument and the options that only `gemtui run` has."""
    for word in (
        click.option("--quiet", is_flag=True, help="Print only errors to stderr."),
        click.option(
            "--fail-on-denied", is_flag=True, help="Exit with 1 if a tool call was denied, even if the run succeeded."
        ),
        click.option(
            "--fork",
            metavar="ID[:N]",
            help=("Continue in a copy of this session; with N, copy only what comes before prompt N."),
        ),
        click.option(
            "--each-policy",
            metavar="NAME|FILE",
            multiple=True,
            help=("Run the prompt with each of these policies in parallel, each run in its own worktree."),
        ),
        click.option(
            "--each-model",
            metavar="M",
            multiple=True,
            help=("Run the prompt with each of these models in parallel, each run in its own worktree."),
        ),
        click.option("--dry-run", is_flag=True, help="Print the exact command instead of running it."),
        click.option("--json", "as_json", is_flag=True, help="Print events as JSON, one per line."),
        click.option(
            "--prompt-file", metavar="FILE", type=click.Path(path_type=Path), help="Read the prompt from FILE."
        ),
        click.argument("prompt", required=False),
    ):
        command = word(command)
    return command


class _Seconds(click.ParamType):  # type: ignore[type-arg]  # not generic in older click
    """Parses a time limit with `gemtui.agent.options.parse_seconds`."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the number of seconds; an invalid value is a usage error."""
        from gemtui.agent.options import parse_seconds
        from gemtui.errors import OptionError

        try:
            return parse_seconds(str(value))
        except OptionError as error:
            self.fail(f"{error}.", param, ctx)


class _Dollars(click.ParamType):  # type: ignore[type-arg]  # not generic in older click
    """Parses an amount of money with `gemtui.agent.options.dollars`."""

    name = "dollars"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the US dollars; an invalid value is a usage error."""
        from gemtui.agent.options import dollars
        from gemtui.errors import OptionError

        try:
            return dollars(str(value))
        except OptionError as error:
            self.fail(f"{error}.", param, ctx)
