"""The CLI's built-in rules; they have tier 1, the lowest.

They were observed in Gemini CLI 0.61.0; see assets/gemini-cli.md#tools.
"""

from __future__ import annotations

from collections.abc import Iterator

from gemtui.policy.model.rules import Decision, Rule, SafetyChecker, Tier

ALLOW, DENY, ASK = Decision.ALLOW, Decision.DENY, Decision.ASK_USER
SOURCE = "built-in"

READ_ONLY = (
    "glob",
    "grep_search",
    "list_directory",
    "read_file",
    "google_web_search",
    "codebase_investigator",
    "cli_help",
    "get_internal_docs",
    "tracker_create_task",
    "tracker_update_task",
    "tracker_get_task",
    "tracker_list_tasks",
    "tracker_add_dependency",
    "tracker_visualize",
    "update_topic",
    "complete_task",
    "read_mcp_resource",
    "list_mcp_resources",
)
EDITS = ("write_file", "replace")
CHANGING = ("replace", "run_shell_command", "write_file", "activate_skill", "web_fetch")

PLAN_NO_EDIT = (
    "You are in Plan Mode and cannot modify source code. You may ONLY use write_file or replace "
    "to save plans to the designated plans directory as .md files."
)
PLAN_READ_ONLY = (
    "You are in Plan Mode with access to read-only tools. Execution of scripts (including those "
    "from skills) is blocked."
)
"""Like `PLAN_NO_EDIT`, the exact message by which the CLI denies a call."""

_SLASH = r"[\\/]+"
_NAME = r"[\w-]+"
_PLAN_NAME = rf"{_NAME}\.md"


def _plan_paths() -> Iterator[str]:
    """Yield patterns for the paths to which plans may be written in plan mode.

    These are files in `.gemini/tmp/PROJECT[/SESSION]/plans/` or `plans/`, and names without a
    folder. Only letters, digits, `_` and `-` are allowed in a plan's name
    (assets/gemini-cli.md#plan-mode).
    """
    for session in (rf"{_NAME}{_SLASH}", ""):
        kept = rf"\.gemini{_SLASH}tmp{_SLASH}{_NAME}{_SLASH}{session}plans{_SLASH}{_PLAN_NAME}"
        for start in (rf"[^\"]+{_SLASH}", "", rf"\.{_SLASH}"):
            yield start + kept
    for folder in ("", rf"plans{_SLASH}"):
        for start in ("", rf"\.{_SLASH}"):
            yield start + folder + _PLAN_NAME


def _plan_files() -> str:
    return rf'\x00"file_path":"(?:{"|".join(_plan_paths())})"\x00'


def _rules() -> Iterator[Rule]:
    def rule(
        tools: str | tuple[str, ...],
        decision: Decision,
        priority: int,
        *modes: str,
        interactive: bool | None = None,
        **more: object,
    ) -> Rule:
        names = (tools,) if isinstance(tools, str) else tools
        return Rule(
            tools=names,
            tool_list=len(names) > 1,
            decision=decision,
            priority=priority,
            modes=modes,
            interactive=interactive,
            tier=Tier.BUILTIN,
            source=SOURCE,
            **more,  # type: ignore[arg-type]
        )

    yield rule("invoke_agent", ALLOW, 50, "default", "autoEdit", "yolo")
    yield rule("discovered_tool_*", ASK, 10, interactive=True)
    yield rule("discovered_tool_*", DENY, 10, interactive=False)
    yield rule("ask_user", DENY, 999, interactive=False)
    yield rule("enter_plan_mode", ASK, 50, interactive=True)
    yield rule("enter_plan_mode", ALLOW, 50, interactive=False)
    yield rule("enter_plan_mode", DENY, 70, "plan")
    yield rule("exit_plan_mode", ASK, 70, "plan", interactive=True)
    yield rule("exit_plan_mode", ALLOW, 70, "plan", interactive=False)
    yield rule("exit_plan_mode", DENY, 50)
    yield rule("*", DENY, 40, "plan", deny_message=PLAN_READ_ONLY)
    yield rule("*", ASK, 50, "plan", interactive=True, mcp_name="*", annotations={"readOnlyHint": True})
    yield rule("invoke_agent", ALLOW, 50, "plan", args_pattern=r'"agent_name":\s*"(codebase_investigator|cli_help)"')
    yield rule(("ask_user", "web_fetch", "activate_skill"), ASK, 50, "plan", interactive=True)
    yield rule(EDITS, ALLOW, 70, "plan", args_pattern=_plan_files())
    yield rule(EDITS, DENY, 65, "plan", deny_message=PLAN_NO_EDIT)
    yield rule(READ_ONLY, ALLOW, 50)
    yield rule("replace", ASK, 10, interactive=True)
    yield rule("replace", ALLOW, 15, "autoEdit")
    yield rule("run_shell_command", ASK, 10, interactive=True)
    yield rule("write_file", ASK, 10, interactive=True)
    yield rule("activate_skill", ASK, 10, interactive=True)
    yield rule("write_file", ALLOW, 15, "autoEdit")
    yield rule("web_fetch", ALLOW, 15, "autoEdit")
    yield rule("web_fetch", ASK, 10, interactive=True)
    yield rule(CHANGING, DENY, 10, interactive=False)
    yield rule("ask_user", ASK, 999, "yolo", interactive=True)
    yield rule(("enter_plan_mode", "exit_plan_mode"), DENY, 999, "yolo", interactive=True)
    yield rule("*", ALLOW, 998, "yolo", allow_redirection=True)


BUILTIN: tuple[Rule, ...] = tuple(_rules())
BUILTIN_CHECKERS = (
    SafetyChecker(
        rule=Rule(tools=EDITS, decision=DENY, priority=15, modes=("autoEdit",), tier=Tier.BUILTIN, source="built-in"),
        name="allowed-path",
    ),
)
"""The CLI's built-in checkers that are active without any setting."""
