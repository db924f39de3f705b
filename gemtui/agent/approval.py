"""What a gated run asks a person before a tool call, and what the person answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any

import msgspec

from gemtui.calls.effect import CallContext, Effect
from gemtui.transcript.model import Consent

Milliseconds = Annotated[int, msgspec.Meta(ge=0, le=253_402_300_799_999)]
"""Since 1970. What a file says is read only if it is a time of the calendar."""
SAID_NO = "The user said no"
"""Begins what the model is told of a refusal by a person."""
UNGATED = "its gate did not open: the hooks of gemtui's extension did not run"
"""Why a run was ended in which nobody could have been asked."""
PASSED = "a tool ran that never passed its gate"
"""Why a run was ended whose gate does not hold."""
ALTERED = "a tool ran with other arguments than were allowed: another hook changed them"
"""Why a run was ended in which something else was made of a yes."""
DIFFERS = "a file differs from what was approved: `gemtui runs show` has both texts"
"""Why a run was ended that made something else of a yes; `GateFolder.differences` has it."""
MOVED = "the folder of the run was moved, removed or shut, and no hook can run without it"
"""Why a run was ended in which nobody can be asked any more."""


class Away(StrEnum):
    """What becomes of a question while nobody is there to answer it."""

    WAIT = "wait"
    REFUSE = "refuse"


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalRequest:
    """A tool call that waits for a person.

    `tool_use_id`: as in the `tool_use` event; None = unknown. `because`: why the policy asks, one
    sentence. `subagent`: the call is one of a sub-agent, which the stream does not show. `number`:
    its place among the questions of the run, from 1. `asked`: milliseconds since 1970.
    `effect`: what the call did when it was asked about; `context`: where it is made, to foresee it
    again. `again`: the number of the question in whose place it is asked, because something changed
    before the answer; 0 = it is the first. `server`, `origin`: the MCP server and its command or
    address, as the CLI names them; "" = no tool of a server. `hooked`: another hook changed the
    arguments before.
    """

    tool_name: str
    arguments: Mapping[str, Any]
    tool_use_id: str | None = None
    session_id: str | None = None
    subagent: bool = False
    because: str = ""
    number: int = 0
    asked: Milliseconds = 0
    effect: Effect | None = None
    context: CallContext | None = None
    again: int = 0
    server: str = ""
    origin: str = ""
    hooked: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """The answer to a request; made by `allow`, `deny` and `stop`.

    `consent`: allowed, denied, or stopped; the call is made only if it is allowed.
    `arguments`: what is to run in place of what was asked; None = just that. `reason`: what the
    model reads about a refusal. `rules`: policy rules, as TOML, that hold for the rest of this run,
    so that calls like this one are not asked about again. `always`: they are kept for later runs,
    too. `shown`: the mark of the effect that the person saw; "" = that of the question. Where the
    call would do anything else by now, the person is asked again.
    """

    consent: Consent
    arguments: Mapping[str, Any] | None = None
    reason: str = ""
    rules: str = ""
    always: bool = False
    shown: str = ""

    @classmethod
    def allow(
        cls,
        arguments: Mapping[str, Any] | None = None,
        *,
        rules: str = "",
        always: bool = False,
        shown: str = "",
    ) -> Approval:
        """Return a yes; with `arguments` the call is made with these instead."""
        return cls(
            consent=Consent.ALLOWED, arguments=arguments, rules=rules, always=always, shown=shown
        )

    @classmethod
    def deny(cls, reason: str = "") -> Approval:
        """Return a no; the model reads the reason, and goes on."""
        return cls(consent=Consent.DENIED, reason=reason)

    @classmethod
    def stop(cls, reason: str = "") -> Approval:
        """Return a no that ends the run."""
        return cls(consent=Consent.STOPPED, reason=reason)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """How a question was settled, and with which arguments or reason.

    `again`: the number of the question that took its place, because something changed before the
    answer; 0 = none.
    """

    consent: Consent
    arguments: Mapping[str, Any] | None = None
    reason: str = ""
    at: Milliseconds = 0
    again: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A file that is not as it was approved.

    `number`: of the question. `approved`, `found`, `former`: its whole text as it was approved, as
    it was found and as it was before the call; None = there is no such file, or it is too large.
    `was`, `is_now`: SHA-256 of its bytes before the call and as found; "" = there is no such file.
    """

    number: int
    path: str
    approved: str | None = None
    found: str | None = None
    former: str | None = None
    was: str = ""
    is_now: str = ""
    at: Milliseconds = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PassedCall:
    """A call that was made unasked by a rule of the user's own.

    `rule`: the rule in words. `answer`: the number of the question whose answer allowed all like
    it; 0 = the rule of a policy. `tool_use_id`: None = a call of a sub-agent.
    """

    tool_name: str
    arguments: Mapping[str, Any]
    rule: str
    answer: int = 0
    tool_use_id: str | None = None
    at: Milliseconds = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class HookedCall:
    """A call that another hook changed after the gate had let it through.

    `arguments`: those with which it was made. `tool_use_id`: None = a call of a sub-agent.
    """

    tool_name: str
    arguments: Mapping[str, Any]
    tool_use_id: str | None = None
