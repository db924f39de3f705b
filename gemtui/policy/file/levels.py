"""Portable permission levels, and the policy rules they translate to.

"allow" and "ask" become rules with priority 997, and "deny" becomes a rule with priority 999. The
rules apply only to headless runs (`interactive = false`), because each set of them is written for
a single run, and gemtui runs Gemini CLI headless.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from gemtui.errors import OptionError
from gemtui.policy.file.policy import Policy
from gemtui.policy.model.rules import ApprovalMode, Decision, Rule
from gemtui.policy.model.tool_catalog import may_exist, name_problem, unwritable_name


class Level(StrEnum):
    """The permission levels of a capability, such as running commands."""

    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"


_PORTABLE_MODES = {
    "auto": ApprovalMode.YOLO,
    "bypass": ApprovalMode.YOLO,
    "bypassPermissions": ApprovalMode.YOLO,
    "acceptEdits": ApprovalMode.AUTO_EDIT,
    "autoEdit": ApprovalMode.AUTO_EDIT,
}
"""Names of approval modes in the permission policies of other agents and in rules."""


def approval_mode(name: str) -> ApprovalMode:
    """Return the approval mode with exactly this name. Raises OptionError for any other name.

    Names from elsewhere are not accepted, because a run must not be in yolo mode unless somebody
    has asked for `yolo` by its name.
    """
    return _mode_in({}, name)


def rule_mode(name: str) -> ApprovalMode:
    """Return the approval mode for its name, which may be spelled as in rules (`autoEdit`).

    This is for decisions, which run nothing. Raises OptionError for any other name.
    """
    return _mode_in({ApprovalMode.AUTO_EDIT.in_rules: ApprovalMode.AUTO_EDIT}, name)


def _mode_in(more: Mapping[str, ApprovalMode], name: str) -> ApprovalMode:
    """Return the mode that `more` or Gemini CLI calls by this name. Raises OptionError."""
    if name in more:
        return more[name]
    try:
        return ApprovalMode(name)
    except ValueError:
        raise OptionError(
            f"approval_mode must be one of {', '.join(ApprovalMode)}, not {name!r}"
        ) from None


@dataclass(frozen=True, slots=True, kw_only=True)
class PermissionPolicy:
    """Permission levels for three capabilities that every agent has in some form.

    A capability whose level is None is left to the approval mode; without a mode, it means ask.
    Levels may be given as strings: `PermissionPolicy(shell_execute="deny")`. Raises OptionError for
    any other value.
    """

    file_write: Level | str | None = None
    shell_execute: Level | str | None = None
    network_access: Level | str | None = None

    def __post_init__(self) -> None:
        """Convert strings to levels, so that an invalid string raises OptionError.

        Otherwise, a misspelt "deny" would silently deny nothing.
        """
        for name in CAPABILITIES:
            object.__setattr__(self, name, _level(name, getattr(self, name)))

    def policy(self, mode: ApprovalMode | str | None = None) -> Policy:
        """Return the rules for these levels in a headless run in this mode.

        `mode`: may also be a name from other agents' permission policies: `auto`, `bypass` and
        `bypassPermissions` mean yolo, `acceptEdits` and `autoEdit` mean auto_edit. No run can be
        started with these names (assets/library.md#policies). Raises OptionError for any other
        name.
        """
        chosen = None if mode is None else _mode_in(_PORTABLE_MODES, mode)
        return Policy(rules=rules(Permissions(mode=chosen, levels=self)))


def _level(name: str, value: str | None) -> Level | None:
    try:
        return None if value is None else Level(value)
    except ValueError:
        choices = ", ".join(Level)
        raise OptionError(f"{name} must be one of {choices}, not {value!r}") from None


CAPABILITIES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "file_write": ("replace", "write_file"),
        "shell_execute": ("run_shell_command",),
        "network_access": ("google_web_search", "web_fetch"),
    }
)
"""Maps each capability to the tools that have it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Permissions:
    """A run's options that concern tools.

    `levels`: None if not given. `only_tools`: the only tools the run may use; None means any tool,
    () means none. `approved_tools`: tools that need no approval. `disallowed_tools`: tools that are
    denied.
    """

    mode: ApprovalMode | None = None
    levels: PermissionPolicy | None = None
    only_tools: tuple[str, ...] | None = None
    approved_tools: tuple[str, ...] = ()
    disallowed_tools: tuple[str, ...] = ()

    @property
    def asks_unnamed(self) -> bool:
        """Whether any capability means ask because there is neither a level nor a mode."""
        return (
            self.mode is None
            and self.levels is not None
            and any(getattr(self.levels, name) is None for name in CAPABILITIES)
        )


def _rule(tool: str, decision: Decision, priority: int) -> Rule:
    return Rule(tools=(tool,), decision=decision, priority=priority, interactive=False)


def check_tools(permissions: Permissions) -> None:
    """Raise OptionError for the first name with a `name_problem`.

    The error names the position in an agent adapter's terms, such as `allowedTools[1]`, and the
    option.
    """
    _check(permissions, name_problem)


def unknown_tools(permissions: Permissions) -> tuple[str, ...]:
    """Return the names that are accepted, although gemtui knows no tool that can have them."""
    named = (name for _, _, name in _named(permissions))
    return tuple(dict.fromkeys(name for name in named if not may_exist(name)))


def _check(permissions: Permissions, problem_of: Callable[[str], str | None]) -> None:
    for option, place, name in _named(permissions):
        problem = problem_of(name)
        if problem:
            raise OptionError(f"{place} ({option}): {problem}", option=option, what=problem)


def _named(permissions: Permissions) -> Iterator[tuple[str, str, str]]:
    """Yield each tool name as (option, position, name).

    An example is `("only_tools", "allowedTools[2]", "glob")`.
    """
    for option, field in (
        ("only_tools", "allowedTools"),
        ("approved_tools", "approvedTools"),
        ("disallowed_tools", "disallowedTools"),
    ):
        for index, name in enumerate(getattr(permissions, option) or ()):
            yield option, f"{field}[{index}]", name


def rules(permissions: Permissions) -> tuple[Rule, ...]:
    """Return the policy rules for these permissions, in file order.

    Among rules of equal priority, the first one wins. If a mode is given, a capability without a
    level creates no rule, so that the mode decides; without a mode, the rule asks. In plan mode no
    allow rule is created for levels and approved tools, because it would permit writes and shell
    commands. In yolo mode a level that allows needs no rule, but levels that ask or deny still
    create one. Raises OptionError for a name that can't be written into a rule.
    """
    _check(permissions, unwritable_name)
    denied = _denied(permissions)
    return (
        *(_rule(tool, Decision.DENY, 999) for tool in sorted(denied)),
        *_only(permissions, denied),
        *_approved(permissions, denied),
        *_levelled(permissions),
    )


def _denied(permissions: Permissions) -> set[str]:
    denied = set(permissions.disallowed_tools)
    for level, tools in _levelled_tools(permissions):
        if level is Level.DENY:
            denied.update(tools)
    return denied


def _only(permissions: Permissions, denied: set[str]) -> Iterable[Rule]:
    if permissions.only_tools is None:
        return
    for tool in sorted(set(permissions.only_tools) - denied):
        yield _rule(tool, Decision.ALLOW, 999)
    yield _rule("*", Decision.DENY, 998)


def _approved(permissions: Permissions, denied: set[str]) -> Iterable[Rule]:
    if permissions.mode != ApprovalMode.PLAN:
        for tool in sorted(set(permissions.approved_tools) - denied):
            yield _rule(tool, Decision.ALLOW, 997)


def _levelled(permissions: Permissions) -> Iterable[Rule]:
    for level, tools in _levelled_tools(permissions):
        if level is Level.ASK:
            decision = Decision.ASK_USER
        elif level is Level.ALLOW and permissions.mode in (None, "default", "auto_edit"):
            decision = Decision.ALLOW
        else:
            continue
        for tool in tools:
            yield _rule(tool, decision, 997)


def _levelled_tools(permissions: Permissions) -> Iterable[tuple[Level, tuple[str, ...]]]:
    if permissions.levels is None:
        return
    left_out = Level.ASK if permissions.asks_unnamed else None
    for name, tools in CAPABILITIES.items():
        level = getattr(permissions.levels, name) or left_out
        if level is not None:
            yield level, tools
