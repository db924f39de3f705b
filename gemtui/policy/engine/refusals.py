"""Predict what the CLI refuses or asks about whatever the rules say.

The engine protects build files and files outside the workspace even from calls that rules allow
(assets/gemini-cli.md#protected-files), and the tools themselves refuse some calls
(assets/gemini-cli.md#own-refusals).
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from gemtui.calls.paths import named_path, percent_decoded, real_path, within
from gemtui.calls.shell.parser import unwrapped
from gemtui.paths import gemini_home, setting_paths
from gemtui.policy.engine.setup import Evaluation, Setup, table_at
from gemtui.policy.match.matching import SHELL
from gemtui.policy.model.rules import ApprovalMode, Call, Decision
from gemtui.policy.model.tool_catalog import ALIASES

BUILD_FILES = frozenset(
    (
        "BUILD",
        "BUILD.bazel",
        "WORKSPACE",
        "WORKSPACE.bazel",
        "MODULE.bazel",
        ".bazelrc",
        ".blazerc",
        "Makefile",
        "makefile",
        "GNUmakefile",
        "CMakeLists.txt",
        "package.json",
        "package-lock.json",
        "pnpm-lock.yaml",
        "yarn.lock",
        "bun.lockb",
        "setup.py",
        "setup.cfg",
        "pyproject.toml",
        "go.mod",
        "go.sum",
        "Cargo.toml",
        "Cargo.lock",
        "pom.xml",
        "build.gradle",
        "build.gradle.kts",
        "settings.gradle",
        "settings.gradle.kts",
        "Dockerfile",
        "Containerfile",
    )
)
BUILD_ENDINGS = frozenset({".bzl", ".bazel", ".bzlmod", ".mk", ".cmake"})
BUILD_MESSAGE = "Modifying build configuration files requires explicit user confirmation"
"""The message to the model when a headless run may not change a build file."""

EDIT_WORDS = frozenset(("write", "edit", "replace", "patch", "update", "create", "append", "save"))
_PATH_KEYS = ("file_path", "path", "filePath", "file")


def is_edit_tool(name: str) -> bool:
    """Return whether a word in a tool's name makes the CLI treat it as an edit tool."""
    return any(word in EDIT_WORDS for word in re.split("[^a-z0-9]+", name.lower()))


def protected(
    evaluation: Evaluation,
    args: Mapping[str, Any],
    *,
    edits: bool,
    interactive: bool,
    workspace: Path | None,
) -> Evaluation:
    """Apply the engine's own protections to a decision, and return the result.

    They affect only calls that rules allow: the user must then be asked, or the call is denied.
    `edits`: whether the tool edits files. `workspace`: the run's folder; None if unknown.
    """
    if evaluation.decision is not Decision.ALLOW:
        return evaluation
    if "additional_permissions" in args and _requests_outside(args, workspace):
        note = "it asks for permissions outside the workspace"
        evaluation = _asked(evaluation, note)
    if evaluation.decision is Decision.ALLOW and edits:
        path = edited_file(args)
        if path and is_build_file(path, workspace):
            return _build_file(evaluation, interactive)
    return evaluation


def _asked(evaluation: Evaluation, note: str) -> Evaluation:
    matched = evaluation.matched or evaluation.ready
    return replace(evaluation, decision=Decision.ASK_USER, matched=matched, note=note)


def _build_file(evaluation: Evaluation, interactive: bool) -> Evaluation:
    return Evaluation(
        decision=Decision.ASK_USER if interactive else Decision.DENY,
        matched=evaluation.matched or evaluation.ready,
        note="it writes a build file, which no rule can allow",
        message=BUILD_MESSAGE,
    )


def edited_file(args: Mapping[str, Any]) -> str | None:
    """Return the path in which the CLI's policy engine looks for a build file, or None.

    It is the first of these arguments that is set, whichever the tool reads.
    """
    for key in _PATH_KEYS:
        value = args.get(key)
        if value is not None:
            return value.strip() if isinstance(value, str) else None
    return None


@lru_cache(maxsize=4096)
def is_build_file(path: str, workspace: Path | None = None) -> bool:
    """Return whether the CLI's policy engine protects a path as a build file.

    The engine doesn't read a path as the tools do: a leading `@` is part of the name. Links are
    followed if the workspace is known.
    """
    path = path.replace("\0", "").replace("\\", "/")
    if not path:
        return False
    path = percent_decoded(path.removeprefix("file://"))
    target = Path(os.path.normpath(path if workspace is None else workspace / path))
    name = _followed(target).name if workspace else target.name
    ending = Path(name).suffix.lower()
    prefixed = name.startswith(("Dockerfile.", "Containerfile."))
    return name in BUILD_FILES or prefixed or ending in BUILD_ENDINGS


def _followed(path: Path) -> Path:
    """Return where a link leads; a path that isn't a link is returned unchanged."""
    try:
        return Path(os.path.realpath(path)) if path.is_symlink() else path
    except OSError:
        return path


def _requests_outside(args: Mapping[str, Any], workspace: Path | None) -> bool:
    """Return whether `additional_permissions` names files outside the workspace."""
    wanted = args["additional_permissions"]
    files = wanted.get("fileSystem") if isinstance(wanted, Mapping) else None
    if not isinstance(files, Mapping):
        return False
    lists = [value for value in (files.get("read"), files.get("write")) if isinstance(value, list)]
    paths = [path for value in lists for path in value if isinstance(path, str)]
    return any(_outside(path, workspace) for path in paths)


def _outside(path: str, workspace: Path | None) -> bool:
    if workspace is None:
        return path.startswith("/") or os.path.normpath(path).split("/")[0] == ".."
    inner = os.path.relpath(workspace / path, workspace)
    return inner.split("/")[0] == ".."


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


def tool_refuses(
    call: Call, roots: Sequence[Path] = (), *, mode: ApprovalMode, on_disk: bool = True
) -> str | None:
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
    named = table_at(setup.settings, "context").get("includeDirectories")
    added = setting_paths(named, setup.home or gemini_home(), setup.workspace)
    return (
        setup.workspace,
        *added,
        *(setup.workspace / folder for folder in setup.include_directories),
    )


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
    if not any(substitution in command for substitution in _SUBSTITUTIONS):
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
        target = real_path(target)
        roots = [real_path(root) for root in roots]
    for root in roots:
        if within(root, target):
            return _name_refused(os.path.relpath(target, root).replace(os.sep, "/"))
    return _OUTSIDE if on_disk and not _OWN.search(target) else None


def _name_refused(inside: str) -> str | None:
    if inside.split("/")[0] == "..":
        return _OUTSIDE
    name = blocked_segment(inside)
    return f"no tool may use a path through {name}" if name else None
