"""Estimate what tokens cost, for models in a price table."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from datetime import date
from functools import lru_cache
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from gemtui.errors import ConfigError, reason_of
from gemtui.files import read_small
from gemtui.paths import config_file
from gemtui.transcript.usage import Usage

FILE = "prices.toml"
_MILLION = 1_000_000
_DATE = re.compile(r"-20\d{6}\Z")
"""The date of a version at the end of a model's name."""


_Dollars = Annotated[float, Meta(ge=0, le=1_000_000)]


class Rate(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Prices in US dollars per million tokens.

    `written`: of input that is written to a cache; None if it costs what other input does.
    """

    input: _Dollars
    output: _Dollars
    cached: _Dollars
    written: _Dollars | None = None


class Price(Rate, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One model's prices.

    `long`: the prices if a prompt has more than LONG_PROMPT input tokens; None if they are the
    same. `context`: the most tokens that a prompt can have; None if unknown.
    """

    context: Annotated[int, Meta(gt=0)] | None = None
    long: Rate | None = None


class Prices(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The prices of models, as of `date`."""

    date: date
    models: Mapping[str, Price] = {}

    def cost(self, model: str, usage: Usage, *, long: bool) -> float | None:
        """Return the cost of answers in US dollars; None for a model without a price.

        `long`: whether they have more than LONG_PROMPT input tokens.
        """
        price = self._of(model)
        if price is None:
            return None
        rate: Rate = price.long if long and price.long is not None else price
        cached, written = usage.cached or 0, usage.written or 0
        fresh = (usage.input or 0) - cached - written + (usage.tool or 0)
        out = (usage.output or 0) + (usage.thoughts or 0)
        writing = rate.input if rate.written is None else rate.written
        given = fresh * rate.input + cached * rate.cached + written * writing
        return (given + out * rate.output) / _MILLION

    def context(self, model: str) -> int | None:
        """Return the most tokens that a prompt to the model can have; None if unknown."""
        price = self._of(model)
        return None if price is None else price.context

    def without(self, models: Iterable[str]) -> list[str]:
        """Return those of the models that have no price."""
        return [model for model in models if self._of(model) is None]

    def _of(self, model: str) -> Price | None:
        name = model.removeprefix("models/")
        return self.models.get(name) or self.models.get(_DATE.sub("", name))


class _Own(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The contents of the user's own price file."""

    date: date | None = None
    models: Mapping[str, Price] = {}


def load_prices(own: Path | None = None) -> Prices:
    """Load gemtui's prices, overridden by the user's own.

    `own`: the user's file, which need not exist; None means `prices.toml` beside the settings file.
    Raises ConfigError if the file is unreadable or invalid.
    """
    shipped, path = _shipped(), own or config_file().with_name(FILE)
    try:
        text = read_small(path).decode()
        mine = msgspec.convert(tomllib.loads(text), _Own)
    except FileNotFoundError:
        return shipped
    except OSError as error:
        raise ConfigError(
            f"{path}: can't be read ({reason_of(error)}): correct or remove it", path=path
        ) from error
    except (ValueError, RecursionError) as error:  # also for extreme lengths or nesting
        raise ConfigError(f"{path}: {error}: correct or remove it", path=path) from error
    return Prices(date=mine.date or shipped.date, models={**shipped.models, **mine.models})


@lru_cache(maxsize=1)
def _shipped() -> Prices:
    text = Path(__file__).with_name(FILE).read_text(encoding="utf-8")
    return msgspec.convert(tomllib.loads(text), Prices)
