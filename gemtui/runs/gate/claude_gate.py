"""The gate of a Claude Code run, which speaks with it through its stdin.

Claude Code asks before and tells after each call by hooks that are registered when it starts
(assets/agents.md#the-gate-of-claude-code). What it writes is read from its output file. Any failure
in this module denies the call.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from gemtui.agent.approval import PASSED, ApprovalRequest
from gemtui.agent.claude import added_folders
from gemtui.agent.claude_settings import variables
from gemtui.agent.command import ALLOWS, DENIES
from gemtui.agent.output import NewEvents
from gemtui.agent.run_folder import Request, RunFolder
from gemtui.agent.supervise import CHECK_PAUSE
from gemtui.agent.verdict import Allow, Deny, Prompt, Say, Stop, Verdict
from gemtui.agents import WORDS, Agent
from gemtui.calls.effect import CallContext, Effect
from gemtui.files import is_file
from gemtui.policy.file.levels import approval_mode
from gemtui.policy.model.rules import ApprovalMode, Call
from gemtui.runs.gate.decider import AgentPolicy
from gemtui.runs.gate.gate import TROUBLE, Gate, call_key, denial_after
from gemtui.runs.gate.policy import Judgement, Way
from gemtui.runs.gate.verification import MadeCall
from gemtui.transcript.parts import mapping, objects, parts_of, string

ANSWER_WITHIN = 30.0
"""How many seconds Claude Code has to say that it will ask gemtui; before, it gets no prompt."""
LONGEST_WAIT = 2_147_483
"""How many seconds Claude Code waits for an answer: the most that its timer takes."""
SILENT = "{} did not agree to ask gemtui, so gemtui could not ask you"
OTHER_MODE = "{} left the permission mode in which gemtui is asked about calls"
FORGED = "a program answered {} in gemtui's place"
NOBODY_ASKED = "The run does not ask, so this call is not made."
_TOLD_WITHIN = 2.0
"""How many seconds after the end of a subagent the model gets to know of it."""
_BEGIN, _STOP = "gemtui-begin", "gemtui-stop"
_BEFORE, _AFTER, _FAILED = "before", "after", "failed"
_HOOKS = {"PreToolUse": _BEFORE, "PostToolUse": _AFTER, "PostToolUseFailure": _FAILED}
_MODES = ("default", "plan")
"""The permission modes in which nothing is made without an answer."""


class _Unasked:
    """Denies what the policy would ask about, for runs that don't ask."""

    def __init__(self, policy: AgentPolicy) -> None:
        self._policy = policy
        self.spelled, self.effect = policy.spelled, policy.effect

    def judge(self, call: Call, effect: Effect | None = None) -> Judgement:
        """Return how to handle a call; the way is never ASK."""
        judgement = self._policy.judge(call, effect)
        if judgement.way is not Way.ASK:
            return judgement
        return Judgement(way=Way.REFUSE, why=NOBODY_ASKED)


