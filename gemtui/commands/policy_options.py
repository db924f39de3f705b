"""The options of `gemtui policy`: the run to assume, and the recorded calls to use."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from functools import partial, wraps
from pathlib import Path
from typing import Any

import click

from gemtui.commands.output import note
from gemtui.commands.session_choice import choose, index_of_user, project_in_use
from gemtui.commands.shared_options import policy_names
from gemtui.errors import OptionError, PolicyNotFound
from gemtui.files import is_folder, path_exists
from gemtui.paths import current_folder, typed_path
from gemtui.policy.check.check_policy import check_files
from gemtui.policy.edit.store import list_policies
from gemtui.policy.engine.decide import Engine
from gemtui.policy.file.levels import rule_mode
from gemtui.policy.file.policy_files import find_policy
from gemtui.policy.model.rules import ApprovalMode, RecordedCall, Severity
from gemtui.runs.call_history import recorded_calls
from gemtui.runs.effective_policy import EffectivePolicy, effective_policy
from gemtui.sessions.catalog.index import read_store
from gemtui.sessions.catalog.selection import listed_sessions, sessions_with_calls
from gemtui.sessions.catalog.summary import Summary
from gemtui.sessions.store.store import Problem


class _Mode(click.Choice[str]):
    """Parses an approval mode, as spelled by the CLI or in rules."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the mode as an enum member."""
        try:
            return rule_mode(value)
        except OptionError:
            return super().convert(value, param, ctx)


mode_option = click.option(
    "--mode",
    "--approval-mode",
    type=_Mode([each.value for each in ApprovalMode]),
    default="default",
    show_default=True,
    help="Use this approval mode.",
)


# --- the run -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """Describes the run in which calls are assumed to be made.

    `policies`: names, files or folders of policies. `mode`: the approval mode. `interactive`:
    whether the CLI can ask the user. `alone`: leave out the user's own policy files. `admin`: admin
    policy files. `settings`: a file to use instead of the machine's settings. `allowed_tools`,
    `include_directories`: the values of the CLI's options.
    """

    policies: Sequence[str] = ()
    mode: ApprovalMode = ApprovalMode.DEFAULT
    interactive: bool = False
    alone: bool = False
    admin: Sequence[Path] = ()
    settings: Path | None = None
    allowed_tools: Sequence[str] = ()
    include_directories: Sequence[Path] = ()

    def load_policy(self, workspace: Path | None) -> EffectivePolicy:
        """Return the rules and settings that would be in force in such a run.

        `workspace`: the run's folder; None if unknown. Raises PolicyNotFound, OptionError, OSError,
        click.UsageError.
        """
        missing = next((path for path in self.admin if not path_exists(path)), None)
        if missing is not None:
            raise click.UsageError(
                f"--admin-policy: {missing} does not exist: give an existing file"
            )
        for path in self.include_directories:
            if not is_folder(path):
                raise click.UsageError(
                    f"--include-directory: {path} is not a folder: give an existing folder"
                )
        return effective_policy(
            self.named,
            alone=self.alone,
            admin=self.admin,
            settings=self.settings,
            allowed_tools=self.allowed_tools,
            workspace=workspace,
            include_directories=self.include_directories,
        )

    @property
    def named(self) -> Sequence[Path]:
        """The files and folders that `policies` names.

        Raises PolicyNotFound, click.UsageError.
        """
        return [path for word in self.policies for path in _named(word)]

    def engine(self, stands: EffectivePolicy) -> Engine:
        """Return an engine that decides calls in such a run.

        `stands`: the result of `load_policy`.
        """
        return Engine(
            stands.policy, mode=self.mode, interactive=self.interactive, setup=stands.setup
        )

    @property
    def words(self) -> str:
        """The mode and the kind of run, such as "mode default, headless"."""
        return f"mode {self.mode.value}, {'interactive' if self.interactive else 'headless'}"

    def report_broken(self, stands: EffectivePolicy) -> int:
        """Report policy files and rules that the CLI ignores, and unreadable settings.

        Returns 1 if there are any, or if there are other errors, such as `[[rules]]`, which Gemini
        CLI silently skips or misinterprets. `stands`: the result of `load_policy`.
        """
        for problem in stands.problems:
            note(problem)
        errors = [
            finding for finding in stands.policy.findings if finding.severity is Severity.ERROR
        ]
        for finding in errors:
            where = f"rule {finding.rule}: " if finding.rule else ""
            note(f"{finding.file}: {where}{finding.message}")
        reported = {Path(finding.file) for finding in errors}
        more = Counter(
            path
            for finding in check_files((*stands.files, *stands.admin))
            if finding.severity is Severity.ERROR and not is_folder(path := Path(finding.file))
        )
        for path, number in more.items():
            if path not in reported:
                word = "an error" if number == 1 else f"{number} errors"
                stops = {path, path.parent}.intersection(self.named)
                run = ", so gemtui starts no runs with it" if stops else ""
                note(f"{path} has {word}{run}: see gemtui policy check {path}")
        return 1 if errors or more or stands.problems else 0


def _named(word: str) -> Iterator[Path]:
    """Yield the files and folders that one `--policy` value names.

    The value is split at commas, as the CLI does.
    """
    if not word.strip():
        raise click.UsageError("--policy is empty: give a policy's name or a file")
    if "," in word and not path_exists(typed_path(word)):
        for part in filter(None, map(str.strip, word.split(","))):
            yield from _named(part)
        return
    path = find_listed(word, folders=True)
    if "," in str(path):
        raise click.UsageError(
            f"--policy: {path} contains a comma, which Gemini CLI reads as the end of the path: "
            "rename it"
        )
    yield path


def find_listed(word: str, *, folders: bool = False) -> Path:
    """Resolve a path, or a name that `gemtui policy list` shows, to the path of a policy file.

    `folders`: also accept the path of a folder. Raises PolicyNotFound.
    """
    try:
        return find_policy(word, folders=folders)
    except PolicyNotFound:
        folder = current_folder()
        settings = effective_policy(workspace=folder).settings
        listed = list_policies(settings.policy_paths(folder), settings.admin_policies(folder))
        for file in listed:
            if word in (file.name, file.path.name):
                return file.path
        raise


def policy_arguments(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add to a command arguments and an option that name policies; it gets them as `policies`."""

    @wraps(command)
    def named(named: tuple[str, ...], policies: tuple[str, ...], **words: Any) -> Any:
        return command(policies=(*named, *policies), **words)

    option = click.option(
        "--policy",
        "policies",
        metavar="NAME|FILE",
        multiple=True,
        shell_complete=policy_names,
        help=(
            "The same as NAME|FILE: a policy file, a folder of them, or one of gemtui's "
            "policies; repeatable."
        ),
    )
    argument = click.argument(
        "named", metavar="[NAME|FILE]...", nargs=-1, shell_complete=policy_names
    )
    return argument(option(named))


