"""Build findings about a rule before its file and number are known."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from gemtui.policy.model.rules import ApprovalMode, Finding, Severity


class FindingDraft(NamedTuple):
    """A finding without its file and rule number; the fields are those of `Finding`."""

    field: str
    message: str
    way_out: str = ""
    severity: Severity = Severity.ERROR
    mode: ApprovalMode | None = None


def warned(field: str, message: str, way_out: str = "", *, mode: ApprovalMode | None = None) -> FindingDraft:
    """Return a warning: the CLI accepts the input, but it was probably not intended.

    `field`: the key that the warning is about. `way_out`: what to write instead. `mode`: the only
    approval mode the warning concerns; None means all modes.
    """
    return FindingDraft(field, message, way_out, Severity.WARNING, mode)


def findings(drafts: Iterable[FindingDraft], file: Path | str, rule: int) -> Iterator[Finding]:
    """Turn drafts about one rule into findings.

    `rule`: the rule's 1-based number in the file; 0 means the file as a whole.
    """
    for field, message, way_out, severity, mode in drafts:
        yield Finding(file=file, rule=rule, field=field, severity=severity, message=message, way_out=way_out, mode=mode)
