"""Rules as the commands print them: in words, and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from gemtui.policy.model.rules import Rule
from gemtui.text import Clean, cells, visible_line

_NAMED = 4
"""Tools of a rule that are named."""


def rule_dict(rule: Rule | None) -> dict[str, Any] | None:
    """Return RULE of the reports: its place and priorities; null = no rule."""
    if rule is None:
        return None
    return {
        "source": rule.source,
        "index": rule.index,
        "tier": int(rule.tier),
        "priority": rule.priority,
        "effective": rule.effective,
    }


def place(rule: Rule) -> str:
    """Return where a rule comes from: `rule 2 of work.toml`, or the flag or setting."""
    source = Path(rule.source).name if rule.index else rule.source
    return f"rule {rule.index} of {source}" if rule.index else source


def subject(rule: Rule) -> str:
    """Return what a rule is about: `run_shell_command "git status", "git diff"`."""
    more = f" and {len(rule.tools) - _NAMED} more" if len(rule.tools) > _NAMED + 1 else ""
    names = rule.tools[:_NAMED] if more else rule.tools
    words = [", ".join(names) + more or "any tool"]
    if rule.mcp_name is not None:
        words.append(f"of server {rule.mcp_name}")
    if rule.subagent is not None:
        words.append(f"by {rule.subagent}")
    if rule.command_prefixes:
        words.append(", ".join(f'"{prefix}"' for prefix in rule.command_prefixes))
    elif rule.command_regex:
        words.append(f"commandRegex {rule.command_regex}")
    elif rule.args_pattern:
        words.append(f"argsPattern {rule.args_pattern}")
    return " ".join(words)


def columns(
    rows: Sequence[Sequence[str]],
    *,
    numbers: frozenset[int] = frozenset(),
    room: int | None = None,
) -> Iterator[Clean]:
    """Aligned lines. `numbers`: columns that end together. `room`: the cells of a line, beyond
    which the last column goes on below itself; None = it is as long as it is.
    """
    cleaned = [[Clean(visible_line(cell).strip()) for cell in row] for row in rows]
    if not cleaned:
        return
    widths = [max(map(cells, column)) for column in zip(*cleaned, strict=True)]
    for *front, last in cleaned:
        padded = []
        for at, cell in enumerate(front):
            blanks = " " * (widths[at] - cells(cell))
            padded.append(blanks + cell if at in numbers else cell + blanks)
        before = "".join(f"{cell}  " for cell in padded)
        for line in _wrapped(last, room and room - cells(Clean(before))):
            yield Clean(f"{before}{line}".rstrip())
            before = " " * cells(Clean(before))


_NARROW = 20
"""Cells below which a column is not broken into lines."""


def _wrapped(text: Clean, room: int | None) -> Iterator[str]:
    """The text in lines of at most `room` cells, broken at blanks; a longer word stays whole."""
    if room is None or room < _NARROW:
        yield text
        return
    line = ""
    for word in text.split(" "):
        longer = f"{line} {word}" if line else word
        if line and cells(Clean(longer)) > room:
            yield line
            longer = word
        line = longer
    yield line
