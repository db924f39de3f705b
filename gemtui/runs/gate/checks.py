"""Check, before a gated run starts, whether it could ask the user.

A gated run asks the user for approval. Without working hooks, it would allow no more than other
runs do, but it would deny more calls and never ask. If in doubt, such a run is not started.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from gemtui.agent.detect import is_older
from gemtui.agent.options import AgentOptions
from gemtui.agent.trust import folder_settings
from gemtui.calls.env_files import (
    env_files,
    env_variables,
    hook_variables,
    in_searches,
    is_of_user,
    written_by,
)
from gemtui.calls.setting_effects import lets_model_correct
from gemtui.errors import GateError, reason_of
from gemtui.extension.content import NAME
from gemtui.extension.status import HookState, extension_state
from gemtui.paths import current_folder
from gemtui.policy.model.rules import ApprovalMode
from gemtui.system import Unported, why_not

OLDEST = (0, 61)
"""The first version of Gemini CLI whose hooks are known to suffice for approvals."""
_OFF = ("", "0", "false")


def check_gate(options: AgentOptions, environ: Mapping[str, str], *, version: str | None) -> None:
    """Raise GateError if a run with these options could not ask the user.

    `version`: the CLI's version; None if unknown.
    """
    environ = {**environ, **options.environment}
    for problem in _problems(options, environ, version):
        raise GateError(problem)
    extension = extension_state(environ, options.cwd, for_run=True)
    if extension.problem is not None:
        mends = extension.state in (HookState.MISSING, HookState.GONE, HookState.OLDER)
        raise GateError(extension.problem, install=mends)


def _problems(
    options: AgentOptions, environ: Mapping[str, str], version: str | None
) -> Iterator[str]:
    if reason := why_not(Unported.ASK):
        yield reason
    oldest, too_old = ".".join(map(str, OLDEST)), is_older(version, OLDEST)
    if too_old is None:
        yield f"the version of this Gemini CLI is unknown: {oldest} or newer is required"
    elif too_old:
        yield f"Gemini CLI {version} is too old: update it to {oldest} or newer"
    if options.extensions and NAME not in options.extensions:
        yield f"the option extensions leaves out gemtui's extension: add {NAME} to it"
    if options.sandbox:
        yield "hooks can't reach gemtui from the sandbox: run without it"
    if environ.get("GEMINI_SANDBOX", "").lower() not in _OFF:
        yield "hooks can't reach gemtui from the sandbox: unset GEMINI_SANDBOX"
    cwd = options.cwd or current_folder()
    settings = folder_settings(cwd, environ, for_run=True)
    is_planning = (options.approval_mode or settings.default_run_mode) is ApprovalMode.PLAN
    forbidden: dict[str, tuple[Callable[[object], bool], str]] = {
        "tools.sandbox": (bool, "hooks can't reach gemtui from the sandbox"),
        "security.toolSandboxing": (
            bool,
            "the sandbox decodes paths a second time, so a different file could be written from "
            "the one shown",
        ),
        "tools.disableLLMCorrection": (
            lets_model_correct,
            "a model could rewrite texts after you have approved them",
        ),
        "telemetry.outfile": (bool, "Gemini CLI would write to a file that the project names"),
        "general.plan.directory": (
            lambda _: is_planning,
            "in plan mode, project files could be written without asking",
        ),
    }
    for setting, (is_bad, why) in forbidden.items():
        for path, value in settings.each(*setting.split(".")):
            is_users = setting == "telemetry.outfile" and path != cwd / ".gemini" / "settings.json"
            if is_bad(value) and not is_users:
                yield f"{why}: remove {setting} from {path}"
    ignored = bool(settings.get("advanced", "ignoreLocalEnv"))
    for path in env_files(cwd, environ, ignore_local=ignored):
        yield from _of_env_file(path, environ)


def _of_env_file(path: Path, environ: Mapping[str, str]) -> Iterator[str]:
    """Yield reasons why a `.env` file makes a gated run unsafe or impossible.

    Each reason includes a fix. For example, the file's variables may change what hooks do, or make
    searches run a program.
    """
    try:
        variables = env_variables(path)
    except OSError as error:
        yield f"{path} can't be checked ({reason_of(error)}): make it smaller or remove it"
        return
    for name in hook_variables(variables):
        if name not in environ or name.startswith("GEMTUI_"):
            yield f"{name} could change how gemtui's hooks work: remove it from {path}"
    foreign = {} if is_of_user(path, environ) else variables
    for name in written_by(foreign):
        if name not in environ:
            yield f"Gemini CLI would write to the file named by {name}: remove it from {path}"
    for name in in_searches(foreign):
        if name not in environ:
            yield f"{name} could make searches run a program without asking: remove it from {path}"
    sandbox = variables.get("GEMINI_SANDBOX", "")
    if "GEMINI_SANDBOX" not in environ and sandbox.lower() not in _OFF:
        yield f"hooks can't reach gemtui from the sandbox: remove GEMINI_SANDBOX from {path}"
