"""A run of the benchmarks is compared with the figures that stand in the repository."""

from __future__ import annotations

from pathlib import Path

from tests.tools.bench.measure import Cost, Row
from tests.tools.bench.record import beside, figures, line, record, recorded, table


def row(seconds: float, what: str = "start") -> Row:
    return Row(what=what, cost=Cost(seconds=seconds, memory=50_000_000), floor="app", least=0.1)


def test_what_became_slower_is_said() -> None:
    before = [figures(row(0.2))]
    said = [beside(figures(row(seconds)), before) for seconds in (0.1, 0.2, 0.21, 0.3)]
    assert said == ["was 2.0: quicker", "was 2.0", "was 2.0", "was 2.0: slower"]
    assert beside(figures(row(0.2, what="another")), before) == "not recorded"


def test_memory_is_compared_with_memory() -> None:
    def at_rest(memory: int) -> Row:
        cost = Cost(seconds=0, memory=memory)
        return Row(what="at rest", cost=cost, floor="app", least_memory=50_000_000)

    before = [figures(at_rest(100_000_000))]
    assert beside(figures(at_rest(150_000_000)), before) == "was 2.0: more"
    assert line(before[0]) == "| at rest | – | app | 50 MB | 2.0 | 100 MB |"


def test_figures_take_the_place_of_those_of_the_same_line(tmp_path: Path) -> None:
    path = tmp_path / "recorded.json"
    record([figures(row(0.2)), figures(row(0.3, what="end"))], path)
    record([figures(row(0.1)), figures(row(0.4, what="new"))], path)
    assert [(each["what"], each["ms"]) for each in recorded(path)] == [
        ("start", 100),
        ("end", 300),
        ("new", 400),
    ]


def test_lines_of_smaller_stores_are_ratios_beside_the_largest(tmp_path: Path) -> None:
    path = tmp_path / "recorded.json"
    sizes = {"100": 0.11, "1,000": 0.12, "10,000": 0.3}
    commands = [row(time, what=f"gemtui doctor, {size} sessions") for size, time in sizes.items()]
    record(map(figures, [row(0.4, what="another"), *commands]), path)
    first, second = [text for text in table(path) if "50 MB" in text]
    assert first.startswith("| gemtui doctor, 10,000 sessions | 300 ms | app | 100 ms | 3.0 |")
    assert first.endswith(" | 1.2 | 1.1 |")
    assert second.startswith("| another | 400 ms |")


def test_the_table_has_what_was_measured_on_the_last_day(tmp_path: Path) -> None:
    path = tmp_path / "recorded.json"
    record([figures(row(0.1)), figures(row(0.2, what="old")) | {"date": "2026-01-01"}], path)
    rows = [text for text in table(path) if "50 MB" in text]
    assert [text.split(" | ")[0] for text in rows] == ["| start"]
