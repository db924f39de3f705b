"""The vault as people are told of it: what it holds, and what Gemini CLI removes next."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache, partial
from pathlib import Path

from gemtui.sessions.summary import Flag, Summary
from gemtui.text import counted, short_path, size
from gemtui.vault.cleanup import SETTING, Hit, Retention, expires, next_hits, retention
from gemtui.vault.contents import Contents, contents


@dataclass(frozen=True, slots=True, kw_only=True)
class VaultStatus:
    """The vault at one moment.

    `kept`: listed sessions that only the vault has, newest first. `hits`: the files that the next
    starts of the CLI remove. `first`: of the other listed sessions the one that becomes too old
    first, and when; None = none does. `hook`: the extension keeps sessions, too.
    """

    contents: Contents
    kept: tuple[Summary, ...]
    hits: tuple[Hit, ...]
    first: tuple[Summary, datetime] | None
    hook: bool

    @property
    def listed(self) -> tuple[Hit, ...]:
        """The hits that are sessions in the list; the others say nothing, or are copies."""
        return tuple(hit for hit in self.hits if not hit.session.hidden)

    def rows(self) -> Iterator[tuple[str, str]]:
        """Yield what it holds and who sees to it, as name and text; "" = it goes on."""
        held = self.contents
        yield "vault", "on" if held.on else "off: nothing more is kept"
        yield "", f"{short_path(held.folder)}: {counted(held.files, 'file')}"
        yield "", f"{size(held.shared)} shared with Gemini CLI's own files, costing nothing"
        if held.copied:
            yield "", f"{size(held.copied)} copies of such files"
        yield "", f"{size(held.only_here)} only here, in {counted(held.kept, 'file')}"
        if held.on:
            yield "kept by", _HOOK if self.hook else _NO_HOOK


_HOOK = "the extension at the end of each turn, and gemtui while it runs"
_NO_HOOK = "gemtui while it runs; the extension would do it at the end of each turn"


def vault_status(
    sessions: Iterable[Summary], environ: Mapping[str, str], now: datetime, *, hook: bool
) -> VaultStatus:
    """Look at the vault, and at the settings of each project. Raises nothing.

    `sessions`: all of a store, as a snapshot has them.
    """
    sessions, rule = tuple(sessions), cache(partial(retention, environ))
    hits = next_hits(sessions, rule, now)
    return VaultStatus(
        contents=contents(),
        kept=tuple(each for each in sessions if Flag.KEPT in each.flags and not each.hidden),
        hits=hits,
        first=_first(sessions, rule, now),
        hook=hook,
    )


def _first(
    sessions: Iterable[Summary], rule: Callable[[Path | None], Retention], now: datetime
) -> tuple[Summary, datetime] | None:
    found = [
        (each, when)
        for each in sessions
        if not each.hidden and (when := expires(each, rule(_project(each)))) and when > now
    ]
    return min(found, key=lambda each: each[1], default=None)


def _project(session: Summary) -> Path | None:
    return None if session.project is None else Path(session.project)


def fate(
    session: Summary, sessions: Iterable[Summary], environ: Mapping[str, str], now: datetime
) -> str:
    """Say when the clean-up takes a session, and why; "" where it does not look at it.

    `sessions`: all of a store.
    """
    rule = retention(environ, _project(session))
    if Flag.KEPT in session.flags:
        return "removed by Gemini CLI; only the vault has it"
    beside = [each for each in sessions if each.project_key == session.project_key]
    for hit in next_hits(beside, lambda _: rule, now):
        if hit.session.name == session.name:
            return f"at its next start Gemini CLI removes it: {hit.words()}; {STOP}"
    when = expires(session, rule)
    if when is None:
        return ""
    return f"{unless_used(when)}; {STOP}"


def unless_used(when: datetime) -> str:
    """Say from when on the clean-up takes a session."""
    return f"unless used again, from {when.astimezone():%Y-%m-%d} on"


STOP = f"{SETTING} = false stops that"
