"""The gate of a Gemini CLI run: its hooks ask at a socket, and a seal marks the calls it allows.

Any failure in this module denies the call; `gemtui/runs/gate/policy.py` explains why this is
reliable.
"""

from __future__ import annotations

import os
import shlex
import sys
import threading
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, assert_never

from gemtui.agent.approval import (
    MOVED,
    PASSED,
    STOLEN,
    TAMPERED,
    UNGATED,
    ApprovalRequest,
)
from gemtui.agent.command import GATE
from gemtui.agent.run_folder import Request, RunFolder
from gemtui.agent.verdict import Allow, Deny, Pass, Prompt, Say, Stop, Verdict
from gemtui.calls.effect import EDIT, SHELL, WRITE, CallContext
from gemtui.calls.paths import absolute, named_path
from gemtui.extension.watch import FileWatch, hook_files
from gemtui.files import resolved
from gemtui.runs.gate.gate import TROUBLE, Gate, denial_after
from gemtui.runs.gate.policy import GatePolicy
from gemtui.runs.gate.server import GateServer, IsGone
from gemtui.runs.gate.verification import AGENT, CallWatch, MadeCall
from gemtui.transcript.parts import mapping, string
from gemtui.transcript.seal import carries, is_sealed, new_seal, sealed, unsealed

SOCKET = "gate"
MOST_HANDED_ON = 3
"""How many prompts one process of the CLI may get after its first one."""
MOST_TURNS = 25
"""How many answers the model may have given in a process that gets another prompt."""
NESTED = "Requested by another Gemini CLI that a command of this run started."

HookAnswer = Mapping[str, Any]


