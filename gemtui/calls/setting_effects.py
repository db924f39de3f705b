"""Describe the consequences of Gemini CLI's settings.

See assets/gemini-cli.md#settings. The same table is used for the warnings before a run and for the
summary of a changed settings file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple, TypeGuard

from gemtui.calls.env_files import host

BROWSER_AGENT = "browser_agent"
"""The built-in agent that starts and controls a browser; only settings turn it on."""
_LONGEST = 400
"""The most characters of a setting's value to show."""


class SettingKind(StrEnum):
    """The kinds of consequences that a setting can have."""

    UNASKED = "unasked"
    """The setting makes the CLI ask for fewer approvals."""
    STARTS = "starts"
    """The setting starts a program before any question is asked."""
    SENDS = "sends"
    """The setting sends conversations elsewhere or stores them there."""
    OFFERS = "offers"
    """The setting makes the CLI's own dialogs offer to approve more than one call.

    This affects only the questions that Gemini CLI itself asks in a terminal.
    """
    GUARDS = "guards"
    """The setting makes the CLI stricter or changes its protections.

    Such a setting matters only when it is changed.
    """


@dataclass(frozen=True, slots=True)
class SettingEffect:
    """A setting and its consequence.

    `follows`: the consequence, as one sentence. `value`: the value in the settings file.
    """

    setting: str
    kind: SettingKind
    follows: str
    value: Any


class StartedCommand(NamedTuple):
    """A command that settings start.

    `words`: the program and its arguments; any of them may be a whole shell command line. `folder`:
    where the command runs, relative to the run's folder.
    """

    words: tuple[str, ...]
    folder: str = "."


def commands_of(settings: Mapping[str, Any]) -> Iterator[StartedCommand]:
    """Yield the commands that settings start without asking the user.

    They are the commands of hooks, of MCP servers, and of tools that the settings define.
    """
    for _, groups in _items(settings.get("hooks")):
        for command in _commands(groups):
            yield StartedCommand((command,))
    tables = [settings.get("mcpServers")]
    for _, override in _items(_at(settings, "agents", "overrides")):
        tables.append(_at(override, "mcpServers"))
    for servers in tables:
        for _, server in _items(servers):
            program, folder = _at(server, "command"), _at(server, "cwd")
            if _is_text(program):
                command_words = (program, *_texts(_at(server, "args")))
                yield StartedCommand(command_words, folder if _is_text(folder) else ".")
    for name in ("discoveryCommand", "callCommand"):
        command_line = _at(settings, "tools", name)
        if _is_text(command_line):
            yield StartedCommand((command_line,))


def setting_effects(settings: Mapping[str, Any]) -> Iterator[SettingEffect]:
    """Yield the consequences of all settings that have any worth mentioning.

    They quote untrusted values.
    """
    for setting, (kind, sentence_of) in _SETTINGS.items():
        value = _at(settings, *setting.split("."))
        follows = sentence_of(value)
        if follows:
            yield SettingEffect(setting, kind, follows, value)
    yield from _servers(settings.get("mcpServers"))
    yield from _agents(_at(settings, "agents", "overrides"))
    yield from _hooks(settings.get("hooks"))
    yield from _security(settings.get("security"))


# --- one setting, one sentence -------------------------------------------------------------------


def _unasked(value: Any) -> str:
    return f"{_listed(value)} without asking." if _texts(value) else ""


def _only(value: Any) -> str:
    sentence = f"{_listed(value)} without asking, and no other tool is available."
    return sentence if _texts(value) else ""


def _mode(value: Any) -> str:
    sentence = "Runs without an approval mode write files without asking."
    return sentence if value == "auto_edit" else ""


def _plans(value: Any) -> str:
    if not _is_text(value):
        return ""
    return f"In plan mode, Markdown files in {_shown(value)} are written without asking."


def _allowed_servers(value: Any) -> str:
    if not _texts(value):
        return ""
    return f"The tools of {_names(value)} run without asking, and other servers are disabled."


_Words = Callable[[Any], str]


def _if_value(value: bool, sentence: str) -> _Words:
    """Return a function that returns `sentence` if the setting has this value."""
    return lambda setting: sentence if setting is value else ""


