"""Check policy files, and compare gemtui's policy engine with the installed CLI."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gemtui.agent.trust import folder_settings
from gemtui.files import path_exists
from gemtui.paths import current_folder
from gemtui.policy.check.check_policy import check_files
from gemtui.policy.file.policy_files import is_empty_folder, named_policies, policies_dir, policy_files
from gemtui.policy.model.rules import CHECKED_AGAINST, Severity
from gemtui.text import counted


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyPlace:
    """The policy files in one folder, or a single policy file.

    `ours`: whether it belongs to gemtui. `files`, `errors`, `warnings`: how many there are.
    """

    path: Path
    ours: bool
    files: int
    errors: int
    warnings: int

    @property
    def check(self) -> str:
        """The shell command that prints the findings."""
        return f"gemtui policy check {shlex.quote(str(self.path))}"

    def to_dict(self) -> dict[str, Any]:
        """Return this object as JSON values for `gemtui doctor --json`."""
        return {
            "path": str(self.path),
            "ours": self.ours,
            "files": self.files,
            "errors": self.errors,
            "warnings": self.warnings,
            "check": self.check,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyReport:
    """The policy files that runs may use; folders that don't exist are left out."""

    places: tuple[PolicyPlace, ...]

    def to_dict(self, installed: str | None) -> dict[str, Any]:
        """Return the report as JSON values for `gemtui doctor --json`.

        `installed`: the installed CLI's version, which is compared with the version gemtui's policy
        engine was checked against; None if unknown.
        """
        return {
            "engine": CHECKED_AGAINST,
            "engine_is_installed": None if installed is None else installed == CHECKED_AGAINST,
            "places": [place.to_dict() for place in self.places],
        }


def look_at_policies(environ: Mapping[str, str]) -> PolicyReport:
    """Check gemtui's policies, and the policies that every CLI session loads."""
    here = current_folder()
    users = folder_settings(here, environ).user_policies(here)
    places = [(policies_dir(), True), *((path, False) for path in users)]
    return PolicyReport(places=tuple(_look(path, ours) for path, ours in places if path_exists(path)))


def _look(path: Path, ours: bool) -> PolicyPlace:
    files = named_policies() if ours else policy_files(path)
    checked = files if ours or is_empty_folder(path) else [path]
    found = Counter(finding.severity for each in checked for finding in check_files([each]))
    return PolicyPlace(
        path=path, ours=ours, files=len(files), errors=found[Severity.ERROR], warnings=found[Severity.WARNING]
    )


def policy_problems(policies: PolicyReport) -> Iterator[str]:
    """Yield a line for each folder or file with errors in its rules, with the fix."""
    for place in policies.places:
        if place.errors:
            what = (
                "gemtui starts no runs until they are fixed" if place.ours else "Gemini CLI ignores the affected rules"
            )
            yield f"{place.path}: {counted(place.errors, 'error')}, {what}: {place.check}"


def policy_rows(policies: PolicyReport, installed: str | None) -> Iterator[tuple[str, str]]:
    """Yield the rows of the report on policies as (name, text)."""
    yield "policies", _engine_words(installed)
    for place in policies.places:
        whose = "ours" if place.ours else "yours, used in every session"
        found = f"{counted(place.errors, 'error')}, {counted(place.warnings, 'warning')}"
        yield "", f"{place.path} ({whose}): {counted(place.files, 'file')}, {found}"
        if place.errors or place.warnings:
            yield "", f"to see the findings: {place.check}"


def _engine_words(installed: str | None) -> str:
    checked = f"gemtui's policy engine was checked against Gemini CLI {CHECKED_AGAINST}"
    if installed is None:
        return checked
    if installed == CHECKED_AGAINST:
        return f"{checked}, the installed version"
    return f"{checked}, but {installed} is installed, which may decide some calls differently"
