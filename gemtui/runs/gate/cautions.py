"""Facts the user should know about a call before answering, most dangerous first."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from gemtui.agent.approval import ApprovalRequest
from gemtui.calls.later_files import describe_settings_change
from gemtui.calls.paths import asked_path
from gemtui.runs.gate.proposal import Form, Proposal
from gemtui.text import HOLDS_CONTROLS, look_alikes
from gemtui.transcript.tools import args_hold_controls

_NO_LOCK = "If gemtui's hook is killed, one call to an MCP tool can run before the run is stopped"
_LONGEST_PIECE = 60
"""The most characters of a command's part to quote."""


class Caution(NamedTuple):
    """One fact about a call, as a clause.

    `piece`: the part of the command that the fact is about; "" means the whole call. `danger`:
    whether the call can do harm; if not, the clause is only information.
    """

    why: str
    piece: str = ""
    danger: bool = True

    @property
    def text(self) -> str:
        """The clause, preceded by the part of the command that it is about, if any."""
        return f"{self.piece}: {self.why}" if self.piece else self.why


def cautions(request: ApprovalRequest, proposal: Proposal) -> tuple[Caution, ...]:
    """Return the cautions to show above a call, without duplicates, dangers first."""
    found = dict.fromkeys(_all(request, proposal))
    return tuple(sorted(found, key=lambda each: not each.danger))


def _all(request: ApprovalRequest, proposal: Proposal) -> Iterator[Caution]:
    if args_hold_controls(proposal.arguments):
        yield Caution(f"it {HOLDS_CONTROLS}")
    command = proposal.text if proposal.form is Form.COMMAND else ""
    path = asked_path(proposal.arguments)
    for text in (request.tool_name, path, proposal.effect.path or "", command):
        yield from map(Caution, look_alikes(text))
    for danger in proposal.dangers:
        piece = command[danger.start : danger.end]
        if len(piece) > _LONGEST_PIECE:
            piece = f"{piece[:_LONGEST_PIECE]}…"
        yield Caution(danger.why, piece)
    effect = proposal.effect
    if effect.path is not None:
        for words in describe_settings_change(Path(effect.path), effect.before, effect.after):
            yield Caution(words.removesuffix("."))
    for remark in proposal.remarks:
        yield Caution(remark, danger=False)
    if request.hooked:
        yield Caution("another hook of your settings or an extension changed this call")
    if request.server:
        origin = f" ({request.origin})" if request.origin else ""
        yield Caution(f"tool of the MCP server {request.server}{origin}", danger=False)
        yield Caution(_NO_LOCK, danger=False)
