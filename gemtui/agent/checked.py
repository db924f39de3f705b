"""Policy files looked at before a run: what is broken keeps it from starting (conformance 58).

The files that a run names must hold: the CLI would drop what is wrong in them and go on without it.
The user's own files are the user's, and hold for every session: what is broken there is said, and
the run goes on as any other session would.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from gemtui.errors import OptionError
from gemtui.policy.rules import Finding, Severity

_SAID = 3


def refuse_broken(policies: Sequence[Path]) -> None:
    """Raise OptionError for the first thing that the CLI would drop or ignore in these files."""
    errors = _found(policies, Severity.ERROR)
    if errors:
        raise OptionError(f"policies: {finding_words(errors[0])}{_more(errors[1:])}")


def remarks(policies: Sequence[Path]) -> Iterator[str]:
    """What these files say and hardly mean; the first few, and how to see the rest."""
    warnings = _found(policies, Severity.WARNING)
    for finding in warnings[:_SAID]:
        yield finding_words(finding)
    if warnings[_SAID:]:
        yield f"the policies have more warnings{_more(warnings[_SAID:])}"


def broken_at_home(policies: Sequence[Path]) -> Iterator[str]:
    """What is broken in the user's own policy files, which every session of the CLI loads."""
    errors = _found(policies, Severity.ERROR)
    if errors:
        more = _more(errors[1:])
        yield f"in your own policies, as in every session: {finding_words(errors[0])}{more}"


def finding_words(finding: Finding) -> str:
    """A finding as one line: file, rule, field, what is wrong, and the way out."""
    place = f", rule {finding.rule}" if finding.rule else ""
    field = f", {finding.field}" if finding.field else ""
    way_out = f": {finding.way_out}" if finding.way_out else ""
    return f"{finding.file}{place}{field}: {finding.message}{way_out}"


def _found(policies: Sequence[Path], severity: Severity) -> list[Finding]:
    """The findings of that kind. The checks are loaded only where there is a file to check."""
    if not policies:
        return []
    from gemtui.policy.check import check_files

    return [each for each in check_files(policies) if each.severity is severity]


def _more(findings: Sequence[Finding]) -> str:
    if not findings:
        return ""
    files = " ".join(dict.fromkeys(str(each.file) for each in findings))
    return f" ({len(findings)} more: gemtui policy check {files})"
