"""A run's gate, which every tool call must pass and which may ask the user.

The gate is part of the run's supervisor. The CLI's hooks connect to the gate's socket, and each
connection is handled on its own thread. A question to the user is a file in the run's folder, and
so is the answer. Any failure in this module denies the call; `gemtui/runs/gate/policy.py` explains
why this is reliable.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from gemtui.agent.approval import (
    ALTERED,
    DIFFERS,
    MOVED,
    PASSED,
    SAID_NO,
    STOLEN,
    STOPPED_BY_USER,
    TAMPERED,
    UNGATED,
    Approval,
    ApprovalRequest,
    Away,
    GateFolder,
    HookedCall,
    PassedCall,
    Settled,
)
from gemtui.agent.command import GATE
from gemtui.agent.process_tree import still_running
from gemtui.agent.prompt_queue import PromptQueue
from gemtui.agent.run_folder import ProcessId, Request, RunFolder
from gemtui.agent.supervise import pause
from gemtui.calls.effect import (
    EDIT,
    SHELL,
    WRITE,
    CallContext,
    Effect,
    EffectKind,
    effect,
    unwritable,
)
from gemtui.calls.paths import absolute, cli_spelling, named_path
from gemtui.extension.watch import FileWatch, hook_files
from gemtui.files import resolved
from gemtui.policy.model.rules import ApprovalMode, Call, Rule
from gemtui.policy.words import rule_place
from gemtui.runs.gate.policy import GatePolicy, Judgement, Way
from gemtui.runs.gate.server import GateServer, IsGone
from gemtui.runs.gate.similar_calls import Granted
from gemtui.runs.gate.user_commands import ON_ASK, UserCommands, start_command
from gemtui.runs.gate.verification import AGENT, ApprovedWrites, CallKey, CallWatch
from gemtui.transcript.model import Consent
from gemtui.transcript.parts import mapping, string
from gemtui.transcript.seal import carries, is_sealed, new_seal, sealed, unsealed

SOCKET = "gate"
FRESH = 10.0
"""How many seconds after their last sign of activity users still count as present."""
UNANSWERED = "nobody answered a question in time"
ANSWERER_GONE = "the program that would have answered has ended"
ANSWER_WITHIN = 86_400
"""How many seconds a question waits, if the run's request doesn't say so."""
MOST_HANDED_ON = 3
"""How many prompts one process of the CLI may get after its first one."""
MOST_TURNS = 25
"""How many answers the model may have given in a process that gets another prompt."""
ENDED = "the run ended"
NOBODY = "nobody was there to answer"
TROUBLE = "gemtui could not ask the user about this call, so it was denied"
NESTED = "Requested by another Gemini CLI that a command of this run started."
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

HookAnswer = Mapping[str, Any]
_GO_ON: HookAnswer = {}
_STOPPED = "the user stopped the run"


class Gate:
    """Decides which of one run's tool calls are allowed.

    It works from `open` to `close`. `clock`: returns seconds since 1970. `may_prompt`: returns
    whether a queued prompt may be sent.
    """

    def __init__(
        self,
        folder: RunFolder,
        request: Request,
        *,
        clock: Callable[[], float] = time.time,
        may_prompt: Callable[[], bool] = lambda: True,
    ) -> None:
        self._folder, self._request = folder, request
        self._files = GateFolder.of(folder)
        self._clock, self._may_prompt = clock, may_prompt
        self._away = Away(request.about.get("away") or Away.WAIT)
        self._seal = new_seal()
        self._let: Counter[CallKey] = Counter()
        """How many allowed calls have no result yet, for each tool and arguments."""
        self._wrong: str | None = None
        self._lock = threading.Lock()
        self._calls = CallWatch(folder.stdout, self._seal)
        self._writes = ApprovedWrites(self._files, clock)
        self._passed, self._hooked = 0, 0
        self._queue = PromptQueue.of(folder)
        self._policy: GatePolicy  # `open` sets this and the next two
        self._hooks: FileWatch
        self._server: GateServer | None = None
        self._granted = Granted(Path(request.cwd))
        self._came, self._session = False, ""
        about = request.about
        answerer = about.get("answerer")
        self._answerer = None if answerer is None else ProcessId(**answerer)
        self._answer_within = about.get("answer_within", ANSWER_WITHIN)
        self._handed_on = 0
        self._asked = 0
        self._early: set[int] = set()
        """The numbers of questions that already had an answer before they were asked."""
        self._waiting = 0
        self._commands = UserCommands.of(folder)
        self._telling: list[subprocess.Popen[bytes]] = []
        self._stopped = False
        self._closed = threading.Event()

    def open(self, temporary: Path) -> Mapping[str, str]:
        """Start listening for the CLI's hooks, before the CLI starts.

        Returns variables for the CLI's environment, with which the hooks find the socket.
        `temporary`: the run's folder for temporary files. Raises OSError, GemtuiError.
        """
        self._files.create()
        self._hooks = FileWatch(hook_files({**os.environ, **self._request.environ}))
        self._policy = GatePolicy.of(self._request)
        self._granted.load_always()
        self._folder.write(GATE, self._policy.rules_text(self._seal))
        path = temporary / SOCKET
        self._server = GateServer(path, self._answer)
        self._server.start()
        return {
            "GEMTUI_GATE": str(path),
            "GEMTUI_GATE_PID": str(os.getpid()),
            "GEMTUI_PYTHON": sys.executable,
        }

    @property
    def waiting(self) -> bool:
        """Whether the user is being asked.

        The run's time limits are suspended while a question is open.
        """
        with self._lock:
            return self._waiting > 0

    @property
    def stopped(self) -> bool:
        """Whether the user has stopped the run in answer to a question."""
        return self._stopped

    def problem(self) -> str | None:
        """Return why the whole run must be killed at once; None if all is well."""
        with self._lock:
            self._calls.update()
            if self._calls.began and not self._came:
                return UNGATED
            for id in self._calls.ended():
                if not self._writes.ended(id):
                    self._wrong = self._wrong or DIFFERS
            if self._calls.stolen:
                return STOLEN
            if wrong := PASSED if self._calls.ungated else self._wrong:
                return wrong
        if self._hooks.changed():
            return TAMPERED
        hooks_start = os.access(f"{self._request.cwd}/.", os.X_OK)
        return None if hooks_start else MOVED

    def close(self) -> None:
        """Abandon all unanswered questions, and check the files of calls without a result.

        Raises OSError if the outcomes can't be recorded.
        """
        self._closed.set()
        if self._server is not None:
            self._server.close()
        self._remove_rules()
        if not self._writes.close():
            self._wrong = self._wrong or DIFFERS
        for number in self._files.question_numbers():
            self._settle(number, Consent.ABANDONED, reason=self._why_unanswered())

    def _end_with(self, reason: str) -> HookAnswer:
        """Refuse a call, and have the whole run ended for this reason."""
        self._wrong = self._wrong or reason
        return _refusal(reason)

    # --- one event -----------------------------------------------------------------------------

    def _answer(self, event: Mapping[str, Any], gone: IsGone) -> HookAnswer | None:
        """Return the response to a hook.

        If an error occurs while a call is judged, the call is denied. `event`: what the hook sent.
        `gone`: returns whether the hook has been killed.
        """
        kind = event.get("hook_event_name")
        if kind == "SessionStart":
            # The CLI has loaded the gate's rules. Their file contains the seal, a secret that marks
            # calls as allowed, so it is removed.
            self._came = True
            self._session = self._session or string(event.get("session_id"))
            self._remove_rules()
        try:
            if kind == "BeforeTool":
                return self._before_tool(event, gone)
            if kind == "AfterTool":
                self._was_made(event)
                if self._hooks.changed():
                    self._wrong = self._wrong or TAMPERED
                if self._wrong is not None:
                    return {"continue": False, "stopReason": self._wrong}
            return self._steer(kind, event)
        except Exception as error:  # an error of any kind must never allow the call
            with suppress(OSError):
                traceback.print_exception(error)
            return _refusal(_trouble(error)) if kind == "BeforeTool" else _GO_ON

    def _remove_rules(self) -> None:
        with suppress(OSError):
            (self._folder.path / GATE).unlink(missing_ok=True)

    def _before_tool(self, event: Mapping[str, Any], gone: IsGone) -> HookAnswer | None:
        name = string(event.get("tool_name"))
        arguments = event.get("tool_input")
        if not name or not isinstance(arguments, dict):
            return _refusal(TROUBLE)
        if self._stopped:
            return {"continue": False, "stopReason": _STOPPED}
        if carries(arguments, self._seal):
            return self._end_with(STOLEN)
        if self._hooks.changed():
            return self._end_with(TAMPERED)
        call = self._call_of(event, name, unsealed(arguments))
        judgement = self._judge(call)
        if judgement.way is Way.REFUSE:
            return _refusal(judgement.why)
        if judgement.way is Way.PASS:
            self._note(call, judgement.rule)
            self._lets(name, call.requested)
            return _GO_ON if call.requested == arguments else _with(call.requested)
        why = _impossible(call.effect) or (RACES if self._races(call) else None)
        if why is not None:
            return _refusal(why)
        if judgement.way is Way.THROUGH:
            self._note(call, judgement.rule)
            return self._through(call)
        rule = self._granted_rule(call)
        if rule is not None:
            return self._through_by(rule, call)
        because = f"{NESTED} {judgement.why}" if self._is_nested(event) else judgement.why
        return self._ask(replace(call, because=because), gone)

    def _call_of(
        self, event: Mapping[str, Any], name: str, arguments: Mapping[str, Any]
    ) -> ApprovalRequest:
        """Convert a call that a hook reports into a request for approval, with its effect."""
        nested = self._is_nested(event)
        with self._lock:
            id = None if nested else self._calls.passes(name, arguments)
            hooked = id is None and not nested and self._calls.may_be_changed(name)
            model = self._calls.model
        folder = string(event.get("cwd"))
        elsewhere = bool(folder) and resolved(Path(folder)) != resolved(Path(self._request.cwd))
        project = Path(folder if elsewhere else self._request.cwd)
        if elsewhere:
            arguments = _seen_from(project, name, arguments)
        server = mapping(event.get("mcp_context"))
        call = ApprovalRequest(
            tool_name=name,
            arguments=arguments,
            tool_use_id=id,
            session_id=string(event.get("session_id")) or None,
            subagent=id is None and not hooked,
            hooked=hooked,
            context=CallContext(project=project, model=model, corrects=self._policy.corrects),
            server=string(server.get("server_name")),
            origin=_origin(server),
        )
        return self._as_of_now(call, arguments)

    def _as_of_now(self, call: ApprovalRequest, arguments: Mapping[str, Any]) -> ApprovalRequest:
        """Return the call with these arguments and the effect that it would have now.

        Its `arguments` make it do exactly that. A plan is written without approval, so that has no
        effect.
        """
        assert call.context is not None
        does = None
        if self._policy.mode is not ApprovalMode.PLAN or call.tool_name not in (WRITE, EDIT):
            does = effect(call.tool_name, arguments, call.context)
        exact = arguments if does is None else does.arguments
        return replace(call, arguments=exact, requested=arguments, effect=does)

    def _is_nested(self, event: Mapping[str, Any]) -> bool:
        """Return whether an event is from another CLI that a command of the run started."""
        return self._session not in ("", string(event.get("session_id")))

    def _judge(self, call: ApprovalRequest) -> Judgement:
        """Return the policy's judgement of a call.

        If it is unknown which of several subagents made the call, the strictest judgement applies.
        """
        with self._lock:
            agents = self._calls.agents if call.subagent else frozenset()
        judgements = [
            self._policy.judge(Call(call.tool_name, call.requested, agent or None), call.effect)
            for agent in agents or ("",)
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
            return self._granted.allows(Call(call.tool_name, arguments))

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

    def _through(self, call: ApprovalRequest) -> HookAnswer:
        """Return the response that lets a call through with exactly its arguments.

        It replaces any changes that other hooks make to the arguments.
        """
        if self._hooks.changed():
            return self._end_with(TAMPERED)
        tool, arguments = call.tool_name, call.arguments
        if self._policy.can_carry_seal(tool):
            arguments = sealed(tool, arguments, self._seal)
        self._lets(tool, arguments)
        return _with(arguments)

    def _through_by(self, rule: Rule, call: ApprovalRequest) -> HookAnswer:
        """Return the response that lets a call through by an “allow similar” rule."""
        self._note(call, rule_place(rule), self._granted.answer_of(rule))
        return self._through(call)

    def _lets(self, tool: str, arguments: Mapping[str, Any]) -> None:
        with self._lock:
            self._let[_key(tool, arguments)] += 1

    def _was_made(self, event: Mapping[str, Any]) -> None:
        """Check, once a call has a result, that it was made exactly as it was allowed."""
        tool, made = string(event.get("tool_name")), event.get("tool_input")
        if not isinstance(made, dict):
            return
        call = _key(tool, made)
        with self._lock:
            others = any(count for (name, _), count in self._let.items() if name == tool)
            if self._let[call] > 0:
                self._let[call] -= 1
            else:
                if others:  # another hook changed the call after it had been allowed
                    self._hooked += 1
                    id = self._calls.last_passed(tool)
                    hooked = HookedCall(tool_name=tool, arguments=unsealed(made), tool_use_id=id)
                    with suppress(OSError):  # the run can continue without this record
                        self._files.record_hooked(self._hooked, hooked)
                if is_sealed(made) or not self._policy.can_carry_seal(tool):
                    self._wrong = ALTERED if others else PASSED
            alone = not any(count for (name, _), count in self._let.items() if name == SHELL)
        if not self._writes.is_as_approved(call, event.get("tool_response"), alone=alone):
            self._wrong = self._wrong or DIFFERS

    # --- messages and prompts --------------------------------------------------------------------

    def _steer(self, kind: object, event: Mapping[str, Any]) -> HookAnswer:
        """Send the user's messages or a prompt to the agent in the response to a hook.

        `kind`: the event's type. Nothing is sent to sessions started by the run's commands.
        """
        if self._is_nested(event):
            return _GO_ON
        if kind == "AfterTool":
            return self._new_messages(string(event.get("tool_name")))
        if kind == "AfterAgent" and self._queue.undelivered() and self._may_hand_on():
            prompt = self._queue.send()
            if prompt is not None:
                self._handed_on += 1
                return _refusal(prompt.text)
        return _GO_ON

    def _may_hand_on(self) -> bool:
        """Return whether the CLI's process may get another prompt.

        For the CLI's loop detection, all prompts that are handed on are one
        (assets/gemini-cli.md#loops). What is not handed on starts a new process when this one has
        ended.
        """
        with self._lock:
            self._calls.update()
            # each prompt ends with an answer without calls
            turns = self._calls.turns + self._handed_on + 1
            if self._handed_on >= MOST_HANDED_ON or turns >= MOST_TURNS or self._calls.repeats:
                return False
        return self._may_prompt()

    def _new_messages(self, tool: str) -> HookAnswer:
        """Return a response with the messages the user has sent since the last call.

        It is empty if there are none, or if a subagent may have made the call. `tool`: the call's
        tool.
        """
        with self._lock:
            self._calls.update()
            if self._calls.agents and tool != AGENT:
                return _GO_ON
            id = self._calls.last_passed(tool)
            texts = []
            for message in self._queue.messages():
                if not self._queue.delivery(message):
                    self._queue.record_delivery(message, tool, id)
                    texts.append(message.text)
        if not texts:
            return _GO_ON
        context = "\n\n".join(texts)
        output = {"hookEventName": "AfterTool", "additionalContext": f"{SAYS}\n{context}"}
        return {"hookSpecificOutput": output}

    # --- a question ----------------------------------------------------------------------------

    def _ask(self, call: ApprovalRequest, gone: IsGone) -> HookAnswer | None:
        """Ask the user about a call; return the response to the hook.

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
                self._stopped = True
                return {"continue": False, "stopReason": answer.reason or _STOPPED}
            if answer.consent is not Consent.ALLOWED:
                self._settle(number, Consent.DENIED, reason=answer.reason)
                return _refusal(f"{SAID_NO}: {answer.reason}" if answer.reason else f"{SAID_NO}.")
            result = self._allow(number, call, answer, folder)
            if not isinstance(result, ApprovalRequest):
                return result
            call = result

    def _why_unanswered(self) -> str:
        """Return why a question of the run can't be answered any more."""
        if self._stopped or self._folder.abort_request() is not None:
            return STOPPED_BY_USER
        return ENDED if self._closed.is_set() else "the hook that asked was killed"

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
        None if the run or the hook has ended. `gone`: returns whether the hook has been killed.
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
                self._wrong = self._wrong or why
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
            self._telling.append(start_command(self._folder, ON_ASK, self._commands.on_ask, number))
        except OSError as error:
            traceback.print_exception(error)

    def _by_rule(self, number: int, call: ApprovalRequest, rule: Rule) -> HookAnswer:
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
    ) -> HookAnswer | ApprovalRequest:
        """Let a call that the user has allowed proceed, unless something has changed.

        Returns the response to the hook, which is a denial if the call can't be made. If the call
        would no longer do what the user saw, returns a new question about it instead. `folder`: the
        real path of the command's folder at the time of the question.
        """
        changed = None if answer.arguments is None else unsealed(answer.arguments)
        if changed in (call.requested, call.arguments):
            changed = None
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
            key = _key(now.tool_name, now.arguments)
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

    def _deny(
        self, number: int, why: str, arguments: Mapping[str, Any] | None = None
    ) -> HookAnswer:
        """Record that a call was denied although the user allowed it; return the response."""
        self._settle(number, Consent.DENIED, arguments=arguments, reason=why)
        return _refusal(why)

    def _settle(self, number: int, consent: Consent, **outcome: Any) -> None:
        """Record a question's outcome, unless it already has one.

        `outcome`: more fields of `Settled`.
        """
        settled = Settled(consent=consent, at=round(self._clock() * 1000), **outcome)
        with suppress(FileExistsError):
            self._files.settle(number, settled)


