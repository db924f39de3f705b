"""The gate of one run: a person has the last word before a tool call.

It works in the run's supervisor. The hooks of the CLI ask it at a socket, each in a thread; what a
person has to decide stands in the run's folder until somebody answers there. Whatever goes wrong
here refuses the call (`gemtui/runs/gate_policy.py` says why that holds).
"""

from __future__ import annotations

import json
import os
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
    MOVED,
    PASSED,
    SAID_NO,
    UNGATED,
    Approval,
    ApprovalRequest,
    Away,
    Fate,
    Settled,
    Verdict,
)
from gemtui.agent.command import GATE
from gemtui.agent.gate_folder import GateFolder
from gemtui.agent.run_folder import Request, RunFolder
from gemtui.agent.steering import Steering
from gemtui.agent.supervise import pause
from gemtui.files import is_there, resolved
from gemtui.policy.model.rules import Call
from gemtui.policy.suggest.call_groups import EDITS
from gemtui.runs.gate_calls import AGENT, CallWatch
from gemtui.runs.gate_policy import GatePolicy, Judgement, Way
from gemtui.runs.gate_server import GateServer, IsGone
from gemtui.runs.granted import Granted
from gemtui.runs.like_this import SHELL, real_path
from gemtui.transcript.parts import string
from gemtui.transcript.seal import is_sealed, new_seal, sealed, unsealed

SOCKET = "gate"
FRESH = 10.0
"""Seconds after its last sign for which somebody counts as there."""
ENDED = "the run ended"
NOBODY = "nobody was there to answer"
TROUBLE = "gemtui's gate could not ask about this call: it was not allowed"
NESTED = "A Gemini CLI wants it that a command of this run has started."
UNREADABLE = "the answer could not be read"
ELSEWHERE = "its path leads elsewhere now than when you were asked"
EARLY = "the answer was there before the question, so no person gave it"

SAYS = "The user says, while you work:"

_PATHS = {SHELL: "dir_path", **dict.fromkeys(EDITS, "file_path")}
"""The argument that says where a tool works."""
Answer = Mapping[str, Any]
_GO_ON: Answer = {}


