"""Find out from Gemini CLI's files whether it would run gemtui's hooks."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import Any

from msgspec import Struct

from gemtui.agent.settings import CliSettings, at
from gemtui.agent.trust import folder_settings
from gemtui.errors import GemtuiError
from gemtui.extension.content import MARK, NAME, is_current, offers_mcp
from gemtui.files import is_folder, resolved
from gemtui.jsonfile import read_object
from gemtui.jsonout import fields
from gemtui.paths import current_folder, extension_dir, gemini_home
from gemtui.system import Unported, why_not

INSTALL = "gemtui extension install"


class HookState(StrEnum):
    """Whether the CLI would run gemtui's hooks and, if not, why.

    The values are the names used in `--json`.
    """

    READY = "ready"
    UNSUPPORTED = "unsupported"
    """Gemini CLI can't run the hooks on this system."""
    MISSING = "missing"
    """The extension is not installed."""
    FOREIGN = "foreign"
    """A different extension with this name is installed."""
    GONE = "gone"
    """The folder from which the CLI loads the extension is missing or incomplete."""
    OLDER = "older"
    """The extension's files were written by a different version of gemtui."""
    DISABLED = "disabled"
    """The extension is disabled in this folder, by a command of the CLI."""
    HOOKS_OFF = "hooks_off"
    """The CLI's settings disable the hooks."""


class ExtensionState(Struct, frozen=True, kw_only=True):
    """The state of the extension for the next session in a folder.

    `folder`: the folder in which gemtui keeps the extension's files. `link`: the extension's path
    in `~/.gemini`, which exists if the extension is registered with the CLI. `source`: the folder
    from which the CLI loads the extension; None if it is not registered. `problem`: why the hooks
    would not be run, with the fix; None if they would be.
    """

    state: HookState
    folder: Path
    link: Path
    source: Path | None
    problem: str | None

    @property
    def installed(self) -> bool:
        """Whether the extension is registered with the CLI, in whatever state it is."""
        return self.state not in (HookState.UNSUPPORTED, HookState.MISSING, HookState.FOREIGN)

    @property
    def is_installed_here(self) -> bool:
        """Whether the CLI loads the extension from the folder where gemtui keeps it."""
        return self.source is not None and resolved(self.source) == resolved(self.folder)

    @property
    def offers_mcp(self) -> bool:
        """Whether the extension provides agents with an MCP server for stored sessions."""
        return self.source is not None and offers_mcp(self.source)

    def to_dict(self) -> dict[str, Any]:
        """Return the state as JSON values for `gemtui extension status --json`."""
        names = ("state", "installed", "folder", "link", "source", "problem")
        return fields(self, *names, mcp="offers_mcp")


def extension_state(
    environ: Mapping[str, str] = os.environ, cwd: Path | None = None, *, for_run: bool = False
) -> ExtensionState:
    """Return the extension's state for a session in `cwd`.

    `cwd`: None means the current folder. `for_run`: whether the session is a run that gemtui starts
    there, for which the user trusts the folder. Runs with `-e` are not affected by this state.
    Never raises.
    """
    home, folder = gemini_home(environ), extension_dir()
    link = home / "extensions" / NAME
    source, current = source_of(link), cwd or current_folder()
    settings = folder_settings(current, environ, for_run=for_run)
    problems = _problems(environ, current, settings, link, source)
    state, problem = next(problems, (HookState.READY, None))
    return ExtensionState(state=state, folder=folder, link=link, source=source, problem=problem)


def link_file(link: Path) -> Path:
    """Return the file with which the CLI registers an extension in another folder.

    `link`: the extension's path in `~/.gemini`.
    """
    return link / ".gemini-extension-install.json"


def source_of(link: Path) -> Path | None:
    """Return the folder from which the CLI loads the extension.

    `link`: the extension's path in `~/.gemini`. The CLI loads the extension from there, unless a
    file at that path names a different folder. Returns None if `link` does not exist.
    """
    if not os.path.lexists(link):
        return None
    with suppress(OSError):
        match read_object(link_file(link)):
            case {"type": "link", "source": str(source)} if "\0" not in source:
                return Path(source)
    return link