class GeminiGate:
    """Brings the calls of a run's hooks to its gate; works from `open` to `close`.

    `clock`, `may_prompt`: as in `Gate`.
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
        self.gate = Gate(
            folder, request, agents=self._maybe_agents, clock=clock, may_prompt=may_prompt
        )
        self._seal = new_seal()
        self._lock = threading.Lock()
        """Held whenever `_calls` is used."""
        self._calls = CallWatch(folder.stdout, self._seal)
        self._policy: GatePolicy  # `open` sets this and the next two
        self._hooks: FileWatch
        self._server: GateServer | None = None
        self._came, self._session = False, ""
        self._handed_on = 0

    def open(self, temporary: Path) -> Mapping[str, str]:
        """Start listening for the CLI's hooks, before the CLI starts.

        Returns variables for the CLI's environment, with which the hooks find the socket.
        `temporary`: the run's folder for temporary files. Raises OSError, GemtuiError.
        """
        self._hooks = FileWatch(hook_files({**os.environ, **self._request.environ}))
        self._policy = GatePolicy.of(self._request)
        self.gate.open(self._policy)
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
        """Whether the user is being asked."""
        return self.gate.waiting

    @property
    def stopped(self) -> bool:
        """Whether the user has stopped the run in answer to a question."""
        return self.gate.stopped

    def problem(self) -> str | None:
        """Return why the whole run must be killed at once; None if all is well."""
        with self._lock:
            self._calls.update()
            if self._calls.began and not self._came:
                return UNGATED
            for id in self._calls.ended():
                self.gate.call_ended(id)
            if self._calls.stolen:
                return STOLEN
            if wrong := PASSED if self._calls.ungated else self.gate.wrong:
                return wrong
        if self._hooks.changed():
            return TAMPERED
        hooks_start = os.access(f"{self._request.cwd}/.", os.X_OK)
        return None if hooks_start else MOVED

    def close(self) -> None:
        """Abandon all unanswered questions, and check the files of calls without a result.

        Raises OSError if the outcomes can't be recorded.
        """
        if self._server is not None:
            self._server.close()
        self._remove_rules()
        self.gate.close()

    def _remove_rules(self) -> None:
        with suppress(OSError):
            (self._folder.path / GATE).unlink(missing_ok=True)

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
                return spelled(self._after_tool(event))
            if kind == "AfterAgent":
                return spelled(self._after_agent(event))
        except Exception as error:  # an error of any kind must never allow the call
            denial = denial_after(error)
            return spelled(denial if kind == "BeforeTool" else Pass())
        return spelled(Pass())

    def _before_tool(self, event: Mapping[str, Any], gone: IsGone) -> HookAnswer | None:
        name = string(event.get("tool_name"))
        arguments = event.get("tool_input")
        if not name or not isinstance(arguments, dict):
            return spelled(Deny(TROUBLE))
        if carries(arguments, self._seal):
            return spelled(self.gate.end_with(STOLEN))
        if self._hooks.changed():
            return spelled(self.gate.end_with(TAMPERED))
        call = self._call_of(event, name, unsealed(arguments))
        verdict = self.gate.before_call(call, gone)
        if verdict is None:
            return None
        if isinstance(verdict, Allow):
            return spelled(self._sealed(name, verdict))
        changed = isinstance(verdict, Pass) and call.requested != arguments
        return spelled(Allow(call.requested) if changed else verdict)

    def _sealed(self, tool: str, verdict: Allow) -> Verdict:
        """Return the verdict with the seal, which replaces any changes by other hooks."""
        if self._hooks.changed():
            return self.gate.end_with(TAMPERED)
        if not self._policy.can_carry_seal(tool):
            return verdict
        return Allow(sealed(tool, verdict.arguments, self._seal))

    def _call_of(
        self, event: Mapping[str, Any], name: str, arguments: Mapping[str, Any]
    ) -> ApprovalRequest:
        """Convert a call that a hook reports into a request for approval."""
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
        return ApprovalRequest(
            tool_name=name,
            arguments=arguments,
            tool_use_id=id,
            session_id=string(event.get("session_id")) or None,
            subagent=id is None and not hooked,
            hooked=hooked,
            because=NESTED if nested else "",
            context=CallContext(project=project, model=model, corrects=self._policy.corrects),
            server=string(server.get("server_name")),
            origin=_origin(server),
        )

    def _is_nested(self, event: Mapping[str, Any]) -> bool:
        """Return whether an event is from another CLI that a command of the run started."""
        return self._session not in ("", string(event.get("session_id")))

    def _maybe_agents(self, call: ApprovalRequest) -> Collection[str]:
        with self._lock:
            return self._calls.agents if call.subagent else ()

    def _after_tool(self, event: Mapping[str, Any]) -> Verdict:
        tool, made = string(event.get("tool_name")), event.get("tool_input")
        with self._lock:
            id = self._calls.last_passed(tool)
        if isinstance(made, dict):
            response = mapping(event.get("tool_response"))
            display = mapping(response.get("returnDisplay"))
            call = MadeCall(
                tool_name=tool,
                arguments=unsealed(made),
                tool_use_id=id,
                needs_gate=is_sealed(made) or not self._policy.can_carry_seal(tool),
                failed=bool(response.get("error")),
                path=display.get("filePath"),
                content=display.get("newContent"),
            )
            self.gate.after_call(call)
        if self._hooks.changed():
            self.gate.end_with(TAMPERED)
        if self.gate.wrong is not None:
            return Stop(self.gate.wrong)
        if self._is_nested(event):
            return Pass()
        with self._lock:
            self._calls.update()
            if self._calls.agents and tool != AGENT:
                return Pass()  # a subagent may have made the call
            id = self._calls.last_passed(tool)
        return self.gate.new_messages(tool, id)

    def _after_agent(self, event: Mapping[str, Any]) -> Verdict:
        if self._is_nested(event) or not self._may_hand_on():
            return Pass()
        verdict = self.gate.next_prompt()
        self._handed_on += isinstance(verdict, Prompt)
        return verdict

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
            return not (
                self._handed_on >= MOST_HANDED_ON or turns >= MOST_TURNS or self._calls.repeats
            )


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


def spelled(verdict: Verdict) -> HookAnswer:
    """Return what a hook prints, so that the CLI does as the verdict says."""
    match verdict:
        case Pass():
            return {}
        case Allow(arguments):
            return {"hookSpecificOutput": {"hookEventName": "BeforeTool", "tool_input": arguments}}
        case Deny(text) | Prompt(text):
            return {"decision": "deny", "reason": text}
        case Stop(reason):
            return {"continue": False, "stopReason": reason}
        case Say(context):
            output = {"hookEventName": "AfterTool", "additionalContext": context}
            return {"hookSpecificOutput": output}
        case _:
            assert_never(verdict)
