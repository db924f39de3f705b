"""The engine's own protection of build files and of files outside the workspace.

This protection applies even to calls that rules allow. See assets/gemini-cli.md#protected-files.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from gemtui.calls.paths import percent_decoded
from gemtui.policy.engine.results import Evaluation
from gemtui.policy.model.rules import Decision

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
"""What the CLI tells the model when a headless run may not change a build file."""

EDIT_WORDS = frozenset(("write", "edit", "replace", "patch", "update", "create", "append", "save"))
_PATH_KEYS = ("file_path", "path", "filePath", "file")


def is_edit_tool(name: str) -> bool:
    """Return whether a word in a tool's name makes the CLI treat it as an edit tool."""
    return any(word in EDIT_WORDS for word in re.split("[^a-z0-9]+", name.lower()))


def protected(
    evaluation: Evaluation, args: Mapping[str, Any], *, edits: bool, interactive: bool, workspace: Path | None
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
    here = Path(os.path.normpath(path if workspace is None else workspace / path))
    name = _followed(here).name if workspace else here.name
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
