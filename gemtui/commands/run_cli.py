"""The arguments of `gemtui run`, parsed by click into one value."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

MODES = ("default", "auto_edit", "plan", "yolo")
LEVELS = ("allow", "ask", "deny")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunArguments:
    """The arguments of `gemtui run`; None or empty = not given."""

    prompt: str | None = None
    prompt_file: Path | None = None
    model: str | None = None
    approval_mode: str | None = None
    policy: tuple[str, ...] = ()
    file_write: str | None = None
    shell: str | None = None
    network: str | None = None
    only_tool: tuple[str, ...] = ()
    allow_tool: tuple[str, ...] = ()
    deny_tool: tuple[str, ...] = ()
    cwd: Path | None = None
    include_directory: tuple[Path, ...] = ()
    resume: str | None = None
    fork: str | None = None
    max_turns: int | None = None
    timeout: float | None = None
    idle_timeout: float | None = None
    sandbox: bool = False
    trust: bool = False
    as_json: bool = False
    dry_run: bool = False
    quiet: bool = False
    ask: bool = False
    fail_on_denied: bool = False


def setup_options(command: Any) -> Any:
    """The options that say how a run is set up, whatever it is asked; in the order of the help."""
    for word in reversed(_setup_words()):
        command = word(command)
    return command


def _setup_words() -> tuple[Callable[[Any], Any], ...]:
    return (
        click.option(
            "-m",
            "--model",
            metavar="M",
            help="Model, by Gemini CLI's name: auto, pro, flash, ...",
        ),
        click.option(
            "--approval-mode",
            type=click.Choice(MODES),
            help="What tools may do unasked; plan: only read; yolo: everything.",
        ),
        _level("--file-write", "Writing and editing files."),
        _level("--shell", "Shell commands."),
        _level("--network", "Web search and fetching pages."),
        _tools("--only-tool", "Offer only this tool, such as read_file; repeatable."),
        _tools("--allow-tool", "Allow this tool without confirmation; repeatable."),
        _tools("--deny-tool", "Deny this tool; repeatable."),
        click.option(
            "--policy",
            metavar="NAME|FILE",
            multiple=True,
            help="A policy file, or the name of one of gemtui's policies; repeatable.",
        ),
        click.option(
            "-C", "--cwd", metavar="DIR", type=click.Path(path_type=Path), help="Run in DIR."
        ),
        click.option(
            "--include-directory",
            metavar="DIR",
            multiple=True,
            type=click.Path(path_type=Path),
            help="Another folder that tools may use; repeatable.",
        ),
        click.option("--max-turns", metavar="N", type=int, help="Stop after N turns of the model."),
        click.option("--sandbox", is_flag=True, help="Run in Gemini CLI's sandbox."),
        click.option("--trust", is_flag=True, help="Trust the folder for this run only."),
    )


def run_options(complete_session: Callable[..., Any]) -> Callable[[Any], Any]:
    """The argument and the options, in the order of the help; sessions are completed by that."""
    words = (
        click.argument("prompt", required=False),
        click.option(
            "--prompt-file",
            metavar="FILE",
            type=click.Path(path_type=Path),
            help="Read the prompt from FILE.",
        ),
        setup_options,
        click.option(
            "--resume",
            metavar="ID",
            shell_complete=complete_session,
            help="Continue this session; ID is what `gemtui show` takes.",
        ),
        click.option(
            "--fork",
            metavar="ID[:N]",
            shell_complete=complete_session,
            help="Continue in a copy of this session; with N, only of what comes before prompt N.",
        ),
        _seconds("--timeout", "Stop a run that takes longer."),
        _seconds("--idle-timeout", "Stop a run that prints nothing for this long."),
        click.option(
            "--ask",
            is_flag=True,
            help="Ask in this terminal before each call that needs approval. Needs "
            "gemtui's extension.",
        ),
        click.option(
            "--fail-on-denied",
            is_flag=True,
            help="Exit with 1 if a tool call was denied, even if the run finished without it.",
        ),
        click.option("--json", "as_json", is_flag=True, help="Print events as JSON, one per line."),
        click.option(
            "--dry-run", is_flag=True, help="Print the exact command instead of running it."
        ),
        click.option("--quiet", is_flag=True, help="Print only errors to stderr."),
    )

    def decorate(command: Any) -> Any:
        for word in reversed(words):
            command = word(command)
        return command

    return decorate


def _level(name: str, help: str) -> Callable[[Any], Any]:
    return click.option(name, type=click.Choice(LEVELS), help=help)


def _tools(name: str, help: str) -> Callable[[Any], Any]:
    return click.option(name, metavar="T", multiple=True, help=help)


class _Seconds(click.ParamType):  # type: ignore[type-arg]  # older ones take no argument
    """A time limit as `seconds` of the options reads it."""

    name = "time"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """The seconds; fails as a usage error."""
        from gemtui.agent.options import seconds
        from gemtui.errors import OptionError

        try:
            return seconds(str(value))
        except OptionError as error:
            self.fail(f"{error}.", param, ctx)


def _seconds(name: str, help: str) -> Callable[[Any], Any]:
    return click.option(
        name, metavar="S", type=_Seconds(), help=f"{help} In seconds, or as 90s, 10m, 2h."
    )
