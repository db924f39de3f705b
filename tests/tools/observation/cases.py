"""Observed decisions: one call of one run with its policy files, settings, flags and mode.

Cases whose ids differ only behind the last `/` were the calls of one run, in that order; the order
matters where a call changes the mode or leaves something that a later one meets.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """How policy files were handed over. `kind`: policy (a flag each), policy_dir, admin, user
    (the user's folder), policy_paths (`values` as they stand behind `--policy`).
    """

    kind: str
    names: tuple[str, ...] = ()
    values: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What was observed. `outcome`: allowed, denied_by_policy, needs_confirmation, ask_user,
    not_offered, invalid_params, cli_error; `offered`: whether the model was told of the tool, None
    = the model was never asked. `error`, `message`: as the CLI gave them.
    """

    outcome: str
    offered: bool | None
    error: str | None = None
    message: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One call, its situation, and what was recorded of it; `scope` tells who decides."""

    id: str
    tool: str
    args: Mapping[str, Any]
    mode: str
    interactive: bool
    files: Mapping[str, str] = field(default_factory=dict)
    given: tuple[Given, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    flags: tuple[str, ...] = ()
    project_files: Mapping[str, str] = field(default_factory=dict)
    scope: str = "engine"
    seen: Seen | None = None

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Self:
        """A line of a file of cases; one without an outcome is still to be observed."""
        seen = None
        if "outcome" in row:
            seen = Seen(
                outcome=row["outcome"],
                offered=row.get("offered"),
                error=row.get("error_type"),
                message=row.get("message"),
            )
        return cls(
            id=row["id"],
            tool=row["tool"],
            args=row["args"],
            mode=row.get("mode", "default"),
            interactive=row.get("interactive", False),
            files=row.get("files", {}),
            given=tuple(
                Given(
                    kind=each["kind"],
                    names=tuple(each.get("names", ())),
                    values=tuple(each.get("values", ())),
                )
                for each in row.get("given", ())
            ),
            settings=row.get("settings", {}),
            flags=tuple(row.get("flags", ())),
            project_files=row.get("project_files", {}),
            scope=row.get("scope", "engine"),
            seen=seen,
        )

    @property
    def run(self) -> str:
        """The name of the run that this call was a part of."""
        return self.id.rpartition("/")[0] or self.id


def read_cases(path: Path) -> tuple[Case, ...]:
    """The cases of a JSON Lines file, in its order."""
    with path.open(encoding="utf-8") as lines:
        return tuple(Case.of(json.loads(line)) for line in lines if line.strip())


def in_runs(cases: Iterable[Case]) -> Iterator[tuple[Case, ...]]:
    """The cases of each run together, as they stand."""
    runs: dict[str, list[Case]] = {}
    for case in cases:
        runs.setdefault(case.run, []).append(case)
    yield from map(tuple, runs.values())