def _of_text(sentence: str) -> _Words:
    """Return a function that puts a setting's string value into `sentence` at `{}`.

    The function returns "" for a value that isn't a string.
    """
    return lambda value: sentence.format(_shown(value)) if _is_text(value) else ""


def _of_host(sentence: str) -> _Words:
    """Return a function that puts the host of a setting's address into `sentence` at `{}`."""
    return lambda value: sentence.format(host(value)) if _is_text(value) else ""


def _of_names(sentence: str) -> _Words:
    """Return a function that puts a setting's list of names into `sentence` at `{}`.

    The function returns "" for a value that contains no names.
    """
    return lambda value: sentence.format(_names(value)) if _texts(value) else ""


_SETTINGS: Mapping[str, tuple[SettingKind, _Words]] = {
    "tools.allowed": (SettingKind.UNASKED, _unasked),
    "tools.core": (SettingKind.UNASKED, _only),
    "general.defaultApprovalMode": (SettingKind.UNASKED, _mode),
    "general.plan.directory": (SettingKind.UNASKED, _plans),
    "context.includeDirectories": (
        SettingKind.UNASKED,
        _of_names("Tools may use files in {} as if they were in the project."),
    ),
    "tools.sandboxAllowedPaths": (
        SettingKind.UNASKED,
        _of_names("Programs in the sandbox may also use {}."),
    ),
    "tools.sandboxNetworkAccess": (
        SettingKind.UNASKED,
        _if_value(True, "Programs in the sandbox may use the network."),
    ),
    "hooksConfig.enabled": (
        SettingKind.UNASKED,
        _if_value(False, "No hooks run, so gemtui can't ask you."),
    ),
    "hooksConfig.disabled": (SettingKind.UNASKED, _of_names("These hooks don't run: {}.")),
    "policyPaths": (
        SettingKind.UNASKED,
        _of_names("The rules in {} decide which calls need approval."),
    ),
    "adminPolicyPaths": (
        SettingKind.UNASKED,
        _of_names("The rules in {} decide which calls need approval."),
    ),
    "security.folderTrust.enabled": (
        SettingKind.UNASKED,
        _if_value(False, "Every folder is trusted without asking."),
    ),
    "tools.disableLLMCorrection": (
        SettingKind.UNASKED,
        lambda value: (
            "A model may rewrite texts after you have approved them."
            if lets_model_correct(value)
            else ""
        ),
    ),
    "tools.discoveryCommand": (
        SettingKind.STARTS,
        _of_text("Each run starts {} before asking anything."),
    ),
    "tools.callCommand": (
        SettingKind.STARTS,
        _of_text("Calls of discovered tools are carried out by {}."),
    ),
    "tools.shell.pager": (SettingKind.STARTS, _of_text("Commands such as git may start {}.")),
    "mcp.serverCommand": (
        SettingKind.STARTS,
        _of_text("Each run starts {} before asking anything."),
    ),
    "telemetry.otlpEndpoint": (SettingKind.SENDS, _of_host("Telemetry of runs is sent to {}.")),
    "experimental.gemmaModelRouter.classifier.host": (
        SettingKind.SENDS,
        _of_host("With this router on, prompts go to {}."),
    ),
    "telemetry.outfile": (SettingKind.SENDS, _of_text("Telemetry of runs is written to {}.")),
    "tools.exclude": (SettingKind.GUARDS, _of_names("Disabled or denied: {}.")),
    "tools.confirmationRequired": (
        SettingKind.GUARDS,
        _of_names("Always need approval, whatever the rules say: {}."),
    ),
    "mcp.allowed": (SettingKind.UNASKED, _allowed_servers),
    "mcp.autoAllowInHeadless": (
        SettingKind.UNASKED,
        lambda value: "Tools of MCP servers run without asking in headless runs." if value else "",
    ),
    "mcp.excluded": (SettingKind.GUARDS, _of_names("Disabled or denied: {}.")),
}


def lets_model_correct(value: Any) -> bool:
    """Return whether this value of `tools.disableLLMCorrection` lets a model edit writes."""
    return value is not None and not value and not isinstance(value, list | dict)


# --- tables --------------------------------------------------------------------------------------


def _servers(servers: Any) -> Iterator[SettingEffect]:
    for name, server in _items(servers):
        setting = f"mcpServers.{name}"
        starts = _server(server)
        if starts:
            yield SettingEffect(setting, SettingKind.STARTS, starts, server)
        if isinstance(server, Mapping) and server.get("trust"):
            follows = "The tools of this server run without asking."
            yield SettingEffect(f"{setting}.trust", SettingKind.UNASKED, follows, server["trust"])


