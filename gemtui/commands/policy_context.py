"""The run that `gemtui policy` assumes when it applies policies to calls."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from gemtui.commands.output import note
from gemtui.files import is_folder, path_exists
from gemtui.paths import typed_path
from gemtui.policy.check.check_policy import check_files
from gemtui.policy.engine.decide import Engine
from gemtui.policy.file.policy_files import find_policy
from gemtui.policy.model.rules import ApprovalMode, Severity
from gemtui.runs.effective_policy import EffectivePolicy, effective_policy


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """Describes the run in which calls are assumed to be made.

    `policies`: names, files or folders of policies. `mode`: the approval mode. `interactive`:
    whether the CLI can ask the user. `alone`: leave out the user's own policy files. `admin`: admin
    policy files. `settings`: a file to use instead of the machine's settings. `allowed_tools`,
    `include_directories`: the values of the CLI's options.
    """

    policies: Sequence[str] = ()
    mode: str = "default"
    interactive: bool = False
    alone: bool = False
    admin: Sequence[Path] = ()
    settings: Path | None = None
    allowed_tools: Sequence[str] = ()
    include_directories: Sequence[Path] = ()

    @property
    def approval(self) -> ApprovalMode:
        """The approval mode, as an enum member."""
        return ApprovalMode(self.mode)

    def load_policy(self, workspace: Path | None) -> EffectivePolicy:
        """Return the rules and settings that would be in force in such a run.

        `workspace`: the run's folder; None if unknown. Raises PolicyNotFound, OptionError, OSError,
        click.UsageError.
        """
        missing = next((path for path in self.admin if not path_exists(path)), None)
        if missing is not None:
            raise click.UsageError(f"--admin-policy: {missing} does not exist: give an existing file")
        for path in self.include_directories:
            if not is_folder(path):
                raise click.UsageError(f"--include-directory: {path} is not a folder: give an existing folder")
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
        return Engine(stands.policy, mode=self.approval, interactive=self.interactive, setup=stands.setup)

    @property
    def words(self) -> str:
        """The mode and the kind of run, such as "mode default, headless"."""
        return f"mode {self.mode}, {'interactive' if self.interactive else 'headless'}"


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
    path = find_policy(word, folders=True)
    if "," in str(path):
        raise click.UsageError(
            f"--policy: {path} contains a comma, which Gemini CLI reads as the end of the path: rename it"
        )
    yield path


def report_broken(stands: EffectivePolicy, named: Sequence[Path]) -> int:
    """Report policy files and rules that the CLI ignores, and unreadable settings.

    Returns 1 if there are any, or if there are other errors, such as `[[rules]]`, which Gemini CLI
    silently skips or misinterprets. `stands`: the policies and settings in force. `named`: those
    policy files and folders with which gemtui would refuse to start a run because of such errors.
    """
    for problem in stands.problems:
        note(problem)
    errors = [each for each in stands.policy.findings if each.severity is Severity.ERROR]
    for each in errors:
        where = f"rule {each.rule}: " if each.rule else ""
        note(f"{each.file}: {where}{each.message}")
    said = {Path(each.file) for each in errors}
    more = Counter(
        path
        for each in check_files((*stands.files, *stands.admin))
        if each.severity is Severity.ERROR and not is_folder(path := Path(each.file))
    )
    for path, number in more.items():
        if path not in said:
            word = "an error" if number == 1 else f"{number} errors"
            stops = {path, path.parent}.intersection(named)
            run = ", so gemtui starts no runs with it" if stops else ""
            note(f"{path} has {word}{run}: see gemtui policy check {path}")
    return 1 if errors or more or stands.problems else 0
