"""A run's gate, which every tool call must pass and which may ask the user.

The gate is part of the run's supervisor. A transport, such as `gemtui/runs/gate/gemini_gate.py`,
brings it the calls of an agent, each on its own thread, and spells its verdicts for the agent. A
question to the user is a file in the run's folder, and so is the answer. A transport denies a call
if anything is raised while it is judged (`denial_after`).
"""

from __future__ import annotations

import json
import subprocess
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from gemtui.agent.approval import (
    ALTERED,
    DIFFERS,
    PASSED,
    RUN_ENDED,
    SAID_NO,
    STOPPED_BY_USER,
    UNCHANGED,
    Approval,
    ApprovalRequest,
    Away,
    GateFolder,
    HookedCall,
    PassedCall,
    Settled,
)
from gemtui.agent.process_tree import still_running
from gemtui.agent.prompt_queue import PromptQueue
from gemtui.agent.run_folder import ProcessId, Request, RunFolder
from gemtui.agent.supervise import pause
from gemtui.agent.verdict import Allow, Deny, Pass, Prompt, Say, Stop, Verdict
from gemtui.agents import CAN, Can
from gemtui.calls.effect import (
    WRITE,
    CallContext,
    Effect,
    EffectKind,
    unwritable,
)
from gemtui.calls.paths import cli_spelling
from gemtui.files import resolved
from gemtui.policy.model.rules import Call, Rule
from gemtui.policy.words import rule_place
from gemtui.runs.gate.policy import Judgement, Way
from gemtui.runs.gate.server import IsGone
from gemtui.runs.gate.similar_calls import Granted
from gemtui.runs.gate.user_commands import ON_ASK, UserCommands, start_command
from gemtui.runs.gate.verification import ApprovedWrites, CallKey, MadeCall
from gemtui.transcript.model import Consent
from gemtui.transcript.seal import as_returned
from gemtui.transcript.tools import ToolKind, kind_of

FRESH = 10.0
"""How many seconds after their last sign of activity users still count as present."""
UNANSWERED = "nobody answered a question in time"
ANSWERER_GONE = "the program that would have answered has ended"
ANSWER_WITHIN = 86_400
"""How many seconds a question waits, if the run's request doesn't say so."""
NOBODY = "nobody was there to answer"
TROUBLE = "gemtui could not ask the user about this call, so it was denied"
ANSWER_UNREADABLE = "the answer could not be read"
EARLY = "the answer existed before the question, so no person gave it"
CHANGED = "The file has changed since you were asked."
LED = "The path now leads to a different file from when you were asked."
MOVED_FOLDER = "The command's folder now points somewhere other than it did when you were asked."
OTHERWISE = "The call would now do something different from what you were shown."
RACES = (
    "An approved call that writes this file has no result yet, and both would run at once. Send "
    "this call again after that result; read the file first."
)

SAYS = "The user sent this while you were working:"

_STOPPED = "the user stopped the run"


class Decider(Protocol):
    """Knows what an agent's calls do, and whether the user is asked about them."""

    def judge(self, call: Call, effect: Effect | None = None) -> Judgement:
        """Return how to handle a call with this effect."""

    def spelled(self, call: Call, effect: Effect | None) -> Call:
        """Return a call as rules see it."""

    def effect(
        self, tool: str, arguments: Mapping[str, Any], context: CallContext
    ) -> Effect | None:
        """Return what a call would do; None if that is unknown or needs no approval."""


MaybeAgents = Callable[[ApprovalRequest], Collection[str]]
"""Returns the names of the subagents that may have made a call; none if the main agent did."""


