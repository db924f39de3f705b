"""What must be so before a run starts that asks a person: it is never started in doubt.

A run whose hooks did not run would only be refused more, not less; but nobody would be asked.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from gemtui.agent.capabilities import Capabilities
from gemtui.agent.options import AgentOptions
from gemtui.agent.settings import read_settings, settings_places
from gemtui.errors import GateError
from gemtui.extension.content import NAME
from gemtui.extension.status import State, extension_state
from gemtui.paths import current_folder

OLDEST = (0, 61)
"""The first Gemini CLI whose hooks were seen to do what a gate needs."""
_OFF = ("", "0", "false")


def check_gate(
    options: AgentOptions,
    environ: Mapping[str, str],
    *,
    version: str | None,
    capabilities: Capabilities,
) -> None:
    """Raise GateError if a run with these options could not ask on this machine.

    `version`: of the CLI; None = unknown.
    """
    environ = {**environ, **options.environment}
    for problem in _of_cli(version, capabilities):
        raise GateError(f"this run can't ask: {problem}")
    for problem in _of_options(options, environ):
        raise GateError(f"this run can't ask: {problem}")
    found = extension_state(environ, options.cwd)
    if found.problem is not None:
        mends = found.state in (State.MISSING, State.GONE, State.OLDER)
        raise GateError(f"this run can't ask: {found.problem}", install=mends)


def _of_cli(version: str | None, capabilities: Capabilities) -> Iterator[str]:
    oldest = ".".join(map(str, OLDEST))
    numbers = re.match(r"v?(\d+)\.(\d+)", version or "")
    if numbers is None:
        yield f"the version of this Gemini CLI is not known: {oldest} or a newer one is needed"
    elif (int(numbers[1]), int(numbers[2])) < OLDEST or not capabilities.knows("policy"):
        yield f"Gemini CLI {version} is too old for it: update it to {oldest} or newer"


def _of_options(options: AgentOptions, environ: Mapping[str, str]) -> Iterator[str]:
    if options.extensions and NAME not in options.extensions:
        yield f"extensions leave out gemtui's: name {NAME} as well"
    if options.sandbox:
        yield "hooks in the sandbox don't reach gemtui: run without it"
    if environ.get("GEMINI_SANDBOX", "").lower() not in _OFF:
        yield "hooks in the sandbox don't reach gemtui: unset GEMINI_SANDBOX"
    corrects = None
    for place in settings_places(environ, options.cwd or current_folder()):
        tools = read_settings(place, environ).get("tools")
        if isinstance(tools, dict) and tools.get("sandbox"):
            yield f"hooks in the sandbox don't reach gemtui: remove tools.sandbox from {place}"
        if isinstance(tools, dict) and "disableLLMCorrection" in tools:
            corrects = place if tools["disableLLMCorrection"] is False else None
    if corrects is not None:
        yield (
            "another model could change what you approve before it is written: remove "
            f"tools.disableLLMCorrection from {corrects}"
        )
