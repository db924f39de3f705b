"""Keep a session safe that a run resumes: a copy before the run, a keeper during and after it.

The keeper works in the run's supervisor, so that it is there as long as the run goes on, whoever
follows it. If the supervisor was killed, the next gemtui does the keeper's last part.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from gemtui.agent import process_tree
from gemtui.agent.gemini import owner_lives
from gemtui.agent.run_folder import Request, RunFolder
from gemtui.errors import OptionError
from gemtui.paths import gemini_home
from gemtui.runs.kept_session import aftermath_of, keep, kept_of, named, unsettled
from gemtui.runs.session_keeper import Keeper
from gemtui.sessions.vault_files import store_with_kept
from gemtui.transcript.parts import string
from gemtui.vault.restoring import put_back_first


class ResumeGuard:
    """Keeps the sessions that an adapter's runs resume: `GeminiAdapter(guard=ResumeGuard())`."""

    supervisor = "gemtui.runs.supervisor"

    def before(self, folder: RunFolder, request: Request, environ: Mapping[str, str]) -> None:
        """Copy the session that the run will resume.

        Any start of the CLI cleans up, so what earlier runs left is settled first. Raises OSError,
        which keeps the run from starting.
        """
        settle_left(folder.path.parent)
        resumed = string((request.about or {}).get("resume"))
        if resumed:
            keep(folder, gemini_home({**environ, **request.environ}), resumed)

    def after(self, folder: RunFolder) -> None:
        """Settle the session once; does nothing for a run that resumed none.

        If the disk is full it is settled without being written down.
        """
        kept = kept_of(folder)
        if kept is not None and aftermath_of(folder) is None:
            with suppress(OSError):
                Keeper(folder, kept).close()


def require_stored(session: str, home: Path) -> None:
    """Raise OptionError if only the vault has the files of a session: the CLI can't resume it."""
    places = [*named(store_with_kept(home), session)]
    if places and all(place.kept for place in places):
        raise OptionError(put_back_first(session), option="resume")


def settle_left(runs: Path) -> tuple[RunFolder, ...]:
    """Settle the sessions of ended runs whose supervisors could not, say because they were killed.

    Returns these runs. Cheap if there is nothing to do. While processes of such a run go on, its
    session is settled for now and will be again.
    """
    left = tuple(folder for folder in unsettled(runs) if _is_over(folder))
    for folder in left:
        if folder.exit() is None and process_tree.tagged(folder.id):
            _put_right_for_now(folder)
        else:
            ResumeGuard().after(folder)
    return left


def _put_right_for_now(folder: RunFolder) -> None:
    kept = kept_of(folder)
    if kept is not None:
        with suppress(OSError):
            Keeper(folder, kept).look()


def _is_over(folder: RunFolder) -> bool:
    owner = folder.owner()
    return folder.exit() is not None or (owner is not None and not owner_lives(owner))
