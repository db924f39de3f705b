"""Editing a policy: rules added one by one, one switched off among many, a large file opened."""

from __future__ import annotations

import time
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median

from gemtui.policy.edit.document import Document
from gemtui.policy.edit.store import open_policy
from gemtui.policy.file.policy import Policy
from gemtui.policy.file.rule_codec import rules_to_toml
from gemtui.policy.model.rules import Rule
from tests.tools.bench.measure import Cost, Row, alone, medians
from tests.tools.bench.policies import make_policy

RULES, LARGE = 200, 500
TOGGLES = 20
"""Rules that are switched off, one after the other; the time of one is shown."""


def make_rules(number: int) -> tuple[Rule, ...]:
    """Rules of all kinds."""
    return Policy.parse(make_policy(number)).rules


def show(document: Document) -> None:
    """What the pane asks a document after each change."""
    assert len(document.problems) == len(document.rules) >= len(document.policy.rules)


# --- what is timed -------------------------------------------------------------------------------


def parsed(path: Path) -> None:
    """Floor: the same text, parsed by tomllib."""
    tomllib.loads(path.read_text())


def added(path: Path) -> None:
    """The rules of the file added to an empty one, one by one."""
    rules, document = Policy.load(path).rules, Document.parse("")
    began = time.perf_counter()
    for rule in rules:
        document = document.add(rule)
    _tell(path, time.perf_counter() - began)
    show(document)


def toggled(path: Path) -> None:
    """Rules of the file switched off, one after the other, each shown."""
    document = open_policy(path).document
    show(document)
    took = []
    for number in range(TOGGLES):
        began = time.perf_counter()
        document = document.enable(number * 9, False)
        show(document)
        took.append(time.perf_counter() - began)
    _tell(path, median(took))


def opened(path: Path) -> None:
    """The file opened and shown."""
    show(open_policy(path).document)


def _tell(path: Path, seconds: float) -> None:
    """Leave a time of less than the whole work beside the file."""
    path.with_suffix(".seconds").write_text(str(seconds))


def _cost(work: Callable[[Path], None], path: Path) -> Cost:
    told = path.with_suffix(".seconds")
    told.unlink(missing_ok=True)
    cost = alone(work, path)
    return Cost(seconds=float(told.read_text()), memory=cost.memory) if told.exists() else cost


def rows(folder: Path, repeat: int) -> Iterator[Row]:
    """Each beside its floor."""
    for number, work, what in (
        (RULES, added, f"{RULES} rules added to a policy, one by one"),
        (RULES, toggled, f"one of {RULES} rules switched off, and the policy shown"),
        (LARGE, opened, f"a policy of {LARGE} rules opened and shown"),
    ):
        path = folder / "edited.toml"
        path.write_text(rules_to_toml(make_rules(number)))
        runs = [[_cost(each, path) for each in (parsed, work)] for _ in range(repeat)]
        floor, cost = medians(runs)
        yield Row(what=what, cost=cost, floor="tomllib, the same rules", least=floor.seconds)
