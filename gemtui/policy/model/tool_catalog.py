"""The CLI's tools by name, with their arguments (assets/gemini-cli.md#tools)."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from types import MappingProxyType

import msgspec
from msgspec import Struct

from gemtui.policy.model.mcp_names import MCP_PREFIX, is_valid_name, valid_name
from gemtui.policy.model.rules import ApprovalMode


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A tool; `required` and `optional` are its arguments, in the CLI's order."""

    name: str
    required: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()

    @property
    def arguments(self) -> tuple[str, ...]:
        """All arguments, the required ones first."""
        return (*self.required, *self.optional)


class _ToolRow(Struct, frozen=True, forbid_unknown_fields=True, rename={"class_name": "class"}):
    required: str = ""
    optional: str = ""
    class_name: str = ""
    former: str = ""


def _rows() -> Mapping[str, _ToolRow]:
    """Return the rows of `tools.toml`, by the tool's name."""
    text = Path(__file__).with_name("tools.toml").read_text(encoding="utf-8")
    return msgspec.convert(tomllib.loads(text), dict[str, _ToolRow])


_ROWS = _rows()
TOOLS = tuple(
    Tool(name=name, required=tuple(row.required.split()), optional=tuple(row.optional.split()))
    for name, row in _ROWS.items()
)
"""The tools that gemtui knows; those that rules name most often come first."""

AGENTS = ("generalist", "codebase_investigator", "cli_help", "browser_agent")
"""The CLI's built-in agents; a rule for such a name is about calls that invoke it."""

AGENT_TOOL = "invoke_agent"
"""The tool that invokes an agent."""
ALIASES: Mapping[str, str] = MappingProxyType({"search_file_content": "grep_search"})
"""Maps older tool names to the current ones; rules may use either name.

See assets/gemini-cli.md#tool-names.
"""

CLASSES = {name: row.class_name for name, row in _ROWS.items() if row.class_name}
"""Maps tools to their class names, which tools.core and tools.exclude also accept."""
FORMER = {
    former: name
    for name, row in _ROWS.items()
    for former in (*row.class_name.split(), *row.former.split())
}
"""Maps names under which a tool is known elsewhere to its actual name.

No rule matches these names. They come from screens, settings, older versions and other agents.
"""

_FORMER_ANY_CASE = {name.lower(): tool for name, tool in FORMER.items()}
GONE = ("delegate_to_agent", "save_memory")
"""Tools that only older versions have."""

DISCOVERED = "discovered_tool_"
"""The prefix of the names of tools that a command in the settings provides."""

BUILT_IN: Mapping[ApprovalMode, str] = MappingProxyType(
    {
        ApprovalMode.DEFAULT: "reading and searching are allowed; everything else asks, which "
        "means deny in headless runs",
        ApprovalMode.AUTO_EDIT: (
            "as in default, but writing files and fetching pages are also allowed"
        ),
        ApprovalMode.PLAN: (
            "reading and searching are allowed; only plans can be written, in their own folder"
        ),
        ApprovalMode.YOLO: "everything is allowed, unless a policy file has a matching rule",
    }
)
"""Describes, for each mode, the CLI's own rules; all policy files rank above them."""

_BY_NAME = {each.name: each for each in TOOLS}


def is_known(name: str) -> bool:
    """Return whether the CLI has a tool with this name, or with this older name."""
    return tool(name) is not None


def tool(name: str) -> Tool | None:
    """Return the tool with this name or alias; None if the CLI has no such tool."""
    return _BY_NAME.get(ALIASES.get(name, name))


def can_exist(name: str) -> bool:
    """Return whether the CLI, in this or an older version, can call a tool by this name."""
    if name.startswith(MCP_PREFIX):
        return is_valid_name(name)
    return is_known(name) or name in GONE or name.startswith(DISCOVERED)


def current_name(name: str) -> str | None:
    """Return the name by which the CLI calls the tool that was probably meant; None if unknown.

    `name`: a name that `can_exist` rejects.
    """
    if name.startswith(MCP_PREFIX) and name != MCP_PREFIX:
        return valid_name(name)
    if _is_older_mcp(name):
        return valid_name("_".join(name.split("__", 1)))
    return AGENT_TOOL if name in AGENTS else nearest(name)


def _is_older_mcp(name: str) -> bool:
    """Return whether older versions used this name for a tool of a server (`server__tool`)."""
    return "__" in name.strip("_")


def may_exist(name: str) -> bool:
    """Return whether gemtui knows of a tool or an agent that has this name, or can have it.

    Names of MCP tools can exist, including the form `server__tool` of older versions. Extensions
    provide their tools by MCP, so their names can exist as well.
    """
    return can_exist(name) or name in AGENTS or _is_older_mcp(name)


def name_problem(name: str) -> str | None:
    """Return why a run's options can't name a tool like this; None if they can.

    Such a name can't be written into a rule, or is known to be a mistake: a class name, a name from
    elsewhere or a misspelt one. Denying such a tool would silently deny nothing. Any other name is
    accepted, because there are tools that gemtui doesn't know.
    """
    meant = None if may_exist(name) else current_name(name)
    wrong = f"{name!r} is not a tool; did you mean {meant}?" if meant else None
    return unwritable_name(name) or wrong


def unwritable_name(name: str) -> str | None:
    """Return why a rule for a single tool can't have this name; None if it can."""
    if not name:
        return "'' is not a tool's name: remove it"
    if "*" in name:
        return f"{name!r} contains *, but names in this option are not patterns"
    if any("\ud800" <= char <= "\udfff" for char in name):
        return f"{name!r} contains an incomplete character (a lone surrogate)"
    return None


def nearest(name: str) -> str | None:
    """Return the tool or agent that was probably meant by an unknown name, or None."""
    former = FORMER.get(name) or _FORMER_ANY_CASE.get(name.lower())
    if former:
        return former
    names = (*_BY_NAME, *AGENTS)
    plain = {known_name.replace("_", ""): known_name for known_name in names}
    near = get_close_matches(name, names, n=1, cutoff=0.7)
    return near[0] if near else plain.get(name.replace("_", "").replace("-", "").lower())
