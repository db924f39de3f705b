"""A project's folder in the demo: tools that read and change it, as the CLI records their calls."""

from __future__ import annotations

import difflib
import fnmatch
import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Json = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A finished tool call: an entry of `toolCalls[]` without its id and time.

    `response`: {"output": …} or {"error": …}. `seconds`: how long it took.
    """

    name: str
    args: Json
    response: Json
    display: Any = ""
    description: str = ""
    title: str = ""
    status: str = "success"
    markdown: bool = True
    seconds: float = 0.1
    agent: str | None = None

    def reply(self, id: str) -> Json:
        """The functionResponse part that the model got."""
        return {"functionResponse": {"id": id, "name": self.name, "response": self.response}}

    def entry(self, id: str, time: str) -> Json:
        """The call as the CLI stores it."""
        stored = {
            "id": id,
            "name": self.name,
            "args": self.args,
            "result": [self.reply(id)],
            "status": self.status,
            "timestamp": time,
        }
        if self.agent is not None:
            stored["agentId"] = self.agent
        return stored | {
            "resultDisplay": self.display,
            "description": self.description,
            "displayName": self.title or self.name,
            "renderOutputAsMarkdown": self.markdown,
        }


def failed(call: Call, error: str, *, display: object = None, status: str = "error") -> Call:
    """The same call, gone wrong: nothing was changed."""
    return Call(
        name=call.name,
        args=call.args,
        response={"error": error},
        display=error if display is None else display,
        description=call.description,
        title=call.title,
        status=status,
        seconds=call.seconds,
    )


CANCELLED = "[Operation Cancelled] Reason: User denied execution."


@dataclass
class Workspace:
    """Files of a project at one moment of its story; `files` by relative path.

    `old`: as versions before 0.39 recorded calls, with absolute paths.
    """

    root: Path
    slug: str
    files: dict[str, str] = field(default_factory=dict)
    old: bool = False

    @property
    def hash(self) -> str:
        """`projectHash`: names the project's folder in old versions."""
        return hashlib.sha256(str(self.root).encode()).hexdigest()

    def tree(self) -> str:
        """The folders as the session context shows them."""
        return "\n".join(_branches(sorted(self.files)))

    def _named(self, path: str) -> str:
        return str(self.root / path) if self.old else path

    # --- reading -------------------------------------------------------------------------------

    def read(self, path: str, first: int | None = None, last: int | None = None) -> Call:
        """read_file, all of it or the lines from `first` to `last`."""
        args: Json = {"file_path": self._named(path)}
        text = self.files[path]
        if first is not None and last is not None:
            args |= {"start_line": first, "end_line": last}
            text = "".join(text.splitlines(keepends=True)[first - 1 : last])
        if self.old:
            args["absolute_path"] = args["file_path"]
        return Call(
            name="read_file",
            args=args,
            response={"output": text},
            description=path,
            title="ReadFile",
            seconds=0.02,
        )

    def missing(self, path: str) -> Call:
        """read_file of what is not there."""
        call = Call(
            name="read_file", args={"file_path": path}, response={}, description=path,
            title="ReadFile", seconds=0.02,
        )  # fmt: skip
        return failed(call, f"File not found: {self.root / path}", display="File not found.")

    def grep(self, pattern: str) -> Call:
        """grep_search over the files as they are now."""
        found = [
            {
                "filePath": path,
                "absolutePath": str(self.root / path),
                "lineNumber": number,
                "line": line,
            }
            for path in sorted(self.files)
            for number, line in enumerate(self.files[path].splitlines(), 1)
            if re.search(pattern, line)
        ]
        listed = "\n".join(f"{m['filePath']}:L{m['lineNumber']}: {m['line']}" for m in found)
        summary = f"Found {len(found)} match{'es' if len(found) != 1 else ''}"
        return Call(
            name="grep_search",
            args={"pattern": pattern, "dir_path": "."},
            response={"output": f'{summary} for pattern "{pattern}" in path ".":\n---\n{listed}'},
            display={"summary": summary, "matches": found},
            description=f"'{pattern}' within ./",
            title="SearchText",
            seconds=0.06,
        )

    def glob(self, pattern: str) -> Call:
        """Glob over the files as they are now."""
        found = [str(self.root / path) for path in self.files if fnmatch.fnmatch(path, pattern)]
        said = f'Found {len(found)} file(s) matching "{pattern}" within {self.root}, '
        return Call(
            name="glob",
            args={"pattern": pattern},
            response={
                "output": said + "sorted by modification time (newest first):\n" + "\n".join(found)
            },
            display=f"Found {len(found)} matching file(s)",
            description=f"'{pattern}'",
            title="FindFiles",
            seconds=0.03,
        )

    def list(self, path: str = ".") -> Call:
        """list_directory."""
        inside = path.removeprefix(".").rstrip("/")
        names = sorted(_children(self.files, inside))
        listed = "\n".join(names)
        return Call(
            name="list_directory",
            args={"dir_path": self._named(path)},
            response={"output": f"Directory listing for {self.root / path}:\n{listed}"},
            display={"summary": f"Found {len(names)} item(s).", "files": names},
            description=path,
            title="ReadFolder",
            seconds=0.02,
        )

    # --- writing -------------------------------------------------------------------------------

    def write(self, path: str, content: str) -> Call:
        """write_file; the file is there from now on."""
        call = self.proposal(path, content)
        new = path not in self.files
        display = call.display | {
            "fileDiff": call.display["fileDiff"]
            .replace("\tCurrent", "\tOriginal")
            .replace("\tProposed", "\tWritten"),
            "isNewFile": new,
        }
        self.files[path] = content
        done = (
            "Successfully created and wrote to new file" if new else "Successfully overwrote file"
        )
        said = f"{done}: {self.root / path}."
        if not self.old:
            said += f" Here is the updated code:\n{content}"
        return Call(
            name="write_file",
            args=call.args,
            response={"output": said},
            display=display,
            description=call.description,
            title="WriteFile",
            seconds=0.05,
        )

    def proposal(self, path: str, content: str) -> Call:
        """write_file as it is proposed: nothing is changed yet."""
        return Call(
            name="write_file",
            args={"file_path": self._named(path), "content": content},
            response={},
            display=self._change(path, self.files.get(path, ""), content),
            description=f"Writing to {path}",
            title="WriteFile",
            seconds=6.0,
        )

    def replace(self, path: str, old: str, new: str, why: str) -> Call:
        """Replace; `old` must stand in the file exactly once."""
        before = self.files[path]
        if before.count(old) != 1:
            raise ValueError(f"{path}: {before.count(old)} times {old!r}")
        after = self.files[path] = before.replace(old, new)
        said = f"Successfully modified file: {self.root / path} (1 replacements)."
        if not self.old:
            said += f" Here is the updated code:\n{after}"
        return Call(
            name="replace",
            args=self._replace_args(path, old, new, why),
            response={"output": said},
            display=self._change(path, before, after) | {"isNewFile": False},
            description=f"{path}: {_head(old)} => {_head(new)}",
            title="Edit",
            seconds=0.04,
        )

    def misses(self, path: str, old: str, new: str, why: str) -> Call:
        """Replace whose `old` stands nowhere in the file."""
        call = Call(
            name="replace", args=self._replace_args(path, old, new, why), response={},
            description=f"{path}: {_head(old)} => {_head(new)}", title="Edit", seconds=0.03,
        )  # fmt: skip
        return failed(
            call,
            f"Could not find an exact match for 'old_string' in '{path}'. If previous edits "
            "modified the file, use ReadFile to inspect the target lines before retrying.",
            display=f"Error: Could not find an exact match for old_string in '{path}'.",
        )

    def _replace_args(self, path: str, old: str, new: str, why: str) -> Json:
        return {
            "file_path": self._named(path),
            "old_string": old,
            "new_string": new,
            "instruction": why,
        }

    def _change(self, path: str, before: str, after: str) -> Json:
        name = path.rsplit("/", 1)[-1]
        diff = list(_hunks(before, after))
        added = [line for line in diff if line.startswith("+")]
        removed = [line for line in diff if line.startswith("-")]
        head = f"Index: {name}\n{'=' * 67}\n--- {name}\tCurrent\n+++ {name}\tProposed\n"
        return {
            "fileDiff": head + "\n".join(diff) + "\n",
            "fileName": name,
            "filePath": str(self.root / path),
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

    # --- running -------------------------------------------------------------------------------

    def shell(
        self,
        command: str,
        output: str,
        *,
        why: str = "",
        code: int = 0,
        seconds: float = 1.2,
        screen: Sequence[Sequence[Json]] | None = None,
    ) -> Call:
        """run_shell_command; `screen`: the terminal as an interactive run stores it."""
        said = f"Output: {output}"
        if code:
            said += f"\nExit Code: {code}"
        said += f"\nProcess Group PGID: {20000 + len(command) * 37}"
        if not self.old:
            said = f"<untrusted_context>\n{said}\n</untrusted_context>"
        return Call(
            name="run_shell_command",
            args={"command": command, "description": why} if why else {"command": command},
            response={"output": said},
            display=output if screen is None else screen,
            description=command,
            title="Shell",
            markdown=False,
            seconds=seconds,
        )


def _children(paths: Iterable[str], inside: str) -> set[str]:
    prefix = f"{inside}/" if inside else ""
    rest = [path.removeprefix(prefix) for path in paths if path.startswith(prefix)]
    return {f"[DIR] {path.split('/')[0]}" if "/" in path else path for path in rest}


def _branches(paths: Sequence[str], indent: str = "") -> Iterable[str]:
    tops = list(dict.fromkeys(path.split("/")[0] for path in paths))
    for top in tops:
        last = top == tops[-1]
        below = [path.split("/", 1)[1] for path in paths if path.startswith(f"{top}/")]
        yield f"{indent}{'└' if last else '├'}───{top}{'/' if below else ''}"
        yield from _branches(below, indent + ("    " if last else "│   "))


def _head(text: str) -> str:
    """The first line with something on it, as the CLI describes an edit."""
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return f"{line[:30]}..." if len(line) > 30 else line


_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")


def _hunks(before: str, after: str) -> Iterable[str]:
    """The hunks of a unified diff, with counts also where they are 1."""
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=3)
    for line in list(lines)[2:]:
        match = _HUNK.fullmatch(line)
        if match is None:
            yield line
        else:
            start, count, to, number = match.groups()
            yield f"@@ -{start},{count or 1} +{to},{number or 1} @@"


def cells(*runs: str | tuple[str, Json]) -> list[Json]:
    """A line of a terminal screen: texts, or texts with what differs from plain style."""
    flags = ("bold", "italic", "underline", "dim", "inverse", "isUninitialized")
    plain: Json = dict.fromkeys(flags, False) | {"fg": "", "bg": ""}
    pairs = [(run, {}) if isinstance(run, str) else run for run in runs]
    width = sum(len(text) for text, _ in pairs)
    padding = {"text": " " * max(1, 100 - width)} | plain | {"isUninitialized": True}
    return [*({"text": text} | plain | style for text, style in pairs), padding]
