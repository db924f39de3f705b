"""Detect searches whose pattern git grep would treat as an option.

Such an option could run any program, and Gemini CLI doesn't ask about searches in any mode
(assets/gemini-cli.md#searches).
"""

from __future__ import annotations

from typing import Final

from gemtui.policy.model.rules import Call, Decision, Rule
from gemtui.policy.model.tool_catalog import ALIASES

_SEARCH: Final = "grep_search"
_NAMES: Final = frozenset((_SEARCH, *(old for old, name in ALIASES.items() if name == _SEARCH)))
OPTION: Final = (
    "Gemini CLI hands a pattern that begins with `-` to git grep as an option, which can run a "
    "program. Write its first character as `[-]`."
)
"""Why such a search is denied, as a message to the model."""
DENY_OPTION: Final = Rule(
    tools=(_SEARCH,),
    decision=Decision.DENY,
    priority=999,
    args_pattern='"pattern":"-',
    deny_message=OPTION,
)


def is_option(call: Call) -> bool:
    """Return whether a call is a search whose pattern would be treated as an option."""
    return is_search(call) and str(call.args.get("pattern", "")).startswith("-")


def is_search(call: Call) -> bool:
    """Return whether a call searches in files."""
    return call.tool in _NAMES
