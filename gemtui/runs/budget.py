"""Compare the cost of a run and of a day's sessions with their budgets.

This is done before a run and during it. Costs are estimated from the price table. An unknown cost
never counts as zero: if the model has no price, or its answers are recorded without token counts, a
run with a budget is not started, or is stopped.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

from gemtui.agent.detect import ALIASES
from gemtui.agent.options import AgentOptions, dollars_text
from gemtui.agent.output import NewEvents, TurnWatch
from gemtui.agent.run_folder import Request, RunFolder
from gemtui.agents import WORDS, Agent
from gemtui.errors import ConfigError, GemtuiError, NotASession, OptionError, message_of
from gemtui.kept.run_copies import session_files
from gemtui.paths import cache_dir, config_file, gemini_home
from gemtui.sessions.catalog.index import Index
from gemtui.sessions.read.session_log import SessionLog
from gemtui.sessions.store.store import Store
from gemtui.stats.conversation import sums_of
from gemtui.stats.prices import Prices, load_prices
from gemtui.stats.report import Sums, sums_since
from gemtui.transcript.model import Author, Outline

_STEP = 0.05
"""The shortest time, in seconds, between two checks of a run's cost."""
_FILES = 0.5
"""The shortest time, in seconds, between two searches for the session's files."""
_DAY = 30.0
"""Seconds between two checks of the other sessions' cost since midnight."""
_UNRECORDED = 2.0
"""How long to wait for an answer's token counts, in seconds.

The wait starts when the answer's tool calls have results. If there are no token counts by its end,
the cost counts as unknown.
"""
_OWN_PRICES = "add a price to prices.toml, or run without a budget"


def day_budget() -> float | None:
    """Return the user's limit for all of a day's sessions, in US dollars.

    None means no limit. Raises OptionError if the settings can't be read.
    """
    from gemtui.config import load_config

    try:
        return load_config(config_file()).day_budget or None
    except ConfigError as error:
        raise _refused(f"the daily budget is unknown: {error}") from None


def check_budget(options: AgentOptions, day: float | None, environ: Mapping[str, str]) -> None:
    """Raise OptionError if a budget is used up, or can't be enforced for a run.

    `day`: the result of `day_budget`. Reads today's sessions, which may take seconds.
    """
    if options.budget is None and day is None:
        return
    if options.agent is not Agent.GEMINI:
        program = WORDS[options.agent].program
        raise _refused(f"gemtui can't limit what {program} costs: run it without a budget")
    try:
        prices = load_prices()
    except ConfigError as error:
        raise _refused(f"{error}") from None
    model = options.model
    if model is not None and model not in ALIASES and prices.without([model]):
        raise _refused(f"there is no price for {model}: {_OWN_PRICES}")
    if day is None:
        return
    today = spent_today(gemini_home({**environ, **options.environment}), prices)
    if today.unpriced:
        named = ", ".join(sorted(today.unpriced))
        raise _refused(
            f"today's cost is unknown, because there is no price for {named}; add one to "
            "prices.toml"
        )
    if today.cost >= day:
        raise _refused(
            f"today's sessions cost {today.dollars}, and the setting day_budget is "
            f"{dollars_text(day)}"
        )


def _refused(what: str) -> OptionError:
    return OptionError(f"budget: {what}", option="budget", what=what)


def spent_today(home: Path, prices: Prices, *, but: str | None = None) -> Sums:
    """Return the tokens and cost of all sessions in a store since midnight.

    Reads the session files. `home`: the store. `but`: the id of a session to leave out, with its
    subagents.
    """
    day = datetime.now().astimezone().replace(hour=0, minute=0, second=0, microsecond=0)
    with closing(Index(home, cache=cache_dir())) as index:
        files = [file for file in index.files() if file.modified >= day]
        changed = index.sessions_in(files)
    sessions = [
        session for session in changed if but is None or but not in (session.id, session.parent)
    ]
    return sums_since(sessions, prices, day, home=home, cache=cache_dir())


