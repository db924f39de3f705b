"""What is wrong, or hardly meant, in a policy file (contract 4.3, policy-engine)."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from gemtui.policy.rules import Finding


def check_text(text: str, file: Path | str) -> tuple[Finding, ...]:
    """All findings of one file's text, in the order of its rules, those of the whole file first."""
    return ()


def check_files(paths: Iterable[Path]) -> tuple[Finding, ...]:
    """All findings of files and folders as `--policy` takes them, in the order given.

    Rules are compared across the files as well. A missing, unreadable or wrongly named file is a
    finding, never an exception.
    """
    raise NotImplementedError
