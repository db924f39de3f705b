"""What a check has to say of one rule, before it is known which file and rule it is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from gemtui.policy.model.rules import ApprovalMode, Finding, Severity


class FindingDraft(NamedTuple):
    """One finding without its place; `field` and `way_out` as in `Finding`."""

    field: str
    message: str
    way_out: str = ""
    severity: Severity = Severity.ERROR
    mode: ApprovalMode | None = None


def warned(
    field: str, message: str, way_out: str = "", *, mode: ApprovalMode | None = None
) -> FindingDraft:
    """A warning: what the CLI accepts and what was hardly meant; `mode`: matters only there."""
    return FindingDraft(field, message, way_out, Severity.WARNING, mode)


def findings(said: Iterable[FindingDraft], file: Path | str, rule: int) -> Iterator[Finding]:
    """The findings of one rule of a file."""
    for field, message, way_out, severity, mode in said:
        yield Finding(
            file=file,
            rule=rule,
            field=field,
            severity=severity,
            message=message,
            way_out=way_out,
            mode=mode,
        )