def _server(server: Any) -> str:
    if not isinstance(server, Mapping):
        return ""
    command = server.get("command")
    if _is_text(command):
        line = " ".join((command, *_texts(server.get("args"))))
        return f"Each run starts {_shown(line)} before asking anything."
    for key in ("url", "httpUrl", "tcp"):
        url = server.get(key)
        if _is_text(url):
            return f"Each run connects to {host(url)} before asking anything."
    return ""


def _agents(overrides: Any) -> Iterator[SettingEffect]:
    """Yield the effects of settings that let agents start MCP servers or a browser."""
    for agent, override in _items(overrides):
        setting = f"agents.overrides.{agent}"
        enabled = _at(override, "enabled")
        if agent == BROWSER_AGENT and enabled:
            follows = f"The agent {_shown(agent)} starts a browser when it is used."
            yield SettingEffect(f"{setting}.enabled", SettingKind.STARTS, follows, enabled)
        for name, server in _items(_at(override, "mcpServers")):
            follows = _server(server)
            if follows:
                follows = follows.replace("Each run", f"The agent {_shown(agent)}")
                follows = follows.replace(" before asking anything", " when it is used")
                yield SettingEffect(
                    f"{setting}.mcpServers.{name}", SettingKind.STARTS, follows, server
                )


def _hooks(events: Any) -> Iterator[SettingEffect]:
    for event, groups in _items(events):
        commands = [_shown(command) for command in _commands(groups)]
        if commands:
            follows = f"Runs start {' and '.join(commands)} without asking."
            yield SettingEffect(f"hooks.{event}", SettingKind.STARTS, follows, groups)


def _commands(groups: Any) -> Iterator[str]:
    """Yield the commands of all hooks for one event.

    `groups`: a list of hooks, or of groups of hooks.
    """
    for group in groups if isinstance(groups, list) else ():
        inner = group.get("hooks") if isinstance(group, Mapping) else None
        for hook in inner if isinstance(inner, list) else [group]:
            if isinstance(hook, Mapping) and _is_text(hook.get("command")):
                yield hook["command"]


def _security(security: Any) -> Iterator[SettingEffect]:
    for name, value in _items(security):
        if name in _OFFERS and value:
            yield SettingEffect(f"security.{name}", SettingKind.OFFERS, _OFFERS[name], value)
        elif name != "folderTrust":
            follows = "This setting changes what Gemini CLI protects."
            yield SettingEffect(f"security.{name}", SettingKind.GUARDS, follows, value)


_OFFERS = {
    "enablePermanentToolApproval": (
        "In a terminal, approval dialogs can allow a tool for every session."
    ),
    "autoAddToPolicyByDefault": (
        "In a terminal, approval dialogs preselect the answer that allows a tool for every session."
    ),
}


# --- texts ---------------------------------------------------------------------------------------


def _at(value: Any, *names: str) -> Any:
    for name in names:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def _items(table: Any) -> Sequence[tuple[str, Any]]:
    return tuple(table.items()) if isinstance(table, Mapping) else ()


def _is_text(value: Any) -> TypeGuard[str]:
    return isinstance(value, str) and bool(value.strip())


def _texts(value: Any) -> list[str]:
    values = [value] if isinstance(value, str) else value
    return list(filter(_is_text, values)) if isinstance(values, list) else []


def _names(value: Any) -> str:
    return _shown(", ".join(_texts(value)), quote="")


def _listed(value: Any) -> str:
    """Join names of tools and append the verb, as in `read_file and glob run`."""
    texts = _texts(value)
    last = _shown("".join(texts[-1:]), quote="")
    if len(texts) < 2:
        return f"{last} runs"
    return f"{_shown(', '.join(texts[:-1]), quote='')} and {last} run"


def _shown(text: str, quote: str = "`") -> str:
    """Return a value between `quote` characters, shortened in the middle if too long."""
    if len(text) > _LONGEST:
        half = _LONGEST // 2
        text = f"{text[:half]} … ({len(text) - _LONGEST} more characters) … {text[-half:]}"
    return f"{quote}{text}{quote}"
