"""The questions a gated run asks before its tool calls, the answers, and their files.

A gated run is a run that asks the user for approval when its policy says so. Its supervisor writes
the questions into the run's folder and records their outcomes (`GateFolder`). Any gemtui process
can answer, including one that was started later. The supervisor and gemtui share nothing but these
files, so a question can wait while gemtui is closed. Only the first answer to a question counts.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections import defaultdict
from collections.abc import Awaitable, Callable, Container, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec

from gemtui.agent.output import READ_PAUSE
from gemtui.agent.run_folder import RunFolder
from gemtui.agents import WORDS, Agent
from gemtui.calls.effect import CallContext, Effect
from gemtui.files import is_folder, read_small, stat_if_possible
from gemtui.jsonfile import read_as, read_object, write_once
from gemtui.transcript.model import Consent

Milliseconds = Annotated[int, msgspec.Meta(ge=0, le=253_402_300_799_999)]
"""Milliseconds since 1970; values beyond the range of `datetime` are rejected."""
RUN_ENDED = "the run ended"
"""The reason of a question that was open when its run ended."""
SAID_NO = "The user said no"
"""The start of the message the model reads when the user denies a call."""
UNGATED = "the hooks of gemtui's extension did not run, so gemtui could not ask you"
"""The reason given when a run is ended because its approval hooks never started."""
UNCHANGED = "This agent makes only the call that it asked about, so a changed call is denied."
PASSED = "a tool ran without gemtui's approval check"
"""The reason given when a run is ended because a tool bypassed the approval check."""
ALTERED = "a tool ran with arguments that were not approved: another hook changed them"
"""The reason given when a run is ended because a tool got unapproved arguments."""
DIFFERS = "a file differs from what was approved: see both versions with `gemtui runs show`"
"""The reason given when a run is ended because a file has unapproved contents.

`GateFolder.differences` returns these files, with the approved and the actual contents.
"""
STOLEN = (
    "the model sent the token that marks approved calls, so a program must have read the "
    "token for it"
)
"""The reason given when a run is ended because its token is no secret any more."""
TAMPERED = "a program changed gemtui's extension, or the Python of its hooks, while the run worked"
"""The reason given when a run is ended because its approval hooks may not be gemtui's any more."""
MOVED = "the run's folder was moved, removed or made unreadable, and hooks can't run without it"
"""The reason given when a run is ended because it can no longer ask questions."""

STOPPED_BY_USER = "you stopped the run"
"""The reason given for calls that were not made because the user stopped the run."""

ELSEWHERE = "Already answered in another gemtui; your answer was ignored."
"""The message for an answer that comes after another one, because only the first one counts."""


class Away(StrEnum):
    """The ways to treat a question that is asked while gemtui is closed."""

    WAIT = "wait"
    REFUSE = "refuse"


