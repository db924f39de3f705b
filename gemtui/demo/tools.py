"""The tools of the demo's stand-in: its permissions, and its work in the project."""

from __future__ import annotations

import difflib
import hashlib
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from gemtui.policy.engine.decide import Engine, Explanation, Setup
from gemtui.policy.file.policy import Policy
from gemtui.policy.model.rules import ApprovalMode, Decision, Severity
from gemtui.policy.model.rules import Call as Asked

Json = dict[str, Any]
SHELL = "run_shell_command"
_LARGEST = 200_000


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoCall:
    """A tool call: an entry of `toolCalls[]` without its id and time.

    `response`: {"output": …} or {"error": …} after the call has run.
    """

    name: str
    args: Json
    response: Json = field(default_factory=dict)
    display: Any = ""
    description: str = ""
    title: str = ""
    status: str = "success"

    def failed(self, error: str) -> DemoCall:
        """Return the same call with an error as its result."""
        return replace(self, response={"error": error}, display=error, status="error")

    def reply(self, id: str) -> Json:
        """Return the functionResponse part that is sent to the model."""
        return {"functionResponse": {"id": id, "name": self.name, "response": self.response}}

    def entry(self, id: str, time: str) -> Json:
        """Return the call as an entry of `toolCalls[]` in the CLI's format."""
        return {
            "id": id,
            "name": self.name,
            "args": self.args,
            "result": [self.reply(id)],
            "status": self.status,
            "timestamp": time,
            "resultDisplay": self.display,
            "description": self.description,
            "displayName": self.title or self.name,
            "renderOutputAsMarkdown": self.name != SHELL,
        }


@dataclass(frozen=True, slots=True)
class Plan:
    """A planned tool call. `asked`: its name and arguments. `run`: carries it out."""

    asked: DemoCall
    run: Callable[[], DemoCall]


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """The reason why a call is refused, in the words of the CLI."""

    type: str
    message: str


class Rights:
    """Decides which calls are allowed, as the CLI does."""

    def __init__(self, mode: str, settings: Mapping[str, Any], policies: Sequence[Path]) -> None:
        """Load the policy files; report invalid ones on stderr, and ignore missing ones."""
        policy = Policy.load(policies)
        for finding in policy.findings:
            if finding.severity is Severity.ERROR and Path(finding.file).exists():
                name = Path(finding.file).name
                print(f"[USER] Policy file error in {name}: {finding.message}", file=sys.stderr)  # noqa: T201
        setup = Setup(settings=settings, workspace=Path.cwd())
        self._engine = Engine(policy, mode=ApprovalMode(mode), setup=setup)

    def refusal(self, asked: DemoCall) -> Refusal | None:
        """Return why a call is refused; None if it is allowed."""
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