def situation_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add to a command what describes a run; it gets a `Situation`, as `situation`.

    Policies may be given as arguments or with `--policy`, in each case by name or as files.
    """

    @wraps(command)
    def described(**words: Any) -> Any:
        values = {
            field.name: words.pop(field.name) for field in fields(Situation) if field.name in words
        }
        return command(situation=Situation(**values), **words)

    added: Callable[..., Any] = described
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
            "--alone",
            is_flag=True,
            help="Ignore your own Gemini CLI policies, as `gemini --policy FILE` does.",
        ),
        click.option(
            "--interactive",
            is_flag=True,
            help=(
                "Decide as in an interactive session, where you can be asked, not as in a "
                "headless run."
            ),
        ),
        mode_option,
        policy_arguments,
    ):
        added = option(added)
    return added


# --- the calls -----------------------------------------------------------------------------------


@dataclass(kw_only=True)
class SelectedCalls:
    """The sessions with the selected calls, and what was found while reading them.

    `workspace`: the folder in which the calls were made; None if unknown, or if there may be
    several. `problems`: what could not be read so far. `by_subagents`: how many of the calls read
    so far were made by subagents.
    """

    sessions: tuple[Summary, ...]
    workspace: Path | None
    problems: list[Problem] = field(default_factory=list)
    by_subagents: int = 0

    def calls(self) -> Iterator[tuple[RecordedCall, ...]]:
        """Yield the calls in batches.

        Sessions that can't be read are added to `problems`.
        """
        for step in recorded_calls(self.sessions):
            if step.problem is not None:
                self.problems.append(step.problem)
            self.by_subagents += sum(recorded.call.subagent is not None for recorded in step.calls)
            yield step.calls

    def report_problems(self) -> None:
        """Report on stderr which sessions could not be read."""
        if self.problems:
            first, number = self.problems[0], len(self.problems)
            more = f" and {number - 1} more" if number > 1 else ""
            note(f"some sessions could not be read: {first.path} {first.what}{more}")


@dataclass(frozen=True, slots=True, kw_only=True)
class CallSelection:
    """A choice of recorded calls: those of one session, of one project, or all.

    By default, these are the calls of the current folder's project, or all calls if it has no
    sessions.
    """

    session: str | None = None
    project: Path | None = None
    everywhere: bool = False

    def read(self) -> SelectedCalls:
        """Find the sessions that contain the calls.

        Raises SessionNotFound, SessionAmbiguous, StoreUnreadable.
        """
        with index_of_user() as index:
            one = None if self.session is None else choose(self.session, index)
            snapshot = read_store(index, project=self.project)
        listed = partial(listed_sessions, snapshot, hidden=False)
        project = None if one else project_in_use(listed, self.project, everywhere=self.everywhere)
        workspace = project if one is None else one.folder
        read = SelectedCalls(
            sessions=sessions_with_calls(snapshot, session=one, project=project),
            workspace=workspace,
        )
        if one is None:
            read.problems += snapshot.unreadable
        return read


def call_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add to a command the options that select calls; it gets a `CallSelection`, as `which`."""

    @wraps(command)
    def selected(session: str | None, project: Path | None, everywhere: bool, **words: Any) -> Any:
        if (session is not None) + (project is not None) + everywhere > 1:
            raise click.UsageError(
                "--session, --project and --everywhere can't be combined: use only one of them"
            )
        which = CallSelection(session=session, project=project, everywhere=everywhere)
        return command(which=which, **words)

    added: Callable[..., Any] = selected
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
        added = option(added)
    return added
