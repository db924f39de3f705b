"""The tools of the demo's stand-in: what it may do, and what it really does in its project."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gemtui.demo.workspace import Call, Workspace
from gemtui.policy.engine.decide import Engine, Explanation, Setup
from gemtui.policy.file.policy import Policy
from gemtui.policy.model.rules import ApprovalMode, Decision, Severity
from gemtui.policy.model.rules import Call as Asked

SHELL = "run_shell_command"
_LARGEST = 200_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A tool call that the stand-in wants to make; `asked` is its name and arguments."""

    asked: Call
    run: Callable[[], Call]


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why a call is not made, as the CLI words it."""

    type: str
    message: str


class Rights:
    """Which calls the mode, the settings and the policy files allow, as the CLI decides it."""

    def __init__(self, mode: str, settings: Mapping[str, Any], policies: Sequence[Path]) -> None:
        """A broken policy file is said on stderr and one that is missing is not, as by the CLI."""
        policy = Policy.load(policies)
        for finding in policy.findings:
            if finding.severity is Severity.ERROR and Path(finding.file).exists():
                name = Path(finding.file).name
                print(f"[USER] Policy file error in {name}: {finding.message}", file=sys.stderr)  # noqa: T201
        setup = Setup(settings=settings, workspace=Path.cwd())
        self._engine = Engine(policy, mode=ApprovalMode(mode), setup=setup)

    def refusal(self, asked: Call) -> Refusal | None:
        """Why this call can't be made now; None where it can."""
        found = self._engine.explain(Asked(tool=asked.name, args=asked.args))
        if found.offered and found.headless is Decision.ALLOW:
            return None
        return _refusal(asked.name, found)


def _refusal(tool: str, found: Explanation) -> Refusal:
    if not found.offered:
        offered = 'Did you mean one of: "read_file", "update_topic", "list_directory"?'
        return Refusal(type="tool_not_registered", message=f'Tool "{tool}" not found. {offered}')
    if found.decision is Decision.ASK_USER:
        words = "requires user confirmation, which is not supported in non-interactive mode."
        message = f'Tool execution for "{tool}" {words}'
        return Refusal(type="unhandled_exception", message=message)
    message = f"Tool execution denied by policy. {found.message or ''}".strip()
    return Refusal(type="policy_violation", message=message)


class Bench(Workspace):
    """The project's folder with its files as they are; what is changed here is changed there."""

    def load(self) -> None:
        """Look at the files of the project. Raises OSError."""
        self.files.clear()
        for path in sorted(self.root.rglob("*")):
            name = path.relative_to(self.root)
            hidden = any(part.startswith((".", "__")) for part in name.parts[:-1])
            if not hidden and path.is_file() and path.stat().st_size < _LARGEST:
                self.files[name.as_posix()] = path.read_text("utf-8", "replace")

    def reading(self, path: str) -> Plan:
        """read_file."""
        return Plan(asked=_asked("read_file", file_path=path), run=lambda: self.read(path))

    def listing(self) -> Plan:
        """list_directory."""
        return Plan(asked=_asked("list_directory", dir_path="."), run=self.list)

    def writing(self, path: str, content: str) -> Plan:
        """write_file."""
        asked = _asked("write_file", file_path=path, content=content)
        return Plan(asked=asked, run=lambda: self._kept(path, self.write(path, content)))

    def editing(self, path: str, old: str, new: str, why: str) -> Plan:
        """Replace; `old` must stand in the file exactly once by then."""
        asked = _asked("replace", file_path=path, old_string=old, new_string=new, instruction=why)
        return Plan(asked=asked, run=lambda: self._kept(path, self.replace(path, old, new, why)))

    def running(self, command: str, why: str) -> Plan:
        """run_shell_command, by a real child."""
        asked = _asked(SHELL, command=command, description=why)
        return Plan(asked=asked, run=lambda: self._run(command, why))

    def _kept(self, path: str, call: Call) -> Call:
        place = self.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(self.files[path], encoding="utf-8", newline="\n")
        return call

    def _run(self, command: str, why: str) -> Call:
        """In a session of its own, which outlives us if we are ended."""
        began = time.monotonic()
        path = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", "")))
        with tempfile.TemporaryFile() as output:
            child = subprocess.Popen(
                ["/bin/sh", "-c", command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=self.root,
                env={**os.environ, "PATH": path, "PYTHONDONTWRITEBYTECODE": "1"},
                start_new_session=True,
            )
            code = child.wait()
            output.seek(0)
            said = output.read().decode("utf-8", "replace").rstrip()
        return self.shell(command, said, why=why, code=code, seconds=time.monotonic() - began)


def _asked(name: str, **args: Any) -> Call:
    return Call(name=name, args=args, response={})