class Bench:
    """A project's folder, with the tools that read and change its files.

    `slug`: the project's name in the store. `files`: the contents of files, by path relative to
    `root`.
    """

    def __init__(self, root: Path, slug: str) -> None:
        """Read the files of the project. Raises OSError."""
        self.root, self.slug = root, slug
        self.files: dict[str, str] = {}
        for path in sorted(root.rglob("*")):
            name = path.relative_to(root)
            hidden = any(part.startswith((".", "__")) for part in name.parts[:-1])
            if not hidden and path.is_file() and path.stat().st_size < _LARGEST:
                self.files[name.as_posix()] = path.read_text("utf-8", "replace")

    @property
    def hash(self) -> str:
        """The `projectHash` for the session's header."""
        return hashlib.sha256(str(self.root).encode()).hexdigest()

    def tree(self) -> str:
        """Return the folder tree for the session context."""
        return "\n".join(_branches(sorted(self.files)))

    def reading(self, path: str) -> Plan:
        """Return a planned call of read_file."""
        asked = DemoCall(
            name="read_file", args={"file_path": path}, description=path, title="ReadFile"
        )
        return Plan(asked, lambda: replace(asked, response={"output": self.files[path]}))

    def listing(self) -> Plan:
        """Return a planned call of list_directory."""
        asked = DemoCall(
            name="list_directory", args={"dir_path": "."}, description=".", title="ReadFolder"
        )
        return Plan(asked, lambda: self._list(asked))

    def writing(self, path: str, content: str) -> Plan:
        """Return a planned call of write_file."""
        asked = DemoCall(
            name="write_file",
            args={"file_path": path, "content": content},
            description=f"Writing to {path}",
            title="WriteFile",
        )
        return Plan(asked, lambda: self._write(asked, path, content))

    def editing(self, path: str, old: str, new: str, why: str) -> Plan:
        """Return a planned call of replace; `old` must occur exactly once when it runs."""
        asked = DemoCall(
            name="replace",
            args={"file_path": path, "old_string": old, "new_string": new, "instruction": why},
            description=f"{path}: {_head(old)} => {_head(new)}",
            title="Edit",
        )
        return Plan(asked, lambda: self._replace(asked, path, old, new))

    def running(self, command: str, why: str) -> Plan:
        """Return a planned call of run_shell_command, which starts a real process."""
        args = {"command": command, "description": why}
        asked = DemoCall(name=SHELL, args=args, description=command, title="Shell")
        return Plan(asked, lambda: self._run(asked, command))

    def _list(self, asked: DemoCall) -> DemoCall:
        tops = {path.partition("/")[::2] for path in self.files}
        names = sorted({f"[DIR] {top}" if below else top for top, below in tops})
        return replace(
            asked,
            response={"output": f"Directory listing for {self.root}:\n" + "\n".join(names)},
            display={"summary": f"Found {len(names)} item(s).", "files": names},
        )

    def _write(self, asked: DemoCall, path: str, content: str) -> DemoCall:
        before = self.files.get(path)
        done = "overwrote file" if before is not None else "created and wrote to new file"
        return self._changed(asked, path, before, content, f"Successfully {done}: {{path}}.")

    def _replace(self, asked: DemoCall, path: str, old: str, new: str) -> DemoCall:
        before = self.files[path]
        if before.count(old) != 1:
            raise ValueError(f"{path}: {before.count(old)} times {old!r}")
        done = "Successfully modified file: {path} (1 replacements)."
        return self._changed(asked, path, before, before.replace(old, new), done)

    def _changed(
        self, asked: DemoCall, path: str, before: str | None, after: str, done: str
    ) -> DemoCall:
        """Write the file; return the call with the CLI's message about the change."""
        place = self.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(after, encoding="utf-8", newline="\n")
        self.files[path] = after
        said = f"{done.format(path=place)} Here is the updated code:\n{after}"
        change = _change(place, before or "", after) | {"isNewFile": before is None}
        return replace(asked, response={"output": said}, display=change)

    def _run(self, asked: DemoCall, command: str) -> DemoCall:
        """Run the command in a session of its own, which may outlive this process."""
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
            shown = output.read().decode("utf-8", "replace").rstrip()
        said = f"Output: {shown}" + (f"\nExit Code: {code}" if code else "")
        said = f"<untrusted_context>\n{said}\nProcess Group PGID: {child.pid}\n</untrusted_context>"
        return replace(asked, response={"output": said}, display=shown)


def _change(path: Path, before: str, after: str) -> Json:
    """Return the `resultDisplay` of an edit."""
    diff = list(_hunks(before, after))
    added = [line for line in diff if line.startswith("+")]
    removed = [line for line in diff if line.startswith("-")]
    name = path.name
    head = f"Index: {name}\n{'=' * 67}\n--- {name}\tOriginal\n+++ {name}\tWritten\n"
    return {
        "fileDiff": head + "\n".join(diff) + "\n",
        "fileName": name,
        "filePath": str(path),
        "originalContent": before,
        "newContent": after,
        "diffStat": {
            "model_added_lines": len(added),
            "model_removed_lines": len(removed),
            "model_added_chars": sum(len(line) - 1 for line in added),
            "model_removed_chars": sum(len(line) - 1 for line in removed),
            "user_added_lines": 0,
            "user_removed_lines": 0,
            "user_added_chars": 0,
            "user_removed_chars": 0,
        },
    }


def _branches(paths: Sequence[str], indent: str = "") -> Iterable[str]:
    tops = list(dict.fromkeys(path.split("/")[0] for path in paths))
    for top in tops:
        last = top == tops[-1]
        below = [path.split("/", 1)[1] for path in paths if path.startswith(f"{top}/")]
        yield f"{indent}{'└' if last else '├'}───{top}{'/' if below else ''}"
        yield from _branches(below, indent + ("    " if last else "│   "))


def _head(text: str) -> str:
    """Return the first nonblank line, which the CLI uses to describe an edit."""
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return f"{line[:30]}..." if len(line) > 30 else line


_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")


def _hunks(before: str, after: str) -> Iterable[str]:
    """Yield the hunks of a unified diff, with line counts even if they are 1."""
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=3)
    for line in list(lines)[2:]:
        match = _HUNK.fullmatch(line)
        if match is None:
            yield line
        else:
            start, count, to, number = match.groups()
            yield f"@@ -{start},{count or 1} +{to},{number or 1} @@"
