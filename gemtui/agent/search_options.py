"""Decide whether a run's policy must deny searches that pass options to git grep.

Gemini CLI hands a pattern that begins with `-` to git grep as an option, which can run any program.
A run that may execute any command without asking gains nothing by that. In any other run, such a
search would get around restrictions imposed by the mode, the options, the policies or the settings.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from gemtui.agent.cli_settings import CliSettings, admin_policy_files
from gemtui.agent.options import AgentOptions
from gemtui.calls.git_repository import is_in_repository, may_hold_repository
from gemtui.paths import current_folder, gemini_home
from gemtui.policy.file.policy import Policy
from gemtui.policy.model.rules import ApprovalMode, Call, Decision, Rule
from gemtui.policy.model.tool_catalog import ALIASES

_SHELL = frozenset({"run_shell_command", "*"})
_LIMITS = ("allowed", "confirmationRequired", "core", "exclude")
"""Settings in the table `tools` that may restrict which commands can be run.

See assets/gemini-cli.md#settings-as-rules.
"""
_SEARCH: Final = "grep_search"
_NAMES: Final = frozenset((_SEARCH, *(old for old, name in ALIASES.items() if name == _SEARCH)))
OPTION_REASON: Final = (
    "Gemini CLI hands a pattern that begins with `-` to git grep as an option, which can run a "
    "program. Write its first character as `[-]`."
)
"""The message to the model that says why such a search is denied."""
DENY_OPTION: Final = Rule(
    tools=(_SEARCH,), decision=Decision.DENY, priority=999, args_pattern='"pattern":"-', deny_message=OPTION_REASON
)


def denies_options(
    options: AgentOptions,
    ruled: Sequence[Rule],
    policies: Iterable[Path],
    settings: CliSettings,
    environ: Mapping[str, str],
) -> bool:
    """Return whether the run's own policy must deny searches that pass options.

    The first of these rules that applies decides:

    1. If the run's options restrict commands, it must.
    2. If the options name neither rules nor policy files, it need not: gemtui writes no policy for
       such a run, whose searches are as safe as in Gemini CLI itself.
    3. If the run may execute any command without asking, it need not.
    4. If the run may search in a git repository, it must. Elsewhere, searches run no program.

    `ruled`: the rules that come from the run's options. `policies`: the run's other policy files.
    `settings`: the CLI's settings. `environ`: the CLI's environment.
    """
    if _restricts_commands(ruled):
        return True
    if not ruled and not options.policies:
        return False
    allowed = any(not _SHELL.isdisjoint(rule.tools) for rule in ruled)
    if allowed or options.approval_mode is ApprovalMode.YOLO:
        cwd = options.cwd or current_folder()
        admin = admin_policy_files(settings.admin_policies(cwd))
        limited = any(settings.get("tools", name) is not None for name in _LIMITS)
        if not limited and not _restricts_commands(Policy.load([*policies, *admin]).rules):
            return False
    return _may_search_with_git(options, settings, environ)


def _restricts_commands(rules: Iterable[Rule]) -> bool:
    return any(rule.decision is not Decision.ALLOW and not _SHELL.isdisjoint(rule.tools) for rule in rules)


def _may_search_with_git(options: AgentOptions, settings: CliSettings, environ: Mapping[str, str]) -> bool:
    cwd = options.cwd or current_folder()
    folders = (cwd, *options.include_directories, *settings.added_folders(cwd))
    temporary = gemini_home(environ)
    return is_in_repository(temporary) or any(map(may_hold_repository, folders))


def is_option_search(call: Call) -> bool:
    """Return whether git grep would treat the call's search pattern as an option."""
    return is_search(call) and str(call.args.get("pattern", "")).startswith("-")


def is_search(call: Call) -> bool:
    """Return whether a call uses the tool that searches in files."""
    return call.tool in _NAMES
