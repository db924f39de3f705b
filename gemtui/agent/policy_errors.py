"""Find errors in policy files.

If a run's options name a file, an error in it keeps the run from starting, because the CLI would
drop the faulty part of the file and continue without it. The user's own policy files apply to every
session, so errors in them are only reported, and the run starts anyway.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from gemtui.errors import OptionError
from gemtui.policy.file.policy_files import is_empty_folder
from gemtui.policy.model.rules import ApprovalMode, Finding, Severity

_SHOWN = 3


def policy_warnings(policies: Sequence[Path], mode: ApprovalMode | None) -> tuple[str, ...]:
    """Return the first few warnings about these policy files, and how to see the rest.

    `mode`: the run's approval mode; warnings about other modes are left out. Raises OptionError if
    a file contains an error, which is something that the CLI would drop or ignore.
    """
    found = [each for each in _findings(policies) if each.mode in (None, mode)]
    errors = [each for each in found if each.severity is Severity.ERROR]
    if errors:
        raise OptionError(f"policies: {finding_words(errors[0])}{_more(errors[1:])}")
    shown, rest = found[:_SHOWN], found[_SHOWN:]
    more = (f"there are more warnings about the policies{_more(rest)}",) if rest else ()
    return (*map(finding_words, shown), *more)


def errors_in_user_policies(policies: Sequence[Path]) -> Iterator[str]:
    """Yield one line about errors in the user's own policy files, if there are any.

    The line describes the first error and says how many more there are. Every session loads these
    files. An empty folder is an error only if a run's options name it.
    """
    found = _findings([path for path in policies if not is_empty_folder(path)])
    errors = [each for each in found if each.severity is Severity.ERROR]
    if errors:
        more = _more(errors[1:])
        yield f"in your own policies, which every session loads: {finding_words(errors[0])}{more}"


def finding_words(finding: Finding) -> str:
    """Format a finding as one line: file, rule, field, problem and suggestion."""
    place = f", rule {finding.rule}" if finding.rule else ""
    field = f", {finding.field}" if finding.field else ""
    way_out = f": {finding.way_out}" if finding.way_out else ""
    return f"{finding.file}{place}{field}: {finding.message}{way_out}"


def _findings(policies: Sequence[Path]) -> Sequence[Finding]:
    """Check policy files, and return all findings.

    The checks are imported lazily, because often there is no file to check.
    """
    if not policies:
        return ()
    from gemtui.policy.check.check_policy import check_files

    return check_files(policies)


def _more(findings: Sequence[Finding]) -> str:
    if not findings:
        return ""
    files = " ".join(dict.fromkeys(str(each.file) for each in findings))
    return f" ({len(findings)} more: gemtui policy check {files})"