class RunBudget:
    """Compares a working run's cost with its own budget and with the daily budget.

    Create this object before Gemini CLI starts, and call `close` at the end. Its methods can be
    called from several threads. Raises ConfigError if the prices can't be read.
    """

    def __init__(self, folder: RunFolder, request: Request) -> None:
        about = request.about
        self._limit, self._day = about.get("budget"), about.get("day_budget")
        self._prices = load_prices()
        self._home = gemini_home({**os.environ, **request.environ})
        self._id = about.get("resume") or about.get("session_id")
        self._init = NewEvents(folder.stdout, "init")
        self._turns = TurnWatch(folder.stdout, None)
        self._lock = threading.Lock()
        self._logs: dict[Path, SessionLog] = {}
        self._known: set[str] = set()
        """Ids of the messages that the session contained before the run resumed it."""
        self._spent, self._others = Sums(), Sums()
        self._day_problem: str | None = None
        self._agent_between = False
        self._reason: str | None = None
        self._held = False
        self._unclear = 0.0
        self._looked = self._searched = 0.0
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None
        if self._day is not None:
            self._look_at_day()
        if about.get("resume"):
            self._search()
            for log in self._logs.values():
                self._refresh(log)
                self._known.update(message.id for message in _messages(log))

    def exceeded(self) -> str | None:
        """Return why the model must not be called again, as a sentence.

        None means that it may be called, or that the run is not between two model calls.
        """
        with self._lock:
            now = time.monotonic()
            if now - self._looked < _STEP and not self._held:
                return None
            self._look(now)
            between = self._turns.between_turns()
            if self._reason is None and between:
                self._reason = self._unrecorded(now)
            elif not between:
                self._unclear = 0.0
            return self._reason if between or self._agent_between or self._held else None

    def may_prompt(self) -> bool:
        """Return whether another prompt may be sent.

        If not, `exceeded` returns the reason from then on.
        """
        with self._lock:
            self._look(time.monotonic())
            self._held = self._reason is not None
            return not self._held

    def close(self) -> None:
        """Stop watching the day's sessions and close the session's files."""
        self._closed.set()
        with self._lock:
            for log in self._logs.values():
                log.close()

    # --- what it has cost ------------------------------------------------------------------------

    def _look(self, now: float) -> None:
        """Read what is new in the session's files, and compare the cost with the budgets.

        `now`: the monotonic time.
        """
        self._looked = now
        if self._day is not None and self._thread is None:
            self._thread = threading.Thread(target=self._watch_day, name="day", daemon=True)
            self._thread.start()
        if now - self._searched >= _FILES:
            self._searched = now
            self._search()
        changed = sum(self._refresh(log) for log in self._logs.values())
        if changed:
            self._spent = sums_of(self._answers(), self._prices, datetime.now(UTC))
            agents = (log for path, log in self._logs.items() if path.parent.name == self._id)
            self._agent_between = any(map(_has_results, agents))
        self._reason = self._why()

    def _search(self) -> None:
        """Find the files of the run's session and of the session's subagents."""
        if self._id is None:
            self._id = self._told_id()
        if self._id is None:
            return
        mains = [path for path in self._logs if path.parent.name == "chats"]
        paths = [path for main in mains for path in (main.parent / self._id).glob("*.jsonl")]
        if not mains:
            paths = [file.path for file in session_files(Store(self._home), self._id)]
        for path in paths:
            self._logs.setdefault(path, SessionLog(path))

    def _told_id(self) -> str | None:
        """Return the session's id from the run's `init` event; None if there is none yet.

        The id that gemtui requested can't be used, because an older CLI chooses its own.
        """
        event = next(self._init.read(), {})
        id = event.get("session_id")
        return id if isinstance(id, str) and "/" not in id else None

    def _refresh(self, log: SessionLog) -> bool:
        """Read what has been added to a session's file; return whether anything was.

        A file that is still too short to be recognised is read again later. Raises OSError.
        """
        try:
            return log.refresh()
        except (NotASession, FileNotFoundError):
            return False

    def _answers(self) -> list[Outline]:
        """Return the model's answers that belong to this run."""
        return [
            message
            for log in self._logs.values()
            for message in _messages(log)
            if message.author is Author.MODEL and message.id not in self._known
        ]

    def _why(self) -> str | None:
        """Return why the recorded costs forbid another model call; None if they don't."""
        if self._spent.unpriced:
            named = ", ".join(sorted(self._spent.unpriced))
            return (
                f"The cost of this run is unknown, because there is no price for {named}; "
                f"{_OWN_PRICES}"
            )
        spent, limit, day = self._spent.cost, self._limit, self._day
        if limit is not None and spent >= limit:
            return f"This run has cost {_sum_text(spent)} of {dollars_text(limit)}"
        if day is None:
            return None
        if self._day_problem is not None:
            return f"Today's cost is unknown: {self._day_problem}"
        if self._others.unpriced:
            named = ", ".join(sorted(self._others.unpriced))
            return (
                f"Today's cost is unknown, because there is no price for {named}; add one to "
                "prices.toml"
            )
        if spent + self._others.cost >= day:
            today = _sum_text(spent + self._others.cost)
            return f"Today's sessions have cost {today} of {dollars_text(day)} (setting day_budget)"
        return None

    def _unrecorded(self, now: float) -> str | None:
        """If answers lack token counts, return a sentence saying the cost is unknown.

        Returns None until the counts have been missing for `_UNRECORDED` seconds.
        """
        answers = self._answers()
        if answers and all(answer.usage is not None for answer in answers):
            self._unclear = 0.0
            return None
        self._unclear = self._unclear or now
        if now - self._unclear < _UNRECORDED:
            return None
        return "The cost of this run is unknown, because its session contains no token counts"

    # --- the day ---------------------------------------------------------------------------------

    def _watch_day(self) -> None:
        """Add up the cost of the day's other sessions every `_DAY` seconds."""
        while not self._closed.wait(_DAY):
            self._look_at_day()

    def _look_at_day(self) -> None:
        try:
            others, problem = spent_today(self._home, self._prices, but=self._id), None
        except (GemtuiError, OSError, sqlite3.Error) as error:
            others, problem = Sums(), message_of(error)
        with self._lock:
            self._others, self._day_problem = others, problem


def _messages(log: SessionLog) -> Iterator[Outline]:
    yield from log.outlines
    yield from log.dropped


def _has_results(log: SessionLog) -> bool:
    """Return whether a subagent's last answer contains tool calls that have ended.

    The CLI records tool calls together with their results, so every recorded call has ended.
    """
    for message in reversed(log.outlines):
        if message.author is Author.MODEL:
            return message.calls > 0
    return False


def _sum_text(amount: float) -> str:
    """Format a sum of US dollars, with enough digits that a small one isn't zero."""
    return dollars_text(round(amount, 2 if amount >= 1 else 4))