class AnswerSource(StrEnum):
    """The places where answers are given; the values are those of `"from"` in records and JSON."""

    PANE = "pane"
    """The run pane of the app."""
    SHELL = "shell"
    """The terminal of `gemtui run --ask`."""
    TERMINAL = "terminal"
    """`gemtui runs answer`, in any terminal."""
    LIBRARY = "library"
    """A program, by its `approve` callback."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalRequest:
    """A tool call that is waiting for the user's decision.

    * `arguments`: the arguments with which the call will be made if it is allowed unchanged: the
      file's real path, and the text as it will be written.
    * `requested`: the model's own arguments, which Gemini CLI may read as something else
      (assets/gemini-cli.md#effects); equal to `arguments` if they are not given.
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
    requested: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.requested:
            object.__setattr__(self, "requested", self.arguments)

    @property
    def agent(self) -> Agent:
        """Whose call it is."""
        return Agent.GEMINI if self.context is None else self.context.agent

    @property
    def asker(self) -> str:
        """The words for who asks."""
        return "A subagent" if self.subagent else WORDS[self.agent].speaker


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
    def allow(
        cls, arguments: Mapping[str, Any] | None = None, *, rules: str = "", shown: str = ""
    ) -> Approval:
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


Approve = Callable[[ApprovalRequest], Awaitable[Approval]]
"""A callback that answers one of a run's questions."""


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


# --- files ----------------------------------------------------------------------------------------


T = TypeVar("T")
LARGEST = 192_000_000
"""The largest question or answer, in bytes; larger ones are rejected."""

_HERE, _FROM = "here", "from"
_FILE = re.compile(r"(question|answer|settled|difference|passed|hooked)-([0-9]{1,9})\.json")
_POLLS = 50
"""Number of polls for questions between two updates of the presence file.

That file tells the supervisor that a user is there to answer.
"""
_AGAIN = 0.5
"""Seconds to wait before trying again to write an answer."""


@dataclass(frozen=True, slots=True)
class GateFolder:
    """A run's questions to the user, and the answers, as files in the folder `path`.

    Only gated runs, which ask the user to approve tool calls, have such a folder.
    """

    path: Path

    @classmethod
    def of(cls, run: RunFolder) -> GateFolder:
        """Return the folder with a run's questions and answers."""
        return cls(run.path / "gate")

    @property
    def run(self) -> RunFolder:
        """The run's folder."""
        return RunFolder(self.path.parent)

    def create(self) -> None:
        """Create the folder. Raises OSError."""
        self.path.mkdir(mode=0o700, exist_ok=True)

    def exists(self) -> bool:
        """Return whether the folder exists, which means that the run asks the user."""
        return is_folder(self.path)

    # --- the supervisor ------------------------------------------------------------------------

    def ask(self, request: ApprovalRequest) -> None:
        """Publish a question that any gemtui process can answer. Raises OSError."""
        same = request.requested == request.arguments
        more: dict[str, Any] = {"requested": {}} if same else {}
        write_once(self._place("question", request.number), request, LARGEST, more=more)

    def last_presence(self) -> float | None:
        """Return when a user was last present, in seconds since 1970; None means never."""
        facts = stat_if_possible(self.path / _HERE, follow=True)
        return None if facts is None else facts.st_mtime

    def settle(self, number: int, settled: Settled) -> None:
        """Record a question's outcome. Raises OSError."""
        write_once(self._place("settled", number), settled, LARGEST)

    def keep_former(self, number: int, data: bytes) -> None:
        """Save the contents a file had before an approved call changed it. Raises OSError.

        `number`: the number of the question about the call.
        """
        handle = os.open(self._former(number), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)

    def former_bytes(self, number: int) -> bytes:
        """Return the contents saved by `keep_former` under this number. Raises OSError."""
        return read_small(self._former(number), LARGEST)

    def _former(self, number: int) -> Path:
        return self.path / f"before-{number}"

    def differs(self, difference: Difference) -> None:
        """Record that a file's contents differ from what was approved. Raises OSError."""
        write_once(self._place("difference", difference.number), difference, LARGEST)

    def record_passed(self, number: int, call: PassedCall) -> None:
        """Record a call that one of the user's rules allowed. Raises OSError.

        `number`: the record's number; these records are numbered separately from questions.
        """
        write_once(self._place("passed", number), call, LARGEST)

    def record_hooked(self, number: int, call: HookedCall) -> None:
        """Record a call that another hook changed. Raises OSError.

        `number`: the record's number; these records are numbered separately from questions.
        """
        write_once(self._place("hooked", number), call, LARGEST)

    def answer_to(self, number: int) -> Approval | None:
        """Return the answer to a question; None if there is no readable one yet."""
        return read_as(self._place("answer", number), Approval, LARGEST)

    def answered_from(self, number: int) -> AnswerSource | None:
        """Return where the answer to a question was given; None if that is unknown."""
        with suppress(OSError, ValueError):
            return AnswerSource(str(read_object(self._place("answer", number), LARGEST).get(_FROM)))
        return None

    def is_answered(self, number: int) -> bool:
        """Return whether a question has an answer, even an unreadable one."""
        return os.path.lexists(self._place("answer", number))

    # --- gemtui --------------------------------------------------------------------------------

    def here(self) -> None:
        """Record that a user is present to answer questions. Raises OSError.

        Call this every second while the user is present.
        """
        (self.path / _HERE).touch(mode=0o600)

    def unanswered_by_number(self) -> dict[int, bool]:
        """Map each question's number, in order, to whether the question is unanswered."""
        numbers = self._found()
        answered = numbers["answer"] | numbers["settled"]
        return {number: number not in answered for number in sorted(numbers["question"])}

    def differences(self) -> list[Difference]:
        """Return the files whose contents differed from what the user approved.

        They are sorted by the number of the question that the user answered.
        """
        numbers = sorted(self._found()["difference"])
        differences = (
            read_as(self._place("difference", number), Difference, LARGEST) for number in numbers
        )
        return [difference for difference in differences if difference is not None]

    def passed_calls(self, read_before: Container[int] = ()) -> dict[int, PassedCall]:
        """Map record numbers to the calls that one of the user's rules allowed.

        `read_before`: the numbers of records to leave out.
        """
        return self._new("passed", PassedCall, read_before)

    def hooked_calls(self, read_before: Container[int] = ()) -> dict[int, HookedCall]:
        """Map record numbers to the calls that another hook changed.

        `read_before`: the numbers of records to leave out.
        """
        return self._new("hooked", HookedCall, read_before)

    def _new(self, kind: str, form: type[T], read_before: Container[int]) -> dict[int, T]:
        numbers = [number for number in sorted(self._found()[kind]) if number not in read_before]
        records = {number: read_as(self._place(kind, number), form, LARGEST) for number in numbers}
        return {number: record for number, record in records.items() if record is not None}

    def _found(self) -> dict[str, set[int]]:
        """Map each kind of file in the folder to the numbers in the names of these files."""
        names: list[str] = []
        with suppress(OSError):
            names = [file.name for file in self.path.iterdir()]
        numbers: dict[str, set[int]] = defaultdict(set)
        for match in filter(None, map(_FILE.fullmatch, names)):
            numbers[match[1]].add(int(match[2]))
        return numbers

    def question_numbers(self) -> list[int]:
        """Return the numbers of all questions asked so far, in order."""
        return list(self.unanswered_by_number())

    def waiting(self) -> list[int]:
        """Return the numbers of the unanswered questions."""
        return [number for number, waits in self.unanswered_by_number().items() if waits]

    def has_question(self, number: int) -> bool:
        """Return whether there is a question with this 1-based number.

        Questions are numbered without gaps.
        """
        return os.path.lexists(self._place("question", number))

    def question(self, number: int) -> ApprovalRequest | None:
        """Return a question; None if it can't be read."""
        return read_as(self._place("question", number), ApprovalRequest, LARGEST)

    def settled(self, number: int) -> Settled | None:
        """Return a question's outcome; None while the question is unresolved."""
        return read_as(self._place("settled", number), Settled, LARGEST)

    def answer(
        self, number: int, approval: Approval, source: AnswerSource = AnswerSource.LIBRARY
    ) -> bool:
        """Answer a question; return False if it was already answered. Raises OSError.

        `source`: where the answer was given, for the record.
        """
        try:
            write_once(self._place("answer", number), approval, LARGEST, more={_FROM: source})
        except FileExistsError:
            return False
        return True

    def revoke(self, number: int) -> None:
        """Revoke the rules that came with the answer to a question. Raises OSError.

        `number`: the question's number.
        """
        self._place("back", number).touch(mode=0o600)

    def is_revoked(self, number: int) -> bool:
        """Return whether the rules that came with the answer to a question are revoked."""
        return os.path.lexists(self._place("back", number))

    def _place(self, kind: str, number: int) -> Path:
        return self.path / f"{kind}-{number}.json"


# --- a callback that answers ----------------------------------------------------------------------


async def answer_questions(
    gate: GateFolder, approve: Approve, late: Callable[[ApprovalRequest], object]
) -> None:
    """Answer a run's questions by calling `approve` for each, until cancelled.

    `approve` may be called for several questions at once. `late`: called with each question to
    which its answer came too late, because another gemtui had already answered.
    """
    async with asyncio.TaskGroup() as answering:
        number, looks = 1, 0
        while True:
            if looks % _POLLS == 0:
                with suppress(OSError):
                    await asyncio.to_thread(gate.here)
            looks += 1
            while gate.has_question(number):
                request = await asyncio.to_thread(gate.question, number)
                if request is not None:
                    answering.create_task(_answer(gate, request, approve, late))
                number += 1
            await asyncio.sleep(READ_PAUSE)


async def _answer(
    gate: GateFolder,
    request: ApprovalRequest,
    approve: Approve,
    late: Callable[[ApprovalRequest], object],
) -> None:
    try:
        answer = await approve(request)
        if not isinstance(answer, Approval):
            answer = Approval.deny(
                f"the approval callback returned {type(answer).__name__} instead of an Approval"
            )
    except Exception as error:
        answer = Approval.deny(f"the approval callback raised {type(error).__name__}")
    while (counts := await asyncio.to_thread(_write, gate, request.number, answer)) is None:
        await asyncio.sleep(_AGAIN)
    if not counts:
        late(request)


def _write(gate: GateFolder, number: int, answer: Approval) -> bool | None:
    """Write the answer to a question, and return whether it counts; None if it can't be written.

    If the arguments in the answer can't be written as JSON, a denial is written instead.
    """
    with suppress(OSError):
        try:
            return gate.answer(number, answer)
        except (TypeError, ValueError):  # arguments that can't be serialised as JSON
            return gate.answer(
                number,
                Approval.deny(
                    "the approval callback returned arguments that can't be written as JSON"
                ),
            )
    return None