def _problems(
    environ: Mapping[str, str], cwd: Path, settings: CliSettings, link: Path, source: Path | None
) -> Iterator[tuple[HookState, str]]:
    """Yield everything that keeps the hooks from running, most fundamental first."""
    if reason := why_not(Unported.EXTENSION):
        yield HookState.UNSUPPORTED, reason
    if source is None:
        yield HookState.MISSING, f"gemtui's extension is not installed: {INSTALL}"
        return
    if not _is_ours(source):
        yield (
            HookState.FOREIGN,
            f"{link} is an extension named {NAME} that is not gemtui's: remove it with `gemini "
            f"extensions uninstall {NAME}`, then {INSTALL}",
        )
        return
    if not is_folder(source / "hooks"):
        yield (
            HookState.GONE,
            f"{source}, the folder of gemtui's extension, no longer exists: {INSTALL}",
        )
    elif not is_current(source):
        yield (
            HookState.OLDER,
            f"gemtui's extension in {source} belongs to another version of gemtui: {INSTALL}",
        )
    if not _is_enabled(environ, cwd):
        yield (
            HookState.DISABLED,
            (
                f"gemtui's extension is disabled in {cwd}: run `gemini extensions enable {NAME}` "
                "there"
            ),
        )
    yield from ((HookState.HOOKS_OFF, problem) for problem in _switched_off(settings, source))


def _is_ours(source: Path) -> bool:
    """Return whether a folder is gemtui's extension, by its path or its manifest."""
    if resolved(source) == resolved(extension_dir()):
        return True
    with suppress(OSError):
        return read_object(source / "gemini-extension.json").get("description") == MARK
    return not is_folder(source) and source.parts[-2:] == extension_dir().parts[-2:]


def _is_enabled(environ: Mapping[str, str], cwd: Path) -> bool:
    """Return whether the CLI's rules for folders enable the extension in `cwd`.

    The last matching rule wins.
    """
    rules: object = ()
    with suppress(OSError):
        listed = read_object(gemini_home(environ) / "extensions" / "extension-enablement.json")
        rules = at(listed, NAME, "overrides")
    enabled, current = True, f"{str(resolved(cwd)).rstrip('/')}/"
    for rule in rules if isinstance(rules, list) else ():
        if isinstance(rule, str) and _rule(rule.removeprefix("!")).fullmatch(current):
            enabled = not rule.startswith("!")
    return enabled


def _rule(words: str) -> re.Pattern[str]:
    return re.compile(re.sub(r"(/?)\\\*", r"(?:\1.*)?", re.escape(words)), re.DOTALL)


def _switched_off(settings: CliSettings, source: Path) -> Iterator[str]:
    """Yield a message for each setting that disables gemtui's hooks.

    For a setting with a single value, only the file with the highest priority counts.
    """
    enabled = [value for value in settings.each("hooksConfig", "enabled") if _is(value, bool)]
    if enabled and not enabled[-1][1]:
        yield f"{enabled[-1][0]} turns hooks off: remove hooksConfig.enabled from it"
    for file, names in settings.each("hooksConfig", "disabled"):
        if isinstance(names, list) and NAME in names:
            yield f"{file} disables gemtui's hooks: remove {NAME} from hooksConfig.disabled in it"
    allowed = [
        value for value in settings.each("security", "allowedExtensions") if _is(value, list)
    ]
    if allowed and allowed[-1][1] and not _matches(allowed[-1][1], resolved(source)):
        yield (
            f"{allowed[-1][0]} allows only other extensions: change security.allowedExtensions in "
            "it"
        )


def _is(found: tuple[Path, Any], kind: type) -> bool:
    return isinstance(found[1], kind)


def _matches(patterns: list[object], source: Path) -> bool:
    """Return whether one of the CLI's regular expressions is found in a path.

    Returns False if an expression is invalid or takes too long. Anyone may have written a project's
    settings, so their expressions are not trusted.
    """
    from gemtui.policy.match.patterns import compile_pattern

    texts = (pattern for pattern in patterns if isinstance(pattern, str))
    with suppress(GemtuiError):
        return any(compile_pattern(pattern).matches(str(source)) for pattern in texts)
    return False