class Gate:
    """Decides which of one run's tool calls are allowed.

    It works from `open` to `close`. `agents`: whose call it may be; then the strictest judgement
    applies. `clock`: returns seconds since 1970. `may_prompt`: returns whether a queued prompt may
    be sent.
    """

    def __init__(
        self,
        folder: RunFolder,
        request: Request,
        *,
        agents: MaybeAgents,
        clock: Callable[[], float] = time.time,
        may_prompt: Callable[[], bool] = lambda: True,
    ) -> None:
        self._folder, self._request = folder, request
        self._files = GateFolder.of(folder)
        self._agents, self._clock, self._may_prompt = agents, clock, may_prompt
        self._can_change = Can.CHANGE in CAN[request.agent]
        self._away = Away(request.about.get("away") or Away.WAIT)
        self._let: Counter[CallKey] = Counter()
        """How many allowed calls have no result yet, for each tool and arguments."""
        self._lock = threading.Lock()
        self._writes = ApprovedWrites(self._files, clock)
        self._passed, self._hooked = 0, 0
        self._queue = PromptQueue.of(folder)
        self._decider: Decider  # `open` sets it
        self._granted = Granted(Path(request.cwd))
        about = request.about
        answerer = about.get("answerer")
        self._answerer = None if answerer is None else ProcessId(**answerer)
        self._answer_within = about.get("answer_within", ANSWER_WITHIN)
        self._asked = 0
        self._early: set[int] = set()
        """The numbers of questions that already had an answer before they were asked."""
        self._waiting = 0
        self._commands = UserCommands.of(folder)
        self.started: list[subprocess.Popen[bytes]] = []
        """The user's notification commands."""
        self.stopped = False
        """Whether the user has stopped the run in answer to a question."""
        self.wrong: str | None = None
        """Why the whole run must be killed at once; None if all is well."""
        self._closed = threading.Event()

    def open(self, decider: Decider) -> None:
        """Prepare to be asked, before the agent starts. Raises OSError, GemtuiError."""
        self._files.create()
        self._decider = decider
        self._granted.load_always()

    @property
    def waiting(self) -> bool:
        """Whether the user is being asked.

        The run's time limits are suspended while a question is open.
        """
        with self._lock:
            return self._waiting > 0

    def close(self) -> None:
        """Abandon all unanswered questions, and check the files of calls without a result.

        Raises OSError if the outcomes can't be recorded.
        """
        self._closed.set()
        if not self._writes.close():
            self.end_with(DIFFERS)
        for number in self._files.question_numbers():
            self._settle(number, Consent.ABANDONED, reason=self._why_unanswered())

    def end_with(self, reason: str) -> Deny:
        """Refuse a call, and have the whole run ended for this reason, or an earlier one."""
        self.wrong = self.wrong or reason
        return Deny(reason)

    # --- one call ------------------------------------------------------------------------------

    def before_call(self, call: ApprovalRequest, gone: IsGone) -> Verdict | None:
        """Judge a call that an agent wants to make, and ask the user if necessary.

        `call`: the call, with its context. What it has in `because` comes before the reason of a
        question. `gone`: returns whether nobody waits for the verdict any more. Returns None if the
        question was abandoned. Whatever this raises must deny the call (`denial_after`).
        """
        if self.stopped:
            return Stop(_STOPPED)
        if self.wrong is not None:
            return Deny(self.wrong)
        before = call.because
        call = self._as_of_now(call, call.requested)
        judgement = self._judge(call)
        if judgement.way is Way.REFUSE:
            return Deny(judgement.why)
        if judgement.way is Way.PASS:
            self._note(call, judgement.rule)
            self._lets(call.tool_name, call.requested)
            return Pass()
        why = _impossible(call.effect) or (RACES if self._races(call) else None)
        if why is not None:
            return Deny(why)
        if judgement.way is Way.THROUGH:
            self._note(call, judgement.rule)
            return self._through(call)
        rule = self._granted_rule(call)
        if rule is not None:
            return self._through_by(rule, call)
        because = " ".join(filter(None, (before, judgement.why)))
        return self._ask(replace(call, because=because), gone)

    def _as_of_now(self, call: ApprovalRequest, arguments: Mapping[str, Any]) -> ApprovalRequest:
        """Return the call with these arguments and the effect that it would have now.

        Its `arguments` make it do exactly that.
        """
        assert call.context is not None
        does = self._decider.effect(call.tool_name, arguments, call.context)
        exact = arguments if does is None else does.arguments
        return replace(call, arguments=exact, requested=arguments, effect=does)

    def _judge(self, call: ApprovalRequest) -> Judgement:
        """Return the policy's judgement of a call.

        If it is unknown which of several subagents made the call, the strictest judgement applies.
        """
        judgements = [
            self._decider.judge(Call(call.tool_name, call.requested, agent or None), call.effect)
            for agent in self._agents(call) or ("",)
        ]
        return max(judgements, key=lambda judgement: judgement.way)

    def _granted_rule(self, call: ApprovalRequest) -> Rule | None:
        """Return the “allow similar” rule that allows a call; None if none does.

        A rule about a file is matched against the file's real path, and covers no file that has
        other names (hard links).
        """
        arguments, does = call.requested, call.effect
        if does is not None and does.names > 1:
            return None
        if does is not None and does.path is not None:
            arguments = {**arguments, "file_path": cli_spelling(does.path)}
        with self._lock:
            for answer in self._granted.answers:
                if self._files.is_revoked(answer):
                    self._granted.revoke(answer)
            spelled = self._decider.spelled(Call(call.tool_name, arguments), does)
            return self._granted.allows(spelled)

    def _note(self, call: ApprovalRequest, rule: str, answer: int = 0) -> None:
        """Record that one of the user's rules allowed a call without a question.

        `rule`: a description of where the rule is; if it is "", nothing is recorded. `answer`: the
        number of the answer that the rule came from; 0 for a policy file. Raises OSError.
        """
        if not rule:
            return
        with self._lock:
            self._passed += 1
            number = self._passed
        passed = PassedCall(
            tool_name=call.tool_name,
            arguments=call.requested,
            rule=rule,
            answer=answer,
            tool_use_id=call.tool_use_id,
            at=round(self._clock() * 1000),
        )
        self._files.record_passed(number, passed)

    def _through(self, call: ApprovalRequest) -> Allow | Deny:
        """Let a call through with exactly its arguments, unless the run is being killed."""
        if self.wrong is not None:
            return Deny(self.wrong)
        self._lets(call.tool_name, call.arguments)
        return Allow(call.arguments)

    def _through_by(self, rule: Rule, call: ApprovalRequest) -> Allow | Deny:
        """Let a call through by an “allow similar” rule."""
        self._note(call, rule_place(rule), self._granted.answer_of(rule))
        return self._through(call)

    def _lets(self, tool: str, arguments: Mapping[str, Any]) -> None:
        with self._lock:
            self._let[call_key(tool, arguments)] += 1

    def after_call(self, call: MadeCall) -> None:
        """Check, once a call has a result, that it was made exactly as it was allowed."""
        key = call_key(call.tool_name, call.arguments)
        with self._lock:
            others = any(count for (name, _), count in self._let.items() if name == call.tool_name)
            if self._let[key] > 0:
                self._let[key] -= 1
            else:
                if others:  # another hook changed the call after it had been allowed
                    self._hooked += 1
                    hooked = HookedCall(
                        tool_name=call.tool_name,
                        arguments=call.arguments,
                        tool_use_id=call.tool_use_id,
                    )
                    with suppress(OSError):  # the run can continue without this record
                        self._files.record_hooked(self._hooked, hooked)
                if call.needs_gate:
                    self.end_with(ALTERED if others else PASSED)
            alone = not any(
                count for (name, _), count in self._let.items() if kind_of(name) is ToolKind.SHELL
            )
        if not self._writes.is_as_approved(key, call, alone=alone):
            self.end_with(DIFFERS)

    def call_ended(self, tool_use_id: str) -> None:
        """Check the file of a call that has a result, in case `after_call` is never called."""
        if not self._writes.ended(tool_use_id):
            self.end_with(DIFFERS)

    # --- messages and prompts --------------------------------------------------------------------

    def new_messages(self, tool: str, tool_use_id: str | None) -> Say | Pass:
        """Return the messages that the user has sent since the last call, if any.

        `tool`, `tool_use_id`: the call with whose result the model reads them.
        """
        texts = []
        with self._lock:
            for message in self._queue.messages():
                if not self._queue.delivery(message):
                    self._queue.record_delivery(message, tool, tool_use_id)
                    texts.append(message.text)
        context = "\n\n".join(texts)
        return Say(f"{SAYS}\n{context}") if texts else Pass()

    def next_prompt(self) -> Prompt | Pass:
        """Return the next prompt of the queue, which then counts as sent, if there is one.

        A run that is being ended gets none.
        """
        if self.stopped or self.wrong is not None or self._folder.abort_request() is not None:
            return Pass()
        if self._queue.undelivered() and self._may_prompt():
            prompt = self._queue.send()
            if prompt is not None:
                return Prompt(prompt.text)
        return Pass()

    # --- a question ----------------------------------------------------------------------------

    def _ask(self, call: ApprovalRequest, gone: IsGone) -> Verdict | None:
        """Ask the user about a call; return the verdict.

        If, by the time the user allows the call, it would do something different, the user is asked
        again. `gone`: returns whether the hook has been killed. Returns None if the question was
        abandoned.
        """
        while True:
            folder, number = _folder_of(call), self._put(call)
            try:
                answer = self._wait(number, call, gone)
            finally:
                with self._lock:
                    self._waiting -= 1
            if answer is None:
                self._settle(number, Consent.ABANDONED, reason=self._why_unanswered())
                return None
            if isinstance(answer, Rule):
                return self._by_rule(number, call, answer)
            if answer.consent is Consent.STOPPED:
                self._settle(number, Consent.STOPPED, reason=answer.reason)
                self.stopped = True
                return Stop(answer.reason or _STOPPED)
            if answer.consent is not Consent.ALLOWED:
                self._settle(number, Consent.DENIED, reason=answer.reason)
                return Deny(f"{SAID_NO}: {answer.reason}" if answer.reason else f"{SAID_NO}.")
            result = self._allow(number, call, answer, folder)
            if not isinstance(result, ApprovalRequest):
                return result
            call = result

    def _why_unanswered(self) -> str:
        """Return why a question of the run can't be answered any more."""
        if self.stopped or self._folder.abort_request() is not None:
            return STOPPED_BY_USER
        return RUN_ENDED if self._closed.is_set() else "the hook that asked was killed"

    def _put(self, call: ApprovalRequest) -> int:
        """Write a question about a call to the run's folder; return the question's number.

        Raises OSError.
        """
        with self._lock:
            number = self._asked + 1
            if self._files.is_answered(number):
                self._early.add(number)
            self._files.ask(replace(call, number=number, asked=round(self._clock() * 1000)))
            self._asked = number
            self._waiting += 1
        return number

    def _wait(self, number: int, call: ApprovalRequest, gone: IsGone) -> Approval | Rule | None:
        """Wait until a question is answered, and return the answer.

        If the user allows this call by answering “allow similar” to another question, return that
        answer's rule. Return a denial if the run's options say not to wait for an absent user, and
        None if the run has ended or `gone` returns True.
        """
        if number in self._early:
            return Approval.deny(EARLY)
        asked = self._clock()
        granted, is_reported = self._granted.answers, not self._commands.on_ask
        began = time.monotonic()
        while not self._closed.wait(pause(time.monotonic() - began)):
            if gone():
                return None
            if self._files.is_answered(number):
                return self._files.answer_to(number) or Approval.deny(ANSWER_UNREADABLE)
            if granted != self._granted.answers:
                granted = self._granted.answers
                rule = self._granted_rule(self._as_of_now(call, call.requested))
                if rule is not None:
                    return rule
            if self._away is Away.REFUSE:
                seen = self._files.last_presence()
                if seen is None or self._clock() - seen >= FRESH:
                    return Approval.deny(NOBODY)
            why = None
            if self._answerer is not None and not still_running([self._answerer]):
                why = ANSWERER_GONE
            elif self._clock() - asked > self._answer_within:
                why = UNANSWERED
            if why is not None:  # nobody will answer, so the run ends
                self.end_with(why)
                return Approval.deny(why)
            if not is_reported and time.monotonic() - began >= self._commands.on_ask_after:
                is_reported = True
                self._report(number)
        return None

    def _report(self, number: int) -> None:
        """Start the user's notification command for a question.

        If that fails, the error is printed and the question stays open.
        """
        try:
            self.started.append(start_command(self._folder, ON_ASK, self._commands.on_ask, number))
        except OSError as error:
            traceback.print_exception(error)

    def _by_rule(self, number: int, call: ApprovalRequest, rule: Rule) -> Verdict:
        """Let a waiting call proceed, because “allow similar” for another call covers it.

        The call is made even if its effect has changed since the question. `number`: the question's
        number. `rule`: the rule from that answer.
        """
        now = self._as_of_now(call, call.requested)
        why = self._why_not(now)
        if why is not None:
            return self._deny(number, why)
        response = self._through_by(rule, now)
        self._settle(number, Consent.ALLOWED)
        return response

    def _allow(
        self, number: int, call: ApprovalRequest, answer: Approval, folder: str | None
    ) -> Verdict | ApprovalRequest:
        """Let a call that the user has allowed proceed, unless something has changed.

        Returns the verdict, which is a denial if the call can't be made. If the call
        would no longer do what the user saw, returns a new question about it instead. `folder`: the
        real path of the command's folder at the time of the question.
        """
        changed = None if answer.arguments is None else answer.arguments
        if changed in (call.requested, call.arguments):
            changed = None
        if changed is not None and not self._can_change:
            return self._deny(number, UNCHANGED, changed)
        now = self._as_of_now(call, call.requested if changed is None else changed)
        why = self._why_not(now) or _unwritable(call, now)
        if why is not None:
            return self._deny(number, why, changed)
        why = _otherwise(call, now, answer, folder, changed=changed is not None)
        if why is not None:
            fresh = self._as_of_now(call, call.requested)
            self._settle(number, Consent.ABANDONED, reason=why, again=self._asked + 1)
            return replace(fresh, because=why, again=number)
        does = now.effect
        if does is not None and does.kind is EffectKind.FILE:
            key = call_key(now.tool_name, now.arguments)
            try:
                if not self._writes.begin(number, key, now.tool_use_id, does):
                    return self._deny(number, RACES)
            except OSError as error:
                return self._deny(number, _trouble(error))
        if answer.rules:
            with self._lock:
                self._granted.add(answer.rules, answer=number)
        response = self._through(now)
        consent = Consent.ALLOWED if changed is None else Consent.CHANGED
        self._settle(number, consent, arguments=changed)
        return response

    def _why_not(self, call: ApprovalRequest) -> str | None:
        """Return why a call can't be made even if the user approves; None if it can."""
        judgement = self._judge(call)
        if judgement.way is Way.REFUSE:
            return judgement.why
        return RACES if self._races(call) else _impossible(call.effect)

    def _races(self, call: ApprovalRequest) -> bool:
        does = call.effect
        return does is not None and does.path is not None and self._writes.is_open(does.path)

    def _deny(self, number: int, why: str, arguments: Mapping[str, Any] | None = None) -> Verdict:
        """Record that a call was denied although the user allowed it; return the verdict."""
        self._settle(number, Consent.DENIED, arguments=arguments, reason=why)
        return Deny(why)

    def _settle(self, number: int, consent: Consent, **outcome: Any) -> None:
        """Record a question's outcome, unless it already has one.

        `outcome`: more fields of `Settled`.
        """
        settled = Settled(consent=consent, at=round(self._clock() * 1000), **outcome)
        with suppress(FileExistsError):
            self._files.settle(number, settled)


