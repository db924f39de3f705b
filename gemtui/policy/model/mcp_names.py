"""The names by which Gemini CLI calls the tools of MCP servers (assets/gemini-cli.md#mcp-names).

A tool's full name is made from its server's and its own name, but it is not always their plain
combination: characters are replaced, and long names are cut. Rules are compared with the result, so
a rule for the plain combination may never match.
"""

from __future__ import annotations

import re
from typing import Final

MCP_PREFIX: Final = "mcp_"
LONGEST_NAME: Final = 63
_END = 30
"""How many characters of a long name are kept at each end."""
_CUT = "..."
_FOREIGN = re.compile(r"[^a-zA-Z0-9_\-.:]")


def cli_name(server: str, tool: str) -> str:
    """Return the full name by which Gemini CLI calls a server's tool."""
    return valid_name(f"{server}_{tool}")


def valid_name(name: str) -> str:
    """Turn a name into a valid full name of an MCP tool, as Gemini CLI does.

    The prefix `mcp_` is added unless the name already starts with it, invalid characters become
    `_`, and the middle of a long name is cut out.
    """
    name = _uncut(name)
    return name if len(name) <= LONGEST_NAME else f"{name[:_END]}{_CUT}{name[-_END:]}"


def _uncut(name: str) -> str:
    return _FOREIGN.sub("_", name if name.startswith(MCP_PREFIX) else MCP_PREFIX + name)


def tool_prefix(server: str) -> str:
    """Return what the full names of a server's tools start with before they are cut."""
    return _uncut(f"{server}_")


def is_valid_name(name: str) -> bool:
    """Return whether a tool of some server may be called by this full name."""
    return name != MCP_PREFIX and name.startswith(MCP_PREFIX) and valid_name(name) == name


def is_name_of_server(name: str, server: str) -> bool:
    """Return whether a tool of this server may be called by this full name."""
    if not is_valid_name(name):
        return False
    prefix = tool_prefix(server)
    if name.startswith(prefix) and len(name) > len(prefix):
        return True
    cut = len(name) == LONGEST_NAME and name[_END : _END + len(_CUT)] == _CUT
    return cut and (name[:_END].startswith(prefix) or prefix.startswith(name[:_END]))


def tool_patterns(server: str) -> tuple[str, ...]:
    """Return glob patterns that match the full names of a server's tools, cut or not."""
    prefix = tool_prefix(server)
    if len(prefix) <= _END:
        return (f"{prefix}*",)
    return f"{prefix}*", f"{prefix[:_END]}{_CUT}*"


def wildcard_works(server: str) -> bool:
    """Return whether the wildcard `mcp_<server>_*` matches any of the server's tools.

    The wildcard contains the server's plain name.
    """
    return (
        tool_prefix(server) == f"{MCP_PREFIX}{server}_" and len(tool_prefix(server)) < LONGEST_NAME
    )


def longest_in_wildcard(server: str) -> int | None:
    """Return the length up to which the wildcard matches the names of the server's tools.

    Returns None if it matches tools with names of any length. A long name is cut after 30
    characters, so that it no longer starts with the name of a server that is longer than that.
    """
    prefix = tool_prefix(server)
    return None if len(prefix) <= _END else LONGEST_NAME - len(prefix)


def rule_name(server: str, tool: str) -> str:
    """Return the full name with which a rule's mcpName and toolName are compared."""
    return f"{MCP_PREFIX}*" if server == tool == "*" else f"{MCP_PREFIX}{server}_{tool}"


def matches_some_tool(name: str) -> bool:
    """Return whether a rule with this full name as its toolName can match a tool of some server.

    The name must not be a wildcard. Besides a tool's full name, a rule may have one that is
    preceded by `mcp_`, the plain name of its server and `_`.
    """
    if is_valid_name(name):
        return True
    inner = (match.start() for match in re.finditer(f"_(?={MCP_PREFIX})", name))
    return any(is_name_of_server(name[at + 1 :], name[len(MCP_PREFIX) : at]) for at in inner)
