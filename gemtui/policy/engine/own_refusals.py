"""Predict which calls the tools themselves refuse, whatever the policy decides.

See assets/gemini-cli.md#own-refusals.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from gemtui.calls.paths import named_path, real_path, within
from gemtui.calls.shell.parser import unwrapped
from gemtui.paths import gemini_home, settings_path
from gemtui.policy.engine.results import Setup
from gemtui.policy.engine.settings import names_at
from gemtui.policy.match.matching import SHELL
from gemtui.policy.model.rules import ApprovalMode, Call
from gemtui.policy.model.tool_catalog import ALIASES

_PATHS = {
    "read_file": "file_path",
    "write_file": "file_path",
    "replace": "file_path",
    "list_directory": "dir_path",
    "glob": "dir_path",
    "grep_search": "dir_path",
    SHELL: "dir_path",
}
"""For each tool, the argument whose path must be in the workspace."""

_WRITES = ("write_file", "replace")
_BLOCKED = re.compile(
    r"\.git|\.env|node_modules|gha-creds-.*\.json|(?:git|gi[0-9a-f]{4}|env|en[0-9a-f]{4})~\d+"
    r"|(?:node_m|no[0-9a-f]{4})~\d+|(?:gha-cr|gh[0-9a-f]{4})~\d+\.json?",
    re.DOTALL,
)
"""Matches names that no tool's path may contain, and their DOS short forms.

It expects names in lower case.
"""

_SUSPECT = re.compile(r"\.git|\.env|node_modules|gha-creds-|~|\.\.", re.IGNORECASE)
"""Matches in every path that a tool refuses for its spelling, and in some other paths.

A quick first test: a path without a match is never refused for its spelling.
"""

_OWN = re.compile(r"/\.gemini/(?:tmp/|GEMINI\.md$)")
"""Matches paths outside the workspace that tools may use all the same."""

_OUTSIDE = "the path is outside of the workspace"
_SUBSTITUTIONS = ("$(", "`", "<(", ">(")
_UNQUOTED = re.compile(r"'[^']*'?|\\.|\"|(?P<found>\$\(|`|[<>]\()|.", re.DOTALL)
_QUOTED = re.compile(r'\\[$`"\\\n]|"|(?P<found>\$\(|`)|.', re.DOTALL)


def tool_refuses(call: Call, roots: Sequence[Path] = (), *, mode: ApprovalMode, on_disk: bool = True) -> str | None:
    """Return why the tool itself refuses a call, as a clause; None if it doesn't.

    `roots`: the folders that tools may use, the workspace first; () means unknown, so that only
    relative paths are judged. `on_disk`: follow links on this disk. If False, as for a recorded
    call, paths are judged by their spelling only, and paths outside the workspace are not judged,
    because the call may have been made in a run that could use more folders.
    """
    tool = ALIASES.get(call.tool, call.tool)
    command = call.args.get("command")
    if tool == SHELL and isinstance(command, str) and _substitutes(unwrapped(command)):
        return "it does not accept command substitution: $(…), backticks, <(…) or >(…)"
    path = call.args.get(_PATHS.get(tool, ""))
    if not isinstance(path, str) or (mode is ApprovalMode.PLAN and tool in _WRITES):
        return None  # in plan mode, these tools write to the folder for plans
    return _path_refused(path, [str(root) for root in roots], on_disk=on_disk and bool(roots))


def roots_of(setup: Setup) -> tuple[Path, ...]:
    """Return the folders that tools may use.

    The workspace comes first, then those added by the settings and the run's options.
    """
    if setup.workspace is None:
        return ()
    more = names_at(setup.settings, "context", "includeDirectories") or ()
    home = gemini_home()
    added = (*(settings_path(each, home) for each in more), *setup.include_directories)
    return (setup.workspace, *(setup.workspace / each for each in added))


def own_path(tool: str) -> str:
    """Return the name of the tool's argument that must be a path in the workspace.

    Returns "" if the tool has no such argument.
    """
    return _PATHS.get(tool, "")


def is_outside(path: str, roots: Sequence[Path]) -> bool:
    """Return whether a tool that checks its paths refuses a path as outside `roots`."""
    return _path_refused(path, [str(root) for root in roots], on_disk=bool(roots)) == _OUTSIDE


def blocked_segment(path: str) -> str | None:
    """Return the first name in a path that no tool may use, such as `.git`, or None.

    `path`: relative to the workspace.
    """
    return next((part for part in path_names(path) if _BLOCKED.fullmatch(part)), None)


def path_names(path: str) -> list[str]:
    """Return the names in a path, in the form in which the CLI compares them.

    This is the form to which Windows reduces a name: in lower case, without trailing dots and
    blanks, and without anything from a colon on.
    """
    parts = re.split(r"[/\\]", path)
    return [part.partition(":")[0].rstrip(" .").lower() for part in parts]


def _substitutes(command: str) -> bool:
    """Return whether a command contains a substitution, such as `$(…)`.

    Quotes are interpreted as in the CLI.
    """
    if not any(each in command for each in _SUBSTITUTIONS):
        return False
    quoted, at = False, 0
    while piece := (_QUOTED if quoted else _UNQUOTED).match(command, at):
        if piece["found"]:
            return True
        quoted ^= piece[0] == '"'
        at = piece.end()
    return False


def _path_refused(path: str, roots: Sequence[str], *, on_disk: bool) -> str | None:
    path = path.replace("\0", "")
    if not on_disk and not _SUSPECT.search(path):
        return None
    if not roots:
        inside = os.path.normpath(path)
        return None if inside.startswith("/") else _name_refused(inside)
    target = named_path(path, roots[0], on_disk=on_disk)
    if on_disk:
        target, roots = real_path(target), [real_path(root) for root in roots]
    for root in roots:
        if within(root, target):
            return _name_refused(os.path.relpath(target, root))
    return _OUTSIDE if on_disk and not _OWN.search(target) else None


def _name_refused(inside: str) -> str | None:
    if inside.split("/")[0] == "..":
        return _OUTSIDE
    name = blocked_segment(inside)
    return f"no tool may use a path through {name}" if name else None