def _impossible(does: Effect | None) -> str | None:
    """Return why a call would fail or can't be predicted, as a message to the model.

    Returns None if the call can be predicted and would succeed.
    """
    if does is None or does.kind is not EffectKind.FILE:
        return None
    if does.fails is not None:
        return f"The tool would fail: {does.fails}."
    if not does.certain:
        why = "; ".join(does.remarks) or "the text to replace is not in the file exactly"
        return f"The result of this call can't be predicted: {why}."
    return None


def _unwritable(asked: ApprovalRequest, now: ApprovalRequest) -> str | None:
    """Return why the text that the user edited can't be written verbatim, or None.

    `asked`, `now`: the call as requested, and with the user's changes.
    """
    content = now.requested.get("content")
    if now.tool_name != WRITE or now.effect is None or not isinstance(content, str):
        return None
    if content == asked.requested.get("content"):
        return None
    return unwritable(now.effect, content)


def _otherwise(
    asked: ApprovalRequest,
    now: ApprovalRequest,
    answer: Approval,
    folder: str | None,
    *,
    changed: bool,
) -> str | None:
    """Return what has changed since the user saw a call, as a sentence, or None.

    `asked`, `now`: the call as the question showed it, and as it would be made now. `folder`: the
    real path of the command's folder at the time of the question. `changed`: whether the user
    changed the call's arguments.
    """
    if _folder_of(asked) != folder:
        return MOVED_FOLDER
    was, does = asked.effect, now.effect
    if was is None or does is None:
        return None
    shown = answer.shown or ("" if changed else was.mark)
    if shown in ("", does.mark):
        return None
    if was.path != does.path and not changed:
        return LED
    return CHANGED if does.kind is EffectKind.FILE else OTHERWISE


def _folder_of(call: ApprovalRequest) -> str | None:
    """Return the real path of the folder a call's command would run in, or None."""
    does = call.effect
    return None if does is None or does.folder is None else str(resolved(Path(does.folder)))


def call_key(tool: str, arguments: Mapping[str, Any]) -> CallKey:
    """Return a key that identifies a call by its tool and arguments.

    Numbers are converted to floating point, because the agents' JavaScript has no other numbers. A
    command's folder is written as after the seal (`gemtui/transcript/seal.py`).
    """
    numbers = json.loads(json.dumps(as_returned(tool, arguments)), parse_int=float)
    return tool, json.dumps(numbers, sort_keys=True)


def denial_after(error: Exception) -> Deny:
    """Log an error that was raised while a call was judged, and return the denial of the call."""
    with suppress(OSError):
        traceback.print_exception(error)
    return Deny(_trouble(error))


def _trouble(error: Exception) -> str:
    why = error.strerror if isinstance(error, OSError) else None
    return f"{TROUBLE}: {why}" if why else TROUBLE
