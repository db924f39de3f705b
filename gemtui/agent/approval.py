"""The questions a gated run asks before its tool calls, and the answers.

A gated run is a run that asks the user for approval when its policy says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any

import msgspec

from gemtui.calls.effect import CallContext, Effect
from gemtui.transcript.model import Consent

Milliseconds = Annotated[int, msgspec.Meta(ge=0, le=253_402_300_799_999)]
"""Milliseconds since 1970; values beyond the range of `datetime` are rejected."""
SAID_NO = "The user said no"
"""The start of the message the model reads when the user denies a call."""
UNGATED = "the hooks of gemtui's extension did not run, so gemtui could not ask you"
"""The reason given when a run is ended because its approval hooks never started."""
PASSED = "a tool ran without gemtui's approval check"
"""The reason given when a run is ended because a tool bypassed the approval check."""
ALTERED = "a tool ran with arguments that were not approved: another hook changed them"
"""The reason given when a run is ended because a tool got unapproved arguments."""
DIFFERS = "a file differs from what was approved: see both versions with `gemtui runs show`"
"""The reason given when a run is ended because a file has unapproved contents.

`GateFolder.differences` returns these files, with the approved and the actual contents.
"""
MOVED = "the run's folder was moved, removed or made unreadable, and hooks can't run without it"
"""The reason given when a run is ended because it can no longer ask questions."""

ELSEWHERE = "Already answered in another gemtui; your answer was ignored."
"""The message for an answer that comes after another one, because only the first one counts."""


class Away(StrEnum):
    """How to treat a question that is asked while gemtui is closed."""

    WAIT = "wait"
    REFUSE = "refuse"


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalRequest:
    """A tool call that is waiting for the user's decision.

    * `tool_use_id`: the id in the `tool_use` event; None if unknown.
    * `subagent`: whether a subagent made the call, in which case the stream does not show it.
    * `because`: why the policy asks, in one sentence.
    * `number`: the question's 1-based number within the run.
    * `asked`: when the question was asked, in milliseconds since 1970.
    * `effect`: what the call would have done at the time of the question.
    * `context`: where the call is made, so that its effect can be predicted again.
    * `again`: the number of the earlier question this one replaces, because something changed
      before the answer; 0 if it replaces none.
    * `server`, `origin`: the MCP server and its command or address, as the CLI names them; "" if
      the tool does not belong to a server.
    * `hooked`: whether another hook changed the arguments before the question was asked.
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
    """The answer to a request. Use `allow`, `deny` and `stop` to create one.

      * `consent`: allowed, denied or stopped. The call is made only if it is allowed.
      * `arguments`: arguments to use instead of the requested ones; None keeps the requested ones.
      * `reason`: the message to the model about a denial.
      * `rules`: policy rules, as TOML, that apply to the rest of this run, so the user isn't asked
        about similar calls again.
      * `always`: whether the rules are also saved for later runs.
      * `shown`: a token that identifies the predicted effect the user saw; "" means the request's
    `effect`. If the call would now do something different, the user is asked again.
    """

    consent: Consent
    arguments: Mapping[str, Any] | None = None
    reason: str = ""
    rules: str = ""
    always: bool = False
    shown: str = ""

    @classmethod
    def allow(cls, arguments: Mapping[str, Any] | None = None, *, rules: str = "", shown: str = "") -> Approval:
        """Return an approval.

        `arguments`: replace the call's arguments; None keeps them. `rules`, `shown`: as in the
        class.
        """
        return cls(consent=Consent.ALLOWED, arguments=arguments, rules=rules, shown=shown)

    @classmethod
    def deny(cls, reason: str = "") -> Approval:
        """Return a denial; the model reads `reason` and continues."""
        return cls(consent=Consent.DENIED, reason=reason)

    @classmethod
    def stop(cls, reason: str = "") -> Approval:
        """Return a denial that also ends the run, for the given reason."""
        return cls(consent=Consent.STOPPED, reason=reason)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """A question's outcome, with the arguments or the reason from the user's answer.

    `again`: the number of the new question that replaced this one because something changed before
    the user answered; 0 if there is none.
    """

    consent: Consent
    arguments: Mapping[str, Any] | None = None
    reason: str = ""
    at: Milliseconds = 0
    again: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A file whose contents differ from what the user approved.

    * `number`: the number of the question about the call, which the user answered by approving it.
    * `approved`, `found`, `former`: the file's whole contents as approved, as found after the call,
      and as they were before the call; None if the file does not exist or is too large.
    * `was`, `is_now`: the SHA-256 hashes of the bytes before the call and of the bytes found
      afterwards; "" if the file does not exist.
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
    """A call made without a question because one of the user's rules allowed it.

    `rule`: the rule as a sentence. `answer`: the number of the question whose answer allowed
    similar calls; 0 if the rule comes from a policy file. `tool_use_id`: None if a subagent made
    the call.
    """

    tool_name: str
    arguments: Mapping[str, Any]
    rule: str
    answer: int = 0
    tool_use_id: str | None = None
    at: Milliseconds = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class HookedCall:
    """A call whose arguments another hook changed after the call had been allowed.

    `arguments`: the arguments the call was actually made with. `tool_use_id`: None if a subagent
    made the call.
    """

    tool_name: str
    arguments: Mapping[str, Any]
    tool_use_id: str | None = None