def _seen_from(folder: Path, tool: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a call's arguments with its path made absolute.

    This is for calls from a session that works in `folder` instead of the run's folder; relative
    paths are resolved from there.
    """
    if tool not in (SHELL, WRITE, EDIT):
        return arguments
    key = "dir_path" if tool == SHELL else "file_path"
    path = arguments.get(key) or ""
    if not isinstance(path, str) or path.startswith("/"):
        return arguments
    whole = absolute(str(folder), path) if tool == SHELL else named_path(path, str(folder))
    return {**arguments, key: whole}


def _origin(server: Mapping[str, Any]) -> str:
    """Return an MCP server's URL or command, as reported by the CLI."""
    if url := string(server.get("url")) or string(server.get("tcp")):
        return url
    command, args = [string(server.get("command"))], server.get("args")
    if isinstance(args, list):
        command += map(str, args)
    return shlex.join(filter(None, command))


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


def _key(tool: str, arguments: Mapping[str, Any]) -> CallKey:
    """Return a key that identifies a call by its tool and arguments.

    The seal, a secret argument that marks allowed calls, is ignored. Numbers are converted to
    floating point, because the CLI's JavaScript has no other numbers.
    """
    numbers = json.loads(json.dumps(unsealed(arguments)), parse_int=float)
    return tool, json.dumps(numbers, sort_keys=True)


def _with(arguments: Mapping[str, Any]) -> HookAnswer:
    return {"hookSpecificOutput": {"hookEventName": "BeforeTool", "tool_input": arguments}}


def _trouble(error: Exception) -> str:
    why = error.strerror if isinstance(error, OSError) else None
    return f"{TROUBLE}: {why}" if why else TROUBLE


def _refusal(reason: str) -> HookAnswer:
    return {"decision": "deny", "reason": reason}