class Gate:
    """Decides on the calls of one run, from `open` to `close`.

    `clock`: seconds since 1970.
    """

    def __init__(
        self, folder: RunFolder, request: Request, *, clock: Callable[[], float] = time.time
    ) -> None:
        self._folder, self._request = folder, request
        self._files = GateFolder.of(folder)
        self._clock = clock
        self._away = Away((request.about or {}).get("away") or Away.WAIT)
        self._seal = new_seal()
        self._let: Counter[tuple[str, str]] = Counter()
        """Calls that were let through and have no result yet: tool, arguments."""
        self._wrong: str | None = None
        self._lock = threading.Lock()
        self._calls = CallWatch(folder.stdout)
        self._steering = Steering.of(folder)
        self._policy: GatePolicy | None = None
        self._granted = Granted(Path(request.cwd))
        self._server: GateServer | None = None
        self._came, self._session = False, ""
        self._asked = 0
        self._waiting = 0
        self._stopped = False
        self._closed = threading.Event()

    def open(self, temporary: Path) -> Mapping[str, str]:
        """Make ready before the CLI starts; return the variables that lead its hooks here.

        `temporary`: the run's folder for temporary files. Raises OSError, GemtuiError.
        """
        self._files.create()
        self._policy = GatePolicy.of(self._request)
        self._granted.load_always()
        self._folder.write(GATE, self._policy.rules_text(self._seal))
        path = temporary / SOCKET
        self._server = GateServer(path, self._answer)
        self._server.start()
        return {"GEMTUI_GATE": str(path), "GEMTUI_PYTHON": sys.executable}

    @property
    def waiting(self) -> bool:
        """Whether a person is being asked: that time is none of the run's."""
        with self._lock:
            return self._waiting > 0

    @property
    def stopped(self) -> bool:
        """Whether a person has answered that the run is to end."""
        return self._stopped

    def problem(self) -> str | None:
        """Return why all processes of the run must be killed at once; None = they need not."""
        with self._lock:
            self._calls.look()
            if self._calls.began and not self._came:
                return UNGATED
            if wrong := PASSED if self._calls.ungated else self._wrong:
                return wrong
        hooks_start = os.access(f"{self._request.cwd}/.", os.X_OK)
        return None if hooks_start else MOVED

    def close(self) -> None:
        """Refuse what is still asked. Raises OSError if that can't be written down."""
        self._closed.set()
        if self._server is not None:
            self._server.close()
        self._remove_rules()
        if self._files.exists():
            self._files.settle_open(self._settled(Fate.ABANDONED, reason=ENDED))

    # --- one event -----------------------------------------------------------------------------

    def _answer(self, event: Mapping[str, Any], gone: IsGone) -> Answer | None:
        """What the hook says to the CLI; whatever can't be decided is refused."""
        kind = event.get("hook_event_name")
        if kind == "SessionStart":
            self._opened(event)
        try:
            if kind == "BeforeTool":
                return self._before_tool(event, gone)
            if kind == "AfterTool":
                self._was_made(event)
            return self._steer(kind, event)
        except Exception as error:  # whatever it is: the call is not allowed
            with suppress(OSError):
                traceback.print_exception(error)
            return _refusal(_trouble(error)) if kind == "BeforeTool" else _GO_ON

    def _opened(self, event: Mapping[str, Any]) -> None:
        """The sign of life: the CLI has read the rules, which hold the seal."""
        self._came = True
        self._session = self._session or string(event.get("session_id"))
        self._remove_rules()

    def _remove_rules(self) -> None:
        with suppress(OSError):
            (self._folder.path / GATE).unlink(missing_ok=True)

    def _before_tool(self, event: Mapping[str, Any], gone: IsGone) -> Answer | None:
        assert self._policy is not None
        name = string(event.get("tool_name"))
        given = event.get("tool_input")
        if not name or not isinstance(given, dict):
            return _refusal(TROUBLE)
        arguments = unsealed(given)
        with self._lock:
            id = None if self._is_nested(event) else self._calls.passes(name, arguments)
        arguments = self._seen_from_here(name, arguments, string(event.get("cwd")))
        judgement = self._judge(name, arguments, subagent=id is None)
        if judgement.way is Way.REFUSE:
            return _refusal(judgement.why)
        if judgement.way is Way.PASS:
            self._lets(name, arguments)
            return _GO_ON if arguments is given else _with(arguments)
        if judgement.way is Way.THROUGH or self._is_granted(Call(name, arguments)):
            return self._through(name, arguments)
        return self._ask(
            ApprovalRequest(
                tool_name=name,
                arguments=arguments,
                tool_use_id=id,
                session_id=string(event.get("session_id")) or None,
                subagent=id is None,
                because=f"{NESTED} {judgement.why}" if self._is_nested(event) else judgement.why,
            ),
            gone,
        )

    def _seen_from_here(
        self, tool: str, arguments: Mapping[str, Any], cwd: str
    ) -> Mapping[str, Any]:
        """The arguments with the whole path, where a session in another folder makes the call."""
        key = _PATHS.get(tool)
        if key is None or not cwd or resolved(Path(cwd)) == resolved(Path(self._request.cwd)):
            return arguments
        path = arguments.get(key) or ""
        whole = not isinstance(path, str) or path.startswith("/")
        return arguments if whole else {**arguments, key: f"{cwd}/{path}"}

    def _is_nested(self, event: Mapping[str, Any]) -> bool:
        """Whether a session tells that a command of this one has started."""
        return self._session not in ("", string(event.get("session_id")))

    def _judge(self, tool: str, arguments: Mapping[str, Any], *, subagent: bool) -> Judgement:
        """What is to be done with a call; where several sub-agents may make it, the strictest."""
        assert self._policy is not None
        with self._lock:
            agents = self._calls.agents if subagent else frozenset()
        calls = [Call(tool, arguments, agent or None) for agent in agents or ("",)]
        return max(map(self._policy.judge, calls), key=lambda judgement: judgement.way)

    def _is_granted(self, call: Call) -> bool:
        """Whether a person has allowed calls like this one before."""
        with self._lock:
            for answer in self._granted.answers:
                if self._files.is_taken_back(answer):
                    self._granted.take_back(answer)
            return self._granted.allows(call) is not None

    def _through(self, tool: str, arguments: Mapping[str, Any]) -> Answer:
        """A call that is made as it is here, whatever another hook says of it."""
        carries = self._policy is not None and self._policy.can_carry_seal(tool)
        given = _placed(tool, arguments, Path(self._request.cwd))
        if carries:
            given = sealed(tool, given, self._seal)
        self._lets(tool, given)
        return _with(given)

    def _lets(self, tool: str, arguments: Mapping[str, Any]) -> None:
        with self._lock:
            self._let[_written(tool, arguments)] += 1

    def _was_made(self, event: Mapping[str, Any]) -> None:
        """A call has a result: what needed an answer must have been made as that said."""
        assert self._policy is not None
        tool, made = string(event.get("tool_name")), event.get("tool_input")
        if not isinstance(made, dict):
            return
        call = _written(tool, made)
        with self._lock:
            if self._let[call] > 0:
                self._let[call] -= 1
            elif is_sealed(made) or not self._policy.can_carry_seal(tool):
                others = any(count for (name, _), count in self._let.items() if name == tool)
                self._wrong = ALTERED if others else PASSED

    # --- what a person says meanwhile ------------------------------------------------------------

    def _steer(self, kind: object, event: Mapping[str, Any]) -> Answer:
        """Nothing for a session that a command of this one has started."""
        if self._is_nested(event):
            return _GO_ON
        if kind == "AfterTool":
            return self._words(string(event.get("tool_name")))
        sent = self._steering.send() if kind == "AfterAgent" else None
        return _GO_ON if sent is None else _refusal(sent.text)

    def _words(self, tool: str) -> Answer:
        """What was said since the last call, for the agent that the person talks to."""
        with self._lock:
            self._calls.look()
            if self._calls.agents and tool != AGENT:
                return _GO_ON
            id = self._calls.last_passed(tool)
            words = [each for each in self._steering.words() if not self._steering.delivered(each)]
            for word in words:
                self._steering.deliver(word, tool, id)
        if not words:
            return _GO_ON
        said = "\n\n".join(each.text for each in words)
        told = {"hookEventName": "AfterTool", "additionalContext": f"{SAYS}\n{said}"}
        return {"hookSpecificOutput": told}

    # --- a question ----------------------------------------------------------------------------

    def _ask(self, request: ApprovalRequest, gone: IsGone) -> Answer | None:
        place = self._leads(request)
        with self._lock:
            number = self._asked + 1
            asked = round(self._clock() * 1000)
            early = self._files.is_answered(number)
            self._files.ask(replace(request, number=number, asked=asked))
            self._asked = number
            self._waiting += 1
        try:
            answer = Approval.deny(EARLY) if early else self._wait(number, request, gone)
        finally:
            with self._lock:
                self._waiting -= 1
        if answer is None:
            reason = ENDED if self._closed.is_set() else "the hook that asked is gone"
            self._settle(number, Fate.ABANDONED, reason=reason)
            return None
        if answer.verdict is Verdict.ALLOW and self._leads(request) != place:
            answer = Approval.deny(ELSEWHERE)
        return self._obey(number, request, answer)

    def _wait(self, number: int, request: ApprovalRequest, gone: IsGone) -> Approval | None:
        """The answer, as long as it may take; None = nobody waits for it any more.

        A yes to all like another call that waits is one to this, where it is like that.
        """
        call, granted = Call(request.tool_name, request.arguments), self._granted.answers
        began = time.monotonic()
        while not self._closed.wait(pause(time.monotonic() - began)):
            if gone():
                return None
            if self._files.is_answered(number):
                return self._files.answer_to(number) or Approval.deny(UNREADABLE)
            if granted != self._granted.answers:
                granted = self._granted.answers
                if self._is_granted(call):
                    return Approval.allow()
            if self._away is Away.REFUSE and not self._is_somebody_here():
                return Approval.deny(NOBODY)
        return None

    def _leads(self, request: ApprovalRequest) -> Path | None:
        """Where the path of a call leads, through links; None = it has none."""
        path = request.arguments.get(_PATHS.get(request.tool_name, ""))
        if not isinstance(path, str) or "\0" in path:
            return None
        return real_path(path, Path(self._request.cwd))

    def _is_somebody_here(self) -> bool:
        last = self._files.last_here()
        return last is not None and self._clock() - last < FRESH

    def _obey(self, number: int, request: ApprovalRequest, answer: Approval) -> Answer:
        if answer.verdict is Verdict.STOP:
            self._settle(number, Fate.STOPPED, reason=answer.reason)
            self._stopped = True
            reason = answer.reason or "the user stopped the run"
            return {"continue": False, "stopReason": reason}
        if answer.verdict is Verdict.DENY:
            self._settle(number, Fate.DENIED, reason=answer.reason)
            return _refusal(f"{SAID_NO}: {answer.reason}" if answer.reason else f"{SAID_NO}.")
        if answer.rules:
            with self._lock:
                self._granted.add(answer.rules, answer=number)
        arguments = request.arguments if answer.arguments is None else unsealed(answer.arguments)
        changed = arguments != request.arguments
        if changed:
            judgement = self._judge(request.tool_name, arguments, subagent=request.subagent)
            if judgement.way is Way.REFUSE:
                self._settle(number, Fate.DENIED, arguments=arguments, reason=judgement.why)
                return _refusal(judgement.why)
        given = self._through(request.tool_name, arguments)
        fate = Fate.CHANGED if changed else Fate.ALLOWED
        self._settle(number, fate, arguments=arguments if changed else None)
        return given

    def _settle(
        self,
        number: int,
        fate: Fate,
        *,
        arguments: Mapping[str, Any] | None = None,
        reason: str = "",
    ) -> None:
        """Write down what became of a question; where it was settled before, that stands."""
        with suppress(FileExistsError):
            settled = replace(self._settled(fate, reason=reason), arguments=arguments)
            self._files.settle(number, settled)

    def _settled(self, fate: Fate, *, reason: str) -> Settled:
        return Settled(fate=fate, reason=reason, at=round(self._clock() * 1000))


