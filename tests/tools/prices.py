"""Renew the table of prices before a release, from the one that the package litellm carries.

`python -m tests.tools.prices WHEEL`, with the wheel that `pip download --no-deps litellm` has left.
Only models that Gemini CLI knows are taken, and those of Claude Code by their names without a date;
those that the package lacks stay as they are.
"""

from __future__ import annotations

import json
import re
import sys
import tomllib
import zipfile
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from gemtui.agent.detect import MODELS

TABLE = Path(__file__).parents[2] / "gemtui/stats/prices.toml"
_NAMES = {
    "input": "input_cost_per_token",
    "output": "output_cost_per_token",
    "cached": "cache_read_input_token_cost",
}
_WRITTEN = "cache_creation_input_token_cost"
_CLAUDE = re.compile(r"claude-(?!\d)[a-z]+-\d+(-\d{1,2})?")
_LONG = "_above_200k_tokens"


def main(wheel: Path) -> None:
    """Write the table anew."""
    with zipfile.ZipFile(wheel) as files:
        known = json.loads(files.read("litellm/model_prices_and_context_window_backup.json"))
    version = wheel.name.split("-")[1]
    TABLE.write_text(renewed(TABLE.read_text(), known, version, datetime.now(UTC).date()))


def renewed(table: str, known: Mapping[str, Any], version: str, today: date) -> str:
    """Return the table with the prices of `known`, and where they are from."""
    prices = tomllib.loads(table)["models"]
    older = set(prices)
    names = {name: f"gemini/{name}" for name in MODELS}
    names |= {name: name for name in known if _CLAUDE.fullmatch(name)}
    for name, theirs in names.items():
        if (facts := known.get(theirs)) and "input_cost_per_token" in facts:
            prices[name] = dict(_price(facts))
            older.discard(name)
    source = f"# Source: litellm {version}; not in it, older: {', '.join(sorted(older)) or 'none'}."
    head = re.sub(r"(?m)^# Source: .*$", source, table.partition("[models.")[0])
    head = re.sub(r"(?m)^date = .*$", f"date = {today}", head)
    return head + "\n".join("\n".join(_lines(name, prices[name])) + "\n" for name in sorted(prices))


def _price(facts: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Prices for a million tokens; without one of its own, cached input costs what input does."""
    yield "context", facts["max_input_tokens"]
    full = {name: facts.get(key, facts[_NAMES["input"]]) for name, key in _NAMES.items()}
    yield from ((name, _dollars(each)) for name, each in full.items())
    if _WRITTEN in facts:
        yield "written", _dollars(facts[_WRITTEN])
    if _NAMES["input"] + _LONG in facts:
        long = {name: facts.get(key + _LONG, full[name]) for name, key in _NAMES.items()}
        yield "long", {name: _dollars(each) for name, each in long.items()}


def _dollars(one: float) -> float:
    return round(one * 1_000_000, 6)


def _lines(name: str, price: Mapping[str, Any]) -> Iterator[str]:
    yield f'[models."{name}"]'
    for key, value in price.items():
        if isinstance(value, Mapping):
            inner = ", ".join(f"{each} = {number}" for each, number in value.items())
            yield f"{key} = {{ {inner} }}"
        else:
            yield f"{key} = {value}"


if __name__ == "__main__":
    main(Path(sys.argv[1]))
