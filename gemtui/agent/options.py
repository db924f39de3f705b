"""The options of a run; `gemtui run` and the config file use the same names."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from gemtui.errors import OptionError
from gemtui.files import is_folder
from gemtui.policy.file.levels import PermissionPolicy, Permissions, check_names
from gemtui.policy.model.rules import ApprovalMode


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentOptions:
    """The options of one run. None, or an empty value, leaves the choice to the CLI.

    `only_tools`: no other tool exists. `approved_tools`: need no confirmation. `policies`: policy
    files that are loaded between our denies and our allows. `resume`: the full id of a session.
    `max_turns`: 0 or more. `timeout`, `idle_timeout`: seconds. `environment`: added to that of this
    process. `trust`: trust the folder, for this run. `prompt_in_argv`: pass the prompt as
    `--prompt=…`, where `ps` shows it, instead of by a file on stdin. `abort`: setting this event
    ends the run.
    """

    cwd: Path | None = None
    model: str | None = None
    max_turns: int | None = None
    approval_mode: ApprovalMode | None = None
    permissions: PermissionPolicy | None = None
    only_tools: tuple[str, ...] | None = None
    approved_tools: tuple[str, ...] = ()
    disallowed_tools: tuple[str, ...] = ()
    policies: tuple[Path, ...] = ()
    include_directories: tuple[Path, ...] = ()
    sandbox: bool = False
    extensions: tuple[str, ...] = ()
    mcp_servers: tuple[str, ...] = ()
    resume: str | None = None
    timeout: float | None = None
    idle_timeout: float | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    trust: bool = False
    prompt_in_argv: bool = False
    abort: asyncio.Event | None = None

    @property
    def tools(self) -> Permissions:
        """The part of the options that is about tools."""
        return Permissions(
            mode=self.approval_mode,
            levels=self.permissions,
            only_tools=self.only_tools,
            approved_tools=self.approved_tools,
            disallowed_tools=self.disallowed_tools,
        )

    def check(self) -> None:
        """Raise OptionError, naming the option, for a value that can't be used.

        The contents of policy files are checked where the command is made.
        """
        check_names(self.tools)
        for name in ("timeout", "idle_timeout"):
            seconds = getattr(self, name)
            if seconds is not None and not seconds > 0:
                raise OptionError(f"{name} must be more than 0 seconds, not {seconds}")
        if self.max_turns is not None and self.max_turns < 0:
            raise OptionError(f"max_turns must be 0 or more, not {self.max_turns}")
        if self.cwd is not None and not is_folder(self.cwd):
            raise OptionError(f"cwd: {self.cwd} is no folder")
