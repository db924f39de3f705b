"""`gemtui [PATH]`: open the app on the user's sessions, or on the demo's."""

from __future__ import annotations

import os
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

import click
from msgspec.structs import replace

from gemtui.commands.shared_options import existing_folder_here
from gemtui.config import Config, Scope, load_config
from gemtui.files import resolved
from gemtui.paths import cache_dir, config_file, gemini_home
from gemtui.sessions.catalog.preload import StorePreload

_ENDING = 10.0
"""How many seconds to wait for the demo's runs to end after they have been killed."""


def open_app(path: Path | None, *, session: str | None, demo: bool, ascii: bool) -> int:
    """Open the app, or the conversation by lines if that is chosen; return the exit code.

    `path`: the folder whose sessions to show first; None means the current folder. `session`: the
    session to open, as the user named it. `demo`: show sample sessions. `ascii`: draw with ASCII
    characters only. Raises ConfigError, and the errors of `choose`.
    """
    config = load_config(config_file())
    if _is_plain(config) and not demo:
        from gemtui.commands.chat import start_chat

        chosen = {"cwd": path, "resume": session}
        return start_chat({name: value for name, value in chosen.items() if value is not None})
    if ascii:
        config = replace(config, ascii=True)
    if demo:
        if path is not None:
            raise click.UsageError("--demo uses its own sample projects: leave PATH out")
        return _demo(session, config)
    folder = resolved(path or existing_folder_here())
    return _app(gemini_home(), cache_dir(), folder, session, config)


def _is_plain(config: Config) -> bool:
    """Return whether to talk by lines: as the environment says, else as the settings do."""
    chosen = os.environ.get("GEMTUI_PLAIN")
    return config.plain if chosen is None else chosen not in ("", "0")


def _demo(session: str | None, config: Config) -> int:
    """Run the app on sample sessions, in a temporary folder.

    In the demo, runs are performed by a stand-in for Gemini CLI. They end with the demo.
    """
    from gemtui.demo import PROJECT, install_agent, write_store

    with tempfile.TemporaryDirectory(prefix="gemtui-demo-") as folder:
        home = Path(folder).resolve()
        write_store(home, now=datetime.now(UTC))
        os.environ.update(install_agent(home))
        config = replace(config, scope=Scope.EVERYWHERE)
        try:
            return _app(home / ".gemini", cache_dir(), home / PROJECT, session, config, demo=True)
        finally:
            _end_runs(home)


def _end_runs(place: Path) -> None:
    """Kill all runs in the demo's folder `place`, and wait until they have ended.

    Otherwise, the runs could still write to the folder while it is being removed.
    """
    from gemtui.agent.run_folder import Abort
    from gemtui.paths import runs_dir
    from gemtui.runs.ending import RunState
    from gemtui.runs.listing import list_runs

    runs = [
        run
        for run in list_runs(runs_dir())
        if run.state is RunState.RUNNING and run.folder.path.is_relative_to(place)
    ]
    for run in runs:
        run.folder.abort(Abort.KILL)
    end = time.monotonic() + _ENDING
    while any(run.folder.exit() is None for run in runs) and time.monotonic() < end:
        time.sleep(0.02)


def _app(
    home: Path,
    cache: Path,
    project: Path | None,
    session: str | None,
    config: Config,
    *,
    demo: bool = False,
) -> int:
    chosen = None
    if session is not None:
        from gemtui.commands.session_choice import session_named

        chosen = session_named(session, home=home)
    first = project if config.scope is Scope.PROJECT else None
    opening = StorePreload(home, cache=cache, project=first, ahead=True)
    from gemtui.ui.app import run_app
    from gemtui.ui.kit.app_base import Start

    start = Start(
        home=home, project=project, cache=cache, session=chosen, demo=demo, opening=opening
    )
    return run_app(start, config)