def _placed(tool: str, arguments: Mapping[str, Any], cwd: Path) -> Mapping[str, Any]:
    """The arguments with the whole path of a file that is not there.

    By a relative one the CLI would edit a file of that name elsewhere in the project, or, where the
    name begins with `@`, write the one without.
    """
    path = arguments.get("file_path")
    if tool not in EDITS or not isinstance(path, str) or is_there(cwd / path):
        return arguments
    guessed = tool == "replace" or path.startswith("@")
    return {**arguments, "file_path": str(cwd / path)} if guessed else arguments


def _written(tool: str, arguments: Mapping[str, Any]) -> tuple[str, str]:
    """A call as the CLI has it, to which all numbers are floating-point, and without the seal."""
    numbers = json.loads(json.dumps(unsealed(arguments)), parse_int=float)
    return tool, json.dumps(numbers, sort_keys=True)


def _with(arguments: Mapping[str, Any]) -> Answer:
    return {"hookSpecificOutput": {"hookEventName": "BeforeTool", "tool_input": arguments}}


def _trouble(error: Exception) -> str:
    why = error.strerror if isinstance(error, OSError) else None
    return f"{TROUBLE}: {why}" if why else TROUBLE


def _refusal(reason: str) -> Answer:
    return {"decision": "deny", "reason": reason}