class ClaudeGate:
    """Brings the calls of a run of Claude Code to its gate, and prompts to Claude Code.

    It works from `open` to `close`. `clock`, `may_prompt`: as in `Gate`.
    """

    agent = Agent.CLAUDE

    def __init__(
        self,
        folder: RunFolder,
        request: Request,
        *,
        clock: Callable[[], float] = time.time,
        may_prompt: Callable[[], bool] = lambda: True,
    ) -> None:
        self._folder, self._request, self._clock = folder, request, clock
        self.gate = Gate(folder, request, agents=self._agent_of, clock=clock, may_prompt=may_prompt)
        self._output = NewEvents(
            folder.stdout,
            "control_request",
            "control_cancel_request",
            "control_response",
            "system",
            "user",
            "result",
            parse=json.loads,
        )
        self._stdin: IO[bytes] | None = None
        self._writing = threading.Lock()
        self._closed = threading.Event()
        self._began = self._is_over = False
        self._connected = time.monotonic()
        self._idle_until: float | None = None
        """Until when Claude Code may wait for a prompt; None while it answers one."""
        self._busy = False
        """Whether subagents work in the background, which then get an answer of the model."""
        self._model: str | None = None
        self._agents: dict[str, str] = {}
        """The subagents that made calls, by the ids of the calls."""
        self._allowed: dict[str, Mapping[str, Any]] = {}
        """The arguments of the calls that may be made, by their ids."""
        self._requests: set[str] = set()
        """The requests that Claude Code has sent."""
        self._tools: dict[str, str] = {}
        """The tools of the calls that were asked about, by the ids of the calls."""
        self._answered: set[str] = set()
        """The requests that gemtui has answered."""
        self._off: set[str] = set()
        """The requests that Claude Code has withdrawn."""

    # --- for the supervisor ----------------------------------------------------------------------

    def open(self, temporary: Path) -> Mapping[str, str]:  # noqa: ARG002
        """Load the policies of the run, before Claude Code starts. Raises OSError, GemtuiError."""
        about, folder = self._request.about, self._folder.path
        chosen = [Path(path) for path in about.get("policies") or ()]
        files = [folder / DENIES, *chosen, folder / ALLOWS]
        environ, cwd = {**os.environ, **self._request.environ}, Path(self._request.cwd)
        policy = AgentPolicy(
            self.agent,
            [path for path in files if path in chosen or is_file(path)],
            cwd,
            mode=approval_mode(about.get("approval_mode") or ApprovalMode.DEFAULT),
            include_directories=added_folders(self._request.argv),
            environ={**environ, **self._variables(cwd, environ)},
        )
        self.gate.open(policy if about.get("ask") else _Unasked(policy))
        return {}

    def connect(self, stdin: IO[bytes]) -> None:
        """Register the hooks, and send the prompt once Claude Code has taken them."""
        self._stdin, self._connected = stdin, time.monotonic()
        self._request_of_ours(_BEGIN, {"subtype": "initialize", **self._terms()})
        threading.Thread(target=self._listen, name="gate", daemon=True).start()

    def _variables(self, cwd: Path, environ: Mapping[str, str]) -> Mapping[str, str]:
        """Return the variables that the agent's settings add."""
        return variables(cwd, environ)

    def _terms(self) -> Mapping[str, Any]:
        """Return how the agent is to ask gemtui."""
        hooks = {
            event: [{"matcher": None, "hookCallbackIds": [name], "timeout": LONGEST_WAIT}]
            for event, name in _HOOKS.items()
        }
        return {"hooks": hooks}

    def _words(self, text: str) -> str:
        return text.format(WORDS[self.agent].program)

    @property
    def waiting(self) -> bool:
        """Whether the user is being asked."""
        return self.gate.waiting

    @property
    def stopped(self) -> bool:
        """Whether the user has stopped the run in answer to a question."""
        return self.gate.stopped

    @property
    def kept_until(self) -> float | None:
        """Until when Claude Code may wait for a prompt, in seconds since 1970; None if it works."""
        return None if self._busy else self._idle_until

    def problem(self) -> str | None:
        """Return why the whole run must be killed at once; None if all is well."""
        silent = time.monotonic() - self._connected > ANSWER_WITHIN
        if self._stdin is not None and not self._began and silent:
            return self._words(SILENT)
        return self.gate.wrong

    def interrupt(self) -> bool:
        """Tell Claude Code to give up and end; return whether it could be told."""
        if self._stdin is None or not self._began:
            return False
        self._is_over = True
        threading.Thread(target=self._give_up, daemon=True).start()  # it may not read
        return True

    def _give_up(self) -> None:
        if self._idle_until is None:
            self._request_of_ours(_STOP, {"subtype": "interrupt"})
        self._end_input()

    def close(self) -> None:
        """Abandon all unanswered questions, and check the files of calls without a result."""
        self._closed.set()
        self._end_input()
        self.gate.close()

    def _end_input(self) -> None:
        self._is_over = True
        if self._stdin is not None and self._writing.acquire(timeout=1):
            self._stdin.close()
            self._writing.release()

    # --- what Claude Code says -------------------------------------------------------------------

    def _listen(self) -> None:
        try:
            while not self._closed.wait(CHECK_PAUSE):
                for event in self._output.read():
                    self._take(event)
                if self._idle_until is not None:
                    self._go_on()
        except Exception as error:
            self.gate.end_with(denial_after(error).reason)

    def _take(self, event: Mapping[str, Any]) -> None:
        kind = event["type"]
        if kind == "control_request":
            id = string(event.get("request_id"))
            if id in self._requests:  # its answer could be taken for that to the first one
                self.gate.end_with(self._words(FORGED))
                return
            self._requests.add(id)
            if mapping(event.get("request")).get("callback_id") in (_AFTER, _FAILED):
                self._reply(event)
            else:
                threading.Thread(target=self._reply, args=(event,), daemon=True).start()
        elif kind == "control_cancel_request":
            self._off.add(string(event.get("request_id")))
        elif kind == "control_response":
            self._has_begun(mapping(event.get("response")))
        elif kind == "user":
            self._check_results(event)
        elif kind == "system":
            self._look_at(event)
        elif kind == "result":
            self._idle_until = self._clock() + (self._request.about.get("keep") or 0)

    def _has_begun(self, response: Mapping[str, Any]) -> None:
        """Send the prompt once the hooks are taken. Claude Code also repeats gemtui's answers."""
        id = string(response.get("request_id"))
        if id not in (_BEGIN, _STOP) and id not in self._answered:
            self.gate.end_with(self._words(FORGED))
        if id != _BEGIN or self._began:
            return
        if response.get("subtype") != "success":
            self.gate.end_with(self._words(SILENT))
            return
        self._began = True
        self._prompt(self._folder.prompt_text())

    def _look_at(self, event: Mapping[str, Any]) -> None:
        if event.get("subtype") == "init":
            self._model = string(event.get("model")) or None
            self._idle_until = None
        if event.get("subtype") == "background_tasks_changed":
            tasks = objects(event.get("tasks"))
            was_busy = self._busy
            self._busy = any(task.get("task_type") == "local_agent" for task in tasks)
            if was_busy and self._idle_until is not None:  # the model is told, and answers
                self._idle_until = max(self._idle_until, self._clock() + _TOLD_WITHIN)
        mode = event.get("permissionMode") or event.get("permission_mode") or "default"
        if mode not in _MODES:
            self.gate.end_with(self._words(OTHER_MODE))

    def _check_results(self, event: Mapping[str, Any]) -> None:
        """End the run if a call was made that the gate has not allowed."""
        accepted = {
            meta.get("id")
            for meta in objects(event.get("tool_result_meta"))
            if mapping(meta.get("permission_decision")).get("decision") == "accept"
        }
        for block in parts_of(mapping(event.get("message")).get("content")):
            if block.get("type") != "tool_result":
                continue
            id = string(block.get("tool_use_id"))
            was_made = block.get("is_error") is not True or id in accepted
            if was_made and id not in self._allowed:
                self.gate.end_with(PASSED)
            self.gate.call_ended(id)

    # --- what it asks ----------------------------------------------------------------------------

    def _reply(self, event: Mapping[str, Any]) -> None:
        """Answer a request; if anything fails, the answer is a denial."""
        id, request = string(event.get("request_id")), mapping(event.get("request"))
        try:
            response = self._answer(id, request)
        except Exception as error:
            response = self._spelled(denial_after(error))
        answer: Mapping[str, Any]
        if response is None:
            answer = {"subtype": "error", "request_id": id, "error": "gemtui does not do this"}
        else:
            answer = {"subtype": "success", "request_id": id, "response": response}
        self._answered.add(id)
        self._send({"type": "control_response", "response": answer})

    def _answer(self, id: str, request: Mapping[str, Any]) -> Mapping[str, Any] | None:
        called = mapping(request.get("input"))
        match request.get("subtype"), request.get("callback_id"):
            case "hook_callback", str(callback) if callback == _BEFORE:
                return self._spelled(self._before(called, lambda: self._is_off(id)))
            case "hook_callback", str(callback) if callback in (_AFTER, _FAILED):
                return self._after(called, failed=callback == _FAILED)
            case "can_use_tool", _:
                return self._confirmed(string(request.get("tool_use_id")), called)
        return None

    def _is_off(self, id: str) -> bool:
        return id in self._off or self._closed.is_set()

    def _before(self, called: Mapping[str, Any], gone: Callable[[], bool]) -> Verdict:
        tool, id = string(called.get("tool_name")), string(called.get("tool_use_id"))
        arguments = called.get("tool_input")
        if not tool or not id or not isinstance(arguments, dict):
            return Deny(TROUBLE)
        self._agents[id] = string(called.get("agent_type"))
        _, _, server = tool.partition("mcp__")
        call = ApprovalRequest(
            tool_name=tool,
            arguments=arguments,
            tool_use_id=id,
            session_id=string(called.get("session_id")) or None,
            subagent=bool(called.get("agent_id")),
            context=CallContext(
                project=Path(string(called.get("cwd")) or self._request.cwd),
                model=self._model,
                agent=self.agent,
            ),
            server=server.partition("__")[0],
        )
        verdict = self.gate.before_call(call, gone)
        if isinstance(verdict, Allow):
            self._allowed[id] = verdict.arguments
            return verdict
        return verdict if isinstance(verdict, (Deny, Stop)) else Deny("The question is off.")

    def _agent_of(self, call: ApprovalRequest) -> Collection[str]:
        agent = self._agents.get(call.tool_use_id or "")
        return (agent,) if agent else ()

    def _confirmed(self, id: str, called: Mapping[str, Any]) -> Mapping[str, Any]:
        """Answer what Claude Code asks by its own rules, after the gate has allowed the call."""
        allowed = self._allowed.get(id)
        if allowed is not None and call_key("", called) == call_key("", allowed):
            return {"behavior": "allow", "updatedInput": allowed}
        return {"behavior": "deny", "message": "gemtui did not let this call through."}

    def _after(self, called: Mapping[str, Any], *, failed: bool) -> Mapping[str, Any]:
        tool, id = string(called.get("tool_name")), string(called.get("tool_use_id"))
        made, response = called.get("tool_input"), mapping(called.get("tool_response"))
        allowed = self._allowed.get(id)
        if not isinstance(made, dict) or allowed is None:
            self.gate.end_with(PASSED)
            return {}
        self.gate.after_call(
            MadeCall(
                tool_name=tool,
                arguments=_without_defaults(made, allowed),
                tool_use_id=id,
                needs_gate=True,
                failed=failed,
                path=response.get("filePath"),
                content=response.get("content"),
            )
        )
        if failed or called.get("agent_id"):
            return {}
        return self._spelled(self.gate.new_messages(tool, id))

    def _spelled(self, verdict: Verdict) -> Mapping[str, Any]:
        """Return the answer to a hook, so that Claude Code does as the verdict says."""
        if isinstance(verdict, Say):
            return {
                "hookSpecificOutput": {
                    "hookEventName": "PostToolUse",
                    "additionalContext": verdict.context,
                }
            }
        if isinstance(verdict, Allow):
            output = {"permissionDecision": "allow", "updatedInput": verdict.arguments}
        elif isinstance(verdict, (Deny, Stop)):
            output = {"permissionDecision": "deny", "permissionDecisionReason": verdict.reason}
        else:
            return {}
        return {"hookSpecificOutput": {"hookEventName": "PreToolUse", **output}}

    # --- what gemtui says ------------------------------------------------------------------------

    def _go_on(self) -> None:
        """Send the next prompt, or let Claude Code end if it has waited long enough for one."""
        if self._is_over:
            return  # what is in the queue stays there for the next run
        verdict = self.gate.next_prompt()
        if isinstance(verdict, Prompt):
            self._prompt(verdict.text)
        elif not self._busy and self._clock() >= (self._idle_until or 0):
            self._end_input()

    def _prompt(self, text: str) -> None:
        self._idle_until = None
        message = {"role": "user", "content": text}
        self._send({"type": "user", "message": message, "session_id": ""})

    def _request_of_ours(self, id: str, request: Mapping[str, Any]) -> None:
        self._send({"type": "control_request", "request_id": id, "request": request})

    def _send(self, message: Mapping[str, Any]) -> None:
        """Write a line; Claude Code denies what it asks if its input ends."""
        line = json.dumps(message, allow_nan=False).encode() + b"\n"
        with self._writing, suppress(BrokenPipeError, ValueError):  # closed
            while line and self._stdin is not None:
                line = line[self._stdin.write(line) :]


def _without_defaults(made: Mapping[str, Any], allowed: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a call's arguments without those that Claude Code adds because they are not given."""
    return {name: value for name, value in made.items() if name in allowed or value}
